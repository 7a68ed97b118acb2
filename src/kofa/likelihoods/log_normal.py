"""Positive values: Gaussian logarithms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from kofa.data.scaling import Unit
from kofa.data.tables import Table
from kofa.likelihoods.base import refuse
from kofa.likelihoods.gaussian import Gaussian
from kofa.linalg import Array


@dataclass(frozen=True, eq=False)
class LogNormal(Gaussian):
    """log y ~ N(η, 1/τ) on the scale of the logarithms, τ learnt."""

    unit: ClassVar[Unit] = "log"
    predicts_by_mean: ClassVar[bool] = False
    deviance_at: ClassVar[Literal["mean", "median"]] = "median"

    @classmethod
    def check(cls, table: Table) -> None:
        cure = "mark it as missing, add an offset"
        refuse(table, table.dense <= 0, "positive numbers", cure, ("Real", "Count"))

    def predict(self, mean: Array, variance: Array) -> Array:
        mean, std = self._decode(mean, variance)
        return _exp(mean + 0.5 * std**2)

    def std(self, mean: Array, variance: Array) -> Array:
        expected = self.predict(mean, variance)
        square = np.minimum(self._decode(mean, variance)[1] ** 2, _LARGEST_LOG)
        with np.errstate(over="ignore"):
            return np.minimum(expected * np.sqrt(np.expm1(square)), np.exp(_LARGEST_LOG))

    def quantile(self, mean: Array, variance: Array, p: float) -> Array:
        return _exp(super().quantile(mean, variance, p))

    @staticmethod
    def deviance(values: Array, predicted: Array) -> Array:
        return np.asarray((np.log(values) - np.log(predicted)) ** 2)

    @staticmethod
    def typical(values: Array) -> Array:
        return np.asarray(np.exp(np.nanmean(np.log(values), axis=0)))

    def log_unit(self, values: Array) -> Array:
        return super().log_unit(values) - np.log(values[:, self.varies])


_LEAST_LOG, _LARGEST_LOG = -708.0, 709.0  # of a number


def _exp(x: Array) -> Array:
    """e^x, or the largest number where that is larger, and the least above zero."""
    return np.exp(np.clip(x, _LEAST_LOG, _LARGEST_LOG))
