"""What kofa raises when the data or the declaration cannot be used, and how it warns."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

# Packages that may stand between a user's line and a warning: this one, and those that call it.
_BETWEEN = ("kofa", "sklearn", "joblib", "contextlib")


class KofaError(Exception):
    """Root of all errors that kofa raises on purpose."""


class DataError(KofaError, ValueError):
    """The data do not fit what was declared. The message names view, column and cure."""


class DeclarationError(KofaError, ValueError):
    """A model, view or kernel was declared with a value that means nothing."""


class FileError(KofaError, ValueError):
    """A file cannot be read or written."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and point at the line of the user's own code that led here."""
    level, frame = 1, sys._getframe()
    while _is_between(frame) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_between(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__"))
    return module.partition(".")[0] in _BETWEEN
