"""Which factors of two fits are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from kofa.inspection.correlation import cross_correlation
from kofa.inspection.matching import frame, on_common_samples, read_factors


def agreement(first: Any, second: Any) -> Any:
    """Pair the factors of two fits, so that the sum of their |correlations| is the largest.

    The fits may have different numbers of factors, in another order and with other signs.

    Parameters
    ----------
    first, second : DataFrames, or arrays (n, K)
        Factors of the same samples: matched by index where both have one, and compared on the
        samples that both have; else by position.

    Returns
    -------
    DataFrame with the columns ``factor`` (of the first), ``matched`` (of the second) and ``r``,
    with its sign. There is one row for each factor of the first, in their order; ``matched`` and
    ``r`` are NaN where none is left for it. Behind them stand those of the second that are left,
    with NaN as ``factor``.

    Examples
    --------
    >>> import numpy as np
    >>> z = np.random.default_rng(0).normal(size=(50, 3))
    >>> agreement(z, -z[:, [2, 0]])
        factor  matched    r
    0  factor1  factor2 -1.0
    1  factor2      NaN  NaN
    2  factor3  factor1 -1.0
    """
    one, names = read_factors("first", first)
    two, others = read_factors("second", second)
    r = cross_correlation(*on_common_samples(("first", one), ("second", two)))
    pairs = dict(zip(*linear_sum_assignment(-np.abs(np.nan_to_num(r))), strict=True))
    partner = {j: k for j, k in pairs.items() if not np.isnan(r[j, k])}
    left = sorted(set(range(len(others))) - set(partner.values()))
    matched = [others[partner[j]] if j in partner else np.nan for j in range(len(names))]
    values = [r[j, partner[j]] if j in partner else np.nan for j in range(len(names))]
    return frame(
        {
            "factor": names + [np.nan] * len(left),
            "matched": matched + [others[k] for k in left],
            "r": np.array(values + [np.nan] * len(left)),
        }
    )
