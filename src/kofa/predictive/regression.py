"""The columns of a view as Gaussian processes with one kernel, each with scales of its own.

cov(y_d) = s_d (K + λ_d I), with a mean that is not known. K is centred over the rows of the fit, so
that the mean takes one direction and the process the others: K = U diag(e) Uᵀ with 1ᵀU = 0. One
decomposition serves all columns, whatever their λ_d. Columns of a view that follow have one scale
s, and noises of their own, all at the highest evidence: one s is known better than many. Some do
not follow, and have no say in it. Given λ_d, s_d is integrated out under 1/s_d.

A column with holes y_m has in them what its other values y_o say of them. With B = (K + λI)⁻¹,

yᵀ(K_oo + λI)⁻¹y = min over y_m of yᵀBy, log|K_oo + λI| = log|K + λI| + log|B_mm|,

and of B_mm the mean of its diagonal counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import expit

from kofa.linalg import Array, BoolArray, by_rows

_LIMITS = (-25.0, 14.0)  # of log λ, for kernels with a mean diagonal of one
_GRID = 60  # values of log λ at which the evidence is computed
_FINER = 4  # times as many to which it is interpolated
_SIZES = np.linspace(-9.0, 5.0, 43)  # log s of columns with unit variance that are compared
_SIZE_SPREAD = 3.0  # standard deviation of log s around zero, a priori
_ROUNDS = 30  # of expectation maximisation
_FILLINGS = 4  # rounds of scales and what stands in holes
_MOST_STEPS = 100  # of conjugate gradients
_EXACT = 1e-8
_OUTLIER = 5.0  # standard deviations, beyond which scales do not follow a value
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
        return max(self.n_rows - 1 - len(self.e), 0)


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
        """Of centred columns, known up to a variance by rounding."""
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
        return np.asarray(-0.5 * self.dof * np.log(self.quadratic(t)) - 0.5 * self.logdet(t))

    def logdet(self, t: Array) -> Array:
        """log|K + λI| of the rows that have a column, at log λ = t: (D,)."""
        lam, outside, n = np.exp(t), self.spectrum.n_outside, self.spectrum.n_rows
        total = self.spectrum.e[:, None] + lam
        logdet = np.log(total).sum(axis=0) + outside * t
        mean_inverse = ((1.0 / total).sum(axis=0) + outside / lam) / n
        logdet += (n - self.n_seen) * np.log(np.maximum(mean_inverse, _TINY))
        return np.asarray(logdet)

    def slope(self, t: Array) -> Array:
        """In log λ."""
        lam, outside, n = np.exp(t), self.spectrum.n_outside, self.spectrum.n_rows
        inverse = 1.0 / (self.spectrum.e[:, None] + lam)
        q2 = (self.square * inverse**2).sum(axis=0) + self.rest / lam**2
        trace = inverse.sum(axis=0) + outside / lam
        trace2 = (inverse**2).sum(axis=0) + outside / lam**2
        of_logdet = trace - (n - self.n_seen) * trace2 / trace
        return np.asarray(lam * 0.5 * (self.dof * q2 / self.quadratic(t) - of_logdet))


def without_outliers(Y: Array, n_seen: Array | float) -> Array:
    """Centred columns whose far-out values count as less."""
    far = _OUTLIER * np.sqrt((Y**2).sum(axis=0) / np.maximum(n_seen, 1.0))
    return np.clip(Y, -far, far)


def log_ratios(evidence: Evidence) -> Array:
    """log λ of every column: (D,).

    All columns have the same s, or none: with u = log s the most likely one,
    log λ_d = log λ_d(u) − log P(s_d = s), which is high for those that do not follow.
    """
    varies = evidence.varies
    if not varies.any():
        return np.full(len(varies), _LIMITS[1])
    ratios, gains = _of_each_size(evidence)
    share, likely = _following(gains[:, varies])
    likely -= 0.5 * (_SIZES / _SIZE_SPREAD) ** 2
    all_odds = gains + (np.log(share) - np.log1p(-share))[:, None]
    at, _ = _top(likely[:, None])
    below = int(np.clip(np.floor(at[0]), 0, len(_SIZES) - 2))
    above = at[0] - below
    t, odds = (x[below] * (1.0 - above) + x[below + 1] * above for x in (ratios, all_odds))
    found = np.minimum(t + np.logaddexp(0.0, -odds), _LIMITS[1])
    return np.asarray(np.where(varies, found, _LIMITS[1]))


def _of_each_size(evidence: Evidence) -> tuple[Array, Array]:
    """For each s the best log λ of every column, and the log odds of s over none: (S, D) both."""
    low = evidence.least
    place, fine = np.linspace(0.0, 1.0, _GRID), np.linspace(0.0, 1.0, _FINER * _GRID)
    step = (_LIMITS[1] - low) / (_FINER * _GRID - 1)
    grid = low + place[:, None] * (_LIMITS[1] - low)
    dof, total = evidence.dof, evidence.square.sum(axis=0) + evidence.rest
    unit = np.maximum(total / np.maximum(evidence.n_seen, 1.0), _TINY)  # of columns of variance one
    quadratic = [np.log(evidence.quadratic(t) / unit) for t in grid]
    Q = np.exp(CubicSpline(place, quadratic)(fine))
    logdet = CubicSpline(place, [evidence.logdet(t) for t in grid])(fine)
    none = -0.5 * dof * (np.log(np.maximum(total, _TINY) / unit / dof) + 1.0)
    ratios, gains = [], []
    for u in _SIZES:
        i, value = _top(-0.5 * (Q * np.exp(-u) + logdet))
        ratios.append(low + i * step)
        gains.append(value - 0.5 * dof * u - none)
    return np.array(ratios), np.array(gains)


def _following(gains: Array) -> tuple[Array, Array]:
    """The share of columns that follow, and how likely it is, for each s: (S,).

    `gains` (S, D): log odds of following. As if one column more followed, and one did not.
    """
    share = np.full(len(gains), 0.5)
    for _ in range(_ROUNDS):
        follows = expit(gains + (np.log(share) - np.log1p(-share))[:, None])
        share = (follows.sum(axis=1) + 1.0) / (gains.shape[1] + 2.0)
    each = np.logaddexp(gains + np.log(share)[:, None], np.log1p(-share)[:, None])
    return share, each.sum(axis=1) + np.log(share) + np.log1p(-share)


def _top(values: Array) -> tuple[Array, Array]:
    """Where each column is highest, and how high, by a parabola through three of its entries."""
    i = np.clip(values.argmax(axis=0), 1, len(values) - 2)
    a, b, c = (values[i + j, np.arange(values.shape[1])] for j in (-1, 0, 1))
    least = np.maximum(0.5 * np.abs(c - a), _TINY)  # with which the top is one entry away
    bend = np.maximum(2.0 * b - a - c, least)
    shift = 0.5 * (c - a) / bend
    return i + shift, b + 0.5 * shift * (c - a) - 0.5 * shift**2 * bend


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
    n_seen = seen.sum(axis=0).astype(float)
    n, share = spectrum.n_rows, np.maximum(n_seen, 1.0) / spectrum.n_rows
    mean = np.where(seen, Y, 0.0).sum(axis=0) / np.maximum(n_seen, 1.0)
    filled = np.where(seen, Y, mean)
    holed = ~seen.all(axis=0)
    for _ in range(_FILLINGS if holed.any() else 1):
        mean = filled.mean(axis=0)
        Yc = filled - mean
        evidence = Evidence.of(spectrum, without_outliers(Yc, n_seen), n_seen, rounding)
        lam = np.exp(log_ratios(evidence))
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
