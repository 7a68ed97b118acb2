"""One file of a JSON manifest and plain arrays: written whole or not at all, read within limits.

A file is a zip whose members are stored as they are: `manifest.json`, and one `.npy` for each
array. Nothing in it is ever run, imported or unpickled, and nothing grows when it is read: all
sizes are compared with the bytes that are there before memory is allocated.
"""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from kofa.errors import DeclarationError, FileError
from kofa.storage.atomic import atomic_write
from kofa.storage.damage import DamageError
from kofa.storage.manifest import (
    BEGINNING,
    MANIFEST,
    MemoryBudget,
    check_head,
    manifest_bytes,
    read_manifest,
)
from kofa.storage.npy import LONGEST_HEADER, NamedArrays, StoredArrays, member_info, write_array
from kofa.storage.zip_directory import LOCAL, LOCAL_MARK, check_members, read_directory

StrPath = str | os.PathLike[str]
_COPY_AGAIN = "copy it again from where it was written, or save the model again"
_WRITTEN_BY = "those are written by FactorModel.save"

# ---------------------------------------------------------------- write


def write_archive(
    path: StrPath,
    manifest: Mapping[str, Any],
    arrays: NamedArrays,
    budget: MemoryBudget | None = None,
) -> None:
    """Write a manifest of plain JSON values, with its "contents" named, and arrays by plain names.

    The file appears under its name when all of it is on the disk. Until then, and if anything goes
    wrong, the old file stays.
    """
    data = encode_manifest(path, manifest, arrays, budget or MemoryBudget())
    target = resolve_target(path)
    with (
        naming_target(path),
        atomic_write(target) as part,
        part.open("wb") as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
    ):
        with archive.open(member_info(MANIFEST, len(data)), "w") as member:
            member.write(data)
        for name, array in arrays.items():
            write_array(archive, name, array)


def encode_manifest(
    path: StrPath, manifest: Mapping[str, Any], arrays: NamedArrays, budget: MemoryBudget
) -> bytes:
    """The manifest as it is written; an error if the file could not be read again."""
    data = manifest_bytes(manifest)
    with must_be_readable(path, "shorten the column names, or fit arrays instead of DataFrames"):
        budget.spend_on_members(1 + len(arrays))
        budget.spend_on_manifest(data)
    return data


@contextmanager
def must_be_readable(path: StrPath, advice: str) -> Iterator[None]:
    """Turn what would be damage in a file that is read into an error before it is written."""
    try:
        yield
    except (DamageError, DeclarationError) as error:
        problem = str(error).rstrip(".")
        raise FileError(
            f"{_quoted(path)} cannot be written, because it could not be read again: {problem}; "
            f"{advice}."
        ) from None


@contextmanager
def naming_target(path: StrPath) -> Iterator[None]:
    """Turn errors of the system about a file that is written into ours, which name it."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if isinstance(error, PermissionError):
            reason = "permission denied; choose a folder that you may write to"
        raise FileError(f"{_quoted(path)} cannot be written: {reason}.") from error


def resolve_target(path: StrPath) -> Path:
    """The file that is to be written, through links; an error if it cannot be one."""
    try:
        target = Path(os.path.realpath(path))
    except ValueError as error:  # a null in the name
        raise FileError(f"{_quoted(path)} cannot be written: {error}.") from None
    with naming_target(path):
        if target.is_dir():
            raise FileError(f"{_quoted(path)} is a folder: name a file in it, such as model.kofa.")
        if target.exists() and not target.is_file():
            raise FileError(f"{_quoted(path)} is not a regular file: name another.")
        if not target.parent.is_dir():
            raise FileError(
                f"{_quoted(path)} cannot be written: there is no folder {str(target.parent)!r}; "
                f"create it first."
            )
    return target


# ---------------------------------------------------------------- read


def read_archive(
    path: StrPath, contents: str | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The manifest and all arrays of a file, or a `FileError` that says what is wrong with it.

    With `contents` the manifest must name these: "model" or "checkpoint".
    """
    with open_archive(path, contents) as (manifest, arrays, _):
        return manifest, dict(arrays)


@contextmanager
def open_archive(
    path: StrPath, contents: str | None = None
) -> Iterator[tuple[dict[str, Any], StoredArrays, MemoryBudget]]:
    """The manifest of a file, its arrays, read when they are asked for, and what memory is left."""
    with _open_file(path) as file, naming_file(path):
        _check_start(_quoted(path), file)
        budget = MemoryBudget()
        members, end = read_directory(file, budget.spend_on_members)
        manifest = read_manifest(file, members, budget)
        check_head(_quoted(path), manifest, contents)
        arrays = StoredArrays(file, [member for member in members if member.name != MANIFEST])
        check_members(file, members, end)
        yield manifest, arrays, budget


def contents_of(path: StrPath) -> str | None:
    """What a file says that it contains, by how it begins, complete or not; None for others."""
    if not os.path.isfile(path):
        return None
    with _open_file(path) as file:
        match = BEGINNING.match(file.read(LONGEST_HEADER))
    return None if match is None else match[1].decode()


@contextmanager
def _open_file(path: StrPath) -> Iterator[IO[bytes]]:
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):
            raise FileError(f"{_quoted(path)} is a folder: name the file in it.")
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise FileError(f"{_quoted(path)} is not a regular file: copy it to one.")
        file = open(path, "rb")  # noqa: SIM115  closed below
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(
            f"There is no file {_quoted(path)}: check the name and the folder."
        ) from None
    except PermissionError:
        raise FileError(f"{_quoted(path)} may not be read: permission denied.") from None
    except (OSError, ValueError) as error:  # a name with a null in it is a ValueError
        raise FileError(f"{_quoted(path)} cannot be read: {error}.") from None
    with file:
        yield file


def _check_start(quoted_path: str, file: IO[bytes]) -> None:
    start = file.read(LOCAL.size + len(MANIFEST))
    if not start:
        raise FileError(f"{quoted_path} is empty: {_COPY_AGAIN}.")
    if not start.startswith(LOCAL_MARK):
        raise FileError(f"{quoted_path} is not a kofa file: {_WRITTEN_BY}.")
    if len(start) > LOCAL.size and not start.endswith(MANIFEST.encode()):
        raise FileError(f"{quoted_path} is a zip but not a kofa file: {_WRITTEN_BY}.")


@contextmanager
def naming_file(path: StrPath) -> Iterator[None]:
    """Add to errors about something in a file which file it is."""
    try:
        yield
    except (DamageError, DeclarationError) as error:
        raise damage_of_file(path, str(error).rstrip(".")) from error
    except OSError as error:
        raise FileError(f"{_quoted(path)} cannot be read: {error}.") from error


def damage_of_file(path: StrPath, problem: str) -> FileError:
    """The error for a file of which something is not as kofa writes it."""
    return FileError(f"{_quoted(path)} is damaged or was tampered with: {problem}; {_COPY_AGAIN}.")


def _quoted(path: StrPath) -> str:
    return repr(os.fspath(path))
