"""What a kernel is: of any rows, of features with relevances, and of distances."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np

from kofa import tuning
from kofa.checks import is_number
from kofa.errors import DeclarationError
from kofa.linalg import Array, IntArray

_SHOWN = 8  # features whose relevance a repr lists


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

    def on(self, X: Array) -> Kernel:  # noqa: ARG002
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

    The docstring of `kofa.RBF` says what the fields mean.
    """

    relevance: Literal["learn", "auto"] | tuple[float, ...] | None = field(
        default=None, kw_only=True
    )
    groups: tuple[Hashable, ...] | None = field(default=None, kw_only=True)
    sparsity: float | None = field(default=None, kw_only=True)

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
