"""The equations against the same written out for one sample or column at a time."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import core, two_views
from kofa.inference.global_step import expected_residual, global_step, update_weights
from kofa.inference.local_step import local_step, local_system
from kofa.inference.predictor import linear_predictor
from kofa.inference.role import Role
from kofa.inference.statistics import centred

HOLES = ["none", "rows", "scattered", "blocks"]


def punch(y, holes, rng):
    y = y.copy()
    if holes == "rows":
        y[::4] = np.nan
    if holes == "scattered":
        y[rng.random(y.shape) < 0.25] = np.nan
    if holes == "blocks":
        y[:20, :2] = np.nan
    return y


def problem(rng, holes, sparse=False):
    data = two_views(rng, dims=(6, 4))
    views = [punch(y, holes, rng) for y in data.values()]
    roles = [Role("x", sparse=sparse, noise_per_column=True), Role("y")]
    engine, state, Z = core(views, roles)
    for _ in range(2):
        stats, Z = engine.sweep(state, Z)
        state = global_step(state, centred(stats))
    return views, engine, state, Z


def covariance(w, d):
    B = w.basis[w.columns.label[d]]
    return B @ np.diag(w.scales[d]) @ B.T


@pytest.mark.parametrize("holes", HOLES)
def test_local_step_solves_each_sample(rng, holes):
    views, engine, state, _ = problem(rng, holes)
    e = local_system(state, engine.rows.columns)
    q = local_step(engine.rows, e)
    for n in (0, 1, 5, 33):
        precision, h = np.eye(e.n_factors), np.zeros(e.n_factors)
        for y, view in zip(views, state.values(), strict=True):
            w = view.weights
            for d in np.flatnonzero(~np.isnan(y[n])):
                tau = view.precision[d]
                G = tau * (np.outer(w.mean[d], w.mean[d]) + covariance(w, d))
                precision += G
                h += tau * (y[n, d] - w.y_mean[d]) * w.mean[d] + G @ w.z_mean[w.columns.label[d]]
        np.testing.assert_allclose(q.mean[n], np.linalg.solve(precision, h), atol=1e-10)
        C = q.covariance[q.patterns.label[n]]
        np.testing.assert_allclose(C, np.linalg.inv(precision), atol=1e-10)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("holes", HOLES)
def test_weights_solve_each_column(rng, holes, sparse):
    views, engine, state, Z = problem(rng, holes, sparse)
    stats, _ = engine.sweep(state, Z)
    s = centred(stats)["x"]
    view = state["x"]
    q = update_weights(s, view.alpha.mean, view.column_precision, view.precision)
    e = local_system(state, engine.rows.columns)
    z = local_step(engine.rows, e)
    for d in range(6):
        seen = np.flatnonzero(~np.isnan(views[0][:, d]))
        m = z.mean[seen]
        S = sum(z.covariance[z.patterns.label[n]] for n in seen) + m.T @ m
        y, n = views[0][seen, d], len(seen)
        S_c = S - n * np.outer(m.mean(0), m.mean(0))
        r_c = y @ m - n * y.mean() * m.mean(0)
        tau = view.precision[d]
        Sw = np.linalg.inv(view.column_precision[d] * np.diag(view.alpha.mean) + tau * S_c)
        np.testing.assert_allclose(covariance(q, d), Sw, atol=1e-10)
        np.testing.assert_allclose(q.mean[d], tau * Sw @ r_c, atol=1e-10)
        np.testing.assert_allclose(q.bias[d], y.mean() - q.mean[d] @ m.mean(0), atol=1e-10)
        residual = y - y.mean() - (m - m.mean(0)) @ q.mean[d]
        spread = sum(q.mean[d] @ z.covariance[z.patterns.label[i]] @ q.mean[d] for i in seen)
        expected = residual @ residual + spread + np.trace(Sw @ S_c) + 1 / tau
        np.testing.assert_allclose(expected_residual(q, s)[d], expected, rtol=1e-9)


@pytest.mark.parametrize("holes", HOLES)
def test_linear_predictor_has_the_moments_of_sampled_weights(rng, holes):
    _, engine, state, _ = problem(rng, holes)
    e = local_system(state, engine.rows.columns)
    q, w = local_step(engine.rows, e), state["x"].weights
    mean, variance = linear_predictor(q, w)
    for n, d in ((0, 0), (7, 3), (40, 5)):
        C, Sw = q.covariance[q.patterns.label[n]], covariance(w, d)
        z = rng.multivariate_normal(q.mean[n], C, 200_000)
        v = rng.multivariate_normal(w.mean[d], Sw, 200_000)
        b = w.y_mean[d] - v @ w.z_mean[w.columns.label[d]]
        b += np.sqrt(w.bias_variance[d]) * rng.standard_normal(len(b))
        sample = (z * v).sum(axis=1) + b
        error = np.sqrt(variance[n, d] / len(b))
        assert abs(sample.mean() - mean[n, d]) < 5 * error
        np.testing.assert_allclose(sample.var(), variance[n, d], rtol=0.02)
