"""What the value of a field may be: its type, and the shapes and limits of its numbers.

A model file is checked twice. When an object is read, each of its fields must be of its type
(`Field.accepts`). When the model is complete, all shapes and limits are checked (`Field.check`).
A shape is written in letters: "DK" is (D, K). A letter stands for the same number in all fields of
an object and of the objects inside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kofa.checks import is_number
from kofa.inference.posterior import Gamma, Known
from kofa.storage.damage import DamageError, excerpt, require
from kofa.storage.dtypes import with_pandas

REQUIRED = object()  # the default of fields that all files have
_MOST_LEVELS = 64  # of names that are tuples; pandas makes an index of each

Sizes = dict[str, int]  # the number that a letter stands for
Check = Callable[[str, Any, Sizes], None]  # gets the field's name, its value, the sizes so far


@dataclass(frozen=True)
class Field:
    """What a field may be."""

    accepts: Callable[[Any], bool]
    check: Check = lambda *_: None
    default: Any = REQUIRED  # its value in files that lack it
    is_array: bool = False  # one number may stand for an array without dimensions
    attribute: str = ""  # its name in Python, where that is another than in files

    def attribute_of(self, name: str) -> str:
        return self.attribute or name


Fields = dict[str, Field]


def since_0_2(field: Field, default: Any) -> Field:
    """A field that files of kofa 0.1 lack, and what it is in those."""
    return replace(field, default=default)


def read_fields(title: str, schema: Fields, given: dict[str, Any]) -> dict[str, Any]:
    """What a file gives for each field, by attribute: of its type, or the default of old files."""
    for name, value in given.items():
        require(name in schema, f"a {title} has no {excerpt(name)}")
        if schema[name].is_array and isinstance(value, float):
            given[name] = value = np.float64(value)
        require(
            schema[name].accepts(value),
            f"the {name} of a {title} has a value of a type that it cannot have",
        )
    for name, field in schema.items():
        missing = name not in given and field.default is REQUIRED
        require(not missing, f"a {title} lacks its {name}")
    return {
        field.attribute_of(name): given[name] if name in given else copy(field.default)
        for name, field in schema.items()
    }


# ---------------------------------------------------------------- plain values


def of_type(*classes: type[Any]) -> Field:
    return Field(lambda value: isinstance(value, classes))


def _is_number(value: Any) -> bool:
    """NaN and infinity too; an int must fit into a float, which it becomes where it is used."""
    return isinstance(value, float) or is_number(value)


def is_name(value: Any) -> bool:
    """Whether a value can be the name of a column or a label."""
    if isinstance(value, tuple):
        return len(value) <= _MOST_LEVELS and all(is_name(item) for item in value)
    plain = value is None or isinstance(value, bool | int | float | str)
    return plain or type(value).__name__ == "Timestamp"


anything = of_type(object)
truth = of_type(bool)
text = of_type(str)
name = Field(is_name)
number = Field(_is_number)
whole = Field(lambda value: type(value) is int)  # 3.0 cannot be the size of an array


def limited(
    problem: str, least: float = -math.inf, above: float = -math.inf, most: float = math.inf
) -> Field:
    """A finite number within limits."""

    def check(_: str, value: Any, __: Sizes) -> None:
        require(least <= value <= most and above < value < math.inf, problem)

    return Field(_is_number, check)


def size(letter: str) -> Field:
    """A whole number for which a letter stands in shapes."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        require(value == sizes[letter], f"its {name} is {value}, not {sizes[letter]}")

    return replace(whole, check=check)


def one_of(*choices: Any) -> Field:
    return Field(lambda value: any(type(value) is type(one) and value == one for one in choices))


# ---------------------------------------------------------------- made of other fields


def or_word(field: Field, *words: str) -> Field:
    """A value, or a word that stands for one."""
    return Field(lambda value: field.accepts(value) or one_of(*words).accepts(value))


def maybe(field: Field) -> Field:
    """A value or None."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        if value is not None:
            field.check(name, value, sizes)

    return Field(lambda value: value is None or field.accepts(value), check)


def resolved(field: Field, *words: str) -> Field:
    """A value; in a declaration also a word that says how `fit` finds it."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        require(not isinstance(value, str), "its kernel is not resolved")
        field.check(name, value, sizes)

    return replace(or_word(field, *words), check=check)


