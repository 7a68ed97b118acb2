"""A table as the rest of kofa uses it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kofa.data.stored import Placed, Stored, Values, blocks
from kofa.linalg import Array, IntArray

_SHOWN = 3  # samples that a message names


@dataclass(frozen=True, eq=False)
class Table:
    """The data of one view as floats, with the names that came with them."""

    name: str
    values: Values  # (n, D), NaN where missing; never the caller's own memory once changed
    samples: Any = None  # pandas Index, or None for samples known by position
    columns: tuple[Hashable, ...] | None = None
    dtypes: tuple[Any, ...] = ()  # of the caller's columns, one for all of an array; a Python
    # type where objects are all of it; for polars what NumPy would have
    schema: tuple[Any, ...] | None = None  # of the caller's columns where they are of polars
    classes: Any = None  # labels that the values 0, 1, … stand for, as an array

    @property
    def dense(self) -> Array:
        """All values as one array."""
        return np.asarray(self.values)

    def blocks(self) -> Iterator[Table]:
        """The table itself or, where its rows are stored in another form, blocks of its rows."""
        done = 0
        for values in blocks(self.values):
            some = slice(done, done + len(values))
            samples = self.samples if self.samples is None else self.samples[some]
            yield self if values is self.values else replace(self, values=values, samples=samples)
            done = some.stop

    def column(self, place: int) -> Hashable:
        """The name of a column, or its position."""
        return place if self.columns is None else self.columns[place]

    def label(self, column: int) -> str:
        """How to call a column in a message."""
        return column_label(self.columns, column)

    def row_labels(self, rows: IntArray) -> str:
        """How to call some rows in a message."""
        names = [int(row) if self.samples is None else self.samples[row] for row in rows[:_SHOWN]]
        more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
        return f"sample{'s' * (len(rows) > 1)} {', '.join(map(repr, names))}{more}"


def column_label(columns: Sequence[Hashable] | None, column: int) -> str:
    """The name of a column, or its position."""
    return f"column {columns[column]!r}" if columns is not None else f"column {column}"


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of a set of tables, and where each row of each table belongs."""

    n: int
    names: Any  # pandas Index, or None
    position: dict[str, IntArray]  # of each row of each table among the samples
    polars: bool = False  # whether results are tables of polars: some came in, and none of pandas

    def spread(self, table: Table) -> Values:
        """The table's values for all samples (n, D), NaN where it lacks one; not to be changed."""
        if isinstance(table.values, Stored):
            place = np.full(self.n, -1)
            place[self.position[table.name]] = np.arange(len(table.values))
            return Placed(table.values, place)
        position = self.position[table.name]
        in_place = len(position) == self.n and (position == np.arange(self.n)).all()
        if in_place and table.values.flags.c_contiguous:
            return table.values
        values = np.full((self.n, table.values.shape[1]), np.nan)
        values[position] = table.values
        return values


def import_pandas() -> Any:
    """The module, or how to get it."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "Tables need pandas: install it with pip install 'kofa[pandas]'."
        ) from error
    return pd
