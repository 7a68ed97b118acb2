"""Against independent implementations and planted truths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.decomposition import FactorAnalysis

import kofa
from conftest import planted


def activity(model):
    """Which factors are active in which views, as a sorted list of rows."""
    rows = np.array([(v.weights.mean**2).mean(axis=0) > 1e-3 for v in model.posterior_.values()]).T
    return sorted(map(tuple, rows.astype(int)))


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_planted_sharing_is_recovered(missing):
    views, truth = planted(0)
    rng = np.random.default_rng(100)
    held = [rng.random(y.shape) < missing for y in views]
    data = {
        f"v{m}": np.where(h, np.nan, y) for m, (y, h) in enumerate(zip(views, held, strict=True))
    }
    model = kofa.FactorModel(n_factors=25).fit(data)
    assert activity(model) == sorted(map(tuple, truth))
    if missing:
        # The factors have made all columns; what is imputed does not take that for granted.
        for filled, most in ((model.reconstruct(data), 0.508), (model.impute(data), 0.53)):
            error = np.concatenate(
                [(filled[f"v{m}"] - y)[h] for m, (y, h) in enumerate(zip(views, held, strict=True))]
            )
            assert np.sqrt(np.mean(error**2)) <= most


def test_one_view_is_factor_analysis():
    rng = np.random.default_rng(3)
    n, d, k = 5000, 12, 3
    noise = rng.uniform(0.3, 1.0, d)
    Y = rng.standard_normal((n, k)) @ rng.standard_normal((k, d)) + noise * rng.standard_normal(
        (n, d)
    )
    Y = Y / Y.std(axis=0)  # so that kofa's scaling changes nothing
    model = kofa.FactorModel(n_factors=k, max_iter=5000, tol=1e-9).fit({"y": Y})
    oracle = FactorAnalysis(n_components=k, svd_method="lapack", tol=1e-8, max_iter=10000).fit(Y)
    W = model.posterior_["y"].weights.mean
    assert np.rad2deg(subspace_angles(W, oracle.components_.T).max()) < 0.5
    np.testing.assert_allclose(
        model.posterior_["y"].tau.mean_inverse, oracle.noise_variance_, rtol=0.02
    )
    np.testing.assert_allclose(W @ W.T, oracle.components_.T @ oracle.components_, atol=0.02)


def test_interval_coverage_on_simulated_data():
    inside = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        Z = rng.standard_normal((400, 3))
        x = Z @ rng.standard_normal((3, 10)) + 0.7 * rng.standard_normal((400, 10))
        y = Z @ rng.standard_normal((3, 5)) + 0.7 * rng.standard_normal((400, 5))
        model = kofa.FactorModel(n_factors=8).fit({"x": x[:200], "y": y[:200]})
        mean, std = model.predict({"x": x[200:]}, "y", return_std=True)
        inside.append(np.abs(y[200:] - mean) < 1.645 * std)
    assert 0.87 <= np.mean(inside) <= 0.93


@pytest.mark.parametrize("kernel", [kofa.RBF(width=1.0), kofa.Laplacian(width=4.0)])
def test_interval_coverage_through_a_kernel(kernel):
    """Functions drawn from the kernel's own Gaussian process, width to be learnt."""
    inside = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-2, 2, (400, 2))
        root = np.linalg.cholesky(kernel(x, x) + 1e-8 * np.eye(400))
        y = root @ rng.standard_normal((400, 2)) + 0.3 * rng.standard_normal((400, 2))
        views = {"x": kofa.Real(kernel=type(kernel)()), "y": kofa.Real()}
        model = kofa.FactorModel(views, outputs=["y"]).fit({"x": x[:200], "y": y[:200]})
        mean, std = model.predict({"x": x[200:]}, "y", return_std=True)
        inside.append(np.abs(y[200:] - mean) < 1.645 * std)
    assert 0.87 <= np.mean(inside) <= 0.93
