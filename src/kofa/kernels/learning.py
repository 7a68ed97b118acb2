"""Kernels with the highest evidence: starts, races, and when relevances are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kofa import tuning
from kofa.kernels.base import Kernel, Weighted
from kofa.kernels.evidence import Objective
from kofa.kernels.outputs import Outputs
from kofa.kernels.terms import (
    VARIES,
    KernelTerm,
    LogRelevance,
    Width,
    _by_root,
    _first,
    _is_free,
    _second,
)
from kofa.linalg import Array, IntArray, threads_for


@dataclass(frozen=True, eq=False)
class Learnt:
    """Kernels with nothing left open, their weights, and the noise of each output."""

    kernels: list[Kernel]
    weights: Array  # (M,): v_m
    noise: Array  # (G,): σ_g²
    likelihood: float  # ℓ

    def left_out(
        self, inputs: Sequence[Array], landmarks: Sequence[Array], outputs: Outputs
    ) -> float:
        """Squared error of the outputs, each predicted from all others; what it was learnt from."""
        given = zip(self.weights, self.kernels, inputs, landmarks, strict=True)
        K = np.sum([weight * kernel(X, V) for weight, kernel, X, V in given], axis=0)
        return outputs.left_out(K, np.maximum(self.noise, tuning.LEAST_NOISE))


def learn(
    kernels: Sequence[Kernel],
    inputs: Sequence[Array],
    landmarks: Sequence[Array],
    outputs: Outputs,
    max_iter: int | None = None,
) -> Learnt:
    """The most likely kernels given the outputs.

    Parameters
    ----------
    kernels : one per input
    inputs : arrays (n, D_m) of the same rows, scaled; in any order, of which the first serve
        where some are enough
    landmarks : the same rows as the kernels want them for their second argument
    outputs : what they are to explain
    max_iter : most steps for relevances; None is `tuning.RELEVANCE_STEPS`
    """
    learner = _Learner(kernels, inputs, landmarks, outputs)
    with threads_for(float(len(outputs.Y)) ** 3):
        objective, theta = learner.alike()
        learnt = objective.learnt(theta)
        if any(_by_root(kernel) for kernel in kernels):
            steps = tuning.RELEVANCE_STEPS if max_iter is None else max_iter
            each, worth = learner.with_relevance(objective, theta, steps)
            found = each[0].learnt(each[1])
            if worth:
                (objective, theta), learnt = each, found
            else:
                learnt = [
                    _alike(plain, one, X) if _by_root(asked) else plain
                    for asked, plain, one, X in zip(kernels, learnt, found, inputs, strict=True)
                ]
    _, v, noise = objective.split(theta)
    value = objective.likelihood(theta)[0]
    return Learnt(learnt, v, noise, value)


def _most_likely(objective: Objective) -> Array:
    """θ from the start that leads furthest on some of the rows."""
    few = objective.some(np.arange(min(tuning.RACE_ROWS, len(objective.outputs.Y))))

    def cost(theta: Array) -> float:
        return few.negative(theta)[0]

    first, *others = starts(objective)
    tried = [min(widths, key=cost) for widths in (first, *others)] if others else first
    if len(tried) > 1:
        tried = [few.maximise(one, tuning.START_STEPS) for one in tried]
    return objective.maximise(min(tried, key=cost), tuning.LEARNING_STEPS, tuning.LEARNING_GAIN)


def starts(objective: Objective) -> list[list[Array]]:
    """θ with all widths at a few multiples of their medians, for each start of the weights."""
    sources, rest = objective.sources, objective.begin[objective.ends[-1] :]
    moves = any((source.at(2.0) != source.begin).any() for source in sources)
    factors = tuning.START_WIDTHS if moves else (1.0,)
    widths = [np.concatenate([source.at(factor) for source in sources]) for factor in factors]
    shares = [np.full(len(sources), 1.0)]
    if len(sources) > 1 and any(isinstance(source, LogRelevance) for source in sources):
        shares.append(np.array([tuning.START_SHARES[_kind(source)] for source in sources]))
    noise = np.zeros(len(rest) - len(sources))
    return [
        [np.append(own, rest + np.append(np.log(share / share.mean()), noise)) for own in widths]
        for share in shares
    ]


def _kind(source: KernelTerm) -> str:
    if isinstance(source, LogRelevance):
        return "relevance"
    return "width" if isinstance(source, Width) else "fixed"


@dataclass(frozen=True, eq=False)
class _Learner:
    """Kernels on some rows, with all features alike or with relevances √λ."""

    kernels: Sequence[Kernel]
    inputs: Sequence[Array]
    landmarks: Sequence[Array]
    outputs: Outputs

    def alike(self) -> tuple[Objective, Array]:
        given = zip(self.kernels, self.inputs, self.landmarks, strict=True)
        objective = Objective([_first(*one) for one in given], self.outputs)
        return objective, _most_likely(objective)

    def start(self, alike: Objective, theta: Array, factor: float) -> tuple[Objective, Array]:
        """The objective in which λ varies too, and a width at which all features count alike."""
        own, _, _ = alike.split(theta)
        sources = [
            _second(k, s, t, factor)
            for k, s, t in zip(self.kernels, alike.sources, own, strict=True)
        ]
        starts = [
            t if now is before else now.begin
            for now, before, t in zip(sources, alike.sources, own, strict=True)
        ]
        objective = Objective(sources, self.outputs)
        return objective, np.concatenate([*starts, objective.begin[objective.ends[-1] :]])

    def race(self, alike: Objective, theta: Array, factor: float) -> tuple[Objective, Array]:
        """A few steps of λ from a width."""
        objective, begin = self.start(alike, theta, factor)
        return objective, objective.at_price(0.0).maximise(begin, tuning.RACE_STEPS)

    def with_relevance(
        self, alike: Objective, theta: Array, max_iter: int
    ) -> tuple[tuple[Objective, Array], bool]:
        """λ from the best of a few widths, and whether it predicts as well as features alike.

        The most likely single width is no good start: where few features matter it is so narrow
        that nothing is similar to anything.
        """
        free = any(_by_root(k) and _is_free(k) for k in self.kernels)
        factors = tuning.RACE_WIDTHS if free else (1.0,)
        races = {factor: self.race(alike, theta, factor) for factor in factors}
        best = min(races, key=lambda f: races[f][0].at_price(0.0).negative(races[f][1])[0])
        again = tuning.SPARSITY_WIDTHS if free else (1.0,)
        starts = [self.start(alike, theta, factor)[1] for factor in again]
        worth = self.is_asked_to_select or self.relevance_predicts(best, max_iter)
        return self.at_full_price(*races[best], max_iter, starts), worth

    def at_full_price(
        self, objective: Objective, theta: Array, max_iter: int, starts: Sequence[Array]
    ) -> tuple[Objective, Array]:
        """θ at prices of √λ that rise to those asked for: what is once off stays off.

        So a higher price is hardly ever less strict. What was found at a lower price may be far
        from the best at a higher one, so that starts are tried again, without what is off.
        """
        highest = max(source.price for source in objective.sources)
        for share in [p / highest for p in tuning.SPARSITY_PATH if p < highest]:
            partly = objective.at_price(share)
            theta = partly.cheapest([theta, *starts], tuning.RACE_STEPS)
        theta = objective.cheapest([theta, *starts] if highest else [theta], max_iter)
        return objective, theta

    @property
    def is_asked_to_select(self) -> bool:
        return any(isinstance(k, Weighted) and k.sparsity is not None for k in self.kernels)

    def relevance_predicts(self, factor: float, max_iter: int) -> bool:
        """Whether λ from most rows predicts the others no worse than features that are alike.

        The likelihood rises with every λ, also where that loses: .04 of log-loss for 320 drugs
        and 144 labels. With many features it has to be better by more than chance.
        """
        n = len(self.outputs.Y)
        rest, most = np.split(np.arange(n), [n // tuning.RELEVANCE_HELD_OUT])
        if len(rest) < tuning.RELEVANCE_FEWEST_HELD_OUT:
            return False
        some = _Learner(
            self.kernels,
            [X[most] for X in self.inputs],
            [V[most] for V in self.landmarks],
            self.outputs.some(most),
        )
        alike, theta = some.alike()
        objective, begin = some.race(alike, theta, factor)
        each = objective, objective.maximise(begin, max_iter)
        before, after = self.errors(alike, theta, most, rest), self.errors(*each, most, rest)
        gain = before - after
        if objective.ends[-1] > tuning.RELEVANCE_MANY_FEATURES * len(most):
            return bool(gain.mean() > tuning.RELEVANCE_SURE * gain.std() / len(gain) ** 0.5)
        return bool(after.sum() <= (1.0 + tuning.RELEVANCE_NO_WORSE) * before.sum())

    def errors(self, objective: Objective, theta: Array, most: IntArray, rest: IntArray) -> Array:
        """Squared errors of some rows predicted from the others."""
        _, v, noise = objective.split(theta)
        rows = zip(v, objective.learnt(theta), self.inputs, self.landmarks, strict=True)
        K = np.asarray(sum(weight * kernel(X, V) for weight, kernel, X, V in rows))
        return self.outputs.errors(K, noise, most, rest)


def _alike(kernel: Kernel, found: Kernel, X: Array) -> Kernel:
    """A kernel whose features are all but alike; the λ that were found only tell their order."""
    assert isinstance(kernel, Weighted)
    assert isinstance(found, Weighted)
    varies = np.ptp(X, axis=0) > VARIES
    weights = np.array(found.relevance, dtype=float)
    weights = np.where(
        varies, np.maximum(weights, tuning.LEAST_RELEVANCE) ** tuning.ORDER_ONLY_POWER, 0.0
    )
    mean = float(weights[varies].mean()) if varies.any() else 1.0
    return replace(kernel, relevance=tuple((weights / mean).tolist()))
