"""Which sample is measured in which view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from kofa.data.reading import check_given, read_data, read_table
from kofa.data.samples import align
from kofa.data.stored import by_blocks, n_measured
from kofa.data.tables import Table, import_pandas
from kofa.errors import DataError
from kofa.inspection.matching import frame
from kofa.linalg import IntArray


class Overview(NamedTuple):
    """What `data_overview` gives: two DataFrames.

    Parameters
    ----------
    views : DataFrame
        A row for each view: ``view``, ``n_samples``, ``n_features`` and ``missing``.
    samples : DataFrame (n, views)
        How many features of each view each sample has.

    Examples
    --------
    >>> import kofa
    >>> kofa.inspection.data_overview({"x": [[1.0, 2.0], [3.0, 4.0]]}).views
      view  n_samples  n_features  missing
    0    x          2           2      0.0
    """

    views: Any
    samples: Any

    def _repr_html_(self) -> str:
        """What notebooks show: the tables one below the other, as pandas shows them."""
        return str(self.views.to_html() + self.samples.to_html(max_rows=10))


def data_overview(data: Any) -> Overview:
    """Count what is measured: by view, and by sample and view.

    Tables are read and their samples matched as `FactorModel.fit` does.

    Parameters
    ----------
    data : dict of view name → table
        Arrays, DataFrames and Series of pandas and polars.

    Returns
    -------
    views : DataFrame with one row for each view
        ``view``; ``n_samples``, of which something is measured; ``n_features``; ``missing``, the
        share of missing values in those samples.
    samples : DataFrame (samples of all tables, views)
        How many features of the view the sample has.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rna = pd.DataFrame([[1.0, 2.0], [3.0, np.nan]], index=["ann", "bob"])
    >>> stage = pd.Series(["late", "early"], index=["bob", "cleo"])
    >>> views, samples = data_overview({"rna": rna, "stage": stage})
    >>> views
        view  n_samples  n_features  missing
    0    rna          2           2     0.25
    1  stage          2           1     0.00
    >>> samples
    view    rna  stage
    sample
    ann       2      0
    bob       1      1
    cleo      0      1
    """
    check_given(data, ())
    tables = _read(data)
    samples = align(tables)
    counts = {name: by_blocks(n_measured, samples.spread(table)) for name, table in tables.items()}
    widths = {name: table.values.shape[1] for name, table in tables.items()}
    return overview(counts, widths, samples.names)


def overview(counts: Mapping[str, IntArray], widths: Mapping[str, int], names: Any) -> Overview:
    """The tables of how many of its features each sample has of each view."""
    missing = [_missing(measured, widths[name]) for name, measured in counts.items()]
    return Overview(
        frame(
            {
                "view": list(counts),
                "n_samples": np.array([(n > 0).sum() for n in counts.values()]),
                "n_features": np.array([widths[name] for name in counts]),
                "missing": np.array(missing),
            }
        ),
        import_pandas()
        .DataFrame(dict(counts), index=names)
        .rename_axis(index="sample", columns="view"),
    )


def _missing(measured: IntArray, width: int) -> float:
    """The share of missing values in samples of which something is measured."""
    return float(1.0 - measured[measured > 0].mean() / width) if measured.any() else 1.0


def _read(data: Any) -> dict[str, Table]:
    """Each view as numbers, or as labels where that is what it holds."""
    if not isinstance(data, Mapping) or not data:
        return read_data(data, {})  # which says what is wrong
    return {name: _numbers_or_labels(name, table) for name, table in data.items()}


def _numbers_or_labels(name: str, data: Any) -> Table:
    try:
        return read_table(name, data)
    except DataError as error:
        try:
            table = read_table(name, data, labels=True)
        except DataError:
            raise error from None
        if table.classes.dtype.kind == "f":  # numbers such as infinity
            raise
        return table
