"""Blocks of rows that are read and encoded when they are visited, and then forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from kofa.data.stored import Placed, Stored
from kofa.engines.ahead import ahead, in_threads
from kofa.engines.blocks import BlockEngine, Work
from kofa.engines.directions import (
    exact_by_passes,
    is_small,
    n_above_noise,
    randomised_by_passes,
)
from kofa.engines.scratch import on_disk, out_of_memory
from kofa.inference.held_out import STRATA
from kofa.inference.observations import START_STEPS, Observations, Rows
from kofa.inference.posterior import State
from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, BoolArray, Groups, IntArray, n_blas_threads

_BLOCK = 2**21  # numbers in a block, its factors included (16 MiB)
_COVARIANCES = 2**22  # numbers in the covariances of a block, where no two rows share theirs


# ---------------------------------------------------------------- one view


@dataclass(frozen=True, eq=False)
class ViewRows:
    """One view: its encoded rows, to be read, and what all of them have in common."""

    rows: Stored  # NaN where missing
    kind: Likelihood | None  # None: similarities
    columns: Groups
    seen: BoolArray  # (N,): which rows have something
    pattern: Any  # (N,): a number for each pattern of holes, unsigned 64 bits

    @classmethod
    def of(cls, rows: Stored, kind: Likelihood | None, seen: BoolArray, holed: bool) -> ViewRows:
        """`holed`: whether rows are missing in part, so that their patterns have to be found."""
        columns, pattern = Groups.one(rows.shape[1]), seen.astype(np.uint64)
        if holed:
            columns, pattern = _patterns(rows)
        return cls(rows, kind, columns, seen, pattern)

    @property
    def likelihood(self) -> Likelihood | None:
        """None where it is Gaussian."""
        return None if self.kind is None or self.kind.curvature is None else self.kind

    def read(self, where: slice | IntArray) -> Observations:
        """Some rows as inference sees them."""
        view = Observations.from_values(self.rows[where], self.kind)
        if self.columns.size == 1:
            return view
        mask = np.broadcast_to(view.mask, view.values.shape)
        return replace(view, observed=mask[:, self.columns.first], columns=self.columns)

    def take(self, index: IntArray) -> ViewRows:
        """Some of the rows."""
        rows = Placed(self.rows, index)
        return replace(self, rows=rows, seen=self.seen[index], pattern=self.pattern[index])


def _patterns(rows: Stored) -> tuple[Groups, Any]:
    """The columns that are missing in the same rows, and a number for the holes of each row."""
    n = rows.shape[1]
    of_column = np.random.default_rng(0).integers(2**63, size=n, dtype=np.uint64)
    label, patterns = np.zeros(n, dtype=np.intp), []
    for where in rows.slices():
        missing = np.isnan(rows[where])
        patterns.append((~missing).astype(np.uint64) @ of_column)
        both = np.stack([label, Groups.by_pattern(missing.T).label])
        label = np.unique(both, axis=1, return_inverse=True)[1].ravel()
    size = int(label.max()) + 1
    alone = size > n / 2  # as within one block: sharing no longer pays
    columns = Groups(np.arange(n), n) if alone else Groups(label.astype(np.intp), size)
    return columns, np.concatenate(patterns)


# ---------------------------------------------------------------- the engine


class Streamed(BlockEngine):
    """Rows that stay where they are. A pass reads and encodes them, one block after the other.

    Blocks are visited by as many threads as BLAS would have, with one of BLAS each. With
    `to_disk` the factors of the samples are in files as well.
    """

    def __init__(
        self,
        views: Mapping[str, ViewRows],
        block_rows: int | None = None,
        to_disk: bool = False,
        starts: dict[str, tuple[Array, Array]] | None = None,
    ) -> None:
        self.views = dict(views)
        self.block_rows = block_rows
        self.to_disk = to_disk
        # By view: where pseudo-observations are placed at the start, and their means there.
        self._starts: dict[str, tuple[Array, Array]] = {} if starts is None else starts

    @property
    def n_samples(self) -> int:
        return len(next(iter(self.views.values())).seen)

    @cached_property
    def n_patterns(self) -> int:
        """Number of different patterns of holes in a row; each its own where few are shared."""
        both = np.zeros(self.n_samples, dtype=np.uint64)
        for view in self.views.values():
            both = both * np.uint64(0x9E3779B97F4A7C15) + view.pattern
        found = len(np.unique(both))
        return self.n_samples if found > self.n_samples / 2 else found

    @property
    def width(self) -> int:
        """Number of columns of all views."""
        return sum(view.rows.shape[1] for view in self.views.values())

    @property
    def size(self) -> int:
        """Number of entries of all views, observed or not."""
        return self.n_samples * self.width

    @property
    def likelihoods(self) -> dict[str, Likelihood | None]:
        """Of each view; None where it is Gaussian."""
        return {name: view.likelihood for name, view in self.views.items()}

    @property
    def columns(self) -> dict[str, Groups]:
        """How the columns of each view are grouped."""
        return {name: view.columns for name, view in self.views.items()}

    # ------------------------------------------------------------ blocks

    def _slices(self, n_factors: int) -> Iterator[slice]:
        rows = self.block_rows or max(256, _BLOCK // (self.width + n_factors))
        most = max(1, _COVARIANCES // n_factors**2)
        if not self.block_rows and self.n_patterns > most:
            rows = min(rows, most)
        for start in range(0, self.n_samples, rows):
            yield slice(start, min(start + rows, self.n_samples))

    def _read(self, where: slice | IntArray, names: Iterable[str], at_start: bool) -> Rows:
        views = {name: self.views[name].read(where) for name in names}
        if at_start:
            views = {name: self._touching(name, view) for name, view in views.items()}
        return Rows.stack(views)

    def _touching(self, name: str, view: Observations) -> Observations:
        """With the pseudo-observations of the start."""
        if not view.augmented:
            return view
        return view.at(np.broadcast_to(self._begin(name)[0], view.values.shape))

    def _visit(
        self,
        work: Work,
        n_factors: int,
        *by_row: Any,
        views: Iterable[str] | None = None,
        at_start: bool = False,
    ) -> Iterator[tuple[slice, Any]]:
        names = list(self.views if views is None else views)
        for name in names if at_start else ():
            self._begin(name)  # before the pass that needs it
        slices = list(self._slices(n_factors))
        for where, found in zip(
            slices, self._found(work, slices, by_row, names, at_start), strict=True
        ):
            yield where, found
            if self.to_disk:
                out_of_memory()

    def _found(
        self,
        work: Work,
        slices: Sequence[slice],
        by_row: Sequence[Any],
        names: Sequence[str],
        at_start: bool,
    ) -> Iterator[Any]:
        """What a function says of each block."""
        n_threads = n_blas_threads()
        read = partial(self._read, names=names, at_start=at_start)
        if n_threads == 1:  # one block is read while the one before is looked at
            for where, block in zip(slices, ahead(read, slices, 1), strict=True):
                yield work(block, *(one[where] for one in by_row))
            return
        tasks = ((where, [one[where] for one in by_row]) for where in slices)
        yield from in_threads(lambda task: work(read(task[0]), *task[1]), tasks, n_threads)

    def _latents(self, n_factors: int) -> Array:
        return self._room((self.n_samples, n_factors))

    def _room(self, shape: tuple[int, int]) -> Array:
        return on_disk(shape) if self.to_disk else np.empty(shape)

    # ------------------------------------------------------------ where a fit starts

    def _begin(self, name: str) -> tuple[Array, Array]:
        """`Observations.at_start`, in passes over the rows."""
        if name not in self._starts:
            view = self.views[name]
            touch = mean = np.zeros(view.rows.shape[1])
            for _ in range(START_STEPS if view.likelihood is not None else 0):
                touch, total, n = mean, np.zeros(()), np.zeros(())
                work = partial(_sums_at, name=name, eta=touch)
                for _, (own, own_n) in self._visit(work, 1, views=[name]):
                    total, n = total + own, n + own_n
                mean = total / n[view.columns.label]
            self._starts[name] = touch, mean
        return self._starts[name]

    def _start(self, name: str) -> Observations:
        view = self.views[name]
        observed = np.ones((1, view.columns.size), dtype=bool)
        return Observations(self._begin(name)[1][None], observed, view.columns, view.likelihood)

    def principal_directions(
        self, k: int, rng: np.random.Generator, above_noise: bool = False
    ) -> Array:
        """Leading left singular vectors of the views side by side, on unit scale: (N, ≤ k).

        What is missing is at the mean. `above_noise`: only those that noise alone would not have.
        """
        means = {n: self._begin(n)[1] for n, one in self.likelihoods.items() if one is not None}
        return self._directions(partial(_centred, means=means), (), k, rng, above_noise)

    def with_residual_direction(self, state: State, Z: Array, rng: np.random.Generator) -> Array:
        """Z and the leading direction of what the factors leave, on unit scale: (N, K + 1)."""
        one = self._directions(partial(_residual, state=state), (Z,), 1, rng, above_noise=False)
        found = self._latents(Z.shape[1] + 1)
        for where in self._slices(found.shape[1]):
            found[where] = np.column_stack([Z[where], one[where]])
        return found

    def _directions(
        self,
        matrix: Callable[..., Array],
        of: tuple[Array, ...],
        k: int,
        rng: np.random.Generator,
        above_noise: bool,
    ) -> Array:
        """Of the matrix that a function makes of each block, and of its part of some arrays."""

        def over_blocks(work: Callable[..., Any], *by_row: Any) -> Iterator[Any]:
            on_matrix = partial(_on_matrix, matrix=matrix, n=len(of), work=work)
            for _, own in self._visit(on_matrix, k, *of, *by_row, at_start=True):
                yield own

        n, width = self.n_samples, self.width
        if is_small(n, width, k):
            M, sigma = exact_by_passes(over_blocks)
        else:
            M, sigma = randomised_by_passes(over_blocks, n, k, rng)
        M, sigma = M[:, :k], sigma[:k]
        if above_noise:
            total = float(sum(over_blocks(_square)))
            M = M[:, : max(1, n_above_noise(sigma, total, n, width))]
        if not M.shape[1]:  # nothing varies
            return np.ones((n, 1)) / n
        found, cubes, done = self._latents(M.shape[1]), np.zeros(M.shape[1]), 0
        for U in over_blocks(partial(_image, M=M)):
            found[done : done + len(U)] = U
            cubes, done = cubes + (U**3).sum(axis=0), done + len(U)
        # Singular vectors have no sign; this choice does not depend on the order of the rows.
        found *= np.sqrt(n) * np.where(cubes < 0, -1.0, 1.0)
        return found

    # ------------------------------------------------------------ other factors

    def keep(self, Z: Array, factors: IntArray) -> Array:
        """Z without all factors but these."""
        return self._changed(Z, len(factors), lambda z: z[:, factors])

    def rotate(self, Z: Array, R: Array, shift: Array) -> Array:
        """R (z − shift) of every sample."""
        return self._changed(Z, len(R), lambda z: (z - shift) @ R.T)

    def _changed(self, Z: Array, n_factors: int, change: Callable[[Array], Array]) -> Array:
        found = self._room((len(Z), n_factors))
        for start in range(0, len(Z), step := max(1, _BLOCK // max(1, Z.shape[1]))):
            found[start : start + step] = change(Z[start : start + step])
        return found

    def take(self, Z: Array, rows: BoolArray | IntArray) -> Array:
        """Z of some samples."""
        return Z if rows.dtype == bool and rows.all() else np.asarray(Z[rows])

    # ------------------------------------------------------------ fewer views, fewer rows

    def part(self, views: Iterable[str], rows: BoolArray | None = None) -> Streamed:
        """Some of the views, of all rows or of some."""
        some = {name: self.views[name] for name in views}
        if rows is None or rows.all():
            return Streamed(some, self.block_rows, self.to_disk, self._starts)
        index = np.flatnonzero(rows)
        some = {name: view.take(index) for name, view in some.items()}
        return Streamed(some, self.block_rows, self.to_disk)

    def observed(self, views: Iterable[str] | None = None) -> BoolArray:
        """Which samples have something of some views, or of any."""
        some = self.views if views is None else views
        return np.asarray(np.any([self.views[name].seen for name in some], axis=0))

    def _strata(self, name: str) -> Observations:
        view = self.views[name]
        if view.likelihood is None:
            none = np.empty((self.n_samples, 0))
            return Observations(none, view.seen[:, None], Groups.one(0))
        most = view.rows.shape[1] if view.likelihood.competing else STRATA
        found = [own for _, own in self._visit(partial(_first_targets, n=most), 1, views=[name])]
        targets = np.concatenate(found)
        columns = Groups.one(targets.shape[1])
        return Observations(targets, view.seen[:, None], columns, view.likelihood, targets)

    def view(self, name: str, rows: IntArray) -> Observations:
        """One view of some samples."""
        return self._read(rows, [name], at_start=True).views[name]

    def totals(self, name: str) -> tuple[Array, Array]:
        """Sum and number of the observed values of each column of a view, as they were given."""
        total, n = np.zeros(()), np.zeros(())
        for _, (own, own_n) in self._visit(_totals, 1, views=[name]):
            total, n = total + own, n + own_n
        return total, n


# ---------------------------------------------------------------- of one block


def _sums_at(block: Rows, name: str, eta: Array) -> tuple[Array, Array]:
    view = block.views[name]
    return view.at(np.broadcast_to(eta, view.values.shape)).y_sum, view.n


def _centred(block: Rows, means: Mapping[str, Array]) -> Array:
    """The views side by side, less their means; zero where missing."""
    parts = [
        (view.values - means[name]) * view.mask if name in means else view.values
        for name, view in block.views.items()
    ]
    return np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]


def _residual(block: Rows, Z: Array, state: State) -> Array:
    """What the factors leave of each view, in units of its noise, side by side."""
    parts = []
    for name, view in block.views.items():
        eta = state[name].weights.predict(Z)
        parts.append((view.at(eta).values - eta) * view.mask * np.sqrt(state[name].precision))
    return np.concatenate(parts, axis=1)


def _on_matrix(
    block: Rows, *by_row: Any, matrix: Callable[..., Array], n: int, work: Callable[..., Any]
) -> Any:
    return work(matrix(block, *by_row[:n]), *by_row[n:])


def _square(y: Array) -> float:
    return float(np.einsum("nd,nd->", y, y))


def _image(y: Array, M: Array) -> Array:
    return np.asarray(y @ M)


def _first_targets(block: Rows, n: int) -> Array:
    (view,) = block.views.values()
    assert view.targets is not None
    return view.targets[:, :n].copy()


def _totals(block: Rows) -> tuple[Array, Array]:
    (view,) = block.views.values()
    values = view.values if view.targets is None else view.targets
    mask = np.broadcast_to(view.mask, values.shape)
    return np.where(mask, values, 0.0).sum(axis=0), mask.sum(axis=0)
