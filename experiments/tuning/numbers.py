"""The numbers of `kofa.tuning`: what half and twice of them are, and who reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from kofa import tuning

SHARES = ("PRUNING_MARGIN", "UNLABELLED_GAIN")  # which stay below one
ABOVE = {"ROTATION_PACE": 1.0}  # the part above this is halved or doubled


def names() -> list[str]:
    """All numbers, in the order of the file."""
    return [name for name in vars(tuning) if name.isupper()]


def changed(name: str, times: float) -> Any:
    """A number at half or twice its value, or all of several.

    Of shares that add up to one, all but the largest are changed.
    """
    value = getattr(tuning, name)
    if isinstance(value, dict):
        largest = max(value, key=lambda key: float(value[key]))
        return {key: one if key == largest else times * one for key, one in value.items()}
    if isinstance(value, tuple):
        return tuple(times * one for one in value)
    if isinstance(value, int):
        return max(1, round(times * value))
    least = ABOVE.get(name, 0.0)
    new = least + times * (value - least)
    return 0.5 * (1.0 + value) if name in SHARES and new >= 1.0 else new


def shown(value: Any) -> str:
    """A number as the table has it."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple):
        return ", ".join(map(shown, value))
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}"


@contextmanager
def recorded() -> Iterator[set[str]]:
    """Names that are read of the module meanwhile."""
    read: set[str] = set()

    class Recording(ModuleType):
        def __getattribute__(self, name: str) -> Any:
            read.add(name)
            return super().__getattribute__(name)

    tuning.__class__ = Recording
    try:
        yield read
    finally:
        tuning.__class__ = ModuleType
