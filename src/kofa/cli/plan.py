"""What is to be read and fitted, and the checks of it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from kofa import kernels
from kofa.cli import UsageError
from kofa.errors import DataError, DeclarationError, KofaError, warn
from kofa.files import Reading, hint, open_file, read_file, read_stdin
from kofa.kernels.declared import as_kernels
from kofa.kernels.landmarks import Landmarks
from kofa.model import FactorModel
from kofa.views import (
    DISTRIBUTIONS,
    OLD_NAMES,
    Binary,
    Categorical,
    Count,
    Positive,
    Real,
    View,
    in_one_option,
    instead_of_old_names,
)

KINDS: dict[str, type[View]] = {
    "real": Real,
    "positive": Positive,
    "binary": Binary,
    "categorical": Categorical,
    "count": Count,
}
KERNELS: dict[str, Any] = {
    "rbf": kernels.RBF,
    "linear": kernels.Linear,
    "laplacian": kernels.Laplacian,
    "polynomial": kernels.Polynomial,
    "diffusion": kernels.Diffusion,
    "precomputed": kernels.Precomputed,
    "mixture": kernels.Mixture,
}
_NOT_IN_A_FILE = (
    "self", "views", "callback", "progress", "checkpoint", "checkpoint_every", "n_jobs",
)  # fmt: skip
MODEL_KEYS = [k for k in inspect.signature(FactorModel).parameters if k not in _NOT_IN_A_FILE]
_MARKS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
_IN_CELLS = {"sep": '"\r\n+-', "decimal": '"\r\n+- \t'}  # beside letters and digits
STDIN = Path("-")  # this object, not a file of the name


@dataclass(frozen=True)
class Source:
    """Where the table of a view is, and how it is read."""

    file: Path
    reading: Reading = field(default_factory=Reading)
    kind: str | None = None

    @property
    def name(self) -> str:
        """How to call it in a message."""
        return "stdin" if self.file is STDIN else str(self.file)

    def read(self, stored: bool = False) -> Any:
        """The table; where it can be, and is to be, `stored` in a file."""
        if self.file is STDIN:
            return read_stdin(self.reading)
        opened = open_file(self.file, self.reading) if stored else None
        if opened is not None:
            return opened
        return read_file(self.file, self.reading)

    def replaced_by(self, other: Source) -> Source:
        """Another file, read as this one except for the options given for the other."""
        said = {
            one.name: getattr(other.reading, one.name)
            for one in fields(Reading)
            if getattr(other.reading, one.name) != one.default
        }
        return replace(self, file=other.file, reading=replace(self.reading, **said))


@dataclass(frozen=True)
class Plan:
    """A model and the tables to fit it to."""

    views: dict[str, View]
    sources: dict[str, Source]
    model: dict[str, Any]
    located: Callable[[KofaError], KofaError] | None = None  # an error with its line in the study
    given: frozenset[str] = frozenset()  # options of the model that the command line gave

    @contextmanager
    def naming_study(self) -> Iterator[None]:
        """Name the place in the study of an error about what it declares."""
        try:
            yield
        except DeclarationError as error:
            if self.located is None or error.option in {*_NOT_IN_A_FILE, *self.given}:
                raise
            raise self.located(error) from None

    def read(self, stored: bool = False) -> dict[str, Any]:
        """The tables by view, as DataFrames or, where they can be, `stored` in files."""
        return {name: source.read(stored) for name, source in self.sources.items()}


@contextmanager
def naming_files(sources: Mapping[str, Source]) -> Iterator[None]:
    """Name the file of an error about the data of a view."""
    try:
        yield
    except DataError as error:
        for name, source in sources.items():
            # Of several kernels each explains a view of its own, such as x[RBF].
            if error.view == name or str(error.view).startswith(f"{name}["):
                raise error.as_error(DataError, source=source.name) from error
        raise


def kind_cure(word: object) -> str:
    """What may have been meant by a kind that there is not."""
    meant = DISTRIBUTIONS.get(str(word).lower())
    if meant is not None:
        return f"did you mean {meant.lower()!r}?"
    return hint(word, KINDS, "expected")


# ---------------------------------------------------------------- views and kernels


def declare(name: str, kind: str, options: Mapping[str, Any]) -> View:
    """The view that a kind and its options stand for, checked as far as possible without data."""
    view = KINDS[kind]()
    old = [key for key in OLD_NAMES if key in options]
    given = in_one_option({key: _landmarks(name, key, value) for key, value in options.items()})
    if old:  # also where what they say is refused below
        said = {key: given[key] for key in options_of(kind) if key in given}
        warn(f"View {name!r}: {instead_of_old_names(old, replace(view, **said), _toml)}")
    for key in [key for key in options_of(kind) if key in given]:
        try:
            value = given[key]
            if key == "kernel":
                value = _kernel(name, value)
                as_kernels(value, name)
            view = replace(view, **{key: value})
            view.check(name)
        except DeclarationError as error:
            # Also where an option of the kernel is wrong, or one that had a name of its own.
            error.option = key if key in options else old[0]
            raise
    return view


def options_of(kind: str) -> list[str]:
    """The options that a kind of view has; those that others depend on come first."""
    names = [one.name for one in fields(KINDS[kind]) if one.init]
    return [*names, *OLD_NAMES] if "landmarks" in names else names


def _landmarks(view: str, key: str, value: Any) -> Any:
    """Landmarks from a table such as {n = 500, by = "kmeans++", keep = 0.1}; all else as it is."""
    if key != "landmarks" or not isinstance(value, dict):
        return value
    known = [one.name for one in fields(Landmarks)]
    for option in value:
        if option not in known:
            what = f"landmarks have no option {option!r}"
            cure = hint(option, known, "expected")
            raise DeclarationError(what, view, option=key, cure=cure)
    pair = {"keep": tuple(value["keep"])} if isinstance(value.get("keep"), list) else {}
    return Landmarks(**(value | pair))


def _toml(options: Mapping[str, Any], mark: str = " and ") -> str:
    """Options as a study declares them."""
    return mark.join(f"{key} = {_toml_value(value)}" for key, value in options.items())


def _toml_value(value: Any) -> str:
    if isinstance(value, Landmarks):
        return f"{{{_toml(value.said(), ', ')}}}"
    return json.dumps(value, default=str)  # dates, which are refused later


def _kernel(view: str, value: Any) -> Any:
    """A kernel as kofa takes it, from a word, a table such as {name="rbf", width=2}, or a list."""
    if isinstance(value, list):
        return [_kernel(view, one) for one in value]
    if not isinstance(value, dict):
        return value
    options = dict(value)
    name = options.pop("name", None)
    if not isinstance(name, str) or name not in KERNELS:
        cure = hint(name, KERNELS, "expected name =")
        raise DeclarationError(f"unknown kernel {name!r}", view, cure=cure)
    known = [one.name for one in fields(KERNELS[name]) if one.compare]
    for key in options:
        if key not in known:
            what = f"the kernel {name!r} has no option {key!r}"
            raise DeclarationError(what, view, cure=hint(key, known, "expected"))
    if "kernels" in options:
        options["kernels"] = _kernel(view, options["kernels"])
    try:
        return KERNELS[name](**options)
    except DeclarationError:
        raise
    except (TypeError, ValueError) as error:
        raise DeclarationError(f"kernel {name!r}: {error}", view) from None


# ---------------------------------------------------------------- options of reading


def reading_of(given: Mapping[str, Any], kind: str) -> Reading:
    """Options of reading, each checked."""
    checked = {key: READING_CHECKS[key](key, value) for key, value in given.items()}
    reading = Reading(values="labels" if kind == "categorical" else "numbers", **checked)
    if reading.sep == reading.decimal:
        what = f"expected sep and decimal to differ but both are {reading.sep!r}"
        raise UsageError(what, option="sep")
    return reading


def _wrong(key: str, expected: str, value: Any) -> UsageError:
    return UsageError(f"expected {key} to be {expected}", got=value, option=key)


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(key, "text", value)
    return value


def _names(_: str, value: Any) -> tuple[str, ...]:
    return tuple(strings(value))


def _index(key: str, value: Any) -> Any:
    if not isinstance(value, str | int) or value is True:
        raise _wrong(key, "a name, a position or false", value)
    return value


def _switch(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(key, "true or false", value)
    return value


def _mark(key: str, value: Any) -> str:
    mark = _MARKS.get(_text(key, value), value)
    if len(mark) != 1:
        raise _wrong(key, "one character", mark)
    if mark.isalnum() or mark in _IN_CELLS[key]:
        raise _wrong(key, "a mark that cells do not have", mark)
    return str(mark)


def _encoding(key: str, value: Any) -> str:
    try:
        "id,1".encode(_text(key, value)).decode(value)
    except (LookupError, ValueError):
        cure = "try 'utf-8' or 'latin-1'"
        raise UsageError(f"unknown encoding {value!r}", option=key, cure=cure) from None
    return str(value)


def strings(value: Any) -> list[str]:
    """A list of words, from one or several of anything."""
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]


# Every option of reading, with its check.
READING_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "index": _index,
    "columns": _names,
    "drop": _names,
    "missing": _names,
    "sep": _mark,
    "decimal": _mark,
    "encoding": _encoding,
    "array": _text,
    "modality": _text,
    "layer": _text,
    "transpose": _switch,
}
