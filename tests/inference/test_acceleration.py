"""Steps ahead: where they lead, and that the bound never falls by them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conftest import core, two_views
from kofa import tuning
from kofa.inference import loop
from kofa.inference.acceleration import Trail
from kofa.inference.posterior import Gamma, n_factors_of
from kofa.inference.role import Role
from kofa.inference.rotation import rotate
from kofa.inference.run import Plan, Run, Settings


def with_mean(state, mean):
    view = state["0"]
    return {"0": replace(view, weights=replace(view.weights, mean=mean))}


def trail_of(state, begin, step, n):
    """The trail of n plain iterations x → step(x), and where they end."""
    trail, x = Trail(), begin
    for _ in range(n):
        end = step(x)
        trail = trail.after(with_mean(state, x), with_mean(state, x), with_mean(state, end))
        x = end
    return trail, x


def one_view(rng):
    return core([two_views(rng)["x"]])[1]


def test_linear_iterations_are_solved_by_as_many_as_they_have_rates(rng):
    """x → x* + ρ (x − x*) with three rates that are well apart: five steps tell x*."""
    state = one_view(rng)
    goal = state["0"].weights.mean
    rates = np.array([0.9, 0.6, 0.2])[np.arange(goal.size).reshape(goal.shape) % 3]
    begin = goal + rng.standard_normal(goal.shape)
    trail, x = trail_of(state, begin, lambda x: goal + rates * (x - goal), 5)
    ahead = trail.ahead(with_mean(state, x))["0"].weights.mean
    assert np.abs(ahead - goal).max() < 1e-2 * np.abs(x - goal).max()


def test_steps_that_grow_are_taken_further(rng):
    """From a saddle away, not back to it."""
    state = one_view(rng)
    saddle = state["0"].weights.mean
    begin = saddle + 1e-3 * rng.standard_normal(saddle.shape)
    trail, x = trail_of(state, begin, lambda x: saddle + 1.05 * (x - saddle), 3)
    ahead = trail.ahead(with_mean(state, x))["0"].weights.mean
    np.testing.assert_allclose(ahead - saddle, (x - saddle) * (1 + 0.05 / 1.05 * 10), rtol=1e-4)


def test_one_iteration_tells_nothing(rng):
    state = one_view(rng)
    assert Trail().ahead(state) is None
    assert Trail().after(state, state, state).ahead(state) is None


def runs_from(engine, state, Z, roles, n):
    plan = Plan(roles, Settings(n_factors=3, rotate=False))
    now, found = Run(state, Z), []
    for _ in range(n):
        now = loop.iterate(engine, plan, now, lambda _: False)
        found.append(now)
    return found


def problem(rng, holes=0.2):
    views = [np.where(rng.random(y.shape) < holes, np.nan, y) for y in two_views(rng).values()]
    roles = [Role("x", noise_per_column=True), Role("y", sparse=True)]
    return *core(views, roles), {role.name: role for role in roles}


def test_bound_never_falls_and_gets_further(rng, monkeypatch):
    engine, state, Z, roles = problem(rng)
    fast = runs_from(engine, state, Z, roles, 25)
    bounds = [run.floor for run in fast if np.isfinite(run.floor)]
    assert (np.diff(bounds) >= 0).all()
    monkeypatch.setattr(Trail, "ahead", lambda *_: None)
    assert fast[-1].lower_bound > runs_from(engine, state, Z, roles, 25)[-1].lower_bound


def test_step_that_lowers_the_bound_is_not_taken(rng, monkeypatch):
    engine, state, Z, roles = problem(rng)
    before = runs_from(engine, state, Z, roles, 3)[-1]

    def far_away(_, state):
        rate = {name: view.tau.rate * 1e6 for name, view in state.items()}
        return {n: replace(v, tau=Gamma(v.tau.shape, rate[n])) for n, v in state.items()}

    monkeypatch.setattr(Trail, "ahead", far_away)
    plan = Plan(roles, Settings(n_factors=3, rotate=False))
    after = loop.iterate(engine, plan, before, lambda _: False)
    plain = loop.one_step(engine, before.state, before.Z)
    assert after.lower_bound == plain.bound.total >= before.lower_bound
    assert len(after.trail.steps) == 2  # what led there is forgotten


def test_only_the_last_iterations_are_remembered(rng):
    engine, state, Z, roles = problem(rng)
    last = runs_from(engine, state, Z, roles, 20)[-1]
    assert len(last.trail.steps) <= tuning.ACCELERATION_STEPS
    assert len(last.trail.moves) == len(last.trail.steps) - 1


def test_trail_turns_with_the_factors(rng):
    """A step of ⟨w⟩·z is the same function of the samples before and after."""
    engine, state, Z, roles = problem(rng)
    now = runs_from(engine, state, Z, roles, 4)[-1]
    stats, Z = engine.sweep(now.state, now.Z)
    _, (R, shift) = rotate(now.state, stats)
    turned = now.trail.rotated(R)
    for one, other in zip(now.trail.steps, turned.steps, strict=True):
        before = (Z - shift) @ one["x"]["mean"].T
        after = engine.rotate(Z, R, shift) @ other["x"]["mean"].T
        np.testing.assert_allclose(after, before, atol=1e-5 * np.abs(before).max())


@pytest.mark.parametrize("order", [[2, 0, 1], [1]])
def test_trail_keeps_the_factors_that_are_kept(rng, order):
    engine, state, Z, roles = problem(rng)
    now = runs_from(engine, state, Z, roles, 4)[-1]
    kept = loop.kept(engine, now, np.array(order))
    assert n_factors_of(kept.state) == len(order)
    for name in ("mean", "z_mean", "alpha"):
        step, whole = kept.trail.steps[-1]["y"][name], now.trail.steps[-1]["y"][name]
        np.testing.assert_array_equal(step, whole[..., order])
