"""From a file of any format that is known to a DataFrame."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kofa.checks import most_like
from kofa.errors import FileError
from kofa.files.containers import read_annotated, read_npz, read_parquet
from kofa.files.options import Reading, is_empty, repeated, same_ids, select, without_ids
from kofa.files.temporary import TemporaryPath
from kofa.files.text import read_text

TEXT = (".csv", ".tsv", ".tab", ".txt")
SUFFIXES = (*TEXT, ".parquet", ".pq", ".npz", ".h5ad", ".h5mu")
_READERS = {"text": read_text, "parquet": read_parquet, "npz": read_npz, "hdf5": read_annotated}
_WHOLE = re.compile(r"-?(0|[1-9]\d*)")
_FRACTION = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
_HDF5, _MUDATA, _PARQUET = b"\x89HDF", b"MuData", b"PAR1"
_ZIP, _OLD_EXCEL = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"


def read_file(path: str | PathLike[str], reading: Reading | None = None) -> Any:
    """Read a table from a CSV, TSV, Parquet, npz, h5ad or h5mu file.

    Parameters
    ----------
    path : path of the file
    reading : Reading, or None for the defaults

    Returns
    -------
    DataFrame (n, D) : indexed by sample ids, which are strings as they are written in the file

    Examples
    --------
    >>> import tempfile, pathlib, kofa.files
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "x.csv"
    >>> _ = path.write_text("id,a,b\\n001,1.5,NA\\n002,2.5,4\\n")
    >>> kofa.files.read_file(path)
           a    b
    id
    001  1.5  NaN
    002  2.5  4.0
    """
    path, reading = Path(path), Reading() if reading is None else reading
    kind = file_kind(path)
    with damage_in_words(path):
        frame = _READERS[kind](path, reading)
    if kind != "text":
        frame = _checked(path, frame, reading)
    if reading.transpose:
        frame = _transposed(path, frame, reading)
    check_ids_are_names(path, frame.index, reading)
    if reading.values == "labels":
        frame = frame.apply(_label_numbers)
    elif reading.values == "words":
        frame = frame.apply(_words)
    return frame


def read_stdin(reading: Reading | None = None) -> Any:
    """The same from stdin, whatever the format is."""
    if sys.stdin is None:
        raise FileError("stdin is closed", cure="give a file")
    place = TemporaryPath(in_folder=True)
    place.path.write_bytes(sys.stdin.buffer.read())
    try:
        return read_file(place.path, reading)
    except FileError as error:
        error.source = "stdin"
        raise


@contextmanager
def damage_in_words(path: Path) -> Iterator[None]:
    """Turn errors of other packages about a damaged file into a FileError."""
    try:
        yield
    except (FileError, ImportError):
        raise
    except MemoryError as error:
        raise FileError(f"the table does not fit into memory ({error})", path) from error
    except Exception as error:
        what = str(error) or type(error).__name__
        raise FileError(f"the file is damaged or of another kind ({what})", path) from error


# ---------------------------------------------------------------- which format


def file_kind(path: Path) -> str:
    """Which reader a file needs, by its content; an error if there is no reader for it."""
    check_exists(path)
    with path.open("rb") as file:
        start = file.read(8)
    if not start:
        raise is_empty(path)
    if start.startswith((_HDF5, _MUDATA)):
        return "hdf5"
    if start.startswith(_PARQUET):
        return "parquet"
    if start.startswith(_OLD_EXCEL):
        raise _is_excel(path)
    if start.startswith(_ZIP):
        return _zip_kind(path)
    if path.suffix.lower() in SUFFIXES and path.suffix.lower() not in TEXT:
        raise FileError(f"expected a file of type {path.suffix} but its content is not", path)
    return "text"


def check_exists(path: Path) -> None:
    """Raise, with the nearest name in the folder, unless there is such a file."""
    if "\0" in str(path):
        raise FileError("the name of a file cannot have a null byte in it", path)
    if path.is_symlink() and not path.exists():
        raise FileError("this link leads nowhere", path)
    if path.is_dir():
        raise FileError("expected a file but this is a folder", path)
    if not path.exists():
        raise FileError("there is no such file", path, cure=_nearest_file(path))
    if not path.is_file():
        what = "expected a file but this is a pipe or a device"
        raise FileError(what, path, cure="save it first")


def _nearest_file(path: Path) -> str:
    """The file that may be meant; types are not compared, or all of one type would be alike."""
    if not path.parent.is_dir():
        return f"there is no folder {str(path.parent)!r}"
    there = sorted(path.parent.iterdir(), key=lambda one: one.suffix == path.suffix)
    by_stem = {one.stem.lower(): one.name for one in there}
    found = most_like(path.stem.lower(), by_stem)
    return "" if found is None else f"did you mean {by_stem[found]!r}?"


def _zip_kind(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
    except (zipfile.BadZipFile, OSError) as error:
        raise FileError(f"a damaged file ({error})", path) from error
    if "manifest.json" in members:
        cure = "give the file with the data"
        raise FileError("this is a kofa model, not a table", path, cure=cure)
    if any(member.startswith("xl/") for member in members):
        raise _is_excel(path)
    if members and all(member.endswith(".npy") for member in members):
        return "npz"
    raise FileError("expected a table but this is a zip archive", path, cure="unpack it")


def _is_excel(path: Path) -> FileError:
    return FileError("Excel files are not read", path, cure="save the sheet as CSV")


# ---------------------------------------------------------------- the same checks for all formats


def _checked(path: Path, frame: Any, reading: Reading) -> Any:
    """A table from a format without lines: ids as strings, marks as missing, numbers as such."""
    if not len(frame):
        raise FileError("there are no rows", path)
    frame.index = checked_ids(path, frame.index)
    if reading.missing:
        frame = frame.mask(frame.isin([*reading.missing, *_as_numbers(reading.missing)]))
    if reading.values == "numbers":
        return frame.apply(lambda column: _numbers(path, column))
    return frame


def checked_ids(path: Path, ids: Any) -> Any:
    """Sample ids as strings, each there once."""
    import pandas as pd

    if ids.hasnans:
        row = int(np.argmax(ids.isna()))
        raise FileError("expected a sample id but it is missing", path, f"row {row}")
    ids = pd.Index([str(one) for one in ids], name=ids.name)
    if not ids.is_unique:
        first, second = same_ids(ids)
        raise repeated(path, f"rows {first} and {second}", ids)
    return ids


def _as_numbers(marks: Any) -> list[float]:
    numbers = []
    for mark in marks:
        try:
            numbers.append(float(mark))
        except ValueError:
            continue
    return numbers


def _numbers(path: Path, column: Any) -> Any:
    import pandas as pd

    if getattr(column.dtype, "kind", "O") in "fiub":
        return column
    for row, value in enumerate(column):
        missing = pd.api.types.is_scalar(value) and pd.isna(value)
        if not (missing or isinstance(value, int | float | Decimal | np.number | np.bool_)):
            cure = "drop the column, or make it a view of kind categorical"
            place = (path, f"row {row}", column.name)
            raise FileError("expected a number", *place, got=value, cure=cure)
    return pd.to_numeric(column.map(float, na_action="ignore"))


def _words(column: Any) -> Any:
    return column.map(str, na_action="ignore").astype(object)


def _label_numbers(column: Any) -> Any:
    """Labels that are all whole numbers, or all numbers, as such; 01 is a word."""
    import pandas as pd

    if getattr(column.dtype, "kind", "O") in "fiub" or isinstance(
        column.dtype, pd.CategoricalDtype
    ):
        return column
    labels = [one for one in column.dropna().unique() if isinstance(one, str)]
    if not labels or not all(map(_is_plain_number, labels)):
        return column.astype(object)
    numbers = pd.to_numeric(column)
    whole = all(map(_WHOLE.fullmatch, labels))
    # Missing labels must not make 1 of class 1.0.
    return numbers.astype("Int64") if whole and numbers.isna().any() else numbers


def _is_plain_number(label: str) -> bool:
    return bool(_WHOLE.fullmatch(label) or _FRACTION.fullmatch(label))


def _transposed(path: Path, frame: Any, reading: Reading) -> Any:
    turned = frame.T
    turned.index.name, turned.columns.name = None, None
    turned = turned[select(path, list(turned.columns), reading)]
    return turned.infer_objects() if reading.values == "numbers" else turned


def check_ids_are_names(path: Path, ids: Any, reading: Reading) -> None:
    """A first column of decimals is data, not ids."""
    some = ids[:100]
    if reading.index is None and all(map(_FRACTION.fullmatch, some)):
        raise without_ids(path, f"the first holds numbers such as {some[0]}")
