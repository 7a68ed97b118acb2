"""A kernelized regression from disk: `python -m experiments.scale.kernel [rows]`.

Peak memory, and R² and CPU time against `Nystroem` + `Ridge` of scikit-learn with as many
landmarks in the same run, in one line.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline

from experiments.costs.peak import peak
from experiments.tasks import Array
from kofa import RBF, FactorModel, Real

FEATURES, LANDMARKS, FACTORS, NEW = 50, 500, 20, 2000


def rows(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Features, and a smooth function of some of them with noise."""
    X = rng.standard_normal((n, FEATURES))
    signal = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + np.tanh(X[:, 3:8].sum(axis=1))
    return X, (signal + 0.3 * rng.standard_normal(n))[:, None]


def on_disk(folder: Path, n: int) -> tuple[Array, Array]:
    """The features as a memmap, written block by block, and the output."""
    X = np.lib.format.open_memmap(folder / "x.npy", "w+", float, (n, FEATURES))
    y, rng = np.empty((n, 1)), np.random.default_rng(0)
    for start in range(0, n, 10_000):
        where = slice(start, min(start + 10_000, n))
        X[where], y[where] = rows(where.stop - start, rng)
    X.flush()
    del X
    return np.load(folder / "x.npy", mmap_mode="r"), y


def main() -> None:
    """Fit and print the line."""
    n = int((*sys.argv[1:], "10000")[0])
    new, truth = rows(NEW, np.random.default_rng(1))
    with tempfile.TemporaryDirectory() as folder:
        X, y = on_disk(Path(folder), n)
        begin = process_time()
        views = {"x": Real(kernel=RBF(), landmarks=LANDMARKS), "y": Real()}
        model = FactorModel(views, FACTORS, outputs=["y"], engine="disk").fit({"x": X, "y": y})
        ours = process_time() - begin
        held = peak()
        r2 = r2_score(truth, model.predict({"x": new}))
        begin, X = process_time(), np.array(X)
        gamma = 1.0 / (2.0 * FEATURES)
        other = make_pipeline(
            Nystroem(gamma=gamma, n_components=LANDMARKS, random_state=0), Ridge()
        )
        other.fit(X, y)
        theirs = process_time() - begin
    print(
        f"{n} × {FEATURES} from a memmap, {LANDMARKS} landmarks: R² {r2:.4f} (Nystroem + Ridge "
        f"{r2_score(truth, other.predict(new)):.4f}), {ours / theirs:.2f} times the CPU time "
        f"({ours:.0f} s, {theirs:.0f} s), peak memory {held / 2**20:.0f} MiB"
    )


if __name__ == "__main__":
    main()
