"""What is known of samples beside the views: numbers, and classes of two or more kinds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kofa.checks import listed
from kofa.data.reading import check_collected, check_named, check_unique, is_polars
from kofa.data.tables import import_pandas
from kofa.errors import DataError, warn
from kofa.inspection.matching import reading
from kofa.linalg import Array

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_TIME = re.compile(
    r"\b(time|days|months|duration|survival|follow ?up|tt[a-z]{1,2}|os|pfs|dfs|rfs|efs)\b"
)
_EVENT = re.compile(
    r"\b(event|status|died|dead|death|deceased|censor\w*|relapsed?|recurred|progressed"
    r"|treated after)\b"
)
_TRUTH = {"0", "1", "0.0", "1.0", "false", "true", "no", "yes"}
_TRUTH |= {"alive", "dead", "living", "deceased", "0:living", "1:deceased", "censored", "event"}


@dataclass(frozen=True, eq=False)
class Covariate:
    """One value for each sample: a number, or the number of its class; NaN where it is missing."""

    name: Any
    kind: str  # "number", "binary" or "category"
    values: Array
    labels: tuple[Any, ...] = ()  # of the classes, in their order


def read_covariates(data: Any) -> tuple[Any, Any]:
    """Covariates as a DataFrame, and the names of their samples, or None."""
    pd = import_pandas()
    with reading("covariates"):
        table, named = _as_frame(pd, data)
        if named:
            check_named("covariates", table.index)
            check_unique("covariates", "sample", table.index)
        check_unique("covariates", "column", table.columns)
    if not table.shape[1]:
        raise DataError("expected at least one column but got none", source="covariates")
    return table, table.index if named else None


def _as_frame(pd: Any, data: Any) -> tuple[Any, bool]:
    """A DataFrame of any of the forms, and whether its samples have names."""
    if isinstance(data, pd.DataFrame):
        return data, True
    if isinstance(data, pd.Series):
        return data.to_frame("covariate" if data.name is None else data.name), True
    if is_polars(data):
        check_collected(data, source="covariates")
        data = data if hasattr(data, "get_columns") else data.to_frame()
        data = {series.name: series.to_list() for series in data.get_columns()}
    if isinstance(data, Mapping):
        return _of_columns(pd, data), any(isinstance(v, pd.Series) for v in data.values())
    if data is None or isinstance(data, str) or np.ndim(data) not in (1, 2):
        cure = "pass a DataFrame, a Series, a dict of columns, or an array"
        raise DataError("expected columns of the samples", source="covariates", cure=cure)
    table = pd.DataFrame(data if isinstance(data, np.ndarray) else list(data))
    return table.set_axis([f"covariate{j + 1}" for j in range(table.shape[1])], axis=1), False


def _of_columns(pd: Any, columns: Mapping[Any, Any]) -> Any:
    """A DataFrame of columns; those that are Series are matched by their index."""
    for name, column in columns.items():
        if isinstance(column, pd.Series):
            check_unique("covariates", "sample", column.index)
        elif isinstance(column, str) or np.ndim(np.asarray(column, dtype=object)) != 1:
            what = "expected one value for each sample"
            raise DataError(what, column=name, got=column, cure="pass a list, array or Series")
    try:
        return pd.DataFrame(dict(columns))
    except ValueError:  # of another length
        lengths = ", ".join(f"{name!r} {len(column)}" for name, column in columns.items())
        what = f"expected columns of one length but got {lengths}"
        cure = "pass each as a Series to match samples by their index"
        raise DataError(what, cure=cure) from None


def as_covariate(name: Any, column: Any) -> Covariate:
    """A column as numbers, or as classes where it has two values or holds no numbers.

    Dates and durations are numbers, of days.
    """
    types = import_pandas().api.types
    seen = column.dropna().infer_objects()
    if seen.dtype.kind in "mM":
        column, seen = _days(column), _days(seen)
    truth = types.is_bool_dtype(seen.dtype)
    if truth or not types.is_numeric_dtype(seen.dtype) or seen.nunique() == 2:
        return _classes(name, column, truth)
    values = np.full(len(column), np.nan)
    values[column.notna().to_numpy()] = seen.to_numpy(dtype=float)
    if np.isinf(values).any():
        cure = "replace it, or mark it as missing with NaN"
        what = "expected finite numbers but got infinity"
        raise DataError(what, column=name, cure=cure, source="covariates")
    return Covariate(name, "number", values)


def _days(column: Any) -> Any:
    """Days since the first, or in a duration; NaN where it is missing."""
    pd = import_pandas()
    dates = pd.Series(column.to_numpy()) if column.dtype == object else column
    durations = dates - dates.min() if dates.dtype.kind == "M" else dates
    return (durations / pd.Timedelta(days=1)).set_axis(column.index)


def _classes(name: Any, column: Any, truth: bool) -> Covariate:
    try:
        classes = column.astype("category").cat.remove_unused_categories().cat
    # A list has no order, and cannot be compared; pyarrow has errors of its own for them.
    except (TypeError, NotImplementedError):
        cure = "pass one number or label for each sample"
        what = "expected values that can be compared"
        raise DataError(what, column=name, cure=cure, source="covariates") from None
    codes = classes.codes.to_numpy().astype(float)
    kind = "binary" if truth or len(classes.categories) == 2 else "category"
    labels = tuple(classes.categories.tolist())
    return Covariate(name, kind, np.where(codes < 0, np.nan, codes), labels)


def warn_of_censored_times(columns: Sequence[Covariate]) -> None:
    """Say which columns look like times to an event that some samples have not had yet.

    By their names, beside that of an indicator of the event, such as TTD and died.
    """
    times = [c.name for c in columns if _says(_TIME, c.name) and _is_duration(c)]
    events = [c.name for c in columns if _says(_EVENT, c.name) and _is_indicator(c)]
    if times and events:
        warn(
            f"Covariates: {listed(times)} look like times to an event, and {listed(events)} like "
            f"whether it has happened. Where it has not, the true time is longer, but the number "
            f"is tested as it is; use a method for survival, such as Cox regression on the factors."
        )


def _says(words: re.Pattern[str], name: Any) -> bool:
    return words.search(" ".join(_WORD.findall(str(name))).lower()) is not None


def _is_duration(covariate: Covariate) -> bool:
    return covariate.kind == "number" and not bool((covariate.values < 0).any())


def _is_indicator(covariate: Covariate) -> bool:
    return covariate.kind == "binary" and {str(c).lower() for c in covariate.labels} <= _TRUTH
