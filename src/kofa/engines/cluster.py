"""Blocks of rows with the workers of a Dask cluster.

A block is encoded by the worker that gets it, and stays there; so do the factors of its samples.
Global factors go out, and sums come back. All of it are tasks without side effects, so that Dask
can repeat those whose results a lost worker had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import accumulate, pairwise
from operator import add, itemgetter
from typing import Any, TypeVar

import numpy as np

from kofa.data.stored import Encoded
from kofa.engines.blocks import BlockEngine, Work, swept
from kofa.engines.dask_tasks import each, gathered, placed, shared
from kofa.engines.memory import InMemory
from kofa.engines.passes import (
    BLOCK,
    COVARIANCES,
    ByPasses,
    ViewTraits,
    holes,
    observations,
    patterns,
)
from kofa.inference.local_step import local_system
from kofa.inference.observations import Observations, Rows
from kofa.inference.posterior import State
from kofa.inference.statistics import Statistics
from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, BoolArray, Groups, IntArray

_PLACED = 4 * BLOCK  # numbers in a block: fewer blocks are less to schedule
_FEWEST = 8  # blocks, where there are enough rows, whatever number of workers there is
_LINEAGE = 50  # passes that Dask would have to repeat for lost factors, at most
_AT_A_TIME = 32  # blocks whose sums wait to be added

Source = tuple[Encoded, Likelihood | None, BoolArray, bool]  # rows, kind, rows seen, holed
T = TypeVar("T")


# ---------------------------------------------------------------- factors of the samples


@dataclass(frozen=True, eq=False)
class OnWorkers:
    """Z of all samples, in parts, each with the worker that has the block of its rows."""

    client: Any
    make: Callable[[], Sequence[Any]]  # the parts as futures, if anybody asks for them
    sizes: tuple[int, ...]
    n_factors: int
    age: int  # number of passes that led here from something that is kept elsewhere

    @cached_property
    def parts(self) -> Sequence[Any]:
        return self.make()

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self.sizes), self.n_factors

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        whole = np.concatenate(gathered(self.client, self.parts))
        return whole if dtype is None else whole.astype(dtype)

    @cached_property
    def _whole(self) -> Array:
        return np.asarray(self)

    def __getitem__(self, rows: Any) -> Array:
        """Those of some samples, for a part of the rows that is small enough for memory."""
        return np.asarray(self._whole[rows])


# ---------------------------------------------------------------- the engine


class Cluster(ByPasses):
    """Rows that are encoded once and kept by the workers of a cluster."""

    def __init__(
        self,
        client: Any,
        blocks: Sequence[Any],
        sizes: Sequence[int],
        views: Mapping[str, ViewTraits],
        starts: dict[str, tuple[Array, Array]] | None = None,
    ) -> None:
        """`blocks`: futures of `Rows`; `starts`: where their pseudo-observations are, if so."""
        self.client, self.blocks, self.sizes, self.views = client, blocks, tuple(sizes), dict(views)
        self._starts = {} if starts is None else starts
        if starts is None and any(self.likelihoods.values()):
            at = {n: self._begin(n)[0] for n, one in self.likelihoods.items() if one is not None}
            self.blocks = self._each_block(_at_start, blocks, at=shared(client, at))

    def _slices(self) -> list[slice]:
        return [slice(*ends) for ends in pairwise(accumulate(self.sizes, initial=0))]

    def _each_block(
        self, function: Callable[..., Any], *parts: Sequence[Any], **same: Any
    ) -> list[Any]:
        """A function of each block, or of what belongs to it, as futures."""
        return each(self.client, function, *parts, **same)

    # ------------------------------------------------------------ passes

    def _visit(
        self,
        work: Work,
        n_factors: int,
        *by_row: Any,
        views: Iterable[str] | None = None,  # noqa: ARG002
        at_start: bool = False,  # noqa: ARG002
    ) -> Iterator[tuple[slice, Any]]:
        step = self._at_once(n_factors)
        futures = self._submit(_on_parts, work, step, by_row)
        for some in _batches(list(zip(self._slices(), futures, strict=True)), _AT_A_TIME):
            found = gathered(self.client, [future for _, future in some])
            for (where, _), parts in zip(some, found, strict=True):
                for start, own in zip(range(where.start, where.stop, step), parts, strict=True):
                    yield slice(start, min(start + step, where.stop)), own

    def sweep(self, state: State, Z: Any) -> tuple[Statistics, Any]:
        """As elsewhere; but where nothing depends on Z, it is computed when it is asked for."""
        if any(self.likelihoods.values()):
            return super().sweep(state, Z)
        e = local_system(state, self.columns)
        work = shared(self.client, partial(swept, state=None, e=e))
        step = self._at_once(e.n_factors)
        total = self._total(self._submit(_sum_of_parts, work, step))
        make = partial(self._submit, _rows_of_parts, work, step)
        return total, OnWorkers(self.client, make, self.sizes, e.n_factors, age=1)

    def _pass(self, work: Work, n_factors: int, *by_row: Any, **which: Any) -> tuple[Any, Array]:  # noqa: ARG002
        both = self._submit(_both_of_parts, work, self._at_once(n_factors), by_row)
        rows = self._each_block(itemgetter(1), both)
        total = self._total(self._each_block(itemgetter(0), both))
        age = 1 + max((z.age for z in by_row if isinstance(z, OnWorkers)), default=0)
        return total, self._z(rows, n_factors, age)

    def _submit(
        self, function: Work, work: Any, step: int, by_row: Sequence[Any] = ()
    ) -> list[Any]:
        """`work`: a function, or the future of one."""
        parts = [self._parts_of(one) for one in by_row]
        same = shared(self.client, work) if callable(work) else work
        return self._each_block(function, self.blocks, *parts, work=same, step=step)

    def _total(self, sums: Sequence[Any]) -> Any:
        total = None
        for some in _batches(sums, _AT_A_TIME):
            total = reduce(add, gathered(self.client, some), *([] if total is None else [total]))
        return total

    def _at_once(self, n_factors: int) -> int:
        """How many rows of a block a worker looks at together."""
        most = max(1, COVARIANCES // n_factors**2)
        return most if self.n_patterns > most else max(self.sizes)

    def _parts_of(self, by_row: Any) -> Sequence[Any]:
        """What belongs to each block."""
        if isinstance(by_row, OnWorkers) and by_row.sizes == self.sizes and by_row.age < _LINEAGE:
            return by_row.parts
        if isinstance(by_row, OnWorkers):
            by_row = np.asarray(by_row)
        return [by_row[where] for where in self._slices()]

    def _z(self, parts: Sequence[Any], n_factors: int, age: int) -> Any:
        return OnWorkers(self.client, lambda: parts, self.sizes, n_factors, age)

    # ------------------------------------------------------------ factors

    def _changed(self, change: Callable[..., Array], n_factors: int, *by_row: Any) -> Any:
        first = by_row[0]
        if not isinstance(first, OnWorkers):
            return change(*map(np.asarray, by_row))

        def make() -> Sequence[Any]:
            parts = (z.parts if isinstance(z, OnWorkers) else self._parts_of(z) for z in by_row)
            return self._each_block(change, *parts)

        return replace(first, make=make, n_factors=n_factors, age=first.age + 1)

    def _scaled(self, Z: Any, by: Array) -> Any:
        return self._changed(partial(np.multiply, by), Z.shape[1], Z)

    def _each(self, by_row: Any) -> list[Any]:
        return [by_row[where] for where in self._slices()]

    def _view(self, name: str, rows: IntArray) -> Observations:
        """Some rows of a view, in the order of the list."""
        ends = np.cumsum(self.sizes)
        which = np.searchsorted(ends, rows, side="right")
        blocks = np.unique(which)
        own = [rows[which == b] - (ends[b] - self.sizes[b]) for b in blocks]
        mine = [self.blocks[b] for b in blocks]
        found = gathered(self.client, self._each_block(partial(_view, name=name), mine, own))
        order = np.concatenate([np.flatnonzero(which == b) for b in blocks])
        return _joined(found, np.argsort(order))

    # ------------------------------------------------------------ fewer views, fewer rows

    def part(self, views: Iterable[str], rows: BoolArray | None = None) -> BlockEngine:
        """Some of the views, of all rows or of some."""
        traits = {name: self.views[name] for name in views}
        select = partial(_part, names=list(traits))
        if rows is None or rows.all():
            blocks = self._each_block(select, self.blocks)
            return Cluster(self.client, blocks, self.sizes, traits, self._starts)
        index = np.flatnonzero(rows)
        if len(index) * self.width <= _PLACED:  # to be visited often: without a way to the workers
            return InMemory(Rows.stack({name: self._view(name, index) for name in traits}))
        kept = [(b, own) for b, own in zip(self.blocks, self._each(rows), strict=True) if own.any()]
        blocks = self._each_block(select, *zip(*kept, strict=True))
        traits = {name: view.take(index) for name, view in traits.items()}
        return Cluster(self.client, blocks, [int(own.sum()) for _, own in kept], traits)


# ---------------------------------------------------------------- placing


def place(client: Any, sources: Mapping[str, Source], block_rows: int | None) -> Cluster:
    """Give the workers their blocks."""
    n = len(next(iter(sources.values()))[2])
    width = max(1, sum(rows.shape[1] for rows, *_ in sources.values()))
    auto = min(max(256, _PLACED // width), max(256, -(-n // _FEWEST)))
    step = block_rows or auto
    slices = [slice(start, min(start + step, n)) for start in range(0, n, step)]
    views, raw = {}, {}
    for name, (rows, kind, seen, holed) in sources.items():
        raw[name] = placed(client, rows, slices)
        columns, pattern = Groups.one(rows.shape[1]), seen.astype(np.uint64)
        if holed:
            columns, pattern = patterns(gathered(client, each(client, holes, raw[name])))
        views[name] = ViewTraits(kind, columns, seen, pattern, rows.rounding)
    kinds = {name: (view.kind, view.columns) for name, view in views.items()}
    blocks = each(client, _stacked, *raw.values(), kinds=shared(client, kinds))
    return Cluster(client, blocks, [where.stop - where.start for where in slices], views)


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


# ---------------------------------------------------------------- tasks


def _stacked(*values: Array, kinds: Mapping[str, tuple[Likelihood | None, Groups]]) -> Rows:
    """The views of a block side by side."""
    pairs = zip(values, kinds.items(), strict=True)
    return Rows.stack({name: observations(_own(one), *kind) for one, (name, kind) in pairs})


def _own(values: Array) -> Array:
    """A copy where holes will be filled in: results of other tasks are not to be changed."""
    return values.copy() if np.isnan(values).any() else values


def _at_start(block: Rows, at: Mapping[str, Array]) -> Rows:
    views = dict(block.views)
    for name, eta in at.items():
        views[name] = views[name].at(np.broadcast_to(eta, views[name].values.shape))
    return replace(block, views=views)


def _on_parts(block: Rows, *by_row: Array, work: Work, step: int) -> list[Any]:
    return [work(some, *(one[where] for one in by_row)) for where, some in block.blocks(step)]


def _both_of_parts(block: Rows, *by_row: Array, work: Work, step: int) -> tuple[Any, Array]:
    """The sum of a block, and what belongs to its rows."""
    sums, rows = zip(*_on_parts(block, *by_row, work=work, step=step), strict=True)
    return reduce(add, sums), rows[0] if len(rows) == 1 else np.concatenate(rows)


def _sum_of_parts(block: Rows, work: Work, step: int) -> Any:
    return _both_of_parts(block, work=work, step=step)[0]


def _rows_of_parts(block: Rows, work: Work, step: int) -> Array:
    return _both_of_parts(block, work=work, step=step)[1]


def _part(block: Rows, rows: BoolArray | None = None, *, names: Sequence[str]) -> Rows:
    views = {name: block.views[name] for name in names}
    if rows is not None:
        views = {name: view.take(np.flatnonzero(rows)) for name, view in views.items()}
    return Rows.stack(views)


def _view(block: Rows, rows: IntArray, name: str) -> Observations:
    return block.views[name].take(rows)


def _joined(parts: Sequence[Observations], order: IntArray) -> Observations:
    """Views below each other, in another order."""
    first = parts[0]
    values, observed = (
        np.concatenate([getattr(p, n) for p in parts]) for n in ("values", "observed")
    )
    targets = None if first.targets is None else np.concatenate([part.targets for part in parts])
    return Observations(values, observed, first.columns, first.likelihood, targets).take(order)
