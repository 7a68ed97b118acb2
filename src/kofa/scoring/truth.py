"""What a model predicts of a view in data, beside the truth."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kofa.data.tables import Samples
from kofa.errors import DataError
from kofa.linalg import Array
from kofa.preparation.prepare import FittedView
from kofa.results.answers import from_others, given
from kofa.scores import MEDIAN, HeldOut, column_means, scores_of, typical
from kofa.scoring.tables import (
    ALL,
    prediction_rows,
    quantiles_of_levels,
    sample_names,
    score_rows,
)


@dataclass(frozen=True, eq=False)
class Compared:
    """Predictions of one view from the others, and the truth in the same data."""

    view: str
    columns: list[Hashable]
    samples: list[Any]
    held: HeldOut

    @property
    def rows(self) -> Any:
        """A table as from `kofa.cross_validate`, as one fold."""
        return prediction_rows(0, self.view, self.columns, self.held, self.samples)

    @property
    def scores(self) -> Any:
        """A table as from `kofa.cross_validate`, of all samples together."""
        wanted = scores_of(self.held.likelihood)
        return score_rows(ALL, self.view, self.columns, self.held, wanted)


def predicted(model: Any, data: Any, view: Any) -> Any:
    """A table as from `kofa.cross_validate`, but of given data, as one fold."""
    return compared(model, data, view).rows


def compared(model: Any, data: Any, view: Any) -> Compared:
    """What a model predicts of a view in data from the other views, beside the truth."""
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
    values = np.asarray(found.samples.spread(found.tables[name]))
    truth = _truth(one, values)[_rows(found.samples, samples)]
    held = _held_out(model, data, name, one, truth)
    names = sample_names(samples, np.arange(samples.n))
    return Compared(name, _columns(one, truth.shape[1]), names, held)


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


def means(model: Any, data: Any, name: str, view: FittedView) -> Array:
    """What is predicted of all samples: means, or probabilities of ones or classes."""
    assert view.likelihood is not None
    probable = view.likelihood.has("probability")
    found = model.predict_proba(data, name) if probable else model.predict(data, name)
    return np.asarray(found, dtype=float)


def _held_out(model: Any, data: Any, name: str, view: FittedView, truth: Array) -> HeldOut:
    assert view.likelihood is not None
    kind = type(view.likelihood)
    wanted = quantiles_of_levels() if kind.has("quantile") else []
    wanted += [MEDIAN] * (kind.deviance_at == "median")
    tables = model.predict_quantiles(data, name, wanted) if wanted else []
    return HeldOut(
        kind,
        truth,
        means(model, data, name, view),
        {p: np.asarray(table) for p, table in zip(wanted, tables, strict=True)},
        np.broadcast_to(column_means(truth), truth.shape),
        np.broadcast_to(_typical(kind, truth), truth.shape),
    )


def _typical(kind: Any, truth: Array) -> Array:
    """What one would predict without the model; NaN in columns of which nothing is known."""
    found = np.full(truth.shape[1], np.nan)
    known = ~np.isnan(truth).all(axis=0)
    if known.any():
        found[known] = typical(kind, truth[:, known])
    return found
