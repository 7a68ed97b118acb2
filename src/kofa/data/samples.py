"""Matching the samples of several tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kofa.data.tables import Samples, Table
from kofa.errors import DataError


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
        polars = not named and any(t.schema is not None for t in tables.values())
        return Samples(n, first, dict.fromkeys(tables, np.arange(n)), polars)
    _check_overlap(named)
    union = first.append([t.samples for t in named.values()]).unique()
    return Samples(len(union), union, {n: union.get_indexer(t.samples) for n, t in named.items()})


def _check_overlap(tables: Mapping[str, Table]) -> None:
    """Raise for a table that shares no sample with any other: its names are of another kind."""
    for name, table in tables.items():
        others = [t.samples for other, t in tables.items() if other != name]
        if len(table.samples) and not any(table.samples.isin(index).any() for index in others):
            example = next((index[0] for index in others if len(index)), None)
            what = (
                f"it shares no sample with the other views: its index has names such as "
                f"{table.samples[0]!r}, theirs such as {example!r}{_transposed(name, tables)}"
            )
            raise DataError(what, name)


def _transposed(name: str, tables: Mapping[str, Table]) -> str:
    """The end of a sentence, where columns of one table are what is sought in its rows."""
    mine = tables[name]
    for other, table in tables.items():
        if other == name or mine.columns is None or table.columns is None:
            continue
        if table.samples.isin(list(mine.columns)).any():
            return f". Columns of {name!r} are samples of {other!r}: transposed? Pass its .T"
        if mine.samples.isin(list(table.columns)).any():
            return f". Columns of {other!r} are samples of {name!r}: transposed? Pass its .T"
        if set(mine.columns) & set(table.columns):
            return (
                f". They share columns instead, such as those of {other!r}: transposed? Rows are "
                f"samples; pass the .T of each table"
            )
    return ""


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
        f"Expected the same samples in each view but the numbers of rows are {counts}"
        f"{_turned(tables)}. Views without sample names are matched by position: pass DataFrames "
        f"with an index in every view to match samples by name."
    )


def _turned(tables: Mapping[str, Table]) -> str:
    """The end of a sentence, where a table has as many columns as the others have rows."""
    for name, table in tables.items():
        others = {len(t.values) for other, t in tables.items() if other != name}
        if others == {table.values.shape[1]} and len(table.values) not in others:
            return (
                f", and {name!r} has as many columns as the others have rows: transposed? Rows are "
                f"samples; pass its .T"
            )
    return ""
