"""Plots of what factors mean: covariates, feature sets, and the factors of another fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from kofa import inspection
from kofa.checks import check_word
from kofa.errors import DataError
from kofa.linalg import Array
from kofa.plot import style
from kofa.plot.parts import heat_axes, heatmap, is_dark, largest, legend, write_in_cells
from kofa.plot.source import (
    check_n,
    checked,
    factor_list,
    factors_of,
    grid,
    in_order,
    is_model,
    is_table,
)

_FLOOR = 1e-300  # of a p-value, whose logarithm is drawn
_LEAST_STRONG = 2.0  # −log10 q of the strongest colour at the least: chance is pale


def _tenfold(q: Any) -> Array:
    """−log10 of q-values."""
    return np.asarray(-np.log10(np.maximum(np.asarray(q, dtype=float), _FLOOR)))


# ---------------------------------------------------------------- covariates


@style.drawing
def associations(
    model: Any,
    covariates: Any = None,
    data: Any = None,
    *,
    factors: Any = None,
    show: str = "effect",
    ax: Any = None,
) -> Any:
    """How factors go with covariates: a heat map, with stars where that is hardly chance.

    Stars: q below .05 (``*``), .01 (``**``) and .001 (``***``).

    Parameters
    ----------
    model : FactorModel, or the table from ``model.associate(covariates)``
        What is drawn.
    covariates : DataFrame, Series, dict or array
        As for `kofa.inspection.associate`.
    data : dict of name → table, MuData or AnnData, or None
        The samples; None is those of the fit.
    factors : list of names or positions (the first is 0), or None
        None is all.
    show : "effect" or "q"
        Colours by the correlation (of categories η, which has no sign), or by −log10 q.
    ax : Axes or None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np, kofa
    >>> z = np.random.default_rng(0).normal(size=(50, 2))
    >>> table = kofa.inspection.associate(z, {"age": 2 * z[:, 0]})
    >>> ax = kofa.plot.associations(table)
    >>> [text.get_text() for text in ax.texts]
    ['***', '']
    """
    check_word("show", show, ("effect", "q"))
    table = _associations(model, covariates, data)
    table = table.assign(shown=_effect(table) if show == "effect" else _tenfold(table["q"]))
    wide, q = grid(table, "factor", "covariate", "shown"), grid(table, "factor", "covariate", "q")
    names = factor_list(wide.index, factors)
    wide, q = wide.loc[names], q.loc[names]
    ax = heat_axes(ax, wide.index, wide.columns, wide=0.3, least=0.2)
    image = heatmap(
        ax, wide.to_numpy(float), wide.index, wide.columns, signed=show == "effect",
        label="correlation" if show == "effect" else "−log10 q",
        limit=1.0 if show == "effect" else max(largest(wide.to_numpy(float)), _LEAST_STRONG),
    )  # fmt: skip
    write_in_cells(ax, [[_stars(one) for one in row] for row in q.to_numpy(float)], is_dark(image))
    return ax


def _associations(model: Any, covariates: Any, data: Any) -> Any:
    fields = ("factor", "covariate", "statistic", "value", "r", "q")
    if is_table(model) and covariates is None:
        return checked(model, fields, "model.associate")
    if covariates is None:
        raise DataError("expected covariates, or a table from model.associate, but got neither")
    if is_model(model):
        return model.associate(covariates, data)
    return inspection.associate(model, covariates)


def _effect(table: Any) -> Array:
    """r, or of categories the root of η²."""
    eta = np.sqrt(table["value"].to_numpy(float).clip(0.0))
    of_classes = (table["statistic"] == "eta_squared").to_numpy()
    return np.asarray(np.where(of_classes, eta, table["r"].to_numpy(float)))


def _stars(q: float) -> str:
    return "*" * sum(q < limit for limit in (0.05, 0.01, 0.001))


# ---------------------------------------------------------------- feature sets


@style.drawing
def enrichment(
    model: Any,
    view: Any = None,
    sets: Any = None,
    factor: Any = None,
    data: Any = None,
    *,
    n: int = 15,
    ax: Any = None,
    **options: Any,
) -> Any:
    """Feature sets with larger or smaller weights: dots for one factor, a heat map for several.

    Both have −log10 q, with a line or stars at q = .05. The colour is by direction: the sign of
    the difference of the weights from those of other features.

    Parameters
    ----------
    model : FactorModel, or the table from ``model.enrich(view, sets)``
        What is drawn.
    view : str
        The view.
    sets : dict of name → features, DataFrame, or path of a GMT file
        As for `kofa.inspection.enrich`.
    factor : name or position (the first is 0), a list of them, or None
        None is all.
    data : dict of name → table, MuData or AnnData, or None
        As for ``model.enrich``: pass it, or p-values of correlated features are too small.
    n : int
        How many sets: those with the least q.
    ax : Axes or None
        Where to draw; None is a new figure.
    **options : those of `kofa.inspection.enrich`
        Such as ``min_size``.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd, kofa
    >>> table = pd.DataFrame({"factor": "factor1", "set": ["repair", "growth"], "q": [0.01, 0.5]})
    >>> table = table.assign(n_found=[12, 40], direction=["positive", "negative"])
    >>> ax = kofa.plot.enrichment(table)
    >>> ax.collections[0].get_offsets().round(1).tolist()
    [[2.0, 0.0]]
    """
    table = _enriched(model, view, sets, data, options)
    names = factor_list(in_order(table["factor"]), factor)
    table = table[table["factor"].isin(names)].assign(log=lambda rows: _tenfold(rows["q"]))
    best = table.groupby("set", sort=False)["log"].max().sort_values(ascending=False, kind="stable")
    table = table[table["set"].isin(best.index[: check_n(n)])]
    if len(names) == 1:
        rows = table.sort_values("log", ascending=False, kind="stable")
        return _draw_dots(rows, names[0], ax)
    return _draw_sets(table, best.index[:n], names, ax)


def _enriched(model: Any, view: Any, sets: Any, data: Any, options: Any) -> Any:
    fields = ("factor", "set", "n_found", "q", "direction")
    if is_table(model):
        return checked(model, fields, "model.enrich")
    if view is None or sets is None:
        raise DataError("expected view and sets, or a table from model.enrich")
    return model.enrich(view, sets, data=data, **options)


def _draw_dots(rows: Any, factor: Any, ax: Any) -> Any:
    """A dot for each set; its area grows with the set."""
    from kofa.plot.ticks import name_axis

    ax = style.axes(ax, style.height_for(len(rows), 0.15, 0.7))
    place, n = np.arange(len(rows)), rows["n_found"].to_numpy(float)
    area = 8.0 + 40.0 * n / max(n.max(initial=1.0), 1.0)
    looks = (("positive", style.MAIN, "o"), ("negative", style.SECOND, "s"))
    for direction, colour, marker in looks:
        which = (rows["direction"] == direction).to_numpy()
        if which.any():
            ax.scatter(
                rows["log"].to_numpy()[which], place[which], s=area[which], color=colour,
                marker=marker, linewidths=0, label=direction,
            )  # fmt: skip
    ax.axvline(-np.log10(0.05), color=style.GUIDE, linewidth=0.5, linestyle="--", zorder=0)
    ax.set_xlim(left=min(0.0, ax.get_xlim()[0]))
    ax.set_ylim(len(rows) - 0.5, -0.5)
    name_axis(ax.yaxis, rows["set"].tolist(), 30)
    ax.set_xlabel("−log10 q")
    ax.set_title(style.clipped(factor, 24), loc="right")  # names of sets are to the left
    ax.legend(loc="lower right")  # where the least are far from the edge
    return ax


def _draw_sets(table: Any, sets: Any, factors: list[Any], ax: Any) -> Any:
    sign = np.where(table["direction"] == "negative", -1.0, 1.0)
    wide = grid(table.assign(signed=sign * table["log"]), "set", "factor", "signed")
    q = grid(table, "set", "factor", "q").reindex(index=sets, columns=factors)
    wide = wide.reindex(index=sets, columns=factors)
    ax = heat_axes(ax, wide.index, wide.columns, wide=0.25, least=0.2)
    values = wide.to_numpy(float)
    image = heatmap(
        ax, values, wide.index, wide.columns, label="signed −log10 q", signed=True,
        limit=max(largest(values), _LEAST_STRONG),
    )  # fmt: skip
    stars = [[_stars(one) for one in row] for row in q.to_numpy(float)]
    write_in_cells(ax, stars, is_dark(image))
    return ax


# ---------------------------------------------------------------- another fit


@style.drawing
def agreement(model: Any, other: Any = None, data: Any = None, ax: Any = None) -> Any:
    """The correlation of the factors of two fits, matched one to one: a bar for each pair.

    Signs of factors are arbitrary. Factors that are left over have no bar.

    Parameters
    ----------
    model : FactorModel; factors as a DataFrame or array; or the table from ``model.agreement``
        What is drawn.
    other : FactorModel, or factors as a DataFrame or array
        What it is compared with; not needed with a table of agreement.
    data : dict of name → table, MuData or AnnData, or None
        The samples, if models are given; None is those of the fits.
    ax : Axes or None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np, kofa
    >>> z = np.random.default_rng(0).normal(size=(50, 3))
    >>> ax = kofa.plot.agreement(z, -z[:, [2, 0]])
    >>> sorted(round(float(bar.get_width()), 1) for bar in ax.patches)
    [0.0, 1.0, 1.0]
    """
    from kofa.plot.ticks import name_axis

    if other is None:
        table = checked(model, ("factor", "matched", "r"), "model.agreement")
    else:
        table = _agreement(model, other, data)
    names = [f"{_or_dash(row.factor)} – {_or_dash(row.matched)}" for row in table.itertuples()]
    r = np.nan_to_num(table["r"].to_numpy(float))
    ax = style.axes(ax, style.height_for(len(r), 0.15, 0.6))
    for sign, colour, hatch in (("same", style.MAIN, ""), ("opposite", style.SECOND, "////")):
        rows = np.flatnonzero((r < 0) == (sign == "opposite"))
        if len(rows):
            look = {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
            ax.barh(rows, np.abs(r[rows]), 0.75, label=f"{sign} sign", **look)
    ax.set(xlim=(0.0, 1.0), ylim=(len(r) - 0.5, -0.5), xlabel="size of the correlation")
    name_axis(ax.yaxis, names, 2 * 12 + 3)
    if (r < 0).any():
        legend(ax)
    return ax


def _agreement(model: Any, other: Any, data: Any) -> Any:
    if is_model(model):
        return model.agreement(other, data)
    return inspection.agreement(model, factors_of(other, data) if is_model(other) else other)


def _or_dash(name: Any) -> str:
    return "none" if name is None or name != name else style.clipped(name, 12)
