"""`kofa init`, `kofa demo` and `kofa info`."""

from __future__ import annotations

import json as jsons
from pathlib import Path
from typing import Annotated

import typer

from kofa.cli.display import Screen
from kofa.cli.options import Force, ModelFile, Words, file_argument, flag, option

_OUTPUTS = "A view or column to be predicted from the others; repeat for more."


def info(
    *,
    model: ModelFile,
    json: Annotated[bool, flag("Print JSON, for programs.", "--json")] = False,
) -> None:
    """Show what a model file holds: views, kinds, kernels, factors, bound, versions."""
    from kofa.cli.steps import describe
    from kofa.files import check_stdout

    if json:
        check_stdout()
        typer.echo(jsons.dumps(describe.info(model), indent=2, default=str))
    else:
        Screen().show(*describe.show_info(model))


def demo(
    *,
    folder: Annotated[
        Path | None, file_argument("FOLDER", "Write the tables here instead, to try the commands.")
    ] = None,
    screen: Screen,
) -> None:
    """Fit three tables about wines that ship with scikit-learn, and show what comes of it.

    kofa demo           # shows a fit

    kofa demo wine      # writes the tables and a study.toml into the new folder wine
    """
    from kofa.cli.steps import demo as wine

    if folder is None:
        wine.show(screen)
        return
    files = wine.write_tables(folder)
    screen.report(
        f"{folder}: {', '.join(files)}\n\nNow try:\n\n"
        f"  cd {folder}\n"
        f"  kofa fit study.toml -o wine.kofa\n"
        f"  kofa evaluate study.toml\n"
        f"  kofa variance wine.kofa\n"
        f"  kofa predict wine.kofa --view minerals=new_minerals.csv --view phenols=new_phenols.csv "
        f"--proba"
    )


def init(
    *,
    folder: Annotated[Path, file_argument("FOLDER", "Where the tables are.")] = Path(),
    outputs: Annotated[Words, option("NAME", _OUTPUTS)] = None,
    force: Force = False,
    screen: Screen,
) -> None:
    """Write a commented study.toml from the tables in a folder, guessing their kinds.

    kofa init --outputs stage

    Looks at CSV, TSV, Parquet, npz, h5ad and h5mu files. A table with the columns of
    another and other samples is left out: it holds new samples, for kofa predict.
    Check the kinds before you fit.
    """
    from kofa.cli.steps import init as steps

    screen.report(*steps.init(folder, outputs or [], force))
