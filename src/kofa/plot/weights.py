"""Plots of weights: which features a factor changes, and how."""

from __future__ import annotations

from typing import Any

import numpy as np

from kofa.checks import check_word, listed
from kofa.errors import DataError
from kofa.linalg import Array
from kofa.plot import style
from kofa.plot.parts import (
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
    grid,
    in_order,
    is_model,
    table_of,
)

_FIELDS = ("feature", "factor", "weight")
_FEW = 12  # features whose names stand beside them
_SCALES = ("weight", "standardised")


def tidy_weights(model: Any, view: Any, scale: str) -> Any:
    """Weights of a view, tidy, with a column ``value`` of what is shown."""
    check_word("scale", scale, _SCALES)
    if view is None and is_model(model):
        cure = f"there are {listed(model.views_)}"
        raise DataError("expected the name of a view", option="view", cure=cure)
    table = table_of(model, "weights", _FIELDS, view, tidy=True)
    if scale not in table:
        raise DataError(f"expected a table of weights, but there is no column {scale!r}")
    return table.assign(value=table[scale].astype(float))


def of_factor(table: Any, factor: Any) -> tuple[Any, Any]:
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
        What is drawn.
    view : str
        Of a kernel that is not linear, the weights are those of similarities with landmarks.
    factor : name or position (the first is 0)
        The factor.
    n : int
        How many features to name, at most: as many as there is room for.
    scale : "standardised" or "weight"
        In standard deviations of each feature, or in its own units.
    ax : Axes or None
        Where to draw; None is a new figure.

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
    rows, name = of_factor(tidy_weights(model, view, scale), factor)
    order = np.argsort(rows["value"].to_numpy(), kind="stable")
    values = rows["value"].to_numpy()[order]
    named = np.zeros(len(values), dtype=bool)
    named[np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")[: check_n(n)]] = True
    ax = style.axes(ax, 2.6)
    rank = np.arange(1.0, len(values) + 1.0)
    size = style.point_size(len(values))
    points(ax, rank[~named], values[~named], color=style.FAINT, s=size)
    points(ax, rank[named], values[named], color=style.MAIN, s=max(size, 9.0))
    zero_lines(ax, x=False)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel=f"rank of {len(values):,} features", ylabel=_label(scale))
    ax.set_title(style.clipped(name, 28), loc="left")
    features = rows["feature"].to_numpy(object)[order]
    ax.set_xlim(1 - 0.04 * len(rank), len(rank) * 1.04)
    if len(rank) > _FEW:
        _name_ends(ax, rank, values, features, named)
    else:
        by_size = np.argsort(-np.abs(values), kind="stable")
        name_points(ax, rank, values, list(features), by_size[: named.sum()])
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
        bottom, top = (zero + gap, 1.0 - gap / 2) if large else (gap / 2, zero - gap)
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
        What is drawn.
    view : str
        The view.
    factor : name or position (the first is 0)
        The factor.
    n : int
        How many features.
    scale : "standardised" or "weight"
        In standard deviations of each feature, or in its own units.
    ax : Axes or None
        Where to draw; None is a new figure.

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

    rows, name = of_factor(tidy_weights(model, view, scale), factor)
    order = np.argsort(-rows["value"].abs().to_numpy(), kind="stable")[: check_n(n)]
    rows = rows.iloc[order]
    ax = style.axes(ax, style.height_for(len(rows), 0.15, 0.6))
    ax.barh(np.arange(len(rows)), rows["value"], 0.75, color=_bar_colours(rows))
    _draw_deviations(ax, rows, scale)
    zero_lines(ax, y=False)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    name_axis(ax.yaxis, rows["feature"].tolist())
    ax.set_xlabel(_label(scale))
    ax.set_title(style.clipped(name, 28), loc="right")  # names of features are to the left
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
        What is drawn.
    view : str
        The view.
    factors : list of names or positions (the first is 0), or None
        None is all.
    n : int
        How many features.
    scale : "standardised" or "weight"
        In standard deviations of each feature, or in its own units.
    ax : Axes or None
        Where to draw; None is a new figure.

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
    table = tidy_weights(model, view, scale)
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
        What is drawn.
    view : str
        The view.
    x, y : name or position (the first is 0)
        The two factors.
    n : int
        How many features to name, at most: as many as there is room for.
    scale : "standardised" or "weight"
        In standard deviations of each feature, or in its own units.
    ax : Axes or None
        Where to draw; None is a new figure.

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
    wide = grid(tidy_weights(model, view, scale), "feature", "factor", "value")
    names = [factor_name(wide.columns, one) for one in (x, y)]
    across, up = (wide[name].to_numpy() for name in names)
    order = np.argsort(-np.hypot(across, up), kind="stable")[: check_n(n)]
    ax = style.axes(ax, 2.8)
    points(ax, across, up)
    zero_lines(ax)
    ax.margins(0.08)
    ax.autoscale_view()
    ax.set_xlabel(f"{_label(scale)}, {style.clipped(names[0], 20)}")
    ax.set_ylabel(f"{_label(scale)}, {style.clipped(names[1], 20)}")
    name_points(ax, across, up, list(wide.index), order)
    return ax
