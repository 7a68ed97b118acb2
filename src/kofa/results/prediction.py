"""What a fitted model says about samples: their factors, and every view from those."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kofa.data.samples import align
from kofa.data.scaling import REACH
from kofa.data.stored import Values, by_blocks
from kofa.data.tables import Samples, Table
from kofa.errors import warn
from kofa.inference.local_step import Latent
from kofa.inference.observations import Observations, Rows
from kofa.inference.posterior import State, n_factors_of
from kofa.inference.predictor import linear_predictor
from kofa.inference.projection import project
from kofa.linalg import LOG_2PI, Array, BoolArray
from kofa.preparation.prepare import FittedView
from kofa.preparation.questions import Questions
from kofa.preparation.table_checks import rows_seen
from kofa.results.questions import ask, each_cell, layers

_ROWS_AT_A_TIME = 1024  # new samples are projected in batches of this size
_PART = 2**21  # numbers of tables in a part of the samples (16 MiB)


@dataclass(frozen=True, eq=False)
class Asked:
    """What is wanted of a view: functions of the mean and variance of its Gaussian layer.

    The variance is that of z, w and, where it is learnt, the noise. `by_mean` promises that the
    functions do not use it, and saves its cost.
    """

    functions: Sequence[Callable[[Array, Array], Array]]
    by_mean: bool = False

    def of(self, mean: Array, variance: Array) -> list[Array]:
        return [function(mean, variance) for function in self.functions]


@dataclass(frozen=True, eq=False)
class Prediction:
    """A fitted model applied to some tables."""

    views: Mapping[str, FittedView]
    state: State
    tables: Mapping[str, Table]
    samples: Samples
    questions: Questions | None  # None as published: all follows from the factors

    @property
    def n_factors(self) -> int:
        return n_factors_of(self.state)

    def parts(self) -> Iterator[Prediction]:
        """The same for some of the samples after the others, of which only these are in memory."""
        values = {name: self.samples.spread(table) for name, table in self.tables.items()}
        width = sum(one.shape[1] for one in values.values()) + self.n_factors
        step = max(_ROWS_AT_A_TIME, _PART // width)
        for start in range(0, max(1, self.samples.n), step):
            yield self._part(values, slice(start, min(start + step, self.samples.n)))

    def of_no_sample(self) -> Prediction:
        """The same for none of the samples: what is asked of it has the form of all answers."""
        return self._part({n: table.values for n, table in self.tables.items()}, slice(0, 0))

    def _part(self, values: Mapping[str, Values], rows: slice) -> Prediction:
        some = {name: np.array(one[rows]) for name, one in values.items()}
        tables = {n: replace(t, values=some[n], samples=None) for n, t in self.tables.items()}
        n, names = rows.stop - rows.start, self.samples.names
        where = dict.fromkeys(tables, np.arange(n))
        own = None if names is None else names[rows]
        return replace(self, tables=tables, samples=Samples(n, own, where, self.samples.polars))

    def without(self, source: str) -> Prediction:
        """The model applied to the other tables, of which there may be none."""
        tables = {n: t for n, t in self.tables.items() if self.views[n].source != source}
        samples = align(tables) if tables else self.samples
        return replace(self, tables=tables, samples=samples)

    def warn_of_far_samples(self) -> None:
        """Say which samples have values that count as less far than they are."""
        for source in dict.fromkeys(self.views[name].source for name in self.tables):
            mine = [name for name in self.tables if self.views[name].source == source]
            far = [
                by_blocks(self.views[name].encoder.beyond, self.tables[name].values)
                for name in mine
            ]
            rows = np.flatnonzero(np.any(far, axis=0))
            if len(rows):
                warn(
                    f"View {source!r}, {self.tables[mine[0]].row_labels(rows)}: values so far from "
                    f"the data in fit (more than {REACH:g} times their spread, or where the kernel "
                    f"is no finite number) count as less far, and predictions mean little."
                )

    # ------------------------------------------------------------ factors

    def project(self) -> Iterator[tuple[Latent, Mapping[str, Array]]]:
        """q(z) of the samples, batch by batch, and each view's values in the user's units.

        Outputs tell of z only where a sample has nothing else, unless all follows from z.
        """
        values = {name: self.samples.spread(table) for name, table in self.tables.items()}
        for start in range(0, self.samples.n, _ROWS_AT_A_TIME):
            batch = {n: y[start : start + _ROWS_AT_A_TIME] for n, y in values.items()}
            rows = Rows.stack(self._observed(batch))
            for within, block in rows.blocks(rows.block_size(self.n_factors)):
                part = {name: y[within] for name, y in batch.items()}
                yield project(block, self.state), part

    def _observed(self, values: Mapping[str, Array]) -> dict[str, Observations]:
        """What z follows from: of each row the inputs or, where it has none, the outputs."""
        alike = self.questions is None
        inputs = [name for name in values if alike or not self.views[name].role.output]
        has = np.zeros(len(next(iter(values.values()))), dtype=bool)
        for name in inputs:
            has |= self.views[name].seen(values[name])
        without = {
            name: values[name] if name in inputs else np.where(has[:, None], np.nan, values[name])
            for name in values
        }
        return {name: self.views[name].observe(y) for name, y in without.items()}

    # ------------------------------------------------------------ views

    def of_view(self, name: str, asked: Asked) -> list[Array]:
        """What is asked about one view, for all samples."""
        return self.of_views({name: asked})[name]

    def of_views(self, asked: Mapping[str, Asked]) -> dict[str, list[Array]]:
        """What is asked about each view, for all samples.

        Similarities follow from the factors, all else from the other views and the view itself.
        """
        alone = self.questions is None
        others = {n: a for n, a in asked.items() if alone or self.views[n].likelihood is None}
        found = {n: self._answered(n, one) for n, one in asked.items() if n not in others}
        found |= self.by_factors(others)
        return {name: found[name] for name in asked}

    def _answered(self, name: str, asked: Asked) -> list[Array]:
        """What the other views and the rest of the view say."""
        assert self.questions is not None
        values = {n: self.samples.spread(table) for n, table in self.tables.items()}
        question = ask(self.questions, self.views, self.state, name)
        found = layers(question, self.views, name, values, self.samples.n)
        return self._joined(name, asked, [asked.of(*layer) for layer in found])

    def each_cell(self, name: str) -> Iterator[tuple[Array, Array, Array]]:
        """Values of a view, and its layer at each given all else that is known of the sample."""
        assert self.questions is not None
        values = {n: self.samples.spread(table) for n, table in self.tables.items()}
        question = ask(self.questions, self.views, self.state, name)
        return each_cell(self.questions, question, self.views, name, values, self.samples.n)

    def by_factors(self, asked: Mapping[str, Asked]) -> dict[str, list[Array]]:
        """What the factors alone say. No batch is kept: covariances can be large."""
        parts: dict[str, list[list[Array]]] = {name: [] for name in asked}
        for q, _ in self.project() if asked else ():
            for name, one in asked.items():
                layer = self._mean_only(name, q) if one.by_mean else self._layer(name, q)
                parts[name].append(one.of(*layer))
        return {name: self._joined(name, asked[name], found) for name, found in parts.items()}

    def missing(self, name: str) -> BoolArray:
        """The values of a view that samples lack: (n, columns)."""
        return np.asarray(np.isnan(np.asarray(self.samples.spread(self.tables[name]))))

    def seen(self, name: str) -> BoolArray:
        """Which samples have something of a view."""
        return np.asarray(by_blocks(rows_seen, self.samples.spread(self.tables[name])))

    def _joined(self, name: str, asked: Asked, parts: Sequence[Sequence[Array]]) -> list[Array]:
        if not parts:  # no samples
            none = np.empty((0, self.state[name].n_columns))
            return asked.of(none, none)
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def _mean_only(self, name: str, q: Latent) -> tuple[Array, Array]:
        mean = self.state[name].weights.predict(q.mean)
        return mean, np.zeros_like(mean)

    def _layer(self, name: str, q: Latent) -> tuple[Array, Array]:
        view, layer = self.state[name], self.views[name].layer
        mean, variance = linear_predictor(q, view.weights, layer.competing, blurred=view.blurred)
        if layer.curvature is None:  # of others the noise is the likelihood's own
            variance += 1.0 / view.tau.mean
        return mean, variance

    # ------------------------------------------------------------ scores

    def scores(self) -> Array:
        """For each sample, E log p(observed | z) − KL(q(z) ‖ prior), in the user's units."""
        if not self.samples.n:
            return np.zeros(0)
        return np.concatenate([self._scores(q, values) for q, values in self.project()])

    def _scores(self, q: Latent, values: Mapping[str, Array]) -> Array:
        trace = np.trace(q.covariance, axis1=1, axis2=2) - q.logdet
        kl = trace[q.patterns.label] + (q.mean**2).sum(axis=1) - self.n_factors
        telling = (name for name in values if not self.views[name].says_nothing)
        likelihoods = (self._log_likelihood(name, values[name], q) for name in telling)
        return sum(likelihoods, start=-0.5 * kl)

    def _log_likelihood(self, name: str, values: Array, q: Latent) -> Array:
        """E log p(y_n | z_n) of each row, or a bound on it; missing entries left out."""
        view, fitted = self.state[name], self.views[name]
        if view.blurred is not None:  # z counts as known
            q = replace(q, covariance=np.zeros_like(q.covariance))
        mean, variance = linear_predictor(q, view.weights, rho=view.rho)
        targets = fitted.encoder.encode(values)
        if fitted.layer.curvature is None:
            log_tau = np.broadcast_to(view.tau.mean_log, (view.n_columns,))
            density = log_tau - LOG_2PI - view.precision * ((targets - mean) ** 2 + variance)
            return np.asarray(np.nansum(0.5 * density + fitted.layer.log_unit(values), axis=1))
        value, _ = fitted.layer.tangent(np.nan_to_num(targets), mean)
        bound = value - 0.5 * view.precision * variance
        return np.asarray(np.where(np.isnan(targets), 0.0, bound).sum(axis=1))
