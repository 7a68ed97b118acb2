"""Data sets by name: from a folder, or from stand-ins for the public servers."""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.io

from experiments import data, formats
from experiments.data import Entry, entries
from kofa.errors import DeclarationError, FileError

SETS = list(entries())  # before a made-up one is put into the table
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
URL = "https://mirror.test/tiny.arff"
TINY = Entry(
    "tiny", 3, 2, 2, data.fingerprint({"X": X, "Y": Y}), openml="tiny", files=(URL,), format="arff"
)


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """A data directory and a cache of this test's own, and a made-up set in the table."""
    monkeypatch.setenv("KOFA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KOFA_DATA", str(tmp_path))
    monkeypatch.setitem(entries(), "tiny", TINY)
    return tmp_path


# ---------------------------------------------------------------- the table


@pytest.mark.parametrize("name", SETS)
def test_table_is_complete(name):
    entry = entries()[name]
    assert not entry.image_shape or np.prod(entry.image_shape) == entry.columns
    assert entry.format in {*formats.READERS, "lfw"}
    assert entry.files or entry.format == "lfw"
    assert all(url.startswith("https://") for url in entry.files)
    assert len(entry.sha256) in (0, len(entry.files))
    assert len(entry.fingerprint) == 64  # whatever is downloaded is compared with it


@pytest.mark.parametrize(("wrong", "meant"), [("atp1", "atp1d"), ("olivetti", "olivetti_orl")])
def test_unknown_name_suggests_the_nearest(wrong, meant):
    with pytest.raises(DeclarationError, match=f"Did you mean '{meant}'"):
        data.load(wrong)


# ---------------------------------------------------------------- the data directory


def test_npz_in_the_data_directory(folder):
    np.savez(folder / "tiny.npz", X=X.astype(np.float32), Y=Y, weight=[1, 2, 3])
    found = data.load("tiny")
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.Y, Y)
    assert found.X.dtype == np.float64
    assert (found.y, found.image_shape) == (None, None)
    assert found.weight.tolist() == [1, 2, 3]


def test_public_file_in_the_data_directory(folder):
    (folder / "tiny.arff").write_bytes(ARFF)
    np.testing.assert_array_equal(data.load("tiny").X, X)
    (folder / "tiny.arff").write_bytes(ARFF.replace(b"7", b"8"))
    with pytest.raises(FileError, match=r"tiny\.arff cannot be used: Expected the values"):
        data.load("tiny")
    (folder / "tiny.arff").write_bytes(b"hello")
    with pytest.raises(FileError, match=r"tiny\.arff cannot be used: it is not the arff file"):
        data.load("tiny")


def test_what_is_on_this_machine(folder, monkeypatch):
    assert data.available("digits")
    assert not data.available("tiny")
    np.savez(folder / "tiny.npz", X=X, Y=Y)
    np.savez(folder / "fashion_mnist_10k.npz", X=X)
    assert data.available("tiny")
    assert data.available("fashion_mnist")  # the paper's name for it
    np.testing.assert_array_equal(data.stored("tiny", "Y")[0], Y)
    monkeypatch.delenv("KOFA_DATA")
    assert not data.available("tiny")
    assert data.stored("tiny", "Y") is None


def test_data_directory_that_is_none(folder, monkeypatch):
    monkeypatch.setenv("KOFA_DATA", str(folder / "gone"))
    with pytest.raises(FileError, match=r"no folder .*gone"):
        data.load("tiny")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": X}, "Expected an array Y but got X"),
        ({"X": X, "Y": Y[:2]}, r"Expected Y of shape \(3, 2\) but got \(2, 2\)"),
        ({"X": X.astype(str), "Y": Y}, "Expected numbers in X"),
        ({"X": X, "Y": Y + 1}, "Expected the values of tiny"),
        ({"X": X, "Y": np.array([{}, 1, 2])}, "allow_pickle"),
    ],
)
def test_data_directory_with_something_else(folder, arrays, message):
    np.savez(folder / "tiny.npz", **arrays)
    with pytest.raises(FileError, match=rf"tiny\.npz cannot be used.*{message}"):
        data.load("tiny")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 cut off"])
