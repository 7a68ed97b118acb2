"""Data sets by name: from a folder, the cache, or a stand-in for the public servers."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import socket
import threading
from collections import Counter
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.io

from kofa import datasets
from kofa.datasets import download, formats, store
from kofa.datasets.table import Entry, Source, entries
from kofa.errors import DeclarationError, FileError

STORED = Path(os.environ.get("KOFA_DATA") or Path(__file__).parents[2] / "shared" / "data")
SETS = datasets.names()  # before a made-up one is put into the table
X = np.array([[1.5, np.nan], [2.0, 4.0], [-3.25, 0.0]])
Y = np.array([[1.0, 2.0], [0.5, -1.0], [0.25, 7.0]])
ARFF = b"""% made up
@relation tiny
@attribute "'a'" NUMERIC
@attribute b=1 {0,4}
@attribute LBL+one real
@attribute two real
@data
1.5,?,1,2
2.0,4,0.5,-1
  -3.25, 0, 0.25, 7
"""
TINY = Entry(
    "tiny", "regression", 3, 2, 2, "Made up.", "Nobody, 2020",
    (Source("arff", openml="tiny"), Source("arff", files=("/mirror/tiny.arff",))),
    fingerprint=store.fingerprint({"X": X, "Y": Y}),
)  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        stand_in = self.server.stand_in
        stand_in.asked[self.path] += 1
        answer = stand_in.answers.get(self.path, (404, b""))
        status, body, *missing = answer() if callable(answer) else answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) + sum(missing)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class StandIn:
    """A server of made-up answers, which remembers what it was asked."""

    def __init__(self):
        self.answers, self.asked, self.stop = {}, Counter(), threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.stand_in = self
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.stop.set()
        self.server.shutdown()
        self.server.server_close()

    def serve_openml(self, name, file, rows, columns, md5=None, **more):
        """The three answers of OpenML; an older version of another shape is listed first."""
        qualities = [
            [
                {"name": "NumberOfInstances", "value": f"{n}.0"},
                {"name": "NumberOfFeatures", "value": f"{columns}.0"},
            ]
            for n in (rows + 1, rows)
        ]
        listed = [{"did": 6 + i, "quality": q} for i, q in enumerate(qualities)]
        about = {
            "url": f"{self.url}/data/{name}.arff",
            "md5_checksum": md5 or hashlib.md5(file).hexdigest(),
        } | more
        path = f"/api/v1/json/data/list/data_name/{name}/limit/50/status/active"
        self.json(path, {"data": {"dataset": listed}})
        self.json("/api/v1/json/data/7", {"data_set_description": about})
        self.answers[f"/data/{name}.arff"] = 200, file

    def json(self, path, value):
        self.answers[path] = 200, json.dumps(value).encode()


@pytest.fixture(autouse=True)
def at_home(monkeypatch, tmp_path):
    """No test reads this user's folders or leaves this machine."""
    monkeypatch.setenv("KOFA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KOFA_OPENML", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("KOFA_DATA", raising=False)
    monkeypatch.setattr(download, "PAUSE", 0.0)


@pytest.fixture
def server(monkeypatch):
    stand_in = StandIn()
    monkeypatch.setenv("KOFA_OPENML", stand_in.url + "/")
    yield stand_in
    stand_in.close()


@pytest.fixture
def tiny(monkeypatch):
    """Put a made-up set, or a changed one, into the table, with its files on some server."""

    def put(entry=TINY, base="http://127.0.0.1:9"):
        sources = tuple(replace(s, files=tuple(base + f for f in s.files)) for s in entry.sources)
        monkeypatch.setitem(entries(), entry.name, replace(entry, sources=sources))

    return put


@pytest.fixture(autouse=True)
def tiny_is_in_the_table(tiny):
    tiny()


def only(*sources, **changes):
    return replace(TINY, sources=sources, **changes)


def folder_with(path, **arrays):
    path.mkdir(exist_ok=True)
    np.savez(path / "tiny.npz", **arrays)
    return path


def left_in(cache):
    return [p for p in cache.rglob("*") if p.is_file()]


# ---------------------------------------------------------------- the table


def test_names_are_those_of_the_paper():
    assert (
        {"atp1d", "slump", "yale", "oil_flow", "fashion_mnist"}
        <= set(SETS)
        <= set(datasets.names())
    )
    assert len(SETS) == 20


@pytest.mark.parametrize("name", SETS)
def test_table_is_complete(name):
    entry = entries()[name]
    assert entry.kind in ("regression", "multilabel", "classification")
    assert entry.description
    assert entry.citation
    assert not entry.image_shape or np.prod(entry.image_shape) == entry.columns
    assert entry.sources
    for source in entry.sources:
        assert source.format in {*formats.READERS, "lfw"}
        assert len(source.checksums) in (0, len(source.files))
        # Whatever is downloaded is compared with something that the table knows.
        assert entry.fingerprint or source.checksums
        assert source.exact or source.note


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("atp1", "atp1d"), ("WARPar10p", "warpAR10P"), ("olivetti", "olivetti_orl")],
)
def test_unknown_name_suggests_the_nearest(wrong, meant):
    with pytest.raises(DeclarationError, match=f"Did you mean '{meant}'"):
        datasets.load(wrong)


