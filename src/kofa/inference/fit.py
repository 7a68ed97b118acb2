"""Several starts, the best of them, and the outputs explained by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from kofa import tuning
from kofa.inference.calibration import overdispersion
from kofa.inference.engine import Engine, Latents
from kofa.inference.loop import logger
from kofa.inference.n_factors import ascend, wants_more
from kofa.inference.order import in_order
from kofa.inference.posterior import State, ViewPosterior
from kofa.inference.predictor import blur_in
from kofa.inference.regression import (
    predicts_better,
    regress,
    unexplained,
    variance_of_own_directions,
)
from kofa.inference.role import Role
from kofa.inference.run import Callback, Journal, Plan, Run, Settings
from kofa.inference.start import energy, prepare, spectral, start
from kofa.linalg import Array, BoolArray, threads_for


def _of_start(notify: Callback, nth: int) -> Callback:
    return lambda iteration: notify(replace(iteration, start=nth))


def best_of(
    engine: Engine,
    roles: Sequence[Role],
    settings: Settings,
    n_init: int,
    rng: np.random.Generator,
    notify: Callback,
    journal: Journal,
) -> Run:
    """Run from several starts, the highest bound wins; then explain the outputs.

    The factors come from the inputs alone, as those of new samples will.
    """
    inputs = [m for m, role in enumerate(roles) if not role.output]
    outputs = [m for m, role in enumerate(roles) if role.output]
    if not outputs:
        return _best_start(engine, Plan(roles, settings), n_init, rng, notify, journal)
    inner = engine.part(inputs)
    seen = inner.observed()
    outer, targets = engine.part(outputs, seen), [roles[m] for m in outputs]
    alone = unexplained(outer, targets)
    plan = Plan([roles[m] for m in inputs], settings, _of_outputs(roles, alone))
    explained = partial(_explained, inner, outer, roles, seen=seen, alone=alone, rng=rng)
    best = explained(plan, _best_start(inner, plan, n_init, rng, notify, journal))
    whole = all_directions(plan, inner)
    if whole is not None and not best.stopped:
        other = explained(whole, _best_start(inner, whole, 1, rng, notify, journal, n_init))
        simple, of_all = (
            (tuple(found.state[m] for m in outputs), inner.take(found.Z, seen))
            for found in (best, other)
        )
        if predicts_better(outer, simple, of_all, rng):
            best = replace(other, converged=best.converged)
    return best


def all_directions(plan: Plan, inner: Engine) -> Plan | None:
    """The inputs without noise, so that no direction is lost that the outputs may need.

    Columns that have nothing in common have no factors, and yet may tell about outputs. Left-out
    outputs say which they prefer.
    """
    kinds = zip(plan.roles, inner.likelihoods, strict=True)
    primal = [not role.exact and likelihood is None for role, likelihood in kinds]
    if not any(primal):
        return None
    settings = plan.settings
    most = settings.n_factors if not settings.free else tuning.MOST_DIRECTIONS
    if inner.n_patterns > tuning.MANY_PATTERNS:
        most = min(most, tuning.MOST_READ_OUT)
    exact = [replace(r, exact=r.exact or p) for r, p in zip(plan.roles, primal, strict=True)]
    few = min(settings.max_iter, tuning.EXACT_SWEEPS)
    settings = replace(settings, n_factors=most, free=False, rotate=False, max_iter=few)
    return replace(plan, roles=exact, settings=settings)


def _explained(
    inner: Engine,
    outer: Engine,
    roles: Sequence[Role],
    plan: Plan,
    found: Run,
    *,
    seen: BoolArray,
    alone: Sequence[Mapping[str, float]],
    rng: np.random.Generator,
) -> Run:
    """A run of the inputs with the outputs that follow from it.

    No iteration changed the outputs: their terms are the same in all.
    """
    treated = iter(plan.roles)
    roles = [role if role.output else next(treated) for role in roles]
    with threads_for(inner.size * found.n_factors):
        state, Z, explained = explain(inner, outer, roles, found.state, seen, alone, rng)
    terms = _of_outputs(roles, explained)
    gain = sum(terms.values()) - sum(plan.waiting.values())
    history = tuple(
        replace(i, lower_bound=i.lower_bound + gain, terms=i.terms | terms) for i in found.history
    )
    return replace(found, state=state, Z=Z, history=history)


def _of_outputs(roles: Sequence[Role], terms: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Terms of the outputs under the names that users see."""
    names = [role.name for role in roles if role.output]
    pairs = zip(names, terms, strict=True)
    return {f"{term}[{name}]": value for name, found in pairs for term, value in found.items()}


