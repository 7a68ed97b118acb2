"""Names along an axis: as many of them as there is room for. Loads matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, Locator

from kofa.plot.style import LONGEST, SMALL, clipped

_LINE = 1.15  # height of a line, relative to its type
_LETTER = 0.6  # width of a letter, likewise


class NamesLocator(Locator):
    """The places of names, or every second, third, … where they would overlap.

    Names along x stand upright where they are long. The size of the axes is known when they are
    drawn, and may change.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.n = len(names)
        self.longest = (_LETTER * max(map(len, names), default=1) + 1.0) * SMALL

    def __call__(self) -> Any:
        return np.arange(0, self.n, self.step())

    def tick_values(self, vmin: float, vmax: float) -> Any:  # noqa: ARG002
        """What a Locator is asked for; the same whatever the limits are."""
        return self()

    def step(self) -> int:
        axis: Any = self.axis
        low, high = sorted(axis.get_view_interval())
        seen, length = min(self.n, max(high - low, 1.0)), max(_length(axis), 1.0)
        points = _LINE * SMALL  # that each name takes along the axis
        if axis.axis_name == "x":
            upright = self.longest * seen > 0.9 * length
            axis.set_tick_params(labelrotation=90.0 * upright)
            points = points if upright else self.longest
        return max(1, int(np.ceil(seen * points / length)))


def _length(axis: Any) -> float:
    """The length of an axis in points."""
    box = axis.axes.get_window_extent()
    pixels = box.width if axis.axis_name == "x" else box.height
    return float(72.0 * pixels / axis.get_figure().dpi)


def name_axis(axis: Any, names: Sequence[object], longest: int = LONGEST) -> None:
    """Names at 0, 1, … of an axis."""
    shown = [clipped(name, longest) for name in names]
    axis.set_tick_params(labelsize=SMALL, length=0)
    axis.set_major_locator(NamesLocator(shown))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _at(shown, value)))


def _at(names: Sequence[str], value: float) -> str:
    place = round(value)
    return names[place] if 0 <= place < len(names) and abs(value - place) < 1e-6 else ""
