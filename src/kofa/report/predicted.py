"""How well outputs are predicted: scores, predictions beside the truth, calibration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kofa.report.panels import Found, Panel, Section, drawn
from kofa.scoring.summaries import calibration_table, confusion_table

_MOST = 50_000  # predictions in a file; of more, some drawn at random


def predictions(found: Found) -> Section | None:
    """Scores, predictions beside the truth, and whether these are what they say."""
    own = found.evaluation
    if own.scores is None:
        return None
    scores = own.scores.assign(fold=own.scores["fold"].map(str))
    panels = [Panel("scores", scores, f"Scores {own.origin}", choose=("fold",), every=("fold",))]
    if own.predictions is not None:
        panels += _of_predictions(own.predictions.assign(column=own.predictions["column"].map(str)))
    text = (
        f"How well outputs are predicted {own.origin}{own.caveat}. r2 and d2 compare with what one "
        "would say without the model: 0 is a model that has learnt nothing, 1 one without error."
    )
    if not own.held_out:
        text += (
            " Only samples that were left out of the fit show how well new samples are predicted: "
            "evaluate the model (kofa evaluate, or kofa.cross_validate) and pass what comes out."
        )
    return Section("predictions", "Predictions", text, tuple(panels))


def _of_predictions(table: Any) -> Iterator[Panel]:
    """The panels of numbers, of classes, and of how far both can be trusted."""
    numbers, labels = table[table["kind"] == "number"], table[table["kind"] != "number"]
    if len(numbers):
        yield _against_truth(numbers)
    if len(labels):
        yield _confusion(labels)
    calibration = calibration_table(table)
    if len(calibration):
        title = "Calibration: on the line, things happen as often as the model says"
        picture = drawn("calibration", title, x="nominal", y="observed")
        choose = ("view", "column")
        yield Panel(
            "calibration", calibration, "Calibration", picture, choose,
            shares=("nominal", "observed"), hidden=("kind",),
        )  # fmt: skip


def _against_truth(table: Any) -> Panel:
    note = ""
    if len(table) > _MOST:
        note = f"{_MOST:,} of {len(table):,} values, drawn at random."
        table = table.sample(_MOST, random_state=0).sort_index()
    fields = {"x": "truth", "y": "mean", "low": "lower", "high": "upper", "label": "sample"}
    picture = drawn("truth", "Predicted against true, with intervals of 90 %", **fields)
    columns = ["view", "column", "sample", "truth", "mean", "lower", "upper"]
    choose = ("view", "column")
    return Panel("truth", table[columns], "Predictions and truth", picture, choose, note=note)


def _confusion(table: Any) -> Panel:
    found = confusion_table(table)
    found = found.assign(**{field: found[field].map(str) for field in ("truth", "predicted")})
    picture = drawn(
        "heat",
        "How often a class (column) was predicted for a class (row)",
        rows="truth",
        columns="predicted",
        value="n",
        least=0,
        write=True,
        row_title="true",
        column_title="predicted",
    )
    return Panel("confusion", found, "Predicted and true classes", picture, ("view", "column"))
