"""Are p-values of associations and of feature sets right, and are planted ones found?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.experiment import Mark, Row
from experiments.tasks import Array
from kofa.inspection import associate, enrich

DRAWS = 1000
LEVEL = 0.05
NULL = Mark(low=0.03, high=0.07)  # share of p < .05 where there is nothing
FALSE = Mark(high=0.07)  # share of false ones among those with q < .05
Generator = np.random.Generator
# A share of each draw, by design.
Shares = dict[str, list[float]]


def draws(n: int, seed: int = 0) -> Iterator[Generator]:
    """A source of random numbers for each draw, whatever the others take."""
    return (np.random.default_rng([seed, draw]) for draw in range(n))


def worst(shares: Mapping[str, float], target: float = LEVEL) -> float:
    """The share furthest from what it should be."""
    return max(shares.values(), key=lambda share: abs(share - target))


def listed(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares.items())


def means(found: Shares) -> dict[str, float]:
    return {name: float(np.mean(values)) for name, values in found.items()}


# ---------------------------------------------------------------- associations

Column = Callable[[Generator, int], Any]
COVARIATES: dict[str, Column] = {
    "number": lambda rng, n: rng.standard_normal(n),
    "log-normal number": lambda rng, n: np.exp(rng.standard_normal(n)),
    "whole number": lambda rng, n: np.r_[0, 1, 2, rng.poisson(2.0, n - 3)],
    "two halves": lambda rng, n: rng.permutation(np.arange(n) < n // 2),
    "one fifth": lambda rng, n: rng.permutation(np.arange(n) < n // 5),
    "3 categories": lambda rng, n: rng.permutation(np.resize(list("abc"), n)),
    "6 categories": lambda rng, n: rng.permutation(np.resize(list("abcdef"), n)),
}
FACTORS: dict[str, Callable[[Array], Array]] = {
    "normal": lambda z: z,
    "tied": np.round,
    "log-normal": np.exp,
}


def association_null(n_draws: int = DRAWS) -> Row:
    """Factors and covariates that have nothing to do with each other, few samples and many."""
    found: Shares = {}
    for rng in draws(n_draws):
        for n in (15, 100):
            z = rng.standard_normal(n)
            known = {name: column(rng, n) for name, column in COVARIATES.items()}
            for shape, change in FACTORS.items():
                table = associate(change(z), known)
                for name, p in zip(table["covariate"], table["p"], strict=True):
                    label = f"{name} ({shape} factor, n = {n})"
                    found.setdefault(label, []).append(p < LEVEL)
    shares = means(found)
    smooth = {name: share for name, share in shares.items() if "log-normal factor" not in name}
    what = (
        f"share of p < .05 of factors and covariates without association, {n_draws} draws, the "
        f"furthest from 5 % of factors that are not log-normal"
    )
    return Row(what, worst(smooth), NULL, f"{100 * worst(smooth):.1f} %; {listed(shares)}")


def discovered(q: Array, true: Any) -> tuple[float, float]:
    """False ones among those found, and found ones among the true."""
    found = q < LEVEL
    return float((found & ~true).sum() / max(found.sum(), 1)), float(found[true].mean())


def association_planted(n_draws: int = DRAWS) -> Row:
    """Five factors; of each kind of covariates one goes with a factor, and three with none."""
    false: Shares = {}
    power: Shares = {}
    for rng in draws(n_draws):
        z = rng.standard_normal((80, 5))
        known, own = _covariates_of(rng, z)
        table = associate(z, known)
        pairs = zip(table["factor"], table["covariate"], strict=True)
        true = np.array([own.get(covariate) == factor for factor, covariate in pairs])
        kind = table["kind"].to_numpy()
        for name in ("all", "number", "binary", "category"):
            chosen = np.full(len(table), True) if name == "all" else kind == name
            share, hit = discovered(table["q"].to_numpy()[chosen], true[chosen])
            false.setdefault(name, []).append(share)
            power.setdefault(name, []).append(hit)
    shares = means(false)
    what = f"false ones among associations with q < .05, 5 factors × 12 covariates, {n_draws} draws"
    text = f"{100 * shares['all']:.1f} %; {listed(shares)}; found: {listed(means(power))}"
    return Row(what, shares["all"], FALSE, text)


def _covariates_of(rng: Generator, z: Array) -> tuple[dict[str, Any], dict[str, str]]:
    """Covariates, and the factor that those which follow one follow."""
    cut: dict[str, Callable[[Array], Any]] = {
        "number": lambda x: x,
        "binary": lambda x: x > 0.5,
        "category": lambda x: np.digitize(x, [-0.6, 0.6]).astype(str),
    }
    known, own = {}, {}
    for k, (name, kind) in enumerate(cut.items()):
        known[name] = kind(0.5 * z[:, k] + np.sqrt(0.75) * rng.standard_normal(len(z)))
        own[name] = f"factor{k + 1}"
        known |= {f"{name}{j}": kind(rng.standard_normal(len(z))) for j in range(3)}
    return known, own


# ---------------------------------------------------------------- feature sets

SIZE = 20
OPTIONS: dict[str, dict[str, Any]] = {
    "signed": {},
    "absolute": {"absolute": True},
    "ranks": {"ranks": True},
}


@dataclass(frozen=True)
class Design:
    """Features, of which each set has a cause of its own that explains a share rho."""

    n: int
    n_features: int
    n_sets: int
    rho: float

    @property
    def sets(self) -> dict[str, range]:
        return {f"set{s}": range(s * SIZE, (s + 1) * SIZE) for s in range(self.n_sets)}

    def noise(self, rng: Generator) -> Array:
        own = rng.standard_normal((self.n, self.n_features))
        m = self.n_sets * SIZE
        shared = np.repeat(rng.standard_normal((self.n, self.n_sets)), SIZE, axis=1)
        own[:, :m] = np.sqrt(1.0 - self.rho) * own[:, :m] + np.sqrt(self.rho) * shared
        return own

    def views(self, rng: Generator, weights: Array) -> tuple[Array, Array, Array]:
        """Factors, features that follow from them, and the weights as least squares find them."""
        z = rng.standard_normal((self.n, weights.shape[1]))
        x = z @ weights.T + self.noise(rng)
        return z, x, np.asarray(np.linalg.pinv(z) @ x).T


def enrichment_null(n_draws: int = DRAWS) -> Row:
    """Sets of features that go together; a factor without weights, and one with any."""
    found: Shares = {}
    naive: Shares = {}
    designs = [(Design(20, 300, 5, 0.5), 0.0), (Design(20, 300, 5, 0.5), 0.3)]
    designs += [(Design(100, 300, 5, rho), size) for rho in (0.0, 0.2, 0.5) for size in (0.0, 0.3)]
    for rng in draws(n_draws):
        for design, size in designs:
            z, x, w = design.views(rng, size * rng.standard_normal((300, 1)))
            place = f"correlation {design.rho:g}, weights {size:g}, n = {design.n}"
            for name, options in OPTIONS.items():
                p = enrich(w, design.sets, data=x, factors=z, **options)["p"]
                found.setdefault(f"{name} ({place})", []).append((p < LEVEL).mean())
            p = enrich(w, design.sets)["p"]
            naive.setdefault(place, []).append((p < LEVEL).mean())
    shares = means(found)
    what = f"share of p < .05 of feature sets without association, with data, {n_draws} draws"
    text = f"{100 * worst(shares):.1f} %; {listed(shares)}; without data: {listed(means(naive))}"
    return Row(what, worst(shares), NULL, text)


def enrichment_planted(n_draws: int = DRAWS) -> Row:
    """Three factors with weights in all features, and larger ones in 3 of 20 sets of the first."""
    false: Shares = {}
    power: Shares = {}
    for rng in draws(n_draws):
        for rho in (0.0, 0.1, 0.3):
            design = Design(100, 1000, 20, rho)
            weights = 0.3 * rng.standard_normal((1000, 3))
            weights[: 3 * SIZE, 0] += 0.4
            z, x, w = design.views(rng, weights)
            for name in ("signed", "ranks"):
                options = OPTIONS[name]
                table = enrich(w, design.sets, data=x, factors=z, **options)
                planted = table["set"].isin(["set0", "set1", "set2"])
                true = (planted & (table["factor"] == "factor1")).to_numpy()
                share, hit = discovered(table["q"].to_numpy(), true)
                label = f"{name} (correlation {rho:g})"
                false.setdefault(label, []).append(share)
                power.setdefault(label, []).append(hit)
    shares = means(false)
    largest = max(shares.values())
    what = f"false ones among sets with q < .05, 3 factors × 20 sets, {n_draws} draws"
    text = f"{100 * largest:.1f} %; {listed(shares)}; found: {listed(means(power))}"
    return Row(what, largest, FALSE, text)


EXPERIMENTS: dict[str, Callable[..., Row]] = {
    "association-null": association_null,
    "association-planted": association_planted,
    "enrichment-null": enrichment_null,
    "enrichment-planted": enrichment_planted,
}
