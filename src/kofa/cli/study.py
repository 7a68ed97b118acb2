"""What is to be read and fitted: from study.toml, or from options of the command line."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NoReturn

from kofa import kernels
from kofa.cli import UsageError
from kofa.errors import DeclarationError, FileError, warn
from kofa.files import Reading, listed, nearest, read_file
from kofa.kernels.declared import as_kernels
from kofa.kernels.landmarks import Landmarks
from kofa.model import FactorModel
from kofa.views import (
    DISTRIBUTIONS,
    OLD_NAMES,
    OLD_NAMES_GO_IN,
    Binary,
    Categorical,
    Count,
    Positive,
    Real,
    View,
    in_one_option,
)

KINDS: dict[str, type[View]] = {
    "real": Real,
    "positive": Positive,
    "binary": Binary,
    "categorical": Categorical,
    "count": Count,
}
KERNELS: dict[str, type[kernels.Kernel]] = {
    "rbf": kernels.RBF,
    "linear": kernels.Linear,
    "laplacian": kernels.Laplacian,
    "polynomial": kernels.Polynomial,
    "diffusion": kernels.Diffusion,
    "precomputed": kernels.Precomputed,
    "mixture": kernels.Mixture,
}
READING_KEYS = [one.name for one in fields(Reading) if one.name != "values"]
_NOT_IN_A_FILE = ("self", "views", "callback", "progress", "checkpoint", "checkpoint_every")
MODEL_KEYS = [k for k in inspect.signature(FactorModel).parameters if k not in _NOT_IN_A_FILE]
_MARKS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
_IN_CELLS = {"sep": '"\r\n+-', "decimal": '"\r\n+- \t'}  # beside letters and digits
_PART_KEYS = {".npz": "array", ".h5mu": "modality", ".h5ad": "layer"}


@dataclass(frozen=True)
class Source:
    """Where the table of a view is, and how it is read."""

    file: Path
    reading: Reading = field(default_factory=Reading)
    kind: str | None = None

    def read(self) -> Any:
        return read_file(self.file, self.reading)

    def replaced_by(self, other: Source) -> Source:
        """Another file, read as this one but for what was said about the other."""
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
    study: Document | None = None

    @contextmanager
    def naming_study(self) -> Iterator[None]:
        """Put the place in the study in front of an error about what it declares."""
        try:
            yield
        except DeclarationError as error:
            if self.study is None:
                raise
            message = str(error)
            key = next((k for k in MODEL_KEYS if re.search(rf"\b{k}\b", message)), "")
            self.study.fail(("model",), key, message)

    def read(self) -> dict[str, Any]:
        """The tables, as DataFrames by view."""
        return {name: source.read() for name, source in self.sources.items()}


# ---------------------------------------------------------------- study.toml


class Document:
    """A TOML file that knows where in it things are said."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = path.read_text(encoding="utf-8")
            self.content = tomllib.loads(self.text)
        except UnicodeDecodeError as error:
            raise FileError(f"{path}: expected a study in TOML, as text in UTF-8") from error
        except RecursionError:
            raise FileError(f"{path}: too many brackets within brackets") from None
        except tomllib.TOMLDecodeError as error:
            what, _, where = str(error).partition(" (at ")
            line = re.match(r"line \d+", where)
            place = f", {line[0]}" if line else ", at its end"
            raise FileError(f"{path}{place}: not valid TOML: {what[0].lower()}{what[1:]}") from None
        except ValueError as error:  # a number of more digits than Python reads
            raise FileError(f"{path}: not valid TOML: {error}") from None

    def line_of(self, table: Sequence[str], key: str = "") -> int | None:
        """The line of a key of a table, or of the table's own header."""
        here: list[str] = []
        header = None
        for number, line in enumerate(self.text.split("\n"), 1):
            if match := re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line):
                here = [part.strip(" \"'") for part in match[1].split(".")]
                header = number if here == list(table) else header
                if here[: len(table) + 1] == [*table, key]:
                    return number
            elif here == list(table) and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line):
                return number
        return header

    def fail(self, table: Sequence[str], key: str, what: str) -> NoReturn:
        """Raise with the place in the file."""
        line = self.line_of(table, key)
        raise FileError(f"{self.path}{'' if line is None else f', line {line}'}: {what}")

    def check_keys(self, table: Sequence[str], given: Iterable[str], known: Iterable[str]) -> None:
        known = list(known)
        for key in given:
            if key not in known:
                where = f" in [{'.'.join(table)}]" if table else ""
                cure = nearest(key, known) or f"; expected {listed(known, 99)}"
                self.fail(table, key, f"unknown key {key!r}{where}{cure}")

    def table(self, *place: str) -> dict[str, Any]:
        """A table of the file, or an empty one."""
        found: Any = self.content
        for depth, part in enumerate(place, 1):
            found = found.get(part, {})
            if not isinstance(found, dict):
                self.fail(place[: depth - 1], part, f"expected a table [{'.'.join(place[:depth])}]")
        return dict(found)


