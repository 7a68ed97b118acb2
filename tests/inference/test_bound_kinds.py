"""The bound of pseudo-observations against integration over the likelihood they stand for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as ss
from scipy.integrate import trapezoid
from scipy.special import log_ndtr
from test_bound import expected_square, weight_covariance

from conftest import core
from kofa.inference.bound import elbo, likelihood
from kofa.inference.global_step import global_step
from kofa.inference.local_step import augment, local_step, local_system
from kofa.inference.posterior import Known
from kofa.inference.role import Role
from kofa.inference.statistics import centred
from kofa.likelihoods.bernoulli import Bernoulli
from kofa.likelihoods.multinomial import Multinomial
from kofa.likelihoods.poisson import Poisson
from numerical import ahead_of, integrate_cone

RATE, MOST = np.array([1.5, 4.0, 0.5]), np.array([20.0, 40.0, 9.0])


def bernoulli(rng, eta):
    return Bernoulli(3), (eta + rng.standard_normal(eta.shape) > 0).astype(float)


def multinomial(rng, eta):
    return Multinomial(3), np.eye(3)[np.argmax(eta + rng.standard_normal(eta.shape), axis=1)]


def poisson(rng, eta):
    return Poisson(RATE, MOST), rng.poisson(RATE * np.logaddexp(0, eta)).astype(float)


def log_likelihood(kind, t, eta):
    """g of each entry (N, D), written out; the label's column has that of the row."""
    if isinstance(kind, Bernoulli):
        return log_ndtr((2 * t - 1) * eta)
    if isinstance(kind, Poisson):
        return ss.poisson(kind.rate * np.logaddexp(0, eta)).logpmf(np.nan_to_num(t))
    cones = [ahead_of(row, np.argmax(label))[0] for row, label in zip(eta, t, strict=True)]
    return t * np.array([[integrate_cone(cone, np.ones(2))[0]] for cone in cones])


def slopes(kind, t, eta, step=1e-5):
    """∂g/∂η of each entry, by differences."""
    slope = np.empty_like(eta)
    for d, move in enumerate(step * np.eye(eta.shape[1])):
        up, down = (log_likelihood(kind, t, eta + s * move) for s in (1, -1))
        change = (up - down).sum(axis=1) if kind.competing else (up - down)[:, d]
        slope[:, d] = change / (2 * step)
    return slope


def small(rng, make, k, missing=True, n=7, sweeps=3):
    """A tiny model after a few sweeps: data, points of tangency, q(z), the last sweep's state."""
    eta = 1.5 * rng.standard_normal((n, k)) @ rng.standard_normal((k, 3))
    kind, t = make(rng, eta)
    if missing:
        t[0 if kind.competing else (0, 1)] = np.nan
    engine, state, Z = core([t], [Role("a")], k, likelihoods=[kind])
    for _ in range(sweeps):
        tangent = augment(engine.rows, state, Z)
        at = state["a"].weights.predict(Z)
        q = local_step(tangent, local_system(state, tangent.columns))
        stats, Z = engine.sweep(state, Z)
        views = centred(stats)
        state = global_step(state, views)
    np.testing.assert_allclose(Z, q.mean, atol=1e-12)
    return kind, t, at, q, state, stats, views


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("make", [bernoulli, multinomial, poisson])
def test_likelihood_is_the_expected_parabola(rng, make, missing):
    """E g(η₀) + g′(η₀) (f − η₀) − ½ κ (f − η₀)² over q(z) q(w, b), η₀ of the state before."""
    kind, t, at, q, state, _, views = small(rng, make, 2, missing)
    value, slope, w = log_likelihood(kind, t, at), slopes(kind, t, at), state["a"].weights
    total = 0.0
    for n, d in zip(*np.nonzero(~np.isnan(t)), strict=True):
        m, C = q.mean[n], q.covariance[q.patterns.label[n]]
        z_mean, Sw = w.z_mean[w.columns.label[d]], weight_covariance(w, d)
        mean = w.y_mean[d] + w.mean[d] @ (m - z_mean)
        square = expected_square(at[n, d] - w.y_mean[d], m - z_mean, C, w.mean[d], Sw)
        square += w.bias_variance[d]
        total += value[n, d] + slope[n, d] * (mean - at[n, d])
        total -= 0.5 * kind.curvature[d] * square
    np.testing.assert_allclose(likelihood(state["a"], views["a"]), total, rtol=1e-6)


