"""The loop: start, sweeps, rotation, stopping. No equations."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kofa import tuning
from kofa.inference.acceleration import Trail
from kofa.inference.bound import Bound, elbo
from kofa.inference.engine import Engine, Latents
from kofa.inference.global_step import global_step
from kofa.inference.order import by_strength
from kofa.inference.posterior import State, keep, lean
from kofa.inference.pruning import informative
from kofa.inference.rotation import rotate
from kofa.inference.run import Callback, Iteration, Journal, Plan, Run
from kofa.inference.statistics import Statistics, ViewStatistics, centred
from kofa.inference.surrogate import cubature_steps, rounded_away, update_curvature_ratio
from kofa.linalg import IntArray

logger = logging.getLogger("kofa")


def run(engine: Engine, plan: Plan, begin: Run, notify: Callback, journal: Journal) -> Run:
    """Coordinate ascent from one state until the bound stands still."""
    settings = plan.settings
    now = journal.resume() or begin
    if not (now.ended and now.finished(settings)):
        while not now.finished(settings):
            now = iterate(engine, plan, now, notify)
            journal.reached(now)
        ordered = kept(engine, now, by_strength(now.state))
        now = replace(ordered, floor=now.floor, ended=True)
        journal.ended(now)
    # The journal does not know of this sweep: a run that is given more iterations goes on from
    # before it.
    return _with_own_bound(engine, now) if now.pruned else now


def kept(engine: Engine, now: Run, factors: IntArray) -> Run:
    """Without all factors but these."""
    if np.array_equal(factors, np.arange(now.n_factors)):
        return replace(now, floor=-np.inf)
    return replace(
        now,
        state=keep(now.state, factors),
        Z=engine.keep(now.Z, factors),
        trail=now.trail.keep(factors),
        floor=-np.inf,
    )


def _with_own_bound(engine: Engine, now: Run) -> Run:
    """After a last iteration that pruned: one more sweep, so that the bound is of what is left."""
    step = one_step(engine, now.state, now.Z)
    last = replace(
        now.history[-1], lower_bound=step.bound.total, terms=step.bound.named, factors_changed=True
    )
    return replace(now, state=step.end, Z=step.Z, history=(*now.history[:-1], last))


def iterate(engine: Engine, plan: Plan, now: Run, notify: Callback) -> Run:
    """One iteration: the local and the global step, and what is due besides."""
    step = _step_ahead(engine, plan, now)
    if step is None:
        now = replace(now, trail=now.trail.last())
        step = one_step(engine, now.state, now.Z)
    stats, state = step.stats, step.end
    telling = informative(state, stats.n_samples)
    trail = now.trail if plan.exact else now.trail.after(now.state, step.begin, state)
    now = _recorded(plan, now, step.bound, stats, len(telling), notify)
    now = replace(now, state=state, Z=step.Z, trail=trail, floor=step.bound.total)
    if now.converged and any(engine.likelihoods.values()):
        now = _with_curvature_ratios(engine, now, step)
    if now.pruned:
        return kept(engine, now, telling)
    if plan.settings.rotate and not now.converged:
        return _rotated(engine, now, stats)
    return now


@dataclass(frozen=True, eq=False)
class Step:
    """The local and the global step from one state."""

    begin: State
    end: State
    Z: Latents
    stats: Statistics
    views: Mapping[str, ViewStatistics]
    bound: Bound


def one_step(engine: Engine, begin: State, Z: Latents) -> Step:
    """The local and the global step, and the bound after them."""
    stats, Z = engine.sweep(begin, Z)
    views = centred(stats)
    stats = stats.of_samples()
    end = global_step(begin, views)
    bound = elbo(end, stats, views)
    return Step(begin, lean(end), Z, stats, views, bound)


def _step_ahead(engine: Engine, plan: Plan, now: Run) -> Step | None:
    """The step from where the last iterations lead, if the bound does not fall by it.

    The bound of views that are exact has too few digits to tell.
    """
    known = np.isfinite(now.floor) and not plan.exact
    ahead = now.trail.ahead(now.state) if known else None
    if ahead is None:
        return None
    try:
        with np.errstate(all="ignore"):  # far away numbers may overflow: then it is not taken
            step = one_step(engine, ahead, now.Z)
    except np.linalg.LinAlgError:
        return None
    return step if step.bound.total >= now.floor else None


def _recorded(
    plan: Plan, now: Run, bound: Bound, stats: Statistics, n_factors: int, notify: Callback
) -> Run:
    """With one iteration more, and whether the bound stands still."""
    pruned = n_factors < len(stats.z_sum)
    iteration = Iteration(len(now.history) + 1, bound.total, bound.named, n_factors, now.pruned)
    stopped = bool(notify(iteration))
    watched = plan.watched(bound)
    enough = plan.settings.tol * stats.n_samples
    enough += bound.rounding if enough else 0.0  # a tolerance of zero is never met by rounding
    slow = abs(watched - now.watched) <= enough
    quiet = now.quiet + 1 if slow and not pruned else 0
    return replace(
        now,
        history=(*now.history, iteration),
        watched=watched,
        quiet=quiet,
        converged=plan.settled or quiet >= plan.settings.patience,
        stopped=stopped,
        ended=False,
        pruned=pruned,
    )


def _with_curvature_ratios(engine: Engine, now: Run, step: Step) -> Run:
    """Let the variances in each view that is not Gaussian count as the likelihood has it.

    Where they already did, up to rounding of the ratios, the state stays, and with it its bound:
    the run has converged. Done where the loop stands still: on the way there, weights that are
    still too large would make every curvature look small.
    """
    updated = dict(now.state)
    for name, fall in _falls(engine, step).items():
        updated[name] = update_curvature_ratio(now.state[name], step.views[name], fall)
    if all(new.rho == now.state[name].rho for name, new in updated.items()):
        return replace(now, quiet=0)
    return replace(now, state=updated, quiet=0, converged=False, trail=Trail(), floor=-np.inf)


def _falls(engine: Engine, step: Step) -> dict[str, float]:
    """Of each view that is not Gaussian: how far its likelihood falls where z is uncertain."""
    found = {}
    for name, likelihood in engine.likelihoods.items():
        if likelihood is not None:
            view = step.end[name]
            steps = cubature_steps(view, step.views[name], likelihood.competing)
            found[name] = engine.expected_drop(name, view.weights, steps, step.Z)
    return found


def expected_bound(engine: Engine, now: Run) -> float:
    """The bound after one more step, with the expectations of likelihoods that are not Gaussian.

    The bound of the loop has curvature ratios in their place, which are rounded up. Of many samples
    that is thousands of nats, by which factors may seem to gain that have none.
    """
    step = one_step(engine, now.state, now.Z)
    falls = _falls(engine, step).items()
    return step.bound.total + sum(
        rounded_away(step.end[n], step.views[n], fall) for n, fall in falls
    )


def _rotated(engine: Engine, now: Run, stats: Statistics) -> Run:
    """After the rotation that raises the bound most, if it is time for one."""
    n_iter = len(now.history)
    if n_iter < now.turn:
        return now
    state, change = rotate(now.state, stats)
    turn = tuning.ROTATION_PACE * n_iter
    Z, trail = engine.rotate(now.Z, *change), now.trail.rotated(change[0])
    return replace(now, state=state, Z=Z, trail=trail, turn=turn)
