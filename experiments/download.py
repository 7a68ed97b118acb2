"""Sets from public places: OpenML by scikit-learn, files by pooch, faces by scikit-learn.

A file is fetched over https, up to a size, and checked by its SHA-256 where the table has one.
Whatever comes must also have the values of the set's fingerprint, another SHA-256.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.data import Arrays, Entry, check
from experiments.formats import parse, split_columns
from kofa.errors import FileError

MOST_BYTES = 64 * 2**20  # of a file
SECONDS = 30  # to wait for a server


def cache_folder() -> Path:
    """Where downloads are kept: KOFA_CACHE, else where the system keeps such things."""
    import pooch

    return Path(os.environ.get("KOFA_CACHE") or pooch.os_cache("kofa"))


def fetch(entry: Entry) -> Arrays:
    """The arrays of a set, from the first of its sources that gives them."""
    sources: list[Callable[[Entry], Arrays]] = [_from_openml] if entry.openml else []
    sources += [_from_files] if entry.files else []
    sources += [_from_faces] if entry.format == "lfw" else []
    reasons = []
    for source in sources:
        try:
            return source(entry)
        except (OSError, ValueError, KeyError) as error:
            reasons.append(f"{source.__name__.removeprefix('_from_')}: {error}")
    failed = "".join(f"\n  - {reason}" for reason in reasons)
    arrays = ", ".join(f"{key} {shape}" for key, shape in entry.shapes.items())
    raise FileError(
        f"The data set {entry.name!r} is not in the data directory and could not be downloaded:"
        f"{failed}\nBy hand: put {entry.name}.npz with the arrays {arrays} into a folder and name "
        f"it with --data-dir or KOFA_DATA."
    )


# ---------------------------------------------------------------- files


def _from_files(entry: Entry) -> Arrays:
    hashes = entry.sha256 or ("",) * len(entry.files)
    paths = [download(url, sha) for url, sha in zip(entry.files, hashes, strict=True)]
    try:
        arrays = parse([path.read_bytes() for path in paths], entry)
        check(arrays, entry)
    except FileError:
        for path in paths:  # the next run asks again
            path.unlink()
        raise
    return arrays


def download(url: str, sha256: str = "") -> Path:
    """A file of the cache, fetched if it is not there."""
    import pooch

    known = f"sha256:{sha256}" if sha256 else None
    path = pooch.retrieve(url, known, path=cache_folder(), downloader=_limited)
    return Path(path)


def _limited(url: str, output_file: Any, _pooch: Any) -> None:
    """Write what is at an address to a file: over https only, also after a redirection."""
    import requests

    _refuse_plain(url)
    with requests.get(url, stream=True, timeout=SECONDS) as response:
        response.raise_for_status()
        _refuse_plain(response.url)
        size = 0
        with Path(output_file).open("wb") as file:
            for chunk in response.iter_content(2**16):
                size += len(chunk)
                if size > MOST_BYTES:
                    raise FileError(f"{url} has more than {MOST_BYTES} bytes")
                file.write(chunk)


def _refuse_plain(url: str) -> None:
    if not url.startswith("https://"):
        raise FileError(f"Expected an address with https but got {url}")


# ---------------------------------------------------------------- scikit-learn


def _from_openml(entry: Entry) -> Arrays:
    """All columns; the last are the targets, which the fingerprint confirms."""
    from sklearn.datasets import fetch_openml

    home = str(cache_folder() / "scikit_learn")
    found = fetch_openml(
        entry.openml, version=1, as_frame=True, target_column=None, data_home=home, parser="auto"
    )
    arrays = split_columns(found.data.astype(float).to_numpy(), entry)
    check(arrays, entry)
    return arrays


def _from_faces(entry: Entry) -> Arrays:
    """Faces of the seven people with most photographs, ordered by person.

    scikit-learn scales them a little differently than the file of the data directory has them, so
    that the shape is all that is known of the values.
    """
    from sklearn.datasets import fetch_lfw_people

    faces = fetch_lfw_people(
        data_home=str(cache_folder() / "scikit_learn"),
        funneled=False,
        resize=0.4,
        min_faces_per_person=70,
        slice_=(slice(50, 200), slice(75, 175)),
    )
    order = np.argsort(faces.target, kind="stable")
    grey = np.rint(255 * faces.images[order]).reshape(len(order), -1).astype(np.uint8)
    if grey.shape != entry.shapes["X"]:
        raise FileError(f"Expected X of shape {entry.shapes['X']} but got {grey.shape}")
    return {"X": grey, "y": faces.target[order]}
