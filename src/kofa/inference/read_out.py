"""Views that samples lack, from the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from kofa import tuning
from kofa.inference.engine import Engine, Latents
from kofa.inference.fit import all_directions, explain
from kofa.inference.global_step import global_step
from kofa.inference.posterior import State, keep
from kofa.inference.pruning import informative
from kofa.inference.regression import predicts_better, unexplained
from kofa.inference.role import Role
from kofa.inference.run import Plan, Settings
from kofa.inference.start import affordable, prepare_and_start, spectral
from kofa.inference.statistics import centred


def read_out(
    engine: Engine,
    roles: Mapping[str, Role],
    found: State,
    name: str,
    others: Sequence[str],
    settings: Settings,
    rng: np.random.Generator,
) -> State:
    """How a view of samples that lack it follows from others: as an output of these.

    In samples that have the view a factor may follow it, and in those that lack it something else.
    Where there are such samples the factors of the others are found anew; a few sweeps are enough.
    Where samples are few, all directions of the others are tried as well, with noise and without,
    whatever number of factors the model is allowed; without noise also where more samples are still
    fewer than the columns of the others. (With many samples it would cost more than all else.)
    """
    inner = engine.part(others)
    seen = inner.observed()
    treated = {other: replace(roles[other], exact=roles[other].kernelized) for other in others}
    outer, target = engine.part([name], seen), {name: replace(roles[name], output=True)}
    alone = unexplained(outer, engine, target, rng)

    def explained(treated: Mapping[str, Role], anew: bool, most: int) -> tuple[State, Latents]:
        state = _of_few_sweeps(inner, treated, found, anew, most, rng)
        return explain(inner, outer, {**treated, **target}, state, seen, alone, rng)[:2]

    has = engine.observed([name])
    most = _most_factors(found, tuning.MOST_READ_OUT)
    own = most if settings.free else settings.n_factors
    best = explained(treated, bool((seen & ~has).any()), own)
    few = engine.n_samples <= tuning.FEW_SAMPLES
    wide = sum(found[other].n_columns for other in others) > (seen & has).sum()
    more: list[tuple[Mapping[str, Role], int]] = []
    if few and not settings.free:
        more.append((treated, most))
    if few or (wide and engine.n_samples <= tuning.FEW_OF_WIDE):
        whole = all_directions(Plan(treated, replace(settings, free=True)), inner)
        if whole is not None:
            more.append((whole.roles, _most_factors(found, whole.settings.n_factors)))
    for others_treated, n_factors in more:
        other = explained(others_treated, True, n_factors)
        simple, of_all = ((state, inner.take(Z, seen)) for state, Z in (best, other))
        best = other if predicts_better(outer, simple, of_all, rng) else best
    return best[0]


def _most_factors(found: State, most: int) -> int:
    """Fewer where most columns have holes of their own, each of which costs an inverse."""
    n_groups = sum(view.weights.columns.size for view in found.values())
    many = n_groups > tuning.MANY_PATTERNS
    return affordable(n_groups, tuning.MOST_WITH_HOLES if many else most)


def _of_few_sweeps(
    engine: Engine,
    roles: Mapping[str, Role],
    found: State,
    anew: bool,
    n_factors: int,
    rng: np.random.Generator,
) -> State:
    """Global factors after a few sweeps from those that were found, or from the spectral start.

    The curvature ratios stay those that were found: few sweeps cannot find them, and where
    variances count in full, each sweep makes weights of views that are not Gaussian smaller.
    """
    state: State = {name: found[name] for name in roles}
    engine = engine.condensed()
    if anew:
        Z = spectral(engine, n_factors, rng)
        _, begin = prepare_and_start(engine, roles, Z)
        state = {name: replace(view, rho=found[name].rho) for name, view in begin.items()}
    else:
        Z, _ = engine.project(state)
    for _ in range(tuning.READ_OUT_SWEEPS):
        stats, Z = engine.sweep(state, Z)
        state = global_step(state, centred(stats))
        telling = informative(state, stats.n_samples)
        state, Z = keep(state, telling), engine.keep(Z, telling)
    return state
