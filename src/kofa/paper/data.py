"""The data sets as files of a folder, and the table of the paper's protocol and figures."""

from __future__ import annotations

import os
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from kofa.errors import FileError

_FILES = {"fashion_mnist": "fashion_mnist_10k"}  # sets whose file has another name


def load(name: str, data_dir: str | None = None) -> SimpleNamespace:
    """The arrays of one set by name (X, Y or y, …), from `data_dir` or the folder KOFA_DATA."""
    named = data_dir or os.environ.get("KOFA_DATA")
    if named is None:
        raise FileError(
            f"The set {name!r} is read from a folder: name it by --data-dir, or in the "
            f"environment as KOFA_DATA."
        )
    path = Path(named) / f"{_FILES.get(name, name)}.npz"
    if not path.is_file():
        raise FileError(f"The set {name!r} is not there: expected a file {str(path)!r}.")
    with np.load(path, allow_pickle=False) as file:
        return SimpleNamespace(**{key: file[key] for key in file.files})


@cache
def paper() -> dict[str, Any]:
    """Data sets, protocol, grids and reported values: the contents of paper.toml."""
    return tomllib.loads((files("kofa.paper") / "paper.toml").read_text(encoding="utf-8"))
