"""What a file may hold is stated field by field."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest

import kofa
from kofa.storage import codec
from kofa.storage.fields import number
from kofa.storage.schema import NAMES_IN_FILES, PARAMETERS, SCHEMA


@pytest.mark.parametrize("cls", SCHEMA, ids=lambda cls: cls.__name__)
def test_schema_states_every_field_that_is_saved(cls):
    stated = {field.attribute_of(name) for name, field in SCHEMA[cls].items()}
    assert stated == {field.name for field in fields(cls) if field.init}


def test_schema_states_every_parameter_of_a_model():
    given = list(inspect.signature(kofa.FactorModel).parameters)
    assert set(PARAMETERS) == set(given)


@dataclass(frozen=True)
class Renamed:
    """A class that had another name, and so had its field."""

    scale: float


def test_a_class_or_field_that_is_renamed_keeps_its_name_in_files(monkeypatch):
    monkeypatch.setitem(SCHEMA, Renamed, {"width": replace(number, attribute="scale")})
    monkeypatch.setitem(NAMES_IN_FILES, Renamed, "Original")
    monkeypatch.setitem(codec._CLASSES, "Original", Renamed)
    tree, arrays = codec.to_json(Renamed(2.5))
    assert tree == {"Original": {"width": 2.5}}
    assert codec.from_json(tree, arrays) == Renamed(2.5)


def test_no_annotation_is_evaluated_when_a_model_is_loaded(tmp_path, monkeypatch):
    """NumPy's NDArray is an alias from Python 3.12 on, which `get_origin` does not see through."""
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(20, 3)), "c": np.arange(20) % 2}
    views = {"x": kofa.Real(kernel="rbf"), "c": kofa.Categorical()}
    model = kofa.FactorModel(views, 2, outputs=["c"], tol=1.0).fit(data)
    model.save(tmp_path / "m.kofa")

    def refuse(*_, **__):
        raise AssertionError("annotations were evaluated")

    monkeypatch.setattr("typing.get_type_hints", refuse)
    monkeypatch.setattr("typing.get_origin", refuse)
    loaded = kofa.load(tmp_path / "m.kofa")
    assert np.array_equal(loaded.predict(data, "c"), model.predict(data, "c"))
