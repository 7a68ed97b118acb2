"""Arrays in files that nobody else sees, and that are gone with the array."""

from __future__ import annotations

import mmap
import os
import sys
import weakref

import numpy as np

from kofa.data.temporary import MORE_SPACE, temporary_file, temporary_folder
from kofa.errors import DataError
from kofa.linalg import Array

_SMALL = 2**20  # numbers that are not worth a file (8 MiB)
_MAPPED: list[weakref.ref[mmap.mmap]] = []  # those in use


def on_disk(shape: tuple[int, int]) -> Array:
    """An array in a temporary file, or in memory where it is small."""
    size = 8 * shape[0] * shape[1]
    if size <= 8 * _SMALL:
        return np.empty(shape)
    with temporary_file() as file:
        _reserve(file.fileno(), size)
        array = np.memmap(file, dtype=np.float64, mode="r+", shape=shape)
    _MAPPED[:] = [one for one in _MAPPED if one() is not None]
    _MAPPED.append(weakref.ref(array.base))  # type: ignore[arg-type]
    return array


def out_of_memory() -> None:
    """Keep what was read or written of these arrays in their files only."""
    if sys.platform == "win32":  # which cannot be told
        return
    for one in _MAPPED:
        mapped = one()
        if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)


def _reserve(file: int, size: int) -> None:
    """Take the space now: what does not fit later ends the process without a word."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)
        else:
            os.truncate(file, size)
    except OSError as error:
        what = f"there are no {size / 2**20:.0f} MiB for the factors of the samples in "
        what += str(temporary_folder())
        raise DataError(what, cure=MORE_SPACE) from error
