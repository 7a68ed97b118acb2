"""Sums over samples from which the global step follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kofa.inference.local_step import Latent
from kofa.inference.observations import Observations, Rows, group_slices
from kofa.inference.pattern_sums import (
    CentredSums,
    Means,
    Packed,
    PatternMeans,
    PatternSums,
    by_pattern,
    sums_of,
)
from kofa.inference.posterior import Weights
from kofa.linalg import Array, BoolArray, Groups, cross, pack, pack_outer, unpack

Sums = Array | PatternSums  # (G, ·)


@dataclass(frozen=True, eq=False)
class ViewSums:
    """Sums over the observed entries of one view."""

    R: Array  # (D, K): Σ y_n ⟨z_n⟩ᵀ
    y_sum: Array  # (D,)
    y_square: Array  # (D,): Σ y²
    excess: float  # Σ log-likelihood − Gaussian log-density of the pseudo-observations
    rounding: float  # of y, relative to it

    @classmethod
    def of(cls, view: Observations, Z: Array) -> ViewSums:
        R = cross(view.values, Z)
        return cls(R, view.y_sum, view.y_square, view.excess, view.rounding)

    @classmethod
    def tangent_at(cls, view: Observations, w: Weights, Z: Array) -> ViewSums:
        """Of a bound that is tangent at these weights, of a view that is not Gaussian."""
        return cls.of(view.at(w.predict(Z)), Z)

    def __add__(self, other: ViewSums) -> ViewSums:
        return ViewSums(
            self.R + other.R,
            self.y_sum + other.y_sum,
            self.y_square + other.y_square,
            self.excess + other.excess,
            max(self.rounding, other.rounding),
        )

    def __mul__(self, times: float) -> ViewSums:
        """Of rows that count so many times."""
        return ViewSums(
            self.R * times,
            self.y_sum * times,
            self.y_square * times,
            self.excess * times,
            self.rounding,
        )


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over samples from which the global step follows; add them to join blocks of rows."""

    n_samples: float
    z_sum: Array  # (K,)
    S: Array  # (K, K): Σ ⟨z zᵀ⟩ over all samples
    logdet: float  # Σ log |Σ_n|
    z_group: Sums  # (G, K): Σ ⟨z⟩ over the samples that have the column group
    S_group: Sums  # (G, K(K+1)/2), packed: Σ ⟨z zᵀ⟩ likewise
    # likewise: Σ ⟨z⟩⟨z⟩ᵀ; only where some view is not Gaussian, else (0, …)
    M_group: Sums
    n_group: Sums  # (G, 1): number of samples that have the column group
    views: Mapping[str, ViewSums]
    columns: Mapping[str, Groups]  # of each view, the same in all blocks
    augmented: frozenset[str]  # views whose values are pseudo-observations

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.n_samples + other.n_samples,
            self.z_sum + other.z_sum,
            self.S + other.S,
            self.logdet + other.logdet,
            self.z_group + other.z_group,
            self.S_group + other.S_group,
            self.M_group + other.M_group,
            self.n_group + other.n_group,
            {name: sums + other.views[name] for name, sums in self.views.items()},
            self.columns,
            self.augmented,
        )

    def __mul__(self, times: float) -> Statistics:
        """Of rows that count so many times."""
        return Statistics(
            self.n_samples * times,
            self.z_sum * times,
            self.S * times,
            self.logdet * times,
            self.z_group * times,
            self.S_group * times,
            self.M_group * times,
            self.n_group * times,
            {name: sums * times for name, sums in self.views.items()},
            self.columns,
            self.augmented,
        )

    def of_samples(self) -> Statistics:
        """Without the sums of columns, which take memory."""
        none = np.empty((0, 1))
        return replace(self, z_group=none, S_group=none, M_group=none, n_group=none, views={})

    def with_sums(self, name: str, sums: ViewSums) -> Statistics:
        """The statistics after the bound of a view was moved, where q(z) stays."""
        return replace(self, views={**self.views, name: sums})


def statistics(rows: Rows, q: Latent) -> Statistics:
    """The sums of one block of rows."""
    patterns, k = q.patterns, q.mean.shape[1]
    counts = np.bincount(patterns.label, minlength=patterns.size).astype(float)
    # Σ ⟨z zᵀ⟩ of each pattern = count · Σ_p + Σ m mᵀ
    of_means = pack_outer(q.mean) if patterns.alone else pack(patterns.gram(q.mean))
    second = counts[:, None] * pack(q.covariance) + of_means
    n_group, z_group, S_group = _by_group(
        rows.patterns, counts[:, None], patterns.sum(q.mean), second
    )
    none = np.empty((0, second.shape[1]))
    return Statistics(
        n_samples=float(len(q.mean)),
        z_sum=q.mean.sum(axis=0),
        S=unpack(second.sum(axis=0), k),
        logdet=float(counts @ q.logdet),
        z_group=z_group,
        S_group=S_group,
        M_group=_by_group(rows.patterns, of_means)[-1] if rows.augmented else none,
        n_group=n_group,
        views={name: ViewSums.of(view, q.mean) for name, view in rows.views.items()},
        columns=rows.columns,
        augmented=frozenset(name for name, view in rows.views.items() if view.augmented),
    )


