"""The outputs from which kernels are learnt."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kofa import tuning
from kofa.linalg import Array, BoolArray, Groups, IntArray, inverse_and_logdet


@dataclass(frozen=True, eq=False)
class Outputs:
    """What the kernels are to explain: columns on unit scale, some of which share their noise."""

    Y: Array  # (n, C), zero where missing
    noises: Groups  # of the columns
    patterns: list[tuple[IntArray, IntArray]]  # rows and columns that are observed together
    least_noise: Array  # (G,)

    @classmethod
    def of(cls, Y: Array, noises: Groups, labels: BoolArray | None = None) -> Outputs:
        """Columns with NaN where missing; those of `labels` are exact, all others were rounded."""
        seen = ~np.isnan(Y)
        groups = Groups.by_pattern(seen.T)
        patterns = [
            (np.flatnonzero(seen[:, first]), np.flatnonzero(groups.label == g))
            for g, first in enumerate(groups.first)
        ]
        rounding = np.array([resolution(y[~np.isnan(y)]) for y in Y.T]) ** 2 / 12.0
        rounding = rounding if labels is None else np.where(labels, 0.0, rounding)
        floor = np.clip(rounding, tuning.LEAST_NOISE, tuning.MOST_ROUNDING)
        least = np.array([floor[noises.label == g].min() for g in range(noises.size)])
        patterns = [(rows, columns) for rows, columns in patterns if len(rows)]
        return cls(
            np.clip(np.nan_to_num(Y), -tuning.OUTLIER, tuning.OUTLIER), noises, patterns, least
        )

    @property
    def seen(self) -> BoolArray:
        """Which entries are observed: (n, C)."""
        seen = np.zeros(self.Y.shape, dtype=bool)
        for rows, columns in self.patterns:
            seen[np.ix_(rows, columns)] = True
        return seen

    def some(self, rows: IntArray) -> Outputs:
        """Those of some rows, in ascending order."""
        patterns = [
            (np.flatnonzero(np.isin(rows, seen)), columns) for seen, columns in self.patterns
        ]
        patterns = [(seen, columns) for seen, columns in patterns if len(seen)]
        return replace(self, Y=self.Y[rows], patterns=patterns)

    def errors(self, K: Array, noise: Array, most: IntArray, rest: IntArray) -> Array:
        """Σ_d (y − ŷ)² of the rest, by row, ŷ of a Gaussian process of the others with kernel K."""
        total = np.zeros(len(K))
        for seen, columns in self.patterns:
            known, new = np.intersect1d(most, seen), np.intersect1d(rest, seen)
            if not len(known):
                continue
            k = K - K[known].mean(axis=0)
            k = k - k[:, known].mean(axis=1, keepdims=True)  # centred as over the known rows
            for g in np.unique(self.noises.label[columns]):
                mine = columns[self.noises.label[columns] == g]
                mean = self.Y[np.ix_(known, mine)].mean(axis=0)
                shifted = k[np.ix_(known, known)] + noise[g] * np.eye(len(known))
                a = np.linalg.solve(shifted, self.Y[np.ix_(known, mine)] - mean)
                away = self.Y[np.ix_(new, mine)] - mean - k[np.ix_(new, known)] @ a
                total[new] += (away**2).sum(axis=1)
        return np.asarray(total[rest])

    def left_out(self, K: Array, noise: Array) -> float:
        """Σ (y − ŷ)², each ŷ of a Gaussian process of all other rows with kernel K."""
        total = 0.0
        for seen, columns in self.patterns:
            for g in np.unique(self.noises.label[columns]):
                mine = columns[self.noises.label[columns] == g]
                total += _left_out(K[np.ix_(seen, seen)], self.Y[np.ix_(seen, mine)], noise[g])
        return total


def _left_out(K: Array, Y: Array, noise: float) -> float:
    """Σ (y − ŷ)², each ŷ that of a Gaussian process of the other rows with an unknown mean."""
    P = inverse_and_logdet((K + noise * np.eye(len(K)))[None])[0][0]
    along = P.sum(axis=1)
    P -= np.outer(along, along) / along.sum()
    return float(((P @ Y / np.diagonal(P)[:, None]) ** 2).sum())


def resolution(y: Array) -> float:
    """How finely a column is measured: the median over samples of the gap to other values.

    The gap is the mean distance to the next lower and the next higher value that occurs.
    """
    values, place = np.unique(y, return_inverse=True)
    if len(values) < 2:
        return 0.0
    gaps = np.diff(values)
    lower, upper = np.append(gaps[:1], gaps), np.append(gaps, gaps[-1:])
    return float(np.median((0.5 * (lower + upper))[place]))
