"""How a model was declared, and the code that fits it again."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from datetime import date
from importlib.metadata import version
from inspect import signature
from typing import Any

import numpy as np

from kofa import __version__
from kofa.kernels.base import Kernel
from kofa.kernels.landmarks import Landmarks
from kofa.views import View, as_python

_NOT_OF_THE_FIT = ("callback", "checkpoint", "checkpoint_every", "progress", "views")
_PACKAGES = ("numpy", "scipy", "scikit-learn")


def code(model: Any) -> str:
    """Python that declares the model as it was, and fits it to tables of the same names."""
    sources = model._fitted.sources
    tables = ", ".join(f"{name!r}: …" for name in sources)
    lines = ["import kofa", "", f"data = {{{tables}}}  # the tables of the fit", ""]
    options = {name: value for name, value in settings(model).items() if name != "views"}
    lines += ["model = kofa.FactorModel("]
    if model.views is not None:
        lines += ["    {", *(f"        {name!r}: {declared(view)}," for name, view in
                             model.views.items()), "    },"]  # fmt: skip
    said = _said(model)
    lines += [f"    {name}={in_python(value)}," for name, value in options.items() if name in said]
    return "\n".join([*lines, ")", "model.fit(data)"])


def settings(model: Any) -> dict[str, Any]:
    """The parameters that a result depends on."""
    given: Mapping[str, Any] = model.get_params(deep=False)
    return {name: value for name, value in given.items() if name not in _NOT_OF_THE_FIT}


def _said(model: Any) -> list[str]:
    """Parameters that are not left at their default."""
    defaults = signature(type(model)).parameters
    return [name for name, value in settings(model).items()
            if not _same(value, defaults[name].default)]  # fmt: skip


def declared(view: Any) -> str:
    """A view as it is written in Python, without what is the default."""
    if not isinstance(view, View):
        return repr(view)
    options = {}
    for field in fields(view):
        value = getattr(view, field.name)
        if field.init and (field.default is MISSING or not _same(value, field.default)):
            options[field.name] = value
    inside = ", ".join(f"{name}={in_python(value)}" for name, value in options.items())
    return f"kofa.{type(view).__name__}({inside})"


def _same(value: Any, default: Any) -> bool:
    return value is default or repr(value) == repr(default)


def in_python(value: Any) -> str:
    """A value as it is written in Python.

    >>> from kofa.kernels import RBF
    >>> in_python(["rbf", RBF(width=2.0)])
    "['rbf', kofa.RBF(width=2.0)]"
    """
    if isinstance(value, list | tuple):
        inside = ", ".join(map(in_python, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside},)"
    if isinstance(value, Landmarks):
        return as_python({"": value}).removeprefix("=")
    if isinstance(value, Kernel):
        return f"kofa.{value!r}"
    if isinstance(value, np.random.Generator):
        return "…  # a generator, of which no state is kept"
    return repr(value)


def few_digits(text: str) -> str:
    """Text whose numbers have four digits.

    >>> few_digits("RBF(width=8523.93823872112)")
    'RBF(width=8524)'
    """
    return re.sub(r"\d+\.\d+(e[+-]?\d+)?", lambda number: f"{float(number[0]):.4g}", text)


def versions() -> dict[str, str]:
    """What the report was made with."""
    found = {"kofa": __version__, "Python": platform.python_version()}
    found |= {name: version(name) for name in _PACKAGES}
    return found | {"date": date.today().isoformat()}
