"""Views asked of a fitted model: what the other views of a sample say, and the rest of the view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from kofa.checks import listed
from kofa.data.stored import Values
from kofa.errors import DataError
from kofa.inference.posterior import State, complete
from kofa.linalg import Array, BoolArray, IntArray
from kofa.predictive import residuals
from kofa.predictive.inputs import Source
from kofa.predictive.keys import fingerprints, first, ranks_of_rows
from kofa.predictive.observed import Observed
from kofa.predictive.view import Known, explain
from kofa.preparation.prepare import FittedView
from kofa.preparation.questions import Question, Questions
from kofa.results.others import AllRows, Others, factors_of, nothing

_OPEN_ROWS = 300  # of the fit, from which it is known what they leave open


def ask(questions: Questions, views: Mapping[str, FittedView], state: State, name: str) -> Question:
    """How a view of a model follows from the others, worked out when it is first asked."""
    with questions.lock:
        if name not in questions.asked:
            if questions.rows is None:
                known = f"it was asked for {listed(questions.asked)}" if questions.asked else ""
                raise DataError(
                    f"the model was saved without the rows of its fit, and before it was asked for "
                    f"view {name!r}",
                    cure=known or "save it with rows=True",
                )
            values = {n: questions.rows[view.source] for n, view in views.items()}
            questions.asked[name] = work_out(views, name, values, state)
        return questions.asked[name]


def work_out(
    views: Mapping[str, FittedView], name: str, values: Mapping[str, Array], state: State
) -> Question:
    """From values of rows of the fit, in the user's units; `state`: the factors that the model
    shows, which serve where all the others are kernels.
    """
    rows, own, mine, told = _regressed(views, name, values)
    likelihood = views[name].layer
    given = {n: values[n][rows] for n in mine}
    ranks = ranks_of_rows([own, *given.values()])
    if not mine:
        return Question({}, {}, {}, {}, explain(ranks, {}, own, likelihood)[0])
    if any(v.likelihood is not None for v in mine.values()):
        state = factors_of(mine, {n: values[n][told] for n in mine})
    others = Others.of(mine, complete({n: state[n] for n in mine}), values)
    parts = [dict(known.features) for _, known in others.of_rows(given, len(rows))]
    sources = {
        source: Source.of(np.concatenate([part.pop(source) for part in parts]))
        for source in list(parts[0])
    }
    all_rows = AllRows.of(mine, given)
    rest = partial(all_rows.rest, mine, sources) if all_rows.maps else None
    found, a = explain(ranks, sources, own, likelihood, rest)
    compared = all_rows.compared(sources, found.map.weights, a) if len(a) else {}
    some = first(ranks, _OPEN_ROWS)
    few = {n: one[some] for n, one in given.items()}
    left = [found.left_open(known) for _, known in others.of_rows(few, len(some))]
    found = replace(found, open_in_fit=np.concatenate(left).mean(axis=0))
    return Question(others.state, others.scalings, others.bases, compared, found)


def _regressed(
    views: Mapping[str, FittedView], name: str, values: Mapping[str, Array]
) -> tuple[IntArray, Array, dict[str, FittedView], BoolArray]:
    """The rows whose regression a view is, it in these as encoded, the views that tell about it,
    and which rows have any of those."""
    view, likelihood = views[name], views[name].layer
    mine = {n: v for n, v in views.items() if v.source != view.source and _tells(v, view)}
    has, encoded = likelihood.seen(values[name]), likelihood.encode(values[name])
    told = np.any([v.seen(values[n]) for n, v in mine.items()], axis=0)
    seen = told & has
    if not seen.any():
        return np.flatnonzero(has), encoded[has], {}, seen
    own = with_columns_seen_alone(encoded, seen)
    rows = np.flatnonzero(~np.isnan(own).all(axis=1))
    return rows, own[rows], mine, told


def layers(
    question: Question,
    views: Mapping[str, FittedView],
    name: str,
    values: Mapping[str, Values],
    n: int,
) -> Iterator[tuple[Array, Array]]:
    """Mean and variance of the Gaussian layer of a view of rows, some at a time.

    `values`: what is known of them, in the user's units.
    """
    for where, known in _known(question, views, values, n):
        data = _observed(views[name], values[name][where]) if name in values else None
        yield question.found.layer(known, data)


def each_cell(
    questions: Questions,
    question: Question,
    views: Mapping[str, FittedView],
    name: str,
    values: Mapping[str, Values],
    n: int,
) -> Iterator[tuple[Array, Array, Array]]:
    """The cells of a view, and mean and variance of each given all else that is known of its row.

    A row that has what a row of the fit has, in all views, is answered as if that was left out.
    """
    in_fit, counted = _seen_in_fit(questions, views, name)
    for where, known in _known(question, views, values, n):
        cells = np.array(values[name][where])
        part = {n: np.array(one[where]) for n, one in values.items()}
        keys = _fingerprints(views, part, len(cells))
        own = _observed(views[name], cells)
        itself = np.isin(keys, in_fit), np.isin(keys, counted)
        yield cells, *question.found.each_cell(known, own, *itself)


def _seen_in_fit(
    questions: Questions, views: Mapping[str, FittedView], name: str
) -> tuple[IntArray, IntArray]:
    """Fingerprints of the rows whose regression a view is, and of those whose residuals count."""
    if questions.rows is None:
        none: IntArray = np.zeros(0, dtype=np.uint64)
        return none, none
    values = {n: questions.rows[view.source] for n, view in views.items()}
    rows, own, mine, _ = _regressed(views, name, values)
    keys = _fingerprints(views, values, len(values[name]))[rows]
    return keys, keys[residuals.counted(ranks_of_rows([own, *(values[n][rows] for n in mine)]))]


def _fingerprints(views: Mapping[str, FittedView], values: Mapping[str, Array], n: int) -> IntArray:
    """Of rows with all that is known of them."""
    names = {view.source: name for name, view in views.items()}.values()
    return fingerprints(
        values.get(name, np.full((n, views[name].n_inputs), np.nan)) for name in names
    )


def _observed(view: FittedView, values: Values) -> Observed:
    return Observed.of(view.layer.encode(np.array(values)), view.layer)


def _known(
    question: Question, views: Mapping[str, FittedView], values: Mapping[str, Values], n: int
) -> Iterator[tuple[slice, Known]]:
    mine = {other: views[other] for other in question.state}
    others = Others(mine, question.state, question.scalings, question.bases, question.compared)
    return others.of_rows(values, n) if mine else nothing(n)


def with_columns_seen_alone(encoded: Array, seen: BoolArray) -> Array:
    """Values in rows of which something else is known, and all of columns that have none there.

    Of such columns only the mean and the variance can be known, and how they vary together.
    """
    alone = np.isnan(encoded[seen]).all(axis=0)
    return np.asarray(np.where(seen[:, None] | alone, encoded, np.nan))


def _tells(other: FittedView, view: FittedView) -> bool:
    """Outputs tell of inputs, but not of each other."""
    return not (other.role.output and view.role.output)
