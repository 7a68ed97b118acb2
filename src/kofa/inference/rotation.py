"""Parameter expansion: the rotation of the latent space that raises the bound most.

Replacing z by Rz and w by R^-T w leaves the likelihood as it is and changes only the divergences.
The best R separates factors that views share from those they do not, in far fewer iterations
than coordinate ascent alone (Luttinen & Ilin 2010; Virtanen, Klami & Kaski 2011).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from kofa.inference.posterior import Gamma, State, ViewPosterior
from kofa.inference.statistics import Statistics
from kofa.linalg import Array, Groups, threads_for

_ENOUGH = 1e-9  # share of its value by which a step has to raise the objective, or it is the last


@dataclass(frozen=True, eq=False)
class Term:
    """What one view adds to the objective: −shape Σ_k log(rate_k + ½ [R^-T Q R^-1]_kk)."""

    Q: Array  # (K, K): ⟨Wᵀ Γ W⟩
    n_columns: int
    shape: float  # a0 + D/2
    rate: Array  # (K,): b0

    @classmethod
    def of(cls, view: ViewPosterior) -> Term:
        Q = view.weights.outer(view.column_precision, Groups.one(view.n_columns))[0]
        prior = view.alpha_prior
        assert isinstance(prior, Gamma)  # a model with fixed precisions is not rotated
        return cls(Q, view.n_columns, float(prior.shape) + 0.5 * view.n_columns, prior.rate)


def objective(R: Array, S: Array, n_samples: float, terms: Sequence[Term]) -> tuple[float, Array]:
    """f(R) and its gradient, the part of the bound that a rotation changes.

    f(R) = −½ tr(R S Rᵀ) + (N − Σ D_m) log|det R| − Σ_m shape_m Σ_k log(b_0k + ½ [R^-T Q_m R^-1]_kk)
    """
    sign, logdet = np.linalg.slogdet(R)
    if sign <= 0 or not np.isfinite(logdet):
        return -np.inf, np.zeros_like(R)
    V = np.asarray(np.linalg.inv(R), dtype=float)
    surplus = n_samples - sum(t.n_columns for t in terms)
    RS = R @ S
    value = -0.5 * float((RS * R).sum()) + surplus * float(logdet)
    gradient = surplus * V.T - RS
    for t in terms:
        VQV = V.T @ t.Q @ V
        rate = t.rate + 0.5 * np.diagonal(VQV)
        if not (rate > 0).all():  # rounded
            return -np.inf, np.zeros_like(R)
        value -= t.shape * float(np.log(rate).sum())
        # d[VᵀQV]_kk = −2 (VᵀQV dR V)_kk
        gradient += (VQV * (t.shape / rate)) @ V.T
    return value, gradient


def best_rotation(S: Array, n_samples: float, terms: Sequence[Term], max_iter: int) -> Array:
    """Maximise `objective` from the identity by L-BFGS; the identity if nothing is better."""
    k = len(S)
    identity = np.eye(k)
    # The last digits of sums depend on how rows are divided into blocks, and on the order of the
    # views; along flat directions many digits of the optimum depend on these.
    S, terms = _rounded(S), [replace(t, Q=_rounded(t.Q)) for t in terms]
    terms = sorted(terms, key=lambda t: (t.n_columns, float(np.trace(t.Q))))
    h = np.sqrt(_hessian_diagonal(S, n_samples, terms))

    def negative(p: Array) -> tuple[float, Array]:
        value, gradient = objective(p.reshape(k, k) / h, S, n_samples, terms)
        return -value, -(gradient / h).ravel()

    begin = (identity * h).ravel()
    options = {"maxiter": max_iter, "ftol": _ENOUGH, "gtol": 1e-6 * np.sqrt(n_samples)}
    with threads_for(100.0 * k**3):
        found = minimize(negative, begin, jac=True, method="L-BFGS-B", options=options)
    better = np.isfinite(found.fun) and found.fun < negative(begin)[0]
    return found.x.reshape(k, k) / h if better else identity


def _rounded(matrix: Array) -> Array:
    return matrix.astype(np.float32).astype(np.float64)


def _hessian_diagonal(S: Array, n_samples: float, terms: Sequence[Term]) -> Array:
    """The diagonal of the Hessian at the identity, roughly, to bring all entries to one scale.

    Mixing factor i into a far weaker factor j bends the objective by Q_ii / Q_jj, which
    spans many decades for the factors of a smooth kernel.
    """
    curvature = n_samples + np.broadcast_to(np.diagonal(S), S.shape)
    for t in terms:
        q = np.diagonal(t.Q)
        curvature = curvature + t.shape * np.divide.outer(q, t.rate + 0.5 * q)
    return curvature


def rotate(
    state: State, stats: Statistics, max_iter: int = 100
) -> tuple[State, tuple[Array, Array]]:
    """The global factors after the best z ← R (z − shift), and that R and shift."""
    shift = stats.z_sum / stats.n_samples
    S = stats.S - stats.n_samples * np.outer(shift, shift)
    terms = {name: Term.of(view) for name, view in state.items()}
    R = best_rotation(S, stats.n_samples, list(terms.values()), max_iter)
    V = np.asarray(np.linalg.inv(R), dtype=float)
    rotated = {n: _rotate_view(view, terms[n], R, V, shift) for n, view in state.items()}
    return rotated, (R, shift)


def _rotate_view(view: ViewPosterior, t: Term, R: Array, V: Array, shift: Array) -> ViewPosterior:
    # q(α) is brought to its optimum, as the objective assumes.
    rate = t.rate + 0.5 * np.einsum("jk,jl,lk->k", V, t.Q, V, optimize=True)
    return replace(
        view,
        weights=view.weights.transform(V, R, shift),
        alpha=Gamma(np.array(t.shape), rate),
    )
