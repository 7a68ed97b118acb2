"""How a table is to be read, and errors where it cannot be."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kofa.checks import hint, listed
from kofa.errors import FileError

Values = Literal["numbers", "labels", "words"]

# What stands for a missing value in any file, beside what the user names.
MARKS = (
    "", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None", "<NA>",
    "#N/A", "#NA", "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
)  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """How to read one table.

    Parameters
    ----------
    values : {"numbers", "labels", "words"}
        What the cells are. Labels are words, or numbers where all of them are numbers; with
        "words" they stay words.
    index : None, str, int or False
        The column of sample ids, by name or by position from 0. None is the index that the file
        declares or else its first column; with False samples are known by their row, from 0.
    columns : sequence of str, or None
        Which columns to take, by name or by patterns such as ``"gene*"``. None takes all.
    drop : sequence of str
        Columns to leave out, likewise.
    missing : sequence of str
        What stands for a missing value, beside an empty cell, NA, NaN, null and the like.
    sep, decimal, encoding : str
        Of text files. Without `sep` it is a comma, or what separates the names in the first line.
    array : str or None
        Which array of an npz file.
    modality, layer : str or None
        Which part of an h5mu or h5ad file. The layer "obs" is the table about the samples.
    transpose : bool
        The rows of the file are the columns of the table.
    """

    values: Values = "numbers"
    index: str | int | bool | None = None
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    missing: Sequence[str] = ()
    sep: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    array: str | None = None
    modality: str | None = None
    layer: str | None = None
    transpose: bool = False

    @property
    def marks(self) -> list[str]:
        """All that stands for a missing value."""
        return [*MARKS, *map(str, self.missing)]


def select(path: Path, names: Sequence[str], reading: Reading) -> list[str]:
    """The names of the columns to take, in the order of the file or as they are asked for."""
    known = dict.fromkeys(names)
    chosen = list(known)
    if reading.columns is not None:
        asked = [_matching(path, pattern, known) for pattern in reading.columns]
        chosen = list(dict.fromkeys(name for group in asked for name in group))
    dropped = {name for pattern in reading.drop for name in _matching(path, pattern, known)}
    kept = [name for name in chosen if name not in dropped]
    if not kept:
        raise FileError(f"no column is left of {listed(names) or 'none'}", path)
    return kept


def _matching(path: Path, pattern: str, names: Collection[str]) -> list[str]:
    if pattern in names:
        return [pattern]
    found = [name for name in names if fnmatchcase(name, pattern)]
    if not found:
        cure = hint(pattern, names, "its columns are")
        raise FileError(f"there is no column {pattern!r}", path, cure=cure)
    return found


def index_name(path: Path, names: Sequence[str], reading: Reading) -> str | None:
    """The name of the column of sample ids; None if there is none."""
    index = reading.index
    if index is False:
        return None
    if isinstance(index, str):
        if index not in names:
            cure = hint(index, names, "its columns are")
            raise FileError(f"there is no index column {index!r}", path, cure=cure)
        return index
    place = int(index or 0)
    if not -len(names) <= place < len(names):
        cure = f"there are {len(names)}, from 0"
        raise FileError(f"there is no column {place} for the index", path, cure=cure)
    if len(names) == 1:
        raise FileError(
            f"there is one column, {names[0]!r}, but sample ids and values take two",
            path,
            cure="set sep if it has others, or index to false if there are no ids",
        )
    return names[place]


def same_ids(ids: Any) -> tuple[int, int]:
    """The first two rows of the first sample id that occurs more than once."""
    first, second = np.flatnonzero(ids == ids[ids.duplicated()][0])[:2]
    return int(first), int(second)


def repeated(path: Path, line: str, ids: Any, column: str | None = None) -> FileError:
    """The error for a sample id that occurs more than once."""
    what = f"the sample id {ids[same_ids(ids)[0]]!r} occurs twice"
    cure = "rename or remove one, or name the column of ids with index"
    return FileError(what, path, line, column, cure=cure)


def without_ids(path: Path, why: str) -> FileError:
    """The error for a table whose first column holds values."""
    cure = "set index to the name of the column, or to false if there is none"
    return FileError(f"there is no column of sample ids: {why}", path, cure=cure)


def is_empty(path: Path) -> FileError:
    """The error for a file without a header."""
    return FileError("the file is empty", path, cure="expected a header with rows below it")
