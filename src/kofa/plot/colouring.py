"""Colours of samples: by a covariate, a column of a view, or a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kofa.checks import hint, is_whole, shown
from kofa.data.tables import import_pandas
from kofa.errors import DataError
from kofa.inspection.covariates import Covariate, as_covariate, read_covariates
from kofa.inspection.matching import match
from kofa.linalg import Array, BoolArray
from kofa.plot import style
from kofa.plot.parts import colour_bar, legend
from kofa.plot.source import view_of

_MOST = 10  # classes that are told apart
_NAMELESS = ""  # what values without a name are called in a figure


def read_colour(colour: Any, factors: Any, data: Any) -> Covariate | None:
    """What samples are coloured by, in the order of the rows of the factors.

    `colour` is one value for each sample, or the name of a view of one column, or a pair of a view
    and a column, of `data`. Where both have names, samples are matched by them; those without a
    value have NaN.
    """
    if colour is None:
        return None
    table, index = read_covariates(_column(colour, data))
    if table.shape[1] != 1:
        what = f"expected colour to be one value for each sample but got {table.shape[1]} columns"
        raise DataError(what, option="colour", cure="choose one of them")
    # Samples known by position have their positions as names, of which others may be a part.
    by_position = factors.index.equals(import_pandas().RangeIndex(len(factors)))
    mine = None if by_position and len(table) == len(factors) else factors.index
    rows, theirs = match(("factors", mine, len(factors)), ("colour", index, len(table)))
    found = as_covariate(table.columns[0], table.iloc[theirs, 0])
    values = np.full(len(factors), np.nan)
    values[rows] = found.values
    return Covariate(found.name, found.kind, values, found.labels)


def _column(colour: Any, data: Any) -> Any:
    """The values that were passed, or found in the data."""
    if isinstance(colour, str):
        return _named(_in_data(colour, None, data), colour)
    if isinstance(colour, tuple) and len(colour) == 2 and isinstance(colour[0], str):
        return _in_data(*colour, data)
    colour = _named(colour, _NAMELESS)
    if hasattr(colour, "columns") or hasattr(colour, "name") or np.ndim(colour) != 1:
        return colour
    return {_NAMELESS: colour}


def _named(column: Any, name: str) -> Any:
    """A Series that has no name gets one."""
    nameless = hasattr(column, "name") and column.name is None
    return column.rename(name) if nameless else column


def _in_data(view: str, column: Any, data: Any) -> Any:
    if data is None:
        cure = "pass data too (--study or --view on the command line), or the values themselves"
        raise DataError(f"colour {view!r} is to be looked up in data", option="colour", cure=cure)
    table = view_of(data, view)
    named = hasattr(table, "columns") or hasattr(table, "name")
    if column is None:
        return table if named or np.ndim(table) > 1 else {view: table}
    if hasattr(table, "columns"):
        if column not in table.columns:
            raise DataError(f"there is no column {shown(column)}", view, cure=hint(column, table))
        return table[column]
    values = np.asarray(table)
    if not is_whole(column, 0) or values.ndim != 2 or column >= values.shape[1]:
        raise DataError(f"there is no column {shown(column)}", view)
    return {f"{view}, {column}": values[:, column]}


# ---------------------------------------------------------------- groups of samples


@dataclass(frozen=True)
class Group:
    """Samples that look the same."""

    rows: BoolArray
    label: str | None
    colour: str
    marker: str


def groups(covariate: Covariate) -> list[Group]:
    """The classes of a covariate; the rarest of many together, as are samples without one."""
    classes, others = frequent(covariate)
    found = [
        Group(covariate.values == code, style.clipped(covariate.labels[code], 18),
              style.colour(place), style.marker(place))
        for place, code in enumerate(classes)
    ]  # fmt: skip
    if others:
        rare = np.isin(covariate.values, others)
        found.append(Group(rare, f"{len(others)} others", style.FAINT, "o"))
    missing = np.isnan(covariate.values)
    if missing.any():
        found.append(Group(missing, "missing", style.FAINT, "."))
    return found


def frequent(covariate: Covariate, most: int = _MOST) -> tuple[list[int], list[int]]:
    """The classes to be told apart, in their order, and the others."""
    codes = covariate.values[~np.isnan(covariate.values)].astype(np.intp)
    counts = np.bincount(codes, minlength=len(covariate.labels))
    ranked = np.argsort(-counts, kind="stable")
    if len(ranked) <= most:
        return sorted(ranked.tolist()), []
    return sorted(ranked[: most - 1].tolist()), sorted(ranked[most - 1 :].tolist())


# ---------------------------------------------------------------- drawing


def scatter(ax: Any, where: tuple[Array, ...], covariate: Covariate | None) -> None:
    """Points in two or three dimensions, with what their colours mean beside them."""
    look = {
        "s": style.point_size(len(where[0])),
        "linewidths": 0,
        "rasterized": len(where[0]) > style.RASTER_FROM,
    }
    if len(where) == 3:
        look["depthshade"] = False
    if covariate is None:
        ax.scatter(*where, color=style.MAIN, **look)
    elif covariate.kind == "number":
        shown = by_number(ax, where, covariate, look)
        colour_bar(ax, shown, covariate.name, **({"pad": 0.12} if len(where) == 3 else {}))
    else:
        by_group(ax, where, covariate, look)
        legend(ax, str(covariate.name), markerscale=1.5)


def by_number(ax: Any, where: tuple[Array, ...], covariate: Covariate, look: Any) -> Any:
    known = ~np.isnan(covariate.values)
    ax.scatter(*(one[~known] for one in where), color=style.FAINT, **look)
    return ax.scatter(
        *(one[known] for one in where), c=covariate.values[known], cmap=style.VALUE, **look
    )


def by_group(ax: Any, where: tuple[Array, ...], covariate: Covariate, look: Any) -> None:
    for group in groups(covariate):
        if group.rows.any():
            below = group.colour == style.FAINT
            ax.scatter(
                *(one[group.rows] for one in where), color=group.colour, marker=group.marker,
                label=group.label, zorder=1 if below else 2, **look,
            )  # fmt: skip


def as_classes(covariate: Covariate) -> Covariate:
    """Numbers cut at their quartiles, where there are too many for classes."""
    if covariate.kind != "number":
        return covariate
    pd = import_pandas()
    distinct = np.unique(covariate.values[~np.isnan(covariate.values)])
    values = pd.Series(covariate.values)
    if len(distinct) > _MOST:
        values = pd.qcut(values, 4, duplicates="drop")
    labels = values.astype("category").cat
    codes = labels.codes.to_numpy().astype(float)
    names = tuple(_shown(label) for label in labels.categories)
    return Covariate(covariate.name, "category", np.where(codes < 0, np.nan, codes), names)


def _shown(label: Any) -> str:
    text = f"{label.left:.3g} to {label.right:.3g}" if hasattr(label, "left") else f"{label:g}"
    return text.replace("-", "−")
