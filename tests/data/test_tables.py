"""Tables in and out: arrays and pandas. Polars and AnnData have files of their own."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import kofa
from kofa.data.reading import read_table
from kofa.data.returning import labelled, named, restored
from kofa.data.samples import align
from kofa.data.tables import Samples, Table

pd = pytest.importorskip("pandas")

VALUES = np.array([[1.0, np.nan], [3.0, 4.0], [5.0, 6.0]])
NAMES = ["s1", "s2", "s3"]


# ---------------------------------------------------------------- in


@pytest.mark.parametrize(
    "data",
    [
        VALUES,
        VALUES.tolist(),
        [[1, None], [3, 4], [5, 6]],
        np.ma.masked_invalid(VALUES),
        pd.DataFrame(VALUES),
        pd.DataFrame(VALUES).astype("float32"),
        pd.DataFrame(VALUES).astype("Int64"),
        pd.DataFrame({"a": [1, 3, 5], "b": [None, "4", 6]}).assign(b=[pd.NA, 4, 6]),
        [[Decimal(1), Decimal("NaN")], [Fraction(3), Decimal(4)], [Decimal("5.0"), np.float16(6)]],
        pd.DataFrame({"a": [Decimal(1), Decimal(3), 5], "b": [None, Decimal(4), Fraction(6)]}),
        np.ma.array(np.array([[1, "?"], [3, 4], [5, 6]], dtype=object), mask=np.isnan(VALUES)),
    ],
    ids=[
        "array",
        "list",
        "none",
        "masked",
        "frame",
        "float32",
        "Int64",
        "object",
        "decimals",
        "decimals in a frame",
        "masked objects",
    ],
)
def test_read_table_gives_the_same_floats(data):
    read = read_table("x", data).values
    assert read.dtype == float
    np.testing.assert_array_equal(read, VALUES)


@pytest.mark.parametrize("make", [np.array, pd.DataFrame], ids=["array", "frame"])
@pytest.mark.parametrize("dtype", [float, "float32", "int64", bool])
def test_what_is_read_cannot_change_the_data_of_the_caller(make, dtype):
    data = make(np.ones((3, 2), dtype=dtype))
    read = read_table("x", data).values
    if read.flags.writeable:
        read[:] = 7.0
    else:
        with pytest.raises(ValueError, match="read-only"):
            read[:] = 7.0
    assert (np.asarray(data) == np.ones((3, 2), dtype=dtype)).all()


def test_floats_are_read_where_they_are_and_stay_writeable():
    data = np.ones((3, 2))
    assert np.shares_memory(read_table("x", data).values, data)
    assert data.flags.writeable
    assert not np.shares_memory(read_table("x", data.T).values, data)  # by columns


def test_read_table_keeps_dtypes_of_numeric_frames():
    frame = pd.DataFrame({"a": np.array([1, 2], "int8"), "b": [0.5, 1.0], "c": [True, False]})
    assert [str(d) for d in read_table("x", frame).dtypes] == ["int8", "float64", "bool"]


@pytest.mark.parametrize("data", [np.empty((3, 0)), pd.DataFrame(index=NAMES)], ids=["array", "df"])
def test_read_table_without_columns_is_an_error(data):
    with pytest.raises(kofa.DataError, match="'x': expected at least one column"):
        read_table("x", data)


def test_labels_of_an_array_of_numbers_are_classes():
    table = read_table("y", np.array([3, 1, 3]), labels=True)
    assert table.classes.tolist() == [1, 3]
    np.testing.assert_array_equal(table.values[:, 0], [1, 0, 1])


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_dates_of_an_array_are_labels(unit):
    dates = np.array(["2021-01-01", "2020-01-01", "NaT"], dtype=f"M8[{unit}]")
    table = read_table("y", dates, labels=True)
    assert table.classes.tolist() == [dates[1], dates[0]]
    np.testing.assert_array_equal(table.values[:, 0], [1, 0, np.nan])


def test_categories_keep_their_order():
    data = pd.Series(pd.Categorical(["lo", "hi", None], categories=["lo", "mid", "hi"]))
    assert read_table("y", data, labels=True).classes.tolist() == ["lo", "hi"]


# ---------------------------------------------------------------- out


def test_arrays_give_arrays():
    samples = align({"x": read_table("x", VALUES)})
    assert labelled(VALUES, samples, ["a", "b"]) is VALUES


def test_frames_give_frames_with_both_names():
    samples = align({"x": read_table("x", pd.DataFrame(VALUES, index=NAMES))})
    out = labelled(VALUES, samples, ["a", "b"])
    pd.testing.assert_frame_equal(out, pd.DataFrame(VALUES, NAMES, ["a", "b"]))


def test_several_levels_of_names_come_back():
    columns = pd.MultiIndex.from_tuples([("blood", "na"), ("blood", "k")])
    rows = pd.MultiIndex.from_product([["left", "right"], range(30)])
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 1)) + 0.1 * rng.normal(size=(60, 2))
    x = pd.DataFrame(values, rows, columns)
    model = kofa.FactorModel().fit({"x": x})
    for out in (model.reconstruct({"x": x}, "x"), model.impute({"x": x})["x"]):
        assert out.columns.equals(columns)
        assert out.index.equals(rows)
    assert model.weights("x").index.equals(columns)
    assert model.transform({"x": x}).index.equals(rows)


def test_named_needs_names_of_rows_only():
    assert named(VALUES, None, ["a", "b"]) is VALUES
    assert named(VALUES, ("u", "v", "w"), None).index.tolist() == ["u", "v", "w"]


def test_without_pandas_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'kofa\[pandas\]'"):
        named(VALUES, NAMES, None)


@pytest.mark.parametrize(
    ("dtype", "filled", "expected"),
    [
        ("int8", [1.0, 2.0], "int8"),
        ("int8", [1.0, 2.5], "float64"),
        ("bool", [1.0, 0.0], "bool"),
        ("bool", [1.0, 0.5], "float64"),
        ("int8", [1.0, 128.0], "float64"),
        ("uint8", [1.0, -1.0], "float64"),
        ("int64", [1.0, 2.0**63], "float64"),
        ("float32", [1.0, 0.1], "float32"),
        ("float32", [1.0, 1e39], "float64"),
        ("float32", [1.0, np.nan], "float32"),
    ],
)
def test_restored_keeps_types_that_hold_the_values(dtype, filled, expected):
    samples = Samples(2, pd.Index(["u", "v"]), {})
    table = Table("x", np.zeros((2, 1)), columns=("a",), dtypes=(np.dtype(dtype),))
    out = restored(np.array(filled)[:, None], table, samples)
    assert str(out["a"].dtype) == expected
    np.testing.assert_allclose(out["a"].astype(float), filled, rtol=1e-6)


@pytest.mark.parametrize(
    ("filled", "expected"), [([1.0, 0.0], "Sparse[int8, 0]"), ([300.0, 0.5], "float64")]
)
def test_restored_keeps_sparse_columns_that_hold_the_values(filled, expected):
    table = Table("x", np.zeros((2, 1)), columns=("a",), dtypes=(pd.SparseDtype("int8", 0),))
    out = restored(np.array(filled)[:, None], table, Samples(2, pd.Index(["u", "v"]), {}))
    assert str(out["a"].dtype) == expected
    np.testing.assert_array_equal(np.asarray(out["a"], dtype=float), filled)


def test_levels_of_names_may_have_one_name(rng):
    index = pd.MultiIndex.from_product([["u", "v"], range(10)], names=["id", "id"])
    table = read_table("x", pd.DataFrame(rng.normal(size=(20, 2)), index, columns=["a", "b"]))
    assert table.samples.equals(index)
    holed = index[:-1].append(pd.MultiIndex.from_tuples([("v", None)], names=["id", "id"]))
    with pytest.raises(kofa.DataError, match=r"number 19 \(from 0\) has none"):
        read_table("x", pd.DataFrame(rng.normal(size=(20, 2)), holed, columns=["a", "b"]))


@pytest.mark.parametrize("unit", ["M8[ns]", "m8[D]"])
def test_dates_and_durations_in_arrays_are_refused(unit):
    dates = np.arange(4).astype(unit)[:, None]
    with pytest.raises(kofa.DataError, match=r"'x', column 0: .*64\(.*days since the first"):
        read_table("x", dates)


@pytest.mark.parametrize("dtype", ["M8[ns]", "m8[ns]", "datetime64[ns, UTC]"])
def test_dates_that_are_all_missing_are_missing(dtype):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Series([pd.NaT, pd.NaT], dtype=dtype)})
    assert np.isnan(read_table("x", frame).values[:, 1]).all()
