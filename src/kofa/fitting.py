"""One fit, from parameters and tables to all that a model predicts from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kofa import omics, published, tuning
from kofa.checks import hint, is_among, listed, shown
from kofa.data.dask_tables import is_client, placed_on
from kofa.data.returning import labelled
from kofa.data.stored import Encoded, Placed, Stored, Values, by_blocks, is_on_disk, n_measured
from kofa.data.tables import Samples
from kofa.engines import cluster
from kofa.engines.memory import InMemory
from kofa.engines.streamed import Streamed, ViewRows
from kofa.errors import DataError, warn
from kofa.inference.engine import Engine, Latents
from kofa.inference.explained import Explained
from kofa.inference.fit import best_of
from kofa.inference.observations import Rows
from kofa.inference.posterior import State, complete, n_factors_of
from kofa.inference.predictive import Basis, as_found, predictive
from kofa.inference.role import Role
from kofa.inference.run import Callback, Iteration, Journal, Run, Settings, Stage, counted
from kofa.inference.start import energy
from kofa.kernels.formulas import Precomputed
from kofa.linalg import Array, BoolArray, IntArray
from kofa.predictive.keys import ranks_of_rows
from kofa.preparation.fit_data import FitData
from kofa.preparation.fitted import FitSamples, Fitted
from kofa.preparation.parameters import Parameters
from kofa.preparation.prepare import (
    FittedView,
    fit_views,
    roles,
)
from kofa.preparation.questions import Questions
from kofa.preparation.slips import warn_of_slips
from kofa.progress import Progress
from kofa.results.outputs import FactorsOfRows
from kofa.results.questions import ask

_MOST_ASKED, _MOST_ROWS = 20_000_000, 50_000  # numbers and rows from which views are asked
_MOST_KEPT = 10_000_000  # numbers, up to which a model keeps the factors of its samples (80 MB)


@dataclass(frozen=True, eq=False)
class FactorFit:
    """What a fit found, and the samples that it was found from."""

    fitted: Fitted
    samples: Samples
    Z: Array  # their factors, as users see them
    run: Run

    def factors(self) -> Any:
        """The factors of the samples: an array or DataFrame (N, K)."""
        return labelled(self.Z, self.samples, self.fitted.factor_names)

    def warn(self, parameters: Parameters) -> None:
        """Say what the user might want to change."""
        if not (self.run.converged or self.run.stopped):
            _warn_of_growth(self.fitted.bounds, parameters)
        if self.run.hit_ceiling:
            _warn_of_ceiling(self.fitted.n_factors, parameters)


# What keeps the state of a fit, from what is fitted and the random numbers at its beginning
JournalOf = Callable[[Parameters, FitData, np.random.Generator], Journal]


def fit(
    parameters: Parameters,
    data: Any,
    journal_of: JournalOf,
    asked: Any = (),
    of_slips: bool = True,
) -> FactorFit:
    """Read the tables, prepare the views, find the factors, and all that follows from these.

    `asked`: views whose prediction is worked out at once, beside outputs. `of_slips`: whether to
    warn of tables that look like a mistake.
    """
    data = omics.tables(data, parameters.views)
    views = parameters.check(data)
    if is_client(parameters.engine):
        data = placed_on(parameters.engine, data)
    rng = parameters.generator()
    fit_data = FitData.read(views, data, parameters.outputs)
    asked = _known(asked, fit_data)
    if parameters.engine == "memory":
        fit_data = fit_data.in_memory()
    if of_slips:
        warn_of_slips(fit_data, declared=parameters.views is not None)
    # Samples without any observation say nothing: they get the prior.
    seen: BoolArray = np.any([fit_data.seen(name) for name in fit_data.tables], axis=0)
    with Progress(parameters.progress, int(parameters.max_iter)) as bar:
        if parameters.as_published:
            found = _published(parameters, fit_data, seen, rng, bar)
        else:
            with journal_of(parameters, fit_data, rng) as journal:
                found = _from_views(parameters, fit_data, seen, rng, journal, bar)
        return _finished(parameters, fit_data, found, seen, asked, bar.stage)


def _known(asked: Any, fit_data: FitData) -> list[str]:
    """The views to be predicted, one name or several, or an error that says which there are."""
    views = list(dict.fromkeys(fit_data.sources.values()))
    names = [asked] if isinstance(asked, str) else () if asked is None else asked
    if not isinstance(names, Iterable):
        cure = f"there are {listed(views)}"
        raise DataError("expected names of views", got=asked, option="predict", cure=cure)
    names = list(names)
    for name in names:
        if not is_among(name, views):
            cure = hint(name, views, "there are")
            raise DataError(f"unknown view {shown(name)}", option="predict", cure=cure)
    return names


def _from_views(
    parameters: Parameters,
    fit_data: FitData,
    seen: BoolArray,
    rng: np.random.Generator,
    journal: Journal,
    bar: Progress,
) -> Inferred:
    """Prepare the views and find the factors."""
    bar.stage("preparing the views")
    views = journal.once(partial(fit_views, fit_data, rng), rng)
    return _infer(parameters, fit_data, views, seen=seen, rng=rng, journal=journal, bar=bar)


def _published(
    parameters: Parameters,
    fit_data: FitData,
    seen: BoolArray,
    rng: np.random.Generator,
    bar: Progress,
) -> Inferred:
    """What the paper's own model finds, in which outputs are views like any other."""
    found = published.fit(parameters, fit_data, seen, rng, _notified(parameters, bar))
    views, engine, treated = found.views, found.engine, roles(fit_data, found.views)
    return Inferred(views, treated, engine, engine, found.run)


