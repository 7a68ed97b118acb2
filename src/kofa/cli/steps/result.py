"""A table that a command found: shown, printed as JSON, or written to a file."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from kofa.cli import UsageError
from kofa.cli.display import Screen, counted, table
from kofa.cli.steps.apply import check_target
from kofa.cli.steps.writing import until_written
from kofa.errors import visible
from kofa.files import as_json, check_stdout, to_stdout, write_file

MOST_ROWS = 40  # that are shown
_LONGEST = 40  # characters of a cell
_GAP = 2  # between columns
_OF_ANY_SIZE = ("p", "q", "lfsr", "weight", "std", "inflation")  # columns; others are like shares


def check_result(out: str | None, json: bool, read: Iterable[Path]) -> None:
    """Raise for places that cannot be written, before any work is done."""
    if json and out is not None:
        raise UsageError("expected --out or --json but got both", cure="-o FILE.json writes JSON")
    if json:
        check_stdout()
    if out is not None:
        check_target(out, read)


def deliver(
    screen: Screen,
    frame: Any,
    out: str | None,
    json: bool,
    look: Any = None,
    note: str = "",
    wide: bool = False,
) -> None:
    """Hand over a table; `look` is what people see of it, `note` what they should know.

    With `wide`, `look` has the same numbers in columns, and the table itself is narrower.
    """
    if json:
        to_stdout(as_json(frame))
        sys.stdout.flush()
    elif out is None:
        screen.show(*shown(frame if look is None else look, frame, screen.width, note, wide))
    else:
        with until_written(out):
            write_file(frame, out, index=False)
        if out == "-":
            sys.stdout.flush()
        else:
            size = f"{counted(len(frame), 'row')}, {counted(frame.shape[1], 'column')}"
            screen.report(f"{out}: {size}")


def shown(look: Any, frame: Any, width: int, note: str = "", wide: bool = False) -> list[Any]:
    """As much of a table as can be looked at, and what is left out."""
    rows, columns, names = _part(look, width)
    if wide and len(names) < len(columns):
        look, (rows, columns, names) = frame, _part(frame, width)
    numbers = [str(n) for n in rows.columns if rows[n].dtype.kind in "iuf"]
    made = table(names, list(zip(*(columns[n] for n in names), strict=True)), numbers)
    left = [note] if note else []
    if len(look) > len(rows):
        left.append(f"{len(rows)} of {len(look):,} rows are shown")
    if len(names) < len(columns):
        left.append(f"not shown: {_some([n for n in columns if n not in names])}")
    if left:
        left.append(f"-o FILE or --json has all {len(frame):,} rows")
    return [made, *(["\n" + "\n".join(left)] if left else [])]


def _part(look: Any, width: int) -> tuple[Any, dict[str, list[str]], list[str]]:
    """The first rows, the cells of their columns, and the columns that fit into a line."""
    rows = look.iloc[:MOST_ROWS]
    columns = {str(name): _cells(str(name), rows[name].tolist()) for name in rows.columns}
    return rows, columns, fitting(columns, width)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{counted(len(names), 'column')}"


def fitting(columns: dict[str, list[str]], width: int) -> list[str]:
    """The first columns that fit into a line, two at least."""
    names: list[str] = []
    used = 0
    for name, cells in columns.items():
        used += max(map(cell_len, map(visible, [name, *cells]))) + _GAP
        if used - _GAP > width and len(names) > 1:
            break
        names.append(name)
    return names


def _cells(name: str, values: Sequence[Any]) -> list[str]:
    numbers = [abs(one) for one in values if isinstance(one, float) and math.isfinite(one)]
    fixed = name not in _OF_ANY_SIZE and max(numbers, default=0.0) < 10
    return [_short(_cell(value, fixed)) for value in values]


def _cell(value: Any, fixed: bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "–" if math.isnan(value) else _number(value, fixed)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _number(value: float, fixed: bool = False) -> str:
    """Three digits, or with `fixed` three decimals; thousands in full.

    >>> [_number(x) for x in (0.0, 0.12345, -12.345, 12345.6, 1.2e-7, 1e12)]
    ['0', '0.123', '-12.3', '12346', '1.2e-07', '1e+12']
    >>> _number(-1e-9, fixed=True)
    '0.000'
    """
    if fixed:
        return f"{value:.3f}".replace("-0.000", "0.000")
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def _short(text: str) -> str:
    """Long names shortened in the middle, since their ends tell them apart."""
    half = (_LONGEST - 1) // 2
    return text if len(text) <= _LONGEST else f"{text[:half]}…{text[-half:]}"
