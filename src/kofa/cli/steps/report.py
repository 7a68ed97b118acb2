"""`kofa report`: a model, and what is known besides, as one HTML file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kofa.cli import UsageError
from kofa.cli.steps import apply
from kofa.cli.steps.describe import load
from kofa.cli.steps.writing import check_not_read, until_written
from kofa.errors import FileError
from kofa.files import Reading, check_folder, read_file, write_text
from kofa.inspection import read_gmt
from kofa.report.page import report_page
from kofa.storage.archive import open_archive

_SHAPE = re.compile(r"(.+)=([0-9]{1,6})[x×]([0-9]{1,6})")


@dataclass(frozen=True)
class Asked:
    """What a user names besides the model."""

    views: Sequence[str]
    study: Path | None
    covariates: Path | None
    sets: Path | None
    evaluation: Path | None
    predictions: Path | None
    shapes: Sequence[str]

    @property
    def files(self) -> list[Path]:
        """Those of them that are files."""
        named = (self.study, self.covariates, self.sets, self.evaluation, self.predictions)
        return [one for one in named if one is not None]


def report(path: Path, out: Path, asked: Asked, title: str | None, force: bool) -> str:
    """Write the report, and say so."""
    shapes = parse_shapes(asked.shapes)
    check_out(out, force)
    tables = None
    if asked.views or asked.study is not None:
        tables = apply.opened(path, asked.views, asked.study, {})
    check_not_read([out], [path, *asked.files, *(tables.files if tables else ())], "name")
    model = tables.model if tables else load(path)
    with tables.naming_files() if tables else nullcontext():
        known = {
            "data": tables.read() if tables else None,
            "covariates": asked.covariates and read_covariates(asked.covariates),
            "sets": asked.sets and read_gmt(asked.sets),
            "evaluation": (asked.evaluation, asked.predictions) if asked.evaluation else None,
            "image_shape": shapes or None,
        }
        text = report_page(model, title=title, about=about(path), **known)
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


def read_covariates(path: Path) -> Any:
    """Columns of any kind by sample."""
    return read_file(path, Reading(values="labels"))


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
