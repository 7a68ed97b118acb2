"""Run experiments, and write what they show to a folder."""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy
import sklearn

from kofa import __version__
from kofa.errors import DeclarationError
from kofa.paper import faces, mkl, oil, reconstruction, regression, sparse
from kofa.paper.experiment import Experiment, Shown
from kofa.paper.mrd import has_gpy
from kofa.paper.tasks import Options, Result, Store, Task, run

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for module in (regression, sparse, faces, oil, mkl, reconstruction)
    for experiment in module.EXPERIMENTS
}
PEERS = ("MRD", oil.PEER)
Show = Callable[[Task, int, int], None]


def chosen(names: Iterable[str]) -> list[Experiment]:
    """The experiments with these names; "all" is every one."""
    wanted = list(names)
    _known("experiment", wanted, [*EXPERIMENTS, "all"])
    return [e for name, e in EXPERIMENTS.items() if name in wanted or "all" in wanted]


def check(experiments: Sequence[Experiment], options: Options) -> None:
    """Sets and methods that were asked for are there in at least one of the experiments."""
    whole = replace(options, sets=(), methods=(), quick=False)

    def rows_of(options: Options) -> list[Task]:
        return [task for experiment in experiments for task in experiment.tasks(options)]

    tasks = rows_of(whole)
    rows = dict.fromkeys(task.row for task in tasks)
    needs = {} if has_gpy() else dict.fromkeys(PEERS, "it needs GPy: pip install kofa[paper]")
    needs |= {
        task.row: "it needs --as-published" for task in rows_of(replace(whole, as_published=True))
    }
    _known("data set", options.sets, dict.fromkeys(task.dataset for task in tasks))
    for method in options.methods:
        if method not in rows and method in needs:
            raise DeclarationError(f"The method {method!r} cannot be run: {needs[method]}.")
    _known("method", options.methods, rows)


def _known(what: str, asked: Iterable[str], known: Iterable[str]) -> None:
    known = list(known)
    for name in asked:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise DeclarationError(f"There is no {what} {name!r}{hint} Known: {'; '.join(known)}.")


def reproduce(
    experiments: Iterable[Experiment],
    options: Options,
    folder: Path,
    jobs: int,
    show: Show,
) -> list[Path]:
    """Work out what is not in the folder's cache yet; write tables and pictures; their paths."""
    store, written = Store(folder / "cache"), []
    if find_spec("matplotlib") is None:
        warnings.warn("Pictures are left out. For them: pip install kofa[plot].", stacklevel=2)
    for experiment in experiments:
        tasks = [task for task in experiment.tasks(options) if options.wants(task)]
        if tasks:  # else it has none of the sets or methods that were asked for
            results = run(tasks, store, jobs, show)
            written += _write(
                experiment.show(results, options),
                suffix(options),
                foot(tasks, results, options),
                folder,
            )
    return written


def _write(shown: Shown, suffix: str, foot: str, folder: Path) -> list[Path]:
    written = []
    for table in shown.tables:
        stem = f"{table.name}{suffix}"
        for name, content in (
            (f"{stem}.md", f"{table.markdown()}\n{foot}\n"),
            (f"{stem}.csv", table.csv()),
        ):
            (folder / name).write_text(content, encoding="utf-8")
            written.append(folder / name)
    for picture in shown.pictures if find_spec("matplotlib") else ():
        path = folder / f"{picture.name}{suffix}.png"
        picture.draw(path)
        written.append(path)
    return written


def suffix(options: Options) -> str:
    """What keeps a quick run, or a part, from taking the place of the whole."""
    kinds = {
        "-as-published": options.as_published,
        "-part": options.is_part,
        "-quick": options.quick,
    }
    return "".join(kind for kind, is_so in kinds.items() if is_so)


def foot(tasks: Sequence[Task], results: Mapping[Task, Result], options: Options) -> str:
    """When, with what and how; and what is missing."""
    versions = (
        f"kofa {__version__}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, Python {platform.python_version()}"
    )
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    how = "our defaults" + (", and as published" if options.as_published else "")
    of = tasks[0].settings.get("folds")
    folds = "" if of is None else f", {len({task.fold for task in tasks})} of {of} folds"
    quick = ", quick: small grids" if options.quick else ""
    today = datetime.now(UTC).date().isoformat()
    failed = [task.name for task in tasks if task not in results]
    lost = f"Failed, and left out: {'; '.join(failed)}.\n\n" if failed else ""
    return f"{lost}*Written {today}; {versions}; {machine}; {how}{folds}{quick}.*"
