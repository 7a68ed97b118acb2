"""Classification from two kernels: an SVM of their sum, and one of what they share.

Everything is chosen by inner cross-validation on the training rows, by the AUC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from experiments.baselines.svm import no_future_warnings
from experiments.models.classes import auc
from experiments.protocol import Ints, Split
from kofa.kernels.base import Kernel, Radial
from kofa.linalg import Array, centre

Grids = Mapping[str, Any]
Prepare = Callable[[Sequence[Array], Ints], Any]  # of the kernels and the rows to learn from
Combine = Callable[[Any, Ints], Array]  # what was prepared, to one Gram matrix of all rows


@dataclass(frozen=True)
class Blocks:
    """Kernels with the inputs they see, classes, and which rows are there to learn from."""

    parts: Sequence[tuple[Kernel, Array]]
    y: NDArray[Any]  # of which those of the test rows are never looked at
    split: Split

    def grams(self, width: float) -> list[Array]:
        """Every kernel of all rows (N, N), of mean self-similarity one among training rows."""
        train, _ = self.split
        found = []
        for kernel, X in self.parts:
            ready = kernel.resolve(X[train])
            if isinstance(ready, Radial):
                ready = replace(ready, width=width * float(ready.width))
            K = ready(X, X)
            found.append(K / float(np.mean(np.diag(K)[train])))
        return found


def combined_svm(blocks: Blocks, grids: Grids) -> Array:
    """Scores (n_test, C) of an SVM of (1 − w) K₁ + w K₂; w, C and the widths are validated."""
    settings = {weight: partial(_weighted_sum, weight=weight) for weight in grids["weights"]}
    return _validated(blocks, grids, lambda grams, _: grams, settings)


def _weighted_sum(grams: Sequence[Array], rows: Ints, weight: float) -> Array:  # noqa: ARG001
    return np.asarray((1.0 - weight) * grams[0] + weight * grams[1])


def cca_svm(blocks: Blocks, grids: Grids) -> Array:
    """Scores (n_test, C) of an SVM of the canonical variates of the two kernels."""
    settings = {
        (penalty, size): partial(variates_gram, penalty=penalty, size=size)
        for penalty, size in product(grids["penalties"], grids["components"])
    }
    return _validated(blocks, grids, partial(directions, most=int(grids["directions"])), settings)


def directions(grams: Sequence[Array], rows: Ints, most: int) -> list[tuple[Array, Array]]:
    """Eigenvalues e of each centred kernel of some rows, and K U of all rows (N, at most most)."""
    found = []
    for K in grams[:2]:
        inside = K[np.ix_(rows, rows)]
        across = K[:, rows] - K[:, rows].mean(axis=1, keepdims=True) - inside.mean(axis=0)
        e, U = np.linalg.eigh(centre(inside))
        e, U = e[::-1][:most], U[:, ::-1][:, :most]
        strong = e > 1e-10 * e[0]
        found.append((e[strong], (across + inside.mean()) @ U[:, strong]))
    return found


def variates_gram(
    prepared: Sequence[tuple[Array, Array]], rows: Ints, penalty: float, size: int
) -> Array:
    """Inner products of the canonical variates of two kernels: (N, N).

    Regularised kernel CCA. The features K U e^-½ of a kernel have the Gram matrix diag(e), so that
    whitening with a penalty r divides them by √(e + r); the variates are the singular directions
    of the cross-product of the whitened features.
    """
    A, B = (projected / np.sqrt(e * (e + penalty * e[0])) for e, projected in prepared)
    P, _, Qt = np.linalg.svd(A[rows].T @ B[rows], full_matrices=False)
    variates = np.hstack([A @ P[:, :size], B @ Qt[:size].T])
    # of mean self-similarity about one, as the kernels themselves
    return np.asarray(variates @ variates.T * (len(rows) / variates.shape[1]))


# ---------------------------------------------------------------- validation


def _validated(
    blocks: Blocks, grids: Grids, prepare: Prepare, settings: Mapping[Any, Combine]
) -> Array:
    """Scores of the test rows with the setting and cost that are best inside the training rows."""
    areas: dict[tuple[float, Any, float], float] = {}
    for width in grids["widths"]:
        grams = blocks.grams(width)
        for split in _inner(blocks, int(grids["inner_folds"])):
            prepared = prepare(grams, split[0])
            for setting, cost in product(settings, grids["costs"]):
                K = settings[setting](prepared, split[0])
                area = auc(blocks.y[split[1]], svm_scores(K, blocks.y, split, cost))
                key = (width, setting, cost)
                areas[key] = areas.get(key, 0.0) + area
    width, setting, cost = max(areas, key=lambda key: areas[key])
    train, _ = blocks.split
    K = settings[setting](prepare(blocks.grams(width), train), train)
    return svm_scores(K, blocks.y, blocks.split, cost)


def _inner(blocks: Blocks, n_folds: int) -> Iterator[Split]:
    """Splits of the training rows."""
    train, _ = blocks.split
    cut = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    for inside, outside in cut.split(np.zeros((len(train), 1)), blocks.y[train]):
        yield train[inside], train[outside]


def svm_scores(K: Array, y: NDArray[Any], split: Split, cost: float) -> Array:
    """Probabilities of the classes, (n_test, C), in ascending order.

    Coupled from those of pairs, as in libsvm: their AUC is higher by about .01 than that of the
    distances to the margin, of pairs or of each class against the rest.
    """
    train, test = split
    machine = SVC(C=cost, kernel="precomputed", probability=True, random_state=0)
    with no_future_warnings():
        machine.fit(K[np.ix_(train, train)], y[train])
    return np.asarray(machine.predict_proba(K[np.ix_(test, train)]))
