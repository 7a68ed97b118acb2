"""Leading left singular vectors of a matrix, of which only blocks of rows are seen at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dgeqrf, dtpqrt

from kofa.linalg import Array, BoolArray, cross, product

OVERSAMPLING, POWER = 10, 6
_COPIED = 2**18  # numbers
_TALL = 2_000  # rows of which a triangle is found at a time
_PANEL = 32  # columns that LAPACK takes together
_LEAST = 1e-10  # of the largest singular value: below is rounding,
_ROUNDINGS = 16.0  # or below so many roundings of the entries
# f(Y_b, …) of each block Y_b, in order, with what belongs to its rows of other arrays
Pass = Callable[..., Iterator[Any]]


class Directions(NamedTuple):
    """U = Y M, on unit scale, and the singular values."""

    M: Array  # (D, k)
    sigma: Array  # (k,)


def is_small(n: int, width: int, k: int) -> bool:
    """Whether all singular vectors are found as fast as some."""
    side = min(n, width)
    return side <= 200 or (side <= 1200 and k > side / 5)


def above_rounding(sigma: Array, rounding: float) -> BoolArray:
    """Which singular values, in descending order, are more than rounding."""
    largest = max(float(sigma[0]), np.finfo(float).tiny)
    return np.asarray(sigma > max(_LEAST, _ROUNDINGS * rounding) * largest)


def n_above_noise(sigma: Array, total: float, n: int, width: int) -> int:
    """How many singular values are above √N + √D times the noise of what they leave.

    From below, each direction that is found lowers the noise.
    """
    k = 0
    while True:
        left = max(total - float((sigma[:k] ** 2).sum()), 0.0)
        noise = left / max((n - 1.0 - k) * (width - k), 1.0)
        found = int((sigma > np.sqrt(noise) * (np.sqrt(n) + np.sqrt(width))).sum())
        if found <= k:
            return k
        k = found


def exact_svd(stack: list[Array]) -> tuple[Array, Array]:
    """All left singular vectors of matrices side by side."""
    n, width = len(stack[0]), sum(y.shape[1] for y in stack)
    if width > n:  # the R of Yᵀ = QR has the same left vectors
        matrix = stacked(triangle(y.T) for y in _some_columns(stack)).T
    else:
        matrix = np.concatenate(stack, axis=1, dtype=np.float64)
    U, sigma, _ = scipy.linalg.svd(matrix, full_matrices=False)
    return U, sigma


def _some_columns(stack: list[Array]) -> Iterator[Array]:
    """The columns of matrices side by side, so many at a time that a copy of them is small."""
    n, width = len(stack[0]), sum(y.shape[1] for y in stack)
    if n * width <= _COPIED:
        yield np.concatenate(stack, axis=1, dtype=np.float64)
        return
    step = max(4 * n, _COPIED // max(1, n))
    for y in stack:
        for start in range(0, y.shape[1], step):
            yield y[:, start : start + step]


def randomised_svd(stack: list[Array], k: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Subspace iteration (Halko, Martinsson & Tropp 2011), never copying the views."""
    size = min(k + OVERSAMPLING, len(stack[0]))
    Q = rng.standard_normal((len(stack[0]), size))
    sigma = np.ones(size)
    for _ in range(POWER):
        Q = np.linalg.qr(Q)[0]
        Q = sum((product(y, cross(y, Q)) for y in stack), start=np.zeros_like(Q))
    Q = np.linalg.qr(Q)[0]
    B = np.concatenate([cross(y, Q) for y in stack])
    U, sigma, _ = scipy.linalg.svd(B.T, full_matrices=False)
    return Q @ U, sigma


# ---------------------------------------------------------------- by passes over blocks of rows


def exact_by_passes(over_blocks: Pass, rounding: float) -> Directions:
    """All singular vectors: Y = QR, of which only R is kept."""
    R = stacked(over_blocks(triangle))
    _, sigma, Vt = scipy.linalg.svd(R, full_matrices=False)
    enough = above_rounding(sigma, rounding)
    return Directions(Vt[enough].T / sigma[enough], sigma[enough])


def randomised_by_passes(
    over_blocks: Pass, n: int, k: int, rng: np.random.Generator, rounding: float
) -> Directions:
    """The same subspace as `randomised_svd` has, (YYᵀ)^p Q, found among the columns of Y.

    Of Q = YV only R of its QR decomposition is needed: B = Yᵀ Q R^-1 has the singular values.
    """
    size = min(k + OVERSAMPLING, n)
    V = sum(over_blocks(_against, _Drawn(size, rng)), start=np.zeros(()))
    for _ in range(POWER - 1):
        V = np.linalg.qr(V)[0]
        V = sum(over_blocks(partial(_there_and_back, V=V)), start=np.zeros(()))
    V = np.linalg.qr(V)[0]
    parts, YtQ = [], np.zeros_like(V)
    for own, back in over_blocks(partial(_with_triangle, V=V)):
        parts.append(own)
        YtQ += back
    R = stacked(iter(parts))
    _, size_of, Vt = scipy.linalg.svd(R, full_matrices=False)
    enough = above_rounding(size_of, rounding)
    turn = Vt[enough].T / size_of[enough]  # Q turn has orthonormal columns
    U, sigma, _ = scipy.linalg.svd((YtQ @ turn).T, full_matrices=False)
    return Directions(V @ turn @ U, sigma)


@dataclass(frozen=True)
class _Drawn:
    """Numbers drawn when they are asked for: row by row the same as for all rows at once."""

    n_columns: int
    rng: np.random.Generator

    def __getitem__(self, where: slice) -> Array:
        return self.rng.standard_normal((where.stop - where.start, self.n_columns))


def _against(y: Array, drawn: Array) -> Array:
    return cross(y, drawn)


def _there_and_back(y: Array, V: Array) -> Array:
    return cross(y, product(y, V))


def _with_triangle(y: Array, V: Array) -> tuple[Array, Array]:
    """R of y V = QR, and yᵀ y V."""
    image = product(y, V)
    return triangle(image), cross(y, image)


def triangle(y: Array) -> Array:
    """R of y = QR."""
    return np.asarray(np.linalg.qr(np.asarray(y, dtype=np.float64), mode="r"))


def tall_triangle(n: int, width: int, fill: Callable[[Array, slice], None]) -> Array:
    """R of a matrix with n rows, of which a function fills some in at a time.

    These fit the cache, and are in the same place each time: memory that is new to a process is
    slow.
    """
    step = min(n, max(_TALL, 2 * width))
    place, found = np.empty((step, width), order="F"), []
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        if rows.stop - start < step:
            place = np.empty((rows.stop - start, width), order="F")
        fill(place, rows)
        factors, *_ = dgeqrf(place, lwork=_PANEL * width, overwrite_a=True)
        found.append(np.triu(factors[:width]))
    return stacked(found)


def stacked(triangles: Iterable[Array]) -> Array:
    """R of matrices on top of each other, from theirs."""
    return reduce(_on_top, triangles)


def _on_top(R: Array, other: Array) -> Array:
    n = R.shape[1]
    if not n or R.shape != other.shape or len(R) < n:
        return triangle(np.concatenate([R, other]))
    found, *_ = dtpqrt(n, min(_PANEL, n), R, other)  # which knows that both are triangles
    return np.asarray(found)
