"""The loop: start, sweeps, rotation, pruning, restarts, stopping. No equations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Self

import numpy as np

from kofa.bound import Bound, elbo
from kofa.likelihoods import Likelihood
from kofa.linalg import Array, IntArray, solve_positive, threads_for
from kofa.observations import Observations, Rows
from kofa.posterior import Gamma, Known, Precision, State, ViewPosterior, Weights
from kofa.refinement import choose_scale, refine
from kofa.rotation import rotate
from kofa.updates import (
    Statistics,
    Touch,
    ViewStatistics,
    centred,
    expected_residual,
    global_step,
    moves,
    soften,
    update_alpha,
    update_view,
    update_weights,
)

logger = logging.getLogger("kofa")

PRIOR = 1e-6  # a0 = b0 of the broad Gamma priors; the data are on unit scale
NOISE_FLOOR = 1e-6  # prior belief: no column is known better than to 1e-3 of its spread
SPECTRAL_SHAPE = 50.0  # ν/2 of an output's spectral prior
LEAST_ENERGY = 1e-12  # of a direction, relative to the strongest
GRAM_JITTER = 1e-8  # of the mean variance of landmarks, so that duplicates do no harm
PRIMAL_START_NOISE = 0.1  # least share of a primal view's variance that starts as noise
OUTPUT_START_NOISE = 0.5
# A kernel is computed, not measured: where it feeds outputs its only noise is what the factors
# leave out at the start, or the least with which the bound still has eight digits. A prior worth
# HELD times the data holds it there.
HELD = 1e3
HELD_FLOOR = 3e-8
PATIENCE = 4  # quiet iterations in a row that end a fit
SOFT_ENOUGH = 0.02  # a smaller change of ρ ends a fit
ROTATION_PACE = 1.3  # the next rotation comes after this times as many iterations: first 3, 4, 6, 8
REFINEMENT_PACE = 2.0  # the same for the weights of non-Gaussian outputs: first 1, 2, 4, 8


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
    def principal_directions(self, views: list[int], k: int, rng: np.random.Generator) -> Array: ...


@dataclass(frozen=True)
class Role:
    """How inference treats one view."""

    name: str
    kernelized: bool = False
    output: bool = False
    sparse: bool = False
    noise_per_column: bool = False
    weight: float = 1.0  # of a primal input in the outputs' prior
    grams: Sequence[Array] = ()  # (R, R): a kernelized input's landmarks, for each kernel in it


@dataclass(frozen=True)
class Settings:
    """When to stop, and what happens on the way."""

    n_factors: int
    max_iter: int = 1000
    tol: float = 2e-4  # nats per sample and iteration
    rotate: bool = True


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


@dataclass(frozen=True, eq=False)
class Run:
    """Where one start stands after an iteration: all that the next ones depend on."""

    state: State
    Z: Array
    history: tuple[Iteration, ...] = ()
    watched: float = -np.inf  # the part of the bound that has to stand still
    quiet: int = 0  # iterations in a row in which it did
    turn: float = 3.0  # the iteration of the next rotation
    look: float = 1.0  # and of the next refinement
    converged: bool = False
    stopped: bool = False  # by the callback
    ended: bool = False

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

    def resume(self) -> Run | None:
        """Where the run that begins now stood when the fit was broken off, if it had begun."""
        return None

    def reached(self, run: Run) -> None:
        """The run got here."""

    def ended(self, run: Run) -> None:
        """The run is over."""


# ---------------------------------------------------------------- start


def spectral(
    engine: Engine, roles: Sequence[Role], n_factors: int, rng: np.random.Generator
) -> Array:
    """Z from the leading directions of the inputs, on unit scale."""
    inputs = [m for m, role in enumerate(roles) if not role.output]
    n = engine.rows.n_samples
    # The bias takes one degree of freedom: more directions than this cannot be told apart.
    Z = np.sqrt(n) * engine.principal_directions(inputs, min(n_factors, max(1, n - 1)), rng)
    return Z if Z.shape[1] else np.ones((n, 1)) / n  # nothing varies


def prepare(engine: Engine, roles: Sequence[Role], Z: Array, rng: np.random.Generator) -> State:
    """Priors, and global factors to begin with, from the spectral Z.

    They are the same for all starts, so that bounds can be compared.
    """
    views = centred(engine.summarise(Z), engine.rows)
    supervised = any(role.output for role in roles)
    state = [
        _start_view(role, s, supervised, data.likelihood)
        for role, s, data in zip(roles, views, engine.rows.views, strict=True)
    ]
    return tuple(_spectral_priors(state, roles, engine.rows.views, Z, rng))


def start(engine: Engine, state: State, Z: Array) -> State:
    """The first global factors, from the spectral Z or from a random one in its place."""
    return global_step(state, centred(engine.summarise(Z), engine.rows))


def _start_view(
    role: Role, s: ViewStatistics, supervised: bool, likelihood: Likelihood | None
) -> ViewPosterior:
    """q of one view given Z: all but least squares, with the noise that this leaves."""
    n_columns, k = s.R.shape
    ones = np.ones(n_columns)
    ridge = 1e-10 * float(s.n.max()) / HELD_FLOOR  # of a Z on unit scale, where rows are few
    q = update_weights(s, np.full(k, ridge), ones, ones / HELD_FLOOR)
    n, residual, total = s.n_column, expected_residual(q, s), s.y_square
    if not role.noise_per_column:
        n, residual, total = (x.sum(keepdims=True) for x in (n, residual, total))
    least = OUTPUT_START_NOISE if role.output else 0.0 if role.kernelized else PRIMAL_START_NOISE
    held = supervised and role.kernelized and not role.output
    # Of a handful of columns more is rounding.
    least_held = HELD_FLOOR * max(1.0, 10.0 / n_columns)
    floor = (least_held if held else NOISE_FLOOR) * np.maximum(n, total)
    noise = np.maximum(residual, least * total) + floor
    tau_prior: Precision = Gamma(np.full(n.shape, PRIOR), PRIOR + 0.5 * floor)
    if held:
        tau_prior = Gamma(HELD * n, HELD * noise)
    tau: Precision = Gamma(0.5 * n, 0.5 * noise)
    if likelihood is not None and likelihood.curvature is not None:
        tau = tau_prior = Known(likelihood.curvature)
    alpha_prior = Gamma(np.array(PRIOR), np.full(k, PRIOR))
    return ViewPosterior(
        weights=q,
        alpha=update_alpha(alpha_prior, q, ones),
        gamma=Gamma(ones, ones) if role.sparse else None,
        tau=tau,
        alpha_prior=alpha_prior,
        gamma_prior=Gamma(np.array(PRIOR), np.array(PRIOR)),
        tau_prior=tau_prior,
    )


def _spectral_priors(
    state: Sequence[ViewPosterior],
    roles: Sequence[Role],
    data: Sequence[Observations],
    Z: Array,
    rng: np.random.Generator,
) -> list[ViewPosterior]:
    """Give outputs a prior that trusts strong directions of the inputs more than weak ones.

    A Gaussian process gives w_k a variance proportional to z_kᵀ K z_k. With several inputs K is
    their sum, weighted as the outputs would have it.
    """
    inputs = [(view, role) for view, role in zip(state, roles, strict=True) if not role.output]
    total = np.sum([energy(view, role).sum(axis=0) for view, role in inputs], axis=0)
    total = np.maximum(total, LEAST_ENERGY * max(float(total.max()), np.finfo(float).tiny))
    return [
        _with_energy(view, total, observations, Z, rng) if role.output else view
        for view, role, observations in zip(state, roles, data, strict=True)
    ]


def energy(view: ViewPosterior, role: Role) -> Array:
    """z_kᵀ K z_k / N² of an input along each factor of unit variance, for each kernel: (·, K).

    Rows have similarities Z Wᵀ to the landmarks, so that with Nyström's K it is w_kᵀ gram^-1 w_k;
    a primal view has K = ZWᵀWZᵀ / D.
    """
    W = view.weights.mean
    if not role.grams:
        return np.asarray(role.weight * (W**2).mean(axis=0, keepdims=True))
    gram = np.sum(role.grams, axis=0)
    dual = solve_positive(gram, W, GRAM_JITTER)
    return np.array([np.maximum((dual * (part @ dual)).sum(axis=0), 0.0) for part in role.grams])


def _with_energy(
    view: ViewPosterior, total: Array, data: Observations, Z: Array, rng: np.random.Generator
) -> ViewPosterior:
    if data.augmented:
        known = choose_scale(view, data, Z, total, rng)
        return replace(view, alpha=known, alpha_prior=known, energy=total)
    shape = np.array(SPECTRAL_SHAPE)
    c = float(total.sum()) / (1.0 - OUTPUT_START_NOISE)  # prior variance of Σ_k w_k z_k
    prior = Gamma(shape, shape * total / c)
    return replace(view, alpha=prior, alpha_prior=prior, energy=total)


# ---------------------------------------------------------------- loop


def run(
    engine: Engine,
    roles: Sequence[Role],
    state: State,
    settings: Settings,
    notify: Callback,
    journal: Journal,
) -> Run:
    """Coordinate ascent from one state until the bound stands still."""
    now = journal.resume() or Run(state, engine.Z)
    engine.Z = now.Z
    if not (now.ended and now.finished(settings)):
        while not now.finished(settings):
            now = _iterate(engine, roles, now, settings, notify)
            journal.reached(now)
        order = by_strength(now.state)
        engine.keep(order)
        state = tuple(view.keep(order) for view in now.state)
        now = replace(now, state=state, Z=engine.Z, ended=True)
        journal.ended(now)
    # Not told to the journal: a run that is given more iterations goes on from before.
    return _with_own_bound(engine, roles, now) if now.history[-1].pruned else now


def _with_own_bound(engine: Engine, roles: Sequence[Role], now: Run) -> Run:
    """After a last iteration that pruned: one more sweep, so that the bound is of what is left."""
    stats = engine.sweep(now.state)
    views = centred(stats, engine.rows)
    state = global_step(now.state, views)
    bound = elbo(state, stats, views)
    terms = bound.named([role.name for role in roles])
    last = replace(now.history[-1], lower_bound=bound.total, terms=terms)
    return replace(now, state=state, Z=engine.Z, history=(*now.history[:-1], last))


def _iterate(
    engine: Engine, roles: Sequence[Role], now: Run, settings: Settings, notify: Callback
) -> Run:
    """One iteration: the local and the global step, and what is due besides."""
    n_iter, turn, look = len(now.history) + 1, now.turn, now.look
    stats = engine.sweep(now.state)
    views = centred(stats, engine.rows)
    state = global_step(now.state, views)
    refined = _refined(engine, roles)
    if refined and n_iter >= look:
        look = REFINEMENT_PACE * n_iter
        state, stats = _refine(engine, refined, state, stats, views)
        views = centred(stats, engine.rows)
    bound = elbo(state, stats, views)
    keep = informative(state, stats.n_samples)
    pruned = len(keep) < len(stats.z_sum)
    terms = bound.named([role.name for role in roles])
    iteration = Iteration(n_iter, bound.total, terms, len(keep), pruned)
    stopped = bool(notify(iteration))
    watched = _watched(bound, roles)
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
    return Run(state, engine.Z, history, watched, quiet, turn, look, converged, stopped)


def _refined(engine: Engine, roles: Sequence[Role]) -> list[int]:
    """The outputs whose weights are brought to their optimum from time to time."""
    pairs = zip(roles, engine.rows.views, strict=True)
    return [m for m, (role, view) in enumerate(pairs) if role.output and view.augmented]


def _watched(bound: Bound, roles: Sequence[Role]) -> float:
    """The part of the bound that has to stand still.

    Kernels that feed outputs have noise so small that their part grows for hundreds of
    iterations more, in directions too faint to matter; that of z follows it.
    """
    free = [role.output or not role.kernelized for role in roles]
    if all(free) or not any(role.output for role in roles):
        return bound.total
    watched = (terms for terms, counts in zip(bound.of_views, free, strict=True) if counts)
    return sum(value for terms in watched for value in terms.values())


def _refine(
    engine: Engine,
    which: Sequence[int],
    state: State,
    stats: Statistics,
    views: Sequence[ViewStatistics],
) -> tuple[State, Statistics]:
    """Bring the weights of some views to their optimum given the samples' factors."""
    refined = list(state)
    for m in which:
        weights = refine(state[m], views[m], partial(engine.revisit, m))
        stats = stats.with_touch(m, engine.revisit(m, weights))
        s = centred(stats, engine.rows)[m]
        refined[m] = update_view(replace(state[m], weights=weights), s)
    return tuple(refined), stats


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


