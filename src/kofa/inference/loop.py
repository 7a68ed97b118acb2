"""The loop: start, sweeps, rotation, stopping. No equations."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from kofa import tuning
from kofa.inference.bound import elbo
from kofa.inference.engine import Engine, Latents
from kofa.inference.global_step import global_step
from kofa.inference.order import by_strength
from kofa.inference.posterior import State
from kofa.inference.pruning import informative
from kofa.inference.rotation import rotate
from kofa.inference.run import Callback, Iteration, Journal, Plan, Run
from kofa.inference.statistics import ViewStatistics, centred
from kofa.inference.surrogate import cubature_steps, update_curvature_ratio
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
        now = replace(kept(engine, now, by_strength(now.state)), ended=True)
        journal.ended(now)
    # Not told to the journal: a run that is given more iterations goes on from before.
    return _with_own_bound(engine, plan, now) if now.history[-1].pruned else now


def kept(engine: Engine, now: Run, factors: IntArray) -> Run:
    """Without all factors but these."""
    state = tuple(view.keep(factors) for view in now.state)
    return replace(now, state=state, Z=engine.keep(now.Z, factors))


def _with_own_bound(engine: Engine, plan: Plan, now: Run) -> Run:
    """After a last iteration that pruned: one more sweep, so that the bound is of what is left."""
    stats, Z = engine.sweep(now.state, now.Z)
    views = centred(stats)
    state = global_step(now.state, views)
    total, terms = plan.total(elbo(state, stats, views))
    last = replace(now.history[-1], lower_bound=total, terms=terms)
    return replace(now, state=state, Z=Z, history=(*now.history[:-1], last))


def iterate(engine: Engine, plan: Plan, now: Run, notify: Callback) -> Run:
    """One iteration: the local and the global step, and what is due besides."""
    n_iter, turn, settings = len(now.history) + 1, now.turn, plan.settings
    stats, Z = engine.sweep(now.state, now.Z)
    views = centred(stats)
    state = global_step(now.state, views)
    bound = elbo(state, stats, views)
    keep = informative(state, stats.n_samples)
    pruned = len(keep) < len(stats.z_sum)
    total, terms = plan.total(bound)
    iteration = Iteration(n_iter, total, terms, len(keep), pruned)
    stopped = bool(notify(iteration))
    watched = plan.watched(bound)
    slow = abs(watched - now.watched) <= settings.tol * stats.n_samples
    quiet = now.quiet + 1 if slow and not pruned else 0
    converged = quiet >= tuning.PATIENCE
    if converged and any(engine.likelihoods):
        state, converged = _update_curvature_ratios(engine, state, Z, views)
        quiet = 0
    if pruned:
        state, Z = tuple(view.keep(keep) for view in state), engine.keep(Z, keep)
    over = converged or stopped
    if settings.rotate and not (pruned or over) and n_iter >= turn:
        state, change = rotate(state, stats)
        Z = engine.rotate(Z, *change)
        turn = tuning.ROTATION_PACE * n_iter
    history = (*now.history, iteration)
    return Run(state, Z, history, watched, quiet, turn, converged, stopped)


def _update_curvature_ratios(
    engine: Engine, state: State, Z: Latents, views: Sequence[ViewStatistics]
) -> tuple[State, bool]:
    """Let the variances in each view that is not Gaussian count as the likelihood has it.

    Also whether they already did, all but; then the state stays, and with it its bound. Done where
    the loop stands still: on the way there, weights that are still too large would make every
    curvature look small.
    """
    updated = list(state)
    for m, likelihood in enumerate(engine.likelihoods):
        if likelihood is not None:
            steps = cubature_steps(state[m], views[m], likelihood.competing)
            fall = engine.expected_drop(m, state[m].weights, steps, Z)
            updated[m] = update_curvature_ratio(state[m], views[m], fall)
    change = max(old.rho - new.rho for old, new in zip(state, updated, strict=True))
    return (state, True) if change < tuning.CURVATURE_RATIO_TOL else (tuple(updated), False)
