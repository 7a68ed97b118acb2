"""Learning widths from outputs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

import kofa
from kofa.learning import Source, _patterns, learn_widths, marginal_likelihood


def problem(rng, holes):
    X = rng.standard_normal((25, 3))
    Y = np.sin(X[:, :2]) + 0.1 * rng.standard_normal((25, 2))
    if holes:
        Y[:5, 0] = np.nan
    kernels = [kofa.RBF(), kofa.Laplacian(), kofa.Linear()]
    sources = [Source.of(k, X, X) for k in kernels]
    theta = np.array([0.2, 0.7, 0.0, -0.3, 0.1, -1.0, -1.5, -2.0])
    return sources, np.nan_to_num(Y), _patterns(Y), theta


@pytest.mark.parametrize("holes", [False, True])
def test_gradient_matches_finite_differences(rng, holes):
    sources, Y, observed, theta = problem(rng, holes)
    value = lambda t: marginal_likelihood(t, sources, Y, observed)[0]  # noqa: E731
    gradient = marginal_likelihood(theta, sources, Y, observed)[1]
    numerical = approx_fprime(theta, value, 1e-6)
    np.testing.assert_allclose(gradient, numerical, rtol=1e-4, atol=1e-4)


def test_value_is_the_gaussian_log_density(rng):
    sources, Y, observed, theta = problem(rng, holes=False)
    H = np.eye(25) - 1 / 25
    K = sum(
        v * s.evaluate(w)[0]
        for s, w, v in zip(sources, np.exp(theta[:3]), np.exp(theta[3:6]), strict=True)
    )
    expected = sum(
        multivariate_normal(np.zeros(25), H @ K @ H + noise * np.eye(25)).logpdf(H @ y)
        for y, noise in zip(Y.T, np.exp(theta[6:]), strict=True)
    )
    np.testing.assert_allclose(marginal_likelihood(theta, sources, Y, observed)[0], expected)


@pytest.mark.parametrize("width", [0.7, 3.0])
def test_planted_width_is_found(rng, width):
    X = rng.standard_normal((250, 2))
    K = kofa.RBF(width=width)(X, X) + 1e-8 * np.eye(250)
    Y = np.linalg.cholesky(K) @ rng.standard_normal((250, 4)) + 0.05 * rng.standard_normal((250, 4))
    (found,) = learn_widths([kofa.RBF()], [X], [X], (Y - Y.mean(0)) / Y.std(0))
    assert found.width == pytest.approx(width, rel=0.3)


def test_fixed_widths_stay(rng):
    X = rng.standard_normal((20, 2))
    assert learn_widths([kofa.RBF(width=2.0)], [X], [X], X) == [kofa.RBF(width=2.0)]
