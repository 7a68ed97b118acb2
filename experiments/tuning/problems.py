"""Small problems, of a second or two each, that between them read nearly every number.

All data are planted or ship with scikit-learn, so that everybody can run them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.special import xlogy
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from experiments.simulated import hidden_views, intervals, n_factors, relevance
from experiments.tasks import Array
from kofa import (
    RBF,
    Binary,
    Categorical,
    Count,
    FactorModel,
    KernelFactorClassifier,
    Landmarks,
    Real,
)

Scores = dict[str, float]


@dataclass(frozen=True)
class Problem:
    """What is fitted and scored: a function of a seed, whose docstring says what it is."""

    solve: Callable[[int], Scores]
    aims: Mapping[str, float] = field(default_factory=dict)  # of scores that can be too high
    only: Collection[str] = ()  # the numbers it is for, where it takes long; none: all it reads

    @property
    def what(self) -> str:
        text = " ".join((self.solve.__doc__ or "").split())
        return text.removesuffix(".")


# ---------------------------------------------------------------- scores


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


# ---------------------------------------------------------------- views without kernels


def hidden_view(seed: int) -> Scores:
    """A view that half of 200 samples lack, from two others with the same eight factors."""
    data, full = (
        n_factors.problem(200, 3, 30, holes, "Real", seed)
        for holes in (n_factors.HOLES[2], n_factors.HOLES[0])
    )
    rows = np.isnan(data["b"]).all(axis=1)
    model = FactorModel().fit(data)
    others = {name: data[name][rows] for name in "ac"}
    return scored(model, others, "b", full["b"][rows]) | {"factors": model.n_factors_}


def many_factors(seed: int) -> Scores:
    """A view that 27 of 100 samples lack, from two others; 60 factors."""
    problem = hidden_views.planted("few", seed)
    model = FactorModel(problem.views).fit(problem.tables)
    return scored(model, problem.others, problem.view, problem.truth) | {
        "factors": model.n_factors_
    }


def ones(seed: int) -> Scores:
    """A binary view that a fifth of 250 samples lack, from another with the same eight factors."""
    full = n_factors.problem(250, 2, 25, n_factors.HOLES[0], "Binary", seed)
    data = {"a": full["a"], "b": full["b"].copy()}
    data["b"][:50] = np.nan
    model = FactorModel({"a": Binary(), "b": Binary()}).fit(data)
    p = model.predict_proba({"a": full["a"][:50]}, "b")
    saved = of_ones(full["b"][:50], p, full["b"][50:].mean(axis=0))
    return {"deviance": saved, "factors": model.n_factors_}


def rare_ones(seed: int) -> Scores:
    """Outputs of about 6 % ones that hardly follow from 20 columns, 200 samples."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((600, 20))
    eta = 0.3 * x[:, :4] + rng.standard_normal((600, 4)) - 1.6
    y = (eta > 0).astype(float)
    model = FactorModel({"x": Real(), "y": Binary()}, outputs=["y"])
    model.fit({"x": x[:200], "y": y[:200]})
    rate = (y[:200].sum(axis=0) + 0.5) / 201.0
    return {"deviance": of_ones(y[200:], model.predict_proba({"x": x[200:]}, "y"), rate)}


def counts(seed: int) -> Scores:
    """Counts as an output of counts of the same eight factors, a few of them wild, 200 samples."""
    full = n_factors.problem(300, 2, 20, n_factors.HOLES[0], "Count", seed)
    y = full["b"].copy()
    y[np.random.default_rng(seed).random(y.shape) < 0.005] += 50.0
    model = FactorModel({"a": Count(), "b": Count()}, outputs=["b"])
    model.fit({"a": full["a"][:200], "b": y[:200]})
    new, truth = {"a": full["a"][200:]}, full["b"][200:]
    mean = np.broadcast_to(full["b"][:200].mean(axis=0), truth.shape)
    left = poisson_deviance(truth, model.predict(new, "b")) / poisson_deviance(truth, mean)
    return {
        "deviance": 1.0 - left,
        "coverage": covered(model, new, "b", truth),
        "factors": model.n_factors_,
    }


def scattered_holes(seed: int) -> Scores:
    """An output of 60 columns with 10 % holes, six factors, 200 samples."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((400, 6))
    x = Z @ rng.standard_normal((6, 60)) + 2.0 * rng.standard_normal((400, 60))
    y = Z @ rng.standard_normal((6, 3)) + 0.5 * rng.standard_normal((400, 3))
    x[rng.random(x.shape) < 0.1] = np.nan
    return new_rows(None, x, y, 200)[1]


def wide_input(seed: int) -> Scores:
    """An output of 200 columns that have nothing in common, 300 samples."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((600, 200))
    y = x @ rng.standard_normal((200, 3)) / np.sqrt(200) + 0.3 * rng.standard_normal((600, 3))
    return new_rows(None, x, y, 300)[1]


