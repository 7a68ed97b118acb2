"""Plots of predictions for samples that a fit has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from kofa.checks import hint, listed, shown
from kofa.errors import DataError
from kofa.linalg import Array
from kofa.plot import style
from kofa.plot.parts import heat_axes, heatmap, is_dark, points, write_in_cells
from kofa.plot.source import checked, in_order, is_model
from kofa.scoring.summaries import calibration_table, confusion_table
from kofa.scoring.tables import PREDICTION_FIELDS, SCORE_FIELDS
from kofa.scoring.truth import predicted

_MOST_INTERVALS = 300  # that can be told apart
_DECADES = 100.0  # the ratio of positive values from which axes are logarithmic


def _chosen(table: Any, field: str, value: Any) -> Any:
    """The rows with a value in a column; where there is one value, or none is asked for, all."""
    values = in_order(table[field])
    if value is None:
        if len(values) == 1:
            return table
        what = f"expected {field} to say which"
        raise DataError(f"{what} of {listed(values)} to show", option=field)
    if value not in values:
        cure = hint(value, values, "there are")
        raise DataError(f"unknown {field} {shown(value)}", option=field, cure=cure)
    return table[table[field] == value]


def _of_data(source: Any, data: Any, view: Any) -> Any:
    """The predictions of a model for data; a table as it is."""
    return predicted(source, data, view) if is_model(source) else source


def _models(table: Any) -> list[Any]:
    return in_order(table["model"]) if "model" in table else [None]


def _of_model(table: Any, model: Any) -> Any:
    return table if model is None else table[table["model"] == model]


# ---------------------------------------------------------------- against the truth


@style.drawing
def predictions(
    model: Any,
    data: Any = None,
    view: Any = None,
    column: Any = None,
    *,
    of: Any = None,
    ax: Any = None,
) -> Any:
    """Predictions against the truth.

    Of numbers: means with intervals of 90 %, and the diagonal on which perfect ones lie; axes are
    logarithmic where all are positive and differ by more than a factor of 100. Of zeros and ones,
    and of classes: the probability of what is true, by class.

    Parameters
    ----------
    model : FactorModel, or a table of predictions
        A table is that from `kofa.cross_validate` or `kofa.compare` with
        ``return_predictions=True``.
    data : dict of name → table, or None
        For a model: the truth in one view, which is predicted from the others.
    view : name
        Needed where there are several, or a model has several outputs.
    column : name
        Of a view with several columns, None shows means of all, without intervals.
    of : name
        The model, in a table of several.
    ax : Axes or None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np, kofa
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(60, 2))
    >>> model = kofa.FactorModel({"x": kofa.Real(), "y": kofa.Real()}, outputs=["y"])
    >>> data = {"x": x, "y": x[:, 0] + rng.normal(size=60)}
    >>> scores, held_out = kofa.cross_validate(model, data, return_predictions=True)
    >>> ax = kofa.plot.predictions(held_out)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('y, true', 'y, predicted')
    """
    if is_model(model):
        table = predicted(model, data, view)
    else:
        table = checked(model, PREDICTION_FIELDS, "kofa.cross_validate")
        table = _chosen(table, "model", of) if "model" in table else table
        table = _chosen(table, "view", view)
    if column is not None:
        table = _chosen(table, "column", column)
    if not len(table):
        raise DataError("Expected predictions but there are none: no sample has a value.")
    numbers = table["kind"].iloc[0] == "number"
    return _draw_numbers(table, ax) if numbers else _draw_probabilities(table, ax)


def _draw_numbers(table: Any, ax: Any) -> Any:
    ax = style.axes(ax, 2.8)
    truth, mean = (table[name].to_numpy(float) for name in ("truth", "mean"))
    several = table["column"].nunique() > 1
    if not several:
        rows = table.iloc[:: -(-len(table) // _MOST_INTERVALS)]
        look = {"color": style.FAINT, "linewidth": 0.5, "zorder": 0}
        ax.vlines(rows["truth"], rows["lower"], rows["upper"], **look)
    points(ax, truth, mean)
    ends = [min(truth.min(), mean.min()), max(truth.max(), mean.max())]
    ax.plot(ends, ends, color="black", linewidth=0.7, linestyle="--", zorder=3)
    name = style.clipped(_value_name(table, several))
    ax.set(xlabel=f"{name}, true", ylabel=f"{name}, predicted")
    if min(ends[0], table["lower"].min()) > 0 and ends[1] > _DECADES * ends[0]:
        ax.set(xscale="log", yscale="log")
    else:
        ax.locator_params(nbins=6)
    return ax


def _value_name(table: Any, several: bool) -> Any:
    """The column, unless it is only a number."""
    view, column = table["view"].iloc[0], table["column"].iloc[0]
    return column if isinstance(column, str) and not several else view


def _draw_probabilities(table: Any, ax: Any) -> Any:
    """The probability of the truth, in a strip for each class."""
    from kofa.plot.ticks import name_axis

    names, given = _of_truth(table)
    ax = style.axes(ax, 2.4 + style.height_of_names(names, 2.6))
    rng = np.random.default_rng(0)
    for place, values in enumerate(given):
        across = place + 0.3 * (2.0 * rng.random(len(values)) - 1.0)
        points(ax, across, values, color=style.colour(place), marker=style.marker(place), alpha=0.7)
        ax.hlines(np.median(values), place - 0.35, place + 0.35, color="black", linewidth=1.2)
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlim(-0.5, len(names) - 0.5)
    name_axis(ax.xaxis, names)
    ax.set_xlabel(f"true {style.clipped(table['view'].iloc[0])}")
    ax.set_ylabel("probability of the truth")
    return ax


def _of_truth(table: Any) -> tuple[list[Any], list[Array]]:
    """Classes, and for each the probabilities that its samples had for it."""
    if table["kind"].iloc[0] == "class":
        true = table[table["truth"] == 1]
        found = {
            name: true.loc[true["column"] == name, "mean"].to_numpy(float)
            for name in in_order(table["column"])
        }
    else:
        mean, is_one = table["mean"].to_numpy(float), (table["truth"] == 1).to_numpy()
        found = {0: 1.0 - mean[~is_one], 1: mean[is_one]}
    present = {name: values for name, values in found.items() if len(values)}
    return list(present), list(present.values())


# ---------------------------------------------------------------- calibration


@style.drawing
def calibration(
    predictions: Any, view: Any = None, *, data: Any = None, bins: int = 10, ax: Any = None
) -> Any:
    """Whether intervals and probabilities are what they say: observed against nominal.

    Perfect ones lie on the diagonal. The band is what chance does to them, two standard errors for
    as many values as the first curve has. Of numbers, the share of values in central intervals of
    each level; of zeros and ones and of classes, how often there was a one among predictions of
    about that probability.

    Parameters
    ----------
    predictions : DataFrame, or FactorModel
        From `kofa.cross_validate` or `kofa.compare` with ``return_predictions=True``; or the table
        from `kofa.calibration_table`. Of a model, its predictions for `data`.
    view : name
        None is all views, which have a curve each, as have models.
    data : dict of name → table, or None
        For a model: samples that were not in its fit, with the truth.
    bins : int
        For probabilities.
    ax : Axes or None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd, kofa
    >>> table = pd.DataFrame({"view": "y", "column": "all", "kind": "number", "n": 100,
    ...                       "nominal": [0.5, 0.9], "observed": [0.45, 0.92]})
    >>> ax = kofa.plot.calibration(table)
    >>> ax.lines[-1].get_ydata().tolist()
    [0.45, 0.92]
    """
    fields = ("view", "column", "kind", "nominal", "observed", "n")
    predictions = _of_data(predictions, data, view)
    is_summary = "nominal" in getattr(predictions, "columns", ())
    table = checked(predictions, fields, "") if is_summary else calibration_table(predictions, bins)
    table = table[table["column"] == "all"]
    table = table if view is None else _chosen(table, "view", view)
    ax = style.axes(ax, 2.6, 3.0)
    curves = [
        (one, model, rows[rows["view"] == one])
        for model in _models(table)
        for rows in [_of_model(table, model)]
        for one in in_order(rows["view"])
    ]
    _draw_chance(ax, curves[0][2])
    for place, (one, model, rows) in enumerate(curves):
        ax.plot(
            rows["nominal"], rows["observed"], color=style.colour(place),
            marker=style.marker(place), label=_curve_name(curves, one, model),
        )  # fmt: skip
    ax.set_xlabel(_nominal(set(table["kind"])))
    ax.set_ylabel("observed share")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    if len(curves) > 1:
        ax.legend(loc="lower right")
    return ax


def _nominal(kinds: set[str]) -> str:
    if kinds == {"number"}:
        return "level of the interval"
    return "nominal share" if "number" in kinds else "predicted probability"


def _curve_name(curves: Any, view: Any, model: Any) -> str:
    several_views = len({one for one, _, _ in curves}) > 1
    parts = [part for part, shown in ((model, model is not None), (view, several_views)) if shown]
    return ", ".join(style.clipped(part, 14) for part in parts) or style.clipped(view, 18)


def _draw_chance(ax: Any, rows: Any) -> None:
    """The diagonal ± 2 √(p (1 − p) / n)."""
    p = np.linspace(0.0, 1.0, 101)
    n = np.interp(p, rows["nominal"].to_numpy(float), rows["n"].to_numpy(float))
    half = 2.0 * np.sqrt(p * (1.0 - p) / np.maximum(n, 1.0))
    ax.fill_between(p, p - half, p + half, color=style.BAND, linewidth=0, zorder=0)
    ax.plot([0, 1], [0, 1], color=style.GUIDE, linewidth=0.7, linestyle="--", zorder=1)


# ---------------------------------------------------------------- classes


@style.drawing
def confusion(
    predictions: Any,
    view: Any = None,
    column: Any = None,
    model: Any = None,
    ax: Any = None,
    *,
    data: Any = None,
) -> Any:
    """Which classes were predicted for which: numbers of samples, coloured by share of the truth.

    Parameters
    ----------
    predictions : DataFrame, or FactorModel
        From `kofa.cross_validate` or `kofa.compare` with ``return_predictions=True``; or the table
        from `kofa.confusion_table`. Of a model, its predictions for `data`: samples that were not
        in its fit, with the truth.
    view, column, model : names
        Needed where there are several.
    ax : Axes or None
        Where to draw; None is a new figure.
    data : dict of name → table, or None
        For a model: samples that were not in its fit, with the truth.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd, kofa
    >>> table = pd.DataFrame({"view": "y", "column": "all", "truth": ["a", "a", "b", "b"],
    ...                       "predicted": ["a", "b"] * 2, "n": [9, 1, 2, 8]})
    >>> ax = kofa.plot.confusion(table)
    >>> [text.get_text() for text in ax.texts]
    ['9', '1', '2', '8']
    """
    predictions = _of_data(predictions, data, view)
    is_summary = "predicted" in getattr(predictions, "columns", ())
    table = predictions if is_summary else confusion_table(predictions)
    if "model" in table:
        table = _chosen(table, "model", model)
    table = _chosen(_chosen(table, "view", view), "column", column)
    wide = table.pivot(index="truth", columns="predicted", values="n")
    classes = in_order(table["truth"])
    counts = wide.reindex(index=classes, columns=classes).fillna(0).to_numpy(float)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    ax = heat_axes(ax, classes, classes, wide=0.3, least=0.14)
    image = heatmap(ax, 100.0 * share, classes, classes, label="% of the truth", limit=100.0)
    if len(classes) <= 12:
        texts = [[f"{n:.0f}" for n in row] for row in counts]
        write_in_cells(ax, texts, is_dark(image))
    ax.set(xlabel="predicted", ylabel="true")
    return ax


# ---------------------------------------------------------------- models


@style.drawing
def compare(
    scores: Any, score: Any = None, view: Any = None, column: Any = "all", ax: Any = None
) -> Any:
    """Models on the same folds: a thin line for each fold, and the mean of each model.

    Parameters
    ----------
    scores : DataFrame
        From `kofa.compare`, or `kofa.cross_validate`.
    score : str or None
        Such as "r2"; None is the first.
    view : name
        Needed where there are several.
    column : name
        The column; "all" is the mean over the columns of a view.
    ax : Axes or None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd, kofa
    >>> scores = pd.DataFrame({
    ...     "model": ["a", "a", "b", "b"], "fold": [0, 1, 0, 1], "view": "y", "column": "all",
    ...     "score": "r2", "value": [0.5, 0.7, 0.6, 0.9], "n": 10,
    ... })
    >>> ax = kofa.plot.compare(scores)
    >>> ax.lines[-1].get_ydata().tolist()
    [0.6, 0.75]
    """
    from kofa.plot.ticks import name_axis

    table = checked(scores, SCORE_FIELDS, "kofa.compare")
    table = table if "model" in table else table.assign(model="model")
    table = _chosen(_chosen(table, "view", view), "column", column)
    score = in_order(table["score"])[0] if score is None else score
    table = _chosen(table, "score", score)
    table = table[table["fold"] != "all"]
    models = in_order(table["model"])
    wide = table.pivot(index="fold", columns="model", values="value")[models].to_numpy(float)
    ax = style.axes(
        ax, 2.2 + style.height_of_names(models, 2.9), min(1.4 + 0.5 * len(models), style.COLUMN)
    )
    place = np.arange(len(models))
    for fold in wide:
        ax.plot(place, fold, color=style.FAINT, linewidth=0.6, marker="o", markersize=2)
    mean = np.nanmean(wide, axis=0)
    ax.plot(place, mean, linestyle="", marker="D", color=style.MAIN, markersize=5)
    ax.set_xlim(-0.5, len(models) - 0.5)
    name_axis(ax.xaxis, models)
    ax.set_ylabel(f"{score}, {len(wide)} folds")
    return ax
