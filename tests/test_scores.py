"""Scores are those of scikit-learn where it has them, and leave out what is not known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn import metrics

import kofa
from conftest import KINDS
from kofa import scores
from kofa.scores import SCORES, HeldOut, scores_of, typical

LIKELIHOODS = {name: view.likelihood for name, view in KINDS.items()}


def held(kind, truth, mean, seen=None, quantiles=None):
    likelihood = LIKELIHOODS[kind]
    seen = truth if seen is None else seen
    return HeldOut(
        likelihood,
        truth,
        mean,
        quantiles or {},
        np.broadcast_to(scores.column_means(seen), truth.shape),
        np.broadcast_to(typical(likelihood, seen), truth.shape),
    )


def with_holes(rng, truth):
    truth = truth.copy()
    truth[rng.random(truth.shape) < 0.3] = np.nan
    return truth


def one_hot(codes, n_classes):
    return (codes[:, None] == np.arange(n_classes)).astype(float)


def test_r2_and_rmse_are_scikit_learns_where_the_means_are(rng):
    truth = with_holes(rng, rng.normal(size=(30, 3)))
    predicted = rng.normal(size=(30, 3))
    found = held("real", truth, predicted)
    for j in range(3):
        known = ~np.isnan(truth[:, j])
        pair = truth[known, j], predicted[known, j]
        assert SCORES["r2"](found)[j] == pytest.approx(metrics.r2_score(*pair), abs=1e-12)
        rmse = metrics.root_mean_squared_error(*pair)
        assert SCORES["rmse"](found)[j] == pytest.approx(rmse, abs=1e-12)


def test_r2_compares_with_the_mean_of_the_fit():
    truth, seen = np.array([[1.0], [2.0]]), np.array([[5.0], [7.0]])
    found = SCORES["r2"](held("real", truth, np.array([[1.0], [4.0]]), seen))
    assert found == pytest.approx(1 - 4 / (25 + 16))


def test_auc_log_loss_and_accuracy_of_columns_are_scikit_learns(rng):
    truth = with_holes(rng, (rng.random((40, 2)) < 0.4).astype(float))
    probability = rng.integers(1, 10, size=(40, 2)) / 10 + 0.01  # with ties
    found = held("binary", truth, probability)
    for j in range(2):
        known = ~np.isnan(truth[:, j])
        t, p = truth[known, j], probability[known, j]
        assert SCORES["auc"](found)[j] == pytest.approx(metrics.roc_auc_score(t, p), abs=1e-12)
        assert SCORES["log_loss"](found)[j] == pytest.approx(metrics.log_loss(t, p), abs=1e-12)
        right = metrics.accuracy_score(t, p > 0.5)
        assert SCORES["accuracy"](found)[j] == pytest.approx(right, abs=1e-12)


def test_scores_of_classes_are_scikit_learns(rng):
    codes = rng.integers(0, 3, size=50)
    probability = rng.dirichlet(np.ones(3), size=50)
    truth = one_hot(codes, 3)
    truth[:7] = np.nan
    found = held("label", truth, probability)
    t, p = codes[7:], probability[7:]
    assert found.n.tolist() == [43]
    auc = metrics.roc_auc_score(t, p, multi_class="ovr")
    assert SCORES["auc"](found) == pytest.approx([auc], abs=1e-12)
    assert SCORES["log_loss"](found) == pytest.approx([metrics.log_loss(t, p)], abs=1e-12)
    right = metrics.accuracy_score(t, p.argmax(axis=1))
    assert SCORES["accuracy"](found) == pytest.approx([right], abs=1e-12)


def test_a_class_of_probability_zero_costs_as_much_as_in_scikit_learn():
    probability = np.array([[0.4, 0.6, 0.0], [0.5, 0.5, 0.0]])
    found = held("label", one_hot(np.array([2, 0]), 3), probability)
    expected = metrics.log_loss([2, 0], probability, labels=[0, 1, 2])
    assert SCORES["log_loss"](found) == pytest.approx([expected], rel=1e-6)


def test_d2_of_counts_is_scikit_learns_up_to_half_a_count(rng):
    truth = rng.poisson(3.0, size=(4000, 1)).astype(float)
    predicted = rng.gamma(3.0, size=(4000, 1))
    expected = metrics.d2_tweedie_score(truth[:, 0], predicted[:, 0], power=1)
    assert SCORES["d2"](held("count", truth, predicted)) == pytest.approx([expected], abs=1e-6)


def test_d2_of_probabilities_is_scikit_learns_up_to_half_a_label(rng):
    truth = (rng.random((4000, 1)) < 0.3).astype(float)
    predicted = rng.uniform(0.1, 0.5, size=(4000, 1))
    expected = metrics.d2_log_loss_score(truth[:, 0], predicted[:, 0])
    assert SCORES["d2"](held("binary", truth, predicted)) == pytest.approx([expected], abs=1e-6)


def test_d2_of_positive_numbers_is_the_r2_of_their_logarithms(rng):
    truth, median = np.exp(rng.normal(size=(2, 30, 2)))
    found = held("positive", truth, median + 5.0, quantiles={0.5: median})
    expected = metrics.r2_score(np.log(truth), np.log(median), multioutput="raw_values")
    assert SCORES["d2"](found) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", ["positive", "count"])
def test_nothing_has_less_deviance_than_what_is_typical(rng, kind):
    values = rng.poisson(20.0, size=(500, 1)) + 1.0
    likelihood = LIKELIHOODS[kind]
    best = minimize_scalar(
        lambda at: likelihood.deviance(values, np.array(at)).sum(), bounds=(1, 60), method="bounded"
    )
    assert typical(likelihood, values) == pytest.approx([best.x], rel=1e-4)


def test_what_is_typical_is_possible_where_nothing_of_it_was_seen():
    zeros = np.zeros((10, 1))
    assert typical(LIKELIHOODS["count"], zeros) == pytest.approx([0.05])
    assert typical(LIKELIHOODS["binary"], zeros) == pytest.approx([0.5 / 11])
    assert typical(LIKELIHOODS["label"], one_hot(np.zeros(10), 3)) == pytest.approx(
        np.array([10.5, 0.5, 0.5]) / 11.5
    )


def test_coverage_counts_values_within_and_at_the_ends():
    truth = np.array([[0.0], [1.0], [3.0], [np.nan]])
    lower, upper = np.zeros((4, 1)), np.ones((4, 1))
    assert scores.coverage(truth, lower, upper) == pytest.approx([2 / 3])


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_without_any_value_has_no_score(kind):
    truth, mean = np.full((3, 2), np.nan), np.full((3, 2), 0.5)
    found = held(kind, truth, mean, np.array([[1.0, 1.0]]), dict.fromkeys((0.05, 0.5, 0.95), mean))
    for name in scores_of(LIKELIHOODS[kind]):
        assert np.isnan(SCORES[name](found)).all()
    assert not found.n.any()


def test_an_auc_needs_zeros_and_ones():
    truth = np.array([[1.0, 0.0], [1.0, 1.0]])
    found = scores.auc(truth, np.array([[0.3, 0.2], [0.4, 0.3]]))
    assert np.isnan(found[0])
    assert found[1] == 1.0


def test_a_column_that_is_what_was_expected_has_no_r2():
    assert np.isnan(scores.r2(np.ones((2, 1)), np.zeros((2, 1)), np.ones(1)))


def test_each_kind_has_the_scores_that_are_natural():
    assert {name: scores_of(likelihood) for name, likelihood in LIKELIHOODS.items()} == {
        "real": ["r2", "rmse", "coverage"],
        "positive": ["r2", "rmse", "d2", "coverage"],
        "binary": ["auc", "accuracy", "log_loss", "d2"],
        "label": ["auc", "accuracy", "log_loss", "d2"],
        "count": ["r2", "rmse", "d2", "coverage"],
    }


def test_a_kind_from_outside_has_what_it_defines():
    class Plain(kofa.likelihoods.Likelihood):
        def predict(self, mean, variance):  # noqa: ARG002
            return mean

    assert scores_of(Plain) == ["r2", "rmse"]
