"""The landmarks of a study's kernelized views, and which of them are relevance vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kofa import landmarks
from kofa.errors import DataError, warn
from kofa.kernels import Kernel
from kofa.lessons import Lessons, judged_by_outputs
from kofa.linalg import Array, IntArray
from kofa.selection import Candidates, Selection, by_evidence, by_residual
from kofa.study import Study, check_missing
from kofa.tables import Table

AUTO_LANDMARKS = 2000
_SHARE, _FEW = 0.18, 40  # of the candidates become relevance vectors at most, or so many
_OTHER_ROWS = 2000  # that judge candidates, besides these themselves


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


def pool(study: Study, name: str, kernel: Kernel, rng: np.random.Generator) -> IntArray:
    """Rows of the table that are landmarks, or may become relevance vectors.

    An unlabelled sample that is its own landmark is pulled into a private direction, so where
    there are outputs only labelled samples qualify.
    """
    table, view = study.tables[name], study.views[name]
    candidates = study.rows_seen(name)
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
    X = study.scaling[name].complete(table.values)
    resolved = kernel.resolve(kernel.landmarks(X, index))
    return landmarks.choose(view.landmarks_by, resolved, X, index, int(wanted), rng)


def relevance_vectors(
    study: Study, lessons: Lessons, pools: Mapping[str, IntArray], rng: np.random.Generator
) -> dict[str, Vectors]:
    """The landmarks of sparse views that are kept; kernels of one input keep the same."""
    chosen: dict[str, Vectors] = {}
    judged = judged_by_outputs(study)
    if judged:
        chosen |= _judged(study, lessons, pools, judged, rng)
    for name in study.kernels:
        if study.views[name].chooses_landmarks and name not in chosen:
            encoder = study.kernel_map(name, lessons.kernels[name], pools[name])
            X = study.scaling[name].complete(study.tables[name].values)[pools[name]]
            K = encoder.evaluate(X)
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
    for source, selection in zip(of_source, selections, strict=True):
        if not selection.pays:
            warn(
                f"View {source!r}: no sample's kernel tells anything about the outputs, so all are "
                f"switched off and the view predicts nothing. Leave it out, or try another kernel."
            )
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
    if view.share is not None:
        most = max(2, int(view.share * len(pool)))
        return min(most, view.max_landmarks or most, len(pool))
    return min(view.max_landmarks or max(_FEW, int(_SHARE * len(pool))), len(pool))
