"""Tables whose rows become arrays of floats only where they are needed, block by block.

Whatever works for such a table works for an array too: `values[rows]` are floats, NaN where
missing, and `by_blocks` visits all rows, those of an array in several threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from mmap import mmap
from typing import Any

import numpy as np

from kofa.ahead import in_threads
from kofa.errors import FileError
from kofa.linalg import Array, BoolArray, IntArray, n_blas_threads

_IN_MEMORY = 2**18  # of a block of an array that is in memory (2 MiB)
_AT_ONCE = 2**21  # numbers of a block of rows (16 MiB)
_IN_CACHE = 2**17  # numbers of rows that are encoded at a time


class Stored(ABC):
    """Rows that are kept in another form than as floats."""

    on_disk: bool = False

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    @abstractmethod
    def read(self, rows: slice | IntArray) -> Array:
        """Some of the rows as an array of its own, NaN where missing."""

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | BoolArray | IntArray) -> Array:
        if isinstance(rows, slice):
            return self.read(slice(*rows.indices(len(self))[:2]))
        index: Any = np.asarray(rows)
        return self.read(consecutive(np.flatnonzero(index) if index.dtype == bool else index))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """All rows: for what cannot go by blocks."""
        whole = np.empty(self.shape)
        for where in self.slices():
            whole[where] = self.read(where)
        return whole if dtype is None else whole.astype(dtype)

    def slices(self) -> Iterator[slice]:
        """Consecutive rows that are a block."""
        return row_slices(*self.shape, _AT_ONCE)


Values = Array | Stored


def row_slices(n: int, n_columns: int, at_once: int) -> Iterator[slice]:
    """Consecutive rows, of no more numbers at a time than some, but one row at least."""
    step = max(1, at_once // max(1, n_columns))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def blocks(values: Values) -> Iterator[Array]:
    """The rows block by block."""
    for where in slices_of(values) if len(values) else [slice(0)]:
        yield values[where]


def slices_of(values: Values) -> Iterator[slice]:
    """Consecutive rows that are a block."""
    if isinstance(values, Stored):
        return values.slices()
    return row_slices(len(values), values.shape[1], _IN_MEMORY)


def of_blocks(function: Callable[[Array], Any], values: Values) -> Iterator[Any]:
    """What a function says of each block of rows, in order."""
    where = list(slices_of(values))
    n_threads = 1 if isinstance(values, Stored) or len(where) == 1 else n_blas_threads()
    return in_threads(function, (values[rows] for rows in where), n_threads)


def by_blocks(function: Callable[[Array], Any], values: Values) -> Any:
    """What a function says of each row: an array with an entry for each."""
    parts = list(of_blocks(function, values))
    return np.concatenate(parts) if parts else function(np.empty(values.shape))


def n_measured(values: Array) -> IntArray:
    """The number of values that each row has."""
    return np.asarray((~np.isnan(values)).sum(axis=1))


def some_columns(values: Values, columns: IntArray | list[int]) -> Values:
    """Some of the columns, in this order."""
    if isinstance(values, Stored):
        return SomeColumns(values, np.asarray(columns, dtype=np.intp))
    return values[:, columns]


def consecutive(rows: IntArray) -> slice | IntArray:
    """A slice where the rows follow each other, which can be read at once."""
    if len(rows) and rows[0] >= 0 and (np.diff(rows) == 1).all():
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


# ---------------------------------------------------------------- rows of another table


@dataclass(frozen=True, eq=False)
class Derived(Stored):
    """Rows that follow from those of another table."""

    values: Values

    @property
    def on_disk(self) -> bool:  # type: ignore[override]
        return is_on_disk(self.values)

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]


@dataclass(frozen=True, eq=False)
class SomeColumns(Derived):
    """Some of the columns."""

    columns: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], len(self.columns)

    def read(self, rows: slice | IntArray) -> Array:
        return np.ascontiguousarray(self.values[rows][:, self.columns])


@dataclass(frozen=True, eq=False)
class Placed(Derived):
    """The rows in other places; those that the table lacks (−1) are missing."""

    place: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.place), self.values.shape[1]

    def read(self, rows: slice | IntArray) -> Array:
        place = self.place[rows]
        if len(place) and place.min() >= 0:
            return np.array(self.values[consecutive(place)])
        found, there = np.full((len(place), self.shape[1]), np.nan), place >= 0
        found[there] = self.values[consecutive(place[there])]
        return found


@dataclass(frozen=True, eq=False)
class Encoded(Derived):
    """What a function makes of each row, such as its similarities with landmarks."""

    encode: Callable[[Array], Array]

    @cached_property
    def _none(self) -> Array:
        """No row, but of the type and with the columns that all have."""
        return self.encode(self.values[:0])

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self._none.shape[1]

    @property
    def rounding(self) -> float:
        """Of the numbers, relative to these."""
        return float(np.finfo(self._none.dtype).eps)

    def slices(self) -> Iterator[slice]:
        in_memory = not isinstance(self.values, Stored)
        return row_slices(*self.shape, _IN_MEMORY if in_memory else _AT_ONCE)

    def read(self, rows: slice | IntArray) -> Array:
        return self.encode(self.values[rows])


def encoded_rows(values: Array, encode: Callable[[Array], Array], dtype: str) -> Array:
    """What a function makes of rows, as an array of this type.

    Some rows at a time in each thread, so that temporaries stay in cache and no more than these are
    ever in double precision.
    """
    width = encode(values[:0]).shape[1]
    found = np.empty((len(values), width), dtype)
    where = list(row_slices(len(values), max(width, values.shape[1]), _IN_CACHE))

    def fill(rows: slice) -> None:
        found[rows] = encode(values[rows])

    deque(in_threads(fill, where, n_blas_threads() if len(where) > 1 else 1), maxlen=0)
    return found


def is_on_disk(values: Values) -> bool:
    """Whether rows are read from a file when they are needed."""
    return isinstance(values, Stored) and values.on_disk


# ---------------------------------------------------------------- sparse matrices


def is_sparse(data: Any) -> bool:
    """Whether data are a matrix or array of scipy.sparse."""
    return hasattr(data, "tocsr") and hasattr(data, "nnz")


class SparseRows(Stored):
    """A matrix of scipy.sparse. What it does not hold is zero; only NaN is missing."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix.tocsr()  # the caller's own where it is one

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape[0], self.matrix.shape[1]

    def read(self, rows: slice | IntArray) -> Array:
        return np.asarray(self.matrix[rows].astype(np.float64).toarray(order="C"))