def tuple_of(field: Field, also: type[Any] = tuple) -> Field:
    """A tuple, or another sequence."""

    def check(name: str, values: Any, sizes: Sizes) -> None:
        for value in values:
            field.check(name, value, sizes)

    kinds = (tuple, also)
    return Field(lambda value: isinstance(value, kinds) and all(map(field.accepts, value)), check)


def dict_of(field: Field) -> Field:
    return Field(lambda value: isinstance(value, dict) and all(map(field.accepts, value.values())))


def column_names(letter: str) -> Field:
    """A name for each column, or None."""

    def check(_: str, value: Any, sizes: Sizes) -> None:
        require(len(value) == sizes[letter], "it has not one name for each column")
        if any(isinstance(one, tuple) for one in value):
            with with_pandas("a name") as pd:
                pd.Index(list(value))

    return maybe(replace(tuple_of(name), check=check))


# ---------------------------------------------------------------- arrays


def reals(*shapes: str, **limits: Any) -> Field:
    """Numbers, in an array or one alone; for limits see `check_entries`."""

    def accepts(value: Any) -> bool:
        return isinstance(value, np.ndarray | np.float64) and value.dtype == np.float64

    def check(name: str, value: Any, sizes: Sizes) -> None:
        if shapes:
            check_shape(name, value, shapes, sizes)
            check_entries(name, value, **limits)

    return Field(accepts, check, is_array=True)


def indices(*shapes: str, below: str = "", problem: str = "") -> Field:
    """Whole numbers in an array; with `below`, from zero to below what that letter stands for."""

    def accepts(value: Any) -> bool:
        return isinstance(value, np.ndarray) and value.dtype == np.intp

    def check(name: str, value: Any, sizes: Sizes) -> None:
        if shapes:
            check_shape(name, value, shapes, sizes)
        if below:
            inside = np.min(value, initial=0) >= 0 and np.max(value, initial=-1) < sizes[below]
            require(bool(inside), problem)

    return Field(accepts, check)


def truths() -> Field:
    """An array of what is true or not."""
    return Field(lambda value: isinstance(value, np.ndarray) and value.dtype == bool)


def labels(letter: str, field: Field = anything) -> Field:
    """An array of any values."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        require(isinstance(value, np.ndarray), f"its {name} are no array")
        check_shape(name, value, (letter,), sizes)

    return Field(field.accepts, check)


def precision(*shapes: str, classes: tuple[type[Any], ...] = (Gamma, Known)) -> Field:
    """A precision, learnt or known."""

    def check(name: str, q: Any, sizes: Sizes) -> None:
        arrays = (q.mean,) if isinstance(q, Known) else (q.shape, q.rate)
        for array in arrays:
            check_entries(name, array, above=0.0)
        try:
            shape = np.broadcast_shapes(*map(np.shape, arrays))
        except ValueError:
            raise DamageError(f"its {name} has two sizes") from None
        check_shape(name, arrays[-1], shapes, sizes)
        require(shape == np.shape(arrays[-1]), f"its {name} has two shapes")

    return replace(of_type(*classes), check=check)


def check_shape(name: str, value: Any, shapes: tuple[str, ...], sizes: Sizes) -> None:
    """Raise unless an array has one of the shapes; of the first one, sizes may be learnt here."""
    found = np.shape(value)
    if len(found) == len(shapes[0]):
        sizes.update({k: n for k, n in zip(shapes[0], found, strict=True) if k not in sizes})
    wanted = [tuple(sizes.get(letter, letter) for letter in shape) for shape in shapes]
    require(found in wanted, f"the shape of its {name} is {found}, not {wanted[0]}")


def check_entries(
    name: str,
    array: Any,
    least: float = -math.inf,
    above: float = -math.inf,
    infinite: bool = False,
) -> None:
    """Raise unless all entries are finite, or `infinite` if they may be, and within limits."""
    # By their extremes, which take no memory as masks do.
    lowest, largest = float(np.min(array, initial=0.0)), float(np.max(array, initial=0.0))
    finite = math.isfinite(lowest) and (math.isfinite(largest) or (infinite and largest > 0))
    require(finite, f"entries of its {name} are not finite")
    lowest = float(np.min(array, initial=math.inf))
    require(lowest >= least and lowest > above, f"entries of its {name} are too small")
