"""study.toml: which tables to read, and the model to fit to them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from kofa.cli import UsageError
from kofa.cli.plan import (
    KINDS,
    MODEL_KEYS,
    READING_CHECKS,
    Plan,
    Source,
    declare,
    kind_cure,
    options_of,
    reading_of,
    strings,
)
from kofa.errors import DeclarationError, FileError, KofaError
from kofa.files import check_exists, hint
from kofa.storage.archive import contents_of
from kofa.views import View


def checked_study(path: Path) -> Path:
    """The path of a study, or an error that says what the file is instead."""
    check_exists(path)
    if contents_of(path) == "model":
        cure = "give the study.toml that it was fitted with"
        raise FileError("expected a study but this is a model", path, cure=cure)
    if path.suffix.lower() != ".toml":
        cure = f"give tables as --view NAME={path}"
        raise FileError("expected a study such as study.toml", path, cure=cure)
    return path


class Document:
    """A TOML file, with the lines of its keys."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = path.read_text(encoding="utf-8")
            self.content = tomllib.loads(self.text)
        except UnicodeDecodeError as error:
            raise FileError("expected a study in TOML, as text in UTF-8", path) from error
        except RecursionError:
            raise FileError("too many brackets within brackets", path) from None
        except tomllib.TOMLDecodeError as error:
            raise _not_toml(path, error) from None
        except ValueError as error:  # a number of more digits than Python reads
            raise FileError(f"not valid TOML: {error}", path) from None

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

    def located(self, error: KofaError, table: Sequence[str], key: str | None) -> FileError:
        """The same error with its place in the file."""
        line = self.line_of(table, key or "")
        return error.as_error(FileError, source=self.path, line=line)

    def fail(self, table: Sequence[str], key: str, what: str, **fields: Any) -> NoReturn:
        """Raise with the place in the file."""
        raise self.located(FileError(what, **fields), table, key)

    def check_keys(self, table: Sequence[str], given: Iterable[str], known: Iterable[str]) -> None:
        """Raise for a key that a table cannot have."""
        known = list(known)
        for key in given:
            if key not in known:
                where = f" in [{'.'.join(table)}]" if table else ""
                self.fail(
                    table, key, f"unknown key {key!r}{where}", cure=hint(key, known, "expected")
                )

    def table(self, *place: str) -> dict[str, Any]:
        """A table of the file, or an empty one."""
        found: Any = self.content
        for depth, part in enumerate(place, 1):
            found = found.get(part, {})
            if not isinstance(found, dict):
                self.fail(place[: depth - 1], part, f"expected a table [{'.'.join(place[:depth])}]")
        return dict(found)


def _not_toml(path: Path, error: tomllib.TOMLDecodeError) -> FileError:
    """The error of the parser, which gives the line only in its text: … (at line 3, column 1)."""
    what, _, where = str(error).partition(" (at ")
    line = where.partition(",")[0] if where.startswith("line ") else "at its end"
    return FileError(f"not valid TOML: {what[0].lower()}{what[1:]}", path, line)


def read_study(path: Path) -> Plan:
    """The plan in a study.toml; paths in it are relative to its folder."""
    document = Document(path)
    document.check_keys((), document.content, ("views", "model", "read"))
    shared = document.table("read")
    document.check_keys(("read",), shared, READING_CHECKS)
    names = list(document.table("views"))
    if not names:
        raise FileError("expected at least one view, such as [views.rna] with a file", path)
    found = {name: _view(document, name, shared) for name in names}
    views = {name: view for name, (view, _) in found.items()}
    sources = {name: source for name, (_, source) in found.items()}

    def located(error: KofaError) -> FileError:
        table = ("model",) if error.view is None else ("views", str(error.view))
        return document.located(error, table, error.option)

    return Plan(views, sources, _model(document, names), located)


def _model(document: Document, views: Sequence[str]) -> dict[str, Any]:
    """The options of the model in a study."""
    model = document.table("model")
    document.check_keys(("model",), model, MODEL_KEYS)
    outputs = strings(model.get("outputs", []))
    for output in outputs:
        if output not in views:
            cure = hint(output, views, "the views are")
            document.fail(("model",), "outputs", f"unknown view {output!r} in outputs", cure=cure)
    return model | ({"outputs": outputs or None} if "outputs" in model else {})


def _view(document: Document, name: str, shared: Mapping[str, Any]) -> tuple[View, Source]:
    """One view of a study, and where it is; `shared` are options of reading for all views."""
    place = ("views", name)
    given = document.table(*place)
    kind = given.get("kind", "real")
    if not isinstance(kind, str) or kind not in KINDS:
        cure = kind_cure(kind)
        document.fail(place, "kind", f"unknown kind {kind!r}", view=name, cure=cure)
    _check_view_keys(document, name, kind, given)
    file = given.get("file")
    if not (file and isinstance(file, str)):
        document.fail(place, "file", 'expected file = "…", the name of its table', view=name)
    if "\0" in file:
        document.fail(place, "file", f"a null in the name {file!r}", view=name)
    said = {**shared, **given}
    try:
        reading = reading_of({key: said[key] for key in said if key in READING_CHECKS}, kind)
        view = declare(name, kind, given)
    except (DeclarationError, UsageError) as error:
        own = error.option in given or error.option not in shared
        raise document.located(error, place if own else ("read",), error.option) from None
    return view, Source(document.path.parent / file, reading, kind)


def _check_view_keys(document: Document, name: str, kind: str, given: Mapping[str, Any]) -> None:
    """Raise for a key that a view of this kind cannot have."""
    known = options_of(kind)
    others = {key for kind in KINDS for key in options_of(kind)}
    for key in given:
        if key in others and key not in known:
            what = f"a view of kind {kind} has no {key!r}"
            document.fail(("views", name), key, what, view=name)
    document.check_keys(("views", name), given, ["file", "kind", *known, *READING_CHECKS])
