"""What inference sees of the data: Gaussian pseudo-observations, masks and the patterns in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kofa.linalg import Array, BoolArray, Groups

_CACHE = (
    32 * 2**20
)  # bytes of one block of rows: still in cache for the second product, yet worth threads
_COVARIANCES = 4 * 2**20  # numbers in the covariances of one block, when no two rows share theirs


@dataclass(frozen=True, eq=False)
class Observations:
    """One view: values (N, D), zero where missing, and which columns each row has.

    Columns that are missing in the same rows form a group; `observed` (N, G) has one column per
    group. Complete data, and data where only whole rows are missing, have a single group.
    """

    values: Array
    observed: BoolArray
    columns: Groups

    @classmethod
    def from_values(cls, values: Array) -> Observations:
        """Read the mask off the NaN in `values`, which this takes over and fills with zeros."""
        missing = np.isnan(values[:, :1]) if _whole_rows(values) else np.isnan(values)
        if missing.shape[1] == 1:
            columns = Groups(np.zeros(values.shape[1], dtype=np.intp), 1)
        else:
            columns = Groups.by_pattern(missing.T)
        if missing.any():
            values[np.broadcast_to(missing, values.shape)] = 0.0
        return cls(
            values, ~missing[:, columns.first] if missing.shape[1] > 1 else ~missing, columns
        )

    @cached_property
    def n(self) -> Array:
        """Number of rows in which each group of columns is observed: (G,)."""
        return np.asarray(self.observed.sum(axis=0), dtype=float)

    @cached_property
    def y_sum(self) -> Array:
        """Σ y over observed rows: (D,)."""
        return np.asarray(self.values.sum(axis=0))

    @cached_property
    def y_square(self) -> Array:
        """Σ y² over observed rows: (D,)."""
        return np.asarray(np.einsum("nd,nd->d", self.values, self.values))


def _whole_rows(values: Array) -> bool:
    """Whether each row is either complete or missing as a whole (found without an N×D mask)."""
    row_sums = values.sum(axis=1)  # NaN as soon as one entry is
    rows = np.flatnonzero(np.isnan(row_sums))
    return bool(np.isnan(values[rows]).all())


@dataclass(frozen=True, eq=False)
class Rows:
    """Views side by side, their rows grouped by which column groups of all views they have.

    `patterns` (P, G) are the distinct rows of the stacked `observed`; `labels` says which
    pattern a row has. Rows with one pattern share one posterior covariance.
    """

    views: tuple[Observations, ...]
    patterns: BoolArray
    labels: Groups

    @classmethod
    def stack(cls, views: Sequence[Observations]) -> Rows:
        observed = np.concatenate([view.observed for view in views], axis=1)
        labels = Groups.by_pattern(observed)
        return cls(tuple(views), observed[labels.first], labels)

    @property
    def n_samples(self) -> int:
        return len(self.labels.label)

    @property
    def size(self) -> int:
        """Number of entries of all views, observed or not."""
        return sum(view.values.size for view in self.views)

    @property
    def groups(self) -> list[slice]:
        """Where the column groups of each view stand among those of all views."""
        ends = np.cumsum([view.columns.size for view in self.views])
        return [slice(e - v.columns.size, e) for e, v in zip(ends, self.views, strict=True)]

    def blocks(self, n_factors: int, rows: int | None = None) -> Iterator[tuple[slice, Rows]]:
        """Consecutive rows, few enough for the cache (or `rows` at a time)."""
        if rows is None:
            width = max(1, sum(view.values.shape[1] for view in self.views))
            rows = max(256, _CACHE // (8 * width))
            covariances = max(1, _COVARIANCES // max(1, n_factors**2))
            if self.labels.size > covariances:
                rows = min(rows, covariances)
        for start in range(0, self.n_samples, rows):
            where = slice(start, min(start + rows, self.n_samples))
            yield where, self.take(where)

    def take(self, where: slice) -> Rows:
        """The rows of one slice, with the patterns that occur in it."""
        views = [Observations(v.values[where], v.observed[where], v.columns) for v in self.views]
        label = self.labels.label[where]
        if self.labels.size == 1:
            return Rows(tuple(views), self.patterns, Groups(label, 1))
        present, label = np.unique(label, return_inverse=True)
        return Rows(
            tuple(views), self.patterns[present], Groups(label.astype(np.intp), len(present))
        )
