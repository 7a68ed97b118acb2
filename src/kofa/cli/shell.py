"""How commands run and end: errors in one line, and an exit code."""

from __future__ import annotations

import re
import sys
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from kofa.cli import Stopped, UsageError
from kofa.cli.display import Screen, take_any_text
from kofa.errors import KofaError

# What the command line calls the things that cures of errors speak of.
WORDS = {
    "Real": "kind real",
    "Positive": "kind positive",
    "Binary": "kind binary",
    "Categorical": "kind categorical",
    "Count": "kind count",
    "return_std": "--std",
    "predict_quantiles": "--quantiles",
    "predict_proba": "--proba",
}
# What typer, in some version, says of a value, and what is said instead.
_SAID = (
    (r"Invalid value for '([^']+)'( / '[^']+')*: ", r"\1: "),
    (r"Input should be greater than or equal to (\S+)", r"expected \1 or more"),
    (r"Input should be less than or equal to (\S+)", r"expected \1 or less"),
    (r"Input should be a valid integer.*", "expected a whole number"),
    (r"Input should be a valid number.*", "expected a number"),
    (r"(\S+) is not in the range x>=(\S+)", r"expected \2 or more but got \1"),
    (r"('.*') is not a valid int(eger)?", r"expected a whole number but got \1"),
    (r"('.*') is not a valid float", r"expected a number but got \1"),
)
_KINDS = re.compile(r"\b(Real|Positive|Binary|Categorical|Count) view\b")
_FILES = ("FILE", "STUDY", "GMT", "NAME=FILE")  # what is wrong in a file is no wrong option
_WrongOptions: Any = typer.BadParameter.__bases__[0]  # of click, which typer may have inside


class PlainHelp:
    """Help that speaks of NAME, FILE and N; neither of types nor of ranges such as x>=1."""

    def get_params(self, ctx: Any) -> Any:
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
            if param.param_type_name == "argument":
                param.display_type_rich = lambda ctx: None  # noqa: ARG005
            param._get_number_range_help_str = lambda: None
        return params


# What options were called in kofa 0.1, and are called now.
_OLD_NAMES = {
    "--to": "--out",
    "--factors": "--n-factors",
    "--init": "--n-init",
    "--seed": "--random-state",
}
_NO_OUTPUT = "write --outputs NAME for a view to predict, or -o FILE (--out) for a file to write"


class Command(PlainHelp, TyperCommand):
    """One command, which knows its options by their old names too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {name for param in self.get_params(ctx) for name in param.opts}
        end = args.index("--") if "--" in args else len(args)
        renamed = [_renamed(arg, known, Screen(_is_quiet(args))) for arg in args[:end]]
        return super().parse_args(ctx, [*renamed, *args[end:]])

    def invoke(self, ctx: Any) -> Any:
        """Run it; an error about an option names it as it is written here."""
        try:
            return super().invoke(ctx)
        except KofaError as error:
            raise self._naming_option(error, ctx) from error

    def _naming_option(self, error: KofaError, ctx: Any) -> KofaError:
        name = f"--{str(error.option).replace('_', '-')}"
        param = next((one for one in self.get_params(ctx) if name in one.opts), None)
        somewhere = error.source not in (None, error.option)
        if param is None or somewhere or not ctx.params.get(param.name):
            return error
        kind = type(error) if str(param.metavar).startswith(_FILES) else UsageError
        what = error.what.replace(f"expected {error.option} to be ", "expected ")
        return error.as_error(kind, what=what, source=name)


def _renamed(argument: str, known: set[str], screen: Screen) -> str:
    """An argument as it is called now; with a warning if that is new."""
    name, equals, value = argument.partition("=")
    if name == "--output":
        raise UsageError("there is no --output", cure=_NO_OUTPUT)
    new = _OLD_NAMES.get(name)
    if new is None or name in known or new not in known:
        return argument
    screen.warn(f"{name} will be removed in kofa 0.3; write {new}")
    return f"{new}{equals}{value}"


def _is_quiet(args: list[str]) -> bool:
    return bool({"-q", "--quiet"} & set(args))


class Commands(PlainHelp, TyperGroup):
    """All commands, with errors in one line and an exit code."""

    def main(self, *arguments: Any, **extra: Any) -> Any:
        take_any_text()
        given = (*arguments, extra.get("args"))[0] or sys.argv[1:]
        try:
            code = super().main(*arguments, **{**extra, "standalone_mode": False})
        except Exception as error:
            wrong_options = isinstance(error, UsageError | typer.Abort | _WrongOptions)
            if "--debug" in given and not wrong_options:
                raise
            if message := _in_words(error):
                Screen().error(message)
            code = 2 if wrong_options else 1
        sys.exit(code or 0)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            ours = isinstance(error, Stopped)
            Screen().note(f"\n{error if ours else 'stopped; nothing was written'}")
            raise typer.Exit(130) from None


def _in_words(error: Exception) -> str:
    """What went wrong, in a line."""
    if isinstance(error, KofaError):
        return _KINDS.sub(lambda kind: f"{kind[1].lower()} view", error.message(WORDS))
    if isinstance(error, ImportError):
        return str(error)
    if isinstance(error, _WrongOptions):
        path = getattr(getattr(error, "ctx", None), "command_path", "kofa")
        message = error.format_message().rstrip(".")
        for theirs, ours in _SAID:
            message = re.sub(theirs, ours, message)
        more = f"{path} --help shows the options"
        return message and f"{message}{' ' if message.endswith('?') else '; '}{more}"
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        return f"{error.filename}: {what}" if error.filename else what
    if isinstance(error, MemoryError):
        return f"there is not enough memory: {error}"
    return (
        f"kofa cannot go on ({type(error).__name__}: {error}); this is a fault of kofa: please "
        f"report it, with what the same command shows with --debug"
    )
