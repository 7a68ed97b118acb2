"""Few landmarks want wider kernels.

A width learnt from the whole kernel is too narrow for the few samples that stand for it: what lies
between them is out of their reach. Here the width is stretched, and the prior variance of the
outputs with it, to where ℓ is highest under the kernel that some landmarks at random span,
Q = v K_nR K_RR^-1 K_Rn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, solve_triangular

from kofa.kernels import Radial
from kofa.learning import Outputs
from kofa.lessons import Lessons
from kofa.linalg import Array, IntArray
from kofa.study import Lesson, Study

STRETCHES = (1.0, 1.5, 2.2, 3.3, 5.0)
_AMPLITUDES = 10.0 ** np.arange(-0.5, 5.1, 0.5)  # v, in variances of the outputs
_NOISES = 10.0 ** np.arange(-4.0, 0.01, 0.25)
_FULL = 0.8  # share of the rows from which on landmarks are as good as all
_JITTER = 1e-9


@dataclass(frozen=True)
class Stretch:
    """A width relative to the one that was learnt, and what goes best with it."""

    factor: float
    amplitude: float  # v
    variance: float  # that it gives the outputs a priori, on average over the rows
    noise: Array  # (G,)
    likelihood: float


def widened(
    study: Study,
    lessons: Lessons,
    pools: Mapping[str, IntArray],
    sizes: Mapping[str, int],
    rng: np.random.Generator,
) -> Lessons:
    """The lessons with a width for as many landmarks as there will be.

    Where the only input is a radial kernel whose width is learnt; others stay as they are.
    """
    (name, *others) = study.inputs
    declared = study.kernels.get(name)
    if (
        others
        or not lessons.weights
        or not (isinstance(declared, Radial) and declared.learns_width)
    ):
        return lessons
    lesson = study.lesson(study.complete)
    places = np.flatnonzero(np.isin(study.own_rows(name, lesson.rows), pools[name]))
    if sizes[name] >= _FULL * len(lesson.rows) or len(places) < sizes[name]:
        return lessons
    chosen = np.sort(rng.choice(places, sizes[name], replace=False))
    kernel = lessons.kernels[name]
    assert isinstance(kernel, Radial)
    found = max(
        (_fit(lesson, name, kernel, factor, chosen) for factor in STRETCHES),
        key=lambda stretch: stretch.likelihood,
    )
    return replace(
        lessons,
        kernels={**lessons.kernels, name: _stretched(kernel, found.factor)},
        weights={name: found.amplitude},
        noise=found.noise,
        variance=found.variance,
    )


def _stretched(kernel: Radial, factor: float) -> Radial:
    assert isinstance(kernel.width, float)
    return replace(kernel, width=factor * kernel.width)


def _fit(lesson: Lesson, name: str, kernel: Radial, factor: float, chosen: IntArray) -> Stretch:
    """The amplitude and the noises with which ℓ is highest at one width."""
    K = lesson.kernel(name, _stretched(kernel, factor), chosen)
    own = K[chosen] + _JITTER * len(chosen) * np.eye(len(chosen))
    L = cho_factor(own, lower=True)[0]
    F = solve_triangular(L, K.T, lower=True).T  # Q = F Fᵀ
    F = F - F.mean(axis=0)
    U, s, _ = np.linalg.svd(F, full_matrices=False)
    fits = [_profile(lesson.outputs, U, s**2, v) for v in _AMPLITUDES]
    best = int(np.argmax([likelihood for likelihood, _ in fits]))
    likelihood, noise = fits[best]
    amplitude = float(_AMPLITUDES[best])
    return Stretch(factor, amplitude, amplitude * float((s**2).sum()) / len(F), noise, likelihood)


def _profile(outputs: Outputs, U: Array, e: Array, v: float) -> tuple[float, Array]:
    """ℓ at the best noise of each group of outputs, and these noises."""
    Y = outputs.Y - outputs.Y.mean(axis=0)
    along = (U.T @ Y) ** 2
    rest = np.maximum((Y**2).sum(axis=0) - along.sum(axis=0), 0.0)
    total = v * e[:, None] + _NOISES  # (R, S)
    size = np.log(total).sum(axis=0) + (len(Y) - len(e)) * np.log(_NOISES)
    each = -0.5 * (along.T @ (1.0 / total) + rest[:, None] / _NOISES + size)  # (C, S)
    by_group = outputs.noises.sum(each)
    return float(by_group.max(axis=1).sum()), _NOISES[by_group.argmax(axis=1)]
