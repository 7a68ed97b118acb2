"""Rows in single precision: what is found differs by rounding, in every engine."""

from __future__ import annotations

import numpy as np
import pytest
from test_streamed import after

import kofa
from kofa import fitting
from kofa.data import stored
from kofa.inference.fit import best_of
from kofa.linalg import cross, product


@pytest.fixture
def made(monkeypatch):
    """The engines of the fits that follow."""
    seen = []

    def watched(engine, *arguments):
        seen.append(engine)
        return best_of(engine, *arguments)

    monkeypatch.setattr(fitting, "best_of", watched)
    return seen


def view_of(engine, name):
    """A view in the first block of an engine."""
    return next(engine._visit(lambda block: block.views[name], 1, views=[name]))[1]


def planted(rng, n=300, d=12, noise=0.5, holes=0.0):
    x = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + noise * rng.normal(size=(n, d))
    x[rng.random(x.shape) < holes] = np.nan
    return x


def test_products_and_sums_over_many_rows(rng):
    A, B = rng.normal(size=(5000, 7)) + 1.0, rng.normal(size=(5000, 3)) + 1.0
    single, W = A.astype(np.float32), rng.normal(size=(7, 3))
    exact = single.astype(float)
    assert product(single, W).dtype == cross(single, B).dtype == np.float64
    np.testing.assert_allclose(product(single, W), exact @ W, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(cross(single, B) / 5000, exact.T @ B / 5000, atol=2e-7)
    np.testing.assert_allclose(cross(single, B[:, 0]) / 5000, exact.T @ B[:, 0] / 5000, atol=2e-7)
    np.testing.assert_array_equal(cross(A, B), A.T @ B)
    np.testing.assert_array_equal(product(A, W), A @ W)


@pytest.mark.parametrize("holes", [0.0, 0.1])
@pytest.mark.parametrize("options", [{}, {"engine": "disk", "block_rows": 64}])
def test_single_precision_finds_what_double_does(rng, made, monkeypatch, holes, options):
    monkeypatch.setattr(stored, "_AT_ONCE", 500)
    x = planted(rng, d=17, holes=holes)
    data = {"x": x[:, :12], "y": x[:, 12:] + 3.0}
    double = kofa.FactorModel(n_factors=3).fit(data)
    single = kofa.FactorModel(n_factors=3, dtype="float32", **options).fit(data)
    rows = view_of(made[-1], "x")
    assert rows.values.dtype == np.float32
    assert rows.rounding == pytest.approx(1.2e-7, rel=0.01)
    assert single.n_factors_ == double.n_factors_
    assert single.lower_bound_ == pytest.approx(double.lower_bound_, rel=1e-5)
    found, expected = (model.reconstruct(data) for model in (single, double))
    for name, table in expected.items():
        assert found[name].dtype == np.float64
        np.testing.assert_allclose(found[name], table, atol=1e-3)
    assert (np.diff(single.lower_bounds_) > -1e-6 * abs(single.lower_bound_)).all()


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_noise_that_single_precision_cannot_tell_from_none(rng, noise):
    x = planted(rng, n=1000, d=30, noise=noise)
    model = kofa.FactorModel(dtype="float32").fit({"x": x})
    assert model.converged_
    assert model.n_factors_ == 3
    assert model.n_iter_ < 40
    assert (1.0 / model.posterior_["x"].tau.mean).min() > 1e-6
    np.testing.assert_allclose(model.reconstruct({"x": x})["x"], x, atol=4.0 * noise + 1e-3)


def test_outputs_of_inputs_without_a_kernel(rng):
    x = planted(rng)
    y = x @ rng.normal(size=(12, 2)) + 0.1 * rng.normal(size=(300, 2))
    predicted = [
        kofa.FactorModel(outputs=["y"], dtype=dtype).fit({"x": x, "y": y}).predict({"x": x})
        for dtype in ("float64", "float32")
    ]
    np.testing.assert_allclose(*predicted, atol=2e-3)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_columns_that_follow_from_others_have_no_direction_of_their_own(rng, engine):
    parts = np.eye(4)[rng.integers(4, size=200)]  # which add up to one
    x = np.column_stack([parts, rng.normal(size=(200, 3))])
    y = x @ rng.normal(size=(7, 1)) + 0.1 * rng.normal(size=(200, 1))
    predicted = [
        kofa.FactorModel({"x": kofa.Real(), "y": kofa.Real()}, outputs=["y"], **options)
        .fit({"x": x, "y": y})
        .predict({"x": x})
        for options in ({}, {"dtype": "float32", "engine": engine})
    ]
    np.testing.assert_allclose(*predicted, atol=1e-3)


def test_what_stays_in_double_precision(rng, made):
    x = planted(rng, n=80)
    views = {"x": kofa.Real(kernel="rbf"), "c": kofa.Count(), "u": kofa.Real(), "y": kofa.Real()}
    data = {"x": x, "c": rng.poisson(3.0, size=(80, 2)), "u": x[:, 1:], "y": x[:, :1]}
    kofa.FactorModel(views, outputs=["y"], dtype="float32", callback=after(3)).fit(data)
    rows = made[-1]
    assert view_of(rows, "x").values.dtype == np.float64  # its faintest directions count
    assert view_of(rows, "c").values.dtype == np.float64  # pseudo-observations
    assert view_of(rows, "u").values.dtype == np.float32
    alone = kofa.FactorModel({"x": kofa.Real(kernel="rbf")}, dtype="float32", callback=after(3))
    alone.fit({"x": x})
    assert view_of(made[-1], "x").values.dtype == np.float32


def test_checkpoints_are_of_one_precision(rng, tmp_path):
    data, path = {"x": planted(rng)}, tmp_path / "fit.checkpoint"
    options = {"checkpoint": path, "checkpoint_every": 0.0, "callback": after(3)}
    kofa.FactorModel(dtype="float32", **options).fit(data)
    with pytest.raises(kofa.FileError, match="other data or settings"):
        kofa.FactorModel(**options).fit(data, resume=True)


def test_a_saved_model_keeps_its_precision(rng, tmp_path):
    x = planted(rng, n=60)
    model = kofa.FactorModel(dtype="float32", callback=after(3)).fit({"x": x})
    model.save(tmp_path / "model.kofa")
    loaded = kofa.load(tmp_path / "model.kofa")
    assert loaded.dtype == "float32"
    np.testing.assert_array_equal(loaded.transform({"x": x}), model.transform({"x": x}))
