"""`kofa report`: a model, and what is known besides, as one HTML file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kofa.cli import UsageError
from kofa.cli.plan import Source
from kofa.cli.steps import apply
from kofa.cli.steps.meaning import covariate_source, feature_sets
from kofa.cli.steps.writing import check_not_read, until_written
from kofa.errors import FileError
from kofa.files import check_folder, write_text
from kofa.report.page import report_page
from kofa.storage.archive import open_archive

_SHAPE = re.compile(r"(.+)=([0-9]{1,6})[x×]([0-9]{1,6})")


@dataclass(frozen=True)
class Asked:
    """What a user names besides the model."""

    covariates: str | None
    sets: Path | None
    evaluation: Path | None
    predictions: Path | None
    shapes: Sequence[str]

    @property
    def files(self) -> list[Path]:
        """Those of them that are files."""
        return [one for one in (self.sets, self.evaluation, self.predictions) if one is not None]


def report(
    path: Path,
    out: Path,
    asked: Asked,
    tables: Mapping[str, Any],
    title: str | None,
    force: bool,
) -> str:
    """Write the report, and say so."""
    shapes = parse_shapes(asked.shapes)
    check_out(out, force)
    given = apply.opened(path, **tables, needed=False)
    covariates = None
    if asked.covariates is not None:
        covariates = covariate_source(asked.covariates, tables["reading"], given.sources)
    check_not_read([out], [*given.files, *asked.files, *_files(covariates)], "name")
    with given.ask() as data:
        known = {
            "data": data,
            "covariates": covariates and covariates.read(),
            "sets": asked.sets and feature_sets(asked.sets),
            "evaluation": asked.evaluation and (asked.evaluation, asked.predictions),
            "image_shape": shapes or None,
        }
        text = report_page(given.model, title=title, about=about(path), **known)
    with until_written(out):
        write_text(out, text)
    return f"{out}: {out.stat().st_size / 2**20:.1f} MiB"


def about(path: Path) -> dict[str, str]:
    """The file of the model, and the version that wrote it."""
    with open_archive(path, "model") as (manifest, *_):
        return {"model file": path.name, "fitted with kofa": str(manifest["kofa_version"])}


def check_out(out: Path, force: bool) -> None:
    """Raise unless the file may be written."""
    if out.suffix.lower() not in (".html", ".htm"):
        raise FileError("expected a file that ends in .html", out, cure="add -o report.html")
    check_folder(out)
    if out.exists() and not force:
        raise FileError("it is there already", out, cure="add --force to replace it")


def _files(source: Source | None) -> list[Path]:
    return [] if source is None else [source.file]


def parse_shapes(options: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Rows and columns of pixels by view.

    >>> parse_shapes(["x=28x28"])
    {'x': (28, 28)}
    """
    found = {}
    for text in options:
        match = _SHAPE.fullmatch(text)
        if match is None:
            raise UsageError("expected --image-shape VIEW=ROWSxCOLUMNS", got=text)
        found[match[1]] = (int(match[2]), int(match[3]))
    return found
