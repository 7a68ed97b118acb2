"""The evidence lower bound as a sum of named terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kofa.posterior import State, ViewPosterior, Weights
from kofa.updates import Statistics, ViewStatistics, expected_residual

_LOG_2PI = float(np.log(2.0 * np.pi))


def kl_z(stats: Statistics) -> float:
    """Σ_n KL(q(z_n) ‖ N(0, I)) = ½ (tr Σ⟨z zᵀ⟩ − N K − Σ log |Σ_n|)."""
    n_factors = len(stats.z_sum)
    return 0.5 * (float(np.trace(stats.S)) - stats.n_samples * n_factors - stats.logdet)


def likelihood(view: ViewPosterior, s: ViewStatistics) -> float:
    """Σ E log N(y | w·z + b, 1/τ) over the observed entries.

    For pseudo-observations, plus what the likelihood exceeds this by where its bound touches.
    """
    log_tau = np.broadcast_to(view.tau.mean_log, s.n_column.shape)
    gain = 0.5 * s.n_column @ (log_tau - _LOG_2PI)
    residual = expected_residual(view.weights, s, view.rho)
    return float(s.excess + gain - 0.5 * view.precision @ residual)


def entropy_bias(q: Weights) -> float:
    """Entropy of q(b | w): what is left of the bias under its flat prior."""
    return float(0.5 * (np.log(q.bias_variance) + _LOG_2PI + 1.0).sum())


def kl_w(view: ViewPosterior) -> float:
    """Σ_d E KL(q(w_d) ‖ N(0, (γ_d A)^-1)) under q(α) q(γ)."""
    q = view.weights
    n_columns, n_factors = q.mean.shape
    prior_square = view.column_precision @ q.square @ view.alpha.mean
    prior_logdet = n_columns * view.alpha.mean_log.sum()
    if view.gamma is not None:
        prior_logdet += n_factors * view.gamma.mean_log.sum()
    return float(0.5 * (prior_square - n_columns * n_factors - prior_logdet - q.logdet))


def elbo(
    state: State, stats: Statistics, views: Sequence[ViewStatistics], names: Sequence[str]
) -> dict[str, float]:
    """The terms of the bound; their sum is the bound."""
    terms = {"kl_z": -kl_z(stats)}
    for name, view, s in zip(names, state, views, strict=True):
        terms[f"likelihood[{name}]"] = likelihood(view, s)
        terms[f"entropy_bias[{name}]"] = entropy_bias(view.weights)
        terms[f"kl_w[{name}]"] = -kl_w(view)
        terms[f"kl_alpha[{name}]"] = -view.alpha.kl(view.alpha_prior)
        terms[f"kl_tau[{name}]"] = -view.tau.kl(view.tau_prior)
        if view.gamma is not None:
            terms[f"kl_gamma[{name}]"] = -view.gamma.kl(view.gamma_prior)
    return terms
