"""Plots of weights: which features a factor changes, and how."""

from __future__ import annotations

from typing import Any

import numpy as np

from kofa.checks import check_word, flag
from kofa.errors import DataError
from kofa.inspection.matching import read_numbers
from kofa.inspection.weights import is_linear
from kofa.linalg import Array
from kofa.plot import style
from kofa.plot.parts import (
    colour_bar,
    heat_axes,
    heatmap,
    name_points,
    points,
    size_in_points,
    spread_out,
    zero_lines,
)
from kofa.plot.source import (
    check_n,
    factor_list,
    factor_name,
    factors_of,
    grid,
    in_order,
    table_of,
    view_of,
)

_FIELDS = ("feature", "factor", "weight")
_FEW = 12  # features whose names stand beside them
_SCALES = ("weight", "standardised")


def _table(model: Any, view: Any, scale: str) -> Any:
    """Weights of a view, tidy, with a column ``value`` of what is shown."""
    check_word("scale", scale, _SCALES)
    table = table_of(model, "weights", _FIELDS, view, tidy=True)
    if scale not in table:
        raise DataError(f"expected a table of weights, but there is no column {scale!r}")
    return table.assign(value=table[scale].astype(float))


def _of_factor(table: Any, factor: Any) -> tuple[Any, Any]:
    """The rows of one factor, and its name."""
    name = factor_name(in_order(table["factor"]), factor)
    return table[table["factor"] == name].reset_index(drop=True), name


def _label(scale: str) -> str:
    return "weight" if scale == "weight" else "standardised weight"


# ---------------------------------------------------------------- of one factor


@style.drawing
def weights(
    model: Any,
    view: Any = None,
    factor: Any = 0,
    *,
    n: int = 10,
    scale: str = "standardised",
    ax: Any = None,
) -> Any:
    """All weights of a view for one factor, in their order; the largest have names.

    Parameters
    ----------
    model : FactorModel, or the table from ``model.weights(view, tidy=True)``
    view : str
        Of a kernel that is not linear, the weights are those of similarities with landmarks.
    factor : name or position (the first is 0)
    n : int
        How many features to name, at most: as many as there is room for.
    scale : "standardised" or "weight"
        In standard deviations of each feature, or in its own units.
    ax : Axes or None

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np, kofa
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(100, 1)) * [3.0, -2.0, 1.0, 0.0] + rng.normal(size=(100, 4))
    >>> model = kofa.FactorModel().fit({"x": x})
    >>> ax = kofa.plot.weights(model, "x", n=2)
    >>> sorted(text.get_text() for text in ax.texts)
    ['0', '1']
    """
    rows, name = _of_factor(_table(model, view, scale), factor)
    order = np.argsort(rows["value"].to_numpy(), kind="stable")
    values = rows["value"].to_numpy()[order]
    named = np.zeros(len(values), dtype=bool)
    named[np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")[: check_n(n)]] = True
    ax = style.axes(ax, 2.6)
    rank = np.arange(1.0, len(values) + 1.0)
    points(ax, rank[~named], values[~named], color=style.FAINT, s=style.point_size(len(values)))
    points(ax, rank[named], values[named], color=style.MAIN, s=9.0)
    zero_lines(ax, x=False)
    features = rows["feature"].to_numpy(object)[order]
    ax.set_xlim(1 - 0.04 * len(rank), len(rank) * 1.04)
    if len(rank) > _FEW:
        _name_ends(ax, rank, values, features, named)
    else:
        by_size = np.argsort(-np.abs(values), kind="stable")
        name_points(ax, rank, values, list(features), by_size[: named.sum()])
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel=f"rank of {len(values):,} features", ylabel=_label(scale))
    ax.set_title(style.clipped(name, 40), loc="left")
    return ax


def _name_ends(ax: Any, rank: Array, values: Array, features: Any, named: Any) -> None:
    """Names of the largest in a column to the left of them, of the smallest to the right.

    Above the sorted points, and below them, nothing else is drawn.
    """
    gap = 1.3 * style.SMALL / size_in_points(ax)[1]
    low, high = ax.get_ylim()
    zero = min(max(-low / (high - low), 0.0), 1.0)
    for large, at, align in ((True, 0.52, "right"), (False, 0.48, "left")):
        rows = np.flatnonzero(named & ((values > 0) == large))
        bottom, top = (zero + gap, 0.98) if large else (0.02, zero - gap)
        most = max(int((top - bottom) / gap), 0)  # those furthest from zero, if not all have room
        rows = rows[max(len(rows) - most, 0) :] if large else rows[:most]
        places = spread_out((values[rows] - low) / (high - low), gap, bottom, top)
        for row, place in zip(rows, places, strict=True):
            ax.annotate(
                style.clipped(features[row], 20), (rank[row], values[row]), (at, place),
                textcoords="axes fraction", ha=align, va="center", fontsize=style.SMALL,
                arrowprops={"arrowstyle": "-", "color": style.FAINT, "linewidth": 0.4, "shrinkA": 1,
                            "shrinkB": 1},
            )  # fmt: skip


