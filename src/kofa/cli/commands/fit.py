"""`kofa fit` and `kofa check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from kofa.cli import UsageError
from kofa.cli.display import Screen
from kofa.cli.options import Force, flag, number, option, out_option, path_given

LONG = "Long fits"
_CHECKPOINT = option(
    "FILE",
    "Where to keep the state of the fit (default: MODEL.checkpoint).",
    parser=path_given,
    rich_help_panel=LONG,
)
_RESUME = flag("Continue a fit that was stopped.", "--resume", rich_help_panel=LONG)
_SCHEDULER = option(
    "ADDRESS",
    "Of a Dask cluster, such as tcp://host:8786, whose workers keep the rows.",
    rich_help_panel=LONG,
)
_PROGRESS = flag("Show progress also without a terminal.", "--progress", rich_help_panel=LONG)


def fit(
    *,
    out: Annotated[str | None, out_option("MODEL", "Where to write the model; required.")] = None,
    declared: dict[str, Any],
    force: Force = False,
    checkpoint: Annotated[Path | None, _CHECKPOINT] = None,
    checkpoint_every: Annotated[
        float, number("Seconds between writings.", "SECONDS", 0, LONG)
    ] = 30.0,
    resume: Annotated[bool, _RESUME] = False,
    scheduler: Annotated[str | None, _SCHEDULER] = None,
    progress: Annotated[bool, _PROGRESS] = False,
    screen: Screen,
) -> None:
    """Fit a model to tables and write it to a file.

    With a study:

      kofa fit study.toml -o model.kofa

    Or without, each view as NAME=FILE[:COLUMNS][:KIND]; - is stdin:

      kofa fit --view rna=rna.csv --view stage=clinical.csv:stage:categorical \\
               --outputs stage --kernel rna=rbf -o model.kofa

    COLUMNS are names or patterns such as gene*, with commas between them.
    KIND is real, positive, binary, categorical or count; real by default.
    Parts of a file: data.npz:ARRAY, cells.h5mu:MODALITY, cells.h5ad:LAYER.

    Ctrl-C stops a fit; the same command with --resume continues it.
    """
    from kofa.cli.steps import fit as steps

    plan = steps.plan_of(**declared)
    if out is None:  # after what is wrong with the study
        raise UsageError("expected -o with the file of the model", cure="add -o model.kofa")
    screen.progress = progress
    steps.fit(
        plan,
        Path(out),
        screen,
        force=force,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
        scheduler=scheduler,
    )


def check(*, declared: dict[str, Any], screen: Screen) -> None:
    """Read and check all that a fit would take, and show it; nothing is fitted or written.

    kofa check study.toml

    The options are those of kofa fit.
    """
    from kofa.cli.steps import check as steps
    from kofa.cli.steps import fit

    screen.show(*steps.check(fit.plan_of(**declared), screen.width))
