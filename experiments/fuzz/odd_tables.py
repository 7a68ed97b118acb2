"""The same numbers in all the tables that a user may have: arrays, lists, pandas, polars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import kofa
from experiments.tasks import Array
from kofa.views import View

Rng = np.random.Generator
Tables = dict[str, Any]


def dressed(values: Tables, new: Tables, views: Mapping[str, View], rng: Rng) -> tuple[Any, ...]:
    """Tables of some make; plain arrays of these, of new samples, and the names of the rows."""
    plain = {n: v if _has_labels(views[n]) else _rounded(v, rng) for n, v in values.items()}
    make = str(rng.choice(["arrays", "pandas", "both", "polars"], p=[0.35, 0.4, 0.1, 0.15]))
    if make == "pandas":
        return _of_pandas(plain, new, views, rng)
    n = len(next(iter(plain.values())))
    index = _index(n, rng) if make == "both" else None
    data = {}
    for name, v in plain.items():
        if make == "polars":
            data[name] = _polars(v, rng)
        elif index is not None and (rng.random() < 0.5 or not data):
            kernel = getattr(views[name], "kernel", None) == "precomputed"
            data[name] = _frame(v, index, index if kernel else _columns(v, rng), rng)
        else:
            data[name] = _array(v, rng)
    return data, plain, new, index


def _has_labels(view: View) -> bool:
    return isinstance(view, kofa.Categorical)


def _rounded(values: Array, rng: Rng) -> Array:
    """The numbers that a smaller type has, where it can hold them."""
    dtype = rng.choice(["f8", "f8", "f8", "f4", "f2"])
    with np.errstate(over="ignore", under="ignore"):
        rounded = values.astype(dtype).astype(float)
    fits = np.isfinite(rounded) == np.isfinite(values)
    return rounded if (fits & ((rounded == 0) == (values == 0))).all() else values


def _smallest(values: Array) -> Any:
    """The plainest NumPy type that holds the values exactly."""
    for dtype in ("bool", "i1", "i8", "f2", "f4"):
        with np.errstate(over="ignore", invalid="ignore"):
            if np.array_equal(np.nan_to_num(values, nan=0.5).astype(dtype).astype(float), values):
                return np.dtype(dtype)
            if dtype[0] == "f" and np.array_equal(values.astype(dtype), values, equal_nan=True):
                return np.dtype(dtype)
    return np.dtype(float)


# ---------------------------------------------------------------- arrays and lists


def _array(values: Any, rng: Rng) -> Any:
    if values.dtype == object:
        makes: list[Callable[[Any], Any]] = [lambda v: v.copy(), list, _words]
        return makes[rng.integers(len(makes))](values)
    makes = [
        lambda v: v.copy(),
        np.asfortranarray,
        _read_only,
        lambda v: np.repeat(np.repeat(v, 2, axis=0), 3, axis=1)[::2, ::3],
        lambda v: v[::-1, ::-1].copy()[::-1, ::-1],
        lambda v: v.astype(">f8"),
        lambda v: v.astype(np.longdouble),
        lambda v: v.astype(_smallest(v)),
        lambda v: v[:, 0].copy() if v.shape[1] == 1 else v.copy(),
        lambda v: v.tolist(),
        lambda v: tuple(map(tuple, v.tolist())),
        lambda v: np.ma.masked_invalid(v.copy()),
        lambda v: np.where(np.isnan(v), None, v.astype(object)),
        lambda v: [[None if x != x else x for x in row] for row in v.tolist()],
    ]
    return makes[rng.integers(len(makes))](values)


def _read_only(values: Array) -> Array:
    values = values.copy()
    values.flags.writeable = False
    return values


def _words(labels: Any) -> Any:
    """An array of words where all are, none is missing."""
    return np.array(list(labels)) if all(isinstance(x, str) for x in labels) else labels.copy()


# ---------------------------------------------------------------- pandas


def _of_pandas(plain: Tables, new: Tables, views: Mapping[str, View], rng: Rng) -> tuple[Any, ...]:
    """Frames whose rows are matched by name: in any order, and none for samples without values."""
    n = len(next(iter(plain.values())))
    plain, new, index, data = dict(plain), dict(new), _index(n, rng), {}
    for name, v in list(plain.items()):
        missing = pd.isna(pd.DataFrame(v)).to_numpy().all(axis=1)
        rows = rng.permutation(n) if rng.random() < 0.5 else np.arange(n)
        if rng.random() < 0.5:
            rows = rows[~missing[rows]]
        if getattr(views[name], "kernel", None) == "precomputed":
            data[name] = _frame(v[np.ix_(rows, rows)], index[rows], index[rows], rng)
            plain[name], new[name] = v[:, rows], new[name][:, rows]  # the fit's order of samples
        else:
            data[name] = _frame(v[rows], index[rows], _columns(v, rng), rng)
    return data, plain, new, index


def _frame(values: Any, index: Any, columns: Any, rng: Rng) -> Any:
    if values.dtype == object:
        makes: list[Callable[[Any], Any]] = [
            lambda s: s,
            lambda s: s.to_frame("class"),
            lambda s: s.astype("category"),
            lambda s: s.astype("string") if all(isinstance(x, str) for x in s.dropna()) else s,
        ]
        return makes[rng.integers(len(makes))](pd.Series(values, index=index, dtype=object))
    makes = [
        lambda f: f,
        lambda f: f.astype(_smallest(f.to_numpy())),
        lambda f: f.convert_dtypes(),
        lambda f: f.astype("Float64"),
        lambda f: f.astype(object).where(f.notna(), None),
        lambda f: f.astype(object).where(f.notna(), pd.NA),
        lambda f: f.astype("double[pyarrow]"),
        lambda f: f.astype(pd.SparseDtype(float, np.nan)),
        lambda f: f.iloc[:, 0] if f.shape[1] == 1 else f,
    ]
    return makes[rng.integers(len(makes))](pd.DataFrame(values.copy(), index, columns))


def _index(n: int, rng: Rng) -> Any:
    """Names of samples of many types."""
    makes: list[Callable[[], Any]] = [
        lambda: pd.RangeIndex(n),
        lambda: pd.Index([f"s{i}" for i in range(n)]),
        lambda: pd.Index(rng.permutation(10 * n)[:n]),
        lambda: pd.Index(rng.permutation(n) / 4),
        lambda: pd.date_range("2020", periods=n),
        lambda: pd.period_range("2020", periods=n, freq="M"),
        lambda: pd.CategoricalIndex([f"s{i}" for i in range(n)]),
        lambda: pd.MultiIndex.from_arrays([np.arange(n) // 3, np.arange(n) % 3]),
        lambda: pd.Index([f"s{i}" if i % 2 else i for i in range(n)], dtype=object),
        lambda: pd.Index([f"s{i}" for i in range(n)], dtype="string", name="sample"),
        lambda: pd.timedelta_range(0, periods=n),
    ]
    return makes[rng.integers(len(makes))]()


def _columns(values: Any, rng: Rng) -> Any:
    """Names of columns of many types."""
    n = values.shape[1] if values.ndim == 2 else 1
    makes: list[Callable[[], Any]] = [
        lambda: pd.RangeIndex(n),
        lambda: pd.Index([f"g{i}" for i in range(n)]),
        lambda: pd.Index(["", *range(n - 1)], dtype=object),
        lambda: pd.MultiIndex.from_tuples([("blood", i) for i in range(n)]),
        lambda: pd.date_range("2020", periods=n),
        lambda: pd.Index(np.arange(n) / 2),
        lambda: pd.interval_range(0, n),
        lambda: pd.Index([f"z{i}" for i in range(n)][::-1], name="gene"),
    ]
    return makes[rng.integers(len(makes))]()


# ---------------------------------------------------------------- polars


def _polars(values: Any, rng: Rng) -> Any:
    if values.dtype == object:
        kinds = {type(x) for x in values if x is not None}
        if len(kinds) > 1:
            return pl.Series("class", values.tolist(), dtype=pl.Object)
        dtype = rng.choice([pl.String, pl.Categorical]) if kinds == {str} else None
        return pl.Series("class", values.tolist(), dtype=dtype)
    names = [f"c{j}" for j in range(values.shape[1])]
    frame = pl.DataFrame(values, schema=names, orient="row")
    makes: list[Callable[[Any], Any]] = [
        lambda f: f,
        lambda f: f.fill_nan(None),
        lambda f: f.fill_nan(None).cast(_polars_dtype(_smallest(values))),
        lambda f: f.to_series(0) if f.shape[1] == 1 else f,
    ]
    return makes[rng.integers(len(makes))](frame)


def _polars_dtype(dtype: Any) -> Any:
    return {"b": pl.Boolean, "i": pl.Int64}.get(dtype.kind, pl.Float64)


# ---------------------------------------------------------------- are they as they were?


def written(table: Any) -> str:
    """All that a table holds, in words: types, names and every digit."""
    if isinstance(table, np.ndarray):
        mask = np.ma.getmaskarray(table).tolist() if np.ma.isMaskedArray(table) else None
        return repr((table.dtype, table.shape, table.strides, np.asarray(table).tolist(), mask))
    if isinstance(table, pd.Series):
        return repr((table.dtype, table.index.tolist(), table.name, table.tolist()))
    if isinstance(table, pd.DataFrame):
        columns = [table.iloc[:, j].tolist() for j in range(table.shape[1])]
        names = (table.index.tolist(), table.index.names, table.columns.tolist())
        return repr((list(table.dtypes), names, columns))
    if isinstance(table, pl.DataFrame):
        return repr((table.schema, table.rows()))
    return repr((table.dtype, table.name, table.to_list()) if hasattr(table, "dtype") else table)
