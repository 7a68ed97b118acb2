"""Problems of kernels that are learnt from outputs, and of intervals through them."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_diabetes, load_digits, load_wine

from experiments.simulated import intervals
from experiments.tuning.scores import (
    Scores,
    drawn,
    explained_deviance,
    new_rows,
    of_classes,
    scored,
)
from kofa import Categorical, FactorModel, KernelFactorClassifier, Real


def bank(seed: int) -> Scores:
    """A function of the bank of kernels, 150 samples."""
    x, y = drawn(intervals.mixed, 450, seed)
    return new_rows("bank", x, y, 150)[1]


def odd_outputs(seed: int) -> Scores:
    """The same, but one output is nearly always zero, and one has outliers in fit."""
    x, y = drawn(intervals.mixed, 450, seed)
    y[:, 0] = np.where(y[:, 0] > 1.0, np.round(y[:, 0]), 0.0)
    y[:150:40, 1] += 8.0
    return new_rows("bank", x, y, 150)[1]


def diabetes(seed: int) -> Scores:
    """Diabetes through the bank, 200 samples."""
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    return new_rows("bank", X[order], y[order, None], 200)[1]


def wine(seed: int) -> Scores:
    """Classes of wine through the bank, 90 samples."""
    X, y = load_wine(return_X_y=True)
    return of_classes(KernelFactorClassifier(), X, y, 90, seed)


def few_labels(seed: int) -> Scores:
    """Digits through the bank, 40 of 400 samples have a label."""
    return of_labels("bank", 40, 400, 300, seed)


def of_labels(kernel: str, labelled: int, n: int, new: int, seed: int) -> Scores:
    """Digits without a label, in the fit or new."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))[: n + new]
    X, y = X[order], y[order].astype(float)
    model = FactorModel({"x": Real(kernel=kernel), "y": Categorical()}, outputs=["y"])
    model.fit({"x": X[:n], "y": np.where(np.arange(n) < labelled, y[:n], np.nan)})
    X, y = X[labelled:], y[labelled:]
    p = np.zeros((len(y), 10))
    p[:, np.asarray(model.classes_["y"]).astype(int)] = model.predict_proba({"x": X}, "y")
    return {"deviance": explained_deviance(y, p, np.full(10, 0.1))}


def far_and_holed(seed: int) -> Scores:
    """Intervals through an RBF kernel near, far away and with holes, 100 samples."""
    return of_design(intervals.Design("rbf", True, 100, intervals.smooth), seed)


def no_outputs(seed: int) -> Scores:
    """The same where no view is an output, 60 samples."""
    return of_design(intervals.Design("rbf", False, 60, intervals.smooth), seed)


def of_design(design: intervals.Design, seed: int) -> Scores:
    """Coverage at the data, five standard deviations away, and with half of the row missing."""
    case = design.fit(seed, intervals.HOLES_IN_FIT)
    away = intervals.far(case.rng, case.x, 5.0)
    holed = intervals.with_holes(case.rng, case.x, 0.5)
    places = {"near": (case.x, case.x), "far": (away, away), "holes": (case.x, holed)}
    return {f"coverage {name}": case.coverage(*where) for name, where in places.items()}


def few_samples(seed: int) -> Scores:
    """A line through an RBF kernel, 12 samples."""
    x, y = drawn(intervals.linear, 312, seed)
    return new_rows("rbf", x, y, 12)[1]


def two_inputs(seed: int) -> Scores:
    """Waves of one of two inputs, each with an RBF kernel, 150 samples."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, 450, 3))
    y = np.sin(a @ rng.standard_normal((3, 3))) + 0.3 * rng.standard_normal((450, 3))
    views = {"a": Real(kernel="rbf"), "b": Real(kernel="rbf"), "y": Real()}
    model = FactorModel(views, outputs=["y"]).fit({"a": a[:150], "b": b[:150], "y": y[:150]})
    return scored(model, {"a": a[150:], "b": b[150:]}, "y", y[150:])


def diffusion(seed: int) -> Scores:
    """Digits through a diffusion without outputs, 200 samples, one of them 20 times."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))[:200]
    X, y = X[order], y[order]
    model = FactorModel({"x": Real(kernel="diffusion")})
    Z = model.fit_transform({"x": np.concatenate([X, np.repeat(X[:1], 20, axis=0)])})[:200]
    apart = squareform(pdist(Z)) + np.diag(np.full(len(Z), np.inf))
    return {"neighbours": float(np.mean(y[apart.argmin(axis=1)] == y)), "factors": Z.shape[1]}
