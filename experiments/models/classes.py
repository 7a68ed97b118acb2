"""Our model of classes: in our way, and as published; and its scores."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from experiments.protocol import Split, table
from experiments.tasks import Array, Options
from kofa.model import FactorModel
from kofa.views import Categorical, Real

Inputs = Mapping[str, Array]
Views = Mapping[str, Real]
SEEN = "As published, test rows are there in the fit, unlabelled; in the other rows they are not."


def auc(y: NDArray[Any], scores: Array) -> float:
    """Area under the ROC curve, the mean of each class against the rest.

    The columns of `scores` are the classes in ascending order; they need not be probabilities.
    """
    classes = np.unique(y)
    if len(classes) == 2:
        return float(roc_auc_score(y, scores[:, 1]))
    areas = [roc_auc_score(y == c, column) for c, column in zip(classes, scores.T, strict=True)]
    return float(np.mean(areas))


# ---------------------------------------------------------------- our model


@dataclass(frozen=True)
class Way:
    """How our model is fitted: in our own way, or as published."""

    published: bool = False
    n_factors: int | None = None
    starts: int = 1
    max_iter: int = 1000
    tol: float | None = None

    @classmethod
    def of(cls, options: Options, n_factors: int | None = None, tol: float | None = None) -> Way:
        """As the user asks for it; numbers of the published way are in protocol.toml."""
        if not options.as_published:
            return cls(False, n_factors, tol=tol)
        given = table()["factors"]
        return cls(
            True,
            n_factors or int(given["published_factors"]),
            int(given["quick_starts" if options.quick else "published_starts"]),
            int(given["quick_max_iter" if options.quick else "max_iter"]),
        )

    @property
    def settings(self) -> dict[str, Any]:
        """All that changes a result."""
        return asdict(self)


def kernels(view: Real) -> list[Any]:
    """Those of a view, of which a list may be declared."""
    return list(view.kernel) if isinstance(view.kernel, list) else [view.kernel]


def fit(views: Views, inputs: Inputs, y: NDArray[Any], split: Split, way: Way) -> FactorModel:
    """A model that has seen the labels of the training rows only."""
    model, data = (_published if way.published else _ours)(views, inputs, y, split, way)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a note of the table counts them
        return model.fit(data)


def _ours(
    views: Views, inputs: Inputs, y: NDArray[Any], split: Split, way: Way
) -> tuple[FactorModel, dict[str, Any]]:
    """The labels are an output; nothing of the test rows is seen."""
    train, _ = split
    model = FactorModel(
        {**views, "y": Categorical()},
        way.n_factors,
        outputs=["y"],
        max_iter=way.max_iter,
        tol=way.tol,
    )
    return model, {name: x[train] for name, x in inputs.items()} | {"y": y[train]}


def _published(
    views: Views, inputs: Inputs, y: NDArray[Any], split: Split, way: Way
) -> tuple[FactorModel, dict[str, Any]]:
    """The paper's own model; test rows are samples and landmarks, unlabelled."""
    model = FactorModel(
        {**views, "y": Categorical()},
        way.n_factors,
        outputs=["y"],
        n_init=way.starts,
        max_iter=way.max_iter,
        as_published=True,
    )
    labels = y.astype(float)
    labels[split[1]] = np.nan
    return model, {**inputs, "y": labels}


@dataclass(frozen=True)
class Prediction:
    """What a model says of the held-out rows."""

    model: FactorModel
    proba: Array  # the classes in ascending order
    seconds: float  # of the fit

    def accuracy(self, y: NDArray[Any]) -> float:
        """The share of the held-out rows whose likeliest class is theirs."""
        classes = np.sort(np.asarray(self.model.classes_["y"]))
        return float(np.mean(classes[self.proba.argmax(axis=1)] == y))


def fit_predict(
    views: Views, inputs: Inputs, y: NDArray[Any], split: Split, way: Way
) -> Prediction:
    """Fit, and predict the classes of the held-out rows from their inputs alone."""
    begin = perf_counter()
    model = fit(views, inputs, y, split, way)
    seconds = perf_counter() - begin
    proba = model.predict_proba({name: x[split[1]] for name, x in inputs.items()}, "y")
    return Prediction(model, proba[:, np.argsort(model.classes_["y"])], seconds)


def factor_relevance(model: FactorModel) -> tuple[list[str], Array]:
    """Names of the views, and the share of each factor in the signal of each: (views, K).

    The signal of view m along factor k is Σ_d ⟨w_dk⟩², for factors of variance one.
    """
    fitted = model._fitted  # whose weights are on the scale of the model
    signal = np.array([(fitted.weights(name).mean ** 2).sum(axis=0) for name in fitted.views])
    total = np.maximum(signal.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return list(model.views_), signal / total
