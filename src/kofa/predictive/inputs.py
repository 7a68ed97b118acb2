"""What the other views say of a row: features, and the weight of each view's kernel.

A source is one kernel K = ΦΦᵀ by its features Φ: the columns of a view, its similarities with
landmarks in a basis in which these are features, or factors. Features are centred over the rows of
the fit, and scaled such that K has a mean diagonal of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from kofa.linalg import Array, IntArray, centre
from kofa.predictive.regression import Evidence, Spectrum, without_outliers

_WEIGHT_PRIOR = 1.0  # standard deviation of log v around equal weights
_RATIO_PRIOR = 6.0  # the same of log λ around zero
_LIMIT = 14.0  # of both
_STEPS = 300
_CONSTANT = 1e-12


@dataclass(frozen=True, eq=False)
class Source:
    """One kernel of the rows of the fit."""

    features: Array  # (n, p)
    mean: Array  # (p,): what was taken off
    unit: float  # by which they were divided

    @classmethod
    def of(cls, features: Array) -> Source:
        mean = features.mean(axis=0)
        centred = np.ascontiguousarray(features - mean)
        unit = float(np.sqrt(np.vdot(centred, centred) / max(len(centred), 1)))
        unit = unit if unit > _CONSTANT else 1.0  # features that do not vary say nothing
        centred /= unit
        return cls(centred, mean, unit)

    @property
    def lean(self) -> Source:
        """Without the rows of the fit."""
        return replace(self, features=np.zeros((0, len(self.mean))))

    def as_given(self, rows: IntArray) -> Array:
        """Features of rows of the fit as they were before."""
        features = self.features[rows]
        features *= self.unit
        features += self.mean
        return features

    def of_rows(self, features: Array) -> Array:
        """Features of any rows, as those of the fit are."""
        return (features - self.mean) / self.unit

    @cached_property
    def gram(self) -> Array:
        return self.features @ self.features.T


@dataclass(frozen=True, eq=False)
class Map:
    """From features of any rows to their kernel Σ v K with the rows of the fit, along U."""

    sources: Mapping[str, Source]
    weights: Mapping[str, float]  # v
    projection: Array  # ΦᵀU (p, r)

    def of_rows(self, n: int, features: Mapping[str, Array]) -> Array:
        """Φ (n, p) of rows."""
        parts = [
            np.sqrt(self.weights[name]) * s.of_rows(features[name])
            for name, s in self.sources.items()
        ]
        return np.concatenate([np.zeros((n, 0)), *parts], axis=1)

    @cached_property
    def from_given(self) -> Array:
        """The projection of features as they are given: (p, r)."""
        scales = [
            np.full(len(s.mean), np.sqrt(self.weights[name]) / s.unit)
            for name, s in self.sources.items()
        ]
        return np.asarray(np.concatenate([np.zeros(0), *scales])[:, None] * self.projection)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Sources of some rows side by side, each with its weight v: one kernel Σ v K."""

    n: int
    sources: Mapping[str, Source]
    weights: Mapping[str, float]

    @classmethod
    def alike(cls, n: int, sources: Mapping[str, Source]) -> Inputs:
        return cls(n, sources, dict.fromkeys(sources, 1.0 / max(len(sources), 1)))

    def weighted(self, weights: Mapping[str, float]) -> Inputs:
        return Inputs(self.n, self.sources, weights)

    @cached_property
    def features(self) -> Array:
        """Φ (n, p) of the rows of the fit."""
        parts = [np.sqrt(self.weights[name]) * s.features for name, s in self.sources.items()]
        return np.concatenate([np.zeros((self.n, 0)), *parts], axis=1)

    @cached_property
    def spectrum(self) -> Spectrum:
        features = self.features
        n, p = features.shape
        if n <= p + 1:
            return Spectrum.of_kernel(features @ features.T)
        found = Spectrum.of_kernel(features.T @ features)
        return Spectrum(features @ (found.U / np.sqrt(found.e)), found.e)

    @property
    def map(self) -> Map:
        lean = {name: source.lean for name, source in self.sources.items()}
        return Map(lean, self.weights, self.features.T @ self.spectrum.U)


# D of some rows, what features do not hold of the kernels of sources with these weights
Rest = Callable[[Mapping[str, float], IntArray], Array]


def learn(
    sources: Mapping[str, Source], Y: Array, rows: IntArray, rest: Rest | None = None
) -> dict[str, float]:
    """The weights v with the highest evidence of columns Y of some of the rows.

    Together with log λ of each column, of which a priori only the order of size is known.
    ∂/∂K = ½ Σ_d [(n − 1)/q_d a_d a_dᵀ − (K + λ_d I)⁻¹], a = (K + λI)⁻¹y.
    """
    some = [Source.of(source.features[rows]) for source in sources.values()]
    Yc = without_outliers(Y - Y.mean(axis=0), len(rows))
    grams, M = [s.gram for s in some], len(some)
    for name, s, gram in zip(sources, some, grams, strict=True):
        if rest is not None:
            gram += centre(rest({name: (sources[name].unit * s.unit) ** -2.0}, rows))

    def cost(theta: Array) -> tuple[float, Array]:
        u, t = theta[:M], theta[M:]
        v, lam = _shares(u), np.exp(t)
        K = np.asarray(sum(w * G for w, G in zip(v, grams, strict=True)))
        spectrum = Spectrum.of_kernel(K)
        evidence = Evidence.of(spectrum, Yc, np.full(Yc.shape[1], float(len(Yc))))
        U, along = spectrum.U, spectrum.U.T @ Yc
        inverse = 1.0 / (spectrum.e[:, None] + lam)
        a = U @ (along * (inverse - 1.0 / lam)) + Yc / lam
        a *= np.sqrt(evidence.dof / evidence.quadratic(t))
        outside = float((1.0 / lam).sum())
        middle = inverse.sum(axis=1) - outside
        slopes = np.array(
            [
                0.5 * (np.vdot(G @ a, a) - np.vdot((G @ U) * middle, U) - outside * np.trace(G))
                for G in grams
            ]
        )
        away = u - u.mean()
        value = float(evidence.value(t).sum())
        value -= 0.5 * float(away @ away) / _WEIGHT_PRIOR**2
        value -= 0.5 * float(t @ t) / _RATIO_PRIOR**2
        of_u = v * (slopes - float(slopes @ v)) - away / _WEIGHT_PRIOR**2
        of_t = evidence.slope(t) - t / _RATIO_PRIOR**2
        return -value / Yc.size, -np.concatenate([of_u, of_t]) / Yc.size

    begin = np.zeros(M + Yc.shape[1])
    options = {"maxiter": _STEPS, "ftol": 1e-15, "gtol": 1e-9}
    bounds = [(-_LIMIT, _LIMIT)] * len(begin)
    best = minimize(cost, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    v = _shares(best[:M]) / np.array([s.unit for s in some]) ** 2
    return dict(zip(sources, (v / v.sum()).tolist(), strict=True))


def _shares(u: Array) -> Array:
    v = np.exp(u - u.max())
    return np.asarray(v / v.sum())
