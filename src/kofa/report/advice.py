"""Warnings of a report, each with what to do; functions of numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincc

from kofa.linalg import Array, BoolArray
from kofa.report.summary import counted, joined, percent

# One sample drives a factor if a quarter of its variance is that sample's, and normal factors have
# such a sample with a probability below 1 in 1,000.
_PART_OF_FACTOR, _CHANCE = 0.25, 0.001
# With 10 samples of a class a share of right labels of .9 is known to ± .19 (95 %), and with 20
# values a correlation of 0 to ± .44.
_LEAST_OF_CLASS, _LEAST_VALUES = 10, 20
# Intervals of 90 % hold another share if it is off by .05, and by more than 3 standard errors.
LEVEL, _OFF, _ERRORS = 0.9, 0.05, 3.0


@dataclass(frozen=True)
class Advice:
    """What is doubtful about a fit, and what to do about it."""

    what: str
    cure: str


def not_converged(converged: bool, n_iter: int, max_iter: int) -> list[Advice]:
    """The loop ended before the bound settled."""
    if converged:
        return []
    what = f"The fit was stopped after {counted(n_iter, 'iteration')}, before the bound settled."
    why = f"raise max_iter (it was {max_iter:,})" if n_iter >= max_iter else "let it run longer"
    return [Advice(what, f"Fit it again and {why}; what is below may still change.")]


def unexplained(links: Sequence[Sequence[str]], views: Mapping[str, bool]) -> list[Advice]:
    """Views in which no factor is active; `views` says which of them are outputs."""
    active = {view for linked in links for view in linked}
    found = []
    for view, output in views.items():
        if view in active:
            continue
        if output:
            what = f"No factor predicts {view}."
            cure = (
                "The inputs may not tell about it. Check that their samples are matched, add views "
                "or samples, or try a kernel for inputs that act in curves."
            )
        else:
            what = f"No factor explains {view}."
            cure = (
                "Check that its samples are matched with those of the other views, and its kind; "
                "if all is right, it is noise to the model and can be left out."
            )
        found.append(Advice(what, cure))
    return found


def driven_by_one(
    factors: Mapping[str, Array],
    samples: Sequence[Any],
    links: Mapping[str, Sequence[str]],
    measured: Mapping[str, BoolArray],
) -> list[Advice]:
    """Factors of which a large part of the variance is that of one sample.

    `links`: the views in which each is active; `measured`: which samples have each view.
    """
    by_sample: dict[int, list[str]] = {}
    for name, z in factors.items():
        n = driver(z)
        if n is not None:
            by_sample.setdefault(n, []).append(name)
    found = []
    for n, driven in by_sample.items():
        active = {view for name in driven for view in links[name]}
        has = [view for view, which in measured.items() if which[n]]
        where = joined([view for view in has if view in active] or has)
        cure = (
            f"Look at its values in {where}, which may be a mistake of measurement, and fit again "
            f"without it."
        )
        found.append(Advice(f"Sample {samples[n]} drives {joined(driven)}.", cure))
    return found


def driver(z: Array) -> int | None:
    """The sample that drives a factor, if one does."""
    squares = (z - z.mean()) ** 2 if len(z) else z
    if len(z) < 3 or not squares.sum() > 0:
        return None
    n = int(np.argmax(squares))
    share = float(squares[n] / squares.sum())
    # The share of one of n normal values in their sum of squares is Beta(1/2, (n − 1)/2).
    by_chance = len(z) * float(betaincc(0.5, 0.5 * (len(z) - 1), min(share, 1.0)))
    return n if share > _PART_OF_FACTOR and by_chance < _CHANCE else None


def few_labels(output: str, counts: Mapping[Any, int]) -> list[Advice]:
    """Classes of an output of which few samples are known."""
    few = {label: n for label, n in counts.items() if n < _LEAST_OF_CLASS}
    if not few:
        return []
    parts = joined([f"{label} ({n})" for label, n in few.items()])
    what = f"Classes of {output} with fewer than {_LEAST_OF_CLASS} labels: {parts}."
    return [Advice(what, "Label more samples, join classes, or do not rely on these.")]


def few_values(output: str, n: int) -> list[Advice]:
    """An output of which few samples are known."""
    if n >= _LEAST_VALUES:
        return []
    what = f"Only {counted(n, 'sample')} of the fit {'has' if n == 1 else 'have'} {output}."
    return [Advice(what, "Measure it in more samples; predictions of it are hardly known.")]


def wrong_intervals(output: str, covered: float, n: int, whole: bool, origin: str) -> list[Advice]:
    """Intervals of 90 % that hold another share of values; of counts, they may hold more."""
    if not n or not np.isfinite(covered):
        return []
    error = np.sqrt(LEVEL * (1.0 - LEVEL) / n)
    off = covered - LEVEL
    if abs(off) < max(_OFF, _ERRORS * error) or (off > 0 and whole):
        return []
    kind = "narrow: the model is over-confident" if off < 0 else "wide: it is under-confident"
    what = (
        f"Intervals of 90 % hold {percent(covered)} of the values of {output} {origin}; "
        f"they are too {kind}."
    )
    return [Advice(what, _CURES[off < 0])]


def wrong_probabilities(
    output: str, sure: float, right: float, n: int, origin: str
) -> list[Advice]:
    """The mean probability of the likeliest class, beside how often it is the right one."""
    if not n:
        return []
    error = np.sqrt(max(sure * (1.0 - sure), 1e-12) / n)
    off = right - sure
    if abs(off) < max(_OFF, _ERRORS * error):
        return []
    what = (
        f"Labels of {output} are given {percent(sure)} on average and {percent(right)} of them "
        f"are right {origin}: the model is {'over' if off < 0 else 'under'}-confident."
    )
    return [Advice(what, _CURES[off < 0])]


_CURES = {  # by whether the model is over-confident
    True: "Take predictions as less certain than they say. Look for samples that belong together, "
    "such as repeats and batches, and evaluate with groups= so that they are left out together.",
    False: "Predictions are more certain than they say, so that decisions by them are too careful. "
    "Look for outliers among the samples of the fit, which widen intervals.",
}
