"""The loop: start, sweeps, rotation, pruning, restarts, stopping. No equations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, Self

import numpy as np

from kofa.bound import Bound, elbo
from kofa.calibration import overdispersion
from kofa.linalg import Array, BoolArray, IntArray, threads_for
from kofa.observations import Observations, Rows
from kofa.posterior import State, ViewPosterior, Weights
from kofa.regression import (
    predicts_better,
    regress,
    unexplained,
    variance_of_own_directions,
)
from kofa.rotation import rotate
from kofa.start import Role, energy, start_view
from kofa.updates import (
    Statistics,
    Touch,
    ViewStatistics,
    blur_in,
    centred,
    global_step,
    moves,
    soften,
)

logger = logging.getLogger("kofa")

PATIENCE = 4  # quiet iterations in a row that end a fit
SOFT_ENOUGH = 0.02  # a smaller change of ρ ends a fit
TRIAL = 12  # iterations after which fewer factors have to have the higher bound
COARSE = 10.0  # times the tolerance, where weak factors are left out first
READ_OUT_SWEEPS = 5  # of the views from which another is read out
SWEEPS_OF_ALL = 25  # of inputs without noise, at most
MOST_DIRECTIONS = 300  # of inputs without noise
MANY_PATTERNS = 100  # of holes, each of which costs an inverse
MOST_READ_OUT = 100  # factors from which a view is read out, where their number is free
ROTATION_PACE = 1.3  # the next rotation comes after this times as many iterations: first 3, 4, 6, 8


class Engine(Protocol):
    """What the loop needs of the place where the rows live."""

    rows: Rows
    Z: Array

    def sweep(self, state: State) -> Statistics: ...
    def revisit(self, m: int, w: Weights) -> Touch: ...
    def sag(self, m: int, w: Weights, steps: Array) -> float: ...
    def keep(self, factors: IntArray) -> None: ...
    def rotate(self, R: Array, shift: Array) -> None: ...
    def summarise(self, Z: Array) -> Statistics: ...
    def principal_directions(
        self, k: int, rng: np.random.Generator, above_noise: bool = False
    ) -> Array: ...
    def residual_direction(self, state: State, rng: np.random.Generator) -> Array: ...
    def settle(self, state: State) -> tuple[Array, Array]: ...
    def part(self, views: Sequence[int], rows: BoolArray | None = None) -> Engine: ...


@dataclass(frozen=True)
class Settings:
    """When to stop, and what happens on the way."""

    n_factors: int
    max_iter: int = 1000
    tol: float = 2e-4  # nats per sample and iteration
    rotate: bool = True
    free: bool = False  # as many factors as the data support, at most n_factors


@dataclass(frozen=True)
class Iteration:
    """What a callback sees after each iteration."""

    n_iter: int
    lower_bound: float
    terms: dict[str, float]
    n_factors: int
    # Factors were removed at the end of this iteration: the next bound may be lower. After the
    # last iteration that is the one that the model keeps in the place of this one.
    pruned: bool
    start: int = 0


Callback = Callable[[Iteration], object]


@dataclass(frozen=True)
class Plan:
    """What a run is about: the views that tell about z, and the others, which wait."""

    roles: Sequence[Role]
    settings: Settings
    waiting: dict[str, float] = field(default_factory=dict)  # terms of the outputs, unexplained

    @property
    def exact(self) -> bool:
        """Whether the factors follow all that varies in some view."""
        return any(role.exact for role in self.roles)

    def total(self, bound: Bound) -> tuple[float, dict[str, float]]:
        """The bound, and its terms as users see them."""
        terms = bound.named([role.name for role in self.roles]) | self.waiting
        return bound.total + sum(self.waiting.values()), terms

    def watched(self, bound: Bound) -> float:
        """The part of the bound that has to stand still.

        Views that are exact have noise so small that their part grows for hundreds of iterations
        more, in directions too faint to matter; that of z follows it.
        """
        free = [not role.exact for role in self.roles]
        if all(free):
            return bound.total
        watched = (terms for terms, counts in zip(bound.of_views, free, strict=True) if counts)
        return float(sum(value for terms in watched for value in terms.values()))


@dataclass(frozen=True, eq=False)
class Run:
    """Where one start stands after an iteration: all that the next ones depend on."""

    state: State
    Z: Array
    history: tuple[Iteration, ...] = ()
    watched: float = -np.inf  # the part of the bound that has to stand still
    quiet: int = 0  # iterations in a row in which it did
    turn: float = 3.0  # the iteration of the next rotation
    converged: bool = False
    stopped: bool = False  # by the callback
    ended: bool = False
    hit_ceiling: bool = False  # the bound would be higher with more factors than allowed

    @property
    def lower_bound(self) -> float:
        return self.history[-1].lower_bound

    @property
    def path(self) -> tuple[Array, dict[str, Array]]:
        """The bound after each iteration, and its terms."""
        bounds = np.array([i.lower_bound for i in self.history])
        names = self.history[0].terms
        return bounds, {name: np.array([i.terms[name] for i in self.history]) for name in names}

    @property
    def n_factors(self) -> int:
        return int(self.state[0].weights.mean.shape[1])

    def finished(self, settings: Settings) -> bool:
        return self.converged or self.stopped or len(self.history) >= settings.max_iter


class Journal:
    """Who is told where a fit stands, one run after the other. This one forgets."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The fit is over, or broken off."""

    def once(self, prepare: Callable[[], Any], rng: np.random.Generator) -> Any:  # noqa: ARG002
        """What the preparation of the fit gives, or gave."""
        return prepare()

    def begin(self) -> Run | None:
        """The runs from here on are those of the next start; what it gave, if it is over."""
        return None

    def end(self, run: Run) -> None:
        """The start is over, and gave this."""

    def resume(self) -> Run | None:
        """Where the run that begins now stood when the fit was broken off, if it had begun."""
        return None

    def reached(self, run: Run) -> None:
        """The run got here."""

    def ended(self, run: Run) -> None:
        """The run is over."""


