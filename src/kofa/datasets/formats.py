"""From the bytes of public files to named arrays.

A reader takes the contents of the files of one source, in order, and what the table says. It
gives `X`, `y` or `Y`, and where the files have them `feature_names`, `target_names` and `split`.
"""

from __future__ import annotations

import gzip
import io
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofa.datasets.table import Entry, Source
from kofa.errors import FileError

Arrays = dict[str, NDArray[Any]]

_BLANKS = re.compile(r"(?m)(?:^|(?<=,))[ \t]+")  # before a value; SciPy takes them for its part


def parse(files: Sequence[bytes], source: Source, entry: Entry) -> Arrays:
    """The arrays in the files of a source; a `FileError` where they are not what they should be."""
    with _damage_in_words(source.format):
        return READERS[source.format](files, source, entry)


@contextmanager
def _damage_in_words(kind: str) -> Iterator[None]:
    """The readers of other packages raise anything at all over a file that is not their kind."""
    try:
        yield
    except FileError:
        raise
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise FileError(f"it is not the {kind} file it should be ({reason})") from error


# ---------------------------------------------------------------- ARFF and text


def _arff(files: Sequence[bytes], source: Source, entry: Entry) -> Arrays:
    tables, names = zip(*(read_arff(file) for file in files), strict=True)
    return split_columns(np.vstack(tables), names[0], entry) | _split(tables, source)


def read_arff(file: bytes) -> tuple[NDArray[np.float64], list[str]]:
    """All columns as numbers, and their names."""
    from scipy.io import arff  # only who reads such a file waits for it

    with _damage_in_words("arff"):
        text = _BLANKS.sub("", file.decode("utf-8"))
        rows, meta = arff.loadarff(io.StringIO(text))
        columns = [_numbers(rows[name]) for name in meta.names()]
        return np.column_stack(columns), [name.strip("\"' ") for name in meta.names()]


def _numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers as they are; labels, which come as bytes, as the numbers that they name."""
    if column.dtype.kind != "S":
        return column.astype(np.float64)
    return np.where(column == b"?", b"nan", column).astype(np.float64)


def split_columns(
    table: NDArray[np.float64], names: Sequence[str], entry: Entry, wanted: Collection[str] = ()
) -> Arrays:
    """Features and targets: the last columns are targets, unless all are `wanted` by name."""
    targets = [i for i, name in enumerate(names) if name in wanted]
    if len(targets) != entry.targets:
        targets = list(range(table.shape[1] - entry.targets, table.shape[1]))
    features = np.setdiff1d(np.arange(table.shape[1]), targets)
    arrays: Arrays = {
        "X": table[:, features],
        "feature_names": np.array([names[i] for i in features]),
    }
    if entry.target == "y":
        return arrays | {"y": _whole(table[:, targets[0]])}
    target_names = np.array([names[i] for i in targets])
    return arrays | {"Y": table[:, targets], "target_names": target_names}


def _table(files: Sequence[bytes], source: Source, entry: Entry) -> Arrays:
    tables = [_text(file, source.header) for file in files]
    table = np.vstack(tables)
    return {"X": table[:, :-1], entry.target: _whole(table[:, -1])} | _split(tables, source)


def _pairs(files: Sequence[bytes], source: Source, entry: Entry) -> Arrays:
    """A file of features, and one of indicators of the class, for each part."""
    tables = [_text(file) for file in files]
    labels = np.vstack(tables[1::2]).argmax(1)
    return {"X": np.vstack(tables[::2]), entry.target: labels} | _split(tables[::2], source)


def _text(file: bytes, header: bool = False) -> NDArray[np.float64]:
    """Lines of numbers between commas or blanks; a question mark is a missing value."""
    text = file.decode("utf-8").replace(",", " ").replace("?", "nan")
    return np.loadtxt(io.StringIO(text), ndmin=2, skiprows=int(header))


def _whole(labels: NDArray[Any]) -> NDArray[np.int64]:
    whole = labels.astype(np.int64)
    if not np.array_equal(whole, labels):
        raise ValueError("its classes are not whole numbers")
    return whole


def _split(tables: Sequence[Sequence[Any] | NDArray[Any]], source: Source) -> Arrays:
    if not source.parts:
        return {}
    sizes = [len(table) for table in tables]
    return {"split": np.repeat(np.array(source.parts), sizes)}


# ---------------------------------------------------------------- images


def _mat(files: Sequence[bytes], source: Source, entry: Entry) -> Arrays:  # noqa: ARG001
    """MATLAB stores an image column by column; here it is row by row. Classes count from 0."""
    from scipy.io import loadmat

    found = loadmat(io.BytesIO(files[0]))
    height, width = entry.image_shape
    images = np.asarray(found["X"]).reshape(-1, width, height).transpose(0, 2, 1)
    labels = _whole(np.asarray(found["Y"]).ravel())
    return {"X": _bytes(images), "y": labels - int(labels.min())}


def _idx(files: Sequence[bytes], source: Source, entry: Entry) -> Arrays:  # noqa: ARG001
    """The format of MNIST: a file of images, and one of labels, for each part."""
    images = [_idx_array(file, 3) for file in files[::2]]
    labels = np.concatenate([_idx_array(file, 1) for file in files[1::2]])
    arrays: Arrays = {"X": _bytes(np.concatenate(images)), "y": _whole(labels)}
    return arrays | _split(images, source)


def _idx_array(file: bytes, n_dims: int) -> NDArray[np.uint8]:
    data = gzip.decompress(file)
    if data[:4] != bytes((0, 0, 8, n_dims)):  # unsigned bytes, in so many dimensions
        raise ValueError("its first bytes are not those of an IDX file")
    shape = np.frombuffer(data, ">u4", n_dims, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * n_dims).reshape(shape)


def _sprite(files: Sequence[bytes], source: Source, entry: Entry) -> Arrays:  # noqa: ARG001
    """One picture with all images side by side, row by row, and a text file of labels."""
    with pillow().open(io.BytesIO(files[0])) as picture:
        sheet = np.asarray(picture.convert("L"))
    height, width = entry.image_shape
    side = math.isqrt(entry.rows)
    images = sheet.reshape(side, height, side, width).swapaxes(1, 2)
    return {"X": _bytes(images.reshape(-1, height, width)), "y": _whole(_text(files[1])[:, 0])}


def pillow() -> Any:
    """Pillow's Image, or an error that says how to get it."""
    try:
        from PIL import Image
    except ImportError:
        raise FileError("reading it needs Pillow: pip install pillow") from None
    return Image


def _bytes(images: NDArray[Any]) -> NDArray[np.uint8]:
    """Images as rows of grey values from 0 to 255."""
    return images.reshape(len(images), -1).astype(np.uint8)


READERS: dict[str, Callable[[Sequence[bytes], Source, Entry], Arrays]] = {
    "arff": _arff,
    "table": _table,
    "pairs": _pairs,
    "mat": _mat,
    "idx": _idx,
    "sprite": _sprite,
}
