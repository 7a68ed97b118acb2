"""Commands that read and write Parquet files block by block."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import kofa
from commands import error, run
from kofa.cli import plan
from kofa.data import stored
from kofa.files import Reading, open_file, read_file
from kofa.results import prediction

pytest.importorskip("pyarrow")


@pytest.fixture
def folder(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "_AT_ONCE", 100)
    monkeypatch.setattr(prediction, "_PART", 1)
    monkeypatch.setattr(prediction, "_ROWS_AT_A_TIME", 32)
    names = pd.Index([f"s{i}" for i in range(90)], name="id")
    z = rng.normal(size=(90, 2))
    x = pd.DataFrame(z @ rng.normal(size=(2, 4)), names, list("abcd"))
    (x + 0.3 * rng.normal(size=x.shape)).to_parquet(tmp_path / "x.parquet")
    y = pd.DataFrame(z[:, :1], names, ["y"])
    y.to_csv(tmp_path / "y.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_fit_and_predict_block_by_block(folder, monkeypatch):
    views = "--view x=x.parquet --view y=y.csv --outputs y"
    run(f"fit {views} --engine memory -o memory.kofa")

    def not_whole(path, reading):
        assert path.suffix != ".parquet"
        return read_file(path, reading)

    monkeypatch.setattr(plan, "read_file", not_whole)
    shown = run(f"fit {views} --engine disk -o disk.kofa").output
    assert "90" in shown
    one, other = (kofa.load(folder / f"{name}.kofa") for name in ("memory", "disk"))
    assert other.lower_bound_ == pytest.approx(one.lower_bound_, rel=1e-8)
    assert "90 samples, 1 column" in run("predict disk.kofa --view x=x.parquet -o y.parquet").output
    found = pd.read_parquet("y.parquet")
    expected = other.predict({"x": pd.read_parquet("x.parquet")})
    pd.testing.assert_frame_equal(found, expected)
    run("transform disk.kofa --view x=x.parquet -o z.parquet")
    assert pd.read_parquet("z.parquet").shape == (90, other.n_factors_)


def test_rows_in_single_precision(folder):
    views = "--view x=x.parquet --view y=y.csv --outputs y"
    run(f"fit {views} -o double.kofa")
    run(f"fit {views} --dtype float32 -o single.kofa")
    double, single = (kofa.load(folder / f"{name}.kofa") for name in ("double", "single"))
    assert (double.dtype, single.dtype) == ("float64", "float32")
    x = pd.read_parquet("x.parquet")
    np.testing.assert_allclose(single.predict({"x": x}), double.predict({"x": x}), atol=1e-3)
    study = '[model]\ndtype = "float32"\nmax_iter = 2000\n[views.x]\nfile = "x.parquet"\n'
    (folder / "study.toml").write_text(study, encoding="utf-8")
    run("fit study.toml -o study.kofa")
    assert kofa.load(folder / "study.kofa").dtype == "float32"
    assert "'float64' or 'float32'" in error(f"fit {views} --dtype double -o other.kofa", 2)


def test_files_that_are_read_whole(folder):
    table = open_file(folder / "x.parquet", Reading(columns=["b", "a"]))
    whole = read_file(folder / "x.parquet", Reading(columns=["b", "a"]))
    assert table.index.equals(whole.index)
    np.testing.assert_array_equal(np.asarray(table.values), whole)
    assert open_file(folder / "x.parquet", Reading(values="labels")) is None
    assert open_file(folder / "x.parquet", Reading(missing=["-9"])) is None
    assert open_file(folder / "y.csv", Reading()) is None
    pd.DataFrame({"id": ["s1", "s2"], "a": ["1", "2"]}).to_parquet(folder / "words.parquet")
    assert open_file(folder / "words.parquet", Reading()) is None


def test_a_sample_that_occurs_twice(folder):
    frame = pd.read_parquet("x.parquet")
    pd.concat([frame, frame.iloc[:1]]).to_parquet("twice.parquet")
    assert "'s0' occurs twice" in error("fit --view x=twice.parquet --engine disk -o m.kofa")
    assert not (folder / "m.kofa").exists()
