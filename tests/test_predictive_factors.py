"""The factors that carry the outputs, and those that are private to the inputs."""

from __future__ import annotations

import numpy as np
import pytest

import kofa

KINDS = {
    "real": (kofa.Real(), lambda eta, rng: eta + 0.3 * rng.standard_normal(eta.shape)),
    "positive": (kofa.Positive(), lambda eta, _: np.exp(0.3 * eta)),
    "binary": (kofa.Binary(), lambda eta, rng: (eta + rng.logistic(size=eta.shape) > 0) * 1.0),
    "count": (kofa.Count(), lambda eta, rng: rng.poisson(np.exp(0.4 * eta))),
    "categorical": (
        kofa.Categorical(),
        lambda eta, rng: (eta + rng.gumbel(size=eta.shape)).argmax(axis=1),
    ),
}


def problem(rng, kind, n=90):
    x = rng.standard_normal((n, 6))
    view, draw = KINDS[kind]
    return {"x": x, "y": draw(2.0 * x[:, :3], rng)}, view


@pytest.fixture(params=list(KINDS))
def fitted(request, rng):
    data, view = problem(rng, request.param)
    views = {"x": kofa.Real(kernel="rbf"), "y": view}
    return kofa.FactorModel(views, outputs=["y"]).fit(data), data


def test_outputs_depend_on_the_predictive_factors_alone(fitted):
    model, _ = fitted
    W = np.asarray(model.weights("y"))
    if "y" in model.classes_:
        W = W - W.mean(axis=0)
    assert model.n_predictive_ == (2 if "y" in model.classes_ else 3)
    assert model.n_predictive_ < model.n_factors_
    size = np.abs(W).max(axis=0)
    assert size[model.n_predictive_ :].max() < 1e-8 * size.max()
    assert size[: model.n_predictive_].min() > 1e-3 * size.max()


def test_the_rotation_changes_no_prediction(fitted):
    """⟨w⟩·⟨z⟩ along the factors that users see is what the model predicts before its link."""
    model, data = fitted
    Z, covariance = model.transform(data, return_cov=True)
    W = np.asarray(model.weights("x"))
    inner = model.posterior_["x"].weights
    scale = model.views_["x"].layer.scaling.spread[:, None]
    np.testing.assert_allclose(W @ W.T, scale * (inner.mean @ inner.mean.T) * scale.T, rtol=1e-9)
    reconstructed = model.reconstruct({"x": data["x"]})["x"]
    own = model.transform({"x": data["x"]})
    bias = (model.views_["x"].layer.scaling.spread * inner.bias)[None]
    np.testing.assert_allclose(reconstructed, own @ W.T + bias, atol=1e-9)
    assert (np.linalg.eigvalsh(covariance) > 0).all()
    assert covariance.shape == (len(Z), model.n_factors_, model.n_factors_)


