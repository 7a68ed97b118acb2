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
from scipy.special import ndtr

from kofa import tuning
from kofa.inference.engine import Engine, Latents
from kofa.inference.held_out import left_out
from kofa.inference.local_step import known
from kofa.inference.observations import Observations, Rows
from kofa.inference.posterior import State, ViewPosterior
from kofa.inference.predictor import linear_predictor
from kofa.inference.projection import project
from kofa.linalg import LOG_2PI, Array, Groups

_ROUNDS = 12  # in which the mean of probabilities, or the variance of counts, is found
_NO_RATE = 1e-100


class Calibration(NamedTuple):
    """How η is predicted: as `sharpness` times its mean, or times what factors add to `centre`."""

    sharpness: float = 1.0
    centre: Array | None = None  # (D,)


def calibrate(
    engine: Engine, state: State, name: str, others: Sequence[str], rng: np.random.Generator
) -> Calibration:
    """That with which a view of the samples is best predicted from others.

    The samples' own part in the weights is taken out; none where nothing else is known of them.
    """
    likelihood, rows = engine.likelihoods[name], engine.sample(name, rng, others)
    if likelihood is None or not len(rows):
        return Calibration()
    data, view = engine.view(name, rows), state[name]
    beside = Rows.stack({other: engine.view(other, rows) for other in others})
    q = project(beside, state, within=1e-3)
    competing = likelihood.competing
    mean, variance = linear_predictor(q, view.weights, competing, blurred=view.blurred)
    copies = float(engine.observed([name]).sum()) / len(rows)
    precision = np.outer(view.column_precision, view.alpha.mean)
    mean = left_out(data, mean, precision, q.mean, copies)
    if not (likelihood.binary() and likelihood.has("at_mean")):
        return Calibration(_sharpest(lambda s: _surprise(data, s * mean, variance))[0])
    ones, n = engine.totals(name)
    return _of_ones(data, mean - view.weights.y_mean, variance, (ones + 0.5) / (n + 1.0))


def _surprise(data: Observations, eta: Array, variance: Array) -> float:
    assert data.targets is not None
    assert data.likelihood is not None
    score = data.likelihood.log_predictive(data.targets, eta, variance)
    return -float(np.where(data.mask, score, 0.0).sum())


def _sharpest(surprise: Callable[[float], float]) -> tuple[float, float]:
    """The sharpness of the least surprise, and this, with that of the prior."""

    def with_prior(log_sharpness: float) -> float:
        return (
            surprise(float(np.exp(log_sharpness)))
            + 0.5 * (log_sharpness / tuning.LOG_SHARPNESS_PRIOR) ** 2
        )

    found = minimize_scalar(
        with_prior, bounds=tuning.LOG_SHARPNESS_LIMITS, method="bounded", options={"xatol": 0.01}
    )
    return float(np.exp(found.x)), float(found.fun)


def _of_ones(data: Observations, away: Array, variance: Array, rate: Array) -> Calibration:
    """Of ones and zeros; `away` (n, D) is what the factors make of η, `rate` (D,) that of ones."""

    def centre(sharpness: float) -> Array:
        return _centre(data, sharpness * away, variance, rate)

    def surprise(sharpness: float) -> float:
        return _surprise(data, centre(sharpness) + sharpness * away, variance)

    sharpness, least = _sharpest(surprise)
    if surprise(0.0) < least - tuning.STRONG_EVIDENCE:
        sharpness = 0.0
    return Calibration(sharpness, centre(sharpness))


def _centre(data: Observations, away: Array, variance: Array, rate: Array) -> Array:
    """c with which the mean of the probabilities of c + away is the rate of each column: (D,).

    η at that mean rises with c, and by no more than c: each step leads nearer.
    """
    assert data.likelihood is not None
    at_mean = data.likelihood.at_mean
    n = np.broadcast_to(data.mask, away.shape).sum(axis=0)
    centre = at_mean(rate)
    for _ in range(_ROUNDS):
        p = np.where(data.mask, data.likelihood.probability(centre + away, variance), 0.0)
        p = np.clip(p.sum(axis=0) / np.maximum(n, 1.0), 1e-12, 1.0 - 1e-12)
        centre = centre + np.where(n > 0, at_mean(rate) - at_mean(p), 0.0)
    return np.asarray(centre)


def overdispersion_of(
    engine: Engine, name: str, view: ViewPosterior, Z: Latents, rng: np.random.Generator
) -> Array:
    """`overdispersion` of a view, from a sample of its rows."""
    rows = engine.sample(name, rng)
    if not len(rows):
        return np.zeros(view.n_columns)
    copies = float(engine.observed([name]).sum()) / len(rows)
    return overdispersion(engine.view(name, rows), view, engine.take(Z, rows), copies)


def overdispersion(data: Observations, view: ViewPosterior, Z: Array, copies: float) -> Array:
    """Variance of η by which the counts of each column vary more than a Poisson's do: (D,).

    Z (n, K) is known. By moments: (t − μ)² is on average μ + μ′² (variance of η), weighted by how
    well each count knows it. A few wild counts say little. Each sample may stand for several.
    """
    assert data.likelihood is not None
    assert data.targets is not None
    mean, variance = linear_predictor(known(Z, Groups.one(len(Z))), view.weights)
    precision = np.outer(view.column_precision, view.alpha.mean)
    mean = left_out(data, mean, precision, Z, copies)
    mu, slope = data.likelihood.expected(mean)
    square, rise = (data.targets - mu) ** 2, slope**2
    excess = np.zeros(mean.shape[1])
    for _ in range(_ROUNDS):
        total = mu + rise * (variance + excess)
        surplus = _without_wild(square, total) - mu - rise * variance
        weight = np.where(data.mask, rise / np.maximum(total, _NO_RATE) ** 2, 0.0)
        weighed = np.maximum((weight * rise).sum(axis=0), _NO_RATE)
        excess = np.maximum((weight * surplus).sum(axis=0) / weighed, 0.0)
    return excess


def _without_wild(square: Array, variance: Array) -> Array:
    """Squared deviations, none above c² times its variance, and as large on average as before.

    Of a Gaussian, E min(x², c²) = 1 − 2 c φ(c) − 2 (1 − c²) Φ(−c).
    """
    c = tuning.WILD_COUNT
    density = np.exp(-0.5 * (c**2 + LOG_2PI))
    left = 1.0 - 2.0 * c * density - 2.0 * (1.0 - c**2) * ndtr(-c)
    return np.asarray(np.minimum(square, c**2 * variance) / left)