@pytest.mark.parametrize("wrong", ["", "qqqqq", 3, None, ["atp1d"]])
def test_name_like_no_other_is_refused(wrong):
    with pytest.raises(DeclarationError, match=r"Expected the name .* but got"):
        datasets.load(wrong)


# ---------------------------------------------------------------- the data directory


def test_npz_in_data_dir(tmp_path):
    folder = folder_with(tmp_path / "data", X=X, Y=Y, feature_names=["a", "b"], weight=[1, 2, 3])
    found = datasets.load("tiny", data_dir=folder)
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.Y, Y)
    assert (found.y, found.image_shape, found.target_names) == (None, None, ())
    assert found.feature_names == ("a", "b")
    assert list(found.extras) == ["weight"]
    assert found.source == str(folder / "tiny.npz")
    assert repr(found) == "Dataset('tiny', regression, 3 × 2)"
    with pytest.raises(AttributeError):
        found.X = None


def test_data_dir_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("KOFA_DATA", str(folder_with(tmp_path / "data", X=X, Y=Y)))
    assert datasets.load("tiny").Y.shape == (3, 2)


@pytest.mark.parametrize("place", ["data_dir", "KOFA_DATA"])
def test_data_dir_that_is_none(tmp_path, monkeypatch, place):
    monkeypatch.setenv("KOFA_DATA", str(tmp_path / "gone"))
    with pytest.raises(FileError, match=f"{place} but there is none at"):
        datasets.load("tiny", data_dir=str(tmp_path / "gone") if place == "data_dir" else None)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": X}, "Expected an array Y but got X"),
        ({"X": X, "Y": Y[:2]}, r"Expected Y of shape \(3, 2\) but got \(2, 2\)"),
        ({"X": X.astype(str), "Y": Y}, "Expected numbers in X"),
        ({"X": X, "Y": Y + 1}, r"Expected the values of tiny.*check=False"),
    ],
)
def test_data_dir_with_something_else(tmp_path, arrays, message):
    with pytest.raises(FileError, match=message):
        datasets.load("tiny", data_dir=folder_with(tmp_path / "data", **arrays))


def test_other_values_are_taken_on_request(tmp_path):
    folder = folder_with(tmp_path / "data", X=X, Y=Y + 1)
    np.testing.assert_array_equal(datasets.load("tiny", data_dir=folder, check=False).Y, Y + 1)


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 cut off"])
def test_npz_that_is_none(tmp_path, content):
    (tmp_path / "tiny.npz").write_bytes(content)
    with pytest.raises(FileError, match="cannot be read as an npz file"):
        datasets.load("tiny", data_dir=tmp_path)


