"""q(z) of samples one by one, also where views are not Gaussian: Newton's method."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kofa.inference.local_step import (
    AT_ONCE,
    Latent,
    augment,
    closed_form,
    local_system_by_pattern,
    pull_of,
)
from kofa.inference.observations import Observations, Rows
from kofa.inference.posterior import State, ViewPosterior
from kofa.linalg import Array, IntArray, by_rows, pack, pack_outer, unpack

_MOST_ROUNDS = 200  # of a row that is projected by itself
_TRUST = 3.0  # times one and the size of η, the most that a step may change it
_OVERSHOOT = 0.1  # beyond the top of a line, relative to the slope where it begins
_DIFFERENCE = 1e-5  # between slopes of which curvatures are made
_WITHIN = 1e-9  # of the prior spread of the factors: a step that ends the search
_ROUNDING = 1e-6


def project(rows: Rows, state: State) -> Latent:
    """q(z_n) of every row by itself: where pseudo-observations and local step agree.

    The state may have more views than the rows.

    There the gradient of a concave function of z_n is zero, so that Newton's method finds it. Steps
    are cut where curvatures cannot be trusted any more, and halved until they end before the top of
    the line that they follow, or just behind it. Rows stop one by one, with a step that is a small
    part of the factors' prior spread: none depends on the others in its batch.
    """
    e = local_system_by_pattern(state, rows)
    start = augment(rows, state, np.zeros((rows.n_samples, e.n_factors)))
    pull = pull_of(start, e, augmented=False) + pull_of(start, e, augmented=True)
    q = closed_form(rows, e, pull, rows.labels.by_rows)
    if not rows.augmented:
        return q
    local = _Local.of(rows, state)
    z, gradient = q.mean, local.gradient(q.mean)
    step, share = np.zeros_like(z), np.ones(len(z))
    active = fresh = np.ones(len(z), dtype=bool)
    for _ in range(_MOST_ROUNDS):
        local.put_newton_steps(step, np.flatnonzero(fresh), z, gradient)
        share = np.where(fresh, local.longest(step, z), share)
        trial = z + share[:, None] * step
        found = local.gradient(trial)
        # Of factors far out the last digits are rounding.
        enough = _WITHIN * np.maximum(1.0, _ROUNDING * np.abs(trial).max(axis=1))
        last = share * np.abs(step).max(axis=1) <= enough
        rises, rose = ((step * slope).sum(axis=1) for slope in (found, gradient))
        good = rises >= -_OVERSHOOT * rose
        taken = active & (good | last)
        z, gradient = (np.where(taken[:, None], a, b) for a, b in ((trial, z), (found, gradient)))
        share = 0.5 * share
        active = active & ~last
        fresh = taken & active
        if not active.any():
            break
    return replace(q, mean=z)


@dataclass(frozen=True, eq=False)
class _Local:
    """Σ g(t, ⟨η⟩) − ½ zᵀ P z + zᵀ h of some rows, which each z_n maximises by itself.

    P and h hold all but the log-likelihoods of the views that are not Gaussian, and of these what
    the covariances of their weights add. Nothing is added here only to be taken away again: far
    out, or of large counts, hardly a digit would be left.
    """

    rows: Rows
    state: State
    P: Array  # (patterns, K, K)
    h: Array  # (N, K)

    @classmethod
    def of(cls, rows: Rows, state: State) -> _Local:
        rest = local_system_by_pattern(state, rows, aside=True)
        h = rest.offset[rows.labels.label] + pull_of(rows, rest, augmented=False)
        unit = np.eye(rest.n_factors)
        return cls(rows, state, unit + unpack(rest.metric, len(unit)), h)

    @property
    def views(self) -> list[tuple[Observations, ViewPosterior]]:
        return [(y, self.state[name]) for name, y in self.rows.views.items() if y.augmented]

    def gradient(self, Z: Array) -> Array:
        slopes = [
            by_rows(data.tangent(view.weights.predict(Z))[1], view.weights.mean)
            for data, view in self.views
        ]
        return np.asarray(self.h - self.rows.labels.by_rows(Z, self.P) + np.sum(slopes, axis=0))

    def longest(self, step: Array, Z: Array) -> Array:
        """The share of each step that changes no η by more than a few times its size."""
        shares = [np.ones(len(Z))]
        for data, view in self.views:
            limit = _TRUST * (1.0 + np.abs(view.weights.predict(Z)))
            change = np.where(data.mask, np.abs(by_rows(step, view.weights.mean.T)), 0.0)
            shares.append(1.0 / np.maximum(1.0, (change / limit).max(axis=1)))
        return np.asarray(np.min(shares, axis=0))

    def put_newton_steps(self, step: Array, which: IntArray, Z: Array, gradient: Array) -> None:
        """Replace the steps of some rows."""
        k = Z.shape[1]
        parts = np.array_split(which, 1 + len(which) * k**2 // AT_ONCE) if len(which) else []
        for some in parts:
            bends = [_bend(data.take(some), view, Z[some]) for data, view in self.views]
            H = self.P[self.rows.labels.label[some]] + unpack(np.sum(bends, axis=0), k)
            step[some] = np.linalg.solve(H, gradient[some][..., None])[..., 0]


def _bend(data: Observations, view: ViewPosterior, Z: Array) -> Array:
    """Σ_d λ_nd w_d w_dᵀ of every row, λ = −∂²g/∂η² by differences, packed."""
    W, eta = view.weights.mean, view.weights.predict(Z)
    size = _DIFFERENCE * np.maximum(1.0, np.abs(eta))
    slope = data.tangent(eta)[1]
    assert data.likelihood is not None
    if data.likelihood.competing:  # a change of one column changes the slopes of all
        moved = [data.tangent(eta + size * column)[1] for column in np.eye(len(W))]
        bends = np.stack([slope - one for one in moved], axis=1) / size[..., None]
        return pack(W.T @ (0.5 * (bends + bends.swapaxes(1, 2))) @ W)
    bend = np.clip((slope - data.tangent(eta + size)[1]) / size, 0.0, view.precision)
    total = np.zeros((len(Z), W.shape[1] * (W.shape[1] + 1) // 2))
    for some in np.array_split(np.arange(len(W)), 1 + len(W) * total.shape[1] // AT_ONCE):
        total += by_rows(bend[:, some], pack_outer(W[some]))
    return total
