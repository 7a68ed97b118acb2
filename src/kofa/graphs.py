"""The graph of rows and their nearest ones, and how what is put on a row spreads along it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from kofa.linalg import Array, IntArray, squared_distances

_MOST_DIRECTIONS = 300  # that spread slowest; of the others little is left
_LEAST_SCALE = 0.1  # of a row among duplicates, relative to the mean over all rows
_FAR = 2.0  # local scales from the nearest row at which a row starts to be unlike all of them
_BLOCK = 2**20  # distances that are computed at a time


@dataclass(frozen=True, eq=False)
class Graph:
    """Rows v_i, each joined to its nearest ones j by w_ij = exp(−|v_i − v_j|² / (σ_i σ_j)).

    σ_i is the distance of a row to the last of its nearest. With S = D^-½ W D^-½, D the sums of
    W, what is put on a row spreads by G = exp(−t (I − S)) in time t.
    """

    rows: Array  # (m, D), scaled
    scale: Array  # (m,): σ
    directions: Array  # (m, r): D^-½ u of the leading eigenvectors u of S
    rates: Array  # (r,): 1 − e of their eigenvalues e

    @classmethod
    def of(cls, rows: Array, neighbours: int) -> Graph:
        """The graph of rows, each joined to so many others."""
        m = len(rows)
        plain = cls(rows, np.zeros(m), np.empty((m, 0)), np.empty(0))
        last = np.concatenate([d[:, -1] for _, d in plain._nearest(rows, neighbours)])
        scale = np.sqrt(last)
        scale = np.maximum(scale, _LEAST_SCALE * scale.mean() or 1.0)
        plain = cls(rows, scale, plain.directions, plain.rates)
        W = np.zeros((m, m))
        which, weights, _ = plain._weights(rows, neighbours)
        W[np.arange(m)[:, None], which] = np.exp(weights)
        W = np.maximum(W, W.T)
        root = 1.0 / np.sqrt(W.sum(axis=1))
        first = max(0, m - _MOST_DIRECTIONS)
        e, U = scipy.linalg.eigh(W * root * root[:, None], subset_by_index=[first, m - 1])
        return cls(rows, scale, root[:, None] * U, np.maximum(1.0 - e, 0.0))

    def spread(self, X: Array, neighbours: int) -> tuple[Array, Array]:
        """What each row x puts on the directions, (n, r), and how near it is to any row, (n,)."""
        which, weights, near = self._weights(X, neighbours)
        weights = np.exp(weights - weights.max(axis=1, keepdims=True))
        total = np.zeros((len(X), self.directions.shape[1]))
        for j in range(which.shape[1]):  # no sum whose rounding depends on how many rows there are
            total += weights[:, j, None] * self.directions[which[:, j]]
        return total, near

    def _weights(self, X: Array, neighbours: int) -> tuple[IntArray, Array, Array]:
        """For each x: its nearest rows, the logarithms of their weights, and how near one is."""
        found = [self._log_weights(which, d) for which, d in self._nearest(X, neighbours)]
        which, weights, near = (np.concatenate(part) for part in zip(*found, strict=True))
        return which, weights, near

    def _log_weights(self, which: IntArray, square: Array) -> tuple[IntArray, Array, Array]:
        own = np.maximum(np.sqrt(square[:, -1:]), self.scale.min())
        away = square[:, 0] / (_FAR * self.scale[which[:, 0]]) ** 2
        return which, -square / (own * self.scale[which]), np.exp(-0.5 * away**2)

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
