"""Weights of outputs at their optimum, and what is left of them without a sample."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from conftest import core
from kofa import tuning
from kofa.inference.bound import elbo
from kofa.inference.global_step import global_step, residual_of_z, update_weights
from kofa.inference.held_out import _best_signal, _uphill, choose_scale, left_out, sample_rows
from kofa.inference.observations import Observations
from kofa.inference.posterior import Gamma
from kofa.inference.role import Role
from kofa.inference.statistics import centred
from kofa.inference.surrogate import (
    Chart,
    cubature_steps,
    expected_drop,
    refine,
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


def problem(rng, make, rho=1.0, sparse=False):
    """Engine, state and statistics of a view with an output, both with holes, after two sweeps."""
    Z = rng.standard_normal((50, 2))
    x = Z @ rng.standard_normal((2, 4)) + 0.5 * rng.standard_normal((50, 4))
    kind, t = make(rng, 2.0 * Z @ rng.standard_normal((2, 3)))
    x[:5, 1] = np.nan
    t[10:15] = np.nan
    if not kind.competing:
        t[15:30, 1] = np.nan
    roles = [Role("x", noise_per_column=True), Role("t", output=True, sparse=sparse)]
    engine, state, Z = core([x, t], roles, 2, likelihoods=[None, kind])
    state = {**state, "t": replace(state["t"], rho=rho)}
    for _ in range(2):
        stats, Z = engine.sweep(state, Z)
        views = centred(stats)
        state = global_step(state, views)
    return engine, state, stats, views, Z


def charted(engine, state, views, Z):
    """The chart of the output, θ of its weights, and the objective."""
    chart = Chart.of(state["t"], views["t"])
    w = state["t"].weights
    objective = partial(chart.objective, surrogate_sums=partial(engine.surrogate_sums, "t", Z=Z))
    return chart, chart.pack(w.mean, w.y_mean), objective


@every_kind
def test_chart_returns_what_was_packed(rng, make):
    engine, state, _, views, Z = problem(rng, make)
    chart, theta, _ = charted(engine, state, views, Z)
    w = chart.unpack(theta)
    np.testing.assert_allclose(w.mean, state["t"].weights.mean, atol=1e-12)
    np.testing.assert_allclose(w.y_mean, state["t"].weights.y_mean, atol=1e-12)


@pytest.mark.parametrize("rho", [1.0, 0.4])
@every_kind
def test_objective_is_the_penalised_likelihood_at_the_mean(rng, make, rho):
    """Σ g − ½ Σ γ α w² − ½ ρ κ Σ var(w·z), with z at its mean, and a constant."""
    engine, state, _, views, Z = problem(rng, make, rho, sparse=True)
    chart, begin, objective = charted(engine, state, views, Z)
    view, data, s = state["t"], engine.rows.views["t"], views["t"]

    def penalised(theta):
        w = chart.unpack(theta)
        value = data.tangent(w.predict(Z))[0].sum()
        value -= 0.5 * view.column_precision @ w.mean**2 @ view.alpha.mean
        for d, g in enumerate(w.columns.label):
            value -= 0.5 * rho * view.precision[d] * w.mean[d] @ (s.S[g] - s.M[g]) @ w.mean[d]
        return value

    for end in begin + rng.standard_normal((3, len(begin))):
        rise = objective(end)[0] - objective(begin)[0]
        np.testing.assert_allclose(rise, penalised(end) - penalised(begin), rtol=1e-8)


@pytest.mark.parametrize("rho", [1.0, 0.4])
@every_kind
def test_gradient_is_that_of_the_objective(rng, make, rho):
    engine, state, _, views, Z = problem(rng, make, rho)
    _, theta, objective = charted(engine, state, views, Z)
    for point in (theta, theta + rng.standard_normal(theta.shape)):
        up, down = (approx_fprime(point, lambda x: objective(x)[0], s * 1e-5) for s in (1, -1))
        np.testing.assert_allclose(objective(point)[1], 0.5 * (up + down), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rho", [1.0, 0.4])
@every_kind
def test_refined_weights_raise_the_bound(rng, make, rho):
    engine, state, stats, views, Z = problem(rng, make, rho)
    before = elbo(state, stats, views).total
    weights = refine(state["t"], views["t"], partial(engine.surrogate_sums, "t", Z=Z))
    stats = stats.with_sums("t", engine.surrogate_sums("t", weights, Z))
    refined = {**state, "t": replace(state["t"], weights=weights)}
    after = elbo(refined, stats, centred(stats)).total
    assert after > before + 0.1


@every_kind
def test_refined_weights_are_where_coordinate_ascent_goes(rng, make):
    """With the same q(z), 300 small steps get no further than one call."""
    engine, state, stats, views, Z = problem(rng, make)
    _, begin, objective = charted(engine, state, views, Z)
    chart = Chart.of(state["t"], views["t"])
    found = refine(state["t"], views["t"], partial(engine.surrogate_sums, "t", Z=Z))
    top = objective(chart.pack(found.mean, found.y_mean))[0]
    view, w = state["t"], state["t"].weights
    for _ in range(300):
        s = centred(stats.with_sums("t", engine.surrogate_sums("t", w, Z)))["t"]
        w = update_weights(s, view.alpha.mean, view.column_precision, view.precision)
    limit = objective(chart.pack(w.mean, w.y_mean))[0]
    assert objective(begin)[0] < limit - 0.1
    assert abs(top - limit) < 1e-3 * (limit - objective(begin)[0])


# ---------------------------------------------------------------- leaving out


def posterior_mode(data, Z, alpha, start=None):
    """The weights and flat biases that maximise Σ g − ½ Σ α w²."""
    X, n_columns = np.column_stack([Z, np.ones(len(Z))]), data.values.shape[1]
    ridge = np.append(alpha, 0.0)

    def negative(theta):
        w = theta.reshape(n_columns, -1)
        value, slope = data.tangent(X @ w.T)
        return 0.5 * (w**2 @ ridge).sum() - value.sum(), (w * ridge - slope.T @ X).ravel()

    start = np.zeros((n_columns, X.shape[1])) if start is None else start
    found = minimize(negative, start.ravel(), jac=True, options={"gtol": 1e-6})
    return found.x.reshape(n_columns, -1)


def small(rng, make):
    Z = rng.standard_normal((30, 2))
    kind, t = make(rng, Z @ np.array([[1.5, -1.0, 0.5], [0.5, 1.0, -1.5]]))
    return Observations.from_values(t, kind), Z


@pytest.mark.parametrize("alpha", [0.3, 3.0])
@every_kind
def test_left_out_is_close_to_a_fit_without_the_sample(rng, make, alpha):
    data, Z = small(rng, make)
    alpha = np.array([alpha, 2 * alpha])
    X = np.column_stack([Z, np.ones(len(Z))])
    whole = posterior_mode(data, Z, alpha)
    eta = X @ whole.T
    exact = np.empty_like(eta)
    for n in range(len(Z)):
        rest = np.delete(np.arange(len(Z)), n)
        exact[n] = X[n] @ posterior_mode(data.take(rest), Z[rest], alpha, whole).T
    found = left_out(data, eta, alpha, Z)
    full, approximate, refitted = (data.tangent(e)[0].sum() for e in (eta, found, exact))
    assert refitted < full - 1.0
    loss = (full - approximate) / (full - refitted)
    competing = data.likelihood.competing  # their columns are treated one by one, less exactly
    assert abs(loss - 1.0) < (0.3 if competing else 0.15)
    if not competing:
        assert np.abs(found - exact).max() < 0.35 * np.abs(eta - exact).max()


@pytest.mark.parametrize("make", [bernoulli, multinomial])
def test_scale_is_the_one_that_predicts_left_out_samples_best(rng, make):
    """Of all scales, by refitting; a neighbour may come next to it."""
    data, Z = small(rng, make)
    _, state, _ = core([data.targets], [Role("t")], 2, likelihoods=[data.likelihood])
    energy = np.array([1.0, 0.5])
    chosen = energy.sum() / choose_scale(state["t"], data, Z, energy).mean[0]
    X, scores = np.column_stack([Z, np.ones(len(Z))]), []
    for signal in tuning.SIGNALS[:6]:
        alpha, score = energy.sum() / signal / energy, 0.0
        whole = posterior_mode(data, Z, alpha)
        for n in range(len(Z)):
            rest = np.delete(np.arange(len(Z)), n)
            w = posterior_mode(data.take(rest), Z[rest], alpha, whole)
            score += data.take(np.array([n])).tangent(X[n : n + 1] @ w.T)[0].sum()
        scores.append(score)
    best = int(np.argmax(scores))
    assert 0 < best < len(scores) - 1
    assert abs(int(np.argmin(np.abs(np.log(np.array(tuning.SIGNALS) / chosen)))) - best) <= 1


@pytest.mark.parametrize("peak", range(len(tuning.SIGNALS)))
def test_signals_are_tried_from_the_middle_until_they_get_worse(peak):
    tried = []

    def score(signal):
        tried.append(tuning.SIGNALS.index(signal))
        return -((tried[-1] - peak) ** 2)

    scores, middle, last = _uphill(score), len(tuning.SIGNALS) // 2, len(tuning.SIGNALS) - 1
    assert _best_signal(scores) == pytest.approx(tuning.SIGNALS[peak])
    assert len(tried) == len(scores) <= abs(peak - middle) + 3
    assert set(scores) >= {j for j in (peak - 1, peak, peak + 1) if 0 <= j <= last}


def test_left_out_respects_the_precision_of_each_column(rng):
    data, Z = small(rng, bernoulli)
    alpha, gamma = np.array([0.5, 1.0]), np.array([0.05, 1.0, 30.0])
    eta = np.column_stack([Z, np.ones(len(Z))]) @ posterior_mode(data, Z, alpha).T
    found = left_out(data, eta, np.outer(gamma, alpha), Z)
    for d, one in enumerate(gamma):
        np.testing.assert_array_equal(found[:, d], left_out(data, eta, one * alpha, Z)[:, d])


def test_precision_of_columns_counts_where_the_scale_is_chosen(rng):
    """With γ = 10 for all columns the weights are those of ten times the α."""
    data, Z = small(rng, bernoulli)
    role = Role("t", sparse=True)
    _, state, _ = core([data.targets], [role], 2, likelihoods=[data.likelihood])
    of_gamma = [replace(state["t"], gamma=Gamma(np.full(3, g), np.ones(3))) for g in (1.0, 10.0)]
    one, ten = (choose_scale(v, data, Z, np.array([1.0, 0.5])).mean for v in of_gamma)
    np.testing.assert_allclose(10 * ten, one, rtol=1e-3)


# ---------------------------------------------------------------- which samples


@pytest.mark.parametrize("kind", [Bernoulli(1), Multinomial(2), Multinomial(3)])
def test_labels_in_rotation_are_all_in_the_sample(rng, kind):
    """And in their shares, each row at most once."""
    n_classes = getattr(kind, "n_classes", 2)
    label = np.arange(1800) % n_classes
    targets = label[:, None] if isinstance(kind, Bernoulli) else np.eye(n_classes)[label]
    data = Observations.from_values(targets.astype(float), kind)
    rows = sample_rows(data, np.ones(1800, dtype=bool), rng)
    assert len(np.unique(rows)) == 600
    assert np.ptp(np.bincount(label[rows])) <= 1


def test_sample_is_drawn_at_random_among_those_that_qualify(rng):
    data = Observations.from_values(np.tile([[0.0], [1.0]], (1000, 1)), Bernoulli(1))
    qualify = np.arange(2000) % 5 < 4
    drawn = [sample_rows(data, qualify, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert all(qualify[rows].all() for rows in drawn)
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert len(np.intersect1d(drawn[0], drawn[2])) < 400
    few = np.arange(2000) < 600
    np.testing.assert_array_equal(sample_rows(data, few, rng), np.arange(600))


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
