"""Where a fit stands: settings, iterations, runs, and who keeps record of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from kofa import tuning
from kofa.inference.acceleration import Trail
from kofa.inference.bound import Bound
from kofa.inference.posterior import State, n_factors_of
from kofa.inference.role import Role
from kofa.linalg import Array, BoolArray


@dataclass(frozen=True)
class Settings:
    """When to stop, and what happens on the way."""

    n_factors: int
    max_iter: int = 1000
    tol: float = tuning.TOL  # nats per sample and iteration
    # Iterations in a row with a smaller gain
    patience: int = field(default_factory=lambda: tuning.PATIENCE)
    rotate: bool = True
    free: bool = False  # as many factors as the data support, at most n_factors
    n_jobs: int | None = None  # workers for several starts, as joblib counts them


@dataclass(frozen=True)
class Iteration:
    """What a callback sees after each iteration.

    Parameters
    ----------
    n_iter : int
        The number of iterations, from 1.
    lower_bound : float
        The bound.
    terms : dict of str → float
        Its named terms, which add up to it.
    n_factors : int
        The number of factors now.
    factors_changed : bool
        Whether it has other factors than the one before: weak ones were removed, or a trial with
        another number of them was taken. Only then may its bound be lower.
    start : int
        Which of `n_init` starts it is, from 0.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> seen = []
    >>> model = kofa.FactorModel(callback=lambda now: seen.append(now.n_iter) or now.n_iter == 3)
    >>> model = model.fit({"x": np.random.default_rng(0).normal(size=(50, 4))})
    >>> seen
    [1, 2, 3]
    """

    n_iter: int
    lower_bound: float
    terms: dict[str, float]
    n_factors: int
    # After a last iteration at whose end factors were removed, the model keeps the bound of what is
    # left in the place of its own.
    factors_changed: bool
    start: int = 0


Callback = Callable[[Iteration], object]
Stage = Callable[[str], object]  # is told what runs beside the iterations


def counted(stage: Stage, what: str, names: Collection[str]) -> Iterator[str]:
    """The names of views one after the other, each with a word of which it is."""
    for n, name in enumerate(names, 1):
        stage(f"{what} {n}/{len(names)}")
        yield name


@dataclass(frozen=True)
class Plan:
    """What a run is about."""

    roles: Mapping[str, Role]
    settings: Settings
    settled: bool = False  # the factors are those that a run starts from: one iteration is enough

    @property
    def exact(self) -> bool:
        """Whether the factors follow all that varies in some view."""
        return any(role.exact for role in self.roles.values())

    def watched(self, bound: Bound) -> float:
        """The part of the bound that has to stand still.

        Views that are exact have noise so small that their part grows for hundreds of iterations
        more, in directions too faint to matter; that of z follows it.
        """
        if not self.exact:
            return bound.total
        free = (terms for name, terms in bound.of_views.items() if not self.roles[name].exact)
        return float(sum(value for terms in free for value in terms.values()))


@dataclass(frozen=True, eq=False)
class Run:
    """Where one start stands after an iteration: all that the next ones depend on."""

    state: State
    Z: Array
    history: tuple[Iteration, ...] = ()
    watched: float = -np.inf  # the part of the bound that has to stand still
    quiet: int = 0  # iterations in a row in which it did
    turn: float = 3.0  # the iteration of the next rotation
    trail: Trail = field(
        default_factory=Trail
    )  # the last iterations, from which the next is foreseen
    floor: float = -np.inf  # the bound that the next iteration must not fall below, if known
    pruned: bool = False  # factors were removed at the end of the last iteration
    converged: bool = False
    stopped: bool = False  # by the callback
    ended: bool = False
    hit_ceiling: bool = False  # the bound would be higher with more factors than allowed

    @property
    def lower_bound(self) -> float:
        return self.history[-1].lower_bound

    @property
    def path(self) -> tuple[Array, dict[str, Array], BoolArray]:
        """The bound after each iteration, its terms, and where the factors changed before."""
        bounds = np.array([i.lower_bound for i in self.history])
        names = self.history[0].terms
        terms = {name: np.array([i.terms[name] for i in self.history]) for name in names}
        return bounds, terms, np.array([i.factors_changed for i in self.history])

    @property
    def n_factors(self) -> int:
        return n_factors_of(self.state)

    def finished(self, settings: Settings) -> bool:
        return self.converged or self.stopped or len(self.history) >= settings.max_iter


class Journal:
    """Keeps record of where a fit stands, one run after the other. This one keeps nothing."""

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
