"""Do predictions depend on whether rows are in single or in double precision?"""

from __future__ import annotations

from functools import partial

from experiments.experiment import Benchmark, Mark
from experiments.sets.regression import SETS, bench_tasks, values
from experiments.tasks import Results, Task

FOLDS = 2
MARK = Mark(high=0.002)


def tasks(name: str, kernel: str | None) -> list[Task]:
    given = {"kernel": kernel}
    methods = {
        "double": ("estimator", given),
        "single": ("estimator", {**given, "dtype": "float32"}),
    }
    return [task for task in bench_tasks([name], methods) if task.fold < FOLDS]


def summary(results: Results) -> tuple[float, str]:
    double, single = (values(results, how, "r2") for how in ("double", "single"))
    change = float(abs(single - double).max())
    return change, f"{change:.5f} ({single.mean():.4f}, {double.mean():.4f})"


def of_set(name: str, kernel: str | None) -> Benchmark:
    """Through the bank, or from the columns themselves."""
    what = f"{name}, kernel={kernel!r}, {FOLDS} folds: largest change of R² with dtype='float32'"
    return Benchmark(what, MARK, partial(tasks, name, kernel), summary)


EXPERIMENTS: dict[str, Benchmark] = {
    **{f"float32-{name}": of_set(name, "bank") for name in SETS},
    **{f"float32-columns-{name}": of_set(name, None) for name in SETS},
}
