"""From the bytes of public files to arrays: `X`, `Y` or `y`, and `split` where there is one."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.data import Arrays, Entry
from kofa.errors import FileError

_BLANKS = re.compile(r"(?m)(?:^|(?<=,))[ \t]+")  # before a value; SciPy takes them for its part


def parse(files: Sequence[bytes], entry: Entry) -> Arrays:
    """The arrays in the files of a set; `FileError` where they are not what they should be."""
    try:
        return READERS[entry.format](files, entry)
    except Exception as error:  # the readers of other packages raise anything at all
        reason = str(error) or type(error).__name__
        raise FileError(f"it is not the {entry.format} file it should be ({reason})") from error


# ---------------------------------------------------------------- ARFF and text


def _arff(files: Sequence[bytes], entry: Entry) -> Arrays:
    tables = [_read_arff(file) for file in files]
    return split_columns(np.vstack(tables), entry) | _split(tables, entry)


def _read_arff(file: bytes) -> NDArray[np.float64]:
    from scipy.io import arff

    rows, meta = arff.loadarff(io.StringIO(_BLANKS.sub("", file.decode("utf-8"))))
    return np.column_stack([_numbers(rows[name]) for name in meta.names()])


def _numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers as they are; labels, which come as bytes, as the numbers that they name."""
    if column.dtype.kind != "S":
        return column.astype(np.float64)
    return np.where(column == b"?", b"nan", column).astype(np.float64)


def split_columns(table: NDArray[np.float64], entry: Entry) -> Arrays:
    """Features, and the last columns, which are the targets or the class."""
    if entry.targets:
        return {"X": table[:, : -entry.targets], "Y": table[:, -entry.targets :]}
    return {"X": table[:, :-1], "y": _whole(table[:, -1])}


def _table(files: Sequence[bytes], entry: Entry) -> Arrays:
    tables = [_text(file, entry.header) for file in files]
    return split_columns(np.vstack(tables), entry) | _split(tables, entry)


def _pairs(files: Sequence[bytes], entry: Entry) -> Arrays:
    """A file of features, and one of indicators of the class, for each part."""
    tables = [_text(file) for file in files]
    labels = np.vstack(tables[1::2]).argmax(1)
    return {"X": np.vstack(tables[::2]), "y": labels} | _split(tables[::2], entry)


def _text(file: bytes, header: bool = False) -> NDArray[np.float64]:
    """Lines of numbers between commas or blanks; a question mark is a missing value."""
    text = file.decode("utf-8").replace(",", " ").replace("?", "nan")
    return np.loadtxt(io.StringIO(text), ndmin=2, skiprows=int(header))


def _whole(labels: NDArray[Any]) -> NDArray[np.int64]:
    whole = labels.astype(np.int64)
    if not np.array_equal(whole, labels):
        raise ValueError("its classes are not whole numbers")
    return whole


def _split(tables: Sequence[NDArray[Any]], entry: Entry) -> Arrays:
    if not entry.parts:
        return {}
    return {"split": np.repeat(np.array(entry.parts), [len(table) for table in tables])}


# ---------------------------------------------------------------- images


def _mat(files: Sequence[bytes], entry: Entry) -> Arrays:
    """MATLAB stores an image column by column; here it is row by row. Classes count from 0."""
    from scipy.io import loadmat

    found = loadmat(io.BytesIO(files[0]))
    height, width = entry.image_shape or (1, 1)
    images = np.asarray(found["X"]).reshape(-1, width, height).transpose(0, 2, 1)
    labels = _whole(np.asarray(found["Y"]).ravel())
    return {"X": _bytes(images), "y": labels - int(labels.min())}


def _sprite(files: Sequence[bytes], entry: Entry) -> Arrays:
    """One picture with all images side by side, row by row, and a text file of labels."""
    from PIL import Image

    with Image.open(io.BytesIO(files[0])) as picture:
        sheet = np.asarray(picture.convert("L"))
    height, width = entry.image_shape or (1, 1)
    side = math.isqrt(entry.rows)
    images = sheet.reshape(side, height, side, width).swapaxes(1, 2)
    return {"X": _bytes(images.reshape(-1, height, width)), "y": _whole(_text(files[1])[:, 0])}


def _bytes(images: NDArray[Any]) -> NDArray[np.uint8]:
    """Images as rows of grey values from 0 to 255."""
    return images.reshape(len(images), -1).astype(np.uint8)


READERS: dict[str, Callable[[Sequence[bytes], Entry], Arrays]] = {
    "arff": _arff,
    "table": _table,
    "pairs": _pairs,
    "mat": _mat,
    "sprite": _sprite,
}
