"""Do predictions depend on when a fit stops?"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

from sklearn.datasets import load_digits
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold

from benchmarks import hidden_views
from benchmarks.data import regression_set
from benchmarks.defaults import SETS
from benchmarks.report import Benchmark, Mark, Result, skipped
from kofa import FactorModel, Real
from kofa.estimators import KernelFactorClassifier, KernelFactorRegressor

MARK = Mark(high=0.005)
LONG: dict[str, Any] = {"tol": 0.0, "max_iter": 3000}


def _result(what: str, early: float, late: float) -> Result:
    what = f"{what}: change of the score with tol = 0 and {LONG['max_iter']:,} iterations"
    return Result(
        what, abs(late - early), MARK, f"{abs(late - early):.4f} ({early:.4f}, {late:.4f})"
    )


def of_set(name: str) -> Result:
    """R² of the first fold of seed 0, through the bank."""
    data = regression_set(name)
    if data is None:
        return skipped(f"{name}, bank", MARK)
    X, Y = data
    train, test = next(KFold(10, shuffle=True, random_state=0).split(X))
    early, late = (
        r2_score(Y[test], KernelFactorRegressor(**options).fit(X[train], Y[train]).predict(X[test]))
        for options in ({}, LONG)
    )
    return _result(f"{name}, bank", early, late)


def of_digits() -> Result:
    """AUC of a fold of the first 600 digits, through the bank."""
    X, y = (values[:600] for values in load_digits(return_X_y=True))
    train, test = next(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    early, late = (
        roc_auc_score(
            y[test],
            KernelFactorClassifier(**options).fit(X[train], y[train]).predict_proba(X[test]),
            multi_class="ovr",
        )
        for options in ({}, LONG)
    )
    return _result("digits, 600 rows, bank", early, late)


def of_cll(kernel: str | None) -> Result:
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
    return _result(what, early, late)


def quietly(row: Benchmark) -> Result:
    """A fit that is not allowed to converge says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return row()


_ROWS: dict[str, Benchmark] = {
    **{f"stopping-{name}": partial(of_set, name) for name in SETS},
    "stopping-digits": of_digits,
    **{
        f"stopping-cll-{k or 'primal'}": partial(of_cll, k) for k in (None, "linear", "rbf", "bank")
    },
}
BENCHMARKS: dict[str, Benchmark] = {name: partial(quietly, row) for name, row in _ROWS.items()}
