"""Run experiments, and write what they show to a folder."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from kofa.errors import DeclarationError, warn
from kofa.files.writing import write_text
from kofa.paper import faces, mkl, oil, reconstruction, regression, sparse
from kofa.paper.data import load
from kofa.paper.experiment import Experiment, Shown
from kofa.paper.mrd import has_gpy
from kofa.paper.tasks import FOLDS, Options, Origin, Result, Store, Task, run

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
    needs = {} if has_gpy() else dict.fromkeys(PEERS, "it needs GPy: pip install GPy")
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
        warn("Pictures are left out. For them: pip install kofa[plot].")
    wanted = [(e, [t for t in e.tasks(options) if options.wants(t)]) for e in experiments]
    fetch([task for _, tasks in wanted for task in tasks], store, options.data_dir)
    if idle := [experiment.name for experiment, tasks in wanted if not tasks]:
        told = ", ".join(idle)
        warn(f"None of the sets and methods are in: {told}.")
    for experiment, tasks in wanted:
        if tasks:
            results = run(tasks, store, jobs, show)
            shown = experiment.show(results, options)
            notes = foot(tasks, results, store.origins, options)
            written += _write(shown, by_fold(results), notes, suffix(options), folder)
    return written


def fetch(tasks: Iterable[Task], store: Store, data_dir: str | None) -> None:
    """See that the data are there before hours are spent, and before two tasks download them."""
    for name in dict.fromkeys(task.dataset for task in tasks if store.read(task) is None):
        load(name, data_dir)


def _write(shown: Shown, folds: str, foot: str, suffix: str, folder: Path) -> list[Path]:
    contents = {}
    for table in shown.tables:
        contents[f"{table.name}{suffix}.md"] = f"{table.markdown()}\n{foot}\n"
        contents[f"{table.name}{suffix}.csv"] = table.csv()
    if shown.tables:
        contents[f"{shown.tables[0].name}{suffix}-folds.csv"] = folds
    for name, content in contents.items():
        write_text(folder / name, content)
    pictures = {f"{p.name}{suffix}.png": p for p in shown.pictures if find_spec("matplotlib")}
    for name, picture in pictures.items():
        picture.draw(folder / name)
    return [folder / name for name in (*contents, *pictures)]


def by_fold(results: Mapping[Task, Result]) -> str:
    """All figures that are one number, to compute with."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["set", "method", "fold", "figure", "value"])
    for task, result in results.items():
        about = [task.dataset, task.method, task.fold + 1]
        numbers = {name: value for name, value in result.items() if np.ndim(value) == 0}
        writer.writerows([*about, name, value] for name, value in numbers.items())
    return out.getvalue()


def suffix(options: Options) -> str:
    """What keeps a quick run, or a part, from taking the place of the whole or of another part."""
    folds = f"{options.folds}-folds" if options.folds != FOLDS else ""
    names = "\n".join(sorted(set(options.methods))).encode()  # too long for the name of a file
    methods = f"methods-{hashlib.sha256(names).hexdigest()[:6]}" if names else ""
    how = "as-published" if options.as_published else ""
    parts = (how, *sorted(set(options.sets)), methods, folds, "quick" if options.quick else "")
    return "".join(f"-{part}" for part in parts if part)


def foot(
    tasks: Sequence[Task],
    results: Mapping[Task, Result],
    origins: Mapping[Task, Origin],
    options: Options,
) -> str:
    """What went wrong; then when, with what and how it was worked out."""
    days = sorted({origins[task].day for task in results})
    when = " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "never"
    tools = " and ".join(sorted({origins[task].tools for task in results}))
    how = "our defaults" + (", and as published" if options.as_published else "")
    of = tasks[0].settings.get("folds")
    folds = "" if of is None else f", {len({task.fold for task in tasks})} of {of} folds"
    quick = ", quick: small grids" if options.quick else ""
    about = f"*Worked out {when}; {tools}; {how}{folds}{quick}.*"
    return "\n\n".join([*_troubles(tasks, results), about])


def _troubles(tasks: Sequence[Task], results: Mapping[Task, Result]) -> list[str]:
    told = []
    if failed := [task.name for task in tasks if task not in results]:
        told.append(f"Failed, and left out: {'; '.join(failed)}.")
    done = [bool(result["converged"]) for result in results.values() if "converged" in result]
    if short := done.count(False):
        told.append(f"Not converged within the largest number of iterations: {short} fits.")
    return told
