"""The factors that carry the outputs.

The prior N(0, I) of z is the same after any rotation z′ = Qz, and so are all predictions. With
outputs, Q is chosen so that the first factors alone carry them, and the others are private to the
inputs. The state stays as the loop left it, where its precisions are diagonal: Q is applied where
results are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kofa.inference.engine import Engine, Latents
from kofa.inference.posterior import Known, State, ViewPosterior, Weights
from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, by_rows

# What the rank of outputs does not count: of the strongest direction, and of the outputs' spread.
_NO_PART, _NOTHING = 1e-9, 1e-6
_EVEN = 1e-6  # cubes of weights that cancel to this share have no sign


@dataclass(frozen=True, eq=False)
class Basis:
    """Rows of Q (L, K), the predictive ones first."""

    Q: Array
    n_predictive: int = 0

    @property
    def n_factors(self) -> int:
        return len(self.Q)

    def first(self, n_factors: int | None) -> Basis:
        """The first factors only, if there are more."""
        if n_factors is None or n_factors >= self.n_factors:
            return self
        return Basis(self.Q[:n_factors], min(self.n_predictive, n_factors))

    @cached_property
    def _is_identity(self) -> bool:
        return self.Q.shape[0] == self.Q.shape[1] and bool((np.eye(len(self.Q)) == self.Q).all())

    def of_samples(self, Z: Array) -> Array:
        """z′ of samples (N, K): (N, L)."""
        return Z if self._is_identity else by_rows(Z, self.Q.T)

    def of_latents(self, engine: Engine, Z: Latents) -> Latents:
        """The same of factors that an engine has."""
        return Z if self._is_identity else engine.rotate(Z, self.Q, np.zeros(self.Q.shape[1]))

    def of_covariances(self, covariance: Array) -> Array:
        """Q Σ Qᵀ of covariances (·, K, K): (·, L, L)."""
        return covariance if self._is_identity else self.Q @ covariance @ self.Q.T

    def of_weights(self, weights: Weights) -> Weights:
        """q(w) along the factors that users see."""
        return weights.transform(self.Q.T, self.Q, np.zeros(self.Q.shape[1]))

    def embedded(self, view: ViewPosterior) -> ViewPosterior:
        """A view that was explained by these factors alone, in the space of all: (L,) to (K,)."""
        Q = self.Q
        weights, flat = view.weights.transform(Q, Q.T, np.zeros(len(Q))), Known(np.ones(Q.shape[1]))
        return replace(view, weights=weights, alpha=flat, alpha_prior=flat)


def as_found(n_factors: int) -> Basis:
    """The factors as inference ordered them."""
    return Basis(np.eye(n_factors))


def predictive(
    inputs: State, outputs: State, likelihoods: Mapping[str, Likelihood | None]
) -> Basis:
    """The factors on which the outputs depend first, then those that are private to the inputs.

    Each in the order of what they explain, on average over the views, and with the sign that most
    weights have.
    """
    carried = [_of_output(view, likelihoods[name]) for name, view in outputs.items()]
    _, size, V = np.linalg.svd(np.concatenate(carried), full_matrices=True)
    rank = int((size > max(_NO_PART * float(size.max()), _NOTHING)).sum())
    known = [_of_input(view) for view in inputs.values()]
    private = V[rank:]
    explained = np.sum([(W @ private.T).T @ (W @ private.T) for W in known], axis=0)
    _, U = np.linalg.eigh(explained)
    first, others = V[:rank], U.T[::-1] @ private
    return Basis(np.concatenate([_signed(first, carried), _signed(others, known)]), rank)


def _of_output(view: ViewPosterior, likelihood: Likelihood | None) -> Array:
    """⟨W⟩ whose squares are shares in the variance of each column, averaged over these: (D, K).

    Of columns that compete, such as classes, only differences count.
    """
    W = view.weights.mean
    W = W - W.mean(axis=0) if likelihood is not None and likelihood.competing else W
    total = (W**2).sum(axis=1) + 1.0 / view.precision
    return np.asarray(W / np.sqrt(len(W) * total)[:, None])


def _of_input(view: ViewPosterior) -> Array:
    """⟨W⟩ whose squares are shares in the variance of the view: (D, K)."""
    W = view.weights.mean
    return np.asarray(W / np.sqrt((W**2).sum() + (1.0 / view.precision).sum()))


def _signed(Q: Array, views: Sequence[Array]) -> Array:
    """The rows of Q, each with the sign of the sum of the cubes of its weights.

    Where these cancel, as those of two classes do, the last column decides.
    """
    along = [W @ Q.T for W in views]
    cubes = np.sum([(w**3).sum(axis=0) for w in along], axis=0)
    size = np.sum([(np.abs(w) ** 3).sum(axis=0) for w in along], axis=0)
    last = np.sum([w[-1] for w in along], axis=0)
    sign = np.where(np.abs(cubes) > _EVEN * size, cubes, last)
    return Q * np.where(sign < 0, -1.0, 1.0)[:, None]
