"""Objects of a fit as plain JSON values and arrays, and back.

Each JSON object has one key, which says what its value stands for: `{"tuple": […]}`,
`{"array": "weights_mean_3"}`, `{"RBF": {"width": 1.0, …}}`. Names are looked up in the tables here,
in `schema` and in `dtypes`, and nowhere else: whatever a file says, nothing is imported or called
that is not listed there.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofa.errors import FileError
from kofa.kernels.base import Weighted
from kofa.preparation.prepare import FittedView
from kofa.storage import dtypes
from kofa.storage.damage import DamageError, excerpt, require
from kofa.storage.fields import is_name, read_fields
from kofa.storage.manifest import MemoryBudget
from kofa.storage.npy import NamedArrays
from kofa.storage.schema import NAMES_IN_FILES, SAVED_KERNELS, SAVED_LIKELIHOODS, SCHEMA
from kofa.views import View, in_one_option

OTHERWISE = "keep the model with joblib.dump"  # where a file cannot hold it
_CLASSES = {name: cls for cls, name in NAMES_IN_FILES.items()}
_TYPES: dict[str, type[Any]] = {"bool": bool, "int": int}  # which are values themselves
_TYPES |= {NAMES_IN_FILES[cls]: cls for cls in (*SAVED_KERNELS, *SAVED_LIKELIHOODS)}
_LONG = 16  # values in a tuple from which on it is stored once, or as an array
_LONGEST_INT = 3000  # bits
_LONGEST_TEXT = 2**16  # characters
# How long it takes to make an object, compared with a tuple; a file may not need more than this.
_COSTS = dict.fromkeys(_CLASSES, 8) | {"timestamp": 12, "transposed": 12, "objects": 5}
_COSTS |= dict.fromkeys(("category", "dtype", "pandas", "string"), 100)
_HIGHEST_COST = 300_000
_BYTES_OF_FLOAT = 40  # in a tuple


def _as_today(cls: type[Any], given: dict[str, Any]) -> dict[str, Any]:
    """What files of kofa 0.2 and before have under names of its own, or of choices that went."""
    if issubclass(cls, Weighted):
        return {name: value for name, value in given.items() if name != "objective"}
    if issubclass(cls, View):
        sparse = given.get("sparse")
        choice = {"sparse": True} if isinstance(sparse, str) and sparse == "ard" else {}
        return in_one_option(given | choice)
    return given


# ---------------------------------------------------------------- to JSON


def to_json(value: Any, otherwise: str = OTHERWISE) -> tuple[Any, dict[str, NDArray[Any]]]:
    """The object as plain JSON values, and the arrays they refer to.

    `otherwise` is what the user can do if no file can hold it.
    """
    writer = _Writer(otherwise)
    return writer.convert(value), writer.arrays


class _Writer:
    """Collects arrays, each content once."""

    def __init__(self, otherwise: str) -> None:
        self.otherwise = otherwise
        self.arrays: dict[str, NDArray[Any]] = {}
        self._array_names: dict[bytes, str] = {}  # by digest
        self._long_tuples: list[tuple[Any, ...]] = []
        self._place: list[str] = []  # fields and keys that lead to the value, for messages

    def convert(self, value: Any) -> Any:
        if isinstance(value, np.generic) and value.dtype.kind in "biufU":
            value = value.item()
        if value is None or type(value) in (bool, int, float, str):  # a subclass may be an Enum
            return self._scalar(value)
        if type(value) is tuple:
            return self._tuple(value)
        if isinstance(value, list):
            return [self.convert(item) for item in value]
        if isinstance(value, dict):
            return {"dict": self._dict(value)}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if type(value) in SCHEMA:
            return {NAMES_IN_FILES[type(value)]: self._fields(value)}
        return self._other(value)

    def _scalar(self, value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if isinstance(value, int) and value.bit_length() > _LONGEST_INT:
            self._refuse("a number with very many digits")
        return value

    def _tuple(self, values: tuple[Any, ...]) -> Any:
        if len(values) >= _LONG and all(type(value) is float for value in values):
            return {"floats": self._store(np.array(values))}
        for place, earlier in enumerate(self._long_tuples):
            if earlier is values:  # the columns of a view are those of its data
                return {"same": place}
        converted = [self.convert(value) for value in values]
        if _can_be_referred_to(converted):
            self._long_tuples.append(values)
        return {"tuple": converted}

    def _dict(self, values: Mapping[Any, Any], quote: Callable[[str], str] = repr) -> Any:
        found = {}
        for key, value in values.items():
            if not isinstance(key, str):
                self._refuse(key)
            self._place.append(quote(key))
            found[str(key)] = self.convert(value)
            self._place.pop()
        return found

    def _fields(self, value: Any) -> Any:
        schema = SCHEMA[type(value)]
        held = {name: getattr(value, f.attribute_of(name)) for name, f in schema.items()}
        if isinstance(value, FittedView):
            held["dtype"] = _dtype_of_labels(value)
            for name in (*(value.inputs or ()), *(value.outputs or ())):
                if not _equals_itself(name):  # and so would not be found again
                    self._refuse(name)
        return self._dict(held, quote=str)

    def _array(self, array: NDArray[Any]) -> Any:
        if array.dtype.kind == "O" and array.ndim == 1:
            return {"objects": [self.convert(item) for item in array.tolist()]}
        if array.dtype.kind not in "biufUmM":
            self._refuse(array)
        # A product of matrices depends in its last digits on which axis runs fastest.
        axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        if array.flags.c_contiguous or array.flags.f_contiguous or axes == sorted(axes):
            return {"array": self._store(array)}
        return {"transposed": [self._store(array.transpose(axes)), axes]}

    def _store(self, array: NDArray[Any]) -> str:
        """The name of an array among those to be written."""
        by_column = array.flags.f_contiguous and not array.flags.c_contiguous
        data = np.ascontiguousarray(array.T if by_column else array)
        digest = hashlib.blake2b(f"{array.dtype.str} {array.shape} {by_column}".encode())
        if data.size:
            digest.update(data.reshape(-1).view(np.uint8).data)
        key = digest.digest()
        if key not in self._array_names:
            words = "_".join(self._place[-2:])
            name = re.sub(r"[^A-Za-z0-9]+", "_", f"{words}_{len(self.arrays)}")[-60:].strip("_")
            self._array_names[key] = name
            self.arrays[name] = array
        return self._array_names[key]

    def _other(self, value: Any) -> Any:
        """Types, dtypes and dates, if they would come back as they are."""
        for name, known in _TYPES.items():
            if value is known:
                return {"type": name}
        converted = dtypes.dtype_to_json(value, self.convert)
        if converted is None or not _comes_back(converted, value):
            self._refuse(value)
        return converted

    def _refuse(self, value: Any) -> None:
        where = ", ".join(self._place)
        if isinstance(value, type):
            raise FileError(
                f"The type {value.__name__} in {where} is code, which a file never holds; "
                f"{self.otherwise}."
            )
        kind = f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
        raise FileError(
            f"Expected names, labels and settings that a file can hold (strings, numbers, True, "
            f"False, None and tuples of these) but got {value!r:.80} ({kind}) in {where}; "
            f"rename it to a string, or {self.otherwise}."
        )


def _dtype_of_labels(view: FittedView) -> Any:
    """The type of labels, of words without space that none of them needs; None for numbers."""
    if view.classes is None:
        return None
    words = isinstance(view.dtype, np.dtype) and view.dtype.kind == "U"
    longest = dtypes.longest_word_type(view.classes)
    return longest if words and view.dtype.itemsize > longest.itemsize else view.dtype


def _equals_itself(name: Any) -> bool:
    """NaN does not."""
    if isinstance(name, tuple):
        return all(map(_equals_itself, name))
    return not (isinstance(name, float | np.floating) and math.isnan(name))


def _comes_back(converted: Any, value: Any) -> bool:
    try:
        return bool(from_json(converted, {}) == value)
    except (FileError, TypeError, ValueError):
        return False


def _can_be_referred_to(converted: list[Any]) -> bool:
    """Whether a tuple is long, and plain, so that no reference can lead from it to others."""
    return len(converted) >= _LONG and not any(isinstance(one, list | dict) for one in converted)


# ---------------------------------------------------------------- from JSON


def from_json(tree: Any, arrays: NamedArrays, budget: MemoryBudget | None = None) -> Any:
    """The object that `to_json` was given; a `DamageError` for all that it could not have made."""
    try:
        return _Reader(arrays, budget or MemoryBudget()).convert(tree)
    except RecursionError:
        raise DamageError("its manifest is nested too deep") from None


class _Reader:
    """What is referred to more than once is shared, so that nothing grows beyond the file."""

    def __init__(self, arrays: NamedArrays, budget: MemoryBudget) -> None:
        self._arrays, self._budget = arrays, budget
        self._float_tuples: dict[str, tuple[float, ...]] = {}  # by the name of their array
        self._long_tuples: list[tuple[Any, ...]] = []
        self._cost = 0
        self._readers: dict[str, Callable[[Any], Any]] = {
            "float": _float,
            "tuple": self._tuple,
            "same": self._same,
            "dict": self._dict,
            "array": self._array,
            "transposed": self._transposed,
            "floats": self._floats,
            "objects": self._objects,
            "type": _type,
            **dtypes.dtype_readers(self.convert),
        }

    def convert(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return self._list(tree)
        if isinstance(tree, str):
            require(len(tree) <= _LONGEST_TEXT, "a name in it is longer than kofa writes")
        if not isinstance(tree, dict):
            return tree
        require(len(tree) == 1, "its manifest has an object that is not one kind of thing")
        ((kind, value),) = tree.items()
        self._cost += _COSTS.get(kind, 1)
        require(self._cost <= _HIGHEST_COST, "it has more objects than kofa writes")
        if kind in _CLASSES:
            cls, given = _CLASSES[kind], self._dict(value)
            return cls(**read_fields(kind, SCHEMA[cls], _as_today(cls, given)))
        if kind not in self._readers:
            raise DamageError(f"its manifest has an unknown kind {excerpt(kind)}")
        return self._readers[kind](value)

    def _list(self, values: Any) -> list[Any]:
        require(isinstance(values, list), "its manifest lacks a list")
        return [self.convert(value) for value in values]

    def _tuple(self, converted: Any) -> tuple[Any, ...]:
        values = tuple(self._list(converted))
        if _can_be_referred_to(converted):
            self._long_tuples.append(values)
        return values

    def _same(self, place: Any) -> tuple[Any, ...]:
        if type(place) is not int or not 0 <= place < len(self._long_tuples):
            raise DamageError("its manifest refers to names that it has not")
        return self._long_tuples[place]

    def _dict(self, values: Any) -> dict[str, Any]:
        require(isinstance(values, dict), "its manifest lacks a dict")
        return {self.convert(key): self.convert(value) for key, value in values.items()}

    def _array(self, name: Any) -> NDArray[Any]:
        if not (isinstance(name, str) and name in self._arrays):
            raise DamageError(f"array {excerpt(name)} is missing")
        return self._arrays[name]

    def _transposed(self, value: Any) -> NDArray[Any]:
        name, axes = dtypes.list_of_length(value, 2)
        array = self._array(name)
        whole = isinstance(axes, list) and all(type(axis) is int for axis in axes)
        known = whole and sorted(axes) == list(range(array.ndim))
        require(known, "the axes of an array are not its own")
        return array.transpose(np.argsort(axes))

    def _floats(self, name: Any) -> tuple[float, ...]:
        array = self._array(name)
        require(array.ndim == 1 and array.dtype == np.float64, "an array is not one of numbers")
        if name not in self._float_tuples:
            self._budget.spend(_BYTES_OF_FLOAT * len(array))
            self._float_tuples[name] = tuple(array.tolist())
        return self._float_tuples[name]

    def _objects(self, values: Any) -> NDArray[Any]:
        found = self._list(values)
        require(all(is_name(value) for value in found), "labels are not words or numbers")
        array = np.empty(len(found), dtype=object)
        for i, value in enumerate(found):  # one by one: a tuple is one label
            array[i] = value
        return array


def _float(text: Any) -> float:
    require(text in ("nan", "inf", "-inf"), "its manifest has a number that cannot be read")
    return float(text)


def _type(name: Any) -> Any:
    require(isinstance(name, str) and name in _TYPES, f"its type {excerpt(name)} is unknown")
    return _TYPES[name]
