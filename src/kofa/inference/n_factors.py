"""How many factors: fewer where the bound is higher without them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kofa import tuning
from kofa.inference.engine import Engine, Latents
from kofa.inference.global_step import global_step
from kofa.inference.loop import expected_bound, iterate, kept, run
from kofa.inference.posterior import Gamma, State, Weights, lean
from kofa.inference.run import Callback, Iteration, Journal, Plan, Run
from kofa.inference.start import prepare, prepare_and_start
from kofa.inference.statistics import centred
from kofa.linalg import IntArray


def ascend(
    engine: Engine, plan: Plan, begin: Run, leading: Latents, notify: Callback, journal: Journal
) -> Run:
    """From one state to the end, with as few factors as the bound likes.

    The weak factors go first where the bound is nearly still: to wait for each digit of theirs
    takes most of the iterations. `leading`: the directions with which fewer factors start anew.
    """
    if plan.exact:
        return run(engine, plan, begin, notify, journal)
    early = _stage(plan, tuning.EARLY_TOL)
    found, least = run(engine, early, begin, notify, journal), 0
    found, _ = with_fewer(engine, early, found, leading, notify, journal)
    for stage in (_stage(plan, tuning.COARSE_TOL), plan):
        if found.converged and not found.stopped:
            found = _run_on(engine, stage, found, notify, journal)
        # What was too few where the bound was nearly still is so at the end; the weakest is asked.
        least = min(least, found.n_factors - 2)
        others = tuning.NEXT_WEAKEST if stage is plan else 0
        found, least = with_fewer(engine, stage, found, leading, notify, journal, least, others)
    return found


def _stage(plan: Plan, times: float) -> Plan:
    """Until one iteration gains less than so many times the tolerance."""
    tol = times * plan.settings.tol
    return replace(plan, settings=replace(plan.settings, tol=tol, patience=1))


def with_fewer(
    engine: Engine,
    plan: Plan,
    found: Run,
    leading: Latents,
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
        trials = _Trials(engine, plan, found)
        trial, least = trials.without_weakest(least)
        if trial is None:
            trial = trials.without_another(others)
        if trial is None:
            trial = trials.started_anew(leading, at_end=others > 0)
        if trial is None or not trials.win(trial):
            break
        found = _accepted(engine, found, trial, notify)
        if not found.stopped:
            found = _run_on(engine, plan, found, notify, journal)
    return found, least


def _further(engine: Engine, plan: Plan, now: Run, n_iter: int) -> Run:
    """After so many more iterations."""
    for _ in range(n_iter):
        now = iterate(engine, plan, now, _no_callback)
    return now


def _accepted(engine: Engine, found: Run, trial: _Trial, notify: Callback) -> Run:
    """The run as it goes on with a trial, of which the callback hears now, and may stop it."""
    before, end = len(found.history), _changed(trial.end)
    for n, iteration in enumerate(end.history, 1):
        if notify(replace(iteration, n_iter=before + n)):
            # The same again, up to where it stops
            end = _changed(_further(engine, trial.plan, trial.begin, n))
            return replace(_after(found, end), stopped=True, converged=False)
    return _after(found, end)


@dataclass(frozen=True, eq=False)
class _Trial:
    """Some iterations with other factors."""

    begin: Run
    end: Run
    plan: Plan  # by which it was tried
    bound: float


@dataclass(frozen=True, eq=False)
class _Trials:
    """Other factors than those that were found, on trial."""

    engine: Engine
    plan: Plan
    found: Run

    def win(self, trial: _Trial) -> bool:
        """Whether its bound is higher than that of all factors after as many more iterations."""
        n_iter = len(trial.end.history)
        return trial.bound > self._bound(_further(self.engine, self._on_trial, self.found, n_iter))

    def without_weakest(self, least: int) -> tuple[_Trial | None, int]:
        """The best trial without the weaker half, quarter, … of the factors, if any is.

        More than `least` are left; also returned is the largest number that was too small.
        """
        best, size = None, self.found.n_factors // 2
        while size:
            number, size = self.found.n_factors - size, size // 2
            if number <= least:
                continue
            trial = self._with_only(np.arange(number))
            if best is not None and (trial is None or trial.bound < best.bound):
                break
            best, least = trial, number if trial is None else least
        return best, least

    def without_another(self, n: int) -> _Trial | None:
        """The first trial without one of the `n` next weakest factors, if the bound is higher.

        What is left has to take over from a factor, and from the weakest it may take it far longer.
        """
        factors = np.arange(self.found.n_factors)
        for weak in factors[-1 - n : -1][::-1]:
            trial = self._with_only(np.delete(factors, weak))
            if trial is not None:
                return trial
        return None

    def started_anew(self, leading: Latents, at_end: bool) -> _Trial | None:
        """The best trial from fewer of the leading directions, where columns are few.

        Nearly as many factors as columns leave next to no noise, and where they have come from
        there, those that are left take hundreds of iterations to give it back. First the half is
        tried; at the end also others, and one more, since the half may have been too few.
        """
        engine, found, most = self.engine, self.found, leading.shape[1]
        columns = sum(view.n_columns for view in found.state.values())
        if columns >= tuning.COLUMNS_PER_FACTOR * most:
            return None
        number = found.n_factors
        numbers = {number - number // 2**n for n in range(1, number.bit_length() if at_end else 2)}
        if at_end:
            numbers.add(number + 1)
        directions = (
            engine.keep(leading, np.arange(k)) for k in sorted(numbers) if k <= most and k != number
        )
        trials = [self._from(_start(engine, self.plan, Z, found)) for Z in directions]
        better = [trial for trial in trials if trial is not None]
        return max(better, key=lambda trial: trial.bound, default=None)

    def _with_only(self, factors: IntArray) -> _Trial | None:
        """A trial with some of the factors."""
        fewer = kept(self.engine, self.found, factors)
        return self._from(Run(fewer.state, fewer.Z))

    def _from(self, begin: Run) -> _Trial | None:
        """Some iterations with other factors, or None if the bound will hardly be higher."""
        plan, found = self.plan, self.found
        fewer = begin.n_factors < found.n_factors
        now, last, on_trial = begin, -np.inf, self._on_trial if fewer else plan
        n_iter = min(tuning.TRIAL_ITERATIONS, _iterations_left(plan, found))
        for _ in range(n_iter):
            now = iterate(self.engine, on_trial, now, _no_callback)
            gap = found.lower_bound - now.lower_bound
            if (now.converged and on_trial is plan) or n_iter * (now.lower_bound - last) < gap:
                break
            last = now.lower_bound
        if not n_iter:
            return None
        bound = self._bound(now)
        return _Trial(begin, now, on_trial, bound) if bound > self._bound_of_found else None

    @cached_property
    def _bound_of_found(self) -> float:
        return self._bound(self.found)

    def _bound(self, now: Run) -> float:
        """The bound by which runs are compared; at the end not with curvature ratios in it.

        These are rounded, and follow one run further than another.
        """
        return expected_bound(self.engine, now) if self._is_last else now.lower_bound

    @property
    def _on_trial(self) -> Plan:
        """At the end of a fit curvature ratios follow each iteration of a trial.

        With those of more factors, which are larger, the bound of fewer looks too low. (Not where
        more factors are tried: one that explains noise lowers the ratios, and with these the bound
        would be higher, even when it is gone again.)
        """
        if not self._is_last:
            return self.plan
        return replace(self.plan, settings=replace(self.plan.settings, patience=0))

    @property
    def _is_last(self) -> bool:
        """Whether views are not Gaussian, and the fit is at its end."""
        return self.plan.settings.patience != 1 and any(self.engine.likelihoods.values())


def _start(engine: Engine, plan: Plan, Z: Latents, found: Run) -> Run:
    """A run from these factors, with the curvature ratios that were found."""
    _, state = prepare_and_start(engine, plan.roles, Z)
    rho = {name: view.rho for name, view in found.state.items()}
    return Run({name: replace(view, rho=rho[name]) for name, view in state.items()}, Z)


def _iterations_left(plan: Plan, found: Run) -> int:
    return max(0, plan.settings.max_iter - len(found.history))


def _run_on(engine: Engine, plan: Plan, found: Run, notify: Callback, journal: Journal) -> Run:
    """From where a run ended, with the iterations that it has left; both as one run."""
    before, left = len(found.history), _iterations_left(plan, found)
    if not left:
        return replace(found, converged=False)

    def tell(iteration: Iteration) -> object:
        return notify(replace(iteration, n_iter=before + iteration.n_iter))

    begin = Run(
        found.state,
        found.Z,
        turn=tuning.LATER_ROTATION,
        trail=found.trail,
        floor=found.floor,
        pruned=found.pruned,
    )
    settings = replace(plan.settings, max_iter=left)
    return _after(found, run(engine, replace(plan, settings=settings), begin, tell, journal))


def _changed(trial: Run) -> Run:
    """A run that goes on with other factors than there were before it."""
    first, *others = trial.history
    return replace(trial, history=(replace(first, factors_changed=True), *others))


def _after(found: Run, more: Run) -> Run:
    """Two runs as one."""
    before = len(found.history)
    later = (replace(iteration, n_iter=before + iteration.n_iter) for iteration in more.history)
    return replace(more, history=(*found.history, *later))


def from_some(
    engine: Engine,
    plan: Plan,
    found: Run,
    rng: np.random.Generator,
    notify: Callback,
    journal: Journal,
) -> Run:
    """All samples, from the factors that were found with some of them.

    What only all of them show is added, one factor after the other, while the bound is higher.
    """
    now = run(engine, plan, _with_all(engine, plan, found), notify, journal)
    while now.n_factors < plan.settings.n_factors and now.converged and not now.stopped:
        n_iter = min(tuning.CEILING_ITERATIONS, _iterations_left(plan, now))
        trial = _with_another(engine, plan, now, rng, n_iter)
        if trial is None:
            break
        now = _accepted(engine, now, trial, notify)
        if not now.stopped:
            now = _run_on(engine, plan, now, notify, journal)
    return replace(now, hit_ceiling=found.hit_ceiling)


def _with_all(engine: Engine, plan: Plan, found: Run) -> Run:
    """Where a run with all samples begins: at what some of them gave, with the priors of all."""
    Z, _ = engine.project(found.state)
    gaussian = [name for name, likelihood in engine.likelihoods.items() if likelihood is None]
    priors = prepare(engine.part(gaussian), plan.roles, Z) if gaussian else {}
    own = {n: replace(found.state[n], tau_prior=view.tau_prior) for n, view in priors.items()}
    return Run({**found.state, **own}, Z)


def wants_more(engine: Engine, plan: Plan, found: Run, rng: np.random.Generator) -> bool:
    """Whether the bound would be higher with one factor more."""
    return _with_another(engine, plan, found, rng, tuning.CEILING_ITERATIONS) is not None


def _with_another(
    engine: Engine, plan: Plan, found: Run, rng: np.random.Generator, n_iter: int
) -> _Trial | None:
    """A trial with one factor more, if the bound is higher.

    Tried is the direction that the factors leave most of. Where views are not Gaussian the bound
    has to be higher by more than it differs from that with their expectations, which has to be
    higher too: a smaller gain may be one of the curvature ratios.
    """
    if not n_iter:
        return None
    Z, _ = engine.project(found.state)
    Z = engine.with_residual_direction(found.state, Z, rng)
    begin = Run(_with_factor(engine, found.state, Z), Z)
    gaussian = not any(engine.likelihoods.values())
    expected = found.lower_bound if gaussian else expected_bound(engine, found)
    enough = found.lower_bound + abs(found.lower_bound - expected)
    now = _ascended(engine, plan, begin, n_iter, enough)
    if now.n_factors <= found.n_factors or now.lower_bound <= enough:
        return None
    if gaussian:
        without = _further(engine, plan, found, len(now.history))
        better = now.lower_bound > without.lower_bound
    else:
        better = expected_bound(engine, now) > expected
    return _Trial(begin, now, plan, now.lower_bound) if better else None


def _ascended(engine: Engine, plan: Plan, begin: Run, n_iter: int, enough: float) -> Run:
    """Where the bound is higher than is enough, or will hardly be, or a factor has gone."""
    now, last = begin, -np.inf
    for n in range(1, n_iter + 1):
        now = iterate(engine, plan, now, _no_callback)
        missing, gain = enough - now.lower_bound, now.lower_bound - last
        if missing < 0 or (n_iter - n) * gain < missing:
            break
        if now.converged or now.n_factors < begin.n_factors:
            break
        last = now.lower_bound
    return now


def _with_factor(engine: Engine, state: State, Z: Latents) -> State:
    """Global factors with one factor more, from a Z that has it.

    The others stay about where they are. It begins as free as the strongest of them.
    """
    stats = engine.summarise(Z)
    for name, likelihood in engine.likelihoods.items():
        if likelihood is not None:
            same = _with_zeros(state[name].weights)
            stats = stats.with_sums(name, engine.surrogate_sums(name, same, Z))
    begin = {}
    for name, view in state.items():
        assert isinstance(view.alpha, Gamma)
        rate = np.append(view.alpha.rate, view.alpha.rate.max(initial=tuning.BROAD_PRIOR))
        begin[name] = replace(
            view,
            alpha=Gamma(view.alpha.shape, rate),
            alpha_prior=Gamma(np.array(tuning.BROAD_PRIOR), np.full(len(rate), tuning.BROAD_PRIOR)),
        )
    return lean(global_step(begin, centred(stats)))


def _with_zeros(q: Weights) -> Weights:
    """What predicts the same of samples that have one factor more."""
    mean, z_mean = q.mean, np.asarray(q.z_mean)
    return q.moved(
        mean=np.column_stack([mean, np.zeros(len(mean))]),
        z_mean=np.column_stack([z_mean, np.zeros(len(z_mean))]),
    )


def _no_callback(_: Iteration) -> bool:
    return False
