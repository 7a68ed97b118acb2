"""The landmarks of kernelized views, and which of them are relevance vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kofa import tuning
from kofa.data.tables import Table
from kofa.errors import warn
from kofa.kernels import landmarks
from kofa.kernels.base import Kernel
from kofa.kernels.formulas import Precomputed
from kofa.kernels.mixture import parts
from kofa.kernels.selection import Candidates, Selection, by_evidence, by_residual, squared_errors
from kofa.linalg import Array, IntArray
from kofa.preparation.fit_data import FitData, TrainingSet
from kofa.preparation.learnt_kernels import (
    LearntKernels,
    chosen_by_outputs,
    learns_width,
    with_wider_kernels,
)
from kofa.preparation.table_checks import check_missing

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Vectors:
    """Samples that could become relevance vectors, and what each is worth."""

    samples: Any  # their names, or their positions in the data of fit
    rows: IntArray  # of the table
    relevance: Array
    order: IntArray  # 0 for the first chosen, −1 for those left out
    silent: bool = False  # none is worth anything; one is kept for the form

    @classmethod
    def of(cls, table: Table, rows: IntArray, selection: Selection) -> Vectors:
        names = rows if table.samples is None else np.asarray(table.samples[rows])
        return cls(names, rows, selection.relevance, selection.order, not selection.pays)

    @property
    def kept(self) -> IntArray:
        """Rows of the table that are relevance vectors, in their order there."""
        return self.rows[self.order >= 0]


def pool(fit_data: FitData, name: str, kernel: Kernel, rng: np.random.Generator) -> IntArray:
    """Rows of the table that are landmarks, or may become relevance vectors.

    An unlabelled sample that is its own landmark is pulled into a private direction, so where
    there are labelled samples only these qualify.
    """
    table, view = fit_data.tables[name], fit_data.views[name]
    candidates = fit_data.rows_seen(name)
    if name not in fit_data.outputs and fit_data.has_output.any():
        labelled = candidates & fit_data.has_output[fit_data.samples.position[name]]
        candidates = labelled if labelled.sum() >= 2 else candidates
    index = np.flatnonzero(candidates)
    check_missing(kernel, table, index)
    declared = landmarks.as_landmarks(view.landmarks)
    wanted = tuning.AUTO_LANDMARKS if declared.n == "auto" else declared.n
    if wanted == "all" or int(wanted) >= len(index):
        return index
    seed = int(rng.integers(2**62))
    if declared.by == "random":
        return np.sort(fit_data.draw_rows(name, index, int(wanted), seed))
    index = fit_data.draw_rows(name, index, tuning.LANDMARK_CANDIDATES * int(wanted), seed)
    X, place = fit_data.some_rows(name, kernel, index)
    resolved = kernel.resolve(kernel.landmarks(X, place))
    chosen = landmarks.choose(declared.by, resolved, X, place, int(wanted), rng)
    return np.sort(chosen if isinstance(kernel, Precomputed) else index[chosen])


def relevance_vectors(
    fit_data: FitData,
    learnt: LearntKernels,
    pools: Mapping[str, IntArray],
) -> tuple[LearntKernels, dict[str, Vectors]]:
    """The landmarks of sparse views that are kept, and the kernels with widths for these.

    Kernels of one input keep the same landmarks.
    """
    chosen: dict[str, Vectors] = {}
    if chosen_by_outputs(fit_data):
        rows = _scoring_rows(fit_data, pools)
        learnt = _with_widths_for_few(fit_data, learnt, pools, rows)
        chosen |= _chosen_by_evidence(fit_data, learnt, pools, fit_data.training_set(rows))
    for name in fit_data.kernels:
        if fit_data.views[name].chooses_landmarks and name not in chosen:
            encoder = fit_data.kernel_map(name, learnt.kernels[name], pools[name])
            X, place = fit_data.some_rows(name, learnt.kernels[name], pools[name])
            K = encoder.evaluate(X[place])
            rows = np.arange(len(pools[name]))
            selection = by_residual(Candidates(K, rows, _most(fit_data, name, pools[name])))
            chosen[name] = Vectors.of(fit_data.tables[name], pools[name], selection)
    return learnt, chosen


def _chosen_by_evidence(
    fit_data: FitData, learnt: LearntKernels, pools: Mapping[str, IntArray], training: TrainingSet
) -> dict[str, Vectors]:
    """Relevance vectors by the evidence of the outputs."""
    candidates, base = _candidates(fit_data, learnt, pools, training)
    Y, noises = training.outputs.Y, training.outputs.noises
    selections = by_evidence(candidates, Y, learnt.noise, noises, base)
    found: dict[str, Vectors] = {}
    for names, one, selection in zip(_sources(fit_data), candidates, selections, strict=True):
        place = fit_data.own_rows(names[0], training.rows)[one.rows]
        found |= {name: Vectors.of(fit_data.tables[name], place, selection) for name in names}
        if not selection.pays:
            warn(
                f"View {fit_data.sources[names[0]]!r}: no sample's kernel tells anything about the "
                f"outputs, so all are switched off and the view predicts nothing. Leave it out, or "
                f"try another kernel."
            )
    return found


def _sources(fit_data: FitData) -> list[list[str]]:
    """The sparse inputs whose landmarks outputs choose; kernels of one table together."""
    found: dict[str, list[str]] = {}
    for name in chosen_by_outputs(fit_data):
        found.setdefault(fit_data.sources[name], []).append(name)
    return list(found.values())


def _candidates(
    fit_data: FitData, learnt: LearntKernels, pools: Mapping[str, IntArray], training: TrainingSet
) -> tuple[list[Candidates], Array | None]:
    """The candidates of each table among some rows, and the kernels of all other inputs."""
    kernels, weights = learnt.kernels, learnt.weights
    candidates = []
    for names in _sources(fit_data):
        own, pool = fit_data.own_rows(names[0], training.rows), pools[names[0]]
        here = np.flatnonzero(np.isin(own, pool))
        K = sum(weights[n] * training.kernel(n, kernels[n], here) for n in names)
        candidates.append(Candidates(np.asarray(K), here, _most(fit_data, names[0], pool)))
    others = [name for name in fit_data.inputs if name not in chosen_by_outputs(fit_data)]
    plain = [weights[n] * training.kernel(n, kernels.get(n)) for n in others]
    return candidates, np.sum(plain, axis=0) if plain else None


def _with_widths_for_few(
    fit_data: FitData,
    learnt: LearntKernels,
    pools: Mapping[str, IntArray],
    rows: IntArray,
) -> LearntKernels:
    """The kernels with the widths at which the landmarks that are kept predict best.

    A priori they are near those that were learnt.
    """
    asked = [part for n in chosen_by_outputs(fit_data) for part in parts(fit_data.kernels[n])]
    if not any(map(learns_width, asked)) or len(rows) < tuning.VECTOR_PARTS * tuning.VECTOR_FEWEST:
        return learnt
    training = fit_data.training_set(fit_data.draw(rows, tuning.LEARNING_ROWS))
    tried = [
        with_wider_kernels(fit_data, learnt, training, factor) for factor in tuning.VECTOR_WIDTHS
    ]
    errors = [_errors(fit_data, one, pools, training) for one in tried]
    loss = [0.5 * len(one) * np.log(max(float(one.sum()), _TINY)) for one in errors]
    away = np.log(tuning.VECTOR_WIDTHS) / tuning.VECTOR_WIDTH_PRIOR
    return tried[int(np.argmin(loss + 0.5 * away**2))]


def _errors(
    fit_data: FitData,
    learnt: LearntKernels,
    pools: Mapping[str, IntArray],
    training: TrainingSet,
) -> Array:
    """Σ_d (y − ŷ)² of samples, each predicted from landmarks that are chosen among others."""
    candidates, base = _candidates(fit_data, learnt, pools, training)
    outputs, n = training.outputs, len(training.rows)
    errors = list[Array]()
    for part in range(
        min(tuning.VECTOR_PARTS, -(-tuning.VECTOR_ENOUGH * tuning.VECTOR_PARTS // n))
    ):
        new = np.arange(part, n, tuning.VECTOR_PARTS)
        known = np.setdiff1d(np.arange(n), new)
        squares = squared_errors(candidates, outputs.Y, learnt.noise, outputs.noises, base, known)
        errors.append((squares * outputs.seen[new]).sum(axis=1))
    return np.concatenate(errors)


def _scoring_rows(fit_data: FitData, pools: Mapping[str, IntArray]) -> IntArray:
    """The samples that tell what candidates are worth: these themselves, and some others."""
    asked = np.zeros(fit_data.samples.n, dtype=bool)
    for name in chosen_by_outputs(fit_data):
        asked[fit_data.samples.position[name][pools[name]]] = True
    complete = fit_data.complete
    first, others = complete[asked[complete]], complete[~asked[complete]]
    others = fit_data.draw(others, tuning.VECTOR_OTHER_ROWS)
    return np.sort(np.concatenate([first, others]))


def _most(fit_data: FitData, name: str, pool: IntArray) -> int:
    return landmarks.as_landmarks(fit_data.views[name].landmarks).most_kept(len(pool))
