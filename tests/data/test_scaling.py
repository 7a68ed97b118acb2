"""Standardising and back."""

from __future__ import annotations

import numpy as np
import pytest

from kofa.data.scaling import Scaling


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12, 1e200, 1e-200])
def test_any_scale_becomes_unit_and_comes_back(rng, size):
    x = size * (3 + rng.standard_normal((50, 4)))
    x[rng.random(x.shape) < 0.2] = np.nan
    scaling = Scaling.fit(x)
    encoded = scaling.encode(x)
    np.testing.assert_allclose(np.nanmean(encoded, axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(encoded, axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(scaling.decode(encoded), x, rtol=1e-12)


def test_constant_columns_become_zero():
    x = np.array([[0.1, 5.0], [0.1, 6.0], [0.1, 7.0]])
    assert np.all(np.abs(Scaling.fit(x).encode(x)[:, 0]) < 1e-12)


def test_one_spread_for_all_columns_keeps_their_ratios(rng):
    x = rng.standard_normal((80, 2)) * [1.0, 10.0]
    encoded = Scaling.fit(x, by_column=False).encode(x)
    np.testing.assert_allclose(np.mean(encoded**2), 1.0, rtol=1e-10)
    np.testing.assert_allclose(np.divide(*encoded.std(0)), np.divide(*x.std(0)), rtol=1e-10)


def test_constant_columns_are_marked_where_others_vary():
    x = np.array([[2.0, 5.0, np.nan], [2.0, 6.0, 3.0], [2.0, 7.0, np.nan]])
    np.testing.assert_array_equal(Scaling.fit(x, no_spread=0.0).spread > 0, [False, True, True])
    np.testing.assert_array_equal(Scaling.fit(x[:, :1], no_spread=0.0).spread, 1.0)
