"""The rotation objective, its gradient, and that a rotation raises the bound by what it says."""

from __future__ import annotations

import numpy as np
from scipy.optimize import approx_fprime

from conftest import core, two_views
from kofa.inference.bound import kl_w, kl_z
from kofa.inference.global_step import global_step
from kofa.inference.role import Role
from kofa.inference.rotation import Term, best_rotation, objective, rotate
from kofa.inference.statistics import centred


def random_terms(rng, k=4):
    terms = []
    for d in (6, 9):
        W = rng.standard_normal((d, k))
        terms.append(Term(W.T @ W, d, 0.5 * d + 1e-6, np.full(k, 0.3)))
    Z = rng.standard_normal((20, k))
    return Z.T @ Z, 20.0, terms


def test_gradient_matches_finite_differences(rng):
    S, n, terms = random_terms(rng)
    R = np.eye(4) + 0.2 * rng.standard_normal((4, 4))
    value = lambda r: objective(r.reshape(4, 4), S, n, terms)[0]  # noqa: E731
    numerical = approx_fprime(R.ravel(), value, 1e-7).reshape(4, 4)
    gradient = objective(R, S, n, terms)[1]
    np.testing.assert_allclose(gradient, numerical, rtol=1e-5, atol=1e-5 * np.abs(gradient).max())


def test_best_rotation_is_stationary(rng):
    S, n, terms = random_terms(rng)
    R = best_rotation(S, n, terms, max_iter=500)
    assert objective(R, S, n, terms)[0] > objective(np.eye(4), S, n, terms)[0]
    assert np.abs(objective(R, S, n, terms)[1] @ R.T).max() < 1e-3


def test_singular_rotation_is_never_chosen(rng):
    S, n, terms = random_terms(rng)
    assert objective(np.zeros((4, 4)), S, n, terms)[0] == -np.inf
    assert np.linalg.det(best_rotation(S, n, terms, 100)) > 0


def test_rotation_raises_the_divergences_as_the_objective_says(rng):
    """With z rotated along, the change of the bound is the change of f plus that of the shift."""
    data = two_views(rng)
    roles = [Role("x", sparse=True), Role("y")]
    engine, state, Z = core(list(data.values()), roles)
    for _ in range(3):
        stats, Z = engine.sweep(state, Z)
        state = global_step(state, centred(stats))
    # q(α) at its optimum before as after, as the objective assumes
    state, _ = rotate(state, stats, max_iter=0)
    terms = [Term.of(view) for view in state.values()]
    shift = stats.z_sum / stats.n_samples
    S = stats.S - stats.n_samples * np.outer(shift, shift)
    R = best_rotation(S, stats.n_samples, terms, 100)
    after, _ = rotate(state, stats, 100)

    def divergence(views):
        return sum(kl_w(v) + v.alpha.kl(v.alpha_prior) for v in views.values())

    k = len(S)
    kl_before = 0.5 * (np.trace(S) - stats.n_samples * k - stats.logdet)
    logdet = stats.logdet + 2 * stats.n_samples * np.linalg.slogdet(R)[1]
    kl_after = 0.5 * (np.trace(R @ S @ R.T) - stats.n_samples * k - logdet)
    gain = divergence(state) + kl_before - divergence(after) - kl_after
    f = [objective(r, S, stats.n_samples, terms)[0] for r in (np.eye(k), R)]
    np.testing.assert_allclose(gain, f[1] - f[0], rtol=1e-6)
    assert gain > 0
    assert kl_before <= kl_z(stats) + 1e-9  # the shift alone never hurts
