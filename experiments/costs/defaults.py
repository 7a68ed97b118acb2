"""What a fit with nothing set costs, in CPU time of a grid search of the usual tool on its rows.

Kernel ridge regression is tuned over 6 values of gamma and 10 penalties, an SVM over 5 values of
gamma and 5 costs, each by 5-fold cross-validation (`protocol.toml`). Both are run in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_iris
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from experiments.data import available, load
from experiments.experiment import Mark, Measurement, Row, skipped
from experiments.protocol import splits, table
from experiments.tasks import Array
from experiments.timing import threads
from kofa import KernelFactorClassifier, KernelFactorRegressor

SETS = tuple(table()["regression"]["sets"])
MOST, MOST_OF_CLASSES = Mark(high=4), Mark(high=1)
MOST_AFTER = 0.25  # of a fit: what follows the learning of kernels

# ---------------------------------------------------------------- clocks

STAGES = {  # what is timed of a fit, by the name under which it is called; in this order
    "kernels": "kofa.preparation.prepare.learn_kernels",
    "factors": "kofa.inference.fit._best_start",
    "outputs": "kofa.fitting._ask",
}


def cpu(work: Callable[[], Any]) -> float:
    """CPU time of one call, in seconds."""
    start = process_time()
    work()
    return process_time() - start


@dataclass
class Stages:
    """CPU seconds of the stages of the fits that are made inside of `watched`."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            start = process_time()
            try:
                return function(*args, **options)
            finally:
                self.seconds[name] += process_time() - start

        return call

    @contextmanager
    def watched(self) -> Iterator[None]:
        patches = []
        for name, path in STAGES.items():
            module, _, attribute = path.rpartition(".")
            function = getattr(__import__(module, fromlist=[attribute]), attribute)
            patches.append(patch(path, self.timed(name, function)))
        for one in patches:
            one.start()
        try:
            yield
        finally:
            for one in patches:
                one.stop()


@dataclass(frozen=True)
class Cost:
    """CPU seconds of a fit, of its stages, and of the grid search."""

    fit: float
    stages: dict[str, float]
    search: float

    @property
    def ratio(self) -> float:
        return self.fit / self.search

    @property
    def after(self) -> float:
        """The share of the fit that follows the learning of kernels."""
        return 1.0 - self.stages["kernels"] / self.fit

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in self.stages.items())
        after = f"after the kernels {self.after:.0%}"
        return f"{self.ratio:.2f} ({self.fit:.2f} / {self.search:.2f} s; {after}; {parts})"


def cost(model: Any, search: Any, X: Array, Y: Array) -> Cost:
    """Of a model and a grid search on the same rows."""
    X_small, y_small = load_iris(return_X_y=True)
    type(model)().fit(X_small, y_small)  # what is loaded at the first fit is not counted
    stages = Stages()
    with stages.watched():
        taken = cpu(lambda: model.fit(X, Y))
    return Cost(taken, stages.seconds, cpu(lambda: search.fit(X, Y)))


# ---------------------------------------------------------------- the grid searches


def ridge_search(n_columns: int) -> GridSearchCV:
    grid = table()["speed"]["ridge"]
    gammas = [gamma / n_columns for gamma in grid["gammas"]]
    values = {"gamma": gammas, "alpha": grid["penalties"]}
    return GridSearchCV(KernelRidge(kernel="rbf"), values, cv=grid["folds"])


def svm_search(n_columns: int) -> GridSearchCV:
    grid = table()["speed"]["svm"]
    gammas = [gamma / n_columns for gamma in grid["gammas"]]
    values = {"svc__gamma": gammas, "svc__C": grid["costs"]}
    return GridSearchCV(make_pipeline(StandardScaler(), SVC()), values, cv=grid["folds"])


# ---------------------------------------------------------------- rows of the benchmarks


def of_set(name: str) -> Cost:
    """On the training rows of the first fold, columns and targets standardised."""
    data = load(name)
    train, _ = splits("regression", data.X)[0]
    X, Y = (StandardScaler().fit_transform(np.asarray(a[train])) for a in (data.X, data.Y))
    return cost(KernelFactorRegressor(), ridge_search(X.shape[1]), X, Y)


def regression_row(name: str) -> Row:
    what = f"CPU time of KernelFactorRegressor() / GridSearchCV(KernelRidge) on {name}, first fold"
    if not available(name):
        return skipped(what, MOST)
    found = of_set(name)
    return Row(what, found.ratio, MOST, f"{found}, {threads()}")


def all_sets() -> Row:
    """The median over the sets, and the largest share of what follows the learning of kernels."""
    what, mark = "the same: median over nine sets", Mark(high=2)
    if not all(map(available, SETS)):
        return skipped(what, mark)
    found = {name: of_set(name) for name in SETS}
    ratio = median(one.ratio for one in found.values())
    each = ", ".join(f"{name} {one.ratio:.2f} ({one.after:.0%})" for name, one in found.items())
    worst = max(one.after for one in found.values())
    text = f"{ratio:.2f} (in brackets what follows the kernels, {worst:.0%} at most: {each})"
    return Row(what, ratio, mark, f"{text}, {threads()}")


def digits_row() -> Row:
    what = "CPU time of KernelFactorClassifier() / GridSearchCV(SVC) on digits, first fold"
    data = load("digits")
    train, _ = splits("classes", data.y)[0]
    X, y = data.X[train], data.y[train]
    found = cost(KernelFactorClassifier(), svm_search(X.shape[1]), X, y)
    return Row(what, found.ratio, MOST_OF_CLASSES, f"{found}, {threads()}")


EXPERIMENTS: dict[str, Measurement] = {
    **{f"defaults-speed-{name}": partial(regression_row, name) for name in SETS},
    "defaults-speed-digits": digits_row,
    "defaults-speed": all_sets,
}
