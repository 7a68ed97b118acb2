"""What is known of a view, as its likelihood encodes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kofa.likelihoods.base import Likelihood
from kofa.likelihoods.cubature import gauss_hermite
from kofa.linalg import Array, BoolArray

_NODES = 12  # of a rule for η


@dataclass(frozen=True, eq=False)
class Observed:
    """Encoded values (n, D), zero where missing."""

    values: Array
    mask: BoolArray  # (n, D)
    likelihood: Likelihood

    @classmethod
    def of(cls, encoded: Array, likelihood: Likelihood) -> Observed:
        """From values that are NaN where missing."""
        missing = np.isnan(encoded)
        return cls(np.where(missing, 0.0, encoded), ~missing, likelihood)

    def tangent(self, eta: Array) -> tuple[Array, Array]:
        """Log-likelihood and slope of each entry at η (n, D), zero where missing."""
        value, slope = self.likelihood.tangent(self.values, eta)
        return np.where(self.mask, value, 0.0), np.where(self.mask, slope, 0.0)

    def pull(self, mean: Array, variance: Array) -> Array:
        """∂/∂mean of log E p(t | η), η ~ N(mean, variance): the mean of g′ given t; (n, D)."""
        nodes, log_weights = gauss_hermite(_NODES)
        total, slopes, highest = 0.0, 0.0, np.full(mean.shape, -np.inf)
        for x, log_weight in zip(nodes, log_weights, strict=True):  # all at once are too many
            value, slope = self.tangent(mean + np.sqrt(variance) * x)
            before, highest = highest, np.maximum(highest, value + log_weight)
            weight, shrunk = np.exp(value + log_weight - highest), np.exp(before - highest)
            total, slopes = total * shrunk + weight, slopes * shrunk + weight * slope
        return np.asarray(slopes / total)

    @property
    def typical(self) -> Array:
        """η of each column where nothing else is known: (D,).

        Half a one, or half a count, more has been seen than there is: a column of zeros may have
        one yet.
        """
        if not self.likelihood.has("at_mean"):
            return np.zeros(self.values.shape[1])
        n = self.mask.sum(axis=0)
        return np.asarray(self.likelihood.at_mean((self.values.sum(axis=0) + 0.5) / (n + 1.0)))
