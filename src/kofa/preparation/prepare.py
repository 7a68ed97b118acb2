"""From what was declared and passed in to what inference sees, resolved once in fit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from kofa.data.stored import encoded_rows, some_columns
from kofa.data.tables import Table
from kofa.errors import DataError
from kofa.inference.observations import Observations
from kofa.inference.role import Role
from kofa.kernels.formulas import Precomputed
from kofa.kernels.kernel_map import KernelMap
from kofa.likelihoods import Likelihood, of_similarities
from kofa.linalg import Array, BoolArray, IntArray
from kofa.preparation.fit_data import FitData
from kofa.preparation.learnt_kernels import learn_kernels
from kofa.preparation.relevance_vectors import Vectors, pool, relevance_vectors
from kofa.preparation.table_checks import check_missing


@dataclass(frozen=True, eq=False)
class FittedView:
    """A view as fit left it: everything that turns its rows into observations and back."""

    role: Role
    declared: str  # the kind, in the user's word
    kind: type[Likelihood]
    encoder: Likelihood | KernelMap
    source: str  # the declared view, of which there may be several kernels
    inputs: tuple[Hashable, ...] | None  # names of the columns of the data
    n_inputs: int
    outputs: tuple[Hashable, ...] | None  # names of the columns of the Gaussian layer
    classes: Any = None  # an array of labels, in the order of those columns
    dtype: Any = None  # of the labels
    landmarks: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # rows in fit
    vectors: Vectors | None = None
    # (parts, K): variance that each kernel of an input gives the outputs a priori, by factor
    energy: Array = field(default_factory=lambda: np.zeros((1, 1)))

    @property
    def likelihood(self) -> Likelihood | None:
        """How the columns are explained; None for similarities."""
        return None if isinstance(self.encoder, KernelMap) else self.encoder

    def seen(self, values: Array) -> BoolArray:
        """Which rows, in the user's units, say something."""
        tells = self.encoder.scaling if isinstance(self.encoder, KernelMap) else self.encoder
        return tells.seen(values)

    @property
    def says_nothing(self) -> bool:
        """Whether it is a kernel that is constant, or that the outputs switched off."""
        return isinstance(self.encoder, KernelMap) and self.encoder.says_nothing

    @cached_property
    def layer(self) -> Likelihood:
        """What the Gaussian layer of the view predicts; for a kernel, similarities."""
        if isinstance(self.encoder, Likelihood):
            return self.encoder
        return of_similarities(len(self.encoder.V), self.encoder.scale)

    def observe(self, values: Array, dtype: str = "float64") -> Observations:
        """What inference sees of rows in the user's units."""
        return Observations.from_values(self.encoding(dtype)(values), self.likelihood)

    def encoding(self, dtype: str) -> Callable[[Array], Array]:
        """What makes numbers of this type of rows in the user's units.

        Double precision, whatever is wanted, where the rest is too little: of kernels without noise
        the faintest directions count, and pseudo-observations are differences of large numbers.
        """
        of_kernel = self.likelihood is None and self.role.exact
        gaussian = self.likelihood is None or self.likelihood.curvature is None
        own = "float64" if of_kernel or not gaussian else dtype
        if own == "float64" and self.likelihood is None:
            return self.encoder.encode
        return partial(encoded_rows, encode=self.encoder.encode, dtype=own)

    def check(self, table: Table) -> Table:
        """The table as fit saw it, or an error; named columns may come in another order."""
        if self.classes is not None:
            return self._by_class(table)
        precomputed = isinstance(self.encoder, KernelMap) and isinstance(
            self.encoder.kernel, Precomputed
        )
        if not precomputed:
            for part in table.blocks():
                self.kind.check(part)
        if table.columns is not None and self.inputs is not None:
            table = self._by_name(table, table.columns, self.inputs)
        elif table.values.shape[1] != self.n_inputs:
            raise self._other_columns(table)
        if isinstance(self.encoder, KernelMap):
            kernel = self.encoder.kernel
            chosen = self.encoder.V.astype(np.intp) if isinstance(kernel, Precomputed) else None
            check_missing(kernel, table, chosen)
        return table

    def _other_columns(self, table: Table) -> DataError:
        n, n_columns = table.values.shape
        cure = "pass the same columns, in the same order"
        if n == self.n_inputs:
            one = "a list of numbers is one column: write [[…]] for one sample"
            cure = one if n_columns == 1 else "transposed? Pass its .T"
        what = f"expected {self.n_inputs} columns as in fit"
        return DataError(what, table.name, got=n_columns, cure=cure)

    def _by_class(self, table: Table) -> Table:
        """The table with its labels numbered as in fit."""
        place = {label: float(i) for i, label in enumerate(self.classes.tolist())}
        labels = table.classes.tolist()
        new = [label for label in labels if label not in place]
        if new:
            known = ", ".join(map(repr, list(place)[:10])) + (", …" if len(place) > 10 else "")
            cure = f"mark it as missing (the classes are {known})"
            raise DataError(f"class {new[0]!r} was not seen in fit", table.name, cure=cure)
        code = np.array([place[label] for label in labels] + [np.nan])
        missing = np.isnan(table.dense)
        index = np.where(missing, -1, np.nan_to_num(table.dense)).astype(np.intp)
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
            what = "expected the columns seen in fit but "
            if table.samples is not None and set(wanted) <= set(table.samples):
                what += "its rows have their names"
                raise DataError(what, table.name, cure="transposed? Pass its .T")
            what += "this one is missing" if missing else "this one is new"
            cure = "pass it, with NaN where it is not known" if missing else "leave it out"
            raise DataError(what, table.name, [*missing, *extra][0], cure=cure)
        order = [place[column] for column in wanted]
        return replace(table, values=some_columns(table.values, order), columns=wanted)


