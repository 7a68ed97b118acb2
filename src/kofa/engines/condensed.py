"""Few rows in the place of many, over which a pass gives the same sums.

Where views are Gaussian, and a row has all of a view or nothing, the factors of a sample are an
affine function of its values. All sums of a pass then follow from the number of the samples that
have the same views, their mean, and their scatter Σ (y − ȳ)(y − ȳ)ᵀ. All three are in R of
[1, Y] = QR, which takes one pass over the samples, and a few rows can be made that have the same
mean and scatter. From there on an iteration visits these rows only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import accumulate, pairwise
from operator import add
from typing import Any

import numpy as np
import scipy.linalg

from kofa.engines.blocks import BlockEngine, Work, residuals
from kofa.engines.directions import above_rounding, n_above_noise
from kofa.inference.observations import Observations, Rows
from kofa.inference.posterior import State
from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, BoolArray, Groups

_FROM = 5_000  # samples; with fewer, a pass takes no time
_FEW = 0.1  # of the samples: the most rows that are few
_WIDEST = 1_200  # columns, beyond which R takes longer to find than most fits need


def condense(engine: BlockEngine) -> BlockEngine:
    """An engine of few rows that say the same about all factors, or the same engine."""
    width = sum(len(groups.label) for groups in engine.columns.values())
    if (
        any(engine.likelihoods.values())
        or any(groups.size > 1 for groups in engine.columns.values())
        or width > _WIDEST
        or engine.n_samples < _FROM
        or engine.n_patterns * (width + 1) > _FEW * engine.n_samples
    ):
        return engine
    found = engine.triangles()
    return Condensed(engine, [_block(engine.columns, *one) for one in found.items()])


@dataclass(frozen=True, eq=False)
class FewRows:
    """Rows that stand for all samples that have the same views; each counts `weight` times."""

    rows: Rows
    weight: float
    has: Mapping[str, bool]  # which views these samples have

    def part(self, views: Iterable[str]) -> FewRows:
        """Some of the views."""
        some = {name: self.rows.views[name] for name in views}
        return FewRows(Rows.stack(some), self.weight, {name: self.has[name] for name in some})


def _block(columns: Mapping[str, Groups], pattern: tuple[bool, ...], R: Array) -> FewRows:
    """The rows that stand for those of one pattern."""
    Y, weight = few_rows(R)
    has = dict(zip(columns, pattern, strict=True))
    return FewRows(_rows(Y, columns, has), weight, has)


def _rows(Y: Array, columns: Mapping[str, Groups], has: Mapping[str, bool]) -> Rows:
    """Rows of which the views that they have are side by side in Y."""
    views, start = {}, 0
    for name, groups in columns.items():
        width = len(groups.label)
        values = np.zeros((len(Y), width))
        if has[name]:
            values, start = Y[:, start : start + width], start + width
        views[name] = Observations(values, np.full((len(Y), 1), has[name]), groups)
    return Rows.stack(views)


def few_rows(R: Array) -> tuple[Array, float]:
    """Rows (m, D) with the mean of the n rows Y of which [1, Y] = QR, R (m, 1 + D).

    They have their scatter as well, if each counts n/m times, which is returned besides.
    """
    m, n = len(R), round(R[0, 0] ** 2)
    spread = np.concatenate([np.zeros((1, R.shape[1] - 1)), R[1:, 1:]])
    # Of the reflection that makes 1/√m, …, 1/√m of the first unit vector, all other columns are
    # orthonormal and add up to zero.
    v = np.full(m, 1.0 / np.sqrt(m))
    v[0] -= 1.0
    spread -= np.outer(v, v @ spread) * (2.0 / max(float(v @ v), np.finfo(float).tiny))
    return R[0, 1:] / R[0, 0] + np.sqrt(m / n) * spread, n / m


# ---------------------------------------------------------------- factors of the samples


@dataclass(frozen=True, eq=False)
class Affine:
    """Z of all samples: those of the few rows, and how those of a sample follow from its values."""

    engine: BlockEngine  # which has the samples
    few: Array  # (·, K)
    of_rows: Callable[[Rows], Array]

    @property
    def shape(self) -> tuple[int, int]:
        return self.engine.n_samples, self.few.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Those of all samples, by a pass over them."""
        maps: dict[tuple[bool, ...], AffineMap] = {}
        of_block = partial(_mapped, of_rows=self.of_rows, maps=maps)
        whole = np.asarray(self.engine.factors(of_block, self.few.shape[1]))
        return whole if dtype is None else whole.astype(dtype)

    def then(self, change: Callable[[Array], Array]) -> Affine:
        """What a function makes of the factors of each sample."""
        return Affine(self.engine, change(self.few), partial(_then, self.of_rows, change))


