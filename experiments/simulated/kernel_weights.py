"""Several kernels: do the useless ones fade?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.metrics import r2_score

from experiments.experiment import Mark, Measurement, Row
from experiments.tasks import Array
from kofa import RBF, FactorModel, Real

SEEDS = range(5)
ROWS, TEST_ROWS, NOISE = 300, 1000, 0.3
INFORMATIVE, USELESS = ("a", "b"), ("c", "d", "e")


def planted(seed: int) -> tuple[dict[str, Array], Array]:
    """Five inputs of three columns; y has three sums of waves of the first two inputs."""
    rng = np.random.default_rng(seed)
    names, n = INFORMATIVE + USELESS, ROWS + TEST_ROWS
    inputs = {name: rng.standard_normal((n, 3)) for name in names}
    waves = [
        np.sin(inputs[name] @ rng.standard_normal((3, 3)) + rng.uniform(0, 2 * np.pi, 3))
        for name in INFORMATIVE
    ]
    return inputs, np.sum(waves, axis=0) + NOISE * rng.standard_normal((n, 3))


def planted_fit(inputs: dict[str, Array], y: Array) -> tuple[FactorModel, float]:
    """A model with a kernel on each input, and its R² on new rows."""
    views = {name: Real(kernel=RBF()) for name in inputs} | {"y": Real()}
    model = FactorModel(views, outputs=["y"])
    model.fit({name: x[:ROWS] for name, x in inputs.items()} | {"y": y[:ROWS]})
    predicted = model.predict({name: x[ROWS:] for name, x in inputs.items()}, "y")
    return model, float(r2_score(y[ROWS:], predicted))


@dataclass(frozen=True)
class Fitted:
    """What became of the useless kernels."""

    in_factors: float  # the largest weight of a useless kernel
    in_output: float
    r2: float
    oracle: float  # R² with the informative inputs alone


def fit(seed: int) -> Fitted:
    inputs, y = planted(seed)
    model, r2 = planted_fit(inputs, y)
    _, oracle = planted_fit({name: inputs[name] for name in INFORMATIVE}, y)
    tables = [model.kernel_weights(output) for output in (None, "y")]
    largest = [float(t.loc[t["view"].isin(USELESS), "weight"].max()) for t in tables]
    return Fitted(largest[0], largest[1], r2, oracle)


@cache
def fits() -> list[Fitted]:
    """Two fits per seed, shared by the two rows below."""
    return [fit(seed) for seed in SEEDS]


def planted_weights() -> Row:
    in_factors, in_output = ([getattr(s, k) for s in fits()] for k in ("in_factors", "in_output"))
    worst = max(in_factors + in_output)
    text = f"{worst:.4f} (in z {max(in_factors):.4f}, in y {max(in_output):.4f})"
    what = f"largest weight of 3 kernels of noise besides 2 informative ones, {len(SEEDS)} seeds"
    return Row(what, worst, Mark(high=0.05), text)


def planted_r2() -> Row:
    lost = [one.oracle - one.r2 for one in fits()]
    r2, oracle = (float(np.mean([getattr(s, k) for s in fits()])) for k in ("r2", "oracle"))
    text = f"{max(lost):+.4f} (means {oracle:.4f} − {r2:.4f})"
    what = f"largest loss of R² to the model without noise kernels, {TEST_ROWS} new rows"
    return Row(what, max(lost), Mark(high=0.01), text)


EXPERIMENTS: dict[str, Measurement] = {
    "mkl-planted": planted_weights,
    "mkl-planted-r2": planted_r2,
}