def read_study(path: Path) -> Plan:
    """The plan in a study.toml; paths in it are relative to its folder."""
    document = Document(path)
    document.check_keys((), document.content, ("views", "model", "read"))
    shared = document.table("read")
    document.check_keys(("read",), shared, READING_KEYS)
    names = list(document.table("views"))
    if not names:
        raise FileError(f"{path}: expected at least one view, such as [views.rna] with a file")
    views, sources = {}, {}
    for name in names:
        views[name], sources[name] = _view(document, name, shared)
    model = document.table("model")
    document.check_keys(("model",), model, MODEL_KEYS)
    for output in _strings(model.get("outputs", [])):
        if output not in views:
            cure = nearest(output, views) or f"; the views are {listed(views)}"
            document.fail(("model",), "outputs", f"unknown view {output!r} in outputs{cure}")
    if "outputs" in model:
        model["outputs"] = list(_strings(model["outputs"])) or None
    return Plan(views, sources, model, document)


def _view(document: Document, name: str, shared: Mapping[str, Any]) -> tuple[View, Source]:
    """One view of a study, and where it is; `shared` are options of reading for all views."""
    place = ("views", name)
    given = document.table(*place)
    kind = given.get("kind", "real")
    if not isinstance(kind, str) or kind not in KINDS:
        document.fail(place, "kind", f"view {name!r}: unknown kind {kind!r}{_kind_cure(kind)}")
    options = _check_view_keys(document, name, kind, given)
    if not (given.get("file") and isinstance(given["file"], str)):
        document.fail(place, "file", f'view {name!r}: expected file = "…", the name of its table')
    if "\0" in given["file"]:
        document.fail(place, "file", f"view {name!r}: a null in the name {given['file']!r}")
    said = {**shared, **given}
    try:
        reading = _reading({key: said[key] for key in said if key in READING_KEYS}, kind)
        view = declare(name, kind, {key: given[key] for key in given if key in options})
    except (DeclarationError, UsageError) as error:
        message = str(error).rstrip(".")
        places = {k: re.search(rf"\b{k}\b", message) for k in said}
        named = {k: place.start() for k, place in places.items() if place}
        key = min(named, key=named.__getitem__, default="kernel")  # the first that it names
        table = ("read",) if key in shared and key not in given else place
        document.fail(table, key, message)
    return view, Source(document.path.parent / given["file"], reading, kind)


def _kind_cure(word: object) -> str:
    """What may have been meant by a kind that there is not."""
    meant = DISTRIBUTIONS.get(str(word).lower())
    if meant is not None:
        return f"; did you mean {meant.lower()!r}?"
    return nearest(word, KINDS) or f"; expected {listed(KINDS)}"


def _check_view_keys(
    document: Document, name: str, kind: str, given: Mapping[str, Any]
) -> list[str]:
    """The options that a view of this kind has, once all that is given is known."""
    options = _options(KINDS[kind])
    others = {name for cls in KINDS.values() for name in _options(cls)}
    for key in given:
        if key in others and key not in options:
            what = f"view {name!r}: a view of kind {kind} has no {key!r}"
            document.fail(("views", name), key, what)
    document.check_keys(("views", name), given, ["file", "kind", *options, *READING_KEYS])
    return options


# ---------------------------------------------------------------- views, kernels, options


def _options(cls: type[View]) -> list[str]:
    """The options of a kind of view, and the names that some of them had before."""
    names = [one.name for one in fields(cls) if one.init]
    return [*names, *OLD_NAMES] if "landmarks" in names else names


