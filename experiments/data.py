"""Data sets by name: from a data directory, from scikit-learn, else from their public sources.

The data directory is the one that --data-dir or KOFA_DATA names. It has NAME.npz, with arrays X and
Y or y, or the public files of the set under their own names. What is found must have the shape and
the values that the table of sets says.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from kofa.errors import DeclarationError, FileError

Arrays = dict[str, NDArray[Any]]
SHIPPED = {  # with scikit-learn
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
    "iris": load_iris,
    "wine": load_wine,
}


OTHER_NAMES = {"fashion_mnist": "fashion_mnist_10k"}  # of the paper's sets, a draw


@dataclass(frozen=True)
class Entry:
    """What the table says of one set."""

    name: str
    rows: int
    columns: int
    targets: int = 0  # columns of Y; 0 where there are classes y
    fingerprint: str = ""
    openml: str = ""  # its name there
    files: tuple[str, ...] = ()  # addresses, all https
    sha256: tuple[str, ...] = ()  # of the files, where they are known
    format: str = ""
    header: bool = False  # whether the first line of each text file is to be skipped
    parts: tuple[str, ...] = ()  # names of the rows of one file, or pair of files, after the other
    image_shape: tuple[int, ...] | None = None
    reference_class: int | None = None  # y_binary is 0 there, and 1 elsewhere

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        target = {"Y": (self.rows, self.targets)} if self.targets else {"y": (self.rows,)}
        return {"X": (self.rows, self.columns), **target}


@cache
def entries() -> dict[str, Entry]:
    """All sets by name, in the order of the table."""
    text = Path(__file__).with_name("sets.toml").read_text(encoding="utf-8")
    return {name: _entry(name, fields) for name, fields in tomllib.loads(text).items()}


def _entry(name: str, fields: dict[str, Any]) -> Entry:
    fields = {key: tuple(v) if isinstance(v, list) else v for key, v in fields.items()}
    about = ("description", "citation", "licence")  # for people
    return Entry(name, **{key: value for key, value in fields.items() if key not in about})


# ---------------------------------------------------------------- the data directory


def data_dir() -> Path | None:
    """The folder that KOFA_DATA names, if it does."""
    named = os.environ.get("KOFA_DATA")
    if not named:
        return None
    if not Path(named).is_dir():
        raise FileError(f"Expected a data directory but there is no folder {named!r}.")
    return Path(named)


def available(name: str) -> bool:
    """Whether a set is on this machine: no benchmark downloads anything."""
    folder = data_dir()
    return name in SHIPPED or (folder is not None and _place(folder, name) is not None)


def stored(name: str, *keys: str) -> tuple[NDArray[Any], ...] | None:
    """Arrays of NAME.npz in the data directory, whatever they are; None where it is not."""
    folder = data_dir()
    if folder is None or not (folder / f"{name}.npz").exists():
        return None
    arrays = read_npz(folder / f"{name}.npz")
    return tuple(arrays[key] for key in keys)


def _place(folder: Path, name: str) -> list[Path] | None:
    """The files in a folder that a set can be read from."""
    name = OTHER_NAMES.get(name, name)
    entry = entries().get(name)
    public = [url.rpartition("/")[2] for url in entry.files] if entry else []
    for names in ([f"{name}.npz"], public):
        if names and all((folder / one).exists() for one in names):
            return [folder / one for one in names]
    return None


def read_npz(path: Path) -> Arrays:
    """All arrays of an npz file."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}
    except (OSError, ValueError, EOFError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        raise FileError(f"it cannot be read as an npz file: {error}") from error


# ---------------------------------------------------------------- a set by name


def load(name: str) -> SimpleNamespace:
    """X as float64, missing values NaN; Y or y; image_shape; and what else the set has."""
    if name in SHIPPED:
        X, y = SHIPPED[name](return_X_y=True)
        return SimpleNamespace(X=X, y=y, Y=None, image_shape=None)
    entry, folder = _known(name), data_dir()
    paths = None if folder is None else _place(folder, name)
    if paths is None:
        from experiments.download import fetch

        return _namespace(fetch(entry), entry)
    try:
        arrays = _parsed(paths, entry)
        check(arrays, entry)
    except FileError as error:
        raise FileError(f"{paths[0]} cannot be used: {error}.") from error
    return _namespace(arrays, entry)


def _parsed(paths: list[Path], entry: Entry) -> Arrays:
    from experiments.formats import parse

    if paths[0].suffix == ".npz":
        return read_npz(paths[0])
    return parse([path.read_bytes() for path in paths], entry)


def _known(name: str) -> Entry:
    name = OTHER_NAMES.get(name, name)
    if name in entries():
        return entries()[name]
    near = get_close_matches(name, entries(), n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise DeclarationError(f"Expected the name of a data set but got {name!r}.{hint}")


def _namespace(arrays: Arrays, entry: Entry) -> SimpleNamespace:
    found = {"Y": None, "y": None, **arrays, "image_shape": entry.image_shape}
    X = np.asarray(arrays["X"], dtype=np.float64)
    found["X"] = X.reshape(len(X), -1)
    if found["y"] is not None:
        found["y"] = arrays["y"].astype(np.int64)
    if entry.reference_class is not None:
        found["y_binary"] = (arrays["y"] != entry.reference_class).astype(np.int64)
    return SimpleNamespace(**found)


# ---------------------------------------------------------------- whether the values are right


def check(arrays: Arrays, entry: Entry) -> None:
    """Refuse arrays that are not of the shape, or not the values, that the table says."""
    for key, shape in entry.shapes.items():
        if key not in arrays:
            raise FileError(f"Expected an array {key} but got {', '.join(arrays) or 'none'}")
        array = arrays[key]
        found = (len(array), array[0].size) if key == "X" and array.ndim > 2 else array.shape
        if found != shape:
            raise FileError(f"Expected {key} of shape {shape} but got {found}")
        if array.dtype.kind not in "iufb":
            raise FileError(f"Expected numbers in {key} but got {array.dtype}")
    if entry.fingerprint and fingerprint(arrays) != entry.fingerprint:
        raise FileError(
            f"Expected the values of {entry.name} but got others: "
            f"their fingerprint is {fingerprint(arrays)[:12]}…, not {entry.fingerprint[:12]}…"
        )


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
