"""From the tables of users to arrays of numbers."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from kofa.checks import hint, listed, shown
from kofa.data.cells import floats, is_missing, is_numeric
from kofa.data.dask_tables import is_dask, open_dask
from kofa.data.stored import (
    FileRows,
    Named,
    SparseRows,
    Stored,
    encoded_rows,
    is_sparse,
    of_blocks,
    small_as_array,
)
from kofa.data.tables import Table
from kofa.errors import DataError
from kofa.linalg import Array


def read_table(name: str, data: Any, labels: bool = False) -> Table:
    """Read an array, list, Series, DataFrame or sparse matrix; the caller's data are not changed.

    With `labels` the single column may hold anything; its values become numbers of `classes`.
    """
    data = open_dask(name, data) if is_dask(data) else data
    in_file = None if labels else FileRows.of_memmap(data)
    if in_file is not None:
        table, columns = _open_stored(name, in_file, labels)
    elif is_sparse(data) or isinstance(data, Named | Stored):
        table, columns = _open_stored(name, data, labels)
    elif is_polars(data):
        table, columns = _open_polars(name, data, labels)
    elif hasattr(data, "iloc"):
        table, columns = _open_pandas(name, data, labels)
    else:
        table, columns = _open_array(name, data, labels)
    if labels:
        return _label_table(table, columns)
    if not table.values.shape[1]:
        table = replace(table, values=floats(name, columns, table.columns))
    _check_finite(table)
    return table


def _open_stored(name: str, data: Any, labels: bool) -> tuple[Table, list[Any]]:
    """Rows that are kept as they are; labels are one column, read at once."""
    values, samples, columns = data, None, None
    if isinstance(data, Named):
        values, samples, columns = data.values, data.samples, data.columns
        columns = None if columns is None else tuple(columns)
    if is_sparse(values):
        values = _numeric(name, values.reshape(-1, 1) if values.ndim == 1 else values)
    dtype = getattr(values, "dtype", np.dtype(float))
    if labels:
        one = values.shape[1] == 1
        column = np.asarray(SparseRows(values) if is_sparse(values) else values) if one else None
        column = np.empty((0, values.shape[1])) if column is None else column
        return Table(name, column, samples, columns, (dtype,)), list(column.T)
    rows = small_as_array(values if isinstance(values, Stored) else SparseRows(values))
    return Table(name, rows, samples, columns, (dtype,)), []


def _numeric(name: str, matrix: Any) -> Any:
    if not is_numeric(matrix.dtype):
        what, cure = f"expected real numbers but got {matrix.dtype}", "convert them to float"
        raise DataError(what, name, cure=cure)
    return matrix


def _open_array(name: str, data: Any, labels: bool) -> tuple[Table, list[Any]]:
    raw = _as_array(name, data, labels)
    if raw.ndim == 0:
        what = "expected a table such as an array, a list of rows or a DataFrame"
        raise DataError(what, name, got=data, cure=_as_a_table(data))
    if raw.ndim == 1:
        raw = raw[:, None]
    if raw.ndim != 2:
        cure = "make each sample one row, as .reshape(len(data), -1) does"
        raise DataError(f"expected a table (2-D) but got {raw.ndim}-D data", name, cure=cure)
    table = Table(name, np.empty((len(raw), 0)), dtypes=(_dtype(raw.ravel()),))
    if is_numeric(raw.dtype) and not labels:
        return replace(table, values=_floats(raw)), []
    return table, list(raw.T)


def _floats(raw: Any) -> Array:
    """Numbers row by row as floats: the caller's own where they are such, not to be changed."""
    plain = type(raw) is np.ndarray and raw.dtype == float
    if plain and raw.flags.c_contiguous and raw.flags.aligned:
        same: Array = raw.view()
        same.flags.writeable = False
        return same
    return encoded_rows(raw, lambda rows: rows, "float64")


def _as_a_table(data: Any) -> str:
    """How something that is no table may become one."""
    if isinstance(data, str | PathLike):
        return "read the file first, such as by pandas.read_csv"
    if isinstance(data, Mapping):
        return "pass pandas.DataFrame(…) of it"
    return "pass list(…) of it" if isinstance(data, Iterable) else ""