def test_few_factors_are_those_that_predict(fitted):
    """With as many as the outputs need, predictions are those of all factors."""
    model, data = fitted
    few = kofa.FactorModel(model.views, model.n_predictive_, outputs=["y"]).fit(data)
    assert few.n_factors_ == few.n_predictive_ == model.n_predictive_
    new = {"x": data["x"] + 0.1}
    np.testing.assert_allclose(
        few.transform(new), model.transform(new, n_factors=few.n_factors_), atol=1e-10
    )
    for got, wanted in zip(predictions(few, new), predictions(model, new), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


def predictions(model, data):
    if "y" in model.classes_ or isinstance(model.views["y"], kofa.Binary):
        return [model.predict_proba(data)]
    return [model.predict(data), *model.predict_quantiles(data)]


def test_fewer_than_the_rank_are_the_best_of_them(rng):
    """Three directions of different strength: with fewer factors the strong ones are kept."""
    x = rng.standard_normal((300, 8))
    truth = x[:, :3] * [3.0, 1.0, 0.3] @ np.linalg.qr(rng.standard_normal((7, 3)))[0].T
    y = truth + 0.05 * rng.standard_normal(truth.shape)
    views = {"x": kofa.Real(kernel="linear"), "y": kofa.Real(scale=False)}
    total = ((y - y.mean(axis=0)) ** 2).sum()
    for n, share in ((1, 0.89), (2, 0.98), (3, 0.999)):
        model = kofa.FactorModel(views, n, outputs=["y"]).fit({"x": x, "y": y})
        assert model.n_factors_ == model.n_predictive_ == n
        explained, std = model.reconstruct({"x": x}, "y", return_std=True)
        error = y - explained
        assert 1.0 - (error**2).sum() / total > share - 0.02
        assert np.linalg.matrix_rank(explained - y.mean(axis=0), tol=1e-6) == n
        # what is left out is noise now
        assert 0.85 < (np.abs(error) < 1.645 * std).mean() < 0.95
        # but predictions have no number of factors
        predicted = model.predict({"x": x})
        assert 1.0 - ((y - predicted) ** 2).sum() / total > 0.98
        low, high = model.predict_quantiles({"x": x})
        assert 0.85 < ((low <= y) & (y <= high)).mean() < 0.95


@pytest.mark.parametrize("outputs", [None, ["label", "y"]])
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_order_and_signs_depend_neither_on_rows_nor_on_views(rng, outputs, kernel):
    z = rng.standard_normal((80, 3)) * [1.4, 1.0, 0.7]
    data = {
        "x": z @ rng.standard_normal((3, 7)) + 0.3 * rng.standard_normal((80, 7)),
        "hit": (z @ rng.standard_normal((3, 9)) + rng.standard_normal((80, 9)) > 0) * 1.0,
        "y": z[:, :2] + 0.3 * rng.standard_normal((80, 2)),
    }
    views = {"x": kofa.Real(kernel=kernel), "hit": kofa.Binary(), "y": kofa.Real()}
    if outputs:
        data["label"] = np.array(["a", "b", "c"])[np.digitize(z[:, 0], [-1, 1])]
        views["label"] = kofa.Categorical()
    rows = rng.permutation(80)
    turned = {name: data[name][rows] for name in reversed(data)}
    model = kofa.FactorModel(views, 3, outputs=outputs).fit(data)
    other = kofa.FactorModel({name: views[name] for name in turned}, 3, outputs=outputs).fit(turned)
    assert other.n_predictive_ == model.n_predictive_ == (3 if outputs else 0)
    np.testing.assert_allclose(other.transform(turned), model.transform(data)[rows], atol=1e-6)
    for name in ("hit", "y"):
        np.testing.assert_allclose(other.weights(name), model.weights(name), atol=1e-6)


def test_the_last_of_two_classes_is_positive(rng):
    data, _ = problem(rng, "real")
    data["y"] = np.where(data["x"][:, 0] > 0, "yes", "no")
    views = {"x": kofa.Real(kernel="rbf"), "y": kofa.Categorical()}
    model = kofa.FactorModel(views, outputs=["y"]).fit(data)
    assert model.n_predictive_ == 1
    Z = model.transform(data)[:, 0]
    assert Z[data["y"] == "yes"].mean() > 0 > Z[data["y"] == "no"].mean()


def test_outputs_without_common_factors_have_no_predictive_factors(rng):
    data = {"x": rng.standard_normal((60, 3)), "y": rng.standard_normal((60, 2))}
    model = kofa.FactorModel(outputs=["y"]).fit(data)
    assert model.n_predictive_ == 0
    assert model.transform(data).shape == (60, model.n_factors_)


def test_without_outputs_the_factors_are_those_of_the_fit(rng):
    z = rng.standard_normal((80, 2))
    x = z @ rng.standard_normal((2, 6)) + 0.1 * rng.standard_normal((80, 6))
    model = kofa.FactorModel().fit({"x": x})
    assert model.n_predictive_ == 0
    assert model.transform({"x": x}, n_factors=1).shape == (80, 1)
    inner = model.posterior_["x"].weights.mean * model.views_["x"].layer.scaling.spread[:, None]
    np.testing.assert_array_equal(model.weights("x"), inner)


def test_names_and_rotation_are_kept_in_files(fitted, tmp_path):
    model, data = fitted
    model.rename_factors({"factor1": "first"}).rename_factors(["one", "two"])
    assert model.factor_names_[:3] == ["one", "two", "factor3"]
    model.save(tmp_path / "model.kofa")
    again = kofa.load(tmp_path / "model.kofa")
    assert again.factor_names_ == model.factor_names_
    assert again.n_predictive_ == model.n_predictive_
    np.testing.assert_array_equal(again.transform(data), model.transform(data))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"factor9": "a"}, "Unknown factor 'factor9'"),
        ({"factor1": "factor2"}, "Expected a name of its own .* 'factor2' is given twice\\."),
        ({"factor1": 3}, "as text but got 3"),
        ({"factor1": ""}, "as text"),
        (["a", "b", "c"], "at most 2 names of factors but got 3"),
        (None, "dict of old → new names, or a list"),
        ("size", "dict of old → new names, or a list"),
    ],
)
def test_names_that_are_refused(rng, names, message):
    z = rng.standard_normal((80, 2))
    model = kofa.FactorModel().fit({"x": z @ rng.standard_normal((2, 6))})
    with pytest.raises(kofa.DataError, match=message):
        model.rename_factors(names)
    assert model.factor_names_ == ["factor1", "factor2"]


def test_factors_of_the_fit_are_kept_unless_told_not_to(rng, tmp_path):
    pd = pytest.importorskip("pandas")
    x = pd.DataFrame(rng.standard_normal((30, 4)) + rng.standard_normal((30, 1)))
    x.index = [f"s{i}" for i in range(30)]
    x.iloc[:5] = np.nan
    y = pd.DataFrame(rng.standard_normal((30, 2)), index=x.index)
    model = kofa.FactorModel().fit({"x": x, "y": y})
    for samples in (True, False):
        model.save(tmp_path / "model.kofa", samples=samples)
        kept = kofa.load(tmp_path / "model.kofa")._fitted.samples
        assert (kept is not None) == samples
        if kept is not None:
            assert kept.names.tolist() == x.index.tolist()
            np.testing.assert_allclose(kept.factors, model.transform({"x": x, "y": y}), atol=1e-6)
            np.testing.assert_array_equal(kept.measured, [[0, 2]] * 5 + [[4, 2]] * 25)


def test_names_of_several_levels_are_kept(rng):
    pd = pytest.importorskip("pandas")
    index = pd.MultiIndex.from_product([range(5), list("abcd")])
    x = pd.DataFrame(rng.standard_normal((20, 3)), index)
    model = kofa.FactorModel().fit({"x": x})
    assert model.factors().index.equals(index)