def sparse_columns(seed: int) -> Scores:
    """Which 20 of 120 columns follow three factors, 120 samples."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((120, 120))
    X[:, :20] += rng.standard_normal((120, 3)) @ rng.standard_normal((3, 20))
    model = FactorModel({"x": Real(sparse=True)}).fit({"x": X})
    return {"features": told_rightly(model, np.arange(20), 120), "factors": model.n_factors_}


# ---------------------------------------------------------------- kernels that are learnt


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
    """Digits through the bank, 40 samples with a label and 360 without; 300 of them new."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))[:700]
    X, y = X[order], y[order].astype(float)
    labels = np.where(np.arange(400) < 40, y[:400], np.nan)
    model = FactorModel({"x": Real(kernel="bank"), "y": Categorical()}, outputs=["y"])
    model.fit({"x": X[:400], "y": labels})
    p = np.zeros((660, 10))
    p[:, np.asarray(model.classes_["y"]).astype(int)] = model.predict_proba({"x": X[40:]}, "y")
    return {"deviance": explained_deviance(y[40:], p, np.full(10, 0.1))}


def far_and_holed(seed: int) -> Scores:
    """Intervals through an RBF kernel near, far away and with holes, 100 samples."""
    return of_design(intervals.Design("rbf", True, 100, intervals.smooth), seed)


def no_outputs(seed: int) -> Scores:
    """The same where no view is an output, 80 samples."""
    return of_design(intervals.Design("rbf", False, 80, intervals.smooth), seed)


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


# ---------------------------------------------------------------- features and relevance vectors


def planted_features(seed: int, n: int, kernel: RBF) -> Scores:
    """A function of five features of 20: does λ rank them first, and tell them rightly?"""
    X, Y = (part[: n + 200] for part in relevance.rbf_data(seed))
    model, scores = new_rows(kernel, X[:, :20], Y, n)
    return scores | {
        "AUROC": relevance.auroc(model, relevance.INFORMATIVE),
        "features": told_rightly(model, relevance.INFORMATIVE, 20),
    }


def features(seed: int) -> Scores:
    """Relevances of an RBF kernel, five of 20 features matter, 150 samples."""
    return planted_features(seed, 150, RBF(relevance="learn"))


def few_for_features(seed: int) -> Scores:
    """The same, 36 samples."""
    return planted_features(seed, 36, RBF(relevance="learn"))


def switched_off(seed: int) -> Scores:
    """The same with a sparsity of 4, 100 samples."""
    return planted_features(seed, 100, RBF(relevance="learn", sparsity=4.0))


def alike(seed: int) -> Scores:
    """Relevances of an RBF kernel, all of 30 features matter alike, 60 samples."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((360, 30))
    y = x @ np.ones((30, 1)) / np.sqrt(30) + 0.5 * rng.standard_normal((360, 1))
    model, scores = new_rows(RBF(relevance="learn"), x, y, 60)
    return scores | {"selected": len(model.selected_features("x"))}


def vectors(seed: int) -> Scores:
    """Relevance vectors of an RBF kernel, 250 samples."""
    return of_vectors(*drawn(intervals.smooth, 550, seed), 250)


def vectors_of_150(seed: int) -> Scores:
    """The same of a rough function and the bank, 150 samples."""
    return of_vectors(*drawn(intervals.rough, 450, seed, 0.1), 150, "bank")


def vectors_of_36(seed: int) -> Scores:
    """The same of a smooth function and an RBF kernel, 36 samples."""
    return of_vectors(*drawn(intervals.smooth, 336, seed), 36)


def of_vectors(x: Array, y: Array, n: int, kernel: Any = "rbf", sparse: Any = True) -> Scores:
    model, scores = new_rows(kernel, x, y, n, sparse=sparse)
    return scores | {"vectors": len(model.views_["x"].landmarks)}


def vectors_alone(seed: int) -> Scores:
    """Relevance vectors where no view is an output, 100 samples."""
    x, y = drawn(intervals.smooth, 400, seed)
    views = {"x": Real(kernel="rbf", sparse=True), "y": Real()}
    model = FactorModel(views).fit({"x": x[:100], "y": y[:100]})
    vectors = {"vectors": len(model.views_["x"].landmarks)}
    return scored(model, {"x": x[100:]}, "y", y[100:]) | vectors


def landmarks(seed: int) -> Scores:
    """30 landmarks, chosen by k-means++, of 250 samples."""
    x, y = drawn(intervals.smooth, 550, seed)
    return new_rows("rbf", x, y, 250, landmarks=Landmarks(30, by="kmeans++"))[1]


def as_published(seed: int) -> Scores:
    """The paper's own choices: landmarks by double ARD, λ by reconstruction, 100 samples."""
    X, Y = (part[:300] for part in relevance.rbf_data(seed))
    kernel = RBF(relevance="learn", objective="reconstruction")
    return of_vectors(X[:, :10], Y, 100, kernel, "ard")


