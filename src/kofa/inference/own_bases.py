"""Covariances of the weights of columns that have holes of their own, some columns at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kofa.inference.pattern_sums import Packed
from kofa.linalg import Array, IntArray, pack, pieces, triangular_inverse, unpack


@dataclass(frozen=True, eq=False)
class OwnBases:
    """B_d with Σ_wd = B_d B_dᵀ = Tᵀ (γ_d A + τ_d S_d)^-1 T of every column d.

    T is what became of the factors since. The covariances are kept where they are small beside the
    data, and worked out again whenever they are needed where they are not.
    """

    S: Packed  # (D, K(K+1)/2)
    alpha: Array  # (K,)
    gamma: Array  # (D,)
    tau: Array  # (D,)
    turn: Array | None = None  # T: (K, L), None where it is the identity
    packed: Array | None = None  # (D, L(L+1)/2): the covariances, where they are kept

    @property
    def shape(self) -> tuple[int, int, int]:
        k = len(self.alpha)
        return len(self.gamma), k if self.turn is None else self.turn.shape[1], k

    def __len__(self) -> int:
        return len(self.gamma)

    @property
    def pieces(self) -> Iterator[slice]:
        """All columns, so many at a time that their covariances stay in cache."""
        return pieces(len(self), len(self.alpha) ** 2)

    def __getitem__(self, some: Any) -> Array:
        """B_d of some columns (·, L, K), or of one."""
        if isinstance(some, int | np.integer):
            return np.asarray(self[some : some + 1][0])
        S = unpack(self.S[some], len(self.alpha))
        half = inverse_root(S, self.alpha, self.gamma[some], self.tau[some])[0]
        basis = half.swapaxes(-1, -2)
        return basis if self.turn is None else self.turn.T @ basis

    def __iter__(self) -> Iterator[Array]:
        for some in self.pieces:
            yield from self[some]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        whole = np.empty(self.shape)
        for some in self.pieces:
            whole[some] = self[some]
        return whole if dtype is None else whole.astype(dtype)

    def covariances(self, some: Any) -> Array:
        """Σ_wd of some columns: (·, L, L)."""
        if self.packed is not None:
            return unpack(self.packed[some], self.shape[1])
        B = self[some]
        return B @ B.swapaxes(-1, -2)

    def take(self, some: Any) -> OwnBases:
        """Of some columns."""
        packed = None if self.packed is None else self.packed[some]
        gamma, tau = self.gamma[some], self.tau[some]
        return OwnBases(self.S[some], self.alpha, gamma, tau, self.turn, packed)

    def turned(self, by: Array) -> OwnBases:
        """Of other factors: Σ ← byᵀ Σ by."""
        turn = by if self.turn is None else self.turn @ by
        changed, k = replace(self, turn=turn, packed=None), by.shape[1]
        if self.packed is None:
            return changed
        packed = np.empty((len(self), k * (k + 1) // 2))
        for some in self.pieces:
            packed[some] = pack(by.T @ self.covariances(some) @ by)
        return replace(changed, packed=packed)

    def keep(self, factors: IntArray) -> OwnBases:
        """Of these factors only."""
        return self.turned(np.eye(self.shape[1])[:, factors])


def inverse_root(S: Array, alpha: Array, gamma: Array, tau: Array) -> tuple[Array, Array]:
    """H with HᵀH = (γ_d A + τ_d S_d)^-1, lower triangular, and log |det H|: (n, K, K), (n,)."""
    on_diagonal = np.arange(len(alpha))
    precision = tau[:, None, None] * S
    precision[:, on_diagonal, on_diagonal] += gamma[:, None] * alpha
    factor = np.asarray(np.linalg.cholesky(precision), dtype=float)
    return triangular_inverse(factor), -np.log(factor[:, on_diagonal, on_diagonal]).sum(axis=1)
