"""The data sets, and the table of the paper's protocol and figures."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

from kofa import datasets

_FILES = {"fashion_mnist": "fashion_mnist_10k"}  # of the paper's sets, a draw


def load(name: str, data_dir: str | None = None) -> SimpleNamespace:
    """The arrays of one set by name (X, Y or y, …).

    They come from `data_dir` or the folder KOFA_DATA, else the cache, else the public source, and
    are known to be the right ones.
    """
    found = datasets.load(_FILES.get(name, name), data_dir=data_dir)
    shape = found.image_shape
    return SimpleNamespace(X=found.X, Y=found.Y, y=found.y, image_shape=shape, **found.extras)


@cache
def paper() -> dict[str, Any]:
    """Data sets, protocol, grids and reported values: the contents of paper.toml."""
    return tomllib.loads((files("kofa.paper") / "paper.toml").read_text(encoding="utf-8"))


def folds_of(n_folds: int) -> dict[str, int]:
    """What the folds of a task depend on, for its settings."""
    return {"folds": n_folds, "cut": int(paper()["protocol"]["seed"])}
