"""Samples and single values that are unlike the others, given the factors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from kofa.checks import check_number, check_word
from kofa.inference.explained import losses
from kofa.inference.local_step import Latent
from kofa.inference.predictor import blur_in, linear_predictor
from kofa.inspection.false_discovery import benjamini_hochberg
from kofa.inspection.features import column_names
from kofa.inspection.matching import frame
from kofa.inspection.variance import applied, sample_names
from kofa.kernels.kernel_map import KernelMap
from kofa.linalg import Array
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
    found = applied(fitted, data)
    if by == "entry":
        return _entries(fitted, found, float(threshold))
    return _samples(fitted, found)


def _by_view(fitted: Fitted, found: Prediction, keep: Keep) -> dict[str, list[Any]]:
    """What `keep` makes of the residuals of each view; those of all rows are never held at once.

    It gets those of some rows, and the position of the first of these.
    """
    kept: dict[str, list[Any]] = {name: [] for name in fitted.views if name in found.tables}
    start = 0
    for q, values in found.project():
        for name, y in values.items():
            kept[name].append(keep(_residuals(fitted, name, y, q), start))
        start += len(q.mean)
    return {n: [np.concatenate(part) for part in zip(*of, strict=True)] for n, of in kept.items()}


@dataclass(frozen=True, eq=False)
class _Residuals:
    """What the factors leave of a view."""

    value: Array  # (n, D) in the user's units
    expected: Array
    z: Array  # (n, D): their difference in units of its standard deviation; NaN where missing
    size: Array  # (n,): Σ squared residuals in units of the noise, or of deviances
    freedom: Array  # (n,): what this is on average


Keep = Callable[[_Residuals, int], tuple[NDArray[Any], ...]]


def _residuals(fitted: Fitted, name: str, values: Array, q: Latent) -> _Residuals:
    gaussian = fitted.views[name].layer.curvature is None
    return (_gaussian if gaussian else _other)(fitted, name, values, q)


# ---------------------------------------------------------------- one view


def _gaussian(fitted: Fitted, name: str, values: Array, q: Latent) -> _Residuals:
    """y − ⟨w⟩·z − b, whose variance is 1/τ − wᵀΣw where z has seen y, else that of predictions."""
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
    size = np.nansum(error**2 / noise, axis=1)
    freedom = np.where(np.isnan(error), 0.0, variance / noise).sum(axis=1)
    shown = targets * one.encoder.scale if isinstance(one.encoder, KernelMap) else values
    z = one.layer.of_all_columns(error / np.sqrt(variance))
    return _Residuals(shown, one.layer.predict(mean, variance), z, size, freedom)


def _other(fitted: Fitted, name: str, values: Array, q: Latent) -> _Residuals:
    """Values less their expectation, in units of their standard deviation, and deviances.

    Of probabilities p, z is ±√(−2 log p): a rare value is not more of an outlier than it is rare.
    """
    one, posterior = fitted.views[name], fitted.posterior[name]
    layer, view = one.layer, one.observe(values)
    mean, variance = linear_predictor(
        q, posterior.weights, layer.competing, blurred=posterior.blurred
    )
    targets = layer.encode(values)
    if layer.has("probability"):
        expected = layer.probability(mean, variance)
        p = np.where(targets == 1, expected, 1.0 - expected)
        z = np.sign(targets - expected) * np.sqrt(-2.0 * np.log(np.clip(p, 1e-300, 1.0)))
    else:
        expected = layer.predict(mean, variance)
        std = layer.std(mean, variance) if layer.has("std") else np.full_like(mean, np.nan)
        z = (targets - expected) / std
    if layer.competing:  # the label says all
        z = np.where(targets == 1, z, np.nan)
    deviance = losses(view, mean, np.ones(mean.shape[1], dtype=bool)).sum(axis=1)
    freedom = (~np.isnan(z)).sum(axis=1).astype(float)
    return _Residuals(targets, expected, z, deviance, freedom)


# ---------------------------------------------------------------- tables


def _samples(fitted: Fitted, found: Prediction) -> Any:
    kept = _by_view(fitted, found, lambda one, _: (one.size, one.freedom))
    names = sample_names(found)
    rows = {name: np.flatnonzero(found.seen(name)) for name in kept}
    tests = {n: _test(size[rows[n]], freedom[rows[n]]) for n, (size, freedom) in kept.items()}
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


def _test(size: Array, freedom: Array) -> tuple[Array, Array]:
    """Mean size of residuals, and how likely it is to be larger.

    The cube root of a χ² variable is all but normal (Wilson & Hilferty). Where samples are many,
    their median and median deviation stand for its mean and, if it is larger, its spread: noise is
    never quite what the model says.
    """
    freedom = np.maximum(freedom, 1e-12)
    ratio = size / freedom
    spread = 2.0 / (9.0 * freedom)
    z = (np.cbrt(ratio) - (1.0 - spread)) / np.sqrt(spread)
    if len(z) >= _ENOUGH:
        z = z - np.median(z)
        z = z / max(1.0, 1.4826 * float(np.median(np.abs(z))))
    return ratio, np.asarray(ndtr(-z))


def _entries(fitted: Fitted, found: Prediction, threshold: float) -> Any:
    """Of views that are explained directly, the furthest first."""

    def far(one: _Residuals, start: int) -> tuple[NDArray[Any], ...]:
        n, d = at = np.nonzero(np.nan_to_num(np.abs(one.z), nan=-1.0) >= threshold)
        return n + start, d, one.value[at], one.expected[at], one.z[at]

    names, listed = sample_names(found), []
    for name, entries in _by_view(fitted, found, far).items():
        if fitted.views[name].likelihood is not None:
            columns = column_names(fitted.views[name])
            for n, d, *entry in zip(*(one.tolist() for one in entries), strict=True):
                listed.append((names[n], name, columns[d], *entry))
    listed.sort(key=lambda row: -abs(row[-1]))
    table = {head: [row[j] for row in listed] for j, head in enumerate(_OF_ENTRIES)}
    return frame(table | {head: np.array(table[head], float) for head in _OF_ENTRIES[3:]})
