"""What inference sees of the data: Gaussian pseudo-observations, masks and the patterns in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, BoolArray, Groups, IntArray

_CACHE = (
    32 * 2**20
)  # bytes of one block of rows: still in cache for the second product, yet worth threads
_AT_ONCE = 2**15  # entries of pseudo-observations that are computed at a time
START_STEPS = 6  # towards the bias of a view alone; the sweeps do the rest
_COVARIANCES = 4 * 2**20  # numbers in the covariances of one block, when no two rows share theirs


@dataclass(frozen=True, eq=False)
class Observations:
    """One view: values (N, D), zero where missing, and which columns each row has.

    Columns that are missing in the same rows form a group; `observed` (N, G) has one column per
    group. Complete data, and data where only whole rows are missing, have a single group. Values
    may be in single precision: then `linalg.product` multiplies them.

    A view whose likelihood is not Gaussian keeps its data in `targets`; its values are
    pseudo-observations, those of a bound that is tangent to the likelihood at a given η (`at`).
    """

    values: Array
    observed: BoolArray
    columns: Groups
    likelihood: Likelihood | None = None  # None: the values themselves are Gaussian
    targets: Array | None = None
    excess: float = 0.0  # Σ log-likelihood − Gaussian log-density, where the bound is tangent

    @classmethod
    def from_values(cls, values: Array, likelihood: Likelihood | None = None) -> Observations:
        """Read the mask off the NaN in `values`, which this takes over and fills with zeros."""
        missing = np.isnan(values[:, :1]) if _whole_rows(values) else np.isnan(values)
        if missing.shape[1] == 1:
            columns = Groups.one(values.shape[1])
        else:
            columns = Groups.by_pattern(missing.T)
        if missing.any():
            values[np.broadcast_to(missing, values.shape)] = 0.0
        shared = missing.shape[1] > 1 and not columns.alone
        observed = ~(missing[:, columns.first] if shared else missing)
        if likelihood is None or likelihood.curvature is None:
            return cls(values, observed, columns)
        return cls(values, observed, columns, likelihood, values)

    @property
    def augmented(self) -> bool:
        """Whether the values are pseudo-observations."""
        return self.likelihood is not None

    @cached_property
    def mask(self) -> BoolArray:
        """Which entries are observed: (N, D), or (N, 1) where a row has all or none."""
        simple = self.columns.size == 1 or self.columns.alone
        return self.observed if simple else self.observed[:, self.columns.label]

    def at(self, eta: Array) -> Observations:
        """With the pseudo-observations of the bound that is tangent at η (N, D)."""
        if self.likelihood is None or self.targets is None:
            return self
        values, total = np.empty(eta.shape), 0.0
        step = max(1, _AT_ONCE // max(1, eta.shape[1]))  # temporaries that stay in cache
        for start in range(0, len(eta), step):
            rows = slice(start, start + step)
            y, excess = self.likelihood.pseudo_observation(self.targets[rows], eta[rows])
            values[rows] = y * self.mask[rows]
            total += float((excess * self.mask[rows]).sum())
        return replace(self, values=values, excess=total)

    def tangent(self, eta: Array) -> tuple[Array, Array]:
        """Log-likelihood and slope of each entry at η (N, D), zero where missing."""
        assert self.likelihood is not None
        assert self.targets is not None
        value, slope = self.likelihood.tangent(self.targets, eta)
        return np.where(self.mask, value, 0.0), np.where(self.mask, slope, 0.0)

    def at_start(self) -> Observations:
        """With the pseudo-observations of a model that has nothing but a bias."""
        view, eta = self, np.zeros(self.values.shape[1])
        for _ in range(START_STEPS if self.augmented else 0):
            view = self.at(np.broadcast_to(eta, self.values.shape))
            eta = view.y_sum / np.maximum(self.n, 1.0)[self.columns.label]
        return view

    def take(self, where: slice | IntArray) -> Observations:
        """Some of the rows."""
        targets = None if self.targets is None else self.targets[where]
        return Observations(
            self.values[where], self.observed[where], self.columns, self.likelihood, targets
        )

    @cached_property
    def n(self) -> Array:
        """Number of rows in which each group of columns is observed: (G,)."""
        return np.asarray(self.observed.sum(axis=0), dtype=float)

    @cached_property
    def y_sum(self) -> Array:
        """Σ y over observed rows: (D,)."""
        return np.asarray(self.values.sum(axis=0, dtype=np.float64))

    @cached_property
    def y_square(self) -> Array:
        """Σ y² over observed rows: (D,)."""
        return np.asarray(np.einsum("nd,nd->d", self.values, self.values, dtype=np.float64))

    @property
    def rounding(self) -> float:
        """Of the values, relative to these."""
        return float(np.finfo(self.values.dtype).eps)


def _whole_rows(values: Array) -> bool:
    """Whether each row is either complete or missing as a whole (found without an N×D mask)."""
    row_sums = values.sum(axis=1)  # NaN as soon as one entry is
    rows = np.flatnonzero(np.isnan(row_sums))
    return all(np.isnan(values[row]).all() for row in rows.tolist())


@dataclass(frozen=True, eq=False)
class Rows:
    """Views side by side, their rows grouped by which column groups of all views they have.

    `patterns` (P, G) are the distinct rows of the stacked `observed`; `labels` says which
    pattern a row has. Rows with one pattern share one posterior covariance.
    """

    views: Mapping[str, Observations]
    patterns: BoolArray
    labels: Groups

    @classmethod
    def stack(cls, views: Mapping[str, Observations]) -> Rows:
        each = [view.observed for view in views.values()]
        observed = np.concatenate(each, axis=1) if len(each) > 1 else each[0]
        labels = Groups.by_pattern(observed)
        return cls(views, observed if labels.alone else observed[labels.first], labels)

    @property
    def n_samples(self) -> int:
        return len(self.labels.label)

    @property
    def size(self) -> int:
        """Number of entries of all views, observed or not."""
        return sum(view.values.size for view in self.views.values())

    @property
    def columns(self) -> dict[str, Groups]:
        """How the columns of each view are grouped."""
        return {name: view.columns for name, view in self.views.items()}

    @property
    def augmented(self) -> bool:
        """Whether some view holds pseudo-observations."""
        return any(view.augmented for view in self.views.values())

    def block_size(self, n_factors: int) -> int:
        """So many rows at a time still fit the cache."""
        row = sum(view.values.shape[1] * view.values.itemsize for view in self.views.values())
        rows = max(256, int(_CACHE // max(8, row)))
        covariances = max(1, int(_COVARIANCES // max(1, n_factors**2)))
        return min(rows, covariances) if self.labels.size > covariances else rows

    def blocks(self, rows: int) -> Iterator[tuple[slice, Rows]]:
        """Consecutive rows, so many at a time."""
        for start in range(0, self.n_samples, rows):
            where = slice(start, min(start + rows, self.n_samples))
            yield where, self.take(where)

    def take(self, where: slice) -> Rows:
        """The rows of one slice, with the patterns that occur in it."""
        views = {name: view.take(where) for name, view in self.views.items()}
        label = self.labels.label[where]
        if self.labels.size == 1:
            return Rows(views, self.patterns, Groups(label, 1))
        present, label = np.unique(label, return_inverse=True)
        return Rows(views, self.patterns[present], Groups(label.astype(np.intp), len(present)))


def group_slices(columns: Mapping[str, Groups]) -> dict[str, slice]:
    """Where the column groups of each view stand among those of all views."""
    ends = np.cumsum([groups.size for groups in columns.values()])
    pairs = zip(columns.items(), ends, strict=True)
    return {name: slice(end - groups.size, end) for (name, groups), end in pairs}
