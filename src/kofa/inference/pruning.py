"""Which factors tell something about the samples."""

from __future__ import annotations

import numpy as np

from kofa import tuning
from kofa.inference.posterior import State
from kofa.linalg import IntArray


def informative(state: State, n_samples: float) -> IntArray:
    """The factors that tell something about the samples; at least one.

    A factor is worth i = Σ_d τ_d ⟨w_d⟩², which adds to the precision of z (prior: 1). In a view of
    D columns no solution but zero exists with i²/(1 + i) < D / (√D + √N)², the edge of the noise
    spectrum (from Nakajima, Sugiyama, Babacan & Tomioka 2013): such a factor only takes long to
    vanish. The smallest edge over the views is the mark, less a tenth for safety.
    """
    views = state.values()
    information = np.sum([view.information for view in views], axis=0)
    # The columns of a sparse view do not act as one.
    columns = [v.n_columns if v.gamma is None else 1 for v in views]
    edge = min(d / (np.sqrt(d) + np.sqrt(n_samples)) ** 2 for d in columns)
    keep = np.flatnonzero(information**2 >= tuning.PRUNING_MARGIN * edge * (1.0 + information))
    return keep if len(keep) else np.array([int(np.argmax(information))])
