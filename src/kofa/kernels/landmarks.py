"""Which samples a kernelized view compares each sample with, where all would be too many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal, get_args

import numpy as np

from kofa import tuning
from kofa.checks import check_word, is_among, is_number, is_whole, require
from kofa.kernels.base import Kernel
from kofa.kernels.formulas import Precomputed
from kofa.linalg import Array, IntArray

Choice = Literal["random", "kmeans++", "cholesky"]
Number = Literal["auto", "all"] | int
Cap = int | float


@dataclass(frozen=True)
class Landmarks:
    """Which samples a view with a kernel compares each sample with.

    Where the number is all that matters, ``landmarks=500`` is short for
    ``landmarks=kofa.Landmarks(500)``.

    Parameters
    ----------
    n : {"auto", "all"} or int
        How many. "auto" is all that qualify, up to 2,000. With outputs, samples that have an
        output qualify.
    by : {"random", "kmeans++", "cholesky"}
        How they are chosen where more qualify: any, those far from the others, or those that the
        kernels of the others explain least.
    keep : None, int, float, or a pair of both
        Of a view with ``sparse=True``, the most of them that become relevance vectors: a number,
        a share (a float of at most 1), or the smaller of two such caps. None is a share of .4, or
        40 if that is more; of fewer than 200, all.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> x = np.linspace(-3, 3, 200)[:, None]
    >>> few = kofa.Landmarks(50, by="kmeans++", keep=3)
    >>> views = {"x": kofa.Real(kernel="rbf", sparse=True, landmarks=few), "y": kofa.Real()}
    >>> model = kofa.FactorModel(views, outputs=["y"]).fit({"x": x, "y": np.sin(x)})
    >>> model.relevance_vectors("x").kept.value_counts().to_dict()
    {False: 47, True: 3}
    """

    n: Number = "auto"
    _: KW_ONLY
    by: Choice = "random"
    keep: Cap | tuple[Cap, Cap] | None = None

    @property
    def caps(self) -> tuple[Any, ...]:
        if self.keep is None:
            return ()
        return self.keep if isinstance(self.keep, tuple) else (self.keep,)

    def said(self) -> dict[str, Any]:
        """The parameters that are not at their defaults."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        defaults = {one.name: one.default for one in fields(self)}
        return {name: v for name, v in given.items() if not is_among(v, [defaults[name]])}

    def check(self, view: str) -> None:
        """Raise if a parameter means nothing."""
        fine = is_among(self.n, ("auto", "all")) or is_whole(self.n, 2)
        expected = "'auto', 'all', a whole number of at least 2, or kofa.Landmarks of one of these"
        require(fine, "landmarks", expected, self.n, view)
        check_word("landmarks.by", self.by, get_args(Choice), view)
        fine = all(is_whole(cap, 2) or _is_share(cap) for cap in self.caps) and len(self.caps) <= 2
        expected = (
            "a whole number of at least 2, a share (a float above 0 and at most 1), a pair of "
            "both, or None"
        )
        require(fine, "landmarks.keep", expected, self.keep, view)

    def most_kept(self, n: int) -> int:
        """How many of n candidates may become relevance vectors."""
        caps = [max(2, int(cap * n)) if _is_share(cap) else int(cap) for cap in self.caps]
        if not caps and n >= tuning.VECTOR_SMALL_POOL:
            caps = [max(tuning.VECTOR_FEW, int(tuning.VECTOR_SHARE * n))]
        return min([*caps, n])


def _is_share(cap: Any) -> bool:
    """A float: 1 is one landmark, and 1.0 is all of them."""
    whole = isinstance(cap, int | np.integer)
    return is_number(cap) and not whole and 0.0 < cap <= 1.0


def as_landmarks(given: Any) -> Landmarks:
    """What was declared, of which the number is enough."""
    return given if isinstance(given, Landmarks) else Landmarks(given)


def choose(
    how: Choice, kernel: Kernel, X: Array, index: IntArray, n: int, rng: np.random.Generator
) -> IntArray:
    """n of the rows X[index]; in the order of the rows.

    - "cholesky": one by one, the row that the kernels of those chosen explain least (a pivoted
      Cholesky decomposition of the kernel).
    - "kmeans++": one by one at random, in proportion to the squared distance, in the space of the
      kernel, to the nearest of those chosen.
    - "random": all rows alike.
    """
    if how == "random" or (kernel.diagonal(X[:1]) is None and not isinstance(kernel, Precomputed)):
        return np.sort(rng.choice(index, n, replace=False))

    def column(i: int) -> Array:
        return np.asarray(kernel(X[index], kernel.landmarks(X, index[[i]]))[:, 0])

    square = X[index, index] if isinstance(kernel, Precomputed) else kernel.diagonal(X[index])
    assert square is not None
    rule = _cholesky if how == "cholesky" else _spread
    return np.sort(index[rule(column, square, n, rng)])


def _cholesky(
    column: Callable[[int], Array], square: Array, n: int, rng: np.random.Generator
) -> list[int]:
    left, tiny = square.copy(), 1e-10 * float(square.max())
    L, chosen = np.empty((n, len(square))), list[int]()
    for r in range(n):
        i = int(np.argmax(left))
        if left[i] <= tiny:  # the rest are duplicates
            others = np.setdiff1d(np.arange(len(square)), chosen)
            return [*chosen, *rng.choice(others, n - r, replace=False).tolist()]
        L[r] = (column(i) - L[:r, i] @ L[:r]) / np.sqrt(left[i])
        left -= L[r] ** 2
        left[i] = 0.0
        chosen.append(i)
    return chosen


def _spread(
    column: Callable[[int], Array], square: Array, n: int, rng: np.random.Generator
) -> list[int]:
    chosen = [int(rng.integers(len(square)))]
    nearest = np.full(len(square), np.inf)
    while len(chosen) < n:
        i = chosen[-1]
        apart = square + square[i] - 2.0 * column(i)
        nearest = np.minimum(nearest, np.maximum(apart, 0.0))
        nearest[chosen] = 0.0
        if not nearest.sum() > 0:  # the rest are duplicates
            others = np.setdiff1d(np.arange(len(square)), chosen)
            return [*chosen, *rng.choice(others, n - len(chosen), replace=False).tolist()]
        chosen.append(int(rng.choice(len(square), p=nearest / nearest.sum())))
    return chosen