# ---------------------------------------------------------------- start


def spectral(
    engine: Engine, n_factors: int, rng: np.random.Generator, above_noise: bool = False
) -> Array:
    """Z from the leading directions of the views, on unit scale; all, or those above the noise."""
    n = engine.rows.n_samples
    # The bias takes one degree of freedom: more directions than this cannot be told apart.
    most = min(n_factors, max(1, n - 1))
    Z = np.sqrt(n) * engine.principal_directions(most, rng, above_noise)
    return Z if Z.shape[1] else np.ones((n, 1)) / n  # nothing varies


def prepare(engine: Engine, roles: Sequence[Role], Z: Array) -> State:
    """Priors, and global factors to begin with, from the spectral Z.

    They are the same for all starts, so that bounds can be compared.
    """
    views = centred(engine.summarise(Z), engine.rows)
    return tuple(
        start_view(role, s, data.likelihood)
        for role, s, data in zip(roles, views, engine.rows.views, strict=True)
    )


def start(engine: Engine, state: State, Z: Array) -> State:
    """The first global factors, from the spectral Z or from a random one in its place."""
    return global_step(state, centred(engine.summarise(Z), engine.rows))


# ---------------------------------------------------------------- loop


def run(engine: Engine, plan: Plan, state: State, notify: Callback, journal: Journal) -> Run:
    """Coordinate ascent from one state until the bound stands still."""
    settings = plan.settings
    now = journal.resume() or Run(state, engine.Z)
    engine.Z = now.Z
    if not (now.ended and now.finished(settings)):
        while not now.finished(settings):
            now = _iterate(engine, plan, now, notify)
            journal.reached(now)
        order = by_strength(now.state)
        engine.keep(order)
        state = tuple(view.keep(order) for view in now.state)
        now = replace(now, state=state, Z=engine.Z, ended=True)
        journal.ended(now)
    # Not told to the journal: a run that is given more iterations goes on from before.
    return _with_own_bound(engine, plan, now) if now.history[-1].pruned else now


def _with_own_bound(engine: Engine, plan: Plan, now: Run) -> Run:
    """After a last iteration that pruned: one more sweep, so that the bound is of what is left."""
    stats = engine.sweep(now.state)
    views = centred(stats, engine.rows)
    state = global_step(now.state, views)
    total, terms = plan.total(elbo(state, stats, views))
    last = replace(now.history[-1], lower_bound=total, terms=terms)
    return replace(now, state=state, Z=engine.Z, history=(*now.history[:-1], last))


def _iterate(engine: Engine, plan: Plan, now: Run, notify: Callback) -> Run:
    """One iteration: the local and the global step, and what is due besides."""
    n_iter, turn, settings = len(now.history) + 1, now.turn, plan.settings
    stats = engine.sweep(now.state)
    views = centred(stats, engine.rows)
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
    converged = quiet >= PATIENCE
    if converged and engine.rows.augmented:
        state, converged = _soften(engine, state, views)
        quiet = 0
    if pruned:
        state = tuple(view.keep(keep) for view in state)
        engine.keep(keep)
    over = converged or stopped
    if settings.rotate and not (pruned or over) and n_iter >= turn:
        state, change = rotate(state, stats)
        engine.rotate(*change)
        turn = ROTATION_PACE * n_iter
    history = (*now.history, iteration)
    return Run(state, engine.Z, history, watched, quiet, turn, converged, stopped)


