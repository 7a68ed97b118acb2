"""Likelihoods that are not Gaussian, by Gaussian surrogates that are tangent to them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kofa import tuning
from kofa.inference.global_step import residual_of_z
from kofa.inference.observations import Observations
from kofa.inference.posterior import ViewPosterior
from kofa.inference.statistics import ViewStatistics
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
