"""How many factors a fit ends with."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from kofa import FactorModel, Real, tuning


def test_a_factor_too_many_is_left_out_where_it_is_not_the_weakest():
    """Without the weakest of 16, the bound needs 85 iterations to be higher; without another, 5."""
    tables = {"x": load_breast_cancer().data}
    free, limited = (FactorModel(None, k).fit(tables) for k in (None, 20))
    assert free.n_factors_ == limited.n_factors_
    assert free.lower_bound_ == pytest.approx(limited.lower_bound_, rel=1e-3)


def few_columns(n: int, seed: int) -> dict[str, np.ndarray]:
    """Three factors in 18 columns: one of all, one of each view."""
    rng = np.random.default_rng(seed)
    weights = {"a": rng.normal(size=(3, 12)), "b": rng.normal(size=(3, 6))}
    weights["a"][2] = weights["b"][1] = 0.0
    z = rng.normal(size=(n, 3))
    return {name: z @ w + rng.normal(size=(n, w.shape[1])) for name, w in weights.items()}


@pytest.mark.parametrize(("n", "seed"), [(5000, 0), (1000, 3)])
def test_the_number_of_factors_is_found_in_few_columns(n, seed):
    """Of as many factors as columns 15 stayed, and half of too many may be too few."""
    data = few_columns(n, seed)
    model = FactorModel().fit(data)
    known = FactorModel(n_factors=3).fit(data)  # no warning that more are wanted
    assert model.n_factors_ == 3
    assert model.lower_bound_ == pytest.approx(known.lower_bound_, rel=1e-3)


def test_a_ceiling_below_the_number_of_factors_warns():
    with pytest.warns(UserWarning, match="All 2 factors are in use"):
        FactorModel(n_factors=2).fit(few_columns(1000, 1))


def test_scattered_holes_limit_a_number_of_factors_that_is_not_set(rng, monkeypatch):
    """Each column has a covariance of its own: 40 columns, 640 numbers, four factors."""
    y = rng.normal(size=(60, 8)) @ rng.normal(size=(8, 40)) + 0.1 * rng.normal(size=(60, 40))
    complete, holed = {"y": y}, {"y": np.where(rng.random(y.shape) < 0.1, np.nan, y)}
    monkeypatch.setattr(tuning, "MOST_COVARIANCES", 640)
    assert FactorModel().fit(complete).n_factors_ == 8
    with pytest.warns(UserWarning, match="All 4 factors are in use"):
        assert FactorModel().fit(holed).n_factors_ == 4
    assert FactorModel(n_factors=10).fit(holed).n_factors_ == 8  # as asked for


@pytest.mark.filterwarnings("ignore:The bound was still growing")
@pytest.mark.filterwarnings("ignore:All .* factors are in use")
def test_trials_with_other_factors_take_no_more_iterations_than_are_allowed():
    """Iterations of a trial that is taken count, and there is none where none is left."""
    data, ended = few_columns(300, 0), []
    whole = FactorModel().fit(data)
    for most in range(1, whole.n_iter_ + 4, 3):
        model = FactorModel(max_iter=most).fit(data)
        assert model.n_iter_ <= most
        assert model.converged_ or model.n_iter_ == most
        ended.append(model.converged_)
    assert not ended[0]
    assert ended[-1]


def test_more_factors_than_are_looked_for_can_be_had_with_outputs(rng):
    x = rng.standard_normal((330, 6))
    views = {"x": Real(kernel="laplacian"), "y": Real()}
    model = FactorModel(views, 305, outputs=["y"]).fit({"x": x, "y": x[:, :1]})
    assert model.n_factors_ == 305


def test_every_iteration_after_which_the_bound_fell_is_marked():
    """A trial with other numbers of factors goes on from a lower bound."""
    seen = []
    model = FactorModel(callback=lambda i: seen.append(i) and None).fit(few_columns(1000, 3))
    fell = np.diff(model.lower_bounds_) < 0
    assert fell.any()
    assert model.factors_changed_[1:][fell].all()
    assert not model.factors_changed_.all()
    told = np.diff([i.lower_bound for i in seen]) < 0
    assert np.array([i.factors_changed for i in seen[1:]])[told].all()
