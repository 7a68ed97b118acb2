"""Doors for scikit-learn: a transformer, a regressor and a classifier of one table X."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from kofa.checks import with_hints
from kofa.data.reading import read_table
from kofa.data.tables import column_label
from kofa.errors import DataError, DeclarationError, warn
from kofa.inference.run import Iteration
from kofa.kernels.formulas import Precomputed
from kofa.linalg import Array, IntArray
from kofa.model import FactorModel
from kofa.views import Binary, Categorical, Real, View

_WHOLE = "X"  # the view that is all of X, where `columns` names no others
_TARGET = "y"


class _KernelFactors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the three estimators share: X as views, the model behind them, and its factors."""

    @with_hints({"n_components": "n_factors", "seed": "random_state", "kernels": "kernel"})
    def __init__(
        self,
        kernel: Any = "bank",
        *,
        columns: Mapping[str, Any] | None = None,
        n_factors: int | None = None,
        sparse: Any = False,
        landmarks: Any = "auto",
        scale: Any = True,
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float | None = None,
        random_state: Any = None,
        callback: Callable[[Iteration], bool | None] | None = None,
    ) -> None:
        self.kernel = kernel
        self.columns = columns
        self.n_factors = n_factors
        self.sparse = sparse
        self.landmarks = landmarks
        self.scale = scale
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.pairwise = self._is_pairwise
        return tags

    @property
    def _is_pairwise(self) -> bool:
        """Whether X is a kernel, so that cross-validation takes its columns with its rows."""
        named = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return named or isinstance(self.kernel, Precomputed) or self.kernel is Precomputed

    # ------------------------------------------------------------ factors

    def transform(self, X: Any) -> Array:
        """The factors of the rows of X, (n, K): posterior means given X alone."""
        given = self._given(X)
        return np.asarray(self.model_.transform(given))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the columns of `transform`: factor1, factor2, …"""
        check_is_fitted(self, "model_")
        super().get_feature_names_out(input_features)  # checks the names that it is given
        return np.array(self.model_.factor_names_, dtype=object)

    @property
    def _n_features_out(self) -> int:
        return int(self.model_.n_factors_)

    # ------------------------------------------------------------ fit

    def _fit(self, X: Array, y: Any = None, kind: View | None = None) -> Self:
        """Fit the model to the views in X and, where there is one, to a target of some kind."""
        declared = _declared_columns(self.columns, X.shape[1], self._feature_names)
        options = {
            option: _by_view(option, getattr(self, option), declared)
            for option in ("kernel", "sparse", "landmarks", "scale")
        }
        columns = declared if self._is_pairwise else self._without_empty(X, declared)
        views: dict[str, View] = {
            view: Real(**{option: value[view] for option, value in options.items()})
            for view in columns
        }
        data = self._tables(X, columns)
        if kind is not None:
            views[_TARGET], data[_TARGET] = kind, y
        model = self._model(views, outputs=None if kind is None else [_TARGET])
        model._fit(data, of_slips=False)  # columns may well be constant in one fold
        self.model_, self.columns_ = model, columns  # together: a fit that fails changes nothing
        self.n_factors_, self.n_iter_ = model.n_factors_, model.n_iter_
        return self

    def _model(self, views: Mapping[str, View], outputs: Sequence[str] | None) -> FactorModel:
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = int(seed.randint(2**31 - 1))
        return FactorModel(
            views,
            self.n_factors,
            outputs=outputs,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=seed,
            callback=self.callback,
        )

    def _without_empty(self, X: Array, columns: Mapping[str, IntArray]) -> dict[str, IntArray]:
        """The columns that have a value, and the views that have such columns.

        A column may well be empty in one fold of a cross-validation, so this is no error.
        """
        empty = np.asarray(np.isnan(X).all(axis=0))
        used = np.unique(np.concatenate(list(columns.values())))
        if empty[used].all():
            raise DataError("Expected at least one value in X but all are missing.")
        lost = [column_label(self._feature_names, j) for j in used[empty[used]].tolist()]
        if lost:
            shown = ", ".join(lost[:5]) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
            warn(f"Left out, because all values are missing in fit: {shown} of X.")
        kept = {view: where[~empty[where]] for view, where in columns.items()}
        return {view: where for view, where in kept.items() if len(where)}

    # ------------------------------------------------------------ X

    @property
    def _feature_names(self) -> list[str] | None:
        return list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None

    def _read(self, X: Any, in_fit: bool = False) -> Array:
        """X as floats, NaN where missing; fit remembers its columns, and others are compared."""
        with _words_named(X):
            return np.asarray(
                validate_data(
                    self,
                    _unmasked(X),
                    reset=in_fit,
                    dtype=np.float64,
                    ensure_all_finite="allow-nan",
                    ensure_min_samples=2 if in_fit else 1,
                )
            )

    def _given(self, X: Any) -> dict[str, Any]:
        """New rows as the model takes them."""
        check_is_fitted(self, "model_")
        return self._tables(self._read(X), self.columns_)

    def _tables(self, X: Array, columns: Mapping[str, IntArray]) -> dict[str, Any]:
        names = self._feature_names
        return {
            view: _named(X[:, where], None if names is None else [names[j] for j in where])
            for view, where in columns.items()
        }


class KernelFactorAnalysis(_KernelFactors):
    """Factors of the rows of a table, found through kernels. Missing values may stay.

    Parameters
    ----------
    kernel : str, kernel, callable, list of these, None, or dict of view → one of these
        How rows are compared, as in `kofa.Real`. The default is a weighted sum of a linear, an
        RBF and a Laplacian kernel, the last with a relevance of each feature where there is a
        target to learn it from. None explains the columns themselves. "precomputed": X is
        the kernel.
    columns : dict of view → columns, or None
        Splits X into views that each have a kernel of their own: names or positions of columns,
        or a slice of positions. Views may overlap; a column in none of them is not used. None
        is one view, called "X". No view may be called "y".
    n_factors : int or None
        The most factors allowed. None: as many as the data support, at most 300.
    sparse : bool, "ard", or dict of view → one of these
        Compare with few rows only, the relevance vectors. With ``kernel=None``, switch useless
        columns off.
    landmarks : "auto", "all", int, `kofa.Landmarks`, or dict of view → one of these
        How many rows each row is compared with; "auto" is all up to 2,000.
    scale : bool, or dict of view → bool
        Standardise the columns.
    n_init, max_iter, tol, callback
        As for `kofa.FactorModel`.
    random_state : int, numpy Generator, RandomState or None
        Seed of everything random. None is a fixed seed, unlike in scikit-learn's estimators: a
        fit that is repeated gives the same result.

    Attributes
    ----------
    model_ : FactorModel
        The model of the views, with all that can be asked of it. Of its ``lower_bound_`` see
        there: with classes as the target it is not strictly below the evidence.
    columns_ : dict of view → array
        Positions of the columns of X in each view, without those that had no value in fit.
    n_factors_, n_iter_, n_features_in_ : int
    feature_names_in_ : array
        Only where X had names of columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kofa.estimators import KernelFactorAnalysis
    >>> X = load_iris().data
    >>> KernelFactorAnalysis(n_factors=3).fit_transform(X).shape
    (150, 3)
    """

    def fit(self, X: Any, y: None = None) -> Self:  # noqa: ARG002
        """Fit to X (n, D): array, list of rows, or DataFrame. NaN is missing; y is not used."""
        return self._fit(self._read(X, in_fit=True))


class KernelFactorRegressor(RegressorMixin, _KernelFactors):  # type: ignore[misc]
    """Regression on one or many targets, through the factors that they share with X.

    Parameters
    ----------
    kernel, columns, n_factors, sparse, landmarks, scale, n_init, max_iter, tol, random_state, \
