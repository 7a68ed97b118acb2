"""Faces: are the pixels with the largest λ the ones that tell people apart?

With KOFA_OUT set, the mean λ of the folds is saved there as an image of each set.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from joblib import delayed
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from benchmarks.classification import Ints, Split
from benchmarks.data import Array, stored
from benchmarks.parallel import in_parallel
from benchmarks.report import Benchmark, Mark, Result, skipped
from kofa import RBF, Categorical, FactorModel, Real
from kofa.kernels.formulas import Kernel

SETS = ("yale", "olivetti_orl", "warpAR10P", "lfw7_60x40")
SHARES = (0.02, 0.05, 0.2)  # of the pixels
DRAWN = (0.02, 0.05)  # those that are compared with pixels at random
FOLDS, DRAWS = 5, 4  # draws in each fold
TOL = 1e-2  # with forty people the bound creeps on for hundreds of iterations; classes stand
ABOVE = Mark(low=1e-9)  # a tie is none


@dataclass(frozen=True)
class Fold:
    """Accuracies on one test fold."""

    learnt: float  # all pixels, each with its λ
    all: float  # all pixels alike
    top: dict[float, float]  # by share of pixels
    random: dict[float, list[float]]
    mask: Array  # λ


def fit(X: Array, y: Ints, split: Split, kernel: Kernel) -> tuple[float, FactorModel]:
    """Accuracy on the test rows, and the model."""
    train, test = split
    views = {"x": Real(kernel=kernel), "y": Categorical()}
    model = FactorModel(views, outputs=["y"], tol=TOL)
    model.fit({"x": X[train], "y": y[train]})
    return float(np.mean(model.predict({"x": X[test]}, "y") == y[test])), model


def fold(X: Array, y: Ints, split: Split, seed: int) -> Fold:
    """λ from the training rows, then fits that see only some pixels."""
    learnt, model = fit(X, y, split, RBF(relevance="learn"))
    mask = np.array(model.kernels_["x"].relevance)
    rank, rng = np.argsort(-mask, kind="stable"), np.random.default_rng(seed)

    def of(pixels: NDArray[np.intp]) -> float:
        return fit(X[:, pixels], y, split, RBF())[0]

    size = {share: int(share * X.shape[1]) for share in SHARES}
    top = {share: of(rank[:n]) for share, n in size.items()}
    random = {
        share: [of(rng.choice(X.shape[1], size[share], replace=False)) for _ in range(DRAWS)]
        for share in DRAWN
    }
    return Fold(learnt, of(np.arange(X.shape[1])), top, random, mask)


@cache
def folds(name: str) -> list[Fold] | None:
    """Shared by the rows of one set."""
    data = stored(name, "X", "y", "image_shape")
    if data is None:
        return None
    X, y, shape = data[0].astype(float), data[1], data[2]
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y)
    found = in_parallel(delayed(fold)(X, y, s, i) for i, s in enumerate(splits))
    save(name, np.mean([one.mask for one in found], axis=0).reshape(shape))
    return found


def save(name: str, mask: Array) -> None:
    """As an image, light where λ is large; without matplotlib as an array."""
    named = os.environ.get("KOFA_OUT")
    if not named:
        return
    folder = Path(named)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        from matplotlib.image import imsave
    except ImportError:
        np.save(folder / f"mask-{name}.npy", mask)
    else:
        enlarged = np.kron(mask, np.ones((8, 8)))
        imsave(folder / f"mask-{name}.png", enlarged, cmap="gray")


def against_random(name: str, share: float) -> Result:
    draws = FOLDS * DRAWS
    what = f"accuracy on {name}, top {share:.0%} of pixels − mean of {draws} draws of as many"
    found, mark = folds(name), ABOVE
    if found is None:
        return skipped(what, mark)
    top = np.mean([one.top[share] for one in found])
    random = [accuracy for one in found for accuracy in one.random[share]]
    lead = float(top - np.mean(random))
    drawn = f"{np.mean(random):.4f}; {min(random):.3f} to {max(random):.3f} for single draws"
    text = f"{lead:+.4f} ({top:.4f} − {drawn})"
    return Result(what, lead, mark, text)


def against_all(name: str, share: float = 0.2) -> Result:
    what = f"accuracy on {name}, all pixels − top {share:.0%}, {FOLDS} folds"
    found, mark = folds(name), Mark(high=0.02)
    if found is None:
        return skipped(what, mark)
    whole, top, learnt = (
        float(np.mean(values))
        for values in zip(*((one.all, one.top[share], one.learnt) for one in found), strict=True)
    )
    text = f"{whole - top:+.4f} ({whole:.4f} − {top:.4f}; all pixels with their λ {learnt:.4f})"
    return Result(what, whole - top, mark, text)


BENCHMARKS: dict[str, Benchmark] = {}
for _name in SETS:
    for _share in DRAWN:
        BENCHMARKS[f"faces-{_name}-{100 * _share:.0f}"] = partial(against_random, _name, _share)
    BENCHMARKS[f"faces-{_name}-20"] = partial(against_all, _name)
