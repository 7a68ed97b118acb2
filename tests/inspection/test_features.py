"""Tables of what a fitted model found."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import kofa
from kofa.inspection.features import _in_output, selected

SAMPLES = [f"s{i}" for i in range(80)]
NAMES = [f"g{j}" for j in range(6)]


@pytest.fixture(scope="module")
def found():
    """A model with something of everything, of named samples and features."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((80, 6))
    y = np.column_stack([np.sin(2 * x[:, 1]), x[:, 4]]) + 0.1 * rng.standard_normal((80, 2))
    data = {
        "x": pd.DataFrame(x, index=SAMPLES, columns=NAMES),
        "plain": pd.DataFrame(x[:, :2], index=SAMPLES, columns=["p", "q"]),
        "y": pd.DataFrame(y, index=SAMPLES, columns=["a", "b"]),
    }
    views = {
        "x": kofa.Real(kernel=kofa.RBF(relevance="learn"), sparse=True),
        "plain": kofa.Real(kernel="linear"),
        "y": kofa.Real(),
    }
    return kofa.FactorModel(views, outputs=["y"]).fit(data)


def test_table_of_relevance_vectors(found):
    table = found.relevance_vectors("x")
    assert list(table.columns) == ["sample", "relevance", "order", "kept"]
    assert set(table["sample"]) == set(SAMPLES)
    assert table.kept.dtype == bool
    assert list(table.kept) == sorted(table.kept, reverse=True)  # those kept come first
    kept = table[table.kept]
    assert list(kept.order) == list(range(len(kept)))
    assert set(kept["sample"]) == set(found.views_["x"].outputs)


def test_table_of_features(found):
    table = found.feature_relevance("x")
    assert list(table.columns) == ["feature", "relevance", "selected"]
    assert set(table.feature) == set(NAMES)
    assert table.relevance.is_monotonic_decreasing
    assert set(table.feature[:2]) == {"g1", "g4"}
    learnt = dict(zip(NAMES, found.kernels_["x"].relevance, strict=True))
    assert dict(zip(table.feature, table.relevance, strict=True)) == learnt


def test_selected_features(found):
    table = found.feature_relevance("x")
    assert found.selected_features("x", top=2) == ["g1", "g4"]  # in the order of the columns
    assert found.selected_features("x", top=99) == NAMES
    mark = float(table.relevance[1])
    assert found.selected_features("x", threshold=mark) == ["g1", "g4"]
    assert found.selected_features("x", threshold=1e9) == []
    assert set(found.selected_features("x")) == set(table.feature[table.selected])


def test_table_of_kernels(found):
    for table in (found.kernel_weights(), found.kernel_weights("y")):
        assert list(table.columns) == ["view", "kernel", "weight"]
        assert list(table.view) == ["x", "plain"]
        assert list(table.kernel) == ["RBF", "Linear"]
        assert (table.weight >= 0).all()
        assert table.weight.sum() == pytest.approx(1.0)


def test_features_without_names_are_positions(rng):
    x = rng.standard_normal((60, 4))
    views = {"x": kofa.Real(kernel=kofa.Linear(relevance="learn")), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=["y"]).fit({"x": x, "y": x[:, 2:3]})
    assert model.feature_relevance("x").feature[0] == 2
    assert model.selected_features("x", top=1) == [2]


BAD = {
    "no relevance of features": (
        lambda m: m.feature_relevance("plain"),
        r"'plain': the Linear kernel has no relevance.*relevance='learn'",
    ),
    "nothing to select": (lambda m: m.selected_features("plain"), "'plain'.*no relevance"),
    "a view that is not sparse": (
        lambda m: m.feature_relevance("y"), "'y': it has no relevance of features.*sparse=True",
    ),
    "no relevance vectors": (
        lambda m: m.relevance_vectors("plain"), "'plain': it has no relevance vectors.*sparse=True",
    ),
    "relevance vectors of an output": (lambda m: m.relevance_vectors("y"), "'y': it has no rel"),
    "not an output": (lambda m: m.kernel_weights("x"), "'x': it is not an output.*are 'y'"),
    "unknown output": (lambda m: m.kernel_weights("w"), "Unknown view 'w'.*'x', 'plain', 'y'"),
    "unknown view": (lambda m: m.feature_relevance("w"), "Unknown view 'w'"),
    "unknown sparse view": (lambda m: m.relevance_vectors("w"), "Unknown view 'w'"),
}  # fmt: skip


@pytest.mark.parametrize(("ask", "message"), BAD.values(), ids=BAD)
def test_asking_for_what_is_not_there(found, ask, message):
    with pytest.raises(kofa.DataError, match=message):
        ask(found)


