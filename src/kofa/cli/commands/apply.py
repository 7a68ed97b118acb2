"""`kofa transform`, `kofa predict` and `kofa impute`: a model and new tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from kofa.cli import UsageError
from kofa.cli.display import Screen, counted
from kofa.cli.options import ModelFile, Study, To, Views, option, path_given

_FOLDER = option("FOLDER", "One file per view; required.", "--to", "-o", parser=path_given)
_TARGET = "The view to predict (default: the only output)."


def transform(
    *,
    model: ModelFile,
    view: Views = None,
    study: Study = None,
    to: To = "-",
    reading: dict[str, Any],
    screen: Screen,
) -> None:
    """Write the factors of samples, from any of the model's views.

    kofa transform model.kofa --view rna=new.csv -o factors.csv
    """
    from kofa.cli.steps import apply

    given = apply.opened(model, view or [], study, reading)
    apply.check_target(to, given.files)
    with given.naming_files():
        factors = given.model.transform(given.read())
    _write(screen, factors, to)


def predict(
    *,
    model: ModelFile,
    view: Views = None,
    target: Annotated[str | None, typer.Option("--target", "-t", help=_TARGET)] = None,
    study: Study = None,
    to: To = "-",
    proba: Annotated[bool, typer.Option("--proba", help="Add probabilities.")] = False,
    std: Annotated[bool, typer.Option("--std", help="Add standard deviations.")] = False,
    quantiles: Annotated[str | None, option("P,P", "Add quantiles, such as .05,.95.")] = None,
    reading: dict[str, Any],
    screen: Screen,
) -> None:
    """Predict a view of samples from any of the others.

    For example:

      kofa predict model.kofa --view rna=new.csv --target stage --proba -o stage.csv

      kofa predict model.kofa --view rna=new.csv --target dose --quantiles .05,.95

    Added columns are named after those of the target: dose_std, dose_q0.05;
    stage_late is the probability of the class late,
    sick_p that of a one in the binary column sick.
    """
    from kofa.cli.steps import apply

    wanted = apply.parse_quantiles(quantiles)
    given = apply.opened(model, view or [], study, reading)
    goal = apply.pick_target(given.model, target, given.sources)
    apply.check_target(to, given.files)
    with given.naming_files():
        found = apply.predictions(
            given.model, given.read(), goal, proba=proba, std=std, quantiles=wanted
        )
    _write(screen, found, to)


def impute(
    *,
    model: ModelFile,
    to: Annotated[Path | None, _FOLDER] = None,
    view: Views = None,
    study: Study = None,
    form: Annotated[str, typer.Option("--format", help="csv, tsv or parquet.")] = "csv",
    reading: dict[str, Any],
    screen: Screen,
) -> None:
    """Fill the holes of tables. Every view gets the samples of all of them.

    kofa impute model.kofa --view rna=rna.csv --view protein=protein.csv -o filled/
    """
    from kofa.cli.steps import apply

    if form not in ("csv", "tsv", "parquet"):
        raise UsageError("expected csv, tsv or parquet", source=f"--format {form}")
    given = apply.opened(model, view or [], study, reading)
    if to is None:  # after what is wrong with the model
        raise UsageError("expected --to with a folder", cure="add -o filled")
    files = apply.files_in(to, given, form)
    with given.naming_files():
        screen.report(*apply.impute(given.model, given.read(), files))


def _write(screen: Screen, frame: Any, to: str) -> None:
    """Write a table, and say what was written."""
    from kofa.cli.steps.writing import until_written
    from kofa.files import write_file

    with until_written(to):
        write_file(frame, to)
    if to != "-":
        screen.report(f"{to}: {counted(len(frame), 'sample')}, {counted(frame.shape[1], 'column')}")
    else:
        sys.stdout.flush()
