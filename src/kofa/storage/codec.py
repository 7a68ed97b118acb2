"""Objects of a fit as plain JSON values and arrays, and back.

Each JSON object has one key, which says what its value stands for: `{"tuple": […]}`,
`{"array": "weights_mean_3"}`, `{"RBF": {"width": 1.0, …}}`. Names are looked up in the tables
here and in `dtypes`, and nowhere else; whatever a file says, nothing is imported or called that
is not listed there.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofa.encoding import FittedView
from kofa.errors import FileError
from kofa.kernels import Mixture, as_kernels
from kofa.linalg import Array
from kofa.storage import archive, dtypes
from kofa.storage.members import DamageError, require, shown
from kofa.storage.schema import (
    KERNELS,
    LIKELIHOODS,
    PARAMETERS,
    SCHEMA,
    is_name,
    list_of,
    reals,
    text,
)
from kofa.storage.validation import check_model, check_readouts, most_room
from kofa.views import View

_CLASSES = {each.__name__: each for each in SCHEMA}
_TYPES: dict[str, type[Any]] = {t.__name__: t for t in (*KERNELS, *LIKELIHOODS, bool, int)}
_PARTS = {"parameters", "views", "posterior", "readouts", "converged", "path"}  # of a model
# A model is checked part by part when it is read. Where a fit stands would not show what is wrong
# with it before the fit goes on, so that a file of it is taken only as it was written.
_SEALED = {"checkpoint"}
_LONG = 16  # numbers in a tuple from which an array holds them
_LONGEST_INT = 3000  # bits
_LONGEST_TEXT = 2**16  # characters
# How long it takes to make an object, next to a tuple; a file may not have more than this.
_EFFORTS = dict.fromkeys(_CLASSES, 8) | {"timestamp": 12, "transposed": 12, "objects": 5}
_EFFORTS |= dict.fromkeys(("category", "dtype", "pandas", "string"), 100)
_MOST_EFFORT = 300_000
_OF_FLOAT = 40  # bytes that a number in a tuple takes
_OR_ELSE = "keep the model with joblib.dump"


# ---------------------------------------------------------------- files


def write(
    path: archive.StrPath,
    contents: str,
    value: Any,
    about: Mapping[str, Any] | None = None,
    check: Callable[[Any], Any] | None = None,
    or_else: str = _OR_ELSE,
) -> None:
    """Write an object; `about` is for people who open the file, and is not read again.

    `check` gets what the file will give back, and raises if it cannot be used. `or_else` is what
    remains to the user if no file can hold the object.
    """
    archive.write(path, *_packed(path, contents, value, about, check, or_else))


def check_holds(path: archive.StrPath, contents: str, value: Any, or_else: str) -> None:
    """Raise if no file can hold an object."""
    archive.encoded(path, *_packed(path, contents, value, None, None, or_else))


def _packed(
    path: archive.StrPath,
    contents: str,
    value: Any,
    about: Mapping[str, Any] | None,
    check: Callable[[Any], Any] | None,
    or_else: str,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]], archive.Room]:
    """Manifest and arrays, unpacked once to see that they can be, and the room that this took."""
    tree, arrays = pack(value, or_else)
    manifest = {"contents": contents, "about": dict(about or {}), "tree": tree}
    if contents in _SEALED:
        manifest["seal"] = _seal(tree, arrays)
    room = archive.Room()
    with archive.refusing(path, or_else):
        again = unpack(tree, arrays, room)
        if check is not None:
            check(again)
    return manifest, arrays, room


def read(path: archive.StrPath, contents: str) -> Any:
    """The object in a file of these contents."""
    with archive.opened(path, contents) as (manifest, arrays):
        tree = manifest.get("tree")
        value = unpack(tree, arrays, arrays.room)
        require(len(arrays.read) == len(arrays), "it has arrays that nothing refers to")
        sound = contents not in _SEALED or manifest.get("seal") == _seal(tree, arrays)
        require(sound, "it is not what was written")
    return value


def _seal(tree: Any, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Differs wherever the contents do."""
    digest = hashlib.blake2b(json.dumps(tree).encode())
    for name, array in sorted(arrays.items()):
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{name} {plain.dtype.str} {array.shape} ".encode())
        digest.update(plain.reshape(-1).view(np.uint8).data if plain.size else b"")
    return digest.hexdigest()


# ---------------------------------------------------------------- pack


def pack(value: Any, or_else: str = _OR_ELSE) -> tuple[Any, dict[str, NDArray[Any]]]:
    """The object as plain JSON values, and the arrays they refer to.

    `or_else` is what remains to the user if no file can hold it.
    """
    packer = _Packer(or_else)
    return packer.pack(value), packer.arrays