@pytest.mark.parametrize("kernel", ["laplacian", "poly", "precomputed", lambda A, B: A @ B.T])
def test_relevance_of_a_kernel_that_has_none(rng, kernel):
    X = rng.standard_normal((20, 20))
    model = kofa.FactorModel({"x": kofa.Real(kernel=kernel)}, callback=lambda _: True)
    with pytest.raises(kofa.DataError, match=r"'x': the .* kernel has no relevance"):
        model.fit({"x": X @ X.T}).feature_relevance("x")


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.relevance_vectors("x"),
        lambda m: m.feature_relevance("x"),
        lambda m: m.selected_features("x"),
        lambda m: m.kernel_weights(),
    ],
)
def test_asking_before_fit(ask):
    with pytest.raises(NotFittedError):
        ask(kofa.FactorModel())


def test_tables_need_pandas(found, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"kofa\[pandas\]"):
        found.kernel_weights()
    assert found.selected_features("x", top=2) == ["g1", "g4"]  # a list needs none


# ---------------------------------------------------------------- sparse primal views


PLANTED = [3, 10, 11, 25, 40, 59]


@pytest.fixture(scope="module")
def primal():
    """Factors that show in six of sixty columns."""
    rng = np.random.default_rng(7)
    z, x = rng.standard_normal((150, 3)), rng.standard_normal((150, 60))
    x[:, PLANTED] = z @ rng.uniform(1.0, 2.0, (3, 6)) + 0.3 * rng.standard_normal((150, 6))
    y = z + 0.1 * rng.standard_normal((150, 3))
    return kofa.FactorModel({"x": kofa.Real(sparse=True), "y": kofa.Real()}).fit({"x": x, "y": y})


def test_planted_features_of_a_primal_view_come_first(primal):
    assert primal.selected_features("x", top=6) == PLANTED
    relevance = primal.feature_relevance("x").relevance
    assert relevance[6] < 0.05 * relevance[5]


def test_noise_in_a_primal_view_is_off(primal):
    assert primal.selected_features("x") == PLANTED
    assert list(primal.feature_relevance("x").selected) == [True] * 6 + [False] * 54


def test_selection_by_number_and_by_mark():
    relevance = np.array([0.0, 3.0, 1e-9, 2.0, 2.0])
    assert selected(relevance, 2, 0.0).tolist() == [False, True, False, True, False]
    assert selected(relevance, 5, 0.0).tolist() == [False, True, True, True, True]  # zero is off
    assert selected(relevance, None, 2.0).tolist() == [False, True, False, True, True]
    assert selected(relevance, None, 0.0).tolist() == [False, True, True, True, True]
    assert not selected(np.zeros(3), None, 0.0).any()


# ---------------------------------------------------------------- everything switched off


@pytest.mark.parametrize("kernel", [kofa.RBF, kofa.Linear])
def test_everything_switched_off(rng, kernel):
    x = rng.standard_normal((60, 4))
    y = 5.0 + 2.0 * x[:, :1] + 0.1 * rng.standard_normal((60, 1))
    views = {"x": kofa.Real(kernel=kernel(relevance="learn", sparsity=1e6)), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=["y"])
    with pytest.warns(UserWarning, match="'x': no feature tells anything.*switched off.*sparsity"):
        model.fit({"x": x, "y": y})
    assert model.selected_features("x") == []
    assert (model.feature_relevance("x").relevance == 0).all()
    mean, std = model.predict({"x": x}, "y", return_std=True)
    np.testing.assert_allclose(mean, y.mean(), atol=0.05 * y.std())
    np.testing.assert_allclose(std, y.std(), rtol=0.1)
    assert np.isfinite(model.kernel_weights("y").weight).all()


def test_one_of_two_views_switched_off(rng):
    x = rng.standard_normal((60, 4))
    y = 2.0 * x[:, :1] + 0.1 * rng.standard_normal((60, 1))
    off = kofa.Real(kernel=kofa.RBF(relevance="learn", sparsity=1e6))
    views = {"x": kofa.Real(kernel="linear"), "off": off, "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=["y"])
    with pytest.warns(UserWarning, match="'off': no feature"):
        model.fit({"x": x, "off": x, "y": y})
    assert np.mean((model.predict({"x": x, "off": x}, "y") - y) ** 2) < 0.1
    assert model.kernel_weights("y").weight[1] < 0.01


@pytest.mark.filterwarnings("ignore:.*same value in all samples")
def test_all_features_constant(rng):
    y = rng.standard_normal((40, 1))
    views = {"x": kofa.Real(kernel=kofa.RBF(relevance="learn")), "y": kofa.Real()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="View 'x': no feature")  # it may say so
        model = kofa.FactorModel(views, outputs=["y"]).fit({"x": np.ones((40, 3)), "y": y})
    assert (model.feature_relevance("x").relevance == 0).all()
    np.testing.assert_allclose(
        model.predict({"x": np.ones((5, 3))}, "y"), y.mean(), atol=0.05 * y.std()
    )


def test_kernels_that_say_nothing_have_no_share():
    """Whatever the weights of the output are."""
    views = {name: SimpleNamespace(energy=np.zeros((1, 2))) for name in "ab"}
    posterior = SimpleNamespace(weights=SimpleNamespace(mean=np.full((3, 2), 1e3)))
    assert _in_output(views, posterior) == {"a": [0.0], "b": [0.0]}
