"""Sentences of a report: there where they are true, and not where they are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from kofa.report import summary
from kofa.report.summary import ViewFacts


def view(name="rna", n_samples=10, missing=0.0, output=False, labels=False, n_features=3):
    return ViewFacts(name, labels, n_features, output, n_samples, missing)


def test_samples_and_views_are_counted():
    views = [view(), view("age", n_features=1), view("stage", output=True, labels=True)]
    first, second = summary.about_samples(1200, views)
    assert first == "1,200 samples in 3 views: rna (3 columns), age (1 column) and stage (labels)."
    assert second == "stage is predicted from the others."


def test_without_outputs_nothing_is_predicted():
    assert summary.about_samples(10, [view()]) == ["10 samples in 1 view: rna (3 columns)."]


def test_several_outputs_are_predicted():
    views = [view(), view("a", output=True), view("b", output=True)]
    assert summary.about_samples(10, views)[1] == "a and b are predicted from the others."


def test_samples_that_are_not_known_are_not_counted():
    assert summary.about_samples(None, [view(n_samples=None)]) == ["1 view: rna (3 columns)."]
    assert summary.about_holes(None, [view(n_samples=None)]) == []


def test_holes_are_named_and_only_where_there_are_some():
    assert summary.about_holes(10, [view(), view("b")]) == ["No value is missing."]
    assert summary.about_holes(10, [view(n_samples=9)]) == ["1 sample of 10 lacks rna."]
    assert summary.about_holes(10, [view(n_samples=4)]) == ["6 samples of 10 lack rna."]
    assert summary.about_holes(10, [view(missing=0.25)]) == [
        "25 % of the values of rna are missing."
    ]
    assert summary.about_holes(10, [view(n_samples=9, missing=0.002), view("b")]) == [
        "1 sample of 10 lacks rna.",
        "Of the samples that have the view, less than 1 % of the values of rna are missing.",
    ]


def test_factors_are_counted_by_the_views_that_they_link():
    links = [["rna", "drug"], ["rna", "drug"], ["rna"], []]
    assert summary.about_factors(links) == [
        "The model has 4 factors: 2 link rna and drug; 1 is private to rna; 1 is active in no view."
    ]
    assert summary.about_factors([["rna"]]) == ["The model has 1 factor: 1 is private to rna."]
    assert summary.about_factors([["a", "b", "c"]]) == [
        "The model has 1 factor: 1 links a, b and c."
    ]
    assert summary.about_factors([]) == ["The model has 0 factors."]


def test_variance_names_the_strongest_factor_unless_it_is_all_there_is():
    said = summary.about_variance({"rna": 0.6}, {"rna": ("factor2", 0.4)})
    assert said == ["Together the factors explain 60 % of rna (most of it factor2, 40 %)."]
    assert summary.about_variance({"rna": 0.6}, {"rna": ("factor1", 0.6)}) == [
        "Together the factors explain 60 % of rna."
    ]
    assert summary.about_variance({"rna": -0.1}, {}) == [
        "Together the factors explain nothing of rna."
    ]
    assert summary.about_variance({"rna": np.nan}, {}) == []


def test_sources_of_predictions_in_their_order():
    said = summary.about_sources("stage", {"rna": 0.2, "drug": 0.799, "noise": 0.001})
    assert said == ["stage is predicted from drug (80 %) and rna (20 %), and hardly from noise."]
    assert summary.about_sources("stage", {"rna": 1.0}) == []  # from what else?


def test_scores_are_said_with_the_samples_that_they_are_of():
    scores = {"r2": 0.5, "rmse": 3.0, "d2": 0.4, "coverage": 0.9}
    assert summary.about_scores("age", scores, "in held-out samples") == [
        "age (in held-out samples): 50 % of the variance is explained and 90 % of the values lie "
        "in intervals of 90 %."
    ]
    assert summary.about_scores("stage", {"accuracy": 0.98, "auc": 0.995, "d2": 0.9}, "here") == [
        "stage (here): 98 % of the labels are right, the area under the ROC curve is 0.99 and 90 % "
        "of the deviance is explained."
    ]


def test_what_would_be_right_without_the_model_is_said_where_it_is_known():
    scores = {"accuracy": 0.9, "d2": 0.5}
    said = summary.about_scores("stage", scores, "here", {"accuracy": 0.4, "d2": 0.0})
    assert said[0].endswith("; 40 % would be right without the model.")
    assert "without" not in summary.about_scores("stage", scores, "here")[0]
    assert "without" not in summary.about_scores("age", {"r2": 0.5}, "here", {"r2": 0.0})[0]


def test_a_prediction_that_is_worse_than_none_is_said_to_be():
    assert summary.about_scores("age", {"r2": -0.1}, "here") == [
        "age is not predicted better than by the mean (here)."
    ]
    assert summary.about_scores("stage", {"accuracy": 0.3, "d2": -0.1}, "here") == [
        "stage is not predicted better than by the shares of its classes (here)."
    ]
    assert summary.about_scores("age", {}, "here") == []


def test_whether_new_samples_were_evaluated():
    assert summary.about_evaluation(["age"], held_out=True) == []
    assert summary.about_evaluation([], held_out=False) == []
    assert summary.about_evaluation(["age"], held_out=False) == [
        "How well age is predicted in new samples was not evaluated: use kofa evaluate, or "
        "kofa.cross_validate."
    ]


@pytest.fixture
def associations():
    rows = [("factor1", "age", "r", -0.5, 1e-9), ("factor1", "sex", "AUC", 0.7, 0.04),
            ("factor2", "site", "eta_squared", 0.3, 0.2)]  # fmt: skip
    return pd.DataFrame(rows, columns=["factor", "covariate", "statistic", "value", "q"])


def test_associations_beyond_chance_are_named_the_surest_first(associations):
    assert summary.about_associations(associations) == [
        "Factors go with covariates: factor1 with age (r = −0.50, q = 1 × 10⁻⁹) and factor1 with "
        "sex (AUC = 0.70, q = 0.04)."
    ]


def test_associations_by_chance_are_not_named(associations):
    assert summary.about_associations(associations[associations.q > 0.05]) == [
        "No factor goes with any covariate (all q are above 0.05)."
    ]
    assert summary.about_associations(associations[:0]) == []


def test_of_many_associations_the_rest_is_counted(associations):
    many = pd.concat([associations[:1]] * 5, ignore_index=True)
    assert summary.about_associations(many)[0].endswith("; 2 more with q below 0.05.")


def test_sets_beyond_chance_are_named_and_others_are_not():
    table = pd.DataFrame({"factor": "factor1", "set": ["repair", "growth"], "q": [1e-4, 0.5]})
    assert summary.about_sets("rna", table) == [
        "Feature sets with other weights than the rest of rna: repair in factor1 (q = 0.0001)."
    ]
    assert summary.about_sets("rna", table[1:]) == [
        "No feature set has other weights in rna than the rest."
    ]
    assert summary.about_sets("rna", table[:0]) == []
