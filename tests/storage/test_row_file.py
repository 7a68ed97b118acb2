"""Predictions that are written block by block: the same as those that are returned."""

from __future__ import annotations

import os
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import kofa
from kofa.data import stored
from kofa.results import prediction

VIEWS = {"x": kofa.Real(), "y": kofa.Real(), "c": kofa.Categorical()}


@pytest.fixture(autouse=True)
def in_parts(monkeypatch):
    monkeypatch.setattr(stored, "_AT_ONCE", 100)
    monkeypatch.setattr(prediction, "_PART", 1)
    monkeypatch.setattr(prediction, "_ROWS_AT_A_TIME", 32)


@pytest.fixture
def data(rng):
    z = rng.normal(size=(100, 2))
    x = z @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(100, 5))
    x[rng.random(x.shape) < 0.1] = np.nan
    return {"x": x, "y": z[:, :1] - z[:, 1:], "c": np.where(z[:, 0] > 0, "yes", "no")}


@pytest.fixture
def model(data):
    return kofa.FactorModel(VIEWS, outputs=["y", "c"], callback=lambda i: i.n_iter >= 5).fit(data)


def test_arrays(model, data, tmp_path):
    np.save(tmp_path / "x.npy", data["x"])
    given, out = {"x": kofa.open_table(tmp_path / "x.npy")}, tmp_path / "out.npy"
    asked = [
        (model.transform, {"n_factors": 2}),
        (model.predict, {"view": "y"}),
        (model.predict, {"view": "c"}),
        (model.predict_proba, {"view": "c"}),
        (model.reconstruct, {"view": "x"}),
    ]
    for method, options in asked:
        assert method(given, **options, out=out) == out
        np.testing.assert_array_equal(np.load(out), method({"x": data["x"]}, **options))
    assert sorted(os.listdir(tmp_path)) == ["out.npy", "x.npy"]


def test_tables_with_names(model, data, tmp_path):
    pytest.importorskip("pyarrow")
    names = pd.Index([f"s{i}" for i in range(100)], name="sample")
    frame, out = pd.DataFrame(data["x"], index=names), tmp_path / "out.parquet"
    model.transform({"x": frame}, out=out)
    pd.testing.assert_frame_equal(pd.read_parquet(out), model.transform({"x": frame}))
    model.predict({"x": frame}, "c", out=out)
    found, expected = pd.read_parquet(out), model.predict({"x": frame}, "c")
    assert found.index.equals(names)
    assert found.iloc[:, 0].tolist() == expected.tolist()
    model.predict({"x": data["x"]}, "y", out=out)
    np.testing.assert_array_equal(
        pd.read_parquet(out)["column_0"], model.predict({"x": data["x"]}, "y")[:, 0]
    )


def test_what_cannot_be_written(model, data, tmp_path):
    x = {"x": data["x"]}
    with pytest.raises(kofa.FileError, match=r"z\.txt: expected the name of an \.npy or a Parquet"):
        model.transform(x, out=tmp_path / "z.txt")
    with pytest.raises(kofa.FileError, match="no folder"):
        model.transform(x, out=tmp_path / "none" / "z.npy")
    with pytest.raises(kofa.DeclarationError, match="leave out return_std"):
        model.predict(x, "y", return_std=True, out=tmp_path / "z.npy")
    with pytest.raises(kofa.DeclarationError, match="name the view"):
        model.reconstruct(x, out=tmp_path / "z.npy")
    assert not os.listdir(tmp_path)


def fitted(data, columns=("u", "v"), labels=("no", "yes")):
    """A model of named tables, with an output of columns and one of labels."""
    z = data["y"][:, 0]
    c = pd.Series([labels[i] for i in np.digitize(z, [-0.5, 0.5][: len(labels) - 1])], name="c")
    tables = {"x": of_kind(data["x"], "pandas"), "y": pd.DataFrame(np.c_[z, z**2], columns=columns)}
    model = kofa.FactorModel(VIEWS, outputs=["y", "c"], callback=lambda i: i.n_iter >= 3)
    return model.fit(tables | {"c": c})


def of_kind(x, kind):
    if kind == "polars":
        return pytest.importorskip("polars").DataFrame(x, schema=list("abcde"))
    return pd.DataFrame(x, columns=list("abcde")) if kind == "pandas" else x


@pytest.fixture
def none_is_predicted(monkeypatch):
    """What is refused is refused before the first sample is predicted."""

    def parts(_):
        raise AssertionError("a sample is predicted")
        yield

    monkeypatch.setattr(prediction.Prediction, "parts", parts)


