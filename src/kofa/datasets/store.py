"""Sets on this machine: the data directory, the cache, and whether the values are right."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofa.datasets.formats import Arrays, parse
from kofa.datasets.table import Entry
from kofa.errors import FileError
from kofa.storage.atomic import atomic_write


def cache_folder() -> Path:
    """Where downloads are kept: KOFA_CACHE, else where the system keeps such things."""
    named = os.environ.get("KOFA_CACHE")
    return Path(named) if named else _system_cache() / "kofa"


def _system_cache() -> Path:
    named = os.environ.get("XDG_CACHE_HOME")
    if named:
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path.home() / ".cache"


def from_folder(folder: Path, entry: Entry, exact: bool = True) -> tuple[Arrays, Path] | None:
    """The set as NAME.npz, or as the public files under their own names; None without them."""
    whole = folder / f"{entry.name}.npz"
    if whole.exists():
        return read(whole), whole
    for source in entry.sources:
        paths = [folder / name for name in source.file_names]
        if paths and all(path.exists() for path in paths):
            return _parse_files(paths, entry, exact), paths[0]
    return None


def _parse_files(paths: list[Path], entry: Entry, exact: bool) -> Arrays:
    """Sources may give different files the same names: the first that can be used counts."""
    names = tuple(path.name for path in paths)
    try:
        files = [path.read_bytes() for path in paths]
    except OSError as error:
        raise FileError(f"{paths[0]} cannot be read: {error}.") from error
    reasons = []
    for source in entry.sources:
        if source.file_names == names:
            try:
                arrays = parse(files, source, entry)
                check(arrays, entry, exact)
            except FileError as error:
                reasons.append(str(error))
            else:
                return arrays
    raise FileError(f"{paths[0]} cannot be used: {'; '.join(reasons)}.")


def read(path: Path) -> Arrays:
    """All arrays of an npz file."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}
    except (OSError, ValueError, EOFError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        raise FileError(f"{path} cannot be read as an npz file: {error}.") from error


def write(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an npz file that appears under its name when all of it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **dict(arrays))  # type: ignore[arg-type]


# ---------------------------------------------------------------- whether the values are right


def check(arrays: Arrays, entry: Entry, exact: bool = True) -> None:
    """Refuse arrays that are not of the shape, or not the values, that the table says."""
    for key, shape in entry.shapes.items():
        if key not in arrays:
            raise FileError(f"Expected an array {key} but got {', '.join(arrays) or 'none'}")
        found = _flat(arrays[key]) if key == "X" else arrays[key]
        if found.shape != shape:
            raise FileError(f"Expected {key} of shape {shape} but got {found.shape}")
        if found.dtype.kind not in "iufb":
            raise FileError(f"Expected numbers in {key} but got {found.dtype}")
    if exact and entry.fingerprint and fingerprint(arrays) != entry.fingerprint:
        raise FileError(
            f"Expected the values of {entry.name} but got others: "
            f"their fingerprint is {fingerprint(arrays)[:12]}…, not {entry.fingerprint[:12]}…"
        )


def _flat(X: NDArray[Any]) -> NDArray[Any]:
    return X.reshape(len(X), -1) if X.ndim > 2 else X


def fingerprint(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the shapes and values of X, Y and y, as float32: how a number was written does
    not matter beyond its seventh digit, nor how an array is stored."""
    digest = hashlib.sha256()
    for key in ("X", "Y", "y"):
        if key in arrays:
            values = arrays[key].reshape(len(arrays[key]), -1).astype("<f4") + np.float32(0)
            values[np.isnan(values)] = np.nan  # of all its bit patterns, one
            digest.update(str(values.shape).encode())
            digest.update(values.tobytes())
    return digest.hexdigest()
