"""What reading a table for kofa costs beside pandas alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

from experiments.experiment import Mark, Measurement, Row
from experiments.timing import seconds
from kofa.files import read_file

ROWS, COLUMNS, ROUNDS = 50_000, 200, 10


def write_table(path: Path) -> None:
    """Numbers of four decimals, a twentieth of them missing."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((ROWS, COLUMNS)).round(4)
    values[rng.random(values.shape) < 0.05] = np.nan
    names = [f"g{j}" for j in range(COLUMNS)]
    frame = pd.DataFrame(values, [f"s{i}" for i in range(ROWS)], names)
    frame.to_csv(path, index_label="id")


def timed(read: Callable[[], Any]) -> tuple[float, float]:
    """Wall and CPU seconds of one call."""
    start = process_time()
    wall = seconds(read)
    return wall, process_time() - start


def in_turns(readers: Sequence[Callable[[], Any]], swapped: bool) -> list[tuple[float, float]]:
    """Times of all readers; who comes second can be slower, so they change places."""
    times = [timed(read) for read in (readers[::-1] if swapped else readers)]
    return times[::-1] if swapped else times


def reading() -> Row:
    """Both readers on one file; the ratio of medians, also in CPU time."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "view.csv")
        write_table(path)
        readers = (partial(pd.read_csv, path, index_col=0), partial(read_file, path))
        rounds = np.array([in_turns(readers, swapped=bool(n % 2)) for n in range(ROUNDS)])
    (alone, alone_cpu), (ours, ours_cpu) = np.median(rounds, axis=0).tolist()
    text = (
        f"{ours / alone:.2f} (kofa {ours:.2f} s, pandas {alone:.2f} s; in CPU time "
        f"{ours_cpu / alone_cpu:.2f})"
    )
    what = f"time to read a CSV view of {ROWS:,} × {COLUMNS}, over pandas.read_csv"
    return Row(what, ours / alone, Mark(high=1.2), text)


EXPERIMENTS: dict[str, Measurement] = {"reading-csv": reading}
