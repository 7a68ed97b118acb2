"""Classes and labels: accuracy, AUC against a tuned SVM, and what unlabelled rows add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from statistics import median
from typing import Any

import numpy as np
from joblib import delayed
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold

from benchmarks import svm
from benchmarks.calibration import calibration_error
from benchmarks.data import Array, regression_set, stored
from benchmarks.parallel import in_parallel
from benchmarks.report import Benchmark, Mark, Result, skipped
from benchmarks.timing import seconds
from kofa import RBF, Binary, Categorical, FactorModel, KernelFactorClassifier, Real

Ints = NDArray[np.int64]
Split = tuple[Ints, Ints]


def from_kernel(output: Any, n_factors: int | None = None, scale: bool = True) -> FactorModel:
    x = Real(kernel=RBF(), scale=scale)
    return FactorModel({"x": x, "y": output}, n_factors, outputs=["y"])


# The columns of digits (pixels) share a unit and are left as they are. Standardised: .977.
raw = partial(from_kernel, Categorical(), scale=False)


def stratified(X: Array, y: Ints) -> list[Split]:
    return list(StratifiedKFold(10, shuffle=True, random_state=0).split(X, y))


def oil_flow() -> tuple[Array, Ints] | None:
    """The paper's 2,000 rows, as far as is known."""
    data = stored("oil_flow", "X", "y")
    return None if data is None else (data[0][:2000], data[1][:2000])


# ---------------------------------------------------------------- classes


@dataclass(frozen=True)
class Fold:
    """What a model says about rows that it has not seen."""

    y: Ints
    proba: Array  # a column per class, in ascending order
    predicted: Ints
    seconds: float

    @property
    def right(self) -> NDArray[np.bool_]:
        return np.equal(self.predicted, self.y)

    @property
    def auc(self) -> float:
        return auc(self.y, self.proba)


def auc(y: Ints, proba: Array) -> float:
    """Area under the ROC curve; of several classes the mean of each against the rest."""
    scores = proba[:, 1] if proba.shape[1] == 2 else proba
    return float(roc_auc_score(y, scores, multi_class="ovr"))


def class_fold(X: Array, y: Ints, split: Split, model: FactorModel) -> Fold:
    train, test = split
    taken = seconds(lambda: model.fit({"x": X[train], "y": y[train]}))
    proba = model.predict_proba({"x": X[test]}, "y")[:, np.argsort(model.classes_["y"])]
    return Fold(y[test], proba, model.predict({"x": X[test]}, "y"), taken)


def class_folds(X: Array, y: Ints, model: FactorModel) -> list[Fold]:
    return in_parallel(delayed(class_fold)(X, y, s, model) for s in stratified(X, y))


def accuracy(what: str, folds: list[Fold], mark: Mark) -> Result:
    """Mean over folds."""
    shares = [float(np.mean(fold.right)) for fold in folds]
    taken = median(fold.seconds for fold in folds)
    text = f"{np.mean(shares):.4f} ± {np.std(shares):.4f} ({taken:.1f} s per fold)"
    return Result(what, float(np.mean(shares)), mark, text)


# ---------------------------------------------------------------- digits


@cache
def digits() -> list[Fold]:
    """One fit per fold, shared by the rows below."""
    return class_folds(*load_digits(return_X_y=True), raw())


def digits_accuracy() -> Result:
    return accuracy("accuracy on digits, 10 folds", digits(), Mark(low=0.98))


def digits_auc() -> Result:
    areas = [fold.auc for fold in digits()]
    text = f"{np.mean(areas):.5f} ± {np.std(areas):.5f}"
    what = "macro one-vs-rest AUC on digits, 10 folds"
    return Result(what, float(np.mean(areas)), Mark(low=0.998), text)


def digits_log_loss() -> Result:
    losses = [log_loss(fold.y, fold.proba, labels=range(10)) for fold in digits()]
    text = f"{np.mean(losses):.4f} ± {np.std(losses):.4f}"
    return Result("log-loss on digits, 10 folds", float(np.mean(losses)), Mark(high=0.09), text)


def digits_calibration() -> Result:
    """ECE of the largest probability, of all folds together."""
    largest = np.concatenate([fold.proba.max(axis=1) for fold in digits()])
    error = calibration_error(largest, np.concatenate([fold.right for fold in digits()]))
    what = "calibration error (ECE) on digits, 10 folds together"
    return Result(what, error, Mark(high=0.03), f"{error:.4f}")


def oil_flow_accuracy() -> Result:
    what, mark = "accuracy on oil_flow, 15 factors, 10 folds", Mark(low=0.994)
    data = oil_flow()
    if data is None:
        return skipped(what, mark)
    return accuracy(what, class_folds(*data, from_kernel(Categorical(), 15)), mark)


# ---------------------------------------------------------------- against an SVM

AUC_MARK = Mark(low=-0.005)
LOADERS: dict[str, Callable[..., Any]] = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
}


