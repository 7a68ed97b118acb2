"""What is known of a view, as its likelihood encodes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, BoolArray


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
