"""What can be learnt inside a kernel: width, relevances, time of a diffusion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from kofa import tuning
from kofa.kernels.base import Kernel, Radial, Weighted
from kofa.kernels.diffusion import Diffusion
from kofa.kernels.formulas import RBF, Laplacian
from kofa.kernels.gaps import PackedGaps, gap_sums
from kofa.linalg import Array, Groups, IntArray

VARIES = 1e-12  # what a feature that is not constant spans at least


Pullback = Callable[[Array], Array]  # from a gradient in K to the gradient in what K is made of


@dataclass(frozen=True, eq=False)
class KernelTerm:
    """One kernel on the rows from which it is learnt. Nothing inside this one is."""

    kernel: Kernel
    X: Array  # (n, D), scaled
    V: Array  # the same rows as the kernel wants them for its second argument

    def some(self, rows: IntArray) -> Self:
        """The same parameters on some of the rows."""
        X = self.X[rows]
        return replace(self, X=X, V=X if self.V is self.X else self.V[rows])

    @cached_property
    def typical(self) -> Array:
        """The kernel as it is before it is learnt: (n, n)."""
        return np.asarray(self.kernel.resolve(self.V)(self.X, self.V))

    def at(self, factor: float) -> Array:  # noqa: ARG002
        """The parameters at the median width, or a multiple of it, with all features alike."""
        return np.empty(0)

    @property
    def begin(self) -> Array:
        """Where the parameters start."""
        return self.at(1.0)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return []

    def evaluate(self, theta: Array) -> tuple[Array, Pullback]:  # noqa: ARG002
        """The kernel, and how gradients go from it to the parameters."""
        return self.typical, lambda G: np.empty(0)  # noqa: ARG005

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """Of the parameters, and its gradient."""
        return 0.0, np.zeros_like(theta)

    @property
    def price(self) -> float:
        """What a unit of √λ costs."""
        return 0.0

    def at_price(self, share: float) -> KernelTerm:  # noqa: ARG002
        """The same with a share of the price."""
        return self

    def learnt(self, theta: Array) -> Kernel:  # noqa: ARG002
        return self.kernel


@dataclass(frozen=True, eq=False)
class Width(KernelTerm):
    """A radial kernel with θ = log width."""

    kernel: Radial

    @cached_property
    def distance(self) -> Array:
        return self.kernel.distance(self.X, self.V)

    @cached_property
    def median(self) -> float:
        return self.kernel.median_width(self.V)

    @cached_property
    def typical(self) -> Array:
        return self.kernel.profile(self.distance.copy(), self.median)

    def at(self, factor: float) -> Array:
        return np.log([factor * self.median])

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return [(float(self.begin[0]) - 7.0, float(self.begin[0]) + 7.0)]

    def evaluate(self, theta: Array) -> tuple[Array, Pullback]:
        width = float(np.exp(theta[0]))
        K = self.kernel.profile(self.distance.copy(), width)
        return K, lambda G: np.array([np.vdot(G, self.kernel.slope(self.distance, width, K))])

    def learnt(self, theta: Array) -> Kernel:
        return replace(self.kernel, width=float(np.exp(theta[0])))


@dataclass(frozen=True, eq=False)
class Time(KernelTerm):
    """A diffusion with θ = log time."""

    kernel: Diffusion

    @cached_property
    def spread(self) -> tuple[Array, Array]:
        return self.kernel.spread(self.X)

    def at(self, factor: float) -> Array:  # noqa: ARG002
        return np.log([tuning.DIFFUSION_TIME])

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return [tuning.LOG_TIME_LIMITS]

    def evaluate(self, theta: Array) -> tuple[Array, Pullback]:
        time = float(np.exp(theta[0]))
        F = self.kernel.after(time, *self.spread)

        def pull(G: Array) -> Array:
            assert self.kernel.graph is not None
            change = -0.5 * time * self.kernel.graph.rates * F
            change -= ((F * change).sum(axis=1) / (F**2).sum(axis=1))[:, None] * F  # of unit length
            return np.array([((G + G.T) @ F * change).sum()])

        return F @ F.T, pull

    def learnt(self, theta: Array) -> Kernel:
        return replace(self.kernel, time=float(np.exp(theta[0])))


@dataclass(frozen=True, eq=False)
class Relevance(KernelTerm):
    """A kernel with θ_g = √λ of the features of group g.

    In √λ, the inverse length scale, L-BFGS needs a sixth of the steps that it needs in λ or log λ,
    and with the bound at zero it switches features off exactly.
    """

    kernel: Weighted  # without relevance
    free_width: bool  # it only sets the scale of λ, whose mean can then be one
    start: float = 1.0
    open: IntArray | None = None  # the features that have a λ; None are those that vary

    def some(self, rows: IntArray) -> Self:
        return replace(super().some(rows), open=self.varies)

    @cached_property
    def varies(self) -> IntArray:
        """Which features are not constant."""
        return np.flatnonzero(np.ptp(self.X, axis=0) > VARIES) if self.open is None else self.open

    @cached_property
    def groups(self) -> Groups:
        """Of the features that vary."""
        labels = self.kernel.groups or range(self.X.shape[1])
        number: dict[Any, int] = {}
        code = [number.setdefault(labels[j], len(number)) for j in self.varies]
        return Groups(np.array(code, dtype=np.intp), len(number))

    def at(self, factor: float) -> Array:  # noqa: ARG002
        return np.full(self.groups.size, self.start)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return [(0.0, 1e3)] * self.groups.size

    def relevance(self, theta: Array) -> Array:
        """λ of every feature: (D,)."""
        weights = np.zeros(self.X.shape[1])
        weights[self.varies] = theta[self.groups.label] ** 2
        return weights

    def evaluate(self, theta: Array) -> tuple[Array, Pullback]:
        kernel = replace(self.kernel, relevance=tuple(self.relevance(theta).tolist()))
        K = kernel(self.X, self.V)
        return K, lambda G: 2.0 * theta * self.in_square(kernel, K, G)

    def in_square(self, kernel: Weighted, K: Array, G: Array) -> Array:
        """The gradient in θ²."""
        gradient = kernel.relevance_gradient(self.X, self.V, K, G)
        return self.groups.sum(gradient[self.varies])

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        rate = self.kernel.sparsity
        if rate is not None:
            return -rate * float(theta.sum()), np.full_like(theta, -rate)
        away = (theta - 1.0) / tuning.RELEVANCE_PRIOR
        return -0.5 * float(away @ away), -away / tuning.RELEVANCE_PRIOR

    @property
    def price(self) -> float:
        return float(self.kernel.sparsity or 0.0)

    def at_price(self, share: float) -> KernelTerm:
        if not self.price:
            return self
        return replace(self, kernel=replace(self.kernel, sparsity=share * self.price))

    def learnt(self, theta: Array) -> Kernel:
        weights = self.relevance(theta)
        mean = float(weights[self.varies].mean()) if len(self.varies) else 0.0
        kernel = self.kernel
        if mean > 0 and self.free_width and isinstance(kernel, RBF | Laplacian):
            assert not isinstance(kernel.width, str)
            width = kernel.width / kernel.typical(mean)
            kernel, weights = replace(kernel, width=width), weights / mean
        return replace(kernel, relevance=tuple(weights.tolist()))


@dataclass(frozen=True, eq=False)
class LogRelevance(Relevance):
    """A kernel with θ = (log of the width relative to its own, if free; log λ of each group).

    A priori all features are about alike, so that hardly a set loses by it; and since the width is
    apart, that prior does not hold the width.
    """

    kernel: Laplacian

    @cached_property
    def gaps(self) -> PackedGaps | None:
        return PackedGaps.of(self.X)

    @property
    def n_widths(self) -> int:
        return int(self.free_width)

    def at(self, factor: float) -> Array:
        return np.append(np.full(self.n_widths, np.log(factor)), np.zeros(self.groups.size))

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return [tuning.LOG_WIDTH_LIMITS] * self.n_widths + [
            tuning.LOG_RELEVANCE_LIMITS
        ] * self.groups.size

    def relevance(self, theta: Array) -> Array:
        weights = np.zeros(self.X.shape[1])
        by_group = np.exp(theta[self.n_widths :] - theta[: self.n_widths].sum())
        weights[self.varies] = by_group[self.groups.label]
        return weights

    def evaluate(self, theta: Array) -> tuple[Array, Pullback]:
        weights, width = self.relevance(theta), self.kernel.width
        assert not isinstance(width, str)
        K = replace(self.kernel, relevance=tuple(weights.tolist()))(self.X, self.V)

        def pull(G: Array) -> Array:
            H = G * K
            sums = gap_sums(self.X, self.V, H) if self.gaps is None else self.gaps.sums(H)
            gradient = weights * sums / -width
            by_group = self.groups.sum(gradient[self.varies])
            return np.append(np.full(self.n_widths, -by_group.sum()), by_group)

        return K, pull

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        away = np.append(
            np.zeros(self.n_widths), theta[self.n_widths :] / tuning.LOG_RELEVANCE_PRIOR
        )
        return -0.5 * float(away @ away), -away / tuning.LOG_RELEVANCE_PRIOR


def _first(kernel: Kernel, X: Array, V: Array) -> KernelTerm:
    """The kernel with its width to be learnt, all features alike or nearly so."""
    if isinstance(kernel, Weighted) and kernel.learns_relevance:
        plain = replace(kernel, relevance=None)
        if not _by_root(kernel):
            free = _is_free(plain)
            at = _at_median(plain, X) if free else plain
            assert isinstance(at, Laplacian)
            return LogRelevance(at, X, X, free)
        kernel = plain
    if isinstance(kernel, Radial) and kernel.learns_width:
        return Width(kernel, X, V)
    if isinstance(kernel, Diffusion) and kernel.learns_time:
        return Time(kernel, X, V)
    return KernelTerm(kernel.resolve(V), X, V)


def _second(asked: Kernel, source: KernelTerm, theta: Array, factor: float) -> KernelTerm:
    """The kernel with λ to be learnt from a multiple of the median width, where that is asked."""
    if not _by_root(asked):
        return source
    kernel = source.learnt(theta)
    assert isinstance(kernel, Weighted)
    if not _is_free(asked):
        return Relevance(kernel, source.X, source.X, False)
    if kernel.sparsity is None:  # √λ is about 1, whatever the width
        return Relevance(_at_median(kernel, source.X, factor), source.X, source.X, True)
    # A price of √λ is the same from all starts only if √λ is in the same unit.
    unit = _at_median(kernel, source.X, tuning.SPARSE_UNIT)
    ratio = tuning.SPARSE_UNIT / factor
    start = ratio if isinstance(kernel, RBF) else ratio**0.5
    return Relevance(unit, source.X, source.X, True, start)


def learns_relevance(kernel: Kernel) -> bool:
    """Whether λ is to be learnt from the outputs."""
    return isinstance(kernel, Weighted) and kernel.learns_relevance


def _by_root(kernel: Kernel) -> bool:
    """Whether λ is to be learnt as √λ, which can be zero and needs starts of its own."""
    if not isinstance(kernel, Weighted) or not learns_relevance(kernel):
        return False
    return kernel.sparsity is not None or not isinstance(kernel, Laplacian)


def _is_free(kernel: Kernel) -> bool:
    """Whether the width is left to us; it then only sets the scale of λ."""
    return isinstance(kernel, Radial) and isinstance(kernel.width, str)


def _at_median(kernel: Weighted, X: Array, factor: float = 1.0) -> Weighted:
    """The kernel with a multiple of its median width."""
    assert isinstance(kernel, RBF | Laplacian)
    return replace(kernel, width=factor * kernel.median_width(X))
