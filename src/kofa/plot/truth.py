"""What a model predicts of a view in data, beside the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from kofa.data.tables import Samples
from kofa.errors import DataError
from kofa.linalg import Array
from kofa.preparation.prepare import FittedView
from kofa.results.answers import from_others, given
from kofa.scores import HeldOut
from kofa.scoring.tables import prediction_rows, quantiles_of_levels, sample_names


def predicted(model: Any, data: Any, view: Any) -> Any:
    """A table as from `kofa.cross_validate`, but of given data, as one fold."""
    if data is None:
        raise DataError("expected data with the true values", cure="pass data")
    fitted = model._fitted
    name = fitted.asked_for(view)
    one = fitted.views[name]
    if one.likelihood is None:
        raise DataError("similarities have no truth to compare with", name, use=["plot.kernel"])
    found = given(fitted, data)
    if name not in found.tables:
        raise DataError(f"data have no view {name!r} with the true values")
    samples = from_others(fitted, data, name).samples
    given_values = np.asarray(found.samples.spread(found.tables[name]))
    truth = _truth(one, given_values)[_rows(found.samples, samples)]
    held = _held_out(model, data, name, one, truth)
    names = sample_names(samples, np.arange(samples.n))
    return prediction_rows(0, name, _columns(one, truth.shape[1]), held, names)


def _rows(all_samples: Samples, some: Samples) -> Any:
    """Where samples stand among all."""
    if all_samples.names is None or some.names is None:
        return np.arange(some.n)
    return all_samples.names.get_indexer(some.names)


def _truth(view: FittedView, values: Array) -> Array:
    """Values, or of labels a one in the column of the class."""
    if view.classes is None:
        return values
    one = np.where(values == np.arange(len(view.classes)), 1.0, 0.0)
    one[np.isnan(values[:, 0])] = np.nan
    return one


def _columns(view: FittedView, n: int) -> list[Any]:
    names = view.outputs if view.classes is None else view.classes.tolist()
    return list(range(n)) if names is None else list(names)


def _held_out(model: Any, data: Any, name: str, view: FittedView, truth: Array) -> HeldOut:
    assert view.likelihood is not None
    probable = view.likelihood.has("probability")
    mean = model.predict_proba(data, name) if probable else model.predict(data, name)
    wanted = quantiles_of_levels() if view.likelihood.has("quantile") else []
    tables = model.predict_quantiles(data, name, wanted) if wanted else []
    quantiles = {p: np.asarray(table) for p, table in zip(wanted, tables, strict=True)}
    nothing = np.full(truth.shape, np.nan)
    kind = type(view.likelihood)
    return HeldOut(kind, truth, np.asarray(mean, dtype=float), quantiles, nothing, nothing)
