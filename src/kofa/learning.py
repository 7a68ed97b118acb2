"""Learning what is inside kernels from the outputs.

One objective: the marginal likelihood of the outputs under the kernels,
ℓ = Σ_d log N(y_d | 0, Σ_m v_m K_m + σ_d² I). It is the limit of the model in which the kernelized
views are free of noise. It is smooth and does not degenerate, whereas the bound itself grows
without limit as a kernel becomes constant.

What is learnt: the width of each kernel or the relevance λ_j of each of its features, the weights
v_m of the kernels, and the noises σ_d².
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from kofa.kernels import RBF, TIME, Diffusion, Kernel, Laplacian, Radial, Weighted
from kofa.linalg import Array, BoolArray, Groups, IntArray, centre, threads_for

MAX_ROWS = 1000  # the objective is cubic in the rows; a kernel needs no more than this
_START_WIDTHS = (0.1, 0.3, 1.0, 3.0)  # times the median distance
_START_NOISE = 0.3
# The variance that the kernels give the outputs, Σ_m v_m K_m at their median widths, is a priori
# within this (in its logarithm) of one. The likelihood of smooth data rises for ever wider kernels
# with ever larger v, whose signal sits in directions that are too faint for a factor model: enb
# with RBF gains .04 of R² by it, edm and oes97 lose up to .01.
_SCALE_PRIOR = 0.5
# An output further out than this many spreads counts as this far, so that a few outliers do not
# ask for a narrow kernel: jura gains .003 of R² by it, oes97 (whose tails are signal) loses .008.
_OUTLIER = 5.0
# Unless features are to be switched off, √λ is a priori within this of one, so that thousands of
# features cannot follow the noise of a few hundred samples.
_RELEVANCE_PRIOR = 0.8
# An output is not known better than its resolution: the noise is at least that of rounding, or
# this share of the output's variance where few values are possible. Without it an output that has
# one value in 94 % of the samples runs to a noise of zero, and decides about kernels alone. R² of
# edm, folds of seeds 1 and 2, without: bank .477, .470, RBF .467, .447, Laplacian .501, .481; with
# .02: .489, .476, .472, .453, .488, .477; with .2: .473, .468, .409, .405, .465, .459. Labels are
# exact: with .2 the log-loss of wine rises from .03 to .05.
_MOST_ROUNDING = 0.02
_LEAST_NOISE = float(np.exp(-14.0))
_SIMILAR = 0.1  # least square of similarities to others, relative to that to oneself
_FEW_NOISES = 4  # up to here a Cholesky factor for each is cheaper than one eigendecomposition
_MAX_ITER, _MAX_ITER_LOG, _MAX_ITER_RELEVANCE = 40, 30, 300
# Of a Laplacian kernel: log λ is a priori within this of zero.
_LOG_RELEVANCE_PRIOR = 0.5
_LOG_TIME = (0.0, 7.0)  # of a diffusion: oil_flow with few labels wants 300 to 600
_LOG_WIDTH, _LOG_RELEVANCE = (-5.0, 5.0), (-8.0, 5.0)
# Where each kernel starts: all with the same share of the variance, or nearly all of it with the
# kernels that have relevances; and for how many steps both are tried. With the first alone enb
# stays at .988 of R² in place of .998.
_SHARES = {"relevance": 0.795, "width": 0.005, "fixed": 0.2}
_LOG_START_WIDTHS, _LOG_RACE_STEPS = (0.3, 1.0, 3.0), 10
# Starts of relevances race for a while, and the best goes on: widths times the median distance.
_RACE_WIDTHS, _RACE_STEPS = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4), 20
_SPARSE_UNIT = 0.5  # of the median distance: the unit of √λ with a `sparsity`
# Relevances are kept if they predict one of so many rows as well as features that are alike, up to
# a share of the squared error; where there are more features than a share of the rows, if they
# predict better by so many standard errors.
_HELD_OUT, _FEWEST_HELD_OUT, _NO_WORSE, _MANY, _SURE = 4, 5, 0.05, 0.5, 2.0
# Prices of √λ on the way to the one asked for, and widths from which λ starts again at each.
_PRICES, _AGAIN_WIDTHS = (0.25, 1.0, 4.0, 16.0, 64.0), (0.35, 1.0)
# Of λ that are not kept this power is, which leaves their order and hardly changes the kernel.
_ORDER_ONLY, _LEAST_RELEVANCE = 0.01, 1e-12
_VARIES = 1e-12  # what a feature that is not constant spans at least

Pullback = Callable[[Array], Array]  # from a gradient in K to the gradient in what K is made of


# ---------------------------------------------------------------- what is learnt of a kernel


@dataclass(frozen=True, eq=False)
class Source:
    """One kernel on the rows from which it is learnt. Nothing inside this one is."""

    kernel: Kernel
    X: Array  # (n, D), scaled
    V: Array  # the same rows as the kernel wants them for its second argument

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

    def at_price(self, share: float) -> Source:  # noqa: ARG002
        """The same with a share of the price."""
        return self

    def learnt(self, theta: Array) -> Kernel:  # noqa: ARG002
        return self.kernel


@dataclass(frozen=True, eq=False)
class Width(Source):
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
        return K, lambda G: np.array([(G * self.kernel.slope(self.distance, width)).sum()])

    def learnt(self, theta: Array) -> Kernel:
        return replace(self.kernel, width=float(np.exp(theta[0])))


@dataclass(frozen=True, eq=False)
class Time(Source):
    """A diffusion with θ = log time."""

    kernel: Diffusion

    @cached_property
    def spread(self) -> tuple[Array, Array]:
        return self.kernel.spread(self.X)

    def at(self, factor: float) -> Array:  # noqa: ARG002
        return np.log([TIME])

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return [_LOG_TIME]

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
class Relevance(Source):
    """A kernel with θ_g = √λ of the features of group g.

    In √λ, the inverse length scale, L-BFGS needs a sixth of the steps that it needs in λ or log λ,
    and with the bound at zero it switches features off exactly.
    """

    kernel: Weighted  # without relevance
    free_width: bool  # it only sets the scale of λ, whose mean can then be one
    start: float = 1.0

    @cached_property
    def varies(self) -> IntArray:
        """Which features are not constant."""
        return np.flatnonzero(np.ptp(self.X, axis=0) > _VARIES)

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
        away = (theta - 1.0) / _RELEVANCE_PRIOR
        return -0.5 * float(away @ away), -away / _RELEVANCE_PRIOR

    @property
    def price(self) -> float:
        return float(self.kernel.sparsity or 0.0)

    def at_price(self, share: float) -> Source:
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

    @property
    def n_widths(self) -> int:
        return int(self.free_width)

    def at(self, factor: float) -> Array:
        return np.append(np.full(self.n_widths, np.log(factor)), np.zeros(self.groups.size))

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return [_LOG_WIDTH] * self.n_widths + [_LOG_RELEVANCE] * self.groups.size

    def relevance(self, theta: Array) -> Array:
        weights = np.zeros(self.X.shape[1])
        by_group = np.exp(theta[self.n_widths :] - theta[: self.n_widths].sum())
        weights[self.varies] = by_group[self.groups.label]
        return weights

    def evaluate(self, theta: Array) -> tuple[Array, Pullback]:
        weights = self.relevance(theta)
        kernel = replace(self.kernel, relevance=tuple(weights.tolist()))
        K = kernel(self.X, self.V)

        def pull(G: Array) -> Array:
            gradient = weights * kernel.relevance_gradient(self.X, self.V, K, G)
            by_group = self.groups.sum(gradient[self.varies])
            return np.append(np.full(self.n_widths, -by_group.sum()), by_group)

        return K, pull

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        away = np.append(np.zeros(self.n_widths), theta[self.n_widths :] / _LOG_RELEVANCE_PRIOR)
        return -0.5 * float(away @ away), -away / _LOG_RELEVANCE_PRIOR


def _first(kernel: Kernel, X: Array, V: Array) -> Source:
    """The kernel with its width to be learnt, all features alike or nearly so."""
    if isinstance(kernel, Weighted) and kernel.learns_relevance:
        plain = replace(kernel, relevance=None)
        if learns_relevance(kernel) and not _by_root(kernel):
            free = _is_free(plain)
            return LogRelevance(_at_median(plain, X) if free else plain, X, X, free)
        kernel = plain
    if isinstance(kernel, Radial) and kernel.learns_width:
        return Width(kernel, X, V)
    if isinstance(kernel, Diffusion) and kernel.learns_time:
        return Time(kernel, X, V)
    return Source(kernel.resolve(V), X, V)


def _second(asked: Kernel, source: Source, theta: Array, factor: float) -> Source:
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
    unit = _at_median(kernel, source.X, _SPARSE_UNIT)
    ratio = _SPARSE_UNIT / factor
    start = ratio if isinstance(kernel, RBF) else ratio**0.5
    return Relevance(unit, source.X, source.X, True, start)


def learns_relevance(kernel: Kernel) -> bool:
    """Whether λ is to be learnt from the outputs."""
    return (
        isinstance(kernel, Weighted) and kernel.learns_relevance and kernel.objective == "evidence"
    )


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


# ---------------------------------------------------------------- the objective


@dataclass(frozen=True, eq=False)
class Outputs:
    """What the kernels are to explain: columns on unit scale, some of which share their noise."""

    Y: Array  # (n, C), zero where missing
    noises: Groups  # of the columns
    patterns: list[tuple[IntArray, IntArray]]  # rows and columns that are observed together
    least_noise: Array  # (G,)

    @classmethod
    def of(cls, Y: Array, noises: Groups, labels: BoolArray | None = None) -> Outputs:
        """Columns with NaN where missing; those of `labels` are exact, all others were rounded."""
        seen = ~np.isnan(Y)
        groups = Groups.by_pattern(seen.T)
        patterns = [
            (np.flatnonzero(seen[:, first]), np.flatnonzero(groups.label == g))
            for g, first in enumerate(groups.first)
        ]
        rounding = np.array([resolution(y[~np.isnan(y)]) for y in Y.T]) ** 2 / 12.0
        rounding = rounding if labels is None else np.where(labels, 0.0, rounding)
        floor = np.clip(rounding, _LEAST_NOISE, _MOST_ROUNDING)
        least = np.array([floor[noises.label == g].min() for g in range(noises.size)])
        return cls(np.clip(np.nan_to_num(Y), -_OUTLIER, _OUTLIER), noises, patterns, least)

    @property
    def seen(self) -> BoolArray:
        """Which entries are observed: (n, C)."""
        seen = np.zeros(self.Y.shape, dtype=bool)
        for rows, columns in self.patterns:
            seen[np.ix_(rows, columns)] = True
        return seen

    def some(self, rows: IntArray) -> Outputs:
        """Those of some rows, in ascending order."""
        patterns = [
            (np.flatnonzero(np.isin(rows, seen)), columns) for seen, columns in self.patterns
        ]
        patterns = [(seen, columns) for seen, columns in patterns if len(seen)]
        return replace(self, Y=self.Y[rows], patterns=patterns)

    def errors(self, K: Array, noise: Array, most: IntArray, rest: IntArray) -> Array:
        """Σ_d (y − ŷ)² of the rest, by row, ŷ of a Gaussian process of the others with kernel K."""
        total = np.zeros(len(K))
        for seen, columns in self.patterns:
            known, new = np.intersect1d(most, seen), np.intersect1d(rest, seen)
            if not len(known):
                continue
            k = K - K[known].mean(axis=0)
            k = k - k[:, known].mean(axis=1, keepdims=True)  # centred as over the known rows
            for g in np.unique(self.noises.label[columns]):
                mine = columns[self.noises.label[columns] == g]
                mean = self.Y[np.ix_(known, mine)].mean(axis=0)
                shifted = k[np.ix_(known, known)] + noise[g] * np.eye(len(known))
                a = np.linalg.solve(shifted, self.Y[np.ix_(known, mine)] - mean)
                away = self.Y[np.ix_(new, mine)] - mean - k[np.ix_(new, known)] @ a
                total[new] += (away**2).sum(axis=1)
        return np.asarray(total[rest])

    def left_out(self, K: Array, noise: Array) -> float:
        """Σ (y − ŷ)², each ŷ of a Gaussian process of all other rows with kernel K."""
        total = 0.0
        for seen, columns in self.patterns:
            for g in np.unique(self.noises.label[columns]):
                mine = columns[self.noises.label[columns] == g]
                total += _left_out(K[np.ix_(seen, seen)], self.Y[np.ix_(seen, mine)], noise[g])
        return total


def _left_out(K: Array, Y: Array, noise: float) -> float:
    """Σ (y − ŷ)², each ŷ that of a Gaussian process of the other rows with an unknown mean."""
    P = np.linalg.inv(K + noise * np.eye(len(K)))
    along = P.sum(axis=1)
    P -= np.outer(along, along) / along.sum()
    return float(((P @ Y / np.diagonal(P)[:, None]) ** 2).sum())


def resolution(y: Array) -> float:
    """How finely a column is measured: the median over samples of the gap to other values.

    The gap is the mean distance to the next lower and the next higher value that occurs.
    """
    values, place = np.unique(y, return_inverse=True)
    if len(values) < 2:
        return 0.0
    gaps = np.diff(values)
    lower, upper = np.append(gaps[:1], gaps), np.append(gaps, gaps[-1:])
    return float(np.median((0.5 * (lower + upper))[place]))


@dataclass(frozen=True, eq=False)
class Objective:
    """ℓ with its priors, as a function of θ = (parameters of each kernel, log v_m, log σ_g²)."""

    sources: Sequence[Source]
    outputs: Outputs

    @cached_property
    def ends(self) -> IntArray:
        """Where in θ each kernel's parameters end."""
        return np.cumsum([len(source.begin) for source in self.sources])

    @cached_property
    def variances(self) -> Array:
        """Mean diagonal of each centred kernel at its median width: (M,)."""
        diagonals = [np.diagonal(centre(source.typical)) for source in self.sources]
        return np.maximum([float(d.mean()) for d in diagonals], 1e-12)

    def split(self, theta: Array) -> tuple[list[Array], Array, Array]:
        """The kernels' own parameters, v and σ²."""
        *own, rest = np.split(theta, self.ends)
        v, noise = np.split(np.exp(rest), [len(self.sources)])
        return own, v, noise

    @property
    def begin(self) -> Array:
        own = [source.begin for source in self.sources]
        v = -np.log(len(self.sources) * self.variances)
        return np.concatenate([*own, v, np.full(self.outputs.noises.size, np.log(_START_NOISE))])

    @property
    def bounds(self) -> list[tuple[float, float]]:
        own = [bound for source in self.sources for bound in source.bounds]
        v = [(float(x) - 12.0, float(x) + 12.0) for x in -np.log(self.variances)]
        return own + v + [(float(x), 3.0) for x in np.log(self.outputs.least_noise)]

    def likelihood(self, theta: Array) -> tuple[float, Array]:
        """ℓ and its gradient."""
        own, v, noise = self.split(theta)
        kernels, pullbacks = zip(
            *(s.evaluate(t) for s, t in zip(self.sources, own, strict=True)), strict=True
        )
        total = sum(v_m * K for v_m, K in zip(v, kernels, strict=True))
        value, G, of_noise = _gaussian(total, self.outputs, noise)
        of_v = [v_m * float(np.vdot(G, K)) for v_m, K in zip(v, kernels, strict=True)]
        of_own = [v_m * pull(G) for v_m, pull in zip(v, pullbacks, strict=True)]
        return value, np.concatenate([*of_own, of_v, of_noise])

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        own, v, noise = self.split(theta)
        parts = [s.log_prior(t) for s, t in zip(self.sources, own, strict=True)]
        share = v * self.variances
        surprise = float(np.log(share.sum())) / _SCALE_PRIOR
        of_v = -surprise / _SCALE_PRIOR * share / share.sum()
        value = sum(value for value, _ in parts) - 0.5 * surprise**2
        return value, np.concatenate([*(g for _, g in parts), of_v, np.zeros_like(noise)])

    def negative(self, theta: Array) -> tuple[float, Array]:
        """What is minimised."""
        (value, gradient), (prior, slope) = self.likelihood(theta), self.log_prior(theta)
        return -value - prior, -gradient - slope

    def fair_cost(self, theta: Array) -> float:
        """What is minimised, without the reward for a noise of zero.

        Centred outputs have no part along the constant, where all variance is the noise.
        """
        _, _, noise = self.split(theta)
        columns = np.concatenate([columns for _, columns in self.outputs.patterns])
        reward = -0.5 * float(np.log(noise[self.outputs.noises.label[columns]]).sum())
        return self.negative(theta)[0] + reward

    def says_nothing(self, theta: Array) -> bool:
        """Whether hardly any sample is similar to another, which explains outputs as noise does.

        Widths can shrink to where ℓ is flat, although wider kernels would tell more.
        """
        own, v, _ = self.split(theta)
        kernels = [s.evaluate(t)[0] for s, t in zip(self.sources, own, strict=True)]
        total = centre(np.asarray(sum(v_m * K for v_m, K in zip(v, kernels, strict=True))))
        alone = float((np.diagonal(total) ** 2).sum())
        return float(np.vdot(total, total)) < (1.0 + _SIMILAR) * alone

    def learnt(self, theta: Array) -> list[Kernel]:
        own, _, _ = self.split(theta)
        return [s.learnt(t) for s, t in zip(self.sources, own, strict=True)]

    def at_price(self, share: float) -> Objective:
        """The same with a share of what √λ costs."""
        return replace(self, sources=[source.at_price(share) for source in self.sources])

    def without_the_weakest(self, theta: Array) -> Array:
        """θ without the features that cost more than they are worth, the weakest first.

        The slope of ℓ vanishes at √λ = 0, so that L-BFGS may stop short of it.
        """
        begins = [0, *self.ends[:-1].tolist()]
        priced = [
            begin + j
            for begin, source in zip(begins, self.sources, strict=True)
            if source.price
            for j in range(len(source.begin))
            if theta[begin + j] > 0
        ]
        cost = self.negative(theta)[0]
        for j in sorted(priced, key=lambda j: float(theta[j])):
            trial = np.where(np.arange(len(theta)) == j, 0.0, theta)
            value = self.negative(trial)[0]
            if value > cost:
                break
            cost, theta = value, trial
        return theta

    def cheapest(self, starts: Sequence[Array], max_iter: int) -> Array:
        """The best θ from several starts, in which what is off in the first is off in all."""
        off = (starts[0] == 0.0) & (np.arange(len(starts[0])) < self.ends[-1])
        tried = [self.maximise(np.where(off, 0.0, start), _RACE_STEPS) for start in starts]
        best = min(tried, key=lambda theta: self.negative(theta)[0])
        return self.without_the_weakest(self.maximise(best, max_iter))

    def maximise(self, theta: Array, max_iter: int) -> Array:
        """L-BFGS from θ."""
        options = {"maxiter": max_iter, "maxfun": 4 * max_iter}
        found = minimize(
            self.negative, theta, jac=True, method="L-BFGS-B", bounds=self.bounds, options=options
        )
        return np.asarray(found.x)


