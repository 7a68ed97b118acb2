"""Relevance vectors: the few landmarks whose kernels explain the outputs.

Landmarks are added one by one. Each adds a direction l, what its kernel has beyond those of the
landmarks chosen before, to the outputs' prior covariance Q; the next is the one with which
ℓ = Σ_d log N(y_d | 0, Q + σ_d² I) grows most. It stops when more landmarks no longer pay for
themselves.

Nothing is computed anew: a step costs one product with the candidates' residual kernels, O(n R).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kofa import tuning
from kofa.linalg import Array, Groups, IntArray, centre, solve_positive

_LEAST = 1e-9  # share of a candidate's own variance; less is rounding, or a duplicate
_NONE = np.full(1, -np.inf)
_NOISE_STEPS = 30  # of a fixed point that moves little after ten


@dataclass(frozen=True, eq=False)
class Selection:
    """Which candidates were chosen, and what each is worth."""

    chosen: IntArray  # in the order in which they were
    relevance: Array  # (R,): what ℓ loses without a chosen one, or would gain by another
    pays: bool = True  # False where none did, and one stands for all

    @property
    def order(self) -> IntArray:
        """0 for the first chosen, −1 for those left out: (R,)."""
        order = np.full(len(self.relevance), -1)
        order[self.chosen] = np.arange(len(self.chosen))
        return order


@dataclass(frozen=True, eq=False)
class Candidates:
    """Kernels between some rows and those of them that may become landmarks."""

    K: Array  # (n, R), weighted
    rows: IntArray  # (R,): which rows they are
    most: int  # of them that may be chosen

    def among(self, rows: IntArray) -> Candidates:
        """Those of some rows, in ascending order, between these rows."""
        here = np.isin(self.rows, rows)
        K = self.K[np.ix_(rows, here)]
        return Candidates(K, np.searchsorted(rows, self.rows[here]), self.most)

    def spanned(self, landmarks: IntArray, known: IntArray) -> Array:
        """Nyström's kernel of all rows by some landmarks, as far as a factor model follows it.

        The factors of the known rows are directions of their similarities to the landmarks, and
        fainter ones than the noise that these are given are lost.
        """
        here = np.isin(self.rows, landmarks)
        k = self.K[:, here]
        _, sigma, V = np.linalg.svd(k[known] - k[known].mean(axis=0), full_matrices=False)
        V = V[sigma**2 > tuning.EXACT_NOISE * (sigma**2).mean()]
        if not len(V):
            return np.zeros((len(k), len(k)))
        F = k @ V.T
        return np.asarray(F @ solve_positive(V @ F[self.rows[here]], F.T, tuning.GRAM_JITTER))


# ---------------------------------------------------------------- with outputs


class Evidence:
    """ℓ as directions are added: P_g = (Q + σ_g² I)^-1 = base_g − U_gᵀ U_g for each noise g."""

    def __init__(self, Y: Array, noise: Array, noises: Groups, base: Array | None) -> None:
        n = len(Y)
        self.noise, self.noises = np.maximum(noise, tuning.VECTOR_LEAST_NOISE), noises
        self.base = None
        if base is not None:
            e, U = np.linalg.eigh(centre(base))
            self.base = [(U / (np.maximum(e, 0.0) + s)) @ U.T for s in self.noise]
        self.U = [np.empty((0, n)) for _ in self.noise]
        Y = Y - Y.mean(axis=0)
        self.residual = np.column_stack(  # P_g y_d
            [self.apply(g, y) for g, y in zip(noises.label, Y.T, strict=True)]
        )

    def apply(self, g: int, x: Array) -> Array:
        """P_g x."""
        out = x / self.noise[g] if self.base is None else self.base[g] @ x
        return np.asarray(out - self.U[g].T @ (self.U[g] @ x))

    def gain(self, square: Array, along: Array) -> Array:
        """ℓ after Q + l lᵀ less ℓ, from lᵀ P_g l (G, R) and lᵀ P_g y_d (C, R)."""
        size = 1.0 + square[self.noises.label]
        return np.asarray(0.5 * (along**2 / size - np.log(size)).sum(axis=0))

    def add(self, steps: Array, size: Array, along: Array) -> None:
        """Let Q be Q + l lᵀ: P_g l (n, G), lᵀ P_g l (G,) and lᵀ P_g y_d (C,) are at hand."""
        for g, root in enumerate(np.sqrt(1.0 + size)):
            self.U[g] = np.vstack([self.U[g], steps[:, g] / root])
        label = self.noises.label
        self.residual -= steps[:, label] * (along / (1.0 + size[label]))


class Pool:
    """The candidates of one view: e_u = k(·, u) less what the chosen explain of it."""

    def __init__(self, candidates: Candidates, evidence: Evidence) -> None:
        self.rows, self.most, self.evidence = candidates.rows, candidates.most, evidence
        self.E = candidates.K.copy()
        self.least = _LEAST * np.maximum(self.own, np.finfo(float).tiny)
        self.chosen: list[int] = []
        e = self.E - self.E.mean(axis=0)
        P_e = [evidence.apply(g, e) for g in range(len(evidence.noise))]
        self.square = np.array([(e * p).sum(axis=0) for p in P_e])  # e_uᵀ P_g e_u: (G, R)
        self.along = evidence.residual.T @ e  # e_uᵀ P_g y_d: (C, R)

    @property
    def own(self) -> Array:
        """e_u(u): (R,)."""
        return np.asarray(self.E[self.rows, np.arange(len(self.rows))])

    def gains(self) -> Array:
        """What ℓ would grow by with each candidate: (R,)."""
        own = self.own
        alive = own > self.least
        own = np.where(alive, own, 1.0)
        gain = self.evidence.gain(np.maximum(self.square / own, 0.0), self.along / np.sqrt(own))
        return np.where(alive, gain, -np.inf)

    def take(self, u: int) -> tuple[Array, Array]:
        """Choose u; the direction l that it adds, centred, and what each e_v had of it: (R,)."""
        alive = self.own[u] > self.least[u]  # of a kernel that is zero, one is kept for the form
        direction = self.E[:, u] / np.sqrt(self.own[u]) if alive else np.zeros(len(self.E))
        a = direction[self.rows]
        self.E -= np.outer(direction, a)
        self.chosen.append(u)
        return direction - direction.mean(), a

    def follow(self, steps: Array, size: Array, along: Array, a: Array | float) -> None:
        """e_v ← e_v − a_v l under the old P_g, then P_g ← P_g − P_g l lᵀ P_g / (1 + lᵀ P_g l)."""
        shared = (steps - steps.mean(axis=0)).T @ self.E  # of the new e_v: (G, R)
        self.square -= a * (2.0 * shared + a * size[:, None]) + shared**2 / (1.0 + size[:, None])
        label = self.evidence.noises.label
        self.along -= along[:, None] * (a + shared[label] / (1.0 + size[label])[:, None])


def by_evidence(
    candidates: Sequence[Candidates],
    Y: Array,
    noise: Array,
    noises: Groups,
    base: Array | None = None,
) -> list[Selection]:
    """The landmarks of each view that explain the outputs.

    Parameters
    ----------
    candidates : one for each view
    Y : array (n, C)
    noise, noises : σ_g², and which of them each column of Y has
    base : array (n, n), the kernels of the views whose landmarks are not chosen
    """
    chosen, pays = _search(candidates, Evidence(Y, noise, noises, base))
    found = _with_relevance(candidates, chosen, Evidence(Y, noise, noises, base))
    return [replace(one, pays=paid) for one, paid in zip(found, pays, strict=True)]


def _search(
    candidates: Sequence[Candidates], evidence: Evidence
) -> tuple[list[list[int]], list[bool]]:
    """The choice of each view in its order, and whether it pays."""
    pools = [Pool(one, evidence) for one in candidates]
    gained, best, path = 0.0, (0.0, 0), list[int]()
    while len(path) - best[1] < tuning.VECTOR_PATIENCE:
        gains = [pool.gains() if len(pool.chosen) < pool.most else _NONE for pool in pools]
        m = int(np.argmax([gain.max() for gain in gains]))
        u = int(np.argmax(gains[m]))
        if not np.isfinite(gains[m][u]):
            break
        gained += float(gains[m][u]) - tuning.VECTOR_PRICE
        _add(pools, m, u)
        path.append(m)
        if gained > best[0]:
            best = (gained, len(path))
    # A view has to have a landmark, even if none pays.
    kept = [max(1, path[: best[1]].count(m)) for m in range(len(pools))]
    chosen = [(pool.chosen or [0])[:k] for pool, k in zip(pools, kept, strict=True)]
    return chosen, [m in path[: best[1]] for m in range(len(pools))]


def _add(pools: Sequence[Pool], m: int, u: int) -> None:
    direction, a = pools[m].take(u)
    evidence = pools[m].evidence
    steps = np.column_stack([evidence.apply(g, direction) for g in range(len(evidence.noise))])
    size, along = direction @ steps, direction @ evidence.residual
    for i, pool in enumerate(pools):
        pool.follow(steps, size, along, a if i == m else 0.0)
    evidence.add(steps, size, along)


def _with_relevance(
    candidates: Sequence[Candidates], chosen: Sequence[Sequence[int]], evidence: Evidence
) -> list[Selection]:
    """What each candidate is worth given the final choice."""
    pools = [Pool(one, evidence) for one in candidates]
    for m, order in enumerate(chosen):
        for u in order:
            _add(pools, m, u)
    found: list[Selection] = []
    for pool, one, order in zip(pools, candidates, chosen, strict=True):
        relevance = np.where(np.isfinite(pool.gains()), pool.gains(), 0.0)
        relevance[order] = _losses(one, np.array(order, dtype=np.intp), evidence)
        found.append(Selection(np.array(order, dtype=np.intp), relevance))
    return found


def _losses(candidates: Candidates, chosen: IntArray, evidence: Evidence) -> Array:
    """What ℓ loses without each chosen landmark, the others staying.

    Without u, Q loses l lᵀ with l = K_nR K_RR^-1 e_u / √(K_RR^-1)_uu.
    """
    if not len(chosen):
        return np.empty(0)
    K = candidates.K[:, chosen]
    own = K[candidates.rows[chosen]]
    inverse = solve_positive(own, np.eye(len(own)), 1e-10)
    L = (K - K.mean(axis=0)) @ inverse / np.sqrt(np.maximum(np.diagonal(inverse), 1e-300))
    loss = np.zeros(len(chosen))
    for g in range(len(evidence.noise)):
        columns = evidence.noises.label == g
        left = np.clip(1.0 - (L * evidence.apply(g, L)).sum(axis=0), 1e-12, 1.0)
        along = (evidence.residual[:, columns].T @ L) ** 2
        loss += 0.5 * (along / left + np.log(left)).sum(axis=0)
    return loss


# ---------------------------------------------------------------- how well a choice predicts


def squared_errors(
    candidates: Sequence[Candidates],
    Y: Array,
    noise: Array,
    noises: Groups,
    base: Array | None,
    known: IntArray,
) -> Array:
    """(y − ŷ)² of all other rows, predicted from landmarks chosen among the known ones."""
    some = [one.among(known) for one in candidates]
    own = None if base is None else base[np.ix_(known, known)]
    chosen, _ = _search(some, Evidence(Y[known], noise, noises, own))
    Q = np.zeros((len(Y), len(Y))) if base is None else base
    for one, part, order in zip(candidates, some, chosen, strict=True):
        Q = Q + one.spanned(known[part.rows[order]], known)
    Q = Q - Q[known].mean(axis=0)
    Q = Q - Q[:, known].mean(axis=1, keepdims=True)
    mean, new = Y[known].mean(axis=0), np.setdiff1d(np.arange(len(Y)), known)
    e, U = np.linalg.eigh(Q[np.ix_(known, known)])
    e, along = np.maximum(e, 0.0), U.T @ (Y[known] - mean)
    weights = U @ (along / (e[:, None] + _noise(e, along, noise, noises)[noises.label]))
    return np.asarray((Y[new] - mean - Q[np.ix_(new, known)] @ weights) ** 2)


def _noise(e: Array, along: Array, noise: Array, noises: Groups) -> Array:
    """σ_g² of outputs along the directions of a kernel with eigenvalues e, by their evidence.

    At the maximum σ² = Σ_r s_r² a_r² / Σ_r s_r, where s_r = σ² / (e_r + σ²) is the share of
    direction r that counts as noise; one direction is the mean.
    """
    noise = np.maximum(noise, tuning.VECTOR_LEAST_NOISE)
    for _ in range(_NOISE_STEPS):
        share = noise[noises.label] / (e[:, None] + noise[noises.label])
        left, free = (share**2 * along**2).sum(axis=0), share.sum(axis=0) - 1.0
        noise = np.maximum(noises.sum(left) / np.maximum(noises.sum(free), 1.0), _LEAST)
    return noise


# ---------------------------------------------------------------- without outputs


def by_residual(candidates: Candidates) -> Selection:
    """Landmarks that span the kernel: one by one, the candidate that explains most of the rest.

    The relevance is the variance of the kernel over the rows that each adds, or would add.
    """
    E, rows = candidates.K.copy(), candidates.rows
    index = np.arange(len(rows))
    total = float(E[rows, index].sum())
    least = _LEAST * np.maximum(E[rows, index], np.finfo(float).tiny)
    chosen, relevance = list[int](), np.zeros(len(rows))
    while True:
        own = E[rows, index]
        adds = np.where(own > least, (E**2).sum(axis=0) / np.where(own > least, own, 1.0), 0.0)
        enough = len(chosen) >= candidates.most or own.sum() <= tuning.VECTOR_RESIDUAL * total
        if chosen and (enough or not adds.any()):
            break
        u = int(np.argmax(adds))
        relevance[u] = adds[u]
        direction = E[:, u] / np.sqrt(max(own[u], np.finfo(float).tiny))
        E -= np.outer(direction, direction[rows])
        chosen.append(u)
    others = np.setdiff1d(index, chosen)
    relevance[others] = adds[others]
    return Selection(np.array(chosen, dtype=np.intp), relevance)
