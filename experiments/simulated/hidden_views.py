"""Whole views that samples lack: what the others say of them, against ridge regression."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV

from experiments.data import stored
from experiments.experiment import Mark, Measurement, Row, skipped
from experiments.tasks import Array
from kofa import Binary, FactorModel, Real

DRAWS = range(5)
FACTORS = (5, 10, 25, None)
WORST = Mark(low=-0.01)


@dataclass(frozen=True)
class Hidden:
    """Tables in which some samples lack a view, and the truth."""

    tables: dict[str, Array]
    view: str
    rows: Any
    truth: Array
    binary: tuple[str, ...] = ()

    @property
    def views(self) -> dict[str, Any]:
        return {name: Binary() if name in self.binary else Real() for name in self.tables}

    @property
    def others(self) -> dict[str, Array]:
        """The other views of those samples."""
        return {name: y[self.rows] for name, y in self.tables.items() if name != self.view}

    def score(self, prediction: Array) -> float:
        """Share explained of what the columns' means in fit leave: variance, or deviance."""
        fit, seen = self.tables[self.view], ~np.isnan(self.truth)
        if self.view in self.binary:
            counts = (~np.isnan(fit)).sum(axis=0)
            base = np.broadcast_to((np.nansum(fit, 0) + 0.5) / (counts + 1.0), self.truth.shape)
            deviance = [_surprise(self.truth[seen], p[seen]) for p in (prediction, base)]
            return float(1.0 - deviance[0] / deviance[1])
        spread = np.where(np.nanstd(fit, axis=0) > 0, np.nanstd(fit, axis=0), 1.0)
        errors = [((self.truth - y) / spread)[seen] for y in (prediction, np.nanmean(fit, axis=0))]
        return float(1.0 - (errors[0] ** 2).sum() / (errors[1] ** 2).sum())


def _surprise(truth: Array, p: Array) -> float:
    return float(-np.log(np.clip(np.where(truth == 1, p, 1.0 - p), 1e-12, 1.0)).sum())


def _hide(tables: dict[str, Array], view: str, rows: Any, binary: tuple[str, ...] = ()) -> Hidden:
    changed = {name: y.copy() for name, y in tables.items()}
    truth = changed[view][rows].copy()
    changed[view][rows] = np.nan
    return Hidden(changed, view, rows, truth, binary)


def cll(view: str, draw: int) -> Hidden | None:
    """40 of the 117 patients with both screens of drugs lack a view."""
    names = ("drugs", "drugs2", "mutations")
    keys = [f"{what}_{name}" for name in names for what in ("X", "samples")]
    found = stored("cll", "samples", *keys)
    if found is None:
        return None
    place = {sample: i for i, sample in enumerate(found[0])}
    tables = {}
    for name, X, samples in zip(names, found[1::2], found[2::2], strict=True):
        tables[name] = np.full((len(place), X.shape[1]), np.nan)
        tables[name][[place[s] for s in samples]] = X
    both = ~np.isnan(tables["drugs"]).all(axis=1) & ~np.isnan(tables["drugs2"]).all(axis=1)
    tables = {name: y[both] for name, y in tables.items()}
    has = np.flatnonzero(~np.isnan(tables[view]).all(axis=1))
    rows = np.random.default_rng(draw).choice(has, 40, replace=False)
    return _hide(tables, view, rows, ("mutations",))


def mfeat(draw: int, n: int = 600) -> Hidden | None:
    """Three tenths of some images lack one of the six views, each draw another."""
    names = ("fac", "fou", "kar", "mor", "pix", "zer")
    found = stored("mfeat", *(f"X_{name}" for name in names))
    if found is None:
        return None
    rng = np.random.default_rng(draw)
    rows = rng.permutation(len(found[0]))[:n]
    tables = {name: X[rows].astype(float) for name, X in zip(names, found, strict=True)}
    return _hide(tables, names[draw % 6], rng.choice(n, int(0.3 * n), replace=False))


DESIGNS = {  # samples, true factors, columns of the views
    "wide": (150, 40, (150, 150, 200)),
    "tall": (300, 30, (60, 40, 100)),
    "few": (100, 60, (300, 100, 50)),
}


def planted(design: str, draw: int) -> Hidden:
    """More factors than are allowed, of different strengths, each in about three of five views."""
    n, k, columns = DESIGNS[design]
    rng = np.random.default_rng(draw)
    Z, strength = rng.standard_normal((n, k)), np.exp(0.7 * rng.standard_normal(k))
    tables = {}
    for name, d in zip("abc", columns, strict=True):
        W = rng.standard_normal((d, k)) * strength * (rng.random(k) < 0.6) / np.sqrt(k)
        tables[name] = Z @ W.T + 0.7 * rng.standard_normal((n, d))
    return _hide(tables, "c", rng.choice(n, int(0.27 * n), replace=False))


