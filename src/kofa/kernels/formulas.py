"""Kernel formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform

from kofa.checks import hinting
from kofa.errors import DataError
from kofa.kernels.base import Kernel, Radial, Weighted
from kofa.kernels.gaps import gap_sums
from kofa.linalg import Array, IntArray, by_rows, filled_up, inner, squared_distances

LARGEST = 1e150  # whose square is still a number

# What other tools call a width, or what they have in its place.
_WIDTH_ELSEWHERE = dict.fromkeys(("gamma", "sigma", "length_scale", "bandwidth"), "width")


@hinting()
@dataclass(frozen=True, repr=False)
class Linear(Weighted):
    """k(x, v) = Σ_j λ_j x_j v_j / D, λ_j = 1 unless `relevance` says otherwise.

    Parameters
    ----------
    relevance, groups, sparsity
        As in `kofa.RBF`.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> kofa.Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[5.5]])
    >>> kofa.Linear(relevance=[1, 0])(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[1.5]])
    """

    @property
    def ignores_shift(self) -> bool:
        return True

    def __call__(self, X: Array, V: Array) -> Array:
        weights = self.weights(X.shape[1])
        return np.asarray(inner(X if weights is None else X * weights, V) / X.shape[1])

    def diagonal(self, X: Array) -> Array:
        weights = self.weights(X.shape[1])
        if weights is None:
            return np.asarray((X**2).mean(axis=1))
        return np.asarray(by_rows(X**2, weights) / X.shape[1])

    def relevance_gradient(self, X: Array, V: Array, K: Array, G: Array) -> Array:  # noqa: ARG002
        return np.asarray((X * (G @ V)).sum(axis=0) / X.shape[1])


@hinting({"coef0": "offset"})
@dataclass(frozen=True)
class Polynomial(Kernel):
    """k(x, v) = (x·v / D + offset)^degree.

    Parameters
    ----------
    degree : int
        The power.
    offset : float
        What is added to the mean product before.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> kofa.Polynomial(degree=2)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[42.25]])
    """

    degree: int = 3
    offset: float = 1.0

    @property
    def reach(self) -> float:
        return float(LARGEST ** (0.8 / self.degree))

    def __call__(self, X: Array, V: Array) -> Array:
        product: Array = (inner(X, V) / X.shape[1] + self.offset) ** self.degree
        return product

    def diagonal(self, X: Array) -> Array:
        return np.asarray(((X**2).mean(axis=1) + self.offset) ** self.degree)


@hinting(_WIDTH_ELSEWHERE)
@dataclass(frozen=True, repr=False)
class RBF(Weighted, Radial):
    """k(x, v) = exp(−Σ_j λ_j (x_j − v_j)² / (2 width²)), λ_j = 1 unless `relevance` says otherwise.

    Parameters
    ----------
    width : float, "median" or "auto"
        "median" is the median distance between landmarks. "auto" is learnt from the output views
        where there are some, else the median.
    relevance : None, "learn", "auto" or numbers
        λ_j ≥ 0 of each feature, in the order of the columns. None is one for all; "learn" finds
        the λ that explain the output views best, and "auto" does so where there are some.
    groups : None or sequence
        A label for each feature; features with the same label share one λ.
    sparsity : None or float
        With "learn": a number switches features off exactly, by a prior exp(−sparsity · √λ_j), and
        0 switches none off. None is a prior that lets no feature stand out, or vanish, for little.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> kofa.RBF(width=1.0)(np.array([[0.0, 0.0]]), np.array([[0.0, 0.0], [1.0, 1.0]])).round(4)
    array([[1.    , 0.3679]])
    >>> kofa.RBF(1.0, relevance=[1, 0])(np.array([[0.0, 0.0]]), np.array([[1.0, 9.0]])).round(4)
    array([[0.6065]])
    """

    def distance(self, X: Array, V: Array) -> Array:
        """Σ_j λ_j (x_j − v_j)²"""
        weights = self.weights(X.shape[1])
        return squared_distances(X, V, None if weights is None else np.sqrt(weights))

    def relevance_gradient(self, X: Array, V: Array, K: Array, G: Array) -> Array:
        assert not isinstance(self.width, str)
        # −Σ H_nu (x_nj − v_uj)² / 2 width², H = G∘K, without an array of n × R × D
        H = G * K
        square = H.sum(axis=1) @ X**2 + H.sum(axis=0) @ V**2 - 2.0 * (X * (H @ V)).sum(axis=0)
        return np.asarray(-0.5 * square / self.width**2)

    def profile(self, distance: Array, width: float) -> Array:
        distance /= -2.0 * width
        distance /= width
        return np.exp(distance, out=distance)

    def slope(self, distance: Array, width: float, K: Array) -> Array:
        slope = distance / width
        slope /= width
        slope *= K
        return slope

    def typical(self, distance: float) -> float:
        return float(np.sqrt(distance))


@hinting(_WIDTH_ELSEWHERE)
@dataclass(frozen=True, repr=False)
class Laplacian(Weighted, Radial):
    """k(x, v) = exp(−Σ_j λ_j |x_j − v_j| / width), λ_j = 1 unless `relevance` says otherwise.

    Parameters
    ----------
    width, relevance, groups, sparsity
        As in `kofa.RBF`; distances are Σ_j λ_j |x_j − v_j|.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> kofa.Laplacian(width=1.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.3679]])
    >>> kofa.Laplacian(1.0, relevance=[1, 0])(np.array([[0.0, 0.0]]), np.array([[1.0, 9.0]]))
    array([[0.36787944]])
    """

    def distance(self, X: Array, V: Array) -> Array:
        """Σ_j λ_j |x_j − v_j|"""
        weights = self.weights(X.shape[1])
        same = X is V
        X = X if weights is None else X * weights
        if same:
            return np.asarray(squareform(pdist(X, "cityblock"), checks=False))
        return np.asarray(cdist(X, V if weights is None else V * weights, "cityblock"))

    def relevance_gradient(self, X: Array, V: Array, K: Array, G: Array) -> Array:
        assert not isinstance(self.width, str)
        # −Σ H_nu |x_nj − v_uj| / width, H = G∘K
        return gap_sums(X, V, G * K) / -self.width

    def profile(self, distance: Array, width: float) -> Array:
        distance *= -1.0 / width
        return np.exp(distance, out=distance)

    def slope(self, distance: Array, width: float, K: Array) -> Array:
        slope = distance / width
        slope *= K
        return slope


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The data are the kernel: samples × samples in fit, new samples × fitted samples after.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> x = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = kofa.FactorModel({"x": kofa.Real(kernel=kofa.Precomputed())}, n_factors=2)
    >>> model.fit_transform({"x": x @ x.T}).shape
    (30, 2)
    >>> model.transform({"x": np.ones((5, 2)) @ x.T}).shape
    (5, 2)
    """

    @property
    def takes_missing(self) -> bool:
        return False

    def __call__(self, X: Array, V: Array) -> Array:
        return X[:, V.astype(np.intp)]

    def landmarks(self, X: Array, index: IntArray) -> Array:  # noqa: ARG002
        return index.astype(float)


@dataclass(frozen=True)
class Custom(Kernel):
    """Any callable k(X, V)."""

    function: Callable[[Array, Array], Any]

    @property
    def takes_missing(self) -> bool:
        return False  # a mean may mean nothing to it

    def __call__(self, X: Array, V: Array) -> Array:
        # What it multiplies may be rounded in another way for a few rows.
        found = self.function(X if X is V else filled_up(X), V)
        try:
            k = np.array(found, dtype=float)  # a copy: it is centred in place
            return k[: len(X)] if k.ndim else k
        except (TypeError, ValueError, OverflowError):
            name = _name(self.function)
            what = f"expected the kernel function {name} to return an array of numbers"
            cure = "return one number for each row of X and each row of V"
            raise DataError(what, got=found, cure=cure) from None


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
