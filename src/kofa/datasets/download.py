"""Sets from public places: addresses, OpenML, and what scikit-learn fetches."""

from __future__ import annotations

import hashlib
import http.client
import json
import logging
import os
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kofa.datasets.formats import Arrays, parse, pillow, read_arff, split_columns
from kofa.datasets.table import Entry, Source
from kofa.errors import FileError

OPENML = "https://www.openml.org"
TRIES = 3
PAUSE = 1.0  # seconds before the second try; twice as long before each further one
_BUSY = {408, 425, 429, 500, 502, 503, 504}  # answers after which another try may help
_VERSIONS = 50  # of a name on OpenML; more are not looked at

_log = logging.getLogger(__name__)


class DownloadError(FileError):
    """A data set could not be downloaded. The message names addresses, folders and the cure."""


def fetch(entry: Entry, source: Source, timeout: float, cache: Path) -> tuple[Arrays, str]:
    """The arrays of a set, and where they were found."""
    if source.openml:
        with _answers_in_words(f"OpenML at {openml_url()}"):
            return _from_openml(entry, source, timeout)
    if source.format == "lfw":
        return _from_scikit_learn(cache, timeout), "scikit-learn's fetch_lfw_people"
    wanted = source.checksums or ("",) * len(source.files)
    files = [get(url, timeout, c) for url, c in zip(source.files, wanted, strict=True)]
    with _answers_in_words(source.files[0]):
        return parse(files, source, entry), source.files[0]


@contextmanager
def _answers_in_words(origin: str) -> Iterator[None]:
    """Whatever can be wrong with what a server sends, as one kind of error that says from where."""
    try:
        yield
    except DownloadError:
        raise
    except FileError as error:
        raise DownloadError(f"{origin}: {error}") from error
    except (ValueError, TypeError, LookupError, AttributeError, NotImplementedError) as error:
        raise DownloadError(f"{origin}: the answer makes no sense ({error!r})") from error


# ---------------------------------------------------------------- one address


def get(url: str, timeout: float, checksum: str = "") -> bytes:
    """What is at an address, whole; tried again where that may help."""
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):  # never a file of this machine
        raise DownloadError(f"{url}: Expected an address with http or https.")
    for left in reversed(range(TRIES)):
        try:
            return _checked(_read(url, timeout), checksum)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if not left or (isinstance(error, urllib.error.HTTPError) and error.code not in _BUSY):
                raise DownloadError(f"{url}: {_reason(error, timeout)}") from error
            _log.info("%s: %s; trying again", url, _reason(error, timeout))
            time.sleep(PAUSE * 2 ** (TRIES - 1 - left))
    raise AssertionError("the last try returns or raises")


def _read(url: str, timeout: float) -> bytes:
    _log.info("downloading %s", url)
    request = urllib.request.Request(url, headers={"User-Agent": "kofa"})
    with urllib.request.urlopen(request, timeout=timeout) as response:
        body: bytes = response.read()  # raises IncompleteRead where bytes are missing
    return body


def _checked(body: bytes, checksum: str) -> bytes:
    if checksum:
        method, _, wanted = checksum.partition(":")
        found = hashlib.new(method, body, usedforsecurity=False).hexdigest()
        if found != wanted.lower():
            raise ValueError(f"Expected the {method} {wanted} but got {found}")
    return body


def _reason(error: Exception, timeout: float) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    if isinstance(error, http.client.IncompleteRead):
        return f"the answer broke off after {len(error.partial)} bytes"
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(inner, TimeoutError):
        return f"no answer within {timeout:g} seconds"
    return str(inner) or type(inner).__name__


# ---------------------------------------------------------------- OpenML


def openml_url() -> str:
    """The server: KOFA_OPENML, else OpenML's own."""
    return os.environ.get("KOFA_OPENML", OPENML).rstrip("/")


def _from_openml(entry: Entry, source: Source, timeout: float) -> tuple[Arrays, str]:
    """The first version under the name that has the shape of the set."""
    name = urllib.parse.quote(source.openml, safe="")
    url = f"{openml_url()}/api/v1/json/data/list/data_name/{name}/limit/{_VERSIONS}/status/active"
    listed = _json(url, timeout, "data", "dataset")
    found = [version for version in listed if _has_shape(version, entry)]
    if not found:
        raise DownloadError(
            f"{url}: none of its {len(listed)} versions has {entry.rows} rows and "
            f"{entry.columns + entry.targets} columns"
        )
    return _openml_version(entry, int(found[0]["did"]), timeout)


def _json(url: str, timeout: float, *keys: str) -> Any:
    with _answers_in_words(url):
        found = json.loads(get(url, timeout))
        for key in keys:
            found = found[key]
        return found


def _has_shape(version: dict[str, Any], entry: Entry) -> bool:
    """Whether the version says so; one that says nothing may be it."""
    said = {quality["name"]: quality["value"] for quality in version.get("quality", ())}
    wanted = {
        "NumberOfInstances": entry.rows,
        "NumberOfFeatures": entry.columns + entry.targets,
    }
    return all(float(said.get(key, value)) == value for key, value in wanted.items())


def _openml_version(entry: Entry, number: int, timeout: float) -> tuple[Arrays, str]:
    about = f"{openml_url()}/api/v1/json/data/{number}"
    found = _json(about, timeout, "data_set_description")
    url, md5 = found["url"], found.get("md5_checksum")
    with _answers_in_words(url):
        table, names = read_arff(get(url, timeout, f"md5:{md5}" if md5 else ""))
        left_out = _listed(found, "row_id_attribute") | _listed(found, "ignore_attribute")
        kept = [i for i, name in enumerate(names) if name not in left_out]
        targets = _listed(found, "default_target_attribute")
        arrays = split_columns(table[:, kept], [names[i] for i in kept], entry, targets)
    return arrays, f"OpenML {number} ({url})"


def _listed(found: dict[str, Any], key: str) -> set[str]:
    """Names between commas, or in a list."""
    value = found.get(key) or []
    parts = value.split(",") if isinstance(value, str) else value
    return {str(part).strip("\"' ") for part in parts}


# ---------------------------------------------------------------- scikit-learn


@contextmanager
def _impatient(timeout: float) -> Iterator[None]:
    """New sockets wait so long: scikit-learn has no option for it."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(timeout)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _from_scikit_learn(cache: Path, timeout: float) -> Arrays:
    """Faces of the seven people with most photographs, ordered by person."""
    from sklearn.datasets import fetch_lfw_people

    try:
        pillow()
        with _impatient(timeout):
            faces = fetch_lfw_people(
                data_home=str(cache / "scikit_learn"),
                funneled=False,
                resize=0.4,
                min_faces_per_person=70,
                slice_=(slice(50, 200), slice(75, 175)),
            )
    except (OSError, FileError, http.client.HTTPException) as error:
        raise DownloadError(f"scikit-learn's fetch_lfw_people: {error}") from error
    order = np.argsort(faces.target, kind="stable")
    grey = np.rint(255 * faces.images[order])
    return {"X": grey.reshape(len(grey), -1).astype(np.uint8), "y": faces.target[order]}