def expected_log_likelihood(kind, t, q, w, n_nodes=24):
    """Σ E g(t, w·z + b) over q(z) q(w, b), one factor, by tensor Gauss–Hermite quadrature."""
    x, weight = np.polynomial.hermite_e.hermegauss(n_nodes)
    z, v, b = np.meshgrid(x, x, x, indexing="ij")
    mass = np.einsum("i,j,k->ijk", *[weight / weight.sum()] * 3).ravel()
    total = 0.0
    for n, d in zip(*np.nonzero(~np.isnan(t)), strict=True):
        C = q.covariance[q.patterns.label[n], 0, 0]
        away = q.mean[n, 0] + np.sqrt(C) * z - w.z_mean[w.columns.label[d], 0]
        slope = w.mean[d, 0] + np.sqrt(weight_covariance(w, d)[0, 0]) * v
        f = (w.y_mean[d] + slope * away + np.sqrt(w.bias_variance[d]) * b).reshape(-1, 1)
        only = Bernoulli(1) if isinstance(kind, Bernoulli) else Poisson(RATE[[d]], MOST[[d]])
        total += mass @ log_likelihood(only, np.full_like(f, t[n, d]), f)[:, 0]
    return total


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("make", [bernoulli, poisson])
def test_likelihood_is_below_the_expected_log_likelihood(rng, make, missing):
    kind, t, _, q, state, _, views = small(rng, make, 1, missing, sweeps=30)
    exact = expected_log_likelihood(kind, t, q, state["a"].weights)
    term = likelihood(state["a"], views["a"])
    assert term < exact
    assert exact - term < 0.25 * np.isfinite(t).sum()


@pytest.mark.parametrize("make", [bernoulli, poisson])
@pytest.mark.parametrize("alpha", [100.0, 1.0, 0.2])
def test_bound_is_below_the_exact_evidence_and_close(rng, make, alpha):
    """One column, one factor, w ~ N(0, 1/α), b flat: the evidence by integration over all."""
    _, t = make(rng, 2.0 * rng.standard_normal((6, 3)))
    kind, t = (Bernoulli(1) if make is bernoulli else Poisson(RATE[:1], t[:, 0].max())), t[:, :1]
    assert len(np.unique(t)) > 1  # else the flat bias has no evidence
    engine, state, Z = core([t], [Role("a")], 1, likelihoods=[kind])
    known = Known(np.array([alpha]))
    state = {"a": replace(state["a"], alpha=known, alpha_prior=known)}
    for _ in range(300):
        stats, Z = engine.sweep(state, Z)
        views = centred(stats)
        state = global_step(state, views)
    bound = elbo(state, stats, views).total
    exact = exact_log_evidence(kind, t, alpha)
    assert bound <= exact + 1e-9
    assert exact - bound < 0.6 * len(t)


def exact_log_evidence(kind, t, alpha):
    """log ∫∫ Π_n [∫ p(t_n | w z + b) N(z) dz] N(w | 0, 1/α) dw db on a fine grid."""
    z, mass = np.polynomial.hermite_e.hermegauss(40)
    w = np.linspace(0, 7 / np.sqrt(alpha), 60)
    b = np.linspace(-30, 30, 400)
    f = (w[:, None, None] * z + b[:, None])[..., None]
    density = 1.0
    for count in t.ravel():
        p = np.exp(log_likelihood(kind, np.array(count), f)[..., 0])
        density = density * (p @ (mass / mass.sum()))
    over_b = trapezoid(density, b, axis=1)
    return np.log(2 * trapezoid(over_b * ss.norm(0, alpha**-0.5).pdf(w), w))
