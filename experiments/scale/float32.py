"""Rows in single and in double precision: `python -m experiments.scale.float32 [rows] [columns]`.

One table with 20 factors, in one line: CPU time of an iteration, and how much bound and
reconstructions differ. (Iterations visit all rows where columns are more than 1,200; of fewer, few
rows take the place of many.)
"""

from __future__ import annotations

import sys
from time import process_time

import numpy as np

from experiments.tasks import Array
from kofa import FactorModel, Iteration

FACTORS, ITERATIONS = 20, 10


class Watch:
    """The CPU time of the fastest iteration: others may have had to wait for memory."""

    def __init__(self) -> None:
        self.last, self.fastest = process_time(), np.inf

    def __call__(self, iteration: Iteration) -> bool:
        now = process_time()
        if iteration.n_iter > 1:
            self.fastest = min(self.fastest, now - self.last)
        self.last = process_time()
        return iteration.n_iter >= ITERATIONS


def fitted(x: Array, dtype: str) -> tuple[FactorModel, float]:
    """A model, and seconds of CPU for one iteration."""
    watch = Watch()
    model = FactorModel(n_factors=FACTORS, dtype=dtype, callback=watch)
    return model.fit({"x": x}), watch.fastest


def main() -> None:
    """Fit and print the line."""
    given, defaults = sys.argv[1:3], ["100000", "1250"]
    n, n_columns = (int(one) for one in given + defaults[len(given) :])
    rng = np.random.default_rng(0)
    W, x = rng.standard_normal((FACTORS, n_columns)), np.empty((n, n_columns))
    for start in range(0, n, 1000):
        z = rng.standard_normal((min(1000, n - start), FACTORS))
        x[start : start + 1000] = z @ W + 4.0 * rng.standard_normal((len(z), n_columns))
    (double, slow), (single, fast) = (fitted(x, dtype) for dtype in ("float64", "float32"))
    few = x[:1000]
    apart = single.reconstruct({"x": few})["x"] - double.reconstruct({"x": few})["x"]
    print(
        f"{n} × {n_columns}, {FACTORS} factors: an iteration is {slow / fast:.2f} times as fast in "
        f"float32 ({fast:.2f} s of CPU, {slow:.2f} s); bounds differ by "
        f"{abs(single.lower_bound_ / double.lower_bound_ - 1):.1e}, reconstructions by "
        f"{np.sqrt((apart**2).mean()):.1e} of the spread"
    )


if __name__ == "__main__":
    main()
