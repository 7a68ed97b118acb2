"""What factors mean: covariates, and sets of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kofa.data.tables import import_pandas
from kofa.errors import DataError
from kofa.inspection.weights import is_linear
from kofa.linalg import Array
from kofa.preparation.prepare import FittedView
from kofa.report.panels import Found, Panel, Section, drawn


def association(found: Found) -> Section | None:
    """Factors and covariates."""
    if found.covariates is None:
        return None
    table = found.model.associate(found.covariates, found.data)
    of_classes = (table["statistic"] == "eta_squared").to_numpy()
    eta = np.sqrt(table["value"].to_numpy(float).clip(0.0))
    table = table.assign(effect=np.where(of_classes, eta, table["r"].to_numpy(float)))
    picture = drawn(
        "heat",
        "Correlation of factors and covariates; stars: q below .05, .01, .001",
        rows="factor",
        columns="covariate",
        value="effect",
        signed=True,
        limit=1,
        stars="q",
    )
    text = (
        "How factors go with what is known of the samples besides: r is Pearson's correlation, AUC "
        "the probability that a sample of the later class has the higher factor, η² the share of "
        "the factor's variance between categories. q is by Benjamini and Hochberg. The picture has "
        "r, and η for categories."
    )
    hidden = ("r", "effect", *(("note",) if not table["note"].astype(bool).any() else ()))
    panel = Panel("association", table, "Association with covariates", picture, hidden=hidden)
    return Section("association", "Association with covariates", text, (panel,))


def enrichment(found: Found, tables: Mapping[str, Any]) -> Section | None:
    """Feature sets with other weights than the rest; tables as from `enrich`, by view."""
    if not tables:
        return None
    pd = import_pandas()
    table = pd.concat(
        [one.assign(view=name)[["view", *one.columns]] for name, one in tables.items()],
        ignore_index=True,
    )
    table = table.assign(surprise=_surprise(table))
    picture = drawn(
        "heat",
        "−log10 q with the sign of the difference; stars: q below .05, .01, .001",
        rows="set",
        columns="factor",
        value="surprise",
        signed=True,
        stars="q",
        most=30,
    )
    how = (
        ""
        if found.data is not None
        else " No data were passed, so that features count as independent: p is too small for sets "
        "whose features go together."
    )
    text = (
        "Feature sets whose weights in a factor differ from those of the other features: a t test "
        f"that allows for correlated features.{how}"
    )
    panel = Panel(
        "enrichment", table, "Enriched feature sets", picture, choose=("view",),
        hidden=("surprise",),
    )  # fmt: skip
    return Section("enrichment", "Enriched feature sets", text, (panel,))


def _surprise(table: Any) -> Array:
    size = -np.log10(np.maximum(table["q"].to_numpy(float), 1e-300))
    return np.asarray(np.sign(table["difference"].to_numpy(float)) * size)


def enriched(found: Found) -> dict[str, Any]:
    """Tables as from `enrich` of the views that have features of the sets."""
    if found.sets is None:
        return {}
    tables: dict[str, Any] = {}
    refused: list[DataError] = []
    for name in filter(lambda name: _has_features(found.fitted.views[name]), found.fitted.views):
        applied = None if found.shown is None else found.shown.applied
        own = found.data if applied is not None and name in applied.tables else None
        try:
            tables[name] = found.model.enrich(name, found.sets, data=own)
        except DataError as error:  # of features that are in no set
            refused.append(error)
    if not tables:
        what = refused[0].what if refused else "no view has weights of features"
        cure = "pass sets of which at least 10, but not all, are features of a view"
        raise DataError(what, option="sets", source="sets", cure=cure)
    return tables


def _has_features(view: FittedView) -> bool:
    """Whether its weights are those of features, not of classes or samples."""
    return view.classes is None and (view.likelihood is not None or is_linear(view))
