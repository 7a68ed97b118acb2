"""How many factors: fewer where the bound is higher without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kofa import tuning
from kofa.inference.engine import Engine
from kofa.inference.loop import iterate, kept, run
from kofa.inference.run import Callback, Iteration, Journal, Plan, Run
from kofa.inference.start import prepare_and_start


def ascend(engine: Engine, plan: Plan, begin: Run, notify: Callback, journal: Journal) -> Run:
    """From one state to the end, with as few factors as the bound likes.

    The weak factors go first where the bound is nearly still: to wait for each digit of theirs
    takes most of the iterations.
    """
    if plan.exact:
        return run(engine, plan, begin, notify, journal)
    coarse = replace(
        plan, settings=replace(plan.settings, tol=tuning.COARSE_TOL * plan.settings.tol)
    )
    found = run(engine, coarse, begin, notify, journal)
    found = with_fewer(engine, coarse, found, notify, journal)
    if found.converged:
        found = _after(found, _run_on(engine, plan, found, notify, journal))
    return with_fewer(engine, plan, found, notify, journal)


def with_fewer(engine: Engine, plan: Plan, found: Run, notify: Callback, journal: Journal) -> Run:
    """Leave out weak factors as long as the bound is higher without them.

    Coordinate ascent keeps factors that live on noise, or takes thousands of iterations to let them
    fade, though the bound is better off without.
    """
    while found.converged:
        trial = _fewer(engine, plan, found)
        if trial is None:
            break
        for iteration in trial.history:
            notify(replace(iteration, n_iter=len(found.history) + iteration.n_iter))
        found = _after(_changed(found), trial)
        found = _after(found, _run_on(engine, plan, found, notify, journal))
    return found


def _fewer(engine: Engine, plan: Plan, found: Run) -> Run | None:
    """The best start of a run without the weaker half, quarter, … of the factors, if any is."""
    best, size = None, found.n_factors // 2
    while size:
        fewer = kept(engine, found, np.arange(found.n_factors - size))
        trial = _trial(engine, plan, Run(fewer.state, fewer.Z), found)
        if best is not None and (trial is None or trial.lower_bound < best.lower_bound):
            break
        best, size = trial, size // 2
    return best


def _trial(engine: Engine, plan: Plan, now: Run, found: Run) -> Run | None:
    """Some iterations from another state, or None if its bound will hardly be higher."""
    last = -np.inf
    for _ in range(tuning.TRIAL_ITERATIONS):
        now = iterate(engine, plan, now, _no_callback)
        gap = found.lower_bound - now.lower_bound
        if now.converged or tuning.TRIAL_ITERATIONS * (now.lower_bound - last) < gap:
            break
        last = now.lower_bound
    return now if now.lower_bound > found.lower_bound else None


def _run_on(engine: Engine, plan: Plan, found: Run, notify: Callback, journal: Journal) -> Run:
    """From where a run ended, with the iterations that it has left."""
    before = len(found.history)

    def tell(iteration: Iteration) -> object:
        return notify(replace(iteration, n_iter=before + iteration.n_iter))

    left = replace(plan.settings, max_iter=max(1, plan.settings.max_iter - before))
    return run(engine, replace(plan, settings=left), Run(found.state, found.Z), tell, journal)


def _changed(found: Run) -> Run:
    """With fewer factors from here on."""
    return replace(found, history=(*found.history[:-1], replace(found.history[-1], pruned=True)))


def _after(found: Run, more: Run) -> Run:
    """Two runs as one."""
    before = len(found.history)
    later = (replace(iteration, n_iter=before + iteration.n_iter) for iteration in more.history)
    return replace(more, history=(*found.history, *later))


def wants_more(engine: Engine, plan: Plan, found: Run, rng: np.random.Generator) -> bool:
    """Whether the bound would be higher with one factor more.

    Both begin again from the factors that were found, with and without the direction that these
    leave most of, and have the same number of iterations.
    """
    as_many, _ = engine.project(found.state)
    one_more = engine.with_residual_direction(found.state, as_many, rng)
    bounds = []
    for Z in (as_many, one_more):
        now = Run(prepare_and_start(engine, plan.roles, Z)[1], Z)
        for _ in range(tuning.TRIAL_ITERATIONS):
            now = iterate(engine, plan, now, _no_callback)
        bounds.append(now.lower_bound)
    return bounds[1] > bounds[0]


def _no_callback(_: Iteration) -> bool:
    return False
