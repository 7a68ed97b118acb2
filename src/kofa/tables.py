"""What a user passes in: tables of numbers or labels, and samples aligned by name."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kofa.errors import DataError
from kofa.linalg import Array, IntArray

# ---------------------------------------------------------------- tables


@dataclass(frozen=True, eq=False)
class Table:
    """The data of one view as floats, with the names that came with them."""

    name: str
    values: Array  # (n, D), NaN where missing; never the caller's own memory once changed
    samples: Any = None  # pandas Index, or None for samples known by position
    columns: tuple[Hashable, ...] | None = None
    dtypes: tuple[Any, ...] = ()  # of the caller's columns, one for all of an array; a Python
    # type where objects are all of it
    classes: Any = None  # labels that the values 0, 1, … stand for, as an array

    def label(self, column: int) -> str:
        """How to call a column in a message."""
        return column_label(self.columns, column)


def column_label(columns: Sequence[Hashable] | None, column: int) -> str:
    """The name of a column, or its position."""
    return f"column {columns[column]!r}" if columns is not None else f"column {column}"


def read_table(name: str, data: Any, labels: bool = False) -> Table:
    """Read an array, list, Series or DataFrame; the caller's data are not changed.

    With `labels` the single column may hold anything; its values become numbers of `classes`.
    """
    if hasattr(data, "toarray"):
        raise DataError(f"View {name!r}: sparse matrices are not supported; pass .toarray().")
    samples, names = None, None
    if hasattr(data, "iloc"):  # pandas
        frame = data.to_frame() if data.ndim == 1 else data
        samples, names = frame.index, tuple(frame.columns)
        _check_unique(name, "sample", samples)
        _check_unique(name, "column", frame.columns)
        columns = [frame.iloc[:, j] for j in range(frame.shape[1])]
        dtypes = tuple(_dtype(column) for column in columns)
        n, numeric = len(frame), None
    else:
        raw = _as_array(name, data, labels)
        if raw.ndim == 1:
            raw = raw[:, None]
        if raw.ndim != 2:
            raise DataError(f"View {name!r}: expected a table (2-D) but got {raw.ndim}-D data.")
        columns, dtypes, n = list(raw.T), (_dtype(raw.ravel()),), len(raw)
        numeric = raw.astype(float) if raw.dtype.kind in "fiub" else None
    if not columns:
        raise DataError(f"View {name!r}: expected at least one column but got none.")
    table = Table(name, np.empty((n, 0)), samples, names, dtypes)
    if labels:
        return _label_table(table, columns)
    table = replace(table, values=_floats(name, columns, names) if numeric is None else numeric)
    _check_finite(table)
    return table


def _dtype(column: Any) -> Any:
    if column.dtype != object:
        return column.dtype
    kinds = {type(value) for value in column.tolist() if not _is_missing(value)}
    return kinds.pop() if kinds in ({bool}, {int}) else column.dtype


def _label_table(table: Table, columns: Sequence[Any]) -> Table:
    """One column of labels as codes and classes, sorted where they can be."""
    if len(columns) != 1:
        raise DataError(
            f"View {table.name!r}: expected one column of labels but got {len(columns)}; declare "
            f"0/1 columns as kofa.Binary(), or each column as a view of its own."
        )
    labels = columns[0].tolist()
    try:
        seen = {label: None for label in labels if not _is_missing(label)}  # keeps the order
    except TypeError:
        raise DataError(f"View {table.name!r}: expected labels such as words or numbers.") from None
    declared = getattr(columns[0].dtype, "categories", None)
    known = _sorted_if_possible(list(seen)) if declared is None else declared
    classes = [label for label in known if label in seen]
    code = {label: float(i) for i, label in enumerate(classes)}
    values = [np.nan if _is_missing(label) else code[label] for label in labels]
    return replace(
        table,
        values=np.array(values, dtype=float)[:, None],
        classes=_label_array(classes, words=columns[0].dtype.kind == "U"),
    )


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
    array = np.empty(len(classes), dtype=object)
    array[:] = classes
    return array


def _as_array(name: str, data: Any, labels: bool) -> Any:
    if isinstance(data, np.ma.MaskedArray):
        return np.ma.filled(data.astype(object if labels else float), np.nan)
    try:
        # A list of labels and None, or of words and numbers, must not become words.
        return np.asarray(data, dtype=object) if _is_list(data) and labels else np.asarray(data)
    except ValueError:
        raise DataError(f"View {name!r}: expected a table but its rows differ in length.") from None


def _is_list(data: Any) -> bool:
    return isinstance(data, list | tuple)


def _check_unique(name: str, what: str, index: Any) -> None:
    if not index.is_unique:
        twice = index[index.duplicated()][0]
        raise DataError(
            f"View {name!r}: expected unique {what} names but {twice!r} occurs more than once; "
            f"rename or drop the duplicates."
        )


def _floats(name: str, columns: Sequence[Any], names: Sequence[Hashable] | None) -> Array:
    """Columns of any dtype side by side as floats, missing as NaN."""
    read = []
    for j, column in enumerate(columns):
        bad = _first_other_than_numbers(column)
        if bad is not None:
            raise DataError(
                f"View {name!r}, {column_label(names, j)}: expected real numbers but got {bad!r}; "
                f"encode or drop the column, or declare labels as kofa.Categorical()."
            )
        if hasattr(column, "to_numpy"):
            read.append(column.to_numpy(dtype=float, na_value=np.nan))
        else:
            read.append(np.array([np.nan if _is_missing(v) else v for v in column], dtype=float))
    n = len(columns[0]) if len(columns) else 0
    return np.column_stack(read) if read else np.empty((n, 0))


def _first_other_than_numbers(column: Any) -> Any:
    """The first value that is neither a real number nor missing, if there is one."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "fiub":
        return None
    bad = next((v for v in column if not (_is_missing(v) or _is_number(v))), None)
    return bad.item() if isinstance(bad, np.generic) else bad


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating | np.bool_)


