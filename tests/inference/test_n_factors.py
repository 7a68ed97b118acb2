"""How many factors a fit ends with."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_breast_cancer

from kofa import FactorModel


def test_a_factor_too_many_is_left_out_where_it_is_not_the_weakest():
    """Without the weakest of 16, the bound needs 85 iterations to be higher; without another, 5."""
    tables = {"x": load_breast_cancer().data}
    free, limited = (FactorModel(None, k).fit(tables) for k in (None, 20))
    assert free.n_factors_ == limited.n_factors_
    assert free.lower_bound_ == pytest.approx(limited.lower_bound_, rel=1e-3)
