"""The functions of tables as methods of a model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import kofa
from kofa import inspection

NAMES = [f"s{i}" for i in range(120)]
GENES = [f"g{j}" for j in range(60)]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(120, 2))
    w = 0.3 * rng.normal(size=(2, 60))
    w[0, :12] += 1.0
    x = z @ w + 0.5 * rng.normal(size=(120, 60))
    y = z @ rng.normal(size=(2, 5)) + 0.5 * rng.normal(size=(120, 5))
    x, y = pd.DataFrame(x, NAMES, GENES), pd.DataFrame(y, NAMES).iloc[:100].copy()
    y.iloc[:10, 0] = np.nan
    return {"x": x, "y": y}


@pytest.fixture(scope="module")
def model(data):
    return kofa.FactorModel(n_factors=2).fit(data)


@pytest.fixture(scope="module")
def without_samples(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "m.kofa"
    model.save(path, samples=False)
    return kofa.load(path)


def test_factors_are_those_of_the_fit_or_of_data(model, data, tmp_path):
    kept = model.factors()
    assert kept.index.tolist() == NAMES
    pd.testing.assert_frame_equal(kept, model.transform(data), check_index_type=False)
    some = {name: table.iloc[:7] for name, table in data.items()}
    pd.testing.assert_frame_equal(model.factors(some), model.transform(some))
    kept.iloc[:] = 0.0
    assert model.factors().to_numpy().any()  # a table of its own
    model.save(tmp_path / "m.kofa")
    assert kofa.load(tmp_path / "m.kofa").factors().equals(model.factors())


def test_samples_without_names_have_positions(data):
    arrays = {"x": data["x"].to_numpy()}
    model = kofa.FactorModel(n_factors=2).fit(arrays).rename_factors(["age"])
    assert model.factors().index.tolist() == list(range(120))
    assert model.factors().columns.tolist() == ["age", "factor2"]
    age = pd.DataFrame({"years": np.arange(120.0)}, index=NAMES)  # matched by position
    assert model.associate(age).n.tolist() == [120, 120]
    assert set(model.associate(age).factor) == {"age", "factor2"}
    np.testing.assert_allclose(model.agreement(model).r, 1.0)
    new = pl.DataFrame(arrays["x"][:5])
    assert model.factors({"x": new}).shape == (5, 2)


def test_they_are_the_functions_of_tables(model, data):
    known = pd.DataFrame({"age": np.linspace(0, 1, 120)}, index=NAMES[::-1])
    factors = model.factors()
    assert model.correlate().equals(inspection.correlate(factors))
    assert model.associate(known).equals(inspection.associate(factors, known))
    assert model.associate(known, ranks=True).statistic[0] == "rho"
    assert model.associate(known, data).n.tolist() == [120, 120]
    other = kofa.FactorModel(n_factors=2).fit({"x": data["x"].iloc[20:]})
    assert model.agreement(other).equals(inspection.agreement(factors, other.factors()))
    assert model.agreement(other.factors()).equals(model.agreement(other))
    assert (model.agreement(other, {"x": data["x"]}).r.abs() > 0.95).all()


def test_feature_sets(model, data):
    sets = {"driven": GENES[:12], "others": GENES[20:40]}
    weights = model.weights("x", standardise=True)
    assert model.enrich("x", sets).equals(inspection.enrich(weights, sets))
    whole = model.enrich("x", sets, data=data)
    naive = inspection.enrich(weights, sets, data=data["x"], factors=model.transform(data))
    pd.testing.assert_frame_equal(whole, naive)
    first = model.enrich("x", sets, factor="factor1", data=data, n_leading=3)
    assert set(first.factor) == {"factor1"}
    assert len(first.leading[0]) == 3
    assert whole.sort_values("p").set.iloc[0] == "driven"


def test_feature_sets_need_features(model, data, rng):
    with pytest.raises(kofa.DataError, match=r"View 'x': expected data of this view.*'y'"):
        model.enrich("x", {"a": GENES[:12]}, data={"y": data["y"]})
    view = kofa.Real(kernel="rbf")
    kernel = kofa.FactorModel({"x": view}, tol=1.0).fit({"x": rng.normal(size=(30, 2))})
    with pytest.raises(kofa.DataError, match=r"View 'x'.*weights of samples.*kernel='linear'"):
        kernel.enrich("x", {"a": [0, 1]})


def test_what_was_measured(model, data):
    kept, given = model.data_overview(), inspection.data_overview(data)
    assert kept.views.equals(given.views)
    pd.testing.assert_frame_equal(kept.samples, given.samples, check_index_type=False)


@pytest.mark.parametrize("name", ["factors", "correlate", "data_overview"])
def test_a_model_without_samples_says_so(without_samples, data, name):
    with pytest.raises(kofa.DataError, match=r"keeps no samples.*samples=False.*data[=_]"):
        getattr(without_samples, name)()
    assert without_samples.factors(data).shape == (120, 2)
    assert len(without_samples.variance_explained()) == 4  # is kept
