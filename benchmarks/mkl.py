"""Several kernels: do the useless ones fade, and what do the others predict together?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from statistics import median

import numpy as np
from joblib import delayed
from sklearn.metrics import r2_score

from benchmarks.classification import Ints, Split, auc, stratified
from benchmarks.data import Array, regression_set, stored
from benchmarks.parallel import in_parallel
from benchmarks.report import Benchmark, Mark, Result, skipped
from benchmarks.sparse import ten_folds
from benchmarks.timing import seconds
from kofa import RBF, Categorical, FactorModel, Polynomial, Real
from kofa.data.scaling import Scaling
from kofa.kernels.declared import as_kernel
from kofa.kernels.formulas import Kernel
from kofa.kernels.learning import learn
from kofa.kernels.mixture import parts
from kofa.kernels.outputs import Outputs
from kofa.linalg import Groups, centre

# ---------------------------------------------------------------- planted

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
class Sifted:
    """What became of the useless kernels."""

    in_factors: float  # the largest weight of a useless kernel
    in_output: float
    r2: float
    oracle: float  # R² with the informative inputs alone


def sift(seed: int) -> Sifted:
    inputs, y = planted(seed)
    model, r2 = planted_fit(inputs, y)
    _, oracle = planted_fit({name: inputs[name] for name in INFORMATIVE}, y)
    tables = [model.kernel_weights(output) for output in (None, "y")]
    largest = [float(t.loc[t["view"].isin(USELESS), "weight"].max()) for t in tables]
    return Sifted(largest[0], largest[1], r2, oracle)


@cache
def sifted() -> list[Sifted]:
    """Two fits per seed, shared by the two rows below."""
    return [sift(seed) for seed in SEEDS]


def planted_weights() -> Result:
    in_factors, in_output = ([getattr(s, k) for s in sifted()] for k in ("in_factors", "in_output"))
    worst = max(in_factors + in_output)
    text = f"{worst:.4f} (in z {max(in_factors):.4f}, in y {max(in_output):.4f})"
    what = f"largest weight of 3 kernels of noise besides 2 informative ones, {len(SEEDS)} seeds"
    return Result(what, worst, Mark(high=0.05), text)


def planted_r2() -> Result:
    lost = [one.oracle - one.r2 for one in sifted()]
    r2, oracle = (float(np.mean([getattr(s, k) for s in sifted()])) for k in ("r2", "oracle"))
    text = f"{max(lost):+.4f} (means {oracle:.4f} − {r2:.4f})"
    what = f"largest loss of R² to the model without noise kernels, {TEST_ROWS} new rows"
    return Result(what, max(lost), Mark(high=0.01), text)


# ---------------------------------------------------------------- classes


@dataclass(frozen=True)
class Task:
    """Inputs with their kernels, and the classes they are to tell apart."""

    views: dict[str, Real]
    inputs: dict[str, Array]
    y: Ints
    remark: str = ""


def arrhythmia() -> Task | None:
    """The patient, and the readings; missing values stay missing."""
    data = stored("arrhythmia", "X", "y_binary")
    if data is None:
        return None
    X, y = data
    views = {"patient": Real(kernel=RBF()), "readings": Real(kernel=RBF())}
    return Task(views, {"patient": X[:, :15], "readings": X[:, 15:]}, y)


def satimage(rows: int = 2000) -> Task | None:
    """The central pixel, and the mean of its eight neighbours, by band.

    A draw of all rows: they come in the order of the scene, and the first 2,000 lack a class.
    """
    data = stored("satimage", "X", "y")
    if data is None:
        return None
    drawn = np.sort(np.random.default_rng(0).choice(len(data[0]), rows, replace=False))
    pixels = data[0][drawn].astype(float).reshape(rows, 9, 4)
    inputs = {"pixel": pixels[:, 4], "around": np.delete(pixels, 4, axis=1).mean(axis=1)}
    views = {name: Real(kernel=RBF()) for name in inputs}
    return Task(views, inputs, data[1][drawn], f"{rows} of {len(data[0])} rows, drawn at random")


def fashion(rows: int = 1000) -> Task | None:
    """Two kernels on the same pixels, as they are."""
    data = stored("fashion_mnist_10k", "X", "y")
    if data is None:
        return None
    X = data[0][:rows].reshape(rows, -1) / 255.0
    view = Real(kernel=[RBF(), Polynomial()], scale=False)
    return Task({"x": view}, {"x": X}, data[1][:rows].astype(int), f"first {rows} rows")


TASKS = {"arrhythmia": arrhythmia, "satimage": satimage, "fashion": fashion}
AUC_MARKS = {"arrhythmia": 0.818, "satimage": 0.983, "fashion": 0.952}


def class_fold(task: Task, split: Split) -> tuple[float, Array, float]:
    """AUC, weights of the kernels in y, and seconds of fit."""
    train, test = split
    model = FactorModel(task.views | {"y": Categorical()}, outputs=["y"])
    data = {name: x[train] for name, x in task.inputs.items()} | {"y": task.y[train]}
    taken = seconds(lambda: model.fit(data))
    proba = model.predict_proba({name: x[test] for name, x in task.inputs.items()}, "y")
    proba = proba[:, np.argsort(model.classes_["y"])]
    weights = model.kernel_weights("y")["weight"].to_numpy()
    return auc(task.y[test], proba), weights, taken


def classes(name: str) -> Result:
    mark, task = Mark(low=AUC_MARKS[name]), TASKS[name]()
    what = f"macro one-vs-rest AUC on {name}, two kernels, 10 folds"
    if task is None:
        return skipped(what, mark)
    splits = stratified(next(iter(task.inputs.values())), task.y)
    areas, weights, times = zip(
        *in_parallel(delayed(class_fold)(task, s) for s in splits), strict=True
    )
    shares = " and ".join(f"{w:.2f}" for w in np.mean(weights, axis=0))
    text = (
        f"{np.mean(areas):.4f} ± {np.std(areas):.4f} "
        f"(weights {shares}, {median(times):.1f} s per fold)"
    )
    what += f", {task.remark}" if task.remark else ""
    return Result(what, float(np.mean(areas)), mark, text)


# ---------------------------------------------------------------- the ready mixture

BANK_MARKS = {
    "atp1d": 0.815,
    "atp7d": 0.68,
    "oes97": 0.71,
    "oes10": 0.80,
    "edm": 0.45,
    "jura": 0.66,
    "wq": 0.155,
    "enb": 0.989,
    "slump": 0.53,
}


@dataclass(frozen=True)
class Bank:
    """R² on one test fold."""

    r2: float
    process: float  # of the Gaussian process with the same kernels and noises
    seconds: float  # of fit


def summed(kernels: list[Kernel], weights: Array, X: Array, V: Array) -> Array:
    return np.asarray(sum(v * k(X, V) for v, k in zip(weights, kernels, strict=True)))


def gaussian_process(X: Array, Y: Array, X_new: Array) -> Array:
    """Predictions with Σ_m v_m K_m and σ_d² as the likelihood of the outputs has them."""
    of_x, of_y = Scaling.fit(X), Scaling.fit(Y)
    X, Y, X_new = of_x.encode(X), of_y.encode(Y), of_x.encode(X_new)
    bank, columns = parts(as_kernel("bank", "x")), np.arange(Y.shape[1])
    outputs = Outputs.of(Y, Groups(columns, len(columns)))
    found = learn(bank, [X] * len(bank), [X] * len(bank), outputs)
    K, K_new = (summed(found.kernels, found.weights, rows, X) for rows in (X, X_new))
    K_new = K_new - K_new.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
    e, U = np.linalg.eigh(centre(K))
    spectrum = np.maximum(e, 0.0)[:, None] + found.noise
    return of_y.decode(K_new @ (U @ (U.T @ Y / spectrum)))


def bank_fold(X: Array, Y: Array, split: Split) -> Bank:
    train, test = split
    model = FactorModel({"x": Real(kernel="bank"), "y": Real()}, outputs=["y"])
    taken = seconds(lambda: model.fit({"x": X[train], "y": Y[train]}))
    process = gaussian_process(X[train], Y[train], X[test])
    ours = r2_score(Y[test], model.predict({"x": X[test]}, "y"))
    return Bank(float(ours), float(r2_score(Y[test], process)), taken)


@cache
def bank_folds(name: str) -> list[Bank] | None:
    """Shared by the two rows below."""
    data = regression_set(name)
    if data is None:
        return None
    return in_parallel(delayed(bank_fold)(*data, s) for s in ten_folds(data[0]))


def bank(name: str) -> Result:
    what, mark = f"R² of {name}, kernel='bank', 10 folds", Mark(low=BANK_MARKS[name])
    found = bank_folds(name)
    if found is None:
        return skipped(what, mark)
    scores, process = [one.r2 for one in found], [one.process for one in found]
    taken = median(one.seconds for one in found)
    text = (
        f"{np.mean(scores):.4f} ± {np.std(scores):.4f} "
        f"(Gaussian process {np.mean(process):.4f}; {taken:.1f} s per fold)"
    )
    return Result(what, float(np.mean(scores)), mark, text)


def bank_gap(name: str) -> Result:
    what, mark = f"R² of {name}, through z − Gaussian process, same kernels", Mark(low=-0.02)
    found = bank_folds(name)
    if found is None:
        return skipped(what, mark)
    apart = np.array([one.r2 - one.process for one in found])
    text = f"{apart.mean():+.4f} ({apart.min():+.4f} to {apart.max():+.4f} for single folds)"
    return Result(what, float(apart.mean()), mark, text)


BENCHMARKS: dict[str, Benchmark] = {
    "mkl-planted": planted_weights,
    "mkl-planted-r2": planted_r2,
    **{f"mkl-{name}": partial(classes, name) for name in TASKS},
    **{f"bank-{name}": partial(bank, name) for name in BANK_MARKS},
    **{f"bank-gp-{name}": partial(bank_gap, name) for name in BANK_MARKS},
}
