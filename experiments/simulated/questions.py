"""What the predictive layer says of views and cells, beside other methods.

Hidden views, known cells, and scores as samples become more.

Of each row, the least difference and the mean.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.linear_model import BayesianRidge, RidgeCV
from sklearn.metrics import r2_score

from experiments.experiment import Mark, Measurement, Row, skipped
from experiments.simulated.hidden_views import PROBLEMS, Hidden, kofa, ridge
from experiments.tasks import Array
from kofa import FactorModel
from kofa.linalg import BoolArray

DRAWS = range(20, 25)
SIZES = (50, 100, 200, 299, 300, 301, 500, 999, 1001, 2000)
KNOWN = (0, 1, 3, 5)
SHARES = (0.1, 0.4)


@contextmanager
def quiet() -> Iterator[None]:
    """Without what a fit warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _row(what: str, gains: list[float], mark: Mark, more: str = "") -> Row:
    text = f"{min(gains):+.3f}; mean {np.mean(gains):+.3f}{more}"
    return Row(what, min(gains), mark, text)


# ---------------------------------------------------------------- columns that follow


def columns(n: int, seed: int, shared: float = 0.0) -> tuple[Array, Array, Array, Array]:
    """x of 40 independent columns and y of six that follow: n rows of a fit, and 300 others.

    `shared`: the deviation of a factor of the noise, which the columns of y have in common.
    """
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(40, 6)) / np.sqrt(40)
    x = rng.normal(size=(2300, 40))
    y = x @ B + 0.5 * rng.normal(size=(2300, 6)) + shared * rng.normal(size=(2300, 1))
    return x[300 : n + 300], y[300 : n + 300], x[:300], y[:300]


def _tuned(x: Array, y: Array, new: Array) -> Array:
    scale = x.std(axis=0)
    found = RidgeCV(np.logspace(-3, 4, 30), alpha_per_target=True).fit(x / scale, y)
    return np.asarray(found.predict(new / scale))


def against_ridge() -> Row:
    """Mean R² of three seeds at every n, by predict and as an output, less that of ridge."""
    gains, apart = [], []
    for n in SIZES:
        scores = []
        for seed in range(100, 103):
            x, y, new, truth = columns(n, seed)
            with quiet():
                hidden = FactorModel().fit({"x": x, "y": y}).predict({"x": new}, "y")
                output = FactorModel(outputs=["y"]).fit({"x": x, "y": y}).predict({"x": new})
            each = (hidden, output, _tuned(x, y, new))
            scores.append([r2_score(truth, one) for one in each])
        by_view, by_output, by_ridge = np.mean(scores, axis=0)
        gains += [by_view - by_ridge, by_output - by_ridge]
        apart.append(abs(by_view - by_output))
    more = f"; hidden and output at most {max(apart):.3f} apart"
    return _row("columns that follow − ridge, n = 50 to 2,000", gains, Mark(low=-0.01), more)


def known_cells(shared: float) -> Row:
    """R² of the last column of y with more and more others known, each less the one before."""
    gains, shown = [], []
    for n in (60, 200, 301, 1000):
        scores = []
        for seed in range(100, 103):
            x, y, new, truth = columns(n, seed, shared)
            with quiet():
                model = FactorModel().fit({"x": x, "y": y})
                tables = (np.where(np.arange(6) < known, truth, np.nan) for known in KNOWN)
                filled = [model.impute({"x": new, "y": table})["y"][:, 5] for table in tables]
            scores.append([r2_score(truth[:, 5], one) for one in filled])
        found = np.mean(scores, axis=0)
        gains += (found - found[0]).tolist()[1:]
        shown.append(f"n = {n}: " + " ".join(f"{score:.3f}" for score in found))
    what = f"0, 1, 3, 5 of 6 columns known, shared factor {shared:g}: least gain by knowing"
    return _row(what, gains, Mark(low=-0.005), f" ({'; '.join(shown)})")


# ---------------------------------------------------------------- hidden views


def hidden(name: str) -> Row:
    """The view less ridge, and less what factors alone say, on draws not looked at."""
    what, mark = f"{name}: hidden view − the best of ridge and factors alone", Mark(low=-0.02)
    problems = [PROBLEMS[name](draw) for draw in DRAWS]
    if any(problem is None for problem in problems):
        return skipped(what, mark)
    gains, apart, cover = [], [], []
    for problem in problems:
        assert problem is not None
        with quiet():
            score, coverage = kofa(problem, None, True)
            output, _ = kofa(problem, None, True, output=True)
            factors = _r2(problem, *_filled(problem, 0.0, 0, by_factors=True))
        gains.append(score - max(ridge(problem), factors))
        apart.append(abs(score - output))
        cover.append(coverage)
    shown = "" if np.isnan(cover).all() else f"; coverage {min(cover):.3f}–{max(cover):.3f}"
    return _row(what, gains, mark, f"; as an output at most {max(apart):.3f} apart{shown}")


