"""Relevance vectors and landmarks: what few of them cost in R², and what they save in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from statistics import median
from typing import Any

import numpy as np
from joblib import delayed
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.data import Array, regression_set
from benchmarks.parallel import in_parallel
from benchmarks.report import Benchmark, Mark, Result, skipped
from benchmarks.timing import Stopwatch, iterate, kernel_rows, threads
from kofa import RBF, FactorModel, Landmarks, Real

PAPER_SHARE = {
    "atp1d": 0.184,
    "atp7d": 0.185,
    "oes97": 0.386,
    "oes10": 0.444,
    "edm": 0.538,
    "jura": 0.487,
    "wq": 0.581,
    "enb": 0.195,
}
LOSS = Mark(high=0.02)
Split = tuple[Any, Any]


def ten_folds(X: Array) -> list[Split]:
    return list(KFold(10, shuffle=True, random_state=0).split(X))


@dataclass(frozen=True)
class Fit:
    """One fit to a training fold, judged on its test fold."""

    r2: float
    landmarks: int
    share: float  # of the training rows that are landmarks
    per_iteration: float  # seconds

    @classmethod
    def of(cls, X: Array, Y: Array, split: Split, view: Real, seed: int = 0) -> Fit:
        train, test = split
        watch = Stopwatch()
        views = {"x": view, "y": Real()}
        model = FactorModel(views, outputs=["y"], random_state=seed, callback=watch)
        iterate(model, {"x": X[train], "y": Y[train]})
        kept = len(model.views_["x"].landmarks)
        r2 = r2_score(Y[test], model.predict({"x": X[test]}, "y"))
        return cls(float(r2), kept, kept / len(train), watch.per_iteration)


def mean_r2(fits: Sequence[Fit]) -> float:
    return float(np.mean([fit.r2 for fit in fits]))


# ---------------------------------------------------------------- sparse against plain

PLAIN, SPARSE = Real(kernel=RBF()), Real(kernel=RBF(), sparse=True)


def both(X: Array, Y: Array, split: Split) -> tuple[Fit, Fit]:
    return Fit.of(X, Y, split, PLAIN), Fit.of(X, Y, split, SPARSE)


@cache
def pairs(name: str) -> tuple[list[Fit], list[Fit]] | None:
    """Plain and sparse fits, shared by the two rows below."""
    data = regression_set(name)
    if data is None:
        return None
    folds = in_parallel(delayed(both)(*data, s) for s in ten_folds(data[0]))
    return [plain for plain, _ in folds], [sparse for _, sparse in folds]


def sparse_loss(name: str) -> Result:
    """What the relevance vectors alone do not predict."""
    what = f"R² of {name}, plain − sparse, RBF, 10 folds"
    found = pairs(name)
    if found is None:
        return skipped(what, LOSS)
    plain, sparse = found
    apart = np.array([p.r2 - s.r2 for p, s in zip(plain, sparse, strict=True)])
    text = (
        f"{apart.mean():+.4f} ({mean_r2(plain):.4f} − {mean_r2(sparse):.4f}; "
        f"{apart.min():+.4f} to {apart.max():+.4f} for single folds)"
    )
    return Result(what, float(apart.mean()), LOSS, text)


def sparse_share(name: str) -> Result:
    """How many relevance vectors are kept, and what that saves."""
    what, mark = f"share of relevance vectors on {name}, 10 folds", Mark(high=PAPER_SHARE[name])
    found = pairs(name)
    if found is None:
        return skipped(what, mark)
    plain, sparse = found
    shares = [fit.share for fit in sparse]
    time = median(s.per_iteration / p.per_iteration for p, s in zip(plain, sparse, strict=True))
    kept = median(s.landmarks / p.landmarks for p, s in zip(plain, sparse, strict=True))
    text = (
        f"{np.mean(shares):.3f} ({min(shares):.3f} to {max(shares):.3f}; "
        f"R² {mean_r2(sparse):.4f}, plain {mean_r2(plain):.4f}; sparse / plain: "
        f"{kept:.2f} of the landmarks, {time:.2f} of the time per iteration)"
    )
    return Result(what, float(np.mean(shares)), mark, text)


# ---------------------------------------------------------------- R² against share

SHARES = (0.05, 0.1, 0.2)
SEEDS = range(3)
WIDTHS = (0.5, 1.0, 2.0, 4.0)  # of the peer, times the median distance


@dataclass(frozen=True)
class Rivals:
    """R² with as many landmarks, each chosen in its own way."""

    evidence: float
    kept: float  # share of the rows that evidence took; the others take all they may
    random: float
    nystroem: float


def median_gamma(X: Array) -> float:
    """1 / 2 width² at the median distance of standardised rows."""
    return 0.5 / RBF().median_width(StandardScaler().fit_transform(X)) ** 2


def nystroem(X: Array, Y: Array, split: Split, n: int, seed: int) -> float:
    """R² of least squares on Nyström kernel PCA, its width and components by inner 3-fold CV."""
    train, test = split
    steps = (StandardScaler(), Nystroem(n_components=n, random_state=seed), PCA())
    grid = {
        "nystroem__gamma": [median_gamma(X[train]) / width**2 for width in WIDTHS],
        "pca__n_components": sorted({max(1, n // 4), max(1, n // 2), n}),
    }
    inner = KFold(3, shuffle=True, random_state=seed)
    search = GridSearchCV(make_pipeline(*steps, LinearRegression()), grid, cv=inner)
    return float(r2_score(Y[test], search.fit(X[train], Y[train]).predict(X[test])))


def rivals(X: Array, Y: Array, split: Split) -> list[Rivals]:
    """At each share, on one fold."""
    found = []
    for share in SHARES:
        n = max(2, int(share * len(split[0])))
        chosen = Fit.of(
            X, Y, split, Real(kernel=RBF(), sparse=True, landmarks=Landmarks(keep=share))
        )
        view = Real(kernel=RBF(), landmarks=n)
        random = mean_r2([Fit.of(X, Y, split, view, seed) for seed in SEEDS])
        peer = float(np.mean([nystroem(X, Y, split, n, seed) for seed in SEEDS]))
        found.append(Rivals(chosen.r2, chosen.share, random, peer))
    return found


def curve(name: str) -> Result:
    """The smallest lead over the better of both rivals."""
    what = (
        f"R² of {name} by evidence − best of random landmarks and Nyström-KPCA + LR, "
        f"least of {', '.join(f'{share:.0%}' for share in SHARES)} landmarks, 10 folds"
    )
    mark, data = Mark(low=0.0), regression_set(name)
    if data is None:
        return skipped(what, mark)
    folds = in_parallel(delayed(rivals)(*data, s) for s in ten_folds(data[0]))
    figures = np.array([[(r.evidence, r.kept, r.random, r.nystroem) for r in f] for f in folds])
    means = figures.mean(axis=0)
    leads = means[:, 0] - means[:, 2:].max(axis=1)
    each = "; ".join(
        f"{share:.0%}: {ours:.4f} with {kept:.1%}, random {random:.4f}, Nyström {peer:.4f}"
        for share, (ours, kept, random, peer) in zip(SHARES, means, strict=True)
    )
    return Result(what, float(leads.min()), mark, f"{leads.min():+.4f} ({each})")


# ---------------------------------------------------------------- landmarks before fit

CHOICES = ("random", "kmeans++", "cholesky")  # the default first
LANDMARK_SETS = ("jura", "enb", "wq")


def choices(X: Array, Y: Array, split: Split, seed: int) -> list[float]:
    """R² of each way to choose a tenth of the rows."""
    n = len(split[0]) // 10
    views = [Real(kernel=RBF(), landmarks=Landmarks(n, by=how)) for how in CHOICES]
    return [Fit.of(X, Y, split, view, seed).r2 for view in views]


def landmarks() -> Result:
    """The default against the better of the others, mean over sets."""
    what, mark = (
        "R², landmarks at random − best other, 10 %, 10 folds, mean of sets",
        Mark(low=0.0),
    )
    figures = {}
    for name in LANDMARK_SETS:
        data = regression_set(name)
        if data is None:
            return skipped(what, mark)
        calls = (delayed(choices)(*data, s, i) for i, s in enumerate(ten_folds(data[0])))
        figures[name] = np.mean(in_parallel(calls), axis=0)
    default, *others = np.mean(list(figures.values()), axis=0)
    each = "; ".join(
        f"{name}: " + ", ".join(f"{how} {r2:.4f}" for how, r2 in zip(CHOICES, row, strict=True))
        for name, row in figures.items()
    )
    lead = float(default - max(others))
    return Result(what, lead, mark, f"{lead:+.4f} ({each})")


# ---------------------------------------------------------------- time


def time_iterations(n: int, n_factors: int, sparse: Any, max_iter: int = 20) -> Stopwatch:
    """Iterations with all rows as landmarks."""
    watch = Stopwatch()
    view = Real(kernel=RBF(), landmarks="all", sparse=sparse)
    model = FactorModel({"x": view}, n_factors, max_iter=max_iter, tol=0.0, callback=watch)
    iterate(model, {"x": kernel_rows(n)})
    # Double ARD fits once more to what it keeps: not counted.
    del watch.iterations[max_iter - 1 :], watch.factors[max_iter:]
    return watch


def sparse_update(n: int = 1000, n_factors: int = 50, rounds: int = 3) -> Result:
    """An iteration with an ARD precision for each landmark against one without."""
    times: dict[Any, list[float]] = {False: [], "ard": []}
    factors = []
    for _ in range(rounds):  # in turns, so that other load on the machine hits both
        for sparse, taken in times.items():
            watch = time_iterations(n, n_factors, sparse)
            taken += watch.iterations
            factors.append(watch.factors[-1])
    plain, ard = (median(taken) for taken in times.values())
    text = (
        f"{ard / plain:.2f} ({1e3 * ard:.1f} / {1e3 * plain:.1f} ms, "
        f"{min(factors)} to {max(factors)} factors, {threads()})"
    )
    what = f"median iteration of a sparse / a plain kernelized view, N = R = {n}, K = {n_factors}"
    return Result(what, ard / plain, Mark(high=1.3), text)


BENCHMARKS: dict[str, Benchmark] = {
    **{f"sparse-{name}": partial(sparse_loss, name) for name in PAPER_SHARE},
    **{f"sparse-share-{name}": partial(sparse_share, name) for name in PAPER_SHARE},
    **{f"curve-{name}": partial(curve, name) for name in PAPER_SHARE},
    "landmarks": landmarks,
    "sparse-update": sparse_update,
}
