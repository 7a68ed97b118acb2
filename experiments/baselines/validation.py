"""What a method of regression is, and how settings are chosen inside the training rows.

Each method is a function of standardised training inputs X (n, D) and targets Y (n, C), of new
inputs (m, D) and of its settings (a mapping, by the names of the grids in protocol.toml). None of
them is ever given the targets of the new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from kofa.linalg import Array

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Prediction:
    """What a method predicts for the new rows, and what it needs to do so."""

    predicted: Array  # (m, C)
    factors: int | None = None  # as many
    share: float | None = None  # of the rows it may compare with, those that it does
    converged: bool | None = None
    landmarks: int | None = None  # as many rows
    per_iteration: float | None = None  # seconds

    def figures(self) -> dict[str, float]:
        """What is known beside the predictions."""
        names = ("factors", "share", "converged", "landmarks", "per_iteration")
        known = {name: getattr(self, name) for name in names}
        return {name: float(value) for name, value in known.items() if value is not None}


Method = Callable[[Array, Array, Array, Settings], Prediction]


# ---------------------------------------------------------------- inner cross-validation

# (X, Y, X_new, outer setting) → predictions by inner setting. What is costly depends on the outer
# setting alone, so that many inner ones come for little.
Sweep = Callable[[Array, Array, Array, Any], dict[Any, Array]]


def errors_of(
    sweep: Sweep, X: Array, Y: Array, outer: Iterable[Any], folds: int
) -> dict[Any, Array]:
    """Squared errors (C,) of each setting, on training rows that were left out in turn."""
    errors: dict[Any, Array] = {}
    splits = list(KFold(folds, shuffle=True, random_state=0).split(X))
    for first in outer:
        for train, test in splits:
            for second, predicted in sweep(X[train], Y[train], X[test], first).items():
                squares = ((predicted - Y[test]) ** 2).sum(axis=0)
                errors[first, second] = errors.get((first, second), 0.0) + squares
    return errors


def validated(
    sweep: Sweep, X: Array, Y: Array, X_new: Array, outer: Iterable[Any], folds: int
) -> tuple[Array, Any]:
    """Predictions with the settings that are best for all targets together, and those settings."""
    errors = errors_of(sweep, X, Y, outer, folds)
    first, second = min(errors, key=lambda setting: float(errors[setting].sum()))
    return sweep(X, Y, X_new, first)[second], (first, second)


def validated_by_target(
    sweep: Sweep, X: Array, Y: Array, X_new: Array, outer: Iterable[Any], folds: int
) -> Array:
    """Predictions with the settings that are best for each target."""
    errors = errors_of(sweep, X, Y, outer, folds)
    columns = []
    for c in range(Y.shape[1]):
        first, second = min(errors, key=lambda setting: float(errors[setting][c]))
        columns.append(sweep(X, Y[:, [c]], X_new, first)[second])
    return np.hstack(columns)
