"""Factors with one another, and with those of another fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import kofa
from kofa.inspection import agreement, correlate

SAMPLES = [f"s{i}" for i in range(60)]


@pytest.fixture
def factors():
    z = np.random.default_rng(0).standard_normal((60, 11))
    return pd.DataFrame(z, SAMPLES, [f"f{k}" for k in range(11)])


def test_correlations_are_those_of_numpy(factors):
    table = correlate(factors)
    assert list(table.columns) == ["factor", "other", "r"]
    square = table.set_index(["factor", "other"])["r"].unstack(sort=False)
    assert square.to_numpy() == pytest.approx(np.corrcoef(factors.to_numpy().T))
    assert list(square.index) == list(square.columns) == list(factors.columns)


def test_correlations_of_what_is_there():
    z = np.array([[1.0, 2.0, 5.0], [2.0, np.nan, 5.0], [3.0, 6.0, 5.0], [5.0, 1.0, 5.0]])
    square = correlate(z).set_index(["factor", "other"])["r"].unstack(sort=False).to_numpy()
    assert square[0, 1] == pytest.approx(np.corrcoef(z[[0, 2, 3], :2].T)[0, 1])
    assert np.isnan(square[2]).all()
    assert np.isnan(square[:, 2]).all()


def test_correlations_are_finite_on_any_scale():
    z = np.random.default_rng(1).standard_normal((30, 2))
    r = correlate(z)["r"]
    for scale in (1e-200, 1e200):
        assert correlate(z * scale)["r"].tolist() == pytest.approx(r.tolist())


def test_the_same_factors_are_found_in_another_order(factors):
    rng = np.random.default_rng(2)
    order, signs = rng.permutation(11), rng.choice([-1.0, 1.0], 11)
    other = factors.iloc[:, order] * signs + 0.1 * rng.standard_normal((60, 11))
    other.columns = [f"g{k}" for k in order]
    table = agreement(factors, other.iloc[::-1].iloc[:50])
    assert table["factor"].tolist() == [f"f{k}" for k in range(11)]
    assert table["matched"].tolist() == [f"g{k}" for k in range(11)]
    assert (np.sign(table["r"]) == signs[np.argsort(order)]).all()
    assert table["r"].abs().min() > 0.95


def test_the_sum_is_the_largest_not_each_pair():
    """Taking the best pair first would leave .0 for the other."""
    rng = np.random.default_rng(3)
    z, _ = np.linalg.qr(rng.standard_normal((50, 3)))
    z = z - z.mean(axis=0)
    first = np.column_stack([z[:, 0], z[:, 0] + 0.5 * z[:, 1]])
    second = np.column_stack([z[:, 0] + 0.45 * z[:, 1], z[:, 0] + 0.1 * z[:, 2]])
    table = agreement(first, second)
    r = np.abs(np.corrcoef(first.T, second.T)[:2, 2:])
    best = max(r[0, 0] + r[1, 1], r[0, 1] + r[1, 0])
    assert table["r"].abs().sum() == pytest.approx(best)


@pytest.mark.parametrize("n", [3, 5])
def test_left_over_factors_have_nan(factors, n):
    table = agreement(factors.iloc[:, :4], factors.iloc[:, :n])
    matched = min(4, n)
    assert table["r"][:matched].tolist() == pytest.approx([1.0] * matched)
    assert len(table) == max(4, n)
    last = table.iloc[-1]
    assert np.isnan(last["r"])
    assert pd.isna(last["matched" if n < 4 else "factor"])
    assert last["factor" if n < 4 else "matched"] == ("f3" if n < 4 else "f4")


def test_names_stay_what_they_are():
    z = pd.DataFrame(np.random.default_rng(4).standard_normal((20, 2)), columns=[1, 2])
    table = agreement(z, z[[2]])
    assert table["matched"].tolist()[1] == 2
    assert isinstance(table["matched"].tolist()[1], int)


def test_constant_factors_match_none(factors):
    table = agreement(factors.iloc[:, :2].assign(f1=1.0), factors.iloc[:, :2])
    assert table["factor"].tolist()[:2] == ["f0", "f1"]
    assert pd.isna(table["matched"][1])
    assert (pd.isna(table["factor"][2]), table["matched"][2]) == (True, "f1")


def test_no_common_sample_is_an_error(factors):
    with pytest.raises(kofa.DataError) as error:
        agreement(factors, factors.set_axis(range(60)))
    assert str(error.value) == (
        "second: expected samples of first but none is the same: there are 's0', 's1', … (60 in "
        "all), here 0, 1, … (60 in all); give both the same names of samples as index."
    )
