"""How far predictions that are not Gaussian may be trusted, found on samples left out.

Coordinate ascent maximises E log p(t | z), which is never above the log p(t) = log E p(t | z) that
a prediction stands for: where the factors of a sample are uncertain, the weights come out small
and the probabilities timid. One number per view, by which the mean of η is multiplied when
it is predicted, makes up for it.

Ones that are rare need more care: a column that had none in fit may have one yet. There the number
multiplies what the factors say, and the rest is set so that probabilities are on average those of
the column, (ones + ½) / (n + 1). Where the factors say nothing of new samples the number is zero.

Counts of the same rate vary as a Poisson's do. Where z counts as known, all else that makes them
differ is noise of η.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtri

from kofa.linalg import Array, Groups
from kofa.observations import Observations, Rows
from kofa.posterior import State, ViewPosterior
from kofa.refinement import left_out, sample_rows
from kofa.updates import known, linear_predictor, settle

_LIMITS = (-1.5, 1.5)  # of log sharpness
_PRIOR = 0.5  # its standard deviation a priori
_STRONG = 3.0  # nats: strong evidence that the factors say nothing
_ROUNDS = 12  # in which the mean of probabilities, or the variance of counts, is found
_WILD = 4.0  # standard deviations: counts further away count as that far
_NO_RATE = 1e-100


class Calibration(NamedTuple):
    """How η is predicted: as `sharpness` times its mean, or times what factors add to `centre`."""

    sharpness: float = 1.0
    centre: Array | None = None  # (D,)


def calibrate(
    rows: Rows, state: State, m: int, others: Sequence[int], rng: np.random.Generator
) -> Calibration:
    """That with which view m of the samples is best predicted from others.

    The samples' own part in the weights is taken out; none where nothing else is known of them.
    """
    data = rows.views[m]
    seen = [rows.views[i].observed.any(axis=1) for i in others]
    labelled = data.observed.any(axis=1)
    qualify = labelled & np.any(seen, axis=0)
    if not qualify.any() or data.likelihood is None:
        return Calibration()
    which = sample_rows(data, qualify, rng)
    part = Rows.stack([rows.views[i].take(which) for i in others])
    beside = tuple(state[i] for i in others)
    q = settle(part, beside, within=1e-3)
    view = state[m]
    competing = data.likelihood.competing
    mean, variance = linear_predictor(q, view.weights, competing, blurred=view.blurred)
    copies = float(labelled.sum()) / len(which)
    precision = np.outer(view.column_precision, view.alpha.mean)
    mean = left_out(data.take(which), mean, precision, q.mean, copies)
    if competing:
        return Calibration(_sharpest(lambda s: _surprise(data.take(which), s * mean, variance))[0])
    return _of_ones(data, data.take(which), mean - view.weights.y_mean, variance)


def _surprise(data: Observations, eta: Array, variance: Array) -> float:
    assert data.targets is not None
    assert data.likelihood is not None
    score = data.likelihood.log_predictive(data.targets, eta, variance)
    return -float(np.where(data.mask, score, 0.0).sum())


def _sharpest(surprise: Callable[[float], float]) -> tuple[float, float]:
    """The sharpness of the least surprise, and this, with that of the prior."""

    def with_prior(log_sharpness: float) -> float:
        return surprise(float(np.exp(log_sharpness))) + 0.5 * (log_sharpness / _PRIOR) ** 2

    found = minimize_scalar(with_prior, bounds=_LIMITS, method="bounded", options={"xatol": 0.01})
    return float(np.exp(found.x)), float(found.fun)


def _of_ones(data: Observations, part: Observations, away: Array, variance: Array) -> Calibration:
    """Of ones and zeros; `away` (n, D) is what the factors make of η."""
    assert data.targets is not None
    ones = np.where(data.mask, data.targets, 0.0).sum(axis=0)
    rate = (ones + 0.5) / (data.mask.sum(axis=0) + 1.0)

    def centre(sharpness: float) -> Array:
        return _centre(part, sharpness * away, variance, rate)

    def surprise(sharpness: float) -> float:
        return _surprise(part, centre(sharpness) + sharpness * away, variance)

    sharpness, least = _sharpest(surprise)
    if surprise(0.0) < least - _STRONG:
        sharpness = 0.0
    return Calibration(sharpness, centre(sharpness))


def _centre(data: Observations, away: Array, variance: Array, rate: Array) -> Array:
    """c with which the mean of the probabilities of c + away is the rate of each column: (D,).

    Φ^-1 of that mean rises with c, and by no more than c: each step leads nearer.
    """
    assert data.likelihood is not None
    n = np.maximum(data.mask.sum(axis=0), 1.0)
    centre = ndtri(rate)
    for _ in range(_ROUNDS):
        p = np.where(data.mask, data.likelihood.probability(centre + away, variance), 0.0)
        p = np.clip(p.sum(axis=0) / n, 1e-12, 1.0 - 1e-12)
        centre = centre + ndtri(rate) - ndtri(p)
    return np.asarray(centre)


def overdispersion(
    data: Observations, view: ViewPosterior, Z: Array, rng: np.random.Generator
) -> Array:
    """Variance of η by which the counts of each column vary more than a Poisson's do: (D,).

    Z is known. By moments: (t − μ)² is on average μ + μ′² (variance of η), weighted by how well
    each count knows it. A few wild counts say little.
    """
    labelled = np.asarray(data.observed.any(axis=1))
    which = sample_rows(data, labelled, rng)
    part, z = data.take(which), Z[which]
    assert part.likelihood is not None
    assert part.targets is not None
    mean, variance = linear_predictor(known(z, Groups.one(len(z))), view.weights)
    precision = np.outer(view.column_precision, view.alpha.mean)
    mean = left_out(part, mean, precision, z, float(labelled.sum()) / len(which))
    mu, slope = part.likelihood.expected(mean)
    square, rise = (part.targets - mu) ** 2, slope**2
    excess = np.zeros(mean.shape[1])
    for _ in range(_ROUNDS):
        total = mu + rise * (variance + excess)
        surplus = np.minimum(square, _WILD**2 * total) - mu - rise * variance
        weight = np.where(part.mask, rise / np.maximum(total, _NO_RATE) ** 2, 0.0)
        weighed = np.maximum((weight * rise).sum(axis=0), _NO_RATE)
        excess = np.maximum((weight * surplus).sum(axis=0) / weighed, 0.0)
    return excess
