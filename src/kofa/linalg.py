"""Small dense linear algebra shared by rows and columns: packed symmetric matrices, partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri
from threadpoolctl import ThreadpoolController  # scikit-learn cannot be installed without it

Array = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]


LOG_2PI = float(np.log(2.0 * np.pi))
_TILE = 32  # rows of a product that are computed at a time
_ROUNDING = 1e-14  # of a sum of products, relative
_LEAF = 8  # size of triangular matrices that are inverted by substitution
_FEW = 128  # terms of a sum in single precision: of thousands two digits would be lost
_SMALL = 16  # of those that are inverted by halves
_IN_CACHE = 2**16  # numbers of a temporary that stays there
_WORTH_THREADS = 2e8  # multiplications in one pass below which threads wait more than they work


@lru_cache(maxsize=1)
def _thread_controller() -> ThreadpoolController:
    return ThreadpoolController()


_LOCK = Lock()
_INSIDE: list[dict[Any, int]] = []  # what each piece of small work lowered, to be restored


@contextmanager
def _one_thread() -> Iterator[None]:
    """BLAS on one thread, and afterwards on as many as there were.

    The number mostly belongs to the whole process: who lowered it, but is not the last to leave,
    hands over to another one inside. Otherwise that one would restore what it had found, one.
    """
    with _LOCK:
        lowered = {pool: n for pool in _blas_pools() if (n := pool.num_threads) > 1}
        for pool in lowered:
            _set_threads(pool, 1)
        _INSIDE.append(lowered)
    try:
        yield
    finally:
        with _LOCK:
            _INSIDE[:] = [other for other in _INSIDE if other is not lowered]
            for pool, n in lowered.items():
                own = getattr(pool, "threading_layer", None) == "openmp"  # a number by thread
                if _INSIDE and not own:
                    _INSIDE[-1][pool] = n
                else:
                    _set_threads(pool, n)


def _blas_pools() -> list[Any]:
    return [pool for pool in _thread_controller().lib_controllers if pool.user_api == "blas"]


def n_blas_threads() -> int:
    """How many threads a product of matrices would have now."""
    return max((int(pool.num_threads) for pool in _blas_pools()), default=1)


def _set_threads(pool: Any, n: int) -> None:
    pool.set_num_threads(n)
    # From threadpoolctl 3.8 on, only the thread that set a number may change it, until it lets go.
    getattr(pool, "clear_controlling_thread", lambda: None)()


def threads_for(multiplications: float) -> AbstractContextManager[object]:
    """One BLAS thread for small work: with more, tiny products can take ten times as long."""
    return nullcontext() if multiplications > _WORTH_THREADS else _one_thread()


@lru_cache(maxsize=64)
def _triangle(k: int) -> tuple[IntArray, IntArray]:
    return np.triu_indices(k)


def pack(matrices: Array) -> Array:
    """Upper triangles (..., K(K+1)/2) of symmetric matrices (..., K, K)."""
    rows, cols = _triangle(matrices.shape[-1])
    packed: Array = matrices[..., rows, cols]
    return packed


def pack_outer(vectors: Array) -> Array:
    """Packed v vᵀ of each row v: (n, K) to (n, K(K+1)/2)."""
    rows, cols = _triangle(vectors.shape[1])
    packed = np.empty((len(vectors), len(rows)))
    for some in pieces(len(vectors), len(rows)):
        np.multiply(vectors[some][:, rows], vectors[some][:, cols], out=packed[some])
    return packed


def pieces(n: int, size: int, most: int = _IN_CACHE) -> Iterator[slice]:
    """So many items at a time, of n of the given size, that a temporary of them stays in cache."""
    step = max(1, most // max(1, size))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


@lru_cache(maxsize=64)
def _places(k: int) -> IntArray:
    """Where each entry of a symmetric matrix (K, K) stands in its packed triangle: (K²,)."""
    rows, cols = _triangle(k)
    places = np.empty((k, k), dtype=np.intp)
    places[rows, cols] = places[cols, rows] = np.arange(len(rows))
    return places.ravel()


def unpack(packed: Array, k: int) -> Array:
    """Inverse of `pack`: (..., K(K+1)/2) to symmetric (..., K, K)."""
    return np.take(packed, _places(k), axis=-1).reshape(*packed.shape[:-1], k, k)


def products(A: Array, B: Array) -> Array:
    """Σ_ij A_ij B_ij of each pair in two batches of matrices: (n,)."""
    n = len(A)
    return np.asarray(np.einsum("nt,nt->n", A.reshape(n, -1), B.reshape(n, -1)))


def inverse_and_logdet(matrices: Array) -> tuple[Array, Array]:
    """Inverse and log-determinant of a batch (n, K, K) of positive definite matrices.

    Their diagonals are brought to one before, so that weak directions keep their digits beside
    strong ones, and then raised by what rounding may have taken from those that are weaker still.
    """
    root = 1.0 / np.sqrt(np.diagonal(matrices, axis1=-2, axis2=-1))
    scaled = matrices * root[..., :, None]
    scaled *= root[..., None, :]
    k = matrices.shape[-1]
    scaled[..., np.arange(k), np.arange(k)] += _ROUNDING * k
    factor = np.asarray(np.linalg.cholesky(scaled), dtype=float)
    logdet = 2.0 * (np.log(np.diagonal(factor, axis1=-2, axis2=-1)) - np.log(root)).sum(-1)
    half = triangular_inverse(factor) * root[..., None, :]
    return half.swapaxes(-1, -2) @ half, logdet


def triangular_inverse(L: Array) -> Array:
    """Inverses of a batch (n, K, K) of lower triangular matrices.

    Small ones by halves, in all at once, where calls of LAPACK would take longer than their work.
    """
    k = L.shape[-1]
    if k <= _LEAF:
        return _small_triangular_inverse(L)
    if k > _SMALL:
        inverse = L.copy()
        for one in inverse:  # which LAPACK reads as the upper triangle of its transpose
            dtrtri(one.T, overwrite_c=True)
        return inverse
    inverse, half = np.zeros(L.shape), k // 2
    above, below = triangular_inverse(L[:, :half, :half]), triangular_inverse(L[:, half:, half:])
    inverse[:, :half, :half], inverse[:, half:, half:] = above, below
    inverse[:, half:, :half] = -(below @ (np.ascontiguousarray(L[:, half:, :half]) @ above))
    return inverse


def _small_triangular_inverse(L: Array) -> Array:
    """By substitution, in all matrices at once."""
    of_entry, k = np.ascontiguousarray(L.transpose(1, 2, 0)), L.shape[-1]
    X = np.zeros(of_entry.shape)
    for i in range(k):
        X[i, i] = 1.0 / of_entry[i, i]
        X[i, :i] = -X[i, i] * np.einsum("kn,kjn->jn", of_entry[i, :i], X[:i, :i])
    return np.ascontiguousarray(X.transpose(2, 0, 1))


def product(A: Array, B: Array) -> Array:
    """A @ B in double precision, computed in single precision where A is."""
    single = A.dtype == np.float32
    return np.asarray(A @ (B.astype(np.float32) if single else B), dtype=np.float64)


def cross(A: Array, B: Array) -> Array:
    """Aᵀ @ B likewise: Σ a bᵀ over rows, of which only a few are added in single precision."""
    if A.dtype != np.float32:
        return np.asarray(A.T @ B)
    single, total = B.astype(np.float32), np.zeros((A.shape[1], *B.shape[1:]))
    for start in range(0, len(A), _FEW):
        some = slice(start, start + _FEW)
        total += A[some].T @ single[some]
    return total


def by_rows(X: Array, B: Array) -> Array:
    """X @ B, in which no row depends on how many others there are.

    The shape of a product and the order of its factors in memory decide how BLAS rounds it: here
    these are the same for all.
    """
    X = np.ascontiguousarray(X)
    n, d = X.shape
    whole = n - n % _TILE
    product = np.empty((n, *B.shape[1:]))
    tiles: Array = X[:whole].reshape(whole // _TILE, _TILE, d) @ B
    product[:whole] = tiles.reshape(product[:whole].shape)
    if whole < n:
        product[whole:] = (filled_up(X[whole:]) @ B)[: n - whole]
    return product


def filled_up(X: Array) -> Array:
    """The rows, and the last one again as often as it takes to fill a tile."""
    more = -len(X) % _TILE
    return np.concatenate([X, np.repeat(X[-1:], more, axis=0)]) if more else X


def inner(X: Array, V: Array) -> Array:
    """x·v for all rows."""
    return np.asarray(X @ V.T) if X is V else by_rows(X, V.T)


def squared_distances(X: Array, V: Array, unit: Array | None = None) -> Array:
    """|x − v|² for all rows, whose columns are multiplied by `unit` before."""
    middle = V.mean(axis=0)  # the expanded square would lose a distance far from zero
    same = X is V
    X = X - middle
    V = X if same else V - middle
    if unit is not None:
        X = X * unit
        V = X if same else V * unit
    square = inner(X, V)
    square *= -2.0
    square += (X**2).sum(1)[:, None]
    square += (V**2).sum(1)
    return np.maximum(square, 0.0, out=square)


def centre(K: Array) -> Array:
    """HKH with H = I − 11ᵀ/n."""
    centred: Array = K - K.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    return centred


def solve_positive(A: Array, B: Array, share: float) -> Array:
    """A^-1 B of a symmetric A that should be positive, with a share of its mean diagonal added.

    A kernel of rows with holes may have negative eigenvalues: these directions are left out.
    """
    jitter = max(share * float(np.trace(A)) / max(len(A), 1), np.finfo(float).tiny)
    try:
        factor = scipy.linalg.cho_factor(A + jitter * np.eye(len(A)), lower=True)
    except np.linalg.LinAlgError:
        e, U = np.linalg.eigh(A)
        kept = e > jitter
        return np.asarray((U[:, kept] / (e[kept] + jitter)) @ (U[:, kept].T @ B))
    return np.asarray(scipy.linalg.cho_solve(factor, B))


def quadratic_diagonals(basis: Array, matrices: Array) -> Array:
    """diag(Bᵀ S B) of each pair in two batches (n, K, L) and (n, K, K): (n, L)."""
    diagonals: Array = (basis * (matrices @ basis)).sum(axis=-2)
    return diagonals


@dataclass(frozen=True, eq=False)
class Groups:
    """A partition of n items, such as the rows that share a pattern of observed columns.

    `label[i]` is the group of item i. Every operation has the same three speeds: one group is
    one matrix product, as many groups as items one batched product, anything between a loop.
    """

    label: IntArray
    size: int

    @classmethod
    def one(cls, n: int) -> Groups:
        """All n items together."""
        return cls(np.zeros(n, dtype=np.intp), 1)

    @classmethod
    def by_pattern(cls, patterns: BoolArray) -> Groups:
        """Items (rows of `patterns`) that are equal belong together.

        When more than half of the items differ, sharing no longer pays and each stands alone.
        """
        n = len(patterns)
        if n == 0 or (patterns == patterns[0]).all():
            return cls.one(n)
        bits = np.packbits(patterns, axis=1)
        keys = np.ascontiguousarray(bits).view(np.dtype((np.void, bits.shape[1]))).ravel()
        found, label = np.unique(keys, return_inverse=True)
        if len(found) > n / 2:
            return cls(np.arange(n), n)
        return cls(label.astype(np.intp), len(found))

    @cached_property
    def members(self) -> Sequence[Any]:
        """The items of each group, as an index into the items."""
        if self.size == 1:
            return [slice(None)]
        order = np.argsort(self.label, kind="stable")
        bounds = np.searchsorted(self.label[order], np.arange(self.size + 1))
        if (self.label[1:] >= self.label[:-1]).all():  # slices read in place, indices copy
            return [slice(a, b) for a, b in pairwise(bounds)]
        return np.split(order, bounds[1:-1])

    @cached_property
    def first(self) -> IntArray:
        """One item of each group, to read off what the group shares."""
        return np.unique(self.label, return_index=True)[1]

    @cached_property
    def alone(self) -> bool:
        """Whether each item is a group of its own, in order."""
        n = len(self.label)
        return self.size == n and bool((self.label == np.arange(n)).all())

    def sum(self, items: Array) -> Array:
        """Σ of the items (n, ...) of each group: (size, ...)."""
        if self.alone:
            return items
        return np.stack([items[m].sum(axis=0) for m in self.members])

    def matmul(self, items: Array, matrices: Array) -> Array:
        """Each row (n, K) times the matrix of its group (size, K, L): (n, L)."""
        product: Array
        if self.size == 1:
            product = items @ matrices[0]
            return product
        if self.alone:
            product = np.matmul(items[:, None, :], matrices)[:, 0, :]
            return product
        out = np.empty((len(items), matrices.shape[-1]))
        for members, matrix in zip(self.members, matrices, strict=True):
            out[members] = items[members] @ matrix
        return out

    def by_rows(self, items: Array, matrices: Array) -> Array:
        """The same, in which no row depends on which others there are."""
        if self.size == 1:
            return by_rows(items, matrices[0])
        place, group = self._tiles
        full = np.zeros((len(group) * _TILE, items.shape[1]))
        full[place] = items
        product: Array = full.reshape(len(group), _TILE, -1) @ matrices[group]
        return product.reshape(len(full), -1)[place]

    @cached_property
    def _tiles(self) -> tuple[IntArray, IntArray]:
        """The place of each item among tiles that hold one group each, and the groups of these."""
        count = np.bincount(self.label, minlength=self.size)
        tiles = -(-count // _TILE)
        order = np.argsort(self.label, kind="stable")
        within = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
        place = np.empty_like(order)
        place[order] = np.repeat(_TILE * (np.cumsum(tiles) - tiles), count) + within
        return place, np.repeat(np.arange(self.size), tiles)

    def gram(self, items: Array, weights: Array | None = None) -> Array:
        """Σ weight · v vᵀ over the rows v (n, K) of each group: (size, K, K)."""
        left = items if weights is None else items * weights[:, None]
        if self.alone and self.size > 1:
            return left[:, :, None] * items[:, None, :]
        return np.stack([left[m].T @ items[m] for m in self.members])
