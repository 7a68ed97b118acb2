"""What is asked of a Dask cluster: to do something with each block, and to read rows of a table.

All of it are tasks without side effects, so that Dask can repeat those whose results were lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kofa.data.dask_tables import DaskRows, explaining
from kofa.data.stored import (
    Encoded,
    FileRows,
    Joined,
    Placed,
    SomeColumns,
    SparseRows,
    Stored,
    Values,
    consecutive,
    encoded_rows,
)
from kofa.errors import KofaError
from kofa.linalg import Array, BoolArray, IntArray

_PATIENCE = 5.0  # seconds to wait for a scheduler


@contextmanager
def connected(scheduler: str | None) -> Iterator[Any]:
    """A client of the scheduler at an address while it is needed; None without one."""
    if scheduler is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError as error:
        what = "A cluster needs Dask: install it with pip install 'kofa[dask]'."
        raise ImportError(what) from error
    cure = "check the address, such as tcp://host:8786, and that dask scheduler runs there"
    if not re.fullmatch(r"(\w+://)?[^/]+:\d+", scheduler):
        raise KofaError(f"{scheduler!r} is no address", option="scheduler", cure=cure)
    try:
        client: Any = Client(scheduler, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        what = f"no scheduler of Dask answers at {scheduler}"
        raise KofaError(what, option="scheduler", cure=cure) from error
    try:
        yield client
    finally:
        client.close()


def each(
    client: Any, function: Callable[..., Any], *parts: Sequence[Any], **same: Any
) -> list[Any]:
    """A function of each of some lists' entries, as futures; what is in tasks can be repeated."""
    import dask

    named = getattr(function, "func", function)
    key = f"kofa-{getattr(named, '__name__', 'part').strip('_')}"
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1PiB"}):
        return list(client.map(function, *parts, key=key, pure=False, **same))


def shared(client: Any, thing: Any) -> Any:
    """What all blocks of a pass need, as one future."""
    return each(client, _given, [_Boxed(thing)])[0]


def gathered(client: Any, futures: Sequence[Any]) -> list[Any]:
    """The results; where that fails, the workers are told that nobody waits any more."""
    try:
        with explaining():
            return list(client.gather(list(futures)))
    except BaseException:
        with suppress(Exception):
            client.cancel(list(futures), force=True)
        raise


@dataclass(frozen=True, eq=False)
class _Boxed:
    """Something that Dask does not look into."""

    thing: Any


def _given(box: _Boxed) -> Any:
    return box.thing


# ---------------------------------------------------------------- rows of tables


def placed(client: Any, values: Values, rows: Sequence[slice | IntArray]) -> list[Any]:
    """Some rows of a table for each block, as futures: read by workers where they can be."""
    if isinstance(values, Encoded):
        inner = placed(client, values.values, rows)
        return each(client, _encoded, inner, encode=shared(client, values.encode))
    if isinstance(values, SomeColumns):
        return each(client, _columns, placed(client, values.values, rows), columns=values.columns)
    if isinstance(values, Placed):
        places = [values.place[some] for some in rows]
        inner = placed(client, values.values, [consecutive(one[one >= 0]) for one in places])
        if all((one >= 0).all() for one in places):
            return inner
        return each(client, _spread, inner, [one >= 0 for one in places])
    if isinstance(values, DaskRows):
        return list(client.compute([values.array[some] for some in rows]))
    if isinstance(values, FileRows | Joined):
        return each(client, _read, [_without_owner(values)] * len(rows), list(rows))
    if isinstance(values, SparseRows):
        return each(client, np.asarray, [SparseRows(values.matrix[some]) for some in rows])
    return each(client, np.asarray, [values[some] for some in rows])


def _without_owner(values: Any) -> Any:
    """Files as workers see them; who removes them is known here."""
    if isinstance(values, Joined):
        return Joined(tuple(map(_without_owner, values.parts)))
    return replace(values, owner=None) if isinstance(values, FileRows) else values


def _read(values: Stored, rows: slice | IntArray) -> Array:
    return values[rows]


def _encoded(values: Any, encode: Callable[[Array], Array]) -> Array:
    def of_some(rows: Any) -> Array:
        return encode(np.asarray(rows, dtype=np.float64))

    return encoded_rows(np.asarray(values), of_some, "float64")


def _columns(values: Array, columns: IntArray) -> Array:
    return np.ascontiguousarray(values[:, columns])


def _spread(values: Array, there: BoolArray) -> Array:
    found = np.full((len(there), values.shape[1]), np.nan)
    found[there] = values
    return found
