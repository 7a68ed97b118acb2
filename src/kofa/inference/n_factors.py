"""How many factors: fewer where the bound is higher without them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kofa import tuning
from kofa.inference.engine import Engine
from kofa.inference.loop import iterate, kept, run
from kofa.inference.run import Callback, Iteration, Journal, Plan, Run
from kofa.inference.start import prepare_and_start
from kofa.linalg import IntArray


def ascend(engine: Engine, plan: Plan, begin: Run, notify: Callback, journal: Journal) -> Run:
    """From one state to the end, with as few factors as the bound likes.

    The weak factors go first where the bound is nearly still: to wait for each digit of theirs
    takes most of the iterations.
    """
    if plan.exact:
        return run(engine, plan, begin, notify, journal)
    found, least = run(engine, _stage(plan, tuning.EARLY_TOL), begin, notify, journal), 0
    found, _ = with_fewer(engine, _stage(plan, tuning.EARLY_TOL), found, notify, journal)
    for stage in (_stage(plan, tuning.COARSE_TOL), plan):
        if found.converged and not found.stopped:
            found = _after(found, _run_on(engine, stage, found, notify, journal))
        # What was too few where the bound was nearly still is so at the end; the weakest is asked.
        least = min(least, found.n_factors - 2)
        others = tuning.NEXT_WEAKEST if stage is plan else 0
        found, least = with_fewer(engine, stage, found, notify, journal, least, others)
    return found


def _stage(plan: Plan, times: float) -> Plan:
    """Until one iteration gains less than so many times the tolerance."""
    tol = times * plan.settings.tol
    return replace(plan, settings=replace(plan.settings, tol=tol, patience=1))


def with_fewer(
    engine: Engine,
    plan: Plan,
    found: Run,
    notify: Callback,
    journal: Journal,
    least: int = 0,
    others: int = 0,
) -> tuple[Run, int]:
    """Leave out weak factors as long as the bound is higher without them.

    Coordinate ascent keeps factors that explain noise, or takes thousands of iterations to shrink
    them to zero, though the bound is higher without. More than `least` are left; also returned is
    the largest number that was too small. Where the weakest stay, so many `others` are tried.
    """
    while found.converged and not found.stopped:
        trial, least = _without_weakest(engine, plan, found, least)
        if trial is None:
            trial = _without_another(engine, plan, found, others)
        if trial is None or not _is_better(engine, plan, found, trial):
            break
        found = _accepted(engine, plan, found, trial, notify)
        if not found.stopped:
            found = _after(found, _run_on(engine, plan, found, notify, journal))
    return found, least


def _is_better(engine: Engine, plan: Plan, found: Run, trial: _Trial) -> bool:
    """Whether the bound is higher than that of all factors after as many more iterations."""
    rival, on_trial = found, _on_trial(engine, plan)
    for _ in trial.end.history:
        rival = iterate(engine, on_trial, rival, _no_callback)
    return trial.bound > rival.lower_bound


def _accepted(engine: Engine, plan: Plan, found: Run, trial: _Trial, notify: Callback) -> Run:
    """The run as it goes on with a trial, of which the callback hears now, and may stop it."""
    before = len(found.history)
    for n, iteration in enumerate(trial.end.history, 1):
        if notify(replace(iteration, n_iter=before + n)):
            end = trial.begin
            for _ in range(n):  # the same again, up to where it stops
                end = iterate(engine, _on_trial(engine, plan), end, _no_callback)
            return replace(_after(_changed(found), end), stopped=True, converged=False)
    return _after(_changed(found), trial.end)


def _without_weakest(
    engine: Engine, plan: Plan, found: Run, least: int
) -> tuple[_Trial | None, int]:
    """The best trial without the weaker half, quarter, … of the factors, if any is."""
    best, size = None, found.n_factors // 2
    while size:
        number, size = found.n_factors - size, size // 2
        if number <= least:
            continue
        trial = _trial(engine, plan, found, np.arange(number))
        if best is not None and (trial is None or trial.bound < best.bound):
            break
        best, least = trial, number if trial is None else least
    return best, least


def _without_another(engine: Engine, plan: Plan, found: Run, n: int) -> _Trial | None:
    """The first trial without one of the `n` next weakest factors, if the bound is higher.

    What is left has to take over from a factor, and from the weakest it may take it far longer.
    """
    factors = np.arange(found.n_factors)
    for weak in factors[-1 - n : -1][::-1]:
        trial = _trial(engine, plan, found, np.delete(factors, weak))
        if trial is not None:
            return trial
    return None


@dataclass(frozen=True, eq=False)
class _Trial:
    """Some iterations with fewer factors."""

    begin: Run
    end: Run

    @property
    def bound(self) -> float:
        return self.end.lower_bound


def _trial(engine: Engine, plan: Plan, found: Run, factors: IntArray) -> _Trial | None:
    """Some iterations with these factors only, or None if the bound will hardly be higher."""
    fewer, last = kept(engine, found, factors), -np.inf
    now = begin = Run(fewer.state, fewer.Z)
    on_trial = _on_trial(engine, plan)
    for _ in range(tuning.TRIAL_ITERATIONS):
        now = iterate(engine, on_trial, now, _no_callback)
        gap = found.lower_bound - now.lower_bound
        if (now.converged and on_trial is plan) or tuning.TRIAL_ITERATIONS * (
            now.lower_bound - last
        ) < gap:
            break
        last = now.lower_bound
    return _Trial(begin, now) if now.lower_bound > found.lower_bound else None


def _on_trial(engine: Engine, plan: Plan) -> Plan:
    """At the end of a fit curvature ratios follow each iteration of a trial.

    With those of more factors, which are larger, the bound of fewer looks too low.
    """
    if plan.settings.patience == 1 or not any(engine.likelihoods.values()):
        return plan
    return replace(plan, settings=replace(plan.settings, patience=0))


def _run_on(engine: Engine, plan: Plan, found: Run, notify: Callback, journal: Journal) -> Run:
    """From where a run ended, with the iterations that it has left."""
    before = len(found.history)

    def tell(iteration: Iteration) -> object:
        return notify(replace(iteration, n_iter=before + iteration.n_iter))

    left = replace(plan.settings, max_iter=max(1, plan.settings.max_iter - before))
    begin = Run(
        found.state,
        found.Z,
        turn=tuning.LATER_ROTATION,
        trail=found.trail,
        floor=found.floor,
    )
    return run(engine, replace(plan, settings=left), begin, tell, journal)


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

    Tried is the direction that the factors leave most of, with the curvature ratios that were
    found, until the bound is higher, or stands still, or a factor goes again.
    """
    Z, _ = engine.project(found.state)
    Z = engine.with_residual_direction(found.state, Z, rng)
    _, begin = prepare_and_start(engine, plan.roles, Z)
    now = Run({name: replace(view, rho=found.state[name].rho) for name, view in begin.items()}, Z)
    for _ in range(tuning.CEILING_ITERATIONS):
        now = iterate(engine, plan, now, _no_callback)
        if now.n_factors <= found.n_factors or now.converged:
            break
        if now.lower_bound > found.lower_bound:
            return True
    return False


def _no_callback(_: Iteration) -> bool:
    return False
