"""Where blocks of rows live, and how the local step visits them. Today: in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import scipy.linalg

from kofa.inference.local_step import LocalSystem, augment, known, local_step, local_system
from kofa.inference.observations import Observations, Rows
from kofa.inference.posterior import State, Weights
from kofa.inference.projection import project
from kofa.inference.statistics import Statistics, SurrogateSums, statistics
from kofa.inference.surrogate import expected_drop
from kofa.linalg import Array, BoolArray, IntArray

_OVERSAMPLING, _POWER = 10, 6


class InMemory:
    """All rows in memory; one pass per iteration, block by block while a block is in cache.

    `Z` holds the posterior means of the last sweep.
    """

    def __init__(self, rows: Rows, block_rows: int | None = None) -> None:
        self.rows = replace(rows, views=tuple(view.at_start() for view in rows.views))
        self.block_rows = block_rows
        self.Z: Array = np.empty((rows.n_samples, 0))
        self._parts: dict[int, list[tuple[slice, Rows]]] = {}

    def sweep(self, state: State) -> Statistics:
        """Local step on every block; the sum of their statistics."""
        e, Z = self._local_system(state), self.Z
        self.Z = np.empty((self.rows.n_samples, e.n_factors))
        blocks = self._blocks(e.n_factors)
        return reduce(add, (self._visit(where, block, state, e, Z) for where, block in blocks))

    def _local_system(self, state: State) -> LocalSystem:
        return local_system(state, tuple(view.columns for view in self.rows.views))

    def _blocks(self, n_factors: int) -> list[tuple[slice, Rows]]:
        """The blocks, made once: sums over their data are remembered with them."""
        size = self.block_rows or self.rows.block_size(n_factors)
        if size not in self._parts:
            self._parts = {size: list(self.rows.blocks(size))}
        return self._parts[size]

    def _visit(
        self, where: slice, block: Rows, state: State, e: LocalSystem, Z: Array
    ) -> Statistics:
        block = augment(block, state, Z[where])
        q = local_step(block, e)
        self.Z[where] = q.mean
        return statistics(block, q)

    def part(self, views: Sequence[int], rows: BoolArray | None = None) -> InMemory:
        """Some of the views, of all rows or of some."""
        some = [self.rows.views[m] for m in views]
        if rows is not None and not rows.all():
            some = [view.take(np.flatnonzero(rows)) for view in some]
        return InMemory(Rows.stack(some), self.block_rows)

    def project(self, state: State) -> tuple[Array, Array]:
        """The factors of each sample, by itself, given the global factors: (N, K).

        Also their mean covariance (K, K).
        """
        means, total = [], np.zeros(())
        for _, block in self._blocks(state[0].weights.mean.shape[1]):
            q = project(block, state)
            counts = np.bincount(q.patterns.label, minlength=q.patterns.size)
            total = total + np.tensordot(counts, q.covariance, 1)
            means.append(q.mean)
        return np.concatenate(means), total / self.rows.n_samples

    def surrogate_sums(self, m: int, w: Weights) -> SurrogateSums:
        """Let the bound of view m touch where these weights put it; z stays."""
        blocks = self._blocks(self.Z.shape[1])
        return reduce(add, (SurrogateSums.of(b.views[m], w, self.Z[where]) for where, b in blocks))

    def expected_drop(self, m: int, w: Weights, steps: Array) -> float:
        """Σ_n [g(η) − mean of g(η ± step)] of view m, summed over the steps (·, D)."""
        blocks = self._blocks(self.Z.shape[1])
        return sum(
            expected_drop(block.views[m], w.predict(self.Z[where]), steps)
            for where, block in blocks
        )

    def keep(self, factors: IntArray) -> None:
        """Forget all factors but these."""
        self.Z = self.Z[:, factors]

    def rotate(self, R: Array, shift: Array) -> None:
        """z ← R (z − shift)."""
        self.Z = (self.Z - shift) @ R.T

    def summarise(self, Z: Array) -> Statistics:
        """Statistics of a Z known without uncertainty, from which a fit starts."""
        self.Z = Z
        blocks = self._blocks(Z.shape[1])
        return reduce(add, (statistics(b, known(Z[where], b.labels)) for where, b in blocks))

    def principal_directions(
        self, k: int, rng: np.random.Generator, above_noise: bool = False
    ) -> Array:
        """Leading left singular vectors (N, ≤ k) of the views side by side, missing as mean.

        `above_noise`: only those that noise alone would not have.
        """
        stack = [_centred(view) for view in self.rows.views]
        width = sum(y.shape[1] for y in stack)
        side = min(self.rows.n_samples, width)
        if side <= 200 or (side <= 1200 and k > side / 5):
            U, sigma = _exact_svd(stack)
        else:
            U, sigma = _randomised_svd(stack, k, rng)
        enough = sigma > 1e-10 * max(float(sigma[0]), np.finfo(float).tiny)
        U, sigma = U[:, enough][:, :k], sigma[enough][:k]
        if above_noise:
            total = sum(float(np.einsum("nd,nd->", y, y)) for y in stack)
            U = U[:, : max(1, _above_noise(sigma, total, self.rows.n_samples, width))]
        # Singular vectors have no sign; this choice does not depend on the order of the rows.
        return U * np.where((U**3).sum(axis=0) < 0, -1.0, 1.0)

    def residual_direction(self, state: State, rng: np.random.Generator) -> Array:
        """The leading direction of what the factors leave, on unit scale: (N, 1)."""
        views = []
        for view, q in zip(self.rows.views, state, strict=True):
            eta = q.weights.predict(self.Z)
            values = (view.at(eta).values - eta) * view.mask * np.sqrt(q.precision)
            views.append(Observations(values, view.observed, view.columns))
        U = InMemory(Rows.stack(views)).principal_directions(1, rng)
        n = self.rows.n_samples
        return np.sqrt(n) * U if U.shape[1] else rng.standard_normal((n, 1))


def _above_noise(sigma: Array, total: float, n: int, width: int) -> int:
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


def _centred(view: Observations) -> Array:
    """The values less the mean of what is observed in each column; zero where missing."""
    if not view.augmented:  # scaled, or centred as a kernel, before
        return view.values
    return (view.values - view.y_sum / view.n[view.columns.label]) * view.mask


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
