"""Marks, rows and the Markdown table they are printed in."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


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
class Result:
    """What a benchmark found. Without a figure it was skipped; without a mark, it informs."""

    what: str
    figure: float | None
    mark: Mark | None
    text: str  # the figure as printed, with what else is worth knowing

    @property
    def verdict(self) -> str:
        if self.figure is None or self.mark is None:
            return "–"
        return "ok" if self.mark.met(self.figure) else "below"


Benchmark = Callable[[], Result]


def skipped(what: str, mark: Mark) -> Result:
    """The row of a set that is not on this machine."""
    return Result(what, None, mark, "skipped (no data; set KOFA_DATA)")


def run(benchmarks: dict[str, Benchmark]) -> None:
    """Run in turn; print each row as soon as it is known."""
    print("| name | what | figure | mark | |")
    print("|---|---|---|---|---|", flush=True)
    for name, benchmark in benchmarks.items():
        r = benchmark()
        cells = (name, r.what, r.text, "–" if r.mark is None else str(r.mark), r.verdict)
        print(f"| {' | '.join(cells)} |", flush=True)
