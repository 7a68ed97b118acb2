"""The paper's own model, whole: what `FactorModel(as_published=True)` fits.

Outputs are views like any other. They are in the joint fit, also where samples lack them, and
follow from z alone. Every start is random and goes on by plain coordinate ascent: nothing is
rotated, foreseen or tried with other numbers of factors, and no kernel is learnt from an output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from kofa.engines.memory import InMemory
from kofa.errors import DeclarationError
from kofa.inference.loop import one_step
from kofa.inference.observations import Rows
from kofa.inference.order import in_order
from kofa.inference.posterior import Gamma, Known, Precision, ViewPosterior, keep
from kofa.inference.role import Role
from kofa.inference.run import Callback, Iteration, Run, Settings
from kofa.inference.start import prepare, start
from kofa.kernels.base import Kernel, Weighted
from kofa.kernels.kernel_map import KernelMap
from kofa.kernels.landmarks import as_landmarks
from kofa.kernels.mixture import Mixture
from kofa.kernels.selection import Selection
from kofa.kernels.terms import Relevance, learns_relevance
from kofa.linalg import Array, BoolArray, IntArray, centre
from kofa.preparation.fit_data import FitData
from kofa.preparation.parameters import Parameters
from kofa.preparation.prepare import FittedView, fit_views, output_names
from kofa.preparation.relevance_vectors import Vectors
from kofa.views import View

MOST_FACTORS = 100  # where their number is left open
_OFF = 1e-6  # a weight, relative to the spread of a column, of a factor that ARD has switched off
MEMORY = 101  # bounds that tell whether the last one stands still, up to a share of it
_TOL = 1e-4
_TURN, _STEPS = 10, 20  # λ moves in every so many iterations, by so many steps
THRESHOLD = 0.01  # the share of the largest 1/⟨γ_d⟩ below which a landmark goes


@dataclass(frozen=True, eq=False)
class Found:
    """Where a start ended: the views, whose λ it may have learnt, their rows, and all the rest."""

    views: Mapping[str, FittedView]
    engine: InMemory
    run: Run


def fit(
    parameters: Parameters,
    fit_data: FitData,
    seen: BoolArray,
    rng: np.random.Generator,
    notify: Callback,
) -> Found:
    """The start with the highest bound; without landmarks that double ARD switched off.

    `seen`: the samples that have something of a view.
    """
    _check(fit_data)
    rows, spread = np.flatnonzero(seen), fit_data.samples.spread
    values = {name: np.array(spread(table)[rows]) for name, table in fit_data.tables.items()}
    ascent = Ascent(parameters, fit_data, values, notify)
    best = max(ascent.starts(_prepared(fit_data, rng), rng), key=lambda f: f.run.lower_bound)
    if any(fit_data.views[name].sparse for name in fit_data.kernels) and not best.run.stopped:
        best = ascent.to_the_end(ascent.with_fewer_landmarks(best), best.run.Z)
    return replace(best, run=in_order(best.engine, best.run))


def _check(fit_data: FitData) -> None:
    """Raise for what the paper's model does not have."""
    for name, view in fit_data.views.items():
        kernel, cure = view.kernel, "leave it out, or as_published=True"
        if isinstance(kernel, Mixture) and isinstance(kernel.weights, str):
            what = "weights of kernels that outputs choose"
            cure = "write kernel=['linear', 'rbf'], which is a view for each"
        elif isinstance(kernel, Weighted) and kernel.sparsity is not None:
            what = "sparsity of relevances"
        elif as_landmarks(view.landmarks).keep is not None:
            what = "limit of relevance vectors (keep in landmarks)"
        else:
            continue
        raise DeclarationError(f"the paper's model has no {what}", name, cure=cure)


def _prepared(fit_data: FitData, rng: np.random.Generator) -> dict[str, FittedView]:
    """The views as in a fit without outputs: all rows are landmarks, all features count alike.

    A view has one noise, unless it is declared otherwise.
    """
    plain = {name: _plain(view) for name, view in fit_data.views.items()}
    found = fit_views(replace(fit_data, views=plain, outputs=frozenset()), rng)
    for name, view in fit_data.views.items():
        kernelized, output = name in fit_data.kernels, name in fit_data.outputs
        role = Role(name, kernelized, output, view.sparse, view.noise == "column")
        found[name] = replace(found[name], role=role)
        if learns_relevance(view.kernel):
            found[name] = _all_alike(found[name])
    return found


