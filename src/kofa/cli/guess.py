"""A first study.toml from the tables in a folder; what is guessed is there to be changed."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kofa.errors import FileError, KofaError
from kofa.files import SUFFIXES, Reading, file_kind, read_file
from kofa.files.containers import array_names
from kofa.files.text import read_layout

_ROWS = 2000  # of a text file that are looked at
_FEW_COLUMNS = 20  # in a table of more, columns of like kinds stay together
_MOST_CLASSES = 30
_SMALL = 10  # counts come close to zero
_UNUSUAL_MARKS = ("?", ".", "-", "*", "missing", "unknown", "-99", "-999", "-9999")
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Guess:
    """A view, and the lines that declare it."""

    name: str
    file: str
    kind: str
    columns: Sequence[str]
    options: Mapping[str, Any]
    ids: frozenset[str]


@dataclass(frozen=True)
class Column:
    name: str
    kind: str  # a kind of view, or "text" or "empty"
    missing: tuple[str, ...] = ()


# ---------------------------------------------------------------- a folder


def guess_folder(folder: Path) -> tuple[list[Guess], list[str]]:
    """The views that the tables of a folder may be, and remarks on what was left out."""
    guesses: list[Guess] = []
    remarks: list[str] = []
    for path in sorted(folder.iterdir()):
        if not path.name.lower().endswith((*SUFFIXES, ".csv.gz", ".tsv.gz")):
            continue
        try:
            for part in _parts(path):
                found, left = _guess_table(path, part)
                guesses += found
                remarks += left
        except (KofaError, OSError, ImportError) as error:
            what = str(error).removeprefix(str(path)).lstrip(":, ")
            remarks.append(f"left out {path.name}: {what}")
    return _with_unique_names(guesses), remarks


def _parts(path: Path) -> list[dict[str, str]]:
    """The tables in one file, as options that name them."""
    kind = file_kind(path)
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


def _guess_table(path: Path, part: Mapping[str, Any]) -> tuple[list[Guess], list[str]]:
    options: dict[str, Any] = dict(part)
    ids, cells = _text_cells(path, options) if file_kind(path) == "text" else _cells(path, part)
    columns = [guess_column(name, values) for name, values in cells.items()]
    marks = sorted({mark for column in columns for mark in column.missing})
    if marks:
        options["missing"] = marks
    stem = next(iter(part.values()), path.name.split(".")[0])
    groups = group_columns(stem, columns)
    left = [
        f"left out column {c.name!r} of {path.name}: {_REASON[c.kind]}"
        for c in columns
        if c.kind in _REASON
    ]
    shown = [] if len(left) > 5 else left
    if len(left) > 5:
        shown = [f"left out {len(left)} columns of {path.name}: empty, or too many different words"]
    guesses = []
    for name, kind, names in groups:
        chosen = {} if len(names) == len(columns) else _choice(names, [c.name for c in columns])
        guesses.append(Guess(name, path.name, kind, names, options | chosen, ids))
    return guesses, shown


_REASON = {"text": "too many different words for labels", "empty": "it has no values"}


def _choice(names: Sequence[str], all_names: Sequence[str]) -> dict[str, Any]:
    """What to write for some of the columns, whichever is shorter."""
    others = [name for name in all_names if name not in set(names)]
    return {"drop": others} if len(others) < len(names) / 2 else {"columns": list(names)}


def _text_cells(path: Path, options: dict[str, Any]) -> tuple[frozenset[str], dict[str, list[str]]]:
    """Ids and cells of the first rows of a text file; options that they need are added."""
    layout = read_layout(path, Reading())
    rows = [[c.strip() for c in fields] for _, fields in itertools.islice(layout.rows(), _ROWS)]
    if not rows:
        raise FileError(f"{path}: there is a header but no rows below it")
    if any(len(fields) != len(layout.names) for fields in rows):
        read_file(path)  # says which line
    if any(_COMMA_NUMBER.fullmatch(cell) for fields in rows[:50] for cell in fields):
        options["decimal"] = ","
        rows = [[c.replace(",", ".") if _COMMA_NUMBER.fullmatch(c) else c for c in r] for r in rows]
    cells = {name: [fields[j] for fields in rows] for j, name in enumerate(layout.names)}
    first = cells[layout.names[0]]
    if len(set(first)) < len(first) or all(re.fullmatch(r"-?\d*\.\d+", one) for one in first):
        options["index"] = False
        return frozenset(map(str, range(len(rows)))), cells
    return frozenset(cells.pop(layout.names[0])), cells


def _cells(path: Path, part: Mapping[str, Any]) -> tuple[frozenset[str], dict[str, list[str]]]:
    frame = read_file(path, replace(Reading(values="words"), **part)).iloc[:_ROWS]
    return frozenset(frame.index), {name: frame[name].fillna("").tolist() for name in frame.columns}


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
    Column(name='size', kind='real', missing=('?',))
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
    classes = len(set(values))
    repeated = classes <= min(_MOST_CLASSES, max(2, len(values) // 2))
    return Column(name, "categorical" if repeated else "text")


def _split(values: Sequence[str]) -> tuple[list[float], list[str]]:
    numbers, words = [], []
    for value in values:
        try:
            numbers.append(float(value))
        except ValueError:
            words.append(value)
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


# ---------------------------------------------------------------- as text


def as_toml(guesses: Sequence[Guess], remarks: Sequence[str]) -> str:
    """A commented study.toml."""
    labels = [guess.name for guess in guesses if guess.kind in ("categorical", "binary")]
    example = (labels or [guess.name for guess in guesses])[-1]
    parts = [_HEAD.format(outputs=json.dumps(example, ensure_ascii=False))]
    parts += [_declaration(guess) for guess in guesses]
    if remarks:
        parts.append("\n".join(f"# {remark}" for remark in remarks) + "\n")
    return "\n".join(parts)


_HEAD = """\
# A study for kofa: kofa fit study.toml -o model.kofa
# The kinds were guessed: check them. Remove the views that you do not want.
#
# kind:   real, positive (explained by its logarithm), binary (0/1), count, categorical (one column)
# kernel: "rbf", "linear", "laplacian", "polynomial", "bank", or {{name = "rbf", width = 2.0}};
#         leave it out to explain the columns themselves
# index:  the column of sample ids, by default the first; false if there is none

[model]
# outputs = [{outputs}]      # views to be predicted from the others
# n_factors = 25             # the most factors; those that tell nothing are removed
# n_init = 1                 # starts; the best is kept
# max_iter = 1000
# random_state = 0
"""


def _declaration(guess: Guess) -> str:
    bare = re.fullmatch(r"[A-Za-z0-9_-]+", guess.name)
    name = guess.name if bare else json.dumps(guess.name, ensure_ascii=False)
    lines = [f"[views.{name}]", f"file = {_value(guess.file)}", f"kind = {_value(guess.kind)}"]
    lines += [f"{key} = {_value(value)}" for key, value in guess.options.items()]
    if guess.kind != "categorical":
        lines.append('# kernel = "rbf"')
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
