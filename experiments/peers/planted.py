"""mofapy2 and cca-zoo on planted data: time, factors, noise and held-out entries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from time import process_time

import numpy as np
from scipy.linalg import subspace_angles

from experiments.baselines.mofa import factors_and_weights, train
from experiments.experiment import Mark, Measurement, Row
from experiments.peers import on_one_thread
from experiments.simulated.planted import ACTIVE, ALLOWED, MISSING, Planted, planted
from experiments.tasks import Array
from kofa import FactorModel, Real

SEEDS = (0, 1)


@dataclass(frozen=True)
class Fit:
    """What one package made of the planted data."""

    cpu: float
    n_iter: int
    n_factors: int
    rmse: float | None

    def __str__(self) -> str:
        error = "" if self.rmse is None else f", RMSE {self.rmse:.4f}"
        return f"{self.cpu:.1f} CPU s, {self.n_iter} iterations, {self.n_factors} factors{error}"


def count_active(Z: Array, W: list[Array], variances: list[float]) -> int:
    """Factors that explain more than ACTIVE of the variance of some view."""
    z_square = (Z**2).mean(axis=0)
    shares = [(w**2).mean(axis=0) * z_square / v for w, v in zip(W, variances, strict=True)]
    return int((np.max(shares, axis=0) > ACTIVE).sum())


def held_out(data: Planted, filled: dict[str, Array]) -> float | None:
    """RMSE on held-out entries, if there are any."""
    return data.rmse(filled) if np.isnan(data.views["a"]).any() else None


# ---------------------------------------------------------------- mofapy2


def fit_mofa(data: Planted) -> Fit:
    """Predict with the means by which mofapy2 centres."""
    model, cpu = train(list(data.views.values()), ALLOWED)
    Z, W = factors_and_weights(model)
    views = zip(data.views.items(), W, strict=True)
    filled = {name: Z @ w.T + np.nanmean(y, axis=0) for (name, y), w in views}
    variances = [float(np.nanvar(y, axis=0).mean()) for y in data.views.values()]
    n_iter = len(model.getTrainingStats()["elbo"])
    return Fit(cpu, n_iter, count_active(Z, W, variances), held_out(data, filled))


def fit_kofa(data: Planted) -> Fit:
    """All at its defaults but the number of factors."""
    start = process_time()
    model = FactorModel(n_factors=ALLOWED)
    Z = model.fit_transform(data.views)
    cpu = process_time() - start
    W = [view.weights.mean for view in model.posterior_.values()]
    n_factors = count_active(Z, W, [1.0] * len(W))
    return Fit(cpu, model.n_iter_, n_factors, held_out(data, model.impute(data.views)))


def against_mofa(missing: float, mark: Mark) -> Row:
    """CPU time to convergence, theirs over ours, in turns."""
    fits = [(fit_kofa(data), fit_mofa(data)) for data in (planted(s, missing) for s in SEEDS)]
    ours, theirs = zip(*fits, strict=True)
    ratio = sum(f.cpu for f in theirs) / sum(f.cpu for f in ours)
    each = "; ".join(
        f"seed {s}: mofapy2 {t}, kofa {o}" for s, (o, t) in zip(SEEDS, fits, strict=True)
    )
    entries = f"{missing:.0%} missing" if missing else "complete"
    what = f"CPU time of mofapy2 / kofa on one thread, planted data, {entries}"
    return Row(what, ratio, mark, f"{ratio:.1f} ({each})")


# ---------------------------------------------------------------- cca-zoo

SMALL = {"a": 60, "b": 40, "c": 30}


@dataclass(frozen=True)
class Solution:
    """Factors and noise of the model that kofa and group factor analysis share."""

    Z: Array
    noise: Array  # sd per view, in the user's units


@cache
def gfa_data() -> Planted:
    return planted(0, n=300, columns=SMALL)


@cache
def solve_gfa() -> Solution:
    """Klami et al.'s algorithm as cca-zoo has it."""
    from cca_zoo.probabilistic import GFA

    views = list(gfa_data().views.values())
    model = GFA(n_components=15, random_state=0).fit(views)
    noise = [model.posterior_samples_[f"noise_sd_{m}"].mean() for m in range(len(views))]
    return Solution(model.posterior_mean(views), np.array(noise))


@cache
def solve_kofa() -> Solution:
    """The same model: columns not scaled, one noise per view."""
    views = gfa_data().views
    declared = {name: Real(noise="view", scale=False) for name in views}
    model = FactorModel(declared, n_factors=15, tol=1e-9)
    Z = model.fit_transform(views)
    noise = [
        view.layer.std(np.zeros(1), model.posterior_[name].tau.mean_inverse).mean()
        for name, view in model.views_.items()
    ]
    return Solution(Z, np.array(noise))


def gfa_angle() -> Row:
    """Do both find the same space of factors?"""
    ours, theirs = solve_kofa(), solve_gfa()
    angle = float(np.degrees(subspace_angles(ours.Z, theirs.Z)[0]))
    counts = f"{ours.Z.shape[1]} and {theirs.Z.shape[1]} factors"
    what = "largest principal angle of the factors to those of cca-zoo's GFA, degrees"
    return Row(what, angle, Mark(high=1.0), f"{angle:.3f} ({counts})")


def gfa_noise() -> Row:
    """Do both find the same noise?"""
    ours, theirs = solve_kofa().noise, solve_gfa().noise
    apart = float(np.abs(ours / theirs - 1).max())
    text = f"{apart:.2%} (kofa {np.round(ours, 4)}, cca-zoo {np.round(theirs, 4)})"
    return Row("largest difference of noise to cca-zoo's GFA", apart, Mark(high=0.01), text)


# ---------------------------------------------------------------- rows


MEASUREMENTS: dict[str, Measurement] = {
    "gfa-angle": gfa_angle,
    "gfa-noise": gfa_noise,
    "mofa": partial(against_mofa, 0.0, Mark(low=50)),
    "mofa-missing": partial(against_mofa, MISSING, Mark(low=20)),
}
EXPERIMENTS = {name: partial(on_one_thread, one) for name, one in MEASUREMENTS.items()}
