"""How far η may be trusted, by what all other rows say of each row of the fit.

One number per view multiplies what the other views say of η: the one with which left-out values
are best predicted. On average over the rows, ones of a column are predicted as often as they occur,
(ones + ½) / (n + 1), so that a column that had none may have one yet. Counts of one rate vary as a
Poisson's do; whatever else makes them differ is a variance of η.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from kofa.linalg import LOG_2PI, Array
from kofa.predictive.observed import Observed
from kofa.predictive.tangent import LeftOut

_PRIOR, _LIMITS = 1.0, (-3.0, 5.0)  # of the logarithm of the slope
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
    if not likelihood.has("log_predictive"):
        extra = _overdispersion(data, left) if likelihood.has("expected") else np.zeros(len(bias))
        return Calibration(1.0, bias, bias, extra)

    def with_prior(log_slope: float) -> float:
        at = _centred(data, left, float(np.exp(log_slope)))
        return surprise(data, left, at) + 0.5 * (log_slope / _PRIOR) ** 2

    found = minimize_scalar(with_prior, bounds=_LIMITS, method="bounded", options={"xatol": 1e-2})
    return _centred(data, left, float(np.exp(found.x)), last=True)


def surprise(data: Observed, left: LeftOut, at: Calibration | None = None) -> float:
    """How much values surprise that are predicted from all others."""
    if not data.likelihood.has("log_predictive"):
        return -float(data.tangent(left.eta)[0].sum())
    layer = (left.eta, left.variance) if at is None else at.of(left.eta, left.variance)
    score = data.likelihood.log_predictive(data.values, *layer)
    return -float(np.where(data.mask, score, 0.0).sum())


def _centred(data: Observed, left: LeftOut, slope: float, last: bool = False) -> Calibration:
    """With this slope, and the centre at which ones are predicted as often as they occur.

    Φ^-1 of the mean of probabilities rises with the centre, and by no more than it over √(1 + the
    least variance): each step leads nearer. Classes, of which this takes long, only at `last`.
    """
    likelihood, bias = data.likelihood, left.regression.mean
    none = np.zeros(len(bias))
    centred = likelihood.has("at_mean") and likelihood.has("probability")
    if not centred or (likelihood.competing and not last):
        return Calibration(slope, bias, bias, none)
    n = np.maximum(data.mask.sum(axis=0), 1.0)
    wanted = data.typical
    found = Calibration(slope, bias if likelihood.competing else wanted, bias, none)
    pace = np.sqrt(1.0 + left.variance.min(axis=0))
    for _ in range(_ROUNDS):
        p = likelihood.probability(*found.of(left.eta, left.variance))
        p = np.clip(np.where(data.mask, p, 0.0).sum(axis=0) / n, 1e-12, 1.0 - 1e-12)
        found = Calibration(
            slope, found.centre + pace * (wanted - likelihood.at_mean(p)), bias, none
        )
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
