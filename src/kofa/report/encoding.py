"""Columns of tables as JSON: numbers as bytes in base64, words each once where they recur."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kofa.errors import visible
from kofa.linalg import Array

_LONG = 20_000  # values from which on seven digits have to do
_STEPS = 65_534  # into which a range is divided; one more number stands for NaN


def name(value: Any) -> str:
    """A name from the data as text that neither a page nor a terminal takes for anything else."""
    return visible(str(value))


def numbers(values: Any) -> dict[str, Any]:
    """Floats, NaN where there is none; of many, with seven digits."""
    array = np.asarray(values, dtype=float)
    form = "f32" if len(array) > _LONG else "f64"
    with np.errstate(over="ignore"):
        return {"kind": "number", form: _bytes(array, "<f4" if form == "f32" else "<f8")}


def coarse(values: Array) -> dict[str, Any]:
    """Floats as multiples of a 65,534th of their range: a quarter of the bytes.

    >>> coarse(np.array([0.0, 1.0]))["step"] * 65534
    1.0
    """
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    step = (high - low) / _STEPS or 1.0
    places = np.where(np.isfinite(values), np.round((values - low) / step), _STEPS + 1)
    return {"kind": "number", "u16": _bytes(places, "<u2"), "low": low, "step": step}


def words(values: Iterable[Any]) -> dict[str, Any]:
    """Names; None where there is none. Those that recur stand once, and numbers for them."""
    texts = [None if value is None else name(value) for value in values]
    place = {text: j for j, text in enumerate(dict.fromkeys(texts))}
    if 2 * len(place) > len(texts):
        return {"kind": "text", "values": texts}
    form = "u16" if len(place) <= _STEPS else "u32"
    codes = np.array([place[text] for text in texts])
    return {"kind": "text", "labels": list(place), form: _bytes(codes, f"<u{int(form[1:]) // 8}")}


def classes(codes: Array, labels: Iterable[Any]) -> dict[str, Any]:
    """Labels by their numbers, NaN where there is none."""
    known = [name(label) for label in labels]
    places = np.where(np.isnan(codes), len(known), codes)
    form = "u16" if len(known) <= _STEPS else "u32"
    own = _bytes(places, f"<u{int(form[1:]) // 8}")
    return {"kind": "text", "labels": [*known, None], form: own}


def column(values: Any) -> dict[str, Any]:
    """A column of a DataFrame: numbers, yes and no, or words."""
    if values.dtype.kind in "fiu":
        return numbers(values)
    if values.dtype.kind == "b":
        return words("yes" if value else "no" for value in values.to_numpy())
    return words(None if _is_missing(value) else _joined(value) for value in values)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _joined(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def table(frame: Any, caption: str, note: str = "") -> dict[str, Any]:
    """A DataFrame; its index is left out."""
    columns = [{"name": name(field)} | column(frame[field]) for field in frame.columns]
    return {"caption": caption, "note": note, "n": len(frame), "columns": columns}


def as_json(content: Mapping[str, Any]) -> str:
    """JSON that may stand in a page: no sign in it begins or ends a tag."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _bytes(values: Array, form: str) -> str:
    return b64encode(np.ascontiguousarray(values).astype(form).tobytes()).decode("ascii")
