"""Declarations and data of one fit, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kofa import tuning
from kofa.data.reading import check_given, read_data
from kofa.data.samples import align
from kofa.data.scaling import Scaling
from kofa.data.stored import Encoded, Values, by_blocks, is_on_disk
from kofa.data.tables import Samples, Table
from kofa.errors import DataError, DeclarationError
from kofa.inference.role import Role
from kofa.kernels.base import Kernel
from kofa.kernels.declared import as_kernels
from kofa.kernels.formulas import Linear, Precomputed
from kofa.kernels.kernel_map import KernelMap
from kofa.kernels.mixture import kernel_name
from kofa.kernels.outputs import Outputs
from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, BoolArray, Groups, IntArray
from kofa.predictive.keys import keys_of_rows, ranks
from kofa.preparation.table_checks import check_table, square
from kofa.views import View


@dataclass(frozen=True, eq=False)
class FitData:
    """Views, each with at most one kernel, and their tables.

    A declared view with several kernels stands here as several views of one source.
    """

    views: Mapping[str, View]
    sources: Mapping[str, str]  # name of the declared view of each
    tables: Mapping[str, Table]
    samples: Samples
    outputs: frozenset[str]

    @classmethod
    def read(cls, declared: Mapping[str, View], data: Any, outputs: Any) -> FitData:
        """Read, check and align the data of a fit."""
        check_given(data, declared)
        for name, view in declared.items():
            view.check_landmarks_used(name)
        views, sources = expand(declared)
        labels = [name for name, view in declared.items() if view.likelihood.reads_labels]
        given = read_data(data, declared, labels)
        tables = {
            name: square(replace(given[sources[name]], name=name), view.kernel)
            for name, view in views.items()
        }
        for name, view in views.items():
            check_table(tables[name], view)
        samples = align(tables)
        if samples.n < 2:
            cure = "pass a row for each sample"
            raise DataError("expected at least 2 samples", got=samples.n, cure=cure)
        named = frozenset(() if outputs is None else outputs)
        return cls(
            views, sources, tables, samples, frozenset(n for n in views if sources[n] in named)
        )

    def in_memory(self) -> FitData:
        """The same with tables in files as arrays."""
        tables = {
            name: replace(table, values=table.dense) if is_on_disk(table.values) else table
            for name, table in self.tables.items()
        }
        return replace(self, tables=tables)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """The kernel of each kernelized view, as declared."""
        return {n: view.kernel for n, view in self.views.items() if view.kernel is not None}

    @cached_property
    def inputs(self) -> list[str]:
        """The views that are not outputs."""
        return [name for name in self.views if name not in self.outputs]

    @cached_property
    def targets(self) -> list[str]:
        """The outputs from which kernels are learnt: those that are explained directly."""
        return [name for name in self.views if name in self.outputs and name not in self.kernels]

    @cached_property
    def scaling(self) -> dict[str, Scaling]:
        """How a kernelized view's columns are brought to unit scale."""
        return {name: self._scaling(name) for name in self.kernels}

    def _scaling(self, name: str) -> Scaling:
        view, values, kernel = self.views[name], self.tables[name].values, self.kernels[name]
        if isinstance(kernel, Precomputed):
            return Scaling.identity(values.shape[1])
        unit = view.likelihood.unit
        if not view.scale:
            # Far from zero products would lose what centring leaves of them.
            return Scaling.as_is(values, unit, shift=kernel.ignores_shift)
        # A column that is constant in fit does not show how far apart two of its values are.
        return Scaling.fit(values, unit=unit, no_spread=np.inf)

    @cached_property
    def likelihoods(self) -> dict[str, Likelihood]:
        """The likelihood of each view that is explained directly."""
        return {
            name: view.likelihood.resolve(self.tables[name], view.scale)
            for name, view in self.views.items()
            if name not in self.kernels
        }

    @cached_property
    def has_output(self) -> BoolArray:
        """Which samples have an observed output."""
        labels = np.zeros(self.samples.n, dtype=bool)
        for name in self.outputs:
            labels[self.samples.position[name]] |= self.rows_seen(name)
        return labels

    def scaled(self, name: str, rows: IntArray) -> Array:
        """A view's values, or what its likelihood makes of them, on unit scale for some samples."""
        values = self.samples.spread(self.tables[name])[rows]
        if name in self.kernels:
            return self.scaling[name].complete(values)
        values = self.likelihoods[name].encode(values)
        unit = self._unit[name]
        return values if unit is None else unit.encode(values)

    @cached_property
    def _unit(self) -> dict[str, Scaling | None]:
        """How what is not Gaussian is brought to unit scale."""
        return {
            name: None if kind.curvature is None else Scaling.fit(self.encoded(name))
            for name, kind in self.likelihoods.items()
        }

    def encoded(self, name: str) -> Values:
        """What the likelihood of a view makes of the values in its table."""
        values, likelihood = self.tables[name].values, self.likelihoods[name]
        return Encoded(values, likelihood.encode)

    def role(self, name: str) -> Role:
        """How inference is to treat a view."""
        view, output, kernelized = self.views[name], name in self.outputs, name in self.kernels
        per_column = output or not kernelized if view.noise == "auto" else view.noise == "column"
        feeds = kernelized and bool(self.outputs) and not output
        return Role(name, kernelized, output, bool(view.sparse), per_column, exact=feeds)

    def own_rows(self, name: str, samples: IntArray) -> IntArray:
        """Where samples stand in the table of a view that has them all."""
        place = np.full(self.samples.n, -1)
        place[self.samples.position[name]] = np.arange(len(self.samples.position[name]))
        return np.asarray(place[samples])

    def kernel_map(self, name: str, kernel: Kernel, rows: IntArray) -> KernelMap:
        """The map of a view to similarities with some rows of its table."""
        scaling, by_row = self.scaling[name], len(rows) >= tuning.ROW_CENTRED_FROM
        X, place = self.some_rows(name, kernel, rows)
        return KernelMap.fit(name, kernel, scaling, X, place, by_row)

    def some_rows(self, name: str, kernel: Kernel, rows: IntArray) -> tuple[Array, IntArray]:
        """Rows of a table as kernels see them, where some of them may be all, and where these are.

        A precomputed kernel knows its landmarks by their places among all.
        """
        values = self.tables[name].values
        if isinstance(kernel, Precomputed):
            return self.scaling[name].complete(np.asarray(values)), rows
        return self.scaling[name].complete(values[rows]), np.arange(len(rows))

    def on_rows(self, name: str, kernel: Kernel) -> Kernel:
        """A kernel with what it needs of all rows of a view, or of as many as it can take."""
        if not kernel.needs_rows:
            return kernel
        table = self.tables[name]
        if is_on_disk(table.values):
            what = f"the {kernel_name(kernel)} kernel compares all samples, which are on disk"
            raise DeclarationError(what, name, cure="choose another kernel, or engine='memory'")
        rows = self.draw_rows(name, np.flatnonzero(self.rows_seen(name)), tuning.DIFFUSION_ROWS)
        return kernel.on(self.scaling[name].complete(table.values[np.sort(rows)]))

    @cached_property
    def keys(self) -> IntArray:
        """A random number for each sample, from all that is known of it."""
        tables = {source: self.tables[name] for name, source in self.sources.items()}
        return keys_of_rows(map(self.samples.spread, tables.values()))

    def draw(self, samples: IntArray, most: int) -> IntArray:
        """So many of some samples, drawn by what is in them, and in an order that follows from it.

        All are where no more are wanted.
        """
        return np.asarray(samples[np.argsort(ranks(self.keys[samples]))][:most])

    def draw_rows(self, name: str, rows: IntArray, most: int, seed: int = 0) -> IntArray:
        """The same for rows of the table of a view; others with another seed."""
        keys = self.keys[self.samples.position[name][rows]]
        return np.asarray(rows[np.argsort(ranks(keys, seed))][:most])

    @cached_property
    def complete(self) -> IntArray:
        """Samples that have something of every input and of a target."""
        seen = [self.seen(name) for name in self.inputs]
        labelled = np.any([self.seen(name) for name in self.targets], axis=0)
        return np.flatnonzero(np.all(seen, axis=0) & labelled)

    @cached_property
    def has_classes(self) -> bool:
        """Whether all targets are classes or labels."""
        kinds = [self.likelihoods[name] for name in self.targets]
        return bool(kinds) and all(kind.has("probability") for kind in kinds)

    def seen(self, name: str) -> BoolArray:
        """Samples of which a view tells something."""
        seen = np.zeros(self.samples.n, dtype=bool)
        seen[self.samples.position[name]] = self.rows_seen(name)
        return seen

    def has_holes(self, name: str) -> bool:
        """Whether some, but not all values are missing in rows of a view."""
        values, seen = self.tables[name].values, self.rows_seen(name)
        holed = by_blocks(lambda part: np.isnan(part).any(axis=1), values)
        return bool((holed & seen).any())

    def sample(self, names: Sequence[str], rows: IntArray) -> tuple[dict[str, Table], Samples]:
        """Some samples, without their names, as tables of some views."""
        tables = {
            name: replace(table, values=self.samples.spread(table)[rows], samples=None)
            for name, table in self.tables.items()
            if name in names
        }
        return tables, Samples(len(rows), None, dict.fromkeys(tables, np.arange(len(rows))))

    def rows_seen(self, name: str) -> BoolArray:
        """Rows of a view's table that tell something."""
        if name not in self._rows_seen:
            tells = self.scaling[name] if name in self.kernels else self.likelihoods[name]
            self._rows_seen[name] = by_blocks(tells.seen, self.tables[name].values)
        return self._rows_seen[name]

    @cached_property
    def _rows_seen(self) -> dict[str, BoolArray]:
        return {}

    def training_set(self, rows: IntArray) -> TrainingSet:
        """Inputs and targets of some samples, from which kernels can be learnt."""
        X, V = {}, {}
        for name in self.inputs:
            values = self.scaled(name, rows)
            kernel = self.kernels.get(name)
            X[name] = np.nan_to_num(values) if kernel is None else values
            V[name] = X[name]
            if isinstance(kernel, Precomputed):
                V[name] = kernel.landmarks(values, self.own_rows(name, rows))
        Y = [self.scaled(name, rows) for name in self.targets]
        # The columns of a label are one variable, with one noise.
        noises = [
            np.zeros(y.shape[1]) if self.tables[n].classes is not None else np.arange(y.shape[1])
            for n, y in zip(self.targets, Y, strict=True)
        ]
        of_view = np.repeat(np.arange(len(Y)), [y.shape[1] for y in Y])
        _, label = np.unique(
            np.column_stack([of_view, np.concatenate(noises)]), axis=0, return_inverse=True
        )
        label = label.ravel().astype(np.intp)
        groups = Groups(label, int(label.max()) + 1)
        labels = [self.likelihoods[name].has("probability") for name in self.targets]
        outputs = Outputs.of(np.concatenate(Y, axis=1), groups, np.array(labels)[of_view])
        return TrainingSet(rows, X, V, outputs)


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Rows from which kernels are learnt, the same samples in every view."""

    rows: IntArray  # which samples they are
    X: Mapping[str, Array]  # scaled, by input
    V: Mapping[str, Array]  # the same as the kernels want them for their second argument
    outputs: Outputs

    def kernel(self, name: str, formula: Kernel | None, columns: IntArray | None = None) -> Array:
        """The kernel between the rows and some of them; of a primal view the linear one."""
        V = self.V[name] if columns is None else self.V[name][columns]
        return np.asarray(np.nan_to_num((formula or Linear())(self.X[name], V)))


def expand(declared: Mapping[str, View]) -> tuple[dict[str, View], dict[str, str]]:
    """One view for each kernel, and the declared view that each comes from."""
    views: dict[str, View] = {}
    sources: dict[str, str] = {}
    for source, view in declared.items():
        named = {source: None} if view.kernel is None else as_kernels(view.kernel, source)
        for name, kernel in named.items():
            if name in views or (name != source and name in declared):
                what = "expected this name only once: it stands for one of several kernels"
                raise DeclarationError(what, name, cure="rename the view")
            views[name] = view if kernel is None else replace(view, kernel=kernel)
            sources[name] = source
    return views, sources