def test_npz_that_is_none(folder, content):
    (folder / "tiny.npz").write_bytes(content)
    with pytest.raises(FileError, match="cannot be read as an npz file"):
        data.load("tiny")


def test_fingerprint_sees_values_and_shape_only():
    seen = data.fingerprint({"X": X, "Y": Y})
    same = {"X": np.asfortranarray(X) + 0, "Y": Y.astype(np.float32), "split": np.array([])}
    assert data.fingerprint(same) == seen
    assert data.fingerprint({"X": np.where(X == 0, -0.0, X), "Y": Y}) == seen
    for other in ({"X": X[::-1], "Y": Y}, {"X": X.reshape(2, 3), "Y": Y}):
        assert data.fingerprint(other) != seen


# ---------------------------------------------------------------- downloads


class Answer:
    """What `requests.get` gives."""

    def __init__(self, body, url):
        self.body, self.url = body, url

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def raise_for_status(self):
        if self.body is None:
            raise OSError("404 Not Found")

    def iter_content(self, size):
        yield from (self.body[i : i + size] for i in range(0, len(self.body), size))


@pytest.fixture
def served(monkeypatch):
    """Bodies by address; every other address is not there, nor is any set on OpenML."""
    pytest.importorskip("pooch")
    requests = pytest.importorskip("requests")
    bodies, asked = {}, []

    def get(url, **_):
        asked.append(url)
        body, end = bodies.get(url, (None, url))
        return Answer(body, end)

    def fetch_openml(*_, **__):
        raise OSError("no route to OpenML")

    monkeypatch.setattr(requests, "get", get)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    return SimpleNamespace(bodies=bodies, asked=asked)


def test_files_are_fetched_once(served):
    served.bodies[URL] = ARFF, URL
    for _ in range(2):
        np.testing.assert_array_equal(data.load("tiny").X, X)
    assert served.asked == [URL]


def test_files_of_other_values_are_refused_and_not_kept(served, folder):
    served.bodies[URL] = ARFF.replace(b"7", b"8"), URL
    with pytest.raises(FileError, match=r"OpenML(.|\n)*Expected the values(.|\n)*tiny\.npz with"):
        data.load("tiny")
    assert not [path for path in (folder / "cache").rglob("*") if path.is_file()]


def test_sha256_of_a_file(served, monkeypatch):
    served.bodies[URL] = ARFF, URL
    monkeypatch.setitem(entries(), "tiny", replace(TINY, sha256=("0" * 64,)))
    with pytest.raises(FileError, match=r"hash|SHA256"):
        data.load("tiny")
    right = hashlib.sha256(ARFF).hexdigest()
    monkeypatch.setitem(entries(), "tiny", replace(TINY, sha256=(right,)))
    np.testing.assert_array_equal(data.load("tiny").Y, Y)


@pytest.mark.parametrize(
    ("url", "end"), [("http://mirror.test/tiny.arff", URL), (URL, "http://mirror.test/tiny.arff")]
)
def test_only_https_is_taken(served, monkeypatch, url, end):
    served.bodies[url] = ARFF, end
    monkeypatch.setitem(entries(), "tiny", replace(TINY, files=(url,)))
    with pytest.raises(FileError, match="Expected an address with https but got http://"):
        data.load("tiny")


def test_files_that_are_too_large_are_not_taken(served, monkeypatch, folder):
    served.bodies[URL] = ARFF, URL
    monkeypatch.setattr("experiments.download.MOST_BYTES", 50)
    with pytest.raises(FileError, match="more than 50 bytes"):
        data.load("tiny")
    assert not [path for path in (folder / "cache").rglob("*") if path.is_file()]


def test_nothing_answers(served):
    with pytest.raises(FileError, match=r"no route to OpenML(.|\n)*404 Not Found(.|\n)*--data-dir"):
        data.load("tiny")
    assert served.asked == [URL]


@pytest.mark.usefixtures("served")
def test_openml_comes_first(monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.column_stack([X, Y]), columns=list("abcd"))
    frame["b"] = pandas.Categorical([None, "4", "0"])  # labels are the numbers that they name

    def fetch_openml(name, **options):
        assert (name, options["target_column"]) == ("tiny", None)
        return SimpleNamespace(data=frame)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    found = data.load("tiny")
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.Y, Y)