def small_as_array(rows: Stored) -> Values:
    """The rows, or an array where all are no more than a block."""
    return np.asarray(rows) if rows.shape[0] * rows.shape[1] <= _AT_ONCE else rows


@dataclass(frozen=True, eq=False)
class Named:
    """A sparse matrix, or stored rows, with names of samples and columns."""

    values: Any
    samples: Any  # pandas Index, or None
    columns: Any  # names, or None

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    @property
    def index(self) -> Any:
        """The names of the samples, as a DataFrame has them."""
        return self.samples

    def take(self, rows: IntArray) -> Named:
        """Some of the rows."""
        values = SparseRows(self.values) if is_sparse(self.values) else self.values
        samples = None if self.samples is None else self.samples[rows]
        return Named(Placed(values, rows), samples, self.columns)


# ---------------------------------------------------------------- files


@dataclass(frozen=True, eq=False)
class FileRows(Stored):
    """Numbers in a file, row after row, as numpy.memmap and .npy files have them."""

    path: str
    dtype: Any
    n: tuple[int, int]
    offset: int = 0  # bytes before the first
    owner: Any = None  # who removes the file when nothing refers to it any more
    on_disk = True

    @classmethod
    def of_memmap(cls, array: Any) -> FileRows | None:
        """The rows of a numpy.memmap; None where it is only a part, or not as its file is."""
        whole = isinstance(array, np.memmap) and isinstance(array.base, mmap)
        if not (whole and array.filename and array.flags.c_contiguous and array.mode != "c"):
            return None
        if array.ndim not in (1, 2) or array.dtype.kind not in "fiub":
            return None
        shape = (len(array), 1 if array.ndim == 1 else array.shape[1])
        return cls(str(array.filename), array.dtype, shape, int(array.offset))

    @property
    def shape(self) -> tuple[int, int]:
        return self.n

    def read(self, rows: slice | IntArray) -> Array:
        n_columns = self.n[1]
        try:
            if not isinstance(rows, slice):
                whole = np.memmap(self.path, self.dtype, "r", self.offset, self.n)
                return np.array(whole[rows], dtype=np.float64)
            # Read, not mapped: what was mapped would count as memory of this process.
            size = (rows.stop - rows.start) * n_columns
            begin = self.offset + rows.start * n_columns * self.dtype.itemsize
            found = np.fromfile(self.path, self.dtype, size, offset=begin)
        except (OSError, ValueError) as error:
            raise self._shorter() from error
        if found.size < size:
            raise self._shorter()
        return found.astype(np.float64, copy=False).reshape(-1, n_columns)

    def _shorter(self) -> FileError:
        what = f"expected {self.n[0]} rows of {self.n[1]} numbers, but they cannot be read any more"
        return FileError(what, self.path, cure="leave the file as it is while it is used")


@dataclass(frozen=True, eq=False)
class BackedRows(Stored):
    """A matrix of an AnnData in its file: a dataset of HDF5, or a sparse one by rows."""

    matrix: Any
    path: str
    n: tuple[int, int]
    dtype: Any
    on_disk = True

    @classmethod
    def of(cls, matrix: Any, path: str) -> BackedRows | None:
        """Those of a matrix of numbers that is in a file, row after row; else None."""
        by_rows = getattr(matrix, "format", "") == "csr" and hasattr(matrix, "to_memory")
        dense = type(matrix).__module__.startswith("h5py") and matrix.ndim == 2
        if not (by_rows or dense) or matrix.dtype.kind not in "fiub":
            return None
        return cls(matrix, path, (matrix.shape[0], matrix.shape[1]), matrix.dtype)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n

    def read(self, rows: slice | IntArray) -> Array:
        try:
            if isinstance(rows, slice):
                return _as_floats(self.matrix[rows])
            once, where = np.unique(rows, return_inverse=True)  # which is all that HDF5 takes
            return _as_floats(self.matrix[once] if len(once) else self.matrix[:0])[where]
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            cure = "leave the file open and as it is while it is used"
            raise FileError("it cannot be read any more", self.path, cure=cure) from error


def _as_floats(block: Any) -> Array:
    dense = block.toarray(order="C") if is_sparse(block) else block
    return np.array(dense, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Joined(Stored):
    """The rows of several tables, one after the other."""

    parts: tuple[Stored, ...]

    @property
    def on_disk(self) -> bool:  # type: ignore[override]
        return any(part.on_disk for part in self.parts)

    @property
    def shape(self) -> tuple[int, int]:
        return sum(map(len, self.parts)), self.parts[0].shape[1]

    def read(self, rows: slice | IntArray) -> Array:
        index = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        found = np.empty((len(index), self.shape[1]))
        begin = 0
        for part in self.parts:
            mine = (index >= begin) & (index < begin + len(part))
            if mine.any():
                found[mine] = part[index[mine] - begin]
            begin += len(part)
        return found
