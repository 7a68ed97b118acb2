"""Is the number of factors found?"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_breast_cancer

from experiments.experiment import Mark, Measurement, Row, skipped
from experiments.simulated import hidden_views
from experiments.tasks import Array
from kofa import Binary, Count, FactorModel, Real
from kofa.inference import fit
from kofa.inference.start import in_random_rotation, spectral
from kofa.inspection import agreement

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
        yield f"{views} × {columns}, {holes}", _n_factors(tables, kind, allowed)


def grid(n: int, kind: str) -> Row:
    """All of one size and kind."""
    what = f"{TRUE} factors found of {ALLOWED} allowed, N = {n:,}, {kind}"
    return _counted(list(found(n, kind)), what)


CORNERS: dict[int, list[tuple[int, int, str, str]]] = {  # views, columns, holes, kind
    20_000: [
        (2, 30, HOLES[0], "Real"),
        (2, 30, HOLES[1], "Real"),
        (3, 100, HOLES[2], "Real"),
        (2, 500, HOLES[0], "Real"),
        (2, 30, HOLES[0], "Binary"),
        (2, 30, HOLES[2], "Binary"),
        (2, 30, HOLES[0], "Count"),
    ],
    100_000: [
        (2, 30, HOLES[0], "Real"),
        (2, 30, HOLES[1], "Real"),
        (3, 30, HOLES[2], "Real"),
        (2, 30, HOLES[0], "Binary"),
        (2, 30, HOLES[0], "Count"),
    ],
}


def corners(n: int) -> Row:
    """A few of the largest problems, and without a ceiling as well where it is cheap."""
    results = []
    for views, columns, holes, kind in CORNERS[n]:
        tables = problem(n, views, columns, holes, kind, 0)
        for allowed in (ALLOWED, None)[: 2 if kind == "Real" and holes != HOLES[1] else 1]:
            k = _n_factors(tables, kind, allowed)
            results.append((f"{kind}, {views} × {columns}, {holes}, {allowed} allowed", k))
    return _counted(results, f"{TRUE} factors found, corners, N = {n:,}")


FEW_COLUMNS = {12: 2, 18: 3, 40: 6}  # and the factors in them


def few_columns() -> Row:
    """Nearly as many factors as columns may start, and have to go; columns have their own noise."""
    results = []
    for (columns, k), n, seed in product(FEW_COLUMNS.items(), (200, 1000, 5000, 20_000), SEEDS):
        rng = np.random.default_rng(seed)
        noise = rng.uniform(0.3, 2.0, columns) * rng.standard_normal((n, columns))
        y = rng.standard_normal((n, k)) @ rng.standard_normal((k, columns)) + noise
        too_many = (
            _n_factors({"a": y[:, : columns // 2], "b": y[:, columns // 2 :]}, "Real", None) - k
        )
        results.append((f"{k} in {columns} columns, N = {n:,}", too_many))
    return _counted(results, "factors found in 12 to 40 columns, N = 200 to 20,000, Real", right=0)


def _n_factors(tables: dict[str, Array], kind: str, allowed: int | None) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FactorModel({name: KINDS[kind]() for name in tables}, allowed).fit(tables)
    return int(model.n_factors_)


def _counted(results: list[tuple[str, int]], what: str, right: int = TRUE) -> Row:
    exact = np.mean([k == right for _, k in results])
    wrong = {f"{name}: {k}" for name, k in results if k != right}
    text = f"{exact:.0%} of {len(results)}" + (f" ({'; '.join(sorted(wrong))})" if wrong else "")
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


# ---------------------------------------------------------------- the same factors again

STRONG = 0.01  # share of the variance of the views that a factor explains on average


def from_other_start(tables: dict[str, Array], seed: int) -> FactorModel:
    """A fit that begins with another rotation of the leading directions of the views."""

    def anywhere(engine: Any, n_factors: int, rng: Any, above_noise: bool = False) -> Any:
        Z = spectral(engine, n_factors, rng, above_noise)
        return in_random_rotation(engine, Z, Z.shape[1], np.random.default_rng(seed))

    with mock.patch.object(fit, "spectral", anywhere):
        return FactorModel().fit(tables)


def of_halves(tables: dict[str, Array], seed: int) -> tuple[FactorModel, FactorModel]:
    """Two fits, each to one half of the samples."""
    n = len(next(iter(tables.values())))
    order = np.random.default_rng(seed).permutation(n)
    halves = order[: n // 2], order[n // 2 :]
    one, two = ({name: y[rows] for name, y in tables.items()} for rows in halves)
    return FactorModel().fit(one), FactorModel().fit(two)


def strong_agreement(tables: dict[str, Array], one: FactorModel, two: FactorModel) -> Array:
    """|r| of each strong factor of one fit with its match in the other, on all samples."""
    shares = np.zeros(one.n_factors_)
    for name, y in tables.items():
        W = np.asarray(one.weights(name)) / np.std(y, axis=0)[:, None]
        shares += (W**2).mean(axis=0) / len(tables)
    table = agreement(one.transform(tables), two.transform(tables))
    r = table["r"].abs().fillna(0.0).to_numpy()[: one.n_factors_]
    return np.asarray(r[shares >= STRONG])


def again(name: str, halves: bool) -> Row:
    """Whether another start, or another half of the samples, gives the same strong factors."""
    found = []
    for seed in SEEDS:
        if name == "cancer":
            tables = {"x": load_breast_cancer().data}
        else:
            tables = problem(500, 2, 100, HOLES[0], "Real", seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pair = (
                of_halves(tables, seed)
                if halves
                else (FactorModel().fit(tables), from_other_start(tables, seed))
            )
            found.append(strong_agreement(tables, *pair))
    r = np.concatenate(found)
    least = 0.0 if halves else {"cancer": 0.95, "planted": 0.99}[name]
    text = f"median {np.median(r):.3f}, least {r.min():.3f} of {len(r) / len(SEEDS):.0f} factors"
    which = "two halves of the samples" if halves else "two starts"
    what = f"{name}: median matched |r| of strong factors between {which}, {len(SEEDS)} seeds"
    return Row(what, float(np.median(r)), Mark(low=least), text)


EXPERIMENTS: dict[str, Measurement] = {
    f"factors-{n}-{kind.lower()}": partial(grid, n, kind)
    for n, kind in product((200, 500, 5000), KINDS)
}
EXPERIMENTS["factors-few-columns"] = few_columns
EXPERIMENTS |= {f"factors-corners-{n}": partial(corners, n) for n in CORNERS}
EXPERIMENTS |= {
    f"agreement-{which}-{name}": partial(again, name, which == "halves")
    for which, name in product(("starts", "halves"), ("planted", "cancer"))
}
EXPERIMENTS |= {f"ceilings-{name}": partial(ceilings, name) for name in ("cancer", "cll", "mfeat")}
