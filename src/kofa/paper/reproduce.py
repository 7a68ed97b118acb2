"""Run experiments, and write what they show to a folder."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import scipy
import sklearn

from kofa import __version__
from kofa.errors import DeclarationError
from kofa.paper import faces, mkl, oil, reconstruction, regression, sparse
from kofa.paper.experiment import Experiment, Shown
from kofa.paper.tasks import Options, Store, Task, run

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for module in (regression, sparse, faces, oil, mkl, reconstruction)
    for experiment in module.EXPERIMENTS
}
Show = Callable[[Task, int, int], None]


def chosen(names: Iterable[str]) -> list[Experiment]:
    """The experiments with these names; "all" is every one."""
    wanted = list(names)
    _known("experiment", wanted, [*EXPERIMENTS, "all"])
    return [e for name, e in EXPERIMENTS.items() if name in wanted or "all" in wanted]


def check(experiments: Iterable[Experiment], options: Options) -> None:
    """Sets and methods that were asked for are there in at least one of the experiments."""
    everything = replace(options, sets=(), methods=())
    tasks = [task for experiment in experiments for task in experiment.tasks(everything)]
    _known("data set", options.sets, dict.fromkeys(task.dataset for task in tasks))
    _known("method", options.methods, dict.fromkeys(task.row for task in tasks))


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
    for experiment in experiments:
        tasks = experiment.tasks(options)
        if tasks:  # else it has none of the sets or methods that were asked for
            results = run(tasks, store, jobs, show)
            written += _write(experiment.show(results, options), options, folder)
    return written


def _write(shown: Shown, options: Options, folder: Path) -> list[Path]:
    kind = "-as-published" if options.as_published else ""
    written = []
    for table in shown.tables:
        stem = folder / f"{table.name}{kind}"
        text = f"{table.markdown()}\n{circumstances(options)}\n"
        for path, content in (
            (stem.with_suffix(".md"), text),
            (stem.with_suffix(".csv"), table.csv()),
        ):
            path.write_text(content, encoding="utf-8")
            written.append(path)
    for picture in shown.pictures:
        path = folder / f"{picture.name}{kind}.png"
        picture.draw(path)
        written.append(path)
    return written


def circumstances(options: Options) -> str:
    """When, with what and how: a line for the foot of a table."""
    versions = (
        f"kofa {__version__}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, Python {platform.python_version()}"
    )
    how = "our defaults" + (", and as published" if options.as_published else "")
    folds = f"{len(options.fold_numbers)} of {options.folds} folds"
    quick = ", quick: small grids" if options.quick else ""
    today = datetime.now(UTC).date().isoformat()
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"*{today}; {versions}; {machine}; {how}, {folds}{quick}.*"
