"""Which features matter: planted ones in primal and in kernelized views, and what λ costs."""

from __future__ import annotations

from functools import cache, partial
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from experiments.data import stored
from experiments.experiment import Mark, Measurement, Row, skipped
from experiments.protocol import splits, table
from experiments.tasks import Array
from experiments.timing import seconds, threads
from kofa import RBF, FactorModel, KernelFactorClassifier, Real
from kofa.kernels.base import Kernel, Weighted
from kofa.kernels.evidence import Objective
from kofa.kernels.learning import Learnt, learn
from kofa.kernels.outputs import Outputs
from kofa.kernels.terms import Relevance
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


def primal_features() -> Row:
    areas = [area for area, _, _ in primal_fits()]
    what = f"least AUROC of {PLANTED} of {COLUMNS} primal features, N = {ROWS}, {len(areas)} seeds"
    return Row(what, min(areas), Mark(low=0.99), f"{min(areas):.4f} ({span(areas)})")


def primal_noise() -> Row:
    on, off = (sum(fit[i] for fit in primal_fits()) for i in (1, 2))
    noise = len(primal_fits()) * (COLUMNS - PLANTED)
    text = f"{on} of {noise} ({off} of {len(primal_fits()) * PLANTED} planted features are off)"
    return Row(f"noise features on, all {len(primal_fits())} seeds", on, Mark(high=0), text)


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


def rbf_features() -> Row:
    areas = [area for area, _, _ in rbf_fits()]
    what = f"least AUROC of λ, y = f(5 of {FEATURES} features), N = {ROWS}, {len(areas)} seeds"
    return Row(what, min(areas), Mark(low=0.99), f"{min(areas):.4f} ({span(areas)})")


def rbf_gain() -> Row:
    _, learnt, isotropic = (list(values) for values in zip(*rbf_fits(), strict=True))
    gains = [a - b for a, b in zip(learnt, isotropic, strict=True)]
    text = f"{min(gains):.3f} (R² {span(learnt, 3)} with λ, {span(isotropic, 3)} without)"
    what = f"least gain in R² by λ, same data, {TEST_ROWS} new rows"
    return Row(what, min(gains), Mark(low=0.1), text)


# ---------------------------------------------------------------- other functions


def waves(x: Array) -> Array:
    """Fast waves, one of them even, and products."""
    return np.column_stack(
        [np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2], np.cos(1.5 * x[:, 3]) * x[:, 0]]
    )


def products(x: Array) -> Array:
    """No feature has an effect of its own."""
    return (x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3])[:, None]


def jumps(x: Array) -> Array:
    """Not smooth."""
    return (np.sign(x[:, 0]) + 1.5 * np.abs(x[:, 1]) + np.sign(x[:, 2] * x[:, 3]))[:, None]


# The function, how many features it has of how many, and rows.
FUNCTIONS: dict[str, tuple[Any, int, int, int]] = {
    "waves": (waves, 4, 40, 260),
    "products": (products, 4, 60, 300),
    "jumps": (jumps, 4, 100, 300),
}


def function_area(name: str, seed: int) -> float:
    """AUROC of λ of an RBF kernel."""
    function, n_planted, n_features, n = FUNCTIONS[name]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features))
    Y = function(X)
    Y = Y / Y.std(axis=0) + NOISE * rng.standard_normal(Y.shape)
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    outputs = Outputs.of(Y, Groups(np.arange(Y.shape[1]), Y.shape[1]))
    kernel = learn([RBF(relevance="learn")], [X], [X], outputs).kernels[0]
    assert isinstance(kernel, Weighted)
    return float(roc_auc_score(np.arange(n_features) < n_planted, kernel.weights(n_features)))


def functions() -> Row:
    """Share of the runs in which λ ranks the planted features above all others."""
    areas = {"five features": [area for area, _, _ in rbf_fits()]}
    areas |= {name: [function_area(name, seed) for seed in SEEDS] for name in FUNCTIONS}
    share = float(np.mean([area >= 0.99 for mine in areas.values() for area in mine]))
    text = "; ".join(f"{name} {span(mine, 3)}" for name, mine in areas.items())
    what = f"runs with an AUROC of λ of at least .99, four functions, {len(SEEDS)} seeds each"
    return Row(what, share, Mark(low=0.95), f"{share:.0%} ({text})")


