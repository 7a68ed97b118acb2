"""Warnings of a report: there where they are due, and not where they are not."""

from __future__ import annotations

import numpy as np
import pytest

from kofa.report import advice


def texts(found):
    return [one.what for one in found]


def test_a_fit_that_did_not_converge():
    assert advice.not_converged(True, 10, 10) == []
    (one,) = advice.not_converged(False, 10, 10)
    assert one.what == "The fit was stopped after 10 iterations, before the bound settled."
    assert "raise max_iter (it was 10)" in one.cure
    (one,) = advice.not_converged(False, 3, 10)  # by a callback
    assert "let it run longer" in one.cure


def test_views_that_no_factor_explains():
    views = {"rna": False, "drug": False, "stage": True}
    assert advice.unexplained([["rna"], ["drug", "stage"]], views) == []
    found = advice.unexplained([["rna"], []], views)
    assert texts(found) == ["No factor explains drug.", "No factor predicts stage."]
    assert all(one.cure for one in found)


def driven(factors, samples, links=None, **measured):
    links = links or {name: ["x"] for name in factors}
    which = measured or {"x": np.ones(len(samples), dtype=bool)}
    return advice.driven_by_one(factors, samples, links, which)


def test_one_sample_that_drives_a_factor(rng):
    z = rng.normal(size=60)
    assert driven({"factor1": z}, range(60)) == []
    z[17] = 30.0
    (one,) = driven({"factor1": z, "factor2": rng.normal(size=60)}, list("ab") * 30)
    assert one.what == "Sample b drives factor1."


def test_one_sample_that_drives_two_factors_is_named_once(rng):
    Z = {name: np.append(rng.normal(size=60), 40.0) for name in ("factor1", "factor2")}
    assert texts(driven(Z, range(61))) == ["Sample 60 drives factor1 and factor2."]


@pytest.mark.parametrize(
    ("active", "named"), [(["x", "y", "w"], "x and w,"), (["y"], "x, v and w,"), (["v"], "v,")]
)
def test_values_are_looked_at_in_views_that_the_sample_has(rng, active, named):
    """In those that the factor is active in, or in all where it has none of these."""
    has, lacks = np.ones(61, dtype=bool), np.arange(61) != 60
    Z = {"factor1": np.append(rng.normal(size=60), 40.0)}
    (one,) = driven(Z, range(61), {"factor1": active}, x=has, y=lacks, v=has, w=has)
    assert one.cure.startswith(f"Look at its values in {named} which may be a mistake")


@pytest.mark.parametrize("n", [4, 10, 30])
def test_few_normal_samples_drive_nothing(n):
    """Of few samples one has a large share by chance alone."""
    rng = np.random.default_rng(0)
    driven = [advice.driver(rng.normal(size=n)) is not None for _ in range(1000)]
    assert np.mean(driven) < 0.005


@pytest.mark.parametrize("z", [np.zeros(0), np.ones(2), np.zeros(20)])
def test_nothing_drives_a_factor_that_does_not_vary(z):
    assert advice.driver(z) is None


def test_classes_with_few_labels():
    assert advice.few_labels("stage", {"early": 10, "late": 30}) == []
    (one,) = advice.few_labels("stage", {"early": 9, "late": 30, "none": 0})
    assert one.what == "Classes of stage with fewer than 10 labels: early (9) and none (0)."


def test_outputs_with_few_values():
    assert advice.few_values("age", 20) == []
    assert texts(advice.few_values("age", 19)) == ["Only 19 samples of the fit have age."]
    assert texts(advice.few_values("age", 1)) == ["Only 1 sample of the fit has age."]


def test_intervals_that_hold_too_few_or_too_many_values():
    assert advice.wrong_intervals("age", 0.9, 1000, False, "here") == []
    assert advice.wrong_intervals("age", 0.87, 1000, False, "here") == []  # too little to matter
    assert advice.wrong_intervals("age", 0.75, 20, False, "here") == []  # chance
    (one,) = advice.wrong_intervals("age", 0.75, 1000, False, "here")
    assert one.what == (
        "Intervals of 90 % hold 75 % of the values of age here; they are too narrow: the model is "
        "over-confident."
    )
    (one,) = advice.wrong_intervals("age", 0.99, 1000, False, "here")
    assert "under-confident" in one.what
    assert advice.wrong_intervals("reads", 0.99, 1000, True, "here") == []  # as of counts
    assert advice.wrong_intervals("reads", 0.75, 1000, True, "here")
    assert advice.wrong_intervals("age", np.nan, 0, False, "here") == []


def test_probabilities_that_are_too_sure_or_not_sure_enough():
    assert advice.wrong_probabilities("stage", 0.9, 0.88, 1000, "here") == []
    assert advice.wrong_probabilities("stage", 0.9, 0.75, 20, "here") == []  # chance
    assert advice.wrong_probabilities("stage", 0.9, 0.7, 0, "here") == []
    (one,) = advice.wrong_probabilities("stage", 0.95, 0.7, 1000, "here")
    assert "over-confident" in one.what
    (one,) = advice.wrong_probabilities("stage", 0.7, 0.95, 1000, "here")
    assert "under-confident" in one.what
