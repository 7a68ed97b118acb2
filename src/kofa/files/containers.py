"""Parquet, npz, h5ad and h5mu."""

from __future__ import annotations

import functools
import math
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from kofa.checks import hint, listed
from kofa.errors import FileError
from kofa.files.options import Reading, index_name, select, without_ids

Names = list[str] | None


def read_parquet(path: Path, reading: Reading) -> Any:
    """A DataFrame of the columns that are wanted."""
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise _needs(path, "pyarrow", "parquet") from error
    with path.open("rb") as file:  # pyarrow takes no names that are not UTF-8
        schema = parquet.read_schema(file)
        index, wanted = parquet_columns(path, schema, reading)
        columns = wanted if index is None else [index, *wanted]
        _check_columns(path, schema, columns)
        table = parquet.read_table(file, columns=columns)
        table.validate(full=True)  # pandas 3 looks at words only when they are used
        frame = table.to_pandas(ignore_metadata=True)
    return frame if index is None else frame.set_index(index)


def _check_columns(path: Path, schema: Any, columns: Iterable[str]) -> None:
    """Raise for columns that cannot be those of a table of single values."""
    import pyarrow.types as types

    for name in columns:
        places = schema.get_all_field_indices(name)
        if len(places) != 1:
            said = f"{len(places)} columns are" if places else "no column is"
            raise FileError(f"{said} called {name!r}", path, cure="expected one")
        kind = schema.field(places[0]).type
        if types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind):
            what = f"expected numbers or words but got values of type {kind}"
            raise FileError(what, path, column=name, cure="drop the column")


def parquet_columns(path: Path, schema: Any, reading: Reading) -> tuple[str | None, list[str]]:
    """The column of sample ids, and those that are wanted."""
    index = _parquet_index(path, schema, reading)
    others = {index, *index_of_pandas(schema)}
    names = [n for n in schema.names if n not in others and not n.startswith("__index_level_")]
    return index, names if reading.transpose else select(path, names, reading)


def _parquet_index(path: Path, schema: Any, reading: Reading) -> str | None:
    """The index that pandas left in the file, or the column that holds the ids."""
    if reading.index is None:
        levels = index_of_pandas(schema)
        if len(levels) > 1:
            what = (
                f"expected one column of sample ids but pandas left {listed(levels)} as the index"
            )
            raise FileError(what, path, cure="name one of them with index")
        if levels:
            return levels[0]
    index = index_name(path, schema.names, reading)
    if index is not None and str(schema.field(index).type) in ("float", "double", "halffloat"):
        raise without_ids(path, f"{index!r} holds numbers with decimals")
    return index


def index_of_pandas(schema: Any) -> list[str]:
    """The columns that pandas had as the index."""
    declared = (schema.pandas_metadata or {}).get("index_columns", [])
    return [one for one in declared if isinstance(one, str)]


def read_npz(path: Path, reading: Reading) -> Any:
    """One array of an npz file, with the names that other arrays give its rows and columns.

    Names are in ``<array>_samples`` and ``<array>_columns``, or in ``samples`` and ``columns``.
    """
    import pandas as pd

    name, values, samples, columns = _read_arrays(path, reading)
    values = values[:, None] if values.ndim == 1 else values
    _check_shape(path, name, values, samples, columns)
    if columns is None:
        columns = [name] if values.shape[1] == 1 else [f"{name}{j}" for j in range(values.shape[1])]
    frame = pd.DataFrame(values, index=samples, columns=columns)
    return frame if reading.transpose else frame[select(path, list(frame.columns), reading)]


def _read_arrays(path: Path, reading: Reading) -> tuple[str, Any, Names, Names]:
    """Name and values of the array that is wanted, and the names of its rows and columns."""
    try:
        objects = _arrays_of_objects(path)
        with np.load(path, allow_pickle=False) as arrays:
            name = _array_name(path, list(arrays), reading)
            names = [_names_for(arrays, name, what) for what in ("samples", "columns")]
            if not objects.isdisjoint([name, *names]):
                what = "an array holds Python objects, which are not read"
                raise FileError(what, path, cure="save numbers or strings")
            samples, columns = (_strings(arrays, key) for key in names)
            return name, arrays[name], samples, columns
    except FileError:
        raise
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise FileError(f"not a readable npz file ({error})", path) from error


def _arrays_of_objects(path: Path) -> set[str]:
    """The arrays that hold Python objects, which are not read.

    An error for arrays that declare more than there is: memory is taken before they are read.
    """
    found = set()
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                reader = readers.get(npy.read_magic(file))
                if reader is None:
                    continue
                shape, _, dtype = reader(file)
                declared, there = math.prod(shape) * dtype.itemsize, member.file_size - file.tell()
            name = member.filename.removesuffix(".npy")
            if dtype.hasobject:
                found.add(name)
            elif declared > there:
                what = f"the array {name!r} declares {declared:,} bytes but has {there:,}"
                raise FileError(what, path, cure="the file is damaged")
    return found


