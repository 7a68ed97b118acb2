"""How much the factors explain of a view: sums over its observed entries.

A loss is the squared error of a Gaussian entry, and the deviance of any other. Between the mean of
a column alone and the whole prediction lies the path on which all factors grow together,

    η(t) = η_mean + t Σ_k w_k (z_k − z̄_k) + t² (b − η_mean),        0 ≤ t ≤ 1,

with the bias b for factors at their mean; it is quadratic since the mean of a probability shifts
with the variance of η. What factor k explains is by how much the loss falls along the path by its
own part, −∫ Σ ∂loss/∂η w_k (z_k − z̄_k) dt. These add up to what all factors explain, and factors
that say the same share it evenly. For squared errors it is Shapley's value, in closed form:
Σ c_k (2 (y − ȳ) − Σ_j c_j) with c_k = w_k (z_k − z̄_k).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add

import numpy as np

from kofa.inference.observations import Observations
from kofa.inference.posterior import Weights
from kofa.linalg import Array, BoolArray, pieces

_AT_ONCE = 2**18  # entries whose losses are computed at a time
_NODES = 8  # on the path, of views that are not Gaussian: errors below 2e-4 of the whole
_NO_PART = 1e-6  # of the squared weights of a view: a factor with less explains nothing by itself
_NEVER = 30.0  # η of what never occurred in fit, or always: the column does not vary


@dataclass(frozen=True, eq=False)
class Explained:
    """Sums over the observed entries of a view; those of blocks of rows add up."""

    mean: Array  # (D,): η where nothing but the mean of the column is known
    n: Array  # (D,): number of observed entries
    total: Array  # (D,): the loss where the mean is all that is known
    left: Array  # (D,): the loss of the whole prediction
    factors: Array  # (L,): by how much each factor lowers it
    shared: float  # what all explain together, less what each would by itself

    def __add__(self, other: Explained) -> Explained:
        return Explained(
            self.mean,
            self.n + other.n,
            self.total + other.total,
            self.left + other.left,
            self.factors + other.factors,
            self.shared + other.shared,
        )

    def __mul__(self, times: float) -> Explained:
        """Of rows that count so many times."""
        return Explained(
            self.mean,
            self.n * times,
            self.total * times,
            self.left * times,
            self.factors * times,
            self.shared * times,
        )


def mean_only(view: Observations, w: Weights, total: Array, n: Array) -> Array:
    """η of each column where nothing but its mean total/n is known: (D,)."""
    if view.likelihood is None:
        return w.y_mean
    if view.likelihood.has("at_mean"):
        return np.clip(view.likelihood.at_mean(total / np.maximum(n, 1.0)), -_NEVER, _NEVER)
    return view.y_sum / np.maximum(view.n, 1.0)[view.columns.label]  # of a few steps towards it


def explained(view: Observations, w: Weights, Z: Array, mean: Array) -> Explained:
    """The sums of one block of rows, whose factors are Z (N, L)."""
    n, width = view.values.shape
    if not n:
        return _Block(view, w, Z, mean).explained()
    parts = (
        _Block(view.take(some), w, Z[some], mean).explained() for some in pieces(n, width, _AT_ONCE)
    )
    return reduce(add, parts)


def losses(view: Observations, eta: Array, used: BoolArray) -> Array:
    """Squared error or deviance of each entry at η (N, D), zero where it does not count."""
    if view.likelihood is None or view.targets is None:
        return np.asarray((0.5 * _fall(view, eta)) ** 2)
    best, found = view.likelihood.saturated(view.targets), view.tangent(eta)[0]
    deviance = np.maximum(2.0 * (best - found), 0.0)  # of large counts, both are rounded
    return np.asarray(np.where(view.mask & used, deviance, 0.0))


def varies(view: Observations, mean: Array) -> BoolArray:
    """The columns that count: what had one value only in fit needs no explanation. (D,)"""
    return np.asarray(np.full(len(mean), not view.augmented) | (np.abs(mean) < _NEVER))


@dataclass(frozen=True, eq=False)
class _Block:
    """Some rows of a view, and what is predicted for them."""

    view: Observations
    w: Weights
    Z: Array
    mean: Array

    @cached_property
    def used(self) -> BoolArray:
        return varies(self.view, self.mean)

    @cached_property
    def z_mean(self) -> Array:
        """z̄ of each column: (D, L)."""
        return self.w.z_mean[self.w.columns.label]

    @cached_property
    def moved(self) -> Array:
        """Σ_k w_k (z_k − z̄_k): (N, D)."""
        return self.w.predict(self.Z) - self.w.y_mean

    @property
    def bias(self) -> Array:
        """What the bias has for factors at their mean, beyond the mean of the column: (D,)."""
        return self.w.y_mean - self.mean

    def explained(self) -> Explained:
        ends = np.broadcast_to(self.mean, self.moved.shape), self.w.y_mean + self.moved
        total, left = (losses(self.view, eta, self.used).sum(axis=0) for eta in ends)
        by_factor, together = self.along_path(), float(total.sum() - left.sum())
        # The bias moves with the variance of η. What that explains is given by squared weights.
        share = (self.w.mean[self.used] ** 2).sum(axis=0)
        by_factor += (together - by_factor.sum()) * share / max(float(share.sum()), 1e-300)
        if self.view.likelihood is None:
            shared = self.squares() - float((self.moved**2 * self.view.mask).sum())
        else:
            shared = together - self.by_themselves(float(total.sum()))
        n = self.view.n[self.view.columns.label]
        return Explained(self.mean, n, total, left, by_factor, shared)

    def along_path(self) -> Array:
        """−∫ Σ ∂loss/∂η w_k (z_k − z̄_k) dt of each factor: (L,)."""
        fall: Array = np.zeros(())
        for t, weight in _path(self.view):
            path = t * self.moved + (self.mean + t**2 * self.bias)
            fall = fall + weight * self.used * _fall(self.view, path)
        along = fall.T @ self.Z - fall.sum(axis=0)[:, None] * self.z_mean
        return np.asarray((along * self.w.mean).sum(axis=0))

    def squares(self) -> float:
        """Σ_k Σ c_k² over the observed entries, c_k = w_k (z_k − z̄_k)."""
        seen, of = self.view.observed.astype(float), self.view.columns.label
        first, second = (seen.T @ one for one in (self.Z, self.Z**2))
        n = seen.sum(axis=0)[of, None]
        about = second[of] - 2.0 * self.z_mean * first[of] + n * self.z_mean**2
        return float((self.w.mean**2 * about).sum())

    def by_themselves(self, total: float) -> float:
        """Σ_k of what factor k would explain if the others were not known."""
        squares, found = self.w.mean**2, 0.0
        strong = squares[self.used].sum(axis=0) > _NO_PART * squares[self.used].sum()
        for k in np.flatnonzero(strong).tolist():
            moved = self.w.mean[:, k] * (self.Z[:, [k]] - self.z_mean[:, k])
            found += total - float(losses(self.view, self.alone(k, moved), self.used).sum())
        return found

    def alone(self, k: int, moved: Array) -> Array:
        """η where only what factor k adds is known (N, D).

        In a probit the others are noise, of variance Σ_j w_j²: it flattens η to (b + c_k) / r with
        r² = 1 + Σ_{j≠k} w_j², as the mean alone has b over its own r. Where there are no
        probabilities, the bias moves by the share of k in the squared weights.
        """
        W, likelihood = self.w.mean, self.view.likelihood
        assert likelihood is not None
        squares = (W - W.mean(axis=0) if likelihood.competing else W) ** 2
        own, whole = squares[:, k], squares.sum(axis=1)
        if likelihood.has("probability"):
            r = np.sqrt(1.0 + whole - own)
            return np.asarray((self.mean * np.sqrt(1.0 + whole) + moved) / r)
        return np.asarray(self.mean + moved + own / np.maximum(whole, 1e-300) * self.bias)


def _path(view: Observations) -> Iterator[tuple[float, float]]:
    """Nodes and weights of a quadrature on [0, 1]; one is exact for squared errors."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES if view.augmented else 1)
    yield from zip(0.5 * (nodes + 1.0), 0.5 * weights, strict=True)


def _fall(view: Observations, eta: Array) -> Array:
    """−∂loss/∂η of each entry (N, D), zero where missing."""
    if view.likelihood is None:
        return np.asarray(2.0 * (view.values - eta) * view.mask)
    return 2.0 * view.tangent(eta)[1]
