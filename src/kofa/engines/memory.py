"""Where blocks of rows live, and how the local step visits them. Today: in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import scipy.linalg

from kofa.inference.explained import Explained, explained, mean_only
from kofa.inference.held_out import sample_rows
from kofa.inference.local_step import augment, known, local_step, local_system
from kofa.inference.observations import Observations, Rows
from kofa.inference.posterior import State, Weights, n_factors_of
from kofa.inference.projection import project
from kofa.inference.statistics import Statistics, ViewSums, statistics
from kofa.inference.surrogate import expected_drop
from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, BoolArray, IntArray

_OVERSAMPLING, _POWER = 10, 6


class InMemory:
    """All rows in memory; one pass per iteration, block by block while a block is in cache."""

    def __init__(self, rows: Rows, block_rows: int | None = None) -> None:
        self.rows = replace(rows, views={n: view.at_start() for n, view in rows.views.items()})
        self.block_rows = block_rows
        self._parts: dict[int, list[tuple[slice, Rows]]] = {}

    @property
    def n_samples(self) -> int:
        return self.rows.n_samples

    @property
    def n_patterns(self) -> int:
        """Number of different patterns of holes in a row."""
        return self.rows.labels.size

    @property
    def size(self) -> int:
        """Number of entries of all views, observed or not."""
        return self.rows.size

    @property
    def likelihoods(self) -> dict[str, Likelihood | None]:
        """Of each view; None where it is Gaussian."""
        return {name: view.likelihood for name, view in self.rows.views.items()}

    # ------------------------------------------------------------ passes over all rows

    def sweep(self, state: State, Z: Array) -> tuple[Statistics, Array]:
        """Local step on every block: the sum of their statistics, and the new Z.

        Views that are not Gaussian are replaced by surrogates that touch at the old one.
        """
        e = local_system(state, self.rows.columns)
        found, total = np.empty((self.n_samples, e.n_factors)), None
        for where, block in self._blocks(e.n_factors):
            block = augment(block, state, Z[where])
            q = local_step(block, e)
            found[where] = q.mean
            own = statistics(block, q)
            total = own if total is None else total + own
        assert total is not None
        return total, found

    def summarise(self, Z: Array) -> Statistics:
        """Statistics of a Z known without uncertainty."""
        blocks = self._blocks(Z.shape[1])
        return reduce(add, (statistics(b, known(Z[where], b.labels)) for where, b in blocks))

    def project(self, state: State) -> tuple[Array, Array]:
        """The factors of each sample, by itself, given the global factors: (N, K).

        Also their mean covariance (K, K).
        """
        means, total = [], np.zeros(())
        for _, block in self._blocks(n_factors_of(state)):
            q = project(block, state)
            counts = np.bincount(q.patterns.label, minlength=q.patterns.size)
            total = total + np.tensordot(counts, q.covariance, 1)
            means.append(q.mean)
        return np.concatenate(means), total / self.n_samples

    def surrogate_sums(self, name: str, w: Weights, Z: Array) -> ViewSums:
        """Sums of a view where its surrogate touches at these weights; z stays."""
        blocks = self._blocks(Z.shape[1])
        return reduce(add, (ViewSums.touching(b.views[name], w, Z[where]) for where, b in blocks))

    def expected_drop(self, name: str, w: Weights, steps: Array, Z: Array) -> float:
        """Σ_n [g(η) − mean of g(η ± step)] of a view, summed over the steps (·, D)."""
        blocks = self._blocks(Z.shape[1])
        return sum(
            expected_drop(block.views[name], w.predict(Z[where]), steps) for where, block in blocks
        )

    def explained(self, name: str, w: Weights, Z: Array) -> Explained:
        """What factors Z (N, L) explain of a view, by weights along them."""
        mean = mean_only(self.rows.views[name], w, *self.totals(name))
        blocks = self._blocks(Z.shape[1])
        return reduce(add, (explained(b.views[name], w, Z[where], mean) for where, b in blocks))

    def _blocks(self, n_factors: int) -> list[tuple[slice, Rows]]:
        """The blocks, made once: sums over their data are remembered with them."""
        size = self.block_rows or self.rows.block_size(n_factors)
        if size not in self._parts:
            self._parts = {size: list(self.rows.blocks(size))}
        return self._parts[size]

    # ------------------------------------------------------------ directions to start from

    def principal_directions(
        self, k: int, rng: np.random.Generator, above_noise: bool = False
    ) -> Array:
        """Leading left singular vectors of the views side by side, on unit scale: (N, ≤ k).

        What is missing is at the mean. `above_noise`: only those that noise alone would not have.
        """
        stack = [_centred(view) for view in self.rows.views.values()]
        width = sum(y.shape[1] for y in stack)
        side = min(self.n_samples, width)
        if side <= 200 or (side <= 1200 and k > side / 5):
            U, sigma = _exact_svd(stack)
        else:
            U, sigma = _randomised_svd(stack, k, rng)
        enough = sigma > 1e-10 * max(float(sigma[0]), np.finfo(float).tiny)
        U, sigma = U[:, enough][:, :k], sigma[enough][:k]
        if above_noise:
            total = sum(float(np.einsum("nd,nd->", y, y)) for y in stack)
            U = U[:, : max(1, _above_noise(sigma, total, self.n_samples, width))]
        # Singular vectors have no sign; this choice does not depend on the order of the rows.
        U = U * np.where((U**3).sum(axis=0) < 0, -1.0, 1.0)
        nothing_varies = np.ones((self.n_samples, 1)) / self.n_samples
        return np.sqrt(self.n_samples) * U if U.shape[1] else nothing_varies

    def with_residual_direction(self, state: State, Z: Array, rng: np.random.Generator) -> Array:
        """Z and the leading direction of what the factors leave, on unit scale: (N, K + 1)."""
        views = {}
        for name, view in self.rows.views.items():
            eta = state[name].weights.predict(Z)
            values = (view.at(eta).values - eta) * view.mask * np.sqrt(state[name].precision)
            views[name] = Observations(values, view.observed, view.columns)
        direction = InMemory(Rows.stack(views)).principal_directions(1, rng)
        return np.column_stack([Z, direction])

    # ------------------------------------------------------------ other factors, fewer rows

    def keep(self, Z: Array, factors: IntArray) -> Array:
        """Z without all factors but these."""
        return Z[:, factors]

    def rotate(self, Z: Array, R: Array, shift: Array) -> Array:
        """R (z − shift) of every sample."""
        return np.asarray((Z - shift) @ R.T)

    def take(self, Z: Array, rows: BoolArray | IntArray) -> Array:
        """Z of some samples."""
        return Z[rows]

    def part(self, views: Iterable[str], rows: BoolArray | None = None) -> InMemory:
        """Some of the views, of all rows or of some."""
        some = {name: self.rows.views[name] for name in views}
        if rows is not None and not rows.all():
            some = {name: view.take(np.flatnonzero(rows)) for name, view in some.items()}
        return InMemory(Rows.stack(some), self.block_rows)

    def observed(self, views: Iterable[str] | None = None) -> BoolArray:
        """Which samples have something of some views, or of any."""
        some = self.rows.views if views is None else views
        return np.asarray(np.any([_has(self.rows.views[name]) for name in some], axis=0))

    def sample(
        self, name: str, rng: np.random.Generator, beside: Iterable[str] | None = None
    ) -> IntArray:
        """Some of the samples that have a view, and something of the views beside it."""
        data = self.rows.views[name]
        qualify = _has(data)
        if beside is not None:
            qualify = qualify & self.observed(beside)
        return sample_rows(data, qualify, rng)

    def view(self, name: str, rows: IntArray) -> Observations:
        """One view of some samples."""
        return self.rows.views[name].take(rows)

    def totals(self, name: str) -> tuple[Array, Array]:
        """Sum and number of the observed values of each column of a view, as they were given."""
        data = self.rows.views[name]
        values = data.values if data.targets is None else data.targets
        mask = np.broadcast_to(data.mask, values.shape)
        return np.where(mask, values, 0.0).sum(axis=0), mask.sum(axis=0)


def _has(view: Observations) -> BoolArray:
    """Which rows have something of a view."""
    return np.asarray(view.observed.any(axis=1))


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
