"""What every kind of observation defines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from kofa.data.scaling import Unit
from kofa.data.tables import Table
from kofa.errors import DataError
from kofa.linalg import LOG_2PI, Array, BoolArray


@dataclass(frozen=True, eq=False)
class Likelihood:
    """One kind of observation, with all that fit resolved from the data.

    A new kind defines how to encode and check its values, its log-likelihood with slope and
    curvature, and what it predicts. Everything else follows.
    """

    reads_labels: ClassVar[bool] = False  # of any type, in one column
    competing: ClassVar[bool] = False  # the columns are alternatives: only differences count
    unit: ClassVar[Unit] = "value"  # in which a kernel compares samples
    predicts_by_mean: ClassVar[bool] = False  # `predict` does not use the variance
    deviance_at: ClassVar[Literal["mean", "median"]] = "mean"  # of what is predicted
    whole: ClassVar[bool] = False  # values are whole numbers, of which intervals may hold more

    # ---- encode and validate

    @classmethod
    def check(cls, table: Table) -> None:
        """Raise where a value cannot be of this kind; name the view, the column and the cure."""

    @classmethod
    def resolve(cls, table: Table, by_column: bool = True) -> Self:
        """The likelihood with everything that depends on the data fixed."""
        raise NotImplementedError

    def encode(self, values: Array) -> Array:
        """Targets (n, D) from a table's values, NaN where missing; an array of its own."""
        return values.copy()

    def seen(self, values: Array) -> BoolArray:
        """Rows with an observed value: those that are not all NaN when they are encoded."""
        return np.asarray(~np.isnan(values).all(axis=1))

    def of_all_columns(self, values: Array) -> Array:
        """What inference says of columns (…, D'), with zeros for those that it did not see."""
        return values

    def in_units(self, differences: Array) -> Array:
        """Differences in η (…, D') in the units of the values, or of their logarithms: (…, D)."""
        return differences

    def log_unit(self, values: Array) -> Array:  # noqa: ARG002
        """log |d encoded / d value|, by column or by entry."""
        return np.zeros(())

    def widths(self, n_columns: int) -> tuple[int, int]:
        """How many columns are predicted of a table of so many, and how many η there are."""
        return n_columns, n_columns

    def fault(self, n_columns: int) -> str:  # noqa: ARG002
        """What no table of so many columns resolves to; empty where nothing is wrong."""
        return ""

    def beyond(self, values: Array) -> BoolArray:
        """Rows with values that are too far away, which count as less far."""
        return np.zeros(len(values), dtype=bool)

    # ---- the Gaussian layer

    @property
    def curvature(self) -> Array | None:
        """κ_d of each column, the most that −∂²g/∂η² can be; None where the noise is learnt."""
        raise NotImplementedError

    def tangent(self, targets: Array, eta: Array) -> tuple[Array, Array]:
        """g(t, η) and its slope in η, each (n, D)."""
        raise NotImplementedError

    def pseudo_observation(self, targets: Array, eta: Array) -> tuple[Array, Array]:
        """y = η + g′/κ, and by how much g exceeds log N(y | η, 1/κ): each (n, D)."""
        kappa = self.curvature
        assert kappa is not None
        value, slope = self.tangent(targets, eta)
        excess = value + 0.5 * slope**2 / kappa + 0.5 * (LOG_2PI - np.log(kappa))
        return eta + slope / kappa, excess

    def saturated(self, targets: Array) -> Array:  # noqa: ARG002
        """The largest g(t, η) of any η, from which deviances count: (n, D) or one number."""
        return np.zeros(())

    def at_mean(self, mean: Array) -> Array:
        """η where the value to expect is this one, by column (D,)."""
        raise NotImplementedError

    # ---- predictive, for η ~ N(mean, variance); variance includes any learnt noise

    def predict(self, mean: Array, variance: Array) -> Array:
        """The value to expect."""
        raise NotImplementedError

    def std(self, mean: Array, variance: Array) -> Array:
        """Standard deviation of the value."""
        raise NotImplementedError

    def quantile(self, mean: Array, variance: Array, p: float) -> Array:
        """The value that is not exceeded with probability p."""
        raise NotImplementedError

    def probability(self, mean: Array, variance: Array) -> Array:
        """Probability of a one, or of each class."""
        raise NotImplementedError

    def log_predictive(self, targets: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Log-probability of the targets, and its slope in the mean, each (n, D).

        By this probabilities are calibrated.
        """
        raise NotImplementedError

    def expected(self, eta: Array) -> tuple[Array, Array]:
        """The mean of counts given η, and how it rises with η: what calibrates their spread."""
        raise NotImplementedError

    # ---- scores of predictions

    @staticmethod
    def deviance(values: Array, predicted: Array) -> Array:
        """How far values (n, D) are from predictions; of real numbers it would be the square."""
        raise NotImplementedError

    @staticmethod
    def typical(values: Array) -> Array:
        """(D,): what is predicted where nothing is known; its deviances add up to the least."""
        raise NotImplementedError

    @classmethod
    def has(cls, method: str) -> bool:
        """Whether this kind defines one of the methods above."""
        return getattr(cls, method) is not getattr(Likelihood, method)

    @classmethod
    def binary(cls) -> bool:
        """Whether values are zeros and ones: they have probabilities, and are no labels."""
        return cls.has("probability") and not cls.reads_labels

    def offers(self) -> list[str]:
        """How a user may ask for its uncertainty."""
        names = {
            "probability": "predict_proba",
            "std": "return_std",
            "quantile": "predict_quantiles",
        }
        return [name for method, name in names.items() if self.has(method)]

    def fill(self, mean: Array, variance: Array) -> Array:
        """The value that stands in for a missing one: one that could have been observed."""
        return self.predict(mean, variance)


def refuse(
    table: Table, bad: BoolArray, expected: str, cure: str = "", kinds: Sequence[str] = ()
) -> None:
    """Raise for the first column with a bad value; `kinds` are those that could take it."""
    columns = bad.any(axis=0)
    if columns.any():
        j = int(np.argmax(columns))
        value: Any = table.dense[int(np.argmax(bad[:, j])), j]
        what = f"expected {expected} but got {value:g}"
        raise DataError(what, table.name, table.column(j), cure=cure, kinds=kinds)
