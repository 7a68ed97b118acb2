"""Do factors go with what is known of the samples?"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import fdtrc

from kofa.checks import flag
from kofa.inspection.correlation import is_constant, pearson, standardised
from kofa.inspection.covariates import (
    Covariate,
    as_covariate,
    read_covariates,
    warn_of_censored_times,
)
from kofa.inspection.false_discovery import benjamini_hochberg
from kofa.inspection.matching import frame, match, read_factors
from kofa.linalg import Array
from kofa.scores import mann_whitney


def associate(factors: Any, covariates: Any, *, ranks: bool = False) -> Any:
    """Test each factor against each covariate.

    What a covariate is follows from its values: "binary" if there are two (also two numbers), or if
    they are true and false; "number" for more numbers, dates and durations; "category" for more
    words or a pandas category. A time to an event that some samples have not had yet is a number
    here; a warning says so where names and values look like one.

    One test serves all: the F test of the regression of the factor on the number, or on the class.
    For numbers that is the t test of Pearson's correlation, for two classes the t test with one
    variance, for more the one-way analysis of variance. With the R² of the regression and k means
    (2 for a number), F = R² (n − k) / ((1 − R²) (k − 1)).

    Parameters
    ----------
    factors : DataFrame or array (n, K)
        One row for each sample, as from `FactorModel.transform`.
    covariates : DataFrame, Series, dict of name → column, or array
        Matched with the factors by index where both have one; samples in only one of them are left
        out. Else by position. A missing value leaves its sample out for this covariate.
    ranks : bool
        Replace factors and numbers by their ranks: for outliers, and what is monotone but no line.

    Returns
    -------
    DataFrame with one row for each factor and covariate:

    factor, covariate, kind
    n : samples that have both
    statistic, value : for numbers "r", Pearson's correlation (with ranks "rho", Spearman's); for
        categories "eta_squared", the share of the factor's variance between them; for binary ones
        "AUC", the probability that the factor is larger in the class that comes last in order
        (True, 1, "yes"; `note` names it) than in the other
    r : the correlation, for binary covariates too; NaN for categories
    p, q : of the test, and by Benjamini and Hochberg over the whole table
    note : which class an AUC is of, or why there is no test, where the others are NaN

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> z = pd.DataFrame(rng.normal(size=(60, 1)), columns=["factor1"])
    >>> known = pd.DataFrame({"age": 50 + 9 * z["factor1"] + rng.normal(0, 9, 60)})
    >>> known["sex"] = rng.choice(["female", "male"], 60)
    >>> associate(z, known).round(3)[["factor", "covariate", "kind", "statistic", "value", "q"]]
        factor covariate    kind statistic  value      q
    0  factor1       age  number         r  0.614  0.000
    1  factor1       sex  binary       AUC  0.548  0.406
    """
    table, names = read_factors("factors", factors)
    known, index = read_covariates(covariates)
    ranks = flag("ranks", ranks)
    rows, its_rows = match(
        ("factors", table.samples, len(table.values)), ("covariates", index, len(known))
    )
    columns = [as_covariate(name, known[name].iloc[its_rows]) for name in known.columns]
    warn_of_censored_times(columns)
    scores = dict(zip(names, table.values[rows].T, strict=True))
    return _as_table(
        [_test(name, z, column, ranks) for name, z in scores.items() for column in columns]
    )


@dataclass(frozen=True)
class Association:
    """What one factor has to do with one covariate."""

    factor: Hashable
    covariate: Covariate
    statistic: str
    n: int
    note: str = ""
    value: float = np.nan
    r: float = np.nan
    p: float = np.nan


def _as_table(tests: Sequence[Association]) -> Any:
    p = np.array([test.p for test in tests])
    return frame(
        {
            "factor": [test.factor for test in tests],
            "covariate": [test.covariate.name for test in tests],
            "kind": [test.covariate.kind for test in tests],
            "n": np.array([test.n for test in tests]),
            "statistic": [test.statistic for test in tests],
            "value": np.array([test.value for test in tests]),
            "r": np.array([test.r for test in tests]),
            "p": p,
            "q": benjamini_hochberg(p),
            "note": [test.note for test in tests],
        }
    )


def _test(factor: Hashable, z: Array, covariate: Covariate, ranks: bool) -> Association:
    both = ~(np.isnan(z) | np.isnan(covariate.values))
    z, x = z[both], covariate.values[both]
    names = {"binary": "AUC", "category": "eta_squared", "number": "rho" if ranks else "r"}
    found = Association(factor, covariate, names[covariate.kind], len(z), _why_not(z, x, covariate))
    if found.note:
        return found
    if ranks:
        z, x = stats.rankdata(z), stats.rankdata(x) if covariate.kind == "number" else x
    if covariate.kind == "category":
        share, k = _between(z, x)
        return replace(found, value=share, p=_p_value(share, len(z), k))
    r = pearson(x, z)
    found = replace(found, value=r, r=r, p=_p_value(r**2, len(z), 2))
    if covariate.kind == "number":
        return found
    lower, upper = covariate.labels
    return replace(found, value=mann_whitney(x == 1, z), note=f"AUC of {upper!r} over {lower!r}")


def _why_not(z: Array, x: Array, covariate: Covariate) -> str:
    """Why there is no test, or nothing."""
    if not len(x):
        return "no sample has both"
    if is_constant(x):
        return "the covariate is constant"
    if is_constant(z):
        return "the factor is constant"
    k = len(np.unique(x)) if covariate.kind == "category" else 2
    return f"{len(z)} samples are too few for {k} means" if len(z) <= k else ""


def _between(z: Array, classes: Array) -> tuple[float, int]:
    """η² = Σ_c n_c (z̄_c − z̄)² / Σ_n (z_n − z̄)², and the number of classes."""
    _, which, counts = np.unique(classes, return_inverse=True, return_counts=True)
    means = np.bincount(which, standardised(z)) / counts
    return min(float(counts @ means**2), 1.0), len(counts)


def _p_value(share: float, n: int, k: int) -> float:
    """P(F ≥ R² (n − k) / ((1 − R²) (k − 1))) for F of k − 1 and n − k degrees of freedom."""
    with np.errstate(divide="ignore"):
        F = np.float64(share) * (n - k) / ((1.0 - share) * (k - 1))
    return float(fdtrc(k - 1, n - k, F))
