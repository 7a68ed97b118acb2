"""How commands run and end: errors in one line, and an exit code."""

from __future__ import annotations

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
_WrongOptions: Any = typer.BadParameter.__bases__[0]  # of click, which typer may have inside


class PlainFlags:
    """Help that has no <bool> beside options that take no value."""

    def get_params(self, ctx: Any) -> Any:
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(PlainFlags, TyperCommand):
    """One command."""


class Commands(PlainFlags, TyperGroup):
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
        return error.message(WORDS)
    if isinstance(error, ImportError):
        return str(error)
    if isinstance(error, _WrongOptions):
        path = getattr(getattr(error, "ctx", None), "command_path", "kofa")
        message = error.format_message().rstrip(".")
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
