"""From what was declared and passed in to what inference sees, resolved once in fit."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kofa import landmarks
from kofa.errors import DataError, DeclarationError
from kofa.inference import Role
from kofa.kernels import (
    Kernel,
    KernelMap,
    Linear,
    Mixture,
    Precomputed,
    Radial,
    Weighted,
    filled,
    parts,
)
from kofa.learning import MAX_ROWS, learn, learns_relevance
from kofa.likelihoods import Gaussian, Likelihood
from kofa.linalg import Array, BoolArray, IntArray
from kofa.observations import Observations
from kofa.posterior import State
from kofa.published import by_ard, by_reconstruction
from kofa.scaling import Scaling
from kofa.selection import Candidates, Selection, by_evidence, by_residual
from kofa.study import Study, check_missing, rows_seen
from kofa.tables import Table

AUTO_LANDMARKS = 2000
_OTHER_ROWS = 2000  # that judge relevance vectors, besides the candidates
_FEW = 40  # relevance vectors that any share allows


@dataclass(frozen=True, eq=False)
class Vectors:
    """Samples that could become relevance vectors, and what each is worth."""

    samples: Any  # their names, or their positions in the data of fit
    rows: IntArray  # of the table
    relevance: Array
    order: IntArray  # 0 for the first chosen, −1 for those left out

    @classmethod
    def of(cls, table: Table, rows: IntArray, selection: Selection) -> Vectors:
        names = rows if table.samples is None else np.asarray(table.samples[rows])
        return cls(names, rows, selection.relevance, selection.order)

    @property
    def kept(self) -> IntArray:
        """Rows of the table that are relevance vectors, in their order there."""
        return self.rows[self.order >= 0]


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
    sharpness: float = 1.0  # by which η is multiplied when its probabilities are predicted
    landmarks: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # rows in fit
    vectors: Vectors | None = None
    # (parts, K): variance that each kernel of an input gives the outputs a priori, by factor
    energy: Array = field(default_factory=lambda: np.zeros((1, 1)))

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
            check_missing(kernel, table, chosen)
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


# ---------------------------------------------------------------- fit


def fit_views(study: Study, rng: np.random.Generator) -> dict[str, FittedView]:
    """Resolve scaling, landmarks and kernels of every view, once."""
    lessons = _learn(study, rng)
    pools = {name: _pool(study, name, lessons.kernels[name], rng) for name in study.kernels}
    vectors = _relevance_vectors(study, lessons, pools, rng)
    rows = pools | {name: one.kept for name, one in vectors.items()}
    maps = {name: kernel_map(study, name, lessons.kernels[name], rows[name]) for name in pools}
    top = max([lessons.weights[n] * maps[n].scale for n in maps if n in lessons.weights] or [1.0])
    for name, weight in lessons.weights.items():
        if name in maps:  # all kernels on one scale, each with the weight that was learnt
            maps[name] = replace(maps[name], scale=top / weight)
    return {
        name: FittedView(
            replace(study.role(name), weight=lessons.weights.get(name, top) / top),
            type(study.views[name]).__name__,
            study.views[name].likelihood,
            maps[name] if name in maps else study.likelihoods[name],
            study.sources[name],
            table.columns,
            table.values.shape[1],
            _output_names(table, rows.get(name)),
            table.classes,
            table.dtypes[0],
            landmarks=rows.get(name, np.empty(0, dtype=np.intp)),
            vectors=vectors.get(name),
        )
        for name, table in study.tables.items()
    }


def roles(study: Study, fitted: Mapping[str, FittedView]) -> list[Role]:
    """How inference treats the views, with all that the outputs' prior needs of the inputs."""
    if not study.outputs:
        return [view.role for view in fitted.values()]
    return [
        replace(view.role, grams=_grams(study, name, view.encoder))
        if isinstance(view.encoder, KernelMap) and name in study.inputs
        else view.role
        for name, view in fitted.items()
    ]


def _grams(study: Study, name: str, encoder: KernelMap) -> list[Array]:
    V = encoder.V
    if isinstance(encoder.kernel, Precomputed):
        V = study.tables[name].values[V.astype(np.intp)]
    return encoder.grams(V)


def _output_names(table: Table, rows: IntArray | None) -> tuple[Hashable, ...] | None:
    """Names of the columns of the Gaussian layer: landmarks, classes or columns."""
    if rows is not None:
        return None if table.samples is None else tuple(table.samples[rows])
    return table.columns if table.classes is None else tuple(table.classes.tolist())


def kernel_map(study: Study, name: str, kernel: Kernel, rows: IntArray) -> KernelMap:
    """The map of a view to similarities with some rows of its table."""
    X = study.scaling[name].encode(study.tables[name].values)
    return KernelMap.fit(name, kernel, study.scaling[name], X, rows)


# ---------------------------------------------------------------- kernels


@dataclass(frozen=True, eq=False)
class Lessons:
    """What the outputs say about the kernels."""

    kernels: Mapping[str, Kernel]
    weights: Mapping[str, float]  # v_m of the inputs; empty where nothing was learnt
    noise: Array  # (G,): σ_g² of the outputs


