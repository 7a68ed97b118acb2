"""Tasks, of which experiments are made: one method on one fold of one data set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.protocol import table

FOLDS = int(table()["protocols"]["regression"]["folds"])
Array = NDArray[np.float64]
Value = float | NDArray[Any]
Result = Mapping[str, Value]


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
