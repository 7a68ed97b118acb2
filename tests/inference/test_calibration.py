"""How far predictions that are not Gaussian may be trusted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kofa.inference.calibration import calibrate, overdispersion
from scipy.special import ndtr

from conftest import core
from kofa.engines.memory import InMemory
from kofa.inference.global_step import update_weights
from kofa.inference.observations import Observations, Rows
from kofa.inference.posterior import Known
from kofa.inference.role import Role
from kofa.inference.statistics import centred
from kofa.inference.surrogate import refine
from kofa.likelihoods import Bernoulli, Poisson


def at_optimum(engine, name, view, s, Z):
    """A view with the weights of the highest bound, given Z."""
    weights = update_weights(s, view.alpha.mean, view.column_precision, view.precision)
    view = replace(view, weights=weights)
    return replace(view, weights=refine(view, s, lambda w: engine.surrogate_sums(name, w, Z)))


def of_ones(rng, n=500):
    """An engine of x and ones that follow it, and a state in which both are known well."""
    Z = rng.standard_normal((n, 2))
    x = Z @ rng.standard_normal((2, 6)) + 0.05 * rng.standard_normal((n, 6))
    t = (Z @ np.array([[2.0, 0.0, 1.0], [0.0, 1.5, 1.0]]) - 0.5 > rng.standard_normal((n, 3))) * 1.0
    engine, state, Z = core([x, t], [Role("x"), Role("t")], 2, likelihoods=[None, Bernoulli(3)])
    view = replace(state["t"], alpha=Known(np.full(2, 0.1)))
    s = centred(engine.summarise(Z))["t"]
    return engine, {**state, "t": at_optimum(engine, "t", view, s, Z)}, t


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_weights_that_are_too_small_or_large_are_made_up_for(rng, factor):
    engine, state, _ = of_ones(rng)
    view = state["t"]
    scaled = replace(view, weights=replace(view.weights, mean=factor * view.weights.mean))
    plain, found = (calibrate(engine, {**state, "t": v}, "t", ["x"], rng) for v in (view, scaled))
    assert found.sharpness * factor == pytest.approx(plain.sharpness, rel=0.15)


def test_probabilities_have_the_rate_of_their_column(rng):
    engine, state, t = of_ones(rng)
    found = calibrate(engine, state, "t", ["x"], rng)
    Z, _ = engine.part(["x"]).project(state)
    w = state["t"].weights
    eta = found.centre + found.sharpness * (w.predict(Z) - w.y_mean)
    np.testing.assert_allclose(ndtr(eta).mean(axis=0), t.mean(axis=0), atol=0.01)


def test_factors_that_say_nothing_are_ignored(rng):
    engine, state, _ = of_ones(rng)
    noise = (rng.random((500, 3)) < 0.3) * 1.0
    other = Observations.from_values(noise, Bernoulli(3))
    changed = InMemory(Rows.stack({"x": engine.rows.views["x"], "t": other}))
    found = calibrate(changed, state, "t", ["x"], rng)
    assert found.sharpness < 0.25


def test_nothing_is_known_without_samples_that_have_both(rng):
    engine, state, t = of_ones(rng)
    x = engine.rows.views["x"].values.copy()
    x[:250], t[250:] = np.nan, np.nan
    apart = Rows.stack(
        {"x": Observations.from_values(x), "t": Observations.from_values(t, Bernoulli(3))}
    )
    found = calibrate(InMemory(apart), state, "t", ["x"], rng)
    assert (found.sharpness, found.centre) == (1.0, None)


@pytest.mark.parametrize("variance", [0.0, 0.3])
@pytest.mark.parametrize("wild", [0.0, 0.01])
def test_overdispersion_of_counts_is_found(rng, variance, wild):
    Z = rng.standard_normal((600, 1))
    W = np.array([[0.6, -0.4]])
    eta = 1.0 + Z @ W + np.sqrt(variance) * rng.standard_normal((600, 2))
    t = rng.poisson(20.0 * np.logaddexp(0.0, eta)).astype(float)
    kind = Poisson(np.full(2, 20.0), t.max(axis=0))
    t[rng.random(t.shape) < wild] += 200.0
    engine, state, _ = core([t], [Role("t")], 1, likelihoods=[kind])
    s = centred(engine.summarise(Z))["t"]
    view = replace(state["t"], alpha=Known(np.full(1, 0.1)))
    view = at_optimum(engine, "t", view, s, Z)
    found = overdispersion(engine.rows.views["t"], view, Z, 1.0)
    np.testing.assert_allclose(found, variance, atol=0.08)
