"""Checks of values that users pass, and words for messages about them."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from inspect import signature
from os import PathLike
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np

from kofa.errors import DeclarationError
from kofa.errors import shown as shown

Init = TypeVar("Init", bound=Callable[..., None])
Made = TypeVar("Made")
_LONGEST_WORD = 200  # characters; comparing longer ones takes too long


def is_number(value: Any) -> bool:
    """Whether a value is a finite real number that a float can hold; True is not."""
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    try:
        return real and math.isfinite(value)
    except OverflowError:
        return False


def is_whole(value: Any, least: int) -> bool:
    """Whether a value is an integer of at least `least` that can be the size of an array."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and least <= int(value) < 2**63


def is_among(value: Any, known: Iterable[Any]) -> bool:
    """Whether a value is one of those known; a list or an array is not."""
    try:
        return value in known if isinstance(known, Mapping) else value in set(known)
    except TypeError:  # it cannot be hashed
        return False


def require(
    fine: bool, option: str, expected: str, value: Any, view: object = None, cure: str = ""
) -> None:
    """Raise unless the value of an option is fine; say what was expected."""
    if not fine:
        what = f"expected {option} to be {expected}"
        raise DeclarationError(what, view, got=value, option=option, cure=cure)


def check_word(option: str, value: Any, words: Sequence[Any], view: object = None) -> None:
    """Raise unless the value of an option is one of a few, such as "auto", True or None."""
    cure = hint(value, words) if isinstance(value, str) else ""
    require(_is_word(value, words), option, _alternatives(words), value, view, cure)


def check_number(
    option: str,
    value: Any,
    words: Sequence[Any] = (),
    view: object = None,
    *,
    whole: bool = False,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
) -> None:
    """Raise unless the value of an option is a number within limits, or one of `words`."""
    within = is_whole(value, 0) if whole else is_number(value)
    within = within and (least is None or value >= least) and (above is None or value > above)
    within = within and (most is None or value <= most)
    limits = {"of at least": least, "above": above or None, "of at most": most}
    said = " and ".join(f"{how} {at:g}" for how, at in limits.items() if at is not None)
    kind = "positive " * (above == 0) + "whole " * whole
    number = f"a {kind}number{said and ' '}{said}"
    require(within or _is_word(value, words), option, _alternatives(words, number), value, view)


def check_path(path: Any) -> None:
    """Raise unless it is a path; an integer would be taken for an open file."""
    if not isinstance(path, str | PathLike):
        cure = "write such as 'model.kofa'"
        raise DeclarationError("expected the path of a file", got=path, option="path", cure=cure)


def flag(option: str, value: Any) -> bool:
    """A value as True or False, or an error where it is neither, such as an array."""
    try:
        return bool(value)
    except (TypeError, ValueError):
        what = f"expected {option} to be True or False"
        raise DeclarationError(what, got=value, option=option) from None


def _is_word(value: Any, words: Sequence[Any]) -> bool:
    """Whether a value is one of a few; 1 is not True, and an array is not compared."""
    value = bool(value) if isinstance(value, np.bool_) else value
    return any(isinstance(value, type(word)) and value == word for word in words)


def _alternatives(words: Sequence[Any], *more: str) -> str:
    """A choice in words.

    >>> _alternatives(["auto", None], "a number")
    "a number, 'auto' or None"
    """
    *others, last = [*more, *map(repr, words)]
    return f"{', '.join(others)} or {last}" if others else last


def listed(names: Iterable[object], most: int = 8) -> str:
    """Names for a message, the first few of many."""
    known = [repr(name) for name in names]
    return ", ".join(known[:most]) + (f", … ({len(known)} in all)" if len(known) > most else "")


def hint(word: object, known: Iterable[object], otherwise: str = "") -> str:
    """A cure for a wrong word: the known one most like it, or behind `otherwise` all of them.

    >>> hint("kernal", ["kernel", "kind"])
    "did you mean 'kernel'?"
    >>> hint("RBF", ["linear", "rbf"])
    "did you mean 'rbf'?"
    >>> hint("colour", ["kernel", "kind"], "there are")
    "there are 'kernel', 'kind'"
    """
    known = list(known)
    by_word = {str(one).lower(): one for one in known if len(str(one)) <= _LONGEST_WORD}
    found = most_like(str(word).lower(), by_word)
    if found is not None:
        return f"did you mean {by_word[found]!r}?"
    return otherwise and f"{otherwise} {listed(known) or 'none'}"


def most_like(word: str, known: Collection[str]) -> str | None:
    """The known word that one with a slip was meant to be, if any is like it."""
    if word in known:
        return word
    if not 1 < len(word) <= _LONGEST_WORD:  # one letter is like too many words
        return None
    longer = [one for one in known if len(one) > 1]
    return next(iter(difflib.get_close_matches(word, longer, n=1)), None)


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
                    cure = f"did you mean {meant!r}?" if meant else hint(name, known, "there are")
                    raise TypeError(
                        f"{type(self).__name__}() got an unexpected keyword argument "
                        f"{name!r}; {cure}"
                    )
            init(self, *args, **options)

        return cast(Init, hinting)

    return decorate


def hinting(also: Mapping[str, str] = MappingProxyType({})) -> Callable[[type[Made]], type[Made]]:
    """A class whose constructor does so; for dataclasses, which write their own."""

    def decorate(cls: type[Made]) -> type[Made]:
        setattr(cls, "__init__", with_hints(also)(cls.__init__))  # noqa: B010
        return cls

    return decorate


def check_n_jobs(n_jobs: Any) -> None:
    """Raise unless it is a number of workers as joblib takes it."""
    whole = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    fine = n_jobs is None or (whole and n_jobs != 0)
    require(fine, "n_jobs", "a whole number other than 0, or None", n_jobs)


def generator(random_state: Any) -> np.random.Generator:
    """The source of everything random, of a seed or a generator; None is a fixed seed."""
    try:
        return np.random.default_rng(0 if random_state is None else random_state)
    except (TypeError, ValueError):
        what = "expected random_state to be a seed, a numpy Generator or None"
        raise DeclarationError(what, got=random_state, option="random_state") from None
