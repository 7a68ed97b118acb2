"""Rows and columns drawn by what is in them: order, a row more or rounding changes hardly any."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kofa.data.stored import Values, by_blocks
from kofa.linalg import Array, IntArray

_DIGITS = 3  # of a value, which count


def ranks_of_rows(tables: Iterable[Array]) -> IntArray:
    """Ranks of rows as if drawn at random, from all that is known of each and not of every row."""
    differ = (values[:, (values != values[:1]).any(axis=0)] for values in tables)
    total = sum(map(_sums, differ), np.uint64(0))
    return _ranks(np.asarray(total))


def ranks_of_stored(tables: Iterable[Values]) -> IntArray:
    """The same of rows that need not be in memory, from all that is known of each."""
    total = sum((by_blocks(_sums, values) for values in tables), np.uint64(0))
    return _ranks(np.asarray(total))


def fingerprints(tables: Iterable[Array]) -> IntArray:
    """A number for each row that others hardly have: (n,); each value in its column counts."""
    total: IntArray = np.zeros(1, dtype=np.uint64)
    for values in tables:
        column = _mixed(np.arange(values.shape[1], dtype=np.uint64))
        total = _mixed(total + _mixed(_cells(values) + column).sum(axis=1, dtype=np.uint64))
    return np.asarray(total)


def _sums(values: Array) -> IntArray:
    return np.asarray(_cells(values).sum(axis=1, dtype=np.uint64))


def ranks_of_columns(values: Array) -> IntArray:
    """Ranks of columns as if drawn at random."""
    return _ranks(_cells(values).sum(axis=0, dtype=np.uint64))


def first(ranks: IntArray, n: int) -> IntArray:
    """The n with the lowest ranks, in ascending order of place."""
    return np.flatnonzero(ranks < n)


def _cells(values: Array) -> IntArray:
    """A random number for each value, from its first digits."""
    known = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    size = np.floor(np.log10(np.maximum(np.abs(known), 1e-300)))
    digits = np.rint(known / 10.0 ** (size - _DIGITS + 1)) * 1024.0 + size
    digits = np.where(np.isnan(values), -1.0, digits)
    return _mixed(digits.astype(np.int64).view(np.uint64))


def _ranks(keys: IntArray) -> IntArray:
    return np.asarray(np.argsort(np.argsort(_mixed(keys), kind="stable"), kind="stable"))


def _mixed(x: IntArray) -> IntArray:
    """Each bit of a number depends on all bits of the given one (Steele, Lea & Flood 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
