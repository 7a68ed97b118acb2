"""Tables in files that are read block by block."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import tempfile

import numpy as np
import pandas as pd
import pytest

import kofa
from kofa.data import stored
from kofa.data.stored import FileRows, Stored
from kofa.engines import scratch
from kofa.errors import FileError
from kofa.files.opening import open_table
from kofa.files.reading import read_file


@pytest.fixture
def x(rng):
    z = rng.normal(size=(200, 2))
    return z @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(200, 5))


@pytest.fixture
def large(monkeypatch):
    """Tables and factors of a test count as large."""
    monkeypatch.setattr(stored, "_AT_ONCE", 150)
    monkeypatch.setattr(scratch, "_SMALL", 10)


def saved(path, array):
    np.save(path, array)
    return path


@pytest.mark.parametrize("dtype", [float, np.float32, np.int16])
def test_rows_of_npy_files(x, tmp_path, dtype):
    x = (10 * x).astype(dtype)
    rows = open_table(saved(tmp_path / "x.npy", x)).values
    for where in (slice(3, 50), np.array([7, 2, 2]), np.arange(200) > 190):
        np.testing.assert_array_equal(rows[where], x[where])
        assert rows[where].dtype == float
    both = open_table(saved(tmp_path / "a.npy", x[:80]), saved(tmp_path / "b.npy", x[80:]))
    assert both.shape == (200, 5)
    for where in (slice(70, 90), np.array([199, 0, 80])):
        np.testing.assert_array_equal(both.values[where], x[where])


def test_rows_of_parquet_files(x, tmp_path):
    frame = pd.DataFrame(x, [f"s{i}" for i in range(200)], list("abcde"))
    frame.iloc[3, 1] = np.nan
    frame["n"] = pd.array([None, *range(199)], dtype="Int64")
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=30)
    table = open_table(tmp_path / "x.parquet")
    assert table.columns == tuple("abcden")
    assert table.samples.tolist() == frame.index.tolist()
    np.testing.assert_array_equal(table.values[:], frame.to_numpy(dtype=float, na_value=np.nan))
    some = open_table(tmp_path / "x.parquet", columns=["c", "a"])
    np.testing.assert_array_equal(some.values[5:7], frame[["c", "a"]].to_numpy()[5:7])


@pytest.mark.parametrize("names", [["cohort", "patient"], [None, None], [None, "patient"]])
def test_samples_whose_names_have_several_parts(x, tmp_path, names):
    index = pd.MultiIndex.from_product([["u", "v"], range(100)], names=names)
    frame, path = pd.DataFrame(x, index, list("abcde")), tmp_path / "x.parquet"
    frame.to_parquet(path)
    table = open_table(path)
    assert table.columns == tuple("abcde")
    pd.testing.assert_index_equal(table.samples, pd.read_parquet(path).index)
    np.testing.assert_array_equal(table.values[:], x)
    frame.droplevel(0).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(FileError, match=r"other\.parquet: expected names of samples as in"):
        open_table(path, tmp_path / "other.parquet")
    with pytest.raises(FileError, match="name one of them with index"):
        read_file(path)
    if names == ["cohort", "patient"]:
        assert open_table(path, index="patient").columns == tuple("abcde")


@pytest.fixture(params=[True, False], ids=["open files have names", "open files have none"])
def temporary(request, tmp_path, monkeypatch):
    """The folder of temporary files, on systems of two kinds."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    if not request.param:
        monkeypatch.setattr("kofa.files.temporary._OPEN_FILES", "/none")
    return folder


def test_decoded_rows_are_gone_with_their_table(x, tmp_path, temporary):
    pd.DataFrame(x, columns=list("abcde")).to_parquet(tmp_path / "x.parquet")
    table = open_table(tmp_path / "x.parquet")
    again = pickle.loads(pickle.dumps(table))  # as a worker of joblib gets it
    for rows in (slice(3, 70), np.array([9, 2])):
        np.testing.assert_array_equal(again.values[rows], x[rows])
    del table, again
    gc.collect()
    assert not os.listdir(temporary)


