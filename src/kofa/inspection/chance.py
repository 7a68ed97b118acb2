"""How the mean of a feature set varies by chance where its features go together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from kofa.errors import DataError
from kofa.linalg import Array, BoolArray, Groups

_DRAWS = 500  # of weights without meaning; the inflation has an error of √(2/500) = 6 %


@dataclass(frozen=True, eq=False)
class Chance:
    """How the difference between the mean weights of a set and the others varies by chance."""

    inflation: Array  # of its variance, by set
    skewness: Array
    freedom: int  # degrees of freedom of the variance

    @classmethod
    def of_independent(cls, members: csr_array) -> Chance:
        """Of features that have nothing to do with one another."""
        n_sets, n_features = members.shape
        return cls(np.ones(n_sets), np.zeros(n_sets), n_features - 2)

    @classmethod
    def of_data(
        cls, data: Array, factors: Array | None, members: csr_array, absolute: bool
    ) -> Chance:
        """Of features that go together as in data; `absolute` for √|weight|."""
        left, freedom = residuals(data, factors)
        limit = min(freedom, data.shape[1] - 2)
        if absolute:
            draws = sizes(left, np.random.default_rng(0))
            return cls(*by_chance(draws, len(draws) - 1, members), limit)
        inflation, skewness = by_chance(left, freedom, members)
        return cls(inflation, np.zeros_like(skewness), limit)  # weights may have either sign


def residuals(data: Array, factors: Array | None) -> tuple[Array, int]:
    """What the factors leave of each feature (n, D), as a z score, and the degrees of freedom.

    NaN where the data have none, and for features of which nothing varies.
    """
    one = np.ones((len(data), 1))
    design = one if factors is None else np.hstack([one, factors])
    there = ~np.isnan(design).any(axis=1) & ~np.isnan(data).all(axis=1)
    data, design = data[there], design[there]
    freedom = len(data) - int(np.linalg.matrix_rank(design)) if len(data) else 0
    if freedom < 2:
        what = f"expected at least 2 samples more than factors but {len(data)} have values"
        raise DataError(what, source="data", cure="pass more samples, or leave out data")
    seen, left = ~np.isnan(data), np.full_like(data, np.nan)
    patterns = Groups.by_pattern(seen.T)
    for columns, first in zip(patterns.members, patterns.first, strict=True):
        rows = seen[:, first]
        left[np.ix_(rows, np.arange(data.shape[1])[columns])] = _left(
            data[rows][:, columns], design[rows]
        )
    return left, freedom


def _left(y: Array, design: Array) -> Array:
    """Residuals of a regression with a mean square of one; NaN where nothing is left."""
    fitted, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    left = y - design @ fitted
    spread = np.sqrt((left**2).sum(axis=0) / max(len(y) - rank, 1))
    varies = (spread > 1e-10 * np.abs(y).max(axis=0, initial=0.0)) & (len(y) > rank)
    return np.asarray(left / np.where(varies, spread, np.nan))


def root_of_size(weights: Array) -> Array:
    """√|w|: of normal weights it is nearly normal too, with a skewness of .07."""
    return np.asarray(np.sqrt(np.abs(weights)))


def sizes(left: Array, rng: np.random.Generator) -> Array:
    """√|w| for weights w of factors drawn at random, as z scores (draws, D).

    Sizes of weights go together less than the weights do.
    """
    found = root_of_size(rng.standard_normal((_DRAWS, len(left))) @ np.nan_to_num(left))
    found -= found.mean(axis=0)
    spread = found.std(axis=0, ddof=1)
    return np.asarray(found / np.where(spread > 0, spread, np.nan))


def by_chance(z: Array, freedom: int, members: csr_array) -> tuple[Array, Array]:
    """Inflation and skewness of the difference of means, by set, over rows of z scores.

    The inflation is the variance of the difference in units of what the t test takes it for:

        v = Σ_n (a_n − b_n)² / ν      a_n, b_n means of a row in the set of m, and in the M others
        κ = (m − m Σ a_n²/ν + M − M Σ b_n²/ν) / (m + M − 2)
        inflation = (v / κ) / (1/m + 1/M)

    κ is what features that go together leave of the variance within the set and the others.
    Features that happen to cancel out are given no credit: it is at least one.
    """
    m = np.asarray(members.sum(axis=1), dtype=float)
    M = members.shape[1] - m
    inside, outside = _means(z, ~np.isnan(z), members)
    a, b, v = (_mean_power(x, 2) * len(z) / freedom for x in (inside, outside, inside - outside))
    kappa = (m - m * a + M - M * b) / (m + M - 2.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        inflation = v / np.maximum(kappa, 0.0) / (1.0 / m + 1.0 / M)
        skewness = _mean_power(inside - outside, 3) / _mean_power(inside - outside, 2) ** 1.5
    return np.fmax(inflation, 1.0), np.nan_to_num(skewness)


def _means(z: Array, seen: BoolArray, members: csr_array) -> tuple[Array, Array]:
    """Of the features that a row has (n, S): those in each set, and the others."""
    filled, counted = np.nan_to_num(z), seen.astype(float)
    total, count = (members @ filled.T).T, (members @ counted.T).T
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = total / count
        outside = (filled.sum(axis=1)[:, None] - total) / (counted.sum(axis=1)[:, None] - count)
    return inside, outside


def _mean_power(x: Array, power: int) -> Array:
    """By column, of the rows that have it."""
    seen = np.isfinite(x)
    total = (np.where(seen, x, 0.0) ** power).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(total / seen.sum(axis=0))
