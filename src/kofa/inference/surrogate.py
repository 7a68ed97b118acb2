"""Likelihoods that are not Gaussian, by Gaussian surrogates that are tangent to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from kofa import tuning
from kofa.inference.global_step import metric, residual_of_z
from kofa.inference.observations import Observations
from kofa.inference.posterior import ViewPosterior, Weights
from kofa.inference.statistics import ViewStatistics, ViewSums
from kofa.linalg import Array

_LEAST_BLUR = 1e-6


def cubature_steps(view: ViewPosterior, s: ViewStatistics, competing: bool) -> Array:
    """Steps in η that stand for the uncertainty of z in a cubature: (·, D).

    √3 standard deviations, in all columns at once, or along the principal axes of columns that
    compete, which vary together.
    """
    q = view.weights
    if not competing:
        return np.asarray(np.sqrt(3.0 * np.maximum(residual_of_z(q, s), 0.0) / s.n_column)[None])
    size, axes = np.linalg.eigh(q.mean @ (s.S - s.M)[0] @ q.mean.T / s.n[0])
    return np.asarray(np.sqrt(3.0 * np.maximum(size, 0.0))[:, None] * axes.T)


def expected_drop(data: Observations, eta: Array, steps: Array) -> float:
    """Σ_n [g(η) − mean of g(η ± step)], summed over the steps."""
    middle = data.tangent(eta)[0].sum()
    ends = (data.tangent(eta + sign * step)[0].sum() for step in steps for sign in (1.0, -1.0))
    return float(len(steps) * middle - 0.5 * sum(ends))


def update_curvature_ratio(view: ViewPosterior, s: ViewStatistics, fall: float) -> ViewPosterior:
    """Let ρ be such that the likelihood term is its exact expectation over z, Σ E g.

    The cubature has Σ E g = Σ g − fall/3, the term Σ g − ½ ρ Σ κ var. ρ only ever falls, so that
    the bound only ever rises. It is rounded up to few values: fits that differ by little, such as
    those that begin with some of the samples or with all, then end with the same.
    """
    variance = float(view.precision @ residual_of_z(view.weights, s))
    if variance <= _LEAST_BLUR * s.n.sum():
        return view  # the samples are known; differences of g would be rounding
    step = tuning.CURVATURE_RATIO_TOL
    ratio = float(np.ceil(2.0 / 3.0 * fall / variance / step)) * step
    return replace(view, rho=min(view.rho, max(ratio, tuning.LEAST_CURVATURE_RATIO)))


def rounded_away(view: ViewPosterior, s: ViewStatistics, fall: float) -> float:
    """By how much Σ E g exceeds the likelihood term, whose ρ is rounded: ½ ρ Σ κ var − fall/3."""
    variance = float(view.precision @ residual_of_z(view.weights, s))
    return 0.5 * view.rho * variance - fall / 3.0


_OPTIONS = {"maxiter": 50, "ftol": 1e-5}


SumsAt = Callable[[Weights], ViewSums]


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

    def objective(self, theta: Array, surrogate_sums: SumsAt) -> tuple[float, Array]:
        """The bound's part that depends on θ, and its gradient.

        Σ g + ½ κ Σ (η − ȳ)² − ½ |θ_w|², with the parabola at its point of tangency for Σ g.
        """
        w = self.unpack(theta)
        sums = surrogate_sums(w)
        n = self.root.size
        kappa, y_mean = self.precision, w.y_mean
        R = sums.R - sums.y_sum[:, None] * w.z_mean[w.columns.label]
        square = sums.y_square - 2.0 * y_mean * sums.y_sum + self.n * y_mean**2
        value = sums.excess - 0.5 * kappa @ square + kappa @ (w.mean * R).sum(axis=1)
        value -= 0.5 * float(theta[:n] @ theta[:n])
        along = w.columns.matmul(kappa[:, None] * R, self.basis) * self.root
        of_bias = kappa * (sums.y_sum - self.n * y_mean) * self.bias_root
        return float(value), np.concatenate([along.ravel() - theta[:n], of_bias])


def refine(view: ViewPosterior, s: ViewStatistics, surrogate_sums: SumsAt) -> Weights:
    """The weights with the highest bound given q(z); those of the view if none is higher."""
    chart = Chart.of(view, s)

    def negative(theta: Array) -> tuple[float, Array]:
        value, gradient = chart.objective(theta, surrogate_sums)
        return -value, -gradient

    begin = chart.pack(view.weights.mean, view.weights.y_mean)
    found = minimize(negative, begin, jac=True, method="L-BFGS-B", options=_OPTIONS)
    return chart.unpack(found.x)