KILLED = """
import sys, kofa, kofa.files.temporary
kofa.files.temporary._OPEN_FILES = sys.argv[2]
table = kofa.open_table(sys.argv[1])
print(table.shape, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_decoded_rows_are_gone_with_a_killed_process(x, tmp_path, temporary, end):
    path = tmp_path / "x.parquet"
    pd.DataFrame(x, columns=list("abcde")).to_parquet(path)
    command = [sys.executable, "-c", KILLED, str(path), kofa.files.temporary._OPEN_FILES]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"(200, 5)\n"
        running = os.listdir(temporary)
        open_table(path)  # takes nothing away from the other process
        gc.collect()
        assert os.listdir(temporary) == running
        getattr(process, end)()
    open_table(path)
    gc.collect()
    assert not os.listdir(temporary)


@pytest.mark.skipif(sys.platform == "win32", reason="files have names there")
def test_factors_on_disk_are_in_files_without_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert isinstance(scratch.on_disk((2**20 + 1, 1)), np.memmap)
    assert not os.listdir(tmp_path)


def test_a_temporary_folder_that_is_missing_is_an_error_with_a_cure(x, tmp_path, monkeypatch):
    pd.DataFrame(x, columns=list("abcde")).to_parquet(tmp_path / "x.parquet")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(FileError, match=r"none: No such file or directory; name a folder .*TMPDIR"):
        open_table(tmp_path / "x.parquet")
    with pytest.raises(FileError, match="TMPDIR"):
        scratch.on_disk((2**20 + 1, 1))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "none")])
    with pytest.raises(FileError, match=r"No usable temporary directory.*TMPDIR"):
        open_table(tmp_path / "x.parquet")


def test_files_that_are_no_table(x, tmp_path):
    words = tmp_path / "words.parquet"
    pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}).to_parquet(words, index=False)
    (tmp_path / "broken.npy").write_bytes(b"no array")
    (tmp_path / "broken.parquet").write_bytes(b"no table")
    columns = saved(tmp_path / "columns.npy", np.asfortranarray(x))
    cases = [
        ((words,), {}, "'b': expected numbers.*index"),
        ((words,), {"columns": ["z"]}, "'z'.*it has"),
        ((tmp_path / "broken.npy",), {}, r"broken\.npy.*numpy\.save"),
        ((tmp_path / "broken.parquet",), {}, r"broken\.parquet.*Parquet"),
        ((tmp_path / "none.npy",), {}, r"none\.npy"),
        ((columns,), {}, "ascontiguousarray"),
        ((tmp_path / "x.csv",), {}, r"x\.csv"),
        ((saved(tmp_path / "a.npy", x), saved(tmp_path / "b.npy", x[:, 1:])), {}, "same columns"),
        ((), {}, "name of a file"),
    ]
    for paths, options, message in cases:
        with pytest.raises(FileError, match=message):
            open_table(*paths, **options)


def test_a_file_that_became_shorter_is_named(x, tmp_path):
    path = saved(tmp_path / "x.npy", x)
    table = open_table(path)
    path.write_bytes(path.read_bytes()[:-100])
    for rows in (slice(150, 200), np.array([3, 199])):
        with pytest.raises(FileError, match=r"x\.npy.*expected 200 rows"):
            table.values[rows]


def test_parts_of_memmaps_are_read_as_they_are(x, tmp_path):
    whole = np.load(saved(tmp_path / "x.npy", x), mmap_mode="r")
    assert isinstance(FileRows.of_memmap(whole), Stored)
    for part in (whole[50:], whole[:, 1:], whole.T, np.asarray(whole)):
        assert FileRows.of_memmap(part) is None
    changed = np.load(tmp_path / "x.npy", mmap_mode="c")
    changed[0] = 1.0
    assert FileRows.of_memmap(changed) is None


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("kind", ["memmap", "npy", "parquet"])
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_fits_from_disk_are_those_from_memory(x, rng, tmp_path, kind, kernel):
    x[rng.random(x.shape) < 0.1] = np.nan
    x[:, 0] = rng.normal(size=200)  # no row is empty
    y = np.nan_to_num(x)[:, :1] + 0.1 * rng.normal(size=(200, 1))
    views = {"x": kofa.Real(kernel=kernel, landmarks=40 if kernel else "auto"), "y": kofa.Real()}
    options = {"outputs": ["y"], "callback": lambda i: i.n_iter >= 20}
    in_memory = kofa.FactorModel(views, engine="memory", **options).fit({"x": x, "y": y})
    path = saved(tmp_path / "x.npy", x)
    if kind == "memmap":
        given = np.load(path, mmap_mode="r")
    elif kind == "npy":
        given = open_table(path)
    else:
        pd.DataFrame(x, columns=list("abcde")).to_parquet(tmp_path / "x.parquet", index=False)
        given = open_table(tmp_path / "x.parquet")
    model = kofa.FactorModel(views, **options)
    Z = model.fit_transform({"x": given, "y": y})
    np.testing.assert_allclose(model.lower_bounds_, in_memory.lower_bounds_, rtol=1e-8)
    np.testing.assert_allclose(Z, in_memory.transform({"x": x, "y": y}), atol=1e-7)
    predicted = in_memory.predict({"x": x}, "y")
    np.testing.assert_allclose(model.predict({"x": given}, "y"), predicted, atol=1e-7)
    again = kofa.FactorModel(views, engine="memory", **options).fit({"x": given, "y": y})
    np.testing.assert_array_equal(again.lower_bounds_, in_memory.lower_bounds_)


@pytest.mark.usefixtures("large")
def test_arrays_may_be_fitted_from_disk_and_in_blocks(rng):
    x = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 12)) + 0.3 * rng.normal(size=(200, 12))
    plain, disk, blocks = (
        kofa.FactorModel(n_factors=3, engine=engine, block_rows=rows).fit({"x": x})
        for engine, rows in (("auto", "auto"), ("disk", "auto"), ("memory", 23))
    )
    for other in (disk, blocks):
        np.testing.assert_allclose(other.lower_bounds_, plain.lower_bounds_, rtol=1e-8)
        mean = other.posterior_["x"].weights.mean
        np.testing.assert_allclose(mean, plain.posterior_["x"].weights.mean, atol=1e-8)


def test_engines_that_there_are(x, tmp_path):
    with pytest.raises(kofa.DeclarationError, match=r"engine.*'auto', 'memory' or 'disk'"):
        kofa.FactorModel(engine="dask").fit({"x": x})
    with pytest.raises(kofa.DeclarationError, match="block_rows"):
        kofa.FactorModel(block_rows=0).fit({"x": x})
    model = kofa.FactorModel(engine="disk", block_rows=50).fit({"x": x})
    model.save(tmp_path / "m.kofa")
    loaded = kofa.load(tmp_path / "m.kofa")
    assert (loaded.engine, loaded.block_rows) == ("disk", 50)


@pytest.mark.usefixtures("large")
def test_a_full_disk_is_an_error_before_anything_is_written(x, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(scratch.os, "posix_fallocate", full)
    with pytest.raises(kofa.DataError, match=r"MiB for the factors.*TMPDIR"):
        kofa.FactorModel(n_factors=2, engine="disk").fit({"x": x})


@pytest.mark.usefixtures("large")
def test_kernels_that_compare_all_samples_are_refused_on_disk(x, tmp_path):
    given = {"x": np.load(saved(tmp_path / "x.npy", x), mmap_mode="r")}
    views = {"x": kofa.Real(kernel="diffusion")}
    with pytest.raises(kofa.DeclarationError, match=r"'x': .*on disk.*engine='memory'"):
        kofa.FactorModel(views).fit(given)
