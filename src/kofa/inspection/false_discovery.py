"""Many tests at once."""

from __future__ import annotations

import numpy as np
from scipy.stats import false_discovery_control

from kofa.linalg import Array


def benjamini_hochberg(p: Array) -> Array:
    """q_(i) = min over j ≥ i of p_(j) m / j, over the m tests whose p is not NaN."""
    q, tested = np.full_like(p, np.nan), ~np.isnan(p)
    if tested.any():
        q[tested] = false_discovery_control(p[tested], method="bh")
    return q
