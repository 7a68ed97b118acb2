"""Sums of kernels, and kernels by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np

from kofa import tuning
from kofa.checks import hinting, is_among, is_number
from kofa.errors import DeclarationError
from kofa.kernels.base import Kernel
from kofa.kernels.diffusion import Diffusion
from kofa.kernels.formulas import RBF, Laplacian, Linear, Polynomial, Precomputed
from kofa.linalg import Array, centre


@hinting()
@dataclass(frozen=True)
class Mixture(Kernel):
    """k(x, v) = Σ_m weight_m k_m(x, v): several kernels that explain a view as one.

    Parameters
    ----------
    kernels : list of kernels, or of their names
        The k_m.
    weights : "learn", or numbers
        "learn" finds those that explain the output views best; without outputs, all kernels have
        the same variance.

    Examples
    --------
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
            what = f"the weights of {self!r} are left to the data"
            raise DeclarationError(what, option="weights", cure="set numbers to call it")
        parts = zip(self.weights, self.kernels, strict=True)
        return np.asarray(sum(w * k(X, V) for w, k in parts))

    @property
    def needs_rows(self) -> bool:
        return any(kernel.needs_rows for kernel in self.kernels)

    def on(self, X: Array) -> Mixture:
        return replace(self, kernels=tuple(kernel.on(X) for kernel in self.kernels))

    def resolve(self, V: Array) -> Mixture:
        kernels = tuple(kernel.resolve(V) for kernel in self.kernels)
        weights = self.weights
        if isinstance(weights, str):
            V = V[:: max(1, -(-len(V) // tuning.MEDIAN_ROWS))]
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


def is_kernel_name(word: str) -> bool:
    """Whether a kernel is known by this word."""
    return word in _BY_NAME


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


def kernel_name(kernel: Kernel) -> str:
    """How to call a kernel in a message."""
    return type(kernel).__name__
