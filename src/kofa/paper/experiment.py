"""What an experiment is: tasks to do, and what to show of their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kofa.paper.data import paper
from kofa.paper.tables import Table
from kofa.paper.tasks import Options, Result, Task


@dataclass(frozen=True)
class Picture:
    """A figure, drawn when it is saved (with matplotlib, an extra)."""

    name: str
    draw: Callable[[Path], None] = field(repr=False)


@dataclass(frozen=True)
class Shown:
    """Tables and pictures of an experiment."""

    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper."""

    name: str
    tasks: Callable[[Options], list[Task]]
    show: Callable[[Mapping[Task, Result], Options], Shown]


def remarks(name: str, options: Options) -> list[str]:
    """What paper.toml keeps to be said of the whole: why a row fell short in our run, say."""
    if options.quick:
        return [
            "A quick run: few folds, and few settings to choose from; in regression also few rows "
            "and iterations."
        ]
    if options.is_part:
        return []
    names = [name, f"{name}-as-published"] if options.as_published else [name]
    return [note for key in names for note in paper()["notes"].get(key, [])]
