"""Kernel formulas, and the frozen map from rows to kernelized observations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform

from kofa.checks import is_among, is_number, is_whole, nearest, shown
from kofa.errors import DataError, DeclarationError, warn
from kofa.graphs import Graph
from kofa.linalg import (
    Array,
    BoolArray,
    IntArray,
    by_rows,
    centre,
    filled_up,
    inner,
    squared_distances,
)
from kofa.scaling import REACH, Scaling

_MEDIAN_ROWS = 1000  # rows from which a median distance is taken
_SHOWN = 8  # features whose relevance a repr lists
_BLOCK = 2**20  # entries of a kernel that are computed at a time
_CACHE = 2**15  # numbers that stay near the processor
ROUNDING = 1e-9  # of a similarity: what less of it is left unexplained may be rounding
# What centring leaves of a kernel, relative to its values: below, it is rounding, or that shows.
_CONSTANT, _HARDLY_VARIES = 1e-12, 1e-7
_LARGEST = 1e150  # whose square is still a number
_COMPARED = 500  # landmarks that tell how unlike all of them a row is
TIME = 5.0  # of a diffusion, where no outputs tell it
_MOST_ROWS = 2000  # of the graph along which a diffusion spreads
_DONORS = 50  # landmarks whose values are tried in the holes of a row

# ---------------------------------------------------------------- formulas


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
            raise DeclarationError(
                f"The relevance of {self!r} is left to the data: set numbers to call it."
            )
        if len(self.relevance) != n_features:
            raise DeclarationError(
                f"Expected a relevance for each of {n_features} features "
                f"but got {len(self.relevance)}."
            )
        return np.array(self.relevance, dtype=float)

    def relevance_gradient(self, X: Array, V: Array, K: Array, G: Array) -> Array:
        """∂/∂λ_j of a function of K = k(X, V) whose gradient in K is G: (D,)."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class Linear(Weighted):
    """k(x, v) = Σ_j λ_j x_j v_j / D, λ_j = 1 unless `relevance` says otherwise.

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


@dataclass(frozen=True)
class Polynomial(Kernel):
    """k(x, v) = (x·v / D + offset)^degree.

    >>> import numpy as np, kofa
    >>> kofa.Polynomial(degree=2)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[42.25]])
    """

    degree: int = 3
    offset: float = 1.0

    @property
    def reach(self) -> float:
        return float(_LARGEST ** (0.8 / self.degree))

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

    def slope(self, distance: Array, width: float) -> Array:
        """d profile / d log width."""
        raise NotImplementedError

    def __call__(self, X: Array, V: Array) -> Array:
        if isinstance(self.width, str) or not is_number(self.width):
            raise DeclarationError(
                f"The width of {self!r} is left to the data: set a number to call it."
            )
        return self.profile(self.distance(X, V), self.width)

    def median_width(self, V: Array) -> float:
        """Median distance between rows, over at most a thousand evenly spaced ones."""
        V = V[:: max(1, -(-len(V) // _MEDIAN_ROWS))]
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


@dataclass(frozen=True, repr=False)
class RBF(Weighted, Radial):
    """k(x, v) = exp(−Σ_j λ_j (x_j − v_j)² / (2 width²)), λ_j = 1 unless `relevance` says otherwise.

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

    def slope(self, distance: Array, width: float) -> Array:
        scaled = distance / width / width
        return np.asarray(scaled * np.exp(-0.5 * scaled))

    def typical(self, distance: float) -> float:
        return float(np.sqrt(distance))