@pytest.mark.parametrize("kind", ["pandas", "array", "polars"])
@pytest.mark.parametrize("method", ["transform", "predict", "predict_proba"])
def test_no_samples_are_a_table_without_rows(data, tmp_path, kind, method):
    pytest.importorskip("pyarrow")
    model, options = fitted(data), {} if method == "transform" else {"view": "c"}
    given, out = {"x": of_kind(data["x"][:0], kind)}, tmp_path / "out.parquet"
    getattr(model, method)(given, **options, out=out)
    some = getattr(model, method)({"x": of_kind(data["x"], kind)}, **options, out=tmp_path / "p.pq")
    found, expected = pd.read_parquet(out), pd.read_parquet(some)
    assert not len(found)
    pd.testing.assert_series_equal(found.dtypes, expected.dtypes)


@pytest.mark.usefixtures("none_is_predicted")
def test_columns_that_have_one_name_as_words_are_refused(data, tmp_path):
    pytest.importorskip("pyarrow")
    model = fitted(data, columns=(1, "1"))
    with pytest.raises(kofa.FileError, match=r"out\.parquet: several columns .*'1'.*; rename"):
        model.predict({"x": of_kind(data["x"], "pandas")}, "y", out=tmp_path / "out.parquet")
    assert not os.listdir(tmp_path)


NAMES = {
    "words after numbers": [*range(99), "z"],
    "tuples": pd.Index([(i, "a") for i in range(100)], tupleize_cols=False),
    "levels of several types": pd.MultiIndex.from_product([["u", 2], range(50)]),
    "large numbers": [10**i for i in range(100)],
    "no Unicode": pd.Index([f"s{i}\ud800" for i in range(100)], dtype=object),
    "complex": pd.Index([complex(i, 1) for i in range(100)]),
}


@pytest.mark.usefixtures("none_is_predicted")
@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_names_of_samples_that_cannot_be_written_are_refused(model, data, tmp_path, names):
    pytest.importorskip("pyarrow")
    given = {"x": pd.DataFrame(data["x"]).set_axis(names, axis=0)}
    with pytest.raises(kofa.FileError, match=r"out\.parquet: .* names of samples:.*words"):
        model.transform(given, out=tmp_path / "out.parquet")
    assert not os.listdir(tmp_path)


@pytest.mark.usefixtures("none_is_predicted")
@pytest.mark.parametrize("kind", ["pandas", "array", "polars"])
@pytest.mark.parametrize("labels", [(1, "a"), (1, 2, "z"), (("a", 1), ("b", 2)), (1, 10**30)])
def test_labels_that_cannot_be_written_are_refused(data, tmp_path, kind, labels):
    pytest.importorskip("pyarrow")
    model, given = fitted(data, labels=labels), {"x": of_kind(data["x"], kind)}
    with pytest.raises(kofa.FileError, match=r"out\.parquet: a Parquet file .* labels:.*words"):
        model.predict(given, "c", out=tmp_path / "out.parquet")
    with pytest.raises(kofa.FileError, match=r"out\.npy: labels of this kind are objects"):
        model.predict(given, "c", out=tmp_path / "out.npy")
    assert not os.listdir(tmp_path)


LABELS = [
    (Decimal("1.5"), Decimal("100000.25"), Decimal(3)),  # of which blocks have other precisions
    (date(2020, 1, 1), date(2021, 1, 1)),
    (pd.Timestamp("2020"), pd.Timestamp("2021")),
    (b"a", b"b"),
    (False, True),
]


@pytest.mark.parametrize("kind", ["pandas", "array", "polars"])
@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: type(labels[0]).__name__)
def test_labels_of_all_kinds_are_written_as_they_are_returned(data, tmp_path, kind, labels):
    pytest.importorskip("pyarrow")
    model, given = fitted(data, labels=labels), {"x": of_kind(data["x"], kind)}
    out = model.predict(given, "c", out=tmp_path / "out.parquet")
    found = pd.read_parquet(out).iloc[:, 0].tolist()
    assert found == list(model.predict(given, "c"))


def test_a_file_stays_as_it_was_where_something_is_wrong(model, data, tmp_path, monkeypatch):
    out = model.transform({"x": data["x"]}, out=tmp_path / "z.npy")
    before, of_part = out.read_bytes(), prediction.Prediction.project

    def full(self):
        if 0 < self.samples.n < 32:  # the last part
            raise OSError(28, "No space left on device")
        return of_part(self)

    monkeypatch.setattr(prediction.Prediction, "project", full)
    with pytest.raises(kofa.FileError, match=r"z\.npy.*no space left"):
        model.transform({"x": data["x"]}, out=out)
    assert out.read_bytes() == before
    assert os.listdir(tmp_path) == ["z.npy"]
