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
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kofa.errors import FileError
from kofa.replacing import replacing

FORMAT = "kofa"
VERSION = 1  # of the format; a file of a higher one is refused

_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 2**26  # bytes
_MOST_ENTRIES = 2**40  # of an array, counting a dimension of zero as one
_MEMBER = re.compile(r"arrays/([A-Za-z0-9_]{1,80})\.npy")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # equal contents are equal bytes, whenever they are written
_FLAGS = 0x0808  # of a member: names in UTF-8, sizes behind the data; no encryption
_LOCAL_HEADER = 30  # bytes before the name of a member
_CHUNK = 2**20  # bytes that are read at a time
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


def write(path: StrPath, manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a manifest of plain JSON values, with its "contents" named, and arrays by plain names.

    The file appears under its name when all of it is on the disk. Until then, and if anything goes
    wrong, what was there before stays.
    """
    from kofa import __version__  # known once the package is imported

    head = {"format": FORMAT, "format_version": VERSION, "kofa_version": __version__}
    text = json.dumps({**head, **manifest}, ensure_ascii=False, allow_nan=False)
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > _LARGEST_MANIFEST:
        raise FileError(
            f"{_shown(path)} cannot be written: its names and settings take {len(data) >> 20} MiB, "
            f"but at most {_LARGEST_MANIFEST >> 20} can be read again. Shorten the column names, "
            f"or fit arrays instead of DataFrames."
        )
    with _new(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        with archive.open(_info(_MANIFEST, len(data)), "w") as member:
            member.write(data)
        for name, array in arrays.items():
            _write_array(archive, name, array)


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
    """The manifest and the arrays of a file, or a `FileError` that says what is wrong with it.

    With `contents` the manifest must name these: "model" or "checkpoint".
    """
    with _reading(path) as file, _damage_in_words(path), zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        manifest = _read_manifest(path, archive, members)
        _check_head(path, manifest, contents)
        _check_members(path, file, archive, members)
        names = {info.filename: info for info in members if info.filename != _MANIFEST}
        arrays = {
            name[len("arrays/") : -len(".npy")]: _read_array(path, archive, info)
            for name, info in names.items()
        }
    return manifest, arrays


def contents_of(path: StrPath) -> str | None:
    """What a file says that it contains, by the way it begins, whole or not; None for others."""
    with open(path, "rb") as file:
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


@contextmanager
def _damage_in_words(path: StrPath) -> Iterator[None]:
    """All that Python's zip reader raises for files that are not as they should be."""
    try:
        yield
    except FileError:
        raise
    except (
        zipfile.BadZipFile, zipfile.LargeZipFile, struct.error, EOFError, OSError, ValueError,
        OverflowError, NotImplementedError, RuntimeError, LookupError,
    ) as error:  # fmt: skip
        raise FileError(_diagnosis(path, error)) from error


def _diagnosis(path: StrPath, error: Exception) -> str:
    try:
        with open(path, "rb") as file:
            start = file.read(4)
    except OSError as gone:
        return f"{_shown(path)} cannot be read: {gone}."
    if not start:
        return f"{_shown(path)} is empty: {_AGAIN}."
    if start != b"PK\x03\x04":
        return f"{_shown(path)} is not a kofa file: those are written by FactorModel.save."
    if "CRC" in str(error):
        return f"{_shown(path)} is damaged, some of its bytes have changed: {_AGAIN}."
    if "not a zip file" in str(error):
        return f"{_shown(path)} is truncated: {_AGAIN}."
    return f"{_shown(path)} is damaged ({error}): {_AGAIN}."


_AGAIN = "copy it again from where it was written, or save the model again"


def damaged(path: StrPath, what: str) -> FileError:
    """The error for a file of which something is not as kofa writes it."""
    return FileError(f"{_shown(path)} is damaged or was tampered with: {what}; {_AGAIN}.")


def require(condition: bool, what: str) -> None:
    """Raise, saying what is wrong, unless something read from a file is as it should be."""
    if not condition:
        raise FileError(what)


def _shown(path: StrPath) -> str:
    return repr(os.fspath(path))


# ---------------------------------------------------------------- the manifest


def _read_manifest(
    path: StrPath, archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]
) -> dict[str, Any]:
    found = [info for info in members if info.filename == _MANIFEST]
    if not found:
        raise FileError(
            f"{_shown(path)} is a zip but not a kofa file: those are written by FactorModel.save."
        )
    if len(found) > 1:
        raise damaged(path, "it has two manifests")
    _check_stored(path, found[0])
    if found[0].file_size > _LARGEST_MANIFEST:
        raise damaged(path, "its manifest is too large")
    try:
        text = archive.read(found[0]).decode("utf-8", "surrogatepass")
        manifest = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite
        )
    except (RecursionError, ValueError) as error:
        raise damaged(path, f"its manifest is not the JSON that kofa writes ({error})") from None
    if not isinstance(manifest, dict):
        raise damaged(path, "its manifest is not a JSON object")
    return manifest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"unexpected {constant}")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


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
    if not isinstance(found, str) or found not in _KINDS:
        raise damaged(path, "its manifest does not say what it contains")
    if contents is not None and found != contents:
        raise FileError(f"Expected a {contents} in {_shown(path)} but it is {_KINDS[found]}.")