@dataclass(frozen=True, repr=False)
class Laplacian(Weighted, Radial):
    """k(x, v) = exp(−Σ_j λ_j |x_j − v_j| / width), λ_j = 1 unless `relevance` says otherwise.

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
        return _gaps(X, V, G * K) / -self.width

    def profile(self, distance: Array, width: float) -> Array:
        distance *= -1.0 / width
        return np.exp(distance, out=distance)

    def slope(self, distance: Array, width: float) -> Array:
        scaled = distance / width
        return np.asarray(scaled * np.exp(-scaled))


def _gaps(X: Array, V: Array, H: Array) -> Array:
    """Σ_nu H_nu |x_nj − v_uj|: (D,), block by block, in single precision on unit scale."""
    same = X is V
    if same:  # every pair once
        H = np.triu(H + H.T, 1)
    unit = np.maximum(np.abs(V).max(axis=0), np.finfo(float).tiny)
    x, v, h = (np.ascontiguousarray(a, dtype=np.float32) for a in (X / unit, V / unit, H))
    total, step = np.zeros(X.shape[1]), max(1, 2 * _CACHE // max(1, v.size))
    for start in range(0, len(x), step):
        rows, others = slice(start, start + step), slice(start if same else 0, None)
        gaps = x[rows, None, :] - v[others]
        np.abs(gaps, out=gaps)
        total += h[rows, others].ravel() @ gaps.reshape(-1, x.shape[1])
    return np.asarray(total * unit)


@dataclass(frozen=True)
class Diffusion(Kernel):
    """How alike x and v are to something that spreads along the rows of a fit.

    k(x, v) = s(x)ᵀ G s(v), brought to k(x, x) = 1. G = exp(−time (I − S)) is how it spreads over
    the graph that joins each row of the fit to its nearest; s(x) are the weights of the rows
    nearest to x. So two rows are alike if others lie in a row between them, and not across a gap.
    It is what samples without a label tell about those with one. Far from all rows it is zero.

    Parameters
    ----------
    neighbours : int
        How many others each row is joined to.
    time : float or "auto"
        How far it spreads. "auto" is learnt from the output views where there are some, else 5.

    Examples
    --------
    Two arcs around each other. The end of one is nearer to the other arc than to its own
    beginning, but something spreads along the arc and not across the gap.

    >>> import numpy as np, kofa
    >>> angle = np.linspace(0, np.pi, 60)
    >>> arc = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.concatenate([arc, [1, 0.4] - arc])
    >>> beginning, end, other = X[[0]], X[[59]], X[[60]]
    >>> bool(np.linalg.norm(end - other) < np.linalg.norm(end - beginning))
    True
    >>> kernel = kofa.Diffusion(time=100).of(X)
    >>> kernel(end, np.concatenate([beginning, other])).round(2)
    array([[0.21, 0.  ]])
    """

    neighbours: int = 10
    time: float | Literal["auto"] = "auto"
    graph: Graph | None = field(default=None, repr=False, compare=False, kw_only=True)

    @property
    def ignores_shift(self) -> bool:
        return True

    @property
    def needs_rows(self) -> bool:
        return self.graph is None

    @property
    def learns_time(self) -> bool:
        return self.time == "auto"

    def of(self, rows: Any) -> Diffusion:
        """The kernel on the graph of some rows."""
        return replace(self, graph=Graph.of(np.asarray(rows, dtype=float), int(self.neighbours)))

    def on(self, X: Array, rng: np.random.Generator) -> Diffusion:
        if len(X) > _MOST_ROWS:
            X = X[np.sort(rng.choice(len(X), _MOST_ROWS, replace=False))]
        return self.of(X)

    def resolve(self, V: Array) -> Diffusion:
        kernel = self.of(V) if self.needs_rows else self
        return replace(kernel, time=TIME) if isinstance(self.time, str) else kernel

    def spread(self, X: Array) -> tuple[Array, Array]:
        """What rows put on the directions of the graph, and how near they are to its rows."""
        if self.graph is None:
            raise DeclarationError(
                f"The graph of {self!r} is left to the data: write {self!r}.of(rows) to call it."
            )
        return self.graph.spread(X, int(self.neighbours))

    def after(self, time: float, along: Array, near: Array) -> Array:
        """φ with k(x, v) = φ(x)·φ(v), from what `spread` finds."""
        assert self.graph is not None
        left = along * np.exp(-0.5 * time * self.graph.rates)
        length = np.sqrt(np.maximum((left**2).sum(axis=1), np.finfo(float).tiny))
        left *= (near / length)[:, None]
        return np.asarray(left)

    def features(self, X: Array) -> Array:
        """φ of rows."""
        if isinstance(self.time, str):
            raise DeclarationError(
                f"The time of {self!r} is left to the data: set a number to call it."
            )
        return self.after(self.time, *self.spread(X))

    def __call__(self, X: Array, V: Array) -> Array:
        left = self.features(X)
        return inner(left, left if X is V else self.features(V))

    def diagonal(self, X: Array) -> Array:
        return np.ones(len(X))


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The data are the kernel: samples × samples in fit, new samples × fitted samples after."""

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
            raise DataError(
                f"Expected the kernel function {_name(self.function)} to return an array of "
                f"numbers but got {shown(found)}."
            ) from None


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


