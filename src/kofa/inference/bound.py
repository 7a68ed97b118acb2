"""The evidence lower bound as a sum of named terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kofa.inference.global_step import expected_residual
from kofa.inference.posterior import State, ViewPosterior, Weights
from kofa.inference.statistics import Statistics, ViewStatistics
from kofa.linalg import LOG_2PI

_ROUNDINGS = 32.0  # in a sum of few products, as measured


def kl_z(stats: Statistics) -> float:
    """Σ_n KL(q(z_n) ‖ N(0, I)) = ½ (tr Σ⟨z zᵀ⟩ − N K − Σ log |Σ_n|)."""
    n_factors = len(stats.z_sum)
    return 0.5 * (float(np.trace(stats.S)) - stats.n_samples * n_factors - stats.logdet)


def likelihood(view: ViewPosterior, s: ViewStatistics) -> float:
    """Σ E log N(y | w·z + b, 1/τ) over the observed entries.

    For pseudo-observations, plus what the likelihood exceeds this by where its bound is tangent.
    """
    log_tau = np.broadcast_to(view.tau.mean_log, s.n_column.shape)
    gain = 0.5 * s.n_column @ (log_tau - LOG_2PI)
    residual = expected_residual(view.weights, s, view.rho)
    return float(s.excess + gain - 0.5 * view.precision @ residual)


def entropy_bias(q: Weights) -> float:
    """Entropy of q(b | w): what is left of the bias under its flat prior."""
    return float(0.5 * (np.log(q.bias_variance) + LOG_2PI + 1.0).sum())


def kl_w(view: ViewPosterior) -> float:
    """Σ_d E KL(q(w_d) ‖ N(0, (γ_d A)^-1)) under q(α) q(γ)."""
    q = view.weights
    n_columns, n_factors = q.mean.shape
    prior_square = view.column_precision @ q.square @ view.alpha.mean
    prior_logdet = n_columns * view.alpha.mean_log.sum()
    if view.gamma is not None:
        prior_logdet += n_factors * view.gamma.mean_log.sum()
    return float(0.5 * (prior_square - n_columns * n_factors - prior_logdet - q.logdet))


@dataclass(frozen=True)
class Bound:
    """The terms whose sum is the bound: one of z, and those of each view."""

    of_z: float
    of_views: Mapping[str, Mapping[str, float]]
    rounding: float = 0.0  # the size of errors in the sum

    @property
    def named(self) -> dict[str, float]:
        """As users see them: "kl_z", and such as "likelihood[x]" of view x."""
        of_views = {
            f"{term}[{name}]": value
            for name, terms in self.of_views.items()
            for term, value in terms.items()
        }
        return {"kl_z": self.of_z} | of_views

    @property
    def total(self) -> float:
        return sum(self.named.values())


def elbo(state: State, stats: Statistics, views: Mapping[str, ViewStatistics]) -> Bound:
    """The bound, term by term."""
    terms = {name: view_terms(q, views[name]) for name, q in state.items()}
    return Bound(-kl_z(stats), terms, sum(rounding(q, views[name]) for name, q in state.items()))


def rounding(view: ViewPosterior, s: ViewStatistics) -> float:
    """By how much rounded products may change the likelihood term of a view.

    Errors of the entries are independent, so that τ Σ y² of a column has them times 1/√n.
    """
    of_columns = view.precision * s.y_square / np.sqrt(s.n_column)
    return _ROUNDINGS * s.rounding * float(np.linalg.norm(of_columns))


def view_terms(view: ViewPosterior, s: ViewStatistics) -> dict[str, float]:
    """The terms of one view."""
    terms = {
        "likelihood": likelihood(view, s),
        "entropy_bias": entropy_bias(view.weights),
        "kl_w": -kl_w(view),
        "kl_alpha": -view.alpha.kl(view.alpha_prior),
        "kl_tau": -view.tau.kl(view.tau_prior),
    }
    return terms if view.gamma is None else terms | {"kl_gamma": -view.gamma.kl(view.gamma_prior)}
