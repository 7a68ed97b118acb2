"""Sums over samples from which the global step follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kofa.inference.local_step import Latent
from kofa.inference.observations import Observations, Rows
from kofa.inference.posterior import Weights
from kofa.linalg import Array, Groups, pack, pack_outer, unpack


class Layout(NamedTuple):
    """How the columns of a view are grouped, and whether its values are pseudo-observations."""

    columns: Groups
    augmented: bool


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over samples from which the global step follows; add them to join blocks of rows."""

    n_samples: float
    z_sum: Array  # (K,)
    S: Array  # (K, K): Σ ⟨z zᵀ⟩ over all samples
    logdet: float  # Σ log |Σ_n|
    z_group: Array  # (G, K): Σ ⟨z⟩ over the samples that have the column group
    S_group: Array  # (G, K(K+1)/2), packed: Σ ⟨z zᵀ⟩ likewise
    M_group: Array  # likewise: Σ ⟨z⟩⟨z⟩ᵀ; only where some view is not Gaussian, else (0, …)
    R: tuple[Array, ...]  # per view (D, K): Σ y_n ⟨z_n⟩ᵀ over observed entries
    y_sum: tuple[Array, ...]  # per view (D,)
    y_square: tuple[Array, ...]  # per view (D,): Σ y²
    excess: Array  # (M,): Σ log-likelihood − Gaussian log-density of the pseudo-observations
    n_group: Array  # (G,): number of samples that have the column group
    layout: tuple[Layout, ...]  # of each view, the same in all blocks

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.n_samples + other.n_samples,
            self.z_sum + other.z_sum,
            self.S + other.S,
            self.logdet + other.logdet,
            self.z_group + other.z_group,
            self.S_group + other.S_group,
            self.M_group + other.M_group,
            _add(self.R, other.R),
            _add(self.y_sum, other.y_sum),
            _add(self.y_square, other.y_square),
            self.excess + other.excess,
            self.n_group + other.n_group,
            self.layout,
        )

    def with_surrogate(self, m: int, sums: SurrogateSums) -> Statistics:
        """The statistics after the bound of view m was moved."""
        return replace(
            self,
            R=_put(self.R, m, sums.R),
            y_sum=_put(self.y_sum, m, sums.y_sum),
            y_square=_put(self.y_square, m, sums.y_square),
            excess=np.where(np.arange(len(self.excess)) == m, sums.excess, self.excess),
        )


def _add(left: tuple[Array, ...], right: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def _put(items: tuple[Array, ...], m: int, item: Array) -> tuple[Array, ...]:
    return (*items[:m], item, *items[m + 1 :])


@dataclass(frozen=True, eq=False)
class SurrogateSums:
    """What changes in the statistics when a view's bound touches elsewhere and q(z) stays."""

    R: Array
    y_sum: Array
    y_square: Array
    excess: float

    @classmethod
    def of(cls, view: Observations, w: Weights, Z: Array) -> SurrogateSums:
        view = view.at(w.predict(Z))
        return cls(view.values.T @ Z, view.y_sum, view.y_square, view.excess)

    def __add__(self, other: SurrogateSums) -> SurrogateSums:
        return SurrogateSums(
            self.R + other.R,
            self.y_sum + other.y_sum,
            self.y_square + other.y_square,
            self.excess + other.excess,
        )


def statistics(rows: Rows, q: Latent) -> Statistics:
    """The sums of one block of rows."""
    patterns, k = q.patterns, q.mean.shape[1]
    counts = np.bincount(patterns.label, minlength=patterns.size).astype(float)
    # Σ ⟨z zᵀ⟩ of each pattern = count · Σ_p + Σ m mᵀ
    of_means = pack_outer(q.mean) if patterns.alone else pack(patterns.gram(q.mean))
    second = counts[:, None] * pack(q.covariance) + of_means
    moments = np.concatenate([second, patterns.sum(q.mean)], axis=1)
    by_group = rows.patterns.T.astype(float) @ moments
    none = np.empty((0, second.shape[1]))
    return Statistics(
        n_samples=float(len(q.mean)),
        z_sum=q.mean.sum(axis=0),
        S=unpack(second.sum(axis=0), k),
        logdet=float(counts @ q.logdet),
        z_group=by_group[:, -k:],
        S_group=by_group[:, :-k],
        M_group=rows.patterns.T.astype(float) @ of_means if rows.augmented else none,
        R=tuple(view.values.T @ q.mean for view in rows.views),
        y_sum=tuple(view.y_sum for view in rows.views),
        y_square=tuple(view.y_square for view in rows.views),
        excess=np.array([view.excess for view in rows.views]),
        n_group=rows.patterns.T.astype(float) @ counts,
        layout=tuple(Layout(view.columns, view.augmented) for view in rows.views),
    )


@dataclass(frozen=True, eq=False)
class ViewStatistics:
    """The statistics of one view, centred by its integrated bias."""

    n: Array  # (G,)
    columns: Groups
    y_mean: Array  # (D,)
    y_square: Array  # (D,): Σ (y − ȳ)²
    z_mean: Array  # (G, K)
    S: Array  # (G, K, K): Σ ⟨z zᵀ⟩ − n z̄ z̄ᵀ
    M: Array  # (G, K, K): Σ ⟨z⟩⟨z⟩ᵀ − n z̄ z̄ᵀ where the view is not Gaussian, else S
    R: Array  # (D, K): Σ y ⟨z⟩ᵀ − n ȳ z̄ᵀ
    excess: float

    @property
    def n_column(self) -> Array:
        """Number of observed rows of each column: (D,)."""
        return self.n[self.columns.label]


def centred(stats: Statistics) -> tuple[ViewStatistics, ...]:
    """S_c = S − n z̄ z̄ᵀ and R_c = R − n ȳ z̄ᵀ of every view."""
    ends = np.cumsum([layout.columns.size for layout in stats.layout])
    return tuple(
        _centred_view(stats, m, layout, slice(end - layout.columns.size, end))
        for m, (layout, end) in enumerate(zip(stats.layout, ends, strict=True))
    )


def _centred_view(stats: Statistics, m: int, layout: Layout, groups: slice) -> ViewStatistics:
    n, columns, y_sum = stats.n_group[groups], layout.columns, stats.y_sum[m]
    z_mean = stats.z_group[groups] / n[:, None]
    y_mean = y_sum / n[columns.label]
    y_square = stats.y_square[m] - y_sum * y_mean
    shift = n[:, None] * pack_outer(z_mean)
    S = M = unpack(stats.S_group[groups] - shift, z_mean.shape[1])
    if layout.augmented:
        M = unpack(stats.M_group[groups] - shift, z_mean.shape[1])
    R = stats.R[m] - y_sum[:, None] * z_mean[columns.label]
    return ViewStatistics(n, columns, y_mean, y_square, z_mean, S, M, R, float(stats.excess[m]))
