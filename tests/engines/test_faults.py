"""What happens to files and disks in the middle of a fit: one clear error, nothing half-written."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager

import numpy as np
import pytest
from test_streamed import after, same

import kofa
from kofa.data import stored
from kofa.engines import scratch

resource = pytest.importorskip("resource")  # which Windows lacks
VIEWS = {"x": kofa.Real()}


@pytest.fixture
def path(rng, tmp_path, monkeypatch):
    """A table of several blocks in a file."""
    monkeypatch.setattr(stored, "_AT_ONCE", 100)
    z = rng.normal(size=(90, 2))
    np.save(tmp_path / "x.npy", z @ rng.normal(size=(2, 5)) + rng.normal(size=(90, 5)))
    return tmp_path / "x.npy"


def model(folder, iterations, **options):
    return kofa.FactorModel(
        VIEWS, engine="disk", block_rows=30, callback=after(iterations), tol=0.0,
        checkpoint=folder / "fit.checkpoint", checkpoint_every=0.0, **options,
    )  # fmt: skip


def interrupt(iteration):
    if iteration.n_iter == 4:
        raise KeyboardInterrupt


@contextmanager
def full_disk(most=0):
    """No file may have more bytes, as on a disk without space."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_gets_shorter_during_a_fit(path):
    content = path.read_bytes()
    table = kofa.open_table(path)
    expected = kofa.FactorModel(VIEWS, callback=after(6), tol=0.0).fit({"x": np.load(path)})

    def cut(iteration):
        if iteration.n_iter == 3:
            path.write_bytes(content[:-300])

    broken = model(path.parent, 9)
    with pytest.raises(kofa.FileError, match=r"x\.npy: expected 90 rows") as caught:
        broken.set_params(callback=cut).fit({"x": table})
    assert caught.value.cure
    path.write_bytes(content)
    same(model(path.parent, 6).fit({"x": kofa.open_table(path)}, resume=True), expected)
    assert sorted(os.listdir(path.parent)) == ["fit.checkpoint", "x.npy"]


def test_a_disk_that_is_full_during_a_fit(path, monkeypatch, tmp_path_factory):
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(scratch, "_SMALL", 0)
    data = {"x": kofa.open_table(path)}
    with pytest.raises(KeyboardInterrupt):
        model(path.parent, 9).set_params(callback=interrupt).fit(data)
    kept = (path.parent / "fit.checkpoint").read_bytes()
    with full_disk(), pytest.warns(UserWarning, match="checkpoint cannot be written"):  # noqa: SIM117
        with pytest.raises(kofa.DataError, match=r"MiB for the factors.*TMPDIR"):
            model(path.parent, 6).fit(data, resume=True)
    assert (path.parent / "fit.checkpoint").read_bytes() == kept
    assert not os.listdir(temporary)
    expected = kofa.FactorModel(VIEWS, callback=after(6), tol=0.0).fit({"x": np.load(path)})
    same(model(path.parent, 6).fit(data, resume=True), expected)


def test_a_disk_that_is_full_when_a_parquet_file_is_opened(path, monkeypatch, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pd.DataFrame(np.load(path), columns=list("abcde")).to_parquet(tmp_path / "x.parquet")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with full_disk(100), pytest.raises(kofa.FileError, match=r"cannot be written.*TMPDIR"):
        kofa.open_table(tmp_path / "x.parquet")
    assert not os.listdir(tmp_path / "temporary")


@pytest.mark.parametrize(
    ("kind", "value", "what"),
    [
        (kofa.Real(), np.inf, "column 3: expected finite numbers"),
        (kofa.Binary(), 2.0, "column 3"),
        (kofa.Count(), -1.0, "column 3"),
        (kofa.Positive(), 0.0, "column 3"),
    ],
)
def test_a_value_in_a_late_block_that_a_view_cannot_have(path, tmp_path, kind, value, what):
    x = (np.load(path) > 0) + 0.0 if isinstance(kind, kofa.Binary) else np.ones((90, 5))
    x[:45] += 0.0 if isinstance(kind, kofa.Binary) else 1.0
    x[80, 3] = value
    np.save(tmp_path / "bad.npy", x)
    checkpoint = tmp_path / "fit.checkpoint"
    fit = kofa.FactorModel({"x": kind}, engine="disk", checkpoint=checkpoint)
    with pytest.raises(kofa.DataError, match=f"View 'x', {what}"):
        fit.fit({"x": kofa.open_table(tmp_path / "bad.npy")})
    assert not checkpoint.exists()


def test_a_hole_in_a_late_block_is_a_hole(path, tmp_path):
    x = np.load(path)
    x[80, 3] = np.nan
    np.save(tmp_path / "holed.npy", x)
    models = [kofa.FactorModel(VIEWS, engine=one, callback=after(5)) for one in ("disk", "memory")]
    same(*(one.fit({"x": kofa.open_table(tmp_path / "holed.npy")}) for one in models))


def test_a_new_class_in_a_late_row_is_named(path):
    x = np.load(path)
    labels = np.where(x[:, 0] > 0, "yes", "no")
    views = {"x": kofa.Real(), "c": kofa.Categorical()}
    fitted = kofa.FactorModel(views, callback=after(3)).fit({"x": x, "c": labels})
    labels[80] = "per"
    with pytest.raises(kofa.DataError, match=r"View 'c'.*per"):
        fitted.transform({"x": kofa.open_table(path), "c": labels})
