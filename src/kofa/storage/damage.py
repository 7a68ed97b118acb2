"""The error for files that are not as kofa writes them."""

from __future__ import annotations

from reprlib import Repr
from typing import Any

from kofa.errors import FileError

_short = Repr()
_short.maxstring = _short.maxother = 60


class DamageError(FileError):
    """Something in a file is not as kofa writes it. `archive.naming_file` adds which file."""


def require(condition: bool, problem: str) -> None:
    """Raise, with the problem as message, unless something read from a file is as it should be."""
    if not condition:
        raise DamageError(problem)


def excerpt(value: Any) -> str:
    """The beginning of a value from a file, for a message; the rest is not looked at."""
    return _short.repr(value)
