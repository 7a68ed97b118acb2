"""Tables into files, whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from kofa.errors import FileError
from kofa.files.options import nearest
from kofa.replacing import replacing

FORMATS = (".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz")


def write_file(frame: Any, path: str | PathLike[str]) -> None:
    """Write a DataFrame as CSV, TSV or Parquet by the ending of the path; "-" is CSV to stdout.

    The file appears whole, in place of one that was there, or not at all.

    Examples
    --------
    >>> import pandas as pd, tempfile, pathlib, kofa.files
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "x.csv"
    >>> kofa.files.write_file(pd.DataFrame({"a": [1, 2]}, index=["s1", "s2"]), path)
    >>> path.read_text()
    'sample,a\\ns1,1\\ns2,2\\n'
    """
    frame = frame.rename_axis(index=frame.index.name or "sample")
    if str(path) == "-":
        sys.stdout.write(frame.to_csv())
        return
    path = Path(path)
    kind = check_writable(path)
    with _in_words(path), replacing(path) as part:
        _write(frame, part, kind)


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8, whole or not at all."""
    check_folder(path)
    with _in_words(path), replacing(path) as part:
        part.write_text(text, encoding="utf-8")


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Errors that name the file, not the one that was to take its place."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from error


def _write(frame: Any, path: Path, kind: str) -> None:
    if kind == ".parquet":
        frame.to_parquet(path)
        return
    sep = "\t" if kind.startswith(".tsv") else ","
    frame.to_csv(path, sep=sep, compression="gzip" if kind.endswith(".gz") else None)


def check_writable(path: Path) -> str:
    """The ending that says the format; an error if nothing can be written there."""
    kind = next((one for one in FORMATS if path.name.lower().endswith(one)), None)
    if kind is None:
        cure = nearest(path.suffix, FORMATS)
        raise FileError(f"{path}: expected a file that ends in {', '.join(FORMATS)}{cure}")
    check_folder(path)
    return kind


def check_folder(path: Path) -> None:
    """Raise unless a file of this name can be made in its folder."""
    if path.is_dir():
        raise FileError(f"{path}: expected the name of a file but this is a folder")
    folder = path.parent
    if not folder.is_dir():
        raise FileError(f"{path}: there is no folder {str(folder)!r}; make it first")
    if not os.access(folder, os.W_OK):
        raise FileError(f"{path}: the folder {str(folder)!r} cannot be written to")
