"""Which features matter: planted ones in primal and in kernelized views, and what λ costs."""

from __future__ import annotations

from functools import cache, partial
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.metrics import r2_score, roc_auc_score

from benchmarks.data import Array
from benchmarks.report import Benchmark, Mark, Result
from benchmarks.timing import seconds, threads
from kofa import RBF, FactorModel, Real
from kofa.kernels import Kernel, Weighted
from kofa.learning import Learnt, Objective, Outputs, Relevance, learn
from kofa.linalg import Groups

SEEDS = range(10)


def auroc(model: FactorModel, planted: NDArray[np.intp]) -> float:
    """Of the relevance of the features of x: are the planted ones above all others?"""
    table = model.feature_relevance("x")
    return float(roc_auc_score(np.isin(table["feature"], planted), table["relevance"]))


def span(values: list[float], digits: int = 4) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


# ---------------------------------------------------------------- a sparse primal view

ROWS, COLUMNS, PLANTED, FACTORS = 300, 500, 20, 3


def primal_view(seed: int) -> tuple[Array, NDArray[np.intp]]:
    """Columns of unit noise; the planted ones also follow the factors."""
    rng = np.random.default_rng(seed)
    planted = np.sort(rng.choice(COLUMNS, PLANTED, replace=False))
    X = rng.standard_normal((ROWS, COLUMNS))
    X[:, planted] += rng.standard_normal((ROWS, FACTORS)) @ rng.standard_normal((FACTORS, PLANTED))
    return X, planted


def primal_fit(seed: int) -> tuple[float, int, int]:
    """AUROC, noise features that are on, and planted features that are off."""
    X, planted = primal_view(seed)
    model = FactorModel({"x": Real(sparse=True)}).fit({"x": X})
    on = model.selected_features("x")
    return auroc(model, planted), len(np.setdiff1d(on, planted)), len(np.setdiff1d(planted, on))


@cache
def primal_fits() -> list[tuple[float, int, int]]:
    """One fit per seed, shared by the two rows below."""
    return [primal_fit(seed) for seed in SEEDS]


def primal_features() -> Result:
    areas = [area for area, _, _ in primal_fits()]
    what = f"least AUROC of {PLANTED} of {COLUMNS} primal features, N = {ROWS}, {len(areas)} seeds"
    return Result(what, min(areas), Mark(low=0.99), f"{min(areas):.4f} ({span(areas)})")


def primal_noise() -> Result:
    on, off = (sum(fit[i] for fit in primal_fits()) for i in (1, 2))
    noise = len(primal_fits()) * (COLUMNS - PLANTED)
    text = f"{on} of {noise} ({off} of {len(primal_fits()) * PLANTED} planted features are off)"
    return Result(f"noise features on, all {len(primal_fits())} seeds", on, Mark(high=0), text)


# ---------------------------------------------------------------- an RBF view

TEST_ROWS, FEATURES, NOISE = 500, 50, 0.1
INFORMATIVE = np.arange(5)


