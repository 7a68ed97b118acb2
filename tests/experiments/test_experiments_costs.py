"""What a fit with nothing set costs: stages, and the grid searches that it is compared with."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import ParameterGrid

import kofa.preparation.prepare
from experiments.costs.defaults import STAGES, Cost, Stages, cost, ridge_search, svm_search
from kofa import RBF, KernelFactorRegressor


def test_grids_have_as_many_settings_as_the_figures_say():
    assert len(ParameterGrid(ridge_search(4).param_grid)) == 60
    assert len(ParameterGrid(svm_search(4).param_grid)) == 25


def test_every_stage_of_a_fit_is_timed_and_left_as_it_was(rng):
    X = rng.standard_normal((30, 2))
    before, stages = kofa.preparation.prepare.learn_kernels, Stages()
    with stages.watched():
        assert kofa.preparation.prepare.learn_kernels is not before
        KernelFactorRegressor(RBF()).fit(X, X[:, 0])
    assert kofa.preparation.prepare.learn_kernels is before
    assert list(stages.seconds) == list(STAGES)
    assert min(stages.seconds[name] for name in ("kernels", "factors", "outputs")) > 0.0


def test_stages_are_parts_of_the_fit(rng):
    X = rng.standard_normal((40, 3))
    search = ridge_search(3).set_params(param_grid={"alpha": [1.0]}, cv=2)
    found = cost(KernelFactorRegressor(), search, X, np.sin(X[:, :1]))
    assert sum(found.stages.values()) <= found.fit
    assert found.search > 0.0


def test_what_follows_the_kernels_is_the_rest_of_the_fit():
    found = Cost(4.0, {"kernels": 3.0, "factors": 0.5}, 8.0)
    assert found.ratio == pytest.approx(0.5)
    assert found.after == pytest.approx(0.25)
    assert str(found).startswith("0.50 (4.00 / 8.00 s; after the kernels 25%")
