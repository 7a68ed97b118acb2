"""Sums and covariances of columns with holes of their own, worked out some columns at a time."""

import numpy as np
import pytest

from kofa import Binary, FactorModel, Real
from kofa.inference import pattern_sums
from kofa.inference.pattern_sums import PatternMeans, PatternSums


def test_sums_and_means_are_those_of_the_rows(rng):
    having, numbers = rng.random((6, 40)) < 0.7, rng.standard_normal((6, 3))
    having[0] = True
    whole = having.T.astype(float) @ numbers
    sums = PatternSums((having,), (numbers,))
    np.testing.assert_allclose(sums[5:9], whole[5:9])
    np.testing.assert_allclose((2.0 * whole) + sums, 3.0 * whole)
    n, shift, R = having.sum(axis=0).astype(float), rng.standard_normal(3), np.eye(3)[::-1]
    means = PatternMeans(sums, (np.ones(6),), n)
    mean = whole / n[:, None]
    np.testing.assert_allclose(np.asarray(means.less(shift) @ R), (mean - shift) @ R)
    np.testing.assert_allclose(np.asarray(means - 0.5 * means), 0.5 * mean)
    np.testing.assert_allclose(means.keep(np.array([2, 0]))[3:], mean[3:, [2, 0]])


@pytest.mark.parametrize("sparse", [False, True])
def test_a_fit_is_the_same_where_no_sums_are_kept(rng, monkeypatch, sparse):
    Y = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 80))
    Y += 0.3 * rng.standard_normal(Y.shape)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    fits = []
    for small in (2**19, 0):
        monkeypatch.setattr(pattern_sums, "_SMALL", small)
        fits.append(FactorModel({"y": Real(sparse=sparse)}, n_factors=6).fit({"y": Y}))
    kept, not_kept = fits
    assert kept.n_iter_ == not_kept.n_iter_
    np.testing.assert_allclose(not_kept.lower_bounds_, kept.lower_bounds_, rtol=1e-7)
    a, b = (np.asarray(fit.reconstruct({"y": Y})["y"]) for fit in fits)
    np.testing.assert_allclose(a, b, atol=1e-5)


def test_other_views_beside_such_columns_are_the_same(rng, monkeypatch):
    """A complete table, one whose columns share their holes, and ones with holes."""
    Z = rng.standard_normal((30, 3))
    tables = {
        name: Z @ rng.standard_normal((3, d))
        for name, d in zip("abcd", (80, 5, 6, 40), strict=True)
    }
    tables = {name: y + 0.3 * rng.standard_normal(y.shape) for name, y in tables.items()}
    tables["d"] = (tables["d"] > 0).astype(float)
    for name in "ad":
        tables[name][rng.random(tables[name].shape) < 0.1] = np.nan
    tables["c"][:4, :2] = np.nan
    views = {"a": Real(), "b": Real(), "c": Real(), "d": Binary()}
    fits = []
    for small in (2**19, 0):
        monkeypatch.setattr(pattern_sums, "_SMALL", small)
        fits.append(FactorModel(views, n_factors=4, callback=lambda i: i.n_iter >= 6).fit(tables))
    kept, not_kept = fits
    np.testing.assert_allclose(not_kept.lower_bounds_, kept.lower_bounds_, rtol=1e-7)
    a, b = (np.asarray(fit.transform(tables)) for fit in fits)
    np.testing.assert_allclose(a, b, atol=1e-5)
