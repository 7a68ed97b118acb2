"""Mean and variance of w·z + b under q."""

from __future__ import annotations

import numpy as np

from kofa.inference.local_step import AT_ONCE, Latent
from kofa.inference.posterior import Weights
from kofa.linalg import Array, by_rows, quadratic_diagonals

_LEAST_CONTRAST = -0.75  # of a variance that is added to one


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


def _variances_along(W: Array, covariances: Array) -> Array:
    """wᵀ Σ w of every covariance (P, K, K) and row w (D, K): (P, D)."""
    if len(W) * len(covariances) * W.shape[1] < AT_ONCE:
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
