"""The paper's own choices, where ours differ: kept for comparison, not recommended.

- Relevance vectors by double ARD alone: the landmarks whose ⟨γ_d⟩ stays small.
- Feature relevance by how well the factors reconstruct the kernel. The bound itself would grow
  without limit as λ → 0 makes the kernel constant, so its norm is held fixed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from kofa import tuning
from kofa.inference.posterior import ViewPosterior
from kofa.kernels.base import Weighted
from kofa.kernels.selection import Selection
from kofa.kernels.terms import Relevance
from kofa.linalg import Array, centre


def by_ard(view: ViewPosterior) -> Selection:
    """The landmarks that double ARD leaves on, the strongest first."""
    size = 1.0 / view.column_precision
    relevance = size / float(size.max())
    order = np.argsort(-relevance, kind="stable")
    return Selection(
        order[: max(2, int((relevance >= tuning.PUBLISHED_THRESHOLD).sum()))], relevance
    )


def by_reconstruction(kernel: Weighted, X: Array, V: Array, target: Array) -> Weighted:
    """The kernel with the λ at which it is most like its reconstruction (n, R)."""
    source = Relevance(replace(kernel, relevance=None), X, V, free_width=True)
    begin = np.sqrt(np.asarray(kernel.relevance or np.ones(X.shape[1]), dtype=float))
    theta = np.array([begin[source.varies[members]].mean() for members in source.groups.members])
    if len(theta):  # else no feature varies
        theta = minimize(
            lambda t: reconstruction_error(source, t, target),
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=source.bounds,
            options={"maxiter": tuning.PUBLISHED_STEPS},
        ).x
    learnt = source.learnt(theta)
    assert isinstance(learnt, Weighted)
    return learnt


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
