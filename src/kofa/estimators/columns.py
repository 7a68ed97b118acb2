"""Which columns of X are which view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kofa.errors import DeclarationError
from kofa.linalg import IntArray

_WHOLE = "X"  # the view that is all of X, where `columns` names no others
TARGET = "y"


def declared_columns(
    columns: Any, n_columns: int, names: Sequence[str] | None
) -> dict[str, IntArray]:
    """Positions of the columns of each view."""
    if columns is None:
        return {_WHOLE: np.arange(n_columns)}
    if not isinstance(columns, Mapping) or not columns:
        raise DeclarationError(
            f"Expected columns as a dict of view → columns of X, or None, but got {columns!r}."
        )
    if TARGET in columns:
        raise DeclarationError(
            f"View {TARGET!r}: expected another name, as this is that of the target."
        )
    return {view: _positions(view, given, n_columns, names) for view, given in columns.items()}


def _positions(view: str, given: Any, n_columns: int, names: Sequence[str] | None) -> IntArray:
    if isinstance(given, slice):
        chosen = list(range(n_columns))[given]
    else:
        try:
            each = [given] if isinstance(given, str) else list(given)
        except TypeError:  # a single position
            each = [given]
        chosen = [_position(view, column, n_columns, names) for column in each]
    if not chosen:
        raise DeclarationError(f"View {view!r}: expected at least one column but got {given!r}.")
    if len(set(chosen)) < len(chosen):
        raise DeclarationError(f"View {view!r}: expected each column once but got {given!r}.")
    return np.array(chosen, dtype=np.intp)


def _position(view: str, column: Any, n_columns: int, names: Sequence[str] | None) -> int:
    if isinstance(column, str):
        if names is None:
            raise DeclarationError(
                f"View {view!r}, column {column!r}: X has no names of columns; give positions, "
                f"or pass a DataFrame."
            )
        if column not in names:
            raise DeclarationError(f"View {view!r}: X has no column {column!r}.")
        return list(names).index(column)
    if not isinstance(column, int | np.integer) or isinstance(column, bool):
        raise DeclarationError(
            f"View {view!r}: expected names or positions of columns but got {column!r}."
        )
    if not -n_columns <= column < n_columns:
        raise DeclarationError(
            f"View {view!r}: X has no column {column}; it has {n_columns} columns."
        )
    return int(column) % n_columns


def by_view(option: str, value: Any, views: Iterable[str]) -> dict[str, Any]:
    """An option of each view, which may be one for all."""
    if not isinstance(value, Mapping):
        return dict.fromkeys(views, value)
    for view in value:
        if view not in views:
            known = ", ".join(map(repr, views))
            raise DeclarationError(f"Unknown view {view!r} in {option}; the views are {known}.")
    for view in views:
        if view not in value:
            raise DeclarationError(f"View {view!r}: expected an entry of {option} for it.")
    return dict(value)
