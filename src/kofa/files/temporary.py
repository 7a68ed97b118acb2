"""Temporary files that are opened by their name, several times over."""

from __future__ import annotations

import os
import weakref
from contextlib import ExitStack
from pathlib import Path

from kofa.data.temporary import temporary_file, temporary_folder
from kofa.storage.atomic import temporary_beside

_OPEN_FILES = "/proc/{}/fd"  # where Linux has names for them, for other processes too


class TemporaryPath:
    """The path of a file that is gone when nothing refers to this any more.

    Where the system has names for open files, the file has no other: it is gone however its process
    ends. Elsewhere, and where it is to be `in_folder`, as HDF5 wants it, what killed processes left
    is removed when the next such file is made.
    """

    def __init__(self, in_folder: bool = False) -> None:
        with ExitStack() as stack:
            file = stack.enter_context(temporary_file())
            self.path = Path(_OPEN_FILES.format(os.getpid()), str(file.fileno()))
            if in_folder or not os.access(self.path, os.R_OK | os.W_OK):
                self.path = stack.enter_context(temporary_beside(temporary_folder() / "kofa"))
            weakref.finalize(self, stack.pop_all().close)
