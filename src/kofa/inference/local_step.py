"""q(z) of every sample, given the global factors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from kofa.inference.observations import Rows, group_slices
from kofa.inference.own_bases import OwnBases
from kofa.inference.pattern_sums import totals_of
from kofa.inference.posterior import State, ViewPosterior, Weights
from kofa.linalg import (
    Array,
    BoolArray,
    Groups,
    by_rows,
    inverse_and_logdet,
    pack,
    pack_outer,
    product,
    unpack,
)

Matmul = Callable[[Array, Array], Array]


AT_ONCE = 2**22  # numbers in a temporary beyond which a loop takes its place


@dataclass(frozen=True, eq=False)
class LocalSystem:
    """What the global factors say to every sample, ready for the local step.

    A sample's mean times I + Σ_g metric_g, over its observed column groups g, is
    Σ_m y_n loadings_m + Σ_g offset_g; its precision is I + Σ_g precision_g. The two differ by the
    views that are not Gaussian (`ViewPosterior.rho`): there the metric is the bound's.
    """

    loadings: Mapping[str, Array]  # of each view (D, K): τ_d ⟨w_d⟩
    sums: Array  # (G, ·): metric, offset and, where it is not the metric, precision side by side
    by_pattern: bool = False  # whether they are summed up for each pattern of some rows: (P, ·)

    @property
    def n_factors(self) -> int:
        return int(next(iter(self.loadings.values())).shape[1])

    @property
    def metric(self) -> Array:
        """Σ_{d in g} G_d, G_d = τ_d ⟨w_d w_dᵀ⟩, packed: (G, K(K+1)/2)."""
        return self.sums[:, : self.n_factors * (self.n_factors + 1) // 2]

    @property
    def offset(self) -> Array:
        """Σ_{d in g} G_d z̄_d − τ_d ȳ_d ⟨w_d⟩: (G, K)."""
        start = self.metric.shape[1]
        return self.sums[:, start : start + self.n_factors]

    @property
    def precision(self) -> Array | None:
        """Σ_{d in g} τ_d (ρ ⟨w_d⟩⟨w_d⟩ᵀ + Σ_wd), packed; None where it is the metric."""
        start = self.metric.shape[1] + self.n_factors
        return self.sums[:, start:] if self.sums.shape[1] > start else None


def local_system(state: State, columns: Mapping[str, Groups]) -> LocalSystem:
    """Collect τ_d⟨w_d⟩, G_d and the bias for the column groups of some rows."""
    tight = _bound_is_tight(state, columns)
    sums = [_sums(state[name], groups, tight) for name, groups in columns.items()]
    return LocalSystem({name: state[name].loading for name in columns}, np.concatenate(sums))


def local_system_of(state: State, rows: Rows) -> LocalSystem:
    """The same for some rows; by pattern where columns with holes of their own are many.

    Then the numbers of each column are there for a moment only.
    """
    columns = rows.columns
    bases = [state[name].weights.basis for name in columns]
    if not any(isinstance(B, OwnBases) and B.packed is None for B in bases):
        return local_system(state, columns)
    tight, total = _bound_is_tight(state, columns), np.zeros(1)
    slices = group_slices(columns)
    for name, groups in columns.items():
        total = total + _sums_of_patterns(
            state[name], rows.patterns[:, slices[name]], groups, tight
        )
    return LocalSystem({name: state[name].loading for name in columns}, total, by_pattern=True)


def _sums_of_patterns(
    view: ViewPosterior, observed: BoolArray, groups: Groups, tight: bool
) -> Array:
    """The sums over the groups (P, G) that each pattern has."""
    bases = view.weights.basis
    if not (groups.alone and isinstance(bases, OwnBases)):
        return totals_of(observed, _sums(view, groups, tight))
    parts = (
        observed[:, some].astype(float) @ _own_sums(view, bases, some, tight)
        for some in bases.pieces
    )
    return np.asarray(sum(parts))


def local_system_by_pattern(state: State, rows: Rows, aside: bool = False) -> LocalSystem:
    """The same, summed up for each pattern of some rows, whose other rows change no digit of it.

    `aside`: of views with pseudo-observations only what the covariances of their weights say.
    """
    tight, total = _bound_is_tight(state, rows.views), np.zeros(1)
    slices = group_slices(rows.columns)
    for name, data in rows.views.items():
        observed = rows.patterns[:, slices[name]][:, data.columns.label]
        total = total + _sums_by_pattern(state[name], observed, tight, aside and data.augmented)
    return LocalSystem({name: state[name].loading for name in rows.views}, total)


def _sums_by_pattern(view: ViewPosterior, observed: BoolArray, tight: bool, bare: bool) -> Array:
    """The sums over the columns (P, D) that each pattern has; those of all columns are simpler."""
    n, k = view.weights.mean.shape
    whole = _sums(view, Groups.one(n), tight, bare)
    total = np.where(observed.all(axis=1, keepdims=True), whole, 0.0)
    holed = observed.any(axis=1) & ~observed.all(axis=1)
    if holed.any():
        for some in np.array_split(np.arange(n), 1 + n * k**2 // AT_ONCE):
            each = _sums(view.take(some), Groups(np.arange(len(some)), len(some)), tight, bare)
            total[holed] += by_rows(observed[np.ix_(holed, some)].astype(float), each)
    return total


def _bound_is_tight(state: State, views: Iterable[str]) -> bool:
    return all(state[name].rho == 1.0 for name in views)


def _sums(view: ViewPosterior, groups: Groups, tight: bool, bare: bool = False) -> Array:
    """`LocalSystem.sums` of one view; `bare`: as if its weights had a mean of zero."""
    q, tau = view.weights, view.precision
    if groups.alone and isinstance(q.basis, OwnBases):
        parts = (_own_sums(view, q.basis, some, tight, bare) for some in q.basis.pieces)
        return np.concatenate(list(parts))
    mean = 0.0 * q.mean if bare else q.mean
    of_mean, of_spread = pack(groups.gram(mean, tau)), pack(q.covariances(tau, groups))
    G = of_mean + of_spread
    # A group of these rows may unite columns with different z̄; then Σ G_d z̄_d needs each.
    shared = q.columns.size == 1
    if shared:
        pull = unpack(G, mean.shape[1]) @ q.z_mean[0]
    else:
        pull = groups.sum(_column_pull(q, mean, tau))
    offset = pull - groups.sum((tau * q.y_mean)[:, None] * mean)
    precision = [] if tight else [view.rho * of_mean + of_spread]
    return np.concatenate([G, offset, *precision], axis=1)


def _own_sums(
    view: ViewPosterior, bases: OwnBases, some: slice, tight: bool, bare: bool = False
) -> Array:
    """The same of some columns that have holes of their own, one by one."""
    q, tau = view.weights, view.precision[some]
    mean, z_mean = 0.0 * q.mean[some] if bare else q.mean[some], q.z_mean[some]
    covariance = bases.covariances(some)
    of_mean, of_spread = pack_outer(mean), pack(covariance)
    of_mean *= tau[:, None]
    of_spread *= tau[:, None]
    # G_d z̄_d − τ_d ȳ_d ⟨w_d⟩
    along = (mean * z_mean).sum(1) - q.y_mean[some]
    offset = along[:, None] * mean + (covariance @ z_mean[..., None])[..., 0]
    offset *= tau[:, None]
    precision = [] if tight else [view.rho * of_mean + of_spread]
    return np.concatenate([of_mean + of_spread, offset, *precision], axis=1)


def _column_pull(q: Weights, mean: Array, tau: Array) -> Array:
    """G_d z̄_d for every column: (D, K)."""
    z_mean, basis = q.z_mean[q.columns.label], np.asarray(q.basis)
    along = q.scales * q.columns.matmul(z_mean, basis)
    covariance = q.columns.matmul(along, basis.swapaxes(-1, -2))
    of_mean = mean * (mean * z_mean).sum(1, keepdims=True)
    pull: Array = tau[:, None] * (of_mean + covariance)
    return pull


@dataclass(frozen=True, eq=False)
class Latent:
    """q(z_n) = N(mean_n, covariance of its pattern)."""

    mean: Array  # (N, K)
    covariance: Array  # (P, K, K)
    logdet: Array  # (P,)
    patterns: Groups


def known(Z: Array, labels: Groups) -> Latent:
    """q(z) of samples whose factors are known."""
    n, k = labels.size, Z.shape[1]
    return Latent(Z, np.zeros((n, k, k)), np.zeros(n), labels)


def augment(rows: Rows, state: State, Z: Array) -> Rows:
    """Let the bounds of non-Gaussian views be tangent at the current ⟨w_d⟩·z_n + ⟨b_d⟩."""
    if not rows.augmented:
        return rows
    views = {
        name: view.at(state[name].weights.predict(Z)) if view.augmented else view
        for name, view in rows.views.items()
    }
    return replace(rows, views=views)


def local_step(rows: Rows, e: LocalSystem) -> Latent:
    """q(z_n) of every row given its pseudo-observations, in closed form."""
    total = e if e.by_pattern else replace(e, sums=totals_of(rows.patterns, e.sums))
    pull = np.zeros((rows.n_samples, e.n_factors))
    for name, view in rows.views.items():
        pull += product(view.values, e.loadings[name])
    return closed_form(rows, total, pull, rows.labels.matmul)


def closed_form(rows: Rows, e: LocalSystem, pull: Array, matmul: Matmul) -> Latent:
    """q(z_n) given what is known by pattern, and Σ_d τ_d y_nd ⟨w_d⟩ of every row."""
    unit = np.eye(e.n_factors)
    # (I + Σ_{d observed} G_d)^-1, once per pattern
    inverse, logdet = inverse_and_logdet(unit + unpack(e.metric, len(unit)))
    # m_n = (I + Σ G_d)^-1 Σ_{d observed} [ τ_d (y_nd − ȳ_d) ⟨w_d⟩ + G_d z̄_d ]
    mean, covariance = matmul(e.offset[rows.labels.label] + pull, inverse), inverse
    if e.precision is not None:
        covariance, logdet = inverse_and_logdet(unit + unpack(e.precision, len(unit)))
    return Latent(mean, covariance, -logdet, rows.labels)


def pull_of(rows: Rows, e: LocalSystem, augmented: bool) -> Array:
    """Σ_d τ_d y_nd ⟨w_d⟩ over the views that hold pseudo-observations, or over the others."""
    h = np.zeros((rows.n_samples, e.n_factors))
    for name, view in rows.views.items():
        if view.augmented == augmented:
            h += by_rows(view.values, e.loadings[name])
    return h
