"""Scales that predict held-out samples best."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from kofa import tuning
from kofa.inference.global_step import update_weights
from kofa.inference.local_step import known
from kofa.inference.observations import Observations, Rows
from kofa.inference.posterior import Known, ViewPosterior
from kofa.inference.statistics import ViewSums, centred, statistics
from kofa.inference.surrogate import refine
from kofa.linalg import Array, BoolArray, IntArray

STRATA = 8  # columns by whose values these are drawn
_STEP = 1e-4  # of a difference quotient


def choose_scale(view: ViewPosterior, data: Observations, Z: Array, energy: Array) -> Known:
    """Precisions α_k ∝ 1/energy_k of an output, at the scale that predicts left-out samples best.

    Coordinate ascent cannot find this scale: q(w) q(x) underestimates what the weights could be
    and shrinks them without end.
    """
    rows = Rows.stack({"output": data})
    (s,) = centred(statistics(rows, known(Z, rows.labels))).values()
    sums_at, total = partial(ViewSums.touching, data, Z=Z), float(energy.sum())
    first = Known(total / tuning.SIGNALS[len(tuning.SIGNALS) // 2] / energy)
    weights = update_weights(s, first.mean, view.column_precision, view.precision)

    def score(signal: float) -> float:
        nonlocal weights  # from where the next search goes on
        alpha = Known(total / signal / energy)
        weights = refine(replace(view, alpha=alpha, weights=weights), s, sums_at)
        precision = np.outer(view.column_precision, alpha.mean)
        eta = left_out(data, weights.predict(Z), precision, Z)
        return float(data.tangent(eta)[0].sum())

    return Known(total / _best_signal(_uphill(score)) / energy)


def _uphill(score: Callable[[float], float]) -> dict[int, float]:
    """Scores of the signals on the way from the middle one to a peak, and just beyond it."""
    middle = len(tuning.SIGNALS) // 2
    scores = {i: score(tuning.SIGNALS[i]) for i in (middle, middle + 1)}
    step = 1 if scores[middle + 1] > scores[middle] else -1
    i = max(scores, key=scores.__getitem__) + step
    while 0 <= i < len(tuning.SIGNALS):
        scores[i] = score(tuning.SIGNALS[i])
        if scores[i] < scores[i - step]:
            break  # from here on it only gets worse
        i += step
    return scores


def _best_signal(scores: Mapping[int, float]) -> float:
    """The signal with the highest score, by a parabola through the best and its neighbours."""
    i = max(scores, key=scores.__getitem__)
    if i - 1 not in scores or i + 1 not in scores:
        return tuning.SIGNALS[i]
    left, top, right = (scores[j] for j in (i - 1, i, i + 1))
    shift = 0.5 * (left - right) / (left - 2.0 * top + right)
    step = np.log(tuning.SIGNALS[i + 1] / tuning.SIGNALS[i - 1]) / 2.0
    # More digits depend on the order of the samples, and mean nothing.
    return float(tuning.SIGNALS[i] * np.exp(round(shift, 2) * step))


def sample_rows(data: Observations, qualify: BoolArray, rng: np.random.Generator) -> IntArray:
    """Some of the rows that qualify, at random; each class, or value, keeps its share."""
    rows = np.flatnonzero(qualify)
    if len(rows) <= tuning.HELD_OUT_ROWS:
        return rows
    rows = rng.permutation(rows)
    if data.targets is None or data.likelihood is None:
        return np.sort(rows[: tuning.HELD_OUT_ROWS])
    targets = data.targets[rows]
    alike = [np.argmax(targets, axis=1)] if data.likelihood.competing else targets.T[:STRATA]
    rows = rows[np.lexsort(alike)]
    # Evenly spaced among rows in the order of their values
    step = len(rows) / tuning.HELD_OUT_ROWS
    return np.sort(rows[((rng.random() + np.arange(tuning.HELD_OUT_ROWS)) * step).astype(np.intp)])


def left_out(
    data: Observations, eta: Array, precision: Array, Z: Array, copies: float = 1.0
) -> Array:
    """η_n of a fit without sample n, by one Newton step from the fit to all samples: (N, D).

    Without n, η_n moves by −h g′ / (1 − λ h), with λ the curvature −g″ at η_n and
    h = z_nᵀ (γ_d A + Σ λ z zᵀ)^-1 z_n. `precision` (D, K) is γ_d α_k. Each sample may stand for
    several in the fit.
    """
    eta = eta.copy()
    _, slope = data.tangent(eta)
    curvature = _curvature(data, eta, slope)
    X = np.column_stack([Z, np.ones(len(Z))])
    precision = np.broadcast_to(precision, (eta.shape[1], Z.shape[1]))
    for d, weight in enumerate(curvature.T):
        prior = np.diag(np.append(precision[d], _STEP))  # the bias has a flat prior, or nearly
        H = prior + copies * (X * weight[:, None]).T @ X
        h = (X * np.linalg.solve(H, X.T).T).sum(axis=1)
        eta[:, d] -= h * slope[:, d] / np.maximum(1.0 - weight * h, 1e-3)
    return eta


def _curvature(data: Observations, eta: Array, slope: Array) -> Array:
    """−∂²g/∂η² of each entry, by differences; columns that do not compete are moved together.

    Columns that compete rise at each other's cost. Were they all alike, their Hessian would have
    the same eigenvalue in all directions that matter: its diagonal times n/(n − 1).
    """
    n = eta.shape[1]
    assert data.likelihood is not None
    competing = data.likelihood.competing
    moves = np.eye(n) if competing else np.ones((1, n))
    changes = sum(move * (slope - data.tangent(eta + _STEP * move)[1]) for move in moves)
    return np.asarray(np.maximum(changes / _STEP, 0.0) * (n / (n - 1) if competing else 1.0))
