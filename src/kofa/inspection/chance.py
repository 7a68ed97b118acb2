"""How the mean of a feature set varies by chance where its features go together."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from kofa.errors import DataError
from kofa.linalg import Array, BoolArray, Groups

_DRAWS = 500  # of weights without meaning; the inflation has an error of √(2/500) = 6 %


@dataclass(frozen=True, eq=False)
class Chance:
    """How the difference between the mean weights of a set and the others varies by chance."""

    inflation: Array  # of its variance, by set and factor (S, K)
    skewness: Array
    freedom: int  # degrees of freedom of the variance

    @classmethod
    def of_independent(cls, members: csr_array, n_factors: int) -> Chance:
        """Of features that have nothing to do with one another."""
        n_sets, n_features = members.shape
        shape = (n_sets, n_factors)
        return cls(np.ones(shape), np.zeros(shape), n_features - 2)

    @classmethod
    def of_data(
        cls,
        left: Residuals,
        noise: Array,
        members: csr_array,
        absolute: bool,
        rng: np.random.Generator,
    ) -> Chance:
        """Of features that go together as residuals do, in the share of noise (S, K).

        True weights are in a set by chance alone, however its features go together; the noise that
        is added to them goes together. `absolute` is for √|weight|.
        """
        if absolute:
            shares, which = np.unique(noise.max(axis=0), return_inverse=True)
            # The same draws for each share
            z = (sizes(left, share, deepcopy(rng)) for share in shares)
            drawn = [_moments(one, _DRAWS - 1, members) for one in z]
            found = [drawn[k] for k in which]
        else:
            whole = _moments(left.z, left.freedom, members)
            found = [whole.mixed(share) for share in noise.T]
        inflation = np.stack([moments.inflation for moments in found], axis=1)
        skewness = np.stack([moments.skewness for moments in found], axis=1)
        freedom = min(left.freedom, members.shape[1] - 2)
        return cls(inflation, skewness if absolute else np.zeros_like(skewness), freedom)


# ---------------------------------------------------------------- what factors leave of the data


@dataclass(frozen=True, eq=False)
class Residuals:
    """What factors leave of each feature, and how sure it is that they explain the rest."""

    z: Array  # (n, D) with a mean square of one; NaN where it is missing or nothing varies
    t: Array  # (D, K) coefficients of the factors in units of their standard errors
    freedom: int

    @classmethod
    def fit(cls, data: Array, factors: Array) -> Residuals:
        """Regress each feature on all factors, on the samples that have it."""
        design = np.hstack([np.ones((len(data), 1)), factors])
        there = ~np.isnan(design).any(axis=1) & ~np.isnan(data).all(axis=1)
        data, design = data[there], design[there]
        freedom = len(data) - design.shape[1]
        if freedom < 2:
            what = f"expected at least 3 samples more than factors but {len(data)} have values"
            raise DataError(what, source="data", cure="pass more samples, or leave out data")
        z, t = np.full_like(data, np.nan), np.full((data.shape[1], design.shape[1]), np.nan)
        seen = ~np.isnan(data)
        patterns = Groups.by_pattern(seen.T)
        for columns, first in zip(patterns.members, patterns.first, strict=True):
            rows, places = seen[:, first], np.arange(data.shape[1])[columns]
            z[np.ix_(rows, places)], t[places] = _regress(data[np.ix_(rows, places)], design[rows])
        return cls(z, t[:, 1:], freedom)

    def noise_share(self, members: csr_array) -> Array:
        """How much of the variance of weights is noise (S, K): that of t by chance, over that of t.

        It is the variance within the set and the others, as in the test of the set.
        """
        if self.freedom <= 2:  # t has no variance
            return np.ones((members.shape[0], self.t.shape[1]))
        by_chance = self.freedom / (self.freedom - 2.0)
        _, variance = difference_of_means(np.where(np.isfinite(self.t), self.t, 0.0), members)
        return np.asarray(by_chance / np.maximum(variance, by_chance))


def _regress(y: Array, design: Array) -> tuple[Array, Array]:
    """Residuals as z scores, and t statistics (D, K + 1); NaN where nothing is left."""
    inverse = np.linalg.pinv(design)
    coefficients = inverse @ y
    left = y - design @ coefficients
    # The rank of an empty table is an error for NumPy 1.
    freedom = len(y) - (np.linalg.matrix_rank(design) if design.size else 0)
    spread = np.sqrt((left**2).sum(axis=0) / max(freedom, 1))
    varies = (spread > 1e-10 * np.abs(y).max(axis=0, initial=0.0)) & (freedom > 0)
    spread = np.where(varies, spread, np.nan)
    error = np.sqrt((inverse**2).sum(axis=1))  # of coefficients, where the noise has variance one
    with np.errstate(divide="ignore", invalid="ignore"):  # a constant factor has neither
        return left / spread, (coefficients / spread / error[:, None]).T


def root_of_size(weights: Array) -> Array:
    """√|w|: of normal weights it is nearly normal too, with a skewness of .07."""
    return np.asarray(np.sqrt(np.abs(weights)))


def sizes(left: Residuals, noise: float, rng: np.random.Generator) -> Array:
    """√|w| for weights drawn at random, as z scores (draws, D).

    A share of the variance of the weights is noise, that is, of factors that are drawn at random.
    """
    together = rng.standard_normal((_DRAWS, len(left.z))) @ np.nan_to_num(left.z)
    alone = rng.standard_normal(together.shape) * np.sqrt(left.freedom)
    constant = np.isnan(left.z).all(axis=0)
    found = root_of_size(np.sqrt(noise) * together + np.sqrt(1.0 - noise) * alone)
    found -= found.mean(axis=0)
    return np.asarray(found / np.where(constant, np.nan, found.std(axis=0, ddof=1)))


# ---------------------------------------------------------------- means of sets


def difference_of_means(W: Array, members: csr_array) -> tuple[Array, Array]:
    """Mean of each set minus mean of the others (S, K), and the variance s² within both."""
    m = np.asarray(members.sum(axis=1))[:, None]
    M = len(W) - m
    W = W - W.mean(axis=0)
    total = members @ W
    difference = total / m + total / M  # the others have the opposite sum
    within = (W**2).sum(axis=0) - difference**2 * m * M / len(W)
    return difference, np.maximum(within, 0.0) / (len(W) - 2)


@dataclass(frozen=True, eq=False)
class Moments:
    """Of the mean of a set of m features, and of the M others, by set.

    The inflation is the variance of their difference in units of what the t test takes it for:

        v = Σ_n (a_n − b_n)² / ν      a_n, b_n means of a row in the set, and in the others
        κ = (m − m Σ a_n²/ν + M − M Σ b_n²/ν) / (m + M − 2)
        inflation = (v / κ) / (1/m + 1/M)

    κ is what features that go together leave of the variance within the set and the others.
    Features that happen to cancel out are given no credit: it is at least one.
    """

    m: Array
    M: Array
    a: Array  # Σ a_n²/ν
    b: Array
    v: Array
    skewness: Array

    @property
    def inflation(self) -> Array:
        m, M = self.m, self.M
        kappa = (m - m * self.a + M - M * self.b) / (m + M - 2.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.v / np.maximum(kappa, 0.0) / (1.0 / m + 1.0 / M)
        return np.asarray(np.fmax(found, 1.0))

    def mixed(self, share: Array) -> Moments:
        """A share of what is here, by set, and the rest of independent features."""
        m, M, rest = self.m, self.M, 1.0 - share
        a, b = share * self.a + rest / m, share * self.b + rest / M
        return Moments(m, M, a, b, share * self.v + rest * (1.0 / m + 1.0 / M), self.skewness)


def _moments(z: Array, freedom: int, members: csr_array) -> Moments:
    """Over rows of z scores."""
    m = np.asarray(members.sum(axis=1), dtype=float)
    inside, outside = _means(z, ~np.isnan(z), members)
    apart = inside - outside
    a, b, v = (_mean_power(x, 2) * len(z) / freedom for x in (inside, outside, apart))
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = _mean_power(apart, 3) / _mean_power(apart, 2) ** 1.5
    return Moments(m, members.shape[1] - m, a, b, v, np.nan_to_num(skewness))


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
