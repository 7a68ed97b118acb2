"""What a user declares and passes in: views, tables, samples aligned by name."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kofa.errors import DataError, DeclarationError
from kofa.linalg import Array, IntArray

# ---------------------------------------------------------------- declarations


@dataclass(frozen=True)
class Real:
    """A view of real numbers, explained directly or through a kernel.

    Parameters
    ----------
    kernel : None, str, kernel or callable
        None explains the columns themselves. A kernel (``kofa.RBF()``, ``kofa.Linear()``, …, a
        string such as ``"rbf"``, or any callable ``k(X, V)`` that returns an array of shape
        (rows of X, rows of V)) explains each sample's similarities to the landmarks instead.
    sparse : bool
        Give each column its own ARD precision, so that useless columns are switched off.
    noise : {"auto", "view", "column"}
        One noise variance for the view or one per column. "auto" is one per column, except
        for a kernelized input, which has one for the view.
    scale : bool
        Standardise the columns. Without it a primal view is only centred and divided by one
        number, and a kernel sees the columns as they are.
    landmarks : {"auto", "all"} or int
        How many samples a kernelized view compares each sample with: "auto" is all that
        qualify up to 2,000, a number or "auto" beyond it a random subset.

    Examples
    --------
    >>> import kofa
    >>> kofa.Real(kernel="rbf")
    Real(kernel='rbf', sparse=False, noise='auto', scale=True, landmarks='auto')
    """

    kernel: Any = None
    sparse: bool = False
    noise: Literal["auto", "view", "column"] = "auto"
    scale: bool = True
    landmarks: Literal["auto", "all"] | int = "auto"

    def check(self, name: str) -> None:
        """Raise if a parameter means nothing."""
        if self.noise not in ("auto", "view", "column"):
            raise DeclarationError(
                f"View {name!r}: expected noise 'auto', 'view' or 'column' but got {self.noise!r}."
            )
        for option in ("sparse", "scale"):
            if not isinstance(getattr(self, option), bool | np.bool_):
                raise DeclarationError(
                    f"View {name!r}: expected {option} True or False "
                    f"but got {getattr(self, option)!r}."
                )
        number = isinstance(self.landmarks, int | np.integer) and int(self.landmarks) >= 2
        named = isinstance(self.landmarks, str) and self.landmarks in ("auto", "all")
        if not (number or named):
            raise DeclarationError(
                f"View {name!r}: expected landmarks 'auto', 'all' or a number of at least 2 "
                f"but got {self.landmarks!r}."
            )


def check_views(views: Any, data: Any) -> dict[str, Real]:
    """The declared views, or a `Real` for each table where nothing was declared."""
    if views is None:
        tables = data if isinstance(data, Mapping) else {}
        return {name: Real() for name, table in tables.items() if table is not None}
    if not isinstance(views, Mapping):
        raise DeclarationError(
            f"Expected views as a dict of name → view but got {type(views).__name__}."
        )
    if not views:
        raise DeclarationError("Expected at least one view but got an empty dict.")
    for name, view in views.items():
        if not isinstance(view, Real):
            raise DeclarationError(
                f"View {name!r}: expected a view such as kofa.Real() but got {view!r}."
            )
        view.check(name)
    return dict(views)


def check_outputs(outputs: Any, views: Mapping[str, Real]) -> None:
    """Raise unless the outputs are some, but not all, of the views."""
    if isinstance(outputs, str):
        raise DeclarationError(f"Expected outputs as a list: write [{outputs!r}].")
    names = [] if outputs is None else list(outputs)
    unknown = [name for name in names if name not in views]
    if unknown:
        raise DeclarationError(
            f"Unknown output {unknown[0]!r}; the views are {', '.join(map(repr, views))}."
        )
    if views and len(set(names)) == len(views):
        raise DeclarationError("Expected at least one view that is not an output.")


# ---------------------------------------------------------------- tables


@dataclass(frozen=True, eq=False)
class Table:
    """The data of one view as floats, with the names that came with them."""

    name: str
    values: Array  # (n, D), NaN where missing; never the caller's own memory once changed
    samples: Any = None  # pandas Index, or None for samples known by position
    columns: tuple[Hashable, ...] | None = None

    def label(self, column: int) -> str:
        """How to call a column in a message."""
        return column_label(self.columns, column)


def column_label(columns: Sequence[Hashable] | None, column: int) -> str:
    """The name of a column, or its position."""
    return f"column {columns[column]!r}" if columns is not None else f"column {column}"


def read_table(name: str, data: Any) -> Table:
    """Read an array, list, Series or DataFrame; the caller's data are not changed."""
    if hasattr(data, "toarray"):
        raise DataError(f"View {name!r}: sparse matrices are not supported; pass .toarray().")
    samples, columns = None, None
    if hasattr(data, "iloc"):  # pandas
        frame = data.to_frame() if data.ndim == 1 else data
        samples, columns = frame.index, tuple(frame.columns)
        _check_unique(name, "sample", samples)
        _check_unique(name, "column", frame.columns)
        values = _floats(name, [frame.iloc[:, j] for j in range(frame.shape[1])], columns)
    else:
        raw = _as_array(name, data)
        if raw.ndim == 1:
            raw = raw[:, None]
        if raw.ndim != 2:
            raise DataError(f"View {name!r}: expected a table (2-D) but got {raw.ndim}-D data.")
        numeric = raw.dtype.kind in "fiub"
        values = raw.astype(float) if numeric else _floats(name, list(raw.T), None)
    if values.shape[1] == 0:
        raise DataError(f"View {name!r}: expected at least one column but got none.")
    table = Table(name, values, samples, columns)
    _check_finite(table)
    return table


def _as_array(name: str, data: Any) -> Any:
    if isinstance(data, np.ma.MaskedArray):
        return np.ma.filled(data.astype(float), np.nan)
    try:
        return np.asarray(data)
    except ValueError:
        raise DataError(f"View {name!r}: expected a table but its rows differ in length.") from None


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
                f"encode or drop the column."
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


def read_data(data: Any, views: Mapping[str, Any]) -> dict[str, Table]:
    """Check the mapping itself, then read each of its tables."""
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
    return {name: read_table(name, table) for name, table in data.items() if table is not None}


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


def labelled(values: Array, samples: Any, columns: Sequence[Hashable] | None) -> Any:
    """A DataFrame where the samples came with names, else the array itself."""
    if samples is None:
        return values
    import pandas as pd  # the caller passed DataFrames, so it is there

    return pd.DataFrame(values, index=samples, columns=None if columns is None else list(columns))
