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
_BEFORE = 10  # bytes of a header before those that its length counts
# The one way in which kofa writes it: version 1.0, its length in two bytes, a dict of three keys.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '([<|][a-zA-Z0-9\[\]]{2,16})', "
    rb"'fortran_order': (True|False), 'shape': \(((?:\d{1,19}, )*\d{1,19},?)?\), \} *\n",
    re.DOTALL,
)
_DTYPE = re.compile(
    r"\|b1|\|[iu]1|<[iu][248]|<f[248]|<U[1-9]\d{0,6}|<[mM]8\[(?:Y|M|W|D|h|m|s|ms|us|ns)\]"
)
_EPOCH = (1980, 1, 1, 0, 0, 0)  # equal contents are equal bytes, whenever they are written

NamedArrays = Mapping[str, NDArray[Any]]


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


class StoredArrays(NamedArrays):
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
    start = data_start(file, member)
    file.seek(start)
    header = _HEADER.match(file.read(min(member.size, LONGEST_HEADER)))
    shape = _shape(header[4]) if header else ()
    known = header and _DTYPE.fullmatch(header[2].decode()) and len(shape) <= _MOST_DIMENSIONS
    if not (header and known and int.from_bytes(header[1], "little") == header.end() - _BEFORE):
        raise DamageError(f"{member.title} is not an array of numbers or words")
    dtype, n_bytes = np.dtype(header[2].decode()), member.size - header.end()
    fits = math.prod(max(1, n) for n in shape) <= _MOST_ENTRIES
    fits = fits and math.prod(shape) * dtype.itemsize == n_bytes
    require(fits, f"{member.title} declares shape {shape} but has {n_bytes} bytes")
    file.seek(start + header.end())
    flat = np.fromfile(file, dtype, math.prod(shape))
    data = flat.view(np.uint8).data if flat.size else b""
    check_sum(member, header.end() + len(data), zlib.crc32(data, zlib.crc32(header[0])))
    require(_has_valid_entries(flat), f"{member.title} has entries that mean nothing")
    array = flat.reshape(shape, order="F" if header[3] == b"True" else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _shape(written: bytes | None) -> tuple[int, ...]:
    return tuple(int(n) for n in (written or b"").split(b",") if n.strip())


def _has_valid_entries(flat: NDArray[Any]) -> bool:
    """Whether truth values are 0 or 1, and words made of characters."""
    if flat.dtype.kind == "b":
        return int(flat.view(np.uint8).max(initial=0)) <= 1
    if flat.dtype.kind == "U":
        return int(flat.view("<u4").max(initial=0)) <= 0x10FFFF
    return True