def _check_finite(table: Table) -> None:
    infinite = np.isinf(table.values).any(axis=0)
    if infinite.any():
        raise DataError(
            f"View {table.name!r}, {table.label(int(np.argmax(infinite)))}: expected finite "
            f"numbers but got infinity; replace it, or mark it as missing with NaN."
        )


def check_observed(table: Table, each_column: bool = True) -> None:
    """Raise unless the view, and each of its columns, has an observed value."""
    observed = ~np.isnan(table.values)
    if not observed.any():
        raise DataError(f"View {table.name!r} has no observed value; leave the view out.")
    empty = ~observed.any(axis=0)
    if each_column and empty.any():
        raise DataError(
            f"View {table.name!r}, {table.label(int(np.argmax(empty)))}: all values are missing; "
            f"drop the column."
        )


# ---------------------------------------------------------------- samples


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of a set of tables, and where each row of each table belongs."""

    n: int
    names: Any  # pandas Index, or None
    position: dict[str, IntArray]  # of each row of each table among the samples

    def spread(self, table: Table) -> Array:
        """The table's values for all samples (n, D), NaN where it lacks one."""
        values = np.full((self.n, table.values.shape[1]), np.nan)
        values[self.position[table.name]] = table.values
        return values


def read_data(
    data: Any, views: Mapping[str, Any], labels: Collection[str] = ()
) -> dict[str, Table]:
    """Check the mapping itself, then read each of its tables; `labels` are views of labels."""
    if not isinstance(data, Mapping):
        raise DataError(
            f"Expected a dict of view name → table but got {type(data).__name__}; "
            f"wrap a single table as {{'{next(iter(views), 'x')}': table}}."
        )
    if all(table is None for table in data.values()):
        raise DataError("Expected at least one view but got an empty dict.")
    unknown = [name for name in data if name not in views]
    if unknown:
        raise DataError(
            f"Unknown view {unknown[0]!r}; this model has {', '.join(map(repr, views))}."
        )
    return {
        name: read_table(name, table, name in labels)
        for name, table in data.items()
        if table is not None
    }


