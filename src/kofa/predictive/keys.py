"""Rows and columns drawn by what is in them: order, a row more or rounding changes hardly any."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kofa.data.stored import Values, of_blocks
from kofa.linalg import Array, BoolArray, IntArray

_DIGITS = 3  # of a value, which count
_SHIFT = 0.1372  # of a last digit, and of a power of ten


def ranks_of_rows(tables: Iterable[Values]) -> IntArray:
    """Ranks of rows as if drawn at random, from all that is known of each and not of every row."""
    return ranks(keys_of_rows(tables))


def keys_of_rows(tables: Iterable[Values]) -> IntArray:
    """A random number for each row, from all that is known of it and not of every row."""
    return np.asarray(sum(map(_sums, tables), np.uint64(0)))


def fingerprints(tables: Iterable[Array]) -> IntArray:
    """A number for each row that others hardly have: (n,); each value in its column counts."""
    total: IntArray = np.zeros(1, dtype=np.uint64)
    for values in tables:
        column = _mixed(np.arange(values.shape[1], dtype=np.uint64))
        total = _mixed(total + _mixed(_cells(values) + column).sum(axis=1, dtype=np.uint64))
    return np.asarray(total)


def _sums(values: Values) -> IntArray:
    """Of each row, without the columns in which all rows are the same."""
    found = of_blocks(_sums_of_block, values) if len(values) else [_sums_of_block(values[:0])]
    sums, cells, alike = zip(*found, strict=True)
    same = np.all(alike, axis=0) & np.all([one == cells[0] for one in cells], axis=0)
    return np.asarray(np.concatenate(sums) - cells[0][same].sum(dtype=np.uint64))


def _sums_of_block(values: Array) -> tuple[IntArray, IntArray, BoolArray]:
    """Sums by row, and where all rows have what, (D,)."""
    cells = _cells(values)
    one = cells.max(axis=0, initial=0)
    return cells.sum(axis=1, dtype=np.uint64), one, (cells == one).all(axis=0)


def ranks_of_columns(values: Array) -> IntArray:
    """Ranks of columns as if drawn at random."""
    return ranks(_cells(values).sum(axis=0, dtype=np.uint64))


def first(ranks: IntArray, n: int) -> IntArray:
    """The n with the lowest ranks, in ascending order of place."""
    return np.flatnonzero(ranks < n)


def _cells(values: Array) -> IntArray:
    """A random number for each value, from its first digits.

    What is shifted before it is rounded leaves numbers of few digits, of which tables are full, far
    from where rounding would turn.
    """
    known = np.nan_to_num(values.astype(float), nan=0.0, posinf=0.0, neginf=0.0)
    size = np.floor(np.log10(np.maximum(np.abs(known), 1e-300)) + _SHIFT)
    digits = np.rint(known / 10.0 ** (size - _DIGITS + 1) + _SHIFT) * 1024.0 + size
    digits = np.where(np.isnan(values), -1.0, digits)
    return _mixed(digits.astype(np.int64).view(np.uint64))


def ranks(keys: IntArray, seed: int = 0) -> IntArray:
    """Ranks by numbers, as if drawn at random; others with another seed."""
    mixed = _mixed(keys + np.uint64(seed))
    return np.asarray(np.argsort(np.argsort(mixed, kind="stable"), kind="stable"))


def _mixed(x: IntArray) -> IntArray:
    """Each bit of a number depends on all bits of the given one (Steele, Lea & Flood 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
