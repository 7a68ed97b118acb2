"""The table of data sets (sets.toml) as values."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Source:
    """One place to get a set from: files at addresses, a name on OpenML, or scikit-learn."""

    format: str
    files: tuple[str, ...] = ()  # addresses
    checksums: tuple[str, ...] = ()  # "md5:…" or "sha256:…", one for each file, or none
    openml: str = ""
    parts: tuple[str, ...] = ()
    header: bool = False  # whether the first line of each text file is to be skipped
    exact: bool = True  # whether the values are those of the fingerprint
    note: str = ""

    @property
    def file_names(self) -> tuple[str, ...]:
        return tuple(url.rsplit("/", 1)[-1] for url in self.files)


@dataclass(frozen=True)
class Entry:
    """What the table says of one set."""

    name: str
    kind: str
    rows: int
    columns: int
    targets: int
    description: str
    citation: str
    sources: tuple[Source, ...]
    licence: str = ""
    fingerprint: str = ""
    classes: tuple[str, ...] = ()
    image_shape: tuple[int, ...] = ()
    reference_class: int | None = None  # y_binary is 0 there, and 1 elsewhere

    @property
    def target(self) -> str:
        """Name of the array of targets."""
        return "y" if self.kind == "classification" else "Y"

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        several = () if self.target == "y" else (self.targets,)
        return {"X": (self.rows, self.columns), self.target: (self.rows, *several)}


@cache
def entries() -> dict[str, Entry]:
    """All sets by name, in the order of the table."""
    text = resources.files("kofa.datasets").joinpath("sets.toml").read_text(encoding="utf-8")
    return {name: _entry(name, fields) for name, fields in tomllib.loads(text).items()}


def _entry(name: str, fields: dict[str, Any]) -> Entry:
    sources = tuple(Source(**_frozen(source)) for source in fields.pop("sources"))
    return Entry(name=name, sources=sources, **_frozen(fields))


def _frozen(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in fields.items()}
