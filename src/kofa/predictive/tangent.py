"""The same regression for views that are not Gaussian: η has the Gaussian process.

The scale s_d of each column is found by Laplace's approximation of its evidence,

Σ_n g(t, η̂) − ½ f̂ᵀ(s K)⁻¹f̂ − ½ log|I + s w̄ K|, w̄ the mean of −g″ at the mode η̂ = b + f̂,

where log s_d ~ N(μ, ω²) for all columns of a view. With one w̄ for all rows one decomposition of K
serves all columns and scales. What a row has said itself is taken back by a step of Newton's. As
Laplace's approximation takes flat tails for noise, all s_d of counts are multiplied by one number:
that with which left-out values are predicted best. (Probabilities are calibrated instead.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from kofa.linalg import Array, BoolArray
from kofa.predictive.regression import Regression, Spectrum

Tangent = Callable[[Array], tuple[Array, Array]]  # g and its slope at η (n, D), zero where missing

Loss = Callable[["LeftOut"], float]  # of left-out values

LOG_SCALES = np.log(np.geomspace(1e-3, 1e3, 9))
_LEVELS = np.log(4.0) * np.arange(-1, 5)  # by which log s of all columns is moved
_SPREAD = 2.0  # of log s, as if one column more had been seen with it
_DIFFERENCE = 1e-4
_LEAST_BEND = 1e-6
_OF_BIAS = 0.1  # of the highest curvature of an entry
_OPTIONS = {"maxiter": 500, "ftol": 1e-15, "gtol": 1e-8}


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A regression, and what all other rows say of η of each."""

    regression: Regression
    eta: Array  # (n, D)
    variance: Array  # (n, D)


@dataclass(frozen=True, eq=False)
class Mode:
    """The most likely η of all rows at some scales s."""

    bias: Array  # (D,)
    f: Array  # (r, D): along U
    eta: Array  # (n, D)
    value: Array  # (D,): Σ g − ½ fᵀ(sE)⁻¹f
    bends: Array  # (n, D): −g″
    bend: Array  # (D,): w̄

    def evidence(self, e: Array, s: Array, n_seen: Array, together: bool) -> Array:
        """Laplace's approximation, by column.

        Of D columns that compete, D − 1 directions bend, D/(D − 1) as much as the columns do.
        """
        D, share = len(s), n_seen / len(self.eta)
        free = (D - 1.0) / D if together else 1.0
        logdet = np.log1p(s * share * self.bend / free * e[:, None]).sum(axis=0)
        return np.asarray(self.value - 0.5 * free * logdet)


def _mode(
    spectrum: Spectrum,
    tangent: Tangent,
    s: Array,
    kappa: Array,
    begin: Mode,
    seen: BoolArray,
    together: bool,
    typical: Array,
) -> Mode:
    """By L-BFGS in coordinates in which the curvature is about one.

    The bias is `typical` a priori, as if a part of an entry more said so.
    """
    U, e = spectrum.U, spectrum.e[:, None]
    n_seen = np.maximum(seen.sum(axis=0), 1.0)
    root = np.sqrt(s * e / (1.0 + s * begin.bend * e))
    of_bias = 1.0 / np.sqrt(n_seen * np.maximum(begin.bend, 0.05 * kappa))
    shape = root.shape
    penalty = root**2 / (s * e)

    def negative(x: Array) -> tuple[float, Array]:
        f, b = x[: root.size].reshape(shape) * root, x[root.size :] * of_bias
        value, slope = tangent(b + U @ f)
        away = b - typical
        along = (U.T @ slope) * root - x[: root.size].reshape(shape) * penalty
        total = value.sum() - 0.5 * float((x[: root.size].reshape(shape) ** 2 * penalty).sum())
        total -= 0.5 * float((_OF_BIAS * kappa * away**2).sum())
        of_b = (slope.sum(axis=0) - _OF_BIAS * kappa * away) * of_bias
        return -float(total), -np.concatenate([along.ravel(), of_b])

    start = np.concatenate([(begin.f / root).ravel(), begin.bias / of_bias])
    x = minimize(negative, start, jac=True, method="L-BFGS-B", options=_OPTIONS).x
    f, b = x[: root.size].reshape(shape) * root, x[root.size :] * of_bias
    eta = b + U @ f
    bends = _bends(tangent, eta, together)
    bend = np.clip((bends.sum(axis=0) + _OF_BIAS * kappa) / n_seen, _LEAST_BEND * kappa, kappa)
    value = tangent(eta)[0].sum(axis=0) - 0.5 * (f**2 / (s * e)).sum(axis=0)
    return Mode(b, f, eta, value, bends, bend)


