"""Objects as plain values and arrays: there and back, and nothing else."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date
from functools import cache
from types import FunctionType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kofa
from kofa import codec
from kofa.inference import Iteration, Role, Settings
from kofa.linalg import Groups
from kofa.posterior import Gamma, Known
from kofa.scaling import Scaling


def through_json(value):
    tree, arrays = codec.pack(value)
    return codec.unpack(json.loads(json.dumps(tree, allow_nan=False)), arrays)


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
    kofa.Real(kernel=[kofa.RBF(), "linear", kofa.Laplacian], landmarks=7, share=0.5),
    kofa.Positive(noise="column"),
    kofa.Binary(sparse="ard", kernel="rbf"),
    kofa.Categorical(),
    kofa.Count(scale=False),
    Role("x", kernelized=True, grams=[np.eye(2), np.ones((2, 2))]),
    Settings(5, tol=0.0),
    Iteration(3, -12.5, {"kl z": -1.0, "odd": math.nan}, 4, pruned=True),
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
    _, arrays = codec.pack({"a": a, "b": b, "c": [b, a.astype(int)], "d": a.reshape(10, 10)})
    assert len(arrays) == 3


def test_long_tuples_of_names_are_stored_once():
    names = tuple(f"gene{i}" for i in range(1000))
    once, twice = codec.pack([names])[0], codec.pack([names, names])[0]
    assert len(json.dumps(twice)) < len(json.dumps(once)) + 100
    first, second = through_json([names, names])
    assert first == second == names


def test_numbers_in_long_tuples_are_arrays():
    _, arrays = codec.pack(kofa.RBF(1.0, relevance=[0.1] * 1000))
    assert [array.shape for array in arrays.values()] == [(1000,)]


@pytest.mark.parametrize("name", ["category", "string", "Int8", "UInt64", "Float32", "boolean"])
def test_pandas_dtypes_come_back(name):
    pd = pytest.importorskip("pandas")
    dtype = (
        pd.Series([0, 1, 1])
        .astype(str if name in ("category", "string") else int)
        .astype(name)
        .dtype
    )
    assert through_json(dtype) == dtype


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


@pytest.mark.parametrize(
    "value",
    [
        object(), date(2020, 1, 1), b"bytes", 1j, {1: 2}, {1, 2}, np.array([[None]]), print,
        Mine(1.0),
        np.zeros(2, dtype="f8,i4"), np.zeros(2, dtype=complex), np.dtype("f8,i4"), str, Mine,
        np.datetime64("2020-01-01"), np.random.default_rng(0),
    ],
    ids=repr,
)  # fmt: skip
def test_other_things_are_refused_by_name_and_place(value):
    with pytest.raises(
        kofa.FileError, match=r"in 'views', 'x'; rename|in 'views', 'x', .*; rename"
    ):
        codec.pack({"views": {"x": [value]}})


# ---------------------------------------------------------------- what cannot be unpacked

A_WIDTH = {"RBF": {"width": 1.0}}


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
        ({"float": "1"}, "a number that is none"),
        ({"float": []}, "a number that is none"),
        ({"dtype": "f8,f8"}, "dtype 'f8,f8' is unknown"),
        ({"dtype": "<M8[xx]"}, "is unknown"),
        ({"pandas": "object"}, "is unknown"),
        ({"string": ["python", {}]}, "its words"),
        ({"category": [["a", "a"], {"dtype": "|O"}, None]}, "means nothing to pandas"),
        ({"category": [["a"], {"dtype": "|O"}, 1]}, "an order"),
        ({"timestamp": [0, "ns", "dateutil//etc/passwd"]}, "a date is none"),
        ({"timestamp": [0, "ns", "Nowhere/City"]}, "means nothing to pandas"),
        ({"timestamp": [10**30, "ns", None]}, "means nothing to pandas"),
        ({"RBF": {"width": 1.0, "evil": 1}}, "a RBF has no 'evil'"),
        ({"RBF": {"width": [1.0]}}, "the width of a RBF is of no such kind"),
        ({"RBF": {"width": True}}, "the width of a RBF"),
        ({"RBF": {"width": "narrow"}}, "the width of a RBF"),
        ({"RBF": {"relevance": [1.0]}}, "the relevance of a RBF"),
        ({"Polynomial": {"degree": 2.5}}, "the degree of a Polynomial"),
        ({"Mixture": {"kernels": {"tuple": [A_WIDTH, "rbf"]}}}, "the kernels of a Mixture"),
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
        codec.unpack(tree, arrays)


def test_deep_trees_are_refused():
    tree = []
    for _ in range(100_000):
        tree = [tree]
    with pytest.raises(kofa.FileError, match="nested too deep"):
        codec.unpack(tree, {})


def test_references_do_not_multiply_memory():
    """No tree of references to references, and no copies."""
    tree = [{"array": "a"}] * 1000
    found = codec.unpack(tree, {"a": np.ones(1000)})
    assert all(array is found[0] for array in found)
    nested = [{"tuple": [0] * 16}, *({"tuple": [{"same": n}] * 16} for n in range(3))]
    with pytest.raises(kofa.FileError, match="names that it has not"):
        codec.unpack(nested, {})


# ---------------------------------------------------------------- parts that do not fit together


@cache
def model():
    """x through three kernels in one, y as counts, c as labels, from which x is learnt."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    tables = {"x": x, "n": np.abs(x * 3).round(), "c": np.where(x[:, 0] > 0, "u", "v")}
    views = {
        "x": kofa.Real(kernel="bank", sparse=True),
        "n": kofa.Count(sparse=True),
        "c": kofa.Categorical(),
    }
    return kofa.FactorModel(views, 3, outputs=["c"], max_iter=30, tol=1.0).fit(tables)


