"""The command `kofa`."""

from __future__ import annotations

import sys

from kofa.errors import KofaError


class UsageError(KofaError):
    """An option of the command line that cannot be understood."""


class Stopped(KeyboardInterrupt):
    """The user stopped a command; the message says what is written, or how to continue."""


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
