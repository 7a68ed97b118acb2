"""What must hold for every model."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import kofa
from conftest import two_views

KERNELS = [
    None,
    kofa.RBF(),
    kofa.Linear(),
    kofa.Polynomial(2),
    kofa.Laplacian(width=2.0),
    lambda X, V: np.tanh(X @ V.T),
]


def fit(views, data, **options):
    options = {"max_iter": 40, "tol": 0.0} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kofa.FactorModel(views, **options).fit(data)


@st.composite
def problems(draw):
    """Views of every make with holes of every kind."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, rank = draw(st.integers(4, 40)), draw(st.integers(1, 4))
    Z = rng.standard_normal((n, rank))
    views, data = {}, {}
    for m in range(draw(st.integers(1, 4))):
        d = draw(st.integers(1, 8))
        kernel = draw(st.sampled_from(KERNELS))
        values = Z @ rng.standard_normal((rank, d)) + draw(
            st.sampled_from([0.0, 0.1, 1.0])
        ) * rng.standard_normal((n, d))
        holes = draw(st.sampled_from(["none", "rows", "scattered", "both"]))
        if holes in ("scattered", "both") and (
            kernel is None or kofa.kernels.as_kernel(kernel, "x").takes_missing
        ):
            values[rng.random(values.shape) < 0.2] = np.nan
        if holes in ("rows", "both"):
            values[rng.random(n) < 0.3] = np.nan
        values[:2] = Z[:2] @ np.ones((rank, d))  # no column is empty
        views[f"v{m}"] = kofa.Real(
            kernel=kernel,
            sparse=draw(st.booleans()),
            noise=draw(st.sampled_from(["view", "column"])),
            scale=draw(st.booleans()),
        )
        data[f"v{m}"] = values
    outputs = draw(st.sampled_from([None, ["v0"]])) if len(views) > 1 else None
    n_factors = draw(st.sampled_from([None, 1, 2, 3, 5, 8, 50]))
    return views, data, n_factors, outputs


def smallest_rise(views, data, **options):
    """The smallest relative change of the bound in an iteration that pruned nothing before."""
    pruned = []
    model = fit(views, data, callback=lambda i: pruned.append(i.pruned) and None, **options)
    rise = np.diff(model.lower_bounds_) / np.abs(model.lower_bounds_[:-1])
    return rise[~np.array(pruned[:-1], dtype=bool)].min(initial=0.0)


