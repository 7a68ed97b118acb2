"""Wide tables with scattered holes: peak memory of a fit.

`python -m experiments.costs.wide_holes ROWS COLUMNS` prints it, in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np

from experiments.costs.peak import peak
from experiments.experiment import Mark, Measurement, Row
from experiments.simulated.planted import NOISE
from experiments.tasks import Array
from kofa import FactorModel

SIZES = {20_000: 150, 95_000: 270}  # rows of so many columns
HOLES, FACTORS, ALLOWED = 0.05, 10, 25


def table(rows: int, columns: int) -> Array:
    """Ten factors, noise and holes, made row by row so that nothing else takes memory."""
    rng = np.random.default_rng(0)
    W, Y = rng.standard_normal((FACTORS, columns)), np.empty((rows, columns))
    for y in Y:
        y[:] = rng.standard_normal(FACTORS) @ W + NOISE * rng.standard_normal(columns)
        y[rng.random(columns) < HOLES] = np.nan
    return Y


def memory(rows: int, columns: int) -> Row:
    """Peak memory of a fit and its data in a fresh process against the size of the data."""
    command = [sys.executable, "-m", "experiments.costs.wide_holes", str(rows), str(columns)]
    output = subprocess.run(command, check=True, capture_output=True, encoding="locale").stdout
    ratio = float(output) / (8 * rows * columns)
    text = f"{ratio:.2f} ({float(output) / 1e6:.0f} MB)"
    what = f"peak memory of a fit with its data / the data, {columns} columns × {rows}, 5 % holes"
    return Row(what, ratio, Mark(high=4), text)


def main() -> None:
    """Print the bytes that the data and the fit add to what the imports take."""
    before = peak()
    FactorModel(n_factors=ALLOWED).fit({"y": table(*map(int, sys.argv[1:]))})
    print(peak() - before)


EXPERIMENTS: dict[str, Measurement] = {
    f"memory-holes-{columns}": partial(memory, rows, columns) for columns, rows in SIZES.items()
}

if __name__ == "__main__":
    main()
