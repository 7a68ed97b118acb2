"""Which samples a kernelized view compares each sample with, where all would be too many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from kofa import tuning
from kofa.kernels.formulas import Kernel, Precomputed
from kofa.linalg import Array, IntArray

Choice = Literal["random", "kmeans++", "cholesky"]


def choose(
    how: Choice, kernel: Kernel, X: Array, index: IntArray, n: int, rng: np.random.Generator
) -> IntArray:
    """n of the rows X[index]; in the order of the rows.

    - "cholesky": one by one, the row that the kernels of those chosen explain least (a pivoted
      Cholesky decomposition of the kernel).
    - "kmeans++": one by one at random, in proportion to the squared distance, in the space of the
      kernel, to the nearest of those chosen.
    - "random": all rows alike.
    """
    if how == "random" or (kernel.diagonal(X[:1]) is None and not isinstance(kernel, Precomputed)):
        return np.sort(rng.choice(index, n, replace=False))
    if len(index) > tuning.LANDMARK_CANDIDATES * n:
        index = np.sort(rng.choice(index, tuning.LANDMARK_CANDIDATES * n, replace=False))

    def column(i: int) -> Array:
        return np.asarray(kernel(X[index], kernel.landmarks(X, index[[i]]))[:, 0])

    square = X[index, index] if isinstance(kernel, Precomputed) else kernel.diagonal(X[index])
    assert square is not None
    rule = _cholesky if how == "cholesky" else _spread
    return np.sort(index[rule(column, square, n, rng)])


def _cholesky(
    column: Callable[[int], Array], square: Array, n: int, rng: np.random.Generator
) -> list[int]:
    left, tiny = square.copy(), 1e-10 * float(square.max())
    L, chosen = np.empty((n, len(square))), list[int]()
    for r in range(n):
        i = int(np.argmax(left))
        if left[i] <= tiny:  # the rest are duplicates
            others = np.setdiff1d(np.arange(len(square)), chosen)
            return [*chosen, *rng.choice(others, n - r, replace=False).tolist()]
        L[r] = (column(i) - L[:r, i] @ L[:r]) / np.sqrt(left[i])
        left -= L[r] ** 2
        left[i] = 0.0
        chosen.append(i)
    return chosen


def _spread(
    column: Callable[[int], Array], square: Array, n: int, rng: np.random.Generator
) -> list[int]:
    chosen = [int(rng.integers(len(square)))]
    nearest = np.full(len(square), np.inf)
    while len(chosen) < n:
        i = chosen[-1]
        apart = square + square[i] - 2.0 * column(i)
        nearest = np.minimum(nearest, np.maximum(apart, 0.0))
        nearest[chosen] = 0.0
        if not nearest.sum() > 0:  # the rest are duplicates
            others = np.setdiff1d(np.arange(len(square)), chosen)
            return [*chosen, *rng.choice(others, n - len(chosen), replace=False).tolist()]
        chosen.append(int(rng.choice(len(square), p=nearest / nearest.sum())))
    return chosen
