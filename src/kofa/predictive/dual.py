"""Columns that follow from all rows of a fit, where features hold only a part of the kernel.

K = U diag(e) Uᵀ + D, D what similarities between rows have that those with landmarks do not show.
With a mean that is not known and holes left out, (K + λ_d I) a_d = y_d − b_d, 1ᵀa_d = 0, over the
rows that have column d: by conjugate gradients, preconditioned with D at its mean diagonal.
"""

from __future__ import annotations

import numpy as np

from kofa.linalg import Array, BoolArray
from kofa.predictive.regression import Spectrum

_MOST_STEPS = 200
_EXACT = 1e-4  # of what is left of a column, relative to it


def solve(
    spectrum: Spectrum, D: Array, Y: Array, seen: BoolArray, lam: Array
) -> tuple[Array, Array]:
    """b (D,) and a (n, D) of columns Y, whatever stands where they were not seen."""
    U, e = spectrum.U, spectrum.e[:, None]
    n_seen = np.maximum(seen.sum(axis=0), 1.0)
    apart = lam + np.diagonal(D).mean()

    def centred(X: Array) -> Array:
        X = np.where(seen, X, 0.0)
        return np.where(seen, X - X.sum(axis=0) / n_seen, 0.0)

    def kernel(X: Array) -> Array:
        return np.asarray(U @ (e * (U.T @ X)) + D @ X.astype(D.dtype))

    def nearly_solved(X: Array) -> Array:
        return centred(X - U @ (e / (e + apart) * (U.T @ X)))

    a, residual = np.zeros(Y.shape), centred(Y)
    z = nearly_solved(residual)
    p, rz = z, (residual * z).sum(axis=0)
    goal = _EXACT**2 * (residual**2).sum(axis=0)
    for _ in range(_MOST_STEPS):
        if ((residual**2).sum(axis=0) <= goal).all():
            break
        Ap = centred(kernel(p) + lam * p)
        bend = (p * Ap).sum(axis=0)
        step = np.where(bend > 0.0, rz / np.where(bend > 0.0, bend, 1.0), 0.0)
        a, residual = a + step * p, residual - step * Ap
        z = nearly_solved(residual)
        rz, last = (residual * z).sum(axis=0), rz
        p = z + np.where(last > 0.0, rz / np.where(last > 0.0, last, 1.0), 0.0) * p
    away = np.where(seen, Y - kernel(a), 0.0)
    return away.sum(axis=0) / n_seen, a
