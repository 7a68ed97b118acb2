"""Which factors stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conftest import core
from kofa import tuning
from kofa.inference.posterior import Known
from kofa.inference.pruning import informative


def with_information(rng, information, d=6, n=40):
    """A view of d columns whose factors tell so much each."""
    _, state, _ = core([rng.standard_normal((n, d))], n_factors=len(information))
    view = state["0"]
    W = rng.standard_normal((d, len(information)))
    W *= np.sqrt(np.asarray(information) / (W**2).sum(axis=0))
    return replace(view, weights=replace(view.weights, mean=W), tau=Known(np.ones(1)))


def edge(d, n):
    """The information below which noise alone gives no factor, less the margin."""
    mark = tuning.PRUNING_MARGIN * d / (np.sqrt(d) + np.sqrt(n)) ** 2
    return 0.5 * (mark + np.sqrt(mark**2 + 4.0 * mark))  # i² = mark (1 + i)


def test_factors_below_the_edge_of_the_noise_go(rng):
    least = edge(6, 40)
    view = with_information(rng, [3.0, 1.001 * least, 0.999 * least, 0.0])
    np.testing.assert_array_equal(informative({"x": view}, 40.0), [0, 1])


def test_the_edge_falls_with_more_samples(rng):
    view = with_information(rng, [3.0, 1.001 * edge(6, 4000)])
    np.testing.assert_array_equal(informative({"x": view}, 40.0), [0])
    np.testing.assert_array_equal(informative({"x": view}, 4000.0), [0, 1])


def test_what_all_views_say_of_a_factor_counts(rng):
    least = edge(6, 40)
    view = with_information(rng, [3.0, 0.6 * least])
    np.testing.assert_array_equal(informative({"x": view}, 40.0), [0])
    np.testing.assert_array_equal(informative({"x": view, "y": view}, 40.0), [0, 1])


@pytest.mark.parametrize("strongest", [0, 1])
def test_one_factor_stays(rng, strongest):
    view = with_information(rng, np.where(np.arange(2) == strongest, 1e-6, 1e-9))
    np.testing.assert_array_equal(informative({"x": view}, 40.0), [strongest])