@dataclass(frozen=True, eq=False)
class AffineMap:
    """z = y B + c of the rows of one pattern, whose views are side by side in y."""

    B: Array  # (D, K)
    c: Array  # (K,)

    @classmethod
    def of(cls, of_rows: Callable[[Rows], Array], rows: Rows, pattern: BoolArray) -> AffineMap:
        """From what becomes of zeros, and of the unit vectors."""
        has = dict(zip(rows.views, pattern.tolist(), strict=True))
        width = sum(view.values.shape[1] for name, view in rows.views.items() if has[name])
        c, *z = of_rows(_rows(np.eye(1 + width)[:, 1:], rows.columns, has))
        return cls(np.array(z).reshape(width, len(c)) - c, c)


def _mapped(
    rows: Rows, of_rows: Callable[[Rows], Array], maps: dict[tuple[bool, ...], AffineMap]
) -> Array:
    """The factors of many rows, in one product. The maps are found once for each pattern."""
    patterns = [tuple(pattern.tolist()) for pattern in rows.patterns]
    for pattern, key in zip(rows.patterns, patterns, strict=True):
        if key not in maps:
            maps[key] = AffineMap.of(of_rows, rows, pattern)
    Z = np.empty((rows.n_samples, len(maps[patterns[0]].c)))
    for p, key in enumerate(patterns):
        own: Any = slice(None) if len(patterns) == 1 else rows.labels.label == p
        has = zip(rows.views.values(), key, strict=True)
        y = [view.values[own] for view, seen in has if seen]
        Z[own] = maps[key].c + (_beside(y) @ maps[key].B if y else 0.0)
    return Z


