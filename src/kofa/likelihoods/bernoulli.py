"""Zeros and ones: a probit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import erfcx, ndtr, ndtri

from kofa.data.tables import Table
from kofa.likelihoods.base import Likelihood, refuse
from kofa.likelihoods.cubature import CERTAIN
from kofa.linalg import Array


@dataclass(frozen=True, eq=False)
class Bernoulli(Likelihood):
    """Probit: P(t = 1) = Φ(η). The truncated normal's bound has κ = 1."""

    predicts_by_mean: ClassVar[bool] = True
    n_columns: int

    @classmethod
    def check(cls, table: Table) -> None:
        bad = (table.dense != 0) & (table.dense != 1) & ~np.isnan(table.dense)
        refuse(table, bad, "0, 1 or missing", "recode it, or declare the view as another kind")

    @classmethod
    def resolve(cls, table: Table, by_column: bool = True) -> Self:  # noqa: ARG003
        return cls(table.values.shape[1])

    @property
    def curvature(self) -> Array:
        return np.ones(self.n_columns)

    def tangent(self, targets: Array, eta: Array) -> tuple[Array, Array]:
        sign = 2.0 * targets - 1.0
        x = np.minimum(sign * eta, CERTAIN)
        # erfcx(−x/√2) = 2 Φ(x) exp(x²/2) gives both log Φ and φ/Φ
        scaled = erfcx(-x / np.sqrt(2.0))
        return np.log(0.5 * scaled) - 0.5 * x * x, sign * np.sqrt(2.0 / np.pi) / scaled

    def at_mean(self, mean: Array) -> Array:
        return np.asarray(ndtri(mean))

    def predict(self, mean: Array, variance: Array) -> Array:  # noqa: ARG002
        return (mean > 0).astype(float)

    def probability(self, mean: Array, variance: Array) -> Array:
        return np.asarray(ndtr(mean / np.sqrt(1.0 + variance)))

    def log_predictive(self, targets: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
        width = np.sqrt(1.0 + variance)
        value, slope = self.tangent(targets, mean / width)
        return value, slope / width
