"""The other views of a sample as features of one that is asked for.

They enter by themselves, with what factors of these views alone expect in their holes, and by those
factors. So nothing that predicts a view has seen it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kofa import tuning
from kofa.data.scaling import Scaling
from kofa.data.stored import Values
from kofa.engines.memory import InMemory
from kofa.inference.global_step import global_step
from kofa.inference.local_step import Latent
from kofa.inference.observations import Rows
from kofa.inference.posterior import State, keep, n_factors_of
from kofa.inference.projection import project
from kofa.inference.pruning import informative
from kofa.inference.start import prepare_and_start, spectral
from kofa.inference.statistics import centred
from kofa.kernels.formulas import Precomputed
from kofa.kernels.kernel_map import KernelMap
from kofa.linalg import Array, BoolArray, Groups, IntArray, by_rows
from kofa.predictive.inputs import Source
from kofa.predictive.view import FACTORS, Known, Unsure
from kofa.preparation.prepare import FittedView
from kofa.preparation.questions import Compared

_BATCH = 1024  # rows that are answered at a time


@dataclass(frozen=True, eq=False)
class Others:
    """The other views, as features."""

    views: Mapping[str, FittedView]
    state: State  # of their factors
    scalings: Mapping[str, Scaling]  # of those that are neither Gaussian nor behind a kernel
    bases: Mapping[str, Array]  # (R, p): from similarities with landmarks to features
    compared: Mapping[str, Compared] = field(default_factory=dict)

    @classmethod
    def of(
        cls, views: Mapping[str, FittedView], state: State, values: Mapping[str, Array]
    ) -> Others:
        scalings = {
            name: Scaling.fit(_raw(view, values[name]), unit=view.layer.unit)
            for name, view in views.items()
            if view.likelihood is not None and view.likelihood.curvature is not None
        }
        bases = {
            name: _root(view, values[name])
            for name, view in views.items()
            if isinstance(view.encoder, KernelMap)
        }
        return cls(views, state, scalings, bases)

    @property
    def by_factors(self) -> bool:
        """Whether factors are a source of their own: those of kernels say what these say."""
        return len(self.bases) < len(self.views)

    def of_rows(self, values: Mapping[str, Values], n: int) -> Iterator[tuple[slice, Known]]:
        """What is known of rows, some at a time; views that are not given are missing."""
        for start in range(0, n, _BATCH):
            where = slice(start, min(start + _BATCH, n))
            none = where.stop - start
            part = {
                name: np.array(values[name][where])
                if name in values
                else np.full((none, view.n_inputs), np.nan)
                for name, view in self.views.items()
            }
            yield where, self._known(part)

    def _known(self, values: Mapping[str, Array]) -> Known:
        observed = {name: view.observe(values[name].copy()) for name, view in self.views.items()}
        q = project(Rows.stack(observed), self.state)
        features, beyond, holes = {}, {}, {}
        for name, view in self.views.items():
            features[name], holes[name] = self._features(name, view, values[name], q)
            if isinstance(view.encoder, KernelMap):
                beyond[name] = _beyond(view.encoder, values[name], features[name])
        if self.by_factors:
            features[FACTORS] = q.mean
        unsure = (*self._unsure(holes, q), *self._unsure_kernels(values))
        more = sum(self._compare(n, values[n], features[n]) for n in self.compared)
        return Known(len(q.mean), features, beyond, more, unsure)

    def _compare(self, name: str, values: Array, features: Array) -> Array:
        """What rows of the fit say of rows beside features: (n, D)."""
        encoder, rows = self.views[name].encoder, self.compared[name]
        assert isinstance(encoder, KernelMap)
        others = replace(encoder, V=rows.rows, column_mean=rows.mean)
        said = np.zeros((len(values), rows.weights.shape[1]))
        here = np.flatnonzero(encoder.scaling.seen(values))
        for where, k in encoder.between(encoder.scaled(values[here]), others):
            some = here[where]
            said[some] = by_rows(k, rows.weights) - by_rows(features[some], rows.features)
        return said

    def _features(
        self, name: str, view: FittedView, values: Array, q: Latent
    ) -> tuple[Array, BoolArray]:
        """Features of a view with what is expected in its holes, and where these are."""
        expected, encoder = self.state[name].weights.predict(q.mean), view.encoder
        encoded = encoder.encode(values)
        if isinstance(encoder, KernelMap):
            holes = np.isnan(encoded[:, :1])
            return by_rows(np.where(holes, expected, encoded), self.bases[name]), holes
        holes = np.isnan(encoded)
        if name not in self.scalings:
            return np.where(holes, expected, encoded), holes
        scaled = self.scalings[name].encode(_raw(view, values))
        if holes.any():
            ask = encoder.probability if encoder.has("probability") else encoder.predict
            typical = self.scalings[name].encode(ask(expected, np.zeros_like(expected)))
            scaled = np.where(np.isnan(scaled), typical, scaled)
        return np.asarray(scaled), np.zeros((len(scaled), 1), dtype=bool)

    def _unsure(self, holes: Mapping[str, BoolArray], q: Latent) -> Iterator[Unsure]:
        """Of rows with the same holes: the variance of z, and of what stands in holes."""
        pattern = q.patterns.label
        roots = np.linalg.cholesky(q.covariance)
        groups = Groups.by_pattern(np.concatenate(list(holes.values()), axis=1))
        label = groups.label * len(roots) + pattern
        for one in np.unique(label):
            rows = np.flatnonzero(label == one)
            root = roots[pattern[rows[0]]]
            T, own, start = [], [], 0
            for name in self.views:
                hole = holes[name][rows[0]]
                T.append(self._loadings(name, hole, root))
                if name not in self.bases and name not in self.scalings:
                    variance = np.where(hole, 1.0 / self.state[name].precision, 0.0)
                    own.append((start + np.flatnonzero(hole), variance[hole]))
                start += len(T[-1])
            T += [root] if self.by_factors else []
            which = np.concatenate([np.zeros(0, dtype=np.intp), *(w for w, _ in own)])
            delta = np.concatenate([np.zeros(0), *(d for _, d in own)])
            yield Unsure(rows, np.concatenate(T), which, delta)

    def _unsure_kernels(self, values: Mapping[str, Array]) -> Iterator[Unsure]:
        """Of rows of kernelized views with single holes: how features change with what is there."""
        none, sizes = np.zeros(0), self._sizes()
        for place, (name, view) in enumerate(self.views.items()):
            if not isinstance(view.encoder, KernelMap):
                continue
            for rows, change in view.encoder.for_other_values(values[name]):
                n = max(1.0, change.shape[1] - 2.0)  # so few values know the variance badly
                moved = change @ self.bases[name] / np.sqrt(n)
                before, after = sum(sizes[:place]), sum(sizes[place + 1 :])
                for row, one in zip(rows, moved, strict=True):
                    T = np.pad(one.T, ((before, after), (0, 0)))
                    yield Unsure(np.array([row]), T, none.astype(np.intp), none)

    def _sizes(self) -> list[int]:
        """Number of features of each source."""
        each = [
            self.bases[name].shape[1]
            if name in self.bases
            else len(self.scalings[name].centre)
            if name in self.scalings
            else self.state[name].n_columns
            for name in self.views
        ]
        return [*each, n_factors_of(self.state)] if self.by_factors else each

    def _loadings(self, name: str, hole: BoolArray, root: Array) -> Array:
        """How the features of a view follow z where they stand in holes: (p, K)."""
        W = self.state[name].weights.mean
        if name in self.bases:
            return np.asarray(self.bases[name].T @ W @ root * float(hole[0]))
        if name in self.scalings:
            return np.zeros((len(self.scalings[name].centre), len(root)))
        return np.asarray(np.where(hole[:, None], W @ root, 0.0))


def _raw(view: FittedView, values: Array) -> Array:
    """Numbers that can be compared: of a label one column for each class."""
    likelihood = view.layer
    return likelihood.encode(values) if likelihood.competing else values


def _root(view: FittedView, values: Array) -> Array:
    """G^-½ of the landmarks' kernel G: similarities times this are features."""
    encoder = view.encoder
    assert isinstance(encoder, KernelMap)
    V = encoder.V
    if isinstance(encoder.kernel, Precomputed):
        V = encoder.scaling.complete(values[view.landmarks])
    G = np.sum(encoder.grams(V), axis=0)
    e, U = np.linalg.eigh(0.5 * (G + G.T))
    above = e > 1e-13 * len(e) * max(float(e[-1]), 1e-300)
    return np.asarray(U[:, above] / np.sqrt(e[above]))