def _best_start(
    engine: Engine,
    plan: Plan,
    n_init: int,
    rng: np.random.Generator,
    notify: Callback,
    journal: Journal,
    first: int = 0,
) -> Run:
    """The run with the highest bound, of several starts, which count from the `first`."""
    best: Run | None = None
    settings = plan.settings
    work = engine.size * settings.n_factors
    with threads_for(work):
        Z = spectral(engine, settings.n_factors, rng, settings.free)
        prepared = prepare(engine, plan.roles, Z)
    for nth in range(first, first + n_init):
        with threads_for(work):
            if nth > first:
                Z = engine.random_directions(prepared[0].weights.mean.shape[1], rng)
            begin = Run(start(engine, prepared, Z), Z)
            tell = _of_start(notify, nth) if nth else notify
            candidate = journal.begin() or ascend(engine, plan, begin, tell, journal)
            journal.end(candidate)
        logger.info(
            "start %d: bound %.6g, %d iterations",
            nth,
            candidate.lower_bound,
            len(candidate.history),
        )
        if best is None or candidate.lower_bound > best.lower_bound:
            best = candidate
        if candidate.stopped:
            break
    assert best is not None
    if len(best.Z) < engine.n_samples:  # a checkpoint keeps them of few starts
        best = replace(best, Z=engine.project(best.state)[0])
    best = in_order(engine, best)
    # A kernel has a long tail of weak directions and would always like more.
    kernelized = any(role.kernelized for role in plan.roles)
    at_ceiling = best.n_factors == settings.n_factors and not (plan.exact or kernelized)
    if at_ceiling and best.converged and wants_more(engine, plan, best, rng):
        best = replace(best, hit_ceiling=True)
    return best


def explain(
    inner: Engine,
    outer: Engine,
    roles: Sequence[Role],
    found: State,
    seen: BoolArray,
    alone: Sequence[Mapping[str, float]],
    rng: np.random.Generator,
) -> tuple[State, Array, list[dict[str, float]]]:
    """The state with the outputs from the factors that the inputs gave; these; the new terms."""
    Z, covariance = inner.project(found)
    own_Z = inner.take(Z, seen)
    inputs, known = [role for role in roles if not role.output], iter(found)
    energies = [energy(q, role).sum(axis=0) for q, role in zip(found, inputs, strict=True)]
    total = np.sum(energies, axis=0)
    state: list[ViewPosterior] = []
    terms: list[dict[str, float]] = []
    for role in roles:
        if not role.output:
            state.append(next(known))
            continue
        m = len(terms)
        explained = regress(outer, m, role, own_Z, total, alone[m], rng)
        of_own = any(role.exact and not role.kernelized for role in inputs)
        state.append(_with_noise(outer, m, explained.view, own_Z, covariance, of_own, rng))
        terms.append(explained.terms)
    return tuple(state), Z, terms


def _with_noise(
    engine: Engine,
    m: int,
    view: ViewPosterior,
    Z: Latents,
    covariance: Array,
    own_directions: bool,
    rng: np.random.Generator,
) -> ViewPosterior:
    """With what z leaves open, which a noise that is learnt has in it, and what comes on top."""
    blurred, likelihood = blur_in(view.weights, covariance), engine.likelihoods[m]
    if likelihood is not None and not likelihood.has("expected"):  # no noise is learnt
        return replace(view, blurred=np.zeros_like(blurred))
    view = replace(view, blurred=blurred)
    if likelihood is None and not own_directions:
        return view
    rows = engine.sample(m, rng)
    data, z = engine.view(m, rows), engine.take(Z, rows)
    if likelihood is None:
        return replace(view, overdispersion=variance_of_own_directions(data, view, z))
    n_labelled = float(engine.observed([m]).sum())
    return replace(view, overdispersion=overdispersion(data, view, z, n_labelled / len(rows)))