def _finished(
    parameters: Parameters,
    fit_data: FitData,
    found: Inferred,
    seen: BoolArray,
    asked: Sequence[str],
    stage: Stage,
) -> FactorFit:
    """All that follows from the factors."""
    run, views = found.run, found.with_energies()
    alone = parameters.as_published  # factors say all
    questions = Questions(None) if alone else _questions(fit_data, views)
    stage("outputs")
    state, basis = _with_outputs(found, views, questions, parameters.n_factors)
    if not alone:
        _ask(questions, views, state, asked, stage)
    own_Z = basis.of_latents(found.inner, found.factors())
    Z = np.zeros((fit_data.samples.n, basis.n_factors))
    Z[seen] = np.asarray(own_Z)
    fitted = Fitted(
        views,
        state,
        basis,
        questions,
        run.converged,
        *run.path,
        _fit_samples(fit_data, Z),
        explained=_explained(found.engine, state, basis, own_Z, stage),
        by_factors=alone,
    )
    return FactorFit(fitted, fit_data.samples, Z, run)


def _with_outputs(
    found: Inferred,
    views: Mapping[str, FittedView],
    questions: Questions,
    n_factors: int | None,
) -> tuple[State, Basis]:
    """The state with outputs as the factors explain them, and the factors that users see.

    Where fewer factors are wanted than carry the outputs, outputs follow from those alone.
    """
    known = complete(found.run.state)
    if len(known) == len(views):
        return known, as_found(n_factors_of(known)).first(n_factors)
    assert questions.rows is not None
    values = {name: questions.rows[view.source] for name, view in views.items()}
    energy = np.sum([views[name].energy.sum(axis=0) for name in known], axis=0)
    factors = FactorsOfRows.of(views, known, values, energy)
    outputs = [name for name in views if name not in known]
    told = {name: factors.explain(views[name], values[name]) for name in outputs}
    basis = predictive(known, told, found.engine.likelihoods)
    if n_factors is not None and n_factors < basis.n_predictive:
        basis = basis.first(n_factors)
        few = factors.along(basis)
        told = {n: basis.embedded(few.explain(views[n], values[n])) for n in outputs}
    both = {**known, **told}
    return {name: both[name] for name in views}, basis.first(n_factors)


