"""Run experiments, print what they show, and write tables and pictures to a folder."""

from __future__ import annotations

import csv
import hashlib
import io
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from experiments.cache import Origin, Store
from experiments.data import available, load
from experiments.experiment import Benchmark, Experiment, Measurement, Row, Shown, line, skipped
from experiments.registry import Named
from experiments.running import run
from experiments.tasks import FOLDS, Options, Result, Results, Task
from kofa.errors import warn
from kofa.files import write_text


@dataclass
class Runner:
    """Where results go, and how many tasks are done at a time."""

    folder: Path
    options: Options = field(default_factory=Options)
    jobs: int = 1
    began: float = field(default_factory=time.monotonic)

    @property
    def store(self) -> Store:
        return Store(self.folder / "cache")

    def results(self, tasks: Sequence[Task], store: Store) -> dict[Task, Result]:
        return run(tasks, store, self.jobs, self._progress)

    def _progress(self, task: Task, done: int, total: int) -> None:
        seconds = time.monotonic() - self.began
        print(f"{done}/{total}  {task.name}  ({seconds:.0f} s)", file=sys.stderr, flush=True)

    def show(self, asked: Sequence[Named]) -> None:
        """Tables and figures first, then the rows of the benchmarks."""
        tables = {e.name: e.experiment for e in asked if isinstance(e.experiment, Experiment)}
        for path in self.write_tables(tables):
            if path.suffix == ".md":
                print(path.read_text(encoding="utf-8"))
        rows = {e.name: e.experiment for e in asked if not isinstance(e.experiment, Experiment)}
        self.print_rows(rows)

    # ------------------------------------------------------------ rows of the benchmarks

    def print_rows(self, rows: Mapping[str, Benchmark | Measurement]) -> None:
        """Run in turn; print each row as soon as it is known."""
        if rows:
            print("| name | what | figure | mark | |")
            print("|---|---|---|---|---|", flush=True)
        for name, experiment in rows.items():
            row = self.row(experiment)
            mark = "–" if row.mark is None else str(row.mark)
            print(line((name, row.what, row.text, mark, row.verdict)), flush=True)

    def row(self, experiment: Benchmark | Measurement) -> Row:
        """What a benchmark found; skipped where its data are not on this machine."""
        if not isinstance(experiment, Benchmark):
            return experiment()
        tasks, store = experiment.tasks(), self.store
        missing = {task.dataset for task in tasks if store.read(task) is None}
        if not all(available(name) for name in missing):
            return skipped(experiment.what, experiment.mark)
        results = self.results(tasks, store)
        if len(results) < len(tasks):
            return Row(experiment.what, None, experiment.mark, "failed")
        return experiment.row(results, self.options)

    # ------------------------------------------------------------ tables and pictures

    def write_tables(self, experiments: Mapping[str, Experiment]) -> list[Path]:
        """Work out what is not in the cache yet; write tables and pictures; their paths."""
        options, store, written = self.options, self.store, []
        if experiments and find_spec("matplotlib") is None:
            warn("Pictures are left out. For them: pip install kofa[plot].")
        tasks = {
            name: [task for task in experiment.tasks(options) if options.wants(task)]
            for name, experiment in experiments.items()
        }
        needy = [name for name, experiment in experiments.items() if not experiment.own_data]
        fetch([task for name in needy for task in tasks[name]], store)
        if idle := [name for name, some in tasks.items() if not some]:
            warn(f"None of the sets and methods are in: {', '.join(idle)}.")
        for name, some in tasks.items():
            if some:
                results = self.results(some, store)
                shown = experiments[name].show(results, options)
                notes = footnotes(some, results, store.origins, options)
                written += write(shown, by_fold(results), notes, suffix(options), self.folder)
        return written


def fetch(tasks: Iterable[Task], store: Store) -> None:
    """See that the data are there before hours are spent, and before two tasks download them."""
    for name in dict.fromkeys(task.dataset for task in tasks if store.read(task) is None):
        load(name)


def write(shown: Shown, folds: str, notes: str, suffix: str, folder: Path) -> list[Path]:
    """Tables as Markdown and CSV, with the figures of each fold, and pictures."""
    contents = {}
    for table in shown.tables:
        contents[f"{table.name}{suffix}.md"] = f"{table.markdown()}\n{notes}\n"
        contents[f"{table.name}{suffix}.csv"] = table.csv()
    if shown.tables:
        contents[f"{shown.tables[0].name}{suffix}-folds.csv"] = folds
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_text(folder / name, content)
    pictures = {f"{p.name}{suffix}.png": p for p in shown.pictures if find_spec("matplotlib")}
    for name, picture in pictures.items():
        picture.draw(folder / name)
    return [folder / name for name in (*contents, *pictures)]


def by_fold(results: Results) -> str:
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


def footnotes(
    tasks: Sequence[Task],
    results: Results,
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
    return "\n\n".join([*_failures(tasks, results), about])


def _failures(tasks: Sequence[Task], results: Results) -> list[str]:
    lines = []
    if failed := [task.name for task in tasks if task not in results]:
        lines.append(f"Failed, and left out: {'; '.join(failed)}.")
    done = [bool(result["converged"]) for result in results.values() if "converged" in result]
    if short := done.count(False):
        lines.append(f"Not converged within the largest number of iterations: {short} fits.")
    return lines
