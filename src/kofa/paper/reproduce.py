"""Run experiments, and write what they show to a folder."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import scipy
import sklearn

from kofa import __version__
from kofa.errors import DeclarationError
from kofa.paper import faces, mkl, oil, reconstruction, regression
from kofa.paper.experiment import Experiment, Shown
from kofa.paper.tasks import Options, Store, Task, run

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for module in (regression, faces, oil, mkl, reconstruction)
    for experiment in module.EXPERIMENTS
}
Show = Callable[[Task, int, int], None]


def chosen(names: Iterable[str]) -> list[Experiment]:
    """The experiments with these names; "all" is every one."""
    wanted = list(names)
    for name in wanted:
        if name not in EXPERIMENTS and name != "all":
            near = get_close_matches(name, [*EXPERIMENTS, "all"], 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise DeclarationError(
                f"There is no experiment {name!r}{hint} They are {', '.join(EXPERIMENTS)} and all."
            )
    return [e for name, e in EXPERIMENTS.items() if name in wanted or "all" in wanted]


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
        results = run(experiment.tasks(options), store, jobs, show)
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
    how = "as published" if options.as_published else "our defaults"
    folds = f"{len(options.fold_numbers)} of {options.folds} folds"
    quick = ", quick: small grids" if options.quick else ""
    today = datetime.now(UTC).date().isoformat()
    return f"*{today}; {versions}; {platform.machine()}; {how}, {folds}{quick}.*"
