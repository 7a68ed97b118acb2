"""What every engine does: a function of a block of rows, and the sum over all blocks.

Blocks are added in their order, so that a result does not depend on who visits them, and when.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import accumulate, pairwise
from operator import add
from typing import Any

import numpy as np

from kofa.engines.directions import stacked, tall_triangle
from kofa.inference.explained import Explained, explained, mean_only
from kofa.inference.local_step import LocalSystem, augment, known, local_step, local_system
from kofa.inference.observations import Observations, Rows
from kofa.inference.posterior import State, Weights, n_factors_of
from kofa.inference.projection import project
from kofa.inference.statistics import Statistics, ViewSums, statistics
from kofa.inference.surrogate import expected_drop
from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, BoolArray, Groups, IntArray, by_rows, pieces

Work = Callable[..., Any]  # of a block, and of what belongs to its rows


class BlockEngine(ABC):
    """The passes over all rows. Where these are is said by `_visit`."""

    # ------------------------------------------------------------ who knows the rows

    @property
    @abstractmethod
    def n_samples(self) -> int: ...

    @property
    def n_visited(self) -> int:
        """Number of rows that a pass visits."""
        return self.n_samples

    @property
    @abstractmethod
    def n_patterns(self) -> int:
        """Number of different patterns of holes in a row."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of entries of all views, observed or not."""

    @property
    @abstractmethod
    def likelihoods(self) -> Mapping[str, Likelihood | None]:
        """Of each view; None where it is Gaussian."""

    @property
    @abstractmethod
    def columns(self) -> Mapping[str, Groups]:
        """How the columns of each view are grouped."""

    @abstractmethod
    def _visit(
        self,
        work: Work,
        n_factors: int,
        *by_row: Array,
        views: Iterable[str] | None = None,
        at_start: bool = False,
    ) -> Iterator[tuple[slice, Any]]:
        """Each block in order, and what a function says of it and of its part of some arrays.

        `views`: those that the function looks at, if not all. `at_start`: whether it looks at
        the pseudo-observations of a model that has nothing but a bias.
        """

    def _visit_apart(self, work: Work, n_factors: int) -> Iterator[tuple[slice, Any]]:
        """The same where one thread for each block is faster than products with several."""
        return self._visit(work, n_factors)

    @abstractmethod
    def _start(self, name: str) -> Observations:
        """A view, or one row for all of it, with the mean of the same pseudo-observations."""

    @abstractmethod
    def observed(self, views: Iterable[str] | None = None) -> BoolArray:
        """Which samples have something of some views, or of any."""

    @abstractmethod
    def totals(self, name: str) -> tuple[Array, Array]:
        """Sum and number of the observed values of each column of a view, as they were given."""

    @abstractmethod
    def condensed(self) -> BlockEngine:
        """Few rows that say the same about all factors where there are such, or the same engine."""

    @abstractmethod
    def principal_directions(
        self, k: int, rng: np.random.Generator, above_noise: bool = False
    ) -> Array:
        """Leading left singular vectors of the views side by side, on unit scale: (N, ≤ k)."""

    @abstractmethod
    def with_residual_direction(self, state: State, Z: Array, rng: np.random.Generator) -> Array:
        """Z and the leading direction of what the factors leave, on unit scale: (N, K + 1)."""

    @abstractmethod
    def part(self, views: Iterable[str], rows: BoolArray | None = None) -> BlockEngine:
        """Some of the views, of all rows or of some."""

    def _latents(self, n_factors: int) -> Array:
        """Room for the factors of all samples."""
        return np.empty((self.n_samples, n_factors))

    # ------------------------------------------------------------ passes over all rows

    def sweep(self, state: State, Z: Array) -> tuple[Statistics, Array]:
        """Local step on every block: the sum of their statistics, and the new Z.

        Views that are not Gaussian are replaced by surrogates that are tangent at the old one.
        """
        e = self._local_system(state)
        if not any(self.likelihoods.values()):  # nothing depends on the old one
            return self._pass(partial(swept, state=None, e=e), e.n_factors)
        return self._pass(partial(swept, state=state, e=e), e.n_factors, Z)

    def _local_system(self, state: State) -> LocalSystem:
        """What the global factors say to every sample."""
        return local_system(state, self.columns)

    def summarise(self, Z: Array) -> Statistics:
        """Statistics of a Z known without uncertainty."""
        total: Statistics = self._sum(_summarised, Z, at_start=True)
        return total

    def project(self, state: State) -> tuple[Array, Array]:
        """The factors of each sample, by itself, given the global factors: (N, K).

        Also their mean covariance (K, K).
        """
        total, found = self._pass(partial(_projected, state=state), n_factors_of(state))
        return found, total / self.n_samples

    def surrogate_sums(self, name: str, w: Weights, Z: Array) -> ViewSums:
        """Sums of a view whose surrogate is tangent at these weights; z stays."""
        total: ViewSums = self._sum(partial(_tangent_at, name=name, w=w), Z, views=[name])
        return total

    def expected_drop(self, name: str, w: Weights, steps: Array, Z: Array) -> float:
        """Σ_n [g(η) − mean of g(η ± step)] of a view, summed over the steps (·, D)."""
        return float(self._sum(partial(_dropped, name=name, w=w, steps=steps), Z, views=[name]))

    def explained(self, name: str, w: Weights, Z: Array) -> Explained:
        """What factors Z (N, L) explain of a view, by weights along them."""
        mean = w.y_mean
        if self.likelihoods[name] is not None:
            mean = mean_only(self._start(name), w, *self.totals(name))
        work = partial(_explained, name=name, w=w, mean=mean)
        total: Explained = self._sum(work, Z, views=[name])
        return total

    def triangles(self) -> dict[tuple[bool, ...], Array]:
        """R of [1, Y] = QR, of the rows of each pattern of views: (≤ 1 + D, 1 + D).

        A row has all of a view or nothing. Y are the views that it has, side by side.
        """
        found: dict[tuple[bool, ...], Array] = {}
        for _, own in self._visit_apart(_triangles, 1):
            for pattern, R in own:
                known = found.get(pattern)
                found[pattern] = R if known is None else stacked([known, R])
        return dict(sorted(found.items(), reverse=True))

    def factors(self, of_rows: Callable[[Rows], Array], n_factors: int) -> Array:
        """What a function says of all samples, as their factors: (N, n_factors)."""
        found = self._latents(n_factors)
        for where, rows in self._visit_apart(of_rows, n_factors):
            found[where] = rows
        return found

    def _pass(self, work: Work, n_factors: int, *by_row: Array, **which: Any) -> tuple[Any, Array]:
        """Of a function that gives a sum and factors for each block: Σ, and those of all rows."""
        found, total = self._latents(n_factors), None
        for where, (own, rows) in self._visit(work, n_factors, *by_row, **which):
            found[where] = rows
            total = own if total is None else total + own
        return total, found

    def _scaled(self, Z: Array, by: Array) -> Array:
        """Z in other units, which takes its place."""
        Z *= by
        return Z

    def _sum(self, work: Work, Z: Array, **which: Any) -> Any:
        """Σ of what a function says of each block, and of the factors of its samples."""
        return reduce(add, (own for _, own in self._visit(work, Z.shape[1], Z, **which)))

    # ------------------------------------------------------------ other processes

    @property
    def in_one_process(self) -> bool:
        """Whether no copy of the engine in another process could see its rows."""
        return False

    def detached(self, Z: Array) -> Array:
        """Z as it goes to another process."""
        return Z

    def attached(self, Z: Array) -> Array:
        """Z that came from another process."""
        return Z

    # ------------------------------------------------------------ factors, samples

    def zeros(self, n_factors: int) -> Array:
        """Z of samples about which nothing is known."""
        return np.zeros((self.n_samples, n_factors))

    def keep(self, Z: Array, factors: IntArray) -> Array:
        """Z without all factors but these."""
        return self._changed(partial(_kept, factors=factors), len(factors), Z)

    def rotate(self, Z: Array, R: Array, shift: Array) -> Array:
        """R (z − shift) of every sample."""
        return self._changed(partial(_rotated, R=R, shift=shift), len(R), Z)

    def _changed(self, change: Callable[..., Array], n_factors: int, *by_row: Array) -> Array:  # noqa: ARG002
        """What a function makes of rows of arrays: (N, n_factors)."""
        return change(*by_row)


