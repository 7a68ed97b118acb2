"""Results in the types of the users' tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from kofa.data.tables import Samples, Table, import_pandas
from kofa.errors import DataError
from kofa.linalg import Array


def named(values: Array, rows: Any, columns: Sequence[Hashable] | None) -> Any:
    """A DataFrame where the rows have names, else the array itself."""
    if rows is None:
        return values
    pd = import_pandas()
    header = None if columns is None else _index(columns)
    return pd.DataFrame(
        values, index=rows if hasattr(rows, "dtype") else _index(rows), columns=header
    )


def _index(names: Sequence[Hashable]) -> Any:
    """Names as pandas has them: as words where all are, but for those that UTF-8 cannot write."""
    pd = import_pandas()
    try:
        return pd.Index(list(names))
    except UnicodeEncodeError:
        return pd.Index(list(names), dtype=object)


def labelled(values: Array, samples: Samples, columns: Sequence[Hashable] | None) -> Any:
    """A row for each sample: in a DataFrame as they came in one, else the array itself."""
    if not samples.polars:
        return named(values, samples.names, columns)
    import polars as pl

    return pl.DataFrame(values, schema=_polars_names(columns, values.shape[1]), orient="row")


def in_container(table: Any, columns: Sequence[Hashable], container: str) -> Any:
    """A table as a DataFrame of "pandas" or "polars"; "default" is as it is."""
    if container == "polars":
        import polars as pl

        values = np.asarray(table)
        return pl.DataFrame(values, schema=_polars_names(columns, values.shape[1]), orient="row")
    if container == "default" or hasattr(table, "index"):
        return table
    return import_pandas().DataFrame(np.asarray(table), columns=list(columns))


def scored(values: Array, samples: Samples) -> Any:
    """A number for each sample: in a Series as they came in one, else the array itself."""
    return _one_column(values, samples, "score")


def decoded(values: Array, view: Any, samples: Samples) -> Any:
    """Numbers as a table; numbers of classes as labels, in a Series as the samples came in one."""
    if view.classes is None:
        return labelled(values, samples, view.outputs)
    labels = view.classes[values[:, 0].astype(np.intp)]
    name = None if view.inputs is None else view.inputs[0]
    column = _one_column(labels, samples, name)
    plain = samples.polars or samples.names is None
    return column if plain else _typed(column, view.dtype)


def _one_column(values: Any, samples: Samples, name: Hashable) -> Any:
    """A value for each sample, in a Series as the samples came in one."""
    if samples.polars:
        return _polars_series("column_0" if name is None else str(name), values)
    return values if samples.names is None else _series(values, samples.names, name)


def restored(values: Array, table: Table, samples: Samples) -> Any:
    """Completed values in the shape and, where these can hold them, the types of a table."""
    columns: list[Any] = list(values.T)
    if table.classes is not None:
        columns = [table.classes[values[:, 0].astype(np.intp)]]
    if samples.polars:
        return _polars_table(columns, table)
    if samples.names is None:
        return _typed(np.column_stack(columns), table.dtypes[0])
    pd = import_pandas()
    names = range(len(columns)) if table.columns is None else table.columns
    dtypes = table.dtypes if len(table.dtypes) == len(columns) else table.dtypes * len(columns)
    typed = [
        _typed(_series(column, samples.names), dtype)
        for column, dtype in zip(columns, dtypes, strict=True)
    ]
    return pd.DataFrame(dict(enumerate(typed))).set_axis(_index(names), axis=1)


def _series(values: Any, samples: Any, name: Hashable = None) -> Any:
    """A Series of the values' own type: pandas looks for no other in objects."""
    return import_pandas().Series(values, index=samples, name=name, dtype=values.dtype)


def _typed(values: Any, dtype: Any) -> Any:
    """Values in a type, unless it cannot hold them as they are."""
    if dtype in (bool, int) and isinstance(dtype, type):
        typed = _typed(values, np.dtype(dtype))
        return typed if typed is values else typed.astype(object)
    numbers = getattr(dtype, "kind", "O") in "iubf" and values.dtype.kind == "f"
    if numbers and not np.all(_fits(values, dtype)):
        return values
    try:
        return values.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return values


def _fits(values: Any, dtype: Any) -> Any:
    """Where a type of numbers can hold floats: no holes or fractions in whole numbers."""
    dtype = getattr(dtype, "subtype", dtype)  # of a sparse column
    if dtype.kind == "b":
        return (values == 0) | (values == 1)
    name = f"{dtype.kind}{dtype.itemsize}"
    if dtype.kind == "f":
        return ~(np.abs(values) > float(np.finfo(name).max))
    limits = np.iinfo(name)
    within = (values >= float(limits.min)) & (values < float(limits.max) + 1.0)
    return within & (values == np.floor(values))


def _polars_names(columns: Sequence[Hashable] | None, n: int) -> list[str]:
    """Names for polars, which takes only strings."""
    names = [f"column_{j}" for j in range(n)] if columns is None else [str(c) for c in columns]
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        what = f"several columns would be called {twice!r}, as names in polars are words"
        raise DataError(what, cure="rename the columns, or pass tables of pandas")
    return names


def _polars_table(columns: Sequence[Any], table: Table) -> Any:
    import polars as pl

    names = _polars_names(table.columns, len(columns))
    if table.schema is None:  # an array among tables of polars
        typed = [_typed(column, table.dtypes[0]) for column in columns]
        return pl.DataFrame([_polars_series(n, c) for n, c in zip(names, typed, strict=True)])
    given = zip(names, columns, table.schema, strict=True)
    return pl.DataFrame([_polars_typed(_polars_series(n, c), dtype) for n, c, dtype in given])


def _polars_series(name: str, values: Any) -> Any:
    import polars as pl

    if values.dtype.kind in "fiub":
        return pl.Series(name, values)
    try:
        return pl.Series(name, values.tolist())
    except TypeError:  # labels of several types
        return pl.Series(name, values.tolist(), dtype=pl.Object)


def _polars_typed(series: Any, dtype: Any) -> Any:
    """A Series in a type, unless it cannot hold the values as they are; missing is null."""
    import polars as pl

    if series.dtype != pl.Float64:
        return series.cast(dtype)
    series = series.fill_nan(None)
    if dtype.is_float():
        typed = series.cast(dtype)
        return series if typed.is_infinite().any() else typed
    typed = series.cast(dtype, strict=False)  # fills between whole numbers become other numbers
    return typed if typed.cast(pl.Float64).equals(series) else series