@dataclass(frozen=True, eq=False)
class Inferred:
    """The factors of the samples, and what they were found from."""

    views: Mapping[str, FittedView]
    roles: Mapping[str, Role]
    engine: Engine  # of all views
    inner: Engine  # of the inputs
    run: Run

    def factors(self) -> Latents:
        """Those of the samples, each by itself: (N, K)."""
        return self.inner.project(self.run.state)[0]

    def with_energies(self) -> dict[str, FittedView]:
        """The views, inputs with the variance that they give the outputs a priori."""
        inputs = {n: q for n, q in self.run.state.items() if not self.views[n].role.output}
        some = len(inputs) < len(self.views)  # outputs
        energies = {n: energy(q, self.roles[n]) for n, q in inputs.items() if some}
        return {
            n: replace(view, energy=energies.get(n, view.energy)) for n, view in self.views.items()
        }


def _infer(
    parameters: Parameters,
    fit_data: FitData,
    views: Mapping[str, FittedView],
    *,
    seen: BoolArray,
    rng: np.random.Generator,
    journal: Journal,
    bar: Progress,
) -> Inferred:
    """Encode the samples that have a value, and find their factors."""
    engine = _engine(parameters, fit_data, views, seen).condensed()
    treated = roles(fit_data, views)
    settings = _settings(parameters, treated)
    inputs = {name: role for name, role in treated.items() if not role.output}
    inner = engine.part(inputs) if len(inputs) < len(treated) else engine
    n_init = int(parameters.n_init)
    run = best_of(inner, inputs, settings, n_init, rng, _notified(parameters, bar), journal)
    return Inferred(views, treated, engine, inner, run)


def _notified(parameters: Parameters, bar: Progress) -> Callback:
    """Who hears of every iteration."""

    def notify(iteration: Iteration) -> bool:
        bar.show(iteration)
        return bool(parameters.callback is not None and parameters.callback(iteration))

    return notify


def _engine(
    parameters: Parameters, fit_data: FitData, views: Mapping[str, FittedView], seen: BoolArray
) -> InMemory | Streamed | cluster.Cluster:
    """The samples that have a value, encoded at once or, where rows are stored, when visited."""
    spread = partial(fit_data.samples.spread)
    values = {name: spread(fit_data.tables[name]) for name in views}
    block_rows = None if parameters.block_rows == "auto" else int(parameters.block_rows)
    client = parameters.engine if is_client(parameters.engine) else None
    to_disk = parameters.engine == "disk" or any(map(is_on_disk, values.values()))
    stored = to_disk or any(isinstance(one, Stored) for one in values.values())
    if client is None and not stored:
        rows: Any = slice(None) if seen.all() else seen  # the first without a copy
        observed = {n: view.observe(values[n][rows], parameters.dtype) for n, view in views.items()}
        return InMemory(Rows.stack(observed), block_rows)
    rows, sources = np.flatnonzero(seen), {}
    for name, view in views.items():
        encoded = Encoded(Placed(values[name], rows), view.encoding(parameters.dtype))
        holed = view.likelihood is not None and fit_data.has_holes(name)
        sources[name] = encoded, view.likelihood, fit_data.seen(name)[rows], holed
    if client is not None:
        return cluster.place(client, sources, block_rows)
    read = {name: ViewRows.of(*source) for name, source in sources.items()}
    return Streamed(read, block_rows, to_disk)


def _settings(parameters: Parameters, treated: Mapping[str, Role]) -> Settings:
    """What was asked for, or what serves outputs best, or tables without outputs.

    Those factors that carry outputs are found among all, however few of them are wanted.
    """
    exact = any(role.exact for role in treated.values())
    wanted, all_of_them = parameters.n_factors, tuning.MOST_FACTORS
    if wanted is not None and any(role.output for role in treated.values()):
        wanted = wanted if wanted > all_of_them else None
    tol = tuning.TOL_WITH_OUTPUTS if exact else tuning.TOL
    return Settings(
        n_factors=int(all_of_them if wanted is None else wanted),
        max_iter=int(parameters.max_iter),
        tol=float(tol if parameters.tol is None else parameters.tol),
        rotate=not exact,  # measured, rotation gains nothing there
        free=wanted is None and not exact,
        n_jobs=parameters.workers,
    )