# ---------------------------------------------------------------- of one block


def swept(block: Rows, *Z: Array, state: State | None, e: LocalSystem) -> tuple[Statistics, Array]:
    """`state`: where the surrogates are tangent, if there are some."""
    if state is not None:
        block = augment(block, state, *Z)
    q = local_step(block, e)
    return statistics(block, q), q.mean


def residuals(block: Rows, Z: Array, state: State) -> dict[str, Array]:
    """What the factors leave of each view, in units of its noise; zero where missing."""
    left = {name: np.empty(view.values.shape) for name, view in block.views.items()}
    for name, view in block.views.items():
        root = np.sqrt(state[name].precision)
        for some in pieces(len(Z), view.values.shape[1], 2**20):
            own, eta = view.take(some), state[name].weights.predict(Z[some])
            left[name][some] = (own.at(eta).values - eta) * own.mask * root
    return left


def _summarised(block: Rows, Z: Array) -> Statistics:
    return statistics(block, known(Z, block.labels))


def _projected(block: Rows, state: State) -> tuple[Array, Array]:
    """Σ of the covariances of z, and its means."""
    q = project(block, state)
    counts = np.bincount(q.patterns.label, minlength=q.patterns.size)
    return np.tensordot(counts, q.covariance, 1), q.mean


def _triangles(block: Rows) -> list[tuple[tuple[bool, ...], Array]]:
    """R of [1, Y] of the rows of each pattern."""
    found = []
    for p, pattern in enumerate(block.patterns):
        views = zip(block.views.values(), pattern.tolist(), strict=True)
        parts = [view.values for view, has in views if has]
        rows = None if len(block.patterns) == 1 else np.flatnonzero(block.labels.label == p)
        n, width = len(block.labels.label) if rows is None else len(rows), sum(map(_width, parts))
        R = tall_triangle(n, 1 + width, partial(_ones_and, parts=parts, rows=rows))
        found.append((tuple(pattern.tolist()), R))
    return found


def _ones_and(place: Array, some: slice, parts: Sequence[Array], rows: IntArray | None) -> None:
    """Write [1, Y] of some rows to a place."""
    own: Any = some if rows is None else rows[some]
    ends = accumulate(map(_width, parts), initial=1)
    place[:, 0] = 1.0
    for y, (start, stop) in zip(parts, pairwise(ends), strict=True):
        place[:, start:stop] = y[own]


def _width(y: Array) -> int:
    return int(y.shape[1])


def _kept(Z: Array, factors: IntArray) -> Array:
    return Z[:, factors]


def _rotated(Z: Array, R: Array, shift: Array) -> Array:
    return by_rows(Z - shift, R.T)


def _tangent_at(block: Rows, Z: Array, name: str, w: Weights) -> ViewSums:
    return ViewSums.tangent_at(block.views[name], w, Z)


def _dropped(block: Rows, Z: Array, name: str, w: Weights, steps: Array) -> float:
    return expected_drop(block.views[name], w.predict(Z), steps)


def _explained(block: Rows, Z: Array, name: str, w: Weights, mean: Array) -> Explained:
    return explained(block.views[name], w, Z, mean)
