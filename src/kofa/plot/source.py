"""What is plotted: tables of a model, or tables that the user has already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kofa import omics
from kofa.checks import check_number, hint, is_among, is_whole, listed, shown
from kofa.data.tables import import_pandas
from kofa.errors import DataError
from kofa.inspection.matching import read_factors


def is_table(source: Any) -> bool:
    return hasattr(source, "columns")


def is_model(source: Any) -> bool:
    return hasattr(source, "fit") and hasattr(source, "transform")


def table_of(source: Any, method: str, fields: Sequence[str], *args: Any, **options: Any) -> Any:
    """The table that a method of a model gives, or the one that was passed instead of a model."""
    if is_table(source):
        return checked(source, fields, f"model.{method}")
    if not hasattr(source, method):
        raise DataError(f"expected a model, or the table from model.{method}", got=source)
    return getattr(source, method)(*args, **options)


def checked(table: Any, fields: Sequence[str], origin: str) -> Any:
    """The table, or an error if it is another one."""
    lacking = [field for field in fields if field not in getattr(table, "columns", ())]
    if lacking:
        what = f"expected a table as from {origin}, but there is no column {lacking[0]!r}"
        raise DataError(what)
    if not len(table):
        raise DataError(f"expected a table as from {origin} but got one without rows")
    return table


# ---------------------------------------------------------------- factors


def factors_of(source: Any, data: Any = None) -> Any:
    """Factors as a DataFrame (samples, factors): of data, or of the samples of the fit.

    `source` is a model, or the factors themselves.
    """
    if is_model(source):
        source = source.factors() if data is None else source.transform(data)
    table, names = read_factors("factors", source)
    return import_pandas().DataFrame(table.values, index=table.samples, columns=names)


def factor_name(names: Sequence[Any], factor: Any) -> Any:
    """The name of a factor, which may be given by its position; the first is 0."""
    names = list(names)
    if is_among(factor, names):
        return factor
    if is_whole(factor, 0) and factor < len(names):
        return names[int(factor)]
    cure = hint(factor, names) if isinstance(factor, str) else ""
    raise DataError(
        f"unknown factor {shown(factor)}", cure=cure or f"this model has {listed(names)}"
    )


def factor_list(names: Sequence[Any], factors: Any, most: int | None = None) -> list[Any]:
    """Names of the factors to show: those that are given, or the first ones."""
    if factors is None:
        return list(names)[:most]
    one = isinstance(factors, str) or np.ndim(factors) == 0
    return [factor_name(names, factor) for factor in ([factors] if one else factors)]


def in_order(values: Any) -> list[Any]:
    """What occurs in a column, each once, in the order of the rows."""
    return list(dict.fromkeys(values))


def grid(table: Any, rows: str, columns: str, values: str) -> Any:
    """A tidy table as rows × columns, both in the order in which they occur."""
    wide = table.pivot(index=rows, columns=columns, values=values)
    return wide.reindex(index=in_order(table[rows]), columns=in_order(table[columns]))


# ---------------------------------------------------------------- data


def view_of(data: Any, view: Any) -> Any:
    """The table of a view in the user's data."""
    tables = omics.tables(data, {view: None}, whole=False) if omics.is_omics(data) else data
    if not isinstance(tables, Mapping):
        raise DataError("expected data as a dict of name → table", got=data)
    if not is_among(view, tables):
        cure = hint(view, tables, "there are")
        raise DataError(f"data have no view {shown(view)}", cure=cure)
    return tables[view]


def check_n(n: Any) -> int:
    """How many to show at most."""
    check_number("n", n, whole=True, least=1)
    return int(n)
