"""Plots of the data behind a factor."""

from __future__ import annotations

from typing import Any

import numpy as np

from kofa.checks import flag
from kofa.data.scaling import Scaling
from kofa.errors import DataError
from kofa.inspection.matching import read_numbers
from kofa.inspection.weights import is_linear
from kofa.linalg import Array
from kofa.plot import style
from kofa.plot.parts import colour_bar, heatmap, largest
from kofa.plot.source import check_n, factors_of, view_of
from kofa.plot.weights import of_factor, tidy_weights


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
    their weights; values that are missing are hatched.

    Parameters
    ----------
    model : FactorModel
        What is drawn.
    data : dict of name → table, MuData or AnnData
        The samples.
    view : str
        The view.
    factor : name or position (the first is 0)
        The factor.
    n : int
        How many features.
    standardise : bool
        Show each feature, of a `Positive` view its logarithm, in its standard deviations from its
        mean; colours end at three at the latest.
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
    >>> ax = kofa.plot.data_heatmap(model, {"x": x}, "x", n=2)
    >>> ax.images[0].get_array().shape
    (2, 100)
    """
    _check_columns(model, view)
    rows, name = of_factor(tidy_weights(model, view, "standardised"), factor)
    order = np.argsort(-rows["value"].abs().to_numpy(), kind="stable")[: check_n(n)]
    rows = rows.iloc[order].sort_values("value", ascending=False, kind="stable")
    z, values = _ordered(model, data, view, name, rows["feature"].tolist())
    signed = flag("standardise", standardise)
    ax = style.axes(ax, style.height_for(len(rows), 0.14, 0.7))
    shown = _standardised(_as_modelled(model, view, values)) if signed else values
    most = largest(shown)
    image = heatmap(ax, shown.T, rows["feature"].tolist(), (), signed=signed,
                    limit=min(most, 3.0) if signed else most,
                    cmap=None if signed else style.VALUE)  # fmt: skip
    if not signed:
        image.set_clim(np.nanmin(shown), np.nanmax(shown))
    colour_bar(ax, image, "z score" if signed else "value",
               extend="both" if signed and most > 3.0 else "neither")  # fmt: skip
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


def _as_modelled(model: Any, view: Any, values: Array) -> Array:
    """Logarithms, where the model explains these."""
    scaling = getattr(model._fitted.view(view).encoder, "scaling", None)
    if scaling is None:
        return values
    return Scaling.identity(values.shape[1], scaling.unit).encode(values)


def _standardised(values: Array) -> Array:
    """In standard deviations from the mean, column by column; a constant column is zero."""
    known = np.ma.masked_invalid(values)
    spread = known.std(axis=0).filled(1.0)
    centred = (known - known.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.asarray(centred.filled(np.nan))
