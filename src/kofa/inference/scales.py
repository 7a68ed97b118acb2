"""Variances of the weights along the directions that columns with the same holes share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kofa.linalg import Array, Groups


@dataclass(frozen=True, eq=False)
class Scales:
    """1 / (γ_d + τ_d λ_gl), g the group of column d: (D, L), worked out where they are needed.

    Kept, they would take as much memory, and as much of a model file, as the weights themselves.
    """

    gamma: Array  # (D,)
    tau: Array  # (D,)
    eigenvalues: Array  # (G, L): λ
    columns: Groups

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.tau), self.eigenvalues.shape[1]

    def __len__(self) -> int:
        return len(self.tau)

    def __getitem__(self, some: Any) -> Array:
        """Those of some columns, or of one."""
        found: Array = self.tau[some, None] * self.eigenvalues[self.columns.label[some]]
        found += self.gamma[some, None]
        return np.divide(1.0, found, out=found)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self[:] if dtype is None else self[:].astype(dtype)
