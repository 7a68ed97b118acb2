"""Do 90 % intervals hold where new samples differ from those of the fit?

Rows with more holes, rows far away from all data, and fits to few samples, through kernels that
contain the function. Every figure is a mean over functions that are drawn anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from experiments.experiment import Mark, Measurement, Row
from experiments.tasks import Array
from kofa import FactorModel, Real

N_TEST = 400
FEATURES, OUTPUTS = 6, 3
NOISE = 0.3
HOLES_IN_FIT = 0.05
SEEDS = range(100, 110)
MORE_HOLES = (0.0, 0.3, 0.6, 0.9)
DISTANCES = (0.0, 2.0, 5.0, 10.0, 50.0)  # in standard deviations

Function = Callable[[Array], Array]

# ---------------------------------------------------------------- functions that kernels contain


def linear(rng: np.random.Generator) -> Function:
    """w·x, of unit variance."""
    W = rng.standard_normal((FEATURES, OUTPUTS)) / np.sqrt(FEATURES)
    return lambda X: np.asarray(X @ W)


def waves(rng: np.random.Generator, frequencies: Array) -> Function:
    """A draw of a stationary Gaussian process by its spectrum: unit variance, everywhere."""
    n = frequencies.shape[1]
    phase = rng.uniform(0.0, 2.0 * np.pi, n)
    A = rng.standard_normal((n, OUTPUTS)) * np.sqrt(2.0 / n)
    return lambda X: np.asarray(np.cos(X @ frequencies + phase) @ A)


def smooth(rng: np.random.Generator) -> Function:
    """A function of an RBF kernel of the median distance."""
    return waves(rng, rng.standard_normal((FEATURES, 400)) / np.sqrt(2.0 * FEATURES))


def rough(rng: np.random.Generator) -> Function:
    """A function of a Laplacian kernel."""
    return waves(rng, rng.standard_cauchy((FEATURES, 400)) / (2.0 * FEATURES))


def mixed(rng: np.random.Generator) -> Function:
    """A function of the bank of kernels."""
    parts = [linear(rng), smooth(rng), rough(rng)]
    return lambda X: np.asarray(sum(part(X) for part in parts) / np.sqrt(3.0))


def square(rng: np.random.Generator) -> Function:
    """Squares, which no kernel of the bank contains far away from the data."""
    W = rng.standard_normal((FEATURES, OUTPUTS)) / np.sqrt(FEATURES)
    return lambda X: np.asarray((X @ W) ** 2 / np.sqrt(2.0))


OF_KERNEL = {"linear": linear, "rbf": smooth, "bank": mixed}


# ---------------------------------------------------------------- fits


@dataclass(frozen=True)
class Case:
    """A fitted model, and ordinary new samples."""

    model: FactorModel
    f: Function
    x: Array
    rng: np.random.Generator

    def coverage(self, x: Array, known: Array) -> float:
        """Share of outputs at x inside their intervals, when `known` is what is known of x."""
        y = self.f(x) + NOISE * self.rng.standard_normal((len(x), OUTPUTS))
        low, high = self.model.predict_quantiles({"x": known}, "y", [0.05, 0.95])
        return float(np.mean((low <= y) & (y <= high)))


@dataclass(frozen=True)
class Design:
    """What is fitted to what."""

    kernel: str
    outputs: bool
    n: int
    function: Callable[[np.random.Generator], Function]

    def fit(self, seed: int, holes: float = 0.0) -> Case:
        rng = np.random.default_rng(seed)
        f = self.function(rng)
        x = rng.standard_normal((self.n + N_TEST, FEATURES))
        y = f(x[: self.n]) + NOISE * rng.standard_normal((self.n, OUTPUTS))
        views = {"x": Real(kernel=self.kernel), "y": Real()}
        model = FactorModel(views, outputs=["y"] if self.outputs else None)
        model.fit({"x": with_holes(rng, x[: self.n], holes), "y": y})
        return Case(model, f, x[self.n :], rng)


def with_holes(rng: np.random.Generator, x: Array, share: float) -> Array:
    """Some entries missing, but never all of a row."""
    missing = rng.random(x.shape) < share
    missing[np.arange(len(x)), rng.integers(x.shape[1], size=len(x))] = False
    return np.where(missing, np.nan, x)


def far(rng: np.random.Generator, x: Array, distance: float) -> Array:
    """The rows moved by so many standard deviations, each in a direction of its own."""
    u = rng.standard_normal(x.shape)
    return np.asarray(x + distance * u / np.linalg.norm(u, axis=1, keepdims=True))


# ---------------------------------------------------------------- rows


class Measure(Protocol):
    def __call__(self, design: Design, seed: int) -> list[float]: ...


def by_holes(design: Design, seed: int) -> list[float]:
    case = design.fit(seed, HOLES_IN_FIT)
    return [case.coverage(case.x, with_holes(case.rng, case.x, h)) for h in MORE_HOLES]


def by_distance(design: Design, seed: int) -> list[float]:
    case = design.fit(seed)
    moved = [far(case.rng, case.x, distance) for distance in DISTANCES]
    return [case.coverage(x, x) for x in moved]


def coverage(what: str, measure: Measure, design: Design, mark: Mark | None) -> Row:
    """The least coverage over the cells of a row, each a mean over seeds."""
    shares = np.mean([measure(design, seed) for seed in SEEDS], axis=0)
    text = ", ".join(f"{share:.3f}" for share in shares)
    how = "with outputs" if design.outputs else "without outputs"
    title = f"coverage of 90 % intervals {what}, {design.kernel}, {how}, N = {design.n}"
    return Row(title, float(shares.min()), mark, text)


def rows() -> dict[str, Measurement]:
    """Every kernel, with and without outputs, with few samples and with more."""
    found: dict[str, Measurement] = {}
    titles = {
        "holes": (f"at {', '.join(f'{h:.0%}' for h in MORE_HOLES)} holes (5 % in fit)", by_holes),
        "distance": (f"at {', '.join(f'{d:g}' for d in DISTANCES)} sd from the data", by_distance),
    }
    for name, (what, measure) in titles.items():
        for kernel, function in OF_KERNEL.items():
            for outputs in (True, False):
                for n in (20, 200):
                    end = f"{kernel}-{'outputs' if outputs else 'none'}-{n}"
                    design = Design(kernel, outputs, n, function)
                    mark = Mark(low=0.87)
                    found[f"intervals-{name}-{end}"] = partial(
                        coverage, what, measure, design, mark
                    )
    return found | outside()


def outside() -> dict[str, Measurement]:
    """What no interval can know: these rows inform."""
    away = f"{', '.join(f'{d:g}' for d in DISTANCES)} sd"
    functions = {"square": square, "line": linear}
    found: dict[str, Measurement] = {
        f"intervals-{name}": partial(
            coverage, f"of a {name} at {away}", by_distance, Design("rbf", True, 200, f), None
        )
        for name, f in functions.items()
    }
    for n in (20, 200):
        found[f"intervals-primal-{n}"] = partial(primal, n, away)
    return found


def primal(n: int, away: str) -> Row:
    """Views without a kernel, the samples far out in their factors."""
    shares = np.mean([by_distance_in_factors(n, seed) for seed in SEEDS], axis=0)
    title = f"coverage of 90 % intervals at {away} in the factors, no kernel, N = {n}"
    return Row(title, None, None, ", ".join(f"{share:.3f}" for share in shares))


def by_distance_in_factors(n: int, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    W, B = rng.standard_normal((3, 8)), rng.standard_normal((3, OUTPUTS)) / np.sqrt(3.0)

    def draw(Z: Array) -> tuple[Array, Array]:
        x = Z @ W + 0.5 * rng.standard_normal((len(Z), 8))
        return x, Z @ B + NOISE * rng.standard_normal((len(Z), OUTPUTS))

    x, y = draw(rng.standard_normal((n, 3)))
    model = FactorModel().fit({"x": x, "y": y})
    covered = []
    for distance in DISTANCES:
        x, y = draw(far(rng, rng.standard_normal((N_TEST, 3)), distance))
        low, high = model.predict_quantiles({"x": x}, "y", [0.05, 0.95])
        covered.append(float(np.mean((low <= y) & (y <= high))))
    return covered


EXPERIMENTS: dict[str, Measurement] = rows()
