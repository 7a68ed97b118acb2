"""`kofa init`: a first study.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kofa.cli.display import table
from kofa.cli.guess import guess_folder
from kofa.cli.guess_text import as_toml
from kofa.cli.steps.writing import until_written
from kofa.errors import FileError
from kofa.files import SUFFIXES, write_text


def init(folder: Path, force: bool) -> list[Any]:
    """Write study.toml, and show what it declares."""
    if not folder.is_dir():
        what = "this is a file" if folder.exists() else "there is no such folder"
        raise FileError(f"expected a folder with tables but {what}", folder)
    study = folder / "study.toml"
    if study.exists() and not force:
        raise FileError("this file exists", study, cure="add --force to replace it")
    guesses, remarks = guess_folder(folder)
    if not guesses:
        what = f"there are no tables in it ({', '.join(SUFFIXES)})"
        raise FileError(what, folder, cure="".join(remarks[:1]))
    with until_written(study):
        write_text(study, as_toml(guesses, remarks))
    rows = [(g.name, g.kind, len(g.columns), g.file) for g in guesses]
    made = table(("view", "kind", "columns", "file"), rows, ("columns",))
    notes = [f"note: {remark}" for remark in remarks]
    after = f"{study}: check the kinds, name the outputs, then: kofa fit {study} -o model.kofa"
    return [made, "\n".join(["", *notes, after])]
