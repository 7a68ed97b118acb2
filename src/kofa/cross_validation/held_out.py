"""One fold: a fit without the samples of a test set, and predictions for them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from kofa.cross_validation.folds import Fold
from kofa.cross_validation.model import Model
from kofa.cross_validation.parts import ViewsData
from kofa.errors import DataError
from kofa.linalg import Array
from kofa.scores import HeldOut, column_means, typical


class FoldResult(NamedTuple):
    """The predictions of each output, and the warnings of the fit."""

    held_out: dict[str, HeldOut]
    warnings: list[tuple[type[Warning], str]]


def fit_and_predict(
    model: Model,
    given: ViewsData,
    outputs: Mapping[str, Sequence[float]],
    fold: Fold,
    number: int,
) -> FoldResult:
    """Fit a copy of the model to the training samples; predict the outputs of the others.

    `outputs` has the quantiles that are wanted of each.
    """
    hidden = {*outputs, *(() if model.outputs is None else model.outputs)}
    inputs = [name for name in given.views if name not in hidden]
    # Of a model in another process a warning would be lost: they are passed on by the caller.
    with warnings.catch_warnings(record=True) as caught, naming_fold(number):
        warnings.simplefilter("always")
        fitted = clone(model).set_params(checkpoint=None).fit(given.training(fold.train))
        new = given.new(inputs, fold.test, fold.train)
        held = {
            name: _held_out(fitted, given, name, new, fold, quantiles)
            for name, quantiles in outputs.items()
        }
    return FoldResult(held, [(one.category, str(one.message)) for one in caught])


@contextmanager
def naming_fold(number: int) -> Iterator[None]:
    """Errors within say in which fold they came up."""
    try:
        yield
    except DataError as error:
        raise error.as_error(DataError, source=f"Fold {number}") from error


def _held_out(
    fitted: Model,
    given: ViewsData,
    name: str,
    new: dict[str, Any],
    fold: Fold,
    quantiles: Sequence[float],
) -> HeldOut:
    likelihood = given.views[name].likelihood
    truth, seen = given.values(name, fold.test), given.values(name, fold.train)
    tables = fitted.predict_quantiles(new, name, quantiles) if quantiles else []
    return HeldOut(
        likelihood,
        truth,
        _mean(fitted, given, name, new),
        {p: np.asarray(table) for p, table in zip(quantiles, tables, strict=True)},
        np.broadcast_to(column_means(seen), truth.shape),
        np.broadcast_to(typical(likelihood, seen), truth.shape),
    )


def _mean(fitted: Model, given: ViewsData, name: str, new: dict[str, Any]) -> Array:
    """Means or probabilities (n, D); a class that the fit has not seen has probability zero."""
    likelihood = given.views[name].likelihood
    if not likelihood.has("probability"):
        return np.asarray(fitted.predict(new, name))
    found = np.asarray(fitted.predict_proba(new, name))
    if not likelihood.reads_labels:
        return found
    place = {label: j for j, label in enumerate(given.columns(name))}
    probability = np.zeros((len(found), len(place)))
    probability[:, [place[label] for label in fitted.classes_[name].tolist()]] = found
    return probability
