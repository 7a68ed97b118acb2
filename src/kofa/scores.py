"""Scores of predictions for samples that a fit has not seen, for each kind of view.

All are functions of arrays (n, D) in which the truth has NaN where it is not known. They return
one number for each column, NaN where none can be given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import rankdata

from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, BoolArray, IntArray

LOWER, MEDIAN, UPPER = 0.05, 0.5, 0.95  # quantiles of an interval of 90 %
_SURE = np.finfo(float).eps  # no probability is known better than this; so in scikit-learn


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What was predicted of one view for samples that the fit has not seen, and the truth."""

    likelihood: type[Likelihood]
    truth: Array  # (n, D), NaN where not known; of classes (n, C), one where it is the label
    mean: Array  # (n, D): means or probabilities
    quantiles: Mapping[float, Array]  # (n, D) each; none for kinds that have none
    mean_in_fit: Array  # (n, D): the mean of the samples that the fit has seen
    typical: Array  # (n, D): what has the least deviance from these

    @property
    def n(self) -> IntArray:
        """How many values of each column are known; of classes, how many labels."""
        known: IntArray = (~np.isnan(self.truth)).sum(axis=0)
        return known[:1] if self.likelihood.reads_labels else known

    def of_truth(self, probability: Array) -> Array:
        """The probability that was given to what is true: (n, D), of classes (n, 1)."""
        if self.likelihood.reads_labels:
            return np.asarray((self.truth * probability).sum(axis=1, keepdims=True))
        return np.asarray(np.where(self.truth == 0, 1.0 - probability, self.truth * probability))

    def deviance(self, predicted: Array) -> Array:
        """How far the truth is from something that is predicted."""
        if self.likelihood.has("probability"):
            return np.asarray(-2.0 * np.log(np.maximum(self.of_truth(predicted), _SURE)))
        return self.likelihood.deviance(self.truth, predicted)

    @property
    def centre(self) -> Array:
        """What of the prediction is to be near the truth."""
        return self.quantiles[MEDIAN] if self.likelihood.deviance_at == "median" else self.mean

    def without_inputs(self) -> HeldOut:
        """The same truth, predicted by the mean of the fit's samples, or their shares of classes.

        It has no intervals.
        """
        mean = self.typical if self.likelihood.has("probability") else self.mean_in_fit
        typical = self.typical if self.likelihood.deviance_at == "median" else mean
        nowhere = np.full(self.truth.shape, np.nan)
        quantiles = {LOWER: nowhere, MEDIAN: typical, UPPER: nowhere}
        return replace(self, mean=mean, typical=typical, quantiles=quantiles)


def typical(likelihood: type[Likelihood], values: Array) -> Array:
    """What one would predict, by column, if one knew nothing but the values (n, D) of others."""
    known = (~np.isnan(values)).sum(axis=0)
    if likelihood.has("probability"):  # with half an observation more of each (Jeffreys)
        alternatives = values.shape[1] if likelihood.reads_labels else 2
        return np.asarray((np.nansum(values, axis=0) + 0.5) / (known + 0.5 * alternatives))
    return likelihood.typical(values) if likelihood.has("deviance") else column_means(values)