@style.drawing
def top_weights(
    model: Any,
    view: Any = None,
    factor: Any = 0,
    *,
    n: int = 10,
    scale: str = "standardised",
    ax: Any = None,
) -> Any:
    """The features of a view with the largest weights for a factor, as bars, the largest on top.

    Lines are the weight ± two standard deviations, where these are known. Bars are pale where the
    sign is not certain: a local false sign rate above 5 %.

    Parameters
    ----------
    model : FactorModel, or the table from ``model.weights(view, tidy=True)``
    view : str
    factor : name or position (the first is 0)
    n : int
    scale : "standardised" or "weight"
    ax : Axes or None

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np, kofa
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(100, 1)) * [3.0, -2.0, 1.0, 0.0] + rng.normal(size=(100, 4))
    >>> model = kofa.FactorModel().fit({"x": x})
    >>> ax = kofa.plot.top_weights(model, "x", n=3, scale="weight")
    >>> [round(bar.get_width()) for bar in ax.patches]
    [3, -2, 1]
    """
    from kofa.plot.ticks import name_axis

    rows, name = _of_factor(_table(model, view, scale), factor)
    order = np.argsort(-rows["value"].abs().to_numpy(), kind="stable")[: check_n(n)]
    rows = rows.iloc[order]
    ax = style.axes(ax, style.height_for(len(rows), 0.15, 0.6))
    ax.barh(np.arange(len(rows)), rows["value"], 0.75, color=_bar_colours(rows))
    _draw_deviations(ax, rows, scale)
    zero_lines(ax, y=False)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    name_axis(ax.yaxis, rows["feature"].tolist())
    ax.set_xlabel(_label(scale))
    ax.set_title(style.clipped(name, 40), loc="left")
    return ax


def _bar_colours(rows: Any) -> list[tuple[str, float]]:
    """By sign, and pale where it is not certain."""
    sure = rows["lfsr"].to_numpy(float) <= 0.05 if "lfsr" in rows else np.ones(len(rows), bool)
    signs = rows["value"].to_numpy() >= 0
    return [
        (style.MAIN if sign else style.SECOND, 1.0 if certain else 0.35)
        for sign, certain in zip(signs, sure, strict=True)
    ]


def _draw_deviations(ax: Any, rows: Any, scale: str) -> None:
    if "std" not in rows:
        return
    std = rows["std"].to_numpy(float)
    if scale == "standardised":  # in the same proportion as the weights
        weight = rows["weight"].to_numpy(float)
        std = std * np.divide(rows["value"], weight, out=np.zeros(len(rows)), where=weight != 0)
    ax.errorbar(
        rows["value"], np.arange(len(rows)), xerr=2.0 * np.abs(std), fmt="none", ecolor="black",
        elinewidth=0.6,
    )  # fmt: skip


# ---------------------------------------------------------------- of several factors


@style.drawing
def weights_heatmap(
    model: Any,
    view: Any = None,
    factors: Any = None,
    *,
    n: int = 20,
    scale: str = "standardised",
    ax: Any = None,
) -> Any:
    """Weights of the features that have the largest ones for any factor: a heat map.

    Features stand with the factor for which their weight is the largest.

    Parameters
    ----------
    model : FactorModel, or the table from ``model.weights(view, tidy=True)``
    view : str
    factors : list of names or positions (the first is 0), or None
        None is all.
    n : int
        How many features.
    scale : "standardised" or "weight"
    ax : Axes or None

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd, kofa
    >>> table = pd.DataFrame({"feature": ["a", "b"] * 2, "factor": ["f", "f", "g", "g"]})
    >>> ax = kofa.plot.weights_heatmap(table.assign(weight=[1.0, 0.0, 0.5, -2.0]), scale="weight")
    >>> ax.images[0].get_array().tolist()
    [[1.0, 0.5], [0.0, -2.0]]
    """
    table = _table(model, view, scale)
    wide = grid(table, "feature", "factor", "value")
    wide = wide[factor_list(wide.columns, factors)]
    size = np.abs(np.nan_to_num(wide.to_numpy()))
    largest = np.argsort(-size.max(axis=1), kind="stable")[: check_n(n)]
    wide, size = wide.iloc[largest], size[largest]
    wide = wide.iloc[np.argsort(size.argmax(axis=1), kind="stable")]
    ax = heat_axes(ax, wide.index, wide.columns)
    heatmap(ax, wide.to_numpy(), wide.index, wide.columns, label=_label(scale), signed=True)
    return ax