def declare(name: str, kind: str, options: Mapping[str, Any]) -> View:
    """The view that a kind and its options stand for, checked as far as possible without data."""
    options = dict(options)
    if "kernel" in options:
        options["kernel"] = _kernel(name, options["kernel"])
        as_kernels(options["kernel"], name)
    if isinstance(options.get("landmarks"), dict):
        options["landmarks"] = _landmarks(name, options["landmarks"])
    view = KINDS[kind](**in_one_option(options))
    view.check(name)
    old = [key for key in options if key in OLD_NAMES]
    if old:
        warn(
            f"View {name!r}: {', '.join(old)} will not be known in kofa {OLD_NAMES_GO_IN}; write "
            f"landmarks = {_toml(view.landmarks)}."
        )
    return view


def _landmarks(view: str, given: Mapping[str, Any]) -> Landmarks:
    """Landmarks from a table such as {n = 500, by = "kmeans++", keep = 0.1}."""
    known = [one.name for one in fields(Landmarks)]
    for key in given:
        if key not in known:
            cure = nearest(key, known) or f"; expected {listed(known)}"
            raise DeclarationError(f"View {view!r}: landmarks have no option {key!r}{cure}")
    options: dict[str, Any] = {**given}
    if isinstance(options.get("keep"), list):
        options["keep"] = tuple(options["keep"])
    return Landmarks(**options)


def _toml(landmarks: Any) -> str:
    """Landmarks as a study declares them."""
    if not isinstance(landmarks, Landmarks):
        return json.dumps(landmarks)
    said = {one.name: getattr(landmarks, one.name) for one in fields(Landmarks)}
    parts = (f"{key} = {json.dumps(value)}" for key, value in said.items() if value is not None)
    return f"{{{', '.join(parts)}}}"


def _kernel(view: str, value: Any) -> Any:
    """A kernel as kofa takes it, from a word, a table such as {name="rbf", width=2}, or a list."""
    if isinstance(value, list):
        return [_kernel(view, one) for one in value]
    if not isinstance(value, dict):
        return value
    options = dict(value)
    name = options.pop("name", None)
    if not isinstance(name, str) or name not in KERNELS:
        cure = nearest(name, KERNELS) or f"; expected name = {listed(KERNELS)}"
        raise DeclarationError(f"View {view!r}: unknown kernel {name!r}{cure}")
    known = [one.name for one in fields(KERNELS[name]) if one.compare]
    for key in options:
        if key not in known:
            cure = nearest(key, known) or f"; expected {listed(known) or 'none'}"
            raise DeclarationError(
                f"View {view!r}: the kernel {name!r} has no option {key!r}{cure}"
            )
    if "kernels" in options:
        options["kernels"] = _kernel(view, options["kernels"])
    try:
        return KERNELS[name](**options)
    except (TypeError, ValueError) as error:
        if isinstance(error, DeclarationError):
            raise
        raise DeclarationError(f"View {view!r}: kernel {name!r}: {error}") from None


def _reading(given: Mapping[str, Any], kind: str) -> Reading:
    """Options of reading, each of the type it must have."""
    checked: dict[str, Any] = {"values": "labels" if kind == "categorical" else "numbers"}
    for key, value in given.items():
        if key in ("columns", "drop", "missing"):
            checked[key] = tuple(_strings(value))
        elif key == "index":
            if not isinstance(value, str | int) or value is True:
                raise UsageError(f"Expected index to be a name, a position or false, got {value!r}")
            checked[key] = value
        elif key == "transpose":
            if not isinstance(value, bool):
                raise UsageError(f"Expected transpose to be true or false but got {value!r}")
            checked[key] = value
        else:
            if not isinstance(value, str):
                raise UsageError(f"Expected {key} to be text but got {value!r}")
            checked[key] = _text(key, value)
    reading = Reading(**checked)
    if reading.sep == reading.decimal:
        raise UsageError(f"Expected sep and decimal to differ but both are {reading.sep!r}")
    return reading


def _text(key: str, value: str) -> str:
    """An option of reading that is text, checked."""
    if key in ("sep", "decimal"):
        value = _MARKS.get(value, value)
        if len(value) != 1:
            raise UsageError(f"Expected {key} to be one character but got {value!r}")
        if value.isalnum() or value in _IN_CELLS[key]:
            raise UsageError(f"Expected {key} to be a mark that cells do not have, got {value!r}")
    if key == "encoding":
        try:
            "id,1".encode(value).decode(value)
        except (LookupError, ValueError):
            raise UsageError(f"Unknown encoding {value!r}; try 'utf-8' or 'latin-1'") from None
    return value