def _learn(study: Study, rng: np.random.Generator) -> Lessons:
    """Widths, relevances and weights of the inputs, from the outputs explained directly."""
    kernels = {name: _without_relevance(kernel) for name, kernel in study.kernels.items()}
    for name, kernel in study.kernels.items():
        if learns_relevance(kernel) and (name in study.outputs or not study.targets):
            raise DeclarationError(
                f"View {name!r}: relevance='learn' needs an output to learn from; name one that "
                f"has no kernel in outputs=[…], or give relevance as numbers."
            )
    if not study.targets or len(study.complete) < 3 or not _anything_to_learn(study):
        return Lessons(kernels, {}, np.empty(0))
    rows = study.complete
    if len(rows) > MAX_ROWS:
        rows = np.sort(rng.choice(rows, MAX_ROWS, replace=False))
    lesson = study.lesson(rows)
    formulas = [
        (name, part) for name in study.inputs for part in parts(study.kernels.get(name, Linear()))
    ]
    X, V = zip(*(filled(part, lesson.X[n], lesson.V[n]) for n, part in formulas), strict=True)
    learnt = learn([_asked(part) for _, part in formulas], X, V, lesson.outputs)
    weights: dict[str, float] = {}
    for name in study.inputs:
        mine = [i for i, (owner, _) in enumerate(formulas) if owner == name]
        found = tuple(learnt.kernels[i] for i in mine)
        weights[name] = float(learnt.weights[mine[0]])
        if name in kernels:
            for kernel in found:
                _warn_if_off(name, kernel)
            kernels[name] = found[0]
            if isinstance(study.kernels[name], Mixture) and len(mine) > 1:
                # The view has the weight of its first kernel, and the others are relative to it.
                of_first = learnt.weights[mine] / learnt.weights[mine[0]]
                kernels[name] = Mixture(found, tuple(of_first.tolist()))
    return Lessons(kernels, weights, learnt.noise)


def _anything_to_learn(study: Study) -> bool:
    open_kernels = any(
        learns_relevance(part) or (isinstance(part, Radial) and part.learns_width)
        for name, kernel in study.kernels.items()
        for part in parts(kernel)
        if name in study.inputs
    )
    return open_kernels or len(study.inputs) > 1 or bool(_by_evidence(study))


def _asked(kernel: Kernel) -> Kernel:
    return kernel if learns_relevance(kernel) else _without_relevance(kernel)


def _without_relevance(kernel: Kernel) -> Kernel:
    """The kernel before its relevance is learnt: all features alike."""
    if isinstance(kernel, Weighted) and kernel.learns_relevance:
        return replace(kernel, relevance=None)
    return kernel


def _warn_if_off(name: str, kernel: Kernel) -> None:
    if isinstance(kernel, Weighted) and kernel.relevance and not any(kernel.relevance):
        warnings.warn(
            f"View {name!r}: no feature tells anything about the outputs, so all are switched "
            f"off and the view predicts nothing. Lower its sparsity, or leave the view out.",
            UserWarning,
            stacklevel=6,
        )


# ---------------------------------------------------------------- landmarks


def _pool(study: Study, name: str, kernel: Kernel, rng: np.random.Generator) -> IntArray:
    """Rows of the table that are landmarks, or may become relevance vectors.

    An unlabelled sample that is its own landmark is pulled into a private direction, so where
    there are outputs only labelled samples qualify.
    """
    table, view = study.tables[name], study.views[name]
    candidates = rows_seen(table.values)
    if name not in study.outputs and study.has_output.any():
        candidates = candidates & study.has_output[study.samples.position[name]]
        if candidates.sum() < 2:
            raise DataError(
                f"View {name!r}: expected at least 2 samples with an observed output "
                f"but got {candidates.sum()}."
            )
    index = np.flatnonzero(candidates)
    check_missing(kernel, table, index)
    wanted = AUTO_LANDMARKS if view.landmarks == "auto" else view.landmarks
    if wanted == "all" or int(wanted) >= len(index):
        return index
    X = study.scaling[name].encode(table.values)
    resolved = kernel.resolve(kernel.landmarks(X, index))
    return landmarks.choose(view.landmarks_by, resolved, X, index, int(wanted), rng)


def _by_evidence(study: Study) -> list[str]:
    """The inputs whose landmarks are chosen by what they say about the outputs."""
    sparse = [n for n in study.kernels if study.views[n].sparse is True and n in study.inputs]
    return sparse if study.targets and len(study.complete) >= 3 else []


def _relevance_vectors(
    study: Study, lessons: Lessons, pools: Mapping[str, IntArray], rng: np.random.Generator
) -> dict[str, Vectors]:
    """The landmarks of sparse views that are kept; kernels of one input keep the same."""
    chosen: dict[str, Vectors] = {}
    judged = _by_evidence(study)
    if judged:
        chosen |= _judged(study, lessons, pools, judged, rng)
    for name in study.kernels:
        if study.views[name].sparse is True and name not in chosen:
            encoder = kernel_map(study, name, lessons.kernels[name], pools[name])
            X = study.scaling[name].encode(study.tables[name].values)[pools[name]]
            K = np.nan_to_num(encoder.evaluate(X))
            rows = np.arange(len(pools[name]))
            selection = by_residual(Candidates(K, rows, _most(study, name, pools[name])))
            chosen[name] = Vectors.of(study.tables[name], pools[name], selection)
    return chosen


