"""Which factor is at work in which view, and how the bound grew."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import chdtri

from kofa.inspection.matching import frame
from kofa.linalg import Array, BoolArray
from kofa.preparation.fitted import Fitted

_PART = 0.01  # of what all factors explain of a view: what a factor has at least that is active
_CHANCE = 0.05  # that any factor without a part in a view counts as active


def factor_relevance(fitted: Fitted) -> Any:
    """What `FactorModel.factor_relevance` returns."""
    relevance = {view: _relevance(fitted, view) for view in fitted.views}
    active = {view: _active(fitted, view, relevance[view]) for view in fitted.views}
    about = [_label(fitted, {view: bool(active[view][k]) for view in active})
             for k in range(fitted.n_factors)]  # fmt: skip
    names = fitted.factor_names
    return frame(
        {
            "factor": [name for name in names for _ in relevance],
            "view": [view for _ in names for view in relevance],
            "relevance": np.column_stack(list(relevance.values())).ravel(),
            "active": np.column_stack(list(active.values())).ravel(),
            "label": [label for label, _ in about for _ in relevance],
            "links": [links for _, links in about for _ in relevance],
        }
    )


def _contrasts(fitted: Fitted, view: str, W: Array) -> Array:
    """Weights; of classes, of which only differences count, less their mean."""
    return W - W.mean(axis=0) if fitted.views[view].layer.competing else W


def _relevance(fitted: Fitted, view: str) -> Array:
    """Σ_d ⟨w_dk⟩² / Σ_d (Σ_j ⟨w_dj⟩² + 1/τ_d) of each factor: (L,)."""
    posterior = fitted.posterior[view]
    W = _contrasts(fitted, view, fitted.weights(view).mean)
    total = (_contrasts(fitted, view, posterior.weights.mean) ** 2).sum()
    return np.asarray((W**2).sum(axis=0) / (total + (1.0 / posterior.precision).sum()))


def _active(fitted: Fitted, view: str, relevance: Array) -> BoolArray:
    """Which factors have weights beyond chance, and a part in what the factors explain.

    Weights of a factor that the view does not use have variances of at most 1/(n_d τ_d), so that
    Σ_d n_d τ_d ⟨w_dk⟩² is at most χ²_D by chance. In large data errors of other factors' directions
    are beyond chance too, but small.
    """
    posterior = fitted.posterior[view]
    W = _contrasts(fitted, view, fitted.weights(view).mean)
    signal = (posterior.n_observed * posterior.precision) @ W**2
    chance = chdtri(len(W), _CHANCE / len(relevance))
    part = relevance > _PART * relevance.sum()
    return np.asarray((signal > chance) & part)


def _label(fitted: Fitted, active: dict[str, bool]) -> tuple[str, str]:
    """What to call a factor, and the views that it links."""
    views = [view for view, at_work in active.items() if at_work]
    if any(fitted.views[view].role.output for view in views):
        return "predictive", ", ".join(views)
    tables = {fitted.views[view].source for view in views}  # of which one may have several kernels
    return {0: "weak", 1: "private"}.get(len(tables), "shared"), ", ".join(views)


def bound_terms(fitted: Fitted) -> Any:
    """What `FactorModel.bound_terms` returns."""
    n = len(fitted.bounds)
    return frame(
        {
            "iteration": np.tile(np.arange(1, n + 1), len(fitted.terms)),
            "term": [term for term in fitted.terms for _ in range(n)],
            "value": np.concatenate(list(fitted.terms.values())),
        }
    )
