"""p-values of associations and feature sets, in few draws."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import registry
from experiments.simulated import discoveries
from experiments.simulated.discoveries import Design, discovered, draws, worst


def test_they_are_registered():
    known, _ = registry.find()
    assert {"association-null", "enrichment-null", "enrichment-planted"} <= set(known)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("association-null", ["3 categories (tied factor, n = 15)", "two halves"]),
        ("association-planted", ["category", "found: all"]),
        ("enrichment-null", ["absolute (correlation 0.5", "without data: correlation 0.5"]),
        ("enrichment-planted", ["ranks (correlation 0.1)", "found: signed (correlation 0)"]),
    ],
)
def test_rows_say_how_often_by_design(name, kinds):
    row = discoveries.EXPERIMENTS[name](n_draws=2)
    assert 0.0 <= row.figure <= 1.0
    assert "2 draws" in row.what
    assert all(kind in row.text for kind in kinds)


def test_planted_ones_are_found_and_few_others():
    row = discoveries.association_planted(n_draws=60)
    assert row.verdict == "ok"
    found = row.text.split("found: all ")[1]
    assert float(found.split(" %")[0]) > 60


def test_false_ones_among_those_found():
    q, true = np.array([0.01, 0.04, 0.5, 0.2]), np.array([True, False, True, False])
    assert discovered(q, true) == (0.5, 0.5)
    assert discovered(np.ones(4), true) == (0.0, 0.0)


def test_the_worst_share_is_the_furthest_from_the_level():
    assert worst({"a": 0.06, "b": 0.03, "c": 0.05}) == 0.03


def test_features_of_a_set_are_correlated_and_others_are_not():
    x = Design(20_000, 60, 2, 0.3).noise(np.random.default_rng(0))
    r = np.corrcoef(x.T)
    assert r[0, 1] == pytest.approx(0.3, abs=0.03)
    assert abs(r[0, 25]) < 0.03
    assert abs(r[45, 50]) < 0.03
    assert x.std(axis=0) == pytest.approx(np.ones(60), abs=0.03)


def test_draws_are_the_same_each_time():
    first, second = ([rng.random() for rng in draws(3)] for _ in range(2))
    assert first == second
    assert len(set(first)) == 3
