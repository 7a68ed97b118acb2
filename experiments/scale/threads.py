"""One thread and two, for the same iteration: `python -m experiments.scale.threads [rows] [R]`.

A kernel with R landmarks and 20 factors, in memory, in a process for each number of threads, in one
line: time on the clock of the fastest of some iterations, and how many cores it had. Where the
machine has something else to do, two threads wait for a second core.
"""

from __future__ import annotations

import os
import subprocess
import sys
from time import perf_counter, process_time

import numpy as np

from kofa import RBF, FactorModel, Iteration, Real

FACTORS, FEATURES, ITERATIONS = 20, 20, 25


class Watch:
    """The fastest iteration: seconds, and seconds of CPU."""

    def __init__(self) -> None:
        self.fastest, self.last = (np.inf, np.inf), (perf_counter(), process_time())

    def __call__(self, iteration: Iteration) -> bool:
        now = perf_counter(), process_time()
        if iteration.n_iter > 1:
            self.fastest = min(self.fastest, (now[0] - self.last[0], now[1] - self.last[1]))
        self.last = perf_counter(), process_time()
        return iteration.n_iter >= ITERATIONS


def iteration(n: int, n_landmarks: int) -> tuple[float, float]:
    """Seconds and CPU time in this process."""
    x, watch = np.random.default_rng(0).standard_normal((n, FEATURES)), Watch()
    views = {"x": Real(kernel=RBF(2.0), landmarks=n_landmarks)}
    FactorModel(views, FACTORS, callback=watch, max_iter=ITERATIONS, tol=0.0).fit({"x": x})
    return watch.fastest


def with_threads(threads: int, *given: str) -> tuple[float, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "experiments.scale.threads", *given, "here"]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": ""}
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    seconds, cpu = map(float, said.stdout.split())
    return seconds, cpu


def main() -> None:
    """Measure and print the line."""
    given, defaults = sys.argv[1:3], ["50000", "1000"]
    sizes = given + defaults[len(given) :]
    if sys.argv[3:] == ["here"]:
        print(*iteration(*map(int, sizes)))
        return
    (one, _), (two, cpu) = (with_threads(threads, *sizes) for threads in (1, 2))
    print(
        f"{sizes[0]} rows, {sizes[1]} landmarks, {FACTORS} factors: an iteration is "
        f"{one / two:.2f} times as fast with two threads ({two:.2f} s, {one:.2f} s), which had "
        f"{cpu / two:.1f} cores"
    )


if __name__ == "__main__":
    main()
