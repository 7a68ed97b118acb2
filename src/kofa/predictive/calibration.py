"""How far η may be trusted, by what all other rows say of each row of the fit.

What the other views say of η is multiplied by one number per view, and moved by one per column:
those with which left-out values are best predicted. Both are found at once: where ones are rare, a
steeper η is best only if it is a higher one too. On average over the rows, ones of a column are
then predicted as often as they occur, (ones + ½) / (n + 1), so that a column that had none may have
one yet. Counts of one rate vary as a Poisson's do; whatever else makes them differ is a variance
of η.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtr

from kofa.linalg import LOG_2PI, Array
from kofa.predictive.observed import Observed
from kofa.predictive.tangent import LeftOut

_LIMITS = (-3.0, 5.0)  # of the logarithm of the slope
_ROUNDS = 12
_WILD = 2.0  # deviations beyond which a count counts as this far
_TINY = 1e-100


@dataclass(frozen=True, eq=False)
class Calibration:
    """η is predicted as centre + slope · (η − bias), with a variance on top."""

    slope: float
    centre: Array  # (D,)
    bias: Array  # (D,)
    extra: Array  # (D,)

    def of(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        return self.centre + self.slope * (mean - self.bias), variance + self.extra


def calibrate(data: Observed, left: LeftOut) -> Calibration:
    """From what rows of the fit would have been predicted."""
    likelihood, bias = data.likelihood, left.regression.mean
    if likelihood.has("log_predictive"):
        return _centred(data, left, _most_likely(data, left))
    extra = _overdispersion(data, left) if likelihood.has("expected") else np.zeros(len(bias))
    return Calibration(1.0, bias, bias, extra)


def surprise(data: Observed, left: LeftOut) -> float:
    """How much values surprise that are predicted from all others."""
    return -float(data.tangent(left.eta)[0].sum())


def _most_likely(data: Observed, left: LeftOut) -> Calibration:
    """σ η + δ with which left-out values surprise least.

    A priori log σ and δ of every column are N(0, 1).
    """
    bias = left.regression.mean

    def cost(x: Array) -> tuple[float, Array]:
        slope = float(np.exp(x[0]))
        score, rise = data.likelihood.log_predictive(
            data.values, slope * left.eta + x[1:], left.variance
        )
        rise = np.where(data.mask, rise, 0.0)
        value = float(np.where(data.mask, score, 0.0).sum()) - 0.5 * float(x @ x)
        along = slope * float(np.vdot(rise, left.eta))
        return -value, x - np.append(along, rise.sum(axis=0))

    bounds = [_LIMITS, *[(None, None)] * len(bias)]
    begin = np.zeros(1 + len(bias))
    found = minimize(cost, begin, jac=True, method="L-BFGS-B", bounds=bounds)
    slope = float(np.exp(found.x[0]))
    none = np.zeros(len(bias))
    return Calibration(slope, found.x[1:] + slope * bias, bias, none)


def _centred(data: Observed, left: LeftOut, found: Calibration) -> Calibration:
    """With the centre at which ones are predicted as often as they occur.

    Φ^-1 of the mean of probabilities rises with the centre, and by no more than it over √(1 + the
    least variance): each step leads nearer.
    """
    likelihood = data.likelihood
    if not (likelihood.has("at_mean") and likelihood.has("probability")):
        return found
    n = np.maximum(data.mask.sum(axis=0), 1.0)
    wanted, pace = data.typical, np.sqrt(1.0 + left.variance.min(axis=0))
    for _ in range(_ROUNDS):
        p = likelihood.probability(*found.of(left.eta, left.variance))
        p = np.clip(np.where(data.mask, p, 0.0).sum(axis=0) / n, 1e-12, 1.0 - 1e-12)
        found = replace(found, centre=found.centre + pace * (wanted - likelihood.at_mean(p)))
    return found


def _overdispersion(data: Observed, left: LeftOut) -> Array:
    """Variance of η by which the counts of each column vary more than a Poisson's do: (D,).

    By moments: (t − μ)² is on average μ + μ′² (variance of η), weighted by how well each count
    knows it. A few wild counts say little.
    """
    likelihood = data.likelihood
    mu, slope = likelihood.expected(left.eta)
    square, rise = (data.values - mu) ** 2, slope**2
    extra = np.zeros(mu.shape[1])
    for _ in range(_ROUNDS):
        total = mu + rise * (left.variance + extra)
        surplus = _without_wild(square, total) - mu - rise * left.variance
        weight = np.where(data.mask, rise / np.maximum(total, _TINY) ** 2, 0.0)
        weighed = np.maximum((weight * rise).sum(axis=0), _TINY)
        extra = np.maximum((weight * surplus).sum(axis=0) / weighed, 0.0)
    return extra


def _without_wild(square: Array, variance: Array) -> Array:
    """Squared deviations, none above c² times its variance, and as large on average as before.

    Of a Gaussian, E min(x², c²) = 1 − 2 c φ(c) − 2 (1 − c²) Φ(−c).
    """
    c = _WILD
    density = np.exp(-0.5 * (c**2 + LOG_2PI))
    kept = 1.0 - 2.0 * c * density - 2.0 * (1.0 - c**2) * ndtr(-c)
    return np.asarray(np.minimum(square, c**2 * variance) / kept)
