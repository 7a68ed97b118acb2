"""What an experiment is: tasks to do, and what to show of their results."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.protocol import table

FOLDS = int(table()["protocols"]["regression"]["folds"])
Array = NDArray[np.float64]
Value = float | NDArray[Any]
Result = Mapping[str, Value]

# ---------------------------------------------------------------- tasks


@dataclass(frozen=True)
class Task:
    """One method on one fold of one data set. `work` may be called in another process.

    Its result is kept under family, data set, fold and settings: tasks of several experiments
    that agree in these are done once.
    """

    family: str
    dataset: str
    method: str  # as a table names it
    fold: int
    work: Callable[[], Result] = field(compare=False, repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)  # that change the result
    curve: str = ""  # the method by which it is asked for, where it is run at several points

    @property
    def row(self) -> str:
        return self.curve or self.method

    @property
    def name(self) -> str:
        return f"{self.family} {self.dataset}: {self.method}, fold {self.fold + 1}"


Results = Mapping[Task, Result]


def figures(results: Results, dataset: str, method: str, name: str) -> list[float]:
    """One figure of a method on the folds of a set."""
    return [
        float(result[name])
        for task, result in results.items()
        if (task.dataset, task.method) == (dataset, method) and name in result
    ]


def by_method(results: Results) -> dict[str, list[Result]]:
    """The results on all folds, for each method."""
    found: dict[str, list[Result]] = {}
    for task, result in results.items():
        found.setdefault(task.method, []).append(result)
    return found


@dataclass(frozen=True)
class Options:
    """What a user may ask of an experiment."""

    folds: int = FOLDS
    quick: bool = False  # two folds and small grids: does it run, not how good is it
    as_published: bool = False  # the paper's own choices beside ours
    sets: tuple[str, ...] = ()  # none: all
    methods: tuple[str, ...] = ()
    by_fold: tuple[str, ...] = ()  # files with figures of other methods on the same folds

    @property
    def fold_numbers(self) -> range:
        """Those that are run; a quick run takes the first two of the same folds."""
        return range(min(2, self.folds) if self.quick else self.folds)

    @property
    def ways(self) -> list[Options]:
        """How our model is fitted: in our way, and if asked for as published too."""
        ours = replace(self, as_published=False)
        return [ours, self] if self.as_published else [ours]

    def named(self, row: str) -> str:
        """The name of a row in this way."""
        return f"{row}, as published" if self.as_published else row

    @property
    def is_part(self) -> bool:
        """Whether this is less than the whole of an experiment."""
        return bool(self.sets or self.methods or self.folds != FOLDS)

    def wants(self, task: Task) -> bool:
        """Whether a task is among the sets and methods that were asked for."""
        of_set = not self.sets or task.dataset in self.sets
        return of_set and (not self.methods or task.row in self.methods)

    def chosen(self, names: Iterable[str]) -> list[str]:
        """The data sets that were asked for."""
        return [name for name in names if not self.sets or name in self.sets]

    def asked(self, methods: Iterable[str]) -> list[str]:
        """The methods that were asked for."""
        return [method for method in methods if not self.methods or method in self.methods]


# ---------------------------------------------------------------- tables and pictures


@dataclass(frozen=True)
class Table:
    """A title, a header and rows of text."""

    name: str  # of its file
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def markdown(self) -> str:
        lines = [f"## {self.title}", "", line(self.header), line(["---"] * len(self.header))]
        lines += [line(row) for row in self.rows]
        lines += ["", *(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.header, *self.rows])
        return out.getvalue()


def line(cells: Sequence[str]) -> str:
    """A line of a table in Markdown."""
    return "| " + " | ".join(cells) + " |"


def spread(values: Sequence[float] | Any, digits: int = 3) -> str:
    """Mean ± standard deviation, or a dash where there is nothing."""
    values = np.asarray(values, dtype=float)
    if not len(values):
        return "–"
    return f"{values.mean():.{digits}f} ± {values.std():.{digits}f}"


def signed_range(values: Array) -> str:
    """The smallest and the largest of differences between methods."""
    return f"{values.min():+.4f} to {values.max():+.4f} for single folds"


@dataclass(frozen=True)
class Picture:
    """A figure, drawn when it is saved (with matplotlib, an extra)."""

    name: str
    draw: Callable[[Path], None] = field(repr=False)


@dataclass(frozen=True)
class Shown:
    """Tables and pictures of an experiment."""

    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper."""

    tasks: Callable[[Options], list[Task]]
    show: Callable[[Results, Options], Shown]
    group = "paper"


# ---------------------------------------------------------------- rows of the benchmarks


@dataclass(frozen=True)
class Mark:
    """The range in which a figure should lie."""

    low: float = -math.inf
    high: float = math.inf

    def met(self, figure: float) -> bool:
        return self.low <= figure <= self.high

    def __str__(self) -> str:
        if math.isinf(self.low):
            return f"≤ {self.high:g}"
        return f"≥ {self.low:g}" if math.isinf(self.high) else f"{self.low:g}–{self.high:g}"


@dataclass(frozen=True)
class Row:
    """What was measured. Without a figure it was skipped; without a mark, it informs."""

    what: str
    figure: float | None
    mark: Mark | None
    text: str  # the figure as printed, with what else is worth knowing

    @property
    def verdict(self) -> str:
        if self.figure is None or self.mark is None:
            return "–"
        return "ok" if self.mark.met(self.figure) else "below"


Measurement = Callable[[], Row]  # what is not kept: times, and what takes little of it


def skipped(what: str, mark: Mark | None) -> Row:
    """The row of a set that is not on this machine."""
    return Row(what, None, mark, "skipped (no data; set KOFA_DATA)")


@dataclass(frozen=True)
class Benchmark:
    """A row whose tasks are kept: their results become one figure, and a text."""

    what: str
    mark: Mark
    tasks: Callable[[], list[Task]]
    summary: Callable[[Results, Options], tuple[float, str]]
    group = "bench"

    def row(self, results: Results, options: Options) -> Row:
        figure, text = self.summary(results, options)
        return Row(self.what, float(figure), self.mark, text)
