"""Problems in which limits on the number of samples are reached."""

from __future__ import annotations

import numpy as np

from experiments.simulated import intervals
from experiments.tuning.kernel_views import of_labels
from experiments.tuning.scores import Scores, drawn, new_rows
from kofa import RBF


def many_samples(seed: int) -> Scores:
    """An RBF kernel, 1,400 samples with 2 % holes."""
    x, y = drawn(intervals.smooth, 1700, seed)
    x = intervals.with_holes(np.random.default_rng(seed), x, 0.02)
    return new_rows("rbf", x, y, 1400)[1]


def more_samples(seed: int) -> Scores:
    """An RBF kernel of given width, 2,400 samples."""
    x, y = drawn(intervals.smooth, 2700, seed)
    return new_rows(RBF("median"), x, y, 2400)[1]


def many_candidates(seed: int) -> Scores:
    """Relevance vectors of 200 candidates, 1,400 samples."""
    x, y = drawn(intervals.smooth, 1700, seed)
    return new_rows("rbf", x, y, 1400, sparse=True, landmarks=200)[1]


def many_unlabelled(seed: int) -> Scores:
    """Digits through a diffusion, 60 of 1,300 samples have a label."""
    return of_labels("diffusion", 60, 1300, 0, seed)