def _gaussian(K: Array, outputs: Outputs, noise: Array) -> tuple[float, Array, Array]:
    """Σ_d log N(y_d | 0, HKH + σ_d² I), its gradient in K and in log σ_g²; H centres."""
    value, G, of_noise = 0.0, np.zeros_like(K), np.zeros_like(noise)
    for rows, columns in outputs.patterns:
        all_rows = len(rows) == len(K)
        where = np.ix_(rows, rows)
        part, slope, by_column = _complete(
            centre(K if all_rows else K[where]),
            outputs.Y[np.ix_(rows, columns)],
            noise,
            outputs.noises.label[columns],
        )
        value += part
        of_noise += by_column
        if all_rows:
            G += centre(slope)
        else:
            G[where] += centre(slope)
    return value, G, of_noise


def _complete(K: Array, Y: Array, noise: Array, label: IntArray) -> tuple[float, Array, Array]:
    """The same for a centred K and columns that are observed in all rows."""
    Y = Y - Y.mean(axis=0)
    used = np.unique(label)
    if len(used) > _FEW_NOISES:
        return _by_eigenvalues(K, Y, noise, label)
    n, value, G, of_noise = len(K), 0.0, np.zeros_like(K), np.zeros_like(noise)
    for g in used:
        y = Y[:, label == g]
        C = y.shape[1]
        shifted = K.copy()
        shifted.flat[:: n + 1] += noise[g]
        # Both triangles of a symmetric matrix are the same in either memory order.
        factor, failed = lapack.dpotrf(shifted.T, lower=True, overwrite_a=True, clean=False)
        if failed:
            return _by_eigenvalues(K, Y, noise, label)
        a = lapack.dpotrs(factor, y, lower=True)[0]
        value -= 0.5 * float(np.vdot(y, a)) + C * float(np.log(np.diagonal(factor)).sum())
        inverse = lapack.dpotri(factor, lower=True, overwrite_c=True)[0]
        trace = float(np.trace(inverse))
        # ∂ℓ/∂K = ½ Σ_d (a_d a_dᵀ − (K + σ_d² I)^-1); the factor holds one triangle of it
        inverse = np.tril(inverse)
        inverse += np.tril(inverse, -1).T
        G += 0.5 * (a @ a.T - C * inverse)
        of_noise[g] = 0.5 * noise[g] * (float(np.vdot(a, a)) - C * trace)
    return value - 0.5 * Y.size * np.log(2.0 * np.pi), G, of_noise


