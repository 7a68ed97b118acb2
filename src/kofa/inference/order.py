"""The order and the signs of factors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kofa.inference.engine import Engine
from kofa.inference.posterior import State, keep
from kofa.inference.run import Run
from kofa.linalg import IntArray


def by_strength(state: State) -> IntArray:
    """The factors that tell most about the samples first."""
    information = np.sum([view.information for view in state.values()], axis=0)
    return np.argsort(-information, kind="stable")


def in_order(engine: Engine, found: Run) -> Run:
    """The factors that explain most first, and each with the sign that most weights have.

    What counts is a factor's share in the variance of each view, on average over the views; of the
    signs, the sum of the cubes of the weights. Neither depends on the order of rows or views.
    """
    shares, cubes = np.zeros(found.n_factors), np.zeros(found.n_factors)
    for view in found.state.values():
        W = view.weights.mean
        total = float((W**2).sum() + (1.0 / view.precision).sum())
        shares += (W**2).sum(axis=0) / total
        cubes += (W**3).sum(axis=0) / total**1.5
    order = np.argsort(-shares, kind="stable")
    turn = np.diag(np.where(cubes[order] < 0, -1.0, 1.0))
    shift = np.zeros(found.n_factors)
    Z = engine.rotate(engine.keep(found.Z, order), turn, shift)
    state = {
        name: replace(view, weights=view.weights.transform(turn, turn, shift))
        for name, view in keep(found.state, order).items()
    }
    return replace(found, state=state, Z=Z)
