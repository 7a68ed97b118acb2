"""How all plots look: sizes, type, colours, and the axes that they are drawn in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from kofa.errors import DeclarationError, visible

P = ParamSpec("P")
R = TypeVar("R")

# Okabe & Ito (2008): distinct with any kind of colour vision; black and yellow left out
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#555555")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # one for each colour, for print in grey
DASHES = ("-", "--", ":", "-.")  # likewise, of lines
MAIN, SECOND = COLOURS[0], COLOURS[1]
FAINT, GUIDE = "#BBBBBB", "#888888"  # what is there but does not count; lines to compare with
BAND = "#E4E4E4"
# Scales of colours: from zero on; of numbers; of either sign, where grey is zero. Each of them is
# lighter at one end than at the other, so that in print without colour signs can be seen.
AMOUNT, VALUE, SIGNED = "Blues", "viridis", "cividis"

COLUMN, PAGE = 3.4, 7.0  # widths of print in inches
TEXT, SMALL = 7.0, 6.5  # points
LONGEST = 24  # characters of a name
RASTER_FROM = 2000  # points or cells of which a vector file has a picture

STYLE: dict[Any, Any] = {
    "font.size": TEXT,
    "axes.titlesize": TEXT + 0.5,
    "axes.labelsize": TEXT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "legend.title_fontsize": SMALL,
    "legend.frameon": False,
    "legend.handletextpad": 0.4,
    "legend.borderaxespad": 0.2,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "hatch.linewidth": 0.4,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.dpi": 150.0,
    "savefig.dpi": 300.0,
}


def import_matplotlib() -> Any:
    """The module, or how to get it."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib: install it with pip install 'kofa[plot]'."
        ) from error
    return matplotlib


def drawing(function: Callable[P, R]) -> Callable[P, R]:
    """A function that draws in kofa's style, which ends with it."""

    @wraps(function)
    def in_style(*args: P.args, **options: P.kwargs) -> R:
        with import_matplotlib().rc_context(STYLE):
            return function(*args, **options)

    return in_style


# ---------------------------------------------------------------- where to draw


def axes(ax: Any, height: float = 2.4, width: float = COLUMN, **options: Any) -> Any:
    """The user's axes, or those of a new figure of a size in inches."""
    if ax is None:
        return figure(height, width).add_subplot(**options)
    if not hasattr(ax, "add_artist") or not hasattr(ax, "transData"):
        what = "expected ax to be the Axes of a figure"
        raise DeclarationError(what, got=ax, option="ax", cure="pass one from plt.subplots()")
    restyle(ax)
    return ax


def restyle(ax: Any) -> None:
    """Axes that were made in another style get sizes and lines of this one."""
    ax.tick_params(labelsize=SMALL, width=0.6, length=2.5)
    for axis in (ax.xaxis, ax.yaxis, getattr(ax, "zaxis", ax.xaxis)):
        axis.label.set_size(TEXT)
        axis.get_offset_text().set_size(SMALL)
    for name, spine in ax.spines.items():
        spine.set_linewidth(0.6)
        spine.set_visible(spine.get_visible() and name not in ("top", "right"))


def figure(height: float, width: float = COLUMN) -> Any:
    """A new figure of pyplot, which notebooks show."""
    from matplotlib import pyplot

    return pyplot.figure(figsize=(width, height), layout="constrained")


def height_for(rows: int, each: float = 0.14, rest: float = 0.7, most: float = 7.0) -> float:
    """The height in inches in which so many rows can be told apart."""
    return min(max(rest + each * rows, 1.2), most)


def height_of_names(names: Sequence[object], width: float = COLUMN) -> float:
    """The height in inches that names along x take, where they have to stand upright."""
    longest = max((min(len(str(name)), LONGEST) for name in names), default=0)
    letter = 0.6 * SMALL / 72.0
    return letter * longest if letter * (longest + 2) * len(names) > 0.7 * width else 0.0


def hatch_missing(ax: Any) -> None:
    """Where nothing is drawn over it the background is hatched: no value looks like that."""
    ax.set_facecolor("white")
    ax.patch.set(hatch="///////", edgecolor=FAINT, linewidth=0)


def bare(ax: Any) -> None:
    """No ticks and no frame, for a picture."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)


# ---------------------------------------------------------------- words and colours


def clipped(name: object, longest: int = LONGEST) -> str:
    """A name as text of a figure: not too long, and nothing in it is taken for a formula.

    The middle is left out, because names often differ at their ends.

    >>> clipped("a_name_that_goes_on_and_on_and_on_17", 16)
    'a_name_t…d_on_17'
    >>> clipped("$x$")
    '\\\\$x\\\\$'
    """
    text = visible(str(name))
    if len(text) > longest:
        tail = (longest - 1) // 2
        text = f"{text[: longest - 1 - tail]}…{text[len(text) - tail :]}"
    return text.replace("$", r"\$")


def colour(place: int) -> str:
    """The colour of the first, second, … of several things."""
    return COLOURS[place % len(COLOURS)]


def marker(place: int) -> str:
    """The marker that goes with it; another one where colours begin again."""
    return MARKERS[(place + place // len(COLOURS)) % len(MARKERS)]


def dashes(place: int) -> str:
    """The kind of line that goes with it."""
    return DASHES[place % len(DASHES)]


def point_size(n: int) -> float:
    """The area of a point among so many, in points²."""
    return min(max(3000.0 / max(n, 1), 1.5), 14.0)
