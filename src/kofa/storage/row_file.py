"""Tables that are written block by block, whole or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from kofa.checks import check_path, listed
from kofa.data.tables import Samples
from kofa.errors import FileError
from kofa.storage.archive import StrPath, naming_target, resolve_target
from kofa.storage.atomic import atomic_write

_OTHERWISE = "write what is returned without out"


@dataclass(frozen=True, eq=False)
class Form:
    """What is known of a table before its first row: whether a file can hold it."""

    samples: Samples
    example: Any  # the table, but without rows
    classes: Any  # all labels that there are, if they are what is in it


def write_rows(path: StrPath, form: Form, tables: Iterable[Any]) -> Path:
    """Write the tables that follow each other as one .npy or Parquet file; its path."""
    check, write = check_row_file(path)
    header = check(path, form)
    blocks = iter(tables)
    first = next(blocks)  # what is wrong with the data is said before there is a file
    target = resolve_target(path)
    with naming_target(path), atomic_write(target) as part, part.open("wb") as file:
        write(file, header, chain([first], blocks))
    return Path(path)


def check_row_file(path: Any) -> tuple[Callable[..., Any], Callable[..., None]]:
    """What makes the header of such a file, and what writes it, by its ending, or an error."""
    check_path(path)
    ending = Path(path).suffix.lower()
    if ending == ".npy":
        return _npy_header, _write_npy
    if ending not in (".parquet", ".pq"):
        cure = f"choose such a name, or {_OTHERWISE}"
        raise FileError("expected the name of an .npy or a Parquet file", path, cure=cure)
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        cure = "pip install 'kofa[parquet]', or write an .npy file"
        raise FileError("Parquet files need pyarrow", path, cure=cure) from error
    return _parquet_schema, _write_parquet


def _npy_header(path: StrPath, form: Form) -> tuple[Any, tuple[int, ...]]:
    """Type and shape: an array has no names."""
    values = np.asarray(form.example)
    of_words = form.classes is not None and form.classes.dtype.kind in "OU"
    if values.dtype.hasobject or (of_words and form.samples.polars):
        what = "labels of this kind are objects, which an .npy file cannot hold"
        raise FileError(what, path, cure="write a Parquet file")
    return values.dtype, (form.samples.n, *values.shape[1:])


def _write_npy(file: IO[bytes], header: tuple[Any, tuple[int, ...]], tables: Iterator[Any]) -> None:
    dtype, shape = header
    described = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)
    for table in tables:
        file.write(np.ascontiguousarray(table, dtype).data)


# ---------------------------------------------------------------- Parquet


def _parquet_schema(path: StrPath, form: Form) -> Any:
    """Names and types of the columns; those of labels and of sample names follow from all of these.

    What cannot be written is refused now, and not after hours of predictions.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    columns = Counter(map(str, getattr(form.example, "columns", ())))
    twice = next((name for name, n in columns.items() if n > 1), None)
    if twice is not None:
        what = f"several columns would be called {twice!r}, as a Parquet file has words for names"
        raise FileError(what, path, cure=f"rename the columns of the view, or {_OTHERWISE}")
    with _refused(path, "names of samples"):
        named = [] if form.samples.polars else _types_of_names(form.samples.names)
    with _refused(path, "labels" if form.classes is not None else "names of samples"):
        found = _as_arrow(form.example).schema
        if form.classes is not None and pa.types.is_null(found.types[0]):
            found = found.set(0, found.field(0).with_type(_type_of_labels(form.classes)))
        for place, kind in enumerate(named, len(found) - len(named)):
            found = found.set(place, found.field(place).with_type(kind))
        ParquetWriter(BytesIO(), found).close()
    return found


@contextmanager
def _refused(path: StrPath, what: str) -> Iterator[None]:
    """Say in our words what pyarrow has no type for."""
    try:
        yield
    # pyarrow's own errors are among these, as are words that are not Unicode.
    except (ValueError, TypeError, NotImplementedError, OverflowError) as error:
        reason = error.args[0] if len(error.args) == 2 else error
        said = f"a Parquet file cannot hold these {what}: {reason}"
        raise FileError(said, path, cure=f"convert them to words, or {_OTHERWISE}") from error


def _type_of_labels(classes: Any) -> Any:
    """The type that all have: pandas and polars would see others in some of them."""
    import pyarrow as pa

    labels = classes.tolist()
    kinds = dict.fromkeys(type(label).__name__ for label in labels)
    if len(kinds) > 1:
        raise TypeError(f"they are of types {listed(kinds)}")
    return pa.array(labels).type


def _types_of_names(names: Any) -> list[Any]:
    """The type of each level of an index."""
    import pandas as pd

    return [] if names is None else _as_arrow(pd.DataFrame(index=names)).schema.types


def _write_parquet(file: IO[bytes], schema: Any, tables: Iterator[Any]) -> None:
    from pyarrow.parquet import ParquetWriter

    with ParquetWriter(file, schema) as writer:
        for table in map(_as_arrow, tables):
            writer.write_table(table.cast(schema))


def _as_arrow(table: Any) -> Any:
    """An array, DataFrame or Series; columns without names are numbered."""
    import pyarrow as pa

    if hasattr(table, "to_arrow"):  # of polars
        found = table.to_arrow()
        return found if isinstance(found, pa.Table) else pa.table({table.name: found})
    if isinstance(table, np.ndarray):
        columns = table[:, None].T if table.ndim == 1 else table.T
        return pa.table({f"column_{j}": pa.array(column) for j, column in enumerate(columns)})
    name = "column_0" if getattr(table, "name", None) is None else table.name
    frame = table.to_frame(name) if table.ndim == 1 else table
    return pa.Table.from_pandas(frame.rename(columns=str), preserve_index=True)
