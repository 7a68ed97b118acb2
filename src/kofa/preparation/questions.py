"""Views that a model was asked for, and the rows from which their predictions follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from typing import Any

from kofa.data.scaling import Scaling
from kofa.inference.posterior import State
from kofa.linalg import Array
from kofa.predictive.view import ViewFromOthers


@dataclass(frozen=True, eq=False)
class Compared:
    """Rows with which a kernelized view is compared beside its landmarks.

    They add k̃(x, rows) weights − φᵀ features, φ the features of x, to what is expected.
    """

    rows: Array  # (n, C), scaled
    mean: Array  # (n,): their mean similarity to landmarks
    weights: Array  # (n, D)
    features: Array  # (p, D)


@dataclass(frozen=True, eq=False)
class Question:
    """How one view follows from the others and from the rest of itself."""

    state: State  # of the factors of the others; empty where nothing else tells about the view
    scalings: Mapping[str, Scaling]  # of others that are neither Gaussian nor behind a kernel
    bases: Mapping[str, Array]  # (R, p): from similarities with landmarks to features
    compared: Mapping[str, Compared]  # where landmarks do not show all of a kernel
    found: ViewFromOthers


@dataclass(frozen=True, eq=False)
class Questions:
    """Rows of a fit, and the views that were asked for before."""

    rows: Mapping[str, Array] | None  # in the user's units, by declared view
    asked: dict[str, Question] = field(default_factory=dict)

    @cached_property
    def lock(self) -> RLock:
        """Held while a question is worked out."""
        return RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "lock"}
