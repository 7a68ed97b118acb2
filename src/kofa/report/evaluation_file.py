"""Scores and predictions in files, as `kofa evaluate` and `kofa compare` write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kofa.data.tables import import_pandas
from kofa.errors import FileError
from kofa.files import Reading, check_exists, damage_in_words, read_file
from kofa.scoring.tables import BASELINE, PREDICTION_FIELDS, SCORE_FIELDS

_NUMBERS = ("value", BASELINE, "n", "truth", "mean", "lower", "upper", "level")
_CURE = "pass what kofa evaluate -o wrote"


def read_evaluation(path: Path) -> Any:
    """A table of scores or predictions: names as words, whatever they look like, and numbers."""
    check_exists(path)
    with damage_in_words(path):
        frame = _read(path)
    fields = SCORE_FIELDS if "score" in frame else PREDICTION_FIELDS
    lacking = [field for field in fields if field not in frame]
    if lacking:
        what = f"expected scores or predictions, but there is no column {lacking[0]!r}"
        raise FileError(what, path, cure=_CURE)
    return frame.assign(**{name: _numbers(frame[name], path) for name in _NUMBERS if name in frame})


def _read(path: Path) -> Any:
    if path.suffix.lower() == ".json":
        found = json.loads(path.read_text(encoding="utf-8"))
        return import_pandas().DataFrame(_records(found))
    return read_file(path, Reading(values="words", index=False)).reset_index(drop=True)


def _records(found: Any) -> Any:
    """The rows of a table, which may stand under a name."""
    if isinstance(found, Mapping):
        return next((one for one in found.values() if isinstance(one, list)), [])
    return found


def _numbers(column: Any, path: Path) -> Any:
    found = import_pandas().to_numeric(column, errors="coerce")
    wrong = found.isna() & column.notna()
    if wrong.any():
        what = f"expected numbers but got {column[wrong].iloc[0]!r}"
        raise FileError(what, path, column=column.name, cure=_CURE)
    return found
