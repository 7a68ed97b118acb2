"""How sharply a view's probabilities may follow its factors, found on samples left out.

Coordinate ascent maximises E log p(t | z), which is never above the log p(t) = log E p(t | z) that
a prediction stands for: where the factors of a sample are uncertain, the weights come out small
and the probabilities timid. One number per view, by which the mean of η is multiplied when
it is predicted, makes up for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize_scalar

from kofa.likelihoods import Likelihood
from kofa.linalg import Array
from kofa.observations import Observations, Rows
from kofa.posterior import State
from kofa.refinement import left_out, sample_rows
from kofa.updates import linear_predictor, settle

_LIMITS = (-1.5, 1.5)  # of log sharpness
_PRIOR = 0.5  # its standard deviation a priori


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
