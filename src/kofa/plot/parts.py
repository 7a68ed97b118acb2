"""What several plots draw: heat maps, points with names, legends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from kofa.linalg import Array, IntArray
from kofa.plot import style

_LETTER, _LINE = 0.62, 1.3  # size of a letter with its surroundings, relative to its type
_APART = 3.0  # points between a name and what it names


# ---------------------------------------------------------------- heat maps


def heatmap(
    ax: Any,
    values: Array,
    rows: Sequence[object],
    columns: Sequence[object],
    *,
    label: str = "",
    signed: bool = False,
    limit: float | None = None,
    cmap: str | None = None,
) -> Any:
    """Rows downwards, columns to the right; where there is no value it is hatched.

    Colours are centred at zero if signed; else they begin there. `limit` is the value of the
    strongest colour; None is the largest there is.
    """
    from kofa.plot.ticks import name_axis

    limit = largest(values) if limit is None else limit
    style.hatch_missing(ax)
    image = ax.imshow(
        np.ma.masked_invalid(values),
        aspect="auto",
        interpolation="nearest",
        cmap=cmap or (style.SIGNED if signed else style.AMOUNT),
        vmin=-limit if signed else 0.0,
        vmax=limit,
    )
    name_axis(ax.yaxis, rows)
    name_axis(ax.xaxis, columns)
    ax.spines[:].set_visible(False)
    if label:
        colour_bar(ax, image, label)
    return image


def heat_axes(
    ax: Any,
    rows: Sequence[object],
    columns: Sequence[object],
    wide: float = 0.17,
    least: float = 0.0,
    most: float = 7.0,
) -> Any:
    """Axes in which the rows and columns of a heat map, and their names, have room.

    In inches: `wide` and `least` are what a column has and what it needs, for which a figure may
    become as wide as a page; `most` is the height of all rows.
    """
    names = max((min(len(str(name)), style.LONGEST) for name in rows), default=0)
    left = 0.055 * names + 0.8  # and a scale of colours
    needed = min(left + least * len(columns), style.PAGE)
    width = max(min(left + wide * len(columns), style.COLUMN), needed, 2.2)
    rest = 0.3 + max(style.height_of_names(columns, width - left), 0.2)
    height = min(style.height_for(len(rows), 0.14, rest), most + rest)
    return style.axes(ax, max(height, rest + 0.9), width)


def largest(values: Array) -> float:
    """The largest size of a value, of which a scale of colours can be made."""
    size = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    return float(size) if size > 0 else 1.0


def colour_bar(ax: Any, shown: Any, label: str, **options: Any) -> Any:
    """A scale of colours beside the axes, or beside several."""
    first = ax[0] if isinstance(ax, list) else ax
    tall = size_in_points(first)[1] / 72.0
    shrink = min(0.8, max(1.6 / max(tall, 0.1), 0.1))
    look = {"shrink": shrink, "aspect": 15, "pad": 0.02} | options
    bar = first.get_figure().colorbar(shown, ax=ax, **look)
    bar.set_label(in_lines(label, max(int(tall / 0.065), 8)))
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=style.SMALL, length=2)
    return bar


def in_lines(text: object, longest: int) -> str:
    """Words in as many lines as they need; a word that is too long is clipped.

    >>> in_lines("standardised weight", 14)
    'standardised\\nweight'
    """
    lines = [""]
    for word in str(text).split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > longest:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(style.clipped(line, longest) for line in lines[:2])


def write_in_cells(ax: Any, texts: Sequence[Sequence[str]], dark: Any) -> None:
    """Text in each cell of a heat map, white where the cell is dark; not where it is too wide."""
    longest = max((len(text) for row in texts for text in row), default=0)
    if _LETTER * style.SMALL * longest > 1.5 * size_in_points(ax)[0] / max(len(texts[0]), 1):
        return
    for i, row in enumerate(texts):
        for j, text in enumerate(row):
            ink = "white" if dark[i][j] else "black"
            ax.text(j, i, text, ha="center", va="center_baseline", color=ink, fontsize=style.SMALL)


def is_dark(image: Any) -> Any:
    """Which cells of a heat map are dark."""
    red, green, blue = np.moveaxis(image.to_rgba(image.get_array())[..., :3], -1, 0)
    return 0.299 * red + 0.587 * green + 0.114 * blue < 0.5


# ---------------------------------------------------------------- points


def points(ax: Any, x: Array, y: Array, **options: Any) -> Any:
    """A scatter whose points are small if there are many, and a picture in vector files."""
    n = len(x)
    look = {
        "s": style.point_size(n),
        "linewidths": 0,
        "color": style.MAIN,
        "rasterized": n > style.RASTER_FROM,
    }
    return ax.scatter(x, y, **look | options)


def zero_lines(ax: Any, x: bool = True, y: bool = True) -> None:
    """Thin lines where a value is zero."""
    look = {"color": style.GUIDE, "linewidth": 0.5, "zorder": 0}
    if x:
        ax.axvline(0.0, **look)
    if y:
        ax.axhline(0.0, **look)


def size_in_points(ax: Any) -> tuple[float, float]:
    """Width and height of axes, with all that is drawn so far laid out."""
    figure = ax.get_figure()
    if figure.get_layout_engine() is not None:
        figure.get_layout_engine().execute(figure)
    box, dpi = ax.get_window_extent(), figure.dpi
    return 72.0 * box.width / dpi, 72.0 * box.height / dpi


Box = tuple[float, float, float, float]  # left, right, bottom, top


def name_points(ax: Any, x: Array, y: Array, names: Sequence[object], order: IntArray) -> None:
    """Names beside some points, those first in the order first.

    One that would lie over another, over many points or beyond the axes is left out.
    """
    if not len(x):
        return
    size = np.array(size_in_points(ax))
    low = np.array([ax.get_xlim()[0], ax.get_ylim()[0]])
    high = np.array([ax.get_xlim()[1], ax.get_ylim()[1]])
    at = (np.column_stack([x, y]) - low) / (high - low) * size
    taken: list[Box] = []
    for place in order:
        text = style.clipped(names[place], 18)
        found = _free_side(at, int(place), text, size, taken)
        if found is not None:
            side, box = found
            taken.append(box)
            _annotate(ax, text, (x[place], y[place]), side)


# Where a name may stand beside its point: in the direction of x and of y.
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1))
_CROWDED = 3  # points under a name that is left out


def _free_side(
    at: Array, place: int, text: str, size: Array, taken: Sequence[Box]
) -> tuple[tuple[int, int], Box] | None:
    """The side of a point on which its name covers the fewest points, and no name."""
    boxes = {side: _box(at[place], side, len(text)) for side in _SIDES}
    free = {
        side: _covered(at, box)
        for side, box in boxes.items()
        if _inside(box, size) and not any(_overlap(box, other) for other in taken)
    }
    side = min(free, key=lambda one: free[one], default=None)
    return None if side is None or free[side] >= _CROWDED else (side, boxes[side])


def _box(at: Array, side: tuple[int, int], letters: int) -> Box:
    half_width, half_height = 0.5 * _LETTER * style.SMALL * letters, 0.5 * _LINE * style.SMALL
    x = at[0] + side[0] * (half_width + _APART)
    y = at[1] + side[1] * (half_height + _APART)
    return x - half_width, x + half_width, y - half_height, y + half_height


def _inside(box: Box, size: Array) -> bool:
    return bool(box[0] >= 0 and box[1] <= size[0] and box[2] >= 0 and box[3] <= size[1])


def _covered(at: Array, box: Box) -> int:
    left, right, bottom, top = box
    x, y = at.T
    return int(((x > left) & (x < right) & (y > bottom) & (y < top)).sum())


def _annotate(ax: Any, text: str, at: tuple[float, float], side: tuple[int, int]) -> None:
    from matplotlib.patheffects import withStroke

    ax.annotate(
        text, at, (_APART * side[0], _APART * side[1]), textcoords="offset points",
        ha={1: "left", -1: "right", 0: "center"}[side[0]],
        va={1: "bottom", -1: "top", 0: "center"}[side[1]],
        fontsize=style.SMALL, path_effects=[withStroke(linewidth=1.5, foreground="white")],
    )  # fmt: skip


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def spread_out(places: Array, gap: float, low: float, high: float) -> Array:
    """Ascending places moved apart as little as their order allows, within limits.

    >>> spread_out(np.array([0.5, 0.5]), 0.2, 0.0, 1.0).round(1).tolist()
    [0.4, 0.6]
    """
    n = len(places)
    if not n:
        return places
    offset = gap * np.arange(n)
    # Without the gaps the places may meet but not change their order: an isotonic regression.
    level = isotonic_regression(np.asarray(places, dtype=float) - offset)
    top = max(low, high - gap * (n - 1))
    return np.asarray(np.clip(level, low, top) + offset)


# ---------------------------------------------------------------- legends


def legend(ax: Any, title: str | None = None, **options: Any) -> Any:
    """A legend beside the axes, where it covers nothing."""
    look = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "alignment": "left"} | options
    return ax.legend(title=title and style.clipped(title, 18), **look)
