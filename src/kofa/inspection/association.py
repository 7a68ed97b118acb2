"""Do factors go with what is known of the samples?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import fdtrc

from kofa.checks import flag
from kofa.inspection.correlation import is_constant, pearson
from kofa.inspection.covariates import Covariate, as_covariate, read_covariates
from kofa.inspection.false_discovery import benjamini_hochberg
from kofa.inspection.matching import frame, match, read_factors
from kofa.linalg import Array


def associate(factors: Any, covariates: Any, *, ranks: bool = False) -> Any:
    """Test each factor against each covariate.

    What a covariate is follows from its values: "binary" if there are two (also two numbers), or if
    they are true and false; "number" for more numbers, dates and durations; "category" for more
    words or a pandas category.

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
    pairs = [
        (name, z, c) for name, z in zip(names, table.values[rows].T, strict=True) for c in columns
    ]
    tests = [_test(z, covariate, ranks) for _, z, covariate in pairs]
    numbers = {
        key: np.array([getattr(test, key) for test in tests]) for key in ("n", "value", "r", "p")
    }
    return frame(
        {
            "factor": [name for name, _, _ in pairs],
            "covariate": [covariate.name for _, _, covariate in pairs],
            "kind": [covariate.kind for _, _, covariate in pairs],
            "n": numbers["n"],
            "statistic": [_statistic(covariate, ranks) for _, _, covariate in pairs],
            "value": numbers["value"],
            "r": numbers["r"],
            "p": numbers["p"],
            "q": benjamini_hochberg(numbers["p"]),
            "note": [test.note for test in tests],
        }
    )


@dataclass(frozen=True)
class Association:
    """What one factor has to do with one covariate."""

    n: int
    note: str
    value: float = np.nan
    r: float = np.nan
    p: float = np.nan


def _statistic(covariate: Covariate, ranks: bool) -> str:
    names = {"binary": "AUC", "category": "eta_squared", "number": "rho" if ranks else "r"}
    return names[covariate.kind]


def _test(z: Array, covariate: Covariate, ranks: bool) -> Association:
    both = ~(np.isnan(z) | np.isnan(covariate.values))
    z, x = z[both], covariate.values[both]
    note = _why_not(z, x, covariate)
    if note:
        return Association(len(z), note)
    if ranks:
        z, x = stats.rankdata(z), stats.rankdata(x) if covariate.kind == "number" else x
    if covariate.kind == "category":
        share, k = _between(z, x)
        return Association(len(z), "", share, p=_p_value(share, len(z), k))
    r = pearson(x, z)
    p = _p_value(r**2, len(z), 2)
    if covariate.kind == "number":
        return Association(len(z), "", r, r, p)
    lower, upper = (repr(label) for label in covariate.labels)
    return Association(len(z), f"AUC of {upper} over {lower}", _auc(z, x), r, p)


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
    z = z - z.mean()
    means = np.bincount(which, z) / counts
    return min(float(counts @ means**2 / (z @ z)), 1.0), len(counts)


def _auc(z: Array, classes: Array) -> float:
    """P(z of the upper class > z of the lower one), ties counted by half."""
    upper = classes == 1
    n = int(upper.sum())
    above = stats.rankdata(z)[upper].sum() - n * (n + 1) / 2
    return float(above / (n * (len(z) - n)))


def _p_value(share: float, n: int, k: int) -> float:
    """P(F ≥ R² (n − k) / ((1 − R²) (k − 1))) for F of k − 1 and n − k degrees of freedom."""
    with np.errstate(divide="ignore"):
        F = np.float64(share) * (n - k) / ((1.0 - share) * (k - 1))
    return float(fdtrc(k - 1, n - k, F))
