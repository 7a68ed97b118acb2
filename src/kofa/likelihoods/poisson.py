"""Counts: Poisson, with a rate that grows linearly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Self

import numpy as np
from scipy.special import gammaln, ndtr, pdtr, xlogy

from kofa.data.scaling import REACH, Unit
from kofa.data.stored import blocks
from kofa.data.tables import Table
from kofa.errors import DataError
from kofa.likelihoods.base import Likelihood, refuse
from kofa.likelihoods.cubature import NODES, gauss_hermite, row_slices
from kofa.linalg import Array, BoolArray


@dataclass(frozen=True, eq=False)
class Poisson(Likelihood):
    """t ~ Poisson(s_d softplus(η)), s_d about the mean of the column; robust to rare large counts.

    Without s_d the bound's curvature grows with the counts while that of g at its peak falls
    (t / η²), so that large counts converge ever more slowly and look ever more certain. With it,
    typical counts sit where softplus bends and both curvatures agree.

    A single count far above the others would still set the curvature of its whole column. So a
    count above `most` counts as Poisson only down to the rate where g bends as much as the
    others may, and below it as the parabola that continues g: a sample with 1000 where 3 were
    expected is pulled up, but only so far.
    """

    whole: ClassVar[bool] = True
    unit: ClassVar[Unit] = "log1p"
    rate: Array  # (D,): s_d
    most: Array  # (D,): the largest count seen, or four times the mean and a few if that is less

    @classmethod
    def check(cls, table: Table) -> None:
        t = table.dense
        refuse(table, t < 0, "counts (0, 1, 2, …)", kinds=["Real"])
        fractions = (t != np.floor(t)) & ~np.isnan(t)
        kinds = ("Real", "Positive")
        refuse(table, fractions, "whole counts (0, 1, 2, …)", "round them", kinds)

    @classmethod
    def resolve(cls, table: Table, by_column: bool = True) -> Self:  # noqa: ARG003
        n, most = np.zeros(()), np.ones(())
        for t in blocks(table.values):
            n = n + (~np.isnan(t)).sum(axis=0)
            most = np.fmax(most, np.fmax.reduce(t, axis=0))
        for _ in range(_TRIMS):  # large counts are to move the mean as little as the rest
            total = sum(np.nansum(np.minimum(t, most), axis=0) for t in blocks(table.values))
            rate = (total + 0.5) / n  # never zero
            most = np.minimum(most, 4.0 * rate + 3.0)
        large = rate > _MOST
        if large.any():
            j = int(np.argmax(large))
            what = f"expected counts of at most {_MOST:g} on average"
            cure = "declare the view as kofa.Positive(), or divide it"
            raise DataError(what, table.name, table.column(j), got=float(rate[j]), cure=cure)
        return cls(rate, most)

    def encode(self, values: Array) -> Array:
        return np.minimum(values, REACH * self.most)

    def beyond(self, values: Array) -> BoolArray:
        return np.asarray((values > REACH * self.most).any(axis=1))

    @property
    def curvature(self) -> Array:
        # softplus″ ≤ 1/4, and −(log softplus)″ ≤ .16710 everywhere
        return 0.25 * self.rate + _LOG_SOFTPLUS_BEND * self.most

    def tangent(self, targets: Array, eta: Array) -> tuple[Array, Array]:
        point = self._within_poisson(targets, eta)
        f, steepness = _softplus(point)
        value = _log_likelihood(targets, self.rate * f)
        slope = targets * (steepness / f) - self.rate * steepness
        if point is not eta:
            below, kappa = eta - point, self.curvature
            value += (slope - 0.5 * kappa * below) * below
            slope -= kappa * below
        return value, slope

    def _within_poisson(self, targets: Array, eta: Array) -> Array:
        """η, or for large counts the least at which −g″ ≤ κ: −(log softplus)″ ≤ softplus^-2."""
        large = np.nonzero(targets > self.most)
        if not len(large[0]):
            return eta
        f = np.sqrt(targets[large] / (_LOG_SOFTPLUS_BEND * self.most[large[1]]))
        point = eta.copy()
        point[large] = np.maximum(eta[large], _inverse_softplus(f))
        return point

    def saturated(self, targets: Array) -> Array:
        return _peak(targets)

    def at_mean(self, mean: Array) -> Array:
        with np.errstate(divide="ignore"):  # where all counts are zero
            return _inverse_softplus(mean / self.rate)

    def expected(self, eta: Array) -> tuple[Array, Array]:
        f, steepness = _softplus(eta)
        return self.rate * f, self.rate * steepness

    def predict(self, mean: Array, variance: Array) -> Array:
        weights, rates = self._rates(mean, variance)
        return np.asarray(rates @ weights)

    def std(self, mean: Array, variance: Array) -> Array:
        weights, rates = self._rates(mean, variance)
        expected = rates @ weights
        return np.sqrt(expected + (rates - expected[..., None]) ** 2 @ weights)

    def quantile(self, mean: Array, variance: Array, p: float) -> Array:
        """The smallest count with P(t ≤ count) ≥ p, by bisection."""
        quantile = np.empty(mean.shape)
        for where in row_slices(len(mean), NODES * mean.shape[1]):
            quantile[where] = self._bisect(mean[where], variance[where], p)
        return quantile

    def _bisect(self, mean: Array, variance: Array, p: float) -> Array:
        largest = self._rates(mean, variance)[1].max(axis=-1)
        low = np.full(mean.shape, -1.0)  # P(t ≤ low) < p ≤ P(t ≤ high)
        # The same for all p, so that quantiles never decrease with p.
        high = np.ceil(largest + _SURE * np.sqrt(largest) + 20.0)
        while True:
            # Whole numbers beyond 2^53 are further apart than one.
            undecided = high - low > np.maximum(1.0, np.spacing(high))
            if not undecided.any():
                return np.asarray(high)
            middle = np.floor(0.5 * (low + high))
            enough = self._at_most(np.maximum(middle, 0.0), mean, variance) >= p
            low = np.where(undecided & ~enough, middle, low)
            high = np.where(undecided & enough, middle, high)

    def _at_most(self, targets: Array, mean: Array, variance: Array) -> Array:
        """P(t ≤ targets) with η integrated out.

        Given η it falls with η over some width; where that is short against the spread of η it is
        all but a step, and the other way round is smooth.
        """
        weights, rates = self._rates(mean, variance)
        over_gamma, width = self._below(targets, mean, np.sqrt(variance))
        over_eta = pdtr(targets[..., None], rates) @ weights
        return np.where(width < np.sqrt(variance), over_gamma, over_eta)

    def _below(self, count: Array, mean: Array, sigma: Array) -> tuple[Array, Array]:
        """P(t ≤ count) = P(rate < G), G ~ Gamma(count + 1), integrated over G; the width in η.

        Wilson & Hilferty: the cube root of a Gamma variable is all but normal.
        """
        nodes, log_weights = gauss_hermite(NODES)
        a = count[..., None] + 1.0
        root = np.maximum(1.0 - 1.0 / (9.0 * a) + nodes / (3.0 * np.sqrt(a)), 1e-3)
        eta = _inverse_softplus(a * root**3 / self.rate[:, None])
        p = np.exp(log_weights)
        middle = eta @ p
        width = np.sqrt((eta - middle[..., None]) ** 2 @ p)
        z = (eta - mean[..., None]) / np.maximum(sigma, 1e-100)[..., None]
        return np.asarray(ndtr(z) @ p), width

    def fill(self, mean: Array, variance: Array) -> Array:
        return self.quantile(mean, variance, 0.5)

    @staticmethod
    def deviance(values: Array, predicted: Array) -> Array:
        return 2.0 * _fall(values, predicted)

    @staticmethod
    def typical(values: Array) -> Array:
        # With half a count more (Jeffreys) the rate of a column of zeros is not zero.
        return np.asarray((np.nansum(values, axis=0) + 0.5) / (~np.isnan(values)).sum(axis=0))

    def _rates(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Weights and rates of a quadrature over η: (nodes,), (n, D, nodes)."""
        nodes, log_weights = gauss_hermite(NODES)
        eta = mean[..., None] + np.sqrt(variance)[..., None] * nodes
        return np.exp(log_weights), self.rate[:, None] * _softplus(eta)[0]


