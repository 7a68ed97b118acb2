"""One file of a JSON manifest and plain arrays: written whole or not at all, read with suspicion.

A file is a zip whose members are stored as they are: `manifest.json`, and one `.npy` for each
array. Nothing in it is ever run, imported or unpickled, and nothing grows when it is read: all
sizes are compared with the bytes that are there before anything is allocated.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kofa.errors import DeclarationError, FileError
from kofa.storage.atomic import replacing
from kofa.storage.members import (
    LOCAL,
    LOCAL_MARK,
    DamageError,
    Member,
    check_members,
    check_stored,
    data_of,
    directory,
    require,
)

FORMAT = "kofa"
VERSION = 1  # of the format; a file of a higher one is refused

_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 2**24  # bytes
_LONGEST_NUMBER = 1000  # digits
_DEEPEST = 200  # brackets within each other in the manifest
_MOST_ENTRIES = 2**40  # of an array, counting a dimension of zero as one
# What a file may become in memory beyond its own size, and what its parts need of that: a value,
# a list or a key in the manifest, a member of the zip. All in bytes, and rather too many.
_ROOM = 60 * 2**20
_OF_ITEM, _OF_LIST, _OF_KEY, _OF_MEMBER = 80, 200, 270, 1500
_MEMBER = re.compile(r"arrays/([A-Za-z0-9_]{1,80})\.npy")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # equal contents are equal bytes, whenever they are written
_CHUNK = 2**20  # bytes that are looked at at a time
_STEPS = np.zeros(256, np.int8)  # into brackets and out of them, by sign
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1
_MAGIC = b"\x93NUMPY\x01\x00"
_LONGEST_HEADER = 4096
_HEADER = re.compile(
    r"\{'descr': '([<|][a-zA-Z0-9\[\]]{2,16})', 'fortran_order': (True|False), "
    r"'shape': \(((?:\d{1,19}, )*\d{1,19},?)?\), \} *\n"
)
_DTYPE = re.compile(
    r"\|b1|\|[iu]1|<[iu][248]|<f[248]|<U[1-9]\d{0,6}|<[mM]8\[(?:Y|M|W|D|h|m|s|ms|us|ns)\]"
)
_BEGINNING = re.compile(
    rb'PK\x03\x04.{26}manifest\.json.{0,64}?\{"format": "kofa", "format_version": \d{1,9}, '
    rb'"kofa_version": "[^"]{1,80}", "contents": "([a-z]{1,20})"',
    re.DOTALL,
)
_KINDS = {
    "model": "a fitted model: read it with kofa.load",
    "checkpoint": "the checkpoint of a fit: continue it with "
    "FactorModel(..., checkpoint=path).fit(data, resume=True)",
    "result": "the result of one step of an experiment: kofa paper reads it",
}

StrPath = str | os.PathLike[str]

# ---------------------------------------------------------------- write


def write(
    path: StrPath,
    manifest: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    room: Room | None = None,
) -> None:
    """Write a manifest of plain JSON values, with its "contents" named, and arrays by plain names.

    The file appears under its name when all of it is on the disk. Until then, and if anything goes
    wrong, what was there before stays.
    """
    data = encoded(path, manifest, arrays, room or Room())
    with _new(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        with archive.open(_info(_MANIFEST, len(data)), "w") as member:
            member.write(data)
        for name, array in arrays.items():
            _write_array(archive, name, array)


def encoded(
    path: StrPath, manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], room: Room
) -> bytes:
    """The manifest as it is written; an error if the file could not be read again."""
    from kofa import __version__  # known once the package is imported

    head = {"format": FORMAT, "format_version": VERSION, "kofa_version": __version__}
    text = json.dumps({**head, **manifest}, ensure_ascii=False, allow_nan=False)
    data = text.encode("utf-8", "surrogatepass")
    with refusing(path, "shorten the column names, or fit arrays instead of DataFrames"):
        room.take_members(1 + len(arrays))
        room.take_manifest(data)
    return data


@contextmanager
def refusing(path: StrPath, cure: str) -> Iterator[None]:
    """Write nothing of which something is found to be wrong that would refuse it when read."""
    try:
        yield
    except (DamageError, DeclarationError) as error:
        what = str(error).rstrip(".")
        raise FileError(
            f"{_shown(path)} cannot be written, because it could not be read again: {what}; {cure}."
        ) from None


def _info(name: str, size: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.create_system, info.external_attr = 3, 0o644 << 16
    info.file_size = size  # tells zipfile whether 32 bits are enough
    return info


def _write_array(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    little = np.asarray(array, dtype=array.dtype.newbyteorder("<"))
    member = f"arrays/{name}.npy"
    if not (_MEMBER.fullmatch(member) and _DTYPE.fullmatch(little.dtype.str)):
        raise TypeError(f"Expected a plain array and name but got {name!r} of {array.dtype}.")
    with archive.open(_info(member, little.nbytes + _LONGEST_HEADER), "w") as file:
        np.lib.format.write_array(file, little, version=(1, 0), allow_pickle=False)


@contextmanager
def _new(path: StrPath) -> Iterator[IO[bytes]]:
    """A new file next to `path` that takes its place in the end, or is removed."""
    target = target_of(path)
    with writing(path), replacing(target) as part, part.open("wb") as file:
        yield file


@contextmanager
def writing(path: StrPath) -> Iterator[None]:
    """What the system says about a file that cannot be written, in words that name the file."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{_shown(path)} cannot be written: {_reason(error)}.") from error


