"""Kernel formulas and the frozen map."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.impute import SimpleImputer
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline

import kofa
from kofa.data.scaling import Scaling
from kofa.kernels.declared import as_kernel
from kofa.kernels.formulas import Custom
from kofa.kernels.kernel_map import KernelMap
from kofa.preparation.fit_data import FitData


def test_formulas_agree_with_scikit_learn(rng):
    X, V = rng.standard_normal((5, 3)), rng.standard_normal((4, 3))
    np.testing.assert_allclose(kofa.RBF(width=2.0)(X, V), rbf_kernel(X, V, gamma=1 / 8))
    np.testing.assert_allclose(kofa.Laplacian(width=2.0)(X, V), laplacian_kernel(X, V, gamma=0.5))


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize(
    "kernel", ["rbf", "laplacian", "linear", "polynomial", "diffusion", "bank"]
)
def test_means_in_fit_stand_for_missing_values(rng, kernel, scale):
    x, new = rng.standard_normal((40, 3)) + 5.0, rng.standard_normal((2, 3)) + 5.0
    holed = x.copy()
    holed[::7, 1] = np.nan
    model = kofa.FactorModel({"x": kofa.Real(kernel=kernel, scale=scale)}, 3).fit({"x": holed})
    filled, lacking = new.copy(), new.copy()
    filled[:, 1], lacking[:, 1] = np.nanmean(holed[:, 1]), np.nan
    np.testing.assert_allclose(
        model.transform({"x": lacking}), model.transform({"x": filled}), atol=1e-10
    )
    alone = model.transform({"x": lacking[:1]})  # whatever else is missing in a batch
    np.testing.assert_allclose(alone, model.transform({"x": lacking})[:1], atol=1e-10)


def test_holes_cost_a_kernel_no_more_than_imputing_them():
    """Distances over the shared features alone are no kernel: R² was .2 and less here."""
    X, y = load_diabetes(return_X_y=True)
    for seed in range(2):
        holed = np.where(np.random.default_rng(seed).random(X.shape) < 0.4, np.nan, X)
        ours = kofa.KernelFactorRegressor("rbf")
        scores = [
            model.fit(holed[:150], y[:150]).score(holed[200:], y[200:])
            for model in (ours, make_pipeline(SimpleImputer(), ours))
        ]
        assert scores[0] > max(0.3, scores[1] - 0.02)


@pytest.mark.filterwarnings("ignore:.*same value in all samples")
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "diffusion"])
def test_columns_that_are_constant_in_fit_do_not_count(rng, kernel):
    x = np.column_stack([rng.standard_normal((40, 2)), np.full(40, 2023.0)])
    model = kofa.FactorModel({"x": kofa.Real(kernel=kernel)}, 2).fit({"x": x})
    later = x.copy()
    later[:, 2] = 2040.0
    np.testing.assert_array_equal(model.transform({"x": later}), model.transform({"x": x}))


@pytest.mark.filterwarnings("ignore:.*same value in all samples")
def test_values_of_constant_columns_alone_tell_nothing(rng):
    x = np.column_stack([rng.standard_normal((40, 2)), np.full(40, 7.0)])
    x[3, :2] = np.nan  # no landmark either
    model = kofa.FactorModel({"x": kofa.Real(kernel="rbf")}, 2).fit({"x": x})
    assert len(model.views_["x"].landmarks) == 39
    rows = np.array([[np.nan, np.nan, 7.0], [np.nan, np.nan, np.nan]])
    Z, covariance = model.transform({"x": rows}, return_cov=True)
    np.testing.assert_array_equal(Z[0], Z[1])
    np.testing.assert_array_equal(covariance[0], covariance[1])


def test_mixtures_take_holes_if_all_their_parts_do(rng):
    x = rng.standard_normal((20, 3))
    x[0, 1] = np.nan
    mixture = kofa.Mixture([kofa.Linear(), Custom(lambda A, B: A @ B.T)], weights=[1.0, 1.0])
    with pytest.raises(kofa.DataError, match="column 1: the Mixture kernel cannot take missing"):
        kofa.FactorModel({"x": kofa.Real(kernel=mixture)}, 2).fit({"x": x})


@pytest.mark.parametrize("names", [None, list("abcdefghijklmnopqrst")])
def test_precomputed_kernels_are_symmetric(rng, names):
    x = rng.standard_normal((20, 3))
    K = x @ x.T
    K[3, 5] += 1.0
    where = "between 3 and 5"
    if names:
        pd = pytest.importorskip("pandas")
        K, where = pd.DataFrame(K, index=names, columns=names)[names[::-1]], "between 'd' and 'f'"
    with pytest.raises(kofa.DataError, match=f"View 'k'.*symmetric.*{where}"):
        kofa.FactorModel({"k": kofa.Real(kernel="precomputed")}, 2).fit({"k": K})


def test_distances_are_no_precomputed_kernel(rng):
    x = rng.standard_normal((30, 3))
    D = np.linalg.norm(x[:, None] - x, axis=2)
    views = {"k": kofa.Real(kernel="precomputed")}
    with pytest.warns(UserWarning, match="View 'k'.*far from positive"):
        kofa.FactorModel(views, 2).fit({"k": D})
    kofa.FactorModel(views, 2).fit({"k": np.exp(-D / np.median(D))})


@pytest.mark.parametrize("kernel", [kofa.RBF(), kofa.Laplacian(), kofa.RBF("median")])
def test_default_width_is_the_median_distance(rng, kernel):
    V = rng.standard_normal((30, 4))
    distance = kernel.distance(V, V)[np.triu_indices(30, 1)]
    power = 0.5 if isinstance(kernel, kofa.RBF) else 1.0
    assert kernel.resolve(V).width == pytest.approx(np.median(distance) ** power)


@pytest.mark.parametrize("kernel", [kofa.RBF(), kofa.Laplacian()])
def test_slope_is_the_derivative_in_log_width(rng, kernel):
    distance = rng.random((4, 4)) * 3
    up, down = (kernel.profile(distance.copy(), 2.0 * np.exp(h)) for h in (1e-6, -1e-6))
    slope = kernel.slope(distance, 2.0, kernel.profile(distance.copy(), 2.0))
    np.testing.assert_allclose(slope, (up - down) / 2e-6, rtol=1e-6)


def test_map_centres_and_scales_the_training_kernel(rng):
    X = rng.standard_normal((40, 3))
    kernel = KernelMap.fit("x", kofa.RBF(), Scaling.identity(3), X, np.arange(40))
    k = kernel.encode(X)
    np.testing.assert_allclose(k.mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(k.mean(axis=1), 0.0, atol=1e-10)
    np.testing.assert_allclose(np.mean(k**2), 1.0, rtol=1e-10)


def test_map_of_a_row_without_data_is_missing(rng):
    X = rng.standard_normal((10, 3))
    kernel = KernelMap.fit("x", kofa.RBF(), Scaling.identity(3), X, np.arange(10))
    new = X.copy()
    new[4] = np.nan
    assert np.isnan(kernel.encode(new)[4]).all()
    np.testing.assert_allclose(
        np.delete(kernel.encode(new), 4, 0), np.delete(kernel.encode(X), 4, 0)
    )


def test_identical_rows_have_a_zero_map():
    X = np.ones((6, 2))
    kernel = KernelMap.fit("x", kofa.RBF(), Scaling.identity(2), X, np.arange(6))
    np.testing.assert_allclose(kernel.encode(X), 0.0, atol=1e-12)


def test_kernels_by_name():
    assert as_kernel("rbf", "x") == kofa.RBF()
    assert as_kernel(kofa.Linear, "x") == kofa.Linear()
    with pytest.raises(kofa.DeclarationError, match=r"View 'x'.*'rbff'"):
        as_kernel("rbff", "x")
    with pytest.raises(kofa.DeclarationError, match=r"View 'x'.*width.*-1"):
        as_kernel(kofa.RBF(width=-1), "x")
    with pytest.raises(kofa.DeclarationError, match=r"View 'x'.*callable"):
        as_kernel(3, "x")


def test_distances_far_from_zero(rng):
    X = rng.standard_normal((20, 2))
    near, far = (kofa.RBF(width=1.0)(X + offset, X + offset) for offset in (0.0, 1e8))
    np.testing.assert_allclose(near, far, atol=1e-6)


# ---------------------------------------------------------------- far from zero


def alone_and_together(model, points, view):
    together = model.predict({"x": points}, view)
    return np.concatenate([model.predict({"x": row[None]}, view) for row in points]), together


@pytest.mark.parametrize("outputs", [None, ["y"]])
@pytest.mark.parametrize("kernel", ["linear", "bank", kofa.Linear(relevance=[1.0, 2.0, 0.5])])
def test_products_far_from_zero_are_those_near_zero(rng, kernel, outputs):
    x, new = rng.normal(size=(60, 3)), rng.normal(size=(20, 3))
    y = x @ rng.normal(size=(3, 1)) + 0.1 * rng.normal(size=(60, 1))
    views = {"x": kofa.Real(kernel=kernel, scale=False), "y": kofa.Real()}
    near = kofa.FactorModel(views, outputs=outputs).fit({"x": x, "y": y}).predict({"x": new}, "y")
    model = kofa.FactorModel(views, outputs=outputs).fit({"x": x + 1e7, "y": y})
    alone, together = alone_and_together(model, new + 1e7, "y")
    np.testing.assert_allclose(alone, together, atol=1e-9)
    np.testing.assert_allclose(together, near, atol=1e-3)


def test_polynomial_far_from_zero_warns_before_rounding_shows(rng):
    x, new = rng.normal(size=(60, 3)), rng.normal(size=(20, 3))
    y = x @ rng.normal(size=(3, 1)) + 0.1 * rng.normal(size=(60, 1))
    model = kofa.FactorModel({"x": kofa.Real(kernel="polynomial", scale=False), "y": kofa.Real()})
    alone, together = alone_and_together(model.fit({"x": x + 100, "y": y}), new + 100, "y")
    np.testing.assert_allclose(alone, together, atol=1e-9)
    for offset in (1e4, 1e7):
        with pytest.warns(UserWarning, match=r"'x': the Polynomial kernel is all but constant"):
            model.fit({"x": x + offset, "y": y})
    alone, together = alone_and_together(model, new + 1e7, "y")
    np.testing.assert_array_equal(alone, together)  # nothing is left of it


# ---------------------------------------------------------------- diffusions


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (kofa.Diffusion(0), "neighbours to be a whole number of at least 1 but got 0"),
        (kofa.Diffusion(2.5), "neighbours to be a whole number"),
        (kofa.Diffusion(time=-1.0), r"time to be a positive number .* or 'auto' but got -1.0"),
        (
            kofa.Diffusion(time="median"),
            r"time to be a positive number .* or 'auto' but got 'median'",
        ),
        (kofa.Diffusion().of(np.eye(2)), "without a graph"),
    ],
)
def test_diffusions_that_cannot_be_are_refused(kernel, message):
    with pytest.raises(kofa.DeclarationError, match=f"View 'x': expected .*{message}"):
        kofa.FactorModel({"x": kofa.Real(kernel=kernel)}).fit({"x": np.eye(5)})


def test_diffusion_to_be_called_needs_a_graph_and_a_time():
    with pytest.raises(kofa.DeclarationError, match=r"graph of Diffusion.*is left to the data"):
        kofa.Diffusion(time=1.0)(np.eye(3), np.eye(3))
    with pytest.raises(kofa.DeclarationError, match=r"time of Diffusion.*is left to the data"):
        kofa.Diffusion().of(np.eye(3))(np.eye(3), np.eye(3))


def test_diffusion_spreads_along_all_rows_of_a_fit(rng):
    x = rng.standard_normal((60, 2))
    y = np.where(np.arange(60) < 20, x[:, 0], np.nan)[:, None]
    views = {"x": kofa.Real(kernel="diffusion"), "y": kofa.Real()}
    model = kofa.FactorModel(views, 3, outputs=["y"], tol=1.0).fit({"x": x, "y": y})
    assert len(model.views_["x"].landmarks) == 20
    assert len(model.kernels_["x"].graph.rows) == 60
    assert 1.0 <= model.kernels_["x"].time <= np.exp(7.0)


def test_graphs_of_many_rows_have_some_of_them_in_whatever_order_all_are(rng, monkeypatch):
    monkeypatch.setattr("kofa.tuning.DIFFUSION_ROWS", 50)
    X, mixture = rng.standard_normal((80, 1)), kofa.Mixture([kofa.Linear(), kofa.Diffusion(2)])
    graphs = []
    for rows in (X, X[::-1]):
        given = FitData.read({"x": kofa.Real(kernel=mixture, scale=False)}, {"x": rows}, None)
        graphs.append(given.on_rows("x", mixture).kernels[1].graph.rows)
    assert graphs[0].shape == (50, 1)
    np.testing.assert_allclose(np.sort(graphs[1], axis=0), np.sort(graphs[0], axis=0))


# ---------------------------------------------------------------- kernels that say nothing


@pytest.mark.parametrize(
    "kernel",
    [kofa.RBF(width=1e9), kofa.Polynomial(degree=2, offset=1e9), lambda X, V: 7 + 1e-15 * X @ V.T],
)
@pytest.mark.filterwarnings("ignore:View 'x'.* all but constant")
def test_what_rounding_leaves_of_a_constant_kernel_says_nothing(rng, kernel):
    X = 1e-3 * rng.normal(size=(30, 2))
    kernel = KernelMap.fit("x", as_kernel(kernel, "x"), Scaling.identity(2), X, np.arange(30))
    assert kernel.says_nothing
    assert (kernel.encode(X) == 0.0).all()


def test_small_kernels_are_not_constant(rng):
    X = 1e-12 * rng.normal(size=(30, 2))
    kernel = KernelMap.fit("x", kofa.Linear(), Scaling.identity(2), X, np.arange(30))
    np.testing.assert_allclose(np.mean(kernel.encode(X) ** 2), 1.0, rtol=1e-10)


OFF = {
    "no landmark": kofa.Real(kernel="rbf", sparse=True),
    "no feature": kofa.Real(kernel=kofa.RBF(relevance="learn", sparsity=50.0)),
    "constant": kofa.Real(kernel=kofa.RBF(width=1e9)),
}


@pytest.mark.filterwarnings("ignore:View 'junk'.*switched off")
@pytest.mark.parametrize("view", OFF.values(), ids=OFF)
def test_views_that_are_switched_off_change_neither_scores_nor_predictions(rng, view):
    x, junk = rng.normal(size=(60, 3)), rng.normal(size=(60, 4))
    data = {"x": x, "y": np.sin(x[:, :1]) + 0.1 * rng.normal(size=(60, 1))}
    views = {"x": kofa.Real(kernel=kofa.RBF(2.0)), "y": kofa.Real()}
    plain = kofa.FactorModel(views, outputs=["y"]).fit(data)
    model = kofa.FactorModel({**views, "junk": view}, outputs=["y"]).fit({**data, "junk": junk})
    assert model.views_["x"].encoder.scale == pytest.approx(plain.views_["x"].encoder.scale)
    assert model.score({**data, "junk": junk}) == pytest.approx(model.score(data), abs=1.0)
    assert model.score(data) == pytest.approx(plain.score(data), rel=0.02)
    np.testing.assert_allclose(model.predict(data, "y"), plain.predict(data, "y"), atol=0.05)
