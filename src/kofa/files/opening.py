"""Tables in files that are larger than memory: opened, and read block by block when needed."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kofa.checks import listed
from kofa.data.stored import FileRows, Joined, Named
from kofa.data.temporary import MORE_SPACE, temporary_folder
from kofa.errors import FileError
from kofa.files.containers import index_of_pandas, parquet_columns
from kofa.files.options import Reading
from kofa.files.reading import (
    check_exists,
    check_ids_are_names,
    checked_ids,
    damage_in_words,
    file_kind,
)
from kofa.files.temporary import TemporaryPath

_BATCH = 2**20  # numbers of a Parquet file that are decoded at a time


def open_table(
    *paths: str | PathLike[str], columns: Sequence[str] | None = None, index: str | None = None
) -> Named:
    """A table in one file or in several, whose rows are read when they are needed.

    It can be passed wherever a model takes a table. Rows of an ``.npy`` file are read from there.
    Those of a Parquet file are decoded once, to a temporary file of 8 bytes for each number (4
    where all columns are of single precision), which is removed when the table is no longer used.

    Parameters
    ----------
    paths : names of ``.npy`` or Parquet files
        Several have the rows of one table, one file after the other.
    columns : list of str, or None
        Of Parquet files, the columns that are wanted; None is all but the names of the samples.
    index : str or None
        Of Parquet files, the column with the names of the samples; None is the index that pandas
        left in the file, if it did, with all its levels. Without one, samples are matched by
        position.

    Returns
    -------
    table (n, D)
        With a ``shape``; its rows stay in the files.

    Examples
    --------
    >>> import numpy as np, kofa, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "x.npy"
    >>> np.save(path, np.random.default_rng(0).normal(size=(1000, 4)))
    >>> table = kofa.open_table(path)
    >>> table.shape
    (1000, 4)
    >>> kofa.FactorModel(n_factors=2, engine="disk").fit({"x": table}).n_iter_ > 0
    True
    """
    if not paths:
        raise FileError("expected the name of a file", cure="pass one or several")
    parts = [_open(Path(path), columns, index) for path in paths]
    for path, part in zip(paths, parts, strict=True):
        if (part.columns, part.shape[1]) != (parts[0].columns, parts[0].shape[1]):
            what = f"expected the same columns as in {paths[0]}"
            raise FileError(what, path, cure="open it as a table of its own")
        if _n_levels(part) != _n_levels(parts[0]):
            raise FileError(f"expected names of samples as in {paths[0]}", path)
    if len(parts) == 1:
        return parts[0]
    samples = parts[0].samples
    if samples is not None:
        samples = samples.append([part.samples for part in parts[1:]])
    return Named(Joined(tuple(part.values for part in parts)), samples, parts[0].columns)


def open_file(path: Path, reading: Reading) -> Named | None:
    """What `read_file` reads, its rows in a file; None where more is to do than to read numbers."""
    plain = reading.values == "numbers" and not (reading.missing or reading.transpose)
    if not plain or file_kind(path) != "parquet":
        return None
    from pyarrow import types
    from pyarrow.parquet import read_schema

    with damage_in_words(path), path.open("rb") as file:
        schema = read_schema(file)
        index, wanted = parquet_columns(path, schema, reading)
    kinds = [schema.field(name).type for name in wanted if schema.names.count(name) == 1]
    numbers = [types.is_floating(kind) or types.is_integer(kind) for kind in kinds]
    if len(kinds) < len(wanted) or not all(numbers):
        return None
    table = _open_parquet(path, wanted, index, of_pandas=False)
    ids = checked_ids(path, _numbered(len(table.values)) if index is None else table.samples)
    check_ids_are_names(path, ids, reading)
    return Named(table.values, ids.rename(ids.name or "sample"), table.columns)


def _numbered(n: int) -> Any:
    import pandas as pd

    return pd.RangeIndex(n)


def _n_levels(part: Named) -> int:
    return 0 if part.samples is None else part.samples.nlevels


def _open(path: Path, columns: Sequence[str] | None, index: str | None) -> Named:
    check_exists(path)
    if path.suffix.lower() in (".parquet", ".pq"):
        return _open_parquet(path, columns, index)
    if path.suffix.lower() != ".npy":
        cure = "read it by kofa.files.read_file, or save it as Parquet or .npy"
        raise FileError("expected an .npy or a Parquet file", path, cure=cure)
    if columns is not None or index is not None:
        what = "columns and index are names in Parquet files, and an array has none"
        raise FileError(what, path, cure="leave them out")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        what, cure = "expected an array as numpy.save writes it", "save it anew"
        raise FileError(what, path, cure=cure) from error
    rows = FileRows.of_memmap(array)
    if rows is None:
        what = "expected numbers in rows and columns, row after row"
        raise FileError(what, path, cure="save numpy.ascontiguousarray(…) of it")
    return Named(rows, None, None)


# ---------------------------------------------------------------- Parquet


def _open_parquet(
    path: Path, columns: Sequence[str] | None, index: str | None, of_pandas: bool = True
) -> Named:
    """`of_pandas`: whether the names of samples are in the index that pandas left, if it did."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        cure = "pip install 'kofa[parquet]'"
        raise FileError("Parquet files need pyarrow", path, cure=cure) from error
    try:
        with path.open("rb") as file, ParquetFile(file) as parquet:
            schema = parquet.schema_arrow
            levels = [index] if index else index_of_pandas(schema) if of_pandas else []
            others = {*levels, *index_of_pandas(schema)}
            given = [name for name in schema.names if name not in others]
            names = list(given if columns is None else columns)
            _check_columns(path, schema, [*names, *levels], levels)
            rows = _decoded(path, parquet, names)
            samples = _names(parquet, levels) if levels else None
    except ArrowException as error:
        raise FileError("expected a Parquet file", path, cure="write it anew") from error
    return Named(rows, samples, tuple(names))