def _soften(engine: Engine, state: State, views: Sequence[ViewStatistics]) -> tuple[State, bool]:
    """Let the variances in each view that is not Gaussian count as the likelihood has it.

    Also whether they already did, all but; then the state stays, and with it its bound. Done where
    the loop stands still: on the way there, weights that are still too large would make every
    curvature look small.
    """
    softened = list(state)
    for m, data in enumerate(engine.rows.views):
        if data.likelihood is not None:
            steps = moves(state[m], views[m], data.likelihood.competing)
            fall = engine.sag(m, state[m].weights, steps)
            softened[m] = soften(state[m], views[m], fall)
    change = max(old.rho - new.rho for old, new in zip(state, softened, strict=True))
    return (state, True) if change < SOFT_ENOUGH else (tuple(softened), False)


def by_strength(state: State) -> IntArray:
    """The factors that tell most about the samples first."""
    information = np.sum([view.information for view in state], axis=0)
    return np.argsort(-information, kind="stable")


def in_order(engine: Engine, found: Run) -> Run:
    """The factors that explain most first, and each with the sign that most weights have.

    What counts is a factor's share in the variance of each view, on average over the views; of the
    signs, the sum of the cubes of the weights. Neither depends on the order of rows or views.
    """
    shares, cubes = np.zeros(found.n_factors), np.zeros(found.n_factors)
    for view in found.state:
        W = view.weights.mean
        total = float((W**2).sum() + (1.0 / view.precision).sum())
        shares += (W**2).sum(axis=0) / total
        cubes += (W**3).sum(axis=0) / total**1.5
    order = np.argsort(-shares, kind="stable")
    turn = np.diag(np.where(cubes[order] < 0, -1.0, 1.0))
    shift = np.zeros(found.n_factors)
    engine.Z = found.Z
    engine.keep(order)
    engine.rotate(turn, shift)
    kept = (view.keep(order) for view in found.state)
    state = tuple(replace(v, weights=v.weights.transform(turn, turn, shift)) for v in kept)
    return replace(found, state=state, Z=engine.Z)


def informative(state: State, n_samples: float) -> IntArray:
    """The factors that tell something about the samples; at least one.

    A factor is worth i = Σ_d τ_d ⟨w_d⟩², which adds to the precision of z (prior: 1). In a view of
    D columns no solution but zero exists with i²/(1 + i) < D / (√D + √N)², the edge of the noise
    spectrum (from Nakajima, Sugiyama, Babacan & Tomioka 2013): such a factor only takes long to
    vanish. The smallest edge over the views is the mark, less a tenth for safety.
    """
    information = np.sum([view.information for view in state], axis=0)
    # The columns of a sparse view, or of one with an informative prior, do not act as one.
    columns = [1 if v.gamma is not None or v.energy is not None else v.n_columns for v in state]
    edge = min(d / (np.sqrt(d) + np.sqrt(n_samples)) ** 2 for d in columns)
    keep = np.flatnonzero(information**2 >= 0.9 * edge * (1.0 + information))
    return keep if len(keep) else np.array([int(np.argmax(information))])


def _ascend(engine: Engine, plan: Plan, state: State, notify: Callback, journal: Journal) -> Run:
    """From one state to the end, with as few factors as the bound likes.

    The weak factors go first where the bound is nearly still: to wait for each digit of theirs
    takes most of the iterations.
    """
    if plan.exact:
        return run(engine, plan, state, notify, journal)
    coarse = replace(plan, settings=replace(plan.settings, tol=COARSE * plan.settings.tol))
    found = run(engine, coarse, state, notify, journal)
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
        keep = np.arange(found.n_factors - size)
        engine.Z = found.Z
        engine.keep(keep)
        trial = _trial(engine, plan, tuple(view.keep(keep) for view in found.state), found)
        if best is not None and (trial is None or trial.lower_bound < best.lower_bound):
            break
        best, size = trial, size // 2
    engine.Z = found.Z if best is None else best.Z
    return best


def _trial(engine: Engine, plan: Plan, state: State, found: Run) -> Run | None:
    """Some iterations from another state, or None if its bound will hardly be higher."""
    now, last = Run(state, engine.Z), -np.inf
    for _ in range(TRIAL):
        now = _iterate(engine, plan, now, _tell_nobody)
        gap = found.lower_bound - now.lower_bound
        if now.converged or TRIAL * (now.lower_bound - last) < gap:
            break
        last = now.lower_bound
    return now if now.lower_bound > found.lower_bound else None


