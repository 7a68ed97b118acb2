"""Two workers of Dask, or two threads, for the same fit: `python -m experiments.scale.workers`.

Numbers of rows and columns may follow, and `counts`. A factor analysis of one table in a file with
20 factors, ten iterations, of real numbers, which few rows take the place of, or of counts, which
each iteration visits. In one line: time on the clock and CPU time of one and two threads and of two
worker processes with one thread each, and by how much the bounds differ. Time on the clock means
something only where the machine has nothing else to do; CPU time is that of all processes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_limits

from kofa import Count, FactorModel, Real

FACTORS, ITERATIONS, ROUNDS = 20, 10, 2


class Taken(NamedTuple):
    """What a fit took."""

    seconds: float
    cpu: float
    bound: float


def cpu_of(engine: Any) -> float:
    """CPU time of this process, and of the workers."""
    workers = 0.0 if engine == "memory" else sum(engine.run(process_time).values())
    return process_time() + workers


def fitted(x: Any, engine: Any, threads: int) -> Taken:
    """The faster of some fits."""
    return min(_fitted(x, engine, threads) for _ in range(ROUNDS))


def _fitted(x: Any, engine: Any, threads: int) -> Taken:
    views = {"x": Count() if np.issubdtype(x.dtype, np.integer) else Real()}
    model = FactorModel(views, FACTORS, engine=engine, callback=lambda i: i.n_iter >= ITERATIONS)
    begin, cpu = perf_counter(), cpu_of(engine)
    with threadpool_limits(threads):
        model.fit({"x": x})
    return Taken(perf_counter() - begin, cpu_of(engine) - cpu, model.lower_bound_)


def on_disk(folder: str, n: int, n_columns: int, counts: bool = False) -> Any:
    """The table, which all processes read from its file."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, FACTORS)) @ rng.standard_normal((FACTORS, n_columns))
    path = Path(folder) / "x.npy"
    y = rng.poisson(np.exp(0.1 * x)) if counts else x + 4.0 * rng.standard_normal(x.shape)
    np.save(path, y)
    return np.load(path, mmap_mode="r")


def main() -> None:
    """Fit and print the line."""
    given, defaults = sys.argv[1:3], ["100000", "500"]
    n, n_columns = (int(one) for one in given + defaults[len(given) :])
    counts = sys.argv[3:] == ["counts"]
    cluster: Any = LocalCluster
    connect: Any = Client
    with tempfile.TemporaryDirectory() as folder:
        x = on_disk(folder, n, n_columns, counts)
        one, two = (fitted(x, "memory", threads) for threads in (1, 2))
        with (
            cluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as workers,
            connect(workers) as client,
        ):
            _fitted(np.array(x[:1000]), client, 1)  # workers import when they are first asked
            apart = fitted(x, client, 2)  # workers wait while the table is checked here
    print(
        f"{n} × {n_columns}{' counts' * counts}, {FACTORS} factors: "
        f"two threads {one.seconds / two.seconds:.2f} times as fast as one; two workers of Dask "
        f"{apart.seconds / two.seconds:.2f} times the time of two threads ({apart.seconds:.1f} s, "
        f"{two.seconds:.1f} s) and {apart.cpu / two.cpu:.2f} times their CPU time "
        f"({apart.cpu:.1f} s, {two.cpu:.1f} s); "
        f"bounds differ by {abs(apart.bound / two.bound - 1):.1e}"
    )


if __name__ == "__main__":
    main()
