"""Classes and labels: accuracy, AUC against a tuned SVM, and what unlabelled rows add."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, roc_auc_score

from experiments.baselines import svm
from experiments.data import load, stored
from experiments.experiment import Benchmark, Mark, signed_range, spread
from experiments.models.classes import auc
from experiments.protocol import Split, fold_settings, splits, table
from experiments.simulated.calibration import calibration_error
from experiments.tasks import Array, Result, Results, Task, by_method
from kofa import RBF, Binary, Categorical, FactorModel, KernelFactorClassifier, Real

LABELLED = ("emotions", "scene")
FIRST_ROWS = {"satimage": 2000, "fashion_mnist_10k": 1000, "oil_flow": 2000}

# ---------------------------------------------------------------- data


@dataclass(frozen=True)
class Problem:
    """Inputs, and classes (n,) or labels (n, L)."""

    X: Array
    y: NDArray[np.int64]
    splits: list[Split]


def problem(name: str) -> Problem:
    """A set and its folds; of large sets the first rows."""
    data = load(name)
    y = data.Y if name in LABELLED else getattr(data, "y_binary", data.y)
    X, y = (values[: FIRST_ROWS.get(name)] for values in (data.X, y))
    y = np.asarray(y).astype(int)
    if name == "scene":
        train, test = (np.flatnonzero(data.split == part) for part in ("train", "test"))
        return Problem(X, y, [(train, test)])
    return Problem(X, y, splits("labels" if name in LABELLED else "classes", y))


# ---------------------------------------------------------------- methods


def from_kernel(given: Problem, split: Split, scale: bool = True) -> tuple[Array, float]:
    """Probabilities of the held-out rows by an RBF kernel, and the seconds of the fit."""
    train, test = split
    output = Categorical() if given.y.ndim == 1 else Binary()
    views = {"x": Real(kernel=RBF(), scale=scale), "y": output}
    model, begin = FactorModel(views, outputs=["y"]), perf_counter()
    model.fit({"x": given.X[train], "y": given.y[train]})
    seconds = perf_counter() - begin
    proba = np.asarray(model.predict_proba({"x": given.X[test]}, "y"))
    return proba[:, np.argsort(model.classes_["y"])] if given.y.ndim == 1 else proba, seconds


def estimator(given: Problem, split: Split) -> tuple[Array, float]:
    """The estimator as it comes, nothing set."""
    train, test = split
    model, begin = KernelFactorClassifier(), perf_counter()
    model.fit(given.X[train], given.y[train])
    seconds = perf_counter() - begin
    return np.asarray(model.predict_proba(given.X[test])), seconds


def machine(given: Problem, split: Split) -> tuple[Array, float]:
    begin = perf_counter()
    proba = svm.probabilities(given.X, given.y, split)
    return proba, perf_counter() - begin


METHODS: dict[str, Any] = {
    "kofa": from_kernel,
    # The columns of digits (pixels) share a unit and are left as they are. Standardised: .977.
    "kofa, unscaled": partial(from_kernel, scale=False),
    "estimator": estimator,
    "SVM": machine,
}


def score(name: str, fold: int, method: str) -> Result:
    """What a method says about the held-out rows of a fold, and how good that is."""
    given = problem(name)
    split = given.splits[fold]
    proba, seconds = METHODS[method](given, split)
    y = given.y[split[1]]
    found = {"proba": proba, "y": y, "seconds": seconds}
    if y.ndim == 2:
        return {**found, "auc": float(roc_auc_score(y, proba)), "log_loss": label_loss(y, proba)}
    loss = float(log_loss(y, proba, labels=np.unique(given.y)))
    return {**found, "auc": auc(y, proba), "log_loss": loss}


def label_loss(Y: NDArray[np.int64], proba: Array) -> float:
    """Mean log-loss of all labels."""
    right = np.clip(np.where(Y == 1, proba, 1.0 - proba), np.finfo(float).eps, None)
    return float(-np.log(right).mean())


def grids_of(method: str) -> dict[str, Any]:
    """What a method is tuned on, for its settings."""
    return {"grids": table()["svm"]} if method == "SVM" else {}


def tasks(name: str, *methods: str) -> list[Task]:
    """Each method on each fold of a set."""
    protocol = "labels" if name in LABELLED else "classes"
    folds = fold_settings(protocol, 1 if name == "scene" else None)
    return [
        Task(
            "classes", name, method, fold, partial(score, name, fold, method),
            {**folds, "method": method, "rows": FIRST_ROWS.get(name, 0), **grids_of(method)},
        )
        for method in methods
        for fold in range(folds["folds"])
    ]  # fmt: skip


# ---------------------------------------------------------------- digits


def right(result: Result) -> NDArray[np.bool_]:
    """Whether the likeliest class is the true one; digits are numbered like columns."""
    return np.asarray(np.argmax(result["proba"], axis=1) == result["y"])


def accuracy_summary(results: Results) -> tuple[float, str]:
    shares = [float(np.mean(right(one))) for one in results.values()]
    taken = np.median([one["seconds"] for one in results.values()])
    return float(np.mean(shares)), f"{spread(shares, 4)} ({taken:.1f} s per fold)"


def figure_summary(name: str, digits: int, results: Results) -> tuple[float, str]:
    """Mean over folds of one figure."""
    values = [float(one[name]) for one in results.values()]
    return float(np.mean(values)), spread(values, digits)


def calibration_summary(results: Results) -> tuple[float, str]:
    """ECE of the largest probability, of all folds together."""
    largest = np.concatenate([np.max(one["proba"], axis=1) for one in results.values()])
    happened = np.concatenate([right(one) for one in results.values()])
    error = calibration_error(largest, happened)
    return error, f"{error:.4f}"


def digits_rows() -> dict[str, Benchmark]:
    """One fit per fold, shared by four rows."""
    fits = partial(tasks, "digits", "kofa, unscaled")
    rows: dict[str, tuple[str, Mark, Any]] = {
        "accuracy": ("accuracy on digits, 10 folds", Mark(low=0.98), accuracy_summary),
        "auc": (
            "macro one-vs-rest AUC on digits, 10 folds",
            Mark(low=0.998),
            partial(figure_summary, "auc", 5),
        ),
        "log-loss": (
            "log-loss on digits, 10 folds",
            Mark(high=0.09),
            partial(figure_summary, "log_loss", 4),
        ),
        "calibration": (
            "calibration error (ECE) on digits, 10 folds together",
            Mark(high=0.03),
            calibration_summary,
        ),
    }
    return {
        f"digits-{name}": Benchmark(what, mark, fits, summary)
        for name, (what, mark, summary) in rows.items()
    }


# ---------------------------------------------------------------- against an SVM


def difference_summary(losses: bool, results: Results) -> tuple[float, str]:
    """AUC of kofa minus that of the SVM, fold by fold."""
    ours, theirs = by_method(results).values()
    our_auc, their_auc = (np.array([float(r["auc"]) for r in side]) for side in (ours, theirs))
    apart = our_auc - their_auc
    text = (
        f"{apart.mean():+.4f} (kofa {our_auc.mean():.4f}, SVM {their_auc.mean():.4f}; "
        f"{signed_range(apart)}"
    )
    if losses:
        our_loss, their_loss = (np.mean([r["log_loss"] for r in side]) for side in (ours, theirs))
        seconds = np.median([r["seconds"] for r in ours])
        text += f"; log-loss {our_loss:.4f}, SVM {their_loss:.4f}; median fit {seconds:.1f} s"
    return float(apart.mean()), f"{text})"


def folds_of(name: str) -> str:
    return "its own split" if name == "scene" else "10 folds"


def kernel_row(name: str) -> Benchmark:
    """An RBF kernel against the SVM."""
    area = "macro AUC" if name in LABELLED else "AUC"
    what = f"{area} on {name}, kofa − tuned SVM, {folds_of(name)}"
    fits = partial(tasks, name, "kofa", "SVM")
    return Benchmark(what, Mark(low=-0.005), fits, partial(difference_summary, False))


def defaults_row(name: str) -> Benchmark:
    """The estimator with nothing set against the SVM."""
    what = f"AUC of KernelFactorClassifier() − tuned SVM on {name}, {folds_of(name)}"
    fits = partial(tasks, name, "estimator", "SVM")
    return Benchmark(what, Mark(low=-0.01), fits, partial(difference_summary, True))


# ---------------------------------------------------------------- few labels

DRAWS = range(20)
LABELS = 5  # per class
MFEAT = tuple(f"X_{name}" for name in ("fac", "fou", "kar", "mor", "pix", "zer"))


def few_labels(name: str, draw: int) -> Result:
    """Accuracy on a third of the rows, of a model of all others and of one of the labelled ones."""
    X, y = mfeat() if name == "mfeat" else (problem(name).X, problem(name).y)
    rng = np.random.default_rng(draw)
    test, rest = np.split(rng.permutation(len(y)), [len(y) // 3])
    known = np.concatenate([rest[y[rest] == c][:LABELS] for c in np.unique(y)])
    labels = np.where(np.isin(rest, known), y[rest], np.nan)
    informed = KernelFactorClassifier().fit(X[rest], labels).score(X[test], y[test])
    alone = KernelFactorClassifier().fit(X[known], y[known]).score(X[test], y[test])
    return {"informed": float(informed), "alone": float(alone)}


def mfeat() -> tuple[Array, NDArray[Any]]:
    """Six sets of features of written digits, side by side."""
    *features, y = stored("mfeat", *MFEAT, "y") or ()
    return np.concatenate(features, axis=1), y


def draw_tasks(name: str) -> list[Task]:
    settings = {"method": "few labels", "labels": LABELS, "rows": FIRST_ROWS.get(name, 0)}
    return [
        Task("labels", name, "kofa", draw, partial(few_labels, name, draw), settings)
        for draw in DRAWS
    ]


def gain_summary(results: Results) -> tuple[float, str]:
    """Gain in accuracy by unlabelled rows, mean over draws of the labels."""
    informed, alone = (
        np.array([float(one[name]) for one in results.values()]) for name in ("informed", "alone")
    )
    gain = informed - alone
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    text = f"{gain.mean():+.4f} ± {error:.4f} ({informed.mean():.4f} against {alone.mean():.4f})"
    return float(gain.mean()), text


def unlabelled_row(name: str) -> Benchmark:
    labelled = f"{LABELS} labels per class, {len(DRAWS)} draws"
    what = f"gain by unlabelled rows, accuracy on {name}, {labelled}"
    return Benchmark(what, Mark(low=0.0), partial(draw_tasks, name), gain_summary)


SHIPPED = ("digits", "wine", "breast_cancer")
EXPERIMENTS: dict[str, Benchmark] = {
    **digits_rows(),
    **{f"auc-{n}": kernel_row(n) for n in ("iris", "wine", "breast_cancer", *LABELLED)},
    **{f"unlabelled-{n}": unlabelled_row(n) for n in ("digits", "wine", "oil_flow", "mfeat")},
    **{
        f"defaults-auc-{n}": defaults_row(n)
        for n in (*SHIPPED, "arrhythmia", "satimage", "fashion_mnist_10k", *LABELLED)
    },
}