# ---------------------------------------------------------------- many samples


def many_samples(seed: int) -> Scores:
    """An RBF kernel, 1,400 samples with 2 % holes."""
    x, y = drawn(intervals.smooth, 1700, seed)
    x = intervals.with_holes(np.random.default_rng(seed), x, 0.02)
    return new_rows("rbf", x, y, 1400)[1]


def more_samples(seed: int) -> Scores:
    """An RBF kernel of given width, 2,400 samples."""
    x, y = drawn(intervals.smooth, 2700, seed)
    return new_rows(RBF("median"), x, y, 2400)[1]


def many_candidates(seed: int) -> Scores:
    """Relevance vectors of 200 candidates, 1,400 samples."""
    x, y = drawn(intervals.smooth, 1700, seed)
    return new_rows("rbf", x, y, 1400, sparse=True, landmarks=200)[1]


def many_alone(seed: int) -> Scores:
    """Intervals through an RBF kernel where no view is an output, 400 samples."""
    return of_design(intervals.Design("rbf", False, 400, intervals.smooth), seed)


def many_labels(seed: int) -> Scores:
    """Digits through an RBF kernel, 1,000 samples."""
    X, y = load_digits(return_X_y=True)
    return of_classes(KernelFactorClassifier("rbf"), X, y, 1000, seed)


def many_unlabelled(seed: int) -> Scores:
    """Digits through a diffusion, 1,300 samples of which 60 have a label."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))[:1300]
    X, y = X[order], y[order].astype(float)
    model = FactorModel({"x": Real(kernel="diffusion"), "y": Categorical()}, outputs=["y"])
    model.fit({"x": X, "y": np.where(np.arange(1300) < 60, y, np.nan)})
    p = np.zeros((1240, 10))
    p[:, np.asarray(model.classes_["y"]).astype(int)] = model.predict_proba({"x": X[60:]}, "y")
    return {"deviance": explained_deviance(y[60:], p, np.full(10, 0.1))}


PROBLEMS = {
    "hidden view": Problem(hidden_view, {"factors": n_factors.TRUE}),
    "many factors": Problem(many_factors),
    "ones": Problem(ones, {"factors": n_factors.TRUE}),
    "rare ones": Problem(rare_ones),
    "counts": Problem(counts, {"factors": n_factors.TRUE}),
    "scattered holes": Problem(scattered_holes),
    "wide input": Problem(wide_input),
    "sparse columns": Problem(sparse_columns, {"factors": 3}),
    "bank": Problem(bank),
    "odd outputs": Problem(odd_outputs),
    "diabetes": Problem(diabetes),
    "wine": Problem(wine),
    "few labels": Problem(few_labels),
    "intervals": Problem(far_and_holed),
    "no outputs": Problem(no_outputs),
    "few samples": Problem(few_samples),
    "two inputs": Problem(two_inputs),
    "diffusion": Problem(diffusion),
    "features": Problem(features),
    "few for features": Problem(few_for_features),
    "switched off": Problem(switched_off),
    "alike": Problem(alike),
    "vectors": Problem(vectors),
    "vectors of 150": Problem(vectors_of_150),
    "vectors of 36": Problem(vectors_of_36),
    "vectors alone": Problem(vectors_alone),
    "landmarks": Problem(landmarks),
    "as published": Problem(as_published),
    "many samples": Problem(
        many_samples, only=("LEARNING_ROWS", "HOLES_ROWS", "MOST_KERNEL_FACTORS")
    ),
    "more samples": Problem(more_samples, only=("AUTO_LANDMARKS", "MEDIAN_ROWS")),
    "many candidates": Problem(many_candidates, only=("VECTOR_OTHER_ROWS",)),
    "many alone": Problem(many_alone, only=("NOVELTY_LANDMARKS",)),
    "many labels": Problem(many_labels, only=("HELD_OUT_ROWS",)),
    "many unlabelled": Problem(many_unlabelled, only=("DIFFUSION_ROWS",)),
}