def _run_on(engine: Engine, plan: Plan, found: Run, notify: Callback, journal: Journal) -> Run:
    """From where a run ended, with the iterations that it has left."""
    before = len(found.history)

    def tell(iteration: Iteration) -> object:
        return notify(replace(iteration, n_iter=before + iteration.n_iter))

    left = replace(plan.settings, max_iter=max(1, plan.settings.max_iter - before))
    return run(engine, replace(plan, settings=left), found.state, tell, journal)


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
    Z, _ = engine.settle(found.state)
    engine.Z = Z
    more = np.column_stack([Z, engine.residual_direction(found.state, rng)])
    bounds = []
    for start_Z in (Z, more):
        state = start(engine, prepare(engine, plan.roles, start_Z), start_Z)
        now = Run(state, engine.Z)
        for _ in range(TRIAL):
            now = _iterate(engine, plan, now, _tell_nobody)
        bounds.append(now.lower_bound)
    engine.Z = found.Z
    return bounds[1] > bounds[0]


def _tell_nobody(_: Iteration) -> bool:
    return False


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
        best = _best_start(engine, Plan(roles, settings), n_init, rng, notify, journal)
        engine.Z = best.Z
        return best
    inner = engine.part(inputs)
    seen = np.any([view.observed.any(axis=1) for view in inner.rows.views], axis=0)
    outer, targets = engine.part(outputs, seen), [roles[m] for m in outputs]
    alone = unexplained(outer, targets)
    plan = Plan([roles[m] for m in inputs], settings, _of_outputs(roles, alone))
    explained = partial(_explained, inner, outer, roles, seen=seen, alone=alone, rng=rng)
    best = explained(plan, _best_start(inner, plan, n_init, rng, notify, journal))
    whole = _all_directions(plan, inner)
    if whole is not None and not best.stopped:
        other = explained(whole, _best_start(inner, whole, 1, rng, notify, journal, n_init))
        simple, of_all = (
            (tuple(found.state[m] for m in outputs), found.Z[seen]) for found in (best, other)
        )
        if predicts_better(outer, simple, of_all, rng):
            best = replace(other, converged=best.converged)
    engine.Z = best.Z
    return best


def _all_directions(plan: Plan, inner: Engine) -> Plan | None:
    """The inputs without noise, so that no direction is lost that the outputs may need.

    Columns that have nothing in common have no factors, and yet may tell about outputs. Left-out
    outputs say which they prefer.
    """
    primal = [not (role.exact or data.augmented) for role, data in _pairs(plan, inner)]
    if not any(primal):
        return None
    settings = plan.settings
    most = settings.n_factors if not settings.free else MOST_DIRECTIONS
    if inner.rows.labels.size > MANY_PATTERNS:
        most = min(most, MOST_READ_OUT)
    exact = [replace(r, exact=r.exact or p) for r, p in zip(plan.roles, primal, strict=True)]
    few = min(settings.max_iter, SWEEPS_OF_ALL)
    settings = replace(settings, n_factors=most, free=False, rotate=False, max_iter=few)
    return replace(plan, roles=exact, settings=settings)


def _pairs(plan: Plan, engine: Engine) -> list[tuple[Role, Observations]]:
    return list(zip(plan.roles, engine.rows.views, strict=True))


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
    with threads_for(inner.rows.size * found.n_factors):
        state, Z, explained = _explain(inner, outer, roles, found.state, seen, alone, rng)
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
    work = engine.rows.size * settings.n_factors
    with threads_for(work):
        Z = spectral(engine, settings.n_factors, rng, settings.free)
        prepared = prepare(engine, plan.roles, Z)
    for nth in range(first, first + n_init):
        with threads_for(work):
            state = start(engine, prepared, rng.standard_normal(Z.shape) if nth > first else Z)
            tell = _of_start(notify, nth) if nth else notify
            candidate = journal.begin() or _ascend(engine, plan, state, tell, journal)
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
    if len(best.Z) < engine.rows.n_samples:  # a checkpoint keeps them of few starts
        best = replace(best, Z=engine.settle(best.state)[0])
    best = in_order(engine, best)
    # A kernel has a long tail of weak directions and would always like more.
    kernelized = any(role.kernelized for role in plan.roles)
    at_ceiling = best.n_factors == settings.n_factors and not (plan.exact or kernelized)
    if at_ceiling and best.converged and wants_more(engine, plan, best, rng):
        best = replace(best, hit_ceiling=True)
    return best


