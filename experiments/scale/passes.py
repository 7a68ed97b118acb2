"""Passes over many samples: `python -m experiments.scale.passes [rows]`.

A table of ones and one of counts, from disk. How often all rows are visited by a fit that begins
with some of them, as fits of many rows do, and by one that begins with all; in one line.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np

from experiments.tasks import Array
from kofa import Binary, Count, FactorModel, tuning
from kofa.engines.streamed import Streamed

COLUMNS, FACTORS, AT_A_TIME = 25, 5, 10_000


def on_disk(folder: Path, n: int) -> dict[str, Array]:
    """Ones and counts of the same factors, written block by block."""
    rng = np.random.default_rng(0)
    W = {name: rng.standard_normal((FACTORS, COLUMNS)) for name in ("ones", "counts")}
    tables = {
        name: np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.float32, (n, COLUMNS))
        for name in W
    }
    for start in range(0, n, AT_A_TIME):
        where = slice(start, min(start + AT_A_TIME, n))
        z = rng.standard_normal((where.stop - start, FACTORS))
        noise = rng.standard_normal((len(z), COLUMNS))
        tables["ones"][where] = z @ W["ones"] + noise > 0
        tables["counts"][where] = rng.poisson(np.exp(0.3 * z @ W["counts"]))
    for table in tables.values():
        table.flush()
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in W}


@contextmanager
def counted(n: int) -> Iterator[list[int]]:
    """Counts the visits of all rows."""
    visits, visit = [0], Streamed._visit

    def with_count(self: Streamed, *given: Any, **options: Any) -> Any:
        visits[0] += self.n_samples == n
        return visit(self, *given, **options)

    with patch.object(Streamed, "_visit", with_count):
        yield visits


def fitted(data: dict[str, Array], n: int, many: int) -> tuple[FactorModel, int, float]:
    """A model, its passes over all rows and its CPU time; more rows than `many` are many."""
    views, begin = {"ones": Binary(), "counts": Count()}, process_time()
    with counted(n) as visits, patch.object(tuning, "MANY_SAMPLES", many):
        model = FactorModel(views, engine="disk").fit(data)
    return model, visits[0], process_time() - begin


def main() -> None:
    """Fit twice and print the line."""
    n = int((*sys.argv[1:], "30000")[0])
    with tempfile.TemporaryDirectory() as folder:
        data = on_disk(Path(folder), n)
        few, few_passes, few_seconds = fitted(data, n, tuning.MANY_SAMPLES)
        cold, passes, seconds = fitted(data, n, n)
    print(
        f"ones and counts, {n} × {2 * COLUMNS}: {few.n_iter_} iterations with all rows, "
        f"{few_passes} passes over them in the whole fit and {few_seconds:.0f} s of CPU; "
        f"{cold.n_iter_}, {passes} and {seconds:.0f} s from a start with all; "
        f"{few.n_factors_} and {cold.n_factors_} factors of {FACTORS}, bounds differ by "
        f"{few.lower_bound_ / cold.lower_bound_ - 1:.1e}"
    )


if __name__ == "__main__":
    main()
