"""Files that appear under their names when all of them is on the disk."""

from __future__ import annotations

import glob
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside `path` for a file that takes its place in the end, or is removed.

    Until then, and if anything goes wrong, what was there before stays.
    """
    part = path.with_name(f"{_stem(path)}{secrets.token_hex(6)}.tmp")
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(path)
        _sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make the new name outlive a power cut, where the system can."""
    if os.name == "posix":
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def clear(path: Path) -> None:
    """Remove what a process that was killed left beside `path`."""
    for part in path.parent.glob(f"{glob.escape(_stem(path))}{'[0-9a-f]' * 12}.tmp"):
        part.unlink(missing_ok=True)


def _stem(path: Path) -> str:
    return f".{path.name[:80]}."
