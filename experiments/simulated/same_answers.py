"""Answers that must not change: with noise beside, other rows, or the same columns apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from experiments.data import stored
from experiments.experiment import Mark, Measurement, Row, skipped
from experiments.sets.cll import tables
from experiments.simulated.hidden_views import PROBLEMS
from experiments.simulated.questions import columns, quiet
from experiments.tasks import Array
from kofa import Categorical, FactorModel, KernelFactorRegressor, Real

FOLDS, SEED = 5, 7
NOISE = (0, 6, 60, 600)
SIZES = (60, 120, 240, 299, 301, 600, 1200)
Tables = Mapping[str, Array]

# ---------------------------------------------------------------- noise beside, samples more


def noise_beside() -> Row:
    """R² of six columns that follow, with others of noise in the same view."""
    most, shown = 0.0, []
    for n in (150, 500):
        scores = []
        for d in NOISE:
            each = []
            for seed in range(110, 113):
                x, y, new, truth = columns(n, seed)
                wide = np.column_stack([y, np.random.default_rng(seed).normal(size=(n, d))])
                with quiet():
                    found = FactorModel().fit({"x": x, "y": wide}).predict({"x": new}, "y")
                each.append(r2_score(truth, found[:, :6]))
            scores.append(float(np.mean(each)))
        most = max(most, max(scores) - min(scores))
        shown.append(f"n = {n}: " + " ".join(f"{score:.3f}" for score in scores))
    what = "6 columns that follow beside 0, 6, 60, 600 of noise: R² at most apart"
    return Row(what, most, Mark(high=0.01), f"{most:.3f} ({'; '.join(shown)})")


def growing(name: str) -> Row:
    """How far R² of a hidden view falls from one number of samples to the next, two draws."""
    what, mark = f"{name}: R² of a hidden view from one n to the next", Mark(low=-0.01)
    problems = [PROBLEMS[name](draw) for draw in (30, 31)]
    if any(problem is None for problem in problems):
        return skipped(what, mark)
    curves = []
    for problem in problems:
        assert problem is not None
        hidden = np.isin(np.arange(len(problem.tables[problem.view])), problem.rows)
        others = np.random.default_rng(0).permutation(np.flatnonzero(~hidden))
        curve = []
        for n in sorted({min(n, len(others)) for n in SIZES}):
            some = {view: y[others[:n]] for view, y in problem.tables.items()}
            with quiet():
                model = FactorModel(problem.views).fit(some)
                ask = model.predict_proba if problem.view in problem.binary else model.predict
                curve.append(problem.score(np.asarray(ask(problem.others, problem.view))))
        curves.append(curve)
    mean = np.mean(curves, axis=0)
    shown = " ".join(f"{score:.3f}" for score in mean)
    return Row(what, float(np.diff(mean).min()), mark, f"{np.diff(mean).min():+.3f} ({shown})")


# ---------------------------------------------------------------- a sample that lacks more


def lacking(n_lacking: int) -> Row:
    """R² of a view of mfeat from fewer views than the fit had, less that of a fit without them."""
    what = f"mfeat, {n_lacking} of five other views missing: R² − that of a fit without them"
    problems, gains = [PROBLEMS["mfeat"](draw) for draw in (41, 43, 44)], []
    for problem in problems:
        if problem is None:
            return skipped(what, Mark(low=-0.01))
        kept = [name for name in problem.tables if name != problem.view][n_lacking:]
        given = {name: problem.others[name] for name in kept}
        of_pattern = {name: problem.tables[name] for name in [*kept, problem.view]}
        with quiet():
            models = (FactorModel().fit(one) for one in (problem.tables, of_pattern))
            a, b = (problem.score(np.asarray(m.predict(given, problem.view))) for m in models)
        gains.append(a - b)
    text = f"{min(gains):+.3f}; mean {np.mean(gains):+.3f}"
    return Row(what, min(gains), Mark(low=-0.01), text)


# ---------------------------------------------------------------- the same data


def same_data(make: Callable[[], Any], what: str) -> Row:
    """How far predictions of diabetes move, in units of their spread, with the same data."""
    X, y = load_diabetes(return_X_y=True)
    fit, new = (X[:342], y[:342]), X[342:]
    order = np.random.default_rng(0).permutation(342)
    noise = 1.0 + 1e-9 * np.random.default_rng(1).normal(size=X[:342].shape)
    changed = {
        "order": (X[order], y[order], new),
        "float32": (X[:342].astype(np.float32), y[:342], new),
        "1e-9": (X[:342] * noise, y[:342], new),
        "a row less": (X[:341], y[:341], new),
    }
    with quiet():
        before = make().fit(*fit).predict(new)
        moved = {
            name: float(np.sqrt(np.mean((make().fit(a, b).predict(c) - before) ** 2)))
            / float(before.std())
            for name, (a, b, c) in changed.items()
        }
    text = f"{max(moved.values()):.4f} ({', '.join(f'{k} {v:.4f}' for k, v in moved.items())})"
    title = f"diabetes, {what}: predictions with the same data, apart"
    return Row(title, max(moved.values()), Mark(high=0.01), text)


# ---------------------------------------------------------------- views apart, or side by side


def omics(name: str) -> tuple[Tables, Array] | None:
    """Three tables of the same samples, and their classes."""
    if name == "mfeat":
        found = stored("mfeat", "X_fou", "X_kar", "X_zer", "y")
        if found is None:
            return None
        some = np.random.default_rng(SEED).permutation(len(found[0]))[:400]
        views = dict(zip(("fou", "kar", "zer"), found[:3], strict=True))
        return {view: X[some].astype(float) for view, X in views.items()}, found[3][some]
    given = tables("drugs", "drugs2", "mutations")
    if given is None:
        return None
    truth = given["mutations"].pop(name).dropna()
    samples = truth.index[[all(s in X.index for X in given.values()) for s in truth.index]]
    kept = {view: X.loc[samples] for view, X in given.items()}
    filled = {view: X.fillna(X.mean()).to_numpy(dtype=float) for view, X in kept.items()}
    varied = {view: X[:, X.std(axis=0) > 0] for view, X in filled.items()}
    return varied, truth.loc[samples].to_numpy()


def views_apart(name: str) -> Row:
    """Log-loss of classes from tables in kernels of their own, less that of one like it for all."""
    what, mark = f"{name}: log-loss, views apart − all in one", Mark(high=0.005)
    found = omics(name)
    if found is None:
        return skipped(what, mark)
    given, y = found
    names, losses = np.unique(y), {}
    ways: dict[str, Callable[[], Any]] = {
        "apart": lambda: {view: Real(kernel="rbf") for view in given},
        "one": lambda: {"all": Real(kernel="rbf")},
        "bank": lambda: {"all": Real(kernel="bank")},
        "no kernel": lambda: {view: Real() for view in given},
    }
    whole = np.hstack(list(given.values()))
    for way, views in [*ways.items(), ("logistic", None)]:
        p = np.zeros((len(y), len(names)))
        for fit, test in StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(whole, y):
            with quiet():
                p[test] = (
                    _logistic(whole, y, fit, test)
                    if views is None
                    else _kofa(views(), {"all": whole, **given}, y, fit, test)
                )
        losses[way] = float(log_loss(y, p, labels=names))
    value = losses["apart"] - losses["one"]
    shown = ", ".join(f"{way} {loss:.3f}" for way, loss in losses.items())
    return Row(what, value, mark, f"{value:+.3f} ({shown})")


def _kofa(views: dict[str, Any], given: Tables, y: Array, fit: Array, test: Array) -> Array:
    tables = {view: given[view][fit] for view in views}
    model = FactorModel({**views, "class": Categorical()}, outputs=["class"])
    model.fit({**tables, "class": y[fit].astype(str)})
    return np.asarray(model.predict_proba({view: given[view][test] for view in views}))


def _logistic(X: Array, y: Array, fit: Array, test: Array) -> Array:
    scale = StandardScaler().fit(X[fit])
    found = LogisticRegressionCV(Cs=8, cv=5, scoring="neg_log_loss", max_iter=500)
    found.fit(scale.transform(X[fit]), y[fit])
    return np.asarray(found.predict_proba(scale.transform(X[test])))


EXPERIMENTS: dict[str, Measurement] = {
    "questions-noise": noise_beside,
    **{f"questions-growing-{name}": partial(growing, name) for name in PROBLEMS},
    **{f"questions-lacking-{n}": partial(lacking, n) for n in (1, 2, 3)},
    "questions-same-regressor": partial(same_data, KernelFactorRegressor, "regressor"),
    **{
        f"questions-kernels-{name}": partial(views_apart, name)
        for name in ("mfeat", "IGHV", "trisomy12")
    },
}
