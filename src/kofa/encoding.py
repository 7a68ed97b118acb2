"""From what was declared and passed in to what inference sees, resolved once in fit."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kofa.errors import DataError
from kofa.inference import Role
from kofa.kernels import Kernel, KernelMap, Linear, Precomputed, as_kernel, kernel_name
from kofa.learning import MAX_ROWS, learn_widths
from kofa.likelihoods import Gaussian, Likelihood
from kofa.linalg import Array, BoolArray, IntArray
from kofa.observations import Observations
from kofa.scaling import Scaling
from kofa.tables import Samples, Table
from kofa.views import View

AUTO_LANDMARKS = 2000


@dataclass(frozen=True, eq=False)
class FittedView:
    """A view as fit left it: everything that turns its rows into observations and back."""

    role: Role
    declared: str  # the kind, in the user's word
    kind: type[Likelihood]
    encoder: Likelihood | KernelMap
    inputs: tuple[Hashable, ...] | None  # names of the columns of the data
    n_inputs: int
    outputs: tuple[Hashable, ...] | None  # names of the columns of the Gaussian layer
    classes: Any = None  # an array of labels, in the order of those columns
    dtype: Any = None  # of the labels
    sharpness: float = 1.0  # by which η is multiplied when its probabilities are predicted

    @property
    def likelihood(self) -> Likelihood | None:
        """How the columns are explained; None for similarities."""
        return None if isinstance(self.encoder, KernelMap) else self.encoder

    @cached_property
    def layer(self) -> Likelihood:
        """What the Gaussian layer of the view predicts; for a kernel, similarities."""
        if isinstance(self.encoder, Likelihood):
            return self.encoder
        ones = np.ones(len(self.encoder.V))
        return Gaussian(Scaling(0.0 * ones, self.encoder.scale * ones))

    def observe(self, values: Array) -> Observations:
        """What inference sees of rows in the user's units."""
        return Observations.from_values(self.encoder.encode(values), self.likelihood)

    def check(self, table: Table) -> Table:
        """The table as fit saw it, or an error; named columns may come in another order."""
        if self.classes is not None:
            return self._by_class(table)
        precomputed = isinstance(self.encoder, KernelMap) and isinstance(
            self.encoder.kernel, Precomputed
        )
        if not precomputed:
            self.kind.check(table)
        if table.columns is not None and self.inputs is not None:
            table = self._by_name(table, table.columns, self.inputs)
        elif table.values.shape[1] != self.n_inputs:
            raise DataError(
                f"View {table.name!r}: expected {self.n_inputs} columns as in fit "
                f"but got {table.values.shape[1]}."
            )
        if isinstance(self.encoder, KernelMap):
            kernel = self.encoder.kernel
            chosen = self.encoder.V.astype(np.intp) if isinstance(kernel, Precomputed) else None
            _check_missing(kernel, table, chosen)
        return table

    def _by_class(self, table: Table) -> Table:
        """The table with its labels numbered as in fit."""
        place = {label: float(i) for i, label in enumerate(self.classes.tolist())}
        labels = table.classes.tolist()
        new = [label for label in labels if label not in place]
        if new:
            known = ", ".join(map(repr, list(place)[:10])) + (", …" if len(place) > 10 else "")
            raise DataError(
                f"View {table.name!r}: class {new[0]!r} was not seen in fit; mark it as missing "
                f"(the classes are {known})."
            )
        code = np.array([place[label] for label in labels] + [np.nan])
        missing = np.isnan(table.values)
        index = np.where(missing, -1, np.nan_to_num(table.values)).astype(np.intp)
        return replace(table, values=code[index], classes=self.classes)

    @staticmethod
    def _by_name(table: Table, given: tuple[Hashable, ...], wanted: tuple[Hashable, ...]) -> Table:
        if given == wanted:
            return table
        place = {column: j for j, column in enumerate(given)}
        missing = [c for c in wanted if c not in place]
        expected = set(wanted)
        extra = [c for c in given if c not in expected]
        if missing or extra:
            what = f"column {missing[0]!r} is missing" if missing else f"{extra[0]!r} is new"
            raise DataError(f"View {table.name!r}: expected the columns seen in fit but {what}.")
        order = [place[column] for column in wanted]
        return replace(table, values=table.values[:, order], columns=wanted)


@dataclass(frozen=True, eq=False)
class Study:
    """Declarations and data of one fit, side by side."""

    views: Mapping[str, View]
    tables: Mapping[str, Table]
    samples: Samples
    outputs: frozenset[str]

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """The kernel of each kernelized view, as declared."""
        return {
            name: as_kernel(view.kernel, name)
            for name, view in self.views.items()
            if view.kernel is not None
        }

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
            return Scaling.identity(values.shape[1], unit)
        return Scaling.fit(values, unit=unit)

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
            labels[self.samples.position[name]] |= rows_seen(self.tables[name].values)
        return labels

    def scaled(self, name: str) -> Array:
        """A view's values, or what its likelihood makes of them, on unit scale for all samples."""
        values = self.tables[name].values
        if name in self.kernels:
            values = self.scaling[name].encode(values)
        else:
            likelihood = self.likelihoods[name]
            values = likelihood.encode(values)
            if likelihood.curvature is not None:
                values = Scaling.fit(values).encode(values)
        return self.samples.spread(replace(self.tables[name], values=values))

    def role(self, name: str) -> Role:
        """How inference is to treat a view."""
        view, output, kernelized = self.views[name], name in self.outputs, name in self.kernels
        per_column = output or not kernelized if view.noise == "auto" else view.noise == "column"
        return Role(name, kernelized, output, view.sparse, per_column)


