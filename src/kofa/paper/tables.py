"""Tables of results: as Markdown to read, as CSV to compute with."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Table:
    """A title, a header and rows of text."""

    name: str  # of its file
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def markdown(self) -> str:
        lines = [f"## {self.title}", "", _line(self.header), _line(["---"] * len(self.header))]
        lines += [_line(row) for row in self.rows]
        lines += ["", *(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.header, *self.rows])
        return out.getvalue()


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def spread(values: Sequence[float] | Any, digits: int = 3) -> str:
    """Mean ± standard deviation, or a dash where there is nothing."""
    values = np.asarray(values, dtype=float)
    if not len(values):
        return "–"
    return f"{values.mean():.{digits}f} ± {values.std():.{digits}f}"
