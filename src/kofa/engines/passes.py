"""What is found by passes over all rows where no more than a block of them is at hand."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from kofa.engines.blocks import BlockEngine, residuals
from kofa.engines.condensed import condense
from kofa.engines.directions import (
    exact_by_passes,
    is_small,
    n_above_noise,
    randomised_by_passes,
)
from kofa.inference.observations import START_STEPS, Observations, Rows
from kofa.inference.posterior import State
from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, BoolArray, Groups, IntArray, product

BLOCK = 2**21  # numbers in a block, its factors included (16 MiB)
COVARIANCES = 2**22  # numbers in the covariances of a block, where no two rows share theirs


@dataclass(frozen=True, eq=False)
class ViewTraits:
    """What all rows of one view have in common, and which holes each has."""

    kind: Likelihood | None  # None: similarities
    columns: Groups
    seen: BoolArray  # (N,): which rows have something
    pattern: Any  # (N,): a number for each pattern of holes, unsigned 64 bits
    rounding: float  # of the values, relative to these

    @property
    def width(self) -> int:
        return len(self.columns.label)

    @property
    def likelihood(self) -> Likelihood | None:
        """None where it is Gaussian."""
        return None if self.kind is None or self.kind.curvature is None else self.kind

    def take(self, index: IntArray) -> Self:
        """Of some of the rows."""
        return replace(self, seen=self.seen[index], pattern=self.pattern[index])

    def observations(self, values: Array) -> Observations:
        """Some rows as inference sees them; `values` are taken over."""
        return observations(values, self.kind, self.columns)


def observations(values: Array, kind: Likelihood | None, columns: Groups) -> Observations:
    """Some rows of a view, whose columns have the groups of all rows."""
    view = Observations.from_values(values, kind)
    if columns.size == 1:
        return view
    mask = np.broadcast_to(view.mask, view.values.shape)
    return replace(view, observed=mask[:, columns.first], columns=columns)


def holes(values: Array) -> tuple[IntArray, Any]:
    """Of some rows: which columns are missing together, and a number for the holes of each row."""
    missing = np.isnan(values)
    of_column = np.random.default_rng(0).integers(2**63, size=values.shape[1], dtype=np.uint64)
    return Groups.by_pattern(missing.T).label, (~missing).astype(np.uint64) @ of_column


def patterns(parts: Iterable[tuple[IntArray, Any]]) -> tuple[Groups, Any]:
    """The same of all rows, from what `holes` says of each block."""
    label, found = None, []
    for own, pattern in parts:
        found.append(pattern)
        both = np.stack([own if label is None else label, own])
        label = np.unique(both, axis=1, return_inverse=True)[1].ravel()
    assert label is not None
    n, size = len(label), int(label.max()) + 1
    alone = size > n / 2  # as within one block: sharing no longer pays
    columns = Groups(np.arange(n), n) if alone else Groups(label.astype(np.intp), size)
    return columns, np.concatenate(found)


class ByPasses(BlockEngine):
    """An engine that knows of its views what they have in common."""

    views: Mapping[str, ViewTraits]
    # By view: where pseudo-observations are placed at the start, and their means there.
    _starts: dict[str, tuple[Array, Array]]

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
        return sum(view.width for view in self.views.values())

    @property
    def size(self) -> int:
        """Number of entries of all views, observed or not."""
        return self.n_samples * self.width

    @property
    def rounding(self) -> float:
        """Of the values, relative to these."""
        return max(view.rounding for view in self.views.values())

    @property
    def likelihoods(self) -> dict[str, Likelihood | None]:
        """Of each view; None where it is Gaussian."""
        return {name: view.likelihood for name, view in self.views.items()}

    @property
    def columns(self) -> dict[str, Groups]:
        """How the columns of each view are grouped."""
        return {name: view.columns for name, view in self.views.items()}

    @abstractmethod
    def _changed(self, change: Callable[..., Array], n_factors: int, *by_row: Array) -> Array:
        """What a function makes of rows of arrays, block by block: (N, n_factors)."""

    def condensed(self) -> BlockEngine:
        """Few rows that say the same about all factors, where there are such."""
        return condense(self)

    # ------------------------------------------------------------ where a fit starts

    def _begin(self, name: str) -> tuple[Array, Array]:
        """`Observations.at_start`, in passes over the rows; of all views in the same passes."""
        if name not in self._starts:
            wanted = {name} | {n for n, one in self.likelihoods.items() if one is not None}
            views = {n: self.views[n] for n in self.views if n in wanted - self._starts.keys()}
            tangents = means = {n: np.zeros(view.width) for n, view in views.items()}
            for _ in range(START_STEPS if self.views[name].likelihood is not None else 0):
                tangents, sums = means, [(np.zeros(()), np.zeros(()))] * len(views)
                for _, own in self._visit(partial(_sums_at, etas=tangents), 1, views=views):
                    sums = [(y + dy, n + dn) for (y, n), (dy, dn) in zip(sums, own, strict=True)]
                of_views = zip(views.items(), sums, strict=True)
                means = {
                    key: y / np.maximum(n, 1.0)[view.columns.label]
                    for (key, view), (y, n) in of_views
                }
            self._starts |= {n: (tangents[n], means[n]) for n in views}
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
        return self._changed(_side_by_side, Z.shape[1] + 1, Z, one)

    def _directions(
        self,
        matrix: Callable[..., Array],
        of: tuple[Array, ...],
        k: int,
        rng: np.random.Generator,
        above_noise: bool,
    ) -> Array:
        """Of the matrix that a function makes of each block, and of its part of some arrays."""

        def on_matrix(work: Callable[..., Any]) -> Callable[..., Any]:
            return partial(_on_matrix, matrix=matrix, n=len(of), work=work)

        def over_blocks(work: Callable[..., Any], *by_row: Any) -> Iterator[Any]:
            for _, own in self._visit(on_matrix(work), k, *of, *by_row, at_start=True):
                yield own

        n, width = self.n_samples, self.width
        if is_small(n, width, k):
            M, sigma = exact_by_passes(over_blocks, self.rounding)
        else:
            M, sigma = randomised_by_passes(over_blocks, n, k, rng, self.rounding)
        M, sigma = M[:, :k], sigma[:k]
        if above_noise:
            total = float(sum(over_blocks(_square)))
            M = M[:, : max(1, n_above_noise(sigma, total, n, width))]
        if not M.shape[1]:  # nothing varies
            return np.ones((n, 1)) / n
        image = on_matrix(partial(_image, M=M * np.sqrt(n)))
        cubes, found = self._pass(image, M.shape[1], *of, at_start=True)
        # Singular vectors have no sign; this choice does not depend on the order of the rows.
        return self._scaled(found, np.where(cubes < 0, -1.0, 1.0))

    # ------------------------------------------------------------ rows

    def observed(self, views: Iterable[str] | None = None) -> BoolArray:
        """Which samples have something of some views, or of any."""
        some = self.views if views is None else views
        return np.asarray(np.any([self.views[name].seen for name in some], axis=0))

    def totals(self, name: str) -> tuple[Array, Array]:
        """Sum and number of the observed values of each column of a view, as they were given."""
        total, n = np.zeros(()), np.zeros(())
        for _, (own, own_n) in self._visit(partial(_totals, name=name), 1, views=[name]):
            total, n = total + own, n + own_n
        return total, n


# ---------------------------------------------------------------- of one block


def _sums_at(block: Rows, etas: Mapping[str, Array]) -> list[tuple[Array, Array]]:
    """Of each view: Σ of the pseudo-observations at η, and their number."""
    views = [(block.views[name], eta) for name, eta in etas.items()]
    return [(v.at(np.broadcast_to(eta, v.values.shape)).y_sum, v.n) for v, eta in views]


def _centred(block: Rows, means: Mapping[str, Array]) -> Array:
    """The views side by side, less their means; zero where missing."""
    parts = [
        (view.values - means[name]) * view.mask if name in means else view.values
        for name, view in block.views.items()
    ]
    return np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]


def _residual(block: Rows, Z: Array, state: State) -> Array:
    """What the factors leave of the views, side by side."""
    parts = residuals(block, Z, state).items()
    kept = [left.astype(block.views[name].values.dtype, copy=False) for name, left in parts]
    return np.concatenate(kept, axis=1)


def _on_matrix(
    block: Rows, *by_row: Any, matrix: Callable[..., Array], n: int, work: Callable[..., Any]
) -> Any:
    return work(matrix(block, *by_row[:n]), *by_row[n:])


def _square(y: Array) -> float:
    return float(np.einsum("nd,nd->", y, y, dtype=np.float64))


def _image(y: Array, M: Array) -> tuple[Array, Array]:
    """y M, and Σ of its cubes."""
    image = product(y, M)
    return (image**3).sum(axis=0), image


def _totals(block: Rows, name: str) -> tuple[Array, Array]:
    view = block.views[name]
    values = view.values if view.targets is None else view.targets
    mask = np.broadcast_to(view.mask, values.shape)
    return np.where(mask, values, 0.0).sum(axis=0, dtype=np.float64), mask.sum(axis=0)


def _side_by_side(*parts: Array) -> Array:
    return np.column_stack(parts)
