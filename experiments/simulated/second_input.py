"""Does an input of another kind harm the prediction of an output?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from experiments.experiment import Mark, Measurement, Row, skipped
from experiments.simulated import hidden_views
from experiments.tasks import Array
from kofa import Binary, Categorical, Count, FactorModel, Real

MARK = Mark(low=-0.02)
KINDS: dict[str, Any] = {"Binary": Binary, "Count": Count, "Categorical": Categorical}
N_FIT, N_TEST = 80, 500


def planted(seed: int) -> tuple[str, bool, dict[str, Array], Array]:
    """Kind of the second input, whether it says anything of the output, tables, and the output.

    Some columns of ones and counts are rare: these did the harm that this row is about.
    """
    rng = np.random.default_rng(seed)
    kind, informative = list(KINDS)[seed % 3], seed % 2 == 0
    Z = rng.standard_normal((N_FIT + N_TEST, 6))
    x = Z[:, :4] @ rng.standard_normal((4, 40)) + rng.standard_normal((len(Z), 40))
    behind = Z[:, 3:] if informative else rng.standard_normal((len(Z), 3))
    eta = behind @ rng.standard_normal((3, 30))
    second: Array
    if kind == "Binary":
        second = (eta + rng.standard_normal(eta.shape) > rng.uniform(0.0, 3.5, 30)).astype(float)
    elif kind == "Count":
        second = rng.poisson(rng.uniform(0.05, 5.0, 30) * np.logaddexp(0.0, eta)).astype(float)
    else:
        second = np.argmax(eta[:, :4] + rng.standard_normal((len(Z), 4)), axis=1)[:, None] * 1.0
    y = Z @ rng.standard_normal((6, 10)) / np.sqrt(6.0) + 0.5 * rng.standard_normal((len(Z), 10))
    return kind, informative, {"x": x, "second": second}, y


def r2(inputs: dict[str, Array], kind: str, y: Array) -> float:
    """Of new samples, pooled over the columns."""
    views = {name: Real() if name == "x" else KINDS[kind]() for name in inputs}
    tables = {name: table[:N_FIT] for name, table in inputs.items()} | {"y": y[:N_FIT]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FactorModel(views | {"y": Real()}, outputs=["y"]).fit(tables)
        predicted = model.predict({name: table[N_FIT:] for name, table in inputs.items()}, "y")
    truth = y[N_FIT:]
    return float(1.0 - ((truth - predicted) ** 2).sum() / ((truth - y[:N_FIT].mean(0)) ** 2).sum())


def of_planted() -> Row:
    """R² with the second input less that without it, on 20 problems."""
    gains: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(20):
        kind, informative, inputs, y = planted(seed)
        gains[informative].append(r2(inputs, kind, y) - r2({"x": inputs["x"]}, kind, y))
    worst = min(gains[True] + gains[False])
    text = f"{worst:+.3f}" + "".join(
        f"; {what}: least {min(mine):+.3f}, mean {np.mean(mine):+.3f}"
        for what, mine in (("informative", gains[True]), ("not", gains[False]))
    )
    return Row("least gain of R² by a second input, 20 planted problems", worst, MARK, text)


def of_cll() -> Row:
    """drugs → drugs2 with the mutations as a second input, and without."""
    what = "cll, drugs → drugs2: least gain of R² by the mutations, five draws"
    problems = [hidden_views.cll("drugs2", draw) for draw in hidden_views.DRAWS]
    if any(problem is None for problem in problems):
        return skipped(what, MARK)
    gains = [_gain(problem) for problem in problems if problem is not None]
    text = f"{min(gains):+.3f} ({', '.join(f'{gain:+.3f}' for gain in gains)})"
    return Row(what, min(gains), MARK, text)


def _gain(problem: hidden_views.Hidden) -> float:
    scores: list[float] = []
    for names in (("drugs", "drugs2"), ("drugs", "drugs2", "mutations")):
        tables = {name: problem.tables[name] for name in names}
        part = hidden_views.Hidden(tables, "drugs2", problem.rows, problem.truth, problem.binary)
        scores.append(hidden_views.kofa(part, None, True, output=True)[0])
    return scores[1] - scores[0]


EXPERIMENTS: dict[str, Measurement] = {"second-input": of_planted, "second-input-cll": of_cll}