def _strings(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]


# ---------------------------------------------------------------- --view NAME=FILE[:COLUMNS][:KIND]


def parse_view(text: str, shared: Mapping[str, Any]) -> tuple[str, Source]:
    """The name of a view and where it is, from one option --view.

    >>> name, source = parse_view("stage=clinical.csv:stage:categorical", {})
    >>> name, str(source.file), source.reading.columns, source.kind
    ('stage', 'clinical.csv', ('stage',), 'categorical')
    """
    name, equals, rest = text.partition("=")
    if not (name and equals and rest):
        raise UsageError(f"Expected --view NAME=FILE[:COLUMNS][:KIND] but got {text!r}")
    file, parts = _split_path(rest)
    options = dict(shared)
    key = _PART_KEYS.get(file.suffix.lower())
    kind = parts.pop() if parts and parts[-1] in KINDS else None
    if key is not None and parts:
        options[key] = parts.pop(0) or options.get(key)
        if options[key] == "obs" and key == "modality":
            options["layer"] = options.pop(key)
    if parts:
        columns = parts.pop(0)
        options |= {"columns": [one.strip() for one in columns.split(",")]} if columns else {}
    if parts:
        raise UsageError(f"--view {text}: {parts[-1]!r} is not a kind{_kind_cure(parts[-1])}")
    options = {key: value for key, value in options.items() if value is not None}
    return name, Source(file, _reading(options, kind or "real"), kind)


def parse_views(
    options: Sequence[str], shared: Mapping[str, Any]
) -> Iterator[tuple[str, str, Source]]:
    """Name, text and source of each option --view."""
    named: set[str] = set()
    for text in options:
        name, source = parse_view(text, shared)
        if name in named:
            raise UsageError(f"--view {text}: the view {name!r} is given twice")
        named.add(name)
        yield name, text, source


def _split_path(text: str) -> tuple[Path, list[str]]:
    """A path, which may itself have colons if it exists, and what follows it."""
    pieces = text.split(":")
    for n in range(len(pieces), 0, -1):
        path = Path(":".join(pieces[:n]))
        if path.exists():
            return path, pieces[n:]
    drive = len(pieces) > 1 and len(pieces[0]) == 1 and pieces[1][:1] in ("/", "\\")
    return Path(":".join(pieces[: 1 + drive])), pieces[1 + drive :]


def quick_plan(
    views: Sequence[str],
    kernel: Sequence[str],
    shared: Mapping[str, Any],
    base: Plan | None = None,
) -> Plan:
    """The plan of options --view and --kernel, on top of a study if there is one."""
    declared, sources = ({}, {}) if base is None else (dict(base.views), dict(base.sources))
    for name, _, source in parse_views(views, shared):
        old = sources.get(name)
        if old is not None and source.kind is None:
            sources[name] = old.replaced_by(source)
        else:
            declared[name] = declare(name, source.kind or "real", {})
            sources[name] = source
    for name, value in parse_kernels(kernel).items():
        if name not in declared:
            cure = nearest(name, declared) or f"; the views are {listed(declared)}"
            raise UsageError(f"--kernel {name}: there is no view {name!r}{cure}")
        kind = type(declared[name]).__name__.lower()
        if "kernel" not in [one.name for one in fields(declared[name]) if one.init]:
            raise UsageError(f"--kernel {name}: a view of kind {kind} has no kernel")
        try:
            as_kernels(value, name)
        except DeclarationError as error:
            raise UsageError(f"--kernel {name}: {error}") from None
        declared[name] = replace(declared[name], kernel=value)
    if base is None:
        return Plan(declared, sources, {})
    return Plan(declared, sources, dict(base.model), base.study)


def parse_kernels(options: Sequence[str]) -> dict[str, Any]:
    """Kernels by view from options --kernel NAME=KERNEL[,KERNEL].

    >>> parse_kernels(["x=rbf", "y=rbf,linear"])
    {'x': 'rbf', 'y': ['rbf', 'linear']}
    """
    found: dict[str, Any] = {}
    for text in options:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(f"Expected --kernel NAME=KERNEL but got {text!r}")
        words = value.split(",")
        found[name] = words if len(words) > 1 else value
    return found
