"""Two workers of Dask, or two threads, for the same fit: `python -m experiments.scale.workers`.

Numbers of rows and columns may follow. A factor analysis of one table with 20 factors, ten
iterations, in one line: time on the clock of one and two threads and of two worker processes with
one thread each, and by how much the bounds differ. The machine should have nothing else to do.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

import numpy as np
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_limits

from kofa import FactorModel

FACTORS, ITERATIONS, BLOCKS = 20, 10, 8


def fitted(data: dict[str, Any], engine: Any, threads: int) -> tuple[float, float]:
    """Seconds, and the bound."""
    begin, n = perf_counter(), len(data["x"])
    with threadpool_limits(threads):
        model = FactorModel(
            n_factors=FACTORS,
            engine=engine,
            block_rows=-(-n // BLOCKS),
            callback=lambda i: i.n_iter >= ITERATIONS,
        ).fit(data)
    return perf_counter() - begin, model.lower_bound_


def main() -> None:
    """Fit and print the line."""
    given, defaults = sys.argv[1:3], ["20000", "200"]
    n, n_columns = (int(one) for one in given + defaults[len(given) :])
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, FACTORS)) @ rng.standard_normal((FACTORS, n_columns))
    data = {"x": x + 4.0 * rng.standard_normal(x.shape)}
    one, two = (fitted(data, "memory", threads) for threads in (1, 2))
    cluster: Any = LocalCluster
    connect: Any = Client
    with (
        cluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as workers,
        connect(workers) as client,
    ):
        fitted({"x": data["x"][:1000]}, client, 1)  # workers import when they are first asked
        apart = fitted(data, client, 1)
    print(
        f"{n} × {n_columns}, {FACTORS} factors: two threads {one[0] / two[0]:.2f} times as fast as "
        f"one; two workers of Dask {apart[0] / two[0]:.2f} times the time of two threads "
        f"({apart[0]:.1f} s, {two[0]:.1f} s); bounds differ by {abs(apart[1] / two[1] - 1):.1e}"
    )


if __name__ == "__main__":
    main()
