"""Tables of polars in and out."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pytest

import kofa
from conftest import KINDS, mixed
from kofa.data.reading import read_table
from kofa.data.returning import restored
from kofa.data.samples import align
from kofa.data.tables import Samples, Table

pl = pytest.importorskip("polars")

NAMES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def arrays():
    """Every kind of view, with holes."""
    data = mixed(np.random.default_rng(3), n=80)
    for name in ("real", "positive", "binary", "count"):
        data[name][::9, 1] = np.nan
    data["label"][::7] = None
    return data


@pytest.fixture(scope="module")
def frames(arrays):
    whole = {"binary": pl.Int8, "count": pl.UInt32}
    frames = {
        name: pl.DataFrame(values, schema=NAMES, orient="row", nan_to_null=True)
        for name, values in arrays.items()
        if name != "label"
    }
    frames |= {name: frames[name].cast(dtype) for name, dtype in whole.items()}
    species = pl.Enum(["dog", "cat", "bee", "ant", "eel"])
    frames["label"] = pl.DataFrame({"species": pl.Series(arrays["label"].tolist(), dtype=species)})
    return {name: frames[name] for name in KINDS}


@pytest.fixture(scope="module")
def model(frames):
    return kofa.FactorModel(KINDS, n_factors=3, tol=0.1).fit(frames)


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pl.Series([1.5, None, float("nan")]), [1.5, np.nan, np.nan]),
        (pl.Series([1, None, 3], dtype=pl.Int8), [1, np.nan, 3]),
        (pl.Series([1, 2, 3], dtype=pl.UInt64), [1, 2, 3]),
        (pl.Series([True, None, False]), [1, np.nan, 0]),
        (pl.Series([Decimal("1.10"), None, Decimal("-3.27")]), [1.1, np.nan, -3.27]),
        (pl.Series([1.5, None, 2.0], dtype=pl.Float32), [1.5, np.nan, 2.0]),
        (pl.Series([1.5, None, 2], dtype=pl.Object), [1.5, np.nan, 2.0]),
    ],
    ids=lambda v: str(v.dtype) if hasattr(v, "dtype") else "",
)
def test_numbers_are_read_and_null_is_missing(column, expected):
    for data in (column, column.to_frame()):
        table = read_table("x", data)
        np.testing.assert_array_equal(table.values[:, 0], expected)
        assert table.samples is None


def test_names_of_columns_are_kept():
    assert read_table("x", pl.DataFrame({"u": [1], "v": [2.0]})).columns == ("u", "v")
    assert read_table("x", pl.Series("age", [1, 2])).columns == ("age",)


@pytest.mark.parametrize(
    ("column", "classes", "codes"),
    [
        (pl.Series(["v", None, "u"]), ["u", "v"], [1, np.nan, 0]),
        (pl.Series(["v", None, "u"], dtype=pl.Categorical), ["u", "v"], [1, np.nan, 0]),
        (pl.Series(["v", None, "u"], dtype=pl.Enum(["v", "w", "u"])), ["v", "u"], [0, np.nan, 1]),
        (pl.Series([3, None, 1], dtype=pl.Int16), [1, 3], [1, np.nan, 0]),
        (pl.Series([2.5, float("nan"), 1.0]), [1.0, 2.5], [1, np.nan, 0]),
        (pl.Series([True, None, False]), [False, True], [1, np.nan, 0]),
    ],
    ids=["String", "Categorical", "Enum", "Int16", "Float64", "Boolean"],
)
def test_labels_are_read(column, classes, codes):
    table = read_table("y", column, labels=True)
    assert table.classes.tolist() == classes
    np.testing.assert_array_equal(table.values[:, 0], codes)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["m", "f"], "got 'm'"),
        (pl.Series(["m", "f"], dtype=pl.Categorical), "got 'm'"),
        ([datetime.date(2020, 1, 1), None], r"got datetime.date\(2020"),
        ([[1.0], [2.0]], r"got \[1.0\]"),
    ],
    ids=["text", "categorical", "date", "list"],
)
def test_other_than_numbers_is_an_error_that_names_the_column(column, message):
    data = pl.DataFrame({"age": [1, 2], "sex": column})
    with pytest.raises(
        kofa.DataError, match=f"'x', column 'sex': expected real numbers.*{message}"
    ):
        read_table("x", data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pl.DataFrame({"a": [1.0, float("inf")]}), "'x', column 'a'.*infinity"),
        (pl.DataFrame({"a": [1.0]}).lazy(), "'x': expected a DataFrame.*LazyFrame; pass .collect"),
        (pl.DataFrame(), "'x': expected at least one column"),
    ],
    ids=["infinite", "lazy", "empty"],
)
def test_tables_that_cannot_be_used_are_errors(data, message):
    with pytest.raises(kofa.DataError, match=message):
        read_table("x", data)


def test_an_empty_column_is_named():
    data = {"x": pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": [None, None, None]})}
    with pytest.raises(kofa.DataError, match="'x', column 'b': all values are missing"):
        kofa.FactorModel().fit(data)


def test_several_columns_of_labels_are_an_error():
    data = pl.DataFrame({"a": ["u", "v"], "b": ["u", "v"]})
    with pytest.raises(kofa.DataError, match="'y': expected one column of labels but got 2"):
        read_table("y", data, labels=True)


# ---------------------------------------------------------------- alignment


def test_samples_go_by_position():
    x, y = pl.DataFrame({"a": [1.0, 2.0]}), pl.DataFrame({"b": [3.0, 4.0, 5.0]})
    with pytest.raises(kofa.DataError, match="'x' 2, 'y' 3"):
        align({"x": read_table("x", x), "y": read_table("y", y)})


def test_next_to_arrays_results_are_polars_and_next_to_pandas_they_are_pandas(frames, arrays):
    pd = pytest.importorskip("pandas")
    model = kofa.FactorModel({"real": kofa.Real(), "count": kofa.Count()}, n_factors=2, tol=1e-2)
    given = {"real": arrays["real"], "count": frames["count"]}
    Z = model.fit_transform(given)
    assert isinstance(Z, pl.DataFrame)
    filled = model.impute(given)
    assert filled["real"].columns == ["column_0", "column_1", "column_2", "column_3"]
    index = [f"s{i}" for i in range(len(Z))]
    named = model.transform({**given, "real": pd.DataFrame(arrays["real"], index)})
    assert named.index.tolist() == index
    np.testing.assert_allclose(named.to_numpy(), Z.to_numpy())
    filled = model.impute({**given, "real": pd.DataFrame(arrays["real"], index)})
    assert filled["count"].index.tolist() == index
    assert (filled["count"].dtypes == "int64").all()


# ---------------------------------------------------------------- results


def test_a_model_of_polars_is_that_of_arrays(arrays, model):
    same = kofa.FactorModel(KINDS, n_factors=3, tol=0.1).fit(arrays)
    # Only the order of the classes differs, that of the Enum against the alphabet.
    assert model.lower_bound_ == pytest.approx(same.lower_bound_, rel=1e-3)
    assert model.classes_["label"].tolist() == ["dog", "cat", "bee", "ant"]


def test_transform_gives_factors_by_name(model, frames, arrays):
    Z = model.transform(frames)
    assert isinstance(Z, pl.DataFrame)
    assert Z.columns == model.factor_names_
    np.testing.assert_allclose(Z.to_numpy(), model.transform(arrays))
    Z, covariance = model.transform(frames, return_cov=True)
    assert isinstance(Z, pl.DataFrame)
    assert isinstance(covariance, np.ndarray)


def test_fit_transform_gives_polars(frames):
    Z = kofa.FactorModel(tol=1e-2).fit_transform({"real": frames["real"]})
    assert isinstance(Z, pl.DataFrame)


def test_predictions_have_the_names_of_the_columns(model, frames):
    mean, std = model.predict(frames, "real", return_std=True)
    low, high = model.predict_quantiles(frames, "real", [0.1, 0.9])
    for table in (mean, std, low, high, model.predict(frames, "count")):
        assert isinstance(table, pl.DataFrame)
        assert table.columns == NAMES
        assert table.height == 80
    np.testing.assert_allclose(mean.to_numpy(), model.predict(frames, "real").to_numpy())


def test_labels_come_back_as_a_series(model, frames):
    labels = model.predict(frames, "label")
    assert isinstance(labels, pl.Series)
    assert labels.name == "species"
    assert set(labels) <= {"ant", "bee", "cat", "dog"}
    proba = model.predict_proba(frames, "label")
    assert proba.columns == ["dog", "cat", "bee", "ant"]
    np.testing.assert_allclose(proba.sum_horizontal(), 1.0)


def test_reconstruct_gives_every_view(model, frames):
    found = model.reconstruct(frames)
    assert {name: type(table) for name, table in found.items()} == {
        name: pl.Series if name == "label" else pl.DataFrame for name in KINDS
    }


def test_impute_keeps_dtypes_and_observed_values(model, frames):
    filled = model.impute(frames)
    for name, frame in frames.items():
        assert filled[name].schema == frame.schema
        assert filled[name].null_count().sum_horizontal().item() == 0
        for column in frame.columns:
            seen = frame[column].is_not_null()
            assert filled[name][column].filter(seen).equals(frame[column].filter(seen))


def test_impute_between_whole_numbers_gives_floats():
    rng = np.random.default_rng(0)
    z = rng.normal(size=60)
    x = pl.DataFrame({"a": np.round(9 * z).astype(int), "b": 9 * z, "c": np.round(9 * z) / 2})
    x = x.with_columns(pl.when(pl.int_range(60) < 5).then(None).otherwise("a").alias("a"))
    x = x.with_columns(pl.col("b").cast(pl.Float32), pl.col("c").cast(pl.Decimal(20, 1)))
    filled = kofa.FactorModel(tol=1e-2).fit({"x": x}).impute({"x": x})["x"]
    assert filled.dtypes == [pl.Float64, pl.Float32, pl.Decimal(20, 1)]
    assert filled["b"].equals(x["b"])
    assert filled["c"].equals(x["c"])


def test_fills_too_large_for_their_type_give_wider_floats():
    table = Table("x", np.zeros((2, 1)), columns=("a",), schema=(pl.Float32,))
    samples = Samples(2, None, {}, polars=True)
    small, large = (restored(np.array([[1.0], [x]]), table, samples) for x in (0.5, 1e39))
    assert small["a"].dtype == pl.Float32
    assert large["a"].to_list() == [1.0, 1e39]


@pytest.mark.filterwarnings("ignore:Holes of .* stay")
def test_holes_of_a_kernelized_view_stay_null():
    rng = np.random.default_rng(0)
    x = pl.DataFrame({"a": rng.normal(size=40), "b": rng.integers(0, 5, size=40)})
    x = x.with_columns(pl.when(pl.int_range(40) < 3).then(None).otherwise("b").alias("b"))
    model = kofa.FactorModel({"x": kofa.Real(kernel="rbf")}, n_factors=2, max_iter=20, tol=1e-1)
    assert model.fit({"x": x}).impute({"x": x})["x"].equals(x)


def test_columns_may_come_in_another_order_but_not_under_other_names(model, frames):
    other = frames | {"real": frames["real"].select(NAMES[::-1])}
    np.testing.assert_allclose(
        model.transform(other).to_numpy(), model.transform(frames).to_numpy()
    )
    other = frames | {"real": frames["real"].rename({"a": "z"})}
    with pytest.raises(kofa.DataError, match=r"'real', column 'a': .*but this one is missing"):
        model.transform(other)


def test_a_model_of_pandas_answers_polars():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 1)) + 0.1 * rng.normal(size=(50, 2))
    y = pd.Series(pd.Categorical(np.where(x[:, 0] > 0, "up", "down")), name="sign")
    views = {"x": kofa.Real(), "y": kofa.Categorical()}
    model = kofa.FactorModel(views, tol=1e-2).fit({"x": pd.DataFrame(x), "y": y})
    with pytest.raises(kofa.DataError, match=r"'x', column 0: .*but this one is missing"):
        model.predict({"x": pl.DataFrame(x, schema=["0", "1"])}, "y")
    # pandas counted the columns; names that both can have go through.
    model = kofa.FactorModel(views, tol=1e-2).fit(
        {"x": pd.DataFrame(x, columns=["a", "b"]), "y": y}
    )
    labels = model.predict({"x": pl.DataFrame(x, schema=["a", "b"])}, "y")
    assert labels.dtype == pl.String
    assert labels.name == "sign"


def test_labels_of_several_types_come_back_as_objects():
    rng = np.random.default_rng(0)
    x = pl.DataFrame(rng.normal(size=(50, 2)))
    y = pl.Series([1 if v > 0 else "no" for v in x[:, 0]], dtype=pl.Object)
    views = {"x": kofa.Real(), "y": kofa.Categorical()}
    model = kofa.FactorModel(views, tol=1e-2).fit({"x": x, "y": y})
    assert set(model.predict({"x": x}, "y").to_list()) == {1, "no"}


def test_the_callers_frames_do_not_change(model, frames):
    before = {name: frame.clone() for name, frame in frames.items()}
    model.impute(frames)
    model.predict(frames, "count")
    assert all(frames[name].equals(before[name]) for name in frames)


def test_tables_of_inspection_are_of_pandas(model):
    pd = pytest.importorskip("pandas")
    weights = model.weights("real")
    assert isinstance(weights, pd.DataFrame)
    assert weights.index.tolist() == NAMES


def test_a_model_of_polars_can_be_saved(model, frames, tmp_path):
    model.save(tmp_path / "m.kofa")
    loaded = kofa.load(tmp_path / "m.kofa")
    assert loaded.predict(frames, "label").equals(model.predict(frames, "label"))
    assert loaded.transform(frames).equals(model.transform(frames))


def test_a_fit_to_polars_can_be_continued(frames, tmp_path):
    given = {name: frames[name] for name in ("real", "label")}
    views = {"real": kofa.Real(), "label": kofa.Categorical()}
    path = tmp_path / "fit.checkpoint"
    fit = kofa.FactorModel(views, tol=1e-2, checkpoint=path, checkpoint_every=0.0).fit(given)
    again = kofa.FactorModel(views, tol=1e-2, checkpoint=path).fit(given, resume=True)
    assert again.lower_bound_ == fit.lower_bound_


def test_columns_that_have_one_name_as_words_are_refused(rng):
    z = rng.normal(size=(60, 1))
    pd = pytest.importorskip("pandas")
    tables = {
        "x": pd.DataFrame(z, columns=["column_0"]),
        "y": pd.DataFrame(np.c_[z, -z], columns=[1, "1"]),
    }
    model = kofa.FactorModel({"x": kofa.Real(), "y": kofa.Real()}, outputs=["y"]).fit(tables)
    with pytest.raises(kofa.DataError, match=r"Several columns would be called '1'.*; rename"):
        model.predict({"x": pl.DataFrame(z)}, "y")
