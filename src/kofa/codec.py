"""Objects of a fit as plain JSON values and arrays, and back.

Each JSON object has one key, which says what its value stands for: `{"tuple": […]}`,
`{"array": "weights_mean_3"}`, `{"RBF": {"width": 1.0, …}}`. Names are looked up in tables in this
file and nowhere else; whatever a file says, nothing is imported or called that is not listed here.
"""

from __future__ import annotations

import hashlib
import math
import re
import types
import typing
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from kofa import archive
from kofa.encoding import FittedView
from kofa.errors import DeclarationError, FileError
from kofa.inference import Iteration, Role, Run, Settings
from kofa.kernels import (
    RBF,
    KernelMap,
    Laplacian,
    Linear,
    Mixture,
    Polynomial,
    Precomputed,
    Radial,
    Weighted,
    as_kernel,
    as_kernels,
    check_features,
)
from kofa.likelihoods import Bernoulli, Gaussian, Likelihood, LogNormal, Multinomial, Poisson
from kofa.linalg import Array, Groups
from kofa.posterior import Gamma, Known, ViewPosterior, Weights
from kofa.scaling import Scaling
from kofa.vectors import Vectors
from kofa.views import Binary, Categorical, Count, Positive, Real, View

_KERNELS = (RBF, Linear, Polynomial, Laplacian, Precomputed, Mixture)
_LIKELIHOODS = (Gaussian, LogNormal, Bernoulli, Multinomial, Poisson)
_CLASSES: dict[str, type[Any]] = {
    each.__name__: each
    for each in (
        *_KERNELS, *_LIKELIHOODS, KernelMap, Scaling, Real, Positive, Binary, Categorical, Count,
        FittedView, Role, Vectors, Groups, Gamma, Known, Weights, ViewPosterior, Iteration, Run,
        Settings,
    )
}  # fmt: skip
_TYPES: dict[str, type[Any]] = {t.__name__: t for t in (*_KERNELS, *_LIKELIHOODS, bool, int)}
_NUMPY_DTYPE = re.compile(
    r"\|[bOiu]1?|[<>][iu][248]|[<>]f[248]|[<>]U\d{1,6}|[<>][mM]8(\[\w{1,2}\])?"
)
_PANDAS_DTYPES = {
    *(f"{sign}{bits}" for sign in ("Int", "UInt") for bits in (8, 16, 32, 64)),
    "Float32", "Float64", "boolean",
}  # fmt: skip
_ZONE = re.compile(r"(?!dateutil)[A-Za-z0-9_+:/-]{1,40}")
_LONG = 16  # numbers in a tuple from which an array holds them
_RENAME = "rename it to a string, or keep the model with joblib.dump instead"


# ---------------------------------------------------------------- files


def write(
    path: archive.StrPath, contents: str, value: Any, about: Mapping[str, Any] | None = None
) -> None:
    """Write an object; `about` is for people who open the file, and is not read again."""
    tree, arrays = pack(value)
    head = {"contents": contents, "about": dict(about or {})}
    archive.write(path, {**head, "tree": tree}, arrays)


def read(path: archive.StrPath, contents: str) -> Any:
    """The object in a file of these contents."""
    manifest, arrays = archive.read(path, contents)
    with naming(path):
        return unpack(manifest.get("tree"), arrays)


@contextmanager
def naming(path: archive.StrPath) -> Iterator[None]:
    """Say which file it is of which something is found to be wrong."""
    try:
        yield
    except (FileError, DeclarationError) as error:
        raise archive.damaged(path, str(error).rstrip(".")) from error


# ---------------------------------------------------------------- pack


def pack(value: Any) -> tuple[Any, dict[str, NDArray[Any]]]:
    """The object as plain JSON values, and the arrays they refer to."""
    packer = _Packer()
    return packer.pack(value), packer.arrays