def _open_pandas(name: str, data: Any, labels: bool) -> tuple[Table, list[Any]]:
    frame = data.to_frame() if data.ndim == 1 else data
    check_named(name, frame.index)
    check_unique(name, "sample", frame.index)
    check_unique(name, "column", frame.columns)
    table = Table(name, np.empty((len(frame), 0)), frame.index, tuple(frame.columns))
    if all(map(is_numeric, frame.dtypes)) and not labels:
        # In memory as an array would be, for the same sums to the last digit.
        values = np.array(frame.to_numpy(dtype=float), order="C")
        return replace(table, values=values, dtypes=tuple(frame.dtypes)), []
    columns = [frame.iloc[:, j] for j in range(frame.shape[1])]
    return replace(table, dtypes=tuple(_dtype(column) for column in columns)), columns


def is_polars(data: Any) -> bool:
    """Whether data are of polars, which is not loaded for the question."""
    polars = sys.modules.get("polars")  # who passes its tables has loaded it
    return polars is not None and isinstance(
        data, polars.DataFrame | polars.Series | polars.LazyFrame
    )


def check_collected(data: Any, **place: Any) -> None:
    """Raise for a table of polars that is only planned."""
    if is_polars(data) and hasattr(data, "collect"):
        raise DataError("expected a DataFrame but got a LazyFrame", cure="pass .collect()", **place)


def _open_polars(name: str, data: Any, labels: bool) -> tuple[Table, list[Any]]:
    import polars as pl

    check_collected(data, view=name)
    frame = data.to_frame() if isinstance(data, pl.Series) else data
    series = frame.get_columns()
    columns = [_objects(s.to_list()) if labels else _polars_numbers(s) for s in series]
    dtypes = tuple(_numpy_dtype(s.dtype) for s in series)
    none = np.empty((len(frame), 0))
    return Table(name, none, None, tuple(frame.columns), dtypes, tuple(frame.dtypes)), columns


def _polars_numbers(series: Any) -> Any:
    """Floats, null as NaN; objects where the column holds something else than numbers."""
    import polars as pl

    if series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null):
        return series.cast(pl.Float64).to_numpy()
    return _objects(series.to_list())


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype that comes nearest to one of polars."""
    import polars as pl

    if dtype.is_integer():
        return np.dtype(np.int64)
    if dtype == pl.Boolean:
        return np.dtype(bool)
    return np.dtype(float if dtype.is_numeric() else object)


def _dtype(column: Any) -> Any:
    if column.dtype != object:
        return column.dtype
    kinds = {type(value) for value in column.tolist() if not is_missing(value)}
    return kinds.pop() if kinds in ({bool}, {int}) else column.dtype


def _label_table(table: Table, columns: Sequence[Any]) -> Table:
    """One column of labels as codes and classes, sorted where they can be."""
    if len(columns) != 1:
        what, cure = "expected one column of labels", "make each column a view of its own"
        raise DataError(what, table.name, got=len(columns), cure=cure, kinds=["Binary"])
    dates = columns[0].dtype.kind in "mM"  # of which tolist may make numbers
    labels = list(columns[0]) if dates else columns[0].tolist()
    try:
        seen = {label: None for label in labels if not is_missing(label)}  # keeps the order
    except TypeError:
        what, cure = "expected labels such as words or numbers", "convert them to words"
        raise DataError(what, table.name, cure=cure) from None
    declared = _declared_classes(columns[0].dtype if table.schema is None else table.schema[0])
    known = _sorted_if_possible(list(seen)) if declared is None else declared
    classes = [label for label in known if label in seen]
    code = {label: float(i) for i, label in enumerate(classes)}
    values = [np.nan if is_missing(label) else code[label] for label in labels]
    return replace(
        table,
        values=np.array(values, dtype=float)[:, None],
        classes=_label_array(classes, words=columns[0].dtype.kind == "U"),
    )


def _declared_classes(dtype: Any) -> list[Any] | None:
    """The classes of a pandas category or a polars Enum, in their order."""
    # A polars Categorical has the categories of the whole program, as they came.
    enumerates = type(dtype).__name__ in ("CategoricalDtype", "Enum")
    return list(dtype.categories) if enumerates else None


def _sorted_if_possible(labels: list[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:
        return labels


def _label_array(classes: Sequence[Any], words: bool) -> Any:
    """The classes in the plainest dtype that keeps them as they are."""
    kinds = {type(label) for label in classes}
    if words or (len(kinds) == 1 and issubclass(next(iter(kinds)), int | float)):
        return np.array(classes)
    return _objects(classes)


def _objects(values: Sequence[Any]) -> Any:
    """A one-dimensional array of Python objects, whatever they are."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def _as_array(name: str, data: Any, labels: bool) -> Any:
    if isinstance(data, np.ma.MaskedArray):
        plain = is_numeric(data.dtype) and not labels
        return np.ma.filled(data.astype(float if plain else object), np.nan)
    try:
        # A list of labels and None, or of words and numbers, must not become words.
        array = np.asarray(data, dtype=object if _is_list(data) and labels else None)
        return (
            np.asarray(data, dtype=object) if _is_list(data) and array.dtype.kind == "U" else array
        )
    except ValueError:
        cure = "give each row as many values, None where one is missing"
        raise DataError("expected a table but its rows differ in length", name, cure=cure) from None


