"""How far predictions that are not Gaussian may be trusted, found on samples left out.

Coordinate ascent maximises E log p(t | z), which is never above the log p(t) = log E p(t | z) that
a prediction stands for: where the factors of a sample are uncertain, the weights come out small
and the probabilities timid. One number per view, by which the mean of η is multiplied when
it is predicted, makes up for it.

Counts of the same rate vary as a Poisson's do. Where z counts as known, all else that makes them
differ is noise of η.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize_scalar

from kofa.likelihoods import Likelihood
from kofa.linalg import Array, Groups
from kofa.observations import Observations, Rows
from kofa.posterior import State, ViewPosterior
from kofa.refinement import left_out, sample_rows
from kofa.updates import known, linear_predictor, settle

_LIMITS = (-1.5, 1.5)  # of log sharpness
_PRIOR = 0.5  # its standard deviation a priori
_TAIL = 0.05  # of counts on either side, by which their spread is judged
_NO_GAP = 1e-12
_RANGE = (1e-8, 1e2)  # variance of η
_HALVINGS = 12  # of the log of this range


def sharpness(
    rows: Rows, state: State, m: int, others: Sequence[int], rng: np.random.Generator
) -> float:
    """The factor of η with which view m of the samples is best predicted from others.

    The samples' own part in the weights is taken out; 1 where nothing else is known of them.
    """
    data = rows.views[m]
    seen = [rows.views[i].observed.any(axis=1) for i in others]
    labelled = data.observed.any(axis=1)
    qualify = labelled & np.any(seen, axis=0)
    if not qualify.any() or data.likelihood is None:
        return 1.0
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
    return _sharpest(data.take(which), data.likelihood, mean, variance)


def _sharpest(data: Observations, likelihood: Likelihood, mean: Array, variance: Array) -> float:
    targets = data.targets
    assert targets is not None

    def surprise(log_sharpness: float) -> float:
        score = likelihood.log_predictive(targets, np.exp(log_sharpness) * mean, variance)
        prior = 0.5 * (log_sharpness / _PRIOR) ** 2
        return float(prior - np.where(data.mask, score, 0.0).sum())

    found = minimize_scalar(surprise, bounds=_LIMITS, method="bounded", options={"xatol": 0.01})
    return float(np.exp(found.x))


def overdispersion(
    data: Observations, view: ViewPosterior, Z: Array, rng: np.random.Generator
) -> Array:
    """Variance of η with which nine tenths of a column's counts are where they should be: (D,).

    Z is known. Judged by the share of counts between two quantiles, which a few wild ones do not
    move.
    """
    labelled = np.asarray(data.observed.any(axis=1))
    which = sample_rows(data, labelled, rng)
    part, z = data.take(which), Z[which]
    mean, variance = linear_predictor(
        known(z, Groups(np.zeros(len(z), dtype=np.intp), 1)), view.weights
    )
    precision = np.outer(view.column_precision, view.alpha.mean)
    mean = left_out(part, mean, precision, z, float(labelled.sum()) / len(which))
    low, high = (np.full(mean.shape[1], bound) for bound in np.log(_RANGE))
    enough = _share_inside(part, mean, variance) >= 1.0 - 2.0 * _TAIL
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        wide = _share_inside(part, mean, variance + np.exp(middle)) >= 1.0 - 2.0 * _TAIL
        low, high = np.where(wide, low, middle), np.where(wide, middle, high)
    return np.where(enough, 0.0, np.exp(high))


def _share_inside(data: Observations, mean: Array, variance: Array) -> Array:
    """Share of each column's counts between its quantiles; one across a quantile counts in part."""
    assert data.likelihood is not None
    assert data.targets is not None
    t, p = data.targets, data.likelihood.at_most
    below = np.where(t > 0, p(np.maximum(t - 1.0, 0.0), mean, variance), 0.0)
    gap = p(t, mean, variance) - below
    inside = np.clip(below + gap, _TAIL, 1.0 - _TAIL) - np.clip(below, _TAIL, 1.0 - _TAIL)
    between = (below > _TAIL) & (below < 1.0 - _TAIL)
    share = np.where(gap > _NO_GAP, inside / np.maximum(gap, _NO_GAP), between) * data.mask
    return np.asarray(share.sum(axis=0) / np.maximum(data.mask.sum(axis=0), 1.0))
