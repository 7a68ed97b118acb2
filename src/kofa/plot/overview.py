"""Plots of a whole fit: what was measured, how it converged, which factor explains which view."""

from __future__ import annotations

from typing import Any

import numpy as np

from kofa import inspection, omics
from kofa.checks import flag
from kofa.linalg import Array
from kofa.plot import style
from kofa.plot.parts import colour_bar, heatmap, legend
from kofa.plot.source import factor_list, grid, in_order, is_model, is_table, table_of

# ---------------------------------------------------------------- data


@style.drawing
def data_overview(model: Any, data: Any = None, ax: Any = None) -> Any:
    """Which samples are measured in which view: a row for each view, a column for each sample.

    Samples with the same views stand together. The colour is the share of the view's features that
    a sample has; a hatched one has none.

    Parameters
    ----------
    model : FactorModel, or data: a dict of name → table
        Of a model, the samples of the fit, unless there are `data`.
    data : dict of name → table, MuData or AnnData, or None
        The samples; None is those of the fit.
    ax : Axes or None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np, pandas as pd, kofa
    >>> rna = pd.DataFrame(np.ones((3, 2)), index=["ann", "bob", "cleo"])
    >>> stage = pd.Series([1.0, 2.0], index=["bob", "dora"])
    >>> ax = kofa.plot.data_overview({"rna": rna, "stage": stage})
    >>> ax.images[0].get_array().filled(0).tolist()
    [[1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]]
    """
    views, samples = _overview(model, data)
    share = samples.to_numpy(float) / np.maximum(views["n_features"].to_numpy(float), 1.0)
    share = share[_by_pattern(share)].T
    ax = style.axes(ax, style.height_for(len(views), 0.24, 0.75))
    shown = np.where(share > 0, share, np.nan)
    image = heatmap(ax, shown, views["view"], (), limit=1.0)
    colour_bar(ax, image, "share measured", ticks=[0, 0.5, 1], pad=0.04)
    _write_sizes(ax, views)
    ax.set_yticks(np.arange(1, len(views)) - 0.5, minor=True)
    ax.tick_params(axis="y", which="minor", length=0)
    ax.grid(axis="y", which="minor", color="white", linewidth=1.5)
    ax.set_xlabel(f"{share.shape[1]} samples")
    return ax


def _overview(source: Any, data: Any) -> Any:
    if is_model(source) and data is None:
        return source.data_overview()
    data = source if data is None else data
    return inspection.data_overview(omics.from_mudata(data) if omics.is_omics(data) else data)


def _by_pattern(share: Array) -> Any:
    """Samples in the order of the views that they have: first those that have the first."""
    keys = np.hstack([share > 0, share])
    return np.lexsort(-keys[:, ::-1].T)


def _write_sizes(ax: Any, views: Any) -> None:
    """Features and samples of each view, above its row."""
    for place, view in enumerate(views.itertuples()):
        text = f"D = {view.n_features:,}\nn = {view.n_samples:,}"
        ax.text(
            1.01, place, text, transform=ax.get_yaxis_transform(), va="center",
            fontsize=style.SMALL, linespacing=0.95,
        )  # fmt: skip


# ---------------------------------------------------------------- convergence


@style.drawing
def bound(model: Any, terms: bool = False, ax: Any = None) -> Any:
    """The lower bound of the evidence after each iteration, or its terms.

    The first iterations gain most by far; the axis begins where the fit comes near its end, so
    that a fit that has not converged is seen.

    Parameters
    ----------
    model : FactorModel
        What is drawn.
    terms : bool
        Draw each named term, as the difference from its last value; those that change most have
        colours.
    ax : Axes or None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np, kofa
    >>> x = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = kofa.FactorModel().fit({"x": x})
    >>> ax = kofa.plot.bound(model)
    >>> bool((ax.lines[0].get_ydata() == model.lower_bounds_).all())
    True
    """
    ax = style.axes(ax)
    if flag("terms", terms):
        _draw_terms(ax, model)
    else:
        values = np.asarray(model.lower_bounds_, dtype=float)
        ax.plot(np.arange(1, len(values) + 1), values, color=style.MAIN, marker=_dot(values))
        ax.set_ylim(*_limits(_without_the_first(values)))
        ax.set_ylabel("lower bound")
    ax.set_xlabel("iteration")
    ax.xaxis.get_major_locator().set_params(integer=True)
    return ax


