"""What a model found in plain sentences, each a function of numbers alone.

A sentence that is not true of the numbers is not there: the functions return lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SIGNIFICANT = 0.05  # q-values below this count as found
_MOST_NAMED = 3  # associations and sets that a sentence names
_SCORES = {
    "r2": "{value} of the variance is explained",
    "accuracy": "{value} of the labels are right",
    "auc": "the area under the ROC curve is {number}",
    "d2": "{value} of the deviance is explained",
    "coverage": "{value} of the values lie in intervals of 90 %",
}


@dataclass(frozen=True)
class ViewFacts:
    """A declared view, and what was measured of it."""

    name: str
    labels: bool  # rather than columns of numbers
    n_features: int
    output: bool
    n_samples: int | None = None  # where it is known who was measured
    missing: float = 0.0  # share of missing values in the samples that have the view


# ---------------------------------------------------------------- words


def percent(share: float) -> str:
    """A share in words.

    >>> percent(0.124), percent(0.004), percent(0.0), percent(0.9987)
    ('12 %', 'less than 1 %', 'nothing', 'more than 99 %')
    """
    if share <= 0:
        return "nothing"
    if share < 0.005:
        return "less than 1 %"
    if 0.995 <= share < 1:
        return "more than 99 %"
    return f"{100 * share:.0f} %"


def joined(names: Sequence[Any], last: str = "and") -> str:
    """Names as in a sentence.

    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    texts = [str(one) for one in names]
    return f" {last} ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def counted(n: int, what: str) -> str:
    """A number of things, with a comma for thousands.

    >>> counted(1, "factor"), counted(1200, "sample")
    ('1 factor', '1,200 samples')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def small(p: float) -> str:
    """A small probability.

    >>> small(0.012), small(3.4e-9), small(0.0)
    ('0.012', '3 × 10⁻⁹', 'below 10⁻³⁰⁰')
    """
    if p < 1e-300:
        return "below 10⁻³⁰⁰"
    if p >= 1e-4:
        return f"{p:.2g}"
    digit, exponent = f"{p:.0e}".split("e")
    return f"{digit} × 10{str(int(exponent)).translate(_RAISED)}"


# ---------------------------------------------------------------- samples and views


def about_samples(n: int | None, views: Sequence[ViewFacts]) -> list[str]:
    """How many samples were measured in which views, and which of these are predicted."""
    tables = joined([f"{one.name} ({_size(one)})" for one in views])
    several = counted(len(views), "view")
    begin = f"{counted(n, 'sample')} in {several}" if n is not None else several.capitalize()
    found = [f"{begin}: {tables}."]
    outputs = [one.name for one in views if one.output]
    if outputs:
        are = "is predicted" if len(outputs) == 1 else "are predicted"
        found.append(f"{joined(outputs)} {are} from the others.")
    return found


def _size(view: ViewFacts) -> str:
    if view.labels:
        return "labels"
    return counted(view.n_features, "column")


def about_holes(n: int | None, views: Sequence[ViewFacts]) -> list[str]:
    """What is missing: whole views of some samples, and single values."""
    known = [one for one in views if one.n_samples is not None]
    if n is None or not known:
        return []
    found = [
        f"{counted(n - one.n_samples, 'sample')} of {n:,} {_lack(n - one.n_samples)} {one.name}."
        for one in known
        if one.n_samples is not None and one.n_samples < n
    ]
    holes = [f"{percent(one.missing)} of the values of {one.name}" for one in known
             if one.missing > 0]  # fmt: skip
    if holes:
        among = "Of the samples that have the view, " if found else ""
        found.append(_capital(f"{among}{joined(holes)} are missing."))
    return found or ["No value is missing."]


def _lack(n: int) -> str:
    return "lacks" if n == 1 else "lack"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# ---------------------------------------------------------------- factors


def about_factors(links: Sequence[Sequence[str]]) -> list[str]:
    """How many factors there are, and which views they link: the views of each factor."""
    by_views: dict[tuple[str, ...], int] = {}
    for views in links:
        by_views[tuple(views)] = by_views.get(tuple(views), 0) + 1
    found = f"The model has {counted(len(links), 'factor')}"
    order = sorted(by_views.items(), key=lambda pair: -len(pair[0]))
    parts = "; ".join(_linked(n, views) for views, n in order)
    return [f"{found}: {parts}." if parts else f"{found}."]


def _linked(n: int, views: Sequence[str]) -> str:
    many = f"{n:,}"
    if not views:
        return f"{many} {'is' if n == 1 else 'are'} active in no view"
    if len(views) == 1:
        return f"{many} {'is' if n == 1 else 'are'} private to {views[0]}"
    return f"{many} {'links' if n == 1 else 'link'} {joined(views)}"


def about_variance(
    r2: Mapping[str, float], strongest: Mapping[str, tuple[str, float]]
) -> list[str]:
    """What all factors explain of each view, and the factor that explains most of it."""
    known = {view: share for view, share in r2.items() if np.isfinite(share)}
    if not known:
        return []
    parts = [f"{percent(share)} of {view}{_mostly(view, share, strongest)}"
             for view, share in known.items()]  # fmt: skip
    return [f"Together the factors explain {joined(parts)}."]


def _mostly(view: str, share: float, strongest: Mapping[str, tuple[str, float]]) -> str:
    factor, own = strongest.get(view, ("", 0.0))
    return f" (most of it {factor}, {percent(own)})" if own > 0.005 and own < share else ""


# ---------------------------------------------------------------- predictions


def about_sources(output: str, shares: Mapping[str, float]) -> list[str]:
    """From which views an output is predicted: their shares in the variance of predictions."""
    used = sorted(((share, view) for view, share in shares.items() if share >= 0.005), reverse=True)
    if not used or len(shares) < 2:
        return []
    parts = joined([f"{view} ({percent(share)})" for share, view in used])
    unused = [view for view, share in shares.items() if share < 0.005]
    rest = f", and hardly from {joined(unused, 'or')}" if unused else ""
    return [f"{output} is predicted from {parts}{rest}."]


def about_scores(
    output: str,
    scores: Mapping[str, float],
    origin: str,
    without: Mapping[str, float] | None = None,
) -> list[str]:
    """How well an output is predicted, and `without` the model; `origin` says of which samples."""
    value = next(
        (scores[one] for one in ("r2", "d2") if np.isfinite(scores.get(one, np.nan))), None
    )
    if value is None:
        return []
    if value <= 0:
        than = "the mean" if "r2" in scores else "the shares of its classes"
        return [f"{output} is not predicted better than by {than} ({origin})."]
    parts = [
        text.format(value=percent(scores[one]), number=f"{scores[one]:.2f}")
        for one, text in _SCORES.items()
        if np.isfinite(scores.get(one, np.nan)) and not (one == "d2" and "r2" in scores)
    ]
    less = (without or {}).get("accuracy", np.nan)
    more = f"; {percent(less)} would be right without the model" if np.isfinite(less) else ""
    return [f"{output} ({origin}): {joined(parts)}{more}."]


def about_evaluation(outputs: Sequence[str], held_out: bool) -> list[str]:
    """Where nothing was left out of the fit, new samples may be predicted less well."""
    if held_out or not outputs:
        return []
    are = "is" if len(outputs) == 1 else "are"
    return [
        f"How well {joined(outputs)} {are} predicted in new samples was not evaluated: use kofa "
        "evaluate, or kofa.cross_validate."
    ]


# ---------------------------------------------------------------- meaning


def about_associations(table: Any) -> list[str]:
    """Which factors go with which covariates, the surest first; a table as from `associate`."""
    if not len(table):
        return []
    sure = table[table["q"] < _SIGNIFICANT].sort_values("q")
    if not len(sure):
        return [f"No factor goes with any covariate (all q are above {_SIGNIFICANT})."]
    parts = [
        f"{row.factor} with {row.covariate} ({_statistic(row)}, q {_is_small(row.q)})"
        for row in sure.head(_MOST_NAMED).itertuples()
    ]
    more = len(sure) - len(parts)
    rest = f"; {more:,} more with q below {_SIGNIFICANT}" if more else ""
    return [f"Factors go with covariates: {joined(parts)}{rest}."]


def _statistic(row: Any) -> str:
    sign = {"eta_squared": "η²"}.get(row.statistic, row.statistic)
    return f"{sign} = {row.value:.2f}".replace("-", "−")


def _is_small(q: float) -> str:
    text = small(q)
    return text if text.startswith("below") else f"= {text}"


def about_sets(view: str, table: Any) -> list[str]:
    """Which sets have larger weights in which factor; a table as from `enrich`."""
    if not len(table):
        return []
    sure = table[table["q"] < _SIGNIFICANT].sort_values("q")
    if not len(sure):
        return [f"No feature set has other weights in {view} than the rest."]
    parts = [f"{row.set} in {row.factor} (q {_is_small(row.q)})"
             for row in sure.head(_MOST_NAMED).itertuples()]  # fmt: skip
    more = len(sure) - len(parts)
    rest = f"; {more:,} more with q below {_SIGNIFICANT}" if more else ""
    return [f"Feature sets with other weights than the rest of {view}: {joined(parts)}{rest}."]