callback
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
        """Fit to X (n, D) and y (n,) or (n, targets); NaN in y is a target that is not known."""
        X = self._read(X, in_fit=True)
        targets = _numbers(y, self)
        _check_known(X, ~np.isnan(targets))
        self._fit(X, _named(targets, getattr(y, "columns", None)), Real())
        self._y_ndim = targets.ndim
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of the targets of each row, in the units of y and its shape.

        Returns
        -------
        mean : array (n,) or (n, targets)
        std : likewise, only with ``return_std``: noise and all uncertainty of the model
        """
        given = self._given(X)
        predicted = self.model_.predict(given, _TARGET, return_std)
        return tuple(map(self._like_y, predicted)) if return_std else self._like_y(predicted)

    def predict_quantiles(self, X: Any, quantiles: Sequence[float]) -> list[Array]:
        """Values that the targets do not exceed with the given probabilities, one array each."""
        given = self._given(X)
        tables = self.model_.predict_quantiles(given, _TARGET, quantiles)
        return [self._like_y(table) for table in tables]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R², the mean over targets; entries of y that are not known are left out."""
        from sklearn.metrics import r2_score  # slow to load; scikit-learn's own mixin waits too

        targets = _numbers(y, self)
        truth = targets.reshape(len(targets), -1)
        known = ~np.isnan(truth)
        predicted = self.predict(X).reshape(truth.shape)
        weight = _weights(sample_weight, truth)
        scores = [
            r2_score(t[k], p[k], sample_weight=weight[k])
            for t, p, k in zip(truth.T, predicted.T, known.T, strict=True)
            if k.any()
        ]
        if not scores:
            raise DataError("Expected a target to score by but all of y is missing.")
        return float(np.mean(scores))

    def _like_y(self, table: Any) -> Array:
        values = np.asarray(table)
        return values[:, 0] if self._y_ndim == 1 else values