class _Packer:
    """Collects arrays, each content once."""

    def __init__(self, or_else: str) -> None:
        self.or_else = or_else
        self.arrays: dict[str, NDArray[Any]] = {}
        self._name_of: dict[bytes, str] = {}  # by digest
        self._names: list[tuple[Any, ...]] = []  # long tuples of plain values
        self._trail: list[str] = []

    def pack(self, value: Any) -> Any:
        if isinstance(value, np.generic) and value.dtype.kind in "biufU":
            value = value.item()
        if value is None or type(value) in (bool, int, float, str):  # a subclass may be an Enum
            return self._scalar(value)
        if type(value) is tuple:
            return self._tuple(value)
        if isinstance(value, list):
            return self._each(value)
        if isinstance(value, dict):
            return {"dict": self._dict(value)}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if type(value) in SCHEMA:
            return {type(value).__name__: self._fields(value)}
        return self._other(value)

    def _scalar(self, value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if isinstance(value, int) and value.bit_length() > _LONGEST_INT:
            self._refuse("a number with very many digits")
        return value

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
        if isinstance(value, FittedView):
            held["dtype"] = _dtype_of_labels(value)
            for name in (*(value.inputs or ()), *(value.outputs or ())):
                if not _is_itself(name):  # and so would not be found again
                    self._refuse(name)
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
        """Types, dtypes and dates, if they would come back as they are."""
        if isinstance(value, type) and value in _TYPES.values():
            return {"type": value.__name__}
        packed = dtypes.pack(value, self.pack)
        if packed is None or not _comes_back(packed, value):
            self._refuse(value)
        return packed

    def _refuse(self, value: Any) -> None:
        where = ", ".join(self._trail)
        if isinstance(value, type):
            raise FileError(
                f"The type {value.__name__} in {where} is code, which a file never holds; "
                f"{self.or_else}."
            )
        kind = f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
        raise FileError(
            f"Expected names, labels and settings that a file can hold (strings, numbers, True, "
            f"False, None and tuples of these) but got {value!r:.80} ({kind}) in {where}; "
            f"rename it to a string, or {self.or_else}."
        )


def _dtype_of_labels(view: FittedView) -> Any:
    """Only labels come back in the type they had, and words without room for a book."""
    if view.classes is None:
        return None
    words = isinstance(view.dtype, np.dtype) and view.dtype.kind == "U"
    return min(view.dtype, most_room(view.classes), key=_room) if words else view.dtype


def _is_itself(name: Any) -> bool:
    """Whether a name equals itself: NaN does not."""
    if isinstance(name, tuple):
        return all(map(_is_itself, name))
    return not (isinstance(name, float | np.floating) and math.isnan(name))


def _room(dtype: np.dtype[Any]) -> int:
    return dtype.itemsize


def _comes_back(packed: Any, value: Any) -> bool:
    try:
        return bool(unpack(packed, {}) == value)
    except (FileError, TypeError, ValueError):
        return False


def _are_names(packed: list[Any]) -> bool:
    """Whether a tuple is worth referring to, and no reference can lead to others from it."""
    return len(packed) >= _LONG and not any(isinstance(item, list | dict) for item in packed)


# ---------------------------------------------------------------- unpack


def unpack(tree: Any, arrays: Mapping[str, NDArray[Any]], room: archive.Room | None = None) -> Any:
    """What `pack` packed; a `FileError` for anything that it could not have packed."""
    try:
        return _Unpacker(arrays, room or archive.Room()).unpack(tree)
    except RecursionError:
        raise DamageError("its manifest is nested too deep") from None


class _Unpacker:
    """What is referred to more than once is shared, so that nothing grows beyond the file."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], room: archive.Room) -> None:
        self._arrays, self._room = arrays, room
        self._tuples: dict[str, tuple[float, ...]] = {}  # by the name of their array
        self._names: list[tuple[Any, ...]] = []
        self._effort = 0
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
            **dtypes.unpackers(self.unpack),
        }

    def unpack(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return self._each(tree)
        if isinstance(tree, str):
            require(len(tree) <= _LONGEST_TEXT, "a name in it is longer than kofa writes")
        if not isinstance(tree, dict):
            return tree
        require(len(tree) == 1, "its manifest has an object that is not one kind of thing")
        ((kind, value),) = tree.items()
        self._effort += _EFFORTS.get(kind, 1)
        require(self._effort <= _MOST_EFFORT, "it has more objects than kofa writes")
        if kind in _CLASSES:
            return _instance(_CLASSES[kind], self._dict(value))
        if kind not in self._kinds:
            raise DamageError(f"its manifest has an unknown kind {shown(kind)}")
        return self._kinds[kind](value)

    def _each(self, values: Any) -> list[Any]:
        require(isinstance(values, list), "its manifest lacks a list")
        return [self.unpack(value) for value in values]

    def _tuple(self, packed: Any) -> tuple[Any, ...]:
        values = tuple(self._each(packed))
        if _are_names(packed):
            self._names.append(values)
        return values

    def _same(self, place: Any) -> tuple[Any, ...]:
        if type(place) is not int or not 0 <= place < len(self._names):
            raise DamageError("its manifest refers to names that it has not")
        return self._names[place]

    def _dict(self, values: Any) -> dict[str, Any]:
        require(isinstance(values, dict), "its manifest lacks a dict")
        return {self.unpack(key): self.unpack(value) for key, value in values.items()}

    def _array(self, name: Any) -> NDArray[Any]:
        if not (isinstance(name, str) and name in self._arrays):
            raise DamageError(f"array {shown(name)} is missing")
        return self._arrays[name]

    def _transposed(self, value: Any) -> NDArray[Any]:
        name, axes = dtypes.items(value, 2)
        array = self._array(name)
        require(
            isinstance(axes, list)
            and all(type(axis) is int for axis in axes)
            and sorted(axes) == list(range(array.ndim)),
            "the axes of an array are not its own",
        )
        return array.transpose(np.argsort(axes))

    def _floats(self, name: Any) -> tuple[float, ...]:
        array = self._array(name)
        require(array.ndim == 1 and array.dtype == np.float64, "an array is not one of numbers")
        if name not in self._tuples:
            self._room.take(_OF_FLOAT * len(array))
            self._tuples[name] = tuple(array.tolist())
        return self._tuples[name]

    def _objects(self, values: Any) -> NDArray[Any]:
        found = self._each(values)
        require(all(is_name(value) for value in found), "labels are not words or numbers")
        array = np.empty(len(found), dtype=object)
        for i, value in enumerate(found):  # one by one: a tuple is one label
            array[i] = value
        return array


def _float(text: Any) -> float:
    require(text in ("nan", "inf", "-inf"), "its manifest has a number that is none")
    return float(text)


def _type(name: Any) -> Any:
    if not (isinstance(name, str) and name in _TYPES):
        raise DamageError(f"its type {shown(name)} is unknown")
    return _TYPES[name]


def _instance(cls: Any, given: dict[str, Any]) -> Any:
    """An object whose fields are what the schema says they are."""
    known = SCHEMA[cls]
    for name, value in given.items():
        if name not in known:
            raise DamageError(f"a {cls.__name__} has no {shown(name)}")
        if known[name] is reals and isinstance(value, float):
            given[name] = value = np.float64(value)  # a number where an array could stand
        require(known[name](value), f"the {name} of a {cls.__name__} is of no such kind")
    for field in fields(cls):
        needed = field.default is MISSING and field.default_factory is MISSING
        require(field.name in given or not needed, f"a {cls.__name__} lacks its {field.name}")
    return cls(**given)


# ---------------------------------------------------------------- a model as a whole


def check_kernels(kernels: Mapping[str, Any], or_else: str = _OR_ELSE) -> None:
    """Raise for a kernel that is a function: no file can hold it without holding code."""
    for name, kernel in kernels.items():
        for part in kernel.kernels if isinstance(kernel, Mixture) else (kernel,):
            if type(part) not in KERNELS:
                raise FileError(
                    f"View {name!r}: a kernel of your own ({part!r:.80}) is code, which a file "
                    f"never holds; {or_else}, or fit with one of kofa's kernels or with "
                    f"kernel='precomputed'."
                )


def parts_of_model(
    held: Any,
) -> tuple[dict[str, Any], dict[str, FittedView], dict[str, Any]]:
    """Parameters, views and all that was found, checked one by one and all together."""
    require(isinstance(held, dict), "parts of the model are missing")
    held = {"readouts": {}, **held}  # which older files have not
    require(set(held) == _PARTS, "parts of the model are missing")
    _check_parameters(held["parameters"])
    check_model(held["views"], held["posterior"])
    check_readouts(held["views"], held["readouts"])
    require(isinstance(held["converged"], bool), "it does not say whether it converged")
    found = {name: held[name] for name in ("readouts", "converged")}
    found |= {"state": held["posterior"], **_path(held["path"])}
    return held["parameters"], held["views"], found


def _check_parameters(given: Any) -> None:
    """Raise unless the constructor of a model could have got them."""
    require(isinstance(given, dict), "its parameters are missing")
    for name, value in given.items():
        require(name in PARAMETERS, f"there is no parameter {shown(name)}")
        require(PARAMETERS[name](value), f"the parameter {name} is of no such kind")
    for name, view in (given.get("views") or {}).items():
        require(isinstance(view, View), f"the view {shown(name)} is none")
        kernels = {} if view.kernel is None else as_kernels(view.kernel, name)
        require(all(type(k) in KERNELS for k in kernels.values()), "a kernel is none of kofa's")


def path_of(bounds: Array, terms: Mapping[str, Array]) -> dict[str, Any]:
    """A bound and its terms after each iteration, as a list of names and one table."""
    return {"terms": list(terms), "values": np.column_stack([bounds, *terms.values()])}


def _path(path: Any) -> dict[str, Any]:
    """What `path_of` was given; no object for each iteration, of which there may be many."""
    require(isinstance(path, dict) and set(path) == {"terms", "values"}, "it has no bound")
    names, values = path["terms"], path["values"]
    require(list_of(text)(names) and reals(values), "its bound is none")
    require(np.ndim(values) == 2 and len(values) > 0, "its bound has no values")
    require(values.shape[1] == 1 + len(set(names)), "its bound has not one value for each term")
    require(len(set(names)) == len(names), "a term of its bound occurs twice")
    return {"bounds": values[:, 0], "terms": dict(zip(names, values[:, 1:].T, strict=True))}
