"""The columns of a view as Gaussian processes with one kernel, each with scales of its own.

cov(y_d) = s_d (K + λ_d I), with a mean that is not known. K is centred over the rows of the fit, so
that the mean takes one direction and the process the others: K = U diag(e) Uᵀ with 1ᵀU = 0. One
decomposition serves all columns, whatever their λ_d. s_d is integrated out under 1/s_d, λ_d is the
most likely one, where log λ_d ~ N(μ, ω²) for all columns of a view: similar ones share what they
know.

A column with holes y_m has in them what its other values y_o say of them. With B = (K + λI)⁻¹,

yᵀ(K_oo + λI)⁻¹y = min over y_m of yᵀBy, log|K_oo + λI| = log|K + λI| + log|B_mm|,

and of B_mm the mean of its diagonal counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kofa.linalg import Array, BoolArray, by_rows

_LIMITS = (-25.0, 14.0)  # of log λ, for kernels with a mean diagonal of one
_GRID = 14  # values of log λ that are compared before the best is refined
_HALVINGS = 14  # of the step between two of these
_ROUNDS = 6  # of finding the prior that the columns share
_PRIOR_SPREAD = 3.0  # of log λ, as if one column more had been seen with it
_LEAST_SPREAD = 0.1
_FILLINGS = 4  # rounds of scales and what stands in holes
_MOST_STEPS = 100  # of conjugate gradients
_EXACT = 1e-8
_OUTLIER = 3.0  # standard deviations, beyond which scales do not follow a value
_LEAST_VARIANCE = 1e-20  # of columns on unit scale
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Directions U (n, r) in which n rows vary, and the variances e (r,) along them."""

    U: Array
    e: Array

    @classmethod
    def of_kernel(cls, K: Array) -> Spectrum:
        """Of a centred kernel (n, n)."""
        e, U = np.linalg.eigh(K)
        keep = e > 1e-14 * max(float(e.max(initial=0.0)), _TINY) * len(e)
        return cls(U[:, keep], e[keep])

    @property
    def n_rows(self) -> int:
        return len(self.U)

    @property
    def n_outside(self) -> int:
        """Directions that the kernel leaves out, but for the mean."""
        return self.n_rows - 1 - len(self.e)


@dataclass(frozen=True, eq=False)
class Evidence:
    """log p(y_d | λ_d) of all columns, without what does not depend on λ."""

    spectrum: Spectrum
    square: Array  # (r, D): of UᵀY
    rest: Array  # (D,): squares of Y outside of U
    n_seen: Array  # (D,)
    least: Array  # (D,): log λ below which a column was not measured

    @classmethod
    def of(
        cls, spectrum: Spectrum, Y: Array, n_seen: Array, rounding: Array | float = 0.0
    ) -> Evidence:
        """Of centred columns, known up to a variance by rounding. Far-out values count as less."""
        far = _OUTLIER * np.sqrt((Y**2).sum(axis=0) / np.maximum(n_seen, 1.0))
        Y = np.clip(Y, -far, far)
        square = (spectrum.U.T @ Y) ** 2
        total = (Y**2).sum(axis=0)
        share = rounding * n_seen / np.maximum(total, _TINY)
        least = np.maximum(np.log(np.maximum(share, _TINY)), _LIMITS[0])
        return cls(spectrum, square, np.maximum(total - square.sum(axis=0), 0.0), n_seen, least)

    @property
    def varies(self) -> BoolArray:
        """Which columns say something of their scales: (D,)."""
        total = self.square.sum(axis=0) + self.rest
        return np.asarray(total > _LEAST_VARIANCE * np.maximum(self.n_seen, 1.0))

    @property
    def dof(self) -> Array:
        return np.maximum(self.n_seen - 1.0, 1.0)

    def quadratic(self, t: Array) -> Array:
        """yᵀ(K + λI)⁻¹y without the mean: (D,)."""
        lam = np.exp(t)
        inside = (self.square / (self.spectrum.e[:, None] + lam)).sum(axis=0)
        return np.asarray(np.maximum(inside + self.rest / lam, _TINY))

    def value(self, t: Array) -> Array:
        """At log λ = t (D,)."""
        lam, outside, n = np.exp(t), self.spectrum.n_outside, self.spectrum.n_rows
        total = self.spectrum.e[:, None] + lam
        logdet = np.log(total).sum(axis=0) + outside * t
        mean_inverse = ((1.0 / total).sum(axis=0) + outside / lam) / n
        logdet += (n - self.n_seen) * np.log(mean_inverse)
        return np.asarray(-0.5 * self.dof * np.log(self.quadratic(t)) - 0.5 * logdet)

    def slope(self, t: Array) -> Array:
        """In log λ."""
        lam, outside, n = np.exp(t), self.spectrum.n_outside, self.spectrum.n_rows
        inverse = 1.0 / (self.spectrum.e[:, None] + lam)
        q2 = (self.square * inverse**2).sum(axis=0) + self.rest / lam**2
        trace = inverse.sum(axis=0) + outside / lam
        trace2 = (inverse**2).sum(axis=0) + outside / lam**2
        of_logdet = trace - (n - self.n_seen) * trace2 / trace
        return np.asarray(lam * 0.5 * (self.dof * q2 / self.quadratic(t) - of_logdet))