def _all_alike(view: FittedView) -> FittedView:
    """Before it is learnt, λ of all features is one."""
    encoder = view.encoder
    assert isinstance(encoder, KernelMap)
    assert isinstance(encoder.kernel, Weighted)
    kernel = replace(encoder.kernel, relevance=(1.0,) * encoder.V.shape[1])
    return replace(view, encoder=replace(encoder, kernel=kernel))


def _plain(view: View) -> View:
    if view.kernel is None:
        return view
    few = as_landmarks(view.landmarks).n != "auto"
    alike = replace(view.kernel, relevance=None) if learns_relevance(view.kernel) else view.kernel
    return replace(view, kernel=alike, landmarks=view.landmarks if few else "all", sparse=False)


@dataclass(frozen=True, eq=False)
class Ascent:
    """The data of a fit, and all that its starts have in common."""

    parameters: Parameters
    fit_data: FitData
    values: Mapping[str, Array]  # in the user's units
    notify: Callback

    def starts(self, views: Mapping[str, FittedView], rng: np.random.Generator) -> Iterator[Found]:
        """The ends of all starts, from z ~ N(0, I) and the weights that belong to it."""
        n_factors = self.parameters.n_factors or MOST_FACTORS
        for nth in range(int(self.parameters.n_init)):
            Z = rng.standard_normal((len(next(iter(self.values.values()))), int(n_factors)))
            found = self.to_the_end(views, Z, nth)
            yield found
            if found.run.stopped:
                break

    def to_the_end(self, views: Mapping[str, FittedView], Z: Array, nth: int = 0) -> Found:
        """Coordinate ascent from some z until the bound stands still."""
        engine, settings = self._engine(views), Settings(Z.shape[1], int(self.parameters.max_iter))
        found = Found(views, engine, _begin(engine, views, Z))
        while not found.run.finished(settings):
            found = self._iterated(found, nth)
        return found

    def _iterated(self, found: Found, nth: int) -> Found:
        """One iteration: first what the last one left to do, then z and all that is shared."""
        found = _pruned(self._with_relevance(found))
        now, done = found.run, one_step(found.engine, found.run.state, found.run.Z)
        n_iter, n_factors = len(now.history) + 1, done.Z.shape[1]
        pruned = bool(now.history) and n_factors < now.history[-1].n_factors
        last = Iteration(n_iter, done.bound.total, done.bound.named, n_factors, pruned, nth)
        now = replace(now, state=done.end, Z=done.Z, history=(*now.history, last))
        stopped, converged = bool(self.notify(last)), self._stands_still(now)
        return replace(found, run=replace(now, stopped=stopped, converged=converged))

    def _stands_still(self, now: Run) -> bool:
        """Whether the bound is hardly above its mean over the last hundred iterations."""
        bounds = [one.lower_bound for one in now.history[-MEMORY:]]
        tol = _TOL if self.parameters.tol is None else self.parameters.tol
        full = len(bounds) == MEMORY
        return full and float(np.mean(bounds[:-2])) > bounds[-1] - tol * abs(bounds[-1])

    def _engine(self, views: Mapping[str, FittedView]) -> InMemory:
        dtype = self.parameters.dtype
        return InMemory(Rows.stack({n: v.observe(self.values[n], dtype) for n, v in views.items()}))

    def _with_relevance(self, found: Found) -> Found:
        """With λ at which the kernels' terms of the bound are higher, given all else."""
        learnt = [n for n, kernel in self.fit_data.kernels.items() if learns_relevance(kernel)]
        n_iter = len(found.run.history)
        if not learnt or not n_iter or n_iter % _TURN:
            return found
        views = dict(found.views)
        for name in learnt:
            view, values = views[name], self.values[name]
            told = found.run.state[name].weights.predict(found.run.Z)
            kernel = by_reconstruction(view, values, told)
            other = self._with_landmarks(name, view, kernel, view.landmarks)
            left = [np.nansum((v.encoder.encode(values) - told) ** 2) for v in (view, other)]
            views[name] = other if left[1] <= left[0] else view
        return replace(found, views=views, engine=self._engine(views))

    def with_fewer_landmarks(self, found: Found) -> dict[str, FittedView]:
        """The views without landmarks that double ARD switched off."""
        views = dict(found.views)
        for name, view in views.items():
            if view.role.sparse and isinstance(view.encoder, KernelMap):
                chosen = by_ard(found.run.state[name])
                vectors = Vectors.of(self.fit_data.tables[name], view.landmarks, chosen)
                few = self._with_landmarks(name, view, view.encoder.kernel, vectors.kept)
                views[name] = replace(few, vectors=vectors)
        return views

    def _with_landmarks(
        self, name: str, view: FittedView, kernel: Kernel, rows: IntArray
    ) -> FittedView:
        encoder = self.fit_data.kernel_map(name, kernel, rows)
        names = output_names(self.fit_data.tables[name], rows)
        return replace(view, encoder=encoder, landmarks=rows, outputs=names)