def test_npz_with_objects_is_never_unpickled(tmp_path):
    with pytest.raises(FileError, match="allow_pickle"):
        datasets.load("tiny", data_dir=folder_with(tmp_path / "d", X=X, Y=np.array([{}, 1, 2])))


def test_public_file_in_data_dir(tmp_path):
    (tmp_path / "tiny.arff").write_bytes(ARFF)
    found = datasets.load("tiny", data_dir=tmp_path)
    np.testing.assert_array_equal(found.X, X)
    assert found.feature_names == ("a", "b=1")
    assert found.target_names == ("LBL+one", "two")
    (tmp_path / "tiny.arff").write_bytes(ARFF.replace(b"7", b"8"))
    with pytest.raises(FileError, match=r"tiny\.arff cannot be used: Expected the values"):
        datasets.load("tiny", data_dir=tmp_path)
    assert datasets.load("tiny", data_dir=tmp_path, check=False).Y[2, 1] == 8
    (tmp_path / "tiny.arff").write_bytes(b"hello")
    with pytest.raises(FileError, match="cannot be used"):
        datasets.load("tiny", data_dir=tmp_path)


# ---------------------------------------------------------------- OpenML


def test_download_from_openml(server, tmp_path):
    server.serve_openml("tiny", ARFF, 3, 4)
    found = datasets.load("tiny")
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.Y, Y)
    assert found.source.startswith("OpenML 7")
    assert [p.name for p in left_in(tmp_path / "cache")] == ["tiny.npz"]


def test_second_load_is_from_the_cache(server):
    server.serve_openml("tiny", ARFF, 3, 4)
    first, asked = datasets.load("tiny"), server.asked.total()
    second = datasets.load("tiny", download=False)
    assert server.asked.total() == asked
    np.testing.assert_array_equal(first.X, second.X)
    assert second.source == first.source
    assert second.target_names == first.target_names


def test_openml_says_which_columns_are_targets(tiny, server):
    file = ARFF.replace(b"LBL+one", b"id").replace(b"two", b"one")
    file = file.replace(b"@data", b"@attribute skip real\n@data").replace(b",2\n", b",2,9\n")
    file = file.replace(b"-1\n", b"-1,9\n").replace(b"7\n", b"7,9\n")
    # In the order of the file: a and "one" are the targets, b=1 is the feature, two are left out.
    tiny(only(Source("arff", openml="tiny"), columns=1, fingerprint=""))
    server.serve_openml(
        "tiny", file, 3, 3,
        default_target_attribute="a,one", row_id_attribute="id", ignore_attribute=["skip"],
    )  # fmt: skip
    found = datasets.load("tiny")
    assert (found.feature_names, found.target_names) == (("b=1",), ("a", "one"))
    np.testing.assert_array_equal(found.X, X[:, 1:])
    np.testing.assert_array_equal(found.Y, np.column_stack([X[:, 0], Y[:, 1]]))


def test_wrong_checksum_falls_back_on_the_next_source(tiny, server):
    server.serve_openml("tiny", ARFF, 3, 4, md5="0" * 32)
    server.answers["/mirror/tiny.arff"] = 200, ARFF
    tiny(base=server.url)
    assert datasets.load("tiny").source == f"{server.url}/mirror/tiny.arff"
    assert server.asked["/data/tiny.arff"] == download.TRIES


def test_wrong_checksum_is_refused(tiny, server, tmp_path):
    server.serve_openml("tiny", ARFF, 3, 4, md5="0" * 32)
    tiny(only(Source("arff", openml="tiny")))
    with pytest.raises(datasets.DownloadError, match=r"tiny\.arff: Expected the md5 0{32} but got"):
        datasets.load("tiny")
    assert not left_in(tmp_path / "cache")


def test_other_values_from_a_server_are_refused(server, tmp_path):
    server.serve_openml("tiny", ARFF.replace(b"7", b"8"), 3, 4)
    with pytest.raises(datasets.DownloadError, match="Expected the values of tiny but got others"):
        datasets.load("tiny", check=False)
    assert not left_in(tmp_path / "cache")


