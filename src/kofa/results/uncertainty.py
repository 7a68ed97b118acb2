"""What a prediction has to allow for besides the variances of q.

q takes precisions for known, weights and factors for independent, and its prior for right. Where
samples are few or far away, intervals from q alone are too narrow.
"""

from __future__ import annotations

import numpy as np

from kofa import tuning
from kofa.inference.local_step import Latent
from kofa.inference.posterior import ViewPosterior, Weights
from kofa.linalg import Array, by_rows


def few_samples(view: ViewPosterior) -> Array:
    """By how much variances grow since the noise is known from few samples: (D,).

    Student's ν/(ν − 2), with ν the samples that are left after the weights took theirs.
    """
    n, prior = n_observed(view), view.column_precision[:, None] * view.alpha.mean
    taken = (1.0 - np.minimum(prior * view.weights.variance, 1.0)).sum(axis=1)
    left = n - 1.0 - taken
    if view.energy is None:
        left = n - 1.0 - prior.shape[1] * (1.0 - _common_precision(view) * _without_ard(view))
    if view.tau.mean.size == 1:
        n, taken, left = (np.full_like(x, x.sum()) for x in (n, taken, left))
    left = np.maximum(left, tuning.LEAST_LEFT)
    return np.asarray(np.maximum(n - taken, left) / (left - 2.0))


def switched_off(view: ViewPosterior, Z: Array) -> Array:
    """Variance of w·z by factors that ARD switched off, as if it had not: (N, D).

    Which factors a view uses is an estimate, and a rotation of the factors can make it look
    certain: the weights of few columns fit into few factors exactly.
    """
    q = view.weights
    lost = np.maximum(_without_ard(view)[:, None] - q.variance, 0.0)
    variance = np.empty((len(Z), len(lost)))
    for members, z_mean in zip(q.columns.members, q.z_mean, strict=True):
        variance[:, members] = by_rows((Z - z_mean) ** 2, lost[members].T)
    return variance


def z_is_less_known(view: ViewPosterior, q: Latent) -> Array:
    """By how much the variance of z grows far out, the inputs' weights being estimates: (N, 1).

    Known from N samples, they make the covariance of z larger by |m_n|²/N times itself.
    """
    size = (q.mean**2).sum(axis=1, keepdims=True)
    return np.asarray(1.0 + size / float(n_observed(view).max()))


def pulled_back(q: Latent, w: Weights) -> Array:
    """Square of what the prior of z takes from w·z, where z is far out: (N, D).

    The prior expects z near zero and pulls m_n there by Σ_n m_n. Of a sample that is far from
    zero this is an error.
    """
    pull = q.patterns.by_rows(q.mean, q.covariance)
    known = (1.0 - np.diagonal(q.covariance, axis1=1, axis2=2)).sum(axis=1)[q.patterns.label]
    far = 1.0 - np.minimum(1.0, known / np.maximum((q.mean**2).sum(axis=1), 1e-300))
    return np.asarray(far[:, None] * by_rows(pull, w.mean.T) ** 2)


def beyond(similarity: Array, unseen: Array, few: Array) -> Array:
    """How much the part of k(x, x) counts that nothing explains: (N, D).

    Both are relative to the mean of k(x, x) over the landmarks. The scale of a kernel is known from
    where the data are. A row with a larger k(x, x) is far from them, and what is not explained of
    it counts twice; more where samples are few, from which neither scale nor width are known well.
    """
    far = 1.0 - 1.0 / np.maximum(np.nan_to_num(similarity, nan=1.0), 1.0)
    return np.asarray(np.nan_to_num(unseen)[:, None] * (1.0 + far[:, None] * few**2))


def n_observed(view: ViewPosterior) -> Array:
    """Number of samples in fit that have each column: (D,)."""
    return np.asarray(1.0 / (view.weights.bias_variance * view.precision))


def _without_ard(view: ViewPosterior) -> Array:
    """Variance of a weight if all factors had one prior: (D,). Zero where the prior is no ARD."""
    if view.energy is not None:
        return np.zeros(view.n_columns)
    # Σ⟨z zᵀ⟩ of N samples is about N times the identity.
    return np.asarray(1.0 / (_common_precision(view) + view.precision * n_observed(view)))


def _common_precision(view: ViewPosterior) -> Array:
    """Prior precision of the weights with what they have on average: (D,)."""
    return np.asarray(view.column_precision / float(np.mean(1.0 / view.alpha.mean)))
