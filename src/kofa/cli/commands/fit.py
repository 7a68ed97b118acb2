"""`kofa fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kofa.cli import UsageError
from kofa.cli.display import Screen
from kofa.cli.options import file_argument, option, path_given

LONG, MODEL = "Long fits", "The model"


def _number(text: str, metavar: str = "N", least: int = 1, panel: str = MODEL) -> Any:
    return option(metavar, text, min=least, rich_help_panel=panel)


_TO = option("MODEL", "Where to write the model; required.", "--to", "-o", parser=path_given)
_VIEW = "A view without a study, or another file for one of the study; repeat for more."
_KERNEL = "rbf, linear, laplacian, polynomial, diffusion or bank."
_ENGINE = "memory, or disk: little of the data is in memory at a time."
_OUTPUT = "A view to be predicted from the others; repeat."
_CHECKPOINT = option(
    "FILE",
    "Where to keep the state of the fit (default: MODEL.checkpoint).",
    parser=path_given,
    rich_help_panel=LONG,
)
_RESUME = typer.Option("--resume", rich_help_panel=LONG, help="Continue a fit that was stopped.")
_PROGRESS = typer.Option(
    "--progress", rich_help_panel=LONG, help="Show progress also without a terminal."
)


def fit(
    *,
    to: Annotated[Path | None, _TO] = None,
    study: Annotated[Path | None, file_argument("STUDY", "A study.toml; see kofa init.")] = None,
    view: Annotated[list[str] | None, option("NAME=FILE…", _VIEW, "--view", "-v")] = None,
    kernel: Annotated[list[str] | None, option("NAME=KERNEL", _KERNEL)] = None,
    output: Annotated[list[str] | None, option("NAME", _OUTPUT)] = None,
    factors: Annotated[int | None, _number("The most factors allowed.")] = None,
    init: Annotated[int | None, _number("Number of starts; the best is kept.")] = None,
    max_iter: Annotated[int | None, _number("Most iterations of a start.")] = None,
    tol: Annotated[float | None, _number("Growth of the bound at which to stop.", "X", 0)] = None,
    seed: Annotated[int | None, _number("Seed of everything random.", least=0)] = None,
    engine: Annotated[str | None, option("ENGINE", _ENGINE, rich_help_panel=LONG)] = None,
    checkpoint: Annotated[Path | None, _CHECKPOINT] = None,
    checkpoint_every: Annotated[
        float, _number("Seconds between writings.", "SECONDS", 0, LONG)
    ] = 30.0,
    resume: Annotated[bool, _RESUME] = False,
    progress: Annotated[bool, _PROGRESS] = False,
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
        "engine": engine,
        "outputs": output or None,
    }
    said = {key: value for key, value in options.items() if value is not None}
    plan = steps.plan_of(study, view or [], kernel or [], reading, said)
    if to is None:  # after what is wrong with the study
        raise UsageError("expected --to with the file of the model", cure="add -o model.kofa")
    screen.progress = progress
    steps.fit(
        plan, to, screen, checkpoint=checkpoint, checkpoint_every=checkpoint_every, resume=resume
    )
