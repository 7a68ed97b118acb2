"""Kernel formulas and the frozen map."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import laplacian_kernel, nan_euclidean_distances, rbf_kernel

import kofa
from kofa.kernels import KernelMap, as_kernel
from kofa.scaling import Scaling


def test_formulas_agree_with_scikit_learn(rng):
    X, V = rng.standard_normal((5, 3)), rng.standard_normal((4, 3))
    np.testing.assert_allclose(kofa.RBF(width=2.0)(X, V), rbf_kernel(X, V, gamma=1 / 8))
    np.testing.assert_allclose(kofa.Laplacian(width=2.0)(X, V), laplacian_kernel(X, V, gamma=0.5))


def test_distances_with_holes_agree_with_scikit_learn(rng):
    X, V = rng.standard_normal((6, 4)), rng.standard_normal((5, 4))
    X[0, 1] = X[2, 3] = V[1, 0] = np.nan
    expected = nan_euclidean_distances(X, V, squared=True)
    np.testing.assert_allclose(kofa.RBF().distance(X, V), expected)
    k = kofa.Laplacian().distance(X, V)
    np.testing.assert_allclose(k[0, 0], np.nansum(np.abs(X[0] - V[0])) * 4 / 3)


def test_samples_without_a_shared_feature_have_an_unknown_kernel():
    X, V = np.array([[1.0, np.nan]]), np.array([[np.nan, 1.0], [1.0, 1.0]])
    assert np.isnan(kofa.RBF(width=1.0)(X, V)[0, 0])
    assert kofa.RBF(width=1.0)(X, V)[0, 1] == 1.0


@pytest.mark.parametrize("kernel", [kofa.RBF(), kofa.Laplacian(), kofa.RBF("median")])
def test_default_width_is_the_median_distance(rng, kernel):
    V = rng.standard_normal((30, 4))
    distance = kernel.distance(V, V)[np.triu_indices(30, 1)]
    power = 0.5 if isinstance(kernel, kofa.RBF) else 1.0
    assert kernel.resolve(V).width == pytest.approx(np.median(distance) ** power)


@pytest.mark.parametrize("kernel", [kofa.RBF(), kofa.Laplacian()])
def test_slope_is_the_derivative_in_log_width(rng, kernel):
    distance = rng.random((4, 4)) * 3
    up, down = (kernel.profile(distance.copy(), 2.0 * np.exp(h)) for h in (1e-6, -1e-6))
    np.testing.assert_allclose(kernel.slope(distance, 2.0), (up - down) / 2e-6, rtol=1e-6)


def test_map_centres_and_scales_the_training_kernel(rng):
    X = rng.standard_normal((40, 3))
    kernel = KernelMap.fit("x", kofa.RBF(), Scaling.identity(3), X, np.arange(40))
    k = kernel.encode(X)
    np.testing.assert_allclose(k.mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(k.mean(axis=1), 0.0, atol=1e-10)
    np.testing.assert_allclose(np.mean(k**2), 1.0, rtol=1e-10)


def test_map_of_a_row_without_data_is_missing(rng):
    X = rng.standard_normal((10, 3))
    kernel = KernelMap.fit("x", kofa.RBF(), Scaling.identity(3), X, np.arange(10))
    new = X.copy()
    new[4] = np.nan
    assert np.isnan(kernel.encode(new)[4]).all()
    np.testing.assert_allclose(
        np.delete(kernel.encode(new), 4, 0), np.delete(kernel.encode(X), 4, 0)
    )


def test_identical_rows_have_a_zero_map():
    X = np.ones((6, 2))
    kernel = KernelMap.fit("x", kofa.RBF(), Scaling.identity(2), X, np.arange(6))
    np.testing.assert_allclose(kernel.encode(X), 0.0, atol=1e-12)


def test_kernels_by_name():
    assert as_kernel("rbf", "x") == kofa.RBF()
    assert as_kernel(kofa.Linear, "x") == kofa.Linear()
    with pytest.raises(kofa.DeclarationError, match=r"View 'x'.*'rbff'"):
        as_kernel("rbff", "x")
    with pytest.raises(kofa.DeclarationError, match=r"View 'x'.*width.*-1"):
        as_kernel(kofa.RBF(width=-1), "x")
    with pytest.raises(kofa.DeclarationError, match=r"View 'x'.*callable"):
        as_kernel(3, "x")


def test_distances_far_from_zero(rng):
    X = rng.standard_normal((20, 2))
    near, far = (kofa.RBF(width=1.0)(X + offset, X + offset) for offset in (0.0, 1e8))
    np.testing.assert_allclose(near, far, atol=1e-6)
