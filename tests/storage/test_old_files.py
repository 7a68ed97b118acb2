"""Files of earlier versions are read, and say what they said then."""

from __future__ import annotations

import json
import zipfile
from functools import cache

import numpy as np
import pytest

import kofa
from fixtures import saved
from kofa.results.answers import given

VERSIONS = ("saved_by_0_1", "saved_by_0_2_dev")
# What the same posterior answers otherwise since 0.1, on purpose: standard deviations allow for
# what is missing, far away or known from few samples, and the mean of a log-normal follows them;
# the score of a sample is exactly what it adds to the bound, with views that are not Gaussian too.
CHANGED_SINCE = {"saved_by_0_1": ("std ", "predict positive"), "saved_by_0_2_dev": ()}
CHANGED_SCORES = {("saved_by_0_1", "output_binary"), ("saved_by_0_1", "output_count")}


@cache
def answers(version):
    with zipfile.ZipFile(saved.HERE / f"{version}.zip") as packed:
        return json.loads(packed.read("answers.json"))


@cache
def tables():
    return {name: data for name, (_, data) in saved.cases()}


def unpacked(version, name, folder):
    with zipfile.ZipFile(saved.HERE / f"{version}.zip") as packed:
        return packed.extract(name, folder)


def assert_same(found, expected, unless=()):
    assert set(found) == set(expected)
    for name, value in expected.items():
        if name.startswith(tuple(unless)):
            continue
        if np.asarray(value).dtype.kind in "fiu":
            np.testing.assert_allclose(found[name], value, rtol=1e-8, atol=1e-8, err_msg=name)
        else:
            assert found[name] == value, name


CASES = [(version, name) for version in VERSIONS for name in answers(version)]


@pytest.mark.parametrize(("version", "name"), [c for c in CASES if c[1] != "checkpoint"])
def test_models_of_earlier_versions_answer_as_they_did(version, name, tmp_path):
    loaded = kofa.load(unpacked(version, f"{name}.kofa", tmp_path))
    unless = CHANGED_SINCE[version] + ("score",) * ((version, name) in CHANGED_SCORES)
    found = saved.answers(loaded, tables()[name])
    found["factors"] = factors_from_all_views(loaded, tables()[name])
    assert_same(found, answers(version)[name], unless)


def factors_from_all_views(model, data):
    """What `transform` gave before outputs had no part in it."""
    prediction = given(model._fitted, {name: saved.rows(table) for name, table in data.items()})
    return np.concatenate([q.mean for q, _ in prediction.project()]).tolist()


@pytest.mark.parametrize(("version", "name"), [c for c in CASES if c[1] != "checkpoint"])
def test_models_of_earlier_versions_can_be_saved_again(version, name, tmp_path):
    loaded = kofa.load(unpacked(version, f"{name}.kofa", tmp_path))
    loaded.save(tmp_path / "again.kofa")
    again = kofa.load(tmp_path / "again.kofa")
    assert saved.answers(again, tables()[name]) == saved.answers(loaded, tables()[name])


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("saved_by_0_1", "not a checkpoint as kofa writes it"),
        ("saved_by_0_2_dev", "other data or settings"),
    ],
)
def test_a_checkpoint_of_another_algorithm_is_refused(version, message, tmp_path):
    """In 0.1 a fit kept other things; later n_factors had another meaning beside outputs."""
    fit, data = saved.checkpoint_case(unpacked(version, "fit.checkpoint", tmp_path))
    with pytest.raises(kofa.FileError, match=message):
        fit.fit(data, resume=True)


def test_every_kind_and_kernel_is_in_the_files():
    """So that whoever adds one adds it to the files too."""
    names = {name for name, _ in saved.cases()} | {"checkpoint"}
    assert names == set(answers("saved_by_0_2_dev"))
