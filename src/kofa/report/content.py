"""All that a report says about a model: sentences, warnings, samples, sections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kofa.checks import hint, is_whole
from kofa.data.stored import by_blocks, n_measured
from kofa.errors import DataError, DeclarationError
from kofa.inspection.of_model import data_overview as fit_overview
from kofa.inspection.overview import Overview
from kofa.inspection.overview import overview as count
from kofa.preparation.fitted import Fitted
from kofa.report import advice, meaning, predicted, sections, summary
from kofa.report.advice import Advice
from kofa.report.outcomes import Evaluation, Outcome, evaluation_of, outcomes_of
from kofa.report.panels import Found, Panel, Section
from kofa.report.samples import Shown, samples_content, shown_samples, who_has
from kofa.report.summary import ViewFacts


@dataclass(frozen=True, eq=False)
class Content:
    """What a page shows."""

    sentences: list[str]
    advice: list[Advice]
    views: list[Panel]
    samples: dict[str, Any] | None
    sections: list[Section]


def content_of(
    model: Any,
    data: Any = None,
    covariates: Any = None,
    sets: Any = None,
    evaluation: Any = None,
    image_shape: Any = None,
) -> Content:
    """What a page shows of a fitted model."""
    fitted: Fitted = model._fitted
    shown = shown_samples(fitted, data)
    if shown is None and covariates is not None:
        what = "covariates are of samples, and this model keeps none of its fit"
        raise DataError(what, option="covariates", cure="pass data, the tables of some samples")
    outcomes = outcomes_of(model, data)
    found = Found(
        model,
        data,
        evaluation_of(evaluation, outcomes, None if shown is None else shown.of_fit, fitted),
        _overview(fitted, shown),
        shown,
        covariates,
        sets,
        _shapes(image_shape, fitted),
    )
    tables = meaning.enriched(found)
    parts = [part for part in _sections(found, tables) if part is not None]
    frames = {panel.name: panel.frame for part in parts for panel in part.panels}
    views = [sections.views_panel(found), sections.measured_panel(found)]
    return Content(
        list(_sentences(found, frames, tables)),
        list(_advice(found, outcomes, links_of(frames["relevance"]))),
        [panel for panel in views if panel is not None],
        None if shown is None else samples_content(fitted, shown, covariates, outcomes),
        parts,
    )


def _sections(found: Found, tables: Mapping[str, Any]) -> list[Section | None]:
    """In the order of the page; those that the model has nothing for are left out."""
    return [
        sections.variance(found),
        sections.relevance(found),
        sections.weights(found),
        meaning.association(found),
        meaning.enrichment(found, tables),
        sections.features(found),
        sections.vectors(found),
        sections.kernels(found),
        predicted.predictions(found),
        sections.bound(found),
    ]


def _overview(fitted: Fitted, shown: Shown | None) -> Overview | None:
    """Who was measured in fit, or in the data where a model does not keep that."""
    if fitted.samples is not None:
        return fit_overview(fitted)
    if shown is None or shown.applied is None:
        return None
    applied = shown.applied
    names = {view.source: name for name, view in fitted.views.items() if name in applied.tables}
    counts = {
        source: by_blocks(n_measured, applied.samples.spread(applied.tables[name]))
        for source, name in names.items()
    }
    widths = {source: fitted.views[name].n_inputs for source, name in names.items()}
    return count(counts, widths, applied.samples.names)


def _shapes(image_shape: Any, fitted: Fitted) -> dict[str, tuple[int, int]]:
    """Rows and columns of the pixels that are the features of views."""
    if image_shape is None:
        return {}
    widths = {view.source: view.n_inputs for view in fitted.views.values()}
    given = image_shape if isinstance(image_shape, Mapping) else _fitting(image_shape, widths)
    for view, shape in given.items():
        if view not in widths:
            cure = hint(view, widths, "the model has")
            raise DataError(f"unknown view {view!r}", option="image_shape", cure=cure)
        _check_shape(shape, view)
        if shape[0] * shape[1] != widths[view]:
            what = f"{shape[0]} × {shape[1]} pixels are not its {widths[view]} columns"
            raise DataError(what, view, option="image_shape")
    return {view: (int(shape[0]), int(shape[1])) for view, shape in given.items()}


def _check_shape(shape: Any, view: str | None = None) -> None:
    pair = isinstance(shape, tuple | list) and len(shape) == 2
    if not pair or not all(is_whole(side, 1) for side in shape):
        what = "expected image_shape to be rows and columns, such as (28, 28)"
        raise DeclarationError(what, view, got=shape, option="image_shape")


def _fitting(shape: Any, widths: Mapping[str, int]) -> dict[str, Any]:
    """One shape is that of all views with as many columns."""
    _check_shape(shape)
    found = {view: shape for view, width in widths.items() if width == shape[0] * shape[1]}
    if not found:
        what = f"no view has {shape[0]} × {shape[1]} columns"
        raise DataError(what, option="image_shape")
    return found


# ---------------------------------------------------------------- sentences


def _facts(found: Found) -> list[ViewFacts]:
    fitted = found.fitted
    first = {view.source: view for view in reversed(list(fitted.views.values()))}
    measured: dict[str, tuple[int, float]] = {}
    if found.overview is not None:
        table = found.overview.views
        pairs = zip(table["n_samples"], table["missing"], strict=True)
        measured = {
            view: (int(n), float(missing))
            for view, (n, missing) in zip(table["view"], pairs, strict=True)
        }
    return [
        ViewFacts(
            source, first[source].classes is not None, first[source].n_inputs,
            first[source].role.output,
            *measured.get(source, ()),
        )
        for source in fitted.sources
    ]  # fmt: skip


def links_of(relevance: Any) -> list[list[str]]:
    """The views in which each factor is active; a table as from `factor_relevance`."""
    rows = relevance.groupby("factor", sort=False)
    return [list(group.loc[group["active"].astype(bool), "view"]) for _, group in rows]


def _sentences(found: Found, tables: Mapping[str, Any], sets: Mapping[str, Any]) -> Iterator[str]:
    fitted, facts = found.fitted, _facts(found)
    n = None if found.overview is None else len(found.overview.samples)
    yield from summary.about_samples(n, facts)
    yield from summary.about_holes(n, facts)
    yield from summary.about_factors(links_of(tables["relevance"]))
    if "variance" in tables:
        yield from summary.about_variance(*_explained(tables))
    for output in fitted.outputs:
        shares = found.model.kernel_weights(output).groupby("view", sort=False)["weight"].sum()
        yield from summary.about_sources(output, dict(shares))
    for view in dict.fromkeys([*fitted.outputs, *_evaluated(found.evaluation)]):
        own = found.evaluation
        origin = own.origin + own.caveat
        yield from summary.about_scores(view, own.of(view), origin, own.without(view))
    yield from summary.about_evaluation(fitted.outputs, found.evaluation.held_out)
    if "association" in tables:
        yield from summary.about_associations(tables["association"])
    for view, table in sets.items():
        yield from summary.about_sets(view, table)


def _evaluated(evaluation: Evaluation) -> list[str]:
    return [] if evaluation.scores is None else list(evaluation.scores["view"])


def _explained(tables: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, tuple[str, float]]]:
    """What all factors explain of each view, and the first of them with its share."""
    by_view, by_factor = tables["variance-by-view"], tables["variance"]
    strongest = {}
    for view, rows in by_factor.groupby("view", sort=False):
        if rows["r2"].notna().any():
            best = rows.loc[rows["r2"].idxmax()]
            strongest[view] = (best["factor"], float(best["r2"]))
    return dict(zip(by_view["view"], by_view["r2"], strict=True)), strongest


# ---------------------------------------------------------------- warnings


def _advice(
    found: Found, outcomes: Mapping[str, Outcome], links: list[list[str]]
) -> Iterator[Advice]:
    fitted, model = found.fitted, found.model
    yield from advice.not_converged(fitted.converged, len(fitted.bounds), model.max_iter)
    roles = {name: view.role.output for name, view in fitted.views.items()}
    yield from advice.unexplained(links, roles)
    if found.shown is not None:
        factors = dict(
            zip(fitted.factor_names, np.asarray(found.shown.factors.values).T, strict=True)
        )
        active = {n: views for n, views in zip(factors, links, strict=True) if views}
        yield from advice.driven_by_one(
            {name: factors[name] for name in active},
            found.shown.names,
            active,
            who_has(fitted, found.shown),
        )
    yield from _few(found, outcomes)
    yield from _confidence(found)


def _few(found: Found, outcomes: Mapping[str, Outcome]) -> Iterator[Advice]:
    """Outputs of which few samples are known."""
    for fact in _facts(found):
        if fact.output and fact.n_samples is not None:
            yield from advice.few_values(fact.name, fact.n_samples)
    if found.shown is None or found.shown.of_fit is False:
        return
    for name, outcome in outcomes.items():
        for output, counts in _labels(name, outcome):
            yield from advice.few_labels(output, counts)


def _labels(name: str, outcome: Outcome) -> Iterator[tuple[str, dict[Any, int]]]:
    """How often each class of an output is known."""
    if outcome.truth is None or not outcome.truth.held.likelihood.has("probability"):
        return
    truth = outcome.truth.held.truth
    ones = np.nansum(truth, axis=0).astype(int).tolist()
    if outcome.truth.held.likelihood.reads_labels:
        yield name, dict(zip(outcome.columns, ones, strict=True))
        return
    known = (~np.isnan(truth)).sum(axis=0).tolist()
    for column, n, one in zip(outcome.columns, known, ones, strict=True):
        label = name if len(ones) == 1 else f"{name}, {column}"
        yield label, {"0": n - one, "1": one}


def _confidence(found: Found) -> Iterator[Advice]:
    """Intervals and probabilities that are not what they say."""
    own, fitted = found.evaluation, found.fitted
    for view in dict.fromkeys(_evaluated(own)):
        covered = own.of(view).get("coverage")
        if covered is not None:
            whole = fitted.views[view].kind.whole
            yield from advice.wrong_intervals(view, covered, own.n(view), whole, own.origin)
    if own.predictions is not None:
        for view, rows in own.predictions.groupby("view", sort=False):
            if rows["kind"].iloc[0] != "number":
                yield from advice.wrong_probabilities(view, *_sureness(rows), own.origin)


def _sureness(rows: Any) -> tuple[float, float, int]:
    """Mean probability of the likeliest label, how often it is right, and of how many labels."""
    if rows["kind"].iloc[0] == "binary":
        p, truth = rows["mean"].to_numpy(float), rows["truth"].to_numpy(float)
        return float(np.maximum(p, 1 - p).mean()), float(((p > 0.5) == (truth == 1)).mean()), len(p)
    best = rows.loc[rows.groupby(["fold", "sample"], sort=False)["mean"].idxmax()]
    return float(best["mean"].mean()), float((best["truth"] == 1).mean()), len(best)