def _judged(
    study: Study,
    lessons: Lessons,
    pools: Mapping[str, IntArray],
    sparse: list[str],
    rng: np.random.Generator,
) -> dict[str, Vectors]:
    """Relevance vectors by the evidence of the outputs."""
    sources = list(dict.fromkeys(study.sources[name] for name in sparse))
    of_source = {s: [n for n in sparse if study.sources[n] == s] for s in sources}
    rows = _judges(study, [pools[names[0]] for names in of_source.values()], of_source, rng)
    lesson = study.lesson(rows)
    kernels, weights = lessons.kernels, lessons.weights
    candidates, places = [], []
    for names in of_source.values():
        own = study.own_rows(names[0], rows)
        here = np.flatnonzero(np.isin(own, pools[names[0]]))
        K = sum(weights[n] * lesson.kernel(n, kernels[n], here) for n in names)
        candidates.append(Candidates(np.asarray(K), here, _most(study, names[0], pools[names[0]])))
        places.append(own[here])
    others = [name for name in study.inputs if name not in sparse]
    plain = [weights[n] * lesson.kernel(n, kernels.get(n)) for n in others]
    base = np.sum(plain, axis=0) if plain else None
    Y, noises = lesson.outputs.Y, lesson.outputs.noises
    selections = by_evidence(candidates, Y, lessons.noise, noises, base)
    return {
        name: Vectors.of(study.tables[name], place, selection)
        for names, place, selection in zip(of_source.values(), places, selections, strict=True)
        for name in names
    }


def _judges(
    study: Study,
    pools: list[IntArray],
    of_source: Mapping[str, list[str]],
    rng: np.random.Generator,
) -> IntArray:
    """The samples that judge candidates: these themselves, and some others."""
    asked = np.zeros(study.samples.n, dtype=bool)
    for pool, names in zip(pools, of_source.values(), strict=True):
        asked[study.samples.position[names[0]][pool]] = True
    complete = study.complete
    first, others = complete[asked[complete]], complete[~asked[complete]]
    if len(others) > _OTHER_ROWS:
        others = rng.choice(others, _OTHER_ROWS, replace=False)
    return np.sort(np.concatenate([first, others]))


def _most(study: Study, name: str, pool: IntArray) -> int:
    view = study.views[name]
    most = min(len(pool), max(_FEW, int(view.share * len(pool))))
    return min(most, view.max_landmarks or most)


# ---------------------------------------------------------------- as published


def learns_by_reconstruction(study: Study) -> list[str]:
    """The views whose λ follows from the reconstruction of their kernels."""
    return [
        name
        for name, kernel in study.kernels.items()
        if isinstance(kernel, Weighted)
        and kernel.learns_relevance
        and kernel.objective == "reconstruction"
    ]


def with_reconstructed_relevance(
    study: Study, fitted: Mapping[str, FittedView], state: State, Z: Array, seen: BoolArray
) -> dict[str, FittedView]:
    """The views with λ at which their kernels are most like what the factors make of them."""
    changed = dict(fitted)
    for name in learns_by_reconstruction(study):
        view, encoder = fitted[name], fitted[name].encoder
        assert isinstance(encoder, KernelMap)
        assert isinstance(encoder.kernel, Weighted)
        values = study.samples.spread(study.tables[name])[seen]
        present = rows_seen(values)
        X = np.nan_to_num(encoder.scaling.encode(values[present]))
        target = state[list(fitted).index(name)].weights.predict(Z[present])
        kernel = by_reconstruction(encoder.kernel, X, np.nan_to_num(encoder.V), target)
        changed[name] = _with_landmarks(study, name, view, kernel, view.landmarks)
    return changed


def with_ard_landmarks(
    study: Study, fitted: dict[str, FittedView], state: State
) -> dict[str, FittedView]:
    """The views without the landmarks that double ARD switched off."""
    changed = dict(fitted)
    for (name, view), posterior in zip(fitted.items(), state, strict=True):
        if study.views[name].sparse == "ard" and isinstance(view.encoder, KernelMap):
            vectors = Vectors.of(study.tables[name], view.landmarks, by_ard(posterior))
            view = _with_landmarks(study, name, view, view.encoder.kernel, vectors.kept)
            changed[name] = replace(view, vectors=vectors)
    return changed


def _with_landmarks(
    study: Study, name: str, view: FittedView, kernel: Kernel, rows: IntArray
) -> FittedView:
    """The view with another kernel or other landmarks, and the weight that it had."""
    assert isinstance(view.encoder, KernelMap)
    before = kernel_map(study, name, view.encoder.kernel, view.landmarks)
    after = kernel_map(study, name, kernel, rows)
    after = replace(after, scale=after.scale * view.encoder.scale / before.scale)
    names = _output_names(study.tables[name], rows)
    return replace(view, encoder=after, landmarks=rows, outputs=names)
