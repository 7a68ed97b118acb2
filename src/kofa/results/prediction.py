"""What a fitted model says about samples: their factors, and every view from those."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from kofa import tuning
from kofa.data.samples import align
from kofa.data.scaling import REACH
from kofa.data.stored import Values, by_blocks
from kofa.data.tables import Samples, Table
from kofa.errors import warn
from kofa.inference.local_step import Latent
from kofa.inference.observations import Rows
from kofa.inference.posterior import State, ViewPosterior, Weights, n_factors_of
from kofa.inference.predictor import linear_predictor, variance_of_holes
from kofa.inference.projection import project
from kofa.inference.regression import ReadOut
from kofa.kernels.kernel_map import ROUNDING, KernelMap, Unseen
from kofa.linalg import LOG_2PI, Array, BoolArray, by_rows
from kofa.preparation.prepare import FittedView
from kofa.preparation.table_checks import rows_seen
from kofa.results.questions import Questions
from kofa.results.uncertainty import (
    beyond,
    few_samples,
    n_observed,
    pulled_back,
    switched_off,
    z_is_less_known,
)

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
    readouts: Mapping[str, ReadOut] = field(default_factory=dict)
    questions: Questions | None = None  # which answer in place of read-outs

    @cached_property
    def _of_kernels(self) -> dict[tuple[str, str], tuple[Array, Unseen]]:
        """By target and kernelized view: the variance that comes from it, and what it misses."""
        return {}

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

    @property
    def sources_of_z(self) -> list[str]:
        """The inputs, which alone tell about factors; outputs only where no input is given."""
        inputs = [name for name in self.tables if self.state[name].blurred is None]
        return inputs or list(self.tables)

    def project(
        self, known: Collection[str] | None = None
    ) -> Iterator[tuple[Latent, Mapping[str, Array]]]:
        """q(z) of the samples, batch by batch, and each view's values in the user's units.

        `known`: the views from which z follows, if not from all.
        """
        values = {name: self.samples.spread(table) for name, table in self.tables.items()}
        inputs = [name for name in values if known is None or name in known]
        for start in range(0, self.samples.n, _ROWS_AT_A_TIME):
            batch = {n: y[start : start + _ROWS_AT_A_TIME] for n, y in values.items()}
            rows = Rows.stack({name: self.views[name].observe(batch[name]) for name in inputs})
            for within, block in rows.blocks(rows.block_size(self.n_factors)):
                part = {name: y[within] for name, y in batch.items()}
                yield project(block, self.state), part

    def _left_open(self, q: Latent, values: Mapping[str, Array]) -> Latent:
        """q(z) with what the holes in kernelized views leave open."""
        for name, y in values.items():
            encoder, loading = self.views[name].encoder, self.state[name].loading
            if isinstance(encoder, KernelMap):
                for rows, change in encoder.for_other_values(y):
                    # z follows the similarities: dz = Σ_n Σ_d τ_d ⟨w_d⟩ dy_d
                    dz = change @ loading @ q.covariance[q.patterns.label[rows]]
                    n = max(1.0, dz.shape[1] - 2.0)  # so few values know the variance badly
                    q = q.left_open(rows, dz / np.sqrt(n))
        return q

    # ------------------------------------------------------------ views

    def of_view(self, name: str, asked: Asked) -> list[Array]:
        """What is asked about one view, for all samples."""
        return self.of_views({name: asked})[name]

    def of_views(self, asked: Mapping[str, Asked]) -> dict[str, list[Array]]:
        """What is asked about each view, for all samples, whose factors are found once for all.

        Samples that lack a view get what follows from the others (`ReadOut`).
        """
        if self.questions is None:
            return self.by_factors(asked)
        others = {n: one for n, one in asked.items() if self.views[n].likelihood is None}
        found = {n: self._answered(n, one) for n, one in asked.items() if n not in others}
        found |= self.by_factors(others)
        return {name: found[name] for name in asked}

    def _answered(self, name: str, asked: Asked) -> list[Array]:
        """What the other views and the rest of the view say."""
        assert self.questions is not None
        values = {n: self.samples.spread(table) for n, table in self.tables.items()}
        layers = self.questions.of(name).layers(values, values.get(name), self.samples.n)
        return self._joined(name, asked, [asked.of(*layer) for layer in layers])

    def by_factors(self, asked: Mapping[str, Asked]) -> dict[str, list[Array]]:
        """What the factors say; of views that samples lack, what read-outs do."""
        lacking = {name: which for name in asked if (which := self._lacking(name)).any()}
        known = {n: one for n, one in asked.items() if n not in lacking or not lacking[n].all()}
        found = self._of_views(known)
        for name, which in lacking.items():
            read_out = self._read_out(name)._of_views({name: asked[name]})[name]
            both = zip(read_out, found.get(name, read_out), strict=True)
            found[name] = [_by_row(which, a, b) for a, b in both] if name in known else read_out
        return {name: found[name] for name in asked}

    def _lacking(self, name: str) -> BoolArray:
        """Which samples are better predicted from others: they lack the view, but not all."""
        none = np.zeros(self.samples.n, dtype=bool)
        if name not in self.readouts:
            return none
        others = [self.seen(n) for n in self.readouts[name].others if n in self.tables]
        own = self.seen(name) if name in self.tables else none
        return np.asarray(np.any(others, axis=0) & ~own) if others else none

    def missing(self, name: str) -> BoolArray:
        """The values of a view that samples lack: (n, columns)."""
        return np.asarray(np.isnan(np.asarray(self.samples.spread(self.tables[name]))))

    def seen(self, name: str) -> BoolArray:
        """Which samples have something of a view."""
        return np.asarray(by_blocks(rows_seen, self.samples.spread(self.tables[name])))

    def _read_out(self, name: str) -> Prediction:
        """The model of the others in which the view is an output."""
        found = self.readouts[name]
        views = {n: self.views[n] for n in found.state}
        views[name] = replace(views[name], sharpness=found.sharpness, centre=found.centre)
        tables = {n: self.tables[n] for n in found.others if n in self.tables}
        return Prediction(views, found.state, tables, self.samples)

    def _of_views(self, asked: Mapping[str, Asked]) -> dict[str, list[Array]]:
        """The same from the factors of this model. No batch is kept: covariances can be large."""
        parts: dict[str, list[list[Array]]] = {name: [] for name in asked}
        open_too = not all(one.by_mean for one in asked.values())
        for q, values in self.project() if asked else ():
            q_open = self._left_open(q, values) if open_too else q
            for name, one in asked.items():
                layer = (
                    self._mean_only(name, q) if one.by_mean else self._layer(name, q_open, values)
                )
                parts[name].append(one.of(*layer))
        return {name: self._joined(name, asked[name], found) for name, found in parts.items()}

    def _joined(self, name: str, asked: Asked, parts: Sequence[Sequence[Array]]) -> list[Array]:
        if not parts:  # no samples
            none = np.empty((0, self.state[name].n_columns))
            return asked.of(none, none)
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def _mean_only(self, name: str, q: Latent) -> tuple[Array, Array]:
        w = self.state[name].weights
        mean = _calibrated(w.predict(q.mean), w, self.views[name])
        return mean, np.zeros_like(mean)

    def _layer(self, name: str, q: Latent, values: Mapping[str, Array]) -> tuple[Array, Array]:
        view, fitted = self.state[name], self.views[name]
        w, competing = view.weights, fitted.layer.competing
        if fitted.layer.curvature is None:
            less = z_is_less_known(view, q)
            mean, variance = linear_predictor(q, w, competing, less, view.blurred)
            variance += switched_off(view, q.mean) + 1.0 / view.tau.mean
            variance *= few_samples(view)
            variance += pulled_back(q, w) + self._novelty(name, q, values)
        else:  # the noise is the likelihood's own
            mean, variance = linear_predictor(q, w, competing, blurred=view.blurred)
        variance += 0.0 if view.overdispersion is None else view.overdispersion
        mean = _calibrated(mean, w, fitted)
        of_holes = variance_of_holes(q, w, competing)
        return mean, variance + np.maximum(of_holes - fitted.holes_in_fit, 0.0)

    def mean_variance_of_holes(self, name: str) -> Array:
        """Mean over the samples of what holes in kernelized rows add to the variance of a view."""
        w, competing = self.state[name].weights, self.views[name].layer.competing
        projected = (self._left_open(q, values) for q, values in self.project())
        parts = [variance_of_holes(q, w, competing) for q in projected]
        return np.asarray(np.concatenate(parts).mean(axis=0))

    def _novelty(self, target: str, q: Latent, values: Mapping[str, Array]) -> Array:
        """Prior variance of a view in directions of new samples that its factors do not see.

        z sees of a new sample only what it shares with the landmarks. A Gaussian process keeps the
        rest of k(x, x) as uncertainty, and so does this.
        """
        kernels = {n: y for n, y in values.items() if isinstance(self.views[n].encoder, KernelMap)}
        view = self.state[target]
        if self.views[target].role.output:
            parts = [self._unseen_by_output(view, q, name, y) for name, y in kernels.items()]
        else:
            parts = [self._unseen(target, name, y) for name, y in kernels.items()]
        return np.asarray(sum(parts, start=np.zeros((len(q.mean), 1))))

    def _unseen_by_output(self, view: ViewPosterior, q: Latent, name: str, values: Array) -> Array:
        """Of an output: its spectral prior has Σ_k 1/α_k · k(x, x), the factors Σ_k ⟨z_k²⟩/α_k."""
        total = sum(float(fitted.energy.sum()) for fitted in self.views.values())
        share = float(self.views[name].energy.sum()) / max(total, 1e-300)
        variance = 1.0 / view.alpha.mean
        diagonal = np.diagonal(q.covariance, axis1=1, axis2=2)[q.patterns.label]
        carried = by_rows(q.mean**2 + diagonal, variance) / variance.sum()
        encoder = self.views[name].encoder
        assert isinstance(encoder, KernelMap)
        similarity = encoder.self_similarity(values)
        unseen = similarity - carried
        unseen = np.where(unseen > ROUNDING * similarity, unseen, 0.0)
        # Coordinate ascent hardly moves the scale of the prior; the learning of kernels knows it.
        # Signal and noise of an output make up a variance of one.
        learnt = sum(fitted.amplitude for fitted in self.views.values())
        signal = min(learnt, 1.0 - float((1.0 / view.tau.mean).mean()))
        scale = share * max(float(variance.sum()), signal)
        return np.asarray(scale * beyond(similarity, unseen, few_samples(view)))

    def _unseen(self, target: str, name: str, values: Array) -> Array:
        """Of any other view: what the factors explain of it where they are known from a kernel."""
        if (target, name) not in self._of_kernels:
            view, encoder = self.state[target], self.views[name].encoder
            assert isinstance(encoder, KernelMap)
            information = {n: self.state[n].information for n in self.tables}
            share = information[name] / (1.0 + np.sum(list(information.values()), axis=0))
            amplitude = _amplitude(view, share)
            ridge = float((1.0 / view.tau.mean).mean()) / max(float(amplitude.mean()), 1e-12)
            self._of_kernels[target, name] = amplitude, encoder.unseen(ridge)
        amplitude, unseen = self._of_kernels[target, name]
        return np.asarray(beyond(*unseen(values), few_samples(self.state[target])) * amplitude)

    # ------------------------------------------------------------ scores

    def scores(self) -> Array:
        """For each sample, E log p(observed | z) − KL(q(z) ‖ prior), in the user's units."""
        if not self.samples.n:
            return np.zeros(0)
        projected = self.project(self.sources_of_z)
        return np.concatenate([self._scores(q, values) for q, values in projected])

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


