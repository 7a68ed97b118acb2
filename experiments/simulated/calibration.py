"""Are probabilities and intervals right on data from the model itself?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.experiment import Mark, Measurement, Row
from experiments.tasks import Array
from kofa import Binary, Categorical, Count, FactorModel, Positive, Real

BINS = 15
SEEDS = range(5)
N_TRAIN, N_TEST = 1000, 2000
FACTORS, COLUMNS, CLASSES = 4, 10, 5
NOISE = 2.0  # of x: leaves z so uncertain that intervals and probabilities must allow for it


def calibration_error(probability: Array, happened: NDArray[Any]) -> float:
    """Gap between probability and frequency (ECE): mean over equal bins, weighted by size."""
    bins = np.minimum((probability * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=probability - happened, minlength=BINS)
    return float(np.abs(gaps).sum() / len(probability))


# ---------------------------------------------------------------- data


def linear(rng: np.random.Generator, Z: Array, columns: int) -> Array:
    """w·z + b, of standard deviation 2 around a bias."""
    return Z @ rng.standard_normal((Z.shape[1], columns)) + rng.standard_normal(columns)


def binary(rng: np.random.Generator, Z: Array) -> Array:
    """The sign of w·z + b + noise."""
    eta = linear(rng, Z, COLUMNS)
    return np.where(eta + rng.standard_normal(eta.shape) > 0, 1.0, 0.0)


def categorical(rng: np.random.Generator, Z: Array) -> Array:
    """The largest of w·z + b + noise."""
    eta = linear(rng, Z, CLASSES)
    return np.asarray(np.argmax(eta + rng.standard_normal(eta.shape), axis=1), dtype=float)


def count(rng: np.random.Generator, Z: Array) -> Array:
    """Counts of about 30: so large that the steps of a discrete interval hardly matter."""
    return rng.poisson(np.logaddexp(0.0, 30 + 3 * linear(rng, Z, COLUMNS))).astype(float)


def positive(rng: np.random.Generator, Z: Array) -> Array:
    """exp(w·z + b + noise)"""
    eta = linear(rng, Z, COLUMNS)
    return np.exp(eta + 0.5 * rng.standard_normal(eta.shape))


# ---------------------------------------------------------------- fits


@dataclass(frozen=True)
class Case:
    """A fitted model, and new samples."""

    model: FactorModel
    x: Array
    y: Array


def simulate(seed: int, view: Any, draw: Callable[[np.random.Generator, Array], Array]) -> Case:
    """Fit x, 20 noisy columns, and y of the given kind; keep the rows that fit did not see."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((N_TRAIN + N_TEST, FACTORS))
    x, y = linear(rng, Z, 20), draw(rng, Z)
    x += NOISE * rng.standard_normal(x.shape)
    model = FactorModel({"x": Real(), "y": view}, outputs=["y"])
    model.fit({"x": x[:N_TRAIN], "y": y[:N_TRAIN]})
    return Case(model, x[N_TRAIN:], y[N_TRAIN:])


def of_ones(seed: int) -> tuple[Array, NDArray[Any]]:
    """Probabilities of a one in each column, and whether it came."""
    case = simulate(seed, Binary(), binary)
    return np.ravel(case.model.predict_proba({"x": case.x}, "y")), case.y.ravel()


def of_classes(seed: int) -> tuple[Array, NDArray[Any]]:
    """Probabilities of the most probable class, and whether it came."""
    case = simulate(seed, Categorical(), categorical)
    proba = case.model.predict_proba({"x": case.x}, "y")
    likely = np.asarray(case.model.classes_["y"])[proba.argmax(axis=1)]
    return proba.max(axis=1), likely == case.y


def coverage(seed: int, view: Any, draw: Callable[[np.random.Generator, Array], Array]) -> float:
    """Share of new values inside their 90 % interval."""
    case = simulate(seed, view, draw)
    low, high = case.model.predict_quantiles({"x": case.x}, "y", [0.05, 0.95])
    return float(np.mean((low <= case.y) & (case.y <= high)))


# ---------------------------------------------------------------- rows


def probabilities(kind: str, predict: Callable[[int], tuple[Array, NDArray[Any]]]) -> Row:
    """ECE of all seeds together: few rows have a large one by chance alone."""
    pairs = [predict(seed) for seed in SEEDS]
    error = calibration_error(*(np.concatenate(side) for side in zip(*pairs, strict=True)))
    each = [calibration_error(*pair) for pair in pairs]
    text = f"{error:.4f} ({min(each):.4f} to {max(each):.4f} for single seeds)"
    what = f"calibration error (ECE) of {kind}, data of the model, {len(pairs)} seeds"
    return Row(what, error, Mark(high=0.03), text)


def intervals(kind: str, view: Any, draw: Callable[[np.random.Generator, Array], Array]) -> Row:
    """Mean coverage over seeds."""
    shares = [coverage(seed, view, draw) for seed in SEEDS]
    text = f"{np.mean(shares):.3f} ({min(shares):.3f} to {max(shares):.3f})"
    what = f"coverage of 90 % intervals, {kind}, data of the model, {len(shares)} seeds"
    return Row(what, float(np.mean(shares)), Mark(0.87, 0.93), text)


EXPERIMENTS: dict[str, Measurement] = {
    "calibration-binary": partial(probabilities, "ones", of_ones),
    "calibration-categorical": partial(probabilities, "classes", of_classes),
    "intervals-count": partial(intervals, "counts", Count(), count),
    "intervals-positive": partial(intervals, "positive values", Positive(), positive),
}
