"""Types of labels, and dates, as plain JSON values and back.

Each becomes an object of one key, such as `{"dtype": "<i8"}` or `{"string": ["python", "NA"]}`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kofa.storage.damage import DamageError, excerpt, require

_NUMPY = re.compile(r"\|[bOiu]1?|[<>][iu][248]|[<>]f[248]|[<>]U\d{1,6}|[<>][mM]8(\[\w{1,2}\])?")
_PANDAS = {
    *(f"{sign}{bits}" for sign in ("Int", "UInt") for bits in (8, 16, 32, 64)),
    "Float32", "Float64", "boolean",
}  # fmt: skip
_ZONE = re.compile(r"(?!dateutil)[A-Za-z0-9_+:/-]{1,40}")

_LONGEST_WORD = 1024  # characters for which a type of labels has space, unless a label has more

Convert = Callable[[Any], Any]  # what is inside a value, to JSON or from it

# ---------------------------------------------------------------- to JSON


def dtype_to_json(value: Any, convert: Convert) -> dict[str, Any] | None:
    """A dtype of NumPy or pandas, or a date of pandas; None for anything else."""
    if isinstance(value, np.dtype):
        return {"dtype": value.str} if _NUMPY.fullmatch(value.str) else None
    return _from_pandas(value, convert) if type(value).__module__.startswith("pandas") else None


def _from_pandas(value: Any, convert: Convert) -> dict[str, Any] | None:
    name = type(value).__name__
    if name == "Timestamp":
        return _from_timestamp(value)
    if name == "CategoricalDtype" and value.categories is not None:
        labels, dtype = value.categories.tolist(), value.categories.dtype
        return {"category": [convert(labels), convert(dtype), value.ordered]}
    if name == "StringDtype":
        return {"string": [value.storage, "nan" if isinstance(value.na_value, float) else "NA"]}
    return {"pandas": str(value)} if str(value) in _PANDAS else None


def _from_timestamp(value: Any) -> dict[str, Any] | None:
    zone = None if value.tz is None else str(value.tz)
    try:
        return {"timestamp": [value.value, value.unit, zone]}
    except (OverflowError, ValueError):  # too far away for nanoseconds
        return None


# ---------------------------------------------------------------- from JSON


def dtype_readers(convert: Convert) -> dict[str, Callable[[Any], Any]]:
    """What reads the value of each key; a `DamageError` for all that is not written here."""
    return {
        "dtype": _numpy_dtype,
        "pandas": _pandas_dtype,
        "string": _string_dtype,
        "timestamp": _timestamp,
        "category": lambda value: _category(value, convert),
    }


def _numpy_dtype(text: Any) -> Any:
    try:
        if isinstance(text, str) and _NUMPY.fullmatch(text):
            return np.dtype(text)
    except TypeError:
        pass
    raise DamageError(f"its dtype {excerpt(text)} is unknown")


def _pandas_dtype(name: Any) -> Any:
    require(isinstance(name, str) and name in _PANDAS, f"its dtype {excerpt(name)} is unknown")
    with with_pandas("a column") as pd:
        return pd.api.types.pandas_dtype(name)


def _string_dtype(value: Any) -> Any:
    storage, missing = list_of_length(value, 2)
    require(storage in ("python", "pyarrow") and missing in ("NA", "nan"), "its words are unknown")
    with with_pandas("words") as pd:
        for kind in (storage, "python"):  # pyarrow may not be installed
            try:
                return pd.StringDtype(kind) if missing == "NA" else pd.StringDtype(kind, math.nan)
            except (ImportError, TypeError):
                continue
        return np.dtype(object)  # what an older pandas has for words with NaN


def _timestamp(value: Any) -> Any:
    nanoseconds, unit, zone = list_of_length(value, 3)
    require(
        type(nanoseconds) is int
        and unit in ("s", "ms", "us", "ns")
        and (zone is None or (isinstance(zone, str) and _ZONE.fullmatch(zone) is not None)),
        "a date cannot be read",
    )
    with with_pandas("a date") as pd:
        return pd.Timestamp(nanoseconds, unit="ns", tz=zone).as_unit(unit)


def _category(value: Any, convert: Convert) -> Any:
    labels, dtype, ordered = list_of_length(value, 3)
    require(isinstance(labels, list), "its categories are no list")
    require(ordered is None or isinstance(ordered, bool), "an order is not True or False")
    labels, dtype = convert(labels), convert(dtype)
    with with_pandas("categories") as pd:
        index = pd.Index(labels, dtype=dtype, tupleize_cols=False)
        return pd.CategoricalDtype(index, ordered)


def longest_word_type(labels: Any) -> np.dtype[Any]:
    """The longest type of words that a file may give to these labels."""
    longest = max((len(str(label)) for label in labels.tolist()), default=0)
    return np.dtype(f"U{max(_LONGEST_WORD, longest)}")


def list_of_length(value: Any, n: int) -> list[Any]:
    """The list, if it is one of this length."""
    require(isinstance(value, list) and len(value) == n, "its manifest has a list of other length")
    return list(value)


@contextmanager
def with_pandas(what: str) -> Iterator[Any]:
    """pandas, which a file may need; its errors as ours."""
    try:
        import pandas as pd

        yield pd
    except ImportError as error:
        raise DamageError(f"{what} in it needs a package that is not installed ({error})") from None
    except (TypeError, ValueError, LookupError, OverflowError, OSError) as error:
        raise DamageError(f"{what} in it means nothing to pandas ({error!s:.80})") from None
