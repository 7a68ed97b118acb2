"""Several starts, and the best of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from kofa.inference.acceleration import Trail
from kofa.inference.engine import Engine
from kofa.inference.loop import logger
from kofa.inference.n_factors import from_some, wants_more
from kofa.inference.order import in_order
from kofa.inference.posterior import State, ViewPosterior, n_factors_of
from kofa.inference.role import Role
from kofa.inference.run import Callback, Journal, Plan, Run, Settings
from kofa.inference.start import (
    affordable,
    in_random_rotation,
    n_column_groups,
    prepare_and_start,
    some_samples,
    spectral,
    start,
)
from kofa.inference.starts import Starts
from kofa.linalg import threads_for

# Other starts than the first are at the factors that this share of the columns shows. (Bounds of
# four more starts less that of the first, 10 factors of breast cancer data: 86, 266, 266, −45 nats;
# with half of the columns 86, −65, −65, 0; in random rotations of the first one all 0.)
_OF_COLUMNS = 1.0 / 3.0


def best_of(
    engine: Engine,
    roles: Mapping[str, Role],
    settings: Settings,
    n_init: int,
    rng: np.random.Generator,
    notify: Callback,
    journal: Journal,
) -> Run:
    """Run from several starts, the highest bound wins."""
    if settings.free:
        most = affordable(n_column_groups(engine), settings.n_factors)
        settings = replace(settings, n_factors=most)
    # Of kernels that are complete and have no noise the factors are those that a run starts from.
    settled = engine.n_patterns == 1 and all(role.exact for role in roles.values())
    return _best_start(engine, Plan(roles, settings, settled), n_init, rng, notify, journal)


def _best_start(
    engine: Engine,
    plan: Plan,
    n_init: int,
    rng: np.random.Generator,
    notify: Callback,
    journal: Journal,
    first: int = 0,
) -> Run:
    """The run with the highest bound, of several starts, which count from the `first`.

    Where a pass visits many samples, the factors of some are found first.
    """
    engine = engine.condensed()
    some = some_samples(engine, plan.roles, rng)
    if some is None:
        return _best_of_starts(engine, plan, n_init, rng, notify, journal, first)
    found = _best_of_starts(some, plan, n_init, rng, _unheard, Journal())
    logger.info("%d samples: %d factors", some.n_samples, found.n_factors)
    with threads_for(engine.size * plan.settings.n_factors):
        best = journal.begin() or from_some(engine, plan, found, rng, notify, journal)
        journal.end(best)
    return in_order(engine, _with_factors(engine, best))


def _unheard(_: object) -> bool:
    return False


def _with_factors(engine: Engine, run: Run) -> Run:
    """With the factors of the samples, which a checkpoint keeps of few starts."""
    if len(run.Z) == engine.n_samples:
        return run
    return replace(run, Z=engine.project(run.state)[0])


def _best_of_starts(
    engine: Engine,
    plan: Plan,
    n_init: int,
    rng: np.random.Generator,
    notify: Callback,
    journal: Journal,
    first: int = 0,
) -> Run:
    """The same with all samples from the first iteration on."""
    settings = plan.settings
    best: Run | None = None
    work = engine.size * settings.n_factors
    # A kernel has a long tail of weak directions and would always like more.
    kernelized = any(role.kernelized for role in plan.roles.values())
    above_noise = settings.free or not (plan.exact or kernelized)
    with threads_for(work):
        Z = leading = spectral(engine, settings.n_factors, rng, above_noise)
        prepared, state = prepare_and_start(engine, plan.roles, Z)
    if n_init == 1:  # no other start needs the priors: theirs take memory
        prepared = state
    starts = Starts(engine, plan, leading)

    def begins() -> Iterator[Run]:
        yield Run(state, Z)
        for _ in range(1, n_init):
            yield _from_some_columns(engine, prepared, state, rng, work)

    candidates = starts.runs(begins(), n_init, first, notify, journal)
    for nth, candidate in enumerate(candidates, first):
        n_iter = len(candidate.history)
        logger.info("start %d: bound %.6g, %d iterations", nth, candidate.lower_bound, n_iter)
        if best is None or candidate.lower_bound > best.lower_bound:
            best = candidate
        if candidate.stopped:
            break
    assert best is not None
    best = in_order(engine, _with_factors(engine, replace(best, trail=Trail())))
    at_ceiling = best.n_factors == settings.n_factors and not (plan.exact or kernelized)
    if at_ceiling and best.converged and wants_more(engine, plan, best, rng):
        best = replace(best, hit_ceiling=True)
    return best


def _from_some_columns(
    engine: Engine, prepared: State, first: State, rng: np.random.Generator, work: float
) -> Run:
    """Where another start begins: at factors as a random third of the columns shows them.

    From the factors of all columns, in any rotation, the way leads to the same end.
    """
    with threads_for(work):
        Z, _ = engine.project({name: _some_columns(view, rng) for name, view in first.items()})
        Z = in_random_rotation(engine, Z, n_factors_of(prepared), rng)
        return Run(start(engine, prepared, Z), Z)


def _some_columns(view: ViewPosterior, rng: np.random.Generator) -> ViewPosterior:
    """As if the factors had weights in some columns only, one at least."""
    chosen = rng.random(view.n_columns) < _OF_COLUMNS
    chosen[rng.integers(view.n_columns)] = True
    mean = np.where(chosen[:, None], view.weights.mean, 0.0)
    return replace(view, weights=view.weights.moved(mean=mean))