def _beyond(encoder: KernelMap, values: Array, features: Array) -> Array:
    """What k(x, x) has that similarities with landmarks do not show: (n,)."""
    itself = encoder.self_similarity(values) * encoder.mean_self / encoder.scale
    return np.asarray(np.maximum(np.nan_to_num(itself - (features**2).sum(axis=1)), 0.0))


def _falls_short(view: FittedView) -> bool:
    """Whether there may be more rows than landmarks, of which nobody asked for fewer."""
    encoder = view.encoder
    of_rows = isinstance(encoder, KernelMap) and not isinstance(encoder.kernel, Precomputed)
    chosen = view.vectors is not None or len(view.landmarks) < tuning.AUTO_LANDMARKS
    return of_rows and not chosen and not view.says_nothing


@dataclass(frozen=True, eq=False)
class AllRows:
    """Similarities between all rows of the fit, where landmarks do not hold these."""

    maps: Mapping[str, KernelMap]  # with all rows as landmarks
    here: Mapping[str, BoolArray]  # which rows have something of the view

    @classmethod
    def of(cls, views: Mapping[str, FittedView], values: Mapping[str, Array]) -> AllRows:
        maps, here = {}, {}
        for name, view in views.items():
            if _falls_short(view) and isinstance(view.encoder, KernelMap):
                here[name] = view.seen(values[name])
                rows = view.encoder.scaled(values[name][here[name]])
                maps[name] = view.encoder.compared_with(rows)
        return cls(maps, here)

    def rest(
        self,
        views: Mapping[str, FittedView],
        sources: Mapping[str, Source],
        weights: Mapping[str, float],
        some: IntArray,
    ) -> Array:
        """What features do not hold of Σ weight · k̃ of some rows, in single precision: (n, n)."""
        total: Any = np.zeros((len(some), len(some)), dtype=np.float32)
        for name in (n for n in self.maps if n in weights):
            encoder, here = views[name].encoder, self.here[name]
            assert isinstance(encoder, KernelMap)
            rows = np.flatnonzero(here[some])
            place, whole = (np.cumsum(here) - 1)[some[rows]], self.maps[name]
            others = replace(whole, V=whole.V[place], column_mean=whole.column_mean[place])
            features = sources[name].as_given(some[rows])
            for where, k in encoder.between(others.V, others):
                k -= features[where] @ features.T
                total[np.ix_(rows[where], rows)] += weights[name] * k
        return np.asarray(total)

    def compared(
        self, sources: Mapping[str, Source], weights: Mapping[str, float], a: Array
    ) -> dict[str, Compared]:
        """With the weights a of all rows (n, D)."""
        found = {}
        for name, others in self.maps.items():
            rows, source = np.flatnonzero(self.here[name]), sources[name]
            by_row = weights[name] / source.unit**2 * a[rows]
            features = source.as_given(rows).T @ by_row
            found[name] = Compared(others.V, others.column_mean, by_row, features)
        return found


def nothing(n: int) -> Iterator[tuple[slice, Known]]:
    """Where no other view tells of a view."""
    for start in range(0, n, _BATCH):
        where = slice(start, min(start + _BATCH, n))
        yield where, Known(where.stop - start, {}, {})


def factors_of(views: Mapping[str, FittedView], values: Mapping[str, Array]) -> State:
    """Factors of some views alone: a few sweeps from their leading directions.

    Where these are found by random vectors, they are always the same: no answer depends on a seed.
    """
    observed = {name: view.observe(values[name].copy()) for name, view in views.items()}
    engine = InMemory(Rows.stack(observed)).condensed()
    roles = {name: replace(view.role, exact=False) for name, view in views.items()}
    Z = spectral(engine, tuning.MOST_READ_OUT, np.random.default_rng(0), above_noise=True)
    _, state = prepare_and_start(engine, roles, Z)
    for _ in range(tuning.READ_OUT_SWEEPS):
        stats, Z = engine.sweep(state, Z)
        state = global_step(state, centred(stats))
        telling = informative(state, stats.n_samples)
        state, Z = keep(state, telling), engine.keep(Z, telling)
    return state
