"""Correlations of factors with one another."""

from __future__ import annotations

from typing import Any

import numpy as np

from kofa.inspection.matching import frame, read_factors
from kofa.linalg import Array


def correlate(factors: Any) -> Any:
    """Pearson's correlation of each factor with each.

    Parameters
    ----------
    factors : DataFrame, array (n, K)
        One row for each sample. Where a factor is missing, the sample counts for the others only.

    Returns
    -------
    DataFrame with the columns ``factor``, ``other`` and ``r``: K² rows, a factor with itself and
    both orders of a pair included. It is NaN where a factor is constant.

    Examples
    --------
    >>> import numpy as np
    >>> z = np.array([[1.0, 2.0], [2.0, 4.5], [3.0, 5.5], [4.0, 9.0]])
    >>> table = correlate(z)
    >>> table.set_index(["factor", "other"])["r"].unstack(sort=False).round(2)
    other    factor1  factor2
    factor
    factor1     1.00     0.98
    factor2     0.98     1.00
    """
    table, names = read_factors("factors", factors)
    r = cross_correlation(table.dense, table.dense)
    return frame(
        {
            "factor": [name for name in names for _ in names],
            "other": [name for _ in names for name in names],
            "r": r.ravel(),
        }
    )


def cross_correlation(first: Array, second: Array) -> Array:
    """Pearson's r of each column (n, J) with each (n, K): (J, K), from rows that have both."""
    return np.array([[pearson(x, y) for y in second.T] for x in first.T]).reshape(
        first.shape[1], second.shape[1]
    )


def pearson(x: Array, y: Array) -> float:
    """Σ x̃ ỹ / √(Σ x̃² Σ ỹ²) of centred values, where both are there; NaN if one is constant."""
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both], y[both]
    if is_constant(x) or is_constant(y):
        return np.nan
    return min(max(float(standardised(x) @ standardised(y)), -1.0), 1.0)


def is_constant(x: Array) -> bool:
    """Whether values are all the same, but for rounding; none are."""
    return not len(x) or bool(x.max() - x.min() <= 1e-13 * np.abs(x).max())


def standardised(x: Array) -> Array:
    """Centred, with a sum of squares of one, which neither overflows nor vanishes on the way."""
    x = x / np.abs(x).max()
    x = x - x.mean()
    return np.asarray(x / np.linalg.norm(x))
