"""Integrals over a Gaussian variable."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import erfcx

from kofa.linalg import LOG_2PI, Array

NODES = 24  # of a rule for one variable
AT_ONCE = 2**20  # numbers in a temporary


@cache
def gauss_hermite(n: int) -> tuple[Array, Array]:
    """Nodes and log-weights of an expectation over N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, np.log(weights) - 0.5 * LOG_2PI


def row_slices(n_rows: int, row_size: int) -> list[slice]:
    step = max(1, AT_ONCE // row_size)
    return [slice(i, min(i + step, n_rows)) for i in range(0, n_rows, step)]


CERTAIN = 37.0  # Φ is one to the last digit, and exp(x²/2) still a number


def inverse_mills(x: Array) -> Array:
    """φ(x) / Φ(x) without underflow."""
    return np.asarray(np.sqrt(2.0 / np.pi) / erfcx(-np.minimum(x, CERTAIN) / np.sqrt(2.0)))
