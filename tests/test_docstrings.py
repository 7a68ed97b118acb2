"""Every public name says what each parameter is and what is returned, and shows an example."""

from __future__ import annotations

import inspect
import re
from types import ModuleType

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import kofa
import kofa.estimators

SECTION = re.compile(r"^([A-Z]\w+(?: \w+)?)\n-{3,}$", re.M)
REQUEST = re.compile(r"set_\w+_request")  # scikit-learn writes these, and their docstrings
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
    """All that a class of kofa defines: functions, properties, and what decorators made of them."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("kofa")]
    for name in sorted({name for base in ours for name in vars(base)}):
        if not (name.startswith("_") or REQUEST.fullmatch(name)):
            yield f"{prefix}.{name}", getattr(cls, name)


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


def missing(one, doc=None):
    """What the docstring of a public name, or another in its place, lacks."""
    parts = sections(one.__doc__ if doc is None else doc)
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


def without(doc, title):
    """A docstring that has no such section."""
    parts = sections(doc)
    parts.pop(title, None)
    return "\n".join(f"{name}\n{'-' * len(name)}\n{text}" for name, text in parts.items())


def test_what_is_taken_from_any_docstring_is_missed():
    for name, one in public_names():
        assert "example" in missing(one, without(one.__doc__, "Examples")), name
        lacks = missing(one, without(one.__doc__, "Parameters"))
        assert {f"parameter {each}" for each in parameters(one)} <= set(lacks), name
        if "Returns" in sections(one.__doc__):
            assert "return value" in missing(one, without(one.__doc__, "Returns")), name


def test_public_names_are_found():
    names = dict(public_names())
    assert {"kofa.Real", "kofa.FactorModel.fit", "kofa.plot.factors"} <= set(names)
    assert not [name for name in names if "._" in name]
    modules = [kofa, kofa.inspection, kofa.omics, kofa.plot]
    public = {f"{module.__name__}.{name}" for module in modules for name in module.__all__}
    assert public - set(names) == {"kofa.inspection", "kofa.omics", "kofa.plot"}
    for estimator in ("FactorModel", "KernelFactorRegressor", "KernelFactorClassifier"):
        answers = {"fit", "transform", "predict"}
        assert {f"kofa.{estimator}.{answer}" for answer in answers} <= set(names)
    assert {f"kofa.{name}" for name in kofa.estimators.__all__} <= set(names)


X = np.random.default_rng(0).normal(size=(30, 3))
GIVEN = {
    kofa.FactorModel: ({"x": X},),
    kofa.KernelFactorAnalysis: (X,),
    kofa.KernelFactorRegressor: (X, X[:, 0]),
    kofa.KernelFactorClassifier: (X, X[:, 0] > 0),
}


@pytest.mark.parametrize("cls", GIVEN, ids=lambda cls: cls.__name__)
def test_every_attribute_of_a_fitted_model_is_described(cls):
    model = cls().fit(*GIVEN[cls])
    found = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert found
    assert found - described(sections(cls.__doc__)["Attributes"]) == set()


def test_every_public_name_is_documented():
    lacking = {name: lacks for name, one in public_names() if (lacks := missing(one))}
    assert lacking == {}
