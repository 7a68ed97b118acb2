"""Plots of the factors of samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from kofa import inspection
from kofa.checks import check_number, require
from kofa.errors import DataError, DeclarationError
from kofa.inspection.covariates import Covariate
from kofa.linalg import Array
from kofa.plot import style
from kofa.plot.colouring import as_classes, by_group, by_number, groups, read_colour, scatter
from kofa.plot.parts import colour_bar, heat_axes, heatmap, legend, zero_lines
from kofa.plot.source import check_n, factor_list, factor_name, factors_of, grid, is_model

_MOST_VIOLINS = 24
_SHORT = (1, 2, 5, 10)  # steps between ticks of few letters


def _read(model: Any, data: Any, colour: Any) -> tuple[Any, Covariate | None]:
    """Factors as a DataFrame, and what they are coloured by."""
    found = factors_of(model, data)
    return found, read_colour(colour, found, data)


# ---------------------------------------------------------------- two or three factors


@style.drawing
def factors(
    model: Any,
    data: Any = None,
    x: Any = 0,
    y: Any = 1,
    z: Any = None,
    *,
    colour: Any = None,
    ellipses: bool | float = False,
    ax: Any = None,
) -> Any:
    """Samples in the plane, or the space, of two or three factors.

    A model with one factor has its samples in the order of this factor along x.

    Parameters
    ----------
    model : FactorModel, or a DataFrame or array of factors
        What is drawn.
    data : dict of name → table, MuData or AnnData, or None
        The samples; None is those of the fit.
    x, y, z : name or position (the first is 0) of a factor
        With `z` the plot is three-dimensional.
    colour : Series, array or list of one value for each sample; name of a view; or (view, column)
        Any covariate or prediction; or a view of one column, or one column of a view, of `data`.
    ellipses : bool, or a number between 0 and 1
        Ellipses that hold the true factors of a sample with this probability; True is 0.5.
        Needs `data`.
    ax : Axes or None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np, kofa
    >>> z = np.random.default_rng(0).normal(size=(30, 2))
    >>> ax = kofa.plot.factors(z, colour=["a", "b", "b"] * 10)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('factor1', 'factor2')
    """
    level = _level(ellipses)
    table, covariate = _read(model, data, colour)
    if table.shape[1] == 1 and z is None:
        return _ranked(table, factor_name(table.columns, x), covariate, ax)
    names = [factor_name(table.columns, one) for one in (x, y, z) if one is not None]
    ax = _plane(ax, len(names))
    if level:
        _draw_ellipses(ax, model, data, [list(table.columns).index(n) for n in names], level)
    scatter(ax, tuple(table[name].to_numpy() for name in names), covariate)
    _label(ax, names)
    return ax


def _level(ellipses: Any) -> float:
    """The probability within an ellipse; 0 for none."""
    if isinstance(ellipses, bool | np.bool_):
        return 0.5 * bool(ellipses)
    check_number("ellipses", ellipses, (True, False), above=0.0)
    require(ellipses < 1, "ellipses", "True, False or a number between 0 and 1", ellipses)
    return float(ellipses)


def _plane(ax: Any, dimensions: int) -> Any:
    if dimensions == 3:
        if ax is not None and not hasattr(ax, "zaxis"):
            cure = "make it with projection='3d'"
            raise DeclarationError("ax has no third axis for z", option="ax", cure=cure)
        return style.axes(ax, 3.0, projection="3d")
    return style.axes(ax, 2.6)


def _label(ax: Any, names: list[Any]) -> None:
    for axis, name in zip("xyz", names, strict=False):
        getattr(ax, f"set_{axis}label")(style.clipped(name, 30 if len(names) == 2 else 14))
        ax.locator_params(axis=axis, nbins=5)
    if len(names) == 3:
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.set_tick_params(pad=-3, labelsize=style.SMALL)
            axis.labelpad = -7
        ax.set_box_aspect((1, 1, 0.9), zoom=0.95)
    else:
        zero_lines(ax)


def _ranked(table: Any, name: Any, covariate: Covariate | None, ax: Any) -> Any:
    """One factor, with the samples in its order."""
    ax = style.axes(ax)
    values = table[name].to_numpy()
    rank = np.empty(len(values))
    rank[np.argsort(values, kind="stable")] = np.arange(1, len(values) + 1)
    scatter(ax, (rank, values), covariate)
    ax.set_xlabel("sample, in the order of the factor")
    ax.set_ylabel(style.clipped(name, 30))
    zero_lines(ax, x=False)
    return ax


def _draw_ellipses(ax: Any, model: Any, data: Any, which: list[int], level: float) -> None:
    """Contours of N(mean, covariance) in the plane: those of x² = −2 log(1 − level)."""
    from matplotlib.collections import EllipseCollection

    if len(which) != 2:
        what = "ellipses are drawn in a plane"
        raise DeclarationError(what, option="ellipses", cure="leave out z")
    if data is None or not is_model(model):
        raise DataError("ellipses need a model and data", cure="pass data")
    mean, covariance = model.transform(data, return_cov=True)
    size, axis = np.linalg.eigh(covariance[:, which][:, :, which])
    radius = np.sqrt(-2.0 * np.log1p(-level) * np.maximum(size, 0.0))
    angle = np.degrees(np.arctan2(axis[:, 1, 1], axis[:, 0, 1]))
    ax.add_collection(
        EllipseCollection(
            2 * radius[:, 1], 2 * radius[:, 0], angle, units="xy",
            offsets=np.asarray(mean)[:, which], offset_transform=ax.transData,
            facecolors="none", edgecolors=style.GUIDE, linewidths=0.4,
        )
    )  # fmt: skip


# ---------------------------------------------------------------- all pairs


@style.drawing
def factor_pairs(
    model: Any, data: Any = None, factors: Any = None, *, colour: Any = None, n: int = 5
) -> Any:
    """Each factor against each: a grid of scatters, with histograms on the diagonal.

    Parameters
    ----------
    model : FactorModel, or a DataFrame or array of factors
        What is drawn.
    data : as for `factors`
        The samples; None is those of the fit.
    factors : list of names or positions (the first is 0), or None
        None is the first `n`.
    colour : as for `factors`
        One value for each sample, or the name of a view.
    n : int
        How many factors, where none are named.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import numpy as np, kofa
    >>> z = np.random.default_rng(0).normal(size=(30, 3))
    >>> figure = kofa.plot.factor_pairs(z)
    >>> len([ax for ax in figure.axes if ax.collections])
    3
    """
    table, covariate = _read(model, data, colour)
    names = factor_list(table.columns, factors, check_n(n))
    size = min(max(0.7 * len(names) + 0.5, 2.4), style.PAGE)
    figure = style.figure(size, max(size, style.COLUMN))
    panels = figure.subplots(len(names), len(names), sharex="col", squeeze=False)
    shown = None
    for i, row in enumerate(names):
        for j, column in enumerate(names[:i]):
            shown = _draw_pair(panels[i, j], table, row, column, covariate)
        _draw_histogram(panels[i, i], table[row].to_numpy(), covariate)
        for other in panels[i, i + 1 :]:
            other.set_visible(False)
    _name_panels(panels, names, int(size / len(names) / 0.075))
    _explain(figure, panels, covariate, shown)
    return figure


def _name_panels(panels: Any, names: list[Any], longest: int) -> None:
    for i, name in enumerate(names):
        panels[-1, i].set_xlabel(style.clipped(name, longest))
        panels[i, 0].set_ylabel(style.clipped(name, longest) if i else "samples")


def _draw_pair(ax: Any, table: Any, row: Any, column: Any, covariate: Covariate | None) -> Any:
    where = table[column].to_numpy(), table[row].to_numpy()
    look = {
        "s": 0.5 * style.point_size(len(table)),
        "linewidths": 0,
        "rasterized": len(table) > style.RASTER_FROM,
    }
    ax.tick_params(labelleft=ax.get_subplotspec().is_first_col())
    ax.locator_params(nbins=3, steps=_SHORT)
    if covariate is None:
        ax.scatter(*where, color=style.MAIN, **look)
    elif covariate.kind == "number":
        return by_number(ax, where, covariate, look)
    else:
        by_group(ax, where, covariate, look)
    return None


def _draw_histogram(ax: Any, values: Array, covariate: Covariate | None) -> None:
    """Of all samples, or of each class."""
    values = values[np.isfinite(values)] if covariate is None else values
    bins = np.histogram_bin_edges(values, min(20, max(5, len(values) // 10)))
    if covariate is None or covariate.kind == "number":
        ax.hist(values, bins, color=style.FAINT)
    else:
        for place, group in enumerate(groups(covariate)):
            look = {"color": group.colour, "linestyle": style.dashes(place), "linewidth": 0.8}
            ax.hist(values[group.rows], bins, histtype="step", **look)
    ax.set_yticks([])
    ax.locator_params(axis="x", nbins=3, steps=_SHORT)


def _explain(figure: Any, panels: Any, covariate: Covariate | None, shown: Any) -> None:
    """What the colours mean: beside the grid, or in its empty half."""
    if covariate is None:
        return
    if covariate.kind == "number":
        if shown is not None:
            figure.set_figwidth(min(figure.get_figwidth() + 0.6, style.PAGE))
            colour_bar(panels.ravel().tolist(), shown, covariate.name, shrink=0.6)
        return
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="", color=g.colour, marker=g.marker, label=g.label)
        for g in groups(covariate)
    ]
    title = style.clipped(covariate.name, 18)
    wide, tall = _legend_size([title, *(str(handle.get_label()) for handle in handles)])
    inside = _fits_above(panels, wide, tall)
    if not inside:
        figure.set_figwidth(min(figure.get_figwidth() + wide, style.PAGE))
    place = "upper right" if inside else "outside right upper"
    figure.legend(handles=handles, title=title, loc=place, alignment="left")


def _legend_size(lines: list[str]) -> tuple[float, float]:
    """Width and height of a legend in inches, a little too large."""
    letters = max(map(len, lines)) + 5
    return 0.62 * style.SMALL * letters / 72.0, 1.7 * style.SMALL * len(lines) / 72.0


def _fits_above(panels: Any, wide: float, tall: float) -> bool:
    """Whether the empty panels above the diagonal have room for something in their corner."""
    figure = panels[0, 0].get_figure()
    each, high = figure.get_figwidth() / len(panels), figure.get_figheight() / len(panels)
    last_row = int(tall / high)  # that it reaches into; empty are those right of its diagonal
    return bool(wide <= each * (len(panels) - 1 - last_row))


# ---------------------------------------------------------------- by category


@style.drawing
def factor_violins(
    model: Any, by: Any, factors: Any = None, data: Any = None, *, n: int = 4, ax: Any = None
) -> Any:
    """The distribution of factors in the classes of a covariate.

    Classes with few samples are drawn as points.

    Parameters
    ----------
    model : FactorModel, or a DataFrame or array of factors
        What is drawn.
    by : Series, array or list; name of a view; or (view, column)
        As `colour` of `factors`. Numbers are cut at their quartiles.
    factors : name, position (the first is 0), or a list of them, or None
        None is the first `n`, or fewer if there are many classes.
    data : as for `factors`
        The samples; None is those of the fit.
    n : int
        How many factors, where none are named.
    ax : Axes or None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np, kofa
    >>> z = np.random.default_rng(0).normal(size=(60, 2))
    >>> ax = kofa.plot.factor_violins(z, by=["a", "b", "b"] * 20, factors=0)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    """
    from kofa.plot.ticks import name_axis

    if by is None:
        raise DataError("expected by to be one value for each sample but got None", option="by")
    table, covariate = _read(model, data, by)
    assert covariate is not None
    covariate = as_classes(covariate)
    shown = [g for g in groups(covariate) if g.rows.any()]
    most = min(check_n(n), max(1, _MOST_VIOLINS // len(shown)))
    names = factor_list(table.columns, factors, most)
    ax = style.axes(ax, 2.2 + style.height_of_names(names, 2.4))
    width = 0.8 / len(shown)
    for place, group in enumerate(shown):
        where = np.arange(len(names)) + width * (place - (len(shown) - 1) / 2)
        for at, name in zip(where, names, strict=True):
            _draw_violin(ax, at, table[name].to_numpy()[group.rows], width, group)
        ax.plot([], [], linestyle="", marker=group.marker, color=group.colour, label=group.label)
    zero_lines(ax, x=False)
    name_axis(ax.xaxis, names)
    ax.set_xlim(-0.5, len(names) - 0.5)
    ax.set_ylabel("factor")
    legend(ax, str(covariate.name))
    return ax


def _draw_violin(ax: Any, at: float, values: Array, width: float, group: Any) -> None:
    values = values[np.isfinite(values)]
    if len(values) >= 5 and np.ptp(values) > 0:
        body = ax.violinplot([values], [at], widths=0.95 * width, showextrema=False)["bodies"][0]
        body.set(facecolor=group.colour, edgecolor=group.colour, alpha=0.4, linewidth=0.6)
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        ax.plot([at, at], [low, high], color=group.colour, linewidth=1.5, solid_capstyle="butt")
        ax.plot([at], [middle], marker=group.marker, color=group.colour, markersize=3)
    else:
        ax.scatter(np.full(len(values), at), values, s=2.5, color=group.colour, linewidths=0)


# ---------------------------------------------------------------- correlation


@style.drawing
def factor_correlation(model: Any, data: Any = None, factors: Any = None, ax: Any = None) -> Any:
    """Pearson's correlation of each factor with each.

    Parameters
    ----------
    model : FactorModel, or a DataFrame or array of factors
        What is drawn.
    data : as for `factors`
        The samples; None is those of the fit.
    factors : list of names or positions (the first is 0), or None
        None is all.
    ax : Axes or None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np, kofa
    >>> ax = kofa.plot.factor_correlation(np.array([[1.0, -1.0], [2.0, -2.0], [3.0, -3.0]]))
    >>> ax.images[0].get_array().round(2).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    table = factors_of(model, data)
    table = table[factor_list(table.columns, factors)]
    wide = grid(inspection.correlate(table), "factor", "other", "r")
    ax = heat_axes(ax, wide.index, wide.columns, most=3.0)
    values = wide.to_numpy(float)
    heatmap(ax, values, wide.index, wide.columns, label="correlation", signed=True, limit=1.0)
    return ax