def _is_list(data: Any) -> bool:
    return isinstance(data, list | tuple)


def check_named(name: str, index: Any) -> None:
    """A sample without a name would be matched with another without one."""
    levels = [index.get_level_values(level) for level in range(index.nlevels)]
    nameless = np.any([level.isna() for level in levels], axis=0)
    if nameless.any():
        which = int(np.argmax(nameless))
        what = f"expected a name for every sample but number {which} (from 0) has none"
        raise DataError(what, name, cure="name it, or drop it")


def check_unique(name: str, what: str, index: Any) -> None:
    """Raise where a name of a sample or column occurs twice."""
    if not index.is_unique:
        twice = index[index.duplicated()].tolist()[0]  # as Python shows it
        raise DataError(
            f"expected unique {what} names but {twice!r} occurs more than once",
            name,
            cure="rename or drop the duplicates",
        )


def _check_finite(table: Table) -> None:
    for infinite in of_blocks(lambda part: np.isinf(part).any(axis=0), table.values):
        if not infinite.any():
            continue
        raise DataError(
            "expected finite numbers but got infinity",
            table.name,
            table.column(int(np.argmax(infinite))),
            cure="replace it, or mark it as missing with NaN",
        )


def check_observed(table: Table, each_column: bool = True) -> None:
    """Raise unless the view, and each of its columns, has an observed value."""
    observed = np.zeros(table.values.shape[1], dtype=bool)
    for own in of_blocks(lambda part: (~np.isnan(part)).any(axis=0), table.values):
        observed |= own
    if not observed.any():
        raise DataError("there is no observed value", table.name, cure="leave the view out")
    empty = ~observed
    if each_column and empty.any():
        column = table.column(int(np.argmax(empty)))
        raise DataError("all values are missing", table.name, column, cure="drop the column")


def read_data(
    data: Any, views: Mapping[str, Any], labels: Collection[str] = ()
) -> dict[str, Table]:
    """Check the mapping itself, then read each of its tables; `labels` are views of labels."""
    name = next(iter(views), "x")
    if not isinstance(data, Mapping):
        what = f"expected a dict of view name → table but got {type(data).__name__}"
        several = isinstance(data, list | tuple) and len(data) > 1
        how = "name each table, such as" if several else "wrap a single table as"
        raise DataError(what, cure=f"{how} {{{name!r}: table}}")
    if all(table is None for table in data.values()):
        what = "expected at least one view but got "
        what += "only None for tables" if data else "an empty dict"
        known = views and f"; the views are {listed(views)}"
        raise DataError(what, cure=f"pass such as {{{name!r}: table}}{known or ''}")
    unknown = [name for name in data if name not in views]
    if unknown:
        what, cure = f"unknown view {shown(unknown[0])}", hint(unknown[0], views, "the model has")
        raise DataError(what, cure=cure)
    return {
        name: read_table(name, table, name in labels)
        for name, table in data.items()
        if table is not None
    }


def check_given(data: Any, declared: Collection[str]) -> None:
    """Raise for a view of a fit that is None, which may have been forgotten, or is not there."""
    if not isinstance(data, Mapping) or not data:
        return
    for name, table in data.items():
        if table is None:
            cure = "pass its data, or leave the view out of the data and of the declared views"
            raise DataError("expected a table", name, got=None, cure=cure)
    missing = [name for name in declared if name not in data]
    others = [name for name in data if name not in declared]
    if missing:
        cure = "pass its table, or leave it out of views"
        if others:
            cure = f"the data have {listed(others)}, which is not declared: rename one of them"
        raise DataError("it is declared but not in the data", missing[0], cure=cure)