@style.drawing
def weights_scatter(
    model: Any,
    view: Any = None,
    x: Any = 0,
    y: Any = 1,
    *,
    n: int = 10,
    scale: str = "standardised",
    ax: Any = None,
) -> Any:
    """The weights of a view for two factors, a point for each feature; the largest have names.

    Parameters
    ----------
    model : FactorModel, or the table from ``model.weights(view, tidy=True)``
    view : str
    x, y : name or position (the first is 0)
    n : int
        How many features to name, at most: as many as there is room for.
    scale : "standardised" or "weight"
    ax : Axes or None

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd, kofa
    >>> table = pd.DataFrame({"feature": ["a", "b"] * 2, "factor": ["f", "f", "g", "g"]})
    >>> table["weight"] = [1.0, 0.0, 0.5, -2.0]
    >>> ax = kofa.plot.weights_scatter(table, n=1, scale="weight")
    >>> [text.get_text() for text in ax.texts]
    ['b']
    """
    wide = grid(_table(model, view, scale), "feature", "factor", "value")
    names = [factor_name(wide.columns, one) for one in (x, y)]
    across, up = (wide[name].to_numpy() for name in names)
    order = np.argsort(-np.hypot(across, up), kind="stable")[: check_n(n)]
    ax = style.axes(ax, 2.8)
    points(ax, across, up)
    zero_lines(ax)
    ax.margins(0.08)
    ax.autoscale_view()
    name_points(ax, across, up, list(wide.index), order)
    ax.set_xlabel(f"{_label(scale)}, {style.clipped(names[0], 20)}")
    ax.set_ylabel(f"{_label(scale)}, {style.clipped(names[1], 20)}")
    return ax


# ---------------------------------------------------------------- and the data


@style.drawing
def data_heatmap(
    model: Any,
    data: Any,
    view: Any,
    factor: Any = 0,
    *,
    n: int = 20,
    standardise: bool = True,
    ax: Any = None,
) -> Any:
    """The data of the features with the largest weights for a factor, samples in its order.

    If the factor is real, the picture goes from one colour to the other. Features are ordered by
    their weights; values that are missing are grey.

    Parameters
    ----------
    model : FactorModel
    data : dict of name → table, MuData or AnnData
    view : str
    factor : name or position (the first is 0)
    n : int
        How many features.
    standardise : bool
        Show each feature in its standard deviations from its mean; colours end at three.
    ax : Axes or None

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np, kofa
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(100, 1)) * [3.0, -2.0, 1.0, 0.0] + rng.normal(size=(100, 4))
    >>> model = kofa.FactorModel().fit({"x": x})
    >>> ax = kofa.plot.data_heatmap(model, {"x": x}, "x", n=2)
    >>> ax.images[0].get_array().shape
    (2, 100)
    """
    _check_columns(model, view)
    rows, name = _of_factor(_table(model, view, "standardised"), factor)
    order = np.argsort(-rows["value"].abs().to_numpy(), kind="stable")[: check_n(n)]
    rows = rows.iloc[order].sort_values("value", ascending=False, kind="stable")
    z, values = _ordered(model, data, view, name, rows["feature"].tolist())
    signed = flag("standardise", standardise)
    ax = style.axes(ax, style.height_for(len(rows), 0.14, 0.7))
    shown = _standardised(values) if signed else values
    image = heatmap(ax, shown.T, rows["feature"].tolist(), (), signed=signed,
                    limit=3.0 if signed else None)  # fmt: skip
    if not signed:
        image.set_clim(np.nanmin(shown), np.nanmax(shown))
    colour_bar(ax, image, "standard deviations" if signed else "value",
               extend="both" if signed else "neither")  # fmt: skip
    ax.set_xlabel(f"{len(z):,} samples, by {style.clipped(name)}")
    return ax


def _check_columns(model: Any, view: Any) -> None:
    """Raise unless the weights of a view are those of its columns."""
    one = model._fitted.view(view)
    if one.classes is not None:
        what = "labels have no columns to show"
        raise DataError(what, view, use=["plot.factor_violins"])
    if one.likelihood is None and not is_linear(one):
        what = "its weights are those of similarities, not of columns"
        raise DataError(what, view, use=["plot.kernel"])


def _ordered(model: Any, data: Any, view: Any, factor: Any, features: list[Any]) -> Any:
    """A factor, and the columns of the view, of the samples that have both, in its order."""
    table = read_numbers(str(view), view_of(data, view))
    found = factors_of(model, data)
    columns = list(range(table.values.shape[1]) if table.columns is None else table.columns)
    lacking = [feature for feature in features if feature not in columns]
    if lacking:
        raise DataError(f"there is no column {lacking[0]!r}", view)
    z = found[factor]
    if table.samples is not None:
        z = z.reindex(table.samples)
    order = np.argsort(z.to_numpy(), kind="stable")
    which = [columns.index(feature) for feature in features]
    return z.to_numpy()[order], table.values[order][:, which]


def _standardised(values: Array) -> Array:
    """In standard deviations from the mean, column by column; a constant column is zero."""
    known = np.ma.masked_invalid(values)
    spread = known.std(axis=0).filled(1.0)
    centred = (known - known.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.asarray(centred.filled(np.nan))
