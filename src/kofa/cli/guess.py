"""Guesses of the views in the tables of a folder, for a first study.toml."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kofa.cli.cells import Cells, read_tables
from kofa.cli.new_samples import without_new_samples
from kofa.files import Reading, file_kind

_FEW_COLUMNS = 20  # in a table of more, all columns of numbers are one view
_MOST_CLASSES = 30
_MOST_REMARKS = 3  # on columns of one file
_SMALL = 10  # counts come close to zero
_UNUSUAL_MARKS = ("?", ".", "-", "*", "missing", "unknown", "-99", "-999", "-9999")


@dataclass(frozen=True)
class Guess:
    """A view, and the lines that declare it."""

    name: str
    file: str
    kind: str
    columns: Sequence[str]
    options: Mapping[str, Any]
    alone: bool  # it shares no sample with the other files


@dataclass(frozen=True)
class Column:
    name: str
    kind: str  # a kind of view, or what else it is: a key of _REASON, or "mixed"
    missing: tuple[str, ...] = ()
    odd: int | None = None  # the place of the first word among numbers


# ---------------------------------------------------------------- a folder


def guess_folder(folder: Path) -> tuple[list[Guess], list[str]]:
    """The views that the tables of a folder may be, and remarks on what was left out."""
    tables, remarks = read_tables(folder)
    tables, new = without_new_samples(_with_samples_as_rows(tables))
    remarks += new
    alone = _alone(tables)
    guesses = []
    for table in tables:
        found, left = _guess_table(table, alone=table.path in alone)
        guesses += found
        remarks += left
    named = _with_unique_names(guesses)
    remarks += [
        f"{guess.name} is not used: {guess.file} shares no sample with the others; check its index"
        for guess in named
        if guess.alone
    ]
    return named, remarks


def _with_samples_as_rows(tables: Sequence[Cells]) -> list[Cells]:
    """Tables with those transposed whose columns are the samples of others."""
    upright = []
    for table in tables:
        others = _ids_of(one for one in tables if one.path != table.path)
        turned = others.isdisjoint(table.ids) and not others.isdisjoint(table.columns)
        upright.append(table.transposed() if turned and _may_turn(table) else table)
    return upright


def _may_turn(table: Cells) -> bool:
    """Not where rows are samples by the format, or have no names."""
    return table.options.get("index") is not False and file_kind(table.path) != "hdf5"


def _alone(tables: Sequence[Cells]) -> set[Path]:
    """The files that share no sample with the others; empty if this holds for all files."""
    paths = {table.path for table in tables}
    ids = {path: _ids_of(one for one in tables if one.path == path) for path in paths}
    others = {path: set().union(*(ids[one] for one in paths - {path})) for path in paths}
    alone = {path for path in paths if others[path].isdisjoint(ids[path])}
    return set() if alone == paths else alone


def _ids_of(tables: Iterable[Cells]) -> set[str]:
    return {one for table in tables for one in table.ids}


def _guess_table(table: Cells, alone: bool) -> tuple[list[Guess], list[str]]:
    """The views of one table, and remarks on columns that are left out."""
    columns = [guess_column(name, cells) for name, cells in table.columns.items()]
    marks = sorted({mark for column in columns for mark in column.missing})
    options = {**table.options, **({"missing": marks} if marks else {})}
    part = next((options[key] for key in ("array", "modality", "layer") if key in options), None)
    names = [column.name for column in columns]
    guesses = []
    for name, kind, some in group_columns(part or table.path.name.split(".")[0], columns):
        chosen = {} if len(some) == len(names) else _choice(some, names)
        guesses.append(Guess(name, table.path.name, kind, some, options | chosen, alone))
    return guesses, [*_mixed(table, columns), *_left_out(table.path, columns)]


def _mixed(table: Cells, columns: Sequence[Column]) -> list[str]:
    """Remarks on columns of numbers that have a word in them, with the cell."""
    found = [(column.name, column.odd) for column in columns if column.odd is not None]
    remarks = []
    for name, place in found[:_MOST_REMARKS]:
        word, sample = table.columns[name][place], table.ids[place]
        where = f"left out column {name!r} of {table.path.name}: its cells are numbers, but"
        cure = f"correct it, or add missing = [{json.dumps(word)}] if it means missing"
        remarks.append(f"{where} {word!r} in the row of {sample!r}; {cure}")
    if len(found) > _MOST_REMARKS:
        more = f"{len(found) - _MOST_REMARKS} more columns of {table.path.name}"
        remarks.append(f"left out {more}: they have words among numbers too")
    return remarks


def _left_out(path: Path, columns: Sequence[Column]) -> list[str]:
    left = [column for column in columns if column.kind in _REASON]
    if len(left) > _MOST_REMARKS:
        return [f"left out {len(left)} columns of {path.name}: {' or '.join(_REASON.values())}"]
    return [f"left out column {c.name!r} of {path.name}: {_REASON[c.kind]}" for c in left]


_REASON = {
    "text": "too many different words for labels",
    "constant": "the same word in all rows",
    "empty": "no values",
}


def _choice(names: Sequence[str], all_names: Sequence[str]) -> dict[str, Any]:
    """What to write for some of the columns, whichever is shorter."""
    others = [name for name in all_names if name not in set(names)]
    return {"drop": others} if len(others) < len(names) / 2 else {"columns": list(names)}


# ---------------------------------------------------------------- columns


def guess_column(name: str, cells: Sequence[str]) -> Column:
    """What a column of cells may hold.

    >>> guess_column("sick", ["0", "1", "", "1"]).kind
    'binary'
    >>> guess_column("stage", ["early", "late", "early", "late"]).kind
    'categorical'
    >>> guess_column("visits", ["0", "3", "12"]).kind
    'count'
    >>> guess_column("size", ["-0.5", "1.5", "?"])
    Column(name='size', kind='real', missing=('?',), odd=None)
    """
    known = set(Reading().marks)
    values = [cell for cell in cells if cell not in known]
    if not values:
        return Column(name, "empty")
    numbers, words = _split(values)
    marks = tuple(sorted({word for word in words if word.lower() in _UNUSUAL_MARKS}))
    if numbers and len(marks) == len(set(words)):
        numbers, odd = _without_marks(numbers)
        return Column(name, _number_kind(np.array(numbers)), (*marks, *odd))
    labels = [value for value in values if value not in marks]
    kind = _label_kind(labels)
    others = [word for word in words if word not in marks]
    if len(others) <= len(numbers) / 2 and (kind == "text" or len(others) == 1):
        return Column(name, "mixed", marks, list(cells).index(others[0]))
    return Column(name, kind, marks)


def _label_kind(labels: Sequence[str]) -> str:
    classes = len(set(labels))
    if classes < 2:
        return "constant"
    repeated = classes < len(labels) and classes <= min(_MOST_CLASSES, max(2, len(labels) // 2))
    return "categorical" if repeated else "text"


def _split(values: Sequence[str]) -> tuple[list[float], list[str]]:
    """Cells that are numbers, and those that are words, as are codes such as 01."""
    numbers, words = [], []
    for value in values:
        try:
            number = None if re.fullmatch(r"0\d+", value) else float(value)
        except ValueError:
            number = None
        if number is None:
            words.append(value)
        else:
            numbers.append(number)
    return numbers, words


def _without_marks(numbers: list[float]) -> tuple[list[float], tuple[str, ...]]:
    """Numbers without a lone −99, −999 or −9999 far below all others, which means missing."""
    least = min(numbers)
    others = [x for x in numbers if x != least]
    if least in (-99.0, -999.0, -9999.0) and others and min(others) > least / 10:
        return others, (f"{least:g}",)
    return numbers, ()


def _number_kind(x: Any) -> str:
    if np.isin(x, (0.0, 1.0)).all() and len(np.unique(x)) == 2:
        return "binary"
    # Whole numbers that stay far from zero, such as ages, are measured rather than counted.
    if 0 <= x.min() < _SMALL and (x == np.floor(x)).all():
        return "count"
    spread = float(np.std(x))
    skewed = spread > 0 and float(np.mean(((x - x.mean()) / spread) ** 3)) > 1.0
    return "positive" if (x > 0).all() and skewed else "real"


def group_columns(stem: str, columns: Sequence[Column]) -> list[tuple[str, str, list[str]]]:
    """Views of the columns of one table: (name, kind, columns). Labels are views of their own."""
    kinds: dict[str, list[str]] = {}
    for column in columns:
        if column.kind in ("binary", "count", "positive", "real"):
            kinds.setdefault(column.kind, []).append(column.name)
    if sum(map(len, kinds.values())) > _FEW_COLUMNS:
        numeric = [c.name for c in columns if any(c.name in names for names in kinds.values())]
        kinds = {_joint_kind(kinds): numeric}
    largest = max(kinds, key=lambda kind: len(kinds[kind]), default="")
    groups = [
        (stem if kind == largest else f"{stem}_{kind}", kind, names)
        for kind, names in kinds.items()
    ]
    labels = [column.name for column in columns if column.kind == "categorical"]
    return groups + [(name, "categorical", [name]) for name in labels]


def _joint_kind(kinds: Mapping[str, Sequence[str]]) -> str:
    total = sum(map(len, kinds.values()))
    if len(kinds.get("binary", ())) == total:
        return "binary"
    if set(kinds) <= {"binary", "count"}:
        return "count"
    return (
        "positive" if len(kinds.get("positive", ())) > total / 2 and "real" not in kinds else "real"
    )


def _with_unique_names(guesses: Sequence[Guess]) -> list[Guess]:
    taken: set[str] = set()
    named = []
    for guess in guesses:
        base = re.sub(r"\s+", "_", guess.name.strip()) or "view"
        tries = itertools.chain([base], (f"{base}_{n}" for n in itertools.count(2)))
        name = next(one for one in tries if one not in taken)
        taken.add(name)
        named.append(replace(guess, name=name))
    return named


# ---------------------------------------------------------------- outputs


def with_own_view(guesses: Sequence[Guess], column: str) -> list[Guess]:
    """With a column of numbers as a view of its own, if one table alone has it."""
    found = [guess for guess in guesses if not guess.alone and column in guess.columns]
    if len(found) != 1:
        return list(guesses)
    old = found[0]
    rest = [name for name in old.columns if name != column]
    reading = {key: old.options[key] for key in old.options if key not in ("drop", "columns")}
    own = replace(old, name=column, columns=[column], options=reading | {"columns": [column]})
    others = [replace(old, columns=rest, options=_without(old.options, column))] if rest else []
    at = list(guesses).index(old)
    return [*guesses[:at], *others, own, *guesses[at + 1 :]]


def _without(options: Mapping[str, Any], column: str) -> dict[str, Any]:
    """Options of reading that leave a column out."""
    if "columns" in options:
        return {**options, "columns": [one for one in options["columns"] if one != column]}
    return {**options, "drop": [*options.get("drop", ()), column]}
