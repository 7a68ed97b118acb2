"""`kofa transform`, `kofa predict` and `kofa impute`: a model and new tables."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from kofa.cli import UsageError
from kofa.cli.display import Screen, counted
from kofa.cli.options import ModelFile, Out, flag, option, out_option

_FOLDER = out_option("FOLDER", "One file per view; required.")
_TARGET = "The view to predict (default: the only output)."


def transform(
    *,
    model: ModelFile,
    tables: dict[str, Any],
    out: Out = "-",
    screen: Screen,
) -> None:
    """Write the factors of samples, from any of the model's views.

    kofa transform model.kofa --view rna=new.csv -o factors.csv
    """
    from kofa.cli.steps import apply

    given = apply.opened(model, **tables)
    apply.check_target(out, given.files)
    with given.naming_files():
        if apply.block_by_block(given, out):
            _written(screen, out, given.model.transform, given.read(stored=True))
            return
        factors = given.model.transform(given.read())
    _write(screen, factors, out)


def predict(
    *,
    model: ModelFile,
    tables: dict[str, Any],
    target: Annotated[str | None, option("VIEW", _TARGET, "--target", "-t")] = None,
    out: Out = "-",
    proba: Annotated[bool, flag("Add probabilities.", "--proba")] = False,
    std: Annotated[bool, flag("Add standard deviations.", "--std")] = False,
    quantiles: Annotated[str | None, option("P,P", "Add quantiles, such as .05,.95.")] = None,
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
    given = apply.opened(model, **tables)
    goal = apply.pick_target(given.model, target, given.sources)
    apply.check_target(out, given.files)
    with given.naming_files():
        if apply.block_by_block(given, out, goal) and not (proba or std or wanted):
            _written(screen, out, given.model.predict, given.read(stored=True), goal)
            return
        found = apply.predictions(
            given.model, given.read(), goal, proba=proba, std=std, quantiles=wanted
        )
    _write(screen, found, out)


def impute(
    *,
    model: ModelFile,
    out: Annotated[str | None, _FOLDER] = None,
    tables: dict[str, Any],
    form: Annotated[str, option("FORMAT", "csv, tsv or parquet.", "--format")] = "csv",
    screen: Screen,
) -> None:
    """Fill the holes of tables. Every view gets the samples of all of them.

    kofa impute model.kofa --view rna=rna.csv --view protein=protein.csv -o filled/
    """
    from kofa.cli.steps import apply

    if form not in ("csv", "tsv", "parquet"):
        raise UsageError("expected csv, tsv or parquet", source=f"--format {form}")
    given = apply.opened(model, **tables)
    if out is None:  # after what is wrong with the model
        raise UsageError("expected -o with a folder", cure="add -o filled")
    files = apply.files_in(Path(out), given, form)
    with given.naming_files():
        screen.report(*apply.impute(given.model, given.read(), files))


def _written(screen: Screen, to: str, method: Callable[..., Any], *asked: Any) -> None:
    """Let a method of a model write its table, and say what was written."""
    from pyarrow.parquet import read_metadata

    found = read_metadata(method(*asked, out=to))
    n_columns = found.num_columns - 1  # and the samples
    screen.report(f"{to}: {counted(found.num_rows, 'sample')}, {counted(n_columns, 'column')}")


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
