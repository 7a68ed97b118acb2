"""A support vector machine with an RBF kernel, tuned by inner cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from experiments.protocol import Split, table
from experiments.tasks import Array


@contextmanager
def no_future_warnings() -> Iterator[None]:
    """`probability` will go in scikit-learn 1.11; what is to replace it has a lower AUC."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def probabilities(X: Array, y: NDArray[Any], split: Split) -> Array:
    """Of the classes in ascending order, or of each label, for the held-out rows.

    A missing value is the mean of the training rows.
    """
    train, test = split
    fill = SimpleImputer().fit(X[train])
    method = class_probabilities if y.ndim == 1 else label_probabilities
    with no_future_warnings():
        return method(fill.transform(X[train]), y[train], fill.transform(X[test]))


def class_probabilities(X: Array, y: NDArray[Any], X_new: Array) -> Array:
    """(n, C), as in libsvm."""
    svm = SVC(probability=True, random_state=0)
    model = tuned(svm, X, y, table()["svm"], "roc_auc_ovr")
    return np.asarray(model.predict_proba(X_new))


def label_probabilities(X: Array, Y: NDArray[Any], X_new: Array) -> Array:
    """(n, labels), each label with an SVM of its own."""
    columns = []
    for y in Y.T:
        best = tuned(SVC(), X, y, table()["svm"]["labels"], "roc_auc").best_params_
        svm = make_pipeline(StandardScaler(), SVC(probability=True, random_state=0))
        columns.append(svm.set_params(**best).fit(X, y).predict_proba(X_new)[:, 1])
    return np.column_stack(columns)


def tuned(svm: SVC, X: Array, y: NDArray[Any], grid: Mapping[str, Any], scoring: str) -> Any:
    """The best of the grid by inner cross-validation on these rows, fitted to them."""
    gammas = [gamma / X.shape[1] for gamma in grid["gammas"]]
    values = {"svc__C": grid["costs"], "svc__gamma": gammas}
    pipeline = make_pipeline(StandardScaler(), svm)
    return GridSearchCV(pipeline, values, cv=table()["svm"]["folds"], scoring=scoring).fit(X, y)
