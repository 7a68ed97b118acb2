"""One class of several: the largest of noisy η wins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import log_ndtr

from kofa.data.tables import Table
from kofa.errors import DataError
from kofa.likelihoods.base import Likelihood
from kofa.likelihoods.cubature import NODES, gauss_hermite, inverse_mills, row_slices
from kofa.linalg import LOG_2PI, Array, IntArray

# Nodes of a quadrature (tests/test_likelihoods.py): errors below 1e-8, and below 1e-6 where the
# classes differ in variance.
_NODES_UNEQUAL = 64
_ALL_BUT_LINEAR = -1e4  # from here on down φ/Φ is −x, and differences from it are rounding


@dataclass(frozen=True, eq=False)
class Multinomial(Likelihood):
    """Multinomial probit (Girolami & Rogers 2006): the class is the largest of η_c + N(0, 1).

    g = log E_u Π_{j≠t} Φ(u + η_t − η_j), u ~ N(0, 1): log-concave in u, integrated by
    Gauss–Hermite quadrature around its mode. As log-volume of a cone under N(η, I), g has a
    Hessian between −I and 0, so κ = 1.
    """

    reads_labels: ClassVar[bool] = True
    competing: ClassVar[bool] = True
    n_classes: int

    @classmethod
    def resolve(cls, table: Table, by_column: bool = True) -> Self:  # noqa: ARG003
        n_classes, n_labels = len(table.classes), int((~np.isnan(table.dense)).sum())
        if n_classes < 2:
            what = f"expected at least two classes but all labels are {table.classes.tolist()[0]!r}"
            raise DataError(what, table.name, cure="leave the view out")
        if n_classes == n_labels and n_labels > 2:
            what = f"each of its {n_labels} labels occurs once, as names of samples do"
            raise DataError(what, table.name, cure="leave the view out", kinds=["Real"])
        return cls(n_classes)

    def encode(self, values: Array) -> Array:
        """One column per class, one where it is the label."""
        targets = (values == np.arange(self.n_classes)).astype(float)
        targets[np.isnan(values[:, 0])] = np.nan
        return np.asarray(targets)

    def widths(self, n_columns: int) -> tuple[int, int]:  # noqa: ARG002
        return self.n_classes, self.n_classes

    def fault(self, n_columns: int) -> str:
        return "it has several columns of labels" if n_columns != 1 else ""

    @property
    def curvature(self) -> Array:
        return np.ones(self.n_classes)

    def tangent(self, targets: Array, eta: Array) -> tuple[Array, Array]:
        return self.log_predictive(targets, eta, np.zeros(eta.shape))

    def at_mean(self, mean: Array) -> Array:
        """Where these are the probabilities, by Newton's method for each class.

        P(c) = ∫ φ(u − η_c) Π_{j≠c} Φ(u − η_j) du. Half of each step is taken, since what one class
        gains the others lose: two would meet in the middle.
        """
        eta, wanted = np.zeros(len(mean)), np.log(np.maximum(mean, 1e-12))
        for _ in range(_AT_MEAN_STEPS):
            x = np.arange(eta.min() - 9.0, eta.max() + 9.0, 0.25) - eta[:, None]  # (C, nodes)
            log_phi = log_ndtr(x)
            density = np.exp(log_phi.sum(axis=0) - log_phi - 0.5 * (x**2 + LOG_2PI))
            p = density.sum(axis=1)
            slope = (x * density).sum(axis=1) / p  # of log P(c) in η_c
            eta = eta + 0.5 * (wanted - np.log(0.25 * p)) / np.maximum(slope, 0.1)
            eta -= eta.mean()
        return eta

    def predict(self, mean: Array, variance: Array) -> Array:
        return np.asarray(
            np.argmax(self.probability(mean, variance), axis=1)[:, None].astype(float)
        )

    def probability(self, mean: Array, variance: Array) -> Array:
        sigma = np.sqrt(1.0 + variance)
        each = [np.full(len(mean), c) for c in range(self.n_classes)]
        log_p = [_race(mean, sigma, label, _NODES_UNEQUAL)[0] for label in each]
        p = np.exp(np.stack(log_p, axis=1))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def log_predictive(self, targets: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
        label, rows = np.argmax(targets, axis=1), np.arange(len(mean))
        sigma = np.sqrt(1.0 + variance)
        log_p, pressure = _race(mean, sigma, label, NODES)
        value, slope = np.zeros(mean.shape), -pressure / sigma
        slope[rows, label] = -slope.sum(axis=1)
        value[rows, label] = log_p
        return value, slope


_AT_MEAN_STEPS = 60  # errors halve with each
_FAR = 100.0  # ahead of a competitor by so much that it does not count


def _race(mean: Array, sigma: Array, label: IntArray, n_nodes: int) -> tuple[Array, Array]:
    """log P(η_label is the largest) under N(mean, sigma²), and `_cone`'s slopes, row by row."""
    log_p, slope = np.empty(len(mean)), np.empty(mean.shape)
    for where in row_slices(len(mean), n_nodes * mean.shape[1]):
        m, s, own = mean[where], sigma[where], label[where]
        rows = np.arange(len(own))
        ahead = (m[rows, own][:, None] - m) / s
        ratio = s[rows, own][:, None] / s
        ahead[rows, own], ratio[rows, own] = _FAR, 0.0
        log_p[where], slope[where] = _cone(ahead, ratio, n_nodes)
    return log_p, slope


