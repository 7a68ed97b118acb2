"""Tables that are written block by block, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from kofa.checks import check_path
from kofa.errors import FileError
from kofa.storage.archive import StrPath, naming_target, resolve_target
from kofa.storage.atomic import atomic_write


def write_rows(path: StrPath, n: int, tables: Iterable[Any]) -> Path:
    """Write tables that together have n rows to an .npy or Parquet file; its path."""
    write = check_row_file(path)
    blocks = iter(tables)
    first = next(blocks)  # what is wrong with the data is said before there is a file
    target = resolve_target(path)
    with naming_target(path), atomic_write(target) as part:
        write(part, n, chain([first], blocks))
    return Path(path)


def check_row_file(path: Any) -> Callable[[Path, int, Iterator[Any]], None]:
    """How the file is written, by its ending, or an error before any work is done."""
    check_path(path)
    ending = Path(path).suffix.lower()
    if ending == ".npy":
        return _write_npy
    if ending not in (".parquet", ".pq"):
        cure = "choose such a name, or write what is returned without out"
        raise FileError("expected the name of an .npy or a Parquet file", path, cure=cure)
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        cure = "pip install 'kofa[parquet]', or write an .npy file"
        raise FileError("Parquet files need pyarrow", path, cure=cure) from error
    return _write_parquet


def _write_npy(path: Path, n: int, tables: Iterator[Any]) -> None:
    """The numbers, or words, alone: an array has no names."""
    dtype: Any = None
    with path.open("wb") as file:
        for table in tables:
            values = np.ascontiguousarray(table)
            if dtype is None:
                dtype = values.dtype
                if dtype.hasobject:
                    what = "labels of this kind are objects, which an .npy file cannot hold"
                    raise FileError(what, path, cure="write a Parquet file")
                shape = (n, *values.shape[1:])
                header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
            file.write(values.astype(dtype, copy=False).data)


def _write_parquet(path: Path, n: int, tables: Iterator[Any]) -> None:  # noqa: ARG001
    from pyarrow.parquet import ParquetWriter

    first = _as_arrow(next(tables))
    with path.open("wb") as file, ParquetWriter(file, first.schema) as writer:
        for table in chain([first], map(_as_arrow, tables)):
            writer.write_table(table.cast(first.schema))


def _as_arrow(table: Any) -> Any:
    """An array, DataFrame or Series; columns without names are numbered."""
    import pyarrow as pa

    if hasattr(table, "to_arrow"):  # of polars
        found = table.to_arrow()
        return found if isinstance(found, pa.Table) else pa.table({table.name: found})
    if isinstance(table, np.ndarray):
        columns = table.reshape(len(table), -1).T
        return pa.table({f"column_{j}": pa.array(column) for j, column in enumerate(columns)})
    name = "column_0" if getattr(table, "name", None) is None else table.name
    frame = table.to_frame(name) if table.ndim == 1 else table
    return pa.Table.from_pandas(frame.rename(columns=str), preserve_index=True)
