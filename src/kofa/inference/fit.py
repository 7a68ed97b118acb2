"""Several starts, the best of them, and the outputs explained by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from kofa.inference.acceleration import Trail
from kofa.inference.bound import named_terms
from kofa.inference.engine import Engine
from kofa.inference.loop import logger
from kofa.inference.n_factors import from_some, wants_more
from kofa.inference.order import in_order
from kofa.inference.posterior import State, ViewPosterior, n_factors_of
from kofa.inference.predictive import Basis, predictive
from kofa.inference.predictor import blur_in
from kofa.inference.regression import (
    Unexplained,
    regress,
    unexplained,
)
from kofa.inference.role import Role
from kofa.inference.run import Callback, Journal, Plan, Run, Settings, Stage, counted
from kofa.inference.start import (
    affordable,
    energy,
    in_random_rotation,
    n_column_groups,
    prepare_and_start,
    some_samples,
    spectral,
    start,
)
from kofa.inference.starts import Starts
from kofa.linalg import Array, BoolArray, threads_for

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
    stage: Stage,
) -> Run:
    """Run from several starts, the highest bound wins; then explain the outputs.

    The factors come from the inputs alone, as those of new samples will.
    """
    if settings.free:
        most = affordable(n_column_groups(engine), settings.n_factors)
        settings = replace(settings, n_factors=most)
    inputs = {name: role for name, role in roles.items() if not role.output}
    outputs = {name: role for name, role in roles.items() if role.output}
    if not outputs:
        return _best_start(engine, Plan(roles, settings), n_init, rng, notify, journal)
    inner = engine.part(inputs)
    seen = inner.observed()
    outer = engine.part(outputs, seen)
    alone = unexplained(outer, engine, outputs)
    # Of kernels that are complete and have no noise the factors are those that a run starts from.
    settled = inner.n_patterns == 1 and all(role.exact for role in inputs.values())
    waiting = named_terms({name: one.terms for name, one in alone.items()})
    plan = Plan(inputs, settings, waiting, settled)
    explained = partial(
        _explained, inner, outer, roles, seen=seen, alone=alone, rng=rng, stage=stage
    )
    best = explained(plan, _best_start(inner, plan, n_init, rng, notify, journal))
    wanted = settings.most_predictive
    if wanted is not None:
        basis = predictive(best.state, roles, engine.likelihoods)
        if wanted < basis.n_predictive:
            best = explained(plan, best, along=basis.first(wanted))
    return best


def _explained(
    inner: Engine,
    outer: Engine,
    roles: Mapping[str, Role],
    plan: Plan,
    found: Run,
    *,
    seen: BoolArray,
    alone: Mapping[str, Unexplained],
    rng: np.random.Generator,
    stage: Stage,
    along: Basis | None = None,
) -> Run:
    """A run of the inputs with the outputs that follow from it.

    No iteration changed the outputs: their terms are the same in all.
    """
    treated = {**roles, **plan.roles}
    known = {name: found.state[name] for name in plan.roles}
    with threads_for(inner.size * found.n_factors):
        state, Z, explained = explain(inner, outer, treated, known, seen, alone, rng, along, stage)
    terms = named_terms(explained)
    history = tuple(
        replace(i, lower_bound=i.lower_bound + _gain(i.terms, terms), terms=i.terms | terms)
        for i in found.history
    )
    return replace(found, state=state, Z=Z, history=history)


def _gain(before: Mapping[str, float], after: Mapping[str, float]) -> float:
    return sum(after.values()) - sum(before[name] for name in after)


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


def explain(
    inner: Engine,
    outer: Engine,
    roles: Mapping[str, Role],
    found: State,
    seen: BoolArray,
    alone: Mapping[str, Unexplained],
    rng: np.random.Generator,
    along: Basis | None = None,
    stage: Stage = _unheard,
) -> tuple[State, Array, dict[str, dict[str, float]]]:
    """The state with the outputs from the factors that the inputs gave; these; the new terms.

    `along`: the directions of z on which the outputs may depend, if not all.
    """
    Z, covariance = inner.project(found)
    own_Z = inner.take(Z, seen)
    total = np.sum([energy(q, roles[name]).sum(axis=0) for name, q in found.items()], axis=0)
    few, of_few = own_Z, total
    if along is not None:
        few, of_few = inner.rotate(own_Z, along.Q, np.zeros(len(total))), along.Q**2 @ total
    state, terms = dict(found), {}
    for name in counted(stage, "outputs", alone):
        explained = regress(outer, name, roles[name], few, of_few, alone[name], rng)
        view = explained.view if along is None else along.embedded(explained.view)
        view = replace(view, blurred=_in_noise(outer, name, view, covariance))
        state[name] = alone[name].completed(view)
        terms[name] = explained.terms
    return {name: state[name] for name in roles}, Z, terms


def _in_noise(engine: Engine, name: str, view: ViewPosterior, covariance: Array) -> Array:
    """What z leaves open of a view, which a noise that is learnt has in it: (D,)."""
    learnt = engine.likelihoods[name] is None
    return blur_in(view.weights, covariance) * float(learnt)
