"""`kofa weights`, `factors`, `variance`, `relevance` and `kernels`: what a model found."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kofa.cli.display import Screen
from kofa.cli.options import ModelFile, Words, how_many, option

ViewNames = Annotated[Words, typer.Argument(metavar="[VIEW]...", help="Views; default all.")]
_FACTOR = option("FACTOR", "By name, or position from 0; repeat for more.", "--factor", "-f")
FactorNames = Annotated[Words, _FACTOR]
_N = "The N largest of each factor; default all, of which a few are shown."
_OUTPUTS = "Shares in what is predicted of this output; repeat for more."


def weights(
    *,
    model: ModelFile,
    views: ViewNames = None,
    factor: FactorNames = None,
    n: Annotated[int | None, how_many(_N)] = None,
    result: dict[str, Any],
    screen: Screen,
) -> None:
    """Show what each factor does to the columns of a view.

    kofa weights model.kofa rna --factor factor1 -n 20

    weight is in the units of the column, standardised in its standard deviations;
    lfsr is the probability that the sign is wrong.
    """
    from kofa.cli.steps import tables
    from kofa.cli.steps.describe import load
    from kofa.cli.steps.result import check_result, deliver

    check_result(**result, read=[model])
    found = load(model)
    names, factors = tables.view_names(found, views), tables.factor_names(found, factor)
    frame, look, note = tables.weights(found, names, factors, n)
    deliver(screen, frame, **result, look=look, note=note)


def factors(
    *,
    model: ModelFile,
    tables: dict[str, Any],
    result: dict[str, Any],
    screen: Screen,
) -> None:
    """Show the factors of samples: those of the fit, or of tables.

    kofa factors model.kofa -o factors.csv
    """
    from kofa.cli.steps import apply
    from kofa.cli.steps import tables as steps
    from kofa.cli.steps.result import check_result, deliver

    given = apply.opened(model, **tables, needed=False)
    check_result(**result, read=given.files)
    deliver(screen, steps.factors(given), **result)


def variance(
    *,
    model: ModelFile,
    by: Annotated[str, option("WHAT", "factor, view, feature or sample.")] = "factor",
    tables: dict[str, Any],
    result: dict[str, Any],
    screen: Screen,
) -> None:
    """Show how much of each view the factors explain, in the fit or in tables.

    kofa variance model.kofa

    1 is all of it; 0 is no more than the mean of each column.
    By sample it needs --study or --view.
    """
    from kofa.cli.steps import apply
    from kofa.cli.steps import tables as steps
    from kofa.cli.steps.result import check_result, deliver

    steps.check_by(by, ("factor", "view", "feature", "sample"))
    given = apply.opened(model, **tables, needed=False)
    check_result(**result, read=given.files)
    frame, look = steps.variance(given, by)
    deliver(screen, frame, **result, look=look, wide=True)


def relevance(
    *,
    model: ModelFile,
    views: ViewNames = None,
    by: Annotated[str, option("WHAT", "factor, feature or sample.")] = "factor",
    result: dict[str, Any],
    screen: Screen,
) -> None:
    """Show which factors link which views, and which features or samples matter.

    kofa relevance model.kofa

    kofa relevance model.kofa rna --by feature

    Features have a relevance in sparse views and in kernels that learn it;
    samples in sparse views with a kernel, as relevance vectors.
    """
    from kofa.cli.steps import tables as steps
    from kofa.cli.steps.describe import load
    from kofa.cli.steps.result import check_result, deliver

    steps.check_by(by, ("factor", "feature", "sample"))
    check_result(**result, read=[model])
    frame, look = steps.relevance(load(model), views, by)
    deliver(screen, frame, **result, look=look, wide=True)


def kernels(
    *,
    model: ModelFile,
    outputs: Annotated[Words, option("NAME", _OUTPUTS)] = None,
    result: dict[str, Any],
    screen: Screen,
) -> None:
    """Show the share of each kernel, and of each view without one.

    kofa kernels model.kofa --outputs stage

    Without --outputs, of what is known about the factors.
    """
    from kofa.cli.steps import tables
    from kofa.cli.steps.describe import load
    from kofa.cli.steps.result import check_result, deliver

    check_result(**result, read=[model])
    deliver(screen, tables.kernels(load(model), outputs), **result)
