"""Kernel formulas."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist, squareform

from kofa import tuning
from kofa.checks import hinting, is_number
from kofa.errors import DataError, DeclarationError
from kofa.linalg import Array, IntArray, by_rows, filled_up, inner, squared_distances

_SHOWN = 8  # features whose relevance a repr lists
_CACHE = 2**15  # numbers that stay near the processor
_MOST_PACKED = 2**25  # differences of features that are kept, in single precision: 128 MB
LARGEST = 1e150  # whose square is still a number

# What other tools call a width, or what they have in its place.
_WIDTH_ELSEWHERE = dict.fromkeys(("gamma", "sigma", "length_scale", "bandwidth"), "width")


@dataclass(frozen=True)
class Kernel:
    """k(x, v) for all rows of X and V, which have no holes: these are filled before."""

    @property
    def takes_missing(self) -> bool:
        """Whether a mean may stand for a missing value."""
        return True

    @property
    def ignores_shift(self) -> bool:
        """Whether it is the same for X + c and V + c once it is centred."""
        return False

    @property
    def reach(self) -> float:
        """The largest product of two values of which it is still a number that has a square."""
        return np.inf

    def __call__(self, X: Array, V: Array) -> Array:
        raise NotImplementedError

    @property
    def needs_rows(self) -> bool:
        """Whether it depends on all rows of a fit, and not only on those that are landmarks."""
        return False

    def on(self, X: Array, rng: np.random.Generator) -> Kernel:  # noqa: ARG002
        """The kernel with what it needs of the rows of a fit."""
        return self

    def resolve(self, V: Array) -> Kernel:  # noqa: ARG002
        """The kernel with everything that is left to the data fixed, from the landmarks."""
        return self

    def landmarks(self, X: Array, index: IntArray) -> Array:
        """What is kept of the rows that are landmarks."""
        return X[index]

    def diagonal(self, X: Array) -> Array | None:  # noqa: ARG002
        """k(x, x) of each row, where it can be had without all pairs."""
        return None


@dataclass(frozen=True, repr=False)
class Weighted(Kernel):
    """A kernel of features that count by their relevance λ_j.

    Parameters
    ----------
    relevance : None, "learn", "auto" or numbers
        λ_j ≥ 0 of each feature, in the order of the columns. None is one for all; "learn" finds
        the λ that explain the output views best, and "auto" does so where there are some.
    groups : None or sequence
        A label for each feature; features with the same label share one λ.
    sparsity : None or float
        With "learn": a number switches features off exactly, by a prior exp(−sparsity · √λ_j); 0
        is none. None is a prior that lets no feature stand out, or vanish, for little.
    objective : {"evidence", "reconstruction"}
        With "learn": what λ maximises. "evidence" is the marginal likelihood of the outputs;
        "reconstruction" is the published choice, how well the factors explain the kernel.
    """

    relevance: Literal["learn", "auto"] | tuple[float, ...] | None = field(
        default=None, kw_only=True
    )
    groups: tuple[Hashable, ...] | None = field(default=None, kw_only=True)
    sparsity: float | None = field(default=None, kw_only=True)
    objective: Literal["evidence", "reconstruction"] = field(default="evidence", kw_only=True)

    def __post_init__(self) -> None:
        for name in ("relevance", "groups"):
            value: Any = getattr(self, name)
            if isinstance(value, Iterable) and not isinstance(value, str | tuple):
                given = value.tolist() if isinstance(value, np.ndarray) else list(value)
                object.__setattr__(self, name, tuple(given) if isinstance(given, list) else given)

    def __repr__(self) -> str:
        shown = []
        for item in fields(self):
            value = getattr(self, item.name)
            if not item.kw_only or repr(value) != repr(item.default):
                many = isinstance(value, tuple) and len(value) > _SHOWN
                text = f"<{len(value)} features>" if many else repr(value)
                shown.append(f"{item.name}={text}")
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    def learns_relevance(self) -> bool:
        return isinstance(self.relevance, str) and self.relevance in ("learn", "auto")

    @property
    def needs_outputs(self) -> bool:
        """Whether it was said that there is something to learn from."""
        return self.learns_relevance and self.relevance == "learn"

    def weights(self, n_features: int) -> Array | None:
        """λ, or None where all features count alike."""
        if self.relevance is None:
            return None
        if self.learns_relevance:
            what = f"the relevance of {self!r} is left to the data"
            raise DeclarationError(what, option="relevance", cure="set numbers to call it")
        if len(self.relevance) != n_features:
            what = f"expected a relevance for each of {n_features} features"
            raise DeclarationError(what, option="relevance", got=len(self.relevance))
        return np.array(self.relevance, dtype=float)

    def relevance_gradient(self, X: Array, V: Array, K: Array, G: Array) -> Array:
        """∂/∂λ_j of a function of K = k(X, V) whose gradient in K is G: (D,)."""
        raise NotImplementedError


@hinting()
@dataclass(frozen=True, repr=False)
class Linear(Weighted):
    """k(x, v) = Σ_j λ_j x_j v_j / D, λ_j = 1 unless `relevance` says otherwise.

    Parameters
    ----------
    relevance : None, "learn", "auto" or numbers
        λ_j ≥ 0 of each feature, in the order of the columns. None is one for all; "learn" finds
        the λ that explain the output views best, and "auto" does so where there are some.
    groups : None or sequence
        A label for each feature; features with the same label share one λ.
    sparsity : None or float
        With "learn": a number switches features off exactly, by a prior exp(−sparsity · √λ_j); 0
        is none. None is a prior that lets no feature stand out, or vanish, for little.
    objective : {"evidence", "reconstruction"}
        With "learn": what λ maximises. "evidence" is the marginal likelihood of the outputs;
        "reconstruction" is the published choice, how well the factors explain the kernel.

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


