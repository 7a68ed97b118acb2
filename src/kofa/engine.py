"""Where blocks of rows live, and how the local step visits them. Today: in memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import add

import numpy as np
import scipy.linalg

from kofa.linalg import Array
from kofa.observations import Rows
from kofa.posterior import State
from kofa.updates import Evidence, Latent, Statistics, evidence, local_step, statistics

_OVERSAMPLING, _POWER = 10, 6


class InMemory:
    """All rows in memory; one pass per iteration, block by block while a block is in cache.

    `Z` holds the posterior means of the last sweep.
    """

    def __init__(self, rows: Rows, block_rows: int | None = None) -> None:
        self.rows = rows
        self.block_rows = block_rows
        self.Z: Array = np.empty((rows.n_samples, 0))

    def sweep(self, state: State) -> Statistics:
        """Local step on every block; the sum of their statistics."""
        e = evidence(state, tuple(view.columns for view in self.rows.views))
        k = e.n_factors
        self.Z = np.empty((self.rows.n_samples, k))
        return reduce(add, (self._visit(where, block, e) for where, block in self._blocks(k)))

    def _blocks(self, n_factors: int) -> Iterator[tuple[slice, Rows]]:
        return self.rows.blocks(n_factors, self.block_rows)

    def _visit(self, where: slice, block: Rows, e: Evidence) -> Statistics:
        q = local_step(block, e)
        self.Z[where] = q.mean
        return statistics(block, q)

    def summarise(self, Z: Array) -> Statistics:
        """Statistics of a Z known without uncertainty, from which a fit starts."""
        k, parts = Z.shape[1], []
        for where, block in self._blocks(k):
            n = block.labels.size
            q = Latent(Z[where], np.zeros((n, k, k)), np.zeros(n), block.labels)
            parts.append(statistics(block, q))
        return reduce(add, parts)

    def principal_directions(self, views: list[int], k: int, rng: np.random.Generator) -> Array:
        """Leading left singular vectors (N, ≤ k) of some views side by side, missing as mean."""
        stack = [self.rows.views[m].values for m in views]
        side = min(self.rows.n_samples, sum(y.shape[1] for y in stack))
        if side <= 200 or (side <= 1200 and k > side / 5):
            U, sigma = _exact_svd(stack)
        else:
            U, sigma = _randomised_svd(stack, k, rng)
        enough = sigma > 1e-10 * max(float(sigma[0]), np.finfo(float).tiny)
        U = U[:, enough][:, :k]
        # Singular vectors have no sign; this choice does not depend on the order of the rows.
        return U * np.where((U**3).sum(axis=0) < 0, -1.0, 1.0)


def _exact_svd(stack: list[Array]) -> tuple[Array, Array]:
    matrix = np.concatenate(stack, axis=1)
    if matrix.shape[1] > matrix.shape[0]:  # the R of Yᵀ = QR has the same left vectors
        matrix = scipy.linalg.qr(matrix.T, mode="r", overwrite_a=True)[0][: len(matrix)].T
    U, sigma, _ = scipy.linalg.svd(matrix, full_matrices=False)
    return U, sigma


def _randomised_svd(stack: list[Array], k: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Subspace iteration (Halko, Martinsson & Tropp 2011), never copying the views."""
    size = min(k + _OVERSAMPLING, len(stack[0]))
    Q = rng.standard_normal((len(stack[0]), size))
    sigma = np.ones(size)
    for _ in range(_POWER):
        Q = np.linalg.qr(Q)[0]
        Q = sum((y @ (y.T @ Q) for y in stack), start=np.zeros_like(Q))
    Q = np.linalg.qr(Q)[0]
    U, sigma, _ = scipy.linalg.svd(np.concatenate([y.T @ Q for y in stack]).T, full_matrices=False)
    return Q @ U, sigma
