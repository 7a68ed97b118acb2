"""Sums of differences between all pairs of rows, feature by feature, within limits of memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import squareform

from kofa.linalg import Array

_CACHE = 2**15  # numbers that stay near the processor
_MOST_PACKED = 2**25  # differences of features that are kept, in single precision: 128 MB


def gap_sums(X: Array, V: Array, H: Array) -> Array:
    """Σ_nu H_nu |x_nj − v_uj|: (D,), block by block, in single precision on unit scale."""
    same = X is V
    if same:  # every pair once
        H = np.triu(H + H.T, 1)
    unit = _unit(V)
    x, v, h = (np.ascontiguousarray(a, dtype=np.float32) for a in (X / unit, V / unit, H))
    total, step = np.zeros(X.shape[1]), max(1, 2 * _CACHE // max(1, v.size))
    for start in range(0, len(x), step):
        rows, others = slice(start, start + step), slice(start if same else 0, None)
        gaps = x[rows, None, :] - v[others]
        np.abs(gaps, out=gaps)
        total += h[rows, others].ravel() @ gaps.reshape(-1, x.shape[1])
    return np.asarray(total * unit)


def _unit(V: Array) -> Array:
    return np.asarray(np.maximum(np.abs(V).max(axis=0), np.finfo(float).tiny))


@dataclass(frozen=True, eq=False)
class PackedGaps:
    """|x_nj − x_uj| of all pairs of rows n < u, for sums with many different H."""

    gaps: NDArray[np.float32]  # (pairs, D), on unit scale
    unit: Array  # (D,)

    @classmethod
    def of(cls, X: Array) -> PackedGaps | None:
        """None where they would take too much memory."""
        n, D = X.shape
        if n * (n - 1) // 2 * D > _MOST_PACKED:
            return None
        unit = _unit(X)
        x, gaps, start = (X / unit).astype(np.float32), np.empty((n * (n - 1) // 2, D), "f4"), 0
        for i in range(n - 1):
            np.abs(x[i + 1 :] - x[i], out=gaps[start : (start := start + n - 1 - i)])
        return cls(gaps, unit)

    def sums(self, H: Array) -> Array:
        """`gap_sums` with a symmetric H."""
        h, total = squareform(H, checks=False).astype(np.float32), np.zeros(len(self.unit))
        step = max(1, 2 * _CACHE // max(1, len(self.unit)))
        for start in range(0, len(h), step):
            some = slice(start, start + step)
            total += h[some] @ self.gaps[some]
        return np.asarray(2.0 * total * self.unit)
