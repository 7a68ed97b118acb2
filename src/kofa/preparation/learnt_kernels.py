"""What the outputs of a fit say about its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from kofa import tuning
from kofa.errors import DataError, DeclarationError, warn
from kofa.kernels.base import Kernel, Radial, Weighted
from kofa.kernels.diffusion import Diffusion
from kofa.kernels.formulas import Linear
from kofa.kernels.learning import learn
from kofa.kernels.mixture import Mixture, components, is_bank, parts
from kofa.kernels.terms import learns_relevance
from kofa.linalg import Array, centre
from kofa.preparation.fit_data import FitData, TrainingSet


@dataclass(frozen=True, eq=False)
class LearntKernels:
    """What the outputs say about the kernels."""

    kernels: Mapping[str, Kernel]
    weights: Mapping[str, float]  # v_m of the inputs; empty where nothing was learnt
    noise: Array  # (G,): σ_g² of the outputs


def learn_kernels(fit_data: FitData) -> LearntKernels:
    """Widths, relevances and weights of the inputs, from the outputs explained directly."""
    _check_relevance(fit_data)
    kernels = {name: fit_data.on_rows(name, kernel) for name, kernel in fit_data.kernels.items()}
    plain = {name: _without_relevance(kernel) for name, kernel in kernels.items()}
    if not fit_data.targets or len(fit_data.complete) < 3 or not _anything_to_learn(fit_data):
        return LearntKernels(plain, {}, np.empty(0))
    training = fit_data.training_set(fit_data.draw(fit_data.complete, tuning.LEARNING_ROWS))
    learnt, error = _learnt(fit_data, training, kernels)
    along = _along_unlabelled(fit_data, kernels)
    if along:
        other, other_error = _learnt(fit_data, training, kernels | along)
        learnt = other if other_error() <= tuning.UNLABELLED_GAIN * error() else learnt
    for name in kernels:
        if name in fit_data.inputs:
            _warn_if_off(name, learnt.kernels[name])
    return replace(learnt, kernels={**plain, **learnt.kernels})


def _learnt(
    fit_data: FitData, training: TrainingSet, kernels: Mapping[str, Kernel]
) -> tuple[LearntKernels, Callable[[], float]]:
    """What the outputs say about the kernels of the inputs, and how well left-out ones follow."""
    formulas = {name: parts(kernels.get(name, Linear())) for name in fit_data.inputs}
    given = [
        (part, training.X[name], training.V[name])
        for name, mine in formulas.items()
        for part in mine
    ]
    asked, X, V = zip(*given, strict=True)
    learnt = learn(asked, X, V, training.outputs)
    found, v = iter(learnt.kernels), iter(learnt.weights.tolist())
    joined = {
        name: _joined([next(found) for _ in mine], [next(v) for _ in mine])
        for name, mine in formulas.items()
    }
    weights = {name: weight for name, (_, weight) in joined.items()}
    resolved = {name: kernel for name, (kernel, _) in joined.items() if name in kernels}
    error = partial(learnt.left_out, X, V, training.outputs)
    return LearntKernels(resolved, weights, learnt.noise), error


def _along_unlabelled(fit_data: FitData, kernels: Mapping[str, Kernel]) -> dict[str, Kernel]:
    """The banks with a diffusion, where they see no fewer samples without a class than with one.

    Not those of sparse views: what few landmarks need has been found out for the other kernels.
    """
    if not fit_data.has_classes:
        return {}
    return {
        name: fit_data.on_rows(name, Mixture((*parts(kernels[name]), Diffusion())))
        for name in fit_data.inputs
        if name in kernels and is_bank(kernels[name]) and not fit_data.views[name].chooses_landmarks
        if fit_data.has_output[fit_data.seen(name)].mean() <= 0.5
    }


def _joined(found: list[Kernel], v: list[float]) -> tuple[Kernel, float]:
    """The kernel of a view and its weight: the largest, to which all are relative."""
    if len(found) == 1:
        return found[0], v[0]
    return Mixture(tuple(found), tuple(one / max(v) for one in v)), max(v)


def with_wider_kernels(
    fit_data: FitData, learnt: LearntKernels, training: TrainingSet, factor: float
) -> LearntKernels:
    """The learnt widths of sparse inputs times a factor.

    Each kernel gives the outputs the variance that it gave.
    """
    kernels, weights = dict(learnt.kernels), dict(learnt.weights)
    for name in chosen_by_outputs(fit_data):
        asked = parts(fit_data.kernels[name])
        mine = components(kernels[name]) if len(asked) > 1 else [(1.0, kernels[name])]
        found, v = list[Kernel](), list[float]()
        for one, (weight, kernel) in zip(asked, mine, strict=True):
            found.append(_wider(kernel, factor) if learns_width(one) else kernel)
            before, after = (_variance(training, name, k) for k in (kernel, found[-1]))
            v.append(weights[name] * weight * before / after)
        kernels[name], weights[name] = _joined(found, v)
    return replace(learnt, kernels=kernels, weights=weights)


def _wider(kernel: Kernel, factor: float) -> Kernel:
    assert isinstance(kernel, Radial)
    assert not isinstance(kernel.width, str)
    return replace(kernel, width=factor * kernel.width)


def _variance(training: TrainingSet, name: str, kernel: Kernel) -> float:
    """Mean diagonal of the centred kernel."""
    return max(float(np.diagonal(centre(training.kernel(name, kernel))).mean()), 1e-12)


def learns_width(kernel: Kernel) -> bool:
    """Whether the width is to be learnt from the outputs."""
    return isinstance(kernel, Radial) and kernel.learns_width


def _check_relevance(fit_data: FitData) -> None:
    for name, kernel in fit_data.kernels.items():
        asked = any(isinstance(part, Weighted) and part.needs_outputs for part in parts(kernel))
        if asked and (name in fit_data.outputs or not fit_data.targets):
            raise DeclarationError(
                "relevance='learn' needs an output to learn from",
                name,
                cure="name one that has no kernel in outputs=[…], or give relevance as numbers",
            )
        if asked and len(fit_data.complete) < 3:
            what = (
                "relevance='learn' needs at least 3 samples with all inputs and an observed output"
            )
            cure = "pass more such samples, or give relevance as numbers"
            raise DataError(what, name, got=len(fit_data.complete), cure=cure)


def _anything_to_learn(fit_data: FitData) -> bool:
    open_kernels = any(
        learns_relevance(part)
        or learns_width(part)
        or (isinstance(part, Diffusion) and part.learns_time)
        for name, kernel in fit_data.kernels.items()
        for part in parts(kernel)
        if name in fit_data.inputs
    )
    return open_kernels or len(fit_data.inputs) > 1 or bool(chosen_by_outputs(fit_data))


def _without_relevance(kernel: Kernel) -> Kernel:
    """The kernel before its relevance is learnt: all features alike."""
    if isinstance(kernel, Mixture):
        return replace(kernel, kernels=tuple(map(_without_relevance, kernel.kernels)))
    if isinstance(kernel, Weighted) and kernel.learns_relevance:
        return replace(kernel, relevance=None)
    return kernel


def _warn_if_off(name: str, kernel: Kernel) -> None:
    mine = [k.relevance for _, k in components(kernel) if isinstance(k, Weighted)]
    if mine and not any(given is None or any(given) for given in mine):
        warn(
            f"View {name!r}: no feature tells anything about the outputs, so all are switched "
            f"off and the view predicts nothing. Lower its sparsity, or leave the view out."
        )


def chosen_by_outputs(fit_data: FitData) -> list[str]:
    """The sparse inputs whose landmarks are chosen by what they say about the outputs."""
    sparse = [n for n in fit_data.inputs if fit_data.views[n].chooses_landmarks]
    return sparse if fit_data.targets and len(fit_data.complete) >= 3 else []