@dataclass(frozen=True)
class Mixture(Kernel):
    """k(x, v) = Σ_m weight_m k_m(x, v): several kernels that explain a view as one.

    With ``weights="learn"`` they are those that explain the output views best; without outputs,
    all kernels have the same variance.

    >>> import numpy as np, kofa
    >>> both = kofa.Mixture([kofa.Linear(), kofa.RBF(1.0)], weights=[0.5, 2.0])
    >>> both(np.array([[1.0]]), np.array([[1.0]]))
    array([[2.5]])
    """

    kernels: tuple[Kernel, ...]
    weights: Literal["learn"] | tuple[float, ...] = "learn"

    def __post_init__(self) -> None:
        kernels, weights = cast(Any, self.kernels), cast(Any, self.weights)
        if isinstance(kernels, list | tuple):  # anything else is refused in fit
            named = [_BY_NAME[k]() if is_among(k, _BY_NAME) else k for k in kernels]
            object.__setattr__(self, "kernels", tuple(named))
        if isinstance(weights, Iterable) and not isinstance(weights, str | Mapping):
            given = np.asarray(weights, dtype=object).ravel().tolist()
            numbers = [float(w) if is_number(w) else w for w in given]
            object.__setattr__(self, "weights", tuple(numbers))

    @property
    def takes_missing(self) -> bool:
        return all(kernel.takes_missing for kernel in self.kernels)

    @property
    def ignores_shift(self) -> bool:
        return all(kernel.ignores_shift for kernel in self.kernels)

    @property
    def reach(self) -> float:
        return min(kernel.reach for kernel in self.kernels)

    def __call__(self, X: Array, V: Array) -> Array:
        if isinstance(self.weights, str):
            raise DeclarationError(
                f"The weights of {self!r} are left to the data: set numbers to call it."
            )
        parts = zip(self.weights, self.kernels, strict=True)
        return np.asarray(sum(w * k(X, V) for w, k in parts))

    @property
    def needs_rows(self) -> bool:
        return any(kernel.needs_rows for kernel in self.kernels)

    def on(self, X: Array, rng: np.random.Generator) -> Mixture:
        return replace(self, kernels=tuple(kernel.on(X, rng) for kernel in self.kernels))

    def resolve(self, V: Array) -> Mixture:
        kernels = tuple(kernel.resolve(V) for kernel in self.kernels)
        weights = self.weights
        if isinstance(weights, str):
            V = V[:: max(1, -(-len(V) // _MEDIAN_ROWS))]
            grams = [centre(k(V, V)) for k in kernels]
            weights = tuple(1.0 / max(float(np.trace(K)) / len(K), 1e-12) for K in grams)
        return Mixture(kernels, weights)

    def diagonal(self, X: Array) -> Array | None:
        total = np.zeros(len(X))
        for weight, kernel in components(self):
            part = kernel.diagonal(X)
            if part is None:
                return None
            total += weight * part
        return total


_BY_NAME: dict[str, Callable[[], Kernel]] = {
    "bank": lambda: Mixture((Linear(), RBF(), Laplacian(relevance="auto"))),
    "rbf": RBF,
    "linear": Linear,
    "polynomial": Polynomial,
    "poly": Polynomial,
    "laplacian": Laplacian,
    "diffusion": Diffusion,
    "precomputed": Precomputed,
}
_ALSO = {"gaussian": "rbf", "gauss": "rbf", "se": "rbf", "laplace": "laplacian"}  # elsewhere


def is_bank(kernel: Kernel) -> bool:
    """Whether it is what "bank" stands for."""
    return kernel == _BY_NAME["bank"]()


def as_kernels(kernel: Any, view: str) -> dict[str, Kernel]:
    """The kernels of one view by the names under which each explains it."""
    if not isinstance(kernel, list | tuple):
        return {view: as_kernel(kernel, view)}
    if not kernel:
        raise DeclarationError(f"View {view!r}: expected at least one kernel but got none.")
    named: dict[str, Kernel] = {}
    n_seen: dict[str, int] = {}
    for one in kernel:
        formula = as_kernel(one, view)
        kind = kernel_name(formula)
        n = n_seen[kind] = n_seen.get(kind, 0) + 1
        named[f"{view}[{kind}]" if n == 1 else f"{view}[{kind} {n}]"] = formula
    return named


def as_kernel(kernel: Any, view: str) -> Kernel:
    """A kernel from whatever a user may write for one."""
    if isinstance(kernel, Kernel):
        _check(kernel, view)
        return kernel
    if isinstance(kernel, str):
        if kernel not in _BY_NAME:
            meant = _ALSO.get(kernel.lower())
            hint = f"; did you mean {meant!r}?" if meant else nearest(kernel, _BY_NAME)
            raise DeclarationError(
                f"View {view!r}: expected a kernel among {', '.join(map(repr, _BY_NAME))} "
                f"but got {kernel!r}{hint or '.'}"
            )
        return _BY_NAME[kernel]()
    if isinstance(kernel, type):
        return _of_class(kernel, view)
    if callable(kernel):
        return Custom(kernel)
    raise DeclarationError(
        f"View {view!r}: expected a kernel, its name or a callable but got {shown(kernel)}."
    )


def _of_class(kernel: type, view: str) -> Kernel:
    """The kernel of a class where its parameters all have defaults."""
    if issubclass(kernel, Kernel) and kernel not in (Mixture, Custom):
        return kernel()
    raise DeclarationError(
        f"View {view!r}: expected a kernel but got the class {kernel.__name__}; write "
        f"{kernel.__name__}(…) with what it needs."
    )


def is_kernel_name(word: str) -> bool:
    """Whether a kernel is known by this word."""
    return word in _BY_NAME


def _check(kernel: Kernel, view: str) -> None:
    if isinstance(kernel, Radial):
        width: Any = kernel.width
        number = is_number(width) and 1e-100 < width < 1e100
        if not (number or is_among(width, ("auto", "median"))):
            raise DeclarationError(
                f"View {view!r}: expected a positive width, 'auto' or 'median' "
                f"but got {shown(width)}."
            )
    if isinstance(kernel, Weighted):
        _check_weighted(kernel, view)
    if isinstance(kernel, Diffusion):
        _check_diffusion(kernel, view)
    if isinstance(kernel, Mixture):
        _check_mixture(kernel, view)
    if isinstance(kernel, Polynomial):
        degree, offset = kernel.degree, kernel.offset
        if not (is_number(degree) and degree == int(degree) >= 1):
            raise DeclarationError(
                f"View {view!r}: expected a whole degree of at least 1 but got {shown(degree)}."
            )
        if not is_number(offset):
            raise DeclarationError(
                f"View {view!r}: expected a number as offset but got {shown(offset)}."
            )


def _check_weighted(kernel: Weighted, view: str) -> None:
    given: Any = kernel.relevance
    numbers = isinstance(given, tuple) and all(is_number(x) and x >= 0 for x in given)
    if not (given is None or kernel.learns_relevance or numbers):
        raise DeclarationError(
            f"View {view!r}: expected relevance None, 'learn', 'auto' or numbers of at least 0 "
            f"but got {shown(given)}."
        )
    if not (kernel.groups is None or _are_labels(kernel.groups)):
        raise DeclarationError(
            f"View {view!r}: expected groups None or a label for each feature "
            f"but got {shown(kernel.groups)}."
        )
    if not (kernel.sparsity is None or (is_number(kernel.sparsity) and kernel.sparsity >= 0)):
        raise DeclarationError(
            f"View {view!r}: expected a sparsity of at least 0 but got {shown(kernel.sparsity)}."
        )
    if not is_among(kernel.objective, ("evidence", "reconstruction")):
        raise DeclarationError(
            f"View {view!r}: expected objective 'evidence' or 'reconstruction' "
            f"but got {shown(kernel.objective)}."
        )


def _check_diffusion(kernel: Diffusion, view: str) -> None:
    time: Any = kernel.time
    if not is_whole(kernel.neighbours, 1):
        raise DeclarationError(
            f"View {view!r}: expected a whole number of neighbours, at least 1, "
            f"but got {shown(kernel.neighbours)}."
        )
    if not (is_among(time, ("auto",)) or (is_number(time) and 0 < time < 1e9)):
        raise DeclarationError(
            f"View {view!r}: expected a positive time or 'auto' but got {shown(time)}."
        )
    if kernel.graph is not None:
        raise DeclarationError(
            f"View {view!r}: expected a diffusion without a graph, which fit makes of its rows, "
            f"but got one; write {kernel!r}."
        )


def _are_labels(groups: Any) -> bool:
    """Whether these are labels that can be told apart, each equal to itself."""
    return isinstance(groups, tuple) and all(is_among(g, [g]) and g == g for g in groups)


def _check_mixture(kernel: Mixture, view: str) -> None:
    if not isinstance(kernel.kernels, tuple):
        raise DeclarationError(
            f"View {view!r}: expected a mixture of a list of kernels "
            f"but got {shown(kernel.kernels)}; write kofa.Mixture(['linear', 'rbf'])."
        )
    for part in kernel.kernels:
        if not isinstance(part, Kernel) or isinstance(part, Mixture | Precomputed):
            hint = nearest(part, _BY_NAME) if isinstance(part, str) else ""
            raise DeclarationError(
                f"View {view!r}: expected a mixture of kernels such as kofa.RBF() "
                f"but got {shown(part)}{hint or '.'}"
            )
        _check(part, view)
        if not isinstance(part, Weighted) or not part.needs_outputs:
            continue
        if not isinstance(kernel.weights, str) or part.objective != "evidence":
            raise DeclarationError(
                f"View {view!r}: in a mixture relevance='learn' needs weights='learn' and "
                f"objective='evidence'."
            )
    weights: Any = kernel.weights
    learnt = is_among(weights, ("learn",))
    fits = isinstance(weights, tuple) and len(weights) == len(kernel.kernels)
    numbers = fits and all(is_number(w) and w >= 0 for w in weights)
    if not kernel.kernels or not (learnt or fits):
        raise DeclarationError(
            f"View {view!r}: expected weights 'learn' or one for each of the "
            f"{len(kernel.kernels)} kernels of a mixture but got {shown(weights)}."
        )
    if not (learnt or numbers):
        raise DeclarationError(
            f"View {view!r}: expected weights of at least 0 but got {shown(weights)}."
        )


def parts(kernel: Kernel) -> list[Kernel]:
    """The kernels of a mixture whose weights are to be learnt; any other is its only part."""
    if isinstance(kernel, Mixture) and kernel.weights == "learn":
        return list(kernel.kernels)
    return [kernel]


def components(kernel: Kernel) -> list[tuple[float, Kernel]]:
    """The weights and kernels of which a kernel is the sum."""
    if isinstance(kernel, Mixture) and not isinstance(kernel.weights, str):
        return list(zip(kernel.weights, kernel.kernels, strict=True))
    return [(1.0, kernel)]


def check_features(kernel: Kernel, view: str, n_features: int) -> None:
    """Raise unless what a kernel says about single features fits their number."""
    for part in kernel.kernels if isinstance(kernel, Mixture) else ():
        check_features(part, view, n_features)
    if isinstance(kernel, Weighted):
        for option in ("relevance", "groups"):
            given = getattr(kernel, option)
            if isinstance(given, tuple) and len(given) != n_features:
                raise DeclarationError(
                    f"View {view!r}: expected {option} with an entry for each of its {n_features} "
                    f"columns but got {len(given)}."
                )


def kernel_name(kernel: Kernel) -> str:
    """How to call a kernel in a message."""
    return type(kernel).__name__


# ---------------------------------------------------------------- the frozen map

Unseen = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class KernelMap:
    """Rows x to k̃(x, v) = (k(x, v) − mean k(x, ·) − column mean(v) + grand mean) / scale.

    Of very few landmarks only the columns are centred: k̃(x, v) = (k(x, v) − column mean(v)) /
    scale.

    Everything on the right is fixed in fit, so a row's image never depends on its batch.
    """

    view: str  # for messages
    kernel: Kernel
    scaling: Scaling  # of the input columns
    V: Array  # landmarks, scaled
    column_mean: Array  # (R,)
    scale: float
    # Mean over the landmarks of the centred k(v, v). NaN where not known, 0 of a kernel that says
    # nothing: one that is constant up to rounding, or that the outputs switched off.
    mean_self: float
    by_row: bool = True  # whether rows are centred too, which costs one of R directions

    @classmethod
    def fit(
        cls,
        view: str,
        kernel: Kernel,
        scaling: Scaling,
        X: Array,
        index: IntArray,
        by_row: bool = True,
    ) -> KernelMap:
        """Resolve landmarks X[index] (already scaled), width, centring and scale."""
        V = kernel.landmarks(X, index)
        kernel = kernel.resolve(V)
        plain = cls(view, kernel, scaling, V, np.zeros(len(index)), 1.0, np.nan, by_row)
        total, square, largest = np.zeros(len(index)), 0.0, 0.0
        for where in _row_blocks(len(index), len(index)):
            k = plain.evaluate(X[index[where]])
            total += k.sum(axis=0)
            largest = max(largest, float(k.max()), -float(k.min()))
        column_mean = total / len(index)
        centred = replace(plain, column_mean=column_mean)
        for where in _row_blocks(len(index), len(index)):
            k = centred.centre(plain.evaluate(X[index[where]]))
            square += float(np.vdot(k, k))
        size = float(np.sqrt(square)) / len(index)
        if by_row and 0 < size < _HARDLY_VARIES * largest and (V[0] != V).any():
            warn(
                f"View {view!r}: the {kernel_name(kernel)} kernel is all but constant, so that "
                f"rounding shows in it; use scale=True, or another width or offset."
            )
        if size <= _CONSTANT * largest:
            centred = replace(centred, scale=largest or 1.0)
            return centred.switched_off() if by_row else centred
        diagonal = kernel.diagonal(X[index])
        mean = column_mean.mean() if by_row else 0.0
        mean_self = np.nan if diagonal is None else float(diagonal.mean() - mean)
        return replace(centred, scale=size, mean_self=mean_self)

    def switched_off(self) -> KernelMap:
        """The map of a kernel that says nothing."""
        return replace(self, mean_self=0.0)

    @property
    def says_nothing(self) -> bool:
        return self.mean_self == 0.0

    def grams(self, X: Array) -> list[Array]:
        """The landmarks X among themselves, as `encode` has them, (R, R), for each kernel in it."""
        return [
            weight / self.scale * (centre(K) if self.by_row else K)
            for weight, part in components(self.kernel)
            for K in [part(X, self.V)]
        ]

    def evaluate(self, X: Array) -> Array:
        """k(x, v) of scaled rows, as the formula has it."""
        with np.errstate(over="ignore", invalid="ignore"):  # found out below, by name
            k = self.kernel(X, self.V)
        if k.shape != (len(X), len(self.V)):
            raise DataError(
                f"View {self.view!r}: expected the {kernel_name(self.kernel)} kernel to return an "
                f"array of shape {(len(X), len(self.V))} but got {k.shape}."
            )
        if not (np.abs(k) < _LARGEST).all():
            raise DataError(
                f"View {self.view!r}: expected finite values of the {kernel_name(self.kernel)} "
                f"kernel but got NaN, infinity or more than {_LARGEST:g}; scale the columns or "
                f"choose another kernel."
            )
        return np.ascontiguousarray(k)  # sums over rows are rounded by how they lie in memory

    def centre(self, k: Array) -> Array:
        """Centre and scale rows of the kernel, in place."""
        if self.says_nothing:
            k[...] = 0.0
            return k
        if self.by_row:
            k -= k.mean(axis=1, keepdims=True)
            k += self.column_mean.mean()
        k -= self.column_mean
        k /= self.scale
        return k

    @cached_property
    def furthest(self) -> float:
        """The largest scaled value that counts as it is."""
        if isinstance(self.kernel, Precomputed):
            return REACH * max(float(np.abs(self.column_mean).max()), self.scale)
        size = max(1.0, float(np.abs(self.V).max()))
        return max(size, min(REACH * size, self.kernel.reach / size))

    def scaled(self, values: Array) -> Array:
        """Rows as the kernel sees them: scaled, without holes and within reach."""
        return np.clip(self.scaling.complete(values), -self.furthest, self.furthest)

    def beyond(self, values: Array) -> BoolArray:
        """Rows with values out of reach, which count as less far."""
        far = np.abs(self.scaling.complete(values)) > self.furthest
        return np.asarray(far.any(axis=1))

    def encode(self, values: Array) -> Array:
        """Kernelized observations of rows in the user's units; a row without data is NaN."""
        out = np.empty((len(values), len(self.V)))
        for where in _row_blocks(len(values), len(self.V)):
            present = self.scaling.seen(values[where])
            if present.any():  # one row stands for those that are not, so that no shape changes
                rows = np.where(present, np.arange(len(present)), np.argmax(present))
                out[where] = self.centre(self.evaluate(self.scaled(values[where])[rows]))
            out[where][~present] = np.nan
        return out

    def self_similarity(self, values: Array) -> Array:
        """Centred k(x, x) of rows relative to its mean over the landmarks; NaN where not known."""
        present, relative = self.scaling.seen(values), np.full(len(values), np.nan)
        X = self.scaled(values[present])
        diagonal = self.kernel.diagonal(X)
        if diagonal is None or not self.mean_self > 0:
            return relative
        if self.by_row:
            row = np.empty(len(X))
            for where in _row_blocks(len(X), len(self.V)):
                row[where] = self.evaluate(X[where]).mean(axis=1)
            diagonal = diagonal - 2.0 * row + self.column_mean.mean()
        relative[present] = diagonal / self.mean_self
        return relative

    def unseen(self, ridge: float) -> Unseen:
        """A function of rows: their `self_similarity`, and what landmarks leave unexplained of it.

        The landmarks are known up to noise, `ridge` times the signal. What the others leave
        unexplained of one of them is taken off: an ordinary new row has no less.
        """
        if isinstance(self.kernel, Precomputed) or not self.mean_self > 0:
            return lambda values: (np.full(len(values), np.nan), np.zeros(len(values)))
        some, unit = _evenly(self.V, _COMPARED), self.scale / self.mean_self
        ridge = ridge / unit
        e, U = np.linalg.eigh(np.sum(self.grams(self.V), axis=0)[np.ix_(some, some)])
        known = e > _CONSTANT * e[-1]
        e, U = e[known], U[:, known]
        # 1/[(K + λI)^-1]_uu − λ, what the others leave of landmark u; [·]_uu in e and what is left
        inverse = U**2 @ (1.0 / (e + ridge)) + (1.0 - (U**2).sum(axis=1)) / ridge
        typical = unit * max(float(np.median(1.0 / inverse)) - ridge, 0.0)

        def similarity_and_unseen(values: Array) -> tuple[Array, Array]:
            similarity = self.self_similarity(values)
            along = by_rows(self.encode(values)[:, some], U) ** 2
            outside = similarity - unit * by_rows(along, 1.0 / e)
            outside = np.where(outside > ROUNDING * similarity, outside, 0.0)
            noisy = unit * by_rows(along, ridge / (e * (e + ridge)))
            return similarity, np.maximum(outside + noisy - typical, 0.0)

        return similarity_and_unseen

    @cached_property
    def _donors(self) -> Array:
        """Landmarks whose values may stand in a hole: some of those with the fewest holes."""
        fills = (self.scaling.fill == self.V).sum(axis=1)
        most = np.sort(fills)[:_DONORS][-1]
        complete = self.V[fills <= most]
        return np.asarray(complete[_evenly(complete, _DONORS)])

    def for_other_values(self, values: Array) -> Iterator[tuple[IntArray, Array]]:
        """Rows with holes, and how their similarities change with other values in the holes.

        These values are those of landmarks, all holes of a row from the same one: (h,), (h, ·, R).
        """
        present = self.scaling.seen(values)
        missing = np.isnan(values) & np.isfinite(self.scaling.spread)
        holed = np.flatnonzero(missing.any(axis=1) & present)
        if not len(holed) or isinstance(self.kernel, Precomputed):
            return
        donors = self._donors
        n = len(donors)
        for where in _row_blocks(len(holed), n * max(self.V.shape)):
            rows = holed[where]
            X = self.scaled(values[rows])
            other = np.where(missing[rows][:, None, :], donors, X[:, None, :])
            k = self.centre(self.evaluate(other.reshape(-1, X.shape[1])))
            yield rows, k.reshape(len(rows), n, -1) - self.centre(self.evaluate(X))[:, None, :]


def _evenly(V: Array, n: int) -> IntArray:
    """At most n rows, evenly spaced in the order of their values: the same in any order of rows."""
    order = np.lexsort(V.T[::-1])
    return np.asarray(np.sort(order[np.linspace(0, len(V) - 1, min(n, len(V))).astype(np.intp)]))


def _row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    step = max(1, _BLOCK // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
