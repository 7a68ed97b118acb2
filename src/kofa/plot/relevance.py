"""Plots of what matters in a view: features, samples, kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kofa.checks import is_whole
from kofa.errors import DataError, DeclarationError
from kofa.kernels.kernel_map import KernelMap
from kofa.linalg import Array
from kofa.plot import style
from kofa.plot.parts import colour_bar, largest, name_points, points, zero_lines
from kofa.plot.source import check_n, factor_name, factors_of, in_order, is_table, table_of
from kofa.results.answers import given

# ---------------------------------------------------------------- features


@style.drawing
def feature_relevance(
    model: Any,
    view: Any = None,
    *,
    n: int = 20,
    image_shape: Sequence[int] | None = None,
    ax: Any = None,
) -> Any:
    """The relevance of the features of a view: bars of the largest, or all as an image.

    Features that were switched off are grey.

    Parameters
    ----------
    model : FactorModel, or the table from ``model.feature_relevance(view)``
        What is drawn.
    view : str
        The view.
    n : int
        How many bars.
    image_shape : (rows, columns), or None
        The features are the pixels of an image of this shape, row by row.
    ax : Axes or None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd, kofa
    >>> table = pd.DataFrame({"feature": [1, 0], "relevance": [2.0, 0.5], "selected": True})
    >>> ax = kofa.plot.feature_relevance(table)
    >>> [float(bar.get_width()) for bar in ax.patches]
    [2.0, 0.5]
    >>> ax = kofa.plot.feature_relevance(table, image_shape=(1, 2))
    >>> ax.images[0].get_array().tolist()
    [[0.5, 2.0]]
    """
    fields = ("feature", "relevance", "selected")
    table = table_of(model, "feature_relevance", fields, view)
    if image_shape is not None:
        return _draw_image(table, _shape(image_shape, len(table)), _columns(model, view), ax)
    rows = table.iloc[: check_n(n)]
    colours = [style.MAIN if on else style.FAINT for on in rows["selected"]]
    ax = _bars(ax, rows["feature"].tolist(), rows["relevance"].to_numpy(float), colours)
    ax.set_xlabel(f"relevance, {len(rows)} of {len(table):,} features")
    return ax


def _bars(ax: Any, names: list[Any], values: Array, colours: list[str]) -> Any:
    """Horizontal bars with names, the first on top."""
    from kofa.plot.ticks import name_axis

    ax = style.axes(ax, style.height_for(len(names), 0.15, 0.5))
    ax.barh(np.arange(len(names)), values, 0.75, color=colours)
    ax.set_ylim(len(names) - 0.5, -0.5)
    name_axis(ax.yaxis, names)
    return ax


def _shape(shape: Any, n: int) -> tuple[int, int]:
    pair = tuple(shape) if np.ndim(shape) == 1 else ()
    fine = len(pair) == 2 and all(is_whole(one, 1) for one in pair) and pair[0] * pair[1] == n
    if not fine:
        what = f"expected image_shape to be two whole numbers whose product is {n}, as many"
        raise DeclarationError(f"{what} features as there are,", got=shape, option="image_shape")
    return int(pair[0]), int(pair[1])


def _columns(model: Any, view: Any) -> list[Any] | None:
    """The features in the order of the data, where they have names."""
    inputs = None if is_table(model) else model.views_[view].inputs
    return None if inputs is None else list(inputs)


def _draw_image(table: Any, shape: tuple[int, int], columns: list[Any] | None, ax: Any) -> Any:
    """Pixels in the order of the columns of the view; of a table, in that of their names."""
    by_feature = table.set_index("feature")["relevance"]
    by_feature = by_feature.sort_index() if columns is None else by_feature.loc[columns]
    values = by_feature.to_numpy(float).reshape(shape)
    ax = style.axes(ax, min(max(2.7 * shape[0] / shape[1] + 0.2, 0.9), 4.0))
    look = {"cmap": style.AMOUNT, "vmin": 0.0, "vmax": largest(values)}
    image = ax.imshow(values, interpolation="nearest", **look)
    style.bare(ax)
    colour_bar(ax, image, "relevance")
    return ax


# ---------------------------------------------------------------- samples


@style.drawing
def relevance_vectors(
    model: Any, view: Any, x: Any = 0, y: Any = 1, *, names: bool = False, ax: Any = None
) -> Any:
    """Where the relevance vectors of a view are among the samples, in the plane of two factors.

    The area of a relevance vector grows with its relevance. Grey points are the other samples.

    Parameters
    ----------
    model : FactorModel
        What is drawn.
    view : str
        A view with a kernel that is declared with ``sparse=True``.
    x, y : name or position (the first is 0) of a factor
        A model with one factor has samples in the order of the fit along x.
    names : bool
        Write the names of relevance vectors beside them, where there is room.
    ax : Axes or None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np, kofa
    >>> x = np.linspace(-3, 3, 60)[:, None]
    >>> views = {"x": kofa.Real(kernel="rbf", sparse=True), "y": kofa.Real()}
    >>> model = kofa.FactorModel(views, outputs=["y"]).fit({"x": x, "y": np.sin(x)})
    >>> ax = kofa.plot.relevance_vectors(model, "x")
    >>> kept = model.relevance_vectors("x").kept.sum()
    >>> bool(len(ax.collections[1].get_offsets()) == kept)
    True
    """
    table = model.relevance_vectors(view)
    kept = table[table["kept"]]
    found = factors_of(model)
    chosen = [factor_name(found.columns, one) for one in (x, y)[: found.shape[1]]]
    across, up = _plane(found, chosen)
    rows = found.index.get_indexer(kept["sample"])
    relevance = kept["relevance"].to_numpy(float).clip(0.0)
    area = 12.0 + 60.0 * relevance / max(float(relevance.max(initial=0.0)), np.finfo(float).tiny)
    ax = style.axes(ax, 2.6)
    points(ax, across, up, color=style.FAINT)
    points(
        ax, across[rows], up[rows], s=area, color="none", edgecolors=style.SECOND, linewidths=1.0
    )
    zero_lines(ax, x=len(chosen) > 1)
    ax.set_xlabel("sample" if len(chosen) == 1 else style.clipped(chosen[0], 30))
    ax.set_ylabel(style.clipped(chosen[-1], 30))
    ax.set_title(f"{len(kept)} relevance vectors of {len(found):,} samples", loc="left")
    if names:
        ax.autoscale_view()
        name_points(ax, across[rows], up[rows], kept["sample"].tolist(), np.arange(len(kept)))
    return ax


def _plane(found: Any, names: list[Any]) -> tuple[Array, Array]:
    values = [found[name].to_numpy() for name in names]
    return (np.arange(float(len(found))), values[0]) if len(values) == 1 else (values[0], values[1])


# ---------------------------------------------------------------- kernels


@style.drawing
def kernel_weights(model: Any, output: str | None = None, ax: Any = None) -> Any:
    """The share of each kernel in the factors, or in the predictions of an output.

    Parameters
    ----------
    model : FactorModel, or the table from ``model.kernel_weights()``
        What is drawn.
    output : str or None
        The output; None is the share in the factors.
    ax : Axes or None
        Where to draw; None is a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd, kofa
    >>> table = pd.DataFrame({"view": "x", "kernel": ["RBF", "Linear"], "weight": [0.7, 0.3]})
    >>> ax = kofa.plot.kernel_weights(table)
    >>> [float(bar.get_width()) for bar in ax.patches]
    [70.0, 30.0]
    """
    table = table_of(model, "kernel_weights", ("view", "kernel", "weight"), output)
    views = in_order(table["view"])
    names = [
        row.view if row.kernel == "none" else f"{style.clipped(row.view, 14)}, {row.kernel}"
        for row in table.itertuples()
    ]
    colours = [style.colour(views.index(view)) for view in table["view"]]
    ax = _bars(ax, names, 100.0 * table["weight"].to_numpy(float), colours)
    ax.set_xlim(0.0, 100.0)
    ax.set_xlabel("share (%)" if output is None else f"share in {style.clipped(output)} (%)")
    return ax


@style.drawing
def kernel(model: Any, data: Any, view: Any, by: Any = 0) -> Any:
    """A kernel, what the factors say of it, and the difference: three images with one scale.

    Rows are samples and columns landmarks, both in the order of a factor. Similarities are centred.

    Parameters
    ----------
    model : FactorModel
        What is drawn.
    data : dict of name → table, MuData or AnnData
        The samples.
    view : str
        A view with a kernel.
    by : name or position (the first is 0) of a factor, or None
        What samples are ordered by; None leaves them as they are.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import numpy as np, kofa
    >>> x = np.linspace(-2, 2, 40)[:, None]
    >>> model = kofa.FactorModel({"x": kofa.Real(kernel="rbf")}).fit({"x": x})
    >>> figure = kofa.plot.kernel(model, {"x": x}, "x")
    >>> [ax.get_title() for ax in figure.axes[:3]]
    ['kernel', 'reconstruction', 'error']
    """
    similarity, back = similarities(model, data, view)
    if by is not None:
        found = factors_of(model, data)
        z = found[factor_name(found.columns, by)].to_numpy()
        rows = np.argsort(z, kind="stable")
        columns = np.argsort(_nearest_rank(similarity, rows), kind="stable")
        similarity, back = (one[rows][:, columns] for one in (similarity, back))
    figure = style.figure(2.2, style.PAGE)
    draw_kernel(figure.subplots(1, 3, sharex=True, sharey=True), similarity, back)
    return figure


def similarities(model: Any, data: Any, view: Any) -> tuple[Array, Array]:
    """Centred similarities of samples to landmarks, and their reconstruction, (n, R) each."""
    fitted = model._fitted
    one = fitted.view(view)
    if not isinstance(one.encoder, KernelMap):
        raise DataError("expected a view with a kernel", view, use=["plot.data_heatmap"])
    found = given(fitted, data)
    if view not in found.tables:
        raise DataError(f"data have no view {view!r}")
    values = np.asarray(found.samples.spread(found.tables[view]))
    seen = ~np.isnan(values).all(axis=1)
    similarity = np.full((len(values), len(one.encoder.V)), np.nan)
    similarity[seen] = one.encoder.scale * one.encoder.encode(values[seen])
    return similarity, np.asarray(model.reconstruct(data, view), dtype=float)


def _nearest_rank(similarity: Array, rows: Any) -> Array:
    """For each landmark, the mean rank of samples that are like it."""
    like = np.nan_to_num(similarity[rows]).clip(0.0)
    total = np.maximum(like.sum(axis=0), np.finfo(float).tiny)
    return np.asarray(np.arange(len(rows)) @ like / total)


def draw_kernel(panels: Any, similarity: Array, back: Array) -> None:
    """Three images in three axes, with a scale of colours that they share."""
    limit = float(np.nanquantile(np.abs(similarity), 0.99)) or 1.0
    titles = ("kernel", "reconstruction", "error")
    for ax, title, matrix in zip(
        panels, titles, (similarity, back, similarity - back), strict=True
    ):
        style.hatch_missing(ax)
        image = ax.imshow(
            np.ma.masked_invalid(matrix), cmap=style.SIGNED, vmin=-limit, vmax=limit,
            aspect="auto", interpolation="nearest",
        )  # fmt: skip
        ax.set_title(title)
        ax.set_xlabel(f"{matrix.shape[1]:,} landmarks")
        ax.set_xticks([])
        ax.set_yticks([])
    panels[0].set_ylabel(f"{len(similarity):,} samples")
    colour_bar(list(panels), image, "centred similarity", extend="both")
