"""`kofa associate` and `kofa enrich`: what factors have to do with what is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kofa.cli import UsageError
from kofa.cli.given import split_path
from kofa.cli.plan import STDIN, Source, reading_of
from kofa.cli.steps.apply import Given
from kofa.cli.steps.tables import factor_names, naming_options, one_view
from kofa.errors import DataError
from kofa.files import Reading, check_exists, read_file
from kofa.inspection import read_gmt

_INDEPENDENT = "features count as independent: --study or --view allows for how they go together"


def covariate_source(
    text: str, reading: Mapping[str, Any], others: Mapping[str, Source] | None = None
) -> Source:
    """Where covariates are, from FILE[:COLUMNS]; each column is a number or a label."""
    file, parts = split_path(text)
    if len(parts) > 1:
        raise UsageError("expected FILE[:COLUMNS]", got=text)
    if file is STDIN and any(one.file is STDIN for one in (others or {}).values()):
        raise UsageError("only one table can be read from stdin", got=text)
    columns = [one.strip() for one in parts[0].split(",")] if parts and parts[0] else None
    chosen = {} if columns is None else {"columns": columns}
    return Source(file, reading_of({**reading, **chosen}, "categorical"))


def associate(given: Given, covariates: Source, ranks: bool) -> tuple[Any, Any]:
    """Tests of factors against covariates; what is shown has the least p first."""
    known = covariates.read()
    with given.ask() as data:
        frame = given.model.associate(known, data, ranks=ranks)
    look = frame.sort_values("p", kind="stable", na_position="last")
    return frame, look[[*(name for name in look if name not in ("r", "note")), "note", "r"]]


def enrich(
    given: Given,
    view: str,
    sets: Path,
    factors: Sequence[str] | None,
    options: Mapping[str, Any],
) -> tuple[Any, Any, str]:
    """Tests of feature sets, what is shown of them, and what to know about p."""
    name = one_view(given.model, view)
    chosen = factor_names(given.model, factors)
    known = feature_sets(sets)
    with given.ask() as data, naming_options(), naming_sets(sets):
        frame = given.model.enrich(name, known, chosen, data, **options)
    order = ["factor", "set", "n_found", "difference", "p", "q", "leading", "size", "t"]
    look = frame.sort_values("p", kind="stable", na_position="last")
    look = look[[*order, *(name for name in look if name not in order)]]
    return frame, look, "" if given.sources else _INDEPENDENT


def feature_sets(path: Path) -> Any:
    """Sets of a GMT file, or a table with the columns set and feature."""
    check_exists(path)
    if path.suffix.lower() not in (".csv", ".tsv", ".tab", ".parquet", ".pq", ".gz"):
        return read_gmt(path)
    return read_file(path, Reading(values="words", index=False))


@contextmanager
def naming_sets(path: Path) -> Iterator[None]:
    """Errors about feature sets name their file."""
    try:
        yield
    except DataError as error:
        if error.source == "sets":
            error.source = path
        raise
