"""What users ask of a fitted model: from their tables to the tables that they get."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from kofa import omics
from kofa.checks import check_number, flag
from kofa.data.reading import read_data
from kofa.data.returning import decoded, labelled, restored
from kofa.data.samples import align
from kofa.data.tables import Samples
from kofa.errors import DataError, warn
from kofa.linalg import Array
from kofa.preparation.fitted import Fitted
from kofa.preparation.prepare import FittedView
from kofa.results.prediction import Asked, Prediction

# ---------------------------------------------------------------- the model applied to data


def given(fitted: Fitted, data: Any) -> Prediction:
    """The model applied to data."""
    declared = dict.fromkeys(fitted.sources)
    data = omics.tables(data, declared, whole=False)
    read = read_data(data, declared, labels=fitted.classes)
    tables = {
        name: view.check(replace(read[view.source], name=name))
        for name, view in fitted.views.items()
        if view.source in read
    }
    samples = align(tables)
    questions = None if fitted.by_factors else fitted.questions
    found = Prediction(fitted.views, fitted.posterior, tables, samples, questions)
    found.warn_of_far_samples()
    return found


def from_others(fitted: Fitted, data: Any, view: str) -> Prediction:
    """The model applied to the views other than the one that is asked for."""
    source, others = fitted.views[view].source, data
    if omics.is_omics(data):  # of which only the others are read
        names = {name: None for name in fitted.sources if name != source}
        others = omics.tables(data, names, whole=False)
    elif isinstance(data, Mapping):
        others = {name: table for name, table in data.items() if name != source}
    if isinstance(others, dict) and not others:
        raise _nothing_else(fitted, view)
    return given(fitted, others)


def _nothing_else(fitted: Fitted, view: str) -> DataError:
    what = f"expected at least one view other than {view!r} to predict it from"
    known = [name for name in fitted.sources if name != fitted.views[view].source]
    cure = f"pass a table of {' or '.join(map(repr, known))}" if known else ""
    return DataError(what, cure=cure, use=["reconstruct to explain the view by itself"])


# ---------------------------------------------------------------- answers

Answer = Callable[[Prediction], Any]  # the table of the samples that a model is applied to
# Who gets the answer for all samples at once, or for one part after the other; last all labels
# that may be in it, if it is of labels
Deliver = Callable[[Prediction, Answer, Any], Any]


def at_once(found: Prediction, answer: Answer, classes: Any) -> Any:  # noqa: ARG001
    """The answer for all samples."""
    return answer(found)


def factors(
    fitted: Fitted,
    data: Any,
    return_cov: bool,
    n_factors: int | None,
    deliver: Deliver = at_once,
) -> Any:
    """What `FactorModel.transform` returns."""
    check_number("n_factors", n_factors, [None], whole=True, least=1)
    wanted, basis = flag("return_cov", return_cov), fitted.basis.first(n_factors)
    names = fitted.factor_names[: basis.n_factors]

    def answer(found: Prediction) -> Any:
        Z = np.zeros((found.samples.n, basis.n_factors))
        covariance = np.empty((len(Z), *Z.shape[1:] * 2)) if wanted else None
        done = 0
        for q, _ in found.project():
            where = slice(done, done + len(q.mean))
            Z[where] = basis.of_samples(q.mean)
            if covariance is not None:
                covariance[where] = basis.of_covariances(q.covariance)[q.patterns.label]
            done = where.stop
        table = labelled(Z, found.samples, names)
        return table if covariance is None else (table, covariance)

    return deliver(given(fitted, data), answer, None)


def predict(
    fitted: Fitted, data: Any, view: str | None, return_std: bool, deliver: Deliver = at_once
) -> Any:
    """What `FactorModel.predict` returns."""
    view = fitted.asked_for(view)
    one, asked = fitted.views[view], _prediction_of(view, fitted.views[view], return_std)
    found = from_others(fitted, data, view)

    def answer(found: Prediction) -> Any:
        return _returned(found.of_view(view, asked), one, found.samples)

    return deliver(found, answer, one.classes)


def predict_proba(fitted: Fitted, data: Any, view: str | None, deliver: Deliver = at_once) -> Any:
    """What `FactorModel.predict_proba` returns."""
    view = fitted.asked_for(view)
    one, asked = fitted.views[view], _proba_of(view, fitted.views[view])

    def answer(found: Prediction) -> Any:
        (values,) = found.of_view(view, asked)
        return labelled(values, found.samples, one.outputs)

    return deliver(from_others(fitted, data, view), answer, None)


def predict_quantiles(fitted: Fitted, data: Any, view: str | None, quantiles: Any) -> list[Any]:
    """What `FactorModel.predict_quantiles` returns."""
    view = fitted.asked_for(view)
    wanted, one = _probabilities(quantiles, view), fitted.views[view]
    quantile = _explaining(view, one, "quantiles", one.layer.quantile)
    asked = Asked([partial(quantile, p=p) for p in wanted])
    if one.likelihood is None:
        found = from_others(fitted, data, view)
        tables = found.of_view(view, asked)
    else:
        found, tables = _as_if_left_out(fitted, data, view, asked)
    return [labelled(table, found.samples, one.outputs) for table in tables]


def _as_if_left_out(
    fitted: Fitted, data: Any, view: str, asked: Asked
) -> tuple[Prediction, list[Array]]:
    """What is asked of a view from the others, and of its single holes from its other columns too.

    Where there are no others, all follows from the view itself.
    """
    whole = given(fitted, data)
    found = whole.without(fitted.views[view].source)
    if not found.tables and view not in whole.tables:
        raise _nothing_else(fitted, view)
    if not found.tables:
        return whole, whole.of_view(view, asked)
    tables = found.of_view(view, asked)
    if view in whole.tables:
        names = found.samples.names
        rows = slice(None) if names is None else whole.samples.names.get_indexer(names)
        holes = (whole.missing(view) & whole.seen(view)[:, None])[rows]
        if holes.any():
            filled = whole.of_view(view, asked)
            tables = [np.where(holes, a[rows], b) for a, b in zip(filled, tables, strict=True)]
    return found, tables


def reconstruct(
    fitted: Fitted,
    data: Any,
    view: str | None,
    return_std: bool,
    proba: bool,
    deliver: Deliver = at_once,
) -> Any:
    """What `FactorModel.reconstruct` returns."""
    found, proba = given(fitted, data), flag("proba", proba)
    views = fitted.views if view is None else {view: fitted.view(view)}
    probable = [n for n in views if proba and (n == view or views[n].layer.has("probability"))]
    asked = {
        name: _proba_of(name, one) if name in probable else _prediction_of(name, one, return_std)
        for name, one in views.items()
    }

    def answer(found: Prediction) -> Any:
        tables = {
            name: labelled(values[0], found.samples, views[name].outputs)
            if name in probable
            else _returned(values, views[name], found.samples)
            for name, values in found.by_factors(asked).items()
        }
        if view is not None:
            return tables[view]
        if not return_std:
            return tables
        pairs = {name: pair for name, pair in tables.items() if name not in probable}
        means = tables | {name: mean for name, (mean, _) in pairs.items()}
        return means, {name: std for name, (_, std) in pairs.items()}

    classes = None if view is None or view in probable else views[view].classes
    return deliver(found, answer, classes)


def impute(fitted: Fitted, data: Any) -> dict[str, Any]:
    """What `FactorModel.impute` returns."""
    found = given(fitted, data)
    tables = {name: np.array(found.samples.spread(table)) for name, table in found.tables.items()}
    asked = {
        name: Asked([likelihood.fill])
        for name, values in tables.items()
        if (likelihood := fitted.views[name].likelihood) is not None and np.isnan(values).any()
    }
    for name, (prediction,) in found.of_views(asked).items():
        holes = np.isnan(tables[name])
        tables[name][holes] = prediction[holes]
    _warn_of_holes_that_stay(found, tables)
    return {
        fitted.views[name].source: restored(values, found.tables[name], found.samples)
        for name, values in tables.items()
    }


def _warn_of_holes_that_stay(found: Prediction, tables: Mapping[str, Array]) -> None:
    """A kernel explains similarities between rows, from which no value of a column follows."""
    holed = {found.views[name].source: None for name in tables if np.isnan(tables[name]).any()}
    if holed:
        names = ", ".join(map(repr, holed))
        warn(f"Holes of {names} stay: declare a view without a kernel to have its columns filled.")


# ---------------------------------------------------------------- what is asked, and returned


def _proba_of(name: str, view: FittedView) -> Asked:
    return Asked([_explaining(name, view, "probabilities", view.layer.probability)])


def _prediction_of(name: str, view: FittedView, return_std: bool) -> Asked:
    if not flag("return_std", return_std):
        return Asked([view.layer.predict], by_mean=view.layer.predicts_by_mean)
    std = _explaining(name, view, "standard deviation", view.layer.std)
    return Asked([view.layer.predict, std])


def _returned(values: Sequence[Array], view: FittedView, samples: Samples) -> Any:
    """A table, or means and their deviations."""
    if len(values) == 1:
        return decoded(values[0], view, samples)
    return tuple(labelled(one, samples, view.outputs) for one in values)


def _explaining(
    name: str, view: FittedView, what: str, function: Callable[..., Array]
) -> Callable[..., Array]:
    """The function, but saying in the user's words that a kind of view does not have it."""

    def explained(*layer: Array, **options: Any) -> Array:
        try:
            return function(*layer, **options)
        except NotImplementedError:
            through = "" if view.likelihood is not None else " that is explained through a kernel"
            raise DataError(
                f"a {view.declared} view{through} has no {what}", name, use=view.layer.offers()
            ) from None

    return explained


def _probabilities(quantiles: Any, view: str) -> Array:
    try:
        wanted = np.atleast_1d(np.asarray(quantiles, dtype=float))
    except (TypeError, ValueError, OverflowError):  # words, or rows of different lengths
        wanted = np.full(1, np.nan)
    within = wanted.ndim == 1 and wanted.size > 0 and bool(((wanted > 0) & (wanted < 1)).all())
    if not within:
        what, cure = "expected quantiles as a list of numbers between 0 and 1", "write [0.05, 0.95]"
        raise DataError(what, view, got=quantiles, option="quantiles", cure=cure)
    return wanted
