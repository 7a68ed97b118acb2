"""One thread and two, for the same fits: `python -m experiments.scale.threads [rows] [R]`.

A kernel with R landmarks and 20 factors, in memory, in a process for each number of threads. One
line for an iteration of a fit that visits all rows, as it has a table of 25 ones beside the kernel:
the fastest of some. One line for the whole of a fit of the kernel alone, of which few rows take the
place of all: the faster of two. Both on the clock, with how many cores there were: where the
machine has something else to do, two threads wait for a second core.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np

from experiments.tasks import Array
from kofa import RBF, Binary, FactorModel, Iteration, Real
from kofa.views import View

FACTORS, FEATURES, ONES, ITERATIONS, ROUNDS = 20, 20, 25, 12, 2


class Taken(NamedTuple):
    """Seconds on the clock, and of CPU."""

    seconds: float
    cpu: float

    @classmethod
    def since(cls, begin: Taken) -> Taken:
        return cls(perf_counter() - begin.seconds, process_time() - begin.cpu)


class Watch:
    """The fastest iteration."""

    def __init__(self) -> None:
        self.fastest, self.last = Taken(np.inf, np.inf), Taken.since(Taken(0.0, 0.0))

    def __call__(self, iteration: Iteration) -> bool:
        if iteration.n_iter > 1:
            self.fastest = min(self.fastest, Taken.since(self.last))
        self.last = Taken.since(Taken(0.0, 0.0))
        return iteration.n_iter >= ITERATIONS


def tables(n: int) -> dict[str, Array]:
    """Features for a kernel, and ones that depend on them."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, FEATURES))
    eta = np.sin(x @ rng.standard_normal((FEATURES, ONES)) / 3.0)
    return {"x": x, "ones": (eta + 0.5 * rng.standard_normal(eta.shape) > 0).astype(float)}


def iteration(n: int, n_landmarks: int) -> Taken:
    """An iteration over all rows."""
    watch = Watch()
    views: dict[str, View] = {"x": Real(kernel=RBF(2.0), landmarks=n_landmarks), "ones": Binary()}
    FactorModel(views, FACTORS, callback=watch, max_iter=ITERATIONS, tol=0.0).fit(tables(n))
    return watch.fastest


def whole(n: int, n_landmarks: int) -> Taken:
    """A fit from the table to the factors, with as many iterations as it takes."""
    views: dict[str, View] = {"x": Real(kernel=RBF(2.0), landmarks=n_landmarks)}
    data, found = {"x": tables(n)["x"]}, []
    for _ in range(ROUNDS):
        begin = Taken.since(Taken(0.0, 0.0))
        FactorModel(views, FACTORS).fit(data)
        found.append(Taken.since(begin))
    return min(found)


MEASURES: dict[str, Callable[[int, int], Taken]] = {
    "an iteration with ones beside it": iteration,
    "a whole fit of few rows for all": whole,
}


def with_threads(threads: int, what: str, *given: str) -> Taken:
    """One of these in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "experiments.scale.threads", *given, what]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": ""}
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return Taken(*map(float, said.stdout.split()))


def main() -> None:
    """Measure and print the lines."""
    given, defaults = sys.argv[1:3], ["50000", "1000"]
    sizes = given + defaults[len(given) :]
    if sys.argv[3:]:
        print(*MEASURES[sys.argv[3]](*map(int, sizes)))
        return
    for what in MEASURES:
        one, two = (with_threads(threads, what, *sizes) for threads in (1, 2))
        print(
            f"{sizes[0]} rows, {sizes[1]} landmarks, {FACTORS} factors, {what}: "
            f"{one.seconds / two.seconds:.2f} times as fast with two threads ({two.seconds:.2f} s, "
            f"{one.seconds:.2f} s), which had {two.cpu / two.seconds:.1f} cores (one thread "
            f"{one.cpu / one.seconds:.1f})"
        )


if __name__ == "__main__":
    main()
