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

MODEL, READING = "The model", "Reading tables given by --view"


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


def flag(text: str, *names: str, **more: Any) -> Any:
    """An option that takes none."""
    return typer.Option(*names, help=text, **more)


def number(
    text: str, metavar: str = "N", least: float = 1, panel: str | None = None, names: Any = ()
) -> Any:
    """An option that takes a number."""
    return option(metavar, text, *names, min=least, rich_help_panel=panel)


def how_many(text: str) -> Any:
    """-n: the number of what is shown."""
    return number(text, names=("--n", "-n"))


def file_argument(metavar: str, text: str) -> Any:
    """An argument that is a file or a folder."""
    return typer.Argument(metavar=metavar, parser=path_given, help=text)


def out_option(metavar: str, text: str) -> Any:
    """-o, --out: the file that a command writes."""
    return option(metavar, text, "--out", "-o", parser=name_given)


Words = list[str] | None
ModelFile = Annotated[Path, file_argument("MODEL", "A model from kofa fit.")]
Force = Annotated[bool, flag("Replace a file that exists.", "--force")]
Out = Annotated[str, out_option("FILE", "CSV, TSV or Parquet; - is stdout.")]

# ---------------------------------------------------------------- options that come together

_STUDY = "Read tables as this study.toml says; its files by default."
_OF_TABLES: dict[str, Any] = {
    "view": Annotated[
        Words, option("NAME=FILE", "A table for a view; repeat for more.", "--view", "-v")
    ],
    "study": Annotated[Path | None, option("STUDY", _STUDY, parser=path_given)],
}
_QUICK_VIEW = "A view without a study, or another file for one of the study; repeat for more."
_KERNEL = "rbf, linear, laplacian, polynomial, diffusion or bank."
_OUTPUTS = "A view to be predicted from the others; repeat for more."
_SEED = "Seed of everything random."
_ENGINE = "memory, or disk: little of the data is in memory at a time."
_DTYPE = "float64, or float32: faster and half the memory, for real and positive values."
# Options of a model have the names that they have in a study and in Python.
_OF_MODEL: dict[str, Any] = {
    "outputs": Annotated[Words, option("NAME", _OUTPUTS, rich_help_panel=MODEL)],
    "n_factors": Annotated[int | None, number("The most factors allowed.", panel=MODEL)],
    "n_init": Annotated[int | None, number("Number of starts; the best is kept.", panel=MODEL)],
    "max_iter": Annotated[int | None, number("Most iterations of a start.", panel=MODEL)],
    "tol": Annotated[float | None, number("Growth of the bound at which to stop.", "X", 0, MODEL)],
    "random_state": Annotated[int | None, number(_SEED, least=0, panel=MODEL)],
    "engine": Annotated[str | None, option("ENGINE", _ENGINE, rich_help_panel=MODEL)],
    "dtype": Annotated[str | None, option("DTYPE", _DTYPE, rich_help_panel=MODEL)],
}
_DECLARED: dict[str, Any] = {
    "study": Annotated[Path | None, file_argument("STUDY", "A study.toml; see kofa init.")],
    "view": Annotated[Words, option("NAME=FILE…", _QUICK_VIEW, "--view", "-v")],
    "kernel": Annotated[Words, option("NAME=KERNEL", _KERNEL, rich_help_panel=MODEL)],
    **_OF_MODEL,
}
_RESULT: dict[str, Any] = {
    "out": Annotated[
        str | None, out_option("FILE", "Write CSV, TSV, Parquet or JSON; - is CSV on stdout.")
    ],
    "json": Annotated[bool, flag("Print JSON, for programs.", "--json")],
}


def _reading(metavar: str, text: str) -> Any:
    return option(metavar, text, rich_help_panel=READING)


_HOW_TO_READ: dict[str, Any] = {
    "index": Annotated[
        str | None,
        _reading("COLUMN", "Column of sample ids: name or position from 0; default the first."),
    ],
    "sep": Annotated[str | None, _reading("MARK", "Separator of text files, such as ';' or tab.")],
    "decimal": Annotated[str | None, _reading("MARK", "Decimal mark of text files, '.' or ','.")],
    "missing": Annotated[Words, _reading("MARK", "What else stands for missing; repeat.")],
    "encoding": Annotated[str | None, _reading("NAME", "Of text files, such as latin-1.")],
}
_QUIET = Annotated[bool, flag("Show nothing but errors.", "--quiet", "-q")]
_DEBUG = Annotated[bool, flag("Show where in the code an error arose.", "--debug")]
_FLAGS = ("json", "quiet", "debug")

# What commands take as one, and the options of it that users give.
_TOGETHER: dict[str, dict[str, Any]] = {
    "declared": _DECLARED | _HOW_TO_READ,
    "tables": _OF_TABLES | _HOW_TO_READ,
    "result": _RESULT,
    "screen": {"quiet": _QUIET},
}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that commands share; all have --debug.

    One that takes `declared` has the options of a model and its tables, and gets what
    `steps.fit.plan_of` takes; with `tables` those of tables for a model that is fitted: what
    `steps.apply.opened` takes; with `result` those of a table that is shown or written: what
    `steps.result.deliver` takes; with a `screen` --quiet, and its warnings are shown in a line.
    """
    own = signature(command).parameters
    filled = {name: options for name, options in _TOGETHER.items() if name in own}
    hints = get_type_hints(command, include_extras=True)
    kept = [p.replace(annotation=hints[p.name]) for p in own.values() if p.name not in filled]
    names = {name: hint for options in filled.values() for name, hint in options.items()}
    added = [_keyword(name, hint) for name, hint in (names | {"debug": _DEBUG}).items()]

    @wraps(command)
    def run(**given: Any) -> None:
        del given["debug"]  # which is for the error that may end the command
        said: dict[str, Any] = {n: _taken(options, given) for n, options in filled.items()}
        screen = Screen(said.get("screen", {}).get("quiet", False))
        if "screen" in said:
            said["screen"] = screen
        with screen.warnings_in_a_line():
            command(**given, **said)

    run.__signature__ = Signature([*kept, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in (*kept, *added)}
    return run


def _keyword(name: str, hint: Any) -> Parameter:
    default = False if name in _FLAGS else None
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _taken(options: Mapping[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Some of what was given, as the arguments of a function."""
    taken = {name: given.pop(name) for name in options}
    if "view" not in options:
        return taken
    reading = {name: taken.pop(name) for name in _HOW_TO_READ}
    taken["reading"] = _checked_reading(taken["view"] or given.get("covariates"), reading)
    if "kernel" in options:
        of_model = {name: taken.pop(name) for name in _OF_MODEL}
        taken["options"] = {
            key: value for key, value in of_model.items() if value not in (None, [])
        }
    return taken


def _checked_reading(files: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of reading that were given; they hold for all --view, and for covariates."""
    said = {key: value for key, value in given.items() if value is not None and value != []}
    if said and not files:
        option = next(iter(said))
        cure = f"write {option} = … under [read] in the study"
        raise UsageError(f"--{option} is for tables given by --view, and there is none", cure=cure)
    index = said.get("index")
    if index is not None and re.fullmatch(r"-?[0-9]{1,9}", index):
        said["index"] = int(index)
    elif index is not None and index.lower() in ("false", "none"):
        said["index"] = False
    return said
