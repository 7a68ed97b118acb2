"""Sums over the rows that have each group of columns, worked out for some groups at a time.

Where columns are many, each with holes of its own, and rows few, K² numbers for each column would
take far more memory than the data. The sums follow from those of the patterns of rows, of which
there are no more than rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kofa.linalg import Array, BoolArray, IntArray, pack_outer, pieces

_AT_ONCE = 2**18  # numbers of a temporary
_SMALL = 2**19  # numbers that are kept whatever the size of the data (4 MiB)
_SMALL_SHARE = 0.1  # of the data: sums of this size are kept as well


def by_pattern(n_patterns: int, n_groups: int, size: int) -> bool:
    """Whether the sums, so many numbers for each group, are better not kept."""
    return n_groups * size > _SMALL and size > _SMALL_SHARE * n_patterns and n_patterns < n_groups


def sums_of(having: BoolArray, numbers: Array) -> Array:
    """Σ of numbers of the patterns over those that have each group; only pieces are copied."""
    found = np.empty((having.shape[1], *numbers.shape[1:]))
    for some in pieces(len(found), len(having), _AT_ONCE):
        np.matmul(having[:, some].T.astype(float), numbers, out=found[some])
    return found


def totals_of(having: BoolArray, numbers: Array) -> Array:
    """Σ of numbers of the groups over those that each pattern has, likewise: (P, ·)."""
    found = np.zeros((len(having), numbers.shape[1]))
    for some in pieces(having.shape[1], len(having), _AT_ONCE):
        found += having[:, some].astype(float) @ numbers[some]
    return found


@dataclass(frozen=True, eq=False)
class PatternSums:
    """Σ of what belongs to patterns of rows, over those that have each group of columns."""

    having: tuple[BoolArray, ...]  # of each block of rows (P, G): which groups its patterns have
    numbers: tuple[Array, ...]  # (P, ·)

    __array_ufunc__ = None  # so that an array leaves additions to this class

    @property
    def shape(self) -> tuple[int, int]:
        return self.having[0].shape[1], self.numbers[0].shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, some: Any) -> Array:
        """The sums of some groups: (·, ·)."""
        parts = zip(self.having, self.numbers, strict=True)
        return np.asarray(sum(sums_of(has[:, some], one) for has, one in parts))

    def of(self, groups: slice) -> PatternSums:
        """Of some groups only."""
        return PatternSums(tuple(has[:, groups] for has in self.having), self.numbers)

    def __add__(self, other: PatternSums | Array) -> PatternSums | Array:
        """Of more rows."""
        if isinstance(other, np.ndarray):
            return self[:] + other
        both = PatternSums(self.having + other.having, self.numbers + other.numbers)
        n_patterns = sum(len(one) for one in both.numbers)
        return both if by_pattern(n_patterns, *both.shape) else both[:]

    __radd__ = __add__

    def __mul__(self, times: float) -> PatternSums:
        """Of rows that count so many times."""
        return PatternSums(self.having, tuple(one * times for one in self.numbers))


@dataclass(frozen=True, eq=False)
class PatternMeans:
    """z̄ of each group of columns, or differences of such: sums over patterns by n."""

    sums: PatternSums  # (G, K)
    counts: tuple[Array, ...]  # of each block of rows (P,): how many rows a pattern has
    n: Array  # (G,)

    __array_ufunc__ = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.sums.shape

    def __len__(self) -> int:
        return len(self.sums)

    def __getitem__(self, some: Any) -> Array:
        """Those of some groups: (·, K)."""
        return np.asarray(self.sums[some] / self.n[some, None])

    def __iter__(self) -> Iterator[Array]:
        yield from self[:]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        whole = self[:]
        return whole if dtype is None else whole.astype(dtype)

    def __add__(self, other: PatternMeans | Array) -> PatternMeans | Array:
        if isinstance(other, np.ndarray):
            return self[:] + other
        sums = tuple(a + b for a, b in zip(self.sums.numbers, other.sums.numbers, strict=True))
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return PatternMeans(replace(self.sums, numbers=sums), counts, self.n)

    __radd__ = __add__

    def __mul__(self, by: float) -> PatternMeans:
        return PatternMeans(self.sums * by, tuple(by * one for one in self.counts), self.n)

    __rmul__ = __mul__

    def __sub__(self, other: PatternMeans | Array) -> PatternMeans | Array:
        return self + -1.0 * other

    def __rsub__(self, other: Array) -> Array:
        return other - self[:]

    def __matmul__(self, by: Array) -> PatternMeans:
        numbers = tuple(one @ by for one in self.sums.numbers)
        return replace(self, sums=replace(self.sums, numbers=numbers))

    def less(self, shift: Array) -> PatternMeans:
        """z̄ − shift."""
        parts = zip(self.sums.numbers, self.counts, strict=True)
        numbers = tuple(one - np.multiply.outer(count, shift) for one, count in parts)
        return replace(self, sums=replace(self.sums, numbers=numbers))

    def keep(self, factors: IntArray) -> PatternMeans:
        """Along these factors only."""
        numbers = tuple(one[:, factors] for one in self.sums.numbers)
        return replace(self, sums=replace(self.sums, numbers=numbers))


Means = Array | PatternMeans  # (G, K)


def less_shift(means: Means, shift: Array) -> Means:
    """z̄ − shift of each group."""
    return means.less(shift) if isinstance(means, PatternMeans) else means - shift


def along(means: Means, factors: IntArray) -> Means:
    """z̄ of each group along some factors."""
    return means.keep(factors) if isinstance(means, PatternMeans) else means[..., factors]


@dataclass(frozen=True, eq=False)
class CentredSums:
    """Σ ⟨z zᵀ⟩ − n z̄ z̄ᵀ of each group of columns, packed."""

    sums: PatternSums
    n: Array  # (G,)
    z_mean: Means  # (G, K)

    @property
    def shape(self) -> tuple[int, int]:
        return self.sums.shape

    def __len__(self) -> int:
        return len(self.sums)

    def __getitem__(self, some: Any) -> Array:
        """Those of some groups: (·, K(K+1)/2)."""
        shift = pack_outer(self.z_mean[some])
        shift *= self.n[some, None]
        return np.subtract(self.sums[some], shift, out=shift)


Packed = Array | CentredSums  # (G, K(K+1)/2): symmetric matrices, of which some are asked for
