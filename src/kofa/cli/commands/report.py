"""`kofa report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from kofa.cli import UsageError
from kofa.cli.display import Screen
from kofa.cli.options import Force, ModelFile, Words, option, path_given

_OUT = option("FILE", "The HTML file to write; required.", "--out", "-o", parser=path_given)
_DATA = option("STUDY", "The same as --study.", parser=path_given, hidden=True)
_COVARIATES = option("FILE", "What else is known of the samples: FILE[:COLUMNS].")
_SETS = option("FILE", "Feature sets: GMT, or set and feature.", parser=path_given)
_EVALUATION = option("FILE", "Scores that kofa evaluate wrote.", parser=path_given)
_PREDICTIONS = option("FILE", "Predictions that it wrote too.", parser=path_given)
_SHAPE = option("VIEW=ROWSxCOLUMNS", "A view whose columns are pixels, such as x=28x28; repeat.")


def report(
    *,
    model: ModelFile,
    out: Annotated[Path | None, _OUT] = None,
    data: Annotated[Path | None, _DATA] = None,
    covariates: Annotated[str | None, _COVARIATES] = None,
    sets: Annotated[Path | None, _SETS] = None,
    evaluation: Annotated[Path | None, _EVALUATION] = None,
    predictions: Annotated[Path | None, _PREDICTIONS] = None,
    image_shape: Annotated[Words, _SHAPE] = None,
    title: Annotated[str | None, option("TITLE", "Heading of the page.")] = None,
    force: Force = False,
    tables: dict[str, Any],
    screen: Screen,
) -> None:
    """Write what a model found as one HTML file, for people without Python.

    For example:

      kofa report model.kofa -o report.html

      kofa report model.kofa --study study.toml --evaluation scores.csv -o report.html

    With tables (--study or --view) it has predictions and colours by columns.
    """
    from kofa.cli.steps import report as steps

    if out is None:
        raise UsageError("expected --out with the file to write", cure="add -o report.html")
    if predictions is not None and evaluation is None:
        cure = "add --evaluation with the scores of the same folds"
        raise UsageError("expected --evaluation with --predictions", cure=cure)
    tables["study"] = tables["study"] or data
    asked = steps.Asked(covariates, sets, evaluation, predictions, image_shape or [])
    screen.report(steps.report(model, out, asked, tables, title, force))
