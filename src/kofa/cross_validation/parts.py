"""Tables of some of the samples, as the user passed them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofa.data.reading import check_given, check_observed, read_data
from kofa.data.samples import align
from kofa.data.stored import Named, Placed, Stored, is_sparse
from kofa.data.tables import Samples, Table, import_pandas
from kofa.errors import DataError
from kofa.kernels.declared import as_kernels
from kofa.kernels.formulas import Precomputed
from kofa.linalg import Array, IntArray
from kofa.views import View


@dataclass(frozen=True, eq=False)
class ViewsData:
    """The declared views of one model, their tables, and which sample each row is of."""

    views: Mapping[str, View]
    data: Mapping[str, Any]  # as the user passed them
    tables: Mapping[str, Table]  # the same, read
    samples: Samples

    def rows(self, name: str, samples: IntArray) -> IntArray:
        """The rows of a table that are of some of the samples, in the order of the table."""
        return np.flatnonzero(np.isin(self.samples.position[name], samples))

    def training(self, samples: IntArray) -> dict[str, Any]:
        """The tables of these samples, for a fit."""
        return {name: self._part(name, samples, samples) for name in self.views}

    def new(self, names: Iterable[str], samples: IntArray, fitted: IntArray) -> dict[str, Any]:
        """Some tables, with a row for each of these samples; of kernels, against those `fitted`.

        Samples that a table lacks get an empty row, as an array would have for them. A label that
        none of those `fitted` has is missing: a fit without it can say nothing about it.
        """
        tables = {name: self._part(name, samples, fitted) for name in names}
        for name in tables:
            if len(self.unseen_classes(name, samples, fitted)):
                tables[name] = self._seen_labels(name, samples, fitted)
        return {name: self._completed(name, table, samples) for name, table in tables.items()}

    def values(self, name: str, samples: IntArray) -> Array:
        """The values of a view (n, D) for these samples, of labels (n, C) zeros and ones."""
        table = self.tables[name]
        values = self.samples.spread(table)[samples]
        if table.classes is None:
            return values
        ones = (values == np.arange(len(table.classes))).astype(float)
        return np.where(np.isnan(values), np.nan, ones)

    def columns(self, name: str) -> list[Hashable]:
        """The names or positions of the columns of a view, of labels the classes."""
        table = self.tables[name]
        if table.classes is not None:
            return list(table.classes.tolist())
        return [table.column(j) for j in range(table.values.shape[1])]

    def unseen_classes(self, name: str, samples: IntArray, fitted: IntArray) -> IntArray:
        """Positions of the classes of a view that some of the samples have, but none `fitted`."""
        if self.tables[name].classes is None:
            return np.empty(0, dtype=np.intp)
        new, seen = (np.nansum(self.values(name, part), axis=0) for part in (samples, fitted))
        return np.flatnonzero((new > 0) & (seen == 0))

    def _seen_labels(self, name: str, samples: IntArray, fitted: IntArray) -> Any:
        """The labels of these samples as a list, or a Series by sample, None where unseen."""
        table, rows = self.tables[name], self.rows(name, samples)
        known = dict(enumerate(self.columns(name)))
        for unseen in self.unseen_classes(name, samples, fitted):
            del known[int(unseen)]
        labels = [known.get(code) for code in table.dense[rows, 0].tolist()]  # NaN is no key
        if table.samples is None:
            return labels
        return import_pandas().Series(labels, table.samples[rows], dtype=object)

    def check_training(self, samples: IntArray) -> None:
        """Raise unless each view and each column has a value for some of these samples."""
        for name, table in self.tables.items():
            part = Table(name, table.values[self.rows(name, samples)], columns=table.columns)
            check_observed(part, each_column=not self._is_square(name))

    def _part(self, name: str, samples: IntArray, fitted: IntArray) -> Any:
        part = take_rows(self.data[name], self.rows(name, samples))
        return self._among(name, part, fitted) if self._is_square(name) else part

    def _is_square(self, name: str) -> bool:
        """Whether a table is a kernel, so that its columns are samples too."""
        kernel = self.views[name].kernel
        kernels = {} if kernel is None else as_kernels(kernel, name)
        return any(isinstance(one, Precomputed) for one in kernels.values())

    def _among(self, name: str, part: Any, fitted: IntArray) -> Any:
        """The columns of a kernel that are of some samples."""
        rows, index = self.rows(name, fitted), self.tables[name].samples
        if index is not None and index.isin(part.columns).all():
            return part[index[rows]]
        return part.iloc[:, rows] if hasattr(part, "iloc") else np.asarray(part)[:, rows]

    def _completed(self, name: str, table: Any, samples: IntArray) -> Any:
        if self.tables[name].samples is None:
            return table
        names = self.samples.names[samples]
        return table if table.index.equals(names) else table.reindex(names)


def take_rows(table: Any, rows: IntArray) -> Any:
    """Rows of whatever a user may pass as a table, in its own type."""
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    if is_sparse(table):
        return table.tocsr()[rows]
    if isinstance(table, Named):
        return table.take(rows)
    if isinstance(table, Stored):
        return Placed(table, rows)
    if isinstance(table, list | tuple):  # an array could turn labels into others
        return [table[row] for row in rows]
    own = isinstance(table, np.ma.MaskedArray) or hasattr(table, "get_columns")  # or of polars
    return (table if own or hasattr(table, "to_list") else np.asarray(table))[rows]


def read(views: Mapping[str, View], data: Any) -> dict[str, Table]:
    """The tables of views, which all have to be there."""
    check_given(data, views)
    labels = [name for name, view in views.items() if view.likelihood.reads_labels]
    tables = read_data(data, views, labels)
    for name, view in views.items():
        if name not in tables:
            raise DataError("it is declared but not in the data", name)
        if view.kernel is None:
            for part in tables[name].blocks():
                view.likelihood.check(part)
    return tables


def aligned(declared: Mapping[str, Mapping[str, View]], data: Any) -> dict[str, ViewsData]:
    """For each of several models the tables of its own views; samples are those of all tables."""
    own = {model: _own(views, data, declared) for model, views in declared.items()}
    tables = {model: read(views, own[model]) for model, views in declared.items()}
    samples = align({name: table for each in tables.values() for name, table in each.items()})
    if samples.n < 2:
        raise DataError("expected at least 2 samples", got=samples.n)
    return {
        model: ViewsData(views, own[model], tables[model], samples)
        for model, views in declared.items()
    }


def _own(views: Mapping[str, View], data: Any, declared: Mapping[str, Mapping[str, View]]) -> Any:
    """The data of one model: without the views that only others have declared."""
    if not isinstance(data, Mapping):
        return data
    others = {name for each in declared.values() for name in each} - set(views)
    return {name: table for name, table in data.items() if name not in others}


def by_sample(values: Any, samples: Samples, what: str) -> NDArray[Any]:
    """One value for each sample, from a Series by name or from anything by position."""
    if hasattr(values, "reindex") and samples.names is not None:
        lacking = samples.names[~samples.names.isin(values.index)]
        if len(lacking):
            raise DataError(f"expected {what} for every sample but {lacking[0]!r} has none")
        return np.asarray(values.reindex(samples.names))
    try:
        n = len(values)
    except TypeError:
        raise DataError(f"expected {what} for every sample", got=values) from None
    if n != samples.n:
        what = f"expected {what} for each of the {samples.n} samples but got {n}"
        raise DataError(what, cure="pass a Series with the names of the samples as its index")
    return np.asarray(values)
