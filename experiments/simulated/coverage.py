"""Do 90 % intervals hold on new samples like those of the fit, and with holes?"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.impute import SimpleImputer
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline

from experiments.experiment import Mark, Measurement, Row
from experiments.tasks import Array
from kofa import RBF, FactorModel, KernelFactorRegressor, Real
from kofa.kernels import Kernel

SEEDS = range(10)
NINETY = 1.645  # standard deviations either side
N_TRAIN, N_TEST, NOISE = 200, 1000, 0.5


def primal_pair(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Five factors behind 20 columns of x and 5 of y."""
    Z = rng.standard_normal((n, 5))
    x, y = (Z @ rng.standard_normal((5, d)) for d in (20, 5))
    return x + NOISE * rng.standard_normal(x.shape), y + NOISE * rng.standard_normal(y.shape)


def smooth_pair(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Three columns of x, and waves of them with noise as y."""
    x = rng.standard_normal((n, 3))
    y = np.sin(x @ rng.standard_normal((3, 5)) + rng.uniform(0, 2 * np.pi, 5))
    return x, y + NOISE * rng.standard_normal(y.shape)


def coverage(seed: int, kernel: Kernel | None) -> float:
    """Share of new values inside their 90 % interval."""
    rng = np.random.default_rng(seed)
    x, y = (smooth_pair if kernel else primal_pair)(rng, N_TRAIN + N_TEST)
    outputs = ["y"] if kernel else None
    model = FactorModel({"x": Real(kernel=kernel), "y": Real()}, outputs=outputs)
    model.fit({"x": x[:N_TRAIN], "y": y[:N_TRAIN]})
    mean, std = model.predict({"x": x[N_TRAIN:]}, "y", return_std=True)
    return float(np.mean(np.abs(y[N_TRAIN:] - mean) <= NINETY * std))


def intervals(kernel: Kernel | None) -> Row:
    """Mean coverage over seeds."""
    shares = [coverage(seed, kernel) for seed in SEEDS]
    text = f"{np.mean(shares):.3f} ({min(shares):.3f} to {max(shares):.3f})"
    how = "kernelized" if kernel else "primal"
    what = f"coverage of 90 % intervals, {how} x → y, {len(shares)} seeds"
    return Row(what, float(np.mean(shares)), Mark(0.87, 0.93), text)


# ---------------------------------------------------------------- holes

HOLES, HOLED_TRAIN = 0.4, 150


def holed(seed: int) -> tuple[float, float, float]:
    """R² with holes as they are and with means imputed; and the coverage of the former."""
    X, y = load_diabetes(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    X = np.where(rng.random(X.shape) < HOLES, np.nan, X)[order]
    y, model = y[order], KernelFactorRegressor("rbf")
    train, test = np.s_[:HOLED_TRAIN], np.s_[HOLED_TRAIN:]
    imputed = make_pipeline(SimpleImputer(), model).fit(X[train], y[train]).score(X[test], y[test])
    mean, std = model.fit(X[train], y[train]).predict(X[test], return_std=True)
    covered = float(np.mean(np.abs(y[test] - mean) <= NINETY * std))
    return r2_score(y[test], mean), imputed, covered


def holes() -> Row:
    """A kernel of rows with holes does as well as one of imputed rows."""
    own, imputed, covered = np.mean([holed(seed) for seed in SEEDS], axis=0)
    what = f"R² of diabetes, rbf, {HOLES:.0%} holes, against imputed means, {len(SEEDS)} draws"
    text = f"{own - imputed:+.4f} ({own:.3f} against {imputed:.3f}; 90 % intervals: {covered:.1%})"
    return Row(what, float(own - imputed), Mark(low=-0.01), text)


EXPERIMENTS: dict[str, Measurement] = {
    "holes": holes,
    "intervals": partial(intervals, None),
    "intervals-kernel": partial(intervals, RBF()),
}
