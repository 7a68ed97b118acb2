"""How inference treats a view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kofa.linalg import Array


@dataclass(frozen=True)
class Role:
    """How inference treats one view."""

    name: str
    kernelized: bool = False
    output: bool = False
    sparse: bool = False
    noise_per_column: bool = False
    exact: bool = False  # hardly any noise: the factors follow all that varies
    weight: float = 1.0  # of a primal input in the outputs' prior
    grams: Sequence[Array] = ()  # (R, R): a kernelized input's landmarks, for each kernel in it
