"""What a section of a report is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kofa.inspection.overview import Overview
from kofa.preparation.fitted import Fitted
from kofa.report import encoding
from kofa.report.outcomes import Evaluation
from kofa.report.samples import Shown


@dataclass(frozen=True)
class Panel:
    """A table of a section, and its picture."""

    name: str
    frame: Any
    caption: str
    picture: Mapping[str, Any] | None = None
    choose: tuple[str, ...] = ()  # fields of which one value is shown at a time
    every: tuple[str, ...] = ()  # those of them of which all may be shown too
    threshold: str | None = None  # the field whose size may be given a least value
    note: str = ""
    shares: tuple[str, ...] = ()  # fields that are written as per cent
    hidden: tuple[str, ...] = ()  # fields that are only drawn and saved


@dataclass(frozen=True)
class Section:
    """A heading, a text, and panels below them."""

    name: str
    title: str
    text: str
    panels: tuple[Panel, ...] = field(default=())


@dataclass(frozen=True, eq=False)
class Found:
    """What the sections are about."""

    model: Any
    data: Any
    evaluation: Evaluation
    overview: Overview | None
    shown: Shown | None = None
    covariates: Any = None
    sets: Any = None
    shapes: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def fitted(self) -> Fitted:
        fitted: Fitted = self.model._fitted
        return fitted


def drawn(kind: str, title: str, **fields: Any) -> dict[str, Any]:
    """How a table is drawn: the kind of picture, and what in it are rows, columns and values."""
    return {"kind": kind, "title": title, **fields}


def as_content(panel: Panel) -> dict[str, Any]:
    """A panel as the page reads it."""
    return {
        "choose": list(panel.choose),
        "every": list(panel.every),
        "threshold": panel.threshold,
        "picture": panel.picture,
        "table": _table(panel),
    }


def _table(panel: Panel) -> dict[str, Any]:
    found = encoding.table(panel.frame, panel.caption, panel.note)
    for column in found["columns"]:
        column["share"] = column["name"] in panel.shares
    return found | {"hidden": list(panel.hidden)}
