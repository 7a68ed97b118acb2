"""The data sets, and the table of the paper's protocol and figures."""

from __future__ import annotations

import os
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from kofa import datasets

_FILES = {"fashion_mnist": "fashion_mnist_10k"}  # sets whose file has another name


def load(name: str, data_dir: str | None = None) -> SimpleNamespace:
    """The arrays of one set by name (X, Y or y, …).

    They are read as they are from NAME.npz in `data_dir` or the folder KOFA_DATA, and else come
    from `kofa.datasets`: its cache, or the public source.
    """
    folder, file = data_dir or os.environ.get("KOFA_DATA"), _FILES.get(name, name)
    path = Path(folder or "") / f"{file}.npz"
    if folder and path.is_file():
        with np.load(path, allow_pickle=False) as stored:
            return SimpleNamespace(**{key: stored[key] for key in stored.files})
    found = datasets.load(file, data_dir=data_dir)
    shape = found.image_shape
    return SimpleNamespace(X=found.X, Y=found.Y, y=found.y, image_shape=shape, **found.extras)


@cache
def paper() -> dict[str, Any]:
    """Data sets, protocol, grids and reported values: the contents of paper.toml."""
    return tomllib.loads((files("kofa.paper") / "paper.toml").read_text(encoding="utf-8"))
