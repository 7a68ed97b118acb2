"""`kofa plot`: a picture of what a model found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kofa.cli.display import Screen
from kofa.cli.options import (
    Words,
    flag,
    how_many,
    name_given,
    number,
    option,
    out_option,
    path_given,
)

# Every plot, and what it shows.
PLOTS = {
    "data_overview": "which samples are measured in which view",
    "bound": "whether the fit has converged",
    "variance_explained": "how much each factor explains of each view",
    "factor_relevance": "a panel for each view, a bar for each factor",
    "factors": "samples in the plane of two factors, coloured by a covariate",
    "factor_pairs": "each factor against each",
    "factor_violins": "factors by the classes of a covariate",
    "factor_correlation": "factors that go together",
    "weights": "all weights of a view in their order, the largest named",
    "top_weights": "the largest weights of a factor in a view",
    "weights_heatmap": "features of a view × factors",
    "weights_scatter": "weights of two factors",
    "data_heatmap": "the data of the features with the largest weights",
    "associations": "factors × covariates",
    "enrichment": "feature sets × factors",
    "agreement": "the same factors in another model",
    "feature_relevance": "which features of a view matter, as bars or as an image",
    "relevance_vectors": "the samples that a sparse kernel compares with",
    "kernel": "a kernel, its reconstruction and the error",
    "kernel_weights": "shares of kernels, in the factors or in an output",
    "predictions": "predictions against the truth",
    "calibration": "whether intervals and probabilities hold",
    "confusion": "which classes were predicted for which",
    "compare": "scores of studies in the same folds",
}
_FACTORS, _SAMPLES, _FILES = "Which factors", "Samples and their colours", "Other files"


def _names(incomplete: str) -> list[tuple[str, str]]:
    return [(name, about) for name, about in PLOTS.items() if name.startswith(incomplete)]


def _of_factors(metavar: str, text: str, *names: str) -> Any:
    return option(metavar, text, *names, rich_help_panel=_FACTORS)


def _file(metavar: str, text: str) -> Any:
    return option(metavar, text, parser=name_given, rich_help_panel=_FILES)


_NAME = typer.Argument(
    metavar="NAME", help="Which plot; none lists them all.", autocompletion=_names
)
_SOURCE = "A model, or a file of kofa evaluate or kofa compare: scores or --predictions."
_COLOUR = "A column of --covariates; or VIEW or VIEW:COLUMN of the tables."


def plot(
    *,
    name: Annotated[str | None, _NAME] = None,
    source: Annotated[
        Path | None, typer.Argument(metavar="MODEL", parser=path_given, help=_SOURCE)
    ] = None,
    shown: Annotated[str | None, typer.Argument(metavar="VIEW", help="Which view.")] = None,
    out: Annotated[str | None, out_option("FILE", "A .png, .svg or .pdf; required.")] = None,
    factor: Annotated[
        Words, _of_factors("FACTOR", "By name, or position from 0; repeat.", "--factor", "-f")
    ] = None,
    x: Annotated[str | None, _of_factors("FACTOR", "The factor along x.")] = None,
    y: Annotated[str | None, _of_factors("FACTOR", "The factor along y.")] = None,
    z: Annotated[str | None, _of_factors("FACTOR", "A third factor.")] = None,
    n: Annotated[int | None, how_many("How many to show.")] = None,
    colour: Annotated[str | None, option("COLUMN", _COLOUR, rich_help_panel=_SAMPLES)] = None,
    by: Annotated[
        str | None,
        option("COLUMN", f"As --colour: {PLOTS['factor_violins']}.", rich_help_panel=_SAMPLES),
    ] = None,
    ellipses: Annotated[
        float | None, option("P", "Regions with this probability.", rich_help_panel=_SAMPLES)
    ] = None,
    covariates: Annotated[
        str | None, _file("FILE", "What is known of the samples: FILE[:COLUMNS].")
    ] = None,
    sets: Annotated[str | None, _file("FILE", "Feature sets: GMT, or set and feature.")] = None,
    other: Annotated[str | None, _file("MODEL", "Another model.")] = None,
    scale: Annotated[str | None, option("SCALE", "standardised or weight.")] = None,
    image_shape: Annotated[str | None, option("ROWSxCOLUMNS", "Features are pixels.")] = None,
    show: Annotated[str | None, option("WHAT", "effect or q, of associations.")] = None,
    terms: Annotated[bool, flag("The terms of the bound.", "--terms")] = False,
    names: Annotated[bool, flag("Name the relevance vectors.", "--names")] = False,
    score: Annotated[str | None, option("SCORE", "Such as r2.")] = None,
    column: Annotated[str | None, option("COLUMN", "One column of the view.")] = None,
    of: Annotated[str | None, option("STUDY", "One of several studies.")] = None,
    bins: Annotated[int | None, number("Bins of probabilities.")] = None,
    tables: dict[str, Any],
    screen: Screen,
) -> None:
    """Draw a picture of what a model found.

    kofa plot                       # which plots there are

    kofa plot variance_explained model.kofa -o variance.png

    kofa plot weights model.kofa rna --factor factor1 -o weights.pdf

    kofa plot factors model.kofa --covariates clinical.csv --colour stage -o factors.svg

    Each plot takes some of the options; those of others are refused.
    """
    from kofa.cli.steps import plot as steps

    if name is None:
        screen.show(*steps.listing(PLOTS))
        return
    asked = {
        "factor": factor, "x": x, "y": y, "z": z, "n": n, "colour": colour, "by": by,
        "ellipses": ellipses, "covariates": covariates, "sets": sets, "other": other,
        "scale": scale, "image_shape": image_shape, "show": show, "terms": terms or None,
        "names": names or None, "score": score, "column": column, "of": of, "bins": bins,
    }  # fmt: skip
    options = {key: value for key, value in asked.items() if value not in (None, [])}
    steps.plot(name, source, shown, out, options, tables, screen)
