"""What an experiment is: a table or figure of tasks' results, or a row of the benchmarks."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments.tasks import Array, Options, Results, Task

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
    """A table or figure, of the paper unless another group is named."""

    tasks: Callable[[Options], list[Task]]
    show: Callable[[Results, Options], Shown]
    group: str = "paper"
    own_data: bool = False  # planted, or shipped with scikit-learn: nothing has to be fetched


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
    summary: Callable[[Results], tuple[float, str]]
    more: Callable[[Results, Options], str] = lambda *_: ""  # to be added to the text
    group = "bench"

    def row(self, results: Results, options: Options) -> Row:
        figure, text = self.summary(results)
        return Row(self.what, float(figure), self.mark, text + self.more(results, options))
