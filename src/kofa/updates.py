"""The equations of coordinate ascent, one function each.

The spine: `local_step` (per sample) gives additive `Statistics`, `global_step` turns their sum
into the next q. Nothing here loops over samples or columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kofa.linalg import (
    Array,
    BoolArray,
    Groups,
    IntArray,
    by_rows,
    inverse_and_logdet,
    pack,
    pack_outer,
    quadratic_diagonals,
    unpack,
)
from kofa.observations import Observations, Rows
from kofa.posterior import Gamma, Known, Precision, State, ViewPosterior, Weights

Matmul = Callable[[Array, Array], Array]

_AT_ONCE = 2**22  # numbers in a temporary beyond which a loop takes its place
_MOST_ROUNDS = 200  # of a row that is projected by itself
_TRUST = 3.0  # times one and the size of η, the most that a step may change it
_OVERSHOOT = 0.1  # beyond the top of a line, relative to the slope where it begins
_DIFFERENCE = 1e-5  # between slopes of which curvatures are made
_ROUNDING = 1e-6
_LEAST_RHO = 0.01
_LEAST_BLUR = 1e-6
_LEAST_CONTRAST = -0.75  # of a variance that is added to one

# ---------------------------------------------------------------- local step


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the global factors say to every sample, ready for the local step.

    A sample's mean times I + Σ_g metric_g, over its observed column groups g, is
    Σ_m y_n loadings_m + Σ_g offset_g; its precision is I + Σ_g precision_g. The two differ by the
    views that are not Gaussian (`ViewPosterior.rho`): there the metric is the bound's.
    """

    loadings: tuple[Array, ...]  # per view (D, K): τ_d ⟨w_d⟩
    sums: Array  # (G, ·): metric, offset and, where it is not the metric, precision side by side

    @property
    def n_factors(self) -> int:
        return int(self.loadings[0].shape[1])

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


def evidence(state: State, columns: tuple[Groups, ...]) -> Evidence:
    """Collect τ_d⟨w_d⟩, G_d and the bias for the column groups of some rows."""
    tight = _bound_is_tight(state)
    parts = zip(state, columns, strict=True)
    sums = [_sums(view, groups, tight) for view, groups in parts]
    return Evidence(_loadings(state), np.concatenate(sums))


def evidence_by_pattern(state: State, rows: Rows, aside: bool = False) -> Evidence:
    """The same, summed up for each pattern of some rows, whose other rows change no digit of it.

    `aside`: of views with pseudo-observations only what the covariances of their weights say.
    """
    tight, total = _bound_is_tight(state), np.zeros(1)
    for view, data, groups in zip(state, rows.views, rows.groups, strict=True):
        observed = rows.patterns[:, groups][:, data.columns.label]
        total = total + _sums_by_pattern(view, observed, tight, aside and data.augmented)
    return Evidence(_loadings(state), total)


