"""What z leaves open where views are not Gaussian: steps of the cubature, and curvature ratios."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conftest import core
from kofa import tuning
from kofa.inference.global_step import global_step, residual_of_z
from kofa.inference.observations import Observations
from kofa.inference.role import Role
from kofa.inference.statistics import centred
from kofa.inference.surrogate import (
    cubature_steps,
    expected_drop,
    rounded_away,
    update_curvature_ratio,
)
from kofa.likelihoods.bernoulli import Bernoulli
from kofa.likelihoods.multinomial import Multinomial
from kofa.likelihoods.poisson import Poisson

RATE = np.array([2.0, 1.0, 5.0])


def bernoulli(rng, eta):
    return Bernoulli(3), (eta + rng.standard_normal(eta.shape) > 0).astype(float)


def multinomial(rng, eta):
    return Multinomial(3), np.eye(3)[np.argmax(eta + rng.standard_normal(eta.shape), axis=1)]


def poisson(rng, eta):
    t = rng.poisson(RATE * np.logaddexp(0, eta)).astype(float)
    return Poisson(RATE, t.max(axis=0)), t


every_kind = pytest.mark.parametrize("make", [bernoulli, multinomial, poisson])


def problem(rng, make, rho=1.0):
    """Engine, state and statistics of a view with an output, both with holes, after two sweeps."""
    Z = rng.standard_normal((50, 2))
    x = Z @ rng.standard_normal((2, 4)) + 0.5 * rng.standard_normal((50, 4))
    kind, t = make(rng, 2.0 * Z @ rng.standard_normal((2, 3)))
    x[:5, 1] = np.nan
    t[10:15] = np.nan
    if not kind.competing:
        t[15:30, 1] = np.nan
    roles = [Role("x", noise_per_column=True), Role("t", output=True)]
    engine, state, Z = core([x, t], roles, 2, likelihoods=[None, kind])
    state = {**state, "t": replace(state["t"], rho=rho)}
    for _ in range(2):
        stats, Z = engine.sweep(state, Z)
        views = centred(stats)
        state = global_step(state, views)
    return engine, state, stats, views, Z


@every_kind
def test_steps_have_the_variance_that_z_gives_the_linear_predictor(rng, make):
    """Three points at 0 and ±√3 sd: a third of the squared steps is the mean covariance of η."""
    engine, state, _, views, _ = problem(rng, make)
    view, s = state["t"], views["t"]
    competing = engine.likelihoods["t"].competing
    steps = cubature_steps(view, s, competing)
    W = view.weights.mean
    for d, g in enumerate(s.columns.label):
        covariance = (s.S[g] - s.M[g]) / s.n[g]  # of z, mean over the samples that have the column
        found = (steps[:, d] ** 2).sum() / 3.0
        np.testing.assert_allclose(found, W[d] @ covariance @ W[d], rtol=1e-9)
    if competing:
        together = W @ (s.S[0] - s.M[0]) / s.n[0] @ W.T
        np.testing.assert_allclose(steps.T @ steps / 3.0, together, atol=1e-12)


@every_kind
def test_expected_drop_is_the_sum_over_samples_and_steps(rng, make):
    kind, t = make(rng, rng.standard_normal((6, 3)))
    data = Observations.from_values(t.copy(), kind)
    eta, steps = rng.standard_normal((6, 3)), rng.standard_normal((2, 3))
    total = 0.0
    for n in range(6):
        row = t[n : n + 1]
        middle = kind.tangent(row, eta[n : n + 1])[0].sum()
        for step in steps:
            ends = [kind.tangent(row, eta[n : n + 1] + sign * step)[0].sum() for sign in (1, -1)]
            total += middle - 0.5 * sum(ends)
    np.testing.assert_allclose(expected_drop(data, eta, steps), total, rtol=1e-9)


@pytest.mark.parametrize("make", [bernoulli, poisson])
def test_curvature_ratio_makes_the_likelihood_term_its_expectation_over_z(rng, make):
    """Σ g − ½ ρ κ Σ var is Σ E g, by integration over η of the mean variance of its column."""
    engine, state, _, views, Z = problem(rng, make)
    view, data, s = state["t"], engine.rows.views["t"], views["t"]
    eta = view.weights.predict(Z)
    drop = engine.expected_drop("t", view.weights, cubature_steps(view, s, False), Z)
    rho = update_curvature_ratio(view, s, drop).rho
    variance = residual_of_z(view.weights, s)
    at_mean = data.tangent(eta)[0].sum()
    term = at_mean - 0.5 * rho * view.precision @ variance
    nodes, mass = np.polynomial.hermite_e.hermegauss(40)
    sd = np.sqrt(variance / s.n_column)
    exact = sum(
        p / mass.sum() * data.tangent(eta + x * sd)[0].sum()
        for x, p in zip(nodes, mass, strict=True)
    )
    assert 0.01 < rho < 0.9
    np.testing.assert_allclose(at_mean - term, at_mean - exact, rtol=0.05)
    # Whatever ρ is, the expected bound has none of it.
    for other in (rho, 1.0):
        rounded = replace(view, rho=other)
        term = at_mean - 0.5 * other * view.precision @ variance
        expected = term + rounded_away(rounded, s, drop)
        np.testing.assert_allclose(at_mean - expected, at_mean - exact, rtol=0.05)


def test_curvature_ratio_never_rises(rng):
    _, state, _, views, _ = problem(rng, bernoulli, rho=0.3)
    assert update_curvature_ratio(state["t"], views["t"], 1e9).rho == 0.3
    assert update_curvature_ratio(state["t"], views["t"], 0.0).rho == tuning.LEAST_CURVATURE_RATIO
