"""Options that several commands have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from kofa.cli import UsageError
from kofa.cli.display import Screen

READING = "Reading tables given by --view"


def name_given(text: str) -> str:
    """The name of a file; without one it would be the current folder."""
    if not text:
        raise typer.BadParameter("expected a name but got nothing")
    return text


def path_given(text: str | Path) -> Path:
    """The same as a path."""
    return Path(name_given(str(text)))


def option(metavar: str, text: str, *names: str, **more: Any) -> Any:
    """An option that takes a value."""
    return typer.Option(*names, metavar=metavar, help=text, **more)


def file_argument(metavar: str, text: str) -> Any:
    """An argument that is a file or a folder."""
    return typer.Argument(metavar=metavar, parser=path_given, help=text)


def _reading(metavar: str, text: str) -> Any:
    return option(metavar, text, rich_help_panel=READING)


ModelFile = Annotated[Path, file_argument("MODEL", "A model from kofa fit.")]
Views = Annotated[
    list[str] | None, option("NAME=FILE", "A table for a view; repeat for more.", "--view", "-v")
]
_STUDY = "Read tables as this study.toml says; its files by default."
Study = Annotated[Path | None, option("STUDY", _STUDY, parser=path_given)]
To = Annotated[
    str, option("FILE", "CSV, TSV or Parquet; - is stdout.", "--to", "-o", parser=name_given)
]
_HOW_TO_READ: dict[str, Any] = {
    "index": Annotated[
        str | None,
        _reading("COLUMN", "Column of sample ids: name or position from 0; default the first."),
    ],
    "sep": Annotated[str | None, _reading("MARK", "Separator of text files, such as ';' or tab.")],
    "decimal": Annotated[str | None, _reading("MARK", "Decimal mark of text files, '.' or ','.")],
    "missing": Annotated[
        list[str] | None, _reading("MARK", "What else stands for missing; repeat.")
    ],
    "encoding": Annotated[str | None, _reading("NAME", "Of text files, such as latin-1.")],
}
_QUIET = Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but errors.")]
_DEBUG = Annotated[bool, typer.Option("--debug", help="Show where in the code an error arose.")]

_FILLED = ("screen", "reading")  # what commands take and users do not give


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that commands share.

    All have --debug. One that takes a `screen` has --quiet, and its warnings are shown in a line;
    one that takes `reading` has the options of reading tables, and gets those that are given.
    """
    own = signature(command).parameters
    more = dict(_HOW_TO_READ) if "reading" in own else {}
    more |= {"quiet": _QUIET, "debug": _DEBUG} if "screen" in own else {"debug": _DEBUG}

    @wraps(command)
    def run(**given: Any) -> None:
        del given["debug"]  # which is for the error that may end the command
        if "reading" in own:
            said = {key: given.pop(key) for key in _HOW_TO_READ}
            given["reading"] = _checked_reading(given["view"], said)
        screen = Screen(given.pop("quiet", False))
        if "screen" in own:
            given["screen"] = screen
        with screen.warnings_in_a_line():
            command(**given)

    hints = get_type_hints(command, include_extras=True)
    kept = [p.replace(annotation=hints[p.name]) for p in own.values() if p.name not in _FILLED]
    added = [_keyword(name, hint) for name, hint in more.items()]
    run.__signature__ = Signature([*kept, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in (*kept, *added)}
    return run


def _keyword(name: str, hint: Any) -> Parameter:
    default = False if hint in (_QUIET, _DEBUG) else None
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _checked_reading(views: list[str] | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of reading that were given; they hold for all --view."""
    said = {key: value for key, value in given.items() if value is not None and value != []}
    if said and not views:
        option = next(iter(said))
        cure = f"write {option} = … under [read] in the study"
        raise UsageError(f"--{option} is for tables given by --view, and there is none", cure=cure)
    index = said.get("index")
    if index is not None and re.fullmatch(r"-?[0-9]{1,9}", index):
        said["index"] = int(index)
    elif index is not None and index.lower() in ("false", "none"):
        said["index"] = False
    return said
