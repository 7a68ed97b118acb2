"""Problems of relevant features and relevance vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.simulated import intervals, relevance
from experiments.tasks import Array
from experiments.tuning.scores import Scores, drawn, new_rows, scored, told_rightly
from kofa import RBF, FactorModel, Landmarks, Real


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


def of_vectors(x: Array, y: Array, n: int, kernel: Any = "rbf") -> Scores:
    model, scores = new_rows(kernel, x, y, n, sparse=True)
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
