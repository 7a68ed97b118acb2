"""The command `kofa`."""

from __future__ import annotations

import sys


class UsageError(Exception):
    """An option of the command line that cannot be understood."""


class Stopped(KeyboardInterrupt):
    """The user stopped a command; the message says what is there, or how to go on."""


def main() -> None:
    """Run the command line, or say what is missing for it."""
    try:
        from kofa.cli.app import app
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("typer", "rich", "click"):
            raise
        sys.stderr.write("error: the command line needs typer: pip install 'kofa[cli]'\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="kofa")
