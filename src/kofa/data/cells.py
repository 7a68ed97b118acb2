"""Cells of tables in memory: numbers, what is missing, and the floats that they become."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from kofa.errors import DataError
from kofa.linalg import Array


def floats(name: str, columns: Sequence[Any], names: Sequence[Hashable] | None) -> Array:
    """Columns of any dtype side by side as floats, missing as NaN."""
    if not columns:
        what, cure = "expected at least one column but got none", "leave the view out"
        raise DataError(what, name, cure=cure)
    read = []
    for j, column in enumerate(columns):
        bad = _first_other_than_numbers(column)
        if bad is not None:
            cures = _cures(column, bad, names and names[j], alone=len(columns) == 1)
            place = j if names is None else names[j]
            raise DataError("expected real numbers", name, place, got=bad, **cures)
        if getattr(column.dtype, "kind", "O") in "mM":  # dates, all of which are missing
            read.append(np.full(len(column), np.nan))
        elif is_numeric(column.dtype):
            read.append(np.asarray(column, dtype=float))
        elif hasattr(column, "to_numpy") and column.dtype != object:
            read.append(column.to_numpy(dtype=float, na_value=np.nan))
        else:
            read.append(np.array([np.nan if is_missing(v) else v for v in column], dtype=float))
    return np.column_stack(read)


def _first_other_than_numbers(column: Any) -> Any:
    """The first value that is neither a real number nor missing, if there is one."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "fiub":
        return None
    bad = next((v for v in column if not (is_missing(v) or _is_number(v))), None)
    dated = isinstance(bad, np.datetime64 | np.timedelta64)  # of which item makes numbers
    return bad.item() if isinstance(bad, np.generic) and not dated else bad


def _cures(column: Any, bad: Any, name: Hashable, alone: bool) -> dict[str, Any]:
    """What to do about a column, alone or not, that holds something else than numbers."""
    values = [v for v in column if not is_missing(v)]
    words = [v for v in values if isinstance(v, str)]
    if isinstance(bad, date | timedelta | np.datetime64 | np.timedelta64):
        cure = "convert the dates to numbers, such as days since the first, or drop the column"
        return {"cure": cure}
    if isinstance(bad, numbers.Real | Decimal) or (words and len(words) < len(values) / 2):
        return {"cure": "replace it, or mark it as missing with NaN"}
    if words and all(map(_is_number_as_text, words)):
        return {"cure": "these are numbers as text: convert them, such as by .astype(float)"}
    if len(words) == len(values) > 2 and len(set(values)) == len(values):  # as after reset_index
        by_name = hasattr(column, "iloc")  # not in polars
        index = f"by .set_index({name!r})" if by_name else "of a pandas DataFrame"
        cure = f"all its values differ, as names of samples do: make it the index {index}"
        return {"cure": cure}
    if alone:
        return {"cure": "encode or drop the column", "kinds": ["Categorical"]}
    return {"cure": "encode or drop the column, or make it a categorical view of its own"}


def _is_number_as_text(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # an array, or a signalling NaN of Decimal
        return False


def _is_number(value: Any) -> bool:
    """Whether a value is a real number that a float can hold, infinite ones included."""
    if not isinstance(value, numbers.Real | Decimal | np.bool_):
        return False
    if isinstance(value, np.timedelta64):  # which NumPy counts among whole numbers
        return False
    try:
        float(value)
    except (ValueError, OverflowError):  # a signalling NaN; an integer beyond all floats
        return False
    return True


def is_numeric(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "fiub"
