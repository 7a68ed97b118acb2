"""The peer of the classification rows: a tuned RBF-SVM."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.data import Array

# C and gamma, the latter in units of 1 / columns ("scale", where columns are standardised). Sets of
# several labels take the small grid: with 42 values instead AUC on emotions is lower by .0001, with
# 36 that on scene by .0009.
Grid = tuple[list[float], list[float]]
GRID: Grid = ([0.1, 1, 10, 100, 1000], [0.01, 0.1, 1, 10])
SMALL_GRID: Grid = ([0.1, 1, 10, 100], [0.1, 1, 10])


def tuned(svm: SVC, X: Array, y: NDArray[Any], grid: Grid, scoring: str) -> Any:
    """The best of the grid by inner 5-fold cross-validation on these rows, fitted to them."""
    costs, gammas = grid
    values = {"svc__C": costs, "svc__gamma": [gamma / X.shape[1] for gamma in gammas]}
    pipeline = make_pipeline(StandardScaler(), svm)
    return GridSearchCV(pipeline, values, cv=5, scoring=scoring).fit(X, y)


def class_probabilities(X: Array, y: NDArray[Any], X_new: Array) -> Array:
    """(n, C). Probabilities as in libsvm; those of CalibratedClassifierCV have a lower AUC."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # `probability` will go in scikit-learn 1.11
        model = tuned(SVC(probability=True, random_state=0), X, y, GRID, "roc_auc_ovr")
        return np.asarray(model.predict_proba(X_new))


def label_scores(X: Array, Y: Array, X_new: Array) -> Array:
    """(n, labels), each label with an SVM of its own.

    Distances to the margin: probabilities are a rising function of them, with the same AUC.
    """
    models = [tuned(SVC(), X, y, SMALL_GRID, "roc_auc") for y in Y.T]
    return np.column_stack([model.decision_function(X_new) for model in models])


def label_probabilities(X: Array, Y: Array, X_new: Array) -> Array:
    """(n, labels), as in libsvm, each label with an SVM of its own."""
    columns = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # `probability` will go in scikit-learn 1.11
        for y in Y.T:
            best = tuned(SVC(), X, y, SMALL_GRID, "roc_auc").best_params_
            svm = make_pipeline(StandardScaler(), SVC(probability=True, random_state=0))
            columns.append(svm.set_params(**best).fit(X, y).predict_proba(X_new)[:, 1])
    return np.column_stack(columns)