def align(tables: Mapping[str, Table]) -> Samples:
    """Match rows by sample name where all tables have names, by position where none has.

    Unnamed tables may stand next to named ones only when all names agree row by row.
    """
    named = {name: t for name, t in tables.items() if t.samples is not None}
    first: Any = next(iter(named.values())).samples if named else None
    same = all(t.samples.equals(first) for t in named.values())
    if len(named) < len(tables) or same:
        _check_lengths(tables, same)
        n = len(next(iter(tables.values())).values)
        return Samples(n, first, dict.fromkeys(tables, np.arange(n)))
    _check_overlap(named)
    union = first.append([t.samples for t in named.values()]).unique()
    return Samples(len(union), union, {n: union.get_indexer(t.samples) for n, t in named.items()})


def _check_overlap(tables: Mapping[str, Table]) -> None:
    """Raise for a table that shares no sample with any other: its names are of another kind."""
    for name, table in tables.items():
        others = [t.samples for other, t in tables.items() if other != name]
        if len(table.samples) and not any(table.samples.isin(index).any() for index in others):
            example = next((index[0] for index in others if len(index)), None)
            raise DataError(
                f"View {name!r} shares no sample with the other views: its index has names such as "
                f"{table.samples[0]!r}, theirs such as {example!r}."
            )


def _check_lengths(tables: Mapping[str, Table], same: bool) -> None:
    lengths = {name: len(t.values) for name, t in tables.items()}
    if len(set(lengths.values())) == 1 and same:
        return
    counts = ", ".join(f"{name!r} {n}" for name, n in lengths.items())
    if not same:
        raise DataError(
            "Expected sample names in every view or one order of samples in all, but the indexes "
            "of the DataFrames differ. Views without sample names are matched by position: pass "
            "DataFrames with an index in every view to match samples by name."
        )
    raise DataError(
        f"Expected the same samples in each view but the numbers of rows are {counts}. Views "
        f"without sample names are matched by position: pass DataFrames with an index in every "
        f"view to match samples by name."
    )


# ---------------------------------------------------------------- back to the user


def labelled(values: Array, samples: Any, columns: Sequence[Hashable] | None) -> Any:
    """A DataFrame where the samples came with names, else the array itself."""
    if samples is None:
        return values
    import pandas as pd  # the caller passed DataFrames, so it is there

    return pd.DataFrame(values, index=samples, columns=None if columns is None else list(columns))


def decoded(values: Array, view: Any, samples: Any) -> Any:
    """Numbers as a table; numbers of classes as labels, in a Series where samples have names."""
    if view.classes is None:
        return labelled(values, samples, view.outputs)
    labels = view.classes[values[:, 0].astype(np.intp)]
    if samples is None:
        return labels
    import pandas as pd

    name = None if view.inputs is None else view.inputs[0]
    return _typed(pd.Series(labels, index=samples, name=name), view.dtype)


def restored(values: Array, table: Table, samples: Any) -> Any:
    """Completed values in the shape and, where these can hold them, the types of a table."""
    columns: list[Any] = list(values.T)
    if table.classes is not None:
        columns = [table.classes[values[:, 0].astype(np.intp)]]
    if samples is None:
        return _typed(np.column_stack(columns), table.dtypes[0])
    import pandas as pd

    names = range(len(columns)) if table.columns is None else table.columns
    dtypes = table.dtypes if len(table.dtypes) == len(columns) else table.dtypes * len(columns)
    return pd.DataFrame(
        {
            name: _typed(pd.Series(column, index=samples), dtype)
            for name, column, dtype in zip(names, columns, dtypes, strict=True)
        }
    )


def _typed(values: Any, dtype: Any) -> Any:
    """Values in a type, unless it cannot hold them as they are."""
    if dtype in (bool, int) and isinstance(dtype, type):
        typed = _typed(values, np.dtype(dtype))
        return typed if typed is values else typed.astype(object)
    if getattr(dtype, "kind", "O") in "iub" and values.dtype.kind == "f":
        whole = values == np.floor(values)
        if not np.all(whole if dtype.kind != "b" else (values == 0) | (values == 1)):
            return values  # holes that stay, or fills between whole numbers
    try:
        return values.astype(dtype)
    except (TypeError, ValueError):
        return values
