"""The command line: all commands. What they do is in `steps`, imported only when one runs."""

from __future__ import annotations

from typing import Annotated

import typer

from kofa.cli.commands.apply import impute, predict, transform
from kofa.cli.commands.fit import fit
from kofa.cli.commands.report import report
from kofa.cli.commands.start import demo, info, init
from kofa.cli.options import with_options
from kofa.cli.shell import Command, Commands

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
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

      kofa init                           # writes study.toml; check it
      kofa fit study.toml -o model.kofa
      kofa predict model.kofa --view rna=new.csv --target stage
    """


for command in (fit, transform, predict, impute, report, info, demo, init):
    app.command(cls=Command)(with_options(command))
