"""Hidden views and scattered holes, against mofapy2."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from scipy.special import expit

from experiments.baselines.mofa import factors_and_weights, train
from experiments.experiment import Mark, Measurement, Row, skipped
from experiments.peers import on_one_thread
from experiments.simulated import hidden_views
from experiments.simulated.hidden_views import DRAWS, PROBLEMS, Hidden
from experiments.tasks import Array
from kofa import FactorModel

FACTORS = (5, 10, 25)
MARK = Mark(low=-0.005)


def mofa(problem: Hidden, n_factors: int) -> Array:
    """What mofapy2 makes of the view with something hidden, all samples, in the user's units."""
    names, views = list(problem.tables), []
    for name in names:
        y = problem.tables[name]
        spread = np.nanstd(y, axis=0)
        scaled = (y - np.nanmean(y, axis=0)) / np.where(spread > 0, spread, 1.0)
        views.append(y if name in problem.binary else scaled)
    kinds = ["bernoulli" if name in problem.binary else "gaussian" for name in names]
    model, _ = train(views, n_factors, kinds)
    Z, W = factors_and_weights(model)
    eta = Z @ W[names.index(problem.view)].T
    if problem.view in problem.binary:
        return np.asarray(expit(eta))
    y = problem.tables[problem.view]
    return np.asarray(eta * np.nanstd(y, axis=0) + np.nanmean(y, axis=0))


def hidden(name: str) -> Row:
    """Whole views of samples that were in the fit."""
    what = f"{name}: least of kofa − mofapy2, explained share of hidden views, in fit"
    problems = [PROBLEMS[name](draw) for draw in DRAWS]
    if any(problem is None for problem in problems):
        return skipped(what, MARK)
    cells = [
        (hidden_views.kofa(p, k, True)[0], p.score(mofa(p, k)[p.rows]))
        for p in problems
        if p is not None
        for k in FACTORS
    ]
    return _result(what, cells)


def _result(what: str, cells: list[tuple[float, float]]) -> Row:
    gains = [ours - theirs for ours, theirs in cells]
    ours, theirs = np.mean(cells, axis=0)
    text = f"{min(gains):+.3f}; mean {np.mean(gains):+.3f} ({ours:.3f} − {theirs:.3f})"
    return Row(what, min(gains), MARK, text)


def scattered(name: str, draw: int) -> Hidden | None:
    """A tenth of the entries of one view is missing, in place of the view."""
    problem = PROBLEMS[name](draw)
    if problem is None:
        return None
    tables, view = {n: y.copy() for n, y in problem.tables.items()}, problem.view
    tables[view][problem.rows] = problem.truth
    truth = np.full_like(tables[view], np.nan)
    holes = np.random.default_rng(draw).random(truth.shape) < 0.1
    truth[holes] = tables[view][holes]
    tables[view][holes] = np.nan
    return Hidden(tables, view, slice(None), truth, problem.binary)


def holes(name: str) -> Row:
    """Single entries, 25 factors."""
    what = f"{name}: least of kofa − mofapy2, explained share of 10 % scattered holes"
    problems = [scattered(name, draw) for draw in DRAWS]
    if any(problem is None for problem in problems):
        return skipped(what, MARK)
    cells = []
    for problem in problems:
        assert problem is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = FactorModel(problem.views, 25).fit(problem.tables)
            if problem.view in problem.binary:
                ours = model.predict_proba(problem.tables, problem.view)
            else:
                ours = model.impute(problem.tables)[problem.view]
        cells.append((problem.score(np.asarray(ours)), problem.score(mofa(problem, 25))))
    return _result(what, cells)


MEASUREMENTS: dict[str, Measurement] = {
    f"mofa-hidden-{name}": partial(hidden, name) for name in PROBLEMS
}
MEASUREMENTS |= {f"mofa-holes-{name}": partial(holes, name) for name in PROBLEMS}
EXPERIMENTS = {name: partial(on_one_thread, one) for name, one in MEASUREMENTS.items()}