def test_no_version_of_the_shape(server):
    server.serve_openml("tiny", ARFF, 5, 4)
    with pytest.raises(datasets.DownloadError, match="none of its 2 versions has 3 rows and 4 col"):
        datasets.load("tiny")


@pytest.mark.parametrize(
    "answer", [b"<html>", b"[]", b"{}", b'{"data": {"dataset": [{"quality": 3}]}}', b"\xff"]
)
def test_answers_that_are_not_openml(server, answer):
    path = "/api/v1/json/data/list/data_name/tiny/limit/50/status/active"
    server.answers[path] = 200, answer
    with pytest.raises(datasets.DownloadError, match=r"OpenML|data_name.*makes no sense"):
        datasets.load("tiny")


@pytest.mark.parametrize("file", [b"", b"hello", ARFF[:60], ARFF.replace(b"1.5", b"x"), b"\xff"])
def test_file_that_is_no_arff(server, file):
    server.serve_openml("tiny", file, 3, 4)
    with pytest.raises(datasets.DownloadError, match=r"tiny\.arff"):
        datasets.load("tiny")


def test_server_cannot_name_a_file_of_this_machine(server, tmp_path):
    secret = tmp_path / "secret.arff"
    secret.write_bytes(ARFF)
    server.serve_openml("tiny", ARFF, 3, 4, url=secret.as_uri())
    with pytest.raises(datasets.DownloadError, match="Expected an address with http"):
        datasets.load("tiny")


# ---------------------------------------------------------------- servers that fail


def test_nothing_answers(tmp_path):
    with pytest.raises(datasets.DownloadError) as caught:
        datasets.load("tiny", data_dir=tmp_path)
    message = str(caught.value)
    for part in (
        "http://127.0.0.1:9/api/v1/json/data/list/data_name/tiny", "refused", str(tmp_path),
        "http://127.0.0.1:9/mirror/tiny.arff", str(tmp_path / "cache" / "datasets"), "KOFA_DATA",
        "data_dir=", "tiny.npz with the arrays X (3, 2), Y (3, 2)",
    ):  # fmt: skip
        assert part in message


def test_download_switched_off(server):
    with pytest.raises(datasets.DownloadError, match=r"downloads are switched off.*\nBy hand"):
        datasets.load("tiny", download=False)
    assert not server.asked


def test_missing_page_is_asked_for_once(server):
    with pytest.raises(datasets.DownloadError, match="/gone: HTTP 404"):
        download.get(server.url + "/gone", 5)
    assert server.asked["/gone"] == 1


def test_busy_server_is_asked_again(server):
    server.answers["/busy"] = lambda: (503, b"") if server.asked["/busy"] < 3 else (200, b"here")
    assert download.get(server.url + "/busy", 5) == b"here"


def test_truncated_body(server, tiny, tmp_path):
    server.answers["/mirror/tiny.arff"] = 200, ARFF, 10
    tiny(base=server.url)
    with pytest.raises(datasets.DownloadError, match=f"broke off after {len(ARFF)} bytes"):
        datasets.load("tiny")
    assert server.asked["/mirror/tiny.arff"] == download.TRIES
    assert not left_in(tmp_path / "cache")


def test_truncated_body_is_asked_for_again(server):
    server.answers["/cut"] = lambda: (200, b"he", 2) if server.asked["/cut"] < 2 else (200, b"here")
    assert download.get(server.url + "/cut", 5) == b"here"


def test_slow_server(server, monkeypatch):
    monkeypatch.setattr(download, "TRIES", 2)
    server.answers["/slow"] = lambda: (server.stop.wait(10), (200, b"late"))[1]
    with pytest.raises(datasets.DownloadError, match=r"/slow: no answer within 0\.05 seconds"):
        download.get(server.url + "/slow", 0.05)
    assert server.asked["/slow"] == 2
    server.stop.set()


