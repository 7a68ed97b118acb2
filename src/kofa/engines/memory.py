"""Blocks of rows in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from kofa.ahead import in_threads
from kofa.engines.blocks import BlockEngine, Work, residuals
from kofa.engines.condensed import condense
from kofa.engines.directions import (
    above_rounding,
    exact_svd,
    is_small,
    n_above_noise,
    randomised_svd,
)
from kofa.inference.local_step import LocalSystem, local_system_of
from kofa.inference.observations import Observations, Rows
from kofa.inference.pattern_sums import by_pattern
from kofa.inference.posterior import State, n_factors_of
from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, BoolArray, Groups, n_blas_threads

_MANY_PATTERNS = 100  # of holes in rows, each of which costs an inverse


class InMemory(BlockEngine):
    """All rows in memory; one pass per iteration, block by block while a block is in cache."""

    def __init__(self, rows: Rows, block_rows: int | None = None) -> None:
        self.rows = replace(rows, views={n: view.at_start() for n, view in rows.views.items()})
        self.block_rows = block_rows
        self._parts: dict[int, list[tuple[slice, Rows]]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which makes blocks of its own."""
        return self.__dict__ | {"_parts": {}}

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

    @property
    def columns(self) -> dict[str, Groups]:
        """How the columns of each view are grouped."""
        return self.rows.columns

    def _visit(
        self,
        work: Work,
        n_factors: int,
        *by_row: Array,
        views: Iterable[str] | None = None,  # noqa: ARG002
        at_start: bool = False,  # noqa: ARG002
    ) -> Iterator[tuple[slice, Any]]:
        return self._visited(work, n_factors, by_row, self._by_threads)

    def _visit_apart(self, work: Work, n_factors: int) -> Iterator[tuple[slice, Any]]:
        return self._visited(work, n_factors, (), by_threads=True)

    def _visited(
        self, work: Work, n_factors: int, by_row: Sequence[Array], by_threads: bool
    ) -> Iterator[tuple[slice, Any]]:
        blocks = self._blocks(n_factors)
        tasks = ((block, *(one[where] for one in by_row)) for where, block in blocks)
        n_threads = n_blas_threads() if by_threads and len(blocks) > 1 else 1
        found = in_threads(lambda task: work(*task), tasks, n_threads)
        yield from zip((where for where, _ in blocks), found, strict=True)

    @property
    def _by_threads(self) -> bool:
        """Whether blocks are visited by several threads, with one of BLAS each.

        Products of large matrices have threads of their own. What is computed entry by entry, or
        for each pattern of holes, has not.
        """
        return self.rows.augmented or self.n_patterns > _MANY_PATTERNS

    def _start(self, name: str) -> Observations:
        return self.rows.views[name]

    def _blocks(self, n_factors: int) -> list[tuple[slice, Rows]]:
        """The blocks, made once: sums over their data are remembered with them."""
        if self._by_pattern(n_factors):
            return [(slice(0, self.n_samples), self.rows)]
        size = self.block_rows or self.rows.block_size(n_factors)
        parts = self._parts  # another start may change it meanwhile
        if size not in parts:
            self._parts = parts = {size: list(self.rows.blocks(size))}
        return parts[size]

    def _by_pattern(self, n_factors: int) -> bool:
        """Whether the sums of columns are so many beside the rows that none are kept."""
        n_patterns, n_groups = self.rows.patterns.shape
        return by_pattern(n_patterns, n_groups, n_factors * (n_factors + 1) // 2)

    def _local_system(self, state: State) -> LocalSystem:
        by_pattern = self._by_pattern(n_factors_of(state))
        return local_system_of(state, self.rows) if by_pattern else super()._local_system(state)

    # ------------------------------------------------------------ directions to start from

    def principal_directions(
        self, k: int, rng: np.random.Generator, above_noise: bool = False
    ) -> Array:
        """Leading left singular vectors of the views side by side, on unit scale: (N, ≤ k).

        What is missing is at the mean. `above_noise`: only those that noise alone would not have.
        """
        stack = [_centred(view) for view in self.rows.views.values()]
        width = sum(y.shape[1] for y in stack)
        if is_small(self.n_samples, width, k):
            U, sigma = exact_svd(stack)
        else:
            U, sigma = randomised_svd(stack, k, rng)
        enough = above_rounding(sigma, max(view.rounding for view in self.rows.views.values()))
        U, sigma = U[:, enough][:, :k], sigma[enough][:k]
        if above_noise:
            squares = (np.einsum("nd,nd->", y, y, dtype=np.float64) for y in stack)
            total = float(sum(squares))
            U = U[:, : max(1, n_above_noise(sigma, total, self.n_samples, width))]
        # Singular vectors have no sign; this choice does not depend on the order of the rows.
        U = U * np.where((U**3).sum(axis=0) < 0, -1.0, 1.0)
        nothing_varies = np.ones((self.n_samples, 1)) / self.n_samples
        return np.sqrt(self.n_samples) * U if U.shape[1] else nothing_varies

    def with_residual_direction(self, state: State, Z: Array, rng: np.random.Generator) -> Array:
        """Z and the leading direction of what the factors leave, on unit scale: (N, K + 1)."""
        views = self.rows.views
        left = {name: np.empty_like(view.values) for name, view in views.items()}
        for where, own in self._visit(partial(residuals, state=state), Z.shape[1], Z):
            for name, values in own.items():
                left[name][where] = values
        alone = {n: Observations(left[n], view.observed, view.columns) for n, view in views.items()}
        direction = InMemory(Rows.stack(alone)).principal_directions(1, rng)
        return np.column_stack([Z, direction])

    # ------------------------------------------------------------ fewer views, fewer rows

    def part(self, views: Iterable[str], rows: BoolArray | None = None) -> InMemory:
        """Some of the views, of all rows or of some."""
        some = {name: self.rows.views[name] for name in views}
        if rows is not None and not rows.all():
            some = {name: view.take(np.flatnonzero(rows)) for name, view in some.items()}
        return InMemory(Rows.stack(some), self.block_rows)

    def condensed(self) -> BlockEngine:
        """Few rows that say the same about all factors, where there are such."""
        return condense(self)

    def observed(self, views: Iterable[str] | None = None) -> BoolArray:
        """Which samples have something of some views, or of any."""
        some = self.rows.views if views is None else views
        return np.asarray(np.any([_has(self.rows.views[name]) for name in some], axis=0))

    def totals(self, name: str) -> tuple[Array, Array]:
        """Sum and number of the observed values of each column of a view, as they were given."""
        data = self.rows.views[name]
        values = data.values if data.targets is None else data.targets
        mask = np.broadcast_to(data.mask, values.shape)
        return np.where(mask, values, 0.0).sum(axis=0, dtype=np.float64), mask.sum(axis=0)


def _has(view: Observations) -> BoolArray:
    """Which rows have something of a view."""
    return np.asarray(view.observed.any(axis=1))


def _centred(view: Observations) -> Array:
    """The values less the mean of what is observed in each column; zero where missing."""
    if not view.augmented:  # scaled, or centred as a kernel, before
        return view.values
    return (view.values - view.y_sum / np.maximum(view.n, 1.0)[view.columns.label]) * view.mask
