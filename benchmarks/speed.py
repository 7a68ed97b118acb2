"""Time and memory, as ratios to bare matrix products in the same run."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from itertools import pairwise
from statistics import median

import numpy as np

from benchmarks.data import NOISE, Array
from benchmarks.report import Benchmark, Mark, Result
from benchmarks.timing import Stopwatch, fit_kernel, kernel_rows, seconds, threads
from kofa import FactorModel

# ---------------------------------------------------------------- one iteration


def products(Y: Array, k: int) -> None:
    """The two products that no iteration can do without."""
    Z = Y @ np.ones((Y.shape[1], k))
    Y.T @ Z


def iteration(n: int = 4000, n_factors: int = 50, max_iter: int = 30) -> Result:
    """An iteration against K A and Kᵀ Z, timed in turns."""
    K = np.random.default_rng(1).standard_normal((n, n))
    watch = Stopwatch(partial(products, K))
    fit_kernel(kernel_rows(n), "all", n_factors, max_iter, watch)
    bare = median(watch.bare_times)
    ratio = watch.per_iteration / bare
    text = (
        f"{ratio:.2f} ({1e3 * watch.per_iteration:.0f} / {1e3 * bare:.0f} ms; "
        f"{watch.mean / bare:.2f} for the mean, with rotations; "
        f"{watch.factors[0]} to {watch.factors[-1]} factors, {threads()})"
    )
    what = f"median time of an iteration / two bare products, N = R = {n}"
    return Result(what, ratio, Mark(high=1.5), text)


def growth(landmarks: int = 1000, n_factors: int = 50, rounds: int = 3) -> Result:
    """How the time per iteration grows with the number of samples."""
    sizes = [4000, 8000, 16000, 32000]
    times: dict[int, list[float]] = {n: [] for n in sizes}
    for _ in range(rounds):  # in turns, so that other load on the machine hits all sizes
        for n in sizes:
            watch = Stopwatch()
            fit_kernel(kernel_rows(n), landmarks, n_factors, 12, watch)
            times[n].append(watch.per_iteration)
    typical = [min(times[n]) for n in sizes]  # load only ever adds
    ratios = [b / a for a, b in pairwise(typical)]
    text = (
        f"{max(ratios):.2f} (" + ", ".join(f"{1e3 * t:.0f}" for t in typical) + f" ms, {threads()})"
    )
    what = (
        f"largest growth of an iteration per doubling, N {sizes[0]} to {sizes[-1]}, R = {landmarks}"
    )
    return Result(what, max(ratios), Mark(high=2.2), text)


# ---------------------------------------------------------------- memory


def memory(n: int = 6000) -> Result:
    """Peak memory of a fit in a fresh process against the size of its kernel matrix."""
    command = [sys.executable, "-m", "benchmarks.peak", str(n)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    ratio = float(output) / (8 * n**2)
    text = f"{ratio:.2f} ({float(output) / 1e6:.0f} MB)"
    return Result(
        f"peak memory of a fit / its kernel matrix, N = R = {n}", ratio, Mark(high=1.5), text
    )


# ---------------------------------------------------------------- wide data


def wide_table(rows: int, columns: int, n_factors: int) -> Array:
    """Few samples of very many columns."""
    rng = np.random.default_rng(0)
    Z, W = rng.standard_normal((rows, n_factors)), rng.standard_normal((columns, n_factors))
    return Z @ W.T + NOISE * rng.standard_normal((rows, columns))


def wide(rows: int = 270, columns: int = 95_000, allowed: int = 25) -> Result:
    """Seconds of a fit to convergence."""
    Y = wide_table(rows, columns, 10)
    bare = median(seconds(partial(products, Y, allowed)) for _ in range(5))
    model = FactorModel(n_factors=allowed)
    taken = seconds(lambda: model.fit({"y": Y}))
    text = (
        f"{taken:.1f} s = {taken / bare:.0f} bare product pairs "
        f"({model.n_factors_} factors, {model.n_iter_} iterations, {threads()})"
    )
    return Result(f"fit of {columns} columns × {rows} rows", taken, Mark(high=60), text)


BENCHMARKS: dict[str, Benchmark] = {
    "iteration": iteration,
    "growth": growth,
    "memory": memory,
    "wide": wide,
}
