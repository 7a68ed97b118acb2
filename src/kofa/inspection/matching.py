"""Tables as inspection reads them, and which of their rows belong to the same sample."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kofa.checks import listed
from kofa.data.reading import read_table
from kofa.data.tables import Table, import_pandas
from kofa.errors import DataError
from kofa.linalg import Array, IntArray


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Errors of reading name the argument, which is no view that could be declared otherwise."""
    try:
        yield
    except DataError as error:
        raise error.as_error(DataError, view=None, source=name, kinds=()) from None


def read_numbers(name: str, data: Any) -> Table:
    """A table of numbers: an array, a DataFrame or a Series, or what was made of one before."""
    if isinstance(data, Table):
        return data
    with reading(name):
        return read_table(name, data)


def read_factors(name: str, data: Any) -> tuple[Table, list[Hashable]]:
    """Rows × factors, and the names of the factors: those of a fit where they have none."""
    table = read_numbers(name, data)
    if table.columns is not None:
        return table, list(table.columns)
    return table, [f"factor{k + 1}" for k in range(table.values.shape[1])]


def match(first: tuple[str, Any, int], second: tuple[str, Any, int]) -> tuple[IntArray, IntArray]:
    """Rows of two tables that belong to the same samples, in the order of the first.

    Each table is given by its name, its index or None, and its number of rows. Where both have an
    index it decides, and what only one of them has is left out; else the position does.
    """
    (name, index, n), (other, its_index, its_n) = first, second
    if index is None or its_index is None:
        if n != its_n:
            what = f"expected as many rows as {name} has ({n}) but got {its_n}"
            cure = "pass two DataFrames to match samples by their index"
            raise DataError(what, source=other, cure=cure)
        return np.arange(n), np.arange(n)
    place = its_index.get_indexer(index)
    rows = np.flatnonzero(place >= 0)
    if not len(rows):
        raise DataError(_nothing_shared(name, index, its_index), source=other,
                        cure="give both the same names of samples as index")  # fmt: skip
    return rows, place[rows]


def _nothing_shared(name: str, index: Any, its_index: Any) -> str:
    mine, theirs = (listed(some.tolist(), 2) or "no names" for some in (index, its_index))
    return f"expected samples of {name} but none is the same: there are {mine}, here {theirs}"


def on_common_samples(first: tuple[str, Table], second: tuple[str, Table]) -> tuple[Array, Array]:
    """The values of two tables of numbers, for the samples that both have."""
    named = ((name, table.samples, len(table.values)) for name, table in (first, second))
    mine, theirs = match(*named)
    return first[1].values[mine], second[1].values[theirs]


def frame(columns: dict[str, Any]) -> Any:
    """A DataFrame; names stay what they are, also beside missing ones."""
    pd = import_pandas()
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=None if isinstance(values, np.ndarray) else object)
            for name, values in columns.items()
        }
    )