_LOG_SOFTPLUS_BEND = 0.1671
_TRIMS = 5
# What a count of t tells of η has a precision of about t, by which roundings of η are multiplied in
# the bound: 1e-6 nats for counts of 1e9, 1e-4 here, below what ends a fit, a nat at 1e15.
_MOST = 1e11
_SURE = 18.0  # a Poisson count is never this many standard deviations above its mean


def _softplus(eta: Array) -> tuple[Array, Array]:
    """log(1 + e^η) and its slope, never zero."""
    eta = np.maximum(eta, -700.0)
    e = np.exp(-np.abs(eta))
    f = np.log1p(e)
    steepness = 1.0 / (1.0 + e)
    return f + np.maximum(eta, 0.0), np.where(eta < 0, e * steepness, steepness)


def _inverse_softplus(f: Array) -> Array:
    return np.asarray(f + np.log(-np.expm1(-f)))


def _log_likelihood(counts: Array, mu: Array) -> Array:
    """t log μ − μ − log t!; log t! from a table where counts are small: it is needed often.

    The terms of large counts cancel but for a few of their digits: there it is what the value falls
    below its peak at μ = t (Loader 2000).
    """
    if counts.max(initial=0.0) <= _TABLE:
        return np.asarray(counts * np.log(mu) - mu - _log_factorials()[counts.astype(np.intp)])
    return _peak(counts) - _fall(counts, mu)


def _peak(counts: Array) -> Array:
    """t log t − t − log t!, of large counts by Stirling's series."""
    small = np.minimum(counts, _TABLE)
    exact = xlogy(small, small) - small - _log_factorials()[np.nan_to_num(small).astype(np.intp)]
    large = np.maximum(counts, _TABLE)
    series = -0.5 * np.log(2.0 * np.pi * large) - 1.0 / (12.0 * large)
    return np.where(counts > _TABLE, series, exact)


def _fall(counts: Array, mu: Array) -> Array:
    """t log(t / μ) − t + μ."""
    away = (mu - counts) / np.maximum(counts, 1.0)
    near = (np.abs(away) < 0.5) & (counts > 0)
    of_near = counts * (away - np.log1p(np.where(near, away, 0.0)))
    return np.where(near, of_near, xlogy(counts, counts / mu) - counts + mu)


_TABLE = 10_000


@cache
def _log_factorials() -> Array:
    return np.asarray(gammaln(np.arange(_TABLE + 2.0) + 1.0))