class _Packer:
    """Collects arrays, each content once."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._name_of: dict[bytes, str] = {}  # by digest
        self._names: list[tuple[Any, ...]] = []  # long tuples of plain values
        self._trail: list[str] = []

    def pack(self, value: Any) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | float | str):
            return _packed_scalar(value)
        if isinstance(value, tuple):
            return self._tuple(value)
        if isinstance(value, list):
            return self._each(value)
        if isinstance(value, dict):
            return {"dict": self._dict(value)}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if type(value) in _CLASSES.values():
            return {type(value).__name__: self._fields(value)}
        return self._other(value)

    def _inside(self, where: str, value: Any) -> Any:
        self._trail.append(where)
        packed = self.pack(value)
        self._trail.pop()
        return packed

    def _each(self, values: Sequence[Any]) -> list[Any]:
        return [self.pack(value) for value in values]

    def _tuple(self, values: tuple[Any, ...]) -> Any:
        if len(values) >= _LONG and all(type(value) is float for value in values):
            return {"floats": self._stored(np.array(values))}
        for place, earlier in enumerate(self._names):
            if earlier is values:  # the columns of a view are those of its data
                return {"same": place}
        packed = self._each(values)
        if _are_names(packed):
            self._names.append(values)
        return {"tuple": packed}

    def _dict(self, values: dict[Any, Any]) -> dict[str, Any]:
        for key in values:
            if not isinstance(key, str):
                self._refuse(key)
        return {str(key): self._inside(repr(key), value) for key, value in values.items()}

    def _fields(self, value: Any) -> dict[str, Any]:
        held = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        if isinstance(value, FittedView) and value.classes is None:
            held["dtype"] = None  # only labels come back in the type they had
        return {name: self._inside(name, item) for name, item in held.items()}

    def _array(self, array: NDArray[Any]) -> Any:
        if array.dtype.kind == "O" and array.ndim == 1:
            return {"objects": self._each(array.tolist())}
        if array.dtype.kind not in "biufUmM":
            self._refuse(array)
        # A product of matrices depends in its last digits on which axis runs fastest.
        axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        if array.flags.c_contiguous or array.flags.f_contiguous or axes == sorted(axes):
            return {"array": self._stored(array)}
        return {"transposed": [self._stored(array.transpose(axes)), axes]}

    def _stored(self, array: NDArray[Any]) -> str:
        by_column = array.flags.f_contiguous and not array.flags.c_contiguous
        data = np.ascontiguousarray(array.T if by_column else array)
        key = hashlib.blake2b(f"{array.dtype.str} {array.shape} {by_column}".encode())
        if data.size:
            key.update(data.reshape(-1).view(np.uint8).data)
        if key.digest() not in self._name_of:
            words = "_".join(self._trail[-2:])
            name = re.sub(r"[^A-Za-z0-9]+", "_", f"{words}_{len(self.arrays)}")[-60:].strip("_")
            self._name_of[key.digest()] = name
            self.arrays[name] = array
        return self._name_of[key.digest()]

    def _other(self, value: Any) -> Any:
        """Types, dtypes and dates."""
        if isinstance(value, type) and value in _TYPES.values():
            return {"type": value.__name__}
        if isinstance(value, np.dtype):
            if not _NUMPY_DTYPE.fullmatch(value.str):
                self._refuse(value)
            return {"dtype": value.str}
        packed = self._pandas(value) if type(value).__module__.startswith("pandas") else None
        if packed is None:
            self._refuse(value)
        return packed

    def _pandas(self, value: Any) -> Any:
        """A pandas dtype or date, if it would come back as it is."""
        packed: Any = None
        if type(value).__name__ == "Timestamp":
            zone = None if value.tz is None else str(value.tz)
            packed = {"timestamp": [value.value, value.unit, zone]}
        elif type(value).__name__ == "CategoricalDtype" and value.categories is not None:
            kind = self.pack(value.categories.dtype)
            packed = {"category": [self._each(value.categories.tolist()), kind, value.ordered]}
        elif type(value).__name__ == "StringDtype":
            missing = "nan" if isinstance(value.na_value, float) else "NA"
            packed = {"string": [value.storage, missing]}
        elif str(value) in _PANDAS_DTYPES:
            packed = {"pandas": str(value)}
        try:
            return packed if packed is not None and unpack(packed, {}) == value else None
        except FileError:
            return None

    def _refuse(self, value: Any) -> None:
        where = ", ".join(self._trail)
        kind = f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
        raise FileError(
            f"Expected names, labels and settings that a file can hold (strings, numbers, True, "
            f"False, None and tuples of these) but got {value!r:.80} ({kind}) in {where}; "
            f"{_RENAME}."
        )


def _are_names(packed: list[Any]) -> bool:
    """Whether a tuple is worth referring to, and no reference can lead to others from it."""
    return len(packed) >= _LONG and not any(isinstance(item, list | dict) for item in packed)


def _packed_scalar(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    return float(value) if math.isfinite(value) else {"float": str(float(value))}


# ---------------------------------------------------------------- unpack


def unpack(tree: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """What `pack` packed; a `FileError` for anything that it could not have packed."""
    try:
        return _Unpacker(arrays).unpack(tree)
    except RecursionError:
        raise FileError("its manifest is nested too deep") from None


class _Unpacker:
    """What is referred to more than once is shared, so that nothing grows beyond the file."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._tuples: dict[str, tuple[float, ...]] = {}  # by the name of their array
        self._names: list[tuple[Any, ...]] = []
        self._kinds: dict[str, Callable[[Any], Any]] = {
            "float": _float,
            "tuple": self._tuple,
            "same": self._same,
            "dict": self._dict,
            "array": self._array,
            "transposed": self._transposed,
            "floats": self._floats,
            "objects": self._objects,
            "type": _type,
            "dtype": _numpy_dtype,
            "pandas": _pandas_dtype,
            "string": _string_dtype,
            "category": self._category,
            "timestamp": _timestamp,
        }

    def unpack(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return self._each(tree)
        if not isinstance(tree, dict):
            return tree
        _require(len(tree) == 1, "its manifest has an object that is not one kind of thing")
        ((kind, value),) = tree.items()
        if kind in _CLASSES:
            return _instance(_CLASSES[kind], self._dict(value))
        _require(kind in self._kinds, f"its manifest has an unknown kind {kind!r:.60}")
        return self._kinds[kind](value)

    def _each(self, values: Any) -> list[Any]:
        _require(isinstance(values, list), "its manifest lacks a list")
        return [self.unpack(value) for value in values]

    def _tuple(self, packed: Any) -> tuple[Any, ...]:
        values = tuple(self._each(packed))
        if _are_names(packed):
            self._names.append(values)
        return values

    def _same(self, place: Any) -> tuple[Any, ...]:
        if type(place) is not int or not 0 <= place < len(self._names):
            raise FileError("its manifest refers to names that it has not")
        return self._names[place]

    def _dict(self, values: Any) -> dict[str, Any]:
        _require(isinstance(values, dict), "its manifest lacks a dict")
        return {key: self.unpack(value) for key, value in values.items()}

    def _array(self, name: Any) -> NDArray[Any]:
        _require(isinstance(name, str) and name in self._arrays, f"array {name!r:.60} is missing")
        return self._arrays[name]

    def _transposed(self, value: Any) -> NDArray[Any]:
        name, axes = _items(value, 2)
        array = self._array(name)
        _require(
            isinstance(axes, list)
            and all(type(axis) is int for axis in axes)
            and sorted(axes) == list(range(array.ndim)),
            "the axes of an array are not its own",
        )
        return array.transpose(np.argsort(axes))

    def _floats(self, name: Any) -> tuple[float, ...]:
        array = self._array(name)
        _require(array.ndim == 1 and array.dtype == np.float64, "an array is not one of numbers")
        if name not in self._tuples:
            self._tuples[name] = tuple(array.tolist())
        return self._tuples[name]

    def _objects(self, values: Any) -> NDArray[Any]:
        found = self._each(values)
        _require(all(_is_name(value) for value in found), "labels are not words or numbers")
        array = np.empty(len(found), dtype=object)
        for i, value in enumerate(found):  # one by one: a tuple is one label
            array[i] = value
        return array

    def _category(self, value: Any) -> Any:
        values, kind, ordered = _items(value, 3)
        categories, dtype = self._each(values), self.unpack(kind)
        _require(ordered is None or isinstance(ordered, bool), "an order is not True or False")
        with _pandas("categories") as pd:
            return pd.CategoricalDtype(pd.Index(categories, dtype=dtype), ordered)


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise FileError(what)


def _items(value: Any, n: int) -> list[Any]:
    _require(isinstance(value, list) and len(value) == n, "its manifest has a list of other length")
    return list(value)


def _float(text: Any) -> float:
    _require(text in ("nan", "inf", "-inf"), "its manifest has a number that is none")
    return float(text)


def _type(name: Any) -> Any:
    _require(isinstance(name, str) and name in _TYPES, f"its type {name!r:.60} is unknown")
    return _TYPES[name]


def _numpy_dtype(text: Any) -> Any:
    _require(
        isinstance(text, str) and _NUMPY_DTYPE.fullmatch(text) is not None,
        f"its dtype {text!r:.60} is unknown",
    )
    try:
        return np.dtype(text)
    except TypeError:
        raise FileError(f"its dtype {text!r} is unknown") from None


def _pandas_dtype(name: Any) -> Any:
    _require(isinstance(name, str) and name in _PANDAS_DTYPES, f"its dtype {name!r:.60} is unknown")
    with _pandas("a column") as pd:
        return pd.api.types.pandas_dtype(name)


def _string_dtype(value: Any) -> Any:
    storage, missing = _items(value, 2)
    _require(storage in ("python", "pyarrow") and missing in ("NA", "nan"), "its words are unknown")
    with _pandas("words") as pd:
        return pd.StringDtype(storage) if missing == "NA" else pd.StringDtype(storage, math.nan)


def _timestamp(value: Any) -> Any:
    nanoseconds, unit, zone = _items(value, 3)
    _require(
        type(nanoseconds) is int
        and unit in ("s", "ms", "us", "ns")
        and (zone is None or (isinstance(zone, str) and _ZONE.fullmatch(zone) is not None)),
        "a date is none",
    )
    with _pandas("a date") as pd:
        return pd.Timestamp(nanoseconds, unit="ns", tz=zone).as_unit(unit)


@contextmanager
def _pandas(what: str) -> Iterator[Any]:
    """pandas, which a file may need; its refusals as ours."""
    try:
        import pandas as pd

        yield pd
    except ImportError as error:
        raise FileError(f"{what} in it needs a package that is not installed ({error})") from None
    except (TypeError, ValueError, LookupError, OverflowError, OSError) as error:
        raise FileError(f"{what} in it means nothing to pandas ({error!s:.80})") from None


# ---------------------------------------------------------------- fields and their types


def _instance(cls: Any, given: dict[str, Any]) -> Any:
    """An object whose fields are what its class says they are."""
    known = {f.name: f for f in fields(cls) if f.init}
    for name, value in given.items():
        _require(name in known, f"a {cls.__name__} has no {name!r:.60}")
        hint = _hints(cls)[name]
        if get_origin(hint) is np.ndarray and isinstance(value, float):
            given[name] = value = np.float64(value)  # a number where an array could stand
        _require(_fits(value, hint), f"the {name} of a {cls.__name__} is of no such kind")
    for name, field in known.items():
        optional = field.default is not MISSING or field.default_factory is not MISSING
        _require(name in given or optional, f"a {cls.__name__} lacks its {name}")
    return cls(**given)


@cache
def _hints(annotated: Any) -> dict[str, Any]:
    return typing.get_type_hints(annotated)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, argument) for argument in arguments)
    if origin is Literal:
        return any(type(value) is type(a) and value == a for a in arguments)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray | np.float64) and value.dtype == _dtype_of(hint)
    if origin is type:
        return isinstance(value, type) and issubclass(value, arguments[0])
    if origin in (tuple, list, Sequence):
        kinds = (list, tuple) if origin is Sequence else origin
        return isinstance(value, kinds) and all(_fits(item, arguments[0]) for item in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(_fits(item, arguments[1]) for item in value.values())
    return origin is None and _is_plain(value, hint)


def _dtype_of(hint: Any) -> np.dtype[Any]:
    """The dtype in an annotation such as NDArray[np.float64]."""
    (scalar,) = get_args(get_args(hint)[1])
    dtype: np.dtype[Any] = np.dtype(scalar)
    return dtype


def _is_plain(value: Any, hint: Any) -> bool:
    if isinstance(value, bool):
        return hint in (bool, Hashable)
    if hint is float:
        return isinstance(value, int | float)
    if hint is int:  # a whole number, however it was written
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if hint is Hashable:
        return _is_name(value)
    return isinstance(value, hint)


def _is_name(value: Any) -> bool:
    """Whether a value can be the name of a column or a label."""
    if isinstance(value, tuple):
        return all(_is_name(item) for item in value)
    plain = value is None or isinstance(value, bool | int | float | str)
    return plain or type(value).__name__ == "Timestamp"


# ---------------------------------------------------------------- a model as a whole


def check_savable(views: Mapping[str, FittedView]) -> None:
    """Raise for a kernel that is a function: no file can hold it without holding code."""
    for name, view in views.items():
        kernel = view.encoder.kernel if isinstance(view.encoder, KernelMap) else None
        for part in kernel.kernels if isinstance(kernel, Mixture) else (kernel,):
            if part is not None and type(part) not in _KERNELS:
                raise FileError(
                    f"View {name!r}: a kernel of your own ({part!r:.80}) is code, which a model "
                    f"file never holds; keep the model with joblib.dump, or fit it with one of "
                    f"kofa's kernels or with kernel='precomputed'."
                )


def parts_of_model(
    held: Any, constructor: Callable[..., Any]
) -> tuple[dict[str, Any], dict[str, FittedView], Run]:
    """Parameters, views and run of a saved model, checked one by one and all together."""
    _require(isinstance(held, dict) and set(held) == PARTS, "parts of the model are missing")
    _check_parameters(held["parameters"], constructor)
    check_model(held["views"], held["posterior"])
    return held["parameters"], held["views"], _run(held)


PARTS = {"parameters", "views", "posterior", "converged", "path"}


def _check_parameters(given: Any, constructor: Callable[..., Any]) -> None:
    """Raise unless the constructor could have got them."""
    hints = _hints(constructor)
    _require(isinstance(given, dict), "its parameters are missing")
    for name, value in given.items():
        _require(name in hints, f"there is no parameter {name!r:.60}")
        _require(_fits(value, hints[name]), f"the parameter {name} is of no such kind")
    seed = given.get("random_state")
    _require(seed is None or type(seed) is int, "its random state is no seed")
    for name, view in (given.get("views") or {}).items():
        _require(isinstance(view, View), f"the view {name!r:.60} is none")
        kernels = {} if view.kernel is None else as_kernels(view.kernel, name)
        _require(all(type(k) in _KERNELS for k in kernels.values()), "a kernel is none of kofa's")


def path_of(bounds: Array, terms: Mapping[str, Array]) -> dict[str, Any]:
    """A bound and its terms after each iteration, as a list of names and one table."""
    return {"terms": list(terms), "values": np.column_stack([bounds, *terms.values()])}


def _run(held: dict[str, Any]) -> Run:
    """A run of the fit as far as a model remembers it."""
    path, state = held["path"], held["posterior"]
    _require(isinstance(path, dict) and set(path) == {"terms", "values"}, "it has no bound")
    names, values = path["terms"], path["values"]
    _require(_fits(names, list[str]) and _fits(values, Array), "its bound is none")
    _require(np.ndim(values) == 2 and len(values) > 0, "its bound has no values")
    _require(values.shape[1] == 1 + len(names), "its bound has not one value for each term")
    _require(isinstance(held["converged"], bool), "it does not say whether it converged")
    n_factors = state[0].weights.mean.shape[1]
    history = tuple(
        Iteration(n + 1, bound, dict(zip(names, terms, strict=True)), n_factors, pruned=False)
        for n, (bound, *terms) in enumerate(values.tolist())
    )
    Z = np.empty((0, n_factors))
    return Run(state, Z, history, converged=held["converged"], stopped=True)


def check_model(views: Any, state: Any) -> None:
    """Raise unless the parts of a model fit together, so that none fails where it is used.

    A file may be edited such that each part is what it should be by itself. So all sizes are
    compared, all indices checked, and what must be positive, or finite, must be so.
    """
    _require(
        _fits(views, dict[str, FittedView]) and _fits(state, tuple[ViewPosterior, ...]),
        "its views are missing",
    )
    _require(0 < len(views) == len(state), "it has not one posterior for each view")
    _require(np.ndim(state[0].weights.mean) == 2, "its weights are no table")
    n_factors = state[0].weights.mean.shape[1]
    supervised = any(view.role.output for view in views.values())
    for (name, view), posterior in zip(views.items(), state, strict=True):
        try:
            _check_source(name, view, views)
            n_columns = _check_encoder(name, view)
            _check_names(view, n_columns)
            _check_posterior(posterior, n_columns, n_factors)
            _check_energy(view, n_factors, supervised)
            _check_vectors(view.vectors)
        except (FileError, DeclarationError) as error:
            raise FileError(f"view {name!r:.60}: {error}") from None
    # Σ_d τ_d ⟨w_d·w_d⟩, which is what can make the precision of a sample singular
    with np.errstate(over="ignore", invalid="ignore"):
        size = sum(float(q.precision @ q.weights.square.sum(axis=1)) for q in state)
    _require(size < _LARGEST_PRECISION, "its weights are larger than any that could be found")


_LARGEST_PRECISION = 1e14


def _check_source(name: str, view: FittedView, views: Mapping[str, FittedView]) -> None:
    """A view of several kernels is named after its source, every other is its own."""
    kernelized = isinstance(view.encoder, KernelMap)
    part = kernelized and name.startswith(f"{view.source}[") and view.source not in views
    _require(view.source == name or part, "it comes from another view")
    _require(
        view.role.name == name and view.role.kernelized == kernelized, "its role is another view's"
    )


def _check_encoder(name: str, view: FittedView) -> int:
    """Number of columns of the view's Gaussian layer."""
    encoder, n = view.encoder, view.n_inputs
    _require((view.classes is not None) == (view.kind is Multinomial), "its labels are not its own")
    _require(0.0 < view.sharpness < math.inf, "its sharpness is not positive")
    if isinstance(encoder, KernelMap):
        _require(view.classes is None, "labels have no kernel")
        _check_kernel(name, encoder, view.kind, n)
        return len(encoder.V)
    _require(type(encoder) is view.kind, "it is of two kinds")
    if isinstance(encoder, Gaussian):
        _check_scaling(encoder.scaling, n, encoder.unit)
    elif isinstance(encoder, Poisson):
        _check_array(encoder.rate, (n,), above=0.0)
        _check_array(encoder.most, (n,), above=0.0)
    elif isinstance(encoder, Multinomial):
        _require(n == 1, "it has several columns of labels")
        _check_labels(view.classes, view.dtype, encoder.n_classes)
        return encoder.n_classes
    elif isinstance(encoder, Bernoulli):
        _require(encoder.n_columns == n, "its columns are not those of the data")
    return n


def _check_scaling(scaling: Scaling, n_columns: int, unit: str) -> None:
    _check_array(scaling.centre, (n_columns,))
    _check_array(scaling.spread, (n_columns,), above=0.0)
    _require(scaling.unit == unit, "it is on another scale")


def _check_kernel(name: str, encoder: KernelMap, kind: type[Likelihood], n_inputs: int) -> None:
    """Landmarks that fit the data, and a kernel with nothing left to be found."""
    kernel, V = encoder.kernel, encoder.V
    as_kernel(kernel, name)
    check_features(kernel, name, n_inputs)
    for part in kernel.kernels if isinstance(kernel, Mixture) else (kernel,):
        open_ended = isinstance(part, Radial) and isinstance(part.width, str)
        open_ended |= isinstance(part, Weighted) and part.learns_relevance
        _require(not open_ended and type(part) in _KERNELS, "its kernel is not resolved")
    _require(not isinstance(getattr(kernel, "weights", None), str), "its kernel is not resolved")
    precomputed = isinstance(kernel, Precomputed)
    _check_scaling(encoder.scaling, n_inputs, "value" if precomputed else kind.unit)
    _require(V.ndim == (1 if precomputed else 2) and len(V) > 0, "it has no landmarks")
    if precomputed:
        inside = np.isin(V, np.arange(n_inputs))
        _require(bool(inside.all()), "its landmarks are not samples of the fit")
    else:
        _require(V.shape[1] == n_inputs, "its landmarks have other columns")
        _require(not np.isinf(V).any(), "its landmarks are not finite")
    _check_array(encoder.column_mean, (len(V),))
    _require(0.0 < encoder.scale < math.inf, "its scale is not positive")


def _check_labels(classes: Any, dtype: Any, n_classes: int) -> None:
    _require(
        isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.dtype.kind in "biufUO",
        "its classes are not labels",
    )
    _require(len(classes) == n_classes >= 2, "its classes are not as many")
    _require(len(set(classes.tolist())) == len(classes), "a class occurs twice")
    try:
        _typed_labels(classes, dtype)
    except FileError:
        raise
    except (TypeError, ValueError):
        pass  # labels then stay as they are
    except (ArithmeticError, ImportError) as error:
        raise FileError(f"its labels are of another type ({error})") from None


def _typed_labels(classes: Any, dtype: Any) -> None:
    """Give the labels their type, as predictions will."""
    if isinstance(dtype, np.dtype | type):
        classes.astype(dtype)
    else:
        _require(dtype is not None and hasattr(dtype, "name"), "its labels have no type")
        with _pandas("a label") as pd:
            pd.Series(classes).astype(dtype)


def _check_names(view: FittedView, n_columns: int) -> None:
    for names, n in ((view.inputs, view.n_inputs), (view.outputs, n_columns)):
        _require(names is None or len(names) == n, "it has not one name for each column")
        if names is not None and any(isinstance(name, tuple) for name in names):
            with _pandas("a name") as pd:
                pd.Index(list(names))


def _check_posterior(q: ViewPosterior, n_columns: int, n_factors: int) -> None:
    w = q.weights
    n_groups, n_axes = w.columns.size, np.shape(w.basis)[-1] if np.ndim(w.basis) else 0
    _check_array(w.mean, (n_columns, n_factors))
    _check_array(w.basis, (n_groups, n_factors, n_axes))
    _check_array(w.scales, (n_columns, n_axes), least=0.0)
    _check_array(w.y_mean, (n_columns,))
    _check_array(w.z_mean, (n_groups, n_factors))
    _check_array(w.bias_variance, (n_columns,), least=0.0)
    label = w.columns.label
    _require(label.shape == (n_columns,), "its groups are not of its columns")
    _require(bool(((label >= 0) & (label < n_groups)).all()), "a column is in no group")
    for precision in (q.alpha, q.alpha_prior):
        _check_precision(precision, ((n_factors,),))
    for precision in (q.tau, q.tau_prior):
        _check_precision(precision, ((n_columns,), (1,)))
    _check_precision(q.gamma_prior, ((), (1,), (n_columns,)))
    if q.gamma is not None:
        _check_precision(q.gamma, ((n_columns,),))
    if q.energy is not None:
        _check_array(q.energy, (n_factors,), least=0.0)
    _require(0.0 < q.rho <= 1.0, "its curvature is not a share")


def _check_precision(q: Gamma | Known, shapes: Sequence[tuple[int, ...]]) -> None:
    held = (q.mean,) if isinstance(q, Known) else (q.shape, q.rate)
    for array in held:
        _check_array(array, np.shape(array), above=0.0)
    try:
        shape = np.broadcast_shapes(*map(np.shape, held))
    except ValueError:
        raise FileError("a precision has two sizes") from None
    _require(shape in shapes and np.shape(held[-1]) == shape, "a precision is of another size")


def _check_energy(view: FittedView, n_factors: int, supervised: bool) -> None:
    """Of each kernel of an input by factor, where there are outputs to which it is given."""
    energy, kernel = view.energy, getattr(view.encoder, "kernel", None)
    n_parts = len(kernel.kernels) if isinstance(kernel, Mixture) else 1
    input_of_outputs = supervised and not view.role.output
    _check_array(energy, (n_parts, n_factors) if input_of_outputs else (1, 1), least=0.0)
    _require(input_of_outputs or not energy.any(), "it gives energy to no output")


def _check_vectors(vectors: Vectors | None) -> None:
    if vectors is not None:
        held = (vectors.samples, vectors.rows, vectors.relevance, vectors.order)
        shapes = {np.shape(array) for array in held}
        _require(len(shapes) == 1 and len(shapes.pop()) == 1, "its samples are not as many")
        _require(isinstance(vectors.samples, np.ndarray), "its samples have no names")


def _check_array(
    array: Any, shape: tuple[int, ...], least: float = -math.inf, above: float = -math.inf
) -> None:
    _require(np.shape(array) == shape, f"expected an array of shape {shape}, not {np.shape(array)}")
    _require(bool(np.isfinite(array).all()), "an array has entries that are not finite")
    lowest = float(np.min(array, initial=math.inf))
    _require(lowest >= least and lowest > above, "an array has entries that are too small")
