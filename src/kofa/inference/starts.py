"""Runs from several starts, one after the other or side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from kofa.inference.acceleration import Trail
from kofa.inference.engine import Engine, Latents
from kofa.inference.n_factors import ascend
from kofa.inference.run import Callback, Iteration, Journal, Plan, Run
from kofa.linalg import n_blas_threads, threads_for


@dataclass(frozen=True, eq=False)
class Starts:
    """What all starts of a plan have in common."""

    engine: Engine
    plan: Plan
    leading: Latents  # the directions with which fewer factors start anew

    @property
    def work(self) -> float:
        """Multiplications of one pass."""
        return self.engine.size * self.plan.settings.n_factors

    def runs(
        self, begins: Iterable[Run], n: int, first: int, notify: Callback, journal: Journal
    ) -> Iterator[Run]:
        """The ends of `n` runs from where they begin, in order; they count from the `first`."""
        n_jobs = self.plan.settings.n_jobs
        if n > 1 and effective_n_jobs(n_jobs) > 1:
            return self._side_by_side(begins, first, notify)
        return self._one_by_one(begins, first, notify, journal)

    def _one_by_one(
        self, begins: Iterable[Run], first: int, notify: Callback, journal: Journal
    ) -> Iterator[Run]:
        for nth, begin in enumerate(begins, first):
            tell = _of_start(notify, nth) if nth else notify
            with threads_for(self.work):
                done = journal.begin()
                found = done or ascend(self.engine, self.plan, begin, self.leading, tell, journal)
                journal.end(found)
            yield found

    def _side_by_side(self, begins: Iterable[Run], first: int, notify: Callback) -> Iterator[Run]:
        """By the workers of joblib. All that is random has been drawn before."""
        require = "sharedmem" if self.engine.in_one_process else None
        workers = Parallel(self.plan.settings.n_jobs, require=require)
        n_threads = n_blas_threads()
        found = workers(delayed(_run)(self, begin, n_threads) for begin in list(begins))
        for nth, one in enumerate(found, first):
            notify(replace(one.history[-1], start=nth))
            yield replace(one, Z=self.engine.attached(one.Z))


def _of_start(notify: Callback, nth: int) -> Callback:
    return lambda iteration: notify(replace(iteration, start=nth))


def _run(starts: Starts, begin: Run, n_threads: int) -> Run:
    """One run in a worker, whose sums have as many threads as elsewhere, so that bits agree."""
    engine, plan = starts.engine, starts.plan
    with threadpool_limits(n_threads, user_api="blas"), threads_for(starts.work):
        found = ascend(engine, plan, begin, starts.leading, _unheard, Journal())
    return replace(found, Z=engine.detached(found.Z), trail=Trail())


def _unheard(_: Iteration) -> bool:
    return False
