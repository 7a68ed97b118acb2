"""Arrays as members of a zip, in NumPy's own format; only numbers, truth values, words and dates.

The size of an array is compared with the bytes that are there before memory is allocated.
"""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kofa.storage.damage import DamageError, require
from kofa.storage.zip_directory import Member, check_sum, data_start

LONGEST_HEADER = 4096
_MEMBER = re.compile(r"arrays/([A-Za-z0-9_]{1,80})\.npy")
_MOST_ENTRIES = 2**40  # of an array, counting a dimension of zero as one
_MOST_DIMENSIONS = 8
_CHUNK = 2**20  # bytes that are read at a time
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    r"\{'descr': '([<|][a-zA-Z0-9\[\]]{2,16})', 'fortran_order': (True|False), "
    r"'shape': \(((?:\d{1,19}, )*\d{1,19},?)?\), \} *\n"
)
_DTYPE = re.compile(
    r"\|b1|\|[iu]1|<[iu][248]|<f[248]|<U[1-9]\d{0,6}|<[mM]8\[(?:Y|M|W|D|h|m|s|ms|us|ns)\]"
)
_EPOCH = (1980, 1, 1, 0, 0, 0)  # equal contents are equal bytes, whenever they are written

Arrays = Mapping[str, NDArray[Any]]

# ---------------------------------------------------------------- write


def member_info(name: str, size: int) -> zipfile.ZipInfo:
    """How a member of at most this size is entered into a zip."""
    info = zipfile.ZipInfo(name, _EPOCH)
    info.create_system, info.external_attr = 3, 0o644 << 16
    info.file_size = size  # tells zipfile whether 32 bits are enough
    return info


def write_array(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    little = np.asarray(array, dtype=array.dtype.newbyteorder("<"))
    member = f"arrays/{name}.npy"
    if not (_MEMBER.fullmatch(member) and _DTYPE.fullmatch(little.dtype.str)):
        raise TypeError(f"Expected a plain array and name but got {name!r} of {array.dtype}.")
    with archive.open(member_info(member, little.nbytes + LONGEST_HEADER), "w") as file:
        np.lib.format.write_array(file, little, version=(1, 0), allow_pickle=False)


# ---------------------------------------------------------------- read


class StoredArrays(Arrays):
    """The arrays of an open file by name, each of them read when it is asked for."""

    def __init__(self, file: IO[bytes], members: list[Member]) -> None:
        self.in_memory: dict[str, NDArray[Any]] = {}
        self._file = file
        self._members = {_array_name(member): member for member in members}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.in_memory:
            self.in_memory[name] = _read_array(self._file, self._members[name])
        return self.in_memory[name]

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


def _array_name(member: Member) -> str:
    match = _MEMBER.fullmatch(member.name)
    if match is None:
        raise DamageError(f"it has an unexpected member {member.title}")
    return match[1]


def _read_array(file: IO[bytes], member: Member) -> NDArray[Any]:
    file.seek(data_start(file, member))
    header = _read_header(file, member.size)
    parsed = None if header is None else _parse_header(header[len(_MAGIC) + 2 :])
    if header is None or parsed is None:
        raise DamageError(f"{member.title} is not an array of numbers or words")
    dtype, fortran, shape = parsed
    there = member.size - len(header)
    fits = math.prod(max(1, n) for n in shape) <= _MOST_ENTRIES
    fits = fits and math.prod(shape) * dtype.itemsize == there
    require(fits, f"{member.title} declares shape {shape} but has {there} bytes")
    array = np.empty(shape, dtype, order="F" if fortran else "C")
    flat = array.reshape(-1, order="A")
    data = flat.view(np.uint8).data if there else memoryview(b"")
    n_read = _fill(file, data)
    check_sum(member, len(header) + n_read, zlib.crc32(data, zlib.crc32(header)))
    require(_has_valid_entries(flat), f"{member.title} has entries that mean nothing")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _read_header(file: IO[bytes], size: int) -> bytes | None:
    """What describes the array, in the one way in which kofa writes it."""
    start = file.read(min(size, len(_MAGIC) + 2))
    if len(start) < len(_MAGIC) + 2 or not start.startswith(_MAGIC):
        return None
    length = int.from_bytes(start[-2:], "little")
    if length > min(LONGEST_HEADER, size - len(start)):
        return None
    return start + file.read(length)


def _parse_header(header: bytes) -> tuple[np.dtype[Any], bool, tuple[int, ...]] | None:
    """dtype, whether the first axis runs fastest, and shape."""
    match = _HEADER.fullmatch(header.decode("ascii", "replace"))
    if match is None or not _DTYPE.fullmatch(match[1]):
        return None
    shape = tuple(int(n) for n in (match[3] or "").split(",") if n.strip())
    if len(shape) > _MOST_DIMENSIONS:
        return None
    return np.dtype(match[1]), match[2] == "True", shape


def _fill(file: IO[bytes], buffer: memoryview) -> int:
    """Read as much as the buffer holds; how much there was."""
    at = 0
    while at < len(buffer):
        n_read = file.readinto(buffer[at : at + _CHUNK])  # type: ignore[attr-defined]
        if not n_read:
            break
        at += n_read
    return at


def _has_valid_entries(flat: NDArray[Any]) -> bool:
    """Whether truth values are 0 or 1, and words made of characters."""
    if flat.dtype.kind == "b":
        return int(flat.view(np.uint8).max(initial=0)) <= 1
    if flat.dtype.kind == "U":
        return int(flat.view("<u4").max(initial=0)) <= 0x10FFFF
    return True
