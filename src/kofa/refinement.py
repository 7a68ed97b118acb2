"""The weights of a non-Gaussian output at their optimum, given the samples' factors.

Coordinate ascent moves such weights by steps that a bound of fixed curvature allows: many small
ones, where the labels are easy. Given q(z) the bound is a concave function of ⟨w_d⟩ and ⟨b_d⟩
alone (their covariance does not depend on the data), and L-BFGS finds its top in far fewer, in
coordinates in which a step of coordinate ascent is the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.optimize import minimize

from kofa.linalg import Array, BoolArray, IntArray
from kofa.observations import Observations, Rows
from kofa.posterior import Known, ViewPosterior, Weights
from kofa.updates import (
    Touch,
    ViewStatistics,
    centred,
    known,
    metric,
    statistics,
    update_weights,
)

_OPTIONS = {"maxiter": 50, "ftol": 1e-5}

Revisit = Callable[[Weights], Touch]


@dataclass(frozen=True, eq=False)
class Chart:
    """⟨w_d⟩ = B diag(root_d) θ_d, and the biases, as one vector θ."""

    weights: Weights  # whose means are replaced
    basis: Array  # (G, K, L)
    root: Array  # (D, L)
    precision: Array  # (D,): κ_d
    n: Array  # (D,)

    @classmethod
    def of(cls, view: ViewPosterior, s: ViewStatistics) -> Chart:
        step = metric(s, view.alpha.mean, view.column_precision, view.precision, view.rho)
        root = np.sqrt(step.scales)
        return cls(view.weights, step.basis, root, view.precision, s.n_column)

    @property
    def bias_root(self) -> Array:
        return 1.0 / np.sqrt(self.n * self.precision)

    def pack(self, mean: Array, y_mean: Array) -> Array:
        """θ of weights (D, K) and biases at the mean of z (D,)."""
        inverse: Array = np.linalg.inv(self.basis).swapaxes(-1, -2).astype(float)
        theta = self.weights.columns.matmul(mean, inverse) / self.root
        return np.concatenate([theta.ravel(), y_mean / self.bias_root])

    def unpack(self, theta: Array) -> Weights:
        n = self.root.size
        along = theta[:n].reshape(self.root.shape) * self.root
        mean = self.weights.columns.matmul(along, self.basis.swapaxes(-1, -2))
        return replace(self.weights, mean=mean, y_mean=theta[n:] * self.bias_root)

    def objective(self, theta: Array, revisit: Revisit) -> tuple[float, Array]:
        """The bound's part that depends on θ, and its gradient.

        Σ g + ½ κ Σ (η − ȳ)² − ½ |θ_w|², with the parabola at its touching point for Σ g.
        """
        w = self.unpack(theta)
        touch = revisit(w)
        n = self.root.size
        kappa, y_mean = self.precision, w.y_mean
        R = touch.R - touch.y_sum[:, None] * w.z_mean[w.columns.label]
        square = touch.y_square - 2.0 * y_mean * touch.y_sum + self.n * y_mean**2
        value = touch.excess - 0.5 * kappa @ square + kappa @ (w.mean * R).sum(axis=1)
        value -= 0.5 * float(theta[:n] @ theta[:n])
        along = w.columns.matmul(kappa[:, None] * R, self.basis) * self.root
        of_bias = kappa * (touch.y_sum - self.n * y_mean) * self.bias_root
        return float(value), np.concatenate([along.ravel() - theta[:n], of_bias])


def refine(view: ViewPosterior, s: ViewStatistics, revisit: Revisit) -> Weights:
    """The weights with the highest bound given q(z); those of the view if none is higher."""
    chart = Chart.of(view, s)

    def negative(theta: Array) -> tuple[float, Array]:
        value, gradient = chart.objective(theta, revisit)
        return -value, -gradient

    begin = chart.pack(view.weights.mean, view.weights.y_mean)
    found = minimize(negative, begin, jac=True, method="L-BFGS-B", options=_OPTIONS)
    return chart.unpack(found.x)


# ---------------------------------------------------------------- the scale of the weights

SIGNALS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)  # prior variances of η to try
_MOST_ROWS = 600  # a scale needs no more
_STRATA = 8  # columns by whose values these are drawn
_STEP = 1e-4  # of a difference quotient


def choose_scale(
    view: ViewPosterior, data: Observations, Z: Array, energy: Array, rng: np.random.Generator
) -> Known:
    """Precisions α_k ∝ 1/energy_k of an output, at the scale that predicts left-out samples best.

    Coordinate ascent cannot find this scale: q(w) q(x) underestimates what the weights could be
    and shrinks them without end.
    """
    rows = sample_rows(data, np.asarray(data.observed.any(axis=1)), rng)
    part, Z = Rows.stack([data.take(rows)]), Z[rows]
    (s,) = centred(statistics(part, known(Z, part.labels)), part)
    (data,) = part.views
    scores: list[float] = []
    for signal in SIGNALS:
        alpha = Known(float(energy.sum()) / signal / energy)
        if not scores:
            weights = update_weights(s, alpha.mean, view.column_precision, view.precision)
        weights = refine(
            replace(view, alpha=alpha, weights=weights), s, partial(Touch.of, data, Z=Z)
        )
        precision = np.outer(view.column_precision, alpha.mean)
        eta = left_out(data, weights.predict(Z), precision, Z)
        scores.append(float(data.tangent(eta)[0].sum()))
        if scores[-1] < max(scores):
            break  # from here on it only gets worse
    return Known(float(energy.sum()) / _peak(scores) / energy)


def _peak(scores: list[float]) -> float:
    """The signal with the highest score, by a parabola through the best and its neighbours."""
    i = int(np.argmax(scores))
    if not 0 < i < len(scores) - 1:
        return SIGNALS[i]
    left, top, right = scores[i - 1 : i + 2]
    shift = 0.5 * (left - right) / (left - 2.0 * top + right)
    step = np.log(SIGNALS[i + 1] / SIGNALS[i - 1]) / 2.0
    # More digits depend on the order of the samples, and mean nothing.
    return float(SIGNALS[i] * np.exp(round(shift, 2) * step))


def sample_rows(data: Observations, qualify: BoolArray, rng: np.random.Generator) -> IntArray:
    """Some of the rows that qualify, at random; each class, or value, keeps its share."""
    rows = np.flatnonzero(qualify)
    if len(rows) <= _MOST_ROWS:
        return rows
    rows = rng.permutation(rows)
    if data.targets is None or data.likelihood is None:
        return np.sort(rows[:_MOST_ROWS])
    targets = data.targets[rows]
    alike = [np.argmax(targets, axis=1)] if data.likelihood.competing else targets.T[:_STRATA]
    rows = rows[np.lexsort(alike)]
    # Evenly spaced among rows in the order of their values
    step = len(rows) / _MOST_ROWS
    return np.sort(rows[((rng.random() + np.arange(_MOST_ROWS)) * step).astype(np.intp)])


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