def _by_eigenvalues(
    K: Array, Y: Array, noise: Array, label: IntArray
) -> tuple[float, Array, Array]:
    """One eigendecomposition serves all noises."""
    e, U = np.linalg.eigh(K)
    variance = np.maximum(e, 0.0)[:, None] + noise[label]  # (n, C)
    Y = U.T @ Y
    value = -0.5 * float((Y**2 / variance + np.log(2.0 * np.pi * variance)).sum())
    a = U @ (Y / variance)
    G = 0.5 * (a @ a.T - (U * (1.0 / variance).sum(axis=1)) @ U.T)
    by_column = 0.5 * noise[label] * ((a**2).sum(axis=0) - (1.0 / variance).sum(axis=0))
    return value, G, np.bincount(label, by_column, minlength=len(noise)).astype(float)


# ---------------------------------------------------------------- learning


@dataclass(frozen=True, eq=False)
class Learnt:
    """Kernels with nothing left open, their weights, and the noise of each output."""

    kernels: list[Kernel]
    weights: Array  # (M,): v_m
    noise: Array  # (G,): σ_g²
    likelihood: float  # ℓ

    def left_out(
        self, inputs: Sequence[Array], landmarks: Sequence[Array], outputs: Outputs
    ) -> float:
        """Squared error of the outputs, each predicted from all others; what it was learnt from."""
        given = zip(self.weights, self.kernels, inputs, landmarks, strict=True)
        K = np.sum([weight * kernel(X, V) for weight, kernel, X, V in given], axis=0)
        return outputs.left_out(K, np.maximum(self.noise, _LEAST_NOISE))


