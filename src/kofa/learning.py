"""Learning what is inside kernels from the outputs.

One objective: the marginal likelihood of the outputs under the kernels,
ℓ = Σ_d log N(y_d | 0, Σ_m v_m K_m + σ_d² I), one σ_d² per output column. It is the limit of the
model in which the kernelized views are free of noise. It is smooth and does not degenerate,
whereas the bound itself grows without limit as a kernel becomes constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from kofa.kernels import Kernel, Radial
from kofa.linalg import Array, Groups, IntArray, threads_for

Pattern = tuple[IntArray, IntArray]  # rows and output columns that are observed together

MAX_ROWS = 1000  # the objective is cubic in the rows; a width needs no more than this
_START_WIDTHS = (0.1, 0.3, 1.0, 3.0)  # times the median distance
_START_NOISE = 0.3
# log v is a priori within this of what explains the outputs' variance. The likelihood of smooth
# data rises for ever wider kernels with ever larger v, whose signal sits in directions that are
# too faint for a factor model: enb with RBF gains .04 of R² by it, edm and oes97 lose up to .01.
_SCALE_PRIOR = 0.5
# An output further out than this many spreads counts as this far, so that a few outliers do not
# ask for a narrow kernel: jura gains .003 of R² by it, oes97 (whose tails are signal) loses .008.
_OUTLIER = 5.0
_OPTIONS = {"maxiter": 40}


@dataclass(frozen=True, eq=False)
class Source:
    """One kernel on the rows from which it is learnt."""

    kernel: Kernel
    distance: Array  # (n, n); for a kernel without a width, the kernel itself
    median: float

    @classmethod
    def of(cls, kernel: Kernel, X: Array, V: Array) -> Source:
        if isinstance(kernel, Radial) and kernel.learns_width:
            distance = kernel.distance(X, V)
            # Samples that share no feature are taken to be as far apart as any.
            far = float(np.nanmax(distance, initial=0.0))
            return cls(kernel, np.nan_to_num(distance, nan=far), kernel.median_width(V))
        return cls(kernel, np.nan_to_num(kernel.resolve(V)(X, V)), 1.0)

    @property
    def learns(self) -> bool:
        return isinstance(self.kernel, Radial) and self.kernel.learns_width

    def evaluate(self, width: float) -> tuple[Array, Array | None]:
        """The kernel and its slope in log width."""
        if isinstance(self.kernel, Radial) and self.learns:
            K = self.kernel.profile(self.distance.copy(), width)
            return K, self.kernel.slope(self.distance, width)
        return self.distance, None


def marginal_likelihood(
    theta: Array, sources: Sequence[Source], Y: Array, observed: Sequence[Pattern]
) -> tuple[float, Array]:
    """ℓ and its gradient in theta = (log width_m, log v_m, log σ_d²)."""
    m = len(sources)
    width, v, noise = np.exp(theta[:m]), np.exp(theta[m : 2 * m]), np.exp(theta[2 * m :])
    evaluated = [source.evaluate(w) for source, w in zip(sources, width, strict=True)]
    total = sum(v_m * K for v_m, (K, _) in zip(v, evaluated, strict=True))
    value, gradient = 0.0, np.zeros_like(theta)
    for rows, columns in observed:
        where = np.ix_(rows, rows)
        part, G, of_noise = _gaussian(total[where], Y[np.ix_(rows, columns)], noise[columns])
        value += part
        gradient[2 * m + columns] += of_noise
        for i, (K, slope) in enumerate(evaluated):
            gradient[m + i] += v[i] * float((G * K[where]).sum())
            if slope is not None:
                gradient[i] += v[i] * float((G * slope[where]).sum())
    return value, gradient


def _gaussian(K: Array, Y: Array, noise: Array) -> tuple[float, Array, Array]:
    """Σ_d log N(y_d | 0, HKH + σ_d² I), its gradient in K and in log σ_d²; H centres."""
    e, U = np.linalg.eigh(_centre(K))
    e = np.maximum(e, 0.0)
    variance = e[:, None] + noise  # (n, C)
    Y = U.T @ (Y - Y.mean(axis=0))
    value = -0.5 * float((Y**2 / variance + np.log(2.0 * np.pi * variance)).sum())
    a = U @ (Y / variance)
    # ∂ℓ/∂K = ½ H (Σ_d a_d a_dᵀ − U diag(Σ_d 1/(e + σ_d²)) Uᵀ) H
    G = 0.5 * _centre(a @ a.T - (U * (1.0 / variance).sum(axis=1)) @ U.T)
    return value, G, 0.5 * noise * ((a**2).sum(axis=0) - (1.0 / variance).sum(axis=0))


def _centre(K: Array) -> Array:
    centred: Array = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    return centred


def learn_widths(
    kernels: Sequence[Kernel],
    inputs: Sequence[Array],
    landmarks: Sequence[Array],
    Y: Array,
) -> list[Kernel]:
    """The kernels with each "auto" width set to its most likely value given the outputs.

    Parameters
    ----------
    kernels : one per input
    inputs : arrays (n, D_m) of the same rows, scaled
    landmarks : the same rows as the kernels want them for their second argument
    Y : array (n, C) of outputs on unit scale, NaN where missing
    """
    sources = [Source.of(k, X, V) for k, X, V in zip(kernels, inputs, landmarks, strict=True)]
    if not any(source.learns for source in sources):
        return list(kernels)
    observed = _patterns(Y)
    Y = np.clip(np.nan_to_num(Y), -_OUTLIER, _OUTLIER)
    width = np.exp(_most_likely(sources, Y, observed)[: len(sources)])
    return [
        replace(s.kernel, width=float(w)) if isinstance(s.kernel, Radial) and s.learns else s.kernel
        for s, w in zip(sources, width, strict=True)
    ]


def _most_likely(sources: Sequence[Source], Y: Array, observed: Sequence[Pattern]) -> Array:
    """theta with the highest `marginal_likelihood` and prior, from the best of a few widths."""
    m = len(sources)
    median = np.log([s.median for s in sources])
    scale = -np.log([m * max(_variance(s), 1e-12) for s in sources])

    def negative(theta: Array) -> tuple[float, Array]:
        value, gradient = marginal_likelihood(theta, sources, Y, observed)
        surprise = (theta[m : 2 * m] - scale) / _SCALE_PRIOR
        gradient[m : 2 * m] -= surprise / _SCALE_PRIOR
        return 0.5 * float(surprise @ surprise) - value, -gradient

    noise = np.full(Y.shape[1], np.log(_START_NOISE))
    starts = [np.concatenate([median + np.log(s), scale, noise]) for s in _START_WIDTHS]
    bounds = [(x - 7, x + 7) for x in median] + [(x - 12, x + 12) for x in scale]
    bounds += [(-14.0, 3.0)] * Y.shape[1]
    with threads_for(float(len(Y)) ** 3):
        theta = min(starts, key=lambda t: negative(t)[0])
        found = minimize(
            negative, theta, jac=True, method="L-BFGS-B", bounds=bounds, options=_OPTIONS
        )
    return np.asarray(found.x)


def _variance(source: Source) -> float:
    """Mean diagonal of the centred kernel at its median width."""
    return float(np.mean(np.diagonal(_centre(source.evaluate(source.median)[0]))))


def _patterns(Y: Array) -> list[Pattern]:
    """Columns of the outputs with the rows in which they are observed, grouped."""
    seen = ~np.isnan(Y)
    groups = Groups.by_pattern(seen.T)
    label = groups.label
    return [
        (np.flatnonzero(seen[:, first]), np.flatnonzero(label == g))
        for g, first in enumerate(groups.first)
    ]