def duel(what: str, areas: list[tuple[float, float]]) -> Result:
    """AUC of kofa minus that of the SVM, fold by fold."""
    ours, theirs = np.transpose(areas)
    apart = ours - theirs
    text = (
        f"{apart.mean():+.4f} (kofa {ours.mean():.4f}, SVM {theirs.mean():.4f}; "
        f"{apart.min():+.4f} to {apart.max():+.4f} for single folds)"
    )
    return Result(what, float(apart.mean()), AUC_MARK, text)


def class_areas(X: Array, y: Ints, split: Split) -> tuple[float, float]:
    """Our AUC and theirs on one fold."""
    train, test = split
    theirs = svm.class_probabilities(X[train], y[train], X[test])
    return class_fold(X, y, split, from_kernel(Categorical())).auc, auc(y[test], theirs)


def classes(name: str) -> Result:
    X, y = LOADERS[name](return_X_y=True)
    areas = in_parallel(delayed(class_areas)(X, y, s) for s in stratified(X, y))
    return duel(f"AUC on {name}, kofa − tuned SVM, {len(areas)} folds", areas)


def label_areas(X: Array, Y: Array, split: Split) -> tuple[float, float]:
    """Our AUC and theirs, means over labels, on one fold."""
    train, test = split
    model = from_kernel(Binary()).fit({"x": X[train], "y": Y[train]})
    ours = model.predict_proba({"x": X[test]}, "y")
    theirs = svm.label_scores(X[train], Y[train], X[test])
    return roc_auc_score(Y[test], ours), roc_auc_score(Y[test], theirs)


def label_splits(name: str, X: Array) -> list[Split]:
    """Ten folds, but for scene its own split."""
    own = stored(name, "split") if name == "scene" else None
    if own is None:
        return list(KFold(10, shuffle=True, random_state=0).split(X))
    return [(np.flatnonzero(own[0] == "train"), np.flatnonzero(own[0] == "test"))]


def labels(name: str) -> Result:
    how = "its own split" if name == "scene" else "10 folds"
    what = f"macro AUC on {name}, kofa − tuned SVM, {how}"
    data = regression_set(name)
    if data is None:
        return skipped(what, AUC_MARK)
    splits = label_splits(name, data[0])
    return duel(what, in_parallel(delayed(label_areas)(*data, s) for s in splits))


# ---------------------------------------------------------------- few labels

DRAWS = range(20)
LABELS = 5  # per class


def mfeat() -> tuple[Array, Ints] | None:
    """Six sets of features of written digits, side by side."""
    features = [f"X_{name}" for name in ("fac", "fou", "kar", "mor", "pix", "zer")]
    data = stored("mfeat", *features, "y")
    return None if data is None else (np.concatenate(data[:-1], axis=1), data[-1])


MOSTLY_UNLABELLED: dict[str, Callable[[], Any]] = {
    "digits": partial(load_digits, return_X_y=True),
    "wine": partial(load_wine, return_X_y=True),
    "oil_flow": oil_flow,
    "mfeat": mfeat,
}


def few_labels(X: Array, y: Ints, seed: int) -> tuple[float, float]:
    """Accuracy on a third of the rows, of a model of all others and of one of the labelled ones."""
    rng = np.random.default_rng(seed)
    test, rest = np.split(rng.permutation(len(y)), [len(y) // 3])
    known = np.concatenate([rest[y[rest] == c][:LABELS] for c in np.unique(y)])
    labels = np.where(np.isin(rest, known), y[rest], np.nan)
    informed = KernelFactorClassifier().fit(X[rest], labels)
    alone = KernelFactorClassifier().fit(X[known], y[known])
    return informed.score(X[test], y[test]), alone.score(X[test], y[test])


def unlabelled(name: str) -> Result:
    """Gain in accuracy by unlabelled rows, mean over draws of the labels."""
    labelled = f"{LABELS} labels per class, {len(DRAWS)} draws"
    what = f"gain by unlabelled rows, accuracy on {name}, {labelled}"
    data = MOSTLY_UNLABELLED[name]()
    if data is None:
        return skipped(what, Mark(low=0.0))
    informed, alone = np.transpose(in_parallel(delayed(few_labels)(*data, d) for d in DRAWS))
    gain = informed - alone
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    text = f"{gain.mean():+.4f} ± {error:.4f} ({informed.mean():.4f} against {alone.mean():.4f})"
    return Result(what, float(gain.mean()), Mark(low=0.0), text)


BENCHMARKS: dict[str, Benchmark] = {
    "digits-accuracy": digits_accuracy,
    "digits-auc": digits_auc,
    "digits-log-loss": digits_log_loss,
    "digits-calibration": digits_calibration,
    "oil_flow": oil_flow_accuracy,
    **{f"auc-{name}": partial(classes, name) for name in LOADERS},
    **{f"auc-{name}": partial(labels, name) for name in ("emotions", "scene")},
    **{f"unlabelled-{name}": partial(unlabelled, name) for name in MOSTLY_UNLABELLED},
}
