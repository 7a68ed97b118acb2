"""The columns of a view as Gaussian processes with one kernel, each with scales of its own.

cov(y_d) = s_d (K + λ_d I), with a mean that is not known. K is centred over the rows of the fit, so
that the mean takes one direction and the process the others: K = U diag(e) Uᵀ with 1ᵀU = 0. One
decomposition serves all columns, whatever their λ_d. s_d is integrated out under 1/s_d, and log λ_d
is its mean given the column. What s_d is a priori, all columns of a view tell together: any
distribution may be theirs, and the most likely one is.

A column with holes y_m has in them what its other values y_o say of them. With B = (K + λI)⁻¹,

yᵀ(K_oo + λI)⁻¹y = min over y_m of yᵀBy, log|K_oo + λI| = log|K + λI| + log|B_mm|,

and of B_mm the mean of its diagonal counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from kofa.linalg import Array, BoolArray, by_rows

_LIMITS = (-25.0, 14.0)  # of log λ, for kernels with a mean diagonal of one
_GRID = 60  # values of log λ at which the evidence is computed
_FINER = 4  # times as many to which it is interpolated
_SIZES = np.linspace(-12.0, 8.0, 81)  # log s of columns with unit variance, a priori
_SIZE_SPREAD = 3.0  # of log s around zero, as if so much of a column more had been seen with it
_SIZE_WEIGHT = 0.1
# Values are no Gaussians: the evidence counts this much. (R² of oes97, folds of seeds 1 and 2: .681
# with 1, .682 with .5, .683 with .3; but with .3 a column that hardly follows is lost among 200 of
# noise.)
_TRUST = 0.5
_LEARNT = 100  # rounds in which the distribution of log s is found
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
        lam, outside, n = np.exp(t), self.spectrum.n_outside, self.spectrum.n_rows
        total = self.spectrum.e[:, None] + lam
        logdet = np.log(total).sum(axis=0) + outside * t
        mean_inverse = ((1.0 / total).sum(axis=0) + outside / lam) / n
        logdet += (n - self.n_seen) * np.log(np.maximum(mean_inverse, _TINY))
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


def without_outliers(Y: Array, n_seen: Array | float) -> Array:
    """Centred columns whose far-out values count as less."""
    far = _OUTLIER * np.sqrt((Y**2).sum(axis=0) / np.maximum(n_seen, 1.0))
    return np.clip(Y, -far, far)


def log_ratios(evidence: Evidence) -> Array:
    """log λ of every column: (D,)."""
    varies = evidence.varies
    low, high = evidence.least, np.full(len(varies), _LIMITS[1])
    place, fine = np.linspace(0.0, 1.0, _GRID), np.linspace(0.0, 1.0, _FINER * _GRID)
    grid = low + place[:, None] * (high - low)
    value = CubicSpline(place, [evidence.value(t) for t in grid])(fine)
    size = CubicSpline(place, [np.log(evidence.quadratic(t)) for t in grid])(fine)
    total = evidence.square.sum(axis=0) + evidence.rest
    size -= np.log(evidence.dof * np.maximum(total / np.maximum(evidence.n_seen, 1.0), _TINY))
    known = np.where(varies, np.exp(_TRUST * (value - value.max(axis=0))), 0.0)
    p = known * _likely_sizes(known[:, varies], size[:, varies])(size)
    p = np.where(p.sum(axis=0) > 0.0, p, 1.0)
    return np.asarray((p * (low + fine[:, None] * (high - low))).sum(axis=0) / p.sum(axis=0))


def _likely_sizes(known: Array, size: Array) -> Callable[[Array], Array]:
    """The density of log s with which the columns are most likely, by expectation maximisation.

    `known` (T, D): how likely each column is at log s = `size`. As if _SIZE_WEIGHT of a column more
    had a normal distribution.
    """
    prior = np.exp(-0.5 * (_SIZES / _SIZE_SPREAD) ** 2)
    density = prior = prior / prior.sum()
    at = np.clip((size - _SIZES[0]) / (_SIZES[1] - _SIZES[0]), 0.0, len(_SIZES) - 1.001)
    below = at.astype(np.intp)
    above = at - below
    for _ in range(_LEARNT):
        p = known * (density[below] * (1.0 - above) + density[below + 1] * above)
        p /= np.maximum(p.sum(axis=0), _TINY)
        sums = np.bincount(below.ravel(), (p * (1.0 - above)).ravel(), len(_SIZES))
        sums += np.bincount(below.ravel() + 1, (p * above).ravel(), len(_SIZES))
        before, density = density, sums + _SIZE_WEIGHT * prior
        density = density / density.sum()
        if np.abs(density - before).max() < 1e-4:
            break
    return lambda x: np.asarray(np.interp(x, _SIZES, density))


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