def rbf_data(seed: int) -> tuple[Array, Array]:
    """y = f(5 of 50 features) + noise, f nonlinear and of unit variance."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS + TEST_ROWS, FEATURES))
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] ** 2 - 1.5 * np.abs(X[:, 4])
    f = (f - f.mean()) / f.std()
    return X, (f + NOISE * rng.standard_normal(len(f)))[:, None]


def rbf_model(X: Array, Y: Array, kernel: Kernel) -> tuple[FactorModel, float]:
    """A fit, and its R² on the rows that it has not seen."""
    model = FactorModel({"x": Real(kernel=kernel), "y": Real()}, outputs=["y"])
    model.fit({"x": X[:ROWS], "y": Y[:ROWS]})
    return model, float(r2_score(Y[ROWS:], model.predict({"x": X[ROWS:]}, "y")))


def rbf_fit(seed: int) -> tuple[float, float, float]:
    """AUROC of λ, R² with it and R² of one width for all features."""
    X, Y = rbf_data(seed)
    model, learnt = rbf_model(X, Y, RBF(relevance="learn"))
    return auroc(model, INFORMATIVE), learnt, rbf_model(X, Y, RBF())[1]


@cache
def rbf_fits() -> list[tuple[float, float, float]]:
    """Two fits per seed, shared by the two rows below."""
    return [rbf_fit(seed) for seed in SEEDS]


def rbf_features() -> Result:
    areas = [area for area, _, _ in rbf_fits()]
    what = f"least AUROC of λ, y = f(5 of {FEATURES} features), N = {ROWS}, {len(areas)} seeds"
    return Result(what, min(areas), Mark(low=0.99), f"{min(areas):.4f} ({span(areas)})")


def rbf_gain() -> Result:
    _, learnt, isotropic = (list(values) for values in zip(*rbf_fits(), strict=True))
    gains = [a - b for a, b in zip(learnt, isotropic, strict=True)]
    text = f"{min(gains):.3f} (R² {span(learnt, 3)} with λ, {span(isotropic, 3)} without)"
    what = f"least gain in R² by λ, same data, {TEST_ROWS} new rows"
    return Result(what, min(gains), Mark(low=0.1), text)


# ---------------------------------------------------------------- λ does not collapse


STEPS = 300  # of λ at most, as by default
COLLAPSE = Mark(high=0.01)
MAXIMISE = Objective.maximise


def go_on(objective: Objective, theta: Array, max_iter: int) -> Array:
    """`Objective.maximise`, but λ then takes up to nine times as many steps without a tolerance.

    More steps alone would show nothing: it stops by its tolerance well before the last.
    """
    theta = MAXIMISE(objective, theta, max_iter)
    if max_iter < STEPS:  # widths, or starts that race
        return theta
    options = {"maxiter": 9 * max_iter, "maxfun": 36 * max_iter, "ftol": 0.0, "gtol": 0.0}
    found = minimize(
        objective.negative,
        theta,
        jac=True,
        method="L-BFGS-B",
        bounds=objective.bounds,
        options=options,
    )
    return np.asarray(found.x)


def learn_relevance(seed: int) -> tuple[Array, Learnt]:
    """The rows, and the kernel learnt from them."""
    X, Y = (values[:ROWS] for values in rbf_data(seed))
    outputs = Outputs.of((Y - Y.mean()) / Y.std(), Groups(np.zeros(1, dtype=np.intp), 1))
    return X, learn([RBF(relevance="learn")], [X], [X], outputs, max_iter=STEPS)


def summary(X: Array, found: Learnt) -> Array:
    """Norm of the kernel, spread of λ, and likelihood."""
    kernel = found.kernels[0]
    assert isinstance(kernel, Weighted)
    norm = np.linalg.norm(found.weights[0] * kernel(X, X))
    return np.array([norm, np.std(kernel.weights(FEATURES)), found.likelihood])


def collapse() -> Result:
    """The largest relative change of any of the three by ten times the steps."""
    changes = []
    for seed in SEEDS:
        usual = summary(*learn_relevance(seed))
        with patch.object(Objective, "maximise", go_on):
            changes.append(np.abs(summary(*learn_relevance(seed)) / usual - 1))
    norm, spread, likelihood = np.max(changes, axis=0)
    worst = float(np.max(changes))
    above = sum(float(change.max()) > COLLAPSE.high for change in changes)
    text = (
        f"{worst:.2%} (kernel norm {norm:.2%}, spread of λ {spread:.2%}, ℓ {likelihood:.2%}; "
        f"{above} seeds above the mark)"
    )
    what = f"largest change by ten times the steps of λ, no tolerance, {len(changes)} seeds"
    return Result(what, worst, COLLAPSE, text)


# ---------------------------------------------------------------- the time of a step


def step_objective(n: int, columns: int, classes: int) -> Objective:
    """λ of very many features, learnt from the indicators of classes, which share a noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, columns))
    Y = np.eye(classes)[rng.integers(classes, size=n)]
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    kernel = RBF(RBF().median_width(X))
    outputs = Outputs.of(Y, Groups(np.zeros(classes, dtype=np.intp), 1))
    return Objective([Relevance(kernel, X, X, True)], outputs)


def relevance_step(n: int = 1000, columns: int = 2400, rounds: int = 9) -> Result:
    """ℓ and its gradient against one product of rows and landmarks."""
    objective = step_objective(n, columns, 7)
    A = objective.sources[0].X
    B = np.random.default_rng(1).standard_normal((columns, n))  # A Aᵀ would take half the time
    work: dict[str, Any] = {
        "step": partial(objective.negative, objective.begin),
        "product": partial(np.matmul, A, B),
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(rounds + 1):  # in turns, so that other load on the machine hits both
        for name, call in work.items():
            taken = seconds(call)
            if turn:  # the first fills what is computed once
                times[name].append(taken)
    step, product = (median(taken) for taken in times.values())
    text = f"{step / product:.2f} ({1e3 * step:.0f} / {1e3 * product:.0f} ms, {threads()})"
    what = f"one step of λ / one bare product, N = R = {n}, D = {columns}"
    return Result(what, step / product, Mark(high=4), text)


BENCHMARKS: dict[str, Benchmark] = {
    "primal-features": primal_features,
    "primal-features-off": primal_noise,
    "rbf-features": rbf_features,
    "rbf-features-r2": rbf_gain,
    "collapse": collapse,
    "relevance-step": relevance_step,
}
