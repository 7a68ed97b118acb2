"""Blocks of rows that are read and encoded when they are visited, and then forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from kofa.ahead import ahead, in_threads
from kofa.data.stored import Encoded, Placed, Stored
from kofa.engines.blocks import BlockEngine, Work
from kofa.engines.memory import InMemory
from kofa.engines.passes import BLOCK, COVARIANCES, ByPasses, ViewTraits, holes, patterns
from kofa.engines.scratch import on_disk, out_of_memory
from kofa.inference.observations import Observations, Rows
from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, BoolArray, Groups, IntArray, n_blas_threads

_AT_ONCE = 16 * BLOCK  # numbers of some rows that are read into memory (256 MiB)


@dataclass(frozen=True, eq=False)
class ViewRows(ViewTraits):
    """One view: its encoded rows, to be read, and what all of them have in common."""

    rows: Stored  # NaN where missing

    @classmethod
    def of(cls, rows: Encoded, kind: Likelihood | None, seen: BoolArray, holed: bool) -> ViewRows:
        """`holed`: whether rows are missing in part, so that their patterns have to be found."""
        columns, pattern = Groups.one(rows.shape[1]), seen.astype(np.uint64)
        if holed:
            columns, pattern = patterns(holes(rows[where]) for where in rows.slices())
        return cls(kind, columns, seen, pattern, rows.rounding, rows)

    def read(self, where: slice | IntArray) -> Observations:
        """Some rows as inference sees them."""
        return self.observations(self.rows[where])

    def take(self, index: IntArray) -> ViewRows:
        """Some of the rows."""
        return replace(super().take(index), rows=Placed(self.rows, index))


class Streamed(ByPasses):
    """Rows that stay where they are. A pass reads and encodes them, one block after the other.

    Blocks are visited by as many threads as BLAS would have, with one of BLAS each. With
    `to_disk` the factors of the samples are in files as well.
    """

    views: Mapping[str, ViewRows]

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
        self._starts = {} if starts is None else starts

    @property
    def in_one_process(self) -> bool:
        """Whether no copy of the engine in another process could see its rows."""
        return True  # files may be open, or be removed with their owner

    # ------------------------------------------------------------ blocks

    def _slices(self, n_factors: int) -> Iterator[slice]:
        rows = self.block_rows or max(256, BLOCK // (self.width + n_factors))
        most = max(1, COVARIANCES // n_factors**2)
        if not self.block_rows and self.n_patterns > most:
            rows = min(rows, most)
        for start in range(0, self.n_samples, rows):
            yield slice(start, min(start + rows, self.n_samples))

    def _read(self, where: slice | IntArray, names: Iterable[str], at_start: bool) -> Rows:
        views = {name: self.views[name].read(where) for name in names}
        if at_start:
            views = {name: self._tangent_at(name, view) for name, view in views.items()}
        return Rows.stack(views)

    def _tangent_at(self, name: str, view: Observations) -> Observations:
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

    # ------------------------------------------------------------ factors

    def _latents(self, n_factors: int) -> Array:
        return self._room((self.n_samples, n_factors))

    def _room(self, shape: tuple[int, int]) -> Array:
        return on_disk(shape) if self.to_disk else np.empty(shape)

    def _changed(self, change: Callable[..., Array], n_factors: int, *by_row: Array) -> Array:
        n, k = by_row[0].shape
        found = self._room((n, n_factors))
        for start in range(0, n, step := max(1, BLOCK // max(1, k))):
            where = slice(start, start + step)
            found[where] = change(*(one[where] for one in by_row))
        return found

    # ------------------------------------------------------------ fewer views, fewer rows

    def part(self, views: Iterable[str], rows: BoolArray | None = None) -> BlockEngine:
        """Some of the views, of all rows or of some."""
        some = {name: self.views[name] for name in views}
        if rows is None or rows.all():
            return Streamed(some, self.block_rows, self.to_disk, self._starts)
        index = np.flatnonzero(rows)
        if len(index) * self.width <= _AT_ONCE:  # to be visited often: read once
            return InMemory(Rows.stack({name: view.read(index) for name, view in some.items()}))
        some = {name: view.take(index) for name, view in some.items()}
        return Streamed(some, self.block_rows, self.to_disk)
