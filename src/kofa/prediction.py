"""What a fitted model says about samples: their factors, and every view from those."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from kofa.encoding import FittedView
from kofa.errors import warn
from kofa.kernels import KernelMap
from kofa.likelihoods import Gaussian
from kofa.linalg import Array
from kofa.observations import Rows
from kofa.posterior import State, ViewPosterior
from kofa.scaling import REACH
from kofa.tables import Samples, Table
from kofa.updates import Latent, evidence, linear_predictor, settle

_ROWS_AT_A_TIME = 1024  # new samples are projected in batches of this size
_LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class Prediction:
    """A fitted model applied to some tables."""

    views: Mapping[str, FittedView]
    state: State
    tables: Mapping[str, Table]
    samples: Samples

    @property
    def n_factors(self) -> int:
        return int(self.state[0].weights.mean.shape[1])

    def posterior(self, name: str) -> ViewPosterior:
        return self.state[list(self.views).index(name)]

    def warn_of_far_samples(self) -> None:
        """Say which samples have values that count as less far than they are."""
        for source in dict.fromkeys(self.views[name].source for name in self.tables):
            mine = [name for name in self.tables if self.views[name].source == source]
            far = [self.views[name].encoder.beyond(self.tables[name].values) for name in mine]
            rows = np.flatnonzero(np.any(far, axis=0))
            if len(rows):
                warn(
                    f"View {source!r}, {self.tables[mine[0]].row_labels(rows)}: values so far from "
                    f"the data in fit (more than {REACH:g} times their spread, or where the kernel "
                    f"is no finite number) count as less far, and predictions mean little."
                )

    # ------------------------------------------------------------ factors

    def project(self) -> Iterator[tuple[slice, Latent, Mapping[str, Array]]]:
        """q(z) of the samples, batch by batch, and each view's values in the user's units."""
        values = {name: self.samples.spread(table) for name, table in self.tables.items()}
        state = tuple(self.posterior(name) for name in self.tables)
        for start in range(0, self.samples.n, _ROWS_AT_A_TIME):
            batch = {name: y[start : start + _ROWS_AT_A_TIME] for name, y in values.items()}
            rows = Rows.stack([self.views[name].observe(y) for name, y in batch.items()])
            e = evidence(state, tuple(view.columns for view in rows.views))
            for within, block in rows.blocks(rows.block_size(self.n_factors)):
                where = slice(start + within.start, start + within.stop)
                part = {name: y[within] for name, y in batch.items()}
                yield where, settle(block, state, e), part

    # ------------------------------------------------------------ views

    def of_view(
        self, name: str, *functions: Callable[[Array, Array], Array], by_mean: bool = False
    ) -> list[Array]:
        """Functions of the mean and variance of a view's Gaussian layer, for all samples.

        The variance is that of z, w and, where it is learnt, the noise. `by_mean` promises that
        the functions do not use it, and saves its cost.
        """
        layer = self._mean_only if by_mean else self._layer
        layers = (layer(name, q, values) for _, q, values in self.project())
        parts = [[function(*arguments) for function in functions] for arguments in layers]
        if not parts:  # no samples
            none = np.empty((0, self.posterior(name).n_columns))
            return [function(none, none) for function in functions]
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def _mean_only(self, name: str, q: Latent, _: Mapping[str, Array]) -> tuple[Array, Array]:
        mean = self.posterior(name).weights.predict(q.mean)
        return mean, np.zeros_like(mean)

    def _layer(self, name: str, q: Latent, values: Mapping[str, Array]) -> tuple[Array, Array]:
        view, likelihood = self.posterior(name), self.views[name].layer
        mean, variance = linear_predictor(q, view.weights, likelihood.competing)
        mean *= self.views[name].sharpness
        if likelihood.curvature is not None:  # the noise is the likelihood's own
            return mean, variance
        variance = variance + view.tau.mean_inverse
        if view.energy is not None:
            variance = variance + self._novelty(view, q, values)[:, None]
        return mean, variance

    def _novelty(self, view: ViewPosterior, q: Latent, values: Mapping[str, Array]) -> Array:
        """Prior variance of an output in directions of new samples that no factor spans.

        z sees of a new sample only what it shares with the landmarks. The spectral prior of the
        output gives the sample a variance ∝ k(x, x), of which the factors carry Σ_k ⟨z_k²⟩/α_k; a
        Gaussian process keeps the rest as uncertainty, and so does this.
        """
        variance = 1.0 / view.alpha.mean
        diagonal = np.diagonal(q.covariance, axis1=1, axis2=2)[q.patterns.label]
        carried = (q.mean**2 + diagonal) @ variance
        missing = np.zeros(len(carried))
        total = sum(float(fitted.energy.sum()) for fitted in self.views.values())
        for name, fitted in self.views.items():
            encoder, share = fitted.encoder, float(fitted.energy.sum()) / max(total, 1e-300)
            if isinstance(encoder, KernelMap) and share > 0 and name in values:
                expected = variance.sum() * encoder.self_similarity(values[name])
                missing += share * np.nan_to_num(expected - carried)
        return np.maximum(missing, 0.0)

    # ------------------------------------------------------------ scores

    def scores(self) -> Array:
        """For each sample, E log p(observed | z) − KL(q(z) ‖ prior), in the user's units."""
        scores = np.zeros(self.samples.n)
        for where, q, values in self.project():
            trace = np.trace(q.covariance, axis1=1, axis2=2) - q.logdet
            kl = trace[q.patterns.label] + (q.mean**2).sum(axis=1) - self.n_factors
            scores[where] = -0.5 * kl
            for name, y in values.items():
                if not self.views[name].says_nothing:
                    scores[where] += self._log_likelihood(name, y, q)
        return scores

    def _log_likelihood(self, name: str, values: Array, q: Latent) -> Array:
        """E log p(y_n | z_n) of each row, or a bound on it; missing entries left out."""
        view, fitted = self.posterior(name), self.views[name]
        mean, variance = linear_predictor(q, view.weights, rho=view.rho)
        targets = fitted.encoder.encode(values)
        if isinstance(fitted.layer, Gaussian):
            log_tau = np.broadcast_to(view.tau.mean_log, (view.n_columns,))
            density = log_tau - _LOG_2PI - view.precision * ((targets - mean) ** 2 + variance)
            return np.asarray(np.nansum(0.5 * density + fitted.layer.log_unit(values), axis=1))
        value, _ = fitted.layer.tangent(np.nan_to_num(targets), mean)
        bound = value - 0.5 * view.precision * variance
        return np.asarray(np.where(np.isnan(targets), 0.0, bound).sum(axis=1))
