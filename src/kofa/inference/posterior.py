"""The factors of q: their moments, entropies and divergences. All immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln

from kofa.inference.own_bases import OwnBases
from kofa.inference.pattern_sums import Means, Packed, along, less_shift
from kofa.inference.scales import Scales
from kofa.linalg import (
    Array,
    Groups,
    IntArray,
    by_rows,
    pieces,
    products,
    quadratic_diagonals,
    unpack,
)


@dataclass(frozen=True, eq=False)
class Gamma:
    """Gamma(shape, rate), elementwise."""

    shape: Array
    rate: Array

    @property
    def mean(self) -> Array:
        return self.shape / self.rate

    @property
    def mean_log(self) -> Array:
        result: Array = digamma(self.shape) - np.log(self.rate)
        return result

    @property
    def mean_inverse(self) -> Array:
        """⟨1/x⟩ = rate / (shape − 1): for a precision, the expected variance."""
        return self.rate / np.maximum(self.shape - 1.0, 0.5 * self.shape)

    def kl(self, prior: Precision) -> float:
        """Σ KL(self ‖ prior)."""
        assert isinstance(prior, Gamma)
        terms = (
            (self.shape - prior.shape) * digamma(self.shape)
            - gammaln(self.shape)
            + gammaln(prior.shape)
            + prior.shape * (np.log(self.rate) - np.log(prior.rate))
            + self.mean * (prior.rate - self.rate)
        )
        return float(np.broadcast_to(terms, self.rate.shape).sum())

    def take(self, index: IntArray) -> Gamma:
        """Some of the elements."""
        return Gamma(self.shape, self.rate[index])


@dataclass(frozen=True, eq=False)
class Known:
    """A precision that is not learnt, where a Gamma could stand."""

    mean: Array

    @property
    def mean_log(self) -> Array:
        return np.log(self.mean)

    @property
    def mean_inverse(self) -> Array:
        return 1.0 / self.mean

    def kl(self, prior: Precision) -> float:  # noqa: ARG002
        return 0.0

    def take(self, index: IntArray) -> Known:
        """Some of the elements."""
        return Known(self.mean[index])


Precision = Gamma | Known


@dataclass(frozen=True, eq=False)
class Weights:
    """q(w_d, b_d) of the D columns of a view.

    q(w_d) = N(mean_d, B_g diag(scales_d) B_gᵀ), where g is the group of column d and B_g its
    basis: columns that are observed in the same rows share the basis, which is what makes the
    update one eigendecomposition. The bias given the weights is
    N(ȳ_d − w_d·z̄_g, bias_variance_d).
    """

    mean: Array  # (D, K)
    basis: Array | OwnBases  # (G, K, L)
    scales: Array | Scales  # (D, L)
    columns: Groups
    y_mean: Array  # (D,)
    z_mean: Means  # (G, K)
    bias_variance: Array  # (D,)
    # log |det B_g| (G,), where the update of the weights left it
    log_volume: Array | None = field(default=None, init=False)

    @cached_property
    def variance(self) -> Array:
        """Diagonals of the covariances: (D, K)."""
        if not isinstance(self.basis, OwnBases):
            return self.columns.matmul(np.asarray(self.scales), (self.basis**2).swapaxes(-1, -2))
        found = np.empty(self.mean.shape)
        for some in self.basis.pieces:
            found[some] = np.diagonal(self.basis.covariances(some), axis1=-2, axis2=-1)
        return found

    def moved(self, **means: Any) -> Weights:
        """With other means; the covariances stay."""
        return replace(self, **means).with_known(self.log_volume)

    def with_known(self, log_volume: Array | None, variance: Array | None = None) -> Weights:
        """The same, where `log_volume` and maybe `variance` need not be worked out again."""
        same = replace(self)
        object.__setattr__(same, "log_volume", log_volume)
        if variance is not None:
            same.__dict__["variance"] = variance
        return same

    def lean(self) -> Weights:
        """The same without what only the bound needs."""
        return replace(self)

    def complete(self) -> Weights:
        """The same with bases that are worked out, as they are saved."""
        if not isinstance(self.basis, OwnBases):
            # Scales of more directions than factors take more memory than a file has for weights.
            few = self.scales.shape == self.mean.shape
            scales = self.scales if few else np.asarray(self.scales)
            return replace(self, scales=scales, z_mean=np.asarray(self.z_mean))
        basis, z_mean = np.asarray(self.basis), np.asarray(self.z_mean)
        return replace(self, basis=basis, scales=np.array(self.scales), z_mean=z_mean)

    def traces(self, S: Packed) -> Array:
        """tr(S_g Σ_wd) of every column, for a packed matrix of each group (G, K(K+1)/2): (D,)."""
        found, k = np.empty(len(self.mean)), self.mean.shape[1]
        if isinstance(self.basis, OwnBases):
            for some in self.basis.pieces:
                found[some] = products(unpack(S[some], k), self.basis.covariances(some))
            return found
        along = quadratic_diagonals(self.basis, unpack(S[:], k))
        for some in pieces(*self.scales.shape):
            found[some] = (along[self.columns.label[some]] * self.scales[some]).sum(1)
        return found

    @property
    def square(self) -> Array:
        """⟨w_dk²⟩: (D, K)."""
        found: Array = self.mean**2
        found += self.variance
        return found

    @property
    def bias(self) -> Array:
        """⟨b_d⟩: (D,)."""
        bias: Array = self.y_mean - (self.mean * self.z_mean[self.columns.label]).sum(1)
        return bias

    def predict(self, Z: Array) -> Array:
        """⟨w_d⟩·z_n + ⟨b_d⟩ of known samples: (N, D)."""
        return np.asarray(by_rows(Z, self.mean.T) + self.bias)

    @property
    def logdet(self) -> float:
        """Σ_d log |Σ_wd|."""
        log_volume = self.log_volume
        if log_volume is None:
            log_volume = np.linalg.slogdet(np.asarray(self.basis))[1]
        return float(2.0 * log_volume[self.columns.label].sum() + np.log(self.scales).sum())

    def outer(self, weights: Array, into: Groups) -> Array:
        """Σ_d weight_d ⟨w_d w_dᵀ⟩ over the columns of each group of `into`: (size, K, K)."""
        return into.gram(self.mean, weights) + self.covariances(weights, into)

    def covariances(self, weights: Array, into: Groups) -> Array:
        """Σ_d weight_d Σ_wd over the columns of each group of `into`: (size, K, K)."""
        if isinstance(self.basis, OwnBases):
            return self._own_covariances(weights, into)
        if self.columns.size == into.size == 1:
            B = self.basis[0]
            return np.asarray((B * (weights @ self.scales)) @ B.T)[None]
        # Columns that agree in both partitions share a basis and a destination.
        pairs = into.label * self.columns.size + self.columns.label
        found, label = np.unique(pairs, return_inverse=True)
        joint = Groups(label.astype(np.intp), len(found))
        basis = np.asarray(self.basis)[found % self.columns.size]
        scaled = basis * joint.sum(weights[:, None] * self.scales)[:, None, :]
        covariance = scaled @ basis.swapaxes(-1, -2)
        return Groups(found // self.columns.size, into.size).sum(covariance)

    def _own_covariances(self, weights: Array, into: Groups) -> Array:
        """The same of columns that have holes of their own."""
        assert isinstance(self.basis, OwnBases)
        k = self.mean.shape[1]
        found = np.zeros((into.size, k * k))
        for some in self.basis.pieces:
            each = self.basis.covariances(some).reshape(-1, k * k)
            if into.size == 1:
                found[0] += weights[some] @ each
            else:
                np.add.at(found, into.label[some], weights[some, None] * each)
        return found.reshape(into.size, k, k)

    def transform(self, inverse: Array, rotation: Array, shift: Array) -> Weights:
        """The same function of the samples after z ← R (z − shift)."""
        basis = self.basis
        return replace(
            self,
            mean=self.mean @ inverse,
            basis=basis.turned(inverse) if isinstance(basis, OwnBases) else inverse.T @ basis,
            z_mean=less_shift(self.z_mean, shift) @ rotation.T,
        )

    def take(self, some: IntArray) -> Weights:
        """Those of some columns."""
        basis, z_mean, columns = self.basis, self.z_mean, self.columns
        if columns.alone:
            basis = basis.take(some) if isinstance(basis, OwnBases) else basis[some]
            z_mean, columns = z_mean[some], Groups(np.arange(len(some)), len(some))
        else:
            columns = Groups(columns.label[some], columns.size)
        return replace(
            self,
            mean=self.mean[some],
            basis=basis,
            scales=self.scales[some],
            columns=columns,
            z_mean=z_mean,
            y_mean=self.y_mean[some],
            bias_variance=self.bias_variance[some],
        )

    def keep(self, factors: IntArray) -> Weights:
        """Forget all factors but these."""
        basis = self.basis
        return replace(
            self,
            mean=self.mean[:, factors],
            basis=basis.keep(factors) if isinstance(basis, OwnBases) else basis[:, factors],
            z_mean=along(self.z_mean, factors),
        )


@dataclass(frozen=True, eq=False)
class ViewPosterior:
    """All global factors of q that belong to one view, and the priors they answer to."""

    weights: Weights
    alpha: Precision  # (K,)
    gamma: Gamma | None  # (D,), None for ⟨γ⟩ ≡ 1
    tau: Precision  # (D,), or (1,) for one noise for the view
    alpha_prior: Precision  # (K,)
    gamma_prior: Gamma
    tau_prior: Precision  # like tau
    rho: float = 1.0  # mean curvature of the log-likelihood where z may be, relative to τ
    # (D,): variance that z left open in fit, where z was taken for known and the noise has it in it
    blurred: Array | None = None

    @property
    def n_columns(self) -> int:
        return len(self.weights.mean)

    @property
    def precision(self) -> Array:
        """⟨τ_d⟩ of every column: (D,)."""
        return np.broadcast_to(self.tau.mean, (self.n_columns,))

    @property
    def n_observed(self) -> Array:
        """Number of samples in fit that have each column: (D,)."""
        return np.asarray(1.0 / (self.weights.bias_variance * self.precision))

    @property
    def loading(self) -> Array:
        """τ_d ⟨w_d⟩ of every column: (D, K)."""
        return self.precision[:, None] * self.weights.mean

    @property
    def column_precision(self) -> Array:
        """⟨γ_d⟩ of every column: (D,)."""
        return np.ones(self.n_columns) if self.gamma is None else self.gamma.mean

    @property
    def information(self) -> Array:
        """Σ_d ρ τ_d ⟨w_dk⟩²: what the view tells about each factor, prior precision 1. (K,)."""
        return self.rho * self.precision @ self.weights.mean**2

    def lean(self) -> ViewPosterior:
        """The same without what only the bound needs."""
        return replace(self, weights=self.weights.lean())

    def take(self, some: IntArray) -> ViewPosterior:
        """As if it had some of its columns only."""
        gamma = None if self.gamma is None else self.gamma.take(some)
        tau = Known(self.precision[some])
        return replace(self, weights=self.weights.take(some), gamma=gamma, tau=tau)

    def keep(self, factors: IntArray) -> ViewPosterior:
        """Forget all factors but these."""
        return replace(
            self,
            weights=self.weights.keep(factors),
            alpha=self.alpha.take(factors),
            alpha_prior=self.alpha_prior.take(factors),
        )


State = Mapping[str, ViewPosterior]  # by name, in the order of the views


def n_factors_of(state: State) -> int:
    """The number of factors, which all views share."""
    return int(next(iter(state.values())).weights.mean.shape[1])


def keep(state: State, factors: IntArray) -> State:
    """Forget all factors but these."""
    return {name: view.keep(factors) for name, view in state.items()}


def lean(state: State) -> State:
    """The same without what only the bound needs."""
    return {name: view.lean() for name, view in state.items()}


def complete(state: State) -> State:
    """The same with all that is worked out piece by piece in fit, as it is saved."""
    return {name: replace(view, weights=view.weights.complete()) for name, view in state.items()}
