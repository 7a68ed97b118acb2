"""The manifest of a file: JSON, read within limits of memory and depth."""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from kofa.errors import FileError
from kofa.storage.damage import DamageError, require
from kofa.storage.zip_directory import Member, check_stored, check_sum, data_start

MANIFEST = "manifest.json"
FORMAT = "kofa"
VERSION = 1  # of the format; a file of a higher one is refused
CONTENTS = {
    "model": "a fitted model: read it with kofa.load",
    "checkpoint": "the checkpoint of a fit: continue it with "
    "FactorModel(..., checkpoint=path).fit(data, resume=True)",
}
# How a file begins: its first member is the manifest, whose first keys are these.
BEGINNING = re.compile(
    rb'PK\x03\x04.{26}manifest\.json.{0,64}?\{"format": "kofa", "format_version": \d{1,9}, '
    rb'"kofa_version": "[^"]{1,80}", "contents": "([a-z]{1,20})"',
    re.DOTALL,
)
_LARGEST = 2**24  # bytes
_LONGEST_NUMBER = 1000  # digits
_DEEPEST = 200  # brackets inside each other
_CHUNK = 2**20  # bytes that are looked at at a time


class MemoryBudget:
    """The bytes that a file may still take in memory, beyond its own size.

    Arrays take no more than they take in the file. Names and settings do: Python needs up to a
    hundred bytes for one. They are counted, rather too high, before they are made.
    """

    TOTAL = 60 * 2**20
    ITEM, LIST, KEY, MEMBER = 80, 200, 270, 1500  # a value, list or key of JSON; a member of a zip

    def __init__(self) -> None:
        self.left = self.TOTAL

    def spend(self, n_bytes: int) -> None:
        self.left -= n_bytes
        require(self.left >= 0, "it has more names and settings than kofa writes")

    def spend_on_members(self, n: int) -> None:
        self.spend(n * self.MEMBER)

    def spend_on_manifest(self, data: bytes) -> None:
        """Spend what JSON needs, by counting its parts before they are made."""
        require(len(data) <= _LARGEST, "its manifest is too large")
        # A string takes four bytes for each character if one of them needs that many.
        wide = not data.isascii() or re.search(rb"\\u(?!00)", data) is not None
        self.spend(7 * len(data) if wide else len(data))
        n_items, n_lists, n_keys, depth = count_parts(data)
        self.spend(self.ITEM * n_items + self.LIST * n_lists + self.KEY * n_keys)
        require(depth <= _DEEPEST, "its manifest is nested too deep")


_STEPS = np.zeros(256, np.int8)  # in depth, by character
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1


def count_parts(data: bytes) -> tuple[int, int, int, int]:
    """Values, lists and keys in JSON, and how deep it is nested, by the signs outside strings."""
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


def manifest_bytes(values: Mapping[str, Any]) -> bytes:
    """A manifest as it is written: what every file says first, then these values."""
    from kofa import __version__  # known once the package is imported

    head = {"format": FORMAT, "format_version": VERSION, "kofa_version": __version__}
    text = json.dumps({**head, **values}, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def read_manifest(file: IO[bytes], members: list[Member], budget: MemoryBudget) -> dict[str, Any]:
    found = [member for member in members if member.name == MANIFEST]
    require(len(found) == 1, "it has two manifests" if found else "it has no manifest")
    check_stored(found[0])
    require(found[0].size <= _LARGEST, "its manifest is too large")
    file.seek(data_start(file, found[0]))
    data = file.read(found[0].size)
    check_sum(found[0], len(data), zlib.crc32(data))
    budget.spend_on_manifest(data)
    try:
        text = data.decode("utf-8", "surrogatepass")
        del data  # so that it is in memory once
        manifest = json.loads(text, object_pairs_hook=_unique, **_NUMBERS)
    except (RecursionError, ValueError) as error:
        problem = f"its manifest is not the JSON that kofa writes ({error!s:.100})"
        raise DamageError(problem) from None
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


_NUMBERS: dict[str, Any] = {"parse_constant": _refuse, "parse_float": _finite, "parse_int": _whole}


def check_head(quoted_path: str, manifest: dict[str, Any], contents: str | None) -> None:
    """Raise unless the file is of a format that is known, and has these contents."""
    version, found = manifest.get("format_version"), manifest.get("contents")
    if manifest.get("format") != FORMAT or type(version) is not int or version < 1:
        raise FileError(
            f"{quoted_path} is not a kofa file: its manifest names no format that kofa knows."
        )
    if version > VERSION:
        raise FileError(
            f"{quoted_path} was written by kofa {manifest.get('kofa_version')!s:.40} with format "
            f"{version}; this kofa reads up to {VERSION}: upgrade kofa."
        )
    known = isinstance(found, str) and found in CONTENTS
    require(known, "its manifest does not say what it contains")
    require(isinstance(manifest.get("kofa_version"), str), "it does not say who wrote it")
    if contents is not None and found != contents:
        raise FileError(f"Expected a {contents} in {quoted_path} but it is {CONTENTS[str(found)]}.")