# ---------------------------------------------------------------- more features than samples

WIDE_FOLDS = table()["protocols"]["wide"]["folds"]
LEAST_ACCURACY, MOST_LOSS, LEAST_JACCARD = -0.01, 0.02, 0.5


def wide_set(name: str) -> tuple[Array, NDArray[Any]] | None:
    """X and classes; of cll the drugs, and whether the IGHV gene is mutated."""
    if name != "cll":
        data = stored(name, "X", "y_binary" if name == "arrhythmia" else "y")
        return None if data is None else (data[0].astype(float), data[1])
    data = stored(
        name,
        *("X_drugs", "samples_drugs", "X_mutations", "samples_mutations"),
        "feature_names_mutations",
    )
    if data is None:
        return None
    X, patients, mutations, others, genes = data
    ighv = mutations[:, genes.tolist().index("IGHV")]
    known = dict(zip(others.tolist(), ighv.tolist(), strict=True))
    y = np.array([known.get(patient, np.nan) for patient in patients.tolist()])
    return X[~np.isnan(y)].astype(float), y[~np.isnan(y)].astype(int)


def wide_scores(X: Array, y: NDArray[Any], kernel: Kernel) -> Array:
    """Accuracy and log-loss, means over folds."""
    scores = []
    for train, test in splits("wide", y):
        model = KernelFactorClassifier(kernel).fit(X[train], y[train])
        proba = model.predict_proba(X[test])
        right = model.classes_[proba.argmax(axis=1)] == y[test]
        scores.append([right.mean(), log_loss(y[test], proba, labels=model.classes_)])
    return np.asarray(np.mean(scores, axis=0))


def jaccard(X: Array, y: NDArray[Any], kernel: Kernel) -> float:
    """Of the features that two halves select; one where both select none."""
    halves = splits("wide", y, folds=2)
    first, second = (
        set(KernelFactorClassifier(kernel).fit(X[half], y[half]).model_.selected_features("X"))
        for half, _ in halves
    )
    return len(first & second) / len(first | second) if first | second else 1.0


def wide(name: str) -> Row:
    """By how much λ loses beyond what it may; 0 where it does not, and the halves agree."""
    what = f"RBF with λ against without on {name}, {WIDE_FOLDS} folds: losses above their limits"
    mark = Mark(high=0.0)
    data = wide_set(name)
    if data is None:
        return skipped(what, mark)
    learnt = RBF(relevance="learn")
    accuracy, loss = wide_scores(*data, learnt) - wide_scores(*data, RBF())
    agree = jaccard(*data, learnt)
    over = max(
        LEAST_ACCURACY - float(accuracy), float(loss) - MOST_LOSS, LEAST_JACCARD - agree, 0.0
    )
    text = (
        f"{over:.3f} (accuracy {accuracy:+.3f}, log-loss {loss:+.3f}; Jaccard of the features that "
        f"two halves select {agree:.2f}; X {data[0].shape})"
    )
    return Row(what, over, mark, text)


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
    spread = np.std(np.asarray(kernel.weights(FEATURES)))
    return np.array([norm, spread, found.likelihood])


def collapse() -> Row:
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
    return Row(what, worst, COLLAPSE, text)


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


def relevance_step(n: int = 1000, columns: int = 2400, rounds: int = 9) -> Row:
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
    return Row(what, step / product, Mark(high=4), text)


EXPERIMENTS: dict[str, Measurement] = {
    "primal-features": primal_features,
    "primal-features-off": primal_noise,
    "rbf-features": rbf_features,
    "rbf-features-r2": rbf_gain,
    "relevance-functions": functions,
    **{
        f"relevance-wide-{name}": partial(wide, name)
        for name in ("cll", "arrhythmia", "olivetti_orl")
    },
    "collapse": collapse,
    "relevance-step": relevance_step,
}