def _begin(engine: InMemory, views: Mapping[str, FittedView], Z: Array) -> Run:
    """Weights that belong to Z, at precisions of one."""
    roles = {name: replace(view.role, output=False) for name, view in views.items()}
    given = prepare(engine, roles, Z)
    state = {n: replace(v, alpha=_one(v.alpha), tau=_one(v.tau)) for n, v in given.items()}
    return Run(start(engine, state, Z), Z)


def _one(precision: Precision) -> Precision:
    if isinstance(precision, Known):
        return precision
    return Gamma(precision.shape, 0.0 * precision.rate + precision.shape)


def _pruned(found: Found) -> Found:
    """Without factors that ARD switched off in all views."""
    sizes = []  # of the largest weight, relative to the spread of the column that has most
    for view in found.run.state.values():
        W = view.weights.mean
        spread = np.sqrt((W**2).sum(axis=1) + 1.0 / view.precision)
        sizes.append(np.abs(W).max(axis=0) / spread.max())
    size = np.max(sizes, axis=0)
    on = np.flatnonzero(size >= min(_OFF, float(size.max())))
    run = replace(found.run, state=keep(found.run.state, on), Z=found.run.Z[:, on])
    return replace(found, run=run) if len(on) < len(size) else found


def by_ard(view: ViewPosterior) -> Selection:
    """The landmarks that double ARD leaves on, the strongest first."""
    size = 1.0 / view.column_precision
    relevance = size / float(size.max())
    n = max(2, int((relevance >= THRESHOLD).sum()))
    return Selection(np.argsort(-relevance, kind="stable")[:n], relevance)


def by_reconstruction(view: FittedView, values: Array, told: Array) -> Kernel:
    """The kernel with the λ at which it is most like what the factors make of it (n, R).

    That is the kernel's term of the bound. Similarities have a size that is fixed, without which
    λ → 0, where the kernel is constant, would send the bound to infinity.
    """
    assert isinstance(view.encoder, KernelMap)
    kernel, present = view.encoder.kernel, view.seen(values)
    assert isinstance(kernel, Weighted)
    X = view.encoder.scaling.complete(values[present])
    source = Relevance(replace(kernel, relevance=None), X, view.encoder.V, free_width=True)
    begin = np.sqrt(np.asarray(kernel.relevance, dtype=float))
    theta = np.array([begin[source.varies[members]].mean() for members in source.groups.members])
    if len(theta):  # else no feature varies
        theta = minimize(
            lambda t: reconstruction_error(source, t, told[present]),
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=source.bounds,
            options={"maxiter": _STEPS},
        ).x
    return source.learnt(theta)


def reconstruction_error(source: Relevance, theta: Array, target: Array) -> tuple[float, Array]:
    """½ mean (k̂ − target)², k̂ the centred kernel with the target's norm, and its gradient."""
    K, pull = source.evaluate(theta)
    centred = centre(K)
    size = max(float(np.linalg.norm(centred)), 1e-12)
    scale = float(np.linalg.norm(target)) / size
    apart = scale * centred - target
    # The norm is held: what would only change it does not count.
    slope = scale * (apart - centred * (float(np.vdot(apart, centred)) / size**2))
    return 0.5 * float(np.vdot(apart, apart)) / K.size, pull(centre(slope)) / K.size
