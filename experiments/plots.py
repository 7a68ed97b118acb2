"""What the figures share: the style of `kofa.plot`, and how they are saved.

matplotlib is an extra and is imported only when something is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kofa.plot.style import COLOURS, COLUMN, MARKERS, PAGE, STYLE, bare, import_matplotlib
from kofa.storage.atomic import atomic_write

__all__ = ["COLOURS", "COLUMN", "MARKERS", "PAGE", "bare", "figure", "save"]
DPI = 300


@contextmanager
def figure(path: Path, width: float = COLUMN, height: float = 2.6) -> Iterator[Any]:
    """A figure of a size in inches, written to a PNG file when the block is done.

    The file appears whole or not at all; no window is opened and no state of matplotlib is changed.
    """
    with import_matplotlib().rc_context(STYLE):
        from matplotlib.figure import Figure

        drawn = Figure(figsize=(width, height), layout="constrained")
        yield drawn
        save(drawn, path)


def save(drawn: Any, path: Path) -> None:
    """Write a figure to a PNG file, whole or not at all."""
    with import_matplotlib().rc_context(STYLE), atomic_write(path) as part:
        drawn.savefig(part, dpi=DPI, format="png")
