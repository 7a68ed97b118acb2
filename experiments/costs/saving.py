"""What a model file costs: its size beside the arrays it needs, and the time to write and read."""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass
from functools import cache
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

import kofa
from experiments.experiment import Mark, Measurement, Row

N, COLUMNS, TARGETS = 1500, 400, 10


@cache
def model() -> kofa.FactorModel:
    """A regression from three kernels of named columns, of a size that people have."""
    import pandas as pd

    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, 8))
    x = z @ rng.normal(size=(8, COLUMNS)) + rng.normal(size=(N, COLUMNS))
    y = np.sin(z) @ rng.normal(size=(8, TARGETS))
    tables = {
        "x": pd.DataFrame(x).rename(columns="column{}".format).rename(index="sample{}".format),
        "y": pd.DataFrame(y).rename(index="sample{}".format),
    }
    views = {"x": kofa.Real(kernel=["rbf", "laplacian", "linear"]), "y": kofa.Real()}
    return kofa.FactorModel(views, n_factors=30, outputs=["y"], max_iter=3, tol=1e9).fit(tables)


def needed(value: Any, found: dict[Any, int] | None = None) -> int:
    """Bytes of all arrays in an object; equal ones count once."""
    found = {} if found is None else found
    if isinstance(value, np.ndarray) and value.dtype != object:
        found[value.shape, value.tobytes()] = value.nbytes
    elif isinstance(value, dict):
        for item in value.values():
            needed(item, found)
    elif isinstance(value, list | tuple):
        for item in value:
            needed(item, found)
    elif is_dataclass(value):
        for field in fields(value):
            needed(getattr(value, field.name, None), found)
    return sum(found.values())


def size() -> Row:
    """The file beside the arrays, none of them counted twice."""
    arrays = needed((model().views_, model().posterior_))
    with TemporaryDirectory() as place:
        path = os.path.join(place, "model.kofa")
        began = perf_counter()
        model().save(path)
        saved = perf_counter()
        kofa.load(path)
        loaded = perf_counter()
        size = os.path.getsize(path)
    text = (
        f"{size / arrays:.3f} ({size / 2**20:.1f} MiB; saved in {saved - began:.2f} s, loaded in "
        f"{loaded - saved:.2f} s)"
    )
    what = f"size of a model file ({N} landmarks, {COLUMNS} columns) over that of its arrays"
    return Row(what, size / arrays, Mark(high=1.2), text)


EXPERIMENTS: dict[str, Measurement] = {"save": size}
