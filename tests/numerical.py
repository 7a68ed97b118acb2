"""Integrals and derivatives by brute force."""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad_vec
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr


def integrate_cone(ahead, ratio):
    """log E Π Φ(ratio u + ahead) over u ~ N(0, 1) and its slopes, by adaptive integration.

    The integrand falls from its peak at least as fast as a standard normal.
    """

    def log_h(u):
        return log_ndtr(ratio * u + ahead).sum() - 0.5 * u * u

    def integrand(u):
        x = ratio * u + ahead
        mills = np.exp(-0.5 * x * x - 0.5 * np.log(2 * np.pi) - log_ndtr(x))
        return np.exp(log_h(u) - top) * np.append(1.0, mills)

    peak = minimize_scalar(lambda u: -log_h(u)).x
    top = log_h(peak)
    total = quad_vec(
        integrand, peak - 12, peak + 12, points=[peak - 1, peak, peak + 1], epsrel=1e-10
    )[0]
    return top + np.log(total[0]) - 0.5 * np.log(2 * np.pi), total[1:] / total[0]


def ahead_of(eta, label):
    """How far the label is ahead of its competitors, and which those are."""
    others = np.arange(len(eta)) != label
    return (eta[label] - eta)[others], others


def differences(function, theta, h=1e-3):
    """∂ function / ∂θ by central differences of fourth order."""
    out = np.empty(len(theta))
    for i in range(len(theta)):
        step = np.zeros(len(theta))
        step[i] = h
        near = function(theta + step) - function(theta - step)
        far = function(theta + 2 * step) - function(theta - 2 * step)
        out[i] = (8 * near - far) / (12 * h)
    return out
