"""`kofa fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kofa.cli import UsageError
from kofa.cli.display import Screen
from kofa.cli.options import path_given

LONG, MODEL = "Long fits", "The model"


def _number(text: str, metavar: str = "N", least: int = 1, panel: str = MODEL) -> Any:
    return typer.Option(min=least, metavar=metavar, rich_help_panel=panel, help=text)


def fit(
    *,
    to: Annotated[
        Path,
        typer.Option(
            "--to", "-o", metavar="MODEL", parser=path_given, help="Where to write the model."
        ),
    ],
    study: Annotated[
        Path | None,
        typer.Argument(metavar="STUDY", parser=path_given, help="A study.toml; see kofa init."),
    ] = None,
    view: Annotated[
        list[str] | None,
        typer.Option(
            "--view",
            "-v",
            metavar="NAME=FILE…",
            help="A view without a study, or another file for one of the study; repeat for more.",
        ),
    ] = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=KERNEL", help="rbf, linear, laplacian, polynomial, diffusion or bank."
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A view to be predicted from the others; repeat."),
    ] = None,
    factors: Annotated[int | None, _number("The most factors allowed.")] = None,
    init: Annotated[int | None, _number("Number of starts; the best is kept.")] = None,
    max_iter: Annotated[int | None, _number("Most iterations of a start.")] = None,
    tol: Annotated[
        float | None, _number("Growth of the bound at which to stop.", "X", least=0)
    ] = None,
    seed: Annotated[int | None, _number("Seed of everything random.", least=0)] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=path_given,
            rich_help_panel=LONG,
            help="Where to keep the state of the fit (default: MODEL.checkpoint).",
        ),
    ] = None,
    checkpoint_every: Annotated[
        float, _number("Seconds between writings.", "SECONDS", least=0, panel=LONG)
    ] = 30.0,
    resume: Annotated[
        bool,
        typer.Option("--resume", rich_help_panel=LONG, help="Continue a fit that was stopped."),
    ] = False,
    progress: Annotated[
        bool,
        typer.Option(
            "--progress", rich_help_panel=LONG, help="Show progress also without a terminal."
        ),
    ] = False,
    reading: dict[str, Any],
    screen: Screen,
) -> None:
    """Fit a model to tables and write it to a file.

    With a study:

      kofa fit study.toml -o model.kofa

    Or without, each view as NAME=FILE[:COLUMNS][:KIND]:

      kofa fit --view rna=rna.csv --view stage=clinical.csv:stage:categorical \\
               --output stage --kernel rna=rbf -o model.kofa

    COLUMNS are names or patterns such as gene*, with commas between them.
    KIND is real, positive, binary, categorical or count; real by default.
    Parts of a file: data.npz:ARRAY, cells.h5mu:MODALITY, cells.h5ad:LAYER.

    Ctrl-C stops a fit; the same command with --resume continues it.
    """
    from kofa.cli.steps import fit as steps

    if study is None and not view:
        cure = "kofa init writes one"
        raise UsageError("expected a study.toml, or views as --view NAME=FILE", cure=cure)
    options = {
        "n_factors": factors,
        "n_init": init,
        "max_iter": max_iter,
        "tol": tol,
        "random_state": seed,
        "outputs": output or None,
    }
    said = {key: value for key, value in options.items() if value is not None}
    plan = steps.plan_of(study, view or [], kernel or [], reading, said)
    screen.progress = progress
    steps.fit(
        plan, to, screen, checkpoint=checkpoint, checkpoint_every=checkpoint_every, resume=resume
    )