def _beside(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _then(of_rows: Callable[[Rows], Array], change: Callable[[Array], Array], rows: Rows) -> Array:
    return change(of_rows(rows))


# ---------------------------------------------------------------- the engine


class Condensed(BlockEngine):
    """Few rows for each pattern of views, and the engine that has the samples themselves."""

    def __init__(self, whole: BlockEngine, blocks: Sequence[FewRows]) -> None:
        self.whole, self.blocks = whole, blocks

    @property
    def n_samples(self) -> int:
        return self.whole.n_samples

    @property
    def n_visited(self) -> int:
        """Number of rows that a pass visits."""
        return sum(block.rows.n_samples for block in self.blocks)

    @property
    def n_patterns(self) -> int:
        """Number of different patterns of holes in a row."""
        return self.whole.n_patterns

    @property
    def size(self) -> int:
        """Number of entries of all views in the rows that a pass visits."""
        return sum(block.rows.size for block in self.blocks)

    @property
    def likelihoods(self) -> Mapping[str, Likelihood | None]:
        """Of each view; all are Gaussian."""
        return self.whole.likelihoods

    @property
    def columns(self) -> Mapping[str, Groups]:
        """How the columns of each view are grouped: all together."""
        return self.whole.columns

    def condensed(self) -> Condensed:
        """The engine itself."""
        return self

    # ------------------------------------------------------------ passes

    def _slices(self) -> Iterator[slice]:
        sizes = (block.rows.n_samples for block in self.blocks)
        return (slice(*ends) for ends in pairwise(accumulate(sizes, initial=0)))

    def _visit(
        self,
        work: Work,
        n_factors: int,  # noqa: ARG002
        *by_row: Any,
        views: Iterable[str] | None = None,  # noqa: ARG002
        at_start: bool = False,  # noqa: ARG002
    ) -> Iterator[tuple[slice, Any]]:
        for where, block in zip(self._slices(), self.blocks, strict=True):
            yield where, work(block.rows, *(one.few[where] for one in by_row))

    def _sum(self, work: Work, Z: Any, **which: Any) -> Any:
        found = (own for _, own in self._visit(work, Z.shape[1], Z, **which))
        pairs = zip(found, self.blocks, strict=True)
        return reduce(add, (own * block.weight for own, block in pairs))

    def _pass(self, work: Work, n_factors: int, *by_row: Any, **which: Any) -> tuple[Any, Any]:
        found = [own for _, own in self._visit(work, n_factors, *by_row, **which)]
        total = reduce(add, (own[0] * b.weight for own, b in zip(found, self.blocks, strict=True)))
        few = np.concatenate([rows for _, rows in found])
        return total, Affine(self.whole, few, partial(_rows_of, work))

    def _affine(self, of_rows: Callable[[Rows], Array]) -> Affine:
        few = np.concatenate([of_rows(block.rows) for block in self.blocks])
        return Affine(self.whole, few, of_rows)

    # ------------------------------------------------------------ directions to start from

    def principal_directions(
        self,
        k: int,
        rng: np.random.Generator,  # noqa: ARG002
        above_noise: bool = False,
    ) -> Any:
        """Leading left singular vectors of the views side by side, on unit scale: (N, ≤ k).

        What is missing is at the mean. `above_noise`: only those that noise alone would not have.
        """
        return self._affine(self._along_leading(_side_by_side, k, above_noise))

    def with_residual_direction(self, state: State, Z: Any, rng: np.random.Generator) -> Any:  # noqa: ARG002
        """Z and the leading direction of what the factors leave, on unit scale: (N, K + 1)."""
        left = partial(_residual, of_rows=Z.of_rows, state=state)
        direction = self._along_leading(left, 1, above_noise=False)
        return self._affine(lambda rows: np.column_stack([Z.of_rows(rows), direction(rows)]))

    def _along_leading(
        self, matrix: Callable[[Rows], Array], k: int, above_noise: bool
    ) -> Callable[[Rows], Array]:
        """The leading left singular vectors of what a function makes of all rows."""
        stack = [np.sqrt(block.weight) * matrix(block.rows) for block in self.blocks]
        _, sigma, Vt = scipy.linalg.svd(np.concatenate(stack), full_matrices=False)
        enough = above_rounding(sigma, np.finfo(float).eps)
        M = (Vt[enough].T / sigma[enough])[:, :k]
        if above_noise:
            total, width = float((sigma**2).sum()), Vt.shape[1]
            n = n_above_noise(sigma[enough][:k], total, self.n_samples, width)
            M = M[:, : max(1, n)]
        if not M.shape[1]:  # nothing varies
            return partial(_constant, value=1.0 / self.n_samples)
        # Singular vectors have no sign; this choice does not depend on the order of the rows.
        M = M * np.where((M**3).sum(axis=0) < 0, -1.0, 1.0)
        return partial(_along, matrix=matrix, M=np.sqrt(self.n_samples) * M)

    # ------------------------------------------------------------ factors

    def zeros(self, n_factors: int) -> Any:
        """Z of samples about which nothing is known."""
        return self._affine(partial(_constant, value=0.0, n_factors=n_factors))

    def _changed(self, change: Callable[..., Array], n_factors: int, *by_row: Any) -> Any:  # noqa: ARG002
        (Z,) = by_row
        return Z.then(change) if isinstance(Z, Affine) else change(Z)

    @property
    def in_one_process(self) -> bool:
        """Whether no copy of the engine in another process could see its rows."""
        return self.whole.in_one_process

    def detached(self, Z: Any) -> Any:
        """Z as it goes to another process: without the samples."""
        return replace(Z, engine=None)

    def attached(self, Z: Any) -> Any:
        """Z that came from another process."""
        return replace(Z, engine=self.whole)

    # ------------------------------------------------------------ fewer views, fewer rows

    def part(self, views: Iterable[str], rows: BoolArray | None = None) -> BlockEngine:
        """Some of the views, of all rows or of some."""
        names = list(views)
        whole = self.whole.part(names, rows)
        kept = [True] * len(self.blocks) if rows is None else self._whole_blocks(rows)
        if kept is None:
            return whole
        blocks = [b.part(names) for b, keep in zip(self.blocks, kept, strict=True) if keep]
        return Condensed(whole, blocks)

    def _whole_blocks(self, rows: BoolArray) -> list[bool] | None:
        """Which patterns some samples have; None if not all samples of these are among them."""
        observed = {name: self.whole.observed([name]) for name in self.likelihoods}
        kept = []
        for block in self.blocks:
            alike = np.all([observed[name] == has for name, has in block.has.items()], axis=0)
            if rows[alike].any() != rows[alike].all():
                return None
            kept.append(bool(rows[alike].all()))
        return kept

    # ------------------------------------------------------------ of the samples themselves

    def triangles(self) -> dict[tuple[bool, ...], Array]:
        """R of [1, Y] = QR, of the rows of each pattern of views."""
        return self.whole.triangles()

    def factors(self, of_rows: Callable[[Rows], Array], n_factors: int) -> Any:
        """What a function says of all samples, as their factors."""
        return self.whole.factors(of_rows, n_factors)

    def observed(self, views: Iterable[str] | None = None) -> BoolArray:
        """Which samples have something of some views, or of any."""
        return self.whole.observed(views)

    def totals(self, name: str) -> tuple[Array, Array]:
        """Sum and number of the observed values of each column of a view."""
        return self.whole.totals(name)

    def _start(self, name: str) -> Observations:
        return self.whole._start(name)


# ---------------------------------------------------------------- of one block


def _rows_of(work: Work, rows: Rows) -> Array:
    """The factors among what a pass finds of some rows."""
    found: Array = work(rows)[1]
    return found


def _side_by_side(rows: Rows) -> Array:
    """The views, zero where missing."""
    return np.concatenate([view.values for view in rows.views.values()], axis=1)


def _residual(rows: Rows, of_rows: Callable[[Rows], Array], state: State) -> Array:
    """What the factors leave of each view, in units of its noise, side by side."""
    return np.concatenate(list(residuals(rows, of_rows(rows), state).values()), axis=1)


def _along(rows: Rows, matrix: Callable[[Rows], Array], M: Array) -> Array:
    return np.asarray(matrix(rows) @ M)


def _constant(rows: Rows, value: float, n_factors: int = 1) -> Array:
    return np.full((rows.n_samples, n_factors), value)
