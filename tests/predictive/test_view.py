"""Cells given the rest of their row, and rows of the fit as if they were left out."""

from __future__ import annotations

import numpy as np
import pytest

import kofa
from kofa.data.tables import Table
from kofa.predictive.calibration import Calibration
from kofa.predictive.inputs import Inputs, Source
from kofa.predictive.observed import Observed
from kofa.predictive.regression import Regression, regress
from kofa.predictive.residuals import Covariance
from kofa.predictive.tangent import regress as regress_eta
from kofa.predictive.view import Known, ViewFromOthers

N, D = 40, 3


def drawn(kind, rng, holes=0.0):
    """Features, the view as encoded, and what follows from them."""
    x = rng.normal(size=(N, 6))
    y = x @ rng.normal(size=(6, D)) + rng.normal(size=(N, D))
    y = y if kind is kofa.Real else (y > 0).astype(float)
    y[rng.random(y.shape) < holes] = np.nan
    likelihood = kind.likelihood.resolve(Table("y", y))
    own = Observed.of(likelihood.encode(y), likelihood)
    return x, own, Inputs.alike(N, {"x": Source.of(x)})


def each_cell(inputs, regression, calibration, x, own):
    none = np.zeros(N, dtype=bool)
    alone = Covariance(np.ones(D), np.zeros((D, 0)))  # no column tells of another
    view = ViewFromOthers(inputs.map, regression, alone, calibration, np.zeros(D))
    return view.each_cell(Known(N, {"x": x}, {}), own, ~none, none)


def test_residuals_are_those_of_the_regression(rng):
    x, own, inputs = drawn(kofa.Real, rng, holes=0.2)
    found = regress(inputs.spectrum, own.values, own.mask)
    mean, variance = each_cell(inputs, found, None, x, own)
    seen = own.mask
    np.testing.assert_allclose((own.values - mean)[seen], found.left_out[seen], rtol=1e-6)
    np.testing.assert_allclose(np.sqrt(variance)[seen], found.left_out_std[seen], rtol=1e-6)


def test_so_is_what_is_expected_of_ones_and_zeros(rng):
    x, own, inputs = drawn(kofa.Binary, rng)
    kappa = np.broadcast_to(own.likelihood.curvature, (D,))
    left = regress_eta(inputs.spectrum, own.tangent, kappa, own.mask, False, own.typical, loss=None)
    as_it_is = Calibration(1.0, np.zeros(D), np.zeros(D), np.zeros(D))
    eta, variance = each_cell(inputs, left.regression, as_it_is, x, own)
    np.testing.assert_allclose(eta[own.mask], left.eta[own.mask], atol=1e-5)
    np.testing.assert_allclose(variance[own.mask], left.variance[own.mask], rtol=1e-5)


# ---------------------------------------------------------------- two columns, by integration

MEAN, SPREAD, SHARED = np.array([0.4, -0.3]), np.array([0.8, 1.2]), 0.6  # of η, and its covariance
NOISE = 1.5
KNOWN = {
    kofa.Real: [-1.0, 0.3, 2.5],
    kofa.Positive: [0.3, 1.0, 4.0],
    kofa.Binary: [0.0, 1.0],
    kofa.Count: [0.0, 1.0, 6.0],
}


def of_two(kind):
    """A view of two columns about which no other view says more than η ~ N(MEAN, SPREAD)."""
    values = np.array(KNOWN[kind])
    y = np.stack([values, values], axis=1)
    likelihood = kind.likelihood.resolve(Table("y", y))
    gaussian = likelihood.curvature is None
    # No row has said anything: all that is not known of η is that of the mean.
    none, one = np.zeros((0, 2)), np.ones(2)
    regression = Regression(
        np.zeros(0), 1, MEAN, NOISE * one, NOISE / SPREAD, one, none, none, none
    )
    std = np.sqrt(SPREAD + NOISE)
    c = SHARED / std.prod()
    residuals = Covariance(np.full(2, 1.0 - c), np.full((2, 1), np.sqrt(c)))
    as_it_is = Calibration(1.0, np.zeros(2), np.zeros(2), np.zeros(2))
    sources = Inputs(0, {}, {}).map
    view = ViewFromOthers(
        sources, regression, residuals, None if gaussian else as_it_is, np.zeros(2)
    )
    return view, likelihood, y


def integrated(likelihood, targets):
    """Mean and variance of η of the second column given values of the first, on a fine grid."""
    grid = np.linspace(-9.0, 9.0, 1201)
    first, second = np.meshgrid(MEAN[0] + grid, MEAN[1] + grid, indexing="ij")
    P = np.linalg.inv([[SPREAD[0], SHARED], [SHARED, SPREAD[1]]])
    a, b = first - MEAN[0], second - MEAN[1]
    log_prior = -0.5 * (P[0, 0] * a**2 + 2.0 * P[0, 1] * a * b + P[1, 1] * b**2)
    for target in targets:
        if likelihood.curvature is None:
            log_p = -0.5 * (target - grid - MEAN[0]) ** 2 / NOISE
        else:
            eta = np.stack([grid + MEAN[0], grid], axis=1)
            log_p = likelihood.tangent(np.full(eta.shape, target), eta)[0][:, 0]
        p = np.exp(log_prior + log_p[:, None])
        p /= p.sum()
        mean = (p * second).sum()
        yield mean, (p * (second - mean) ** 2).sum()


@pytest.mark.parametrize("kind", KNOWN)
def test_a_column_given_another_is_that_of_integration(kind):
    """Means to four digits: by twelve nodes. Variances exact where the view is Gaussian.

    Where it is not, a value is taken to say something of the mean of the others only. So their
    variance is too large, by what the value would say if it was as sharp as it can be at most.
    """
    view, likelihood, y = of_two(kind)
    targets = likelihood.encode(y)
    own = Observed.of(np.where([True, False], targets, np.nan), likelihood)
    mean, variance = view.layer(Known(len(y), {}, {}), own)
    exact = np.array(list(integrated(likelihood, targets[:, 0])))
    np.testing.assert_allclose(mean[:, 1], exact[:, 0], atol=1e-4)
    if likelihood.curvature is None:
        np.testing.assert_allclose(variance[:, 1], exact[:, 1] + NOISE, rtol=1e-6)
        return
    sharpest = 1.0 / np.broadcast_to(likelihood.curvature, 2)[0]
    assert (variance[:, 1] >= exact[:, 1]).all()
    assert (variance[:, 1] <= exact[:, 1] + SHARED**2 / (SPREAD[0] + sharpest) + 1e-6).all()
    if likelihood.has("probability"):
        layers = np.stack([mean[:, 1], variance[:, 1]]), exact.T
        p = [likelihood.probability(*np.repeat(one[:, :, None], 2, axis=2)) for one in layers]
        np.testing.assert_allclose(*p, atol=0.02)
