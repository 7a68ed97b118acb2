"""Samples and single values that are unlike what all else that is known of the sample says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from kofa.checks import check_number, check_word
from kofa.errors import DataError
from kofa.inference.local_step import Latent
from kofa.inference.predictor import blur_in, linear_predictor
from kofa.inspection.false_discovery import benjamini_hochberg
from kofa.inspection.features import column_names
from kofa.inspection.matching import frame
from kofa.inspection.variance import applied, sample_names
from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, IntArray
from kofa.preparation.fitted import Fitted
from kofa.results.prediction import Prediction

BY = ("sample", "entry")
OUTLYING = 4.0  # |z| from which an entry is listed: of 16,000 normal ones, one is further out
_ENOUGH = 20  # samples that know the median deviation of their residuals
_OF_ENTRIES = ("sample", "view", "feature", "value", "expected", "z")
_LEAST_LEFT = 0.01  # of the noise: what factors leave of it where they follow a column


def outliers(fitted: Fitted, data: Any, by: str = "sample", threshold: float = OUTLYING) -> Any:
    """What `FactorModel.outliers` returns."""
    check_word("by", by, BY)
    check_number("threshold", threshold, least=0.0)
    if fitted.by_factors:
        what = "factors of the paper's own model have seen each value that they would judge"
        raise DataError(what, option="as_published", cure="fit a model without as_published")
    found = applied(fitted, data)
    if by == "entry":
        return _entries(fitted, found, float(threshold))
    return _samples(fitted, found)


@dataclass(frozen=True, eq=False)
class _Residuals:
    """What a view has beside what is expected of each of its cells given all else."""

    value: Array  # (n, D) in the user's units
    expected: Array
    z: Array  # (n, D): their difference in units of its standard deviation; NaN where missing
    square: Array  # (n,): the mean of z²
    freedom: Array  # (n,): so many squares that do not depend on each other vary as much


def _parts(fitted: Fitted, found: Prediction, name: str) -> Iterator[_Residuals]:
    """Those of some rows at a time. Similarities follow from the factors, all else from all."""
    if fitted.views[name].likelihood is not None:
        for values, mean, variance in found.each_cell(name):
            overlap = fitted.questions.asked[name].found.residuals.overlap
            yield _of_cells(fitted.views[name].layer, values, mean, variance, overlap)
    else:
        for q, known in found.project():
            yield _of_similarities(fitted, name, known[name], q)


def _of_cells(
    layer: Likelihood, values: Array, mean: Array, variance: Array, overlap: float
) -> _Residuals:
    """Of probabilities p, z is ±√(−2 log p): a rare value is no more of an outlier than rare."""
    targets = layer.encode(values)
    shown = values if layer.curvature is None else targets
    if layer.has("probability"):
        expected = layer.probability(mean, variance)
        p = np.where(targets == 1, expected, 1.0 - expected)
        z = np.sign(targets - expected) * np.sqrt(-2.0 * np.log(np.clip(p, 1e-300, 1.0)))
    else:
        expected = layer.predict(mean, variance)
        if layer.curvature is None:
            z = layer.of_all_columns((targets - mean) / np.sqrt(variance))
        else:
            std = layer.std(mean, variance) if layer.has("std") else np.full_like(mean, np.nan)
            z = (targets - expected) / std
    if layer.competing:  # the label says all
        z = np.where(targets == 1, z, np.nan)
    m = np.maximum((~np.isnan(z)).sum(axis=1), 1)
    # The sum of m squares varies as if m / (1 + (m − 1) ρ²) did not depend on each other.
    return _Residuals(
        shown, expected, z, np.nansum(z**2, axis=1) / m, m / (1.0 + (m - 1.0) * overlap)
    )


def _of_similarities(fitted: Fitted, name: str, values: Array, q: Latent) -> _Residuals:
    """y − ⟨w⟩·z − b, whose variance is 1/τ − wᵀΣw where z has seen y, else that of predictions.

    The less the factors leave of a similarity, the less it counts.
    """
    one, posterior = fitted.views[name], fitted.posterior[name]
    targets, noise = one.encoder.encode(values), 1.0 / posterior.precision
    if posterior.blurred is None:
        mean = posterior.weights.predict(q.mean)
        of_z = np.stack([blur_in(posterior.weights, one) for one in q.covariance])
        variance = np.maximum(noise - of_z[q.patterns.label], _LEAST_LEFT * noise)
    else:
        mean, variance = linear_predictor(q, posterior.weights, blurred=posterior.blurred)
        variance = variance + noise
        noise = variance
    error = targets - mean
    left = np.where(np.isnan(error), 0.0, variance / noise).sum(axis=1)
    square = np.nansum(error**2 / noise, axis=1) / np.maximum(left, 1e-12)
    return _Residuals(targets, mean, error / np.sqrt(variance), square, left)


# ---------------------------------------------------------------- tables


def _samples(fitted: Fitted, found: Prediction) -> Any:
    names = sample_names(found)
    rows = {name: np.flatnonzero(found.seen(name)) for name in fitted.views if name in found.tables}
    tests = {name: _tests(fitted, found, name, some) for name, some in rows.items()}
    p = np.concatenate([p for _, p in tests.values()])
    return frame(
        {
            "sample": [names[n] for some in rows.values() for n in some],
            "view": [name for name, some in rows.items() for _ in some],
            "statistic": np.concatenate([statistic for statistic, _ in tests.values()]),
            "p": p,
            "q": benjamini_hochberg(p),
        }
    )


def _tests(fitted: Fitted, found: Prediction, name: str, rows: IntArray) -> tuple[Array, Array]:
    parts = [(one.square, one.freedom) for one in _parts(fitted, found, name)]
    square, freedom = (np.concatenate(column)[rows] for column in zip(*parts, strict=True))
    return _test(square, freedom)


def _test(square: Array, freedom: Array) -> tuple[Array, Array]:
    """Mean squares, and how likely they are to be larger.

    The cube root of a χ² variable is all but normal (Wilson & Hilferty). Where samples are many,
    their median and median deviation stand for its mean and, if it is larger, its spread: noise is
    never quite what the model says.
    """
    spread = 2.0 / (9.0 * np.maximum(freedom, 1e-12))
    z = (np.cbrt(square) - (1.0 - spread)) / np.sqrt(spread)
    if len(z) >= _ENOUGH:
        z = z - np.median(z)
        z = z / max(1.0, 1.4826 * float(np.median(np.abs(z))))
    return square, np.asarray(ndtr(-z))


def _entries(fitted: Fitted, found: Prediction, threshold: float) -> Any:
    """Of views that are explained directly, the furthest first."""
    names, listed = sample_names(found), []
    for name, view in fitted.views.items():
        if name not in found.tables or view.likelihood is None:
            continue
        columns, start = column_names(view), 0
        for one in _parts(fitted, found, name):
            at = np.nonzero(np.nan_to_num(np.abs(one.z), nan=-1.0) >= threshold)
            far = (*at, one.value[at], one.expected[at], one.z[at])
            for n, d, *entry in zip(*(column.tolist() for column in far), strict=True):
                listed.append((names[start + n], name, columns[d], *entry))
            start += len(one.z)
    listed.sort(key=lambda row: -abs(row[-1]))
    table = {head: [row[j] for row in listed] for j, head in enumerate(_OF_ENTRIES)}
    return frame(table | {head: np.array(table[head], float) for head in _OF_ENTRIES[3:]})
