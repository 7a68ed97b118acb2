"""Every public name says what each parameter is and what is returned, and shows an example."""

from __future__ import annotations

import inspect
import re
from types import ModuleType

import pytest
from sklearn.base import BaseEstimator

import kofa

SECTION = re.compile(r"^([A-Z]\w+(?: \w+)?)\n-{3,}$", re.M)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : (.*))?$")


def public_names():
    """Names and objects: what `kofa` exports, its public modules, and methods of models."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    yield from _names_of(kofa)


def _names_of(module):
    for name in module.__all__:
        one = getattr(module, name)
        if isinstance(one, ModuleType):
            yield from _names_of(one)
            continue
        yield f"{module.__name__}.{name}", one
        if inspect.isclass(one) and issubclass(one, BaseEstimator):
            yield from _methods_of(f"{module.__name__}.{name}", one)


def _methods_of(prefix, cls):
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        if not name.startswith("_") and method.__module__.startswith("kofa"):
            yield f"{prefix}.{name}", method


def sections(text):
    """The sections of a docstring, by their titles; what stands before them is ''."""
    parts = SECTION.split(inspect.cleandoc(text or ""))
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def described(section):
    """Parameters of a section that are followed by at least one line about them."""
    found, names = set(), []
    for line in section.splitlines():
        if match := ENTRY.match(line):
            names = [name.strip(" *") for name in match[1].split(",")]
        elif line.startswith("    ") and line.strip():
            found.update(names)
    return found


def parameters(one):
    """The parameters that a caller can give."""
    return [name for name in inspect.signature(one).parameters if name != "self"]


def missing(one):
    """What the docstring of a public name lacks."""
    parts = sections(one.__doc__)
    known = described(parts.get("Parameters", ""))
    lacks = [f"parameter {name}" for name in parameters(one) if name not in known]
    returns = inspect.signature(one).return_annotation not in (None, "None")
    if not inspect.isclass(one) and returns and not parts.get("Returns", "").strip():
        lacks.append("return value")
    if ">>> " not in parts.get("Examples", ""):
        lacks.append("example")
    if not parts[""].strip():
        lacks.append("summary")
    return lacks


def test_what_is_missing_is_found():
    def plain(a, b, *more):
        """Text.

        Parameters
        ----------
        a : int
        b, more : int
            Said.
        """

    def full(a):
        """Text.

        Parameters
        ----------
        a
            Said.

        Returns
        -------
        int

        Examples
        --------
        >>> 1
        1
        """

    assert missing(plain) == ["parameter a", "return value", "example"]
    assert missing(full) == []


def test_public_names_are_found():
    names = dict(public_names())
    assert {"kofa.Real", "kofa.FactorModel.fit", "kofa.plot.factors"} <= set(names)
    assert not [name for name in names if "._" in name]


def test_every_public_name_is_documented():
    lacking = {name: lacks for name, one in public_names() if (lacks := missing(one))}
    assert lacking == {}
