"""The data sets of the kernel paper, by name.

A set is looked for in a data directory, then in the cache, and is then downloaded from its public
source. What is found must have the shape and the values that the table of sets says.
"""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofa.datasets import store
from kofa.datasets.download import DownloadError, fetch
from kofa.datasets.formats import Arrays
from kofa.datasets.table import Entry, Source, entries
from kofa.errors import DeclarationError, FileError, warn

__all__ = ["Dataset", "DownloadError", "load", "names"]

_log = logging.getLogger(__name__)
_TAKEN = {"X", "Y", "y", "feature_names", "target_names", "image_shape", "source"}


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """One data set, as its source has it: nothing is imputed, scaled or shuffled.

    Attributes
    ----------
    name : str
    kind : "regression", "multilabel" or "classification"
    X : float64 array (n_samples, n_features)
        Missing values are NaN. Of images, the grey values row by row.
    Y : array (n_samples, n_targets) or None
        Targets as float64, or labels (0 or 1) as int64. None for a classification.
    y : int64 array (n_samples,) or None
        Classes as the source numbers them. Only for a classification.
    feature_names, target_names : tuple of str
        Empty where the source has none. Of a classification, the names of the classes.
    image_shape : (height, width) or None
    extras : dict of arrays
        What else belongs to the samples, such as "split", the part of the source they are from.
    description, citation, licence, source : str
        `licence` is empty where the source states none; `source` is where this copy was read.
    """

    name: str
    kind: str
    X: NDArray[np.float64]
    Y: NDArray[Any] | None = None
    y: NDArray[np.int64] | None = None
    feature_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    image_shape: tuple[int, ...] | None = None
    extras: dict[str, NDArray[Any]] = field(default_factory=dict)
    description: str = ""
    citation: str = ""
    licence: str = ""
    source: str = ""

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        return f"Dataset({self.name!r}, {self.kind}, {rows} × {columns})"


def names() -> list[str]:
    """Names of all sets.

    >>> from kofa import datasets
    >>> "atp1d" in datasets.names()
    True
    """
    return list(entries())


def load(
    name: str,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    check: bool = True,
    timeout: float = 30.0,
) -> Dataset:
    """A data set by name, from the first place that has it.

    Parameters
    ----------
    name : str
        One of `names()`.
    data_dir : path, optional
        A folder with NAME.npz (arrays X, and Y or y), or with the public files under their own
        names. Without it, the folder that the environment variable KOFA_DATA names.
    cache_dir : path, optional
        Where downloads are kept. Without it, KOFA_CACHE, else the user's cache folder.
    download : bool
        Whether to go to the public source for a set that is in neither folder.
    check : bool
        Whether the values in the data directory must be the known ones. The shape must be right
        in any case, and what is downloaded is always checked.
    timeout : float
        Seconds to wait for a server, each time.

    Examples
    --------
    >>> from kofa import datasets
    >>> datasets.load("atp1")
    Traceback (most recent call last):
    ...
    kofa.errors.DeclarationError: Expected the name of a data set but got 'atp1'. Did you mean
    'atp1d'? All names: kofa.datasets.names().
    """
    entry = _entry(name)
    folder = _data_dir(data_dir)
    cache = Path(cache_dir) if cache_dir is not None else store.cache_folder()
    found = folder and _from_data_dir(folder, entry, check)
    found = found or _from_cache(cache, entry)
    return found or _from_source(cache, entry, entry.sources if download else (), timeout, folder)


def _entry(name: str) -> Entry:
    known = {n.lower(): n for n in names()}
    if isinstance(name, str) and name in entries():
        return entries()[name]
    near = difflib.get_close_matches(str(name).lower(), known, n=1)
    meant = f" Did you mean {known[near[0]]!r}?" if near else ""
    raise DeclarationError(
        f"Expected the name of a data set but got {name!r}.{meant} "
        f"All names: kofa.datasets.names()."
    )


# ---------------------------------------------------------------- the three places


def _data_dir(argument: str | os.PathLike[str] | None) -> Path | None:
    named = argument if argument is not None else os.environ.get("KOFA_DATA") or None
    if named is None:
        return None
    if not Path(named).is_dir():
        origin = "data_dir" if argument is not None else "KOFA_DATA"
        raise FileError(f"Expected a folder in {origin} but there is none at {os.fspath(named)!r}.")
    return Path(named)