# ---------------------------------------------------------------- what follows from the factors


def _questions(fit_data: FitData, views: Mapping[str, FittedView]) -> Questions:
    """What the model can be asked, from as many rows as memory allows."""
    of_source = {fit_data.sources[name]: table for name, table in fit_data.tables.items()}
    values = {s: fit_data.samples.spread(table) for s, table in of_source.items()}
    width = sum(one.shape[1] for one in values.values())
    width += sum(len(view.landmarks) for view in views.values())
    n, most = fit_data.samples.n, min(max(_MOST_ASKED // width, 1), _MOST_ROWS)
    pairs = any(isinstance(kernel, Precomputed) for kernel in fit_data.kernels.values())
    rows: Any = slice(None) if n <= most or pairs else _some_rows(fit_data, values, most)
    return Questions({source: np.array(one[rows]) for source, one in values.items()})


def _ask(
    questions: Questions,
    views: Mapping[str, FittedView],
    state: State,
    asked: Sequence[str],
    stage: Stage,
) -> None:
    """Work out what outputs, and views that are asked for, follow from."""
    direct = [name for name, view in views.items() if view.likelihood is not None]
    wanted = [name for name in direct if views[name].role.output or views[name].source in asked]
    for name in counted(stage, "views from the others", wanted):
        ask(questions, views, state, name)


def _some_rows(fit_data: FitData, values: Mapping[str, Values], most: int) -> IntArray:
    """So many rows, drawn by what is in them; those that have a view of few rows are among them."""
    order = np.argsort(ranks_of_rows(values.values()))
    chosen = np.zeros(len(order), dtype=bool)
    for name in fit_data.tables:
        has = order[fit_data.seen(name)[order]]
        chosen[has[: most // len(fit_data.tables)]] = True
    rest = order[~chosen[order]]
    chosen[rest[: most - int(chosen.sum())]] = True
    return np.flatnonzero(chosen)


def _explained(
    engine: Engine, state: State, basis: Basis, Z: Latents, stage: Stage
) -> dict[str, Explained]:
    """What the factors Z that users see explain of each view."""
    weights = {name: basis.of_weights(view.weights) for name, view in state.items()}
    told = counted(stage, "variance explained of views", weights)
    return {name: engine.explained(name, weights[name], Z) for name in told}


def _fit_samples(fit_data: FitData, Z: Array) -> FitSamples | None:
    """What the model keeps of its samples, unless that is very much."""
    if Z.size > _MOST_KEPT:
        return None
    samples, names = fit_data.samples, fit_data.samples.names
    measured = {
        fit_data.sources[name]: by_blocks(n_measured, samples.spread(table))
        for name, table in fit_data.tables.items()
    }
    counts = np.column_stack(list(measured.values())).astype(float)
    return FitSamples(None if names is None else np.asarray(names), Z, counts)


# ---------------------------------------------------------------- advice


def _warn_of_growth(bounds: Array, parameters: Parameters) -> None:
    growth = float(np.diff(bounds[-2:]).sum())  # negative with fewer factors
    by = f" (by {growth:.3g} in the last iteration)" if growth > 0 else ""
    warn(
        f"The bound was still growing{by} after max_iter={parameters.max_iter} iterations. "
        f"Increase max_iter, or tol if the factors no longer change.",
        ConvergenceWarning,
    )


def _warn_of_ceiling(n_factors: int, parameters: Parameters) -> None:
    cure = "leave it out to have the number found, or raise it"
    if parameters.n_factors is None:
        cure = f"set it to more than {n_factors}"
    warn(
        f"All {n_factors} factors are in use, and the bound would be higher with more. n_factors "
        f"limits their number: {cure}."
    )
