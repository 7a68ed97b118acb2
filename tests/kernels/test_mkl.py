"""Several kernels: one view each, or a mixture that explains a view as one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import kofa
from kofa.inference.role import Role
from kofa.inference.start import energy
from kofa.kernels.declared import as_kernels
from kofa.linalg import centre


def curved(rng, n=100):
    X = rng.standard_normal((n, 3))
    return X, np.sin(2 * X[:, :1]) + X[:, 1:2] + 0.1 * rng.standard_normal((n, 1))


def fit(kernel, X, y, **options):
    views = {"x": kofa.Real(kernel=kernel, **options), "y": kofa.Real()}
    return kofa.FactorModel(views, outputs=["y"]).fit({"x": X, "y": y})


# ---------------------------------------------------------------- one view for each kernel


def test_names_of_several_kernels():
    kernels = [kofa.RBF(1.0), "linear", kofa.RBF(2.0), kofa.Polynomial(3), kofa.RBF]
    assert as_kernels(kernels, "x") == {
        "x[RBF]": kofa.RBF(1.0),
        "x[Linear]": kofa.Linear(),
        "x[RBF 2]": kofa.RBF(2.0),
        "x[Polynomial]": kofa.Polynomial(3),
        "x[RBF 3]": kofa.RBF(),
    }


@pytest.fixture(scope="module")
def several():
    rng = np.random.default_rng(7)
    X, y = curved(rng)
    y[:10] = np.nan
    return fit([kofa.RBF(), kofa.Linear(), kofa.Polynomial(3)], X, y), X, y


def test_a_list_is_one_view_each(several):
    model, _, _ = several
    assert list(model.views_) == ["x[RBF]", "x[Linear]", "x[Polynomial]", "y"]
    assert list(model.kernels_) == ["x[RBF]", "x[Linear]", "x[Polynomial]"]


def test_data_are_passed_once_under_the_declared_name(several):
    model, X, y = several
    Z = model.transform({"x": X})
    assert Z.shape == (100, model.n_factors_)
    prediction, std = model.predict({"x": X}, "y", return_std=True)
    assert np.mean((prediction - y)[10:] ** 2) < 0.05
    assert (std > 0).all()
    with pytest.raises(kofa.DataError, match=r"Unknown view 'x\[RBF\]'"):
        model.transform({"x[RBF]": X})


def test_filling_scoring_and_reconstruction(several):
    model, X, y = several
    filled = model.impute({"x": X, "y": y})
    assert set(filled) == {"x", "y"}
    np.testing.assert_array_equal(filled["x"], X)
    np.testing.assert_array_equal(filled["y"][10:], y[10:])
    np.testing.assert_allclose(filled["y"][:10], model.predict({"x": X[:10]}, "y"))
    assert np.isfinite(model.score({"x": X, "y": y}))
    found = model.reconstruct({"x": X, "y": y})
    assert set(found) == {"x[RBF]", "x[Linear]", "x[Polynomial]", "y"}
    encoder = model.views_["x[RBF]"].encoder
    truth = encoder.scale * encoder.encode(X)
    assert np.corrcoef(found["x[RBF]"].ravel(), truth.ravel())[0, 1] > 0.9


def test_similarities_are_predicted_from_the_output(several):
    model, _, y = several
    assert model.predict({"y": y[10:]}, "x[Linear]").shape == (90, 90)
    with pytest.raises(kofa.DataError, match="other than"):
        model.predict({"x": np.zeros((1, 3))}, "x[Linear]")  # its own data


def test_the_declared_name_stands_for_several_views(several):
    model, X, _ = several
    with pytest.raises(
        kofa.DataError, match=r"'x': it has several kernels; ask for one of 'x\[RBF\]"
    ):
        model.predict({"y": X[:, :1]}, "x")


def test_transform_is_that_of_fit(rng):
    X, y = curved(rng, 60)
    views = {"x": kofa.Real(kernel=["rbf", "linear"]), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=["y"])
    Z = model.fit_transform({"x": X, "y": y})
    np.testing.assert_allclose(model.transform({"x": X, "y": y}), Z, atol=1e-8)


def test_without_outputs(rng):
    X, _ = curved(rng, 60)
    model = kofa.FactorModel({"x": kofa.Real(kernel=["rbf", "linear"])}, tol=1e-2).fit({"x": X})
    assert list(model.views_) == ["x[RBF]", "x[Linear]"]
    assert model.transform({"x": X}).shape[0] == 60


def test_a_list_of_one_is_that_kernel(rng):
    X, y = curved(rng)
    alone, listed = (fit(kernel, X, y) for kernel in ("rbf", ["rbf"]))
    assert list(listed.views_) == ["x[RBF]", "y"]
    new = rng.standard_normal((20, 3))
    np.testing.assert_allclose(
        listed.predict({"x": new}, "y"), alone.predict({"x": new}, "y"), atol=1e-6
    )


@pytest.mark.parametrize("taken", ["x[RBF]", "x[Linear]"])
def test_name_that_is_taken(rng, taken):
    views = {taken: kofa.Real(), "x": kofa.Real(kernel=["rbf", "linear"])}
    with pytest.raises(kofa.DeclarationError, match="only once"):
        kofa.FactorModel(views).fit({n: rng.standard_normal((10, 2)) for n in views})


# ---------------------------------------------------------------- mixtures


def test_mixture_is_the_weighted_sum(rng):
    X, V = rng.standard_normal((5, 3)), rng.standard_normal((4, 3))
    kernels, weights = [kofa.RBF(1.0), kofa.Linear(), kofa.Laplacian(2.0)], [0.5, 2.0, 0.0]
    mixture = kofa.Mixture(kernels, weights)
    expected = sum(w * k(X, V) for w, k in zip(weights, kernels, strict=True))
    np.testing.assert_allclose(mixture(X, V), expected)
    np.testing.assert_allclose(mixture.diagonal(X), np.diagonal(mixture(X, X)))


def test_mixture_left_to_the_data_gives_all_kernels_one_variance(rng):
    X = rng.standard_normal((30, 3))
    resolved = kofa.Mixture([kofa.RBF(1.0), kofa.Linear()]).resolve(X)
    for weight, kernel in zip(resolved.weights, resolved.kernels, strict=True):
        assert np.trace(weight * centre(kernel(X, X))) / 30 == pytest.approx(1.0)


def test_mixture_has_the_weights_that_were_learnt(rng):
    X, y = curved(rng)
    model = fit(kofa.Mixture([kofa.RBF(), kofa.Polynomial(3)]), X, y)
    weights = model.kernels_["x"].weights
    assert weights[0] == 1.0  # the others are relative to the first
    assert all(w > 0 for w in weights)


def test_given_weights_stay(rng):
    X, y = curved(rng)
    model = fit(kofa.Mixture([kofa.RBF(1.0), kofa.Linear()], weights=[0.25, 3.0]), X, y)
    assert model.kernels_["x"].weights == (0.25, 3.0)


@pytest.mark.parametrize("outputs", [None, ["y"]], ids=["alone", "with outputs"])
def test_bank_takes_holes(rng, outputs):
    X, y = curved(rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[4] = np.nan
    views = {"x": kofa.Real(kernel="bank"), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=outputs, tol=1e-2).fit({"x": X, "y": y})
    assert [type(k).__name__ for k in model.kernels_["x"].kernels] == ["Linear", "RBF", "Laplacian"]
    prediction = model.predict({"x": X}, "y")
    assert np.isfinite(prediction).all()
    assert prediction[4] == pytest.approx(np.mean(y), abs=0.3 * np.std(y))  # nothing is known


def test_bank_predicts_what_is_linear_and_what_is_not(rng):
    X, y = curved(rng, 200)
    model = fit("bank", X[:120], y[:120])
    residual = y[120:] - model.predict({"x": X[120:]}, "y")
    assert 1 - residual.var() / y[120:].var() > 0.85


def test_row_of_a_mixture_does_not_depend_on_its_batch(rng):
    X, y = curved(rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = fit("bank", X, y)
    together = model.predict({"x": X}, "y")
    for row in (0, 17):
        np.testing.assert_allclose(model.predict({"x": X[[row]]}, "y")[0], together[row], rtol=1e-8)


# ---------------------------------------------------------------- what each contributes


def planted(rng, n=120):
    """Two inputs that matter, one of noise."""
    data = {name: rng.standard_normal((n, 3)) for name in ("a", "b", "noise")}
    y = np.sin(2 * data["a"][:, :1]) + data["b"][:, :1] + 0.1 * rng.standard_normal((n, 1))
    return data | {"y": y}


def test_kernels_of_noise_fade(rng):
    data = planted(rng)
    views = {name: kofa.Real(kernel="rbf") for name in ("a", "b", "noise")} | {"y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=["y"]).fit(data)
    for table in (model.kernel_weights(), model.kernel_weights("y")):
        assert list(table.columns) == ["view", "kernel", "weight"]
        assert list(table.view) == ["a", "b", "noise"]
        assert (table.kernel == "RBF").all()
        assert table.weight.sum() == pytest.approx(1.0)
        assert table.weight[2] < 0.05
    assert (model.kernel_weights("y").weight[:2] > 0.1).all()


def test_kernels_of_one_input_share_the_prediction(rng):
    X = rng.standard_normal((120, 3))
    y = X[:, :1] - X[:, 1:2] + 0.1 * rng.standard_normal((120, 1))
    table = fit([kofa.Linear(), kofa.RBF(0.3)], X, y).kernel_weights("y")
    assert list(table.view) == ["x[Linear]", "x[RBF]"]
    assert table.weight.sum() == pytest.approx(1.0)
    assert table.weight[0] > 0.9


def test_parts_of_a_mixture_are_found_apart(rng):
    X = rng.standard_normal((120, 3))
    y = X[:, :1] - X[:, 1:2] + 0.1 * rng.standard_normal((120, 1))
    model = fit(kofa.Mixture([kofa.RBF(0.3), kofa.Linear()]), X, y)
    for table in (model.kernel_weights(), model.kernel_weights("y")):
        assert list(table.view) == ["x", "x"]
        assert list(table.kernel) == ["RBF", "Linear"]
        assert table.weight.sum() == pytest.approx(1.0)
    assert model.kernel_weights("y").weight[1] > 0.9


def test_views_without_a_kernel_count_too(rng):
    data = planted(rng)
    views = {"a": kofa.Real(kernel="rbf"), "b": kofa.Real(), "noise": kofa.Real(kernel="rbf")}
    model = kofa.FactorModel(views | {"y": kofa.Real()}, outputs=["y"]).fit(data)
    table = model.kernel_weights("y")
    assert list(table.kernel) == ["RBF", "none", "RBF"]
    assert table.weight[2] < 0.05
    assert table.weight[1] > 0.1


def test_without_outputs_there_are_shares_in_the_factors(rng):
    data = planted(rng, n=50)
    views = {name: kofa.Real(kernel="rbf") for name in data}
    model = kofa.FactorModel(views, tol=1e-2).fit(data)
    assert model.kernel_weights().weight.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("parts", [1, 2])
def test_energy_is_that_of_the_kernel_along_the_factors(rng, parts):
    """With all rows as landmarks it is z_kᵀ K z_k / N², for each kernel in the view."""
    X = rng.standard_normal((25, 3))
    grams = [centre(kofa.RBF(1.0)(X, X)), centre(kofa.Laplacian(2.0)(X, X))][:parts]
    Z = np.linalg.qr(centre(rng.standard_normal((25, 25)))[:, :4])[0] * np.sqrt(25)
    K = np.sum(grams, axis=0)
    view = SimpleNamespace(weights=SimpleNamespace(mean=K @ Z / 25))  # least squares: K = Z Wᵀ
    found = energy(view, Role("x", kernelized=True, grams=grams))
    expected = [np.diagonal(Z.T @ gram @ Z) / 25**2 for gram in grams]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_energy_of_a_view_without_a_kernel(rng):
    W = rng.standard_normal((6, 3))
    view = SimpleNamespace(weights=SimpleNamespace(mean=W))
    expected = 2.0 * (W**2).sum(axis=0)[None] / 6
    np.testing.assert_allclose(energy(view, Role("x", weight=2.0)), expected)


def test_energy_of_a_kernel_that_is_not_positive(rng):
    """Holes, or any callable, make kernels with negative directions; duplicates singular ones."""
    X = rng.standard_normal((20, 2))
    for K in (centre(np.tanh(X @ X.T)), centre(np.ones((20, 20)))):
        W = K @ rng.standard_normal((20, 3)) / 20
        view = SimpleNamespace(weights=SimpleNamespace(mean=W))
        found = energy(view, Role("x", kernelized=True, grams=[K]))
        assert np.isfinite(found).all()
        assert (found >= 0).all()
