"""Whether a value that a user passes is what it should be, and how to speak of it if not."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import signature
from os import PathLike
from typing import Any, TypeVar, cast

import numpy as np

from kofa.errors import DeclarationError

Init = TypeVar("Init", bound=Callable[..., None])
_LONGEST_WORD = 200  # characters; comparing longer ones takes too long
_LONGEST_SHOWN = 100  # characters of a value in a message


def is_number(value: Any) -> bool:
    """Whether a value is a finite real number that a float can hold; True is none."""
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    try:
        return real and math.isfinite(value)
    except OverflowError:
        return False


def is_whole(value: Any, least: int) -> bool:
    """Whether a value is an integer of at least so much, which an array could have as its size."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and least <= int(value) < 2**63


def is_among(value: Any, known: Iterable[Any]) -> bool:
    """Whether a value is one of those known; it may be anything, such as a list or an array."""
    try:
        return value in known if isinstance(known, Mapping) else value in set(known)
    except TypeError:  # it cannot even be hashed
        return False


def check_path(path: Any) -> None:
    """Raise unless it is a path; an integer would be taken for an open file."""
    if not isinstance(path, str | PathLike):
        raise DeclarationError(f"Expected the path of a file but got {shown(path)}.")


def flag(option: str, value: Any) -> bool:
    """A value as True or False, or an error where it is neither, such as an array."""
    try:
        return bool(value)
    except (TypeError, ValueError):
        raise DeclarationError(
            f"Expected {option} to be True or False but got {shown(value)}."
        ) from None


def shown(value: Any) -> str:
    """A value for a message: in one line, not too long, whatever it is."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # an integer of thousands of digits
        return f"<{type(value).__name__} that is too large to print>"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def nearest(word: object, known: Iterable[object]) -> str:
    """The end of a sentence that offers the known word most like a wrong one, if any is.

    >>> nearest("kernal", ["kernel", "kind"])
    "; did you mean 'kernel'?"
    >>> nearest("RBF", ["linear", "rbf"])
    "; did you mean 'rbf'?"
    >>> nearest("colour", ["kernel", "kind"])
    ''
    """
    short = {str(one).lower(): str(one) for one in known if len(str(one)) <= _LONGEST_WORD}
    asked = str(word).lower()
    found = difflib.get_close_matches(asked, short, n=1) if len(asked) <= _LONGEST_WORD else []
    return f"; did you mean {short[found[0]]!r}?" if found else ""


def with_hints(also: Mapping[str, str]) -> Callable[[Init], Init]:
    """A constructor that offers the nearest of its parameters for one that it does not have.

    `also` has names of other tools. It stays a TypeError, as from any Python function.
    """

    def decorate(init: Init) -> Init:
        known = [name for name in signature(init).parameters if name != "self"]

        @wraps(init)
        def hinting(self: Any, *args: Any, **options: Any) -> None:
            for name in options:
                if name not in known:
                    meant = also.get(name)
                    hint = f"; did you mean {meant!r}?" if meant else nearest(name, known)
                    raise TypeError(
                        f"{type(self).__name__}() got an unexpected keyword argument "
                        f"{name!r}{hint or '.'}"
                    )
            init(self, *args, **options)

        return cast(Init, hinting)

    return decorate
