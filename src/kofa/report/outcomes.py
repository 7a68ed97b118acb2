"""How well outputs are predicted: scores that were evaluated before, or of the data at hand."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kofa.data.tables import import_pandas
from kofa.errors import DataError
from kofa.inspection.features import column_names
from kofa.linalg import Array
from kofa.preparation.fitted import Fitted
from kofa.report.evaluation_file import read_evaluation as read_evaluation_file
from kofa.results.answers import from_others, given
from kofa.scoring.summaries import score_summary
from kofa.scoring.tables import ALL, PREDICTION_FIELDS, SCORE_FIELDS
from kofa.scoring.truth import Compared, compared, means

HELD_OUT = "in held-out samples"
_ORIGINS = {
    True: "in the samples of the fit",
    False: "in the data that were passed",
    None: "in the data that were passed",
}
_CAVEATS = {
    True: ", which are predicted better than new ones",
    False: "",
    None: ", which are predicted better than new ones if they were in the fit",
}


# ---------------------------------------------------------------- of data


@dataclass(frozen=True, eq=False)
class Outcome:
    """What is predicted of an output in data, beside the truth where the data have it."""

    name: str
    columns: Sequence[Hashable]
    mean: Array  # (n, D): means or probabilities
    samples: Any  # their names, or None
    truth: Compared | None

    def rows(self, samples: Any) -> Any:
        """Where the samples of the predictions stand among those with these names."""
        if samples is None or self.samples is None:
            return np.arange(len(self.mean))
        return samples.get_indexer(self.samples)


def outcomes_of(model: Any, data: Any) -> dict[str, Outcome]:
    """The outputs that can be predicted from data."""
    fitted: Fitted = model._fitted
    if data is None or not fitted.outputs:
        return {}
    found = given(fitted, data)
    inputs = [name for name, view in fitted.views.items() if not view.role.output]
    if not any(name in found.tables for name in inputs):
        return {}
    return {
        name: _outcome(model, data, name, name in found.tables)
        for name in fitted.outputs
        if fitted.views[name].likelihood is not None
    }


def _outcome(model: Any, data: Any, name: str, has_truth: bool) -> Outcome:
    view = model._fitted.views[name]
    samples = from_others(model._fitted, data, name).samples.names
    if has_truth:
        truth = compared(model, data, name)
        return Outcome(name, truth.columns, truth.held.mean, samples, truth)
    return Outcome(name, column_names(view), means(model, data, name, view), samples, None)


# ---------------------------------------------------------------- evaluated


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores and predictions of outputs, and of which samples these are."""

    scores: Any  # a table as from `kofa.cross_validate`, or None
    predictions: Any  # likewise
    origin: str
    held_out: bool
    caveat: str = ""  # why the scores of new samples are others

    def of(self, output: str) -> dict[str, float]:
        """The scores of all columns and folds of an output together."""
        rows = self._rows(output)
        return {} if rows is None else dict(zip(rows["score"], rows["pooled"], strict=True))

    def without(self, output: str) -> dict[str, float]:
        """The same scores of what one would say without the model, where they were evaluated."""
        rows = self._rows(output)
        if rows is None or "baseline" not in rows:
            return {}
        return dict(zip(rows["score"], rows["baseline"].astype(float), strict=True))

    def n(self, output: str) -> int:
        """How many values are behind these scores."""
        own = self.scores[(self.scores["view"] == output) & (self.scores["column"] == ALL)]
        each = own[(own["fold"] != ALL) & (own["score"] == own["score"].iloc[0])]
        return int(own["n"].max() if not len(each) else each["n"].sum())

    def _rows(self, output: str) -> Any:
        if self.scores is None or not (self.scores["view"] == output).any():
            return None
        rows = self.scores[(self.scores["view"] == output) & (self.scores["column"] == ALL)]
        if (rows["fold"] == ALL).any():
            return rows[rows["fold"] == ALL].rename(columns={"value": "pooled"})
        return score_summary(rows).assign(pooled=lambda table: table["mean"])


def evaluation_of(
    evaluation: Any, outcomes: Mapping[str, Outcome], of_fit: bool | None, fitted: Fitted
) -> Evaluation:
    """What was evaluated before; else scores of the data at hand."""
    pd = import_pandas()
    truths = [one.truth for one in outcomes.values() if one.truth is not None]
    own = pd.concat([one.rows for one in truths], ignore_index=True) if truths else None
    if evaluation is None:
        scores = pd.concat([one.scores for one in truths], ignore_index=True) if truths else None
        return Evaluation(scores, own, _ORIGINS[of_fit], False, _CAVEATS[of_fit])
    scores, predictions = read_evaluation(evaluation)
    _check_views(scores, fitted)
    return Evaluation(scores, predictions, HELD_OUT, held_out=True)


def _check_views(scores: Any, fitted: Fitted) -> None:
    unknown = [view for view in dict.fromkeys(scores["view"]) if view not in fitted.views]
    if unknown:
        what = f"it has scores of a view {unknown[0]!r}, which the model has not"
        cure = "pass the evaluation of this model"
        raise DataError(what, source="evaluation", option="evaluation", cure=cure)


def read_evaluation(evaluation: Any) -> tuple[Any, Any]:
    """Scores as from `kofa.cross_validate`, and predictions or None: tables, or their files.

    With predictions it is the pair that ``return_predictions=True`` gives.
    """
    pair = isinstance(evaluation, tuple) and len(evaluation) == 2
    given, more = evaluation if pair else (evaluation, None)
    scores = _read(given, SCORE_FIELDS)
    if "model" in scores and scores["model"].nunique() > 1:
        what = "expected the scores of one model but there are several"
        cure = "keep the rows of this model"
        raise DataError(what, source="evaluation", option="evaluation", cure=cure)
    # Folds are numbers or "all", which a file of text has as words.
    scores = scores.assign(fold=[_fold(one) for one in scores["fold"]])
    return scores, None if more is None else _read(more, PREDICTION_FIELDS)


def _read(given: Any, fields: Sequence[str]) -> Any:
    """A table with these columns, or the file of one."""
    named = isinstance(given, str | PathLike)
    table = read_evaluation_file(Path(given)) if named else given
    lacking = [field for field in fields if field not in getattr(table, "columns", ())]
    if lacking:
        expected = "scores" if named else "a table as from kofa.cross_validate"
        what = f"expected {expected}, but there is no column {lacking[0]!r}"
        cure = "pass what kofa evaluate -o wrote"
        raise DataError(what, source=given if named else "evaluation", cure=cure)
    return table


def _fold(value: Any) -> Any:
    text = str(value)
    return int(text) if text.isdecimal() else text