def array_names(names: Iterable[str]) -> list[str]:
    """The arrays of an npz file that are data, not names of rows and columns."""
    return [n for n in names if not n.endswith("samples") and not n.endswith("columns")]


def _array_name(path: Path, names: list[str], reading: Reading) -> str:
    data = array_names(names)
    if reading.array is not None:
        if reading.array not in names:
            cure = hint(reading.array, data, "there are")
            raise FileError(f"there is no array {reading.array!r}", path, cure=cure)
        return reading.array
    if len(data) != 1:
        found = f"arrays {listed(data)}" if data else "none"
        what = f"expected one array but got {found}"
        raise FileError(what, path, cure="name one of them with array")
    return data[0]


def _names_for(arrays: Any, name: str, what: str) -> str | None:
    """The array with the names of samples or columns, if there is one."""
    return next((key for key in (f"{name}_{what}", what) if key in arrays), None)


def _strings(arrays: Any, key: str | None) -> Names:
    return None if key is None else [str(one) for one in arrays[key].ravel().tolist()]


def _check_shape(path: Path, name: str, values: Any, samples: Any, columns: Any) -> None:
    if values.dtype.kind not in "biufmMUSO":
        what = f"expected the array {name!r} to hold numbers or strings"
        raise FileError(f"{what} but got values of type {values.dtype}", path)
    if values.ndim != 2:
        raise FileError(f"expected the array {name!r} to be a table but got {values.ndim}-D", path)
    for names, size, what in (
        (samples, values.shape[0], "rows"),
        (columns, values.shape[1], "columns"),
    ):
        if names is not None and len(names) != size:
            names_of = f"there are {len(names)} names for them"
            raise FileError(f"the array {name!r} has {size} {what} but {names_of}", path)


# ---------------------------------------------------------------- AnnData, MuData


def read_annotated(path: Path, reading: Reading) -> Any:
    """The matrix, a layer, or the table about the samples of an h5ad file or a modality."""
    check_hdf5(path)
    data = _modality(path, reading) if path.suffix.lower() == ".h5mu" else _anndata(path)
    frame = _layer(path, data, reading)
    frame.index, frame.columns = frame.index.astype(str), frame.columns.astype(str)
    return frame if reading.transpose else frame[select(path, list(frame.columns), reading)]


# Looks at all of a file but for its large arrays.
_LOOK = """
import sys, h5py

def look(_, item):
    dict(item.attrs)
    if isinstance(item, h5py.Dataset) and item.nbytes < 2**24:
        item[()]

with h5py.File(sys.argv[1], "r") as file:
    look("", file)
    file.visititems(look)
"""
_PATIENCE = 120.0  # seconds that looking may take


def check_hdf5(path: Path) -> None:
    """Raise for a damaged file on which the HDF5 library would hang or crash.

    Nothing can stop it but the end of its process, so another process looks first. Errors that
    the library finds itself are raised when the file is read.
    """
    there = path.stat()
    if not _opens(path, there.st_size, there.st_mtime_ns):
        raise FileError("the file is damaged: the HDF5 library hangs or crashes on it", path)


@functools.lru_cache
def _opens(path: Path, *_: int) -> bool:
    command = [sys.executable, "-c", _LOOK, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode in (0, 1)


def _anndata(path: Path) -> Any:
    try:
        import anndata
    except ImportError as error:
        raise _needs(path, "anndata", "omics") from error
    return anndata.read_h5ad(path)


def _modality(path: Path, reading: Reading) -> Any:
    try:
        import mudata
    except ImportError as error:
        raise _needs(path, "mudata", "omics") from error
    data = mudata.read_h5mu(path)
    names = list(data.mod)
    if reading.modality is None and reading.layer == "obs":
        return data
    if reading.modality is None:
        if len(names) != 1:
            raise FileError(f"name one of the modalities {listed(names)} with modality", path)
        return data.mod[names[0]]
    if reading.modality not in names:
        cure = hint(reading.modality, names, "there are")
        raise FileError(f"there is no modality {reading.modality!r}", path, cure=cure)
    return data.mod[reading.modality]


def _layer(path: Path, data: Any, reading: Reading) -> Any:
    import pandas as pd

    layers = list(getattr(data, "layers", ()))
    if reading.layer == "obs" and "obs" not in layers:
        return data.obs.copy()
    if reading.layer is not None and reading.layer not in layers:
        cure = hint(reading.layer, [*layers, "obs"], "there are")
        raise FileError(f"there is no layer {reading.layer!r}", path, cure=cure)
    values = data.X if reading.layer is None else data.layers[reading.layer]
    if values is None:
        cure = f"name one of the layers {listed(layers)}"
        raise FileError("there is no matrix X", path, cure=cure)
    dense = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
    return pd.DataFrame(dense, index=data.obs_names, columns=data.var_names)


def _needs(path: Path, package: str, extra: str) -> FileError:
    cure = f"pip install 'kofa[{extra}]'"
    return FileError(f"reading it needs {package}", path, cure=cure)