def _sums_by_pattern(view: ViewPosterior, observed: BoolArray, tight: bool, bare: bool) -> Array:
    """The sums over the columns (P, D) that each pattern has; those of all columns are simpler."""
    n, k = view.weights.mean.shape
    whole = _sums(view, Groups.one(n), tight, bare)
    total = np.where(observed.all(axis=1, keepdims=True), whole, 0.0)
    holed = observed.any(axis=1) & ~observed.all(axis=1)
    if holed.any():
        for some in np.array_split(np.arange(n), 1 + n * k**2 // _AT_ONCE):
            each = _sums(view.take(some), Groups(np.arange(len(some)), len(some)), tight, bare)
            total[holed] += by_rows(observed[np.ix_(holed, some)].astype(float), each)
    return total


def _bound_is_tight(state: State) -> bool:
    return all(view.rho == 1.0 for view in state)


def _loadings(state: State) -> tuple[Array, ...]:
    return tuple(view.loading for view in state)


def _sums(view: ViewPosterior, groups: Groups, tight: bool, bare: bool = False) -> Array:
    """`Evidence.sums` of one view; `bare`: as if its weights had a mean of zero."""
    q, tau = view.weights, view.precision
    mean = 0.0 * q.mean if bare else q.mean
    of_mean, of_spread = groups.gram(mean, tau), q.covariances(tau, groups)
    G = of_mean + of_spread
    # A group of these rows may unite columns with different z̄; then Σ G_d z̄_d needs each.
    shared = q.columns.size == 1
    pull = G @ q.z_mean[0] if shared else groups.sum(_column_pull(q, mean, tau))
    offset = pull - groups.sum((tau * q.y_mean)[:, None] * mean)
    precision = [] if tight else [pack(view.rho * of_mean + of_spread)]
    return np.concatenate([pack(G), offset, *precision], axis=1)


def _column_pull(q: Weights, mean: Array, tau: Array) -> Array:
    """G_d z̄_d for every column: (D, K)."""
    z_mean = q.z_mean[q.columns.label]
    along = q.scales * q.columns.matmul(z_mean, q.basis)
    covariance = q.columns.matmul(along, q.basis.swapaxes(-1, -2))
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
    # Rows with holes in kernelized views (h,), and by how much their mean would differ for other
    # values in the holes (h, ·, K), scaled so that their squares add up to a variance.
    open: tuple[tuple[IntArray, Array], ...] = ()

    def left_open(self, rows: IntArray, differences: Array) -> Latent:
        """With what the holes of some rows leave open."""
        return replace(self, open=(*self.open, (rows, differences)))


def known(Z: Array, labels: Groups) -> Latent:
    """q(z) of samples whose factors are known."""
    n, k = labels.size, Z.shape[1]
    return Latent(Z, np.zeros((n, k, k)), np.zeros(n), labels)


def augment(rows: Rows, state: State, Z: Array) -> Rows:
    """Let the bounds of non-Gaussian views touch at the current ⟨w_d⟩·z_n + ⟨b_d⟩."""
    if not rows.augmented:
        return rows
    views = [
        view.at(q.weights.predict(Z)) if view.augmented else view
        for view, q in zip(rows.views, state, strict=True)
    ]
    return replace(rows, views=tuple(views))


def local_step(rows: Rows, e: Evidence) -> Latent:
    """q(z_n) of every row given its pseudo-observations, in closed form."""
    total = replace(e, sums=rows.patterns.astype(float) @ e.sums)
    pull = np.zeros((rows.n_samples, e.n_factors))
    for view, loading in zip(rows.views, e.loadings, strict=True):
        pull += view.values @ loading
    return _closed_form(rows, total, pull, rows.labels.matmul)


def _closed_form(rows: Rows, e: Evidence, pull: Array, matmul: Matmul) -> Latent:
    """q(z_n) given what is known by pattern, and Σ_d τ_d y_nd ⟨w_d⟩ of every row."""
    unit = np.eye(e.n_factors)
    # (I + Σ_{d observed} G_d)^-1, once per pattern
    inverse, logdet = inverse_and_logdet(unit + unpack(e.metric, len(unit)))
    # m_n = (I + Σ G_d)^-1 Σ_{d observed} [ τ_d (y_nd − ȳ_d) ⟨w_d⟩ + G_d z̄_d ]
    mean, covariance = matmul(e.offset[rows.labels.label] + pull, inverse), inverse
    if e.precision is not None:
        covariance, logdet = inverse_and_logdet(unit + unpack(e.precision, len(unit)))
    return Latent(mean, covariance, -logdet, rows.labels)


def _pull(rows: Rows, e: Evidence, augmented: bool) -> Array:
    """Σ_d τ_d y_nd ⟨w_d⟩ over the views that hold pseudo-observations, or over the others."""
    h = np.zeros((rows.n_samples, e.n_factors))
    for view, loading in zip(rows.views, e.loadings, strict=True):
        if view.augmented == augmented:
            h += by_rows(view.values, loading)
    return h


def settle(rows: Rows, state: State, within: float = 1e-9) -> Latent:
    """q(z_n) of every row by itself: where pseudo-observations and local step agree.

    There the gradient of a concave function of z_n is zero, so that Newton's method finds it. Steps
    are cut where curvatures cannot be trusted any more, and halved until they end before the top of
    the line that they follow, or just behind it. Rows stop one by one, with a step `within` so much
    of the factors' prior spread: none depends on the others in its batch.
    """
    e = evidence_by_pattern(state, rows)
    start = augment(rows, state, np.zeros((rows.n_samples, e.n_factors)))
    pull = _pull(start, e, augmented=False) + _pull(start, e, augmented=True)
    q = _closed_form(rows, e, pull, rows.labels.by_rows)
    if not rows.augmented:
        return q
    local = _Local.of(rows, state)
    z, gradient = q.mean, local.gradient(q.mean)
    step, share = np.zeros_like(z), np.ones(len(z))
    active = fresh = np.ones(len(z), dtype=bool)
    for _ in range(_MOST_ROUNDS):
        local.put_newton_steps(step, np.flatnonzero(fresh), z, gradient)
        share = np.where(fresh, local.longest(step, z), share)
        trial = z + share[:, None] * step
        found = local.gradient(trial)
        # Of factors far out the last digits are rounding.
        enough = within * np.maximum(1.0, _ROUNDING * np.abs(trial).max(axis=1))
        last = share * np.abs(step).max(axis=1) <= enough
        rises, rose = ((step * slope).sum(axis=1) for slope in (found, gradient))
        good = rises >= -_OVERSHOOT * rose
        taken = active & (good | last)
        z, gradient = (np.where(taken[:, None], a, b) for a, b in ((trial, z), (found, gradient)))
        share = 0.5 * share
        active = active & ~last
        fresh = taken & active
        if not active.any():
            break
    return replace(q, mean=z)


@dataclass(frozen=True, eq=False)
class _Local:
    """Σ g(t, ⟨η⟩) − ½ zᵀ P z + zᵀ h of some rows, which each z_n maximises by itself.

    P and h hold all but the log-likelihoods of the views that are not Gaussian, and of these what
    the covariances of their weights add. Nothing is added here only to be taken away again: far
    out, or of large counts, hardly a digit would be left.
    """

    rows: Rows
    state: State
    P: Array  # (patterns, K, K)
    h: Array  # (N, K)

    @classmethod
    def of(cls, rows: Rows, state: State) -> _Local:
        rest = evidence_by_pattern(state, rows, aside=True)
        h = rest.offset[rows.labels.label] + _pull(rows, rest, augmented=False)
        unit = np.eye(rest.n_factors)
        return cls(rows, state, unit + unpack(rest.metric, len(unit)), h)

    @property
    def views(self) -> list[tuple[Observations, ViewPosterior]]:
        pairs = zip(self.rows.views, self.state, strict=True)
        return [(data, view) for data, view in pairs if data.augmented]

    def gradient(self, Z: Array) -> Array:
        slopes = [
            by_rows(data.tangent(view.weights.predict(Z))[1], view.weights.mean)
            for data, view in self.views
        ]
        return np.asarray(self.h - self.rows.labels.by_rows(Z, self.P) + np.sum(slopes, axis=0))

    def longest(self, step: Array, Z: Array) -> Array:
        """The share of each step that changes no η by more than a few times its size."""
        shares = [np.ones(len(Z))]
        for data, view in self.views:
            room = _TRUST * (1.0 + np.abs(view.weights.predict(Z)))
            change = np.where(data.mask, np.abs(by_rows(step, view.weights.mean.T)), 0.0)
            shares.append(1.0 / np.maximum(1.0, (change / room).max(axis=1)))
        return np.asarray(np.min(shares, axis=0))

    def put_newton_steps(self, step: Array, which: IntArray, Z: Array, gradient: Array) -> None:
        """Replace the steps of some rows."""
        k = Z.shape[1]
        parts = np.array_split(which, 1 + len(which) * k**2 // _AT_ONCE) if len(which) else []
        for some in parts:
            bends = [_bend(data.take(some), view, Z[some]) for data, view in self.views]
            H = self.P[self.rows.labels.label[some]] + unpack(np.sum(bends, axis=0), k)
            step[some] = np.linalg.solve(H, gradient[some][..., None])[..., 0]


def _bend(data: Observations, view: ViewPosterior, Z: Array) -> Array:
    """Σ_d λ_nd w_d w_dᵀ of every row, λ = −∂²g/∂η² by differences, packed."""
    W, eta = view.weights.mean, view.weights.predict(Z)
    size = _DIFFERENCE * np.maximum(1.0, np.abs(eta))
    slope = data.tangent(eta)[1]
    assert data.likelihood is not None
    if data.likelihood.competing:  # a change of one column changes the slopes of all
        moved = [data.tangent(eta + size * column)[1] for column in np.eye(len(W))]
        bends = np.stack([slope - one for one in moved], axis=1) / size[..., None]
        return pack(W.T @ (0.5 * (bends + bends.swapaxes(1, 2))) @ W)
    bend = np.clip((slope - data.tangent(eta + size)[1]) / size, 0.0, view.precision)
    total = np.zeros((len(Z), W.shape[1] * (W.shape[1] + 1) // 2))
    for some in np.array_split(np.arange(len(W)), 1 + len(W) * total.shape[1] // _AT_ONCE):
        total += by_rows(bend[:, some], pack_outer(W[some]))
    return total


def linear_predictor(
    q: Latent,
    w: Weights,
    competing: bool = False,
    rho: float | Array = 1.0,
    blurred: Array | None = None,
) -> tuple[Array, Array]:
    """Mean and variance of w_d·z_n + b_d under q, each (N, D).

    Through z the columns vary together. Where they compete, only their differences count: then
    the variances are those of independent columns that differ in the same way (`_contrasts`).
    What ⟨w_d⟩ makes of the variance of z counts by ρ, for all samples or for each (N, 1); where
    the noise has some of it (`ViewPosterior.blurred`), only what is more than that.
    """
    mean = np.empty((len(q.mean), len(w.mean)))
    variance = np.empty_like(mean)
    pattern = q.patterns.label
    for members, z_mean, B in zip(w.columns.members, w.z_mean, w.basis, strict=True):
        W, scales = w.mean[members], w.scales[members]
        away = q.mean - z_mean
        mean[:, members] = w.y_mean[members] + by_rows(away, W.T)
        # var = var(b|w) + w̄ᵀ Σ_n w̄ + (m − z̄)ᵀ Σ_w (m − z̄) + tr(Σ_w Σ_n)
        along = by_rows(away, B) ** 2
        if blurred is None:
            along += quadratic_diagonals(B, q.covariance)[pattern]
        of_z = rho * (_contrasts if competing else _variances_along)(W, q.covariance)[pattern]
        if blurred is not None:
            of_z = np.maximum(of_z - blurred[members], 0.0)
        variance[:, members] = w.bias_variance[members] + of_z + by_rows(along, scales.T)
    return mean, variance


def blur_in(w: Weights, covariance: Array) -> Array:
    """Variance of ⟨w_d⟩·z that a learnt noise has in it, z of this covariance (K, K): (D,)."""
    return np.asarray(_variances_along(w.mean, covariance[None])[0])


def variance_of_holes(q: Latent, w: Weights, competing: bool = False) -> Array:
    """Variance of w_d·z_n by what holes in kernelized rows leave open: (N, D)."""
    variance = np.zeros((len(q.mean), len(w.mean)))
    for rows, differences in q.open:
        along = differences @ w.mean.T  # (h, ·, D)
        if competing:
            covariance = along.swapaxes(-1, -2) @ along
            variance[rows] += _contrasts(np.eye(len(w.mean)), covariance)
        else:
            of_w = by_rows((differences**2).sum(axis=1), w.variance.T)
            variance[rows] += (along**2).sum(axis=1) + of_w
    return variance


def _variances_along(W: Array, covariances: Array) -> Array:
    """wᵀ Σ w of every covariance (P, K, K) and row w (D, K): (P, D)."""
    if len(W) * len(covariances) * W.shape[1] < _AT_ONCE:
        return np.asarray(((W @ covariances) * W).sum(axis=-1))
    return np.stack([((W @ covariance) * W).sum(axis=1) for covariance in covariances])


def _contrasts(W: Array, covariances: Array) -> Array:
    """a_d with a_i + a_j ≈ var((w_i − w_j)·z) for all pairs, by least squares: (P, D).

    Exact for two columns and for three.
    """
    n = len(W)
    along = W @ covariances  # (P, D, K)
    own = (along * W).sum(axis=-1)
    # Σ_j var((w_i − w_j)·z)
    total = n * own + own.sum(axis=1, keepdims=True) - 2.0 * along @ W.sum(axis=0)
    if n == 2:
        return np.asarray(0.5 * total)
    mean = total.sum(axis=1, keepdims=True) / (2.0 * (n - 1))
    return np.asarray(np.maximum((total - mean) / (n - 2), _LEAST_CONTRAST))


# ---------------------------------------------------------------- sufficient statistics


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
        )

    def with_touch(self, m: int, touch: Touch) -> Statistics:
        """The statistics after the bound of view m was moved."""
        return replace(
            self,
            R=_put(self.R, m, touch.R),
            y_sum=_put(self.y_sum, m, touch.y_sum),
            y_square=_put(self.y_square, m, touch.y_square),
            excess=np.where(np.arange(len(self.excess)) == m, touch.excess, self.excess),
        )


def _add(left: tuple[Array, ...], right: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def _put(items: tuple[Array, ...], m: int, item: Array) -> tuple[Array, ...]:
    return (*items[:m], item, *items[m + 1 :])


@dataclass(frozen=True, eq=False)
class Touch:
    """What changes in the statistics when a view's bound touches elsewhere and q(z) stays."""

    R: Array
    y_sum: Array
    y_square: Array
    excess: float

    @classmethod
    def of(cls, view: Observations, w: Weights, Z: Array) -> Touch:
        view = view.at(w.predict(Z))
        return cls(view.values.T @ Z, view.y_sum, view.y_square, view.excess)

    def __add__(self, other: Touch) -> Touch:
        return Touch(
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


def centred(stats: Statistics, rows: Rows) -> tuple[ViewStatistics, ...]:
    """S_c = S − n z̄ z̄ᵀ and R_c = R − n ȳ z̄ᵀ of every view."""
    return tuple(
        _centred_view(stats, m, data, groups)
        for m, (data, groups) in enumerate(zip(rows.views, rows.groups, strict=True))
    )


def _centred_view(stats: Statistics, m: int, data: Observations, groups: slice) -> ViewStatistics:
    n, columns, y_sum = data.n, data.columns, stats.y_sum[m]
    z_mean = stats.z_group[groups] / n[:, None]
    y_mean = y_sum / n[columns.label]
    y_square = stats.y_square[m] - y_sum * y_mean
    shift = n[:, None] * pack_outer(z_mean)
    S = M = unpack(stats.S_group[groups] - shift, z_mean.shape[1])
    if data.augmented:
        M = unpack(stats.M_group[groups] - shift, z_mean.shape[1])
    R = stats.R[m] - y_sum[:, None] * z_mean[columns.label]
    return ViewStatistics(n, columns, y_mean, y_square, z_mean, S, M, R, float(stats.excess[m]))


# ---------------------------------------------------------------- global step


@dataclass(frozen=True, eq=False)
class Spectrum:
    """(γ_d A + τ_d S_g)^-1 = B_g diag(scales_d) B_gᵀ of every column d, g its group."""

    basis: Array  # (G, K, L)
    scales: Array  # (D, L)
    columns: Groups

    @classmethod
    def of(cls, S: Array, columns: Groups, alpha: Array, gamma: Array, tau: Array) -> Spectrum:
        if columns.alone and columns.size > 1:
            try:
                return cls._each(S, columns, alpha, gamma, tau)
            except np.linalg.LinAlgError:  # fewer rows than factors and hardly any noise
                pass
        # A^-1/2 S A^-1/2 = U Λ Uᵀ  ⇒  B = A^-1/2 U, scales_d = 1 / (γ_d + τ_d λ)
        root = 1.0 / np.sqrt(alpha)
        eigenvalues, U = np.linalg.eigh(root[:, None] * S * root)
        eigenvalues = np.maximum(eigenvalues, 0.0)[columns.label]
        scales = 1.0 / (gamma[:, None] + tau[:, None] * eigenvalues)
        return cls(root[:, None] * U, scales, columns)

    @classmethod
    def _each(cls, S: Array, columns: Groups, alpha: Array, gamma: Array, tau: Array) -> Spectrum:
        # Where no two columns share S, (γ_d A + τ_d S_d)^-1 = L^-T L^-1 is cheaper.
        precision = tau[:, None, None] * S
        k = np.arange(len(alpha))
        precision[:, k, k] += gamma[:, None] * alpha
        inverse = np.linalg.inv(np.linalg.cholesky(precision))
        return cls(inverse.swapaxes(-1, -2), np.ones((len(gamma), len(alpha))), columns)

    def solve(self, r: Array) -> Array:
        """(γ_d A + τ_d S_g)^-1 r_d of every column: (D, K)."""
        along = self.columns.matmul(r, self.basis) * self.scales
        return self.columns.matmul(along, self.basis.swapaxes(-1, -2))


def metric(s: ViewStatistics, alpha: Array, gamma: Array, tau: Array, rho: float) -> Spectrum:
    """The metric in which coordinate ascent moves ⟨w_d⟩: γ_d A + τ_d (M + ρ (S − M))."""
    return Spectrum.of(s.M + rho * (s.S - s.M), s.columns, alpha, gamma, tau)


def update_weights(
    s: ViewStatistics, alpha: Array, gamma: Array, tau: Array, rho: float = 1.0
) -> Weights:
    """q(w_d, b_d) of all columns, the flat bias integrated jointly with the weights."""
    # Σ_wd = (γ_d A + τ_d S_c)^-1
    covariance = Spectrum.of(s.S, s.columns, alpha, gamma, tau)
    # ⟨w_d⟩ = τ_d Σ_wd r_c,d where ρ = 1
    step = covariance if rho == 1.0 else metric(s, alpha, gamma, tau, rho)
    return Weights(
        step.solve(tau[:, None] * s.R),
        covariance.basis,
        covariance.scales,
        s.columns,
        s.y_mean,
        s.z_mean,
        1.0 / (s.n_column * tau),
    )


def misfit(q: Weights, s: ViewStatistics) -> Array:
    """Σ_n (y_nd − ⟨w_d⟩·⟨z_n⟩ − ⟨b_d⟩)² of every column: (D,)."""
    return np.asarray(s.y_square + ((q.columns.matmul(q.mean, s.M) - 2.0 * s.R) * q.mean).sum(1))


def blur(q: Weights, s: ViewStatistics) -> Array:
    """Σ_n var(⟨w_d⟩·z_n) of every column, what the uncertainty of the samples adds: (D,)."""
    return np.asarray((q.columns.matmul(q.mean, s.S - s.M) * q.mean).sum(1))


def expected_residual(q: Weights, s: ViewStatistics, rho: float = 1.0) -> Array:
    """Σ_n E(y_nd − w_d·z_n − b_d)² of every column, from the statistics alone: (D,).

    With ρ the samples' variances count less: a log-likelihood bends less than its bound.
    """
    of_w = (quadratic_diagonals(q.basis, s.S)[q.columns.label] * q.scales).sum(1)
    residual = misfit(q, s) + rho * blur(q, s) + of_w
    return np.asarray(np.maximum(residual, 0.0) + s.n_column * q.bias_variance)


def update_tau(view: ViewPosterior, q: Weights, s: ViewStatistics) -> Precision:
    """a = a0 + n/2, b = b0 + ½ E‖y − Wz − b‖², summed over the columns that share τ."""
    if isinstance(view.tau, Known) or isinstance(view.tau_prior, Known):
        return view.tau
    n, residual = s.n_column, expected_residual(q, s)
    if view.tau.rate.size == 1:
        n, residual = n.sum(keepdims=True), residual.sum(keepdims=True)
    prior = view.tau_prior
    return Gamma(prior.shape + 0.5 * n, prior.rate + 0.5 * residual)


def update_alpha(prior: Precision, q: Weights, gamma: Array) -> Precision:
    """a = a0 + D/2, b = b0 + ½ Σ_d ⟨γ_d⟩⟨w_dk²⟩."""
    if isinstance(prior, Known):
        return prior
    return Gamma(prior.shape + 0.5 * len(gamma), prior.rate + 0.5 * gamma @ q.square)


def update_gamma(prior: Gamma, q: Weights, alpha: Array) -> Gamma:
    """a = a0 + K/2, b = b0 + ½ Σ_k ⟨α_k⟩⟨w_dk²⟩."""
    return Gamma(prior.shape + 0.5 * len(alpha), prior.rate + 0.5 * q.square @ alpha)


def update_alpha_prior(view: ViewPosterior) -> Precision:
    """The scale c of a spectral prior Gamma(ν/2, ν energy_k / 2c): c = mean of ⟨α_k⟩ energy_k."""
    if view.energy is None or isinstance(view.alpha_prior, Known):
        return view.alpha_prior
    c = float(np.mean(view.alpha.mean * view.energy))
    shape = view.alpha_prior.shape
    return Gamma(shape, shape * view.energy / c)


def moves(view: ViewPosterior, s: ViewStatistics, competing: bool) -> Array:
    """Steps in η that stand for the uncertainty of z in a cubature: (·, D).

    √3 standard deviations, in all columns at once, or along the principal axes of columns that
    compete, which vary together.
    """
    q = view.weights
    if not competing:
        return np.asarray(np.sqrt(3.0 * np.maximum(blur(q, s), 0.0) / s.n_column)[None])
    size, axes = np.linalg.eigh(q.mean @ (s.S - s.M)[0] @ q.mean.T / s.n[0])
    return np.asarray(np.sqrt(3.0 * np.maximum(size, 0.0))[:, None] * axes.T)


def sag(data: Observations, eta: Array, steps: Array) -> float:
    """Σ_n [g(η) − mean of g(η ± step)], summed over the steps."""
    middle = data.tangent(eta)[0].sum()
    ends = (data.tangent(eta + sign * step)[0].sum() for step in steps for sign in (1.0, -1.0))
    return float(len(steps) * middle - 0.5 * sum(ends))


def soften(view: ViewPosterior, s: ViewStatistics, fall: float) -> ViewPosterior:
    """Let ρ be such that the likelihood term is its exact expectation over z, Σ E g.

    The cubature has Σ E g = Σ g − fall/3, the term Σ g − ½ ρ Σ κ var. ρ only ever falls, so that
    the bound only ever rises.
    """
    variance = float(view.precision @ blur(view.weights, s))
    if variance <= _LEAST_BLUR * s.n.sum():
        return view  # the samples are known; differences of g would be rounding
    return replace(view, rho=min(view.rho, max(2.0 / 3.0 * fall / variance, _LEAST_RHO)))


def update_view(view: ViewPosterior, s: ViewStatistics) -> ViewPosterior:
    """One sweep over the global factors of a view."""
    q = update_weights(s, view.alpha.mean, view.column_precision, view.precision, view.rho)
    tau = update_tau(view, q, s)
    alpha = update_alpha(view.alpha_prior, q, view.column_precision)
    gamma = None if view.gamma is None else update_gamma(view.gamma_prior, q, alpha.mean)
    updated = replace(view, weights=q, tau=tau, alpha=alpha, gamma=gamma)
    return replace(updated, alpha_prior=update_alpha_prior(updated))


def global_step(state: State, stats: tuple[ViewStatistics, ...]) -> State:
    """Every view's global factors from its centred statistics."""
    return tuple(update_view(view, s) for view, s in zip(state, stats, strict=True))
