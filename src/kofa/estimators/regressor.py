"""Regression on one or many targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from kofa.errors import DataError
from kofa.estimators.base import KernelFactors
from kofa.estimators.tables import SOME_OF_Y, TARGET, check_known, named, numbers, weights_of
from kofa.linalg import Array
from kofa.views import Real


class KernelFactorRegressor(RegressorMixin, KernelFactors):  # type: ignore[misc]
    """Regression on one or many targets, through the factors that they share with X.

    Parameters
    ----------
    kernel, columns, n_factors, sparse, landmarks, scale, n_init, max_iter, tol, random_state, \
callback, engine, block_rows, dtype, n_jobs
        As for `KernelFactorAnalysis`; ``random_state=None`` is a fixed seed here too. Widths and
        weights of kernels, and the relevance of each feature, are learnt from the targets.

    Attributes
    ----------
    model_, columns_, n_factors_, n_iter_, n_features_in_, feature_names_in_
        As for `KernelFactorAnalysis`. The targets are the view "y" of `model_`.

    Examples
    --------
    >>> import numpy as np
    >>> from kofa.estimators import KernelFactorRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=100)
    >>> y[:20] = np.nan                                    # not known: these rows still help
    >>> model = KernelFactorRegressor().fit(X, y)
    >>> mean, std = model.predict([[1.0, 1.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.0) - 1.0) < 2 * std[0])
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows and their targets.

        Parameters
        ----------
        X : array, list of rows or DataFrame (n, D)
            The rows. NaN is missing.
        y : array, list, Series or DataFrame (n,) or (n, targets)
            The targets. NaN is one that is not known.

        Returns
        -------
        KernelFactorRegressor
            The estimator itself.

        Examples
        --------
        >>> import numpy as np
        >>> from kofa.estimators import KernelFactorRegressor
        >>> X = np.random.default_rng(0).normal(size=(40, 2))
        >>> y = X @ [1.0, -1.0]
        >>> KernelFactorRegressor("linear").fit(X, y)
        KernelFactorRegressor(kernel='linear')
        """
        X = self._read(X, in_fit=True)
        targets = numbers(y, self)
        check_known(X, ~np.isnan(targets))
        self._fit(X, named(targets, getattr(y, "columns", None)), Real())
        self._y_ndim = targets.ndim
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of the targets of each row, in the units of y and its shape.

        Parameters
        ----------
        X : array, list of rows or DataFrame (n, D)
            The rows. NaN is missing.
        return_std : bool
            Return standard deviations too.

        Returns
        -------
        mean : array (n,) or (n, targets)
            The prediction.
        std : array (n,) or (n, targets)
            Only with ``return_std``: noise and all uncertainty of the model.

        Examples
        --------
        >>> import numpy as np
        >>> from kofa.estimators import KernelFactorRegressor
        >>> X = np.random.default_rng(0).normal(size=(40, 2))
        >>> y = X @ [1.0, -1.0]
        >>> KernelFactorRegressor("linear").fit(X, y).predict([[2.0, 0.0]]).round(1)
        array([2.])
        """
        given = self._given(X)
        predicted = self.model_.predict(given, TARGET, return_std)
        return tuple(map(self._like_y, predicted)) if return_std else self._like_y(predicted)

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.05, 0.95)) -> list[Array]:
        """Values that the targets do not exceed with the given probabilities.

        Parameters
        ----------
        X : array, list of rows or DataFrame (n, D)
            The rows. NaN is missing.
        quantiles : sequence of float
            Probabilities between 0 and 1. The default are the ends of intervals of 90 %.

        Returns
        -------
        list of arrays (n,) or (n, targets)
            One for each quantile.

        Examples
        --------
        >>> import numpy as np
        >>> from kofa.estimators import KernelFactorRegressor
        >>> X = np.random.default_rng(0).normal(size=(40, 2))
        >>> y = X @ [1.0, -1.0]
        >>> low, high = KernelFactorRegressor("linear").fit(X, y).predict_quantiles([[2.0, 0.0]])
        >>> bool(low[0] <= 2.0 <= high[0])
        True
        """
        given = self._given(X)
        tables = self.model_.predict_quantiles(given, TARGET, quantiles)
        return [self._like_y(table) for table in tables]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R², the mean over targets; entries of y that are not known are left out.

        Parameters
        ----------
        X : array, list of rows or DataFrame (n, D)
            The rows. NaN is missing.
        y : array, list, Series or DataFrame (n,) or (n, targets)
            The true targets.
        sample_weight : array (n,) or None
            How much each row counts; None is all alike.

        Returns
        -------
        float
            1 where all are predicted exactly.

        Examples
        --------
        >>> import numpy as np
        >>> from kofa.estimators import KernelFactorRegressor
        >>> X = np.random.default_rng(0).normal(size=(40, 2))
        >>> y = X @ [1.0, -1.0]
        >>> round(KernelFactorRegressor("linear").fit(X, y).score(X, y), 2)
        1.0
        """
        from sklearn.metrics import r2_score  # slow to load; scikit-learn's own mixin waits too

        targets = numbers(y, self)
        truth = targets.reshape(len(targets), -1)
        known = ~np.isnan(truth)
        predicted = self.predict(X).reshape(truth.shape)
        weight = weights_of(sample_weight, truth)
        scores = [
            r2_score(t[k], p[k], sample_weight=weight[k])
            for t, p, k in zip(truth.T, predicted.T, known.T, strict=True)
            if k.any()
        ]
        if not scores:
            raise DataError("expected a target to score by but all of y is missing", **SOME_OF_Y)
        return float(np.mean(scores))

    def _like_y(self, table: Any) -> Array:
        values = np.asarray(table)
        return values[:, 0] if self._y_ndim == 1 else values
