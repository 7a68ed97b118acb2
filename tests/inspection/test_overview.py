"""What is measured of whom."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import kofa
from kofa.inspection import data_overview


@pytest.fixture
def data():
    rna = pd.DataFrame(np.ones((3, 4)), index=["u", "v", "w"])
    rna.iloc[1, 2:] = np.nan
    rna.iloc[2] = np.nan
    stage = pd.Series(["I", None, "II", "I"], index=["w", "v", "x", "u"])
    return {"rna": rna, "stage": stage}


def test_tables(data):
    views, samples = data_overview(data)
    assert views.to_dict("list") == {
        "view": ["rna", "stage"],
        "n_samples": [2, 3],
        "n_features": [4, 1],
        "missing": [0.25, 0.0],
    }
    assert samples.loc[["u", "v", "w", "x"]].to_numpy().tolist() == [[4, 1], [2, 0], [0, 1], [0, 1]]
    assert (samples.index.name, samples.columns.name) == ("sample", "view")


def test_it_agrees_with_fit():
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.standard_normal((30, 4)), [f"s{i}" for i in range(30)])
    y = x.iloc[10:, :2] + 1.0
    y = pd.concat([y, pd.DataFrame(rng.standard_normal((5, 2)), [f"t{i}" for i in range(5)])])
    model = kofa.FactorModel({"x": kofa.Real(), "y": kofa.Real()}, 2)
    factors = model.fit_transform({"x": x, "y": y})
    overview = data_overview({"x": x, "y": y})
    pd.testing.assert_index_equal(overview.samples.index, factors.index, check_names=False)
    assert overview.views["n_samples"].tolist() == [30, 25]


def test_arrays_and_polars_go_by_position():
    pl = pytest.importorskip("polars")
    x = np.array([[1.0, np.nan], [2.0, 3.0]])
    views, samples = data_overview({"x": x, "y": pl.DataFrame({"a": [None, "b"]})})
    assert samples.to_numpy().tolist() == [[1, 0], [2, 1]]
    assert samples.index.tolist() == [0, 1]
    assert views["missing"].tolist() == [0.25, 0.0]


def test_a_view_without_values():
    views, samples = data_overview({"x": np.ones((3, 2)), "y": np.full((3, 2), np.nan)})
    assert views["n_samples"].tolist() == [3, 0]
    assert views["missing"].tolist() == [0.0, 1.0]
    assert samples["y"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": [["a", "b"], ["c", "d"]]}, "View 'x', column 0: expected real numbers but got 'a'"),
        ({"x": [1.0, np.inf]}, "View 'x', column 0: expected finite numbers but got infinity"),
        ({"x": None}, "View 'x': expected a table but got None"),
        ({}, "Expected at least one view but got an empty dict"),
        (np.ones((2, 2)), "Expected a dict of view name → table but got ndarray; wrap a single"),
        (
            {"x": np.ones((2, 2)), "y": np.ones((3, 2))},
            "View 'y': expected the same samples in each view",
        ),
    ],
)
def test_errors_are_those_of_fit(given, message):
    with pytest.raises(kofa.DataError) as error:
        data_overview(given)
    assert str(error.value).startswith(message)
