"""`kofa evaluate` and `kofa compare`: how well samples that were left out are predicted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kofa.cli.display import Screen
from kofa.cli.options import Words, name_given, number, option, path_given

FOLDS = "Cross-validation"
_GROUPS = "Leave out together samples with the same value of a column: FILE:COLUMN."
_SCORING = "Which scores: r2, rmse, d2, auc, accuracy, log_loss, coverage; repeat. Default all."
_PREDICTIONS = "Write what was predicted of each sample too; CSV, TSV or Parquet."
_JOBS = "How many folds are fitted at a time; -1 is one for each core."
Folds = Annotated[int, number("Number of folds.", least=2, panel=FOLDS)]
Groups = Annotated[
    str | None, option("FILE:COLUMN", _GROUPS, parser=name_given, rich_help_panel=FOLDS)
]
Scoring = Annotated[Words, option("SCORE", _SCORING, rich_help_panel=FOLDS)]
Jobs = Annotated[int | None, option("N", _JOBS, rich_help_panel=FOLDS)]
Predictions = Annotated[str | None, option("FILE", _PREDICTIONS, parser=name_given)]


def evaluate(
    *,
    declared: dict[str, Any],
    cv: Folds = 5,
    groups: Groups = None,
    scoring: Scoring = None,
    n_jobs: Jobs = None,
    predictions: Predictions = None,
    result: dict[str, Any],
    screen: Screen,
) -> None:
    """Cross-validate a study: how well outputs of samples that were left out are predicted.

    kofa evaluate study.toml -o evaluation.csv

    Samples are left out in turn, the model is fitted to the others, and outputs are
    predicted from the other views. Beside each score stands the baseline: that of predicting
    the mean of the training samples, or their shares of classes. -o writes the scores of all
    folds and columns, which kofa report --evaluation reads.
    The options of the model are those of kofa fit.
    """
    from kofa.cli.steps import evaluate as steps
    from kofa.cli.steps.fit import plan_of

    folds = steps.Folds(cv, groups, scoring or None, n_jobs)
    steps.evaluate(plan_of(**declared), folds, screen, predictions=predictions, **result)


def compare(
    *,
    studies: Annotated[
        list[Path],
        typer.Argument(metavar="STUDY STUDY...", parser=path_given, help="Two or more studies."),
    ],
    outputs: Annotated[
        Words, option("NAME", "A view to be predicted in all of them; repeat for more.")
    ] = None,
    cv: Folds = 5,
    groups: Groups = None,
    scoring: Scoring = None,
    n_jobs: Jobs = None,
    predictions: Predictions = None,
    result: dict[str, Any],
    screen: Screen,
) -> None:
    """Cross-validate several studies with the same folds, and compare them with the first.

    kofa compare linear.toml kernel.toml

    The studies go by the names of their files. difference is what a study has more than
    the first in the same folds, se its standard error.
    """
    from kofa.cli.steps import evaluate as steps

    folds = steps.Folds(cv, groups, scoring or None, n_jobs)
    plans = steps.plans_of(studies, outputs)
    steps.compare(plans, folds, screen, predictions=predictions, **result)
