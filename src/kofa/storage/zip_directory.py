"""The directory of a zip, in which nothing is believed before it is checked.

Python's own reader is written for honest files. It makes an object of each entry, however many
there are, and differs from version to version in what it raises.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, NamedTuple

from kofa.storage.damage import require

LOCAL_MARK = b"PK\3\4"
LOCAL = struct.Struct("<4s5H3L2H")  # before the name of a member
_ENTRY = struct.Struct("<4s6H3L5H2L")  # the same in the directory
_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_FLAGS = 0x0808  # that a member may have: its name in UTF-8, its sizes after its data
_LONGEST_ENTRY = 256  # bytes of a member in the directory
_FREE = 2**26  # bytes that may be holes in any file
_MOST_HOLES = 32  # bytes in a larger file for each one that is on the disk


class Member(NamedTuple):
    """What the directory says about one member."""

    name: str
    flags: int
    method: int  # of compression
    crc: int
    packed: int
    size: int
    start: int  # of its own header

    @property
    def title(self) -> str:
        """For messages."""
        return repr(self.name[:60])


def read_directory(
    file: IO[bytes], check_number: Callable[[int], None]
) -> tuple[list[Member], int]:
    """The members of a zip, and where they end; `check_number` may refuse their number."""
    n, size, start = _read_end(file)
    check_number(n)
    require(size <= n * _LONGEST_ENTRY, "its directory is too large")
    file.seek(start)
    data, at, members = file.read(size), 0, []
    for _ in range(n):
        member, at = _read_entry(data, at)
        require(member.start < start, f"its member {member.title} is not where it should be")
        members.append(member)
    require(at == len(data) == size, "its directory is not complete")
    return members, start


def _read_end(file: IO[bytes]) -> tuple[int, int, int]:
    """Number of members, and size and start of the directory; large files say it twice."""
    end = file.seek(0, os.SEEK_END) - _END.size
    mark, _, _, _, n, size, start, comment = _read_struct(_END, file, end)
    require(mark == b"PK\5\6" and comment == 0, "its end is missing")
    if end >= _LOCATOR.size + _END_64.size:
        mark, *_ = _read_struct(_LOCATOR, file, end - _LOCATOR.size)
        if mark == b"PK\6\7":
            end -= _LOCATOR.size + _END_64.size
            mark, *_, n, size, start = _read_struct(_END_64, file, end)
            require(mark == b"PK\6\6", "its end is missing")
    require(start + size == end, "its directory is not at its end")
    return n, size, start


def _read_struct(form: struct.Struct, file: IO[bytes], at: int) -> tuple[Any, ...]:
    require(at >= 0, "its end is missing")
    file.seek(at)
    data = file.read(form.size)
    require(len(data) == form.size, "its end is missing")
    return form.unpack(data)


def _read_entry(data: bytes, at: int) -> tuple[Member, int]:
    """A member of the directory, and where the next one is."""
    require(at + _ENTRY.size <= len(data), "its directory is not complete")
    mark, _, _, flags, method, _, _, crc, packed, size, *lengths, _, _, _, start = (
        _ENTRY.unpack_from(data, at)
    )
    require(mark == b"PK\1\2", "its directory is not complete")
    at += _ENTRY.size
    extra = data[at + lengths[0] : at + lengths[0] + lengths[1]]
    size, packed, start = _with_long_sizes([size, packed, start], extra)
    name = data[at : at + lengths[0]].decode("utf-8", "replace")
    return Member(name, flags, method, crc, packed, size, start), at + sum(lengths)


def _with_long_sizes(sizes: list[int], extra: bytes) -> list[int]:
    """Sizes that 32 bits cannot hold stand in the extra field."""
    missing = [i for i, size in enumerate(sizes) if size == 2**32 - 1]
    enough = extra[:2] == b"\1\0" and len(extra) >= 4 + 8 * len(missing)
    require(enough or not missing, "a size in it is missing")
    for n, i in enumerate(missing):
        sizes[i] = int.from_bytes(extra[4 + 8 * n :][:8], "little")
    return sizes


# ---------------------------------------------------------------- checks


def check_stored(member: Member) -> None:
    """Raise unless a member is neither compressed nor encrypted."""
    stored = member.method == 0 and member.packed == member.size
    require(stored, f"its member {member.title} is compressed")
    known = not member.flags & ~_FLAGS
    require(known, f"its member {member.title} is encrypted or of an unknown kind")


def check_members(file: IO[bytes], members: list[Member], stop: int) -> None:
    """Each name once, stored as it is, one after the other, and all of it on the disk."""
    seen: set[str] = set()
    end = 0
    for member in sorted(members, key=lambda member: member.start):
        require(member.name not in seen, f"its member {member.title} occurs twice")
        seen.add(member.name)
        check_stored(member)
        require(member.start >= end, f"its member {member.title} overlaps another")
        end = data_start(file, member) + member.size
    require(end <= stop, "its members are larger than the file")
    _check_holes(file)


def data_start(file: IO[bytes], member: Member) -> int:
    """Where the data of a member begin; lengths of name and extra field are those before it."""
    mark, *_, name, extra = _read_struct(LOCAL, file, member.start)
    require(mark == LOCAL_MARK, f"its member {member.title} is not where it should be")
    return int(member.start + LOCAL.size + name + extra)


def check_sum(member: Member, n_read: int, crc: int) -> None:
    """Raise unless as many bytes of a member were read as it has, with this checksum."""
    require(n_read == member.size, f"the end of its member {member.title} is missing")
    require(crc == member.crc, "some of its bytes have changed")


def _check_holes(file: IO[bytes]) -> None:
    """Raise for a file of holes, which takes no space on the disk but all its size in memory.

    Some file systems make holes of the zeros in an honest file, so that a few are allowed.
    """
    if sys.platform == "win32" or not hasattr(os, "SEEK_HOLE"):  # the system does not say
        return
    descriptor, size = file.fileno(), os.fstat(file.fileno()).st_size
    before, there, at = os.lseek(descriptor, 0, os.SEEK_CUR), 0, 0
    with suppress(OSError):  # no data are left, or the file system does not say
        while at < size and _FREE + _MOST_HOLES * there < size:
            data = os.lseek(descriptor, at, os.SEEK_DATA)
            at = os.lseek(descriptor, data, os.SEEK_HOLE)
            there += at - data
    os.lseek(descriptor, before, os.SEEK_SET)
    # A file begins with its manifest: without any data, it is the system that does not say.
    require(there == 0 or _FREE + _MOST_HOLES * there >= size, "most of it are holes")
