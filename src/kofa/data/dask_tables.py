"""Tables of Dask, whose rows are computed where they are needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from kofa.data.stored import Named, Stored
from kofa.errors import DataError, KofaError
from kofa.linalg import Array, IntArray


def is_dask(data: Any) -> bool:
    """Whether data are a collection of Dask, which is not loaded for the question."""
    base = sys.modules.get("dask.base")  # who passes its tables has loaded it
    return base is not None and bool(base.is_dask_collection(data))


def is_client(engine: Any) -> bool:
    """Whether an engine is a `distributed.Client`, likewise."""
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(engine, distributed.Client)


@contextmanager
def explaining() -> Iterator[None]:
    """Errors of the cluster in the words of kofa."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError
    from distributed.comm.core import CommClosedError

    try:
        yield
    except KilledWorker as error:
        what = "several workers of the cluster died, one after the other, at the same block of rows"
        cure = "give the workers more memory, or set a lower block_rows"
        raise KofaError(what, option="engine", cure=cure) from error
    except (FutureCancelledError, CommClosedError, TimeoutError) as error:
        what = "the scheduler of the cluster is lost"
        cure = "start it again; a fit with a checkpoint can be continued"
        raise KofaError(what, option="engine", cure=cure) from error


@dataclass(frozen=True, eq=False)
class DaskRows(Stored):
    """A dask.array with all columns of a row in one chunk."""

    array: Any
    client: Any = None  # who computes; None: whoever Dask has for it
    on_disk = True

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.shape[0], self.array.shape[1]

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    def read(self, rows: slice | IntArray) -> Array:
        some = self.array[rows]
        if self.client is None:
            return np.array(some.compute(), dtype=np.float64)
        with explaining():
            return np.array(self.client.compute(some, sync=True), dtype=np.float64)


def placed_on(client: Any, data: Any) -> Any:
    """The data with tables of Dask computed once, by workers that keep them."""
    if not isinstance(data, Mapping):
        return data
    with explaining(), client.as_current():
        return {
            name: open_dask(name, table, client) if is_dask(table) else table
            for name, table in data.items()
        }


def open_dask(name: str, data: Any, client: Any = None) -> Any:
    """A dask.array, or a DataFrame or Series of dask.dataframe; one column is read at once."""
    if not hasattr(data, "ndim"):
        what = f"expected a dask.array or a dask.dataframe but got {type(data).__name__}"
        raise DataError(what, name, cure="turn it into one of these, or compute() it")
    if data.ndim == 1 or (data.ndim == 2 and data.shape[1] == 1):
        return data.compute()
    if hasattr(data, "to_dask_array"):
        return _open_frame(name, data, client)
    return Named(_rows(name, data, client), None, None)


def _rows(name: str, array: Any, client: Any) -> DaskRows:
    if array.ndim != 2:
        cure = "make each sample one row, as .reshape((len(data), -1)) does"
        raise DataError(f"expected a table (2-D) but got {array.ndim}-D data", name, cure=cure)
    if array.dtype.kind not in "fiub":
        what, cure = f"expected real numbers but got {array.dtype}", "convert them to float"
        raise DataError(what, name, cure=cure)
    array = array.rechunk({1: -1})
    if client is not None:
        array = client.persist(array)
    if np.isnan(array.shape[0]):
        array = array.compute_chunk_sizes()
    return DaskRows(array, client)


def _open_frame(name: str, frame: Any, client: Any) -> Named:
    for column, dtype in frame.dtypes.items():
        if not (isinstance(dtype, np.dtype) and dtype.kind in "fiub"):
            what, cure = f"expected real numbers but got {dtype}", "convert the column to float"
            raise DataError(what, name, column, cure=cure)
    if client is not None:
        frame = client.persist(frame)
    index = frame.index.compute()
    # Reading many files leaves numbers that begin anew in each: nobody named these samples.
    names = index if index.is_unique or index.name is not None else None
    array = frame.to_dask_array(lengths=True)
    return Named(_rows(name, array, client), names, tuple(frame.columns))
