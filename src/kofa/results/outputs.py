"""Outputs as the factors of the inputs explain them: for tables, pictures and `reconstruct`.

The factors have not seen the outputs. Each output is a regression on posterior means of z, which
count as known, with the evidence by which every view is predicted; factors are its only source. A
factor counts by what the inputs' kernels have along it, so that through kernels the factors say
what the kernels say. What z leaves open is in the noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kofa import tuning
from kofa.inference.local_step import Latent
from kofa.inference.observations import Rows
from kofa.inference.posterior import Gamma, Known, Precision, State, ViewPosterior, Weights
from kofa.inference.predictive import Basis
from kofa.inference.predictor import blur_in
from kofa.inference.projection import project
from kofa.linalg import Array, BoolArray, Groups
from kofa.predictive.inputs import Inputs, Source
from kofa.predictive.regression import Regression
from kofa.predictive.view import FACTORS, follow
from kofa.preparation.prepare import FittedView
from kofa.results.questions import with_columns_seen_alone

_LEAST_ENERGY = 1e-12  # of a factor, relative to the strongest
_TINY = 1e-100


@dataclass(frozen=True, eq=False)
class FactorsOfRows:
    """Factors of rows that have something of an input."""

    Z: Array  # (n, K)
    covariance: Array  # (K, K): the mean of what is left open of them
    told: BoolArray  # (n,): which rows these are; of others nothing is known
    energy: Array  # (K,): what the inputs have along each

    @classmethod
    def of(
        cls,
        views: Mapping[str, FittedView],
        state: State,
        values: Mapping[str, Array],
        energy: Array,
    ) -> FactorsOfRows:
        """From values in the user's units; `state`: of the inputs."""
        observed = {name: views[name].observe(values[name].copy()) for name in state}
        q = project(Rows.stack(observed), state)
        told = np.any([views[name].seen(values[name]) for name in state], axis=0)
        least = max(_LEAST_ENERGY * float(energy.max()), _TINY)
        return cls(q.mean, _mean_covariance(q, told), told, np.maximum(energy, least))

    def along(self, basis: Basis) -> FactorsOfRows:
        """Those that users see."""
        Q = basis.Q
        return replace(
            self, Z=self.Z @ Q.T, covariance=Q @ self.covariance @ Q.T, energy=Q**2 @ self.energy
        )

    def explain(self, view: FittedView, values: Array) -> ViewPosterior:
        """An output by these factors."""
        encoded = view.encoding("float64")(values)
        encoded = with_columns_seen_alone(encoded, self.told & view.seen(values))
        rows = ~np.isnan(encoded).all(axis=1)
        root = np.sqrt(self.energy)
        source = Source.of(self.Z[rows] * root)
        inputs = Inputs.alike(int(rows.sum()), {FACTORS: source})
        found, _ = follow(inputs.spectrum, encoded[rows], view.layer)
        weights = _weights(found, inputs, root, self.Z[rows].mean(axis=0))
        flat = Known(np.ones(len(root)))
        off = Gamma(np.ones(()), np.ones(()))
        tau, blurred = _noise(found, view), blur_in(weights, self.covariance)
        learnt = view.likelihood is None or view.likelihood.curvature is None
        return ViewPosterior(
            weights, flat, None, tau, flat, off, tau, blurred=blurred * float(learnt)
        )


def _mean_covariance(q: Latent, told: BoolArray) -> Array:
    number = np.bincount(q.patterns.label[told], minlength=len(q.covariance))
    share = number / max(int(told.sum()), 1)
    return np.asarray(np.einsum("p,pkl->kl", share, q.covariance))


def _weights(found: Regression, inputs: Inputs, root: Array, z_mean: Array) -> Weights:
    """q(w_d, b_d) along z: w_d = E^½ v_d, of which v_d has the covariance s_d λ_d (ΦᵀΦ + λ_d)⁻¹."""
    scaled = root / inputs.sources[FACTORS].unit
    e, V = np.linalg.eigh(inputs.features.T @ inputs.features)
    lam = (found.ratio / found.share)[:, None]
    n_columns = len(found.mean)
    return Weights(
        mean=(scaled[:, None] * (inputs.map.projection @ found.coefficients)).T,
        basis=(scaled[:, None] * V)[None],
        scales=found.scale[:, None] * lam / (np.maximum(e, 0.0) + lam),
        columns=Groups.one(n_columns),
        y_mean=found.mean,
        z_mean=z_mean[None],
        bias_variance=found.scale * lam[:, 0] / found.n_rows,
    )


def _noise(found: Regression, view: FittedView) -> Precision:
    """τ of each column, or of all; of kinds that are not Gaussian the likelihood's own."""
    if view.layer.curvature is not None:
        return Known(np.broadcast_to(view.layer.curvature, found.mean.shape))
    shape = 0.5 * np.maximum(found.share * found.n_rows - 1.0, 1.0)
    rate = shape * np.maximum(found.noise, tuning.NOISE_FLOOR)
    if not view.role.noise_per_column:
        shape, rate = shape.sum(keepdims=True), rate.sum(keepdims=True)
    return Gamma(shape, rate)
