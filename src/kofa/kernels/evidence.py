"""The marginal likelihood of outputs under kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import OptimizeResult, minimize

from kofa import tuning
from kofa.kernels.base import Kernel
from kofa.kernels.outputs import Outputs
from kofa.kernels.terms import KernelTerm
from kofa.linalg import Array, IntArray, centre

_FEW_NOISES = 4  # up to here a Cholesky factor for each is cheaper than one eigendecomposition
_BLOCK = 64  # rows and columns of a matrix that is mirrored


@dataclass(frozen=True, eq=False)
class Objective:
    """ℓ with its priors, as a function of θ = (parameters of each kernel, log v_m, log σ_g²)."""

    sources: Sequence[KernelTerm]
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
        return np.concatenate(
            [*own, v, np.full(self.outputs.noises.size, np.log(tuning.LEARNING_START_NOISE))]
        )

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
        surprise = float(np.log(share.sum())) / tuning.SCALE_PRIOR
        of_v = -surprise / tuning.SCALE_PRIOR * share / share.sum()
        value = sum(value for value, _ in parts) - 0.5 * surprise**2
        return value, np.concatenate([*(g for _, g in parts), of_v, np.zeros_like(noise)])

    def negative(self, theta: Array) -> tuple[float, Array]:
        """What is minimised."""
        (value, gradient), (prior, slope) = self.likelihood(theta), self.log_prior(theta)
        return -value - prior, -gradient - slope

    def learnt(self, theta: Array) -> list[Kernel]:
        own, _, _ = self.split(theta)
        return [s.learnt(t) for s, t in zip(self.sources, own, strict=True)]

    def some(self, rows: IntArray) -> Objective:
        """The same θ on some of the rows, in ascending order."""
        return Objective([source.some(rows) for source in self.sources], self.outputs.some(rows))

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
        tried = [self.maximise(np.where(off, 0.0, start), tuning.RACE_STEPS) for start in starts]
        best = min(tried, key=lambda theta: self.negative(theta)[0])
        return self.without_the_weakest(self.maximise(best, max_iter))

    def maximise(self, theta: Array, max_iter: int, gain: float = 0.0) -> Array:
        """L-BFGS from θ, until some steps in a row gain less than so many nats."""
        options = {"maxiter": max_iter, "maxfun": 4 * max_iter}
        costs: list[float] = []

        def stand_still(intermediate_result: OptimizeResult) -> None:
            costs.append(intermediate_result.fun)
            before = costs[-1 - tuning.LEARNING_PATIENCE :][0]
            if len(costs) > tuning.LEARNING_PATIENCE and before - costs[-1] < gain:
                raise StopIteration

        found = minimize(
            self.negative,
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=self.bounds,
            callback=stand_still,
            options=options,
        )
        return np.asarray(found.x)


def _gaussian(K: Array, outputs: Outputs, noise: Array) -> tuple[float, Array, Array]:
    """Σ_d log of the density of y_d less its mean, its gradient in K and in log σ_g².

    log N(Hy_d | 0, HKH + σ_d² I), H centres, without the direction of the constant: there nothing
    is left of y, which would reward a noise of zero.
    """
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
        of_columns = np.bincount(outputs.noises.label[columns], minlength=len(noise))
        value += part + 0.5 * float(of_columns @ np.log(2.0 * np.pi * noise))
        of_noise += by_column + 0.5 * of_columns
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
    n, value, of_noise = len(K), 0.0, np.zeros_like(noise)
    upper, A = np.zeros_like(K), np.empty_like(Y)
    for g in used:
        y = Y[:, label == g]
        C = y.shape[1]
        shifted = K.copy()
        shifted.flat[:: n + 1] += noise[g]
        # Both triangles of a symmetric matrix are the same in either memory order.
        factor, failed = lapack.dpotrf(shifted.T, lower=True, overwrite_a=True, clean=False)
        if failed:
            return _by_eigenvalues(K, Y, noise, label)
        a = A[:, label == g] = lapack.dpotrs(factor, y, lower=True)[0]
        value -= 0.5 * float(np.vdot(y, a)) + C * float(np.log(np.diagonal(factor)).sum())
        inverse = lapack.dpotri(factor, lower=True, overwrite_c=True)[0].T
        of_noise[g] = 0.5 * noise[g] * (float(np.vdot(a, a)) - C * float(np.trace(inverse)))
        inverse *= -0.5 * C
        upper += inverse
    # ∂ℓ/∂K = ½ Σ_d (a_d a_dᵀ − (K + σ_d² I)^-1)
    G = _mirrored(upper)
    G += 0.5 * A @ A.T
    return value - 0.5 * Y.size * np.log(2.0 * np.pi), G, of_noise


def _mirrored(upper: Array) -> Array:
    """The symmetric matrix of which the upper triangle is known; in place, in blocks in cache."""
    n = len(upper)
    for i in range(0, n, _BLOCK):
        end = min(i + _BLOCK, n)
        own = np.triu(upper[i:end, i:end])
        upper[i:end, i:end] = own + np.triu(own, 1).T
        upper[end:, i:end] = upper[i:end, end:].T
    return upper


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
