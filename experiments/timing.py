"""Clocks, and fits whose iterations are timed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info

from experiments.tasks import Array
from kofa import RBF, FactorModel, Iteration, Real


def seconds(work: Callable[[], Any]) -> float:
    """Wall time of one call."""
    start = perf_counter()
    work()
    return perf_counter() - start


class Stopwatch:
    """A callback that times each iteration, and something bare after each of them."""

    def __init__(self, bare: Callable[[int], Any] | None = None) -> None:
        self.bare = bare
        self.iterations: list[float] = []
        self.bare_times: list[float] = []
        self.factors: list[int] = []
        self._last: float | None = None

    def __call__(self, iteration: Iteration) -> None:
        now = perf_counter()
        if self._last is not None:
            self.iterations.append(now - self._last)
        self.factors.append(iteration.n_factors)
        if self.bare is not None:
            self.bare_times.append(seconds(partial(self.bare, iteration.n_factors)))
        self._last = perf_counter()

    @property
    def per_iteration(self) -> float:
        """Median: the plain iteration. The rotation after every fifth is in the mean only."""
        return float(np.median(self.iterations))

    @property
    def mean(self) -> float:
        return float(np.mean(self.iterations))


def threads() -> str:
    """How many threads BLAS may use: on a busy machine one is steadier than all."""
    most = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    return f"{most} thread{'s' if most > 1 else ''}"


def kernel_rows(n: int, columns: int = 10, seed: int = 0) -> Array:
    """Gaussian rows: an RBF kernel of median width has hundreds of strong directions."""
    return np.random.default_rng(seed).standard_normal((n, columns))


def iterate(model: FactorModel, data: dict[str, Any]) -> FactorModel:
    """Fit without a warning on convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data)


def fit_kernel(
    X: Array, landmarks: int | str, n_factors: int, max_iter: int, callback: Any = None
) -> FactorModel:
    """So many iterations on one kernelized view; they need not converge."""
    view = Real(kernel=RBF(), landmarks=landmarks)  # type: ignore[arg-type]
    model = FactorModel({"x": view}, n_factors, max_iter=max_iter, tol=0.0, callback=callback)
    return iterate(model, {"x": X})