PROBLEMS: dict[str, Callable[[int], Hidden | None]] = {
    "cll-drugs2": partial(cll, "drugs2"),
    "cll-mutations": partial(cll, "mutations"),
    "mfeat": mfeat,
    **{f"planted-{name}": partial(planted, name) for name in DESIGNS},
}


def ridge(problem: Hidden) -> float:
    """Tuned ridge regression on the other views side by side, holes at the mean."""
    complete = np.ones(len(problem.tables[problem.view]), dtype=bool)
    complete[problem.rows] = False
    stacked = [y for name, y in problem.tables.items() if name != problem.view]
    X, Y = np.concatenate(stacked, axis=1), problem.tables[problem.view]
    X, _, _ = _standardised(X, complete)
    Y, centre, spread = _standardised(Y, complete)
    fitted = RidgeCV(np.logspace(-1, 5, 25)).fit(X[complete], Y[complete])
    prediction = fitted.predict(X[problem.rows])
    return problem.score(np.clip(prediction * spread + centre, *_limits(problem)))


def _standardised(values: Array, rows: Any) -> tuple[Array, Array, Array]:
    centre, spread = np.nanmean(values[rows], axis=0), np.nanstd(values[rows], axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    return np.nan_to_num((values - centre) / spread), centre, spread


def _limits(problem: Hidden) -> tuple[float, float]:
    return (0.01, 0.99) if problem.view in problem.binary else (-np.inf, np.inf)


def kofa(
    problem: Hidden, n_factors: int | None, in_fit: bool, output: bool = False
) -> tuple[float, float]:
    """Score, and coverage of 90 % intervals, with those samples in the fit or not."""
    tables = problem.tables
    if not in_fit:
        tables = {name: np.delete(y, problem.rows, axis=0) for name, y in tables.items()}
    outputs = [problem.view] if output else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FactorModel(problem.views, n_factors, outputs=outputs).fit(tables)
        if problem.view in problem.binary:
            return problem.score(model.predict_proba(problem.others, problem.view)), np.nan
        low, high = model.predict_quantiles(problem.others, problem.view, [0.05, 0.95])
        inside = ((problem.truth >= low) & (problem.truth <= high))[~np.isnan(problem.truth)]
        return problem.score(model.predict(problem.others, problem.view)), float(inside.mean())


def cells(name: str) -> Row:
    """The worst of all cells; with the number of factors free, the distance to ridge."""
    what = (
        f"{name}: explained share of hidden views, worst of {len(DRAWS)} draws × factors × in fit"
    )
    problems = [PROBLEMS[name](draw) for draw in DRAWS]
    if any(problem is None for problem in problems):
        return skipped(what, WORST)
    worst, to_ridge, cover = np.inf, [], []
    for problem in problems:
        assert problem is not None
        of_ridge = ridge(problem)
        for n_factors in FACTORS:
            for in_fit in (True, False):
                score, coverage = kofa(problem, n_factors, in_fit)
                worst = min(worst, score)
                cover.append(coverage)
                if n_factors is None:
                    to_ridge.append(score - of_ridge)
    to_ridge_text = f"least {min(to_ridge):+.3f}, mean {np.mean(to_ridge):+.3f}"
    text = f"{worst:.3f}; free number − ridge: {to_ridge_text}{_shown(cover)}"
    return Row(what, worst, WORST, text)


def _shown(cover: list[float]) -> str:
    """The range of the coverage, where there are intervals."""
    if np.isnan(cover).all():
        return ""
    return f"; coverage {np.nanmin(cover):.3f}–{np.nanmax(cover):.3f}"


def as_output(name: str) -> Row:
    """The hidden view named in `outputs`, against ridge."""
    mark, what = Mark(low=-0.02), f"{name} as an output: least of kofa − ridge, {len(DRAWS)} draws"
    problems = [PROBLEMS[name](draw) for draw in DRAWS]
    if any(problem is None for problem in problems):
        return skipped(what, mark)
    pairs = [(*kofa(p, None, True, output=True), ridge(p)) for p in problems if p is not None]
    gains = [score - of_ridge for score, _, of_ridge in pairs]
    cover = [coverage for _, coverage, _ in pairs]
    text = f"{min(gains):+.3f}; mean {np.mean(gains):+.3f}{_shown(cover)}"
    return Row(what, min(gains), mark, text)


EXPERIMENTS: dict[str, Measurement] = {f"hidden-{name}": partial(cells, name) for name in PROBLEMS}
EXPERIMENTS |= {f"hidden-output-{name}": partial(as_output, name) for name in PROBLEMS}