@pytest.mark.parametrize("method", ["md5", "sha256"])
def test_checksums(server, method):
    server.answers["/file"] = 200, b"content"
    right = f"{method}:{hashlib.new(method, b'content').hexdigest()}"
    assert download.get(server.url + "/file", 5, right) == b"content"
    with pytest.raises(datasets.DownloadError, match=f"Expected the {method} abc"):
        download.get(server.url + "/file", 5, f"{method}:abc")


# ---------------------------------------------------------------- the cache


def test_damaged_cache_is_downloaded_again(server, tmp_path, caplog):
    server.serve_openml("tiny", ARFF, 3, 4)
    path = tmp_path / "cache" / "datasets" / "tiny.npz"
    for content in (b"", b"PK\x03\x04", b"garbage"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        np.testing.assert_array_equal(datasets.load("tiny").X, X)
        assert "is not used" in caplog.text
    np.savez(path, X=X, Y=Y + 1)
    np.testing.assert_array_equal(datasets.load("tiny").Y, Y)


def test_cache_that_cannot_be_written(server, tmp_path):
    server.serve_openml("tiny", ARFF, 3, 4)
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"cannot be kept in .*KOFA_CACHE"):
        found = datasets.load("tiny", cache_dir=tmp_path / "file")
    np.testing.assert_array_equal(found.X, X)


def test_nothing_half_written(tmp_path, monkeypatch):
    path = tmp_path / "set.npz"
    store.write(path, {"X": X})

    def full(file, **_):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="disk full"):
        store.write(path, {"X": X + 1})
    assert left_in(tmp_path) == [path]
    np.testing.assert_array_equal(store.read(path)["X"], X)


def test_where_the_cache_is(monkeypatch, tmp_path):
    assert store.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("KOFA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store.cache_folder() == tmp_path / "kofa"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    for platform, folder in {
        "linux": ".cache", "darwin": "Library/Caches", "win32": "local"
    }.items():  # fmt: skip
        monkeypatch.setattr(store.sys, "platform", platform)
        assert store.cache_folder() == tmp_path / folder / "kofa"


def test_fingerprint_sees_values_and_shape_only():
    seen = store.fingerprint({"X": X, "Y": Y})
    same = {"X": np.asfortranarray(X) + 0, "Y": Y.astype(np.float32), "feature_names": np.array([])}
    assert store.fingerprint(same) == seen
    assert store.fingerprint({"X": np.where(X == 0, -0.0, X), "Y": Y}) == seen
    for other in ({"X": X[::-1], "Y": Y}, {"X": X, "y": Y}, {"X": X.reshape(2, 3), "Y": Y}):
        changed = store.fingerprint(other) != seen
        assert changed == ("y" not in other)


# ---------------------------------------------------------------- formats


def parsed(source, files, **changes):
    entry = only(source, kind="classification", targets=1, fingerprint="", **changes)
    return formats.parse(files, source, entry)


def test_text_with_header_parts_and_missing_values():
    source = Source("table", parts=("train", "test"), header=True)
    found = parsed(source, [b"1,2,3\n1.5,?,2\n2,4,1\n", b"1 2 3\n-3.25\t0 7\n"])
    np.testing.assert_array_equal(found["X"], X)
    assert found["y"].tolist() == [2, 1, 7]
    assert found["split"].tolist() == ["train", "train", "test"]
    with pytest.raises(FileError, match="not whole numbers"):
        parsed(Source("table"), [b"1 2 0.5\n"])