def _from_data_dir(folder: Path, entry: Entry, check: bool) -> Dataset | None:
    found = store.from_folder(folder, entry, exact=check)
    if found is None:
        return None
    arrays, path = found
    try:
        store.check(arrays, entry, exact=check)
    except FileError as error:
        cure = "" if not check else " load(..., check=False) takes other values of this shape."
        raise FileError(f"{path} cannot be used: {error}.{cure}") from error
    return _dataset(arrays, entry, str(path))


def _from_cache(cache: Path, entry: Entry) -> Dataset | None:
    """The set as it was downloaded; a file that is damaged counts as none."""
    path = _cached(cache, entry)
    if not path.exists():
        return None
    try:
        arrays = store.read(path)
        source = str(arrays.get("source", ""))
        store.check(arrays, entry, exact=all(s.note != source for s in _inexact(entry)))
    except FileError as error:
        _log.warning("%s is not used: %s", path, error)
        return None
    return _dataset(arrays, entry, source)


def _inexact(entry: Entry) -> list[Source]:
    return [source for source in entry.sources if not source.exact]


def _cached(cache: Path, entry: Entry) -> Path:
    return cache / "datasets" / f"{entry.name}.npz"


def _from_source(
    cache: Path, entry: Entry, sources: Sequence[Source], timeout: float, folder: Path | None
) -> Dataset:
    """The set from the first of the sources that gives it."""
    reasons = []
    for source in sources:
        try:
            arrays, origin = fetch(entry, source, timeout, cache)
            _check_download(arrays, entry, source, origin)
        except DownloadError as error:
            reasons.append(str(error))
        else:
            origin = source.note or origin
            _keep(_cached(cache, entry), arrays | {"source": np.array(origin)})
            return _dataset(arrays, entry, origin)
    raise DownloadError(_nowhere(entry, cache, folder, reasons))


def _check_download(arrays: Arrays, entry: Entry, source: Source, origin: str) -> None:
    try:
        store.check(arrays, entry, exact=source.exact)
    except FileError as error:
        raise DownloadError(f"{origin}: {error}") from error


def _keep(path: Path, arrays: Arrays) -> None:
    """Write to the cache; a cache that cannot be written costs another download, not the data."""
    try:
        store.write(path, arrays)
    except OSError as error:
        warn(
            f"The download cannot be kept in {path.parent}: {error}. Name another folder in "
            f"KOFA_CACHE."
        )


def _nowhere(entry: Entry, cache: Path, folder: Path | None, reasons: list[str]) -> str:
    """What was tried, and what to do by hand."""
    looked = folder or "(none is named)"
    failed = "".join(f"\n  - {reason}" for reason in reasons)
    tried = f"could not be downloaded:{failed}" if reasons else "downloads are switched off."
    by_hand = "".join(f"\n  - {line}" for line in _by_hand(entry))
    return (
        f"The data set {entry.name!r} is neither in the data directory {looked} nor in the cache "
        f"{_cached(cache, entry).parent}, and {tried}\n"
        f"By hand: put one of these into a folder and name it in data_dir= or KOFA_DATA:{by_hand}"
    )


def _by_hand(entry: Entry) -> list[str]:
    files = [" and ".join(source.files) for source in entry.sources if source.files]
    shapes = ", ".join(f"{key} {shape}" for key, shape in entry.shapes.items())
    return [*files, f"{entry.name}.npz with the arrays {shapes}"]


# ---------------------------------------------------------------- arrays to a Dataset


def _dataset(arrays: Arrays, entry: Entry, source: str) -> Dataset:
    Y, y = arrays.get("Y"), arrays.get("y")
    numbers = np.dtype("i8" if entry.kind == "multilabel" else "f8")
    X = np.asarray(arrays["X"], dtype=np.float64)
    return Dataset(
        name=entry.name,
        kind=entry.kind,
        X=X.reshape(len(X), -1),
        Y=None if Y is None else Y.astype(numbers),
        y=None if y is None else y.astype(np.int64),
        feature_names=_strings(arrays.get("feature_names")),
        target_names=_strings(arrays.get("target_names")) or entry.classes,
        image_shape=entry.image_shape or None,
        extras=_extras(arrays, entry),
        description=entry.description,
        citation=entry.citation,
        licence=entry.licence,
        source=source,
    )


def _strings(found: NDArray[Any] | None) -> tuple[str, ...]:
    return () if found is None else tuple(str(name) for name in found)


def _extras(arrays: Arrays, entry: Entry) -> dict[str, NDArray[Any]]:
    extras = {key: value for key, value in arrays.items() if key not in _TAKEN}
    if entry.reference_class is not None:
        extras["y_binary"] = (arrays["y"] != entry.reference_class).astype(np.int64)
    return extras