def _bends(tangent: Tangent, eta: Array, together: bool) -> Array:
    """−∂²g/∂η² of every entry, by differences; of columns that compete each in its turn."""
    size = _DIFFERENCE * np.maximum(1.0, np.abs(eta))
    slope = tangent(eta)[1]
    if not together:
        return np.maximum((slope - tangent(eta + size)[1]) / size, 0.0)
    one = np.eye(eta.shape[1])
    moved = [tangent(eta + size * column)[1][:, d] for d, column in enumerate(one)]
    return np.asarray(np.maximum((slope - np.stack(moved, axis=1)) / size, 0.0))


def regress(
    spectrum: Spectrum,
    tangent: Tangent,
    kappa: Array,
    seen: BoolArray,
    together: bool,
    typical: Array,
    loss: Loss | None,
) -> LeftOut:
    """The regression of η.

    `together`: whether the columns have one scale; `typical`: η where nothing else is known (D,).
    """
    r, D, n_seen = len(spectrum.e), len(kappa), np.maximum(seen.sum(axis=0), 1.0)
    mode = Mode(
        typical,
        np.zeros((r, D)),
        np.zeros(seen.shape),
        np.zeros(D),
        np.zeros(seen.shape),
        0.5 * kappa,
    )
    values = []
    for log_s in LOG_SCALES:
        s = np.full(D, np.exp(log_s)) / kappa
        mode = _mode(spectrum, tangent, s, kappa, mode, seen, together, typical)
        values.append(mode.evidence(spectrum.e, s, n_seen, together))
    log_s = _most_likely(np.array(values), together)

    def at(level: float, begin: Mode) -> tuple[Mode, LeftOut]:
        s = np.exp(log_s + level) / kappa
        found = _mode(spectrum, tangent, s, kappa, begin, seen, together, typical)
        return found, _as_regression(spectrum, tangent, found, s, seen, n_seen)

    if loss is None:
        return at(0.0, mode)[1]
    losses = []
    for level in _LEVELS:
        mode, left = at(level, mode)
        losses.append(loss(left))
    return at(lowest(_LEVELS, losses), mode)[1]


def lowest(x: Array, y: Sequence[float]) -> float:
    """Where y is lowest, by the parabola through the lowest of its values and the two beside it."""
    i = int(np.argmin(y))
    if i in (0, len(x) - 1):
        return float(x[i])
    before, here, after = y[i - 1 : i + 2]
    bend = before - 2.0 * here + after
    return float(x[i] + (x[1] - x[0]) * 0.5 * (before - after) / max(bend, 1e-300))


def _most_likely(values: Array, together: bool) -> Array:
    """log s of every column, its mean over the grid under N(μ, ω²), which follows from them all."""
    if together:
        values = np.repeat(values.sum(axis=1, keepdims=True), values.shape[1], axis=1)
    D = 1 if together else values.shape[1]
    grid = LOG_SCALES[:, None]
    mean, spread = 0.0, 2.0 * _SPREAD
    for _ in range(50):
        log_p = values - 0.5 * ((grid - mean) / spread) ** 2
        p = np.exp(log_p - log_p.max(axis=0))
        p /= p.sum(axis=0)
        each = (p * grid).sum(axis=0)
        square = (p * grid**2).sum(axis=0)
        precision = spread**-2
        new = float(each[:D].sum() * precision / (D * precision + LOG_SCALES[-1] ** -2))
        total = float((square - 2 * each * new + new**2)[:D].sum()) + _SPREAD**2
        after = float(np.sqrt(total / (D + 1.0)))
        close = abs(new - mean) + abs(after - spread) < 1e-3
        mean, spread = new, after
        if close:
            break
    return np.asarray(each)


def _as_regression(
    spectrum: Spectrum, tangent: Tangent, mode: Mode, s: Array, seen: BoolArray, n_seen: Array
) -> LeftOut:
    n = spectrum.n_rows
    lam = 1.0 / (s * mode.bend)
    share = n_seen / n
    apart = lam / share
    # Variance of η_n given all rows, and what the row itself said taken back
    U2 = spectrum.U**2
    h = s * (U2 @ (spectrum.e[:, None] * apart / (spectrum.e[:, None] + apart))) + s * apart / n
    slope, bend = tangent(mode.eta)[1], mode.bends
    # with its own bend in place of the mean
    h = h / np.maximum(1.0 + h * (bend - mode.bend), 0.1)
    left = np.maximum(1.0 - h * bend, 0.05)
    eta_without = np.where(seen, mode.eta - h * slope / left, mode.eta)
    variance_without = np.where(seen, h / left, h)
    none, e = np.zeros((0, 0)), spectrum.e[:, None]
    found = Regression(spectrum.e, n, mode.bias, lam, share, s, mode.f / e, none, none)
    return LeftOut(found, eta_without, variance_without)
