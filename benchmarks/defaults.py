"""The estimators as they come, nothing set, against peers that were tuned."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from joblib import delayed
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler

from benchmarks import svm
from benchmarks.classification import Ints, Split, auc, label_splits, stratified
from benchmarks.data import Array, regression_set, stored
from benchmarks.parallel import in_parallel
from benchmarks.report import Benchmark, Mark, Result, skipped
from benchmarks.timing import seconds
from kofa.estimators import KernelFactorClassifier, KernelFactorRegressor

MARK = Mark(low=-0.01)


@dataclass(frozen=True)
class Fold:
    """R² or AUC of kofa and of the peer on one test fold, and the seconds of our fit."""

    ours: float
    theirs: float
    seconds: float
    our_loss: float = np.nan  # log-loss
    their_loss: float = np.nan


# ---------------------------------------------------------------- regression

SETS = ("atp1d", "atp7d", "oes97", "oes10", "edm", "jura", "wq", "enb", "slump")
ALPHAS = np.logspace(-5, 1, 7).tolist()
GAMMAS = np.logspace(-4, 1, 11)  # in units of 1 / columns


def ridge(X: Array, Y: Array, X_new: Array) -> Array:
    """Predictions of KernelRidge with an RBF kernel, tuned by inner 5-fold cross-validation."""
    inputs, outputs = StandardScaler().fit(X), StandardScaler().fit(Y)
    values = {"alpha": ALPHAS, "gamma": (GAMMAS / X.shape[1]).tolist()}
    inner = KFold(5, shuffle=True, random_state=0)
    model = GridSearchCV(KernelRidge(kernel="rbf"), values, cv=inner, scoring="r2")
    model.fit(inputs.transform(X), outputs.transform(Y))
    return np.asarray(outputs.inverse_transform(model.predict(inputs.transform(X_new))))


def regression_fold(X: Array, Y: Array, train: Ints, test: Ints) -> Fold:
    model = KernelFactorRegressor()
    taken = seconds(lambda: model.fit(X[train], Y[train]))
    theirs = r2_score(Y[test], ridge(X[train], Y[train], X[test]))
    return Fold(r2_score(Y[test], model.predict(X[test])), theirs, taken)


def regression_folds(name: str) -> list[Fold] | None:
    data = regression_set(name)
    if data is None:
        return None
    splits = KFold(10, shuffle=True, random_state=0).split(data[0])
    return in_parallel(delayed(regression_fold)(*data, *split) for split in splits)


def regression() -> Result:
    """Mean over the sets of the mean over folds."""
    what = f"R² of KernelFactorRegressor() − tuned KernelRidge, {len(SETS)} sets, 10 folds"
    if any(regression_set(name) is None for name in SETS):
        return skipped(what, MARK)
    folds = {name: regression_folds(name) or [] for name in SETS}
    means = {
        n: [np.mean([getattr(f, k) for f in folds[n]]) for k in ("ours", "theirs")] for n in SETS
    }
    ours, theirs = np.mean(list(means.values()), axis=0)
    by_set = ", ".join(f"{name} {a:.3f} / {b:.3f}" for name, (a, b) in means.items())
    taken = median(fold.seconds for name in SETS for fold in folds[name])
    text = f"{ours - theirs:+.4f} ({ours:.4f} − {theirs:.4f}; {by_set}; median fit {taken:.1f} s)"
    text += paired({name: [fold.ours for fold in mine] for name, mine in folds.items()})
    return Result(what, float(ours - theirs), MARK, text)


def by_fold() -> dict[str, dict[str, list[float]]]:
    """R² of the same folds by method and set, from the JSON files that `--by-fold` names.

    A file is {"r2": {set: {method: values}}} or {method: {set: values}}.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for path in filter(None, os.environ.get("KOFA_BY_FOLD", "").split(os.pathsep)):
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        for name, methods in content.get("r2", {}).items():
            for method, values in methods.items():
                found.setdefault(method, {})[name] = values
        for method, sets in content.items():
            if method != "r2" and isinstance(sets, dict):
                found.setdefault(method, {}).update(sets)
    return found


