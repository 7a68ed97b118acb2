"""Intervals where new samples differ from those of the fit."""

from __future__ import annotations

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
from kofa.results.uncertainty import beyond, few_samples, switched_off

import kofa
from conftest import two_views
from kofa.data.scaling import Scaling
from kofa.kernels.kernel_map import KernelMap
from kofa.results import answers


def smooth(rng, n_features=5):
    """A draw of a Gaussian process with an RBF kernel, in two columns."""
    omega = rng.standard_normal((n_features, 300)) / 2.5
    A, phase = rng.standard_normal((300, 2)) / np.sqrt(150), rng.uniform(0, 6.28, 300)
    return lambda X: np.cos(X @ omega + phase) @ A


def fit(seed, outputs=None, n=150, kernel="rbf", holes=0.0):
    """A model of y = f(x) + noise through a kernel, f, and the generator."""
    model, f, rng = _fitted(seed, outputs, n, kernel, holes)
    return model, f, deepcopy(rng)


@cache
def _fitted(seed, outputs, n, kernel, holes):
    rng = np.random.default_rng(seed)
    f, x = smooth(rng), rng.standard_normal((n, 5))
    y = f(x) + 0.2 * rng.standard_normal((n, 2))
    x[rng.random(x.shape) < holes] = np.nan
    outputs = outputs and [outputs]
    model = kofa.FactorModel({"x": kofa.Real(kernel=kernel), "y": kofa.Real()}, outputs=outputs)
    return model.fit({"x": x, "y": y}), f, rng


def inside(model, x, y):
    low, high = model.predict_quantiles({"x": x}, "y", [0.05, 0.95])
    return float(np.mean((low <= y) & (y <= high)))


def new(f, rng, shift=0.0, n=300):
    x = rng.standard_normal((n, 5))
    u = rng.standard_normal(x.shape)
    x += shift * u / np.linalg.norm(u, axis=1, keepdims=True)
    return x, f(x) + 0.2 * rng.standard_normal((n, 2))


def holed(rng, x, share):
    missing = rng.random(x.shape) < share
    missing[:, 0] = False
    return np.where(missing, np.nan, x)


@pytest.mark.parametrize("outputs", [None, "y"])
def test_intervals_of_rows_with_more_holes_than_in_fit_hold(outputs):
    shares = []
    for seed in range(2):
        model, f, rng = fit(seed, outputs, n=80, holes=0.05)
        x, y = new(f, rng)
        shares.append(inside(model, holed(rng, x, 0.7), y))
    assert 0.85 < np.mean(shares) < 0.97


@pytest.mark.parametrize("outputs", [None, "y"])
@pytest.mark.parametrize("shift", [5.0, 50.0])
def test_intervals_far_away_from_all_data_hold(outputs, shift):
    shares = []
    for seed in range(3):
        model, f, rng = fit(seed, outputs, n=80)
        shares.append(inside(model, *new(f, rng, shift)))
    assert np.mean(shares) > 0.83


def test_complete_rows_pay_nothing_for_the_holes_of_others():
    model, f, rng = fit(0, n=80)
    x, _ = new(f, rng, n=6)
    some = x.copy()
    some[3, 1:3] = np.nan
    _, std = model.predict({"x": x}, "y", return_std=True)
    _, with_hole = model.predict({"x": some}, "y", return_std=True)
    others = np.arange(6) != 3
    np.testing.assert_allclose(with_hole[others], std[others], rtol=1e-12)
    assert (with_hole[3] > std[3]).all()


def test_rows_with_holes_do_not_depend_on_their_batch():
    model, f, rng = fit(1, "y", n=80, holes=0.2)
    x = holed(rng, new(f, rng, n=20)[0], 0.5)
    _, together = model.predict({"x": x}, "y", return_std=True)
    alone = [model.predict({"x": x[[i]]}, "y", return_std=True)[1][0] for i in range(20)]
    np.testing.assert_array_equal(alone, together)


def test_holes_that_fit_had_too_are_part_of_its_noise():
    """With as many holes as in fit, intervals are no wider than these need to be."""
    shares = []
    for seed in range(3):
        model, f, rng = fit(seed, "y", n=80, holes=0.4)
        assert (model.views_["y"].holes_in_fit > 0).all()
        x, y = new(f, rng)
        shares.append(inside(model, holed(rng, x, 0.4), y))
    assert 0.85 < np.mean(shares) < 0.96


def test_probabilities_of_rows_with_holes_are_less_sure():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((120, 4))
    label = np.array(["a", "b", "c"])[np.argmax(x[:, :3], axis=1)]
    views = {"x": kofa.Real(kernel="rbf"), "label": kofa.Categorical()}
    model = kofa.FactorModel(views, outputs=["label"]).fit({"x": x, "label": label})
    given = answers.given(model._fitted, {"x": np.where([[0, 0, 1, 1]], np.nan, x[:50])})
    (q, values), *_ = given.project()
    q = given._left_open(q, values)
    assert len(q.open[0][0]) == 50
    filled = np.where([[0, 0, 1, 1]], x.mean(axis=0), x[:50])
    sure = model.predict_proba({"x": filled}, "label").max(axis=1)
    less = model.predict_proba({"x": np.where([[0, 0, 1, 1]], np.nan, x[:50])}, "label")
    assert less.max(axis=1).mean() < sure.mean() - 0.01


