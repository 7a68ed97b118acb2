"""Standardising columns and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kofa.linalg import Array


@dataclass(frozen=True, eq=False)
class Scaling:
    """encoded = (value − centre) / spread, by column."""

    centre: Array  # (D,)
    spread: Array  # (D,)

    @classmethod
    def identity(cls, n_columns: int) -> Scaling:
        return cls(np.zeros(n_columns), np.ones(n_columns))

    @classmethod
    def fit(cls, values: Array, by_column: bool = True) -> Scaling:
        """Observed mean and standard deviation of each column, or one spread for all.

        A constant column has no spread to divide by: it becomes zero.
        """
        observed = ~np.isnan(values)
        n = np.maximum(observed.sum(axis=0), 1)
        size = np.nanmax(np.abs(values), axis=0, initial=0.0, where=observed)
        unit = np.where(size > 0, size, 1.0)  # sums of squares neither overflow nor vanish
        centre = np.where(observed, values / unit, 0.0).sum(axis=0) / n * unit
        centred = np.where(observed, (values - centre) / unit, 0.0)
        spread = np.sqrt((centred**2).sum(axis=0) / n)
        spread = np.where(spread > 1e-13, spread, 0.0) * unit
        if not by_column:
            largest = max(float(spread.max()), np.finfo(float).tiny)
            common = np.sqrt(np.average((spread / largest) ** 2, weights=n)) * largest
            spread = np.full_like(spread, common)
        return cls(centre, np.where(spread > 0, spread, 1.0))

    def encode(self, values: Array) -> Array:
        encoded: Array = (values - self.centre) / self.spread
        return encoded

    def decode(self, encoded: Array) -> Array:
        return encoded * self.spread + self.centre

    def decode_std(self, std: Array) -> Array:
        return std * self.spread