def paired(ours: Mapping[str, list[float]]) -> str:
    """Differences to other methods on the same folds: mean and its standard error, by set."""
    text = ""
    for method, sets in by_fold().items():
        apart = {n: np.subtract(ours[n], sets[n]) for n in ours if len(sets.get(n, ())) == 10}
        if apart:
            by_set = ", ".join(
                f"{n} {d.mean():+.3f} ± {d.std(ddof=1) / len(d) ** 0.5:.3f}"
                for n, d in apart.items()
            )
            text += f"; − {method} {np.mean([d.mean() for d in apart.values()]):+.4f}: {by_set}"
    return text


# ---------------------------------------------------------------- classification

LOADERS: dict[str, Any] = {
    "digits": load_digits,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
}


# The first rows of sets that are large, with the labels that are used.
ROWS = {"satimage": 2000, "fashion_mnist_10k": 1000}
LABELLED = ("emotions", "scene")


def classes(name: str) -> tuple[Array, Ints] | None:
    if name in LOADERS:
        X, y = LOADERS[name](return_X_y=True)
        return X, y
    if name in LABELLED:
        data = stored(name, "X", "Y")
    else:
        data = stored(name, "X", "y_binary" if name == "arrhythmia" else "y")
    if data is None:
        return None
    X, y = (values[: ROWS.get(name)] for values in data)
    return X.reshape(len(X), -1).astype(float), y.astype(int)


def class_fold(X: Array, y: Ints, split: Split) -> Fold:
    """Our AUC and theirs; the SVM, which takes no missing values, has means in their place."""
    train, test = split
    model = KernelFactorClassifier()
    taken = seconds(lambda: model.fit(X[train], y[train]))
    fill = SimpleImputer().fit(X[train])
    filled = fill.transform(X[train]), y[train], fill.transform(X[test])
    ours = np.asarray(model.predict_proba(X[test]))
    if y.ndim == 1:
        theirs = svm.class_probabilities(*filled)
        areas = [auc(y[test], p) for p in (ours, theirs)]
        losses = [float(log_loss(y[test], p, labels=model.classes_)) for p in (ours, theirs)]
    else:
        theirs = svm.label_probabilities(*filled)
        areas = [float(roc_auc_score(y[test], p)) for p in (ours, theirs)]
        losses = [label_loss(y[test], p) for p in (ours, theirs)]
    return Fold(*areas, taken, *losses)


def label_loss(Y: Ints, proba: Array) -> float:
    """Mean log-loss of all labels."""
    right = np.clip(np.where(Y == 1, proba, 1.0 - proba), np.finfo(float).eps, None)
    return float(-np.log(right).mean())


def classification(name: str) -> Result:
    how = "its own split" if name == "scene" else "10 folds"
    what = f"AUC of KernelFactorClassifier() − tuned SVM on {name}, {how}"
    data = classes(name)
    if data is None:
        return skipped(what, MARK)
    splits = label_splits(name, data[0]) if name in LABELLED else stratified(*data)
    folds = in_parallel(delayed(class_fold)(*data, split) for split in splits)
    names = ("ours", "theirs", "our_loss", "their_loss")
    ours, theirs, our_loss, their_loss = (np.array([getattr(f, k) for f in folds]) for k in names)
    apart = ours - theirs
    text = (
        f"{apart.mean():+.4f} (kofa {ours.mean():.4f}, SVM {theirs.mean():.4f}; "
        f"{apart.min():+.4f} to {apart.max():+.4f} for single folds; "
        f"log-loss {our_loss.mean():.4f}, SVM {their_loss.mean():.4f}; "
        f"median fit {median(f.seconds for f in folds):.1f} s)"
    )
    return Result(what, float(apart.mean()), MARK, text)


BENCHMARKS: dict[str, Benchmark] = {
    "defaults-regression": regression,
    **{
        f"defaults-auc-{name}": partial(classification, name)
        for name in (*LOADERS, "arrhythmia", *ROWS, *LABELLED)
    },
}
