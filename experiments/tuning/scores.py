"""Scores of fits on samples that they have not seen; and fits that several problems share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from experiments.simulated import intervals
from experiments.tasks import Array
from kofa import FactorModel, Real

Scores = dict[str, float]


def scored(model: FactorModel, given: Mapping[str, Array], view: str, y: Array) -> Scores:
    """R² and the coverage of 90 % intervals."""
    r2 = float(r2_score(y, model.predict(given, view)))
    return {"R²": r2, "coverage": covered(model, given, view, y)}


def covered(model: FactorModel, given: Mapping[str, Array], view: str, y: Array) -> float:
    low, high = model.predict_quantiles(given, view, [0.05, 0.95])
    return float(np.mean((low <= y) & (y <= high)))


def explained_deviance(y: Array, p: Array, base: Array) -> float:
    """Share of the log-loss of the base rates that probabilities of the classes y save."""
    rows = np.arange(len(y)), y.astype(int)
    base = np.broadcast_to(base, p.shape)
    return float(1.0 - np.log(np.maximum(p[rows], 1e-12)).sum() / np.log(base[rows]).sum())


def of_ones(y: Array, p: Array, rate: Array) -> float:
    """The same of the ones and zeros in each column."""
    two, base = (
        np.stack([1.0 - q, q], -1).reshape(-1, 2) for q in (p, np.broadcast_to(rate, p.shape))
    )
    return explained_deviance(y.ravel(), two, base)


def of_classes(model: Any, X: Array, y: Array, n: int, seed: int) -> Scores:
    """The same of a classifier, fitted to n samples."""
    x, x_new, t, t_new = train_test_split(X, y, train_size=n, stratify=y, random_state=seed)
    p = model.fit(x, t).predict_proba(x_new)
    return {"deviance": explained_deviance(t_new, p, np.bincount(t) / len(t))}


def poisson_deviance(y: Array, mean: Array) -> float:
    return float((xlogy(y, y / mean) - y + mean).sum())


def told_rightly(model: FactorModel, planted: Any, n: int) -> float:
    """Share of n features that are rightly selected or left out."""
    on = np.isin(np.arange(n), model.selected_features("x"))
    return float(np.mean(on == np.isin(np.arange(n), planted)))


def new_rows(kernel: Any, x: Array, y: Array, n: int, **options: Any) -> tuple[FactorModel, Scores]:
    """A fit to the first n rows, and its scores on the others."""
    model = FactorModel({"x": Real(kernel=kernel, **options), "y": Real()}, outputs=["y"])
    model.fit({"x": x[:n], "y": y[:n]})
    return model, scored(model, {"x": x[n:]}, "y", y[n:])


def drawn(function: Any, n: int, seed: int, noise: float = 0.3) -> tuple[Array, Array]:
    """Rows, and three outputs that a kernel contains."""
    rng = np.random.default_rng(seed)
    f = function(rng)
    x = rng.standard_normal((n, intervals.FEATURES))
    return x, f(x) + noise * rng.standard_normal((n, intervals.OUTPUTS))
