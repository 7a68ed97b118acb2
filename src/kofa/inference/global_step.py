"""Weights, precisions and noise of each view, from the statistics alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kofa.inference.own_bases import OwnBases, inverse_root
from kofa.inference.pattern_sums import CentredSums, Packed
from kofa.inference.posterior import Gamma, Known, Precision, State, ViewPosterior, Weights
from kofa.inference.scales import Scales
from kofa.inference.statistics import ViewStatistics
from kofa.linalg import Array, Groups, pack, pieces, products, unpack


@dataclass(frozen=True, eq=False)
class Spectrum:
    """(γ_d A + τ_d S_g)^-1 = B_g diag(scales_d) B_gᵀ of every column d, g its group."""

    basis: Array  # (G, K, L)
    scales: Array | Scales  # (D, L)
    columns: Groups
    log_volume: Array  # (G,): log |det B_g|

    @classmethod
    def of(cls, S: Packed, columns: Groups, alpha: Array, gamma: Array, tau: Array) -> Spectrum:
        """`S` (G, K(K+1)/2) is packed."""
        # A^-1/2 S A^-1/2 = U Λ Uᵀ  ⇒  B = A^-1/2 U, scales_d = 1 / (γ_d + τ_d λ)
        root = 1.0 / np.sqrt(alpha)
        eigenvalues, U = np.linalg.eigh(root[:, None] * unpack(S[:], len(root)) * root)
        scales = Scales(gamma, tau, np.maximum(eigenvalues, 0.0), columns)
        return cls(root[:, None] * U, scales, columns, np.full(len(S), np.log(root).sum()))

    @classmethod
    def of_own(cls, bases: OwnBases, columns: Groups) -> Spectrum:
        """Of columns that have holes of their own."""
        basis, one = np.asarray(bases), np.broadcast_to(1.0, (len(bases), len(bases.alpha)))
        return cls(basis, one, columns, np.linalg.slogdet(basis)[1])

    def solve(self, r: Array) -> Array:
        """(γ_d A + τ_d S_g)^-1 r_d of every column: (D, K)."""
        along = self.columns.matmul(r, self.basis)
        for some in pieces(*along.shape):
            along[some] *= self.scales[some]
        return self.columns.matmul(along, self.basis.swapaxes(-1, -2))


def metric(s: ViewStatistics, alpha: Array, gamma: Array, tau: Array, rho: float) -> Spectrum:
    """The metric in which coordinate ascent moves ⟨w_d⟩: γ_d A + τ_d (M + ρ (S − M))."""
    packed = s.packed
    if s.packed_of_means is not None:
        packed = s.packed_of_means[:] + rho * (s.packed[:] - s.packed_of_means[:])
    if s.columns.alone and s.columns.size > 1:
        try:
            return Spectrum.of_own(OwnBases(packed, alpha, gamma, tau), s.columns)
        except np.linalg.LinAlgError:
            pass
    return Spectrum.of(packed, s.columns, alpha, gamma, tau)


def update_weights(
    s: ViewStatistics, alpha: Array, gamma: Array, tau: Array, rho: float = 1.0
) -> Weights:
    """q(w_d, b_d) of all columns, the flat bias integrated jointly with the weights."""
    if s.columns.alone and s.columns.size > 1:
        try:
            return _update_own(s, alpha, gamma, tau, rho)
        except np.linalg.LinAlgError:  # fewer rows than factors and hardly any noise
            pass
    # Σ_wd = (γ_d A + τ_d S_c)^-1
    covariance = Spectrum.of(s.packed, s.columns, alpha, gamma, tau)
    # ⟨w_d⟩ = τ_d Σ_wd r_c,d where ρ = 1
    step = covariance if rho == 1.0 else metric(s, alpha, gamma, tau, rho)
    mean = step.solve(tau[:, None] * s.R)
    return _weights(s, tau, mean, covariance.basis, covariance.scales).with_known(
        covariance.log_volume
    )


def _weights(
    s: ViewStatistics, tau: Array, mean: Array, basis: Array | OwnBases, scales: Array | Scales
) -> Weights:
    bias_variance = 1.0 / (s.n_column * tau)
    return Weights(mean, basis, scales, s.columns, s.y_mean, s.z_mean, bias_variance)


def _update_own(s: ViewStatistics, alpha: Array, gamma: Array, tau: Array, rho: float) -> Weights:
    """The same of columns that have holes of their own, in one pass over these."""
    n, k = s.R.shape
    mean, variance, log_volume, residual = (np.empty(of) for of in ((n, k), (n, k), n, n))
    packed = None if isinstance(s.packed, CentredSums) else np.empty(s.packed.shape)
    for some in pieces(n, k**2):
        S = unpack(s.packed[some], k)
        # Σ_wd = HᵀH, H = L^-1 of γ_d A + τ_d S_d = L Lᵀ, is cheaper here than eigenvectors.
        half, log_volume[some] = inverse_root(S, alpha, gamma[some], tau[some])
        covariance = half.swapaxes(-1, -2) @ half
        step = half
        if s.packed_of_means is not None and rho != 1.0:
            M = unpack(s.packed_of_means[some], k)
            step, _ = inverse_root(M + rho * (S - M), alpha, gamma[some], tau[some])
        # ⟨w_d⟩ = τ_d Σ_wd r_c,d where ρ = 1
        r = tau[some, None] * s.R[some]
        w = mean[some] = (step.swapaxes(-1, -2) @ (step @ r[..., None]))[..., 0]
        variance[some] = np.diagonal(covariance, axis1=-2, axis2=-1)
        residual[some] = products(S, covariance)
        if s.packed_of_means is None:
            residual[some] += ((S @ w[..., None])[..., 0] * w).sum(axis=1)
        if packed is not None:
            packed[some] = pack(covariance)
    basis = OwnBases(s.packed, alpha, gamma, tau, packed=packed)
    q = _weights(s, tau, mean, basis, np.broadcast_to(1.0, (n, k))).with_known(log_volume, variance)
    if s.packed_of_means is None:
        residual += s.y_square - 2.0 * (s.R * mean).sum(1)
        s.residuals.clear()
        s.residuals[q, 1.0] = _at_least_bias(residual, q, s)
    return q


def _at_least_bias(residual: Array, q: Weights, s: ViewStatistics) -> Array:
    """With what the bias adds, where rounding made nothing negative."""
    return np.maximum(residual, 0.0) + s.n_column * q.bias_variance


def residual_of_means(q: Weights, s: ViewStatistics) -> Array:
    """Σ_n (y_nd − ⟨w_d⟩·⟨z_n⟩ − ⟨b_d⟩)² of every column: (D,)."""
    if q.columns.alone:
        M = s.packed if s.packed_of_means is None else s.packed_of_means
        return np.asarray(s.y_square + _own_squares(q, M) - 2.0 * (s.R * q.mean).sum(1))
    return np.asarray(s.y_square + ((q.columns.matmul(q.mean, s.M) - 2.0 * s.R) * q.mean).sum(1))


def residual_of_z(q: Weights, s: ViewStatistics) -> Array:
    """Σ_n var(⟨w_d⟩·z_n) of every column, what the uncertainty of the samples adds: (D,)."""
    if q.columns.alone and s.packed_of_means is not None:
        return _own_squares(q, s.packed, s.packed_of_means)
    return np.asarray((q.columns.matmul(q.mean, s.S - s.M) * q.mean).sum(1))


def _own_squares(q: Weights, packed: Packed, less: Packed | None = None) -> Array:
    """⟨w_d⟩ᵀ M_d ⟨w_d⟩ for a packed matrix of each column, or for a difference of two: (D,)."""
    n, k = q.mean.shape
    found = np.empty(n)
    for some in pieces(n, k**2):
        M = packed[some] if less is None else packed[some] - less[some]
        w = q.mean[some]
        found[some] = ((unpack(M, k) @ w[..., None])[..., 0] * w).sum(axis=1)
    return found


def expected_residual(q: Weights, s: ViewStatistics, rho: float = 1.0) -> Array:
    """Σ_n E(y_nd − w_d·z_n − b_d)² of every column, from the statistics alone: (D,).

    With ρ the samples' variances count less: a log-likelihood bends less than its bound.
    """
    if (q, rho) not in s.residuals:
        residual = residual_of_means(q, s) + q.traces(s.packed)
        if s.packed_of_means is not None:
            residual += rho * residual_of_z(q, s)
        s.residuals.clear()
        s.residuals[q, rho] = _at_least_bias(residual, q, s)
    return s.residuals[q, rho]


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


def update_view(view: ViewPosterior, s: ViewStatistics) -> ViewPosterior:
    """One sweep over the global factors of a view."""
    q = update_weights(s, view.alpha.mean, view.column_precision, view.precision, view.rho)
    tau = update_tau(view, q, s)
    alpha = update_alpha(view.alpha_prior, q, view.column_precision)
    gamma = None if view.gamma is None else update_gamma(view.gamma_prior, q, alpha.mean)
    return replace(view, weights=q, tau=tau, alpha=alpha, gamma=gamma)


def global_step(state: State, stats: Mapping[str, ViewStatistics]) -> State:
    """Every view's global factors from its centred statistics."""
    return {name: update_view(view, stats[name]) for name, view in state.items()}
