"""`kofa paper`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kofa.cli.display import Screen
from kofa.cli.options import path_given


def paper(
    *,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="table2, table3, table5, figure2 to figure7, or all.",
        ),
    ],
    to: Annotated[
        Path,
        typer.Option(
            "--to",
            "-o",
            metavar="FOLDER",
            parser=path_given,
            help="For tables, pictures and cache.",
        ),
    ] = Path("paper"),
    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            parser=path_given,
            help="Folder of the data sets; default $KOFA_DATA.",
        ),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Of the cross-validation.")] = 10,
    jobs: Annotated[int, typer.Option(min=1, help="Tasks at a time.")] = 2,
    sets: Annotated[str, typer.Option(metavar="A,B", help="Only these data sets.")] = "",
    methods: Annotated[
        list[str] | None,
        typer.Option("--method", metavar="NAME", help="Only this row; may be repeated."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two folds, small grids.")] = False,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="The paper's own choices, too.")
    ] = False,
    screen: Screen,
) -> None:
    """Run experiments of the KSSHIBA paper, and show them beside its own figures.

    What is done is kept in the folder: a run that was stopped goes on where it was.
    """
    from kofa.cli.steps import paper as steps
    from kofa.paper.tasks import Options

    options = Options(
        folds=folds,
        quick=quick,
        as_published=as_published,
        data_dir=None if data_dir is None else str(data_dir),
        sets=tuple(part.strip() for part in sets.split(",") if part.strip()),
        methods=tuple(methods or ()),
    )
    steps.reproduce(names, options, to, jobs, screen)
