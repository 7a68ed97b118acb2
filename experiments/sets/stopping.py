"""Do predictions depend on when a fit stops?"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

from sklearn.datasets import load_digits

from experiments.experiment import Benchmark, Mark, Measurement, Row, skipped
from experiments.models.classes import auc
from experiments.protocol import splits
from experiments.sets.regression import SETS, bench_tasks, values
from experiments.simulated import hidden_views
from experiments.tasks import Results, Task
from kofa import FactorModel, KernelFactorClassifier, Real

MARK = Mark(high=0.005)
LONG: dict[str, Any] = {"tol": 0.0, "max_iter": 3000}
CHANGE = f"change of the score with tol = 0 and {LONG['max_iter']:,} iterations"


def summary(early: float, late: float) -> tuple[float, str]:
    change = abs(late - early)
    return change, f"{change:.4f} ({early:.4f}, {late:.4f})"


def row(what: str, early: float, late: float) -> Row:
    change, text = summary(early, late)
    return Row(f"{what}: {CHANGE}", change, MARK, text)


def first_fold(name: str) -> list[Task]:
    methods = {"early": ("estimator", {}), "late": ("estimator", LONG)}
    return [task for task in bench_tasks([name], methods) if task.fold == 0]


def r2_summary(results: Results) -> tuple[float, str]:
    return summary(*(float(values(results, when, "r2")[0]) for when in ("early", "late")))


def of_set(name: str) -> Benchmark:
    """R² of the first fold, through the bank."""
    return Benchmark(f"{name}, bank: {CHANGE}", MARK, partial(first_fold, name), r2_summary)


def of_digits() -> Row:
    """AUC of a fold of the first 600 digits, through the bank."""
    X, y = (values[:600] for values in load_digits(return_X_y=True))
    train, test = splits("classes", y, folds=5)[0]
    early, late = (
        auc(y[test], KernelFactorClassifier(**how).fit(X[train], y[train]).predict_proba(X[test]))
        for how in ({}, LONG)
    )
    return row("digits, 600 rows, bank", early, late)


def of_cll(kernel: str | None) -> Row:
    """The second screen of drugs as an output of the first one."""
    what = f"cll, drugs → drugs2, {kernel or 'no kernel'}"
    problem = hidden_views.cll("drugs2", 0)
    if problem is None:
        return skipped(what, MARK)
    tables = {name: problem.tables[name] for name in ("drugs", "drugs2")}
    views = {"drugs": Real(kernel=kernel), "drugs2": Real()}
    early, late = (
        problem.score(
            FactorModel(views, outputs=["drugs2"], **options)
            .fit(tables)
            .predict({"drugs": tables["drugs"][problem.rows]}, "drugs2")
        )
        for options in ({}, LONG)
    )
    return row(what, early, late)


def without_warnings(measurement: Measurement) -> Row:
    """A fit that is not allowed to converge says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measurement()


MEASUREMENTS: dict[str, Measurement] = {
    "digits": of_digits,
    **{f"cll-{k or 'primal'}": partial(of_cll, k) for k in (None, "linear", "rbf", "bank")},
}
EXPERIMENTS: dict[str, Benchmark | Measurement] = {
    **{f"stopping-{name}": of_set(name) for name in SETS},
    **{f"stopping-{name}": partial(without_warnings, one) for name, one in MEASUREMENTS.items()},
}