@pytest.mark.usefixtures("served")
def test_faces_by_way_of_scikit_learn(monkeypatch, folder):
    """They differ a little from the stored ones, so they are known by their shape alone."""
    faces = (np.arange(1288 * 60 * 40) % 256).reshape(1288, 60, 40)

    def fetch_lfw_people(**options):
        assert options["data_home"].startswith(str(folder))
        return SimpleNamespace(images=faces / np.float32(255), target=np.arange(1288) % 7)

    monkeypatch.setattr("sklearn.datasets.fetch_lfw_people", fetch_lfw_people)
    found = data.load("lfw7_60x40")
    np.testing.assert_array_equal(found.X[:2], faces[[0, 7]].reshape(2, -1))
    assert (np.diff(found.y) >= 0).all()


# ---------------------------------------------------------------- formats


def parsed(kind, files, **changes):
    return formats.parse(files, Entry("made up", 3, 2, format=kind, **changes))


def test_text_with_header_parts_and_missing_values():
    files = [b"1,2,3\n1.5,?,2\n2,4,1\n", b"1 2 3\n-3.25\t0 7\n"]
    found = parsed("table", files, parts=("train", "test"), header=True)
    np.testing.assert_array_equal(found["X"], X)
    assert found["y"].tolist() == [2, 1, 7]
    assert found["split"].tolist() == ["train", "train", "test"]
    with pytest.raises(FileError, match="not whole numbers"):
        parsed("table", [b"1 2 0.5\n"])


def test_pairs_of_features_and_indicators():
    files = [b"1 2\n3 4\n", b"0 1 0\n1 0 0\n", b"5 6\n", b"0 0 1\n"]
    found = parsed("pairs", files, parts=("train", "test"))
    assert found["X"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert found["y"].tolist() == [1, 0, 2]
    assert found["split"].tolist() == ["train", "train", "test"]


def test_matlab_images_are_upright():
    images = np.arange(12, dtype=np.uint8).reshape(2, 3, 2)
    file = io.BytesIO()
    columns_first = images.astype(float).transpose(0, 2, 1).reshape(2, -1)
    scipy.io.savemat(file, {"X": columns_first, "Y": np.array([[1], [2]])})
    found = parsed("mat", [file.getvalue()], image_shape=(3, 2))
    np.testing.assert_array_equal(found["X"].reshape(2, 3, 2), images)
    assert found["X"].dtype == np.uint8
    assert found["y"].tolist() == [0, 1]
    with pytest.raises(FileError, match="not the mat file"):
        parsed("mat", [b"hello"], image_shape=(3, 2))


def test_sprite():
    image = pytest.importorskip("PIL.Image")
    images = np.arange(24, dtype=np.uint8).reshape(4, 3, 2)
    sheet = np.vstack([np.hstack(images[:2]), np.hstack(images[2:])])
    file = io.BytesIO()
    image.fromarray(np.repeat(sheet[..., None], 3, axis=2)).save(file, "PNG")
    entry = Entry("made up", 4, 6, format="sprite", image_shape=(3, 2))
    found = formats.parse([file.getvalue(), b"3\n1\n0\n2\n"], entry)
    np.testing.assert_array_equal(found["X"], images.reshape(4, 6))
    assert found["y"].tolist() == [3, 1, 0, 2]


# ---------------------------------------------------------------- the sets themselves


@pytest.mark.parametrize("name", SETS)
def test_stored_set(name, data_dir, monkeypatch):
    monkeypatch.setenv("KOFA_DATA", str(data_dir))
    if not data.available(name):
        pytest.skip(f"{name}.npz is not on this machine")
    arrays, found = dict(np.load(data_dir / f"{name}.npz")), data.load(name)
    np.testing.assert_array_equal(found.X, arrays["X"].reshape(entries()[name].rows, -1))
    key = "Y" if "Y" in arrays else "y"
    np.testing.assert_array_equal(getattr(found, key), arrays[key])
    for extra in {"image_shape", "y_binary"} & set(arrays):
        np.testing.assert_array_equal(getattr(found, extra), arrays[extra])
