"""Objects as plain values and arrays: there and back, and nothing else."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from enum import Enum
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kofa
from kofa.data.scaling import Scaling
from kofa.inference.posterior import Gamma, Known
from kofa.inference.role import Role
from kofa.linalg import Groups
from kofa.storage.codec import from_json, to_json


def through_json(value):
    tree, arrays = to_json(value)
    return from_json(json.loads(json.dumps(tree, allow_nan=False)), arrays)


def same(one, other):
    if isinstance(one, np.ndarray) and one.dtype == object:
        return same(one.tolist(), other.tolist())
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if is_dataclass(one) and not isinstance(one, type):
        names = [field.name for field in fields(one)]
        return type(one) is type(other) and all(
            same(getattr(one, name), getattr(other, name)) for name in names
        )
    if isinstance(one, list | tuple):
        pairs = zip(one, other, strict=True)
        return type(one) is type(other) and all(same(a, b) for a, b in pairs)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and (one == other or (one != one and other != other))


# ---------------------------------------------------------------- there and back

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(PLAIN)
@settings(max_examples=50, deadline=None)
def test_plain_values_come_back_with_their_types(value):
    assert same(value, through_json(value))


OBJECTS = [
    kofa.RBF(2.0, relevance=[1, 0.5], groups=["a", 3]),
    kofa.Linear(relevance="learn", sparsity=0.5),
    kofa.Polynomial(2, offset=0),
    kofa.Laplacian("median"),
    kofa.Precomputed(),
    kofa.Mixture(["linear", kofa.RBF(1)], weights=[1.0, 2.0]),
    kofa.Real(kernel=[kofa.RBF(), "linear", kofa.Laplacian], landmarks=7),
    kofa.Landmarks("all", by="cholesky", keep=(0.5, 9)),
    kofa.Positive(noise="column", landmarks=kofa.Landmarks(7, keep=0.5)),
    kofa.Binary(sparse=True, kernel="rbf"),
    kofa.Categorical(),
    kofa.Count(scale=False),
    Role("x", kernelized=True, grams=[np.eye(2), np.ones((2, 2))]),
    {"kl z": -1.0, "odd": math.nan},
    Gamma(np.float64(0.5), np.ones(3)),
    Known(np.array(2.0)),
    Groups(np.array([0, 1, 0]), 2),
    Scaling(np.zeros(2), np.ones(2), "log1p"),
    (1.5,) * 40,
    tuple(range(40)),
    np.array(["a", None, 2.5, ("t", 1)], dtype=object),
    np.dtype("<U7"), np.dtype(object), np.dtype("M8[ns]"), int, bool,
    {"state": {"state": 2**127, "inc": 3}, "uinteger": 0},
]  # fmt: skip


@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: type(value).__name__)
def test_objects_come_back(value):
    assert same(value, through_json(value))


def test_numbers_of_numpy_become_those_of_python():
    value = [np.int8(3), np.float32(0.5), np.bool_(True), np.str_("a"), (np.float64("inf"),)]
    assert same([3, 0.5, True, "a", (math.inf,)], through_json(value))


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_arrays_keep_the_order_of_their_axes(axes):
    array = np.arange(24.0).reshape(2, 3, 4).transpose(axes)
    found = through_json(array)
    assert np.array_equal(found, array)
    assert found.strides == array.strides


def test_equal_arrays_are_stored_once():
    a, b = np.arange(100.0), np.arange(100.0)
    _, arrays = to_json({"a": a, "b": b, "c": [b, a.astype(int)], "d": a.reshape(10, 10)})
    assert len(arrays) == 3


def test_long_tuples_of_names_are_stored_once():
    names = tuple(f"gene{i}" for i in range(1000))
    once, twice = to_json([names])[0], to_json([names, names])[0]
    assert len(json.dumps(twice)) < len(json.dumps(once)) + 100
    first, second = through_json([names, names])
    assert first == second == names


def test_numbers_in_long_tuples_are_arrays():
    _, arrays = to_json(kofa.RBF(1.0, relevance=[0.1] * 1000))
    assert [array.shape for array in arrays.values()] == [(1000,)]


@pytest.mark.parametrize(
    "name", ["category", "str", "string", "Int8", "UInt64", "Float32", "boolean"]
)
def test_pandas_dtypes_come_back(name):
    pd = pytest.importorskip("pandas")
    words = name in ("category", "str", "string")
    dtype = pd.Series([0, 1, 1]).astype(str if words else int).astype(name).dtype
    assert through_json(dtype) == dtype


@pytest.mark.parametrize("missing", ["NA", "nan"])
def test_words_come_back_without_pyarrow_and_in_an_older_pandas(missing, monkeypatch):
    pd = pytest.importorskip("pandas")
    python = pd.StringDtype("python")

    def older(storage):  # takes no na_value
        if storage == "pyarrow":
            raise ImportError("pyarrow is required")
        return python

    monkeypatch.setattr(pd, "StringDtype", older)
    expected = python if missing == "NA" else np.dtype(object)
    assert from_json({"string": ["pyarrow", missing]}, {}) == expected


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "+02:00"])
def test_dates_come_back(zone):
    pd = pytest.importorskip("pandas")
    when = pd.Timestamp("2024-10-27 00:30:00.123456789", tz="UTC").tz_convert(zone)  # twice 02:30
    found = through_json(when)
    assert (found, found.unit, str(found.tz)) == (when, when.unit, str(when.tz))


# ---------------------------------------------------------------- what cannot be packed


@dataclass(frozen=True)
class Mine(kofa.RBF):
    pass


class Colour(str, Enum):  # noqa: UP042  whose str() is "Colour.RED"
    RED = "red"


class Place(NamedTuple):
    x: int
    y: int


class Name(str):
    pass


@pytest.mark.parametrize(
    "value",
    [
        object(), date(2020, 1, 1), b"bytes", 1j, {1: 2}, {1, 2}, np.array([[None]]), print,
        Mine(1.0),
        np.zeros(2, dtype="f8,i4"), np.zeros(2, dtype=complex), np.dtype("f8,i4"), str, Mine,
        np.datetime64("2020-01-01"), np.datetime64(1, "ns"), np.timedelta64(1, "ns"),
        np.random.default_rng(0), np.longdouble(1), np.bytes_(b"a"), 10**1000, Colour.RED,
        Place(1, 2), Name("a"),
    ],
    ids=lambda value: type(value).__name__,  # not repr: addresses differ between processes
)  # fmt: skip
def test_other_things_are_refused_by_name_and_place(value):
    with pytest.raises(
        kofa.FileError, match=r"in 'views', 'x'(, .*)?; rename|in 'views', 'x' is code, .*joblib"
    ):
        to_json({"views": {"x": [value]}})


# ---------------------------------------------------------------- what cannot be unpacked

A_KERNEL = {"Polynomial": {"degree": 2, "offset": 1.0}}


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"Custom": {"function": "os.system"}}, "unknown kind 'Custom'"),
        ({"os.system": "ls"}, "unknown kind"),
        ({"__class__": "x"}, "unknown kind"),
        ({"type": "FactorModel"}, "type 'FactorModel' is unknown"),
        ({"type": ["int"]}, "is unknown"),
        ({}, "not one kind"),
        ({"tuple": [], "dict": {}}, "not one kind"),
        ({"tuple": {}}, "lacks a list"),
        ({"dict": []}, "lacks a dict"),
        ({"RBF": []}, "lacks a dict"),
        ({"array": "a"}, "array 'a' is missing"),
        ({"array": ["a"]}, "is missing"),
        ({"floats": "words"}, "not one of numbers"),
        ({"transposed": ["numbers", [0, 0]]}, "axes"),
        ({"transposed": ["numbers", [0, True]]}, "axes"),
        ({"transposed": ["numbers"]}, "other length"),
        ({"same": 0}, "names that it has not"),
        ({"same": -1}, "names that it has not"),
        ({"objects": [{"array": "numbers"}]}, "labels are not words"),
        ({"float": "1"}, "a number that cannot be read"),
        ({"float": []}, "a number that cannot be read"),
        ({"dtype": "f8,f8"}, "dtype 'f8,f8' is unknown"),
        ({"dtype": "<M8[xx]"}, "is unknown"),
        ({"pandas": "object"}, "is unknown"),
        ({"string": ["python", {}]}, "its words"),
        ({"category": [["a", "a"], {"dtype": "|O"}, None]}, "means nothing to pandas"),
        ({"category": [["a"], {"dtype": "|O"}, 1]}, "an order"),
        ({"timestamp": [0, "ns", "dateutil//etc/passwd"]}, "a date cannot be read"),
        ({"timestamp": [0, "ns", "Nowhere/City"]}, "means nothing to pandas"),
        ({"timestamp": [10**30, "ns", None]}, "means nothing to pandas"),
        ({"RBF": {"width": 1.0, "evil": 1}}, "a RBF has no 'evil'"),
        ({"RBF": {"width": [1.0]}}, "the width of a RBF has a value of a type"),
        ({"RBF": {"width": True}}, "the width of a RBF"),
        ({"RBF": {"width": "narrow"}}, "the width of a RBF"),
        ({"RBF": {"relevance": [1.0]}}, "the relevance of a RBF"),
        ({"Polynomial": {"degree": 2.5}}, "the degree of a Polynomial"),
        ({"Mixture": {"kernels": {"tuple": [A_KERNEL, "rbf"]}}}, "the kernels of a Mixture"),
        ({"Mixture": {}}, "a Mixture lacks its kernels"),
        ({"Categorical": {"kernel": "rbf"}}, "a Categorical has no 'kernel'"),
        ({"Groups": {"label": {"array": "numbers"}, "size": 2}}, "the label of a Groups"),
        ({"Scaling": {"centre": 1, "spread": 1.0}}, "the centre of a Scaling"),
    ],
)
def test_other_trees_are_refused(tree, message):
    pytest.importorskip("pandas")
    arrays = {"numbers": np.ones((2, 3)), "words": np.array(["a"])}
    with pytest.raises(kofa.FileError, match=message):
        from_json(tree, arrays)


def test_deep_trees_are_refused():
    tree = []
    for _ in range(100_000):
        tree = [tree]
    with pytest.raises(kofa.FileError, match="nested too deep"):
        from_json(tree, {})


def test_references_do_not_multiply_memory():
    """No tree of references to references, and no copies."""
    tree = [{"array": "a"}] * 1000
    found = from_json(tree, {"a": np.ones(1000)})
    assert all(array is found[0] for array in found)
    nested = [{"tuple": [0] * 16}, *({"tuple": [{"same": n}] * 16} for n in range(3))]
    with pytest.raises(kofa.FileError, match="names that it has not"):
        from_json(nested, {})


def test_dates_too_far_away_are_refused():
    pd = pytest.importorskip("pandas")
    with pytest.raises(kofa.FileError, match="rename it"):
        to_json([pd.Timestamp(np.datetime64("9999-01-01", "s"))])


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (["x" * 2**17], "longer than kofa writes"),
        ({"dict": {"x" * 2**17: 1}}, "longer than kofa writes"),
        ([{"pandas": "Int8"}] * 10_000, "more objects"),
        ([{"Precomputed": {}}] * 100_000, "more objects"),
        ({"floats": "many"}, "more names and settings"),
    ],
    ids=["name", "key", "types", "kernels", "floats"],
)
def test_trees_that_take_long_are_refused(tree, message):
    pytest.importorskip("pandas")
    with pytest.raises(kofa.FileError, match=message):
        from_json(tree, {"many": np.broadcast_to(0.0, (2**22,))})


@pytest.mark.parametrize("kind", [int, str, tuple, "timestamp"])
def test_many_names_are_still_few(kind):
    pd = pytest.importorskip("pandas")
    names = tuple(range(5_000))
    if kind == "timestamp":
        names = tuple(pd.Timestamp(2000, 1, 1) + pd.Timedelta(days=day) for day in names)
    elif kind is not int:
        names = tuple(kind([day]) if kind is tuple else str(day) for day in names)
    assert through_json(names) == names


def test_choices_that_older_files_have_and_that_went():
    view = kofa.Real(kernel=kofa.RBF(1.0), sparse=True)
    tree, arrays = to_json(view)
    tree["Real"]["sparse"] = "ard"
    tree["Real"]["kernel"]["RBF"]["objective"] = "reconstruction"
    assert from_json(tree, arrays) == view
