"""X and y as scikit-learn passes them, and as a model takes them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import column_or_1d

from kofa.data.reading import read_table
from kofa.errors import DataError, DeclarationError
from kofa.linalg import Array, IntArray

_WHOLE = "X"  # the view that is all of X, where `columns` names no others
TARGET = "y"

# ---------------------------------------------------------------- views of X


def declared_columns(
    columns: Any, n_columns: int, names: Sequence[str] | None
) -> dict[str, IntArray]:
    """Positions of the columns of each view."""
    if columns is None:
        return {_WHOLE: np.arange(n_columns)}
    if not isinstance(columns, Mapping) or not columns:
        raise DeclarationError(
            f"Expected columns as a dict of view → columns of X, or None, but got {columns!r}."
        )
    if TARGET in columns:
        raise DeclarationError(
            f"View {TARGET!r}: expected another name, as this is that of the target."
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


def by_view(option: str, value: Any, views: Iterable[str]) -> dict[str, Any]:
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
def words_named(X: Any) -> Iterator[None]:
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


def unmasked(values: Any) -> Any:
    """What a mask hides is missing; scikit-learn would look behind the mask."""
    masked = isinstance(values, np.ma.MaskedArray)
    return np.ma.filled(values.astype(np.float64), np.nan) if masked else values


def named(values: NDArray[Any], names: Iterable[Hashable] | None) -> Any:
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


def numbers(y: Any, estimator: Any) -> Array:
    """Targets (n,) or (n, targets) as floats, NaN where not known."""
    _check_given(y, estimator)
    try:
        return np.asarray(
            check_array(
                unmasked(y),
                dtype=np.float64,
                ensure_2d=False,
                ensure_all_finite="allow-nan",
                input_name="y",
            )
        )
    except OverflowError as error:
        raise DataError("y has an integer that is too large for a float; scale it.") from error


def labels_of(y: Any, estimator: Any) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[Any]]:
    """Labels, which of them are known, and the classes."""
    _check_given(y, estimator)
    array = _as_they_are(y)
    if array.ndim == 2 and array.shape[1] > 1:
        indicators = numbers(y, estimator)
        known = ~np.isnan(indicators)
        _check_indicators(indicators[known])
        return indicators, known, np.arange(array.shape[1])
    labels = column_or_1d(array, warn=True)
    table = read_table(TARGET, labels, labels=True)
    return labels, ~np.isnan(table.values[:, 0]), table.classes


def _as_they_are(y: Any) -> NDArray[Any]:
    """Labels as an array: words next to None stay what they are, and so do whole numbers."""
    if isinstance(y, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(y.astype(object), np.nan))
    if hasattr(y, "to_list") and not isinstance(y.dtype, np.dtype):  # of pandas or polars alone
        y = y.to_list()
    return np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)


def weights_of(sample_weight: Any, y: NDArray[Any]) -> Array:
    """A weight for each row of y, one where none are given."""
    if sample_weight is None:
        return np.ones(len(y))
    weights = np.asarray(column_or_1d(sample_weight), dtype=np.float64)
    check_consistent_length(weights, y)
    return weights


def check_known(X: Array, known: NDArray[np.bool_]) -> None:
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


def check_classes(classes: NDArray[Any]) -> None:
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