def learn(
    kernels: Sequence[Kernel],
    inputs: Sequence[Array],
    landmarks: Sequence[Array],
    outputs: Outputs,
    max_iter: int = _MAX_ITER_RELEVANCE,
) -> Learnt:
    """The most likely kernels given the outputs.

    Parameters
    ----------
    kernels : one per input
    inputs : arrays (n, D_m) of the same rows, scaled
    landmarks : the same rows as the kernels want them for their second argument
    outputs : what they are to explain
    max_iter : most steps for relevances
    """
    learner = _Learner(kernels, inputs, landmarks, outputs)
    with threads_for(float(len(outputs.Y)) ** 3):
        objective, theta = learner.alike()
        learnt = objective.learnt(theta)
        if any(_by_root(kernel) for kernel in kernels):
            each, worth = learner.with_relevance(objective, theta, max_iter)
            found = each[0].learnt(each[1])
            if worth:
                (objective, theta), learnt = each, found
            else:
                learnt = [
                    _alike(plain, one, X) if _by_root(asked) else plain
                    for asked, plain, one, X in zip(kernels, learnt, found, inputs, strict=True)
                ]
    _, v, noise = objective.split(theta)
    value = objective.likelihood(theta)[0]
    return Learnt(learnt, v, noise, value)


def _most_likely(objective: Objective) -> Array:
    """θ from the best widths for each start of the weights, of which the better one goes on."""

    def cost(theta: Array) -> float:
        return objective.negative(theta)[0]

    by_cost = [sorted(widths, key=cost) for widths in starts(objective)]
    begin, max_iter = by_cost[0][0], _MAX_ITER
    if _has_relevance(objective):
        tried = [objective.maximise(first, _LOG_RACE_STEPS) for first, *_ in by_cost]
        begin, max_iter = min(tried, key=cost), _MAX_ITER_LOG
    theta = objective.maximise(begin, max_iter)
    others = [start for _, *rest in by_cost for start in rest]
    if others and objective.says_nothing(theta):
        tried = [theta, *(objective.maximise(start, _MAX_ITER) for start in others)]
        theta = min(tried, key=objective.fair_cost)
    return theta


