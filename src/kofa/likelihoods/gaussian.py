"""Real values: Gaussian, with a noise that is learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import ndtri

from kofa.data.scaling import REACH, Scaling
from kofa.data.tables import Table
from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, BoolArray


@dataclass(frozen=True, eq=False)
class Gaussian(Likelihood):
    """y ~ N(η, 1/τ) on the scale of the columns, τ learnt.

    A constant column has no part in inference: with a noise near zero it would outweigh the others.
    """

    predicts_by_mean: ClassVar[bool] = True
    scaling: Scaling

    @classmethod
    def resolve(cls, table: Table, by_column: bool = True) -> Self:
        return cls(Scaling.fit(table.values, by_column, cls.unit, no_spread=0.0))

    @property
    def varies(self) -> BoolArray:
        """The columns that inference sees: (D,)."""
        return np.asarray(self.scaling.spread > 0)

    def encode(self, values: Array) -> Array:
        encoded = self._encode(values)
        return np.clip(encoded, -REACH, REACH, out=encoded)

    def seen(self, values: Array) -> BoolArray:
        return super().seen(self._varying(values))

    def _encode(self, values: Array) -> Array:
        return self.scaling.take(self.varies).encode(self._varying(values))

    def _varying(self, values: Array) -> Array:
        """The columns that inference sees, as they are where these are all."""
        return values if self.varies.all() else values[:, self.varies]

    def beyond(self, values: Array) -> BoolArray:
        return np.asarray((np.abs(self._encode(values)) > REACH).any(axis=1))

    def of_all_columns(self, values: Array) -> Array:
        varies = self.varies
        whole = np.zeros((*values.shape[:-1], len(varies)))
        whole[..., varies] = values
        return whole

    @property
    def curvature(self) -> None:
        return None

    def _decode(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Mean and standard deviation in the user's units, or their logarithms."""
        mean, std = self.of_all_columns(mean), self.of_all_columns(np.sqrt(variance))
        return self.scaling.decode(mean), self.scaling.decode_std(std)

    def predict(self, mean: Array, variance: Array) -> Array:
        return self._decode(mean, variance)[0]

    def std(self, mean: Array, variance: Array) -> Array:
        return self._decode(mean, variance)[1]

    def quantile(self, mean: Array, variance: Array, p: float) -> Array:
        mean, std = self._decode(mean, variance)
        return np.asarray(mean + ndtri(p) * std)

    def log_unit(self, values: Array) -> Array:  # noqa: ARG002
        return -np.log(self.scaling.spread[self.varies])

    def in_units(self, differences: Array) -> Array:
        return self.scaling.decode_std(self.of_all_columns(differences))

    def widths(self, n_columns: int) -> tuple[int, int]:
        return n_columns, int(self.varies.sum())

    def fault(self, n_columns: int) -> str:  # noqa: ARG002
        if self.scaling.unit != self.unit:
            return "it is on another scale"
        if not np.isfinite(self.scaling.spread).all():  # it is infinite only in kernels
            return "entries of its spread are not finite"
        return "" if self.varies.any() else "none of its columns varies"


def of_similarities(n_landmarks: int, scale: float) -> Gaussian:
    """What is seen of a kernel: similarities with its landmarks, on one scale."""
    ones = np.ones(n_landmarks)
    return Gaussian(Scaling(0.0 * ones, scale * ones))