def column_means(values: Array) -> Array:
    """The mean of what is known of each column, NaN where nothing is."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nansum(values, axis=0) / (~np.isnan(values)).sum(axis=0))


def explained(deviance: Array, without: Array) -> Array:
    """1 − Σ deviance / Σ deviance without the model: the share that the model explains.

    >>> import numpy as np
    >>> explained(np.array([[1.0], [np.nan]]), np.array([[4.0], [np.nan]]))
    array([0.75])
    """
    total = np.nansum(without, axis=0)
    share = 1.0 - np.nansum(deviance, axis=0) / np.where(total > 0, total, np.nan)
    return np.asarray(share)


def r2(truth: Array, predicted: Array, baseline: Array) -> Array:
    """1 − Σ (y − ŷ)² / Σ (y − ȳ)², with ȳ the mean in fit.

    >>> import numpy as np
    >>> r2(np.array([[1.0], [3.0]]), np.array([[1.0], [2.0]]), np.array([2.0]))
    array([0.5])
    """
    return explained(_squares(truth - predicted), _squares(truth - baseline))


def rmse(truth: Array, predicted: Array) -> Array:
    """√ mean (y − ŷ)²."""
    return np.sqrt(column_means(_squares(truth - predicted)))


def _squares(errors: Array) -> Array:
    """Infinite where they are too large: few values of many sizes may have any mean."""
    with np.errstate(over="ignore"):
        return np.asarray(errors**2)


def coverage(truth: Array, lower: Array, upper: Array) -> Array:
    """The share of values within [lower, upper], NaN where there is no such interval."""
    inside = ((truth >= lower) & (truth <= upper)).astype(float)
    unknown = np.isnan(truth) | np.isnan(lower) | np.isnan(upper)
    return column_means(np.where(unknown, np.nan, inside))


def auc(truth: Array, probability: Array) -> Array:
    """The probability that a one has a higher predicted probability than a zero.

    >>> import numpy as np
    >>> auc(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([[0.1], [0.4], [0.35], [0.8]]))
    array([0.75])
    """
    columns = zip(truth.T, probability.T, (~np.isnan(truth)).T, strict=True)
    return np.array([mann_whitney(t[known] == 1, p[known]) for t, p, known in columns])


def mann_whitney(ones: BoolArray, values: Array) -> float:
    """The probability that a one has a higher value than a zero; equal values count half."""
    n_ones, n_zeros = int(ones.sum()), int((~ones).sum())
    if not n_ones * n_zeros:
        return float("nan")
    ranks = rankdata(values)[ones].sum() - 0.5 * n_ones * (n_ones + 1)
    return float(ranks / (n_ones * n_zeros))


def _auc_of(held: HeldOut) -> Array:
    """Of classes, the mean of each class against the rest, where there are both."""
    found = auc(held.truth, held.mean)
    return column_means(found[:, None]) if held.likelihood.reads_labels else found


def _accuracy_of(held: HeldOut) -> Array:
    if not held.likelihood.reads_labels:
        right = (held.mean > 0.5) == (held.truth == 1)
        return column_means(np.where(np.isnan(held.truth), np.nan, right))
    known = ~np.isnan(held.truth[:, 0])
    right = np.argmax(held.mean[known], axis=1) == np.argmax(held.truth[known], axis=1)
    return column_means(right.astype(float)[:, None])


def _d2_of(held: HeldOut) -> Array:
    return explained(held.deviance(held.centre), held.deviance(held.typical))


SCORES: Mapping[str, Callable[[HeldOut], Array]] = {
    "r2": lambda held: r2(held.truth, held.mean, held.mean_in_fit),
    "rmse": lambda held: rmse(held.truth, held.mean),
    "auc": _auc_of,
    "accuracy": _accuracy_of,
    "log_loss": lambda held: 0.5 * column_means(held.deviance(held.mean)),
    "d2": _d2_of,
    "coverage": lambda held: coverage(held.truth, held.quantiles[LOWER], held.quantiles[UPPER]),
}


def scores_of(likelihood: type[Likelihood]) -> list[str]:
    """The names of the scores that a kind of view has.

    >>> import kofa
    >>> scores_of(kofa.Count.likelihood)
    ['r2', 'rmse', 'd2', 'coverage']
    """
    probable = likelihood.has("probability")
    names = ["auc", "accuracy", "log_loss"] if probable else ["r2", "rmse"]
    d2 = probable or likelihood.has("deviance")
    return [*names, *["d2"] * d2, *["coverage"] * likelihood.has("quantile")]


def pooled(folds: Sequence[HeldOut]) -> HeldOut:
    """The predictions of several folds as one."""
    fields = ("truth", "mean", "mean_in_fit", "typical")
    arrays = {f: np.concatenate([getattr(fold, f) for fold in folds]) for f in fields}
    quantiles = {
        p: np.concatenate([fold.quantiles[p] for fold in folds]) for p in folds[0].quantiles
    }
    return HeldOut(folds[0].likelihood, quantiles=quantiles, **arrays)
