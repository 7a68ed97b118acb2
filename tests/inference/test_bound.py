"""Each term of the bound against numerical integration or exact evidence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as ss
from scipy.integrate import quad

from conftest import core
from kofa.inference.bound import elbo, entropy_bias, kl_w, kl_z, likelihood
from kofa.inference.global_step import global_step
from kofa.inference.local_step import local_step, local_system
from kofa.inference.posterior import Gamma
from kofa.inference.role import Role
from kofa.inference.statistics import centred


def small(rng, sparse=False, per_column=True, missing=True):
    """A tiny model after a few sweeps, with all the pieces of its bound."""
    y = rng.standard_normal((7, 2)) @ rng.standard_normal((2, 3))
    y = y + 0.2 * rng.standard_normal(y.shape)
    if missing:
        y[0, 1] = y[3, 2] = np.nan
    engine, state, Z = core([y], [Role("a", sparse=sparse, noise_per_column=per_column)], 2)
    for _ in range(3):
        q = local_step(engine.rows, local_system(state, engine.rows.columns))
        stats, Z = engine.sweep(state, Z)
        views = centred(stats)
        state = global_step(state, views)
    return y, engine, state, stats, views, q


def weight_covariance(w, d):
    B = w.basis[w.columns.label[d]]
    return B @ np.diag(w.scales[d]) @ B.T


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("per_column", [False, True])
def test_likelihood_is_the_expected_log_density(rng, per_column, missing):
    """E over q(w, b, z) by exact Gaussian moments of each entry, over q(τ) by integration."""
    y, _, state, _, views, q = small(rng, per_column=per_column, missing=missing)
    view, w = state["a"], state["a"].weights
    total = 0.0
    for n, d in zip(*np.nonzero(~np.isnan(y)), strict=True):
        y_nd = y[n, d]
        m, C = q.mean[n], q.covariance[q.patterns.label[n]]
        z_mean, Sw = w.z_mean[w.columns.label[d]], weight_covariance(w, d)
        # joint Gauss-Hermite over (z, w, b) is exact for this polynomial of degree four
        square = expected_square(y_nd - w.y_mean[d], m - z_mean, C, w.mean[d], Sw)
        square += w.bias_variance[d]
        t = min(d, view.tau.rate.size - 1)
        tau = ss.gamma(view.tau.shape[t], scale=1 / view.tau.rate[t])
        low, high = tau.ppf(1e-13), tau.isf(1e-13)
        term = quad(
            lambda x, s=square, tau=tau: tau.pdf(x) * 0.5 * (np.log(x / 2 / np.pi) - x * s),
            low,
            high,
            epsabs=1e-12,
            epsrel=1e-12,
            limit=200,
        )[0]
        total += term
    np.testing.assert_allclose(likelihood(view, views["a"]), total, rtol=1e-6)


def expected_square(y, m, C, w, Sw):
    """E (y − w·z)² over independent Gaussians by tensor Gauss–Hermite quadrature."""
    x, weight = np.polynomial.hermite_e.hermegauss(4)
    weight = weight / weight.sum()
    grid = np.stack(np.meshgrid(x, x, x, x, indexing="ij"), -1).reshape(-1, 4)
    mass = np.prod(np.stack(np.meshgrid(*[weight] * 4, indexing="ij"), -1).reshape(-1, 4), axis=1)
    z = m + grid[:, :2] @ np.linalg.cholesky(C).T
    v = w + grid[:, 2:] @ np.linalg.cholesky(Sw + 1e-300 * np.eye(2)).T
    return float(mass @ (y - (z * v).sum(axis=1)) ** 2)


def test_kl_z_is_the_divergence_from_the_prior(rng):
    _, _, _, stats, _, q = small(rng)
    total = 0.0
    for n in range(len(q.mean)):
        C = q.covariance[q.patterns.label[n]]
        rotated = np.linalg.eigh(C)  # in its eigenbasis the divergence is a sum of scalar ones
        mean = rotated.eigenvectors.T @ q.mean[n]
        total += sum(scalar_kl(m, v, 1.0) for m, v in zip(mean, rotated.eigenvalues, strict=True))
    np.testing.assert_allclose(kl_z(stats), total, rtol=1e-6)


def scalar_kl(mean, variance, prior_precision):
    """KL(N(mean, variance) ‖ N(0, 1/precision)) by integration."""
    q, p = ss.norm(mean, np.sqrt(variance)), ss.norm(0, prior_precision**-0.5)
    low, high = q.ppf(1e-14), q.isf(1e-14)
    return quad(lambda x: q.pdf(x) * (q.logpdf(x) - p.logpdf(x)), low, high, epsabs=1e-11)[0]


@pytest.mark.parametrize("sparse", [False, True])
def test_kl_w_is_the_expected_divergence_from_the_prior(rng, sparse):
    _, _, state, _, _, _ = small(rng, sparse=sparse)
    view, w = state["a"], state["a"].weights
    total = 0.0
    for d in range(view.n_columns):
        S = weight_covariance(w, d)
        entropy = ss.multivariate_normal(w.mean[d], S).entropy()
        expected = sum(expected_log_prior(view, d, k, w.mean[d, k], S[k, k]) for k in range(len(S)))
        total -= entropy + expected
    np.testing.assert_allclose(kl_w(view), total, rtol=1e-6)


def expected_log_prior(view, d, k, mean, variance):
    """E log N(w | 0, 1/(γα)) over q(w) q(α) q(γ), each by integration."""
    alpha = gamma_moments(view.alpha.shape, view.alpha.rate[k])
    gamma = (1.0, 0.0)
    if view.gamma is not None:
        gamma = gamma_moments(view.gamma.shape, view.gamma.rate[d])
    square = quad_normal(lambda x: x**2, mean, variance)
    return 0.5 * (alpha[1] + gamma[1] - np.log(2 * np.pi) - alpha[0] * gamma[0] * square)


def gamma_moments(shape, rate):
    q = ss.gamma(float(np.max(shape)), scale=1 / float(rate))
    low, high = q.ppf(1e-14), q.isf(1e-14)
    return tuple(
        quad(lambda x, f=f: q.pdf(x) * f(x), low, high, epsrel=1e-11, limit=300)[0]
        for f in (lambda x: x, np.log)
    )


def quad_normal(f, mean, variance):
    q = ss.norm(mean, np.sqrt(variance))
    return quad(lambda x: q.pdf(x) * f(x), q.ppf(1e-15), q.isf(1e-15), epsrel=1e-11)[0]


def test_gamma_kl_against_integration():
    q, p = Gamma(np.array([3.0, 50.0]), np.array([2.0, 9.0])), Gamma(np.array(0.7), np.array(0.4))
    expected = 0.0
    for shape, rate in zip(q.shape, q.rate, strict=True):
        a, b = ss.gamma(shape, scale=1 / rate), ss.gamma(0.7, scale=1 / 0.4)
        expected += quad(
            lambda x, a=a, b=b: a.pdf(x) * (a.logpdf(x) - b.logpdf(x)),
            a.ppf(1e-15),
            a.isf(1e-15),
            epsrel=1e-11,
            limit=300,
        )[0]
    np.testing.assert_allclose(q.kl(p), expected, rtol=1e-6)


def test_gamma_moments_against_integration():
    q = Gamma(np.array([4.0]), np.array([3.0]))
    mean, log = gamma_moments(q.shape, q.rate[0])
    np.testing.assert_allclose([q.mean[0], q.mean_log[0]], [mean, log], rtol=1e-8)
    inverse = quad(lambda x: ss.gamma(4.0, scale=1 / 3.0).pdf(x) / x, 0, np.inf)[0]
    np.testing.assert_allclose(q.mean_inverse[0], inverse, rtol=1e-6)


def test_entropy_bias_is_that_of_a_normal(rng):
    _, _, state, _, _, _ = small(rng)
    w = state["a"].weights
    expected = sum(ss.norm(0, np.sqrt(v)).entropy() for v in w.bias_variance)
    np.testing.assert_allclose(entropy_bias(w), expected, rtol=1e-10)


def test_bound_is_the_exact_evidence_when_the_weights_are_known(rng):
    """With w and τ known, q(z) is exact given b; for one column per sample mean-field is too.

    A column that no factor explains (w = 0) has the closed evidence of a normal with a flat
    mean and a Gamma precision known almost surely.
    """
    y = rng.standard_normal((9, 1))
    engine, state, Z = core([y], n_factors=1)
    view = state["0"]
    big = 1e9
    tau = Gamma(np.array([big]), np.array([big / 2.0]))  # τ = 2
    alpha = Gamma(np.array(big), np.array([1.0]))  # w = 0
    from dataclasses import replace

    view = replace(view, tau=tau, tau_prior=tau, alpha=alpha, alpha_prior=alpha)
    for _ in range(3):
        stats, Z = engine.sweep({"0": view}, Z)
        views = centred(stats)
        (view,) = global_step({"0": view}, views).values()
    bound = elbo({"0": view}, stats, views).total
    # ∫ Π N(y_n | b, 1/2) db
    n, c = 9, ((y - y.mean()) ** 2).sum()
    evidence_ = -0.5 * (n - 1) * np.log(2 * np.pi / 2) - 0.5 * np.log(n) - 0.5 * 2 * c
    np.testing.assert_allclose(bound, evidence_, rtol=1e-6)


def test_bound_is_below_the_exact_evidence_and_close(rng):
    """One column, one factor: the exact evidence by integration over w, τ and α is above."""
    y = 1.5 * rng.standard_normal(6)
    engine, state, Z = core([y[:, None]], n_factors=1)
    from dataclasses import replace

    prior = Gamma(np.array(2.0), np.array([2.0]))
    tau_prior = Gamma(np.array([2.0]), np.array([2.0]))
    state = {"0": replace(state["0"], alpha_prior=prior, tau_prior=tau_prior)}
    for _ in range(400):
        stats, Z = engine.sweep(state, Z)
        views = centred(stats)
        state = global_step(state, views)
    bound = elbo(state, stats, views).total
    exact = exact_log_evidence(y)
    assert bound <= exact + 1e-9
    assert exact - bound < 1.5


def exact_log_evidence(y):
    """y_n ~ N(b, w² + 1/τ), b flat, w ~ Student (α integrated), τ ~ Gamma(2, 2)."""
    n, c = len(y), ((y - y.mean()) ** 2).sum()

    def joint(u, v):
        s = u * u + 1 / v
        log = -0.5 * (n - 1) * math.log(2 * math.pi * s) - 0.5 * math.log(n) - 0.5 * c / s
        # N(0, 1/α), α ~ Gamma(2, 2) is a Student with 4 degrees of freedom
        student = 0.375 * (1 + u * u / 4) ** -2.5
        return math.exp(log) * 2 * student * 4 * v * math.exp(-2 * v)

    inner = lambda u: quad(lambda v: joint(u, v), 0, 40, epsrel=1e-9, limit=200)[0]  # noqa: E731
    return np.log(quad(inner, 0, 200, epsrel=1e-8, limit=200)[0])