@dataclass(frozen=True)
class Radial(Kernel):
    """A kernel that falls with the distance in units of its width.

    `width` is a number, "median" (the median distance between landmarks) or "auto": learnt from
    the output views where there are some, else the median.
    """

    width: float | Literal["auto", "median"] = "auto"

    @property
    def ignores_shift(self) -> bool:
        return True

    def distance(self, X: Array, V: Array) -> Array:
        """The distance to which `profile` applies."""
        raise NotImplementedError

    def profile(self, distance: Array, width: float) -> Array:
        """The kernel at a distance; may overwrite it."""
        raise NotImplementedError

    def slope(self, distance: Array, width: float, K: Array) -> Array:
        """d profile / d log width, where the profile is K."""
        raise NotImplementedError

    def __call__(self, X: Array, V: Array) -> Array:
        if isinstance(self.width, str) or not is_number(self.width):
            what, cure = f"the width of {self!r} is left to the data", "set a number to call it"
            raise DeclarationError(what, option="width", cure=cure)
        return self.profile(self.distance(X, V), self.width)

    def median_width(self, V: Array) -> float:
        """Median distance between rows, over at most a thousand evenly spaced ones."""
        V = V[:: max(1, -(-len(V) // tuning.MEDIAN_ROWS))]
        distance = self.distance(V, V)[np.triu_indices(len(V), 1)]
        positive = distance[distance > 1e-12]
        return self.typical(float(np.median(positive))) if len(positive) else 1.0

    def typical(self, distance: float) -> float:
        """The width that belongs to a typical distance."""
        return distance

    def diagonal(self, X: Array) -> Array:
        return np.ones(len(X))

    def resolve(self, V: Array) -> Radial:
        return replace(self, width=self.median_width(V)) if isinstance(self.width, str) else self

    @property
    def learns_width(self) -> bool:
        return self.width == "auto"


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
        With "learn": a number switches features off exactly, by a prior exp(−sparsity · √λ_j); 0
        is none. None is a prior that lets no feature stand out, or vanish, for little.
    objective : {"evidence", "reconstruction"}
        With "learn": what λ maximises. "evidence" is the marginal likelihood of the outputs;
        "reconstruction" is the published choice, how well the factors explain the kernel.

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
    width : float, "median" or "auto"
        "median" is the median distance between landmarks. "auto" is learnt from the output views
        where there are some, else the median.
    relevance : None, "learn", "auto" or numbers
        λ_j ≥ 0 of each feature, in the order of the columns. None is one for all; "learn" finds
        the λ that explain the output views best, and "auto" does so where there are some.
    groups : None or sequence
        A label for each feature; features with the same label share one λ.
    sparsity : None or float
        With "learn": a number switches features off exactly, by a prior exp(−sparsity · √λ_j); 0
        is none. None is a prior that lets no feature stand out, or vanish, for little.
    objective : {"evidence", "reconstruction"}
        With "learn": what λ maximises. "evidence" is the marginal likelihood of the outputs;
        "reconstruction" is the published choice, how well the factors explain the kernel.

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


def gap_sums(X: Array, V: Array, H: Array) -> Array:
    """Σ_nu H_nu |x_nj − v_uj|: (D,), block by block, in single precision on unit scale."""
    same = X is V
    if same:  # every pair once
        H = np.triu(H + H.T, 1)
    unit = _unit(V)
    x, v, h = (np.ascontiguousarray(a, dtype=np.float32) for a in (X / unit, V / unit, H))
    total, step = np.zeros(X.shape[1]), max(1, 2 * _CACHE // max(1, v.size))
    for start in range(0, len(x), step):
        rows, others = slice(start, start + step), slice(start if same else 0, None)
        gaps = x[rows, None, :] - v[others]
        np.abs(gaps, out=gaps)
        total += h[rows, others].ravel() @ gaps.reshape(-1, x.shape[1])
    return np.asarray(total * unit)


def _unit(V: Array) -> Array:
    return np.asarray(np.maximum(np.abs(V).max(axis=0), np.finfo(float).tiny))


@dataclass(frozen=True, eq=False)
class PackedGaps:
    """|x_nj − x_uj| of all pairs of rows n < u, for sums with many different H."""

    gaps: NDArray[np.float32]  # (pairs, D), on unit scale
    unit: Array  # (D,)

    @classmethod
    def of(cls, X: Array) -> PackedGaps | None:
        """None where they would take too much memory."""
        n, D = X.shape
        if n * (n - 1) // 2 * D > _MOST_PACKED:
            return None
        unit = _unit(X)
        x, gaps, start = (X / unit).astype(np.float32), np.empty((n * (n - 1) // 2, D), "f4"), 0
        for i in range(n - 1):
            np.abs(x[i + 1 :] - x[i], out=gaps[start : (start := start + n - 1 - i)])
        return cls(gaps, unit)

    def sums(self, H: Array) -> Array:
        """`gap_sums` with a symmetric H."""
        h, total = squareform(H, checks=False).astype(np.float32), np.zeros(len(self.unit))
        step = max(1, 2 * _CACHE // max(1, len(self.unit)))
        for start in range(0, len(h), step):
            some = slice(start, start + step)
            total += h[some] @ self.gaps[some]
        return np.asarray(2.0 * total * self.unit)


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
