"""Whether a table can be what its view says, and what a precomputed kernel has to be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kofa.data.reading import check_observed
from kofa.data.tables import Table
from kofa.errors import DataError, warn
from kofa.kernels.base import Kernel
from kofa.kernels.declared import check_features
from kofa.kernels.formulas import Precomputed
from kofa.kernels.mixture import kernel_name
from kofa.linalg import Array, BoolArray, IntArray, centre
from kofa.views import View

# Of a precomputed kernel: differences of its halves that may be rounding (in the largest entry),
# rows whose eigenvalues are looked at, and how much of these may be negative.
_ROUNDING, _LOOKED_AT, _NEGATIVE = 1e-5, 500, 0.1


def rows_seen(values: Array) -> BoolArray:
    """Which rows have at least one value."""
    return np.asarray(~np.isnan(values).all(axis=1))


def check_table(table: Table, view: View) -> None:
    """Raise unless the table is what the view says."""
    # A sample may be missing in a precomputed kernel: its row and its column.
    whole = isinstance(view.kernel, Precomputed)
    check_observed(table, each_column=not whole)
    if not whole:
        for part in table.blocks():
            view.likelihood.check(part)
    if view.kernel is not None:
        check_features(view.kernel, table.name, table.values.shape[1])


def check_missing(kernel: Kernel, table: Table, landmarks: IntArray | None) -> None:
    """Raise where rows have holes and the kernel cannot take them. Whole rows may be missing."""
    if kernel.takes_missing:
        return
    precomputed = isinstance(kernel, Precomputed)
    holes = np.zeros(1, dtype=bool)
    for part in table.blocks():
        values = part.dense[rows_seen(part.dense)]
        holes = holes | np.isnan(values[:, landmarks] if precomputed else values).any(axis=0)
    if holes.any():
        which = int(np.argmax(holes))
        where = f" (landmark {which})" if precomputed else ""
        raise DataError(
            f"the {kernel_name(kernel)} kernel cannot take missing values{where}",
            table.name,
            None if precomputed else table.column(which),
            cure="impute them first",
        )


def square(table: Table, kernel: Kernel | None) -> Table:
    """A precomputed kernel with its columns in the order of its rows, or an error."""
    if not isinstance(kernel, Precomputed):
        return table
    table = replace(table, values=table.dense)
    if table.values.shape[0] != table.values.shape[1]:
        what = f"expected a precomputed kernel of samples × samples but got {table.values.shape}"
        cure = "pass the kernel between all samples, or choose another kernel for a table"
        raise DataError(what, table.name, cure=cure)
    table = _in_order(table)
    _check_kernel(table)
    return table


def _in_order(table: Table) -> Table:
    if table.samples is None or table.columns is None:
        return table
    place = {column: j for j, column in enumerate(table.columns)}
    unknown = [sample for sample in table.samples if sample not in place]
    if len(unknown) == len(table.samples):
        return table  # columns with names of their own stand in the order of the rows
    if unknown:
        what = (
            f"expected the columns of a precomputed kernel to be its samples but {unknown[0]!r} "
            f"is not among them"
        )
        raise DataError(what, table.name, cure="name its columns as its rows")
    order = [place[sample] for sample in table.samples]
    return replace(table, values=table.dense[:, order], columns=tuple(table.samples))


def _check_kernel(table: Table) -> None:
    """Refuse what is not symmetric; warn of what is far from a kernel, such as distances."""
    K = table.dense
    # Row by row: another array of this size may be too many.
    apart = [float(np.fmax.reduce(np.abs(K[i] - K[:, i]), initial=0.0)) for i in range(len(K))]
    size = max((float(np.fmax.reduce(np.abs(row), initial=0.0)) for row in K), default=0.0)
    if max(apart, default=0.0) > _ROUNDING * size:
        i = int(np.argmax(apart))
        j = int(np.argmax(np.nan_to_num(np.abs(K[i] - K[:, i]))))
        a, b = (i, j) if table.samples is None else (table.samples[i], table.samples[j])
        what = (
            f"expected a symmetric precomputed kernel but it is {K[i, j]:.6g} between {a!r} and "
            f"{b!r}, and {K[j, i]:.6g} the other way round"
        )
        raise DataError(what, table.name, cure="pass the mean of both, (K + K.T) / 2")
    there = np.flatnonzero(rows_seen(K))
    some = there[:: max(1, -(-len(there) // _LOOKED_AT))]
    whole = some[np.isfinite(K[np.ix_(some, some)]).all(axis=0)]
    if not len(whole):
        return
    e = np.linalg.eigvalsh(centre(K[np.ix_(whole, whole)]))
    if -e[e < 0].sum() > _NEGATIVE * e[e > 0].sum():
        warn(
            f"View {table.name!r}: the precomputed kernel is far from positive semidefinite; a "
            f"matrix of distances D has to become similarities first, such as exp(-D / median)."
        )
