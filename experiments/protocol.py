"""The table of protocols: folds, scaling, what is tuned on what grid, and the paper's figures."""

from __future__ import annotations

import os
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

if TYPE_CHECKING:
    from experiments.tasks import Options

Ints = NDArray[np.intp]
Split = tuple[Ints, Ints]  # rows to learn from, rows held out
FOLD_SEED = "KOFA_FOLD_SEED"  # an environment variable


@cache
def table() -> dict[str, Any]:
    """The contents of protocol.toml."""
    text = Path(__file__).with_name("protocol.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def splits(protocol: str, y: NDArray[Any], folds: int | None = None) -> list[Split]:
    """The folds of a protocol, the same for every method; `folds` asks for another number."""
    given = table()["protocols"][protocol]
    kind = StratifiedKFold if given["stratified"] else KFold
    cut = kind(folds or given["folds"], shuffle=True, random_state=_fold_seed(protocol))
    return list(cut.split(np.zeros((len(y), 1)), y))


def fold_settings(protocol: str, folds: int | None = None) -> dict[str, Any]:
    """What the folds of a task depend on, for its settings."""
    given = table()["protocols"][protocol]
    return {"folds": folds or given["folds"], "split": [protocol, _fold_seed(protocol)]}


def _fold_seed(protocol: str) -> int:
    """Of the table, or what the command line asks for; processes of tasks have it from there."""
    asked = os.environ.get(FOLD_SEED)
    return int(table()["protocols"][protocol]["seed"]) if asked is None else int(asked)


def seed() -> int:
    """Of everything at random that is not a fold."""
    return int(table()["protocols"]["seed"])


def remarks(name: str, options: Options) -> list[str]:
    """What is to be said of a whole table: why a row fell short in our run, say."""
    if options.quick:
        return [
            "A quick run: few folds, and few settings to choose from; in regression also few rows "
            "and iterations."
        ]
    if options.is_part:
        return []
    names = [name, f"{name}-as-published"] if options.as_published else [name]
    return [note for key in names for note in table()["notes"].get(key, [])]
