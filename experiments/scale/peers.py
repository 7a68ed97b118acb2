"""Three views with holes, by kofa and by others: `python -m experiments.scale.peers [rows]`.

The number of columns may follow.
The tables of `experiments.scale.holes`, in memory, with as many factors as they have. CPU time, and
the error of left-out entries of the first rows, in one line: kofa with its defaults, and mofapy2
with its stochastic inference (batches of a quarter of the samples, all else at its defaults) where
it is installed.
"""

from __future__ import annotations

import io
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from experiments.baselines.mofa import factors_and_weights
from experiments.scale.holes import AT_A_TIME, FACTORS, MISSING, NOISE, on_disk
from experiments.tasks import Array
from kofa import FactorModel

BATCH = 0.25  # of the samples, one of the sizes that mofapy2 takes
Tables = Mapping[str, Array]


def of_kofa(data: Tables) -> Tables:
    """Its reconstruction of the first rows."""
    model = FactorModel(n_factors=FACTORS).fit(data)
    return dict(model.reconstruct({name: y[:AT_A_TIME] for name, y in data.items()}))


def of_mofapy2(data: Tables) -> Tables:
    """The same by stochastic variational inference."""
    from mofapy2.run.entry_point import entry_point

    mofa: Any = entry_point()
    mofa.set_data_options()
    mofa.set_data_matrix([[y.copy()] for y in data.values()])
    mofa.set_model_options(factors=FACTORS)
    mofa.set_train_options(seed=0, quiet=True)
    mofa.set_stochastic_options(batch_size=BATCH)
    mofa.build()
    mofa.run()
    Z, weights = factors_and_weights(mofa.model)
    means = (np.nanmean(y, axis=0) for y in data.values())
    pairs = zip(data, weights, means, strict=True)
    return {name: Z[:AT_A_TIME] @ W.T + mean for name, W, mean in pairs}


METHODS: dict[str, Callable[[Tables], Tables]] = {"kofa": of_kofa, "mofapy2": of_mofapy2}


def measured(method: Callable[[Tables], Tables], data: Tables, left_out: Tables) -> str:
    """CPU time and error in words."""
    begin = process_time()
    with redirect_stdout(io.StringIO()):
        found = method(data)
    taken = process_time() - begin
    errors = [np.ravel(found[name] - truth) for name, truth in left_out.items()]
    rmse = float(np.sqrt(np.nanmean(np.concatenate(errors) ** 2)))
    return f"{taken:.0f} s of CPU, RMSE {rmse:.3f}"


def main() -> None:
    """Fit and print the line."""
    warnings.simplefilter("ignore")
    given, defaults = sys.argv[1:3], ["2000", "200"]
    n, n_columns = (int(one) for one in given + defaults[len(given) :])
    with tempfile.TemporaryDirectory() as folder:
        made = {
            name: on_disk(Path(folder), name, n, n_columns, seed)
            for seed, name in enumerate("abc", 1)
        }
        data = {name: np.array(table, dtype=float) for name, (table, _) in made.items()}
    left_out = {name: left for name, (_, left) in made.items()}
    said = {
        name: measured(method, data, left_out) if find_spec(name) else "not installed"
        for name, method in METHODS.items()
    }
    print(
        f"three views of {n} × {n_columns}, {MISSING:.0%} missing, {FACTORS} factors, noise "
        f"{NOISE * np.sqrt(FACTORS):.3f}: " + "; ".join(f"{k} {v}" for k, v in said.items())
    )


if __name__ == "__main__":
    main()
