"""Predictions that are written block by block: the same as those that are returned."""

from __future__ import annotations

import os

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


def test_a_file_stays_as_it_was_where_something_is_wrong(model, data, tmp_path, monkeypatch):
    out = model.transform({"x": data["x"]}, out=tmp_path / "z.npy")
    before, of_part = out.read_bytes(), prediction.Prediction.project

    def full(self, known=None):
        if self.samples.n < 32:  # the last part
            raise OSError(28, "No space left on device")
        return of_part(self, known)

    monkeypatch.setattr(prediction.Prediction, "project", full)
    with pytest.raises(kofa.FileError, match=r"z\.npy.*no space left"):
        model.transform({"x": data["x"]}, out=out)
    assert out.read_bytes() == before
    assert os.listdir(tmp_path) == ["z.npy"]