def with_fewer(
    engine: Engine,
    roles: Sequence[Role],
    found: Run,
    settings: Settings,
    notify: Callback,
    journal: Journal,
) -> Run:
    """Leave out the weakest factor as long as the bound is higher without it.

    Where each column of a view has a precision of its own, a factor can live on a few columns of
    noise that happen to agree: coordinate ascent keeps it, though the bound is better off without.
    """
    while found.converged and found.n_factors > 1:
        fewer = tuple(view.keep(np.arange(found.n_factors - 1)) for view in found.state)
        engine.keep(np.arange(found.n_factors - 1))
        before = len(found.history)
        left = replace(settings, max_iter=max(1, settings.max_iter - before))
        trial = run(engine, roles, fewer, left, notify, journal)
        if trial.lower_bound <= found.lower_bound:
            engine.Z = found.Z  # back to where it was
            return found
        path = [*found.history[:-1], replace(found.history[-1], pruned=True)]
        path += [replace(i, n_iter=before + i.n_iter) for i in trial.history]
        found = replace(trial, history=tuple(path))
    return found


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
    """Run from several starts; the highest bound wins."""
    best: Run | None = None
    work = engine.rows.size * settings.n_factors
    with threads_for(work):
        Z = spectral(engine, roles, settings.n_factors, rng)
        prepared = prepare(engine, roles, Z, rng)
    for nth in range(n_init):
        with threads_for(work):
            state = start(engine, prepared, rng.standard_normal(Z.shape) if nth else Z)
            tell = _of_start(notify, nth)
            candidate = run(engine, roles, state, settings, tell, journal)
            if any(role.sparse for role in roles) and not any(role.output for role in roles):
                candidate = with_fewer(engine, roles, candidate, settings, tell, journal)
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
    engine.Z = best.Z
    return best


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
