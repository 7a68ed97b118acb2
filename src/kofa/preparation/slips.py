"""Warnings of tables that can be used but look like a mistake."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kofa.data.stored import Placed, of_blocks
from kofa.data.tables import Table
from kofa.errors import warn
from kofa.kernels.formulas import Precomputed
from kofa.linalg import Array, IntArray
from kofa.preparation.fit_data import FitData


def warn_of_slips(fit_data: FitData, declared: bool) -> None:
    """Warn of tables that can be used but look like a mistake.

    Zeros and ones are taken for a mistake only where it was not declared what they are.
    """
    sources = {fit_data.sources[name]: name for name in reversed(list(fit_data.views))}
    for source, name in sources.items():
        table, view = replace(fit_data.tables[name], name=source), fit_data.views[name]
        if table.classes is None and not isinstance(view.kernel, Precomputed):
            _warn_of_constants(table, view.kernel is not None)
            _warn_of_index(table)
            if not declared:
                _warn_of_zeros_and_ones(table)
        _warn_of_unseen(fit_data, name)


def _warn_of_unseen(fit_data: FitData, name: str) -> None:
    """Warn of what no sample has together with the views that it is to be predicted from."""
    source, kernelized = fit_data.sources[name], name in fit_data.kernels
    others = [other for other in fit_data.inputs if fit_data.sources[other] != source]
    if not others or (kernelized and name not in fit_data.outputs):
        return
    beside = np.any([fit_data.seen(other) for other in others], axis=0)
    rows = np.flatnonzero(beside[fit_data.samples.position[name]])
    table = replace(fit_data.tables[name], name=source)
    if len(rows) == len(table.values):
        return
    seen = sum(of_blocks(lambda part: ~np.isnan(part).all(axis=0), Placed(table.values, rows)))
    unseen = np.flatnonzero(~np.broadcast_to(seen, table.values.shape[1:]).astype(bool))
    if len(unseen) and not (kernelized and len(unseen) < table.values.shape[1]):
        warn(
            f"View {source!r}, {_named(table, unseen)}: no sample has a value together with one of "
            f"the views it is predicted from ({', '.join(map(repr, others))}), so that it is "
            f"predicted as its mean; pass samples that have both."
        )


def _warn_of_constants(table: Table, kernelized: bool) -> None:
    n, least, most = np.zeros(()), np.array(np.inf), np.array(-np.inf)
    for own_n, own_least, own_most in of_blocks(_extremes, table.values):
        n, least, most = n + own_n, np.fmin(least, own_least), np.fmax(most, own_most)
    constant = np.flatnonzero((least == most) & (n > 1))
    if not len(constant):
        return
    effect = "does not tell samples apart" if kernelized else "explains nothing in other columns"
    warn(
        f"View {table.name!r}, {_named(table, constant)}: a column that has the same value in all "
        f"samples {effect}; drop it."
    )


def _named(table: Table, columns: IntArray) -> str:
    more = f" and {len(columns) - 3} more" if len(columns) > 3 else ""
    return ", ".join(table.label(int(j)) for j in columns[:3]) + more


def _extremes(part: Array) -> tuple[Array, Array, Array]:
    """The number of values of each column, their least and their largest."""
    n = len(part) - np.isnan(part).sum(axis=0)
    return n, np.fmin.reduce(part, axis=0), np.fmax.reduce(part, axis=0)


def _warn_of_index(table: Table) -> None:
    """Warn of a column that counts the samples, as the index does after reset_index."""
    numbers = np.arange(len(table.values), dtype=float)
    counted = type(table.samples).__name__ == "RangeIndex" and len(numbers) > 2
    plain = counted and table.samples[0] == 0
    for j, column in enumerate(table.dense.T if plain else ()):
        if np.array_equal(column - column[0], numbers) and column[0] in (0, 1):
            name = None if table.columns is None else table.columns[j]
            warn(
                f"View {table.name!r}, {table.label(j)} only counts the samples, as an index does "
                f"that became a column: use .set_index({name!r}), or drop it."
            )


def _warn_of_zeros_and_ones(table: Table) -> None:
    ones = size = 0.0
    for known in of_blocks(lambda part: part[~np.isnan(part)], table.values):
        if not np.isin(known, (0.0, 1.0)).all():
            return
        ones, size = ones + float(known.sum()), size + known.size
    if 0 < ones < size:
        warn(
            f"View {table.name!r} holds only zeros and ones and is taken as real numbers: declare "
            f"it in views as kofa.Binary(), or as kofa.Real() if that is meant."
        )