def test_pairs_of_features_and_indicators():
    source = Source("pairs", parts=("train", "test"))
    found = parsed(source, [b"1 2\n3 4\n", b"0 1 0\n1 0 0\n", b"5 6\n", b"0 0 1\n"])
    assert found["X"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert found["y"].tolist() == [1, 0, 2]
    assert found["split"].tolist() == ["train", "train", "test"]


def matlab(images, labels):
    """As MATLAB stores images: each column by column, classes from 1."""
    file = io.BytesIO()
    scipy.io.savemat(file, {"X": images.transpose(0, 2, 1).reshape(len(images), -1), "Y": labels})
    return file.getvalue()


def test_matlab_images_are_upright():
    images = np.arange(12, dtype=np.uint8).reshape(2, 3, 2)
    file = matlab(images.astype(float), np.array([[1], [2]]))
    found = parsed(Source("mat"), [file], image_shape=(3, 2))
    np.testing.assert_array_equal(found["X"].reshape(2, 3, 2), images)
    assert found["X"].dtype == np.uint8
    assert found["y"].tolist() == [0, 1]
    with pytest.raises(FileError, match="not the mat file"):
        parsed(Source("mat"), [b"hello"], image_shape=(3, 2))


def idx(array):
    head = bytes((0, 0, 8, array.ndim)) + np.array(array.shape, ">u4").tobytes()
    return gzip.compress(head + array.astype(np.uint8).tobytes())


def test_idx_files():
    images = np.arange(24).reshape(4, 3, 2)
    files = [idx(images[:3]), idx(np.array([5, 6, 7])), idx(images[3:]), idx(np.array([8]))]
    found = parsed(Source("idx", parts=("train", "test")), files, image_shape=(3, 2))
    np.testing.assert_array_equal(found["X"], images.reshape(4, 6))
    assert found["y"].tolist() == [5, 6, 7, 8]
    assert found["split"].tolist() == ["train"] * 3 + ["test"]
    for bad in (b"hello", gzip.compress(b"hello"), files[1], files[0][:-9]):
        with pytest.raises(FileError, match="not the idx file"):
            parsed(Source("idx"), [bad, files[1]], image_shape=(3, 2))


def test_sprite():
    image = pytest.importorskip("PIL.Image")
    images = np.arange(24, dtype=np.uint8).reshape(4, 3, 2)
    sheet = np.vstack([np.hstack(images[:2]), np.hstack(images[2:])])
    file = io.BytesIO()
    image.fromarray(np.repeat(sheet[..., None], 3, axis=2)).save(file, "PNG")
    found = parsed(Source("sprite"), [file.getvalue(), b"3\n1\n0\n2\n"], image_shape=(3, 2), rows=4)
    np.testing.assert_array_equal(found["X"], images.reshape(4, 6))
    assert found["y"].tolist() == [3, 1, 0, 2]
    with pytest.raises(FileError, match="not the sprite file"):
        parsed(Source("sprite"), [b"hello", b"3\n"], image_shape=(3, 2), rows=4)


def test_faces_by_way_of_scikit_learn(monkeypatch, tmp_path):
    """They differ a little from the stored ones, so they are known by their shape alone."""
    pytest.importorskip("PIL")
    faces = (np.arange(1288 * 60 * 40) % 256).reshape(1288, 60, 40)
    people = np.arange(1288) % 7

    def fetch_lfw_people(**options):
        assert options["data_home"].startswith(str(tmp_path))
        assert socket.getdefaulttimeout() == 7.0
        return SimpleNamespace(images=faces / np.float32(255), target=people)

    monkeypatch.setattr("sklearn.datasets.fetch_lfw_people", fetch_lfw_people)
    before = socket.getdefaulttimeout()
    found = datasets.load("lfw7_60x40", timeout=7.0)
    assert socket.getdefaulttimeout() == before
    np.testing.assert_array_equal(found.X[:2], faces[[0, 7]].reshape(2, -1))
    assert (np.diff(found.y) >= 0).all()
    assert found.target_names[1] == "Colin_Powell"
    again = datasets.load("lfw7_60x40", download=False)
    assert again.source == found.source
    assert "differ a little" in found.source


def test_faces_without_a_network(monkeypatch):
    pytest.importorskip("PIL")

    def fetch_lfw_people(**_):
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_lfw_people", fetch_lfw_people)
    with pytest.raises(datasets.DownloadError, match=r"no route to host\nBy hand.*\n.*60x40\.npz"):
        datasets.load("lfw7_60x40")


def test_pictures_without_pillow(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    for read in (
        lambda: parsed(Source("sprite"), [b"", b""], image_shape=(3, 2)),
        lambda: datasets.load("lfw7_60x40"),
    ):
        with pytest.raises(FileError, match="pip install pillow"):
            read()


# ---------------------------------------------------------------- the sets themselves


def stored(name):
    path = STORED / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{name}.npz is not on this machine")
    return dict(np.load(path, allow_pickle=False))


@pytest.mark.parametrize("name", SETS)
def test_stored_set(name):
    arrays = stored(name)
    found = datasets.load(name, data_dir=STORED, download=False)
    entry = entries()[name]
    np.testing.assert_array_equal(found.X, arrays["X"].reshape(entry.rows, -1))
    assert found.X.dtype == np.float64
    target = found.y if entry.target == "y" else found.Y
    np.testing.assert_array_equal(target, arrays[entry.target])
    assert target.dtype == (np.float64 if entry.kind == "regression" else np.int64)
    assert len(found.feature_names) in (0, entry.columns)
    if entry.kind != "classification":
        assert len(found.target_names) == entry.targets
    if "image_shape" in arrays:
        assert found.image_shape == tuple(arrays["image_shape"])
    if entry.classes and "target_names" in arrays:
        assert entry.classes == tuple(arrays["target_names"])
    if "y_binary" in arrays:
        np.testing.assert_array_equal(found.extras["y_binary"], arrays["y_binary"])


def as_arff(arrays, classes=()):
    """The stored arrays as the public file has them: names in quotes, classes as labels."""
    target = arrays["Y"] if "Y" in arrays else arrays["y"][:, None]
    table = np.column_stack([arrays["X"], target])
    names = [f"\"'{n}'\"" for n in arrays["feature_names"]]
    types = ["NUMERIC"] * len(names)
    if "Y" in arrays:
        names += list(arrays["target_names"])
        types += ["NUMERIC"] * target.shape[1]
    else:
        names.append("class")
        types.append("{" + ",".join(map(str, classes)) + "}")
    head = [f"@attribute {name} {kind}" for name, kind in zip(names, types, strict=True)]
    cells = [[f"{value:.17g}".replace("nan", "?") for value in row] for row in table]
    lines = ["@relation set", *head, "@data", *map(",".join, cells), ""]
    return "\n".join(lines).encode()


@pytest.mark.parametrize("name", ["atp1d", "oes10", "jura", "wq", "slump", "arrhythmia"])
def test_stored_set_by_way_of_openml(name, server):
    arrays, entry = stored(name), entries()[name]
    file = as_arff(arrays, range(1, 17))
    server.serve_openml(name, file, entry.rows, entry.columns + entry.targets)
    found = datasets.load(name)
    np.testing.assert_array_equal(found.X, arrays["X"])
    assert found.feature_names == tuple(arrays["feature_names"])
    assert found.source.startswith("OpenML 7")


def test_stored_faces_by_way_of_matlab(server, tiny):
    arrays, entry = stored("warpAR10P"), entries()["warpAR10P"]
    file = matlab(arrays["X"].reshape(-1, *entry.image_shape), arrays["y"][:, None] + 1)
    server.answers["/warpAR10P.mat"] = 200, file
    tiny(replace(entry, sources=(Source("mat", files=("/warpAR10P.mat",)),)), server.url)
    np.testing.assert_array_equal(datasets.load("warpAR10P").X, arrays["X"])


def test_stored_satimage_by_way_of_text(server, tiny):
    arrays, entry = stored("satimage"), entries()["satimage"]
    table = np.column_stack([arrays["X"], arrays["y"]])
    for part, name in (("train", "sat.trn"), ("test", "sat.tst")):
        file = io.BytesIO()
        np.savetxt(file, table[arrays["split"] == part], fmt="%d", header="1 2 3", comments="")
        server.answers[f"/{name}"] = 200, file.getvalue()
    source = replace(entry.sources[1], files=("/sat.trn", "/sat.tst"))
    tiny(replace(entry, sources=(source,)), server.url)
    found = datasets.load("satimage")
    np.testing.assert_array_equal(found.extras["split"], arrays["split"])
    np.testing.assert_array_equal(found.y, arrays["y"])
