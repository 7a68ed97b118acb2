"""Data with a known answer, and the paper's sets from disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NOISE = 0.5
COLUMNS = {"a": 500, "b": 300, "c": 200}
# One row per factor, one column per view: 3 shared by all, one per pair, 2/1/1 private.
SHARING = np.array(
    [[1, 1, 1]] * 3 + [[1, 1, 0], [1, 0, 1], [0, 1, 1]] + [[1, 0, 0]] * 2 + [[0, 1, 0], [0, 0, 1]]
)


@dataclass(frozen=True)
class Planted:
    """Views made of known factors; `full` has the values that `views` lacks."""

    views: dict[str, Array]
    full: dict[str, Array]
    Z: Array

    def rmse(self, filled: dict[str, Array]) -> float:
        """Root mean square error over the entries that were held out."""
        errors = [(filled[n] - y)[np.isnan(self.views[n])] for n, y in self.full.items()]
        return float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))


def planted(
    seed: int, missing: float = 0.0, n: int = 1000, columns: dict[str, int] = COLUMNS
) -> Planted:
    """Y_m = Z W_mᵀ + noise; each factor acts on the views that SHARING says."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, len(SHARING)))
    full = {}
    for (name, d), active in zip(columns.items(), SHARING.T, strict=True):
        W = rng.standard_normal((d, len(SHARING))) * active
        full[name] = Z @ W.T + NOISE * rng.standard_normal((n, d))
    views = {m: np.where(rng.random(y.shape) < missing, np.nan, y) for m, y in full.items()}
    return Planted(views, full, Z)


def data_dir() -> Path | None:
    """Where the paper's sets are: KOFA_DATA, else ../shared/data next to the repository."""
    named = os.environ.get("KOFA_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    return folder if folder.is_dir() else None


def stored(name: str, *keys: str) -> tuple[NDArray[Any], ...] | None:
    """Arrays of one set, or None where it is not on this machine."""
    folder = data_dir()
    if folder is None or not (folder / f"{name}.npz").exists():
        return None
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        return tuple(file[key] for key in keys)


def regression_set(name: str) -> tuple[Array, Array] | None:
    """X and Y of one set; also of those with several labels."""
    data = stored(name, "X", "Y")
    return None if data is None else (data[0].astype(float), data[1].astype(float))