def _explain(
    inner: Engine,
    outer: Engine,
    roles: Sequence[Role],
    found: State,
    seen: BoolArray,
    alone: Sequence[Mapping[str, float]],
    rng: np.random.Generator,
) -> tuple[State, Array, list[dict[str, float]]]:
    """The state with the outputs from the factors that the inputs gave; these; the new terms."""
    Z, covariance = inner.settle(found)
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
        data, explained = (
            outer.rows.views[m],
            regress(outer, m, role, Z[seen], total, alone[m], rng),
        )
        view = _with_noise(explained.view, data, Z[seen], covariance, rng)
        if not data.augmented and any(role.exact and not role.kernelized for role in inputs):
            view = replace(view, overdispersion=variance_of_own_directions(data, view, Z[seen]))
        state.append(view)
        terms.append(explained.terms)
    return tuple(state), Z, terms


def _with_noise(
    view: ViewPosterior, data: Observations, Z: Array, covariance: Array, rng: np.random.Generator
) -> ViewPosterior:
    """With what z leaves open, which a noise that is learnt has in it."""
    blurred = blur_in(view.weights, covariance)
    if data.likelihood is None:
        return replace(view, blurred=blurred)
    if not data.likelihood.has("expected"):  # no noise is learnt
        return replace(view, blurred=np.zeros_like(blurred))
    return replace(view, blurred=blurred, overdispersion=overdispersion(data, view, Z, rng))


# ---------------------------------------------------------------- views from others


def read_out(
    engine: Engine,
    roles: Sequence[Role],
    found: State,
    m: int,
    others: Sequence[int],
    settings: Settings,
    rng: np.random.Generator,
) -> State:
    """How view m of samples that lack it follows from others: as an output of these.

    In samples that have the view a factor may follow it, and in those that lack it something else.
    Where there are such samples the factors of the others are found anew; a few sweeps are enough.
    As for outputs, the other views may be without noise.
    """
    inner = engine.part(others)
    seen = np.any([view.observed.any(axis=1) for view in inner.rows.views], axis=0)
    treated = [replace(roles[i], exact=roles[i].kernelized) for i in others]
    most = MOST_READ_OUT if settings.free else settings.n_factors
    outer, target = engine.part([m], seen), replace(roles[m], output=True)
    alone = unexplained(outer, [target])

    def explained(treated: Sequence[Role], state: State | None) -> tuple[State, Array]:
        state = _of_few_sweeps(inner, treated, state, most, rng)
        return _explain(inner, outer, [*treated, target], state, seen, alone, rng)[:2]

    known = tuple(found[i] for i in others)
    lacking = (seen & ~engine.rows.views[m].observed.any(axis=1)).any()
    best = explained(treated, None if lacking else known)
    whole = _all_directions(Plan(treated, settings), inner)
    if whole is not None:
        other = explained(whole.roles, None)
        simple, of_all = ((state[-1:], Z[seen]) for state, Z in (best, other))
        best = other if predicts_better(outer, simple, of_all, rng) else best
    return best[0]


def _of_few_sweeps(
    engine: Engine,
    roles: Sequence[Role],
    state: State | None,
    n_factors: int,
    rng: np.random.Generator,
) -> State:
    """Global factors after a few sweeps from a state, or from the spectral one."""
    if state is None:
        Z = spectral(engine, n_factors, rng)
        state = start(engine, prepare(engine, roles, Z), Z)
    else:
        engine.Z, _ = engine.settle(state)
    for _ in range(READ_OUT_SWEEPS):
        stats = engine.sweep(state)
        state = global_step(state, centred(stats, engine.rows))
        keep = informative(state, stats.n_samples)
        state = tuple(view.keep(keep) for view in state)
        engine.keep(keep)
    return state


# ---------------------------------------------------------------- progress


class Progress:
    """A tqdm bar, or nothing at all."""

    def __init__(self, on: bool, total: int) -> None:
        self.bar: Any = None
        if on:
            try:
                from tqdm.auto import tqdm
            except ImportError as error:
                raise ImportError(
                    "progress=True needs tqdm: install it with pip install 'kofa[progress]'."
                ) from error
            self.bar = tqdm(total=total, unit="it", leave=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def show(self, iteration: Iteration) -> None:
        if self.bar is not None:
            self.bar.n = iteration.n_iter
            self.bar.set_postfix(bound=f"{iteration.lower_bound:.6g}", factors=iteration.n_factors)
