"""Files that appear under their names when all of them is on the disk, and locks on names."""

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

# Seconds to wait for those who read a file that is to be replaced. Only Windows minds them.
_PAUSES = (0.01, 0.1, 0.5, 1.0) if sys.platform == "win32" else ()
_LONGEST_NAME = 200  # bytes, of the 255 that file systems allow


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new, empty file beside `path` that takes its place in the end, or is removed.

    Until then, and if anything goes wrong, what was there before stays. Who may read and write the
    new file is who might the old one. What killed processes left behind is removed.
    """
    clear(path)
    part = path.with_name(f"{_stem(path)}{secrets.token_hex(6)}.tmp")
    with locked(part.with_suffix(".lock"), wait=True):  # so that nobody clears it
        try:
            _create(part, private=path.exists())
            yield part
            _keep_mode(path, part)
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            _move(part, path)
            _sync_folder(path.parent)
        finally:
            part.unlink(missing_ok=True)


def _create(part: Path, private: bool) -> None:
    """An empty file with the usual rights, or for the owner alone."""
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666))


def _keep_mode(path: Path, part: Path) -> None:
    """Give the new file the rights of the old one. On Windows they are the folder's."""
    if sys.platform != "win32" and path.exists():
        there = path.stat()
        with suppress(OSError):  # a file of somebody else stays theirs only if we are root
            os.chown(part, there.st_uid, there.st_gid)
        with suppress(OSError):  # some file systems have no rights
            part.chmod(stat.S_IMODE(there.st_mode))


def _move(part: Path, path: Path) -> None:
    for pause in _PAUSES:
        try:
            part.replace(path)
            return
        except PermissionError:
            time.sleep(pause)
    part.replace(path)


def _sync_folder(folder: Path) -> None:
    """Make the new name outlive a power cut, where the system can."""
    if sys.platform != "win32":
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def clear(path: Path) -> None:
    """Remove what processes that were killed left beside `path`, and nothing of those that run."""
    left = glob.escape(_stem(path)) + "[0-9a-f]" * 12
    for found in [*path.parent.glob(f"{left}.tmp"), *path.parent.glob(f"{left}.lock")]:
        with suppress(OSError), locked(found.with_suffix(".lock")) as ours:
            if ours:
                found.with_suffix(".tmp").unlink(missing_ok=True)


def _stem(path: Path) -> str:
    """How the names of files for `path` begin; what would become too long is cut."""
    name = os.fsencode(path.name)
    if len(name) > _LONGEST_NAME:
        return f".{path.name[:40]}{hashlib.blake2b(name, digest_size=6).hexdigest()}."
    return f".{path.name}."


# ---------------------------------------------------------------- locks


@contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[bool | None]:
    """Hold a lock, for which there is a file `path` meanwhile; whether it is ours.

    False if somebody else has it, and None where the file system has no locks. It is the system
    that keeps the lock, so that it ends with its owner even if that is killed.
    """
    descriptor, ours = _take(path, wait)
    try:
        yield ours
    finally:
        # The file goes while it is locked, so that nobody can lock a file that is about to go.
        # Windows keeps files that are open; there it goes afterwards, unless somebody opened it.
        if ours is not False and sys.platform != "win32":
            _remove(path)
        os.close(descriptor)
        if ours is not False and sys.platform == "win32":
            _remove(path)


def lock_of(path: Path) -> Path:
    """The file of the lock on a name."""
    return path.with_name(f"{_stem(path)}lock")


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _take(path: Path, wait: bool) -> tuple[int, bool | None]:
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
        os.close(descriptor)  # its owner removed it just now


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int, wait: bool) -> bool | None:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        except OSError:
            return None
        return True

else:
    import fcntl

    def _lock(descriptor: int, wait: bool) -> bool | None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        except OSError:
            return None
        return True
