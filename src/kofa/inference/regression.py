"""Views explained by factors that have not seen them.

The factors of new samples are known from their inputs alone. Weights of outputs are estimated for
just that use: from the posterior means of z given the inputs, as a regression in which z is known.
What z leaves open is then part of the outputs' noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from kofa import tuning
from kofa.inference.bound import view_terms
from kofa.inference.engine import Engine, Latents
from kofa.inference.global_step import update_view, update_weights
from kofa.inference.held_out import choose_scale
from kofa.inference.posterior import Gamma, Known, ViewPosterior
from kofa.inference.role import Role
from kofa.inference.start import LEAST_ENERGY, some_rows, start_view
from kofa.inference.statistics import Statistics, ViewStatistics, centred
from kofa.inference.surrogate import refine
from kofa.linalg import Array, BoolArray, pieces

_ROUNDS = 12  # of updates of one view, at most
_SCALE_STEPS = 300
_SCALE_ENOUGH = 1e-4  # relative change of scale and noises that ends the search
_LONGEST_STEP = 16.0  # of the search, in plain ones


@dataclass(frozen=True)
class Regression:
    """One view, and its terms of the bound."""

    view: ViewPosterior
    terms: dict[str, float]

    @property
    def bound(self) -> float:
        return sum(self.terms.values())


@dataclass(frozen=True, eq=False)
class Unexplained:
    """A view if no factor explained it."""

    terms: dict[str, float]  # of the bound
    unseen: BoolArray  # (D,): columns that none of the samples has
    prior: ViewPosterior | None  # what all samples say of these, if there are some

    def completed(self, view: ViewPosterior) -> ViewPosterior:
        """With the mean and the variance of unseen columns, and no weights of theirs."""
        if self.prior is None:
            return view
        q, own, unseen = view.weights, self.prior.weights, self.unseen
        weights = replace(
            q,
            y_mean=np.where(unseen, own.y_mean, q.y_mean),
            bias_variance=np.where(unseen, own.bias_variance, q.bias_variance),
            scales=np.where(unseen[:, None], LEAST_ENERGY, q.scales),
        )
        gamma = np.where(unseen, 1.0 / LEAST_ENERGY, view.column_precision)
        tau = view.tau
        if isinstance(tau, Gamma) and isinstance(self.prior.tau, Gamma):
            shape = np.where(unseen, self.prior.tau.shape, tau.shape)
            tau = Gamma(shape, np.where(unseen, self.prior.tau.rate, tau.rate))
        gamma_of = Gamma(gamma, np.ones(len(gamma)))
        return replace(view, weights=weights, gamma=gamma_of, tau=tau)


def unexplained(engine: Engine, whole: Engine, roles: Mapping[str, Role]) -> dict[str, Unexplained]:
    """Each view of an engine, if no factor explained it; `whole` has all samples."""
    found = {}
    for name, s in centred(engine.summarise(engine.zeros(1))).items():
        view = _explained_by_nothing(start_view(roles[name], s, engine.likelihoods[name]), 1)
        terms, prior = _converged(view, s, engine.n_samples).terms, None
        if s.unseen.any():
            prior = _without_factors(whole.part([name]), name, roles[name])
        found[name] = Unexplained(terms, s.unseen, prior)
    return found


def _without_factors(engine: Engine, name: str, role: Role) -> ViewPosterior:
    """A view that no factor explains."""
    Z, likelihood = engine.zeros(1), engine.likelihoods[name]
    stats = engine.summarise(Z)
    s = centred(stats)[name]
    view = _explained_by_nothing(start_view(role, s, likelihood), 1)
    if likelihood is None:
        return _converged(view, s, stats.n_samples).view
    return _refined(engine, name, _with_weights(view, s), Z, stats).view


def regress(
    engine: Engine,
    name: str,
    role: Role,
    Z: Latents,
    energy: Array,
    alone: Unexplained,
    rng: np.random.Generator,
) -> Regression:
    """A view from factors Z that are known, with more trust in those of more `energy` (K,).

    `alone`: it, if no factor explained it. If the bound is higher, none does. (Not for views that
    are not Gaussian: their bound is too loose to say so.)
    """
    stats, likelihood = engine.summarise(Z), engine.likelihoods[name]
    s = centred(stats)[name]
    energy = np.maximum(energy, LEAST_ENERGY * max(float(energy.max()), np.finfo(float).tiny))
    view = replace(start_view(role, s, likelihood).lean(), energy=energy)
    if s.unseen.all():
        view = _with_weights(_explained_by_nothing(view, len(energy)), s)
        return Regression(view, alone.terms)
    if likelihood is not None:
        rows = engine.sample(name, rng)
        alpha = choose_scale(view, engine.view(name, rows), engine.take(Z, rows), energy)
        view = _with_weights(replace(view, alpha=alpha, alpha_prior=alpha), s)
        some = some_rows(engine, {name: role}, rng)
        if some is not None:
            view = _from_some(engine, name, view, Z, some)
        return _refined(engine, name, view, Z, stats)
    found = _converged(_at_best_scale(view, s, energy), s, stats.n_samples)
    if found.bound >= sum(alone.terms.values()):
        return found
    view = _explained_by_nothing(found.view, len(energy))
    return Regression(_converged(view, s, stats.n_samples).view, alone.terms)


def _with_weights(view: ViewPosterior, s: ViewStatistics) -> ViewPosterior:
    weights = update_weights(s, view.alpha.mean, view.column_precision, view.precision)
    return replace(view, weights=weights)


def _from_some(
    engine: Engine, name: str, view: ViewPosterior, Z: Latents, rows: BoolArray
) -> ViewPosterior:
    """With the weights that are best for some samples, from where it is not far to those of all."""
    some, own_Z = engine.part([name], rows), engine.take(Z, rows)
    stats = some.summarise(own_Z)
    begin = _with_weights(view, centred(stats)[name])
    best, q = _refined(some, name, begin, own_Z, stats).view.weights, view.weights
    y_mean = best.bias + (best.mean * q.z_mean[q.columns.label]).sum(axis=1)
    return replace(view, weights=q.moved(mean=best.mean, y_mean=y_mean))


def _explained_by_nothing(view: ViewPosterior, n_factors: int) -> ViewPosterior:
    nothing = Known(np.full(n_factors, 1.0 / LEAST_ENERGY))
    return replace(view, alpha=nothing, alpha_prior=nothing)


def _varies(square: Array, n: Array | float) -> BoolArray:
    """Which columns vary by more than rounding; a constant one predicts itself."""
    return np.asarray(square > np.finfo(float).eps * n)


def _ascend(
    view: ViewPosterior, step: Callable[[ViewPosterior], Regression], n_samples: float
) -> Regression:
    """After as many steps as raise the bound."""
    last = -np.inf
    for _ in range(_ROUNDS):
        found = step(view)
        if found.bound - last < tuning.REGRESSION_TOL * n_samples:
            break
        view, last = found.view, found.bound
    return found


def _converged(view: ViewPosterior, s: ViewStatistics, n_samples: float) -> Regression:
    """A view whose statistics are known, its factors at their optimum."""

    def step(view: ViewPosterior) -> Regression:
        view = update_view(view, s)
        return Regression(view.lean(), view_terms(view, s))

    return _ascend(view, step, n_samples)


def _refined(
    engine: Engine, name: str, view: ViewPosterior, Z: Latents, stats: Statistics
) -> Regression:
    """A view that is not Gaussian, its weights at their optimum."""

    def step(view: ViewPosterior) -> Regression:
        nonlocal stats  # which depend on where the weights were last
        sums_at = partial(engine.surrogate_sums, name, Z=Z)
        weights = refine(view, centred(stats)[name], sums_at)
        stats = stats.with_sums(name, sums_at(weights))
        s = centred(stats)[name]
        view = update_view(replace(view, weights=weights), s)
        return Regression(view, view_terms(view, s))

    return _ascend(view, step, stats.n_samples)


def _at_best_scale(view: ViewPosterior, s: ViewStatistics, energy: Array) -> ViewPosterior:
    """A spectral prior ⟨α_k⟩ = a / energy_k at the scale a with the highest evidence.

    Coordinate ascent would hardly move it. With fixed ratios one decomposition serves all scales:
    E^½ S E^½ = U Λ Uᵀ, where MacKay's a = Σ (1 − a var) / Σ v² converges.
    """
    share = energy / energy.sum()
    root = np.sqrt(share)
    eigenvalues, U = np.linalg.eigh(root[:, None] * s.S * root)
    lam = np.maximum(eigenvalues, 0.0)
    r = s.columns.matmul(s.R * root, U)
    varies = _varies(s.y_square, s.n_column)  # constant columns say nothing of the scale
    prior, shared = view.tau_prior, view.tau.mean.size == 1
    assert isinstance(prior, Gamma)

    def step(x: Array) -> Array:
        """(log a, log τ_d) after one of MacKay's updates."""
        a, tau = np.exp(x[0]), np.broadcast_to(np.exp(x[1:]), s.y_square.shape)
        left, determined, squares = np.empty(len(tau)), 0.0, 0.0
        for some in pieces(*r.shape):  # D × K numbers are several times a table of few rows
            own = lam[s.columns.label[some]]
            variance = 1.0 / (a + tau[some, None] * own)
            v = tau[some, None] * r[some] * variance
            left[some] = (own * (v**2 + variance) - 2.0 * v * r[some]).sum(axis=1)
            determined += float((1.0 - a * variance)[varies[some]].sum())
            squares += float((v**2).sum())
        n, residual = s.n_column, s.y_square + left + 1.0 / tau
        if shared:
            n, residual = n.sum(keepdims=True), residual.sum(keepdims=True)
        next_tau = (prior.shape + 0.5 * n) / (prior.rate + 0.5 * np.maximum(residual, 0.0))
        # As if one weight more were known, of the size of the start
        next_a = (determined + 1.0) / (squares + 1.0 - tuning.OUTPUT_START_NOISE)
        return np.asarray(np.log(np.append(next_a, next_tau)))

    begin = np.append(1.0 / (1.0 - tuning.OUTPUT_START_NOISE), view.tau.mean)
    a, *tau = np.exp(_fixed_point(step, np.log(begin)))
    shape = np.array(tuning.SPECTRAL_SHAPE)
    alpha = Gamma(shape, shape * share / a)
    noise = Gamma(np.ones(len(tau)), 1.0 / np.array(tau))
    return replace(view, alpha=alpha, alpha_prior=alpha, tau=noise)


def _fixed_point(step: Callable[[Array], Array], x: Array) -> Array:
    """Where a step leads no further, by steps as long as two in a row suggest (SQUAREM).

    Varadhan & Roland (2008). Each longer step is followed by one of the given kind.
    """
    for _ in range(_SCALE_STEPS // 3):
        first = step(x)
        second = step(first)
        change, bend = first - x, second - 2.0 * first + x
        if np.abs(change).max() < _SCALE_ENOUGH:
            return second
        size = float(np.linalg.norm(bend))
        length = min(float(np.linalg.norm(change)) / max(size, 1e-300), _LONGEST_STEP)
        longer = x + 2.0 * length * change + length**2 * bend
        x = step(longer) if length > 1.0 else second
    return x