class KernelFactorClassifier(ClassifierMixin, _KernelFactors):  # type: ignore[misc]
    """Two classes, several, or several labels at a time, through factors shared with X.

    Parameters
    ----------
    kernel, columns, n_factors, sparse, landmarks, scale, n_init, max_iter, tol, random_state, \
callback
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
        """Fit to X (n, D) and y: classes (n,), or zeros and ones (n, labels).

        None or NaN in y is a class, or one of several labels, that is not known.
        """
        X = self._read(X, in_fit=True)
        labels, known, classes = _labels(y, self)
        _check_known(X, known)
        if labels.ndim == 2:
            self._fit(X, _named(labels, getattr(y, "columns", None)), Binary())
        else:
            _check_classes(classes)
            self._fit(X, labels, Categorical())
        self.classes_, self._multilabel = classes, labels.ndim == 2
        return self

    def predict_proba(self, X: Any) -> Array:
        """(n, classes) probabilities, or (n, labels) of a one; all uncertainty is averaged over."""
        given = self._given(X)
        return np.asarray(self.model_.predict_proba(given, _TARGET))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row, (n,), or zeros and ones (n, labels)."""
        probability = self.predict_proba(X)
        if self._multilabel:
            return np.asarray(probability > 0.5).astype(int)
        return np.asarray(self.classes_[probability.argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are predicted right; those that are not known are left out.

        Of several labels, all must be right, and all must be known.
        """
        labels, known, _ = _labels(y, self)
        known = np.asarray(known.reshape(len(known), -1).all(axis=1))
        if not known.any():
            raise DataError("Expected a label to score by but all of y is missing.")
        predicted = self.predict(X)
        check_consistent_length(predicted, labels)
        right = np.equal(predicted[known], labels[known], dtype=object).astype(bool)
        weight = _weights(sample_weight, labels)[known]
        return float(np.average(right.reshape(len(right), -1).all(axis=1), weights=weight))


# ---------------------------------------------------------------- views of X


def _declared_columns(
    columns: Any, n_columns: int, names: Sequence[str] | None
) -> dict[str, IntArray]:
    """Positions of the columns of each view."""
    if columns is None:
        return {_WHOLE: np.arange(n_columns)}
    if not isinstance(columns, Mapping) or not columns:
        raise DeclarationError(
            f"Expected columns as a dict of view → columns of X, or None, but got {columns!r}."
        )
    if _TARGET in columns:
        raise DeclarationError(
            f"View {_TARGET!r}: expected another name, as this is that of the target."
        )
    return {view: _positions(view, given, n_columns, names) for view, given in columns.items()}


def _positions(view: str, given: Any, n_columns: int, names: Sequence[str] | None) -> IntArray:
    if isinstance(given, slice):
        chosen = list(range(n_columns))[given]
    else:
        try:
            each = [given] if isinstance(given, str) else list(given)
        except TypeError:  # a single position
            each = [given]
        chosen = [_position(view, column, n_columns, names) for column in each]
    if not chosen:
        raise DeclarationError(f"View {view!r}: expected at least one column but got {given!r}.")
    if len(set(chosen)) < len(chosen):
        raise DeclarationError(f"View {view!r}: expected each column once but got {given!r}.")
    return np.array(chosen, dtype=np.intp)


def _position(view: str, column: Any, n_columns: int, names: Sequence[str] | None) -> int:
    if isinstance(column, str):
        if names is None:
            raise DeclarationError(
                f"View {view!r}, column {column!r}: X has no names of columns; give positions, "
                f"or pass a DataFrame."
            )
        if column not in names:
            raise DeclarationError(f"View {view!r}: X has no column {column!r}.")
        return list(names).index(column)
    if not isinstance(column, int | np.integer) or isinstance(column, bool):
        raise DeclarationError(
            f"View {view!r}: expected names or positions of columns but got {column!r}."
        )
    if not -n_columns <= column < n_columns:
        raise DeclarationError(
            f"View {view!r}: X has no column {column}; it has {n_columns} columns."
        )
    return int(column) % n_columns


def _by_view(option: str, value: Any, views: Iterable[str]) -> dict[str, Any]:
    """An option of each view, which may be one for all."""
    if not isinstance(value, Mapping):
        return dict.fromkeys(views, value)
    for view in value:
        if view not in views:
            known = ", ".join(map(repr, views))
            raise DeclarationError(f"Unknown view {view!r} in {option}; the views are {known}.")
    for view in views:
        if view not in value:
            raise DeclarationError(f"View {view!r}: expected an entry of {option} for it.")
    return dict(value)


@contextmanager
def _words_named(X: Any) -> Iterator[None]:
    """Of a DataFrame, an error of numbers that are none names the column."""
    try:
        yield
    except OverflowError as error:
        raise DataError("X has an integer that is too large for a float; scale it.") from error
    except ValueError as error:
        for name in getattr(X, "columns", ()) if "could not convert" in str(error) else ():
            try:
                np.asarray(X[name], dtype=np.float64)
            except (TypeError, ValueError) as cause:
                raise DataError(
                    f"Column {name!r} of X: {cause}; expected numbers: leave it out, or encode it."
                ) from error
        raise


def _unmasked(values: Any) -> Any:
    """What a mask hides is missing; scikit-learn would look behind the mask."""
    masked = isinstance(values, np.ma.MaskedArray)
    return np.ma.filled(values.astype(np.float64), np.nan) if masked else values


def _named(values: NDArray[Any], names: Iterable[Hashable] | None) -> Any:
    """A DataFrame, if columns have names of their own, so that the model knows them by these."""
    if names is None or values.ndim == 1:
        return values
    try:
        import pandas as pd
    except ImportError:  # names of a polars frame
        return values
    return pd.DataFrame(values, columns=list(names))


# ---------------------------------------------------------------- y


def _check_given(y: Any, estimator: Any) -> None:
    if y is None:
        raise DataError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    if hasattr(y, "toarray"):
        raise DataError("Expected y as an array but got a sparse matrix; pass y.toarray().")


def _numbers(y: Any, estimator: Any) -> Array:
    """Targets (n,) or (n, targets) as floats, NaN where not known."""
    _check_given(y, estimator)
    try:
        return np.asarray(
            check_array(
                _unmasked(y),
                dtype=np.float64,
                ensure_2d=False,
                ensure_all_finite="allow-nan",
                input_name="y",
            )
        )
    except OverflowError as error:
        raise DataError("y has an integer that is too large for a float; scale it.") from error


def _labels(y: Any, estimator: Any) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[Any]]:
    """Labels, which of them are known, and the classes."""
    _check_given(y, estimator)
    array = _as_they_are(y)
    if array.ndim == 2 and array.shape[1] > 1:
        indicators = _numbers(y, estimator)
        known = ~np.isnan(indicators)
        _check_indicators(indicators[known])
        return indicators, known, np.arange(array.shape[1])
    labels = column_or_1d(array, warn=True)
    table = read_table(_TARGET, labels, labels=True)
    return labels, ~np.isnan(table.values[:, 0]), table.classes


def _as_they_are(y: Any) -> NDArray[Any]:
    """Labels as an array: words next to None stay what they are, and so do whole numbers."""
    if isinstance(y, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(y.astype(object), np.nan))
    if hasattr(y, "to_list") and not isinstance(y.dtype, np.dtype):  # of pandas or polars alone
        y = y.to_list()
    return np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)


def _weights(sample_weight: Any, y: NDArray[Any]) -> Array:
    """A weight for each row of y, one where none are given."""
    if sample_weight is None:
        return np.ones(len(y))
    weights = np.asarray(column_or_1d(sample_weight), dtype=np.float64)
    check_consistent_length(weights, y)
    return weights


def _check_known(X: Array, known: NDArray[np.bool_]) -> None:
    check_consistent_length(X, known)
    rows = int(known.reshape(len(known), -1).any(axis=1).sum())
    if rows < 2:
        raise DataError(f"Expected at least 2 rows of y that are not missing but got {rows}.")


def _check_indicators(values: Array) -> None:
    other = values[~np.isin(values, (0.0, 1.0))]
    if len(other):
        raise DataError(
            f"Expected zeros and ones in y, a column for each label, but got {other[0]:g}; "
            f"classes are a single column."
        )


def _check_classes(classes: NDArray[Any]) -> None:
    if classes.dtype.kind == "f" and not np.all(
        np.isfinite(classes) & (np.floor(classes) == classes)
    ):
        raise DataError(
            "Expected classes in y but got continuous numbers; for these there is "
            "KernelFactorRegressor."
        )
    if len(classes) < 2:
        label = classes.tolist()[0]
        raise DataError(f"Expected at least two classes in y but all labels are {label!r}.")
