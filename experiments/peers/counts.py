"""Counts and ones with holes: kofa and mofapy2 on the same planted data.

mofapy2 0.7.5 has no intercept where the likelihood is not Gaussian: it takes the mean off its
pseudo-data, but expands and predicts around Z Wᵀ alone. It is therefore compared on data with and
without intercepts, and is given what it lacks: one offset per column, fitted to the entries shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from time import process_time

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn.metrics import log_loss, mean_poisson_deviance

from experiments.baselines.mofa import factors_and_weights, train
from experiments.experiment import Mark, Measurement, Row
from experiments.peers import on_one_thread
from experiments.simulated.planted import Planted
from experiments.tasks import Array
from kofa import Binary, Count, FactorModel

N, FACTORS, COLUMNS = 1000, 8, 300
ALLOWED = 15  # factors
MISSING = 0.1
SEEDS = (0, 1)

# ---------------------------------------------------------------- data


def softplus(x: Array) -> Array:
    return np.logaddexp(0.0, x)


def bernoulli_deviance(y: Array, p: Array) -> float:
    return 2.0 * float(log_loss(y, p, labels=[0.0, 1.0]))


LIKELIHOODS = {"count": "poisson", "binary": "bernoulli"}
LINKS: dict[str, Callable[[Array], Array]] = {"count": softplus, "binary": expit}
DEVIANCES: dict[str, Callable[[Array, Array], float]] = {
    "count": mean_poisson_deviance,
    "binary": bernoulli_deviance,
}


def planted_mixed(seed: int, biased: bool) -> Planted:
    """Poisson counts, 2.9 on average (1.3 without bias), and ones, 50 %; a tenth is hidden."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((N, FACTORS))
    count, binary = (Z @ rng.standard_normal((FACTORS, COLUMNS)) for _ in LINKS)
    if biased:
        count += 2.5
        binary += rng.standard_normal(COLUMNS)
    ones = rng.random(binary.shape) < expit(binary)
    full = {"count": rng.poisson(softplus(count)).astype(float), "binary": ones.astype(float)}
    views = {m: np.where(rng.random(y.shape) < MISSING, np.nan, y) for m, y in full.items()}
    return Planted(views, full, Z)


# ---------------------------------------------------------------- fits


@dataclass(frozen=True)
class Fit:
    """What one package made of the planted data."""

    cpu: float
    deviance: dict[str, float]


def held_out(data: Planted, restored: dict[str, Array]) -> dict[str, float]:
    """Mean deviance of the entries that were hidden, by view."""
    hidden = {name: np.isnan(y) for name, y in data.views.items()}
    return {m: DEVIANCES[m](data.full[m][h], restored[m][h]) for m, h in hidden.items()}


def offset(name: str, y: Array, eta: Array) -> float:
    """What to add to a column of Z Wᵀ, by maximum likelihood on the entries shown."""
    shown = ~np.isnan(y)

    def deviance(shift: float) -> float:
        return DEVIANCES[name](y[shown], LINKS[name](eta[shown] + shift))

    return float(minimize_scalar(deviance, bounds=(-10.0, 10.0), method="bounded").x)


def with_offsets(name: str, Y: Array, eta: Array) -> Array:
    """Predictions of a view."""
    shifts = [offset(name, y, column) for y, column in zip(Y.T, eta.T, strict=True)]
    return LINKS[name](eta + shifts)


@cache
def fit_mofa(seed: int, biased: bool) -> Fit:
    """mofapy2 with its own likelihoods, and the offsets that it lacks (not timed)."""
    data = planted_mixed(seed, biased)
    model, cpu = train(list(data.views.values()), ALLOWED, list(LIKELIHOODS.values()))
    Z, W = factors_and_weights(model)
    etas = {name: Z @ w.T for name, w in zip(LIKELIHOODS, W, strict=True)}
    restored = {name: with_offsets(name, data.views[name], eta) for name, eta in etas.items()}
    return Fit(cpu, held_out(data, restored))


def restore(model: FactorModel, views: dict[str, Array]) -> dict[str, Array]:
    """Expected counts and probabilities of a one, from all entries shown."""
    ones = model.reconstruct(views, "binary", proba=True)
    return {"count": model.reconstruct(views, "count"), "binary": ones}


@cache
def fit_kofa(seed: int, biased: bool) -> Fit:
    """All at its defaults but the number of factors."""
    data = planted_mixed(seed, biased)
    start = process_time()
    model = FactorModel({"count": Count(), "binary": Binary()}, ALLOWED).fit(data.views)
    cpu = process_time() - start
    return Fit(cpu, held_out(data, restore(model, data.views)))


def fits(biased: bool) -> tuple[list[Fit], list[Fit]]:
    """Ours and theirs, in turns."""
    pairs = [(fit_kofa(seed, biased), fit_mofa(seed, biased)) for seed in SEEDS]
    return [ours for ours, _ in pairs], [theirs for _, theirs in pairs]


# ---------------------------------------------------------------- rows


def deviance(name: str, biased: bool) -> Row:
    """Held-out deviance, ours minus theirs."""
    ours, theirs = (np.mean([f.deviance[name] for f in side]) for side in fits(biased))
    apart = float(ours - theirs)
    text = f"{apart:.4f} (kofa {ours:.4f}, mofapy2 with offsets {theirs:.4f})"
    data = "with" if biased else "without"
    what = f"held-out {LIKELIHOODS[name]} deviance, kofa − mofapy2, data {data} intercepts"
    return Row(what, apart, Mark(high=0.0), text)


def cpu_time() -> Row:
    """CPU time to convergence, theirs over ours."""
    ours, theirs = ([f.cpu for f in side] for side in fits(biased=True))
    ratio = sum(theirs) / sum(ours)
    text = f"{ratio:.1f} ({sum(theirs):.2f} / {sum(ours):.2f} CPU s, {len(SEEDS)} seeds)"
    what = f"CPU time of mofapy2 / kofa on one thread, {COLUMNS} counts and {COLUMNS} ones"
    return Row(what, ratio, Mark(low=10), text)


MEASUREMENTS: dict[str, Measurement] = {
    "mofa-mixed": cpu_time,
    "mofa-count": partial(deviance, "count", True),
    "mofa-binary": partial(deviance, "binary", True),
    "mofa-count-centred": partial(deviance, "count", False),
    "mofa-binary-centred": partial(deviance, "binary", False),
}
EXPERIMENTS = {name: partial(on_one_thread, one) for name, one in MEASUREMENTS.items()}
