"""Standardising columns and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from kofa.data.stored import Values, of_blocks
from kofa.linalg import Array, BoolArray

Unit = Literal["value", "log", "log1p"]
_TRANSFORMS: dict[Unit, Callable[[Array], Array]] = {
    "value": lambda values: values,
    "log": np.log,
    "log1p": np.log1p,
}


# A new value further from the data of a fit than this many of their spreads counts as this far, so
# that what follows from it is finite.
REACH = 1e12


@dataclass(frozen=True, eq=False)
class Scaling:
    """encoded = (value − centre) / spread, by column, of the values or of their logarithms."""

    centre: Array  # (D,)
    spread: Array  # (D,)
    unit: Unit = "value"
    typical: Array | None = None  # (D,): encoded, what may stand for a missing value; None is zero

    @classmethod
    def identity(cls, n_columns: int, unit: Unit = "value") -> Scaling:
        return cls(np.zeros(n_columns), np.ones(n_columns), unit)

    @classmethod
    def as_is(cls, values: Values, unit: Unit = "value", shift: bool = False) -> Scaling:
        """None but for the unit and, with `shift`, the mean; the mean is known all the same."""
        mean, identity = cls.fit(values, unit=unit).centre, cls.identity(values.shape[1], unit)
        return replace(identity, centre=mean) if shift else replace(identity, typical=mean)

    @classmethod
    def fit(
        cls, values: Values, by_column: bool = True, unit: Unit = "value", no_spread: float = 1.0
    ) -> Scaling:
        """Observed mean and standard deviation of each column, or one spread for all.

        A constant column has no spread to divide by: it becomes zero, and with an infinite
        `no_spread` so does whatever it holds later. A `no_spread` of zero marks columns that are
        constant in two rows or more, if others are not.
        """
        none = np.zeros(values.shape[1])
        n, size = none, none
        for own_n, own_size in of_blocks(partial(_number_and_size, unit=unit), values):
            n, size = n + own_n, np.maximum(size, own_size)
        n = np.maximum(n, 1.0)
        size_or_one = np.where(size > 0, size, 1.0)  # sums of squares neither overflow nor vanish
        total = partial(_total, unit=unit, size=size_or_one)
        centre = sum(of_blocks(total, values), start=none) / n * size_or_one
        squares = partial(_squares, unit=unit, centre=centre, size=size_or_one)
        spread = np.sqrt(sum(of_blocks(squares, values), start=none) / n)
        spread = np.where(spread > 1e-13, spread, 0.0) * size_or_one
        marked = (spread == 0) & (n > 1) & (spread > 0).any() & (no_spread == 0)
        if not by_column:
            largest = max(float(spread.max()), np.finfo(float).tiny)
            common = np.sqrt(np.average((spread / largest) ** 2, weights=n)) * largest
            spread = np.full_like(spread, common)
        spread = np.where(spread > 0, spread, no_spread or 1.0)
        return cls(centre, np.where(marked, 0.0, spread), unit)

    def take(self, columns: BoolArray) -> Scaling:
        """That of some of the columns."""
        typical = None if self.typical is None else self.typical[columns]
        return Scaling(self.centre[columns], self.spread[columns], self.unit, typical)

    def encode(self, values: Array) -> Array:
        with np.errstate(over="ignore"):  # infinity is out of reach as well
            encoded: Array = _TRANSFORMS[self.unit](values) - self.centre
            encoded /= self.spread
        return encoded

    def seen(self, values: Array) -> BoolArray:
        """Rows that have a value in a column that counts."""
        counts = np.isfinite(self.spread)
        return np.asarray((~np.isnan(values[:, counts] if counts.any() else values)).any(axis=1))

    @property
    def fill(self) -> Array:
        """What stands for a missing value, encoded: the mean in fit. (D,)"""
        return np.zeros_like(self.centre) if self.typical is None else self.typical

    def complete(self, values: Array) -> Array:
        """Encoded, with the mean in fit for what is missing; NaN in rows that have nothing."""
        encoded = self.encode(values)
        missing = np.isnan(encoded)
        if missing.any():
            encoded = np.where(missing, self.fill, encoded)
            encoded[~self.seen(values)] = np.nan
        return encoded

    def decode(self, encoded: Array) -> Array:
        """Back to the unit: for a logarithm, the logarithm."""
        return encoded * self.spread + self.centre

    def decode_std(self, std: Array) -> Array:
        return std * self.spread


# ---------------------------------------------------------------- of one block of rows


def _number_and_size(part: Array, unit: Unit) -> tuple[Array, Array]:
    """Number of the observed values of each column, and the largest of these."""
    part = _TRANSFORMS[unit](part)
    n = len(part) - np.isnan(part).sum(axis=0)
    return n, np.fmax.reduce(np.abs(part), axis=0, initial=0.0)


def _total(part: Array, unit: Unit, size: Array) -> Array:
    """Σ of the observed values, in units of `size`."""
    part = _TRANSFORMS[unit](part) / size
    part[np.isnan(part)] = 0.0
    return np.asarray(part.sum(axis=0))


def _squares(part: Array, unit: Unit, centre: Array, size: Array) -> Array:
    """Σ of their squared distances from `centre`."""
    part = _TRANSFORMS[unit](part) - centre
    part /= size
    part *= part
    part[np.isnan(part)] = 0.0
    return np.asarray(part.sum(axis=0))
