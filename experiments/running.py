"""Run tasks, several at a time, and keep what they give."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from joblib import Parallel, delayed, parallel_config

from experiments.cache import Store
from experiments.tasks import Result, Task
from kofa.errors import FileError, warn

Progress = Callable[[Task, int, int], None]  # a task, how many are done, and how many there are


def run(
    tasks: Iterable[Task], store: Store, jobs: int = 1, progress: Progress | None = None
) -> dict[Task, Result]:
    """The results of tasks; those that are not on disk yet are worked out, `jobs` at a time.

    A task that fails is warned of and left out: one fold of one baseline is not worth a night's
    run. Data or packages that are not there end it, as the user can get them.
    """
    tasks = list(tasks)
    results = {task: kept for task in tasks if (kept := store.read(task)) is not None}
    missing = [task for task in tasks if task not in results]
    for task, result, messages in _worked_out(missing, jobs):
        for kind, text in messages:  # of another process, which does not know what is to be shown
            warn(text, kind)
        if isinstance(result, str):
            warn(f"{task.name} failed: {result}")
            continue
        store.write(task, result)
        results[task] = result
        if progress is not None:
            progress(task, len(results), len(tasks))
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
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", ".* same value in all samples")  # in one fold or all
        try:
            result: Result | str = _checked(task.work())
        except (FileError, ImportError):
            raise
        except Exception as error:
            result = repr(error)
    return task, result, [(_builtin(w.category), str(w.message)) for w in messages]


def _builtin(kind: type[Warning]) -> type[Warning]:
    """The kind of Python's own that it belongs to, which can be made of a text alone."""
    return next(one for one in kind.__mro__ if one.__module__ == "builtins")


def _checked(result: Result) -> Result:
    bad = [name for name, value in result.items() if not np.isfinite(value).all()]
    if bad:
        raise ValueError(f"not a number: {', '.join(bad)}")
    return result
