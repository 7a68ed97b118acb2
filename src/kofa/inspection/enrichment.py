"""Which sets of features have larger weights than the other features?"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.sparse import csr_array

from kofa.checks import check_number, check_word, flag, generator, hint, is_among, require
from kofa.data.tables import Table
from kofa.errors import DataError
from kofa.inspection.chance import Chance, Residuals, difference_of_means, root_of_size
from kofa.inspection.false_discovery import benjamini_hochberg
from kofa.inspection.feature_sets import FoundSets, as_sets, found_among
from kofa.inspection.matching import (
    frame,
    on_common_samples,
    read_factors,
    read_numbers,
)
from kofa.linalg import Array, IntArray

SIGNS = ("both", "positive", "negative")
_SKEWED = 0.1  # skewness that changes p; below it may be an error of drawing


def enrich(
    weights: Any,
    sets: Any,
    factor: Any = None,
    *,
    data: Any = None,
    factors: Any = None,
    sign: str = "both",
    absolute: bool = False,
    ranks: bool = False,
    min_size: int = 10,
    max_size: int | None = None,
    n_leading: int = 10,
    random_state: Any = None,
) -> Any:
    """Test whether the weights of feature sets differ from those of the other features.

    The test compares the mean weight of the m features of a set with that of the M others (it is a
    competitive one), by the t test with one variance s²:

        t = (mean in the set − mean of the others) / √(s² (1/m + 1/M) · inflation)

    Features that go together have weights that go together, so that the mean of a set varies more
    than that of independent features. With `data` the inflation says by how much, as in the method
    camera, and t has at most as many degrees of freedom as the data leave. Without `data` features
    count as independent: p is then too small for sets of correlated features.

    With `factors` too, only that part of the variance of the weights is inflated that is noise:
    one by the variance over features of their t statistics in regressions on all factors, at most
    all of it. Features go together then as what the factors leave of them does.

    Parameters
    ----------
    weights : DataFrame or array (D, K), or a Series
        As from `FactorModel.weights`. Features of an array go by their positions.
    sets : dict of name → features, DataFrame, or path of a GMT file
        A DataFrame has the columns ``set`` and ``feature``.
    factor : name, list of names, or None
        The factors to test; None is all.
    data : DataFrame or array (n, D), or None
        The view, from which it is learnt how features go together. Values may be missing.
    factors : DataFrame or array (n, K), or None
        As from `FactorModel.transform`, for the samples of `data`. Without them, features that
        follow a factor count as correlated, and all of the weights as noise: far fewer sets are
        found. Pass both.
    sign : "both", "positive" or "negative"
        Sets whose weights are different, larger, or smaller.
    absolute : bool
        Compare √|weight|, whatever the sign: sets in which both signs are large. Only larger ones
        are looked for. The root is nearly normal where weights are; |weight| itself is skewed.
    ranks : bool
        Replace weights by normal scores of their ranks: for weights of which few are large, as in
        sparse views.
    min_size, max_size : int
        Sets of which fewer or more features are found are left out.
    n_leading : int
        How many features of a set to name.
    random_state : int, numpy Generator or None
        Seed of the draws by which `absolute` with `data` knows what is chance; None is a fixed one.

    Returns
    -------
    DataFrame with one row for each factor and set, for each factor those with the least p first:

    factor, set
    size, n_found : features of the set, and those of them that have weights
    difference : mean weight in the set minus mean of the others (or of what stands for them)
    t, inflation : as above; 1 without data
    p, q : of the test, and by Benjamini and Hochberg over the whole table
    direction : "positive" or "negative"
    leading : list of the features that are furthest in this direction, the furthest first

    It is NaN where a factor has the same weight for all features.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> genes = [f"g{j}" for j in range(200)]
    >>> w = pd.DataFrame(rng.normal(size=(200, 1)), genes, ["factor1"])
    >>> w.iloc[:15] += 1
    >>> sets = {"first": genes[:15], "last": genes[-30:]}
    >>> found = enrich(w, sets, n_leading=2)
    >>> found.round(3)[["set", "n_found", "difference", "t", "q", "direction", "leading"]]
         set  n_found  difference      t      q direction       leading
    0  first       15       0.729  2.820  0.011  positive      [g6, g7]
    1   last       30      -0.198 -1.018  0.310  negative  [g190, g178]
    """
    _check(sign, min_size, max_size, n_leading)
    absolute, ranks = flag("absolute", absolute), flag("ranks", ranks)
    require(not absolute or sign == "both", "sign", "'both' beside absolute=True", sign)
    table, names = read_factors("weights", weights)
    features = list(range(len(table.values)) if table.samples is None else table.samples)
    chosen = _chosen(names, factor)
    W = _scores(_checked(table, features)[:, chosen], absolute, ranks)
    found = found_among(as_sets(sets), features, min_size, max_size)
    members = found.matrix
    rng = generator(random_state)
    chance = _chance(table, chosen, members, data, factors, absolute, rng)
    test = _t_test(W, members, chance, "positive" if absolute else sign)
    return _as_table([names[k] for k in chosen], features, W, found, test, n_leading)


# ---------------------------------------------------------------- what is tested


def _check(sign: Any, min_size: Any, max_size: Any, n_leading: Any) -> None:
    check_word("sign", sign, SIGNS)
    check_number("min_size", min_size, whole=True, least=1)
    check_number("max_size", max_size, [None], whole=True, least=min_size)
    check_number("n_leading", n_leading, whole=True, least=0)


def _chosen(names: Sequence[Hashable], factor: Any) -> list[int]:
    """Where the factors that are asked for stand."""
    asked = names if factor is None else factor if isinstance(factor, list) else [factor]
    for name in asked:
        if not is_among(name, names):
            what, cure = f"there is no factor {name!r}", hint(name, names, "there are")
            raise DataError(what, source="weights", cure=cure)
    return [names.index(name) for name in asked]


def _checked(table: Table, features: Sequence[Hashable]) -> Array:
    """The weights, of which none may be missing."""
    missing = np.isnan(table.values)
    if missing.any():
        row, column = np.argwhere(missing)[0]
        what = f"the weight of feature {features[row]!r} is missing"
        raise DataError(
            what, column=table.column(column), source="weights", cure="drop the feature"
        )
    if len(features) < 3:
        raise DataError("expected at least 3 features", source="weights", got=len(features))
    return table.dense


def _scores(W: Array, absolute: bool, ranks: bool) -> Array:
    """What is compared: the weights, the roots of their sizes, or normal scores of either."""
    W = root_of_size(W) if absolute else W
    if not ranks:
        return W
    scores = stats.norm.ppf((stats.rankdata(W, axis=0) - 0.5) / len(W))
    return np.asarray(np.where(np.ptp(W, axis=0) > 0, scores, 0.0))


# ---------------------------------------------------------------- the test


def _chance(
    weights: Table,
    chosen: list[int],
    members: csr_array,
    data: Any,
    factors: Any,
    absolute: bool,
    rng: np.random.Generator,
) -> Chance:
    """How differences vary by chance: as features do in the data, or independently."""
    if data is None:
        require(factors is None, "factors", "None without data", factors)
        return Chance.of_independent(members, len(chosen))
    view = read_numbers("data", data)
    values = view.dense[:, _places(weights, view)]
    if factors is None:  # all of the weights may be noise
        left = Residuals.fit(values, np.empty((len(values), 0)))
        noise = np.ones((members.shape[0], len(chosen)))
        return Chance.of_data(left, noise, members, absolute, rng)
    scores, names = read_factors("factors", factors)
    columns = _columns(weights, chosen, scores, names)
    values, Z = on_common_samples(
        ("data", Table("data", values, view.samples)), ("factors", scores)
    )
    left = Residuals.fit(values, Z)
    return Chance.of_data(left, left.noise_share(members)[:, columns], members, absolute, rng)


def _columns(
    weights: Table, chosen: list[int], scores: Table, names: Sequence[Hashable]
) -> list[int]:
    """Where the factors of the weights stand among those of the samples."""
    if weights.columns is None or scores.columns is None:
        n_factors = weights.values.shape[1]
        if len(names) != n_factors:
            what = f"expected a column for each of the {n_factors} factors of weights"
            raise DataError(what, source="factors", got=len(names))
        return chosen
    wanted = [weights.columns[k] for k in chosen]
    for name in wanted:
        if name not in names:
            what = f"there is no column {name!r}, which weights have"
            raise DataError(what, source="factors", cure=hint(name, names, "there are"))
    return [names.index(name) for name in wanted]


def _places(weights: Table, view: Table) -> list[int]:
    """Where the features that have weights stand in the data."""
    n_features = len(weights.values)
    if weights.samples is None or view.columns is None:
        if view.values.shape[1] != n_features:
            what = f"expected a column for each of the {n_features} features with weights"
            raise DataError(what, source="data", got=view.values.shape[1])
        return list(range(n_features))
    place = {column: j for j, column in enumerate(view.columns)}
    for feature in weights.samples:
        if feature not in place:
            what = f"there is no column {feature!r}, which has a weight"
            raise DataError(what, source="data", cure="pass the view that the weights are of")
    return [place[feature] for feature in weights.samples]


@dataclass(frozen=True, eq=False)
class TTest:
    """By set and factor (S, K)."""

    difference: Array
    others: Array  # mean weight of the features that are not in the set
    inflation: Array
    t: Array
    p: Array


def _t_test(W: Array, members: csr_array, chance: Chance, sign: str) -> TTest:
    """Means of each set against the others, with the variance within both."""
    m = np.asarray(members.sum(axis=1))[:, None]
    M = len(W) - m
    difference, variance = difference_of_means(W, members)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = difference / np.sqrt(variance * (1.0 / m + 1.0 / M) * chance.inflation)
    t[:, np.ptp(W, axis=0) == 0] = np.nan
    others = W.mean(axis=0) - difference * m / len(W)
    return TTest(difference, others, chance.inflation, t, _p_values(t, chance, sign))


def _p_values(t: Array, chance: Chance, sign: str) -> Array:
    """Of both tails, the upper or the lower one."""
    if sign == "both":
        return np.asarray(2.0 * stats.t.sf(np.abs(t), chance.freedom))
    if sign == "negative":
        return np.asarray(stats.t.cdf(t, chance.freedom))
    p, skewness = stats.t.sf(t, chance.freedom), chance.skewness
    skewed = skewness > _SKEWED
    p[skewed] = _skewed_tail(stats.norm.isf(p[skewed]), skewness[skewed])
    return np.asarray(p)


def _skewed_tail(x: Array, skewness: Array) -> Array:
    """P(X > x) of a χ² that is shifted and scaled to mean 0, variance 1 and a skewness above 0."""
    freedom = 8.0 / skewness**2
    return np.asarray(stats.chi2.sf(freedom + np.sqrt(2.0 * freedom) * x, freedom))


# ---------------------------------------------------------------- the table


def _as_table(
    factors: Sequence[Hashable],
    features: Sequence[Hashable],
    W: Array,
    found: FoundSets,
    test: TTest,
    n_leading: int,
) -> Any:
    """One row for each factor and set, by factor and p."""
    order = np.argsort(test.p, axis=0, kind="stable").T  # NaN last
    k, s = np.repeat(np.arange(len(factors)), order.shape[1]), order.ravel()
    t = test.t[s, k]
    leading = [
        _leading(W[:, k_], found.members[s_], test.others[s_, k_], t_)[:n_leading]
        for k_, s_, t_ in zip(k, s, t, strict=True)
    ]
    return frame(
        {
            "factor": [factors[int(i)] for i in k],
            "set": [found.names[i] for i in s],
            "size": np.array(found.size)[s],
            "n_found": np.array([len(inside) for inside in found.members])[s],
            "difference": test.difference[s, k],
            "t": t,
            "inflation": test.inflation[s, k],
            "p": test.p[s, k],
            "q": benjamini_hochberg(test.p)[s, k],
            "direction": [_direction(value) for value in t],
            "leading": [[features[j] for j in places] for places in leading],
        }
    )


def _direction(t: float) -> str | None:
    return None if np.isnan(t) else "positive" if t > 0 else "negative"


def _leading(w: Array, members: IntArray, others: float, t: float) -> IntArray:
    """Features of a set beyond the mean of the others, on the side of the set, furthest first."""
    beyond = np.sign(np.nan_to_num(t)) * (w[members] - others)
    order = np.argsort(-beyond, kind="stable")
    return np.asarray(members[order][beyond[order] > 0])
