"""`kofa associate` and `kofa enrich`: what factors have to do with what is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kofa.cli.commands.tables import FactorNames
from kofa.cli.display import Screen
from kofa.cli.options import ModelFile, file_argument, flag, name_given, number, option

_COVARIATES = "A table of what is known of the samples: FILE[:COLUMNS]; - is stdin."
_SETS = "Feature sets: a GMT file, or a table with the columns set and feature."


def associate(
    *,
    model: ModelFile,
    covariates: Annotated[
        str, typer.Argument(metavar="COVARIATES", parser=name_given, help=_COVARIATES)
    ],
    ranks: Annotated[bool, flag("Test ranks, which outliers do not move.", "--ranks")] = False,
    tables: dict[str, Any],
    result: dict[str, Any],
    screen: Screen,
) -> None:
    """Test each factor against what else is known of the samples.

    kofa associate model.kofa clinical.csv:age,sex,stage

    The factors are those of the fit, or of tables. q is p after Benjamini and Hochberg.
    """
    from kofa.cli.steps import apply, meaning
    from kofa.cli.steps.result import check_result, deliver

    given = apply.opened(model, **tables, needed=False)
    source = meaning.covariate_source(covariates, tables["reading"], given.sources)
    check_result(**result, read=[*given.files, source.file])
    frame, look = meaning.associate(given, source, ranks)
    deliver(screen, frame, **result, look=look)


def enrich(
    *,
    model: ModelFile,
    name: Annotated[str, typer.Argument(metavar="VIEW", help="The view of the features.")],
    sets: Annotated[Path, file_argument("SETS", _SETS)],
    factor: FactorNames = None,
    sign: Annotated[str, option("SIGN", "both, positive or negative weights.")] = "both",
    absolute: Annotated[bool, flag("Compare sizes, whatever the sign.", "--absolute")] = False,
    ranks: Annotated[bool, flag("Compare ranks, for sparse weights.", "--ranks")] = False,
    min_size: Annotated[int, number("Leave out sets with fewer features.")] = 10,
    max_size: Annotated[int | None, number("Leave out sets with more features.")] = None,
    n_leading: Annotated[int, number("How many features of a set to name.", least=0)] = 10,
    tables: dict[str, Any],
    result: dict[str, Any],
    screen: Screen,
) -> None:
    """Test which feature sets have larger weights than the other features.

    kofa enrich model.kofa rna pathways.gmt --study study.toml

    With tables (--study, --view) it is allowed for that features go together;
    without them, p of correlated features is too small.
    """
    from kofa.cli.steps import apply, meaning
    from kofa.cli.steps.result import check_result, deliver

    given = apply.opened(model, **tables, needed=False)
    check_result(**result, read=[*given.files, sets])
    options = {
        "sign": sign,
        "absolute": absolute,
        "ranks": ranks,
        "min_size": min_size,
        "max_size": max_size,
        "n_leading": n_leading,
    }
    frame, look, note = meaning.enrich(given, name, sets, factor, options)
    deliver(screen, frame, **result, look=look, note=note)
