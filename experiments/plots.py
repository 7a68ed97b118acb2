"""What the figures share: size, type, colours, and how they are saved.

matplotlib is an extra and is imported only when something is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kofa.storage.atomic import atomic_write

# Okabe & Ito (2008): distinct with any kind of colour vision; black and yellow left out
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#555555")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SEQUENTIAL = "cividis"  # for amounts
DIVERGING = "PuOr"  # for what may be of either sign
COLUMN, PAGE = 3.5, 7.2  # widths of print in inches
DPI = 300

_STYLE: dict[Any, Any] = {
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "image.interpolation": "nearest",
}


@contextmanager
def figure(path: Path, width: float = COLUMN, height: float = 2.6) -> Iterator[Any]:
    """A figure of a size in inches, written to a PNG file when the block is done.

    The file appears whole or not at all; no window and no state of matplotlib is touched.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Figures need matplotlib: install it with pip install 'kofa[plot]'."
        ) from error
    with rc_context(_STYLE):
        drawn = Figure(figsize=(width, height), layout="constrained")
        yield drawn
        with atomic_write(path) as part:
            drawn.savefig(part, dpi=DPI, format="png")


def bare(axes: Any) -> None:
    """No ticks and no frame, for a picture."""
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def heatmap(axes: Any, values: Any, columns: list[str], **options: Any) -> Any:
    """Rows as they come, down; the names of the columns upright enough to read."""
    image = axes.imshow(values, aspect="auto", **options)
    axes.set_xticks(range(len(columns)), columns)
    axes.tick_params(length=0)
    return image
