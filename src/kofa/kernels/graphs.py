"""The graph of rows and their nearest ones, and how what is put on a row spreads along it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from kofa import tuning
from kofa.linalg import Array, IntArray, squared_distances

_BLOCK = 2**20  # distances that are computed at a time


@dataclass(frozen=True, eq=False)
class Graph:
    """Rows v_i, each joined to its nearest ones j by w_ij = exp(−d_ij² / (σ_i σ_j)).

    d_ij is their distance, and σ_i that of the last to which v_i is joined; W has the larger of
    w_ij and w_ji. With S = D^-½ W D^-½, D the sums of W, what is put on a row spreads by
    exp(−t (I − S)) in time t.
    """

    rows: Array  # (m, D), scaled
    scale: Array  # (m,): σ
    directions: Array  # (m, r): D^-½ u of the leading eigenvectors u of S
    rates: Array  # (r,): 1 − e of their eigenvalues e

    @classmethod
    def of(cls, rows: Array, neighbours: int) -> Graph:
        """The graph of rows, each joined to so many others."""
        m = len(rows)
        plain = cls(rows, np.ones(m), np.empty((m, 0)), np.empty(0))
        last = [square[:, -1] for _, square in plain._nearest(rows, neighbours)]
        scale = np.sqrt(np.concatenate(last))
        scale = np.maximum(scale, tuning.GRAPH_LEAST_SCALE * float(scale.mean()) or 1.0)
        W = np.zeros((m, m))
        which, weights, _ = replace(plain, scale=scale)._weights(rows, neighbours)
        W[np.arange(m)[:, None], which] = weights
        W = np.maximum(W, W.T)
        root = 1.0 / np.sqrt(W.sum(axis=1))
        first = max(0, m - tuning.DIFFUSION_DIRECTIONS)
        e, U = scipy.linalg.eigh(W * root * root[:, None], subset_by_index=[first, m - 1])
        return cls(rows, scale, root[:, None] * U, np.maximum(1.0 - e, 0.0))

    def spread(self, X: Array, neighbours: int) -> tuple[Array, Array]:
        """What each row x puts on the directions, (n, r), and how near it is to any row, (n,).

        x is put on its nearest rows j with w_xj (1 − (d_xj / σ_x)^8). At the last of them that is
        zero: it does not jump where others become the nearest.
        """
        which, weights, square = self._weights(X, neighbours)
        weights *= 1.0 - (square / np.maximum(square[:, -1:], self.scale.min() ** 2)) ** 4
        total = np.zeros((len(X), self.directions.shape[1]))
        for j in range(which.shape[1]):  # no sum whose rounding depends on how many rows there are
            total += weights[:, j, None] * self.directions[which[:, j]]
        away = (square / (tuning.GRAPH_FAR * self.scale[which]) ** 2).min(axis=1)
        return total, np.exp(-0.5 * away**2)

    def _weights(self, X: Array, neighbours: int) -> tuple[IntArray, Array, Array]:
        """For each x: its nearest rows, w up to a factor, and d²."""
        found = list(self._nearest(X, neighbours))
        which, square = (np.concatenate(part) for part in zip(*found, strict=True))
        own = np.maximum(np.sqrt(square[:, -1:]), self.scale.min())
        scaled = square / (own * self.scale[which])
        # Far away all of them would be too small for a number.
        return which, np.exp(scaled.min(axis=1, keepdims=True) - scaled), square

    def _nearest(self, X: Array, neighbours: int) -> Iterator[tuple[IntArray, Array]]:
        """The nearest rows of each x, the nearest first, and their squared distances, in blocks.

        One more than the neighbours: a row of the graph is its own nearest.
        """
        n = min(neighbours + 1, len(self.rows))
        step = max(1, _BLOCK // len(self.rows))
        for start in range(0, len(X), step):
            square = squared_distances(X[start : start + step], self.rows)
            which = np.argpartition(square, n - 1, axis=1)[:, :n]
            order = np.argsort(np.take_along_axis(square, which, 1), axis=1, kind="stable")
            which = np.take_along_axis(which, order, 1)
            yield which, np.take_along_axis(square, which, 1)
