"""Is the number of factors found?"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_breast_cancer

from experiments.experiment import Mark, Measurement, Row, skipped
from experiments.simulated import hidden_views
from experiments.tasks import Array
from kofa import Binary, Count, FactorModel, Real

TRUE, ALLOWED, SEEDS = 8, 20, range(3)
KINDS = {"Real": Real, "Binary": Binary, "Count": Count}
HOLES = ("complete", "10 % missing", "a view missing for half")


def problem(n: int, views: int, columns: int, holes: str, kind: str, seed: int) -> dict[str, Array]:
    """Views of eight factors."""
    rng = np.random.default_rng(seed)
    Z, tables = rng.standard_normal((n, TRUE)), {}
    for name in "abc"[:views]:
        eta = Z @ rng.standard_normal((TRUE, columns))
        if kind == "Real":
            y = eta + 0.5 * rng.standard_normal(eta.shape)
        elif kind == "Binary":
            y = (eta + rng.standard_normal(eta.shape) > 0).astype(float)
        else:
            y = rng.poisson(3.0 * np.logaddexp(0.0, eta)).astype(float)
        if holes == "10 % missing":
            y[rng.random(y.shape) < 0.1] = np.nan
        tables[name] = y
    if holes == HOLES[2]:
        tables["b"][rng.random(n) < 0.5] = np.nan
    return tables


def found(n: int, kind: str, allowed: int | None = ALLOWED) -> Iterator[tuple[str, int]]:
    """What was asked, and the number of factors that a fit keeps."""
    for views, columns, holes, seed in product((2, 3), (30, 100, 500), HOLES, SEEDS):
        tables = problem(n, views, columns, holes, kind, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = FactorModel({name: KINDS[kind]() for name in tables}, allowed).fit(tables)
        yield f"{views} × {columns}, {holes}", model.n_factors_


def grid(n: int, kind: str) -> Row:
    """All of one size and kind."""
    results = list(found(n, kind))
    exact = np.mean([k == TRUE for _, k in results])
    wrong = {f"{what}: {k}" for what, k in results if k != TRUE}
    text = f"{exact:.0%} of {len(results)}" + (f" ({'; '.join(sorted(wrong))})" if wrong else "")
    what = f"{TRUE} factors found of {ALLOWED} allowed, N = {n:,}, {kind}"
    return Row(what, float(exact), Mark(low=0.9), text)


def tables_of(name: str) -> dict[str, Array] | None:
    """Real data, complete."""
    if name == "cancer":
        return {"x": load_breast_cancer().data}
    hidden = hidden_views.cll("drugs2", 0) if name == "cll" else hidden_views.mfeat(0)
    if hidden is None:
        return None
    hidden.tables[hidden.view][hidden.rows] = hidden.truth
    return hidden.tables


def matched(one: Array, other: Array, strongest: int = 10) -> float:
    """Median correlation of the strongest factors of one fit with those of another."""
    k = min(strongest, one.shape[1])
    r = np.abs(np.corrcoef(one[:, :k].T, other.T)[:k, k:])
    return float(np.median(r[linear_sum_assignment(-r)]))


def ceilings(name: str) -> Row:
    """Ceilings above the number that is found without one."""
    mark = Mark(high=0.15)
    what = f"{name}: largest change of n_factors_ with ceilings of 1.2, 2 and 4 times it"
    tables = tables_of(name)
    if tables is None:
        return skipped(what, mark)
    views = {n: Binary() if n == "mutations" else Real() for n in tables}
    fits: list[FactorModel] = []
    factors: list[Array] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for times in (None, 1.2, 2.0, 4.0):
            allowed = None if times is None else int(np.ceil(times * fits[0].n_factors_))
            fits.append(FactorModel(views, allowed))
            factors.append(np.asarray(fits[-1].fit_transform(tables)))
    numbers, bounds = [f.n_factors_ for f in fits], [f.lower_bound_ for f in fits]
    change = max(abs(k / numbers[0] - 1.0) for k in numbers)
    loss = (max(bounds) - min(bounds)) / abs(max(bounds))
    same = min(matched(factors[0], other) for other in factors[1:])
    text = f"{change:.0%} ({', '.join(map(str, numbers))}); bounds differ by {loss:.1e}"
    return Row(what, change, mark, f"{text}; median matched correlation {same:.3f}")


EXPERIMENTS: dict[str, Measurement] = {
    f"factors-{n}-{kind.lower()}": partial(grid, n, kind)
    for n, kind in product((200, 500, 5000), KINDS)
}
EXPERIMENTS |= {f"ceilings-{name}": partial(ceilings, name) for name in ("cancer", "cll", "mfeat")}