def target_of(path: StrPath) -> Path:
    """The file that is to be written, through links; an error if it cannot be one."""
    try:
        target = Path(os.path.realpath(path))
    except ValueError as error:  # a null in the name
        raise FileError(f"{_shown(path)} cannot be written: {error}.") from None
    with writing(path):
        _check_target(path, target)
    return target


def _check_target(path: StrPath, target: Path) -> None:
    if target.is_dir():
        raise FileError(f"{_shown(path)} is a folder: name a file in it, such as model.kofa.")
    if target.exists() and not target.is_file():
        raise FileError(f"{_shown(path)} is not a regular file: name another.")
    if not target.parent.is_dir():
        raise FileError(
            f"{_shown(path)} cannot be written: there is no folder {str(target.parent)!r}; "
            f"create it first."
        )


def _reason(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "permission denied; choose a folder that you may write to"
    return (error.strerror or str(error)).lower()


# ---------------------------------------------------------------- read


def read(
    path: StrPath, contents: str | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The manifest and all arrays of a file, or a `FileError` that says what is wrong with it.

    With `contents` the manifest must name these: "model" or "checkpoint".
    """
    with opened(path, contents) as (manifest, arrays):
        return manifest, dict(arrays)


@contextmanager
def opened(path: StrPath, contents: str | None = None) -> Iterator[tuple[dict[str, Any], Arrays]]:
    """The manifest of a file, and its arrays, which are read when they are asked for."""
    with _reading(path) as file, naming(path):
        _check_start(path, file)
        room = Room()
        members, end = directory(file, room.take_members)
        manifest = _read_manifest(file, members, room)
        _check_head(path, manifest, contents)
        _check_names(members)
        check_members(file, members, end)
        yield manifest, Arrays(file, members, room)


def contents_of(path: StrPath) -> str | None:
    """What a file says that it contains, by the way it begins, whole or not; None for others."""
    if not os.path.isfile(path):
        return None
    with _reading(path) as file:
        match = _BEGINNING.match(file.read(_LONGEST_HEADER))
    return None if match is None else match[1].decode()


@contextmanager
def _reading(path: StrPath) -> Iterator[IO[bytes]]:
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):
            raise FileError(f"{_shown(path)} is a folder: name the file in it.")
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise FileError(f"{_shown(path)} is not a regular file: copy it to one.")
        file = open(path, "rb")  # noqa: SIM115  closed below
    except FileNotFoundError:
        raise FileError(
            f"There is no file {_shown(path)}: check the name and the folder."
        ) from None
    except PermissionError:
        raise FileError(f"{_shown(path)} may not be read: permission denied.") from None
    except (OSError, ValueError) as error:  # a name with a null in it is a ValueError
        if isinstance(error, FileError):
            raise
        raise FileError(f"{_shown(path)} cannot be read: {error}.") from None
    with file:
        yield file


def _check_start(path: StrPath, file: IO[bytes]) -> None:
    start = file.read(LOCAL.size + len(_MANIFEST))
    if not start:
        raise FileError(f"{_shown(path)} is empty: {_AGAIN}.")
    if not start.startswith(LOCAL_MARK):
        raise FileError(f"{_shown(path)} is not a kofa file: {_WRITTEN_BY}.")
    if len(start) > LOCAL.size and not start.endswith(_MANIFEST.encode()):
        raise FileError(f"{_shown(path)} is a zip but not a kofa file: {_WRITTEN_BY}.")


_AGAIN = "copy it again from where it was written, or save the model again"
_WRITTEN_BY = "those are written by FactorModel.save"


@contextmanager
def naming(path: StrPath) -> Iterator[None]:
    """Say which file it is of which something is found to be wrong."""
    try:
        yield
    except (DamageError, DeclarationError) as error:
        raise damaged(path, str(error).rstrip(".")) from error
    except OSError as error:
        raise FileError(f"{_shown(path)} cannot be read: {error}.") from error


def damaged(path: StrPath, what: str) -> FileError:
    """The error for a file of which something is not as kofa writes it."""
    return FileError(f"{_shown(path)} is damaged or was tampered with: {what}; {_AGAIN}.")


def _shown(path: StrPath) -> str:
    return repr(os.fspath(path))


# ---------------------------------------------------------------- how much a file may become


class Room:
    """What is left of the bytes that a file may become in memory, beyond its own size.

    Arrays take no more than they take in the file. Names, settings and the names of arrays do:
    Python needs up to a hundred bytes for one.
    """

    def __init__(self) -> None:
        self.left = _ROOM

    def take(self, size: float) -> None:
        self.left -= int(size)
        require(self.left >= 0, "it has more names and settings than kofa writes")

    def take_members(self, n: int) -> None:
        self.take(n * _OF_MEMBER)

    def take_manifest(self, data: bytes) -> None:
        """Take what JSON becomes, by counting its parts before they are made."""
        require(len(data) <= _LARGEST_MANIFEST, "its manifest is too large")
        # A string takes four bytes for each character if one of them needs that many.
        wide = not data.isascii() or re.search(rb"\\u(?!00)", data) is not None
        self.take(7 * len(data) if wide else len(data))
        n_items, n_lists, n_keys, depth = _counts(data)
        self.take(_OF_ITEM * n_items + _OF_LIST * n_lists + _OF_KEY * n_keys)
        require(depth <= _DEEPEST, "its manifest is nested too deep")


def _counts(data: bytes) -> tuple[int, int, int, int]:
    """Values, lists and keys in JSON, and how deep it is nested, by the signs around strings."""
    data = data.replace(rb"\\", b"").replace(rb"\"", b"")
    counts, depth, deepest, inside = np.zeros(256, np.int64), 0, 0, False
    for at in range(0, len(data), _CHUNK):
        signs = np.frombuffer(data, np.uint8, min(_CHUNK, len(data) - at), at)
        within = np.logical_xor.accumulate(signs == ord('"')) ^ inside
        inside = bool(within[-1])
        signs = signs[~within]
        counts += np.bincount(signs, minlength=256)
        depths = np.cumsum(np.concatenate([[depth], _STEPS[signs]]), dtype=np.int32)
        depth, deepest = int(depths[-1]), max(deepest, int(depths.max()))
    commas, lists, objects, keys = (int(counts[ord(sign)]) for sign in ",[{:")
    return commas + objects, lists, keys, deepest


# ---------------------------------------------------------------- the manifest


def _read_manifest(file: IO[bytes], members: list[Member], room: Room) -> dict[str, Any]:
    found = [member for member in members if member.name == _MANIFEST]
    require(len(found) == 1, "it has two manifests" if found else "it has no manifest")
    check_stored(found[0])
    require(found[0].size <= _LARGEST_MANIFEST, "its manifest is too large")
    file.seek(data_of(file, found[0]))
    data = file.read(found[0].size)
    _check_sum(found[0], len(data), zlib.crc32(data))
    room.take_manifest(data)
    try:
        text = data.decode("utf-8", "surrogatepass")
        del data
        manifest = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse,
            parse_float=_finite,
            parse_int=_whole,
        )
    except (RecursionError, ValueError) as error:
        raise DamageError(
            f"its manifest is not the JSON that kofa writes ({error!s:.100})"
        ) from None
    require(isinstance(manifest, dict), "its manifest is not a JSON object")
    return dict(manifest)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"unexpected {constant}")


def _finite(text: str) -> float:
    number = float(text) if len(text) <= _LONGEST_NUMBER else math.inf
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _whole(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError("a number is too large")
    return int(text)


def _check_head(path: StrPath, manifest: dict[str, Any], contents: str | None) -> None:
    version, found = manifest.get("format_version"), manifest.get("contents")
    if manifest.get("format") != FORMAT or type(version) is not int or version < 1:
        raise FileError(
            f"{_shown(path)} is not a kofa file: its manifest names no format that kofa knows."
        )
    if version > VERSION:
        raise FileError(
            f"{_shown(path)} was written by kofa {manifest.get('kofa_version')!s:.40} with format "
            f"{version}; this kofa reads up to {VERSION}: upgrade kofa."
        )
    require(
        isinstance(found, str) and found in _KINDS, "its manifest does not say what it contains"
    )
    require(isinstance(manifest.get("kofa_version"), str), "it does not say who wrote it")
    if contents is not None and found != contents:
        raise FileError(f"Expected a {contents} in {_shown(path)} but it is {_KINDS[str(found)]}.")


# ---------------------------------------------------------------- arrays


class Arrays(Mapping[str, NDArray[Any]]):
    """The arrays of an open file, each of them read when it is asked for."""

    def __init__(self, file: IO[bytes], members: list[Member], room: Room) -> None:
        self.room = room
        self.read: dict[str, NDArray[Any]] = {}
        self._file = file
        self._members = {
            member.name[len("arrays/") : -len(".npy")]: member
            for member in members
            if member.name != _MANIFEST
        }

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.read:
            self.read[name] = _read_array(self._file, self._members[name])
        return self.read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


def _read_array(file: IO[bytes], member: Member) -> NDArray[Any]:
    file.seek(data_of(file, member))
    header = _read_header(file, member.size)
    parsed = None if header is None else _parse_header(header[len(_MAGIC) + 2 :])
    if header is None or parsed is None:
        raise DamageError(f"{member.shown} is not an array of numbers or words")
    dtype, fortran, shape = parsed
    there = member.size - len(header)
    fits = math.prod(max(1, n) for n in shape) <= _MOST_ENTRIES
    fits = fits and math.prod(shape) * dtype.itemsize == there
    require(fits, f"{member.shown} declares shape {shape} but has {there} bytes")
    array = np.empty(shape, dtype, order="F" if fortran else "C")
    flat = array.reshape(-1, order="A")
    data = flat.view(np.uint8).data if there else memoryview(b"")
    n_read = _fill(file, data)
    _check_sum(member, len(header) + n_read, zlib.crc32(data, zlib.crc32(header)))
    require(_plain(flat), f"{member.shown} has entries that mean nothing")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _read_header(file: IO[bytes], size: int) -> bytes | None:
    """What describes the array, in the one way in which kofa writes it."""
    start = file.read(min(size, len(_MAGIC) + 2))
    if len(start) < len(_MAGIC) + 2 or not start.startswith(_MAGIC):
        return None
    length = int.from_bytes(start[-2:], "little")
    if length > min(_LONGEST_HEADER, size - len(start)):
        return None
    return start + file.read(length)


def _parse_header(header: bytes) -> tuple[np.dtype[Any], bool, tuple[int, ...]] | None:
    """dtype, whether columns come first, and shape."""
    match = _HEADER.fullmatch(header.decode("ascii", "replace"))
    if match is None or not _DTYPE.fullmatch(match[1]):
        return None
    shape = tuple(int(n) for n in (match[3] or "").split(",") if n.strip())
    return (np.dtype(match[1]), match[2] == "True", shape) if len(shape) <= 8 else None


def _fill(file: IO[bytes], buffer: memoryview) -> int:
    """Read as much as the buffer holds; how much there was."""
    at = 0
    while at < len(buffer):
        n_read = file.readinto(buffer[at : at + _CHUNK])  # type: ignore[attr-defined]
        if not n_read:
            break
        at += n_read
    return at


def _check_names(members: list[Member]) -> None:
    for member in members:
        known = member.name == _MANIFEST or _MEMBER.fullmatch(member.name) is not None
        require(known, f"it has an unexpected member {member.shown}")


def _check_sum(member: Member, n_read: int, crc: int) -> None:
    require(n_read == member.size, f"the end of its member {member.shown} is missing")
    require(crc == member.crc, "some of its bytes have changed")


def _plain(flat: NDArray[Any]) -> bool:
    """Whether truth values are 0 or 1, and words made of characters."""
    if flat.dtype.kind == "b":
        return int(flat.view(np.uint8).max(initial=0)) <= 1
    if flat.dtype.kind == "U":
        return int(flat.view("<u4").max(initial=0)) <= 0x10FFFF
    return True
