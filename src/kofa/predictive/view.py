"""One view of a sample from what else is known of it: how it is found, and its Gaussian layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from kofa.kernels.outputs import resolution
from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, IntArray, by_rows
from kofa.predictive import residuals, tangent
from kofa.predictive.calibration import Calibration, calibrate, surprise
from kofa.predictive.inputs import Inputs, Map, Source, learn
from kofa.predictive.keys import first, ranks_of_columns
from kofa.predictive.observed import Observed
from kofa.predictive.regression import Regression, Spectrum, regress
from kofa.predictive.residuals import Covariance

FACTORS = " factors"  # the source of factors; no view has such a name
_LEARNING_ROWS = 500  # from which the weights of kernels are learnt
_LEARNING_COLUMNS = 300


@dataclass(frozen=True, eq=False)
class Unsure:
    """What rows with one pattern of holes leave open of their features: Σ = T Tᵀ + diag(δ)."""

    rows: IntArray
    T: Array  # (p, ·)
    which: IntArray  # the features that have a variance of their own
    delta: Array  # of these


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of some rows beside the view: their features by source."""

    n: int
    features: Mapping[str, Array]
    beyond: Mapping[str, Array]  # (n,): of k(x, x) of a source, what its features do not hold
    unsure: tuple[Unsure, ...] = ()


@dataclass(frozen=True, eq=False)
class ViewFromOthers:
    """How a view follows from features of the other views, and its columns from each other."""

    map: Map
    regression: Regression
    residuals: Covariance
    calibration: Calibration | None  # of views that are not Gaussian
    open_in_fit: Array  # (D,): mean variance by what rows of the fit leave open, which noise has

    def layer(self, known: Known, own: Observed | None) -> tuple[Array, Array]:
        """Mean and variance of the columns, with their noise where it is Gaussian.

        `own`: what is known of the view itself; such columns are as they are.
        """
        mean, variance = self._from_others(known)
        gaussian = self.calibration is None
        found = self.regression
        # Where views are not Gaussian, g′ / w̄ stands for a residual and 1 / w̄ for the noise.
        std = np.sqrt(variance + found.scale * found.ratio)
        spread = self.residuals.diagonal if gaussian else np.ones(len(found.mean))
        shift, left = np.zeros(mean.shape), np.broadcast_to(spread, mean.shape)
        if own is not None and own.mask.any():
            seen = own.mask
            away = own.values - mean
            if not gaussian:
                away = own.tangent(mean)[1] * found.scale * found.ratio
            shift, rest = self.residuals.conditional(away / std, seen)
            if gaussian:
                left = rest
            else:
                shift = np.where(seen, 0.0, shift)
        mean = mean + std * shift
        if self.calibration is None:
            return mean, std**2 * left
        return self.calibration.of(mean, variance)

    def _from_others(self, known: Known) -> tuple[Array, Array]:
        """Mean and variance but for the noise, nothing of the view itself known."""
        found, sources = self.regression, self.map
        features = sources.of_rows(known.n, known.features)
        along = by_rows(features, sources.projection)
        itself = (features**2).sum(axis=1)
        for name, more in known.beyond.items():
            if name in sources.sources:
                itself = itself + sources.weights[name] * more / sources.sources[name].unit ** 2
        variance = found.variance(along, itself)
        variance += np.maximum(self.left_open(known) - self.open_in_fit, 0.0)
        return found.mean + by_rows(along, found.coefficients), variance

    def left_open(self, known: Known) -> Array:
        """Variance by what rows leave open of their features: (n, D)."""
        variance = np.zeros((known.n, len(self.regression.mean)))
        for some in known.unsure:
            variance[some.rows] += self._of_unsure(some)
        return variance

    def _of_unsure(self, some: Unsure) -> Array:
        """wᵀ Σ w of every column, w its weights of the features: (D,)."""
        by, C = self.map.from_given, self.regression.coefficients
        total = ((some.T.T @ by @ C) ** 2).sum(axis=0)
        own = by[some.which] * np.sqrt(some.delta)[:, None]
        if len(own) > len(C):
            return np.asarray(total + ((own.T @ own @ C) * C).sum(axis=0))
        return np.asarray(total + ((own @ C) ** 2).sum(axis=0))


def explain(
    rows: IntArray, sources: Mapping[str, Source], targets: Array, likelihood: Likelihood
) -> ViewFromOthers:
    """A view, encoded (n, D) and NaN where missing, from the features of others in the same rows.

    `rows`: their ranks, by which some are drawn.
    """
    n, columns, some = len(targets), ranks_of_columns(targets), first(rows, _LEARNING_ROWS)
    few = np.nan_to_num(_standardised(targets)[:, first(columns, _LEARNING_COLUMNS)])
    few = few[:, few.any(axis=0)]
    inputs = Inputs.alike(n, sources)
    if len(sources) > 1 and few.shape[1]:
        inputs = inputs.weighted(learn(sources, few[some], some))
    found, calibration = follow(inputs.spectrum, targets, likelihood)
    seen = ~np.isnan(targets)
    r = np.nan_to_num(found.left_out / found.left_out_std)
    C = residuals.fit(r, seen, rows, columns)
    none = np.zeros((0, 0))
    lean = replace(found, left_out=none, left_out_std=none)
    return ViewFromOthers(inputs.map, lean, C, calibration, np.zeros(len(found.mean)))


def follow(
    spectrum: Spectrum, targets: Array, likelihood: Likelihood
) -> tuple[Regression, Calibration | None]:
    """The regression of a view, encoded (n, D), and how far it may be trusted."""
    data = Observed.of(targets, likelihood)
    if likelihood.curvature is None:
        return regress(spectrum, data.values, data.mask, _rounding(targets)), None
    kappa = np.broadcast_to(likelihood.curvature, targets.shape[1:])
    left = tangent.regress(
        spectrum,
        data.tangent,
        kappa,
        data.mask,
        likelihood.competing,
        data.typical,
        None if likelihood.has("log_predictive") else partial(surprise, data),
    )
    return left.regression, calibrate(data, left)


def _standardised(Y: Array) -> Array:
    """Columns on unit scale; those that do not vary are zero."""
    seen = ~np.isnan(Y)
    n = np.maximum(seen.sum(axis=0), 1)
    away = Y - np.where(seen, Y, 0.0).sum(axis=0) / n
    spread = np.sqrt(np.where(seen, away**2, 0.0).sum(axis=0) / n)
    varies = spread > 1e-12
    return np.asarray(np.where(varies, away / np.where(varies, spread, 1.0), 0.0 * away))


def _rounding(Y: Array) -> Array:
    """Variance of columns by how finely they were measured: (D,)."""
    return np.array([resolution(y[~np.isnan(y)]) for y in Y.T]) ** 2 / 12.0
