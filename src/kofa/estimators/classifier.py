"""Two classes, several, or several labels at a time."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_consistent_length

from kofa.errors import DataError
from kofa.estimators.base import KernelFactors
from kofa.estimators.tables import (
    SOME_OF_Y,
    TARGET,
    check_classes,
    check_known,
    labels_of,
    named,
    weights_of,
)
from kofa.linalg import Array
from kofa.views import Binary, Categorical


class KernelFactorClassifier(ClassifierMixin, KernelFactors):  # type: ignore[misc]
    """Two classes, several, or several labels at a time, through factors shared with X.

    Parameters
    ----------
    kernel, columns, n_factors, sparse, landmarks, scale, n_init, max_iter, tol, random_state, \
callback, engine, block_rows, dtype, n_jobs
        As for `KernelFactorAnalysis`; ``random_state=None`` is a fixed seed here too. Widths and
        weights of kernels are learnt from the classes.

    Attributes
    ----------
    classes_ : array
        The classes in the order of the columns of `predict_proba`. Of several labels, their
        positions 0, 1, … in y, as in scikit-learn's ``MLPClassifier``.
    model_, columns_, n_factors_, n_iter_, n_features_in_, feature_names_in_
        As for `KernelFactorAnalysis`. The classes are the view "y" of `model_`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kofa.estimators import KernelFactorClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> species = load_iris().target_names[y].tolist()
    >>> species[::2] = [None] * 75                         # not known: these rows still help
    >>> model = KernelFactorClassifier().fit(X, species)
    >>> model.predict(X[[0, 60, 120]]).tolist()
    ['setosa', 'versicolor', 'virginica']
    >>> model.predict_proba(X).shape
    (150, 3)
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows and their classes.

        Parameters
        ----------
        X : array, list of rows or DataFrame (n, D)
            The rows. NaN is missing.
        y : array, list, Series or DataFrame (n,) or (n, labels)
            Classes, or zeros and ones. None or NaN is a class, or one of several labels, that
            is not known. More classes than half of the rows are warned of: they look like numbers
            to predict.

        Returns
        -------
        KernelFactorClassifier
            The estimator itself.

        Examples
        --------
        >>> import numpy as np
        >>> from kofa.estimators import KernelFactorClassifier
        >>> X = np.random.default_rng(0).normal(size=(40, 1))
        >>> y = np.where(X[:, 0] > 0, "plus", "minus")
        >>> KernelFactorClassifier("linear").fit(X, y).classes_.tolist()
        ['minus', 'plus']
        """
        X = self._read(X, in_fit=True)
        labels, known, classes = labels_of(y, self)
        check_known(X, known)
        if labels.ndim == 2:
            self._fit(X, named(labels, getattr(y, "columns", None)), Binary())
        else:
            check_classes(classes, int(known.sum()))
            self._fit(X, labels, Categorical())
        self.classes_, self._multilabel = classes, labels.ndim == 2
        return self

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes; all uncertainty is averaged over.

        Parameters
        ----------
        X : array, list of rows or DataFrame (n, D)
            The rows. NaN is missing.

        Returns
        -------
        array (n, classes), or (n, labels)
            In the order of `classes_`; of several labels, the probability of a one.

        Examples
        --------
        >>> import numpy as np
        >>> from kofa.estimators import KernelFactorClassifier
        >>> X = np.random.default_rng(0).normal(size=(40, 1))
        >>> y = np.where(X[:, 0] > 0, "plus", "minus")
        >>> KernelFactorClassifier("linear").fit(X, y).predict_proba([[2.0]]).round(1)
        array([[0., 1.]])
        """
        given = self._given(X)
        return np.asarray(self.model_.predict_proba(given, TARGET))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row, or zeros and ones of several labels.

        Parameters
        ----------
        X : array, list of rows or DataFrame (n, D)
            The rows. NaN is missing.

        Returns
        -------
        array (n,), or (n, labels)
            Classes as they were in y.

        Examples
        --------
        >>> import numpy as np
        >>> from kofa.estimators import KernelFactorClassifier
        >>> X = np.random.default_rng(0).normal(size=(40, 1))
        >>> y = np.where(X[:, 0] > 0, "plus", "minus")
        >>> KernelFactorClassifier("linear").fit(X, y).predict([[2.0], [-2.0]]).tolist()
        ['plus', 'minus']
        """
        probability = self.predict_proba(X)
        if self._multilabel:
            return np.asarray(probability > 0.5).astype(int)
        return np.asarray(self.classes_[probability.argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are predicted right; those that are not known are left out.

        Of several labels, all must be right, and all must be known.

        Parameters
        ----------
        X : array, list of rows or DataFrame (n, D)
            The rows. NaN is missing.
        y : array, list, Series or DataFrame (n,) or (n, labels)
            The true classes.
        sample_weight : array (n,) or None
            How much each row counts; None is all alike.

        Returns
        -------
        float
            Between 0 and 1.

        Examples
        --------
        >>> import numpy as np
        >>> from kofa.estimators import KernelFactorClassifier
        >>> X = np.random.default_rng(0).normal(size=(40, 1))
        >>> y = np.where(X[:, 0] > 0, "plus", "minus")
        >>> KernelFactorClassifier("linear").fit(X, y).score(X, y) > 0.9
        True
        """
        labels, known, _ = labels_of(y, self)
        known = np.asarray(known.reshape(len(known), -1).all(axis=1))
        if not known.any():
            raise DataError("expected a label to score by but all of y is missing", **SOME_OF_Y)
        predicted = self.predict(X)
        check_consistent_length(predicted, labels)
        right = np.equal(predicted[known], labels[known], dtype=object).astype(bool)
        weight = weights_of(sample_weight, labels)[known]
        return float(np.average(right.reshape(len(right), -1).all(axis=1), weights=weight))
