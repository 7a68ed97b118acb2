"""What kofa raises when the data or the declaration cannot be used, and how it warns."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from types import FrameType, MappingProxyType
from typing import Any, TypeVar

Other = TypeVar("Other", bound="KofaError")
_NOTHING = object()
_AS_IN_PYTHON: Mapping[str, str] = MappingProxyType({})
_LONGEST_SHOWN = 100  # characters of a value in a message
# What a terminal obeys instead of showing: control characters, and those that turn the direction
# of text. Halves of surrogate pairs stand for bytes of file names that are not UTF-8.
_HIDDEN = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")
# Packages that may stand between a user's line and a warning: this one, and those that call it.
_BETWEEN = ("kofa", "sklearn", "joblib", "contextlib")


class KofaError(Exception):
    """Root of all errors that kofa raises on purpose.

    The message is composed from the fields, here and nowhere else. A message without any field is
    shown as it is.

    Parameters
    ----------
    what : str
        What is wrong, such as "expected counts".
    view, column : names, or the position of a column
        Where it is wrong.
    got : any value
        Shown in the message behind "but got".
    option : str or None
        The parameter that has a wrong value.
    cure : str
        What to do about it, such as "round them". The attribute `cure` has all cures in one
        sentence, also those of `kinds` and `use`.
    kinds, use : sequences of str
        More cures: kinds of views to declare, such as "Count", and what to call instead, such as
        "predict_proba". Both have other names on the command line.
    source, line : the file, or the option of the command line, and the place in it
        Where it stands, if it came from there.

    Examples
    --------
    >>> print(DataError("expected counts", "reads", "gene1", got=-1, kinds=["Real"]))
    View 'reads', column 'gene1': expected counts but got -1; declare the view as kofa.Real().
    """

    def __init__(
        self,
        what: str = "",
        view: object = None,
        column: object = None,
        *,
        got: object = _NOTHING,
        option: str | None = None,
        cure: str = "",
        kinds: Sequence[str] = (),
        use: Sequence[str] = (),
        source: object = None,
        line: int | str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what if got is _NOTHING else f"{what} but got {shown(got)}"
        self.view, self.column, self.option = view, column, option
        self.advice, self.kinds, self.use = cure, tuple(kinds), tuple(use)
        self.source, self.line = source, line
        named = any(field is not None for field in (view, column, option, source))
        self.verbatim = got is _NOTHING and not (named or cure or kinds or use)

    def __str__(self) -> str:
        return self.message()

    @property
    def cure(self) -> str:
        """What to do about it, in the words of Python; empty where nothing is known."""
        return self._cures(_AS_IN_PYTHON)

    def message(self, words: Mapping[str, str] = _AS_IN_PYTHON) -> str:
        """The message; `words` has other names for what the cure speaks of."""
        if self.verbatim:
            return self.what
        place, cure = self._place(), self._cures(words)
        text = f"{place}: {self.what}" if place else f"{self.what[:1].upper()}{self.what[1:]}"
        text = f"{text}; {cure}" if cure else text
        return text if text.endswith(("?", ".")) else f"{text}."

    def _place(self) -> str:
        """Where it is: `x.csv, line 3, column 'a'`, `View 'x', column 'a'`, or both."""
        line = f"line {self.line}" if isinstance(self.line, int) else self.line
        column = None if self.column is None else f"column {self.column!r}"
        in_file = [None if self.source is None else str(self.source), line]
        in_view = [None if self.view is None else f"View {self.view!r}", column]
        groups = [in_file + in_view] if self.view is None else [in_file, in_view]
        return ": ".join(filter(None, (", ".join(filter(None, group)) for group in groups)))

    def _cures(self, words: Mapping[str, str]) -> str:
        kinds = " or ".join(words.get(kind, f"kofa.{kind}()") for kind in self.kinds)
        use = " or ".join(words.get(name, name) for name in self.use)
        cures = (self.advice, kinds and f"declare the view as {kinds}", use and f"use {use}")
        return ", or ".join(filter(None, cures))

    def as_error(self, kind: type[Other], **fields: Any) -> Other:
        """The same as another kind of error, with more fields known."""
        other = kind(self.what)
        vars(other).update(vars(self) | {"verbatim": False} | fields)
        return other


class DataError(KofaError, ValueError):
    """The data do not fit what was declared. The message names view, column and cure.

    Parameters
    ----------
    what, view, column, got, option, cure, kinds, use, source, line
        As in `kofa.KofaError`.

    Examples
    --------
    >>> import kofa
    >>> try:
    ...     kofa.FactorModel({"reads": kofa.Count()}).fit({"reads": [[1, 2], [3, -1]]})
    ... except kofa.DataError as error:
    ...     error.view, error.column
    ('reads', 1)
    """


class DeclarationError(KofaError, ValueError):
    """A model, view or kernel was declared with a value that it cannot have.

    Parameters
    ----------
    what, view, column, got, option, cure, kinds, use, source, line
        As in `kofa.KofaError`.

    Examples
    --------
    >>> import kofa
    >>> try:
    ...     kofa.FactorModel(n_factors=-3).fit({"x": [[1.0], [2.0]]})
    ... except kofa.DeclarationError as error:
    ...     error.option
    'n_factors'
    """


class FileError(KofaError, ValueError):
    """A file cannot be read or written.

    Parameters
    ----------
    what : str
        What is wrong.
    source : path
        The file.
    line : int, str or None
        The line in it, or a place in words.
    column : name or None
        The column.
    **fields
        As for `KofaError`.

    Examples
    --------
    >>> import kofa
    >>> try:
    ...     kofa.load("absent.kofa")
    ... except kofa.FileError as error:
    ...     "absent.kofa" in str(error)
    True
    """

    def __init__(
        self,
        what: str = "",
        source: object = None,
        line: int | str | None = None,
        column: object = None,
        **fields: Any,
    ) -> None:
        super().__init__(what, column=column, source=source, line=line, **fields)


def shown(value: Any) -> str:
    """A value for a message: in one line, not too long, whatever it is."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # an integer of thousands of digits
        return f"<{type(value).__name__} that is too large to print>"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def visible(text: str, lines: bool = False) -> str:
    """Text that no terminal takes for a command; it may have several lines if they are meant.

    >>> print(visible("red: \\x1b[31m"))
    red: \\x1b[31m
    """
    if lines:
        return "\n".join(map(visible, text.split("\n")))
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and point at the line of the user's own code that led here."""
    level, frame = 1, sys._getframe()
    while _is_between(frame) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_between(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__"))
    return module.partition(".")[0] in _BETWEEN