# ---------------------------------------------------------------- fit


def fit_views(fit_data: FitData, rng: np.random.Generator) -> dict[str, FittedView]:
    """Resolve scaling, landmarks and kernels of every view, once."""
    learnt = learn_kernels(fit_data)
    pools = {name: pool(fit_data, name, learnt.kernels[name], rng) for name in fit_data.kernels}
    learnt, vectors = relevance_vectors(fit_data, learnt, pools)
    rows = pools | {name: one.kept for name, one in vectors.items()}
    maps = {name: fit_data.kernel_map(name, learnt.kernels[name], rows[name]) for name in pools}
    for name, one in vectors.items():
        if one.silent:
            maps[name] = maps[name].switched_off()
    weighted = [n for n in maps if n in learnt.weights and not maps[n].says_nothing]
    top = max([learnt.weights[name] * maps[name].scale for name in weighted] or [1.0])
    for name in weighted:  # all kernels on one scale, each with the weight that was learnt
        maps[name] = replace(maps[name], scale=top / learnt.weights[name])
    return {
        name: FittedView(
            replace(fit_data.role(name), weight=learnt.weights.get(name, top) / top),
            type(fit_data.views[name]).__name__,
            fit_data.views[name].likelihood,
            maps[name] if name in maps else fit_data.likelihoods[name],
            fit_data.sources[name],
            table.columns,
            table.values.shape[1],
            output_names(table, rows.get(name)),
            table.classes,
            table.dtypes[0],
            landmarks=rows.get(name, np.empty(0, dtype=np.intp)),
            vectors=vectors.get(name),
        )
        for name, table in fit_data.tables.items()
    }


def roles(fit_data: FitData, fitted: Mapping[str, FittedView]) -> dict[str, Role]:
    """How inference treats the views, with all that the prior of outputs needs of the inputs.

    Without outputs, a view that is explained directly is one where a sample lacks it.
    """
    found = {name: view.role for name, view in fitted.items()}
    if fit_data.outputs or any(view.likelihood is not None for view in fitted.values()):
        for name in fit_data.inputs:
            encoder = fitted[name].encoder
            if isinstance(encoder, KernelMap):
                found[name] = replace(found[name], grams=_grams(fit_data, name, encoder))
    return found


def _grams(fit_data: FitData, name: str, encoder: KernelMap) -> list[Array]:
    V = encoder.V
    if isinstance(encoder.kernel, Precomputed):
        V = fit_data.tables[name].dense[V.astype(np.intp)]
    return encoder.grams(V)


def output_names(table: Table, rows: IntArray | None) -> tuple[Hashable, ...] | None:
    """Names of the columns of the Gaussian layer: landmarks, classes or columns."""
    if rows is not None:
        return None if table.samples is None else tuple(table.samples[rows])
    return table.columns if table.classes is None else tuple(table.classes.tolist())