def _by_group(having: BoolArray, *numbers: Array) -> list[Any]:
    """Σ of numbers of the patterns over those that have each group of columns."""
    n_patterns, n_groups = having.shape
    if by_pattern(n_patterns, n_groups, max(one.shape[1] for one in numbers)):
        return [PatternSums((having,), (one,)) for one in numbers]
    found = sums_of(having, np.concatenate(numbers, axis=1))
    return np.split(found, np.cumsum([one.shape[1] for one in numbers])[:-1], axis=1)


@dataclass(frozen=True, eq=False)
class ViewStatistics:
    """The statistics of one view, centred by its integrated bias."""

    n: Array  # (G,)
    columns: Groups
    y_mean: Array  # (D,)
    y_square: Array  # (D,): Σ (y − ȳ)²
    z_mean: Means  # (G, K)
    packed: Packed  # (G, K(K+1)/2): Σ ⟨z zᵀ⟩ − n z̄ z̄ᵀ
    packed_of_means: Packed | None  # likewise Σ ⟨z⟩⟨z⟩ᵀ − n z̄ z̄ᵀ, where the view is not Gaussian
    R: Array  # (D, K): Σ y ⟨z⟩ᵀ − n ȳ z̄ᵀ
    excess: float
    rounding: float
    unseen: BoolArray  # (D,): columns that no row has
    # The residuals of the weights that were asked for last: noise and bound need the same.
    residuals: dict[tuple[Weights, float], Array] = field(default_factory=dict)

    @cached_property
    def S(self) -> Array:
        """Σ ⟨z zᵀ⟩ − n z̄ z̄ᵀ: (G, K, K)."""
        return unpack(self.packed[:], self.z_mean.shape[1])

    @cached_property
    def M(self) -> Array:
        """Σ ⟨z⟩⟨z⟩ᵀ − n z̄ z̄ᵀ where the view is not Gaussian, else S: (G, K, K)."""
        packed = self.packed_of_means
        return self.S if packed is None else unpack(packed[:], self.z_mean.shape[1])

    @cached_property
    def n_column(self) -> Array:
        """Number of observed rows of each column: (D,)."""
        return self.n[self.columns.label]


def centred(stats: Statistics) -> dict[str, ViewStatistics]:
    """S_c = S − n z̄ z̄ᵀ and R_c = R − n ȳ z̄ᵀ of every view."""
    slices = group_slices(stats.columns)
    return {name: _centred_view(stats, name, slices[name]) for name in stats.views}


def _centred_view(stats: Statistics, name: str, groups: slice) -> ViewStatistics:
    n, columns, sums = stats.n_group[groups][:, 0], stats.columns[name], stats.views[name]
    unseen = n == 0
    # As if two rows had it, each a standard deviation from the mean: then all is finite.
    n = np.where(unseen, 2.0, n)
    z, S, M = (
        _of_view(one, groups, columns) for one in (stats.z_group, stats.S_group, stats.M_group)
    )
    z_mean = _means(z, stats.n_group, n)
    y_mean = sums.y_sum / n[columns.label]
    unseen = unseen[columns.label]
    y_square = np.where(unseen, 2.0, sums.y_square - sums.y_sum * y_mean)
    packed = _less_mean(S, n, z_mean)
    of_means = _less_mean(M, n, z_mean) if name in stats.augmented else None
    R = z_mean[columns.label]
    R *= sums.y_sum[:, None]
    R = np.subtract(sums.R, R, out=R)
    return ViewStatistics(
        n,
        columns,
        y_mean,
        y_square,
        z_mean,
        packed,
        of_means,
        R,
        sums.excess,
        sums.rounding,
        unseen,
    )


def _of_view(sums: Sums, groups: slice, columns: Groups) -> Sums:
    """Those of the column groups of a view; as numbers unless each column has holes of its own."""
    if isinstance(sums, PatternSums) and columns.alone and columns.size > 1:
        return sums.of(groups)
    return sums[groups]


def _means(z: Sums, n: Sums, each: Array) -> Means:
    """z̄ of some groups."""
    if isinstance(z, PatternSums) and isinstance(n, PatternSums):
        return PatternMeans(z, tuple(one[:, 0] for one in n.numbers), each)
    return np.asarray(z[:] / each[:, None])


def _less_mean(sums: Sums, n: Array, z_mean: Means) -> Packed:
    """Σ − n z̄ z̄ᵀ of some groups, packed."""
    if isinstance(sums, PatternSums):
        return CentredSums(sums, n, z_mean)
    shift = pack_outer(np.asarray(z_mean))
    shift *= n[:, None]
    return np.subtract(sums, shift, out=shift)
