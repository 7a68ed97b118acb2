"""The paper's own choices: double ARD alone, and relevance by reconstruction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kofa
from kofa.inference.posterior import Gamma
from kofa.kernels.terms import Relevance
from kofa.linalg import centre
from kofa.preparation.as_published import by_ard, by_reconstruction, reconstruction_error
from numerical import differences


def kernel_problem(rng, linear=False):
    """A source, and what the factors would make of a kernel that follows two of five features."""
    X = rng.standard_normal((40, 5))
    kernel = kofa.Linear() if linear else kofa.RBF(2.0)
    given = (3.0, 2.0, 0.0, 0.0, 0.0)
    truth = kofa.Linear(relevance=given) if linear else kofa.RBF(2.0, relevance=given)
    return Relevance(kernel, X, X[:25], free_width=True), centre(truth(X, X[:25]))


@pytest.mark.parametrize("linear", [False, True], ids=["rbf", "linear"])
def test_gradient_of_the_misfit(rng, linear):
    source, target = kernel_problem(rng, linear)
    target = target + 0.1 * rng.standard_normal(target.shape)
    theta = np.array([1.0, 0.7, 1.2, 0.4, 0.9])
    numerical = differences(lambda t: reconstruction_error(source, t, target)[0], theta)
    np.testing.assert_allclose(
        reconstruction_error(source, theta, target)[1], numerical, rtol=1e-6, atol=1e-10
    )


def test_misfit_of_the_kernel_itself_is_zero(rng):
    source, target = kernel_problem(rng)
    theta = np.sqrt([3.0, 2.0, 0.0, 0.0, 0.0])
    for size in (1.0, 7.0):  # the norm is held
        assert reconstruction_error(source, theta, size * target)[0] == pytest.approx(
            0.0, abs=1e-12
        )


def test_shrinking_does_not_pay(rng):
    """λ → 0 would make the raw kernel, and what is left to explain of it, vanish."""
    source, target = kernel_problem(rng)
    one = np.ones(5)
    assert (
        reconstruction_error(source, 1e-3 * one, target)[0]
        > 0.1 * reconstruction_error(source, one, target)[0]
        > 0
    )


def test_reconstruction_finds_the_features_of_the_target(rng):
    source, target = kernel_problem(rng)
    found = np.array(by_reconstruction(kofa.RBF(2.0), source.X, source.V, target).relevance)
    assert found.mean() == pytest.approx(1.0)
    assert found[2:].max() < 0.1 * found[:2].min()


def reconstructed(kernel, rng, with_output):
    X = rng.standard_normal((50, 5))
    data, views = {"x": X}, {"x": kofa.Real(kernel=kernel)}
    if with_output:
        data["y"], views["y"] = np.sin(X[:, :1]), kofa.Real()
    outputs = ["y"] if with_output else None
    return kofa.FactorModel(views, outputs=outputs, tol=1e-2).fit(data), data


@pytest.mark.parametrize("with_output", [False, True], ids=["alone", "output"])
def test_relevance_by_reconstruction_does_not_collapse(rng, with_output):
    kernel = kofa.RBF(relevance="learn", objective="reconstruction")
    model, data = reconstructed(kernel, rng, with_output)
    learnt, X = model.kernels_["x"], data["x"]
    weights = np.array(learnt.relevance)
    assert weights.mean() == pytest.approx(1.0)
    assert (weights >= 0).all()
    median = kofa.RBF(relevance=weights).median_width(model.views_["x"].encoder.V)
    assert 0.05 * median < learnt.width < 20 * median  # neither all alike nor all apart
    assert np.isfinite(model.transform({"x": X})).all()
    assert len(model.feature_relevance("x")) == 5


def test_linear_relevance_by_reconstruction(rng):
    kernel = kofa.Linear(relevance="learn", objective="reconstruction")
    model, _ = reconstructed(kernel, rng, with_output=False)
    assert max(model.kernels_["x"].relevance) > 0


def test_reconstruction_keeps_groups_together(rng):
    groups = ("a", "b", "a", "b", "c")
    kernel = kofa.RBF(relevance="learn", objective="reconstruction", groups=groups)
    weights = reconstructed(kernel, rng, with_output=False)[0].kernels_["x"].relevance
    assert weights[0] == weights[2]
    assert weights[1] == weights[3]


@pytest.mark.filterwarnings("ignore:.*same value in all samples")
def test_constant_feature_by_reconstruction(rng):
    X = rng.standard_normal((40, 4))
    X[:, 2] = 1.0
    kernel = kofa.RBF(relevance="learn", objective="reconstruction")
    model = kofa.FactorModel({"x": kofa.Real(kernel=kernel)}, tol=1e-2).fit({"x": X})
    assert model.kernels_["x"].relevance[2] == 0.0


@pytest.mark.filterwarnings("ignore:.*same value in all samples")
def test_constant_features_alone_by_reconstruction(rng):
    kernel = kofa.RBF(relevance="learn", objective="reconstruction")
    data = {"x": np.ones((20, 2)), "y": rng.standard_normal((20, 2))}
    views = {"x": kofa.Real(kernel=kernel), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=["y"], tol=1e-2).fit(data)
    assert model.kernels_["x"].relevance == (0.0, 0.0)


def test_double_ard_keeps_what_is_above_the_threshold(rng):
    X = rng.standard_normal((50, 3))
    y = np.sin(X[:, :1])
    views = {"x": kofa.Real(kernel="rbf", sparse="ard"), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=["y"], tol=1e-2).fit({"x": X, "y": y})
    table = model.relevance_vectors("x")
    kept = table[table.kept]
    assert len(table) == 50
    assert len(kept) == len(model.views_["x"].encoder.V) >= 2
    assert kept.relevance.iloc[0] == 1.0  # relative to the strongest
    assert kept.relevance.is_monotonic_decreasing
    assert (kept.relevance >= 0.01).all()
    assert (table.relevance[~table.kept] < 0.01).all()
    assert np.mean((model.predict({"x": X}, "y") - y) ** 2) < 0.1 * y.var()


def test_double_ard_without_outputs(rng):
    X = rng.standard_normal((40, 3))
    model = kofa.FactorModel({"x": kofa.Real(kernel="rbf", sparse="ard")}, tol=1e-2).fit({"x": X})
    assert model.relevance_vectors("x").kept.sum() == len(model.views_["x"].encoder.V)


def test_double_ard_drops_a_landmark_that_is_off(rng):
    """A column that the factors do not explain is switched off, and then left out."""
    X = rng.standard_normal((30, 3))
    model = kofa.FactorModel(
        {"x": kofa.Real(kernel="rbf", sparse="ard")}, callback=lambda _: True
    ).fit({"x": X})
    view = model.posterior_["x"]
    precision = np.full(view.n_columns, 2.0)
    precision[[3, 8]] = 1e4
    selection = by_ard(replace(view, gamma=Gamma(precision, np.ones_like(precision))))
    assert set(range(view.n_columns)) - set(selection.chosen) == {3, 8}
