"""Tables of factors, weights and data, from a fitted model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kofa.checks import is_among, listed
from kofa.data.tables import Table, import_pandas
from kofa.errors import DataError
from kofa.inspection.enrichment import enrich as enrich_weights
from kofa.inspection.overview import Overview, overview
from kofa.inspection.weights import feature_weights, is_linear
from kofa.kernels.kernel_map import KernelMap
from kofa.preparation.fitted import FitSamples, Fitted
from kofa.results.answers import given
from kofa.results.prediction import Prediction


def kept(fitted: Fitted, cure: str = "pass data=, the tables of some samples") -> FitSamples:
    """What a model keeps of its samples, or how to do without."""
    if fitted.samples is None:
        what = (
            "this model keeps no samples of its fit: it was saved with samples=False or by kofa "
            "0.1, or they were too many"
        )
        raise DataError(what, option="data", cure=cure)
    return fitted.samples


# ---------------------------------------------------------------- factors


def factor_table(fitted: Fitted, data: Any = None) -> Table:
    """The factors of the samples of the fit, or of new data."""
    columns = tuple(fitted.factor_names)
    if data is not None:
        found = given(fitted, data)
        return Table("factors", _projected(fitted, found), found.samples.names, columns)
    samples = kept(fitted)
    names = samples.names
    if names is not None:  # of a list of tuples pandas makes a MultiIndex
        names = import_pandas().Index(list(names) if names.dtype == object else names)
    return Table("factors", samples.factors, names, columns)


def _projected(fitted: Fitted, found: Prediction) -> Any:
    if not found.samples.n:
        return np.zeros((0, fitted.n_factors))
    return np.concatenate([fitted.basis.of_samples(q.mean) for q, _ in found.project()])


def factors(fitted: Fitted, data: Any = None) -> Any:
    """The same as a DataFrame."""
    table, pd = factor_table(fitted, data), import_pandas()
    return pd.DataFrame(table.dense.copy(), index=table.samples, columns=list(table.columns or ()))


# ---------------------------------------------------------------- weights


def enrich(
    fitted: Fitted, view: str, sets: Any, factor: Any, data: Any, options: Mapping[str, Any]
) -> Any:
    """`kofa.inspection.enrich` of standardised weights."""
    one = fitted.view(view)
    if isinstance(one.encoder, KernelMap) and not is_linear(one):
        what = "a kernel that is not linear has weights of samples, not of features"
        raise DataError(what, view, cure="declare it without a kernel, or with kernel='linear'")
    found = feature_weights(fitted, view)
    weights = import_pandas().DataFrame(
        found.standardised, index=found.features, columns=fitted.factor_names
    )
    if data is None:
        return enrich_weights(weights, sets, factor, **options)
    applied = given(fitted, data)
    if not is_among(view, applied.tables):
        what = f"expected data of this view but got only {listed(applied.tables)}"
        raise DataError(what, view, cure="add it, or leave out data")
    Z = Table("factors", _projected(fitted, applied), applied.samples.names)
    values = applied.samples.spread(applied.tables[view])
    own = Table("data", values, applied.samples.names, tuple(found.features))
    return enrich_weights(weights, sets, factor, data=own, factors=Z, **options)


# ---------------------------------------------------------------- data


def data_overview(fitted: Fitted) -> Overview:
    """What the samples of the fit had of each declared view."""
    samples = kept(fitted, "use kofa.inspection.data_overview(data)")
    widths = {view.source: view.n_inputs for view in fitted.views.values()}
    counts = dict(zip(fitted.sources, samples.measured.astype(np.intp).T, strict=True))
    return overview(counts, widths, samples.names)