def rows_seen(values: Array) -> BoolArray:
    """Which rows have at least one value."""
    return np.asarray(~np.isnan(values).all(axis=1))


def fit_views(study: Study, rng: np.random.Generator) -> dict[str, FittedView]:
    """Resolve scaling, landmarks and kernels of every view, once."""
    landmarks = {name: _choose_landmarks(study, name, rng) for name in study.kernels}
    kernels = _learn_kernels(study, rng)
    fitted = {}
    for name, table in study.tables.items():
        encoder: Likelihood | KernelMap
        if name in kernels:
            X = study.scaling[name].encode(table.values)
            encoder = KernelMap.fit(name, kernels[name], study.scaling[name], X, landmarks[name])
            names = None if table.samples is None else tuple(table.samples[landmarks[name]])
        else:
            encoder = study.likelihoods[name]
            names = table.columns if table.classes is None else tuple(table.classes.tolist())
        fitted[name] = FittedView(
            study.role(name),
            type(study.views[name]).__name__,
            study.views[name].likelihood,
            encoder,
            table.columns,
            table.values.shape[1],
            names,
            table.classes,
            table.dtypes[0],
        )
    return fitted


def square(table: Table, kernel: Kernel | None) -> Table:
    """A precomputed kernel with its columns in the order of its rows, or an error."""
    if not isinstance(kernel, Precomputed):
        return table
    if table.values.shape[0] != table.values.shape[1]:
        raise DataError(
            f"View {table.name!r}: expected a precomputed kernel of samples × samples "
            f"but got shape {table.values.shape}."
        )
    if table.samples is None or table.columns is None:
        return table
    place = {column: j for j, column in enumerate(table.columns)}
    unknown = [sample for sample in table.samples if sample not in place]
    if len(unknown) == len(table.samples):
        return table  # columns with names of their own stand in the order of the rows
    if unknown:
        raise DataError(
            f"View {table.name!r}: expected the columns of a precomputed kernel to be its samples "
            f"but {unknown[0]!r} is not among them."
        )
    order = [place[sample] for sample in table.samples]
    return replace(table, values=table.values[:, order], columns=tuple(table.samples))


# ---------------------------------------------------------------- landmarks


def _choose_landmarks(study: Study, name: str, rng: np.random.Generator) -> IntArray:
    """Rows of the table that become landmarks.

    An unlabelled sample that is its own landmark is pulled into a private direction, so where
    there are outputs only labelled samples qualify.
    """
    table, kernel = study.tables[name], study.kernels[name]
    candidates = rows_seen(table.values)
    if name not in study.outputs and study.has_output.any():
        candidates = candidates & study.has_output[study.samples.position[name]]
        if candidates.sum() < 2:
            raise DataError(
                f"View {name!r}: expected at least 2 samples with an observed output "
                f"but got {candidates.sum()}."
            )
    index = np.flatnonzero(candidates)
    _check_missing(kernel, table, index)
    wanted = study.views[name].landmarks
    wanted = AUTO_LANDMARKS if wanted == "auto" else wanted
    if wanted == "all" or int(wanted) >= len(index):
        return index
    return np.sort(rng.choice(index, int(wanted), replace=False))


def _check_missing(kernel: Kernel, table: Table, landmarks: IntArray | None) -> None:
    """Raise where rows have holes and the kernel cannot take them. Whole rows may be missing."""
    if kernel.takes_missing:
        return
    precomputed = isinstance(kernel, Precomputed)
    values = table.values[rows_seen(table.values)]
    if precomputed:
        values = values[:, landmarks]
    holes = np.isnan(values).any(axis=0)
    if holes.any():
        which = int(np.argmax(holes))
        where = f"landmark {which}" if precomputed else table.label(which)
        raise DataError(
            f"View {table.name!r}, {where}: the {kernel_name(kernel)} kernel cannot take missing "
            f"values; RBF and Laplacian can, or impute them first."
        )


# ---------------------------------------------------------------- widths


def _learn_kernels(study: Study, rng: np.random.Generator) -> dict[str, Kernel]:
    """Set the "auto" widths of the inputs from the outputs that are explained directly."""
    targets = [n for n in study.tables if n in study.outputs and n not in study.kernels]
    if not targets:
        return study.kernels
    inputs = {n: study.scaled(n) for n in study.tables if n not in study.outputs}
    Y = np.concatenate([study.scaled(name) for name in targets], axis=1)
    usable = rows_seen(Y) & np.all([rows_seen(x) for x in inputs.values()], axis=0)
    rows = np.flatnonzero(usable)
    if len(rows) < 3:
        return study.kernels
    if len(rows) > MAX_ROWS:
        rows = np.sort(rng.choice(rows, MAX_ROWS, replace=False))
    formulas = [study.kernels.get(name, Linear()) for name in inputs]
    X = [x[rows] if n in study.kernels else np.nan_to_num(x[rows]) for n, x in inputs.items()]
    V = [
        k.landmarks(x, _own_rows(study, n, rows)) if isinstance(k, Precomputed) else x
        for n, k, x in zip(inputs, formulas, X, strict=True)
    ]
    learnt = learn_widths(formulas, X, V, Y[rows])
    return study.kernels | {n: k for n, k in zip(inputs, learnt, strict=True) if n in study.kernels}


def _own_rows(study: Study, name: str, samples: IntArray) -> IntArray:
    """Where samples stand in the table of a view that has them all."""
    place = np.full(study.samples.n, -1)
    place[study.samples.position[name]] = np.arange(len(study.samples.position[name]))
    return place[samples]
