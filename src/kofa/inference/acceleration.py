"""Anderson acceleration: an iteration begins ahead of where the last one ended.

Coordinate ascent goes on by ever smaller steps in the same few directions. One iteration leads from
x_i to g_i, by the step f_i = g_i − x_i. The steps of the last iterations tell where the next ones
would lead (Anderson 1965; Walker & Ni 2011):

    x = g_t − Σ_i c_i (g_{i+1} − g_i),        c = argmin ‖f_t − Σ_i c_i (f_{i+1} − f_i)‖².

Steps that grow lead away from a saddle, where this would lead back to: there it is the last step
that is taken further. Any x is a valid q. Whether it pays is seen from the bound, and where that
would fall, the iteration begins at g_t (`loop.iterate`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from kofa import tuning
from kofa.inference.pattern_sums import along
from kofa.inference.posterior import Gamma, State, ViewPosterior
from kofa.linalg import Array, IntArray

# What an iteration begins with, by view and name, or differences of it.
Numbers = Any  # an array, or `PatternMeans`
Point = Mapping[str, Mapping[str, Numbers]]

_MEANS = ("mean", "y_mean", "z_mean")
_PRECISIONS = ("tau", "alpha", "gamma")
_FAR = 50.0  # of the logarithm of a rate
_AT_ONCE = 2**16  # numbers of each step in a product of steps
_JITTER = 1e-8  # relative to the largest steps: what is smaller is not foreseen


@dataclass(frozen=True, eq=False)
class Trail:
    """The steps f_i of the last iterations, and the moves g_{i+1} − g_i between their ends."""

    steps: tuple[Point, ...] = ()
    moves: tuple[Point, ...] = ()

    def after(self, last: State, begin: State, end: State) -> Trail:
        """With the iteration from `begin` to `end`; the one before ended with `last`."""
        to, most = _point(end), tuning.ACCELERATION_STEPS
        step = _difference(to, _point(begin))
        if not self.steps:
            return Trail((step,))
        move = step if begin is last else _difference(to, _point(last))  # kept but once
        return Trail((*self.steps, step)[-most:], (*self.moves, move)[1 - most :])

    def ahead(self, state: State) -> State | None:
        """Where the iterations that ended with this state lead; None where there is but one."""
        if not self.moves:
            return None
        products = _products(self.steps, _units(state))
        length, before, c = _solved(products)
        if length >= before:
            ratio = np.sqrt(length / max(before, np.finfo(float).tiny))
            leap = min(tuning.LONGEST_LEAP, 1.0 / max(ratio - 1.0, np.finfo(float).eps))
            return _moved(state, [leap], self.steps[-1:])
        return _moved(state, (-c).tolist(), self.moves)

    def last(self) -> Trail:
        """The last iteration alone."""
        return Trail(self.steps[-1:])

    def keep(self, factors: IntArray) -> Trail:
        """Without all factors but these."""
        by_factor = ("mean", "z_mean", "alpha")
        return self._each(lambda name, x: along(x, factors) if name in by_factor else x)

    def rotated(self, R: Array) -> Trail:
        """As it would be after z ← R z."""
        right = {"mean": np.asarray(np.linalg.inv(R), dtype=float), "z_mean": R.T}

        def turned(name: str, x: Numbers) -> Numbers:
            return _as_before(x @ right[name], x) if name in right else x

        return self._each(turned)

    def complete(self) -> dict[str, tuple[Point, ...]]:
        """Its parts as arrays."""
        whole = self._each(lambda _, x: np.asarray(x))
        return {"steps": whole.steps, "moves": whole.moves}

    def _each(self, change: Callable[[str, Numbers], Numbers]) -> Trail:
        def changed(point: Point) -> Point:
            return {view: {n: change(n, x) for n, x in of.items()} for view, of in point.items()}

        found: dict[int, Point] = {}  # a step that is a move as well stays one
        for point in (*self.steps, *self.moves):
            if id(point) not in found:
                found[id(point)] = changed(point)
        each = [tuple(found[id(point)] for point in one) for one in (self.steps, self.moves)]
        return Trail(*each)


def _solved(products: Array) -> tuple[float, float, Array]:
    """‖f_t‖², ‖f_{t−1}‖² and c, from the products of f_t and the differences of steps."""
    gram, target = products[1:, 1:], products[1:, 0]
    length, before = products[0, 0], products[0, 0] - 2.0 * target[-1] + gram[-1, -1]
    jitter = max(_JITTER * float(np.trace(gram)), np.finfo(float).tiny)
    c = np.linalg.solve(gram + jitter * np.eye(len(gram)), target)
    return float(length), float(before), np.asarray(c, dtype=float)


def _products(steps: Sequence[Point], units: Point) -> Array:
    """All products of f_t, f_2 − f_1, …, f_t − f_{t−1}, on the scale that the units give."""
    total, n = np.zeros((len(steps), len(steps))), len(steps)
    for parts, unit in _parts(steps, units):
        scaled = (np.stack(parts) * unit).reshape(n, -1)
        each = np.empty(scaled.shape)
        each[0] = scaled[-1]
        np.subtract(scaled[1:], scaled[:-1], out=each[1:])  # before the product, for its digits
        total += each @ each.T
    return total


def _parts(steps: Sequence[Point], units: Point) -> Iterator[tuple[list[Numbers], Numbers]]:
    """Some numbers of all steps at a time, and their units."""
    for view, of in units.items():
        for name, unit in of.items():
            whole = [step[view][name] for step in steps]
            rows = max(1, _AT_ONCE * len(whole[0]) // max(1, whole[0].size))
            for start in range(0, len(whole[0]), rows):
                where = slice(start, start + rows)
                yield [x[where] for x in whole], unit[where] if unit.ndim else unit


def _units(state: State) -> Point:
    """Roots of the information about each number, so that all are on one scale."""
    return {name: dict(_units_of(view)) for name, view in state.items()}


def _units_of(view: ViewPosterior) -> Iterator[tuple[str, Array]]:
    of_mean = 1.0 / np.sqrt(view.weights.bias_variance)  # √(n τ)
    yield "mean", of_mean[:, None]
    yield "y_mean", of_mean
    for name, precision in _learnt(view):
        yield name, np.sqrt(precision.shape)


def _point(state: State) -> Point:
    """What an iteration begins with: means, and logarithms of rates."""
    return {
        name: {part: getattr(view.weights, part) for part in _MEANS}
        | {part: np.log(precision.rate) for part, precision in _learnt(view)}
        for name, view in state.items()
    }


def _learnt(view: ViewPosterior) -> Iterator[tuple[str, Gamma]]:
    for name in _PRECISIONS:
        precision = getattr(view, name)
        if isinstance(precision, Gamma):
            yield name, precision


def _difference(one: Point, other: Point) -> Point:
    return {
        view: {name: _rounded(x - other[view][name]) for name, x in of.items()}
        for view, of in one.items()
    }


def _rounded(x: Any) -> Any:
    """In single precision where there are many: these are what a fit would keep most of."""
    many = isinstance(x, np.ndarray) and x.size > tuning.LONG_STEP
    return x.astype(np.float32) if many else x


def _as_before(x: Any, before: Numbers) -> Any:
    """In the precision that it had."""
    return x.astype(before.dtype, copy=False) if isinstance(before, np.ndarray) else x


def _moved(state: State, weights: Sequence[float], points: Sequence[Point]) -> State:
    """The state after Σ weight · point; the covariances stay."""
    return {
        name: _moved_view(view, weights, [point[name] for point in points])
        for name, view in state.items()
    }


def _moved_view(
    view: ViewPosterior,
    weights: Sequence[float],
    points: Sequence[Mapping[str, Numbers]],
) -> ViewPosterior:
    def move(name: str) -> Any:
        pairs = zip(weights, points, strict=True)
        return reduce(add, (np.float64(w) * point[name] for w, point in pairs))

    q = {name: getattr(view.weights, name) + move(name) for name in _MEANS}
    rates: dict[str, Any] = {
        n: replace(p, rate=p.rate * np.exp(np.clip(move(n), -_FAR, _FAR))) for n, p in _learnt(view)
    }
    return replace(view, weights=view.weights.moved(**q), **rates)
