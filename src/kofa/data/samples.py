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
                f"{table.samples[0]!r}, theirs such as {example!r}"
            )
            same = "give a sample the same name in every view, such as by .set_index"
            raise DataError(what, name, cure=_transposed(name, tables) or same)


def _transposed(name: str, tables: Mapping[str, Table]) -> str:
    """The cure where columns of one table are what is sought in its rows."""
    mine = tables[name]
    for other, table in tables.items():
        if other == name or mine.columns is None or table.columns is None:
            continue
        if table.samples.isin(list(mine.columns)).any():
            return f"columns of {name!r} are samples of {other!r}: transposed? Pass its .T"
        if mine.samples.isin(list(table.columns)).any():
            return f"columns of {other!r} are its samples: transposed? Pass the .T of {other!r}"
        if set(mine.columns) & set(table.columns):
            return (
                f"it shares columns with {other!r} instead: transposed? Rows are samples; pass the "
                f".T of each table"
            )
    return ""


def _check_lengths(tables: Mapping[str, Table], same: bool) -> None:
    lengths = {name: len(t.values) for name, t in tables.items()}
    if len(set(lengths.values())) == 1 and same:
        return
    if not same:
        what = (
            "expected sample names in every view, or one order of samples in all, but the indexes "
            "of the DataFrames differ"
        )
        nameless = next(name for name, t in tables.items() if t.samples is None)
        cure = "without sample names it is matched by position: pass a DataFrame with an index"
        raise DataError(what, nameless, cure=cure)
    counts = ", ".join(f"{name!r} {n}" for name, n in lengths.items())
    what = f"expected the same samples in each view but the numbers of rows are {counts}"
    turned = _turned(tables)
    if turned is not None:
        cure = "it has as many columns as the others have rows: transposed? Rows are samples; pass"
        raise DataError(what, turned, cure=f"{cure} its .T")
    cure = "pass DataFrames with an index in every view to match samples by name"
    raise DataError(what, cure=f"views without sample names are matched by position: {cure}")


def _turned(tables: Mapping[str, Table]) -> str | None:
    """The table that has as many columns as the others have rows, if there is one."""
    for name, table in tables.items():
        others = {len(t.values) for other, t in tables.items() if other != name}
        if others == {table.values.shape[1]} and len(table.values) not in others:
            return name
    return None