@dataclass(frozen=True, eq=False)
class Scales:
    """log λ of every column, and the normal distribution from which they come."""

    log_ratio: Array  # (D,)
    mean: float = 0.0
    spread: float = 2.0 * _PRIOR_SPREAD

    @property
    def log_prior(self) -> float:
        """Its density but for a constant."""
        away = (self.log_ratio - self.mean) / self.spread
        return float(-0.5 * (away**2).sum() - len(away) * np.log(self.spread))


def most_likely_scales(evidence: Evidence, begin: Scales | None = None) -> Scales:
    """log λ_d with the highest evidence under N(μ, ω²), and μ and ω by expectation maximisation."""
    varies = evidence.varies
    D = int(varies.sum())
    found = begin or Scales(np.zeros(len(varies)))
    for _ in range(_ROUNDS if D else 0):
        t, precision = _modes(evidence, found), found.spread**-2
        bend = (evidence.slope(t - 0.05) - evidence.slope(t + 0.05)) / 0.1
        variance = 1.0 / (np.maximum(bend, 0.0) + precision)
        # One column more, with the prior spread, and a wide prior around λ = 1 for the mean
        mean = float(t[varies].sum() * precision / (D * precision + _LIMITS[1] ** -2))
        square = float(((t - mean) ** 2 + variance)[varies].sum()) + _PRIOR_SPREAD**2
        spread = max(float(np.sqrt(square / (D + 1.0))), _LEAST_SPREAD)
        close = abs(mean - found.mean) + abs(spread - found.spread) < 1e-3
        found = Scales(np.where(varies, t, mean), mean, spread)
        if close:
            break
    return found


def _modes(evidence: Evidence, prior: Scales) -> Array:
    """The most likely log λ of every column: a grid, then halving where the slope changes sign."""
    low, high = evidence.least, np.full(len(evidence.least), _LIMITS[1])
    grid = np.linspace(low, high, _GRID)
    values = [evidence.value(t) - 0.5 * ((t - prior.mean) / prior.spread) ** 2 for t in grid]
    best, step = np.argmax(values, axis=0), (high - low) / (_GRID - 1)
    lower = low + np.maximum(best - 1, 0) * step
    upper = low + np.minimum(best + 1, _GRID - 1) * step
    for _ in range(_HALVINGS):
        middle = 0.5 * (lower + upper)
        rises = evidence.slope(middle) > (middle - prior.mean) / prior.spread**2
        lower, upper = np.where(rises, middle, lower), np.where(rises, upper, middle)
    return np.asarray(0.5 * (lower + upper))


@dataclass(frozen=True, eq=False)
class Regression:
    """What rows of the fit say about the columns of a view, for any row by its kernel."""

    e: Array  # (r,): of the spectrum
    n_rows: int
    mean: Array  # (D,)
    ratio: Array  # (D,): λ
    share: Array  # (D,): of the rows that have the column
    scale: Array  # (D,): s
    coefficients: Array  # (r, D): along the directions of the spectrum
    left_out: Array  # (n, D): each value less what all other rows say; NaN where missing
    left_out_std: Array  # (n, D): how far it is expected to be

    def predict(self, along: Array) -> Array:
        """Means of rows (·, D), by their kernel with the rows of the fit along U (·, r)."""
        return np.asarray(self.mean + along @ self.coefficients)

    def variance(self, along: Array, itself: Array) -> Array:
        """Variances of columns of such rows but for their noise, k(x, x) given: (·, D)."""
        e, lam = self.e[:, None], self.ratio / self.share
        known = by_rows(along**2, 1.0 / (e + lam))
        left = np.maximum(itself[:, None] - known, 0.0)
        return np.asarray(self.scale * (left + lam / self.n_rows))

    @property
    def noise(self) -> Array:
        return self.scale * self.ratio


