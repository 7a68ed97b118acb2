"""Time and memory, as ratios to bare matrix products in the same run."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from experiments.experiment import Mark, Measurement, Row
from experiments.simulated.planted import NOISE
from experiments.tasks import Array
from experiments.timing import Stopwatch, fit_kernel, iterate, kernel_rows, seconds, threads
from kofa import RBF, Categorical, FactorModel, Real

# ---------------------------------------------------------------- one iteration


def products(Y: Array, k: int) -> None:
    """The two products that no iteration can do without."""
    Z = Y @ np.ones((Y.shape[1], k))
    Y.T @ Z


def iteration(n: int = 4000, n_factors: int = 50, max_iter: int = 30) -> Row:
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
    return Row(what, ratio, Mark(high=1.5), text)


def growth(landmarks: int = 1000, n_factors: int = 50, rounds: int = 3) -> Row:
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
    return Row(what, max(ratios), Mark(high=2.2), text)


def time_output(X: Array, y: Array, view: Any, n_factors: int, max_iter: int) -> Stopwatch:
    """Iterations of a kernelized view of median width and one output."""
    watch = Stopwatch()
    declared = {"x": Real(kernel=RBF(width="median")), "y": view}
    model = FactorModel(
        declared, n_factors, outputs=["y"], max_iter=max_iter, tol=0.0, callback=watch
    )
    iterate(model, {"x": X, "y": y})
    return watch


def classes(n: int = 2000, n_factors: int = 50, n_classes: int = 10, rounds: int = 3) -> Row:
    """An iteration with classes as output against one with the same classes one-hot, as reals."""
    X = kernel_rows(n)
    W = np.random.default_rng(1).standard_normal((X.shape[1], n_classes))
    labels = np.argmax(X @ W, axis=1)
    outputs = {"real": (np.eye(n_classes)[labels], Real()), "classes": (labels, Categorical())}
    times: dict[str, list[float]] = {kind: [] for kind in outputs}
    for _ in range(rounds):  # in turns, so that other load on the machine hits both
        for kind, (y, view) in outputs.items():
            times[kind] += time_output(X, y, view, n_factors, 20).iterations
    real, categorical = (median(times[kind]) for kind in outputs)
    text = f"{categorical / real:.2f} ({1e3 * categorical:.0f} / {1e3 * real:.0f} ms, {threads()})"
    what = f"median iteration with {n_classes} classes / with as many real columns, N = R = {n}"
    return Row(what, categorical / real, Mark(high=3), text)


def time_iterations(n: int, n_factors: int, sparse: Any, max_iter: int = 20) -> Stopwatch:
    """Iterations with all rows as landmarks."""
    watch = Stopwatch()
    view = Real(kernel=RBF(), landmarks="all", sparse=sparse)
    model = FactorModel(
        {"x": view}, n_factors, max_iter=max_iter, tol=0.0, callback=watch, as_published=True
    )
    iterate(model, {"x": kernel_rows(n)})
    # Double ARD fits once more to what it keeps: not counted.
    del watch.iterations[max_iter - 1 :], watch.factors[max_iter:]
    return watch


def sparse_update(n: int = 1000, n_factors: int = 50, rounds: int = 3) -> Row:
    """An iteration with an ARD precision for each landmark against one without."""
    times: dict[Any, list[float]] = {False: [], True: []}
    factors = []
    for _ in range(rounds):  # in turns, so that other load on the machine hits both
        for sparse, taken in times.items():
            watch = time_iterations(n, n_factors, sparse)
            taken += watch.iterations
            factors.append(watch.factors[-1])
    plain, ard = (median(taken) for taken in times.values())
    text = (
        f"{ard / plain:.2f} ({1e3 * ard:.1f} / {1e3 * plain:.1f} ms, "
        f"{min(factors)} to {max(factors)} factors, {threads()})"
    )
    what = f"median iteration of a sparse / a plain kernelized view, N = R = {n}, K = {n_factors}"
    return Row(what, ard / plain, Mark(high=1.3), text)


# ---------------------------------------------------------------- memory


def memory(n: int = 6000) -> Row:
    """Peak memory of a fit in a fresh process against the size of its kernel matrix."""
    command = [sys.executable, "-m", "experiments.costs.peak", str(n)]
    output = subprocess.run(command, check=True, capture_output=True, encoding="locale").stdout
    ratio = float(output) / (8 * n**2)
    text = f"{ratio:.2f} ({float(output) / 1e6:.0f} MB)"
    return Row(
        f"peak memory of a fit / its kernel matrix, N = R = {n}", ratio, Mark(high=1.5), text
    )


# ---------------------------------------------------------------- wide data


def wide_table(rows: int, columns: int, n_factors: int) -> Array:
    """Few samples of very many columns."""
    rng = np.random.default_rng(0)
    Z, W = rng.standard_normal((rows, n_factors)), rng.standard_normal((columns, n_factors))
    return Z @ W.T + NOISE * rng.standard_normal((rows, columns))


def wide(rows: int = 270, columns: int = 95_000, allowed: int = 25) -> Row:
    """Seconds of a fit to convergence."""
    Y = wide_table(rows, columns, 10)
    bare = median(seconds(partial(products, Y, allowed)) for _ in range(5))
    model = FactorModel(n_factors=allowed)
    taken = seconds(lambda: model.fit({"y": Y}))
    text = (
        f"{taken:.1f} s = {taken / bare:.0f} bare product pairs "
        f"({model.n_factors_} factors, {model.n_iter_} iterations, {threads()})"
    )
    return Row(f"fit of {columns} columns × {rows} rows", taken, Mark(high=60), text)


EXPERIMENTS: dict[str, Measurement] = {
    "iteration": iteration,
    "growth": growth,
    "classes": classes,
    "sparse-update": sparse_update,
    "memory": memory,
    "wide": wide,
}