def _amplitude(view: ViewPosterior, share: Array) -> Array:
    """Variance that a kernel may give each column of a view, with its share in each factor: (D,).

    Where z was taken for known it is that of the prior: weights from few samples are far smaller
    than what they may be. Signal and noise make up a variance of one, and of the noise, 3/√n may be
    signal that n samples do not show.
    """
    if view.blurred is None:
        return np.asarray(view.weights.square @ share)
    variance = 1.0 / view.alpha.mean
    signal = max(float(variance.sum()), 1.0 - float((1.0 / view.tau.mean).mean()))
    hidden = tuning.HIDDEN_SIGNAL / np.sqrt(np.maximum(n_observed(view), tuning.HIDDEN_SIGNAL**2))
    return np.asarray(np.maximum(signal, hidden) * float(share @ variance / variance.sum()))


def _calibrated(mean: Array, w: Weights, fitted: FittedView) -> Array:
    """η as left-out samples would have it."""
    if fitted.centre is None:
        return fitted.sharpness * mean
    return fitted.centre + fitted.sharpness * (mean - w.y_mean)


def _by_row(which: BoolArray, yes: Array, no: Array) -> Array:
    """Some rows of one result, the others of another."""
    return np.where(which.reshape(-1, *(1,) * (yes.ndim - 1)), yes, no)