def regress(
    spectrum: Spectrum, Y: Array, seen: BoolArray, rounding: Array | float = 0.0
) -> Regression:
    """The regression of columns Y (n, D), of which some values may be missing."""
    begin: Scales | None = None
    n_seen = seen.sum(axis=0).astype(float)
    n, share = spectrum.n_rows, np.maximum(n_seen, 1.0) / spectrum.n_rows
    mean = np.where(seen, Y, 0.0).sum(axis=0) / np.maximum(n_seen, 1.0)
    filled = np.where(seen, Y, mean)
    holed = ~seen.all(axis=0)
    for _ in range(_FILLINGS if holed.any() else 1):
        mean = filled.mean(axis=0)
        Yc = filled - mean
        evidence = Evidence.of(spectrum, Yc, n_seen, rounding)
        found = most_likely_scales(evidence, begin)
        lam, begin = np.exp(found.log_ratio), found
        coefficients = (spectrum.U.T @ Yc) / (spectrum.e[:, None] + lam)
        if not holed.any():
            break
        own, before = filled[:, holed], filled[:, holed]
        own = _filled(spectrum, own, seen[:, holed], lam[holed])
        filled[:, holed] = own
        if np.abs(own - before).max() < 1e-4 * max(float(np.abs(own).max()), _TINY):
            break
    mean = filled.mean(axis=0)
    Yc = filled - mean
    along = spectrum.U.T @ Yc
    coefficients = along / (spectrum.e[:, None] + lam)
    outside = np.maximum((Yc**2).sum(axis=0) - (along**2).sum(axis=0), 0.0)
    quadratic = (along * coefficients).sum(axis=0) + outside / lam
    scale = np.maximum(quadratic, _TINY) / evidence.dof
    # H = (K + λI)⁻¹ without the mean; e_n = [Hy]_n / H_nn
    Hy = spectrum.U @ (coefficients - along / lam) + Yc / lam
    H = _left_out_precision(spectrum, lam, share)
    left_out = np.where(seen, Hy / H, np.nan)
    return Regression(
        spectrum.e, n, mean, lam, share, scale, coefficients, left_out, np.sqrt(scale / H)
    )


def _left_out_precision(spectrum: Spectrum, lam: Array, share: Array) -> Array:
    """H_nn of every row and column: (n, D).

    A share of the rows with noise λ tells as much of f as all rows with noise λ / share.
    """
    U2, apart = spectrum.U**2, lam / share
    H = U2 @ (1.0 / (spectrum.e[:, None] + apart) - 1.0 / apart)
    H += (1.0 - 1.0 / spectrum.n_rows) / apart
    return np.asarray(1.0 / np.maximum(1.0 / np.maximum(H, _TINY) - apart + lam, lam))


def _filled(spectrum: Spectrum, Y: Array, seen: BoolArray, lam: Array) -> Array:
    """Columns whose holes have what the other values of the column say of them.

    By conjugate gradients on B_mm y_m = −B_mo y_o, B = (K + λI)⁻¹ without the mean, preconditioned
    by its diagonal.
    """
    U, e = spectrum.U, spectrum.e[:, None]
    hole, n = ~seen, spectrum.n_rows

    def B(X: Array) -> Array:
        along = U.T @ X
        return np.asarray(U @ (along / (e + lam) - along / lam) + (X - X.mean(axis=0)) / lam)

    diagonal = U**2 @ (1.0 / (e + lam) - 1.0 / lam) + (1.0 - 1.0 / n) / lam
    x = np.where(hole, Y, 0.0)
    residual = np.where(hole, -B(Y), 0.0)
    goal = _EXACT * np.maximum((B(np.where(seen, Y, 0.0)) ** 2 * hole).sum(axis=0), _TINY)
    z = residual / diagonal
    p, rz = z, (residual * z).sum(axis=0)
    for _ in range(_MOST_STEPS):
        if ((residual**2).sum(axis=0) <= goal).all():
            break
        Bp = np.where(hole, B(p), 0.0)
        step = rz / np.maximum((p * Bp).sum(axis=0), _TINY)
        x, residual = x + step * p, residual - step * Bp
        z = residual / diagonal
        rz, last = (residual * z).sum(axis=0), rz
        p = z + rz / np.maximum(last, _TINY) * p
    return np.where(hole, x, Y)
