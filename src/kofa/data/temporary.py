"""Files without a name, for what does not fit into memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import IO

from kofa.errors import FileError

MORE_SPACE = "name a folder with more space as TMPDIR"


def temporary_file() -> IO[bytes]:
    """A file that is gone when it is closed, or when its process ends, however it does."""
    folder = temporary_folder()
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise _without_files(folder, error) from error


def temporary_folder() -> Path:
    """Where temporary files are made."""
    try:
        return Path(tempfile.gettempdir())
    except OSError as error:
        raise _without_files("any folder", error) from error


def _without_files(folder: object, error: OSError) -> FileError:
    what = f"no temporary file can be made in {folder}: {error.strerror or error}"
    return FileError(what, cure="name a folder that you may write to as TMPDIR, and start anew")
