"""The members of a zip, found with suspicion: nothing is believed that is not checked.

Python's own reader is written for honest files. It makes an object of each entry of a directory,
however many there are, and differs from version to version in what it raises.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from reprlib import Repr
from typing import IO, Any, NamedTuple

from kofa.errors import FileError

LOCAL_MARK = b"PK\3\4"
LOCAL = struct.Struct("<4s5H3L2H")  # before the name of a member
_ENTRY = struct.Struct("<4s6H3L5H2L")  # the same in the directory
_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_FLAGS = 0x0808  # of a member: names in UTF-8, sizes behind the data; no encryption
_LONGEST_ENTRY = 256  # bytes of a member in the directory
_SPARE = 2**26  # bytes that may be holes in any file
_MOST_HOLES = 32  # bytes in a larger file for each one that is on the disk


class DamageError(FileError):
    """Something in a file is not as kofa writes it. `naming` says in which file."""


def require(condition: bool, what: str) -> None:
    """Raise, saying what is wrong, unless something read from a file is as it should be."""
    if not condition:
        raise DamageError(what)


_repr = Repr()
_repr.maxstring = _repr.maxother = 60


def shown(value: Any) -> str:
    """Something from a file in a message; not all of it is looked at."""
    return _repr.repr(value)


class Member(NamedTuple):
    """What the directory of the zip says about a member."""

    name: str
    flags: int
    method: int  # of compression
    crc: int
    packed: int
    size: int
    start: int  # of its own header

    @property
    def shown(self) -> str:
        return repr(self.name[:60])


def directory(file: IO[bytes], counted: Callable[[int], None]) -> tuple[list[Member], int]:
    """The members of a zip, and where they end; `counted` may refuse their number."""
    n, size, start = _end(file)
    counted(n)
    require(size <= n * _LONGEST_ENTRY, "its directory is too large")
    file.seek(start)
    data, at, members = file.read(size), 0, []
    for _ in range(n):
        member, at = _entry(data, at)
        require(member.start < start, f"its member {member.shown} is not where it should be")
        members.append(member)
    require(at == len(data) == size, "its directory is not whole")
    return members, start


def _end(file: IO[bytes]) -> tuple[int, int, int]:
    """Number of members, and size and start of the directory; large files say it twice."""
    end = file.seek(0, os.SEEK_END) - _END.size
    mark, _, _, _, n, size, start, comment = _unpacked(_END, file, end)
    require(mark == b"PK\5\6" and comment == 0, "its end is missing")
    if end >= _LOCATOR.size + _END_64.size:
        mark, *_ = _unpacked(_LOCATOR, file, end - _LOCATOR.size)
        if mark == b"PK\6\7":
            end -= _LOCATOR.size + _END_64.size
            mark, *_, n, size, start = _unpacked(_END_64, file, end)
            require(mark == b"PK\6\6", "its end is missing")
    require(start + size == end, "its directory is not at its end")
    return n, size, start


def _unpacked(form: struct.Struct, file: IO[bytes], at: int) -> tuple[Any, ...]:
    require(at >= 0, "its end is missing")
    file.seek(at)
    data = file.read(form.size)
    require(len(data) == form.size, "its end is missing")
    return form.unpack(data)


def _entry(data: bytes, at: int) -> tuple[Member, int]:
    """A member of the directory, and where the next one is."""
    require(at + _ENTRY.size <= len(data), "its directory is not whole")
    mark, _, _, flags, method, _, _, crc, packed, size, *lengths, _, _, _, start = (
        _ENTRY.unpack_from(data, at)
    )
    require(mark == b"PK\1\2", "its directory is not whole")
    at += _ENTRY.size
    extra = data[at + lengths[0] : at + lengths[0] + lengths[1]]
    size, packed, start = _large([size, packed, start], extra)
    name = data[at : at + lengths[0]].decode("utf-8", "replace")
    return Member(name, flags, method, crc, packed, size, start), at + sum(lengths)


def _large(sizes: list[int], extra: bytes) -> list[int]:
    """Sizes that 32 bits cannot hold stand in the extra field."""
    missing = [place for place, size in enumerate(sizes) if size == 2**32 - 1]
    if missing:
        require(
            extra[:2] == b"\1\0" and len(extra) >= 4 + 8 * len(missing), "a size of it is missing"
        )
        for n, place in enumerate(missing):
            sizes[place] = int.from_bytes(extra[4 + 8 * n :][:8], "little")
    return sizes


def check_stored(member: Member) -> None:
    require(
        member.method == 0 and member.packed == member.size,
        f"its member {member.shown} is compressed",
    )
    require(
        not member.flags & ~_FLAGS, f"its member {member.shown} is encrypted or of an unknown kind"
    )


def check_members(file: IO[bytes], members: list[Member], stop: int) -> None:
    """Each name once, stored as it is, one behind the other, and all of it on the disk."""
    seen: set[str] = set()
    end = 0
    for member in sorted(members, key=lambda member: member.start):
        require(member.name not in seen, f"its member {member.shown} occurs twice")
        seen.add(member.name)
        check_stored(member)
        require(member.start >= end, f"its member {member.shown} overlaps another")
        end = data_of(file, member) + member.size
    require(end <= stop, "its members are larger than the file")
    check_dense(file)


def data_of(file: IO[bytes], member: Member) -> int:
    """Where the data of a member begin; lengths of name and extra field are those on the spot."""
    mark, *_, name, extra = _unpacked(LOCAL, file, member.start)
    require(mark == LOCAL_MARK, f"its member {member.shown} is not where it should be")
    return int(member.start + LOCAL.size + name + extra)


def check_dense(file: IO[bytes]) -> None:
    """Raise for a file of holes, which takes next to nothing on disk but all its size in memory.

    Some file systems make holes of the zeros in an honest file, so that a few are all right.
    """
    if sys.platform == "win32" or not hasattr(os, "SEEK_HOLE"):  # nobody tells
        return
    descriptor, size = file.fileno(), os.fstat(file.fileno()).st_size
    before, there, at = os.lseek(descriptor, 0, os.SEEK_CUR), 0, 0
    with suppress(OSError):  # there are no data any more, or the file system does not tell
        while at < size and _SPARE + _MOST_HOLES * there < size:
            data = os.lseek(descriptor, at, os.SEEK_DATA)
            at = os.lseek(descriptor, data, os.SEEK_HOLE)
            there += at - data
    os.lseek(descriptor, before, os.SEEK_SET)
    # A file begins with its manifest: one without any data is on a system that does not tell.
    require(there == 0 or _SPARE + _MOST_HOLES * there >= size, "most of it are holes")
