"""How CPU time grows with rows: `python -m experiments.scale.growth [rows] [doublings]`.

The fit of `experiments.scale.kernel`, without its rival. Fits of more than 20,000 samples have more
directions than others, so that it begins above. One line.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from time import process_time

from experiments.scale.kernel import FACTORS, LANDMARKS, on_disk
from kofa import RBF, FactorModel, Real


def seconds(n: int) -> float:
    """Of CPU for one fit."""
    views = {"x": Real(kernel=RBF(), landmarks=LANDMARKS), "y": Real()}
    with tempfile.TemporaryDirectory() as folder:
        X, y = on_disk(Path(folder), n)
        begin = process_time()
        FactorModel(views, FACTORS, outputs=["y"], engine="disk").fit({"x": X, "y": y})
        return process_time() - begin


def main() -> None:
    """Fit and print the line."""
    given, defaults = sys.argv[1:3], ["25000", "2"]
    first, doublings = (int(one) for one in given + defaults[len(given) :])
    sizes = [first * 2**i for i in range(doublings + 1)]
    taken = [seconds(n) for n in sizes]
    grown = ", ".join(f"{b / a:.2f}" for a, b in pairwise(taken))
    print(
        f"rows {', '.join(map(str, sizes))}: {', '.join(f'{t:.0f}' for t in taken)} s of CPU; "
        f"per doubling {grown}"
    )


if __name__ == "__main__":
    main()