def test_few_samples_widen_and_many_do_not(rng):
    few = kofa.FactorModel(random_state=0).fit(two_views(rng, n=12))
    many = kofa.FactorModel(random_state=0).fit(two_views(rng, n=2000))
    assert (few_samples(few.posterior_["x"]) > 1.1).all()
    np.testing.assert_allclose(few_samples(many.posterior_["x"]), 1.0, atol=0.01)


def test_weights_that_ard_switched_off_keep_the_variance_of_least_squares():
    """Of few columns a rotation makes the others look certain."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 6))
    y = x @ rng.standard_normal((6, 2)) + 0.5 * rng.standard_normal((200, 2))
    model = kofa.FactorModel({"x": kofa.Real(kernel="linear"), "y": kofa.Real()})
    model.fit({"x": x, "y": y})
    _, std = model.predict({"x": 1e3 * np.eye(6)}, "y", return_std=True)
    X = x - x.mean(axis=0)
    B = np.linalg.lstsq(X, y - y.mean(axis=0), rcond=None)[0]
    noise = ((y - y.mean(axis=0) - X @ B) ** 2).sum(axis=0) / (200 - 7)
    expected = 1e3 * np.sqrt(np.outer(np.diag(np.linalg.inv(X.T @ X)), noise))
    assert (std > 0.9 * expected).all()
    assert switched_off(model.posterior_["y"], model.transform({"x": x})).max() > 0.0


def test_what_is_explained_adds_nothing_and_what_is_far_counts_more():
    ordinary = beyond(np.array([1.0, 1.0]), np.array([0.0, 0.4]), np.ones(1))
    np.testing.assert_allclose(ordinary[:, 0], [0.0, 0.4])
    far = beyond(np.array([4.0]), np.array([0.4]), np.ones(1))
    np.testing.assert_allclose(far, 0.4 * 1.75)
    assert beyond(np.array([np.nan]), np.array([np.nan]), np.ones(1)) == 0.0


@pytest.mark.parametrize("kernel", ["linear", "rbf", "bank"])
def test_intervals_do_not_depend_on_the_batch_however_far_away(kernel):
    model, f, rng = fit(4, n=60, kernel=kernel)
    x = np.concatenate([new(f, rng, shift, n=4)[0] for shift in (0.0, 3.0, 1e6)])
    for view in ("x", "y"):
        explain = model.reconstruct if view == "x" else model.predict
        _, together = explain({"x": x}, view, return_std=True)
        alone = [explain({"x": x[[i]]}, view, return_std=True)[1][0] for i in range(12)]
        np.testing.assert_array_equal(alone, together)


def test_landmarks_explain_themselves_and_nothing_far_away():
    """Against the formula k_xᵀ (K + λI)⁻¹ k_x, with the kernel matrix itself."""
    rng = np.random.default_rng(0)
    X, new = rng.standard_normal((40, 3)), rng.standard_normal((7, 3))
    new[-1] += 100.0
    encoder = KernelMap.fit("x", kofa.RBF(2.0), Scaling.identity(3), X, np.arange(40))
    K, k = kofa.RBF(2.0)(X, X), kofa.RBF(2.0)(new, X)
    H = np.eye(40) - 1.0 / 40.0
    Kc, kc = H @ K @ H, (k - K.mean(axis=0)) @ H
    own = 1.0 - 2.0 * k.mean(axis=1) + K.mean()
    ridge = 0.1 * np.diagonal(Kc).mean()
    inverse = np.linalg.inv(Kc + ridge * np.eye(40))
    typical = np.median(1.0 / np.diagonal(inverse) - ridge)
    expected = np.maximum(own - ((kc @ inverse) * kc).sum(axis=1) - typical, 0.0)
    similarity, unseen = encoder.unseen(0.1)(new)
    np.testing.assert_allclose(similarity, own / np.diagonal(Kc).mean())
    np.testing.assert_allclose(unseen, expected / np.diagonal(Kc).mean(), atol=1e-8)
    assert unseen[-1] > 0.9


def test_what_holes_add_is_saved(tmp_path):
    model, f, rng = fit(2, "y", n=80, holes=0.3)
    model.save(tmp_path / "m.kofa")
    again = kofa.load(tmp_path / "m.kofa")
    x = holed(rng, new(f, rng, n=30)[0], 0.5)
    for old, loaded in zip(
        model.predict({"x": x}, "y", return_std=True),
        again.predict({"x": x}, "y", return_std=True),
        strict=True,
    ):
        assert (old == loaded).all()
