"""An experiment is many small tasks: one method on one fold of one data set.

What a task gives is kept on disk, so that a run that was broken off goes on where it stopped and
one that asks for more does only what is new.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from joblib import Parallel, delayed, parallel_config

from kofa import __version__
from kofa.errors import FileError, warn
from kofa.paper.data import paper
from kofa.storage.archive import read_archive, write_archive

FOLDS = int(paper()["protocol"]["folds"])
Value = float | np.ndarray[Any, Any]
Result = Mapping[str, Value]


@dataclass(frozen=True)
class Options:
    """What a user may ask of an experiment."""

    folds: int = FOLDS
    quick: bool = False  # two folds and small grids: does it run, not how good is it
    as_published: bool = False  # the paper's own choices beside ours
    data_dir: str | None = None
    sets: tuple[str, ...] = ()  # none: all
    methods: tuple[str, ...] = ()

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


@dataclass(frozen=True)
class Task:
    """One method on one fold. `work` is called in another process, so it is a partial."""

    experiment: str
    dataset: str
    method: str
    fold: int
    work: Callable[[], Result] = field(compare=False, repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)  # that change the result
    curve: str = ""  # the method by which it is asked for, where it is run at several points

    @property
    def row(self) -> str:
        return self.curve or self.method

    @property
    def name(self) -> str:
        return f"{self.experiment} {self.dataset}: {self.method}, fold {self.fold + 1}"

    @property
    def file(self) -> str:
        """A name of its own for everything that would give another result."""
        told = [self.experiment, self.dataset, self.method, self.fold, dict(self.settings)]
        digest = hashlib.sha256(json.dumps([*told, __version__], sort_keys=True).encode())
        return f"{self.experiment}-{self.dataset}-{self.fold}-{digest.hexdigest()[:16]}.result"


@dataclass(frozen=True, order=True)
class Origin:
    """When and with what a result was worked out."""

    day: str
    tools: str

    @classmethod
    def now(cls) -> Origin:
        tools = (
            f"kofa {__version__}, numpy {np.__version__}, scipy {scipy.__version__}, "
            f"scikit-learn {sklearn.__version__}, Python {platform.python_version()}, "
            f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
        )
        return cls(datetime.now(UTC).date().isoformat(), tools)


class Store:
    """Results on disk, one file each; and where those come from that went through it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.origins: dict[Task, Origin] = {}

    def read(self, task: Task) -> Result | None:
        """What the task gave, if it is there and whole."""
        path = self.folder / task.file
        if not path.exists():
            return None
        try:
            manifest, arrays = read_archive(path, "result")
            self.origins[task] = Origin(*manifest["origin"])
        except (FileError, KeyError):
            return None
        return {**manifest["numbers"], **arrays}

    def write(self, task: Task, result: Result) -> None:
        arrays = {name: v for name, v in result.items() if isinstance(v, np.ndarray)}
        numbers = {name: float(v) for name, v in result.items() if name not in arrays}
        origin = self.origins[task] = Origin.now()
        manifest = {
            "contents": "result",
            "task": task.name,
            "settings": dict(task.settings),
            "origin": [origin.day, origin.tools],
            "numbers": numbers,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        write_archive(self.folder / task.file, manifest, arrays)


def run(
    tasks: Iterable[Task],
    store: Store,
    jobs: int = 1,
    show: Callable[[Task, int, int], None] | None = None,
) -> dict[Task, Result]:
    """The results of tasks; those that are not on disk yet are worked out, `jobs` at a time.

    A task that fails is warned of and left out: one fold of one rival is not worth a night's run.
    Data or packages that are not there end it, as the user can get them.
    """
    tasks = list(tasks)
    results = {task: result for task in tasks if (result := store.read(task)) is not None}
    missing = [task for task in tasks if task not in results]
    for task, given, told in _worked_out(missing, jobs):
        for kind, text in told:  # of another process, which does not know what is to be shown
            warn(text, kind)
        if isinstance(given, str):
            warn(f"{task.name} failed: {given}")
            continue
        store.write(task, given)
        results[task] = given
        if show is not None:
            show(task, len(results), len(tasks))
    return {task: results[task] for task in tasks if task in results}


# What comes back from another process is plain: not every warning or error can be sent.
Worked = tuple[Task, Result | str, list[tuple[type[Warning], str]]]


def _worked_out(tasks: list[Task], jobs: int) -> Iterator[Worked]:
    if jobs == 1:
        yield from map(_worked, tasks)
        return
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        yield from Parallel(return_as="generator_unordered")(delayed(_worked)(t) for t in tasks)


def _worked(task: Task) -> Worked:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", ".* same value in all samples")  # in one fold or all
        try:
            given: Result | str = _sound(task.work())
        except (FileError, ImportError):
            raise
        except Exception as error:
            given = repr(error)
    return task, given, [(_plain(w.category), str(w.message)) for w in told]


def _plain(kind: type[Warning]) -> type[Warning]:
    """The kind of Python's own that it belongs to, which can be made of a text alone."""
    return next(one for one in kind.__mro__ if one.__module__ == "builtins")


def _sound(result: Result) -> Result:
    bad = [name for name, value in result.items() if not np.isfinite(value).all()]
    if bad:
        raise ValueError(f"not a number: {', '.join(bad)}")
    return result
