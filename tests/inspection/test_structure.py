"""Which factor is at work in which view, and the terms of the bound."""

from __future__ import annotations

import numpy as np
import pytest

import kofa


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 3))
    parts = {"a": [1.5, 1.0, 0.0], "b": [1.5, 0.0, 0.0], "c": [0.0, 0.0, 1.2]}
    data = {
        name: z @ (rng.choice([-1, 1], size=(3, 40)) * np.array(size)[:, None])
        + rng.normal(size=(300, 40))
        for name, size in parts.items()
    }
    return kofa.FactorModel().fit(data)


def test_planted_structure(found):
    table = found.factor_relevance()
    assert list(table.columns) == ["factor", "view", "relevance", "active", "label", "links"]
    truth = {"a": [1.5**2, 1, 0], "b": [1.5**2, 0, 0], "c": [0, 0, 1.2**2]}
    links = table.drop_duplicates("factor").set_index("links")
    assert set(links.index) == {"a, b", "a", "c"}
    assert links.label.to_dict() == {"a, b": "shared", "a": "private", "c": "private"}
    wide = table.pivot(index="factor", columns="view", values="relevance")
    order = links.loc[["a, b", "a", "c"]].factor
    for view, size in truth.items():
        share = np.array(size) / (sum(size) + 1)
        np.testing.assert_allclose(wide.loc[order, view], share, atol=0.03)
    active = table.pivot(index="factor", columns="view", values="active").loc[order]
    assert active.to_numpy().tolist() == [
        [True, True, False],
        [True, False, False],
        [False, False, True],
    ]


def test_predictive_factors(rng):
    z = rng.normal(size=(300, 3))
    x = z @ rng.normal(size=(3, 20)) + 0.5 * rng.normal(size=(300, 20))
    y = z @ [[1.0], [-1.0], [0.0]] + 0.3 * rng.normal(size=(300, 1))
    model = kofa.FactorModel(outputs=["y"], n_factors=3).fit({"x": x, "y": y})
    labels = model.factor_relevance().drop_duplicates("factor")
    assert labels.label.tolist() == ["predictive", "private", "private"]
    assert labels.links.tolist() == ["x, y", "x", "x"]


def test_several_kernels_of_a_table_do_not_share(rng):
    x = rng.normal(size=(60, 1)) * np.ones(3) + 0.1 * rng.normal(size=(60, 3))
    model = kofa.FactorModel({"x": kofa.Real(kernel=["rbf", "linear"])}, tol=1e-2).fit({"x": x})
    table = model.factor_relevance()
    assert set(table.view) == {"x[RBF]", "x[Linear]"}
    assert table.label[0] == "private"
    assert table.links[0] == "x[RBF], x[Linear]"


def test_columns_without_factors(rng):
    model = kofa.FactorModel().fit({"x": rng.normal(size=(100, 5))})
    table = model.factor_relevance()
    weak = ~table.active
    assert (table.label[weak] == "weak").all()
    assert (table.relevance[weak] < 0.2).all()


def test_terms_add_up_to_the_bound(found):
    table = found.bound_terms()
    assert list(table.columns) == ["iteration", "term", "value"]
    assert set(table.term) == set(found.lower_bound_terms_)
    total = table.groupby("iteration").value.sum()
    assert list(total.index) == list(range(1, found.n_iter_ + 1))
    np.testing.assert_allclose(total, found.lower_bounds_)
