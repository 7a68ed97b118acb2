"""The tables of a folder as text, before anything is known about them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kofa.errors import FileError, KofaError
from kofa.files import SUFFIXES, Reading, damage_in_words, file_kind, read_file
from kofa.files.containers import array_names, check_hdf5
from kofa.files.text import read_layout

_ROWS = 2000  # rows of a text file that are read
_MOSTLY = 0.9  # share of different values above which a first column holds sample ids
# Columns of tables of scores, and of predictions.
_EVALUATED = ({"view", "column", "score", "value"}, {"view", "column", "truth", "level"})
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Cells:
    """A table as text: the ids of all samples, and the first cells of each column."""

    path: Path
    options: Mapping[str, Any]  # that are needed to read it so
    ids: Sequence[str]
    columns: Mapping[str, Sequence[str]]

    def transposed(self) -> Cells:
        """With samples for columns, and columns for samples."""
        rows = zip(*self.columns.values(), strict=True)
        columns = {name: list(row) for name, row in zip(self.ids, rows, strict=False)}
        return Cells(self.path, {**self.options, "transpose": True}, list(self.columns), columns)


def read_tables(folder: Path) -> tuple[list[Cells], list[str]]:
    """What the files of a folder hold, and remarks on those that cannot be read."""
    tables: list[Cells] = []
    remarks: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.name.lower().endswith((*SUFFIXES, ".csv.gz", ".tsv.gz")):
            try:
                with damage_in_words(path):
                    tables += [_checked(_cells(path, part)) for part in _parts(path)]
            except KofaError as error:
                error.source = path.name
                remarks.append(f"left out {error}")
            except (OSError, ImportError) as error:
                remarks.append(f"left out {path.name}: {error}")
    return tables, remarks


def _checked(table: Cells) -> Cells:
    """The table, if all its names can be written to a file of TOML, which is in UTF-8.

    A table that kofa evaluate wrote has scores, not data: it is refused.
    """
    if any(fields.issubset(table.columns) for fields in _EVALUATED):
        raise FileError("kofa evaluate wrote it", table.path)
    for name in (table.path.name, *map(str, table.options.values()), *table.columns, *table.ids):
        if re.search("[\ud800-\udfff]", name):
            raise FileError(f"the name {name!r} is not UTF-8", table.path, cure="rename it")
    return table


def _parts(path: Path) -> list[dict[str, str]]:
    """The tables in one file, as options that name them."""
    kind = file_kind(path)
    if kind == "hdf5":
        check_hdf5(path)
    if kind == "npz":
        with np.load(path, allow_pickle=False) as arrays:
            names = array_names(arrays)
        return [{"array": name} for name in names] if len(names) > 1 else [{}]
    if kind == "hdf5" and path.suffix.lower() == ".h5mu":
        import mudata

        return [{"modality": name} for name in mudata.read_h5mu(path, backed="r").mod]
    if kind == "hdf5":
        import anndata

        about = anndata.read_h5ad(path, backed="r").obs.shape[1]
        return [{}, {"layer": "obs"}] if about else [{}]
    return [{}]


def _cells(path: Path, part: Mapping[str, Any]) -> Cells:
    """A table of any format as text."""
    if file_kind(path) == "text":
        return _text_cells(path)
    frame = read_file(path, replace(Reading(values="words"), **part))
    start = frame.iloc[:_ROWS].fillna("")
    return Cells(path, part, list(frame.index), {name: start[name].tolist() for name in start})


def _text_cells(path: Path) -> Cells:
    layout = read_layout(path, Reading())
    records = ([cell.strip() for cell in fields] for _, fields in layout.rows())
    rows = list(itertools.islice(records, _ROWS))
    if not rows or any(len(fields) != len(layout.names) for fields in rows):
        read_file(path)  # raises the error with the line
    options: dict[str, Any] = {}
    if _has_decimal_commas(rows[:50], layout.sep):
        options["decimal"] = ","
        rows = [[c.replace(",", ".") if _COMMA_NUMBER.fullmatch(c) else c for c in r] for r in rows]
    columns = {name: [fields[j] for fields in rows] for j, name in enumerate(layout.names)}
    first = columns[layout.names[0]] + [fields[0] for fields in records]
    if _are_values(first):
        ids = list(map(str, range(len(first))))
        return Cells(path, options | {"index": False}, ids, columns)
    if len(set(first)) < len(first) or "" in first:
        read_file(path, Reading(values="words"))  # raises the error with the line
    del columns[layout.names[0]]
    return Cells(path, options, first, columns)


def _has_decimal_commas(rows: Sequence[Sequence[str]], sep: str) -> bool:
    """Whether there are numbers such as 1,5; between commas, 1,500 is rather a thousand."""
    found = [cell for fields in rows for cell in fields if _COMMA_NUMBER.fullmatch(cell)]
    thousands = sep == "," and all(re.fullmatch(r"[+-]?\d{1,3},\d{3}", cell) for cell in found)
    return bool(found) and not thousands


def _are_values(cells: Sequence[str]) -> bool:
    """Whether a first column holds decimals, or repeats too many values to be sample ids."""
    decimals = all(re.fullmatch(r"-?\d*\.\d+", cell) for cell in cells)
    given = [cell for cell in cells if cell]
    return decimals or len(set(given)) < _MOSTLY * len(given)
