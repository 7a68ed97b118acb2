"""What a file may hold is stated field by field."""

from __future__ import annotations

import inspect
from dataclasses import fields

import numpy as np
import pytest

import kofa
from kofa.storage.schema import PARAMETERS, SCHEMA


@pytest.mark.parametrize("cls", SCHEMA, ids=lambda cls: cls.__name__)
def test_schema_states_every_field_that_is_saved(cls):
    assert set(SCHEMA[cls]) == {field.name for field in fields(cls) if field.init}


def test_schema_states_every_parameter_of_a_model():
    given = list(inspect.signature(kofa.FactorModel).parameters)
    assert set(PARAMETERS) == set(given)


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