# ---------------------------------------------------------------- members


def _check_stored(path: StrPath, info: zipfile.ZipInfo) -> None:
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
        raise damaged(path, f"its member {_member(info)} is compressed")
    if info.flag_bits & ~_FLAGS:
        raise damaged(path, f"its member {_member(info)} is encrypted or of an unknown kind")


def _check_members(
    path: StrPath, file: IO[bytes], archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]
) -> None:
    """Only the names kofa gives, each once, stored as they are, one behind the other."""
    seen: set[str] = set()
    for info in members:
        if info.filename != _MANIFEST and not _MEMBER.fullmatch(info.filename):
            raise damaged(path, f"it has an unexpected member {_member(info)}")
        if info.filename in seen:
            raise damaged(path, f"its member {_member(info)} occurs twice")
        seen.add(info.filename)
        _check_stored(path, info)
    end = 0
    for info in sorted(members, key=lambda info: info.header_offset):
        if info.header_offset < end:
            raise damaged(path, f"its member {_member(info)} overlaps another")
        end = _end(file, info)
    if end > archive.start_dir:
        raise damaged(path, "its members are larger than the file")


def _end(file: IO[bytes], info: zipfile.ZipInfo) -> int:
    """Where the data of a member end; lengths of name and extra field are those on the spot."""
    file.seek(info.header_offset)
    name, extra = struct.unpack("<26xHH", file.read(_LOCAL_HEADER))
    return int(info.header_offset + _LOCAL_HEADER + name + extra + info.file_size)


def _member(info: zipfile.ZipInfo) -> str:
    return repr(info.filename[:60])


# ---------------------------------------------------------------- arrays


def _read_array(path: StrPath, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(info) as member:
        header = _read_header(member)
        parsed = None if header is None else _parse_header(header)
        if header is None or parsed is None:
            raise damaged(path, f"{_member(info)} is not an array of numbers or words")
        dtype, fortran, shape = parsed
        there = info.file_size - len(_MAGIC) - 2 - len(header)
        entries = math.prod(max(1, n) for n in shape)
        if entries > _MOST_ENTRIES or math.prod(shape) * dtype.itemsize != there:
            raise damaged(path, f"{_member(info)} declares shape {shape} but has {there} bytes")
        array = np.empty(shape, dtype, order="F" if fortran else "C")
        _fill(
            member, array.reshape(-1, order="A").view(np.uint8).data if there else memoryview(b"")
        )
    if not _plain(array):
        raise damaged(path, f"{_member(info)} has entries that mean nothing")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _read_header(member: IO[bytes]) -> str | None:
    """The text that describes the array, in the one way in which kofa writes it."""
    start = member.read(len(_MAGIC) + 2)
    if len(start) < len(_MAGIC) + 2 or not start.startswith(_MAGIC):
        return None
    length = int.from_bytes(start[-2:], "little")
    text = member.read(min(length, _LONGEST_HEADER))
    return text.decode("ascii", "replace") if len(text) == length else None


def _parse_header(header: str) -> tuple[np.dtype[Any], bool, tuple[int, ...]] | None:
    """dtype, whether columns come first, and shape."""
    match = _HEADER.fullmatch(header)
    if match is None or not _DTYPE.fullmatch(match[1]):
        return None
    shape = tuple(int(n) for n in (match[3] or "").split(",") if n.strip())
    return (np.dtype(match[1]), match[2] == "True", shape) if len(shape) <= 8 else None


def _fill(member: IO[bytes], buffer: memoryview) -> None:
    """Read all of a member; its checksum is compared at its end."""
    at = 0
    while at < len(buffer):
        piece = member.read(min(_CHUNK, len(buffer) - at))
        if not piece:
            raise EOFError("its end is missing")
        buffer[at : at + len(piece)] = piece
        at += len(piece)
    member.read(1)


def _plain(array: NDArray[Any]) -> bool:
    """Whether truth values are 0 or 1, and words made of characters."""
    flat = array.reshape(-1, order="A")
    if array.dtype.kind == "b":
        return bool((flat.view(np.uint8) <= 1).all())
    if array.dtype.kind == "U":
        return bool((flat.view("<u4") <= 0x10FFFF).all())
    return True
