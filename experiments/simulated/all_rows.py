"""Smooth functions of many rows, of which landmarks and factors hold only a part.

Beside ridge regression through an RBF kernel of all rows, of which 60 settings are compared.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from time import process_time

import numpy as np
from sklearn.datasets import make_friedman1, make_friedman2, make_friedman3
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV

from experiments.costs.peak import peak
from experiments.experiment import Mark, Measurement, Row
from experiments.simulated.questions import quiet
from experiments.tasks import Array
from kofa import RBF, FactorModel, Real, tuning
from kofa.estimators import KernelFactorRegressor

ROWS, NEW, SEED = 8000, 2000, 100
NOISES = (0.0, 0.1, 0.3)  # deviations, relative to that of the function
USELESS = 20


def arm(n: int, seed: int) -> tuple[Array, Array]:
    """Angles of the joints of an arm of eight links, and how far its end is from the origin."""
    x = np.random.default_rng(seed).uniform(-0.5 * np.pi, 0.5 * np.pi, size=(n, 8))
    return x, np.abs(np.exp(1j * np.cumsum(x, axis=1)).sum(axis=1))


def friedman(make: Callable[..., tuple[Array, Array]], n: int, seed: int) -> tuple[Array, Array]:
    """One of Friedman's functions, and features that it does not depend on."""
    x, y = make(n, random_state=seed)
    useless = np.random.default_rng(seed).random((n, USELESS))
    return np.column_stack([x[:, :5], useless]), y


PROBLEMS: dict[str, Callable[[int, int], tuple[Array, Array]]] = {
    "arm": arm,
    "friedman1": partial(friedman, make_friedman1),
    "friedman2": partial(friedman, make_friedman2),
    "friedman3": partial(friedman, make_friedman3),
}


def ridge(x: Array, y: Array, new: Array) -> Array:
    """The best of 60 settings in five folds."""
    centre, scale = x.mean(axis=0), x.std(axis=0)
    grid = {"gamma": np.geomspace(0.01, 3.0, 10) / x.shape[1], "alpha": np.geomspace(1e-6, 1.0, 6)}
    found = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5)
    found.fit((x - centre) / scale, y - y.mean())
    return np.asarray(found.predict((new - centre) / scale) + y.mean())


def kofa(x: Array, y: Array, new: Array) -> Array:
    """With nothing set."""
    with quiet():
        return np.asarray(KernelFactorRegressor().fit(x, y).predict(new))


@dataclass(frozen=True)
class Score:
    """R² of new rows without noise, and what it took."""

    r2: float
    cpu: float


@cache
def score(name: str, noise: float, method: Callable[..., Array], n: int = ROWS) -> Score:
    """Of one method on one problem."""
    x, truth = PROBLEMS[name](n + NEW, SEED)
    seen = truth + noise * truth.std() * np.random.default_rng(SEED + 1).normal(size=len(truth))
    begin = process_time()
    predicted = method(x[:n], seen[:n], x[n:])
    cpu = process_time() - begin
    return Score(float(r2_score(truth[n:], predicted)), cpu)


def against_ridge(name: str) -> Row:
    """R² less that of ridge regression, the least of all noises."""
    ours = [score(name, noise, kofa) for noise in NOISES]
    theirs = [score(name, noise, ridge) for noise in NOISES]
    gains = [a.r2 - b.r2 for a, b in zip(ours, theirs, strict=True)]
    shown = ", ".join(f"{a.r2:.4f} ({b.r2:.4f})" for a, b in zip(ours, theirs, strict=True))
    cpu = sum(a.cpu for a in ours) / sum(b.cpu for b in theirs)
    more = f"R² {shown}; CPU time {cpu:.2f} of it"
    what = f"{name}, {ROWS} rows: R² − that of tuned kernel ridge regression"
    return Row(what, min(gains), Mark(low=-0.005), f"{min(gains):+.4f} ({more})")


def without_noise(name: str) -> Row:
    """The share of the variance that is missed where there is no noise, over that of ridge."""
    ours, theirs = (1.0 - score(name, 0.0, method).r2 for method in (kofa, ridge))
    what = f"{name}, {ROWS} rows, no noise: error over that of tuned kernel ridge regression"
    return Row(what, ours / theirs, Mark(high=1.2), f"{ours / theirs:.2f} ({ours:.5f})")


def budget(name: str) -> Row:
    """How far one row more moves predictions, where landmarks end to hold all of a kernel."""
    n, predicted = tuning.AUTO_LANDMARKS, []
    x, truth = PROBLEMS[name](n + NEW, SEED)
    y = truth + 0.1 * truth.std() * np.random.default_rng(SEED + 1).normal(size=len(truth))
    views = {"x": Real(kernel=RBF(2.0)), "y": Real()}  # learnt ones see other rows
    for rows in (n, n + 1):
        with quiet():
            model = FactorModel(views, outputs=["y"]).fit({"x": x[:rows], "y": y[:rows, None]})
        predicted.append(np.asarray(model.predict({"x": x[n + 1 :]}, "y")))
    away = float(np.sqrt(((predicted[1] - predicted[0]) ** 2).mean()) / predicted[0].std())
    what = f"{name}: {n + 1} rows in place of {n}, relative to the spread of predictions"
    return Row(what, away, Mark(high=0.01), f"{away:.4f}")


def memory(name: str) -> Row:
    """The most memory that a fit and a prediction hold, in a process of their own."""
    command = [sys.executable, "-m", "experiments.simulated.all_rows", name]
    found = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return Row(f"{name}, {ROWS} rows: memory, GB", found, Mark(high=1.5), f"{found:.2f} GB")


EXPERIMENTS: dict[str, Measurement] = {
    **{f"questions-{name}": partial(against_ridge, name) for name in PROBLEMS},
    **{f"questions-{name}-no-noise": partial(without_noise, name) for name in PROBLEMS},
    **{f"questions-{name}-budget": partial(budget, name) for name in PROBLEMS},
    **{f"questions-{name}-memory": partial(memory, name) for name in PROBLEMS},
}

if __name__ == "__main__":
    score(sys.argv[1], 0.0, kofa)
    print(peak() / 1e9)
