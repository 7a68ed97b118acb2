"""Random problems: views of every kind and kernel, with holes, on odd scales, in odd tables.

A problem follows from its seed alone: `problem(seed)` repeats what a report of failures names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np

import kofa
from experiments.fuzz.odd_tables import dressed
from experiments.tasks import Array
from kofa.views import View

Rng = np.random.Generator
MORE = 3  # samples that no fit has seen
KINDS = ("Real", "Real", "Positive", "Binary", "Categorical", "Count")


@dataclass(frozen=True)
class Table:
    """One view: how it is declared, and its values for the samples of the fit and for new ones."""

    view: View
    values: Any  # (n, D) floats with NaN, or n labels with None
    new: Any  # (MORE, D), likewise


@dataclass(frozen=True)
class Problem:
    """What is passed to `FactorModel` and to its methods."""

    seed: int
    views: dict[str, View]
    options: dict[str, Any]
    data: dict[str, Any]  # as a user may have them: arrays, lists, pandas, polars
    plain: dict[str, Any]  # the same numbers in plain arrays, a row for each sample
    new: dict[str, Any]  # other samples, in plain arrays
    samples: Any  # the names of the rows of `plain` in `data`, or None
    unusable: str | None = None  # what was done to it that kofa should refuse


def problem(seed: int) -> Problem:
    """The problem of a seed."""
    rng = np.random.default_rng(seed)
    n = int(2.0 * 60.0 ** rng.random())  # 2 to 120, as many below 15 as above
    Z = rng.standard_normal((n + MORE, int(rng.integers(1, 5))))
    names = ["x", "kl_z", "a/b", "ä"][: int(rng.integers(1, 5))]
    kinds = [str(rng.choice(KINDS)) for _ in names]
    outputs = _outputs(names, rng)
    direct = [name for name in outputs if rng.random() < 0.8] or outputs[:1]
    tables = {
        name: _table(kind, Z, n, name in outputs, name in direct, bool(outputs), rng)
        for name, kind in zip(names, kinds, strict=True)
    }
    options = {
        "outputs": outputs or None,
        "n_factors": [None, 1, 2, 5, 50][rng.integers(5)],
        "n_init": int(rng.choice([1, 1, 2])),
        "max_iter": int(rng.integers(1, 16)),
        "tol": [None, 0.0][rng.integers(2)],
        "random_state": int(rng.integers(1000)),
    }
    views = {name: table.view for name, table in tables.items()}
    values = {name: table.values for name, table in tables.items()}
    new = {name: table.new for name, table in tables.items()}
    made = Problem(seed, views, options, *dressed(values, new, views, rng))
    return spoilt(made, rng) if rng.random() < 0.08 else made


def overlapping(seed: int) -> Problem:
    """The problem of a seed whose views, or columns, have few samples in common or none."""
    rng = np.random.default_rng([seed, 1])
    n = int(rng.integers(8, 30))
    Z = rng.standard_normal((n + MORE, int(rng.integers(1, 4))))
    names = ["x", "y", "w"][: int(rng.integers(2, 4))]
    outputs = _outputs(names, rng)
    tables = {
        name: _table(str(rng.choice(KINDS)), Z, n, name in outputs, rng.random() < 0.8, False, rng)
        for name in names
    }
    owner = rng.integers(len(names), size=n)  # the view that has a sample
    owner[: 2 * len(names)] = np.tile(np.arange(len(names)), 2)
    owner[-int(rng.choice([0, 0, 1, 2, 3])) or n :] = -1  # samples that all views have
    for j, name in enumerate(names):
        tables[name] = _without(tables[name], (owner != j) & (owner >= 0), rng)
    options = {
        "outputs": outputs or None,
        "n_factors": [None, 1, 3][rng.integers(3)],
        "max_iter": int(rng.integers(1, 30)),
        "engine": ["auto", "auto", "disk"][rng.integers(3)],
        "block_rows": ["auto", 7][rng.integers(2)],
        "random_state": int(rng.integers(1000)),
    }
    views = {name: table.view for name, table in tables.items()}
    values = {name: table.values for name, table in tables.items()}
    new = {name: table.new for name, table in tables.items()}
    return Problem(seed, views, options, values, values, new, None)


def _without(table: Table, rows: Any, rng: Rng) -> Table:
    """A table that lacks some samples: whole, or some of their columns; no column is empty."""
    values, kernel = table.values.copy(), getattr(table.view, "kernel", None)
    if isinstance(table.view, kofa.Categorical):
        values[rows] = None
        left = [value for value in values if value is not None]
        known = set(left)
        names = len(known) < 2 or len(known) == len(left)  # which no view of labels may be
        return table if names else replace(table, values=values, new=_of(known, table.new))
    columns = rng.random(values.shape[1]) < rng.choice([0.3, 1.0])
    if not takes_holes(kernel) or kernel == "precomputed":
        columns[:] = True
    values[np.ix_(rows, columns)] = np.nan
    if isinstance(kernel, str) and kernel == "precomputed":
        values[:, rows] = np.nan
        few = (~np.isnan(values)).any(axis=1).sum() < 2
        return table if few else replace(table, values=values)
    few = (~np.isnan(values)).sum(axis=0) < 2
    values[:, few] = table.values[:, few]
    return replace(table, values=values)


def _of(known: set[Any], labels: Any) -> Any:
    """Labels that are not among the known become missing."""
    return np.array([v if v in known else None for v in labels] + [None], dtype=object)[:-1]


def _outputs(names: list[str], rng: Rng) -> list[str]:
    if len(names) < 2 or rng.random() < 0.4:
        return []
    return names[-int(rng.integers(1, len(names))) :]


# ---------------------------------------------------------------- values


def _table(
    kind: str, Z: Array, n: int, output: bool, direct: bool, supervised: bool, rng: Rng
) -> Table:
    d = int(rng.choice([1, rng.integers(2, 9), rng.integers(9, 120)], p=[0.25, 0.6, 0.15]))
    strength = float(rng.choice([0.0, 1.0, 1.0, 5.0]))
    eta = strength * Z @ rng.standard_normal((Z.shape[1], d))
    if kind == "Categorical":
        values = _labels(eta, n, rng)
        return Table(kofa.Categorical(), values[:n], values[n:])
    options = {} if output and direct else _kernel_options(n, d, supervised and not output, rng)
    if kind in ("Real", "Positive"):
        options["noise"] = str(rng.choice(["auto", "view", "column"]))
    options["scale"] = bool(rng.random() < 0.8)
    if "sparse" not in options:
        options["sparse"] = bool(rng.random() < 0.3)
    if options.get("kernel") == "precomputed":
        values, new = _gram(eta, n, rng)
        return Table(kofa.Real(**options), values, new)
    values = _odd_columns(_VALUES[kind](eta, rng), rng)
    holes = _holes(values.shape, n, takes_holes(options.get("kernel")), rng)
    values = np.where(holes, np.nan, values)
    return Table(getattr(kofa, kind)(**options), values[:n], values[n:])


def takes_holes(kernel: Any) -> bool:
    """Whether single values may be missing, for which a mean stands: no function takes these."""
    return kernel is not _tanh and not (isinstance(kernel, list) and _tanh in kernel)


def _real(eta: Array, rng: Rng) -> Array:
    """Numbers of any scale, far from zero or not; some new samples far from all others."""
    values = eta + rng.choice([0.0, 0.1, 1.0]) * rng.standard_normal(eta.shape)
    if rng.random() < 0.3:
        values[-MORE:] *= 10.0 ** rng.uniform(0.0, 6.0, size=(MORE, 1))
    if rng.random() < 0.2:  # a scale for each column
        return np.asarray(values * 10.0 ** rng.uniform(-12.0, 12.0, size=eta.shape[1]))
    offset = rng.choice([0.0, 0.0, 1.0, 1e3, 1e6])
    scale = 10.0 ** rng.choice([0.0, 0.0, rng.uniform(-12.0, 12.0)])
    return np.asarray((values + offset) * scale)


def _positive(eta: Array, rng: Rng) -> Array:
    values = np.exp(np.clip(eta + 0.3 * rng.standard_normal(eta.shape), -15.0, 15.0))
    return np.asarray(values * 10.0 ** rng.choice([0.0, rng.uniform(-12.0, 12.0)]))


def _binary(eta: Array, rng: Rng) -> Array:
    values = (eta + rng.standard_normal(eta.shape) > rng.choice([0.0, 0.0, 2.5])).astype(float)
    if rng.random() < 0.2:
        values[:, 0] = 0.0
        values[0, 0] = 1.0  # one of them only
    return values


def _count(eta: Array, rng: Rng) -> Array:
    values = rng.poisson(np.clip(np.exp(eta), 0.0, 1e6) * rng.choice([0.05, 1.0, 20.0])).astype(
        float
    )
    if rng.random() < 0.2:
        values[rng.integers(len(values)), rng.integers(values.shape[1])] = rng.choice([1e4, 1e9])
    return values


_VALUES: dict[str, Callable[[Array, Rng], Array]] = {
    "Real": _real,
    "Positive": _positive,
    "Binary": _binary,
    "Count": _count,
}


def _odd_columns(values: Array, rng: Rng) -> Array:
    """Some columns that are constant or occur twice."""
    d = values.shape[1]
    if d > 1 and rng.random() < 0.15:
        values[:, rng.integers(d)] = values[0, rng.integers(d)]
    if d > 1 and rng.random() < 0.15:
        values[:, 0] = values[:, -1]
    return values


def _labels(eta: Array, n: int, rng: Rng) -> Any:
    """Labels of some type with None among them; every new one has been seen."""
    code = np.argmax(np.column_stack([eta[:, :4], np.zeros(len(eta))]), axis=1)
    code = code % max(2, min(5, n // 2))
    code[: min(n, 4)] = [0, 1, 0, 1][:n]  # two classes at least, not all of them different
    words = ["b", "a", "ab", "c c", "é"]
    days = [date(2020, 1, 1) + timedelta(days=i) for i in range(5)]
    kinds: list[list[Any]] = [words, [3, 1, 2, 10, -1], [True, False], days, ["x", 1, 2.5, "y", 0]]
    known = kinds[int(rng.choice(len(kinds), p=[0.5, 0.2, 0.1, 0.1, 0.1]))]
    labels = np.array([known[c % len(known)] for c in code] + [None], dtype=object)[:-1]
    unknown = rng.random(len(labels)) < rng.choice([0.0, 0.3])
    unknown[: min(n, 4)] = False
    unknown[n:] |= ~np.isin(code[n:], code[:n][~unknown[:n]])
    labels[unknown] = None
    return labels


def _gram(eta: Array, n: int, rng: Rng) -> tuple[Array, Array]:
    """A kernel between samples, some of which it lacks, and of new samples with these."""
    kernel = kofa.RBF(2.0) if rng.random() < 0.5 else kofa.Linear()
    K = kernel(eta, eta[:n]) * 10.0 ** rng.choice([0.0, rng.uniform(-12.0, 12.0)])
    K[:n] = 0.5 * (K[:n] + K[:n].T)
    missing = np.flatnonzero(rng.random(n) < rng.choice([0.0, 0.2]))
    missing = missing[missing >= 4]
    K[missing] = np.nan
    K[:, missing] = np.nan
    return K[:n], K[n:]


def _holes(shape: tuple[int, int], n: int, entries: bool, rng: Rng) -> Any:
    """Where nothing is known: entries, rows, or both; the first samples are whole."""
    make = str(rng.choice(["none", "rows", "entries", "both"] if entries else ["none", "rows"]))
    holes = np.zeros(shape, dtype=bool)
    if make in ("entries", "both"):
        holes |= rng.random(shape) < rng.choice([0.1, 0.5])
    if make in ("rows", "both"):
        holes |= (rng.random(shape[0]) < rng.choice([0.2, 0.7]))[:, None]
    holes[: min(n, 4)] = False
    return holes


# ---------------------------------------------------------------- kernels


def _tanh(X: Array, V: Array) -> Array:
    return np.tanh(X @ V.T / X.shape[1])


def _kernel_options(n: int, d: int, learns: bool, rng: Rng) -> dict[str, Any]:
    """A kernel with the options that belong to one, or none."""
    if rng.random() < 0.4:
        return {}
    learns = learns and n >= 4 and d < 9
    options: dict[str, Any] = {"kernel": _kernel(d, learns, rng)}
    options["sparse"] = [False, True][rng.integers(2)]
    n_landmarks = ["auto", "auto", "all", int(rng.integers(2, 30))][rng.integers(4)]
    by: Any = str(rng.choice(["random", "kmeans++", "cholesky"]))
    keep: int | float | None = None
    if options["sparse"] is True and rng.random() < 0.3:
        keep = int(rng.integers(2, 20))
    elif options["sparse"] is True and rng.random() < 0.3:
        keep = float(rng.uniform(0.05, 1.0))
    options["landmarks"] = kofa.Landmarks(n_landmarks, by=by, keep=keep)
    return options


def _kernel(d: int, learns: bool, rng: Rng) -> Any:
    relevance = rng.random(d) * (rng.random(d) < 0.8)
    kernels: list[Any] = [
        "rbf",
        "linear",
        "laplacian",
        "poly",
        "bank",
        "precomputed",
        kofa.Linear,
        kofa.Polynomial(2, offset=0.0),
        kofa.RBF("median"),
        kofa.RBF(10.0 ** rng.uniform(-3.0, 3.0)),
        kofa.Laplacian(10.0 ** rng.uniform(-3.0, 3.0)),
        kofa.RBF(relevance=relevance),
        kofa.Linear(relevance=relevance),
        kofa.Mixture(["linear", kofa.RBF(1.0)], weights=[0.5, 2.0]),
        kofa.Mixture(["rbf", "laplacian"]),
        ["rbf", "linear"],
        ["rbf", kofa.RBF(0.5), _tanh],
        _tanh,
    ]
    if learns:
        groups = [str(g) for g in rng.integers(3, size=d)]
        kernels += [
            kofa.RBF(relevance="learn"),
            kofa.Linear(relevance="learn", sparsity=float(rng.choice([0.0, 1.0, 1e3]))),
            kofa.RBF(relevance="learn", groups=groups),
            kofa.Mixture([kofa.RBF(relevance="learn"), "laplacian"]),
        ]
    return kernels[rng.integers(len(kernels))]


# ---------------------------------------------------------------- what cannot be used


def spoilt(problem: Problem, rng: Rng) -> Problem:
    """The problem with something in it that kofa has to refuse."""
    name = str(rng.choice(list(problem.plain)))
    view, values = problem.views[name], problem.plain[name]
    data = dict(problem.plain)  # rows by position: the other tables fit this one
    if isinstance(view, kofa.Categorical):
        what, data[name] = "one class", np.full(len(values), "a")
    else:
        bad = values.copy()
        what, value = _BAD[int(rng.integers(len(_BAD)))]
        if value is None:
            what, value = _OTHER_KIND.get(type(view).__name__, ("infinity", np.inf))
        if isinstance(view.kernel, str) and view.kernel == "precomputed":
            what, value = "infinity", np.inf
        bad[:, 0] = np.where(np.arange(len(bad)) % 2, bad[:, 0], value)
        if what == "empty column":
            bad[:, 0] = value
        data[name] = bad
    return replace(problem, data=data, unusable=f"{name}: {what}")


_BAD: list[tuple[str, Any]] = [("infinity", np.inf), ("empty column", np.nan), ("kind", None)]
_OTHER_KIND = {"Positive": ("zero", 0.0), "Binary": ("two", 2.0), "Count": ("half", 0.5)}
