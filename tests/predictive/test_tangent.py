"""Regressions of η where views are not Gaussian, and their calibration."""

import numpy as np
import pytest
from scipy.special import ndtr

from kofa.likelihoods.bernoulli import Bernoulli
from kofa.likelihoods.multinomial import Multinomial
from kofa.predictive.calibration import calibrate
from kofa.predictive.inputs import Inputs, Source
from kofa.predictive.observed import Observed
from kofa.predictive.tangent import regress


def problem(n=200, p=10, D=2, strength=1.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    eta = 0.3 + strength * X @ rng.normal(size=(p, D)) / np.sqrt(p)
    return X, (rng.normal(size=eta.shape) < eta).astype(float), eta


def of_ones(X, t):
    inputs = Inputs(len(X), {"x": Source.of(X)}, {"x": 1.0})
    data = Observed.of(t, Bernoulli(t.shape[1]))
    seen = data.mask
    kappa, typical = np.ones(t.shape[1]), data.typical
    found = regress(inputs.spectrum, data.tangent, kappa, seen, False, typical, None)
    return inputs, data, found


def of_labels(X, label, n_classes):
    inputs = Inputs(len(X), {"x": Source.of(X)}, {"x": 1.0})
    likelihood = Multinomial(n_classes)
    data = Observed.of(likelihood.encode(label[:, None].astype(float)), likelihood)
    kappa = np.ones(n_classes)
    args = (data.tangent, kappa, data.mask, True, data.typical, None)
    return likelihood, data, regress(inputs.spectrum, *args)


def test_left_out_eta_is_that_of_a_fit_without_the_row():
    X, t, _ = problem(80, 4, 1)
    _, _, left = of_ones(X, t)
    away = []
    for row in range(8):
        others = np.arange(80) != row
        inputs, _, fitted = of_ones(X[others], t[others])
        along = inputs.map.of_rows(1, {"x": X[[row]]}) @ inputs.map.projection
        away.append(fitted.regression.predict(along)[0, 0] - left.eta[row, 0])
    assert np.abs(away).mean() < 0.1 * left.eta.std()


def test_probabilities_are_about_those_that_were_drawn():
    X, t, eta = problem(1500, 6, 2)
    inputs, _, left = of_ones(X[:1000], t[:1000])
    along = inputs.map.of_rows(500, {"x": X[1000:]}) @ inputs.map.projection
    found = left.regression.predict(along)
    assert np.corrcoef(found[:, 0], eta[1000:, 0])[0, 1] > 0.98
    assert np.abs(ndtr(found) - ndtr(eta[1000:])).mean() < 0.05


def test_columns_that_nothing_explains_have_hardly_a_signal():
    X, _, _ = problem()
    t = (np.random.default_rng(3).random((200, 3)) < 0.3).astype(float)
    _, _, left = of_ones(X, t)
    assert left.eta.std(axis=0).max() < 0.25


def test_missing_values_are_as_missing_rows():
    X, t, _ = problem(150, 5, 1)
    holed = np.vstack([t, np.full((50, 1), np.nan)])
    more = np.vstack([X, np.random.default_rng(8).normal(size=(50, 5))])
    _, _, few = of_ones(X, t)
    _, _, many = of_ones(more, holed)
    assert np.corrcoef(few.eta[:, 0], many.eta[:150, 0])[0, 1] > 0.999
    assert np.isnan(many.regression.left_out[150:]).all()


def test_ones_are_predicted_as_often_as_they_occur():
    X, t, _ = problem(300, 5, 3, strength=0.5)
    t[:, 2] = 0.0
    t[0, 1] = 0.0
    _, data, left = of_ones(X, t)
    found = calibrate(data, left)
    p = data.likelihood.probability(*found.of(left.eta, left.variance)).mean(axis=0)
    np.testing.assert_allclose(p, (t.sum(axis=0) + 0.5) / 301, rtol=0.02)


def test_classes_have_one_scale():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    label = np.argmax(X[:, :3] + 0.5 * rng.normal(size=(200, 3)), axis=1)
    likelihood, data, left = of_labels(X, label, 3)
    assert np.ptp(left.regression.scale) == pytest.approx(0.0, abs=1e-12)
    found = calibrate(data, left)
    p = likelihood.probability(*found.of(left.eta, left.variance))
    assert (np.argmax(p, axis=1) == label).mean() > 0.7


def test_slope_and_centre_of_rare_classes_are_found_at_once():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 40))
    label = (X[:, :10].sum(axis=1) > 5.5).astype(float)
    assert 10 < label.sum() < 30
    _, data, left = of_labels(X, label, 2)

    def loss(slope, centre):
        score, _ = data.likelihood.log_predictive(
            data.values, centre + slope * (left.eta - left.regression.mean), left.variance
        )
        return -score.sum()

    found = calibrate(data, left)
    best = loss(found.slope, found.centre)
    alone = min(loss(slope, found.bias) for slope in np.geomspace(0.3, 30.0, 30))
    assert best < 0.9 * alone
    for factor in (0.5, 2.0):
        assert loss(factor * found.slope, found.centre) > best
        assert loss(found.slope, factor * found.centre) > best


def test_two_classes_have_the_scale_of_ones_and_zeros():
    X, t, _ = problem(300, 5, 1)
    _, _, ones = of_ones(X, t)
    _, _, classes = of_labels(X, t[:, 0], 2)
    np.testing.assert_allclose(classes.regression.scale, ones.regression.scale[0], rtol=0.15)


@pytest.mark.parametrize("likelihood", [Bernoulli(3), Multinomial(3)])
def test_the_slope_of_a_log_probability_is_its_derivative(likelihood):
    rng = np.random.default_rng(6)
    mean, variance = rng.normal(size=(20, 3)), rng.uniform(0.1, 4.0, size=(20, 3))
    targets = np.eye(3)[rng.integers(3, size=20)]
    step = 1e-5 * np.eye(3)
    moved = [
        sum(
            sign * likelihood.log_predictive(targets, mean + sign * one, variance)[0].sum(axis=1)
            for sign in (1.0, -1.0)
        )
        for one in step
    ]
    slope = likelihood.log_predictive(targets, mean, variance)[1]
    np.testing.assert_allclose(slope, np.stack(moved, axis=1) / 2e-5, rtol=1e-4, atol=1e-6)