def _draw_terms(ax: Any, model: Any) -> None:
    """Each term as a curve; those that change least are grey, if there are many."""
    table = table_of(model, "bound_terms", ("iteration", "term", "value"))
    wide = grid(table, "iteration", "term", "value")
    rise = (wide - wide.iloc[-1]).to_numpy(float)
    late = _without_the_first(rise)
    order = np.argsort(-np.ptp(late, axis=0), kind="stable")
    for place, term in enumerate(order.tolist()):
        named = place < len(style.COLOURS)
        ax.plot(
            wide.index, rise[:, term], color=style.colour(place) if named else style.FAINT,
            marker=style.marker(place) if named else None, markevery=max(1, len(rise) // 6),
            zorder=2 if named else 1, label=_term(wide.columns[term], place, len(order)),
        )  # fmt: skip
    ax.set_ylim(*_limits(late))
    ax.set_ylabel("difference from the last value")
    legend(ax)


def _term(name: str, place: int, n: int) -> str:
    """The entry of the legend; an underscore keeps a curve out of it."""
    if place < len(style.COLOURS):
        return style.clipped(name, 18).lstrip("_")
    return f"{n - place} others" if place == len(style.COLOURS) else "_"


def _dot(values: Array) -> str | None:
    """A curve of one point is seen only with a marker."""
    return "o" if len(values) == 1 else None


def _without_the_first(values: Array) -> Array:
    """All but the first tenth of the iterations, of many."""
    return values[len(values) // 10 :] if len(values) >= 10 else values


def _limits(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


# ---------------------------------------------------------------- views and factors


@style.drawing
def variance_explained(model: Any, ax: Any = None) -> Any:
    """The share of each view's variance that each factor explains, with totals as bars above.

    Parameters
    ----------
    model : FactorModel, or a table with the columns ``view``, ``factor`` and ``r2``
        Of a table, the totals are the sums.
    ax : Axes or None
        Of the heat map; the bars are put above it.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd, kofa
    >>> table = pd.DataFrame({"view": ["rna", "rna"], "factor": ["factor1", "factor2"]})
    >>> ax = kofa.plot.variance_explained(table.assign(r2=[0.5, 0.2]))
    >>> ax.images[0].get_array().tolist()
    [[50.0], [20.0]]
    >>> [round(bar.get_height()) for bar in ax.figure.axes[0].patches]
    [70]
    """
    table = table_of(model, "variance_explained", ("view", "factor", "r2"), by="factor")
    wide = 100.0 * grid(table, "factor", "view", "r2")
    ax, above = _with_panel_above(ax, wide)
    heatmap(ax, wide.to_numpy(float), wide.index, wide.columns, label="explained (%)")
    _draw_totals(above, _totals(model, wide))
    return ax


def _with_panel_above(ax: Any, wide: Any) -> tuple[Any, Any]:
    """Axes for a heat map, and low ones above it."""
    if ax is not None:
        return style.axes(ax), ax.inset_axes((0.0, 1.03, 1.0, 0.2))
    width = _width(wide)
    rest = 1.1 + style.height_of_names(wide.columns, width - 1.3)
    figure = style.figure(style.height_for(max(len(wide), 6), 0.13, rest), width)
    above, below = figure.subplots(2, 1, height_ratios=(0.4, 0.13 * max(len(wide), 6)))
    return below, above


def _width(wide: Any) -> float:
    """In inches: more for long names and many columns."""
    names = max(min(len(str(name)), style.LONGEST) for name in wide.index)
    return float(min(max(0.9 + 0.055 * names + 0.32 * wide.shape[1], 2.2), style.COLUMN))


def _totals(model: Any, wide: Any) -> Array:
    """What all factors explain of each view, in percent."""
    if is_table(model):
        return np.asarray(wide.sum().to_numpy(float))
    table = model.variance_explained(by="view").set_index("view")["r2"]
    return np.asarray(100.0 * table.reindex(wide.columns).to_numpy(float))


def _draw_totals(ax: Any, total: Array) -> None:
    bars = np.nan_to_num(total)
    ax.bar(np.arange(len(bars)), bars, 0.8, color=style.GUIDE)
    ax.set_xlim(-0.5, len(bars) - 0.5)
    ax.set_ylim(bottom=min(0.0, float(bars.min(initial=0.0))))
    ax.tick_params(axis="x", labelbottom=False, length=0)
    ax.tick_params(axis="y", labelsize=style.SMALL)
    ax.locator_params(axis="y", nbins=2)
    ax.set_title("total (%)", loc="left", pad=2, fontsize=style.TEXT)
    ax.spines[["top", "right"]].set_visible(False)


@style.drawing
def factor_relevance(model: Any, factors: Any = None) -> Any:
    """The relevance of each factor in each view: a panel for each view, a bar for each factor.

    Factors that are off in a view are grey.

    Parameters
    ----------
    model : FactorModel, or the table from ``model.factor_relevance()``
        What is drawn.
    factors : list of names or positions (the first is 0), or None
        None is all.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import pandas as pd, kofa
    >>> table = pd.DataFrame({"factor": ["factor1", "factor2"], "view": "rna"})
    >>> table = table.assign(relevance=[0.8, 0.0], active=[True, False])
    >>> figure = kofa.plot.factor_relevance(table)
    >>> [float(bar.get_height()) for bar in figure.axes[0].patches]
    [0.8, 0.0]
    """
    fields = ("factor", "view", "relevance", "active")
    table = table_of(model, "factor_relevance", fields)
    chosen = factor_list(in_order(table["factor"]), factors)
    table = table[table["factor"].isin(chosen)]
    views = in_order(table["view"])
    width = style.COLUMN if len(chosen) <= 60 else style.PAGE
    rest = 0.4 + style.height_of_names(chosen, width)
    figure = style.figure(rest + 0.8 * len(views), width)
    panels = figure.subplots(len(views), 1, sharex=True, squeeze=False)[:, 0]
    for ax, view in zip(panels, views, strict=True):
        _draw_relevance(ax, table[table["view"] == view].set_index("factor").loc[chosen])
        ax.set_title(style.clipped(view, 40), loc="left", pad=2)
    figure.supylabel("relevance", fontsize=style.TEXT)
    return figure


def _draw_relevance(ax: Any, rows: Any) -> None:
    from kofa.plot.ticks import name_axis

    active = rows["active"].to_numpy(bool)
    colours = [style.MAIN if on else style.FAINT for on in active]
    ax.bar(np.arange(len(rows)), rows["relevance"], 0.8, color=colours)
    ax.set_xlim(-0.6, len(rows) - 0.4)
    ax.locator_params(axis="y", nbins=3)
    name_axis(ax.xaxis, rows.index)