@settings(
    max_examples=250, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
@given(problems())
def test_bound_never_falls(problem):
    views, data, n_factors, outputs = problem
    assert smallest_rise(views, data, n_factors=n_factors, outputs=outputs, max_iter=30) >= -1e-8


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(problems())
def test_bound_never_falls_on_new_problems_each_time(problem):
    views, data, n_factors, outputs = problem
    assert smallest_rise(views, data, n_factors=n_factors, outputs=outputs, max_iter=60) >= -1e-8


def test_masked_row_is_a_dropped_row(rng):
    data = two_views(rng)
    data["x"][rng.random(data["x"].shape) < 0.1] = np.nan
    hidden = {name: y.copy() for name, y in data.items()}
    for y in hidden.values():
        y[10:15] = np.nan
    dropped = {name: np.delete(y, np.s_[10:15], axis=0) for name, y in data.items()}
    views = {"x": kofa.Real(), "y": kofa.Real(kernel=kofa.RBF())}
    a, b = fit(views, hidden), fit(views, dropped)
    new = two_views(np.random.default_rng(1))
    np.testing.assert_allclose(a.lower_bound_, b.lower_bound_, rtol=1e-10)
    np.testing.assert_allclose(a.transform(new), b.transform(new), atol=1e-8)
    np.testing.assert_allclose(a.transform(hidden)[10:15], 0.0, atol=1e-12)


def test_row_masked_in_one_view_is_dropped_there(rng):
    data = two_views(rng)
    data["y"][:20] = np.nan
    alone = fit({"y": kofa.Real()}, {"y": data["y"]})
    dropped = fit({"y": kofa.Real()}, {"y": data["y"][20:]})
    np.testing.assert_allclose(
        alone.transform({"y": data["y"]}), dropped.transform({"y": data["y"]}), atol=1e-8
    )


def test_masked_column_is_a_dropped_column(rng):
    """A column that is missing in all new samples tells as little as a model without it."""
    data = two_views(rng)
    model = fit({"x": kofa.Real(), "y": kofa.Real()}, data)
    masked = data["x"].copy()
    masked[:, 2] = np.nan
    view = model.posterior_[0]
    keep = [0, 1, 3, 4]
    w = view.weights
    G = (
        view.precision[:, None, None]
        * (
            w.mean[:, :, None] * w.mean[:, None, :]
            + np.einsum("gkl,dl,gjl->dkj", w.basis, w.scales, w.basis)
        )
    )[keep]
    precision = np.eye(model.n_factors_) + G.sum(axis=0)
    x = model.views_["x"].encoder.encode(data["x"])[:, keep]
    h = (x - w.y_mean[keep]) * view.precision[keep] @ w.mean[keep] + G.sum(0) @ w.z_mean[0]
    expected = np.linalg.solve(precision, h.T).T
    np.testing.assert_allclose(model.transform({"x": masked}), expected, atol=1e-8)


@pytest.mark.parametrize("missing", [False, True])
def test_order_of_samples_views_and_columns_does_not_matter(rng, missing):
    data = two_views(rng)
    if missing:
        data["x"][rng.random(data["x"].shape) < 0.15] = np.nan
    views = {"x": kofa.Real(), "y": kofa.Real(kernel=kofa.RBF())}
    rows, columns = rng.permutation(60), rng.permutation(5)
    shuffled = {"y": data["y"][rows], "x": data["x"][rows][:, columns]}
    a = fit(views, data, n_factors=4, max_iter=400)
    b = fit(dict(reversed(views.items())), shuffled, n_factors=4, max_iter=400)
    np.testing.assert_allclose(a.lower_bound_, b.lower_bound_, rtol=1e-9)
    for view, order in (("x", columns), ("y", rows)):
        np.testing.assert_allclose(
            a.reconstruct(data, view)[rows][:, order], b.reconstruct(shuffled, view), atol=1e-8
        )
    np.testing.assert_allclose(
        np.abs(a.transform(data)[rows]), np.abs(b.transform(shuffled)), atol=1e-7
    )


@pytest.mark.parametrize("kernel", [*KERNELS, kofa.Precomputed()])
def test_prediction_of_a_row_does_not_depend_on_its_batch(rng, kernel):
    data = two_views(rng)
    if isinstance(kernel, kofa.Precomputed):
        data["x"] = data["x"] @ data["x"].T
    model = fit({"x": kofa.Real(kernel=kernel), "y": kofa.Real()}, data, outputs=["y"])
    new = data["x"] + (0.1 if not isinstance(kernel, kofa.Precomputed) else 0.0)
    mean, std = model.predict({"x": new}, "y", return_std=True)
    for i in (0, 17, 59):
        alone, alone_std = model.predict({"x": new[i : i + 1]}, "y", return_std=True)
        np.testing.assert_allclose(alone[0], mean[i], atol=1e-10)
        np.testing.assert_allclose(alone_std[0], std[i], atol=1e-10)


def test_prediction_with_holes_does_not_depend_on_its_batch(rng):
    data = two_views(rng)
    model = fit({"x": kofa.Real(kernel="rbf"), "y": kofa.Real()}, data)
    new = data["x"].copy()
    new[rng.random(new.shape) < 0.3] = np.nan
    y = data["y"].copy()
    y[rng.random(y.shape) < 0.3] = np.nan
    batch = model.transform({"x": new, "y": y})
    for i in range(60):
        alone = model.transform({"x": new[i : i + 1], "y": y[i : i + 1]})
        np.testing.assert_allclose(alone[0], batch[i], atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS[:5])
def test_fit_transform_is_fit_then_transform(rng, kernel):
    data = two_views(rng)
    data["y"][rng.random(data["y"].shape) < 0.2] = np.nan
    data["y"][5:9] = np.nan
    views = {"x": kofa.Real(kernel=kernel), "y": kofa.Real()}
    model = kofa.FactorModel(views, max_iter=500)
    Z = model.fit_transform(data)
    np.testing.assert_allclose(model.transform(data), Z, atol=1e-8)


def test_same_seed_same_result(rng):
    data = two_views(rng)
    views = {"x": kofa.Real(kernel="rbf", landmarks=20), "y": kofa.Real()}
    a, b, c, other = (
        fit(views, data, n_init=3, random_state=seed)
        for seed in (5, 5, np.random.default_rng(5), 6)
    )
    for same in (b, c):
        assert np.array_equal(a.lower_bounds_, same.lower_bounds_)
        assert np.array_equal(a.transform(data), same.transform(data))
    assert not np.array_equal(a.lower_bounds_, other.lower_bounds_)


@pytest.mark.parametrize("block_rows", [1, 7, 1000])
def test_blocks_of_any_size_give_the_same_statistics(rng, block_rows):
    from conftest import core

    data = two_views(rng)
    data["x"][rng.random(data["x"].shape) < 0.2] = np.nan
    data["y"][::3] = np.nan
    engine, state, _ = core(list(data.values()))
    whole = engine.sweep(state)
    engine.block_rows = block_rows
    parts = engine.sweep(state)
    for name in ("S", "S_group", "z_group", "z_sum", "logdet"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-9)
    for a, b in zip(parts.R, whole.R, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("holes", [0.1, 0.3])
def test_outputs_with_scattered_holes(kernel, holes):
    """Columns with fewer rows than factors, and hardly any noise in the kernel."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((150, 4))
    y = np.sin(x[:, :3])
    y[rng.random(y.shape) < holes] = np.nan
    views = {"x": kofa.Real(kernel=kernel), "y": kofa.Real()}
    assert smallest_rise(views, {"x": x, "y": y}, outputs=["y"]) >= -1e-8


@pytest.mark.parametrize("seed", range(8))
def test_kernel_with_holes_and_as_many_factors_as_samples(seed):
    rng = np.random.default_rng(seed)
    data = two_views(rng, n=50, k=3, dims=(6, 4), noise=0.2)
    data["x"][rng.random(data["x"].shape) < 0.25] = np.nan
    views = {"x": kofa.Real(kernel="rbf"), "y": kofa.Real()}
    assert smallest_rise(views, data, outputs=["y"]) >= -1e-8


def test_kernel_function_keeps_its_own_array(rng):
    data = two_views(rng)
    K = data["x"] @ data["x"].T
    before = K.copy()
    K.flags.writeable = False
    fit({"x": kofa.Real(kernel=lambda *_: K), "y": kofa.Real()}, data)
    np.testing.assert_array_equal(K, before)


def test_caller_data_are_not_changed(rng):
    data = two_views(rng)
    data["x"][3, 2] = np.nan
    before = {name: y.copy() for name, y in data.items()}
    model = fit({"x": kofa.Real(kernel="rbf"), "y": kofa.Real()}, data)
    model.impute(data), model.predict(data, "y"), model.score(data)
    for name, y in data.items():
        np.testing.assert_array_equal(y, before[name])
