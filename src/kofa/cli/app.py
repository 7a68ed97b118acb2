"""The command line: all commands. What they do is in `steps`, imported only when one runs."""

from __future__ import annotations

from typing import Annotated

import typer

from kofa.cli.commands.apply import impute, predict, transform
from kofa.cli.commands.evaluate import compare, evaluate
from kofa.cli.commands.fit import check, fit
from kofa.cli.commands.meaning import associate, enrich
from kofa.cli.commands.plot import plot
from kofa.cli.commands.report import report
from kofa.cli.commands.start import demo, info, init
from kofa.cli.commands.tables import factors, kernels, relevance, variance, weights
from kofa.cli.options import with_options
from kofa.cli.shell import Command, Commands

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        from kofa import __version__

        typer.echo(f"kofa {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Bayesian factor analysis of several tables about the same samples.

    Start with [bold]kofa demo[/], or with your own tables:

      kofa init                                    # writes study.toml; check it

      kofa fit study.toml -o model.kofa

      kofa evaluate study.toml -o evaluation.csv   # how well does it predict?

      kofa predict model.kofa --view rna=new.csv --target stage

    kofa --install-completion makes the tab key complete commands and options.
    """


_PANELS = {
    "Start": (init, demo),
    "Fit and apply": (check, fit, transform, predict, impute),
    "What a model found": (info, factors, variance, relevance, weights, kernels),
    "What factors mean": (associate, enrich),
    "How well it predicts": (evaluate, compare),
    "Pictures and reports": (plot, report),
}
for panel, commands in _PANELS.items():
    for command in commands:
        app.command(cls=Command, rich_help_panel=panel)(with_options(command))
