"""X and y as scikit-learn passes them, and as a model takes them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import column_or_1d

from kofa.checks import hint, require
from kofa.data.reading import check_collected, is_polars, read_table
from kofa.data.stored import FileRows, Named, Stored, blocks, is_sparse
from kofa.errors import DataError, DeclarationError, warn
from kofa.linalg import Array, IntArray

_WHOLE = "X"  # the view that is all of X, where `columns` names no others
TARGET = "y"
_CONVERT = "encode or convert it, or leave the column out"
SOME_OF_Y = {"cure": "pass values of y that are known"}

# ---------------------------------------------------------------- views of X


def declared_columns(
    columns: Any, n_columns: int, names: Sequence[str] | None
) -> dict[str, IntArray]:
    """Positions of the columns of each view."""
    if columns is None:
        return {_WHOLE: np.arange(n_columns)}
    fine = isinstance(columns, Mapping) and len(columns) > 0
    expected, cure = "a dict of view → columns of X, or None", "write such as {'a': [0, 1]}"
    require(fine, "columns", expected, columns, cure=cure)
    if TARGET in columns:
        what = "this is the name of the target"
        raise DeclarationError(what, TARGET, option="columns", cure="choose another name")
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
        what, cure = "expected at least one column", "name one, or leave the view out"
        raise DeclarationError(what, view, got=given, option="columns", cure=cure)
    if len(set(chosen)) < len(chosen):
        what, cure = "expected each column once", "name it once"
        raise DeclarationError(what, view, got=given, option="columns", cure=cure)
    return np.array(chosen, dtype=np.intp)


def _position(view: str, column: Any, n_columns: int, names: Sequence[str] | None) -> int:
    if isinstance(column, str):
        if names is None:
            what, cure = "X has no names of columns", "give positions, or pass a DataFrame"
            raise DeclarationError(what, view, column, option="columns", cure=cure)
        if column not in names:
            what, cure = f"X has no column {column!r}", hint(column, names, "its columns are")
            raise DeclarationError(what, view, option="columns", cure=cure)
        return list(names).index(column)
    if not isinstance(column, int | np.integer) or isinstance(column, bool):
        what, cure = "expected names or positions of columns", "write such as ['age'] or [0, 1]"
        raise DeclarationError(what, view, got=column, option="columns", cure=cure)
    if not -n_columns <= column < n_columns:
        what, cure = f"X has no column {column}", f"it has columns 0 to {n_columns - 1}"
        raise DeclarationError(what, view, option="columns", cure=cure)
    return int(column) % n_columns


def by_view(option: str, value: Any, views: Iterable[str]) -> dict[str, Any]:
    """An option of each view, which may be one for all."""
    if not isinstance(value, Mapping):
        return dict.fromkeys(views, value)
    for view in value:
        if view not in views:
            what, cure = f"unknown view {view!r} in {option}", hint(view, views, "the views are")
            raise DeclarationError(what, option=option, cure=cure)
    for view in views:
        if view not in value:
            what, cure = f"{option} has no entry for it", f"add {{{view!r}: …}} to {option}"
            raise DeclarationError(what, view, option=option, cure=cure)
    return dict(value)


@contextmanager
def column_named(data: Any, source: str = _WHOLE, cure: str = _CONVERT) -> Iterator[None]:
    """An error about what is no number in X or y names the column, where it has a name."""
    check_collected(data, source=source)
    _check_no_times(data, source, cure)
    try:
        yield
    except OverflowError as error:
        what = f"{source} has an integer that is too large for a float"
        raise DataError(what, cure="scale it") from error
    except (TypeError, ValueError) as error:
        if not (hasattr(data, "iloc") or is_polars(data) or "could not convert" in str(error)):
            raise
        found = _not_a_number(data)
        if found is None:
            raise
        raise DataError(found.what, source=source, column=found.column, cure=cure) from error


def _check_no_times(data: Any, source: str, cure: str) -> None:
    """Raise for dates and durations, of which scikit-learn makes numbers of nanoseconds."""
    frame = hasattr(data, "columns") and hasattr(data, "dtypes")
    dtypes: list[Any] = list(data.dtypes) if frame else [getattr(data, "dtype", None)]
    for j, dtype in enumerate(dtypes):
        of_polars = hasattr(dtype, "is_temporal") and dtype.is_temporal()
        if of_polars or getattr(dtype, "kind", "O") in "mM":
            column = data.columns[j] if frame else j
            what = f"expected real numbers but got {dtype}"
            raise DataError(what, source=source, column=column, cure=cure)


def _not_a_number(data: Any) -> DataError | None:
    """The error about the first value that is no number, if there is one."""
    try:
        read_table(_WHOLE, data)
    except DataError as error:
        return None if error.column is None else error
    return None


def in_file(X: Any) -> Named | None:
    """The rows of a `numpy.memmap` or of `kofa.open_table`, which stay there; else None."""
    if isinstance(X, Named) and isinstance(X.values, Stored):
        return X
    rows = FileRows.of_memmap(X)
    return None if rows is None or X.ndim != 2 else Named(rows, None, None)


def empty_columns(X: Any) -> NDArray[np.bool_]:
    """Which columns of X have no value: (D,)."""
    if isinstance(X, Stored):
        return np.asarray(np.all([np.isnan(part).all(axis=0) for part in blocks(X)], axis=0))
    if not is_sparse(X):
        return np.asarray(np.isnan(X).all(axis=0))
    missing = np.bincount(X.indices[np.isnan(X.data)], minlength=X.shape[1])
    return np.asarray(missing == X.shape[0])


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
        what = f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        raise DataError(what, cure="call fit(X, y)")
    if is_sparse(y):
        what = "expected y as an array but got a sparse matrix"
        raise DataError(what, cure="pass y.toarray()")


def numbers(y: Any, estimator: Any) -> Array:
    """Targets (n,) or (n, targets) as floats, NaN where not known."""
    _check_given(y, estimator)
    cure = "convert it, or use KernelFactorClassifier for classes"
    with column_named(y, TARGET, cure):
        return np.asarray(
            check_array(
                unmasked(y),
                dtype=np.float64,
                ensure_2d=False,
                ensure_all_finite="allow-nan",
                input_name="y",
            )
        )


def labels_of(y: Any, estimator: Any) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[Any]]:
    """Labels, which of them are known, and the classes."""
    _check_given(y, estimator)
    check_collected(y, source=TARGET)
    array = _as_they_are(y)
    if array.ndim == 2 and array.shape[1] > 1:
        indicators = numbers(y, estimator)
        known = ~np.isnan(indicators)
        _check_indicators(indicators[known])
        return indicators, known, np.arange(array.shape[1])
    labels = column_or_1d(array, warn=True)
    table = read_table(TARGET, labels, labels=True)
    return labels, ~np.isnan(table.dense[:, 0]), table.classes


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


def check_known(X: Any, known: NDArray[np.bool_]) -> None:
    check_consistent_length(X, known)
    rows = int(known.reshape(len(known), -1).any(axis=1).sum())
    if rows < 2:
        what = "expected at least 2 rows of y that are not missing"
        raise DataError(what, got=rows, **SOME_OF_Y)


def _check_indicators(values: Array) -> None:
    other = values[~np.isin(values, (0.0, 1.0))]
    if len(other):
        what = f"expected zeros and ones in y, a column for each label, but got {other[0]:g}"
        raise DataError(what, cure="pass classes as a single column")


def check_classes(classes: NDArray[Any], n_known: int) -> None:
    """Raise for numbers and for a single class; warn, as scikit-learn does, of all too many."""
    if classes.dtype.kind == "f" and not np.all(
        np.isfinite(classes) & (np.floor(classes) == classes)
    ):
        what = "expected classes in y but got continuous numbers"
        raise DataError(what, use=["KernelFactorRegressor"])
    if len(classes) < 2:
        label = classes.tolist()[0]
        what = f"expected at least two classes in y but all labels are {label!r}"
        raise DataError(what, cure="pass rows of another class too")
    if n_known > 20 and len(classes) > round(0.5 * n_known):
        warn(
            f"y has {len(classes)} classes in {n_known} rows, as numbers to predict have, or names "
            f"of samples; use KernelFactorRegressor for numbers."
        )
