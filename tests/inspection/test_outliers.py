"""Planted outliers are found, and without them p-values are even."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import kofa


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    n, names = 300, [f"s{i}" for i in range(300)]
    z = rng.normal(size=(n, 2))

    def eta(d):
        return z @ rng.normal(size=(2, d))

    data = {
        "real": 10 * (eta(30) + rng.normal(size=(n, 30))),
        "positive": np.exp(eta(20) + rng.normal(size=(n, 20))),
        "binary": (1.5 * eta(25) + rng.normal(size=(n, 25)) > 0).astype(float),
        "count": rng.poisson(3 * np.log1p(np.exp(eta(15)))).astype(float),
    }
    data = {name: pd.DataFrame(table, index=names) for name, table in data.items()}
    data["real"].iloc[::4, :5] = np.nan
    label = np.argmax(3 * eta(3) + rng.normal(size=(n, 3)), axis=1)
    data["label"] = pd.Series(np.array(list("abc"))[label], index=names)
    views = {
        "real": kofa.Real(), "positive": kofa.Positive(), "binary": kofa.Binary(),
        "count": kofa.Count(), "label": kofa.Categorical(),
    }  # fmt: skip
    return kofa.FactorModel(views, n_factors=2).fit(data), data


def test_p_values_are_even_without_outliers(fitted):
    model, data = fitted
    table = model.outliers(data)
    assert list(table.columns) == ["sample", "view", "statistic", "p", "q"]
    assert (table.groupby("view").size() == 300).all()
    false = table.p.lt(0.05).groupby(table.view).mean()
    assert false[["real", "positive", "count"]].between(0.01, 0.09).all()
    assert (false[["binary", "label"]] < 0.07).all()  # on the safe side
    statistic = table.groupby("view").statistic.mean()
    assert statistic[["real", "positive"]].between(0.9, 1.1).all()
    assert (table.q >= table.p).all()
    assert table.q.min() > 1e-3


def test_planted_samples_are_found(fitted):
    model, data = fitted
    rng = np.random.default_rng(1)
    wrong = {name: table.copy() for name, table in data.items()}
    wrong["real"].iloc[7] = rng.permutation(data["real"].iloc[9].to_numpy())
    wrong["binary"].iloc[11] = 1 - data["binary"].iloc[11]
    table = model.outliers(wrong).set_index(["view", "sample"])
    assert table.p["real"].idxmin() == "s7"
    assert table.q["real", "s7"] < 0.01
    assert table.p["binary"].idxmin() == "s11"


def test_planted_entries_are_found(fitted):
    model, data = fitted
    wrong = {name: table.copy() for name, table in data.items()}
    wrong["real"].iloc[20, 6] += 150.0
    wrong["positive"].iloc[21, 4] *= np.exp(12)
    wrong["count"].iloc[22, 3] = 400
    table = model.outliers(wrong, by="entry")
    assert list(table.columns) == ["sample", "view", "feature", "value", "expected", "z"]
    assert table.z.abs().is_monotonic_decreasing
    found = table.set_index(["view", "sample", "feature"])
    for place in [("real", "s20", 6), ("positive", "s21", 4), ("count", "s22", 3)]:
        assert found.z[place] > 8
        assert found.value[place] == wrong[place[0]].loc[place[1], place[2]]
    assert abs(found.expected["real", "s20", 6] - data["real"].iloc[20, 6]) < 60
    assert len(model.outliers(data, by="entry")) < 60
    assert len(model.outliers(data, by="entry", threshold=1e9)) == 0


def test_residuals_have_unit_variance(fitted):
    model, data = fitted
    table = model.outliers(data, by="entry", threshold=0.0).groupby("view").z
    assert table.std()[["real", "positive"]].between(0.97, 1.03).all()
    assert table.std()[["binary", "count"]].between(0.8, 1.2).all()
    assert table.size()["label"] == 300  # the label that there is, not those that are not


def test_outputs_are_judged_by_their_prediction(rng):
    z = rng.normal(size=(200, 2))
    x = z @ rng.normal(size=(2, 20)) + 0.3 * rng.normal(size=(200, 20))
    y = z @ rng.normal(size=(2, 6)) + 0.5 * rng.normal(size=(200, 6))
    model = kofa.FactorModel(outputs=["y"]).fit({"x": x, "y": y})
    y[5] += 10.0
    table = model.outliers({"x": x, "y": y}).query("view == 'y'")
    assert table.set_index("sample").p.idxmin() == 5
    assert (table.p < 0.05).mean() < 0.12


def test_a_row_of_the_fit_is_judged_as_if_left_out():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 10))
    y = x[:, :4] @ rng.normal(size=(4, 30)) + rng.normal(size=(60, 30))
    some = range(0, 60, 6)

    def z_of_y(model, rows):
        table = model.outliers({"x": x[rows], "y": y[rows]}, by="entry", threshold=0.0)
        return table[table["view"] == "y"].sort_values(["sample", "feature"]).z.to_numpy()

    model = kofa.FactorModel().fit({"x": x, "y": y})
    inside = z_of_y(model, list(some))
    left_out = [
        z_of_y(kofa.FactorModel().fit({"x": x[rest], "y": y[rest]}), [i])
        for i in some
        for rest in [np.arange(60) != i]
    ]
    assert inside.std() == pytest.approx(np.concatenate(left_out).std(), rel=0.1)
    assert np.sqrt(np.mean((inside - np.concatenate(left_out)) ** 2)) < 0.2
    x = x + 0.01  # rows that are new
    assert z_of_y(model, list(some)).std() < 0.9 * inside.std()


def test_a_model_without_its_rows_does_not_know_them_again(rng, tmp_path):
    x = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 8)) + rng.normal(size=(50, 8))
    model = kofa.FactorModel().fit({"x": x}, predict=["x"])
    model.save(tmp_path / "m.kofa", rows=False)
    kept = kofa.load(tmp_path / "m.kofa")
    asked = {"data": {"x": x}, "by": "entry", "threshold": 0.0}
    assert kept.outliers(**asked).z.std() < model.outliers(**asked).z.std()


def test_kernels_have_samples_and_no_entries(rng):
    x = rng.normal(size=(60, 2))
    model = kofa.FactorModel({"x": kofa.Real(kernel="rbf")}, tol=1e-2).fit({"x": x})
    assert len(model.outliers({"x": x})) == 60
    assert len(model.outliers({"x": x}, by="entry", threshold=0.0)) == 0


def test_errors(fitted):
    model, data = fitted
    with pytest.raises(kofa.DeclarationError, match="xpected by to be 'sample' or 'entry'"):
        model.outliers(data, by="entries")
    with pytest.raises(kofa.DeclarationError, match="threshold"):
        model.outliers(data, by="entry", threshold=-1)


@pytest.mark.parametrize("by", ["sample", "entry"])
def test_many_samples_are_looked_at_block_by_block(by):
    rng = np.random.default_rng(0)
    z, W = rng.normal(size=(60_000, 2)), rng.normal(size=(2, 40))
    x = z @ W + rng.normal(size=(60_000, 40))
    model = kofa.FactorModel({"x": kofa.Real()}, n_factors=2).fit({"x": x[:500]})
    tracemalloc.start()
    model.outliers({"x": x}, by=by)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * x.nbytes  # the table, and residuals of a block