def _check_columns(path: Path, schema: Any, names: Sequence[str], levels: Sequence[str]) -> None:
    """Raise unless each is there once and, but for the names of samples, holds numbers."""
    from pyarrow import types

    for name in names:
        places = schema.get_all_field_indices(name)
        if len(places) != 1:
            cure = f"it has {listed(schema.names, 10)}"
            raise FileError(f"expected one column called {name!r}", path, cure=cure)
        kind = schema.field(places[0]).type
        if name not in levels and not (
            types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        ):
            cure = "name the columns that are wanted, and that of the samples as index"
            raise FileError(f"expected numbers but got {kind}", path, column=name, cure=cure)


def _names(parquet: Any, levels: Sequence[str]) -> Any:
    """The names of the samples: of several parts where pandas left an index of several levels."""
    table = parquet.read(columns=levels).to_pandas(ignore_metadata=True)
    index = table.set_index(levels).index
    names = [None if str(name).startswith("__index_level_") else name for name in index.names]
    return index.set_names(names)


def _decoded(path: Path, parquet: Any, names: Sequence[str]) -> FileRows:
    """The numbers of some columns in a temporary file, row after row."""
    kinds = {str(parquet.schema_arrow.field(name).type) for name in names}
    dtype = np.dtype(np.float32 if kinds == {"float"} else np.float64)
    place, n = TemporaryPath(), parquet.metadata.num_rows
    try:
        with place.path.open("wb") as out:
            step = max(1, _BATCH // max(1, len(names)))
            for batch in parquet.iter_batches(batch_size=step, columns=list(names)):
                block = np.empty((batch.num_rows, len(names)), dtype)
                for j, name in enumerate(names):
                    block[:, j] = batch.column(name).to_numpy(zero_copy_only=False)
                out.write(block.data)
    except OSError as error:
        what = f"its numbers cannot be written to {temporary_folder()}: {error.strerror}"
        raise FileError(what, path, cure=MORE_SPACE) from error
    return FileRows(str(place.path), dtype, (n, len(names)), owner=place)
