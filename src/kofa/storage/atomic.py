"""Atomic writing: a file appears under its name when all of it is on the disk; locks on names."""

from __future__ import annotations

import glob
import hashlib
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    _TAKEN = PermissionError  # when another process has the lock
else:
    import fcntl

    _TAKEN = BlockingIOError

# Seconds to wait for programs that read the file that is replaced. Only Windows minds them.
_PAUSES = (0.01, 0.1, 0.5, 1.0) if sys.platform == "win32" else ()
_LONGEST_NAME = 200  # bytes, of the 255 that file systems allow


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A new, empty file beside `path`, which takes its place at the end, or is removed.

    Until then, and if anything goes wrong, the old file stays. The new one has its permissions.
    """
    with temporary_beside(path, mode=0o600 if path.exists() else 0o666) as part:
        yield part
        _copy_permissions(path, part)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        _move(part, path)
        _sync_folder(path.parent)


@contextmanager
def temporary_beside(path: Path, mode: int = 0o600) -> Iterator[Path]:
    """A new, empty file beside `path`, which is removed at the end.

    What killed processes left behind is removed now.
    """
    remove_leftovers(path)
    part = path.with_name(f"{_beginning(path)}{secrets.token_hex(6)}.tmp")
    with locked(part.with_suffix(".lock"), wait=True):  # so that no other process removes it
        try:
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
            yield part
        finally:
            part.unlink(missing_ok=True)


def _copy_permissions(path: Path, part: Path) -> None:
    """Those of the old file, if there is one. On Windows they are the folder's."""
    if sys.platform != "win32" and path.exists():
        old = path.stat()
        with suppress(OSError):  # only root may give a file to another user
            os.chown(part, old.st_uid, old.st_gid)
        with suppress(OSError):  # some file systems have no permissions
            part.chmod(stat.S_IMODE(old.st_mode))


def _move(part: Path, path: Path) -> None:
    for pause in _PAUSES:
        try:
            part.replace(path)
            return
        except PermissionError:
            time.sleep(pause)
    part.replace(path)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    if sys.platform != "win32":
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def remove_leftovers(path: Path) -> None:
    """Remove what killed processes left beside `path`, and nothing of those that run."""
    pattern = glob.escape(_beginning(path)) + "[0-9a-f]" * 12
    for found in [*path.parent.glob(f"{pattern}.tmp"), *path.parent.glob(f"{pattern}.lock")]:
        with suppress(OSError), locked(found.with_suffix(".lock")) as ours:
            if ours:
                found.with_suffix(".tmp").unlink(missing_ok=True)


def _beginning(path: Path) -> str:
    """How the names of temporary files for `path` begin; a long name is shortened."""
    name = os.fsencode(path.name)
    if len(name) > _LONGEST_NAME:
        return f".{path.name[:40]}{hashlib.blake2b(name, digest_size=6).hexdigest()}."
    return f".{path.name}."


def lock_path(path: Path) -> Path:
    """The file of the lock on a name."""
    return path.with_name(f"{_beginning(path)}lock")


@contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[bool | None]:
    """Hold a lock, for which there is a file `path` meanwhile; whether it is ours.

    False if another process has it, and None where the file system has no locks. The operating
    system releases the lock when its owner ends or is killed.
    """
    descriptor, ours = _open_locked(path, wait)
    try:
        yield ours
    finally:
        # The file is removed while it is locked, so that nobody can lock one that is about to go.
        # Windows keeps files that are open: there it is removed afterwards, if nobody opened it.
        if ours is not False and sys.platform != "win32":
            _remove(path)
        os.close(descriptor)
        if ours is not False and sys.platform == "win32":
            _remove(path)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _open_locked(path: Path, wait: bool) -> tuple[int, bool | None]:
    """The file of a lock, opened, and whether the lock is ours."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            ours = _lock(descriptor, wait)
            if ours is False or _is_at(path, descriptor):
                return descriptor, ours
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its owner removed the file just now: try again


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _lock(descriptor: int, wait: bool) -> bool | None:
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except _TAKEN:
        return False
    except OSError:
        return None
    return True
