"""The samples that a report shows: their factors, and what their points may be coloured by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kofa.data.tables import Table
from kofa.errors import DataError
from kofa.inspection.covariates import Covariate, as_covariate, read_covariates
from kofa.inspection.features import feature_names, relevances, weighted
from kofa.inspection.matching import match
from kofa.inspection.of_model import factor_table
from kofa.inspection.weights import feature_weights, is_linear
from kofa.kernels.kernel_map import KernelMap
from kofa.linalg import Array, BoolArray, IntArray
from kofa.preparation.fitted import Fitted
from kofa.preparation.prepare import FittedView
from kofa.report import encoding
from kofa.report.outcomes import Outcome
from kofa.results.answers import given
from kofa.results.prediction import Prediction

MOST_SAMPLES = 100_000  # in a file: of more, some drawn at random
MOST_DRAWN = 3_000  # points that a browser moves without a pause
_COARSE_FROM = 20_000  # samples whose numbers have five digits instead of fifteen
_MOST_COLUMNS = 6  # of a view, or of an output
_MOST_COVARIATES = 40


@dataclass(frozen=True, eq=False)
class Shown:
    """Samples with their factors; those of the fit, or of data."""

    factors: Table
    of_fit: bool | None  # None: the model does not keep those of its fit
    applied: Prediction | None = None  # the model applied to data, if there are some

    @property
    def n(self) -> int:
        return len(self.factors.values)

    @property
    def names(self) -> Sequence[Any]:
        return range(self.n) if self.factors.samples is None else self.factors.samples

    @property
    def kept(self) -> IntArray:
        """Those that go into the file."""
        if self.n <= MOST_SAMPLES:
            return np.arange(self.n)
        rng = np.random.default_rng(0)
        return np.sort(rng.choice(self.n, MOST_SAMPLES, replace=False))


def shown_samples(fitted: Fitted, data: Any) -> Shown | None:
    """The samples of data, or those of the fit if the model keeps them."""
    if data is not None:
        factors = factor_table(fitted, data)
        return Shown(factors, _are_of_fit(fitted, np.asarray(factors.values)), given(fitted, data))
    return None if fitted.samples is None else Shown(factor_table(fitted), True)


def _are_of_fit(fitted: Fitted, factors: Array) -> bool | None:
    """Whether factors are those of the samples of the fit."""
    if fitted.samples is None:
        return None
    own = fitted.samples.factors
    return own.shape == factors.shape and bool(np.allclose(own, factors, atol=1e-3))


def who_has(fitted: Fitted, shown: Shown) -> dict[str, BoolArray]:
    """Which of the samples have something of each declared view."""
    if shown.applied is not None:
        seen, views = shown.applied.seen, fitted.views
        return {views[name].source: seen(name) for name in shown.applied.tables}
    assert fitted.samples is not None
    return dict(zip(fitted.sources, fitted.samples.measured.T > 0, strict=True))


# ---------------------------------------------------------------- colours


def colours(
    fitted: Fitted, shown: Shown, covariates: Any, outcomes: Mapping[str, Outcome]
) -> Iterator[tuple[str, Covariate]]:
    """What points may be coloured by, each with the name of its group."""
    if covariates is not None:
        yield from (("covariates", one) for one in _spread(shown.factors, covariates))
    for name, outcome in outcomes.items():
        for one in _predictions(fitted.views[name], outcome, shown):
            yield "predictions", one
    if shown.applied is not None:
        for name, view in _one_of_each(fitted, shown.applied).items():
            values = np.asarray(shown.applied.samples.spread(shown.applied.tables[name]))
            yield from ((view.source, one) for one in _columns(fitted, name, view, values))


def _spread(factors: Table, covariates: Any) -> Iterator[Covariate]:
    """Covariates in the order of the samples, NaN where a sample has none."""
    table, index = read_covariates(covariates)
    mine = ("factors", factors.samples, len(factors.values))
    rows, theirs = match(mine, ("covariates", index, len(table)))
    for name in list(table.columns)[:_MOST_COVARIATES]:
        found = as_covariate(name, table[name].iloc[theirs])
        values = np.full(len(factors.values), np.nan)
        values[rows] = found.values
        yield Covariate(found.name, found.kind, values, found.labels)


def _predictions(view: FittedView, outcome: Outcome, shown: Shown) -> Iterator[Covariate]:
    """Predicted labels, or the first columns of what is predicted."""
    mean = np.full((shown.n, outcome.mean.shape[1]), np.nan)
    mean[outcome.rows(shown.factors.samples)] = outcome.mean
    if view.classes is not None:
        labels = np.where(np.isnan(mean[:, 0]), np.nan, np.argmax(mean, axis=1))
        yield Covariate(outcome.name, "category", labels, tuple(view.classes.tolist()))
        return
    for j, column in enumerate(outcome.columns[:_MOST_COLUMNS]):
        one = outcome.name if len(outcome.columns) == 1 else f"{outcome.name}: {column}"
        yield Covariate(one, "number", mean[:, j])


def _one_of_each(fitted: Fitted, applied: Prediction) -> dict[str, FittedView]:
    """Views by name; of those that one table has several times, by each kernel, the first."""
    found: dict[str, tuple[str, FittedView]] = {}
    for name, view in fitted.views.items():
        if name in applied.tables:
            found.setdefault(view.source, (name, view))
    return dict(found.values())


def _columns(fitted: Fitted, name: str, view: FittedView, values: Array) -> Iterator[Covariate]:
    """The columns of a view with the largest weights, or its labels."""
    if view.classes is not None:
        yield Covariate(view.source, "category", values[:, 0], tuple(view.classes.tolist()))
        return
    features = feature_names(view)
    for j in leading_columns(fitted, name, view, values.shape[1]):
        kind, labels = ("binary", (0, 1)) if view.kind.binary() else ("number", ())
        column = features[j] if view.inputs is not None else f"{view.source}, column {j}"
        yield Covariate(column, kind, values[:, j], labels)


def leading_columns(fitted: Fitted, name: str, view: FittedView, width: int) -> list[int]:
    """The columns of a view that matter most: by weight, or by their relevance in a kernel."""
    if not isinstance(view.encoder, KernelMap) or is_linear(view):
        size = np.abs(feature_weights(fitted, name).standardised).max(axis=1)
    elif weighted(view.encoder.kernel) is not None:
        size = relevances(name, view, fitted.posterior[name])
    else:
        size = np.zeros(0)
    order = np.argsort(-size, kind="stable")[:_MOST_COLUMNS]
    return [int(j) for j in order if j < width and size[j] > 0]


# ---------------------------------------------------------------- for the page


def samples_content(
    fitted: Fitted, shown: Shown, covariates: Any, outcomes: Mapping[str, Outcome]
) -> dict[str, Any]:
    """Names, factors and colours of the samples, as the page reads them."""
    if not shown.n:
        raise DataError("expected at least one sample to show but got none", option="data")
    rows = shown.kept
    encode = encoding.coarse if len(rows) > _COARSE_FROM else encoding.numbers
    factors = [
        {"name": encoding.name(name)} | encode(z)
        for name, z in zip(fitted.factor_names, shown.factors.values[rows].T, strict=True)
    ]
    found = [
        {"name": encoding.name(one.name), "group": encoding.name(group)}
        | _encoded(one, rows, encode)
        for group, one in colours(fitted, shown, covariates, outcomes)
    ]
    names = shown.names
    return {
        "n": len(rows),
        "total": shown.n,
        "most_drawn": MOST_DRAWN,
        "names": encoding.words(names[row] for row in rows.tolist()),
        "factors": factors,
        "colours": found,
    }


def _encoded(one: Covariate, rows: IntArray, encode: Any) -> dict[str, Any]:
    values = one.values[rows]
    found: dict[str, Any] = (
        encode(values) if one.kind == "number" else encoding.classes(values, one.labels)
    )
    return found