def _cone(ahead: Array, ratio: Array, n_nodes: int) -> tuple[Array, Array]:
    """log E Π_j Φ(ratio_j u + ahead_j) over u ~ N(0, 1), and minus its slope in each −ahead_j.

    Both arguments (n, C). The integrand is log-concave; its mode and curvature there place the
    nodes, so that far tails are as exact as the middle.
    """
    nodes, log_weights = gauss_hermite(n_nodes)
    mode, width = _peak(ahead, ratio)
    u = mode[:, None] + width[:, None] * nodes
    x = ratio[..., None] * u[:, None, :] + ahead[..., None]  # (n, C, nodes)
    log_phi = log_ndtr(x)
    log_h = log_phi.sum(axis=1) - 0.5 * u**2 + log_weights + 0.5 * nodes**2
    top = log_h.max(axis=1, keepdims=True)
    h = np.exp(log_h - top)
    total = h.sum(axis=1)
    # E φ(x)/Φ(x) under the normalised integrand
    far = np.nonzero(x < _ALL_BUT_LINEAR)
    limit = -x[far]
    np.multiply(x, x, out=x)
    np.add(x, LOG_2PI, out=x)
    x *= -0.5
    x -= log_phi
    x[far] = 0.0
    mills = np.exp(x)
    mills[far] = limit
    slope = np.einsum("ncq,nq->nc", mills, h / total[:, None])
    return top[:, 0] + np.log(total) + np.log(width), slope


def _peak(ahead: Array, ratio: Array) -> tuple[Array, Array]:
    """Mode of −u²/2 + Σ log Φ(ratio u + ahead), and the width of a Gaussian of its curvature.

    The slope is convex and falling and the start left of its root, so that Newton's steps
    approach it from there.
    """
    ratio = np.broadcast_to(ratio, ahead.shape)
    u = np.maximum(0.0, (-ratio * ahead / (1.0 + ratio**2)).max(axis=1))
    curvature = np.ones_like(u)
    for _ in range(6):
        x = ratio * u[:, None] + ahead
        mills = inverse_mills(x)
        bend = np.where(x < _ALL_BUT_LINEAR, ratio**2, ratio**2 * mills * (mills + x))
        curvature = 1.0 + bend.sum(axis=1)
        u = u + ((ratio * mills).sum(axis=1) - u) / curvature
    return u, 1.0 / np.sqrt(curvature)
