"""Cells of rows of the fit are answered as if their rows were left out."""

from __future__ import annotations

import numpy as np

import kofa
from kofa.data.tables import Table
from kofa.predictive.calibration import Calibration
from kofa.predictive.inputs import Inputs, Source
from kofa.predictive.observed import Observed
from kofa.predictive.regression import regress
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