def test_a_sound_model_passes():
    codec.check_model(model().views_, model().posterior_)


def at(changes):
    """A copy of an object with something in it replaced: {"weights.mean": function}."""

    def change(value):
        for path, new in changes.items():
            value = _changed(value, path.split("."), new)
        return value

    return change


def _changed(value, path, new):
    if not path:
        return new(value) if isinstance(new, FunctionType) else new
    return replace(value, **{path[0]: _changed(getattr(value, path[0]), path[1:], new)})


def first(number):
    """An array with another first entry."""

    def change(array):
        array = array.copy()
        array.flat[0] = number
        return array

    return change


def shorter(array):
    return array[:-1]


VIEWS = [
    ("x", {"source": "z"}, "another view"),
    ("n", {"source": "x"}, "another view"),
    ("x", {"role.name": "z"}, "its role"),
    ("x", {"role.kernelized": False}, "its role"),
    ("n", {"role.output": True}, "shape"),
    ("n", {"kind": kofa.likelihoods.Gaussian}, "two kinds"),
    ("c", {"classes": None}, "labels are not its own"),
    ("c", {"classes": shorter}, "classes are not as many"),
    ("c", {"classes": np.array(["u", "u"])}, "occurs twice"),
    ("c", {"classes": ("u", "v")}, "not labels"),
    ("c", {"dtype": "float"}, "no type"),
    (
        "c",
        {"classes": np.array([10**30, 2], dtype=object), "dtype": np.dtype("i8")},
        "another type",
    ),
    ("c", {"n_inputs": 2}, "several columns"),
    ("c", {"outputs": ("u",)}, "one name for each column"),
    ("x", {"inputs": ("u",)}, "one name for each column"),
    ("x", {"sharpness": 0.0}, "sharpness"),
    ("x", {"n_inputs": 4}, "shape"),
    ("x", {"energy": np.zeros((1, 3))}, "shape"),
    ("c", {"energy": np.ones((1, 1))}, "no output"),
    ("x", {"encoder.scale": 0.0}, "scale is not positive"),
    ("x", {"encoder.scale": math.nan}, "scale is not positive"),
    ("x", {"encoder.V": lambda V: V[:, :2]}, "other columns"),
    ("x", {"encoder.V": lambda V: V[0]}, "no landmarks"),
    ("x", {"encoder.V": first(np.inf)}, "not finite"),
    ("x", {"encoder.kernel": kofa.Precomputed()}, "no landmarks"),
    ("x", {"encoder.kernel": kofa.RBF()}, "not resolved"),
    ("x", {"encoder.kernel": kofa.RBF(1.0, relevance="learn")}, "not resolved"),
    ("x", {"encoder.kernel": kofa.RBF(1.0, relevance=(1.0,))}, "relevance"),
    ("x", {"encoder.kernel": kofa.RBF(-1.0)}, "positive width"),
    ("x", {"encoder.kernel.weights": "learn"}, "not resolved"),
    ("x", {"encoder.kernel.weights": (1.0,)}, "weights"),
    ("x", {"encoder.column_mean": shorter}, "shape"),
    ("x", {"encoder.scaling.spread": first(0.0)}, "too small"),
    ("x", {"encoder.scaling.unit": "log"}, "another scale"),
    ("n", {"encoder.rate": first(-1.0)}, "too small"),
    ("n", {"encoder.most": first(np.nan)}, "not finite"),
    ("x", {"vectors.order": shorter}, "not as many"),
    ("x", {"vectors.samples": [1]}, "not as many"),
]
POSTERIORS = [
    ({"weights.mean": lambda W: W[:, :-1]}, "shape"),
    ({"weights.mean": first(np.nan)}, "not finite"),
    ({"weights.mean": first(1e30)}, "larger than any"),
    ({"weights.basis": lambda B: B[:, :-1]}, "shape"),
    ({"weights.basis": np.float64(1.0)}, "shape"),
    ({"weights.scales": first(-1.0)}, "too small"),
    ({"weights.z_mean": lambda z: z[:, :-1]}, "shape"),
    ({"weights.bias_variance": first(-1.0)}, "too small"),
    ({"weights.columns.size": 2}, "shape"),
    ({"weights.columns.label": first(1)}, "in no group"),
    ({"weights.columns.label": first(-1)}, "in no group"),
    ({"weights.columns.label": shorter}, "groups"),
    ({"alpha.rate": shorter}, "another size"),
    ({"alpha.rate": first(0.0)}, "too small"),
    ({"tau.mean": shorter}, "another size"),
    ({"gamma.shape": np.ones(2)}, "two sizes"),
    ({"energy": np.ones(2)}, "shape"),
    ({"rho": 0.0}, "curvature"),
    ({"rho": 2.0}, "curvature"),
]


@pytest.mark.parametrize(("view", "changes", "message"), VIEWS)
def test_views_that_do_not_fit_are_refused(view, changes, message):
    views = dict(model().views_)
    views[view] = at(changes)(views[view])
    with pytest.raises(kofa.FileError, match=message):
        codec.check_model(views, model().posterior_)


@pytest.mark.parametrize(("changes", "message"), POSTERIORS)
def test_posteriors_that_do_not_fit_are_refused(changes, message):
    x, n, c = model().posterior_
    with pytest.raises(kofa.FileError, match=message):
        codec.check_model(model().views_, (x, at(changes)(n), c))


@pytest.mark.parametrize("state", [(), None, [1], "x"])
def test_every_view_has_a_posterior(state):
    with pytest.raises(kofa.FileError, match=r"views are missing|one posterior for each view"):
        codec.check_model(model().views_, state)
