"""Where a fit starts: spectral factors, priors, and the first global factors."""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt

import numpy as np

from kofa import tuning
from kofa.inference.engine import Engine, Latents
from kofa.inference.global_step import expected_residual, global_step, update_alpha, update_weights
from kofa.inference.posterior import Gamma, Known, Precision, State, ViewPosterior, lean
from kofa.inference.role import Role
from kofa.inference.statistics import ViewStatistics, centred
from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, BoolArray, solve_positive

# The least noise in roundings of the values, 2e-6 of the variance in single precision: what the
# factors leave of a column is wrong by 1e-7 there.
_ROUNDINGS = 16.0


def start_view(role: Role, s: ViewStatistics, likelihood: Likelihood | None) -> ViewPosterior:
    """q of one view given Z: all but least squares, with the noise that this leaves."""
    n_columns, k = s.R.shape
    ones = np.ones(n_columns)
    ridge = (
        1e-10 * float(s.n.max()) / tuning.EXACT_NOISE
    )  # of a Z on unit scale, where rows are few
    q = update_weights(s, np.full(k, ridge), ones, ones / tuning.EXACT_NOISE)
    n, residual, total = s.n_column, expected_residual(q, s), s.y_square
    if not role.noise_per_column:
        n, residual, total = (x.sum(keepdims=True) for x in (n, residual, total))
    least = 0.0 if role.kernelized or role.exact else tuning.START_NOISE
    # Of a handful of columns more is rounding.
    least_held = tuning.EXACT_NOISE * max(1.0, 10.0 / n_columns)
    share = max(least_held if role.exact else tuning.NOISE_FLOOR, _ROUNDINGS * s.rounding)
    floor = share * np.maximum(n, total)
    noise = np.maximum(residual, least * total) + floor
    tau_prior: Precision = Gamma(
        np.full(n.shape, tuning.BROAD_PRIOR), tuning.BROAD_PRIOR + 0.5 * floor
    )
    if role.exact:
        tau_prior = Gamma(tuning.EXACT_WEIGHT * n, tuning.EXACT_WEIGHT * noise)
    tau: Precision = Gamma(0.5 * n, 0.5 * noise)
    if likelihood is not None and likelihood.curvature is not None:
        tau = tau_prior = Known(likelihood.curvature)
    alpha_prior = Gamma(np.array(tuning.BROAD_PRIOR), np.full(k, tuning.BROAD_PRIOR))
    return ViewPosterior(
        weights=q,
        alpha=update_alpha(alpha_prior, q, ones),
        gamma=Gamma(ones, ones) if role.sparse else None,
        tau=tau,
        alpha_prior=alpha_prior,
        gamma_prior=Gamma(np.array(tuning.BROAD_PRIOR), np.array(tuning.BROAD_PRIOR)),
        tau_prior=tau_prior,
    )


def energy(view: ViewPosterior, role: Role) -> Array:
    """z_kᵀ K z_k / N² of an input along each factor of unit variance, for each kernel: (·, K).

    Rows have similarities Z Wᵀ to the landmarks, so that with Nyström's K it is w_kᵀ gram^-1 w_k;
    a primal view has K = ZWᵀWZᵀ / D.
    """
    W = view.weights.mean
    if not role.grams:
        return np.asarray(role.weight * (W**2).mean(axis=0, keepdims=True))
    gram = np.sum(role.grams, axis=0)
    dual = solve_positive(gram, W, tuning.GRAM_JITTER)
    return np.array([np.maximum((dual * (part @ dual)).sum(axis=0), 0.0) for part in role.grams])


def affordable(n_groups: int, n_factors: int) -> int:
    """So many factors at most that a covariance for each group of columns fits into memory."""
    return max(1, min(n_factors, isqrt(tuning.MOST_COVARIANCES // max(1, n_groups))))


def n_column_groups(engine: Engine) -> int:
    """Number of groups of columns that have the same holes, in all views."""
    return sum(groups.size for groups in engine.columns.values())


def spectral(
    engine: Engine, n_factors: int, rng: np.random.Generator, above_noise: bool = False
) -> Latents:
    """Z from the leading directions of the views, on unit scale; all, or those above the noise."""
    # The bias takes one degree of freedom: more directions than this cannot be told apart.
    most = min(n_factors, max(1, engine.n_samples - 1))
    return engine.principal_directions(most, rng, above_noise)


def in_random_rotation(
    engine: Engine, Z: Latents, n_factors: int, rng: np.random.Generator
) -> Latents:
    """Others in the same directions: none of these factors is one of those.

    (Directions at random, without regard to the views, leave so much noise at first that most
    factors are given up: 5 of 16 stay on breast cancer data, and the bound is far lower.)
    """
    Q, _ = np.linalg.qr(rng.standard_normal((n_factors, n_factors)))
    return engine.rotate(Z, Q, np.zeros(n_factors))


def prepare(engine: Engine, roles: Mapping[str, Role], Z: Latents) -> State:
    """Priors, and global factors to begin with, from the spectral Z.

    They are the same for all starts, so that bounds can be compared.
    """
    return prepare_and_start(engine, roles, Z)[0]


def prepare_and_start(engine: Engine, roles: Mapping[str, Role], Z: Latents) -> tuple[State, State]:
    """The same, and the first global factors, from one pass over the rows."""
    likelihoods, views = engine.likelihoods, centred(engine.summarise(Z))
    priors = {name: start_view(roles[name], s, likelihoods[name]) for name, s in views.items()}
    return lean(priors), lean(global_step(priors, views))


def start(engine: Engine, state: State, Z: Latents) -> State:
    """The first global factors, from the spectral Z or from another one in its place."""
    return global_step(state, centred(engine.summarise(Z)))


def some_samples(
    engine: Engine, roles: Mapping[str, Role], rng: np.random.Generator
) -> Engine | None:
    """Some of many samples, which have all columns; None where all may as well be visited."""
    rows = some_rows(engine, roles, rng)
    return None if rows is None else engine.part(roles, rows)


def some_rows(
    engine: Engine, roles: Mapping[str, Role], rng: np.random.Generator
) -> BoolArray | None:
    """Which samples these are."""
    all_matter = any(role.exact or role.kernelized for role in roles.values())
    if engine.n_visited <= tuning.MANY_SAMPLES or all_matter:
        return None
    rows = np.zeros(engine.n_samples, dtype=bool)
    rows[rng.choice(engine.n_samples, tuning.FIRST_SAMPLES, replace=False)] = True
    some = engine.part(roles, rows)
    return rows if some.summarise(some.zeros(1)).n_group[:].all() else None