def _has_relevance(objective: Objective) -> bool:
    return any(isinstance(source, LogRelevance) for source in objective.sources)


def starts(objective: Objective) -> list[list[Array]]:
    """θ with all widths at a few multiples of their medians, for each start of the weights."""
    sources, rest = objective.sources, objective.begin[objective.ends[-1] :]
    moves = any((source.at(2.0) != source.begin).any() for source in sources)
    factors = _LOG_START_WIDTHS if _has_relevance(objective) else _START_WIDTHS
    widths = [
        np.concatenate([source.at(factor) for source in sources])
        for factor in (factors if moves else (1.0,))
    ]
    shares = [np.full(len(sources), 1.0)]
    if _has_relevance(objective) and len(sources) > 1:
        shares.append(np.array([_SHARES[_kind(source)] for source in sources]))
    noise = np.zeros(len(rest) - len(sources))
    return [
        [np.append(own, rest + np.append(np.log(share / share.mean()), noise)) for own in widths]
        for share in shares
    ]


def _kind(source: Source) -> str:
    if isinstance(source, LogRelevance):
        return "relevance"
    return "width" if isinstance(source, Width) else "fixed"


@dataclass(frozen=True, eq=False)
class _Learner:
    """Kernels on some rows, with all features alike or with relevances √λ."""

    kernels: Sequence[Kernel]
    inputs: Sequence[Array]
    landmarks: Sequence[Array]
    outputs: Outputs

    def alike(self) -> tuple[Objective, Array]:
        given = zip(self.kernels, self.inputs, self.landmarks, strict=True)
        objective = Objective([_first(*one) for one in given], self.outputs)
        return objective, _most_likely(objective)

    def start(self, alike: Objective, theta: Array, factor: float) -> tuple[Objective, Array]:
        """The objective in which λ varies too, and a width at which all features count alike."""
        own, _, _ = alike.split(theta)
        sources = [
            _second(k, s, t, factor)
            for k, s, t in zip(self.kernels, alike.sources, own, strict=True)
        ]
        starts = [
            t if now is before else now.begin
            for now, before, t in zip(sources, alike.sources, own, strict=True)
        ]
        objective = Objective(sources, self.outputs)
        return objective, np.concatenate([*starts, objective.begin[objective.ends[-1] :]])

    def race(self, alike: Objective, theta: Array, factor: float) -> tuple[Objective, Array]:
        """A few steps of λ from a width."""
        objective, begin = self.start(alike, theta, factor)
        return objective, objective.at_price(0.0).maximise(begin, _RACE_STEPS)

    def with_relevance(
        self, alike: Objective, theta: Array, max_iter: int
    ) -> tuple[tuple[Objective, Array], bool]:
        """λ from the best of a few widths, and whether it predicts as well as features alike.

        The most likely single width is no good start: where few features matter it is so narrow
        that nothing is similar to anything.
        """
        free = any(_by_root(k) and _is_free(k) for k in self.kernels)
        factors = _RACE_WIDTHS if free else (1.0,)
        races = {factor: self.race(alike, theta, factor) for factor in factors}
        best = min(races, key=lambda f: races[f][0].at_price(0.0).negative(races[f][1])[0])
        again = _AGAIN_WIDTHS if free else (1.0,)
        starts = [self.start(alike, theta, factor)[1] for factor in again]
        worth = self.is_asked_to_select or self.relevance_predicts(best, max_iter)
        return self.at_full_price(*races[best], max_iter, starts), worth

    def at_full_price(
        self, objective: Objective, theta: Array, max_iter: int, starts: Sequence[Array]
    ) -> tuple[Objective, Array]:
        """θ at prices of √λ that rise to those asked for: what is once off stays off.

        So a higher price is hardly ever less strict. What was found at a lower price may be far
        from the best at a higher one, so that starts are tried again, without what is off.
        """
        highest = max(source.price for source in objective.sources)
        for share in [p / highest for p in _PRICES if p < highest]:
            partly = objective.at_price(share)
            theta = partly.cheapest([theta, *starts], _RACE_STEPS)
        theta = objective.cheapest([theta, *starts] if highest else [theta], max_iter)
        return objective, theta

    @property
    def is_asked_to_select(self) -> bool:
        return any(isinstance(k, Weighted) and k.sparsity is not None for k in self.kernels)

    def relevance_predicts(self, factor: float, max_iter: int) -> bool:
        """Whether λ from most rows predicts the others no worse than features that are alike.

        The likelihood rises with every λ, also where that loses: .04 of log-loss for 320 drugs
        and 144 labels. With many features it has to be better by more than chance.
        """
        n = len(self.outputs.Y)
        order = np.random.default_rng(0).permutation(n)
        rest, most = np.sort(order[: n // _HELD_OUT]), np.sort(order[n // _HELD_OUT :])
        if len(rest) < _FEWEST_HELD_OUT:
            return False
        some = _Learner(
            self.kernels,
            [X[most] for X in self.inputs],
            [V[most] for V in self.landmarks],
            self.outputs.some(most),
        )
        alike, theta = some.alike()
        objective, begin = some.race(alike, theta, factor)
        each = objective, objective.maximise(begin, max_iter)
        before, after = self.errors(alike, theta, most, rest), self.errors(*each, most, rest)
        gain = before - after
        if objective.ends[-1] > _MANY * len(most):
            return bool(gain.mean() > _SURE * gain.std() / len(gain) ** 0.5)
        return bool(after.sum() <= (1.0 + _NO_WORSE) * before.sum())

    def errors(self, objective: Objective, theta: Array, most: IntArray, rest: IntArray) -> Array:
        """Squared errors of some rows predicted from the others."""
        _, v, noise = objective.split(theta)
        rows = zip(v, objective.learnt(theta), self.inputs, self.landmarks, strict=True)
        K = np.asarray(sum(weight * kernel(X, V) for weight, kernel, X, V in rows))
        return self.outputs.errors(K, noise, most, rest)


def _alike(kernel: Kernel, found: Kernel, X: Array) -> Kernel:
    """A kernel whose features are all but alike; the λ that were found only tell their order."""
    assert isinstance(kernel, Weighted)
    assert isinstance(found, Weighted)
    varies = np.ptp(X, axis=0) > _VARIES
    weights = np.array(found.relevance, dtype=float)
    weights = np.where(varies, np.maximum(weights, _LEAST_RELEVANCE) ** _ORDER_ONLY, 0.0)
    mean = float(weights[varies].mean()) if varies.any() else 1.0
    return replace(kernel, relevance=tuple((weights / mean).tolist()))