def cells(name: str, share: float) -> Row:
    """R² of the other cells with a share known, less that with none known and of factors alone."""
    what = f"{name}, {share:.0%} of its cells known − the best of none known and factors alone"
    mark = Mark(low=-0.01)
    problems = [PROBLEMS[name](draw) for draw in DRAWS]
    if any(problem is None for problem in problems):
        return skipped(what, mark)
    gains = []
    for draw, problem in enumerate(problems):
        assert problem is not None
        with quiet():
            filled, asked = _filled(problem, share, draw)
            factors, _ = _filled(problem, share, draw, by_factors=True)
            none, _ = _filled(problem, 0.0, draw)
        best = max(_r2(problem, one, asked) for one in (factors, none))
        gains.append(_r2(problem, filled, asked) - best)
    return _row(what, gains, mark)


def _filled(
    problem: Hidden, share: float, draw: int, by_factors: bool = False
) -> tuple[Array, BoolArray]:
    """The hidden view where a share of its cells is known, and which cells are asked for."""
    known = np.random.default_rng(draw).random(problem.truth.shape) < share
    given = {**problem.others, problem.view: np.where(known, problem.truth, np.nan)}
    model = FactorModel(problem.views).fit(problem.tables)
    if by_factors:
        filled = np.asarray(model.reconstruct(given, problem.view))
    else:
        filled = np.asarray(model.impute(given)[problem.view])
    return filled, ~known & ~np.isnan(problem.truth)


def _r2(problem: Hidden, filled: Array, asked: BoolArray) -> float:
    fit = problem.tables[problem.view]
    spread = np.where(np.nanstd(fit, axis=0) > 0, np.nanstd(fit, axis=0), 1.0)
    error, base = (
        (((problem.truth - one) / spread)[asked] ** 2).sum() for one in (filled, np.nanmean(fit, 0))
    )
    return float(1.0 - error / base)


# ---------------------------------------------------------------- one table


TABLES: dict[str, Callable[[], Array]] = {
    "wine": lambda: load_wine().data,
    "cancer": lambda: load_breast_cancer().data,
    "diabetes": lambda: load_diabetes().data,
    "digits": lambda: load_digits().data[:500],
}


def one_table(name: str) -> Row:
    """RMSE of hidden cells, relative to the best of tuned neighbours and iterated ridge."""
    values = TABLES[name]()
    values = values[:, values.std(axis=0) > 0]
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    ratios, shown = [], []
    for share in SHARES:
        hide = np.random.default_rng(100).random(values.shape) < share
        holed = np.where(hide, np.nan, values)
        others = [KNNImputer(n_neighbors=k, weights="distance") for k in (3, 5, 10, 20)]
        others.append(IterativeImputer(BayesianRidge(), max_iter=10, random_state=0))
        with quiet():
            ours = np.asarray(FactorModel().fit({"x": holed}).impute({"x": holed})["x"])
            best = min(_rmse(one.fit_transform(holed), values, hide) for one in others)
        ratios.append(_rmse(ours, values, hide) / best)
        shown.append(f"{share:.0%}: {_rmse(ours, values, hide):.3f}, best other {best:.3f}")
    what = f"{name}: error of hidden cells over that of the best other imputer"
    text = f"{max(ratios):.3f} ({'; '.join(shown)})"
    return Row(what, max(ratios), Mark(high=1.03), text)


def _rmse(filled: Array, values: Array, hidden: Array) -> float:
    return float(np.sqrt(((filled - values)[hidden] ** 2).mean()))


EXPERIMENTS: dict[str, Measurement] = {
    "questions-columns": against_ridge,
    "questions-known": partial(known_cells, 0.0),
    "questions-known-shared": partial(known_cells, 0.5),
    **{f"questions-hidden-{name}": partial(hidden, name) for name in PROBLEMS},
    **{
        f"questions-cells-{name}-{round(100 * share)}": partial(cells, name, share)
        for name in PROBLEMS
        if name != "cll-mutations"
        for share in (0.2, 0.6)
    },
    **{f"questions-table-{name}": partial(one_table, name) for name in TABLES},
}
