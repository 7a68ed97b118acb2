"""Three views with holes from disk: `python -m experiments.scale.holes [rows] [columns]`.

10 % of the entries are missing at random. Peak memory, and the error of left-out entries, in one
line.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

from experiments.costs.peak import peak
from experiments.tasks import Array
from kofa import FactorModel

FACTORS, MISSING, NOISE, AT_A_TIME = 20, 0.1, 1.0, 1000


def on_disk(folder: Path, name: str, n: int, n_columns: int, seed: int) -> tuple[Array, Array]:
    """A table as a memmap, and the entries of its first rows that it lacks."""
    path, rng = folder / f"{name}.npy", np.random.default_rng(seed)
    table = np.lib.format.open_memmap(path, "w+", np.float32, (n, n_columns))
    W, factors = rng.standard_normal((FACTORS, n_columns)), np.random.default_rng(0)
    left_out = np.empty((0, n_columns))
    for start in range(0, n, AT_A_TIME):
        z = factors.standard_normal((min(AT_A_TIME, n - start), FACTORS))
        block = z @ W + NOISE * np.sqrt(FACTORS) * rng.standard_normal((len(z), n_columns))
        missing = rng.random(block.shape) < MISSING
        table[start : start + len(z)] = np.where(missing, np.nan, block)
        left_out = np.where(missing, block, np.nan) if not start else left_out
    table.flush()
    del table
    return np.load(path, mmap_mode="r"), left_out


def main() -> None:
    """Fit and print the line."""
    given, defaults = sys.argv[1:3], ["5000", "100"]
    n, n_columns = (int(one) for one in given + defaults[len(given) :])
    with tempfile.TemporaryDirectory() as folder:
        made = {
            name: on_disk(Path(folder), name, n, n_columns, seed)
            for seed, name in enumerate("abc", 1)
        }
        data = {name: table for name, (table, _) in made.items()}
        begin = process_time()
        model = FactorModel(n_factors=FACTORS, engine="disk", callback=lambda i: i.n_iter >= 10)
        model.fit(data)
        taken, held = process_time() - begin, peak()
        first = {name: np.array(table[:AT_A_TIME]) for name, table in data.items()}
        predicted = model.reconstruct(first)
        errors = [np.ravel(predicted[name] - left) for name, (_, left) in made.items()]
        rmse = float(np.sqrt(np.nanmean(np.concatenate(errors) ** 2)))
    print(
        f"three views of {n} × {n_columns} from memmaps, {MISSING:.0%} missing, "
        f"{model.n_factors_} factors: peak memory {held / 2**20:.0f} MiB "
        f"(the tables as floats {24 * n * n_columns / 2**20:.0f}); left-out entries RMSE "
        f"{rmse:.3f} (noise {NOISE * np.sqrt(FACTORS):.3f}); {model.n_iter_} "
        f"iterations, {taken:.0f} s of CPU"
    )


if __name__ == "__main__":
    main()
