"""The sections of a report: tables of what was found, and how each is drawn.

A section has panels. A panel has a table, the fields by which its rows are chosen, and a picture of
the rows that are chosen; what all of these look like is up to the page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kofa.data.tables import import_pandas
from kofa.errors import DataError
from kofa.inspection.features import feature_names
from kofa.preparation.fitted import Fitted
from kofa.report.panels import Found, Panel, Section, drawn
from kofa.report.repeat import few_digits
from kofa.report.summary import counted

_MOST_WEIGHTS = 200_000  # in a file; of more, the largest of each view and factor


# ---------------------------------------------------------------- views, factors


def views_panel(found: Found) -> Panel:
    """The declared views, and what was measured of each."""
    fitted, pd = found.fitted, import_pandas()
    rows = []
    for source in fitted.sources:
        names = [name for name, view in fitted.views.items() if view.source == source]
        view = fitted.views[names[0]]
        kernels = [
            few_digits(repr(fitted.kernels[name])) for name in names if name in fitted.kernels
        ]
        rows.append(
            {
                "view": source,
                "kind": view.declared,
                "role": "output" if view.role.output else "input",
                "columns": view.n_inputs,
                "kernel": ", ".join(kernels) or None,
            }
        )
    table = pd.DataFrame(rows)
    if found.overview is not None:
        measured = found.overview.views.set_index("view").reindex(table["view"])
        table["samples"] = measured["n_samples"].to_numpy()
        table["missing"] = measured["missing"].to_numpy(float)
    return Panel("views", table, "Views of the model", shares=("missing",))


def measured_panel(found: Found) -> Panel | None:
    """Which samples were measured in which views together."""
    if found.overview is None or found.overview.samples.shape[1] < 2:
        return None
    has = found.overview.samples > 0
    counts = has.value_counts()
    if len(counts) < 2:
        return None
    table = counts.rename("samples").reset_index()
    return Panel("measured", table, "How many samples have which views")


def variance(found: Found) -> Section | None:
    """What each factor explains of each view."""
    data = None if found.fitted.explained else found.data
    if data is None and not found.fitted.explained:
        return None
    by_factor = found.model.variance_explained(data)
    by_view = found.model.variance_explained(data, by="view")
    picture = drawn(
        "heat",
        "Share of each view that each factor explains",
        rows="factor",
        columns="view",
        value="r2",
        least=0,
        share=True,
    )
    bars = drawn(
        "bars", "Share of each view that all factors explain", label="view", value="r2", share=True
    )
    text = (
        "The share of the variance of a view (of kinds that are not Gaussian, of its deviance) "
        "that factors explain. What they say alike is divided among them, so that the shares of "
        "the factors add up to that of all. Outputs are explained by factors known from the inputs."
    )
    panels = (
        Panel("variance", by_factor, "Variance explained by each factor", picture, shares=("r2",)),
        Panel(
            "variance-by-view",
            by_view,
            "Variance explained by all factors",
            bars,
            shares=("r2",),
            hidden=("shared",),
        ),
    )
    return Section("variance", "Variance explained", text, panels)


def relevance(found: Found) -> Section:
    """Which factor is at work in which view."""
    picture = drawn(
        "heat",
        "Relevance of each factor in each view; • where it is active",
        rows="factor",
        columns="view",
        value="relevance",
        least=0,
        share=True,
        mark="active",
    )
    text = (
        "The share that the weights of a factor have in the variance of a view, by the parameters "
        "of the model. A factor is active where that is more than chance and more than a hundredth "
        "of what all factors have there; it links the views in which it is active. Its label is "
        "predictive if an output is among these, else shared if there are several, or private."
    )
    table = found.model.factor_relevance()
    panel = Panel(
        "relevance", table, "Factors by view", picture, shares=("relevance",), hidden=("links",)
    )
    return Section("relevance", "Factors by view", text, (panel,))


# ---------------------------------------------------------------- weights


def weights(found: Found) -> Section:
    """The weights of all views, or of large ones the largest."""
    table, thinned = _weights(found)
    note = (
        f"Of each view and factor the {thinned:,} weights of the largest size are here."
        if thinned
        else ""
    )
    picture = drawn(
        "bars",
        "The largest weights; pale where the sign is not certain",
        label="feature",
        value="standardised",
        most=25,
        by_size=True,
        signed=True,
        pale="lfsr",
    )
    text = (
        "What one unit of a factor adds to a feature, in its units (weight, with its standard "
        "deviation) and in standard deviations of the feature (standardised). lfsr is the "
        "probability that the weight has the other sign. Features of a view with a kernel that is "
        "not linear are samples that others are compared with."
    )
    panel = Panel(
        "weights", table, "Weights", picture, choose=("view", "factor"), every=("factor",),
        threshold="standardised", note=note,
    )  # fmt: skip
    return Section("weights", "Weights", text, (panel,))


def _weights(found: Found) -> tuple[Any, int]:
    """The weights, and how many of each view and factor if not all."""
    fitted, pd = found.fitted, import_pandas()
    widths = [len(fitted.posterior[name].weights.mean) for name in fitted.views]
    if sum(widths) * fitted.n_factors <= _MOST_WEIGHTS:
        parts = [_by_size(found.model.weights(name, tidy=True)) for name in fitted.views]
        return _under_each_other(pd, fitted, parts), 0
    most = max(_MOST_WEIGHTS // (len(widths) * fitted.n_factors), 1)
    parts = [
        pd.concat(
            [
                found.model.top_features(name, factor, most).assign(factor=factor)
                for factor in fitted.factor_names
            ]
        )
        for name in fitted.views
    ]
    return _under_each_other(pd, fitted, parts), most


def _by_size(table: Any) -> Any:
    """The largest weights of each factor first."""
    size = -table["standardised"].abs().to_numpy(float)
    factor = np.unique(table["factor"].to_numpy(str), return_inverse=True)[1]
    return table.iloc[np.lexsort((size, factor))]


def _under_each_other(pd: Any, fitted: Fitted, parts: list[Any]) -> Any:
    named = [part.assign(view=name) for name, part in zip(fitted.views, parts, strict=True)]
    columns = ["view", "feature", "factor", "weight", "std", "standardised", "lfsr"]
    return pd.concat(named, ignore_index=True)[columns]


# ---------------------------------------------------------------- features, samples, kernels


def features(found: Found) -> Section | None:
    """The relevance of features, where it was learnt."""
    fitted, pd = found.fitted, import_pandas()
    parts = []
    for name, view in fitted.views.items():
        try:
            table = found.model.feature_relevance(name)
        except DataError:  # which it has not
            continue
        place = {feature: j for j, feature in enumerate(feature_names(view))}
        position = table["feature"].map(place)
        parts.append(table.assign(view=name, position=position))
    if not parts:
        return None
    table = pd.concat(parts, ignore_index=True)
    table = table[["view", *(one for one in table.columns if one != "view")]]
    shapes = {
        name: list(found.shapes[view.source])
        for name, view in fitted.views.items()
        if view.source in found.shapes
    }
    picture = drawn(
        "features",
        "The most relevant features; pale where they are not selected",
        label="feature",
        value="relevance",
        most=30,
        pale="selected",
        shapes=shapes,
    )
    text = (
        "How much each feature matters: of a kernel with learnt relevances its λ, of a sparse view "
        "its signal in units of its noise."
    )
    panel = Panel(
        "features", table, "Relevance of features", picture, choose=("view",), hidden=("position",)
    )
    return Section("features", "Features that matter", text, (panel,))


def vectors(found: Found) -> Section | None:
    """Relevance vectors of sparse kernelized views."""
    names = [name for name, view in found.fitted.views.items() if view.vectors is not None]
    if not names:
        return None
    parts = [found.model.relevance_vectors(name).assign(view=name) for name in names]
    table = import_pandas().concat(parts, ignore_index=True)
    table = table[["view", "sample", "relevance", "order", "kept"]]
    picture = drawn(
        "bars",
        "The first relevance vectors; pale where they were not kept",
        label="sample",
        value="relevance",
        most=30,
        pale="kept",
    )
    text = (
        "The samples that others are compared with. Relevance is what the log-evidence of the "
        "outputs loses without the sample, or would gain with it if it was not kept; without "
        "outputs, the variance of the kernel that it adds."
    )
    panel = Panel("vectors", table, "Relevance vectors", picture, choose=("view",))
    return Section("vectors", "Relevance vectors", text, (panel,))


def kernels(found: Found) -> Section | None:
    """Kernels, and the shares of views and kernels in the factors and in each output."""
    panels = [panel for panel in (_shares(found), _kernels(found)) if panel is not None]
    if not panels:
        return None
    if panels[0].name != "kernels":
        text = "The kernels through which views are explained."
        return Section("kernels", "Kernels", text, tuple(panels))
    title = "Kernels and shares of views" if found.fitted.kernels else "Shares of views"
    text = (
        "Of the factors: the share in what is known about them. Of an output: the share in the "
        "variance of its predictions. A view has one share for each of its kernels."
    )
    return Section("kernels", title, text, tuple(panels))


def _shares(found: Found) -> Panel | None:
    """Where there are several to share."""
    fitted, pd = found.fitted, import_pandas()
    if not fitted.kernels and not fitted.outputs:
        return None
    parts = [found.model.kernel_weights().assign(of="factors")]
    parts += [found.model.kernel_weights(name).assign(of=name) for name in fitted.outputs]
    table = pd.concat(parts, ignore_index=True)
    table = table.assign(part=_parts(table))[["of", "view", "kernel", "weight", "part"]]
    if table["part"].nunique() < 2:
        return None
    title = "Share of each view and kernel in the factors, and in each output"
    picture = drawn("stacked", title, label="of", part="part", value="weight")
    hidden = ("part",) if fitted.kernels else ("part", "kernel")
    title = "Shares of views and kernels" if fitted.kernels else "Shares of views"
    return Panel("kernels", table, title, picture, shares=("weight",), hidden=hidden)


def _kernels(found: Found) -> Panel | None:
    """The kernels with what was learnt of them."""
    kernels = found.fitted.kernels
    if not kernels:
        return None
    rows = [
        {
            "view": name,
            "kernel": few_digits(repr(kernel)),
            "landmarks": len(found.fitted.views[name].landmarks),
        }
        for name, kernel in kernels.items()
    ]
    return Panel("kernels-learnt", import_pandas().DataFrame(rows), "Kernels as fit resolved them")


def _parts(table: Any) -> list[str]:
    """A view, with its kernel where it has one."""
    pairs = zip(table["view"], table["kernel"], strict=True)
    return [str(view) if kernel == "none" else f"{view}, {kernel}" for view, kernel in pairs]


# ---------------------------------------------------------------- the fit


def bound(found: Found) -> Section:
    """How the bound grew."""
    pd = import_pandas()
    total = pd.DataFrame(
        {
            "term": "bound",
            "iteration": np.arange(1, len(found.fitted.bounds) + 1),
            "value": found.fitted.bounds,
        }
    )
    table = pd.concat([total, found.model.bound_terms()[list(total.columns)]], ignore_index=True)
    picture = drawn(
        "line",
        "The evidence lower bound, or one of its terms, by iteration",
        x="iteration",
        y="value",
    )
    end = "converged" if found.fitted.converged else "did not converge"
    text = (
        f"The fit {end} after {counted(len(found.fitted.bounds), 'iteration')}. The bound says how "
        "well model and data agree; it falls only right after factors are removed. The terms of an "
        "iteration add up to it."
    )
    panel = Panel("bound", table, "The bound by iteration", picture, choose=("term",))
    return Section("bound", "The course of the fit", text, (panel,))
