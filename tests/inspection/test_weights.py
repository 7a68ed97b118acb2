"""Weights of features: their errors, their signs, and those of linear kernels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import kofa

N, D = 300, 80
TIDY = ["feature", "factor", "weight", "std", "standardised", "lfsr"]


@pytest.fixture(scope="module")
def planted():
    """Two factors, of which the second has nothing to do with half of the columns."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, 2))
    W = rng.normal(size=(D, 2)) * [1.5, 1.0]
    W[::2, 1] = 0.0
    x = z @ W.T + rng.normal(size=(N, D))
    unit = np.geomspace(1e-3, 1e3, D)
    table = pd.DataFrame(x * unit, columns=[f"g{j}" for j in range(D)])
    return table, W * unit[:, None], unit


@pytest.fixture(scope="module")
def model(planted):
    return kofa.FactorModel({"x": kofa.Real()}).fit({"x": planted[0]})


def aligned(truth, found):
    """The planted weights with the rotation that users see."""
    R = np.linalg.lstsq(truth, found, rcond=None)[0]
    return truth @ R


def test_wide_weights_are_those_of_the_tidy_table(model, planted):
    wide, tidy = model.weights("x"), model.weights("x", tidy=True)
    assert list(tidy.columns) == TIDY
    assert len(tidy) == D * model.n_factors_
    again = tidy.pivot(index="feature", columns="factor", values="weight").loc[wide.index]
    np.testing.assert_array_equal(again, wide)
    standardised = model.weights("x", standardise=True)
    assert standardised.index.equals(wide.index)
    np.testing.assert_allclose(standardised, wide.div(planted[0].std(ddof=0), axis=0))
    again = tidy.pivot(index="feature", columns="factor", values="standardised").loc[wide.index]
    np.testing.assert_array_equal(again, standardised)


def test_deviations_cover_planted_weights(model, planted):
    _, truth, unit = planted
    tidy = model.weights("x", tidy=True)
    W, std = (tidy[c].to_numpy().reshape(-1, D).T / unit[:, None] for c in ("weight", "std"))
    error = (W - aligned(truth / unit[:, None], W)) / std
    assert np.mean(np.abs(error) < norm.ppf(0.975)) == pytest.approx(0.95, abs=0.05)
    np.testing.assert_allclose(std.mean(), 1 / np.sqrt(N), rtol=0.1)


def test_false_signs_are_as_many_as_they_say(model, planted):
    tidy = model.weights("x", tidy=True)
    np.testing.assert_allclose(tidy.lfsr, norm.cdf(-np.abs(tidy.weight / tidy["std"])))
    truth = aligned(
        planted[1] / planted[2][:, None], np.asarray(model.weights("x")) / planted[2][:, None]
    )
    wrong = np.sign(truth.T.ravel()) != np.sign(tidy.weight)
    assert wrong.sum() <= tidy.lfsr.sum() + 3 * np.sqrt(tidy.lfsr.sum())
    assert not wrong[tidy.lfsr < 1e-3].any()
    assert tidy.lfsr.max() > 0.1  # of those without weights


def test_deviations_are_rotated_with_the_factors(rng):
    """With outputs, users see a rotation of the factors, and so are q(w)."""
    z = rng.normal(size=(100, 2))
    x = z @ rng.normal(size=(2, 6)) + 0.5 * rng.normal(size=(100, 6))
    y = z @ [[1.0], [1.0]] + 0.1 * rng.normal(size=(100, 1))
    model = kofa.FactorModel(outputs=["y"]).fit({"x": x, "y": y})
    w, Q = model.posterior_["x"].weights, model._found.basis.Q
    covariance = (w.basis[0] * w.scales[3]) @ w.basis[0].T
    std = model.weights("x", tidy=True).query("feature == 3")["std"]
    naive = np.sqrt(np.diag(Q @ covariance @ Q.T)) * x[:, 3].std()
    np.testing.assert_allclose(std, naive, rtol=1e-9)


def test_top_features(model):
    table = model.top_features("x", "factor1", n=5)
    assert list(table.columns) == [c for c in TIDY if c != "factor"]
    tidy = model.weights("x", tidy=True).query("factor == 'factor1'")
    best = tidy.loc[tidy.standardised.abs().sort_values(ascending=False).index[:5]]
    assert table.feature.tolist() == best.feature.tolist()
    assert table.equals(model.top_features("x", 0, n=5))
    assert len(model.top_features("x", 1)) == 10
    assert len(model.top_features("x", 1, n=10_000)) == D


def test_errors_of_top_features(model):
    with pytest.raises(kofa.DataError, match=r"got 'factor3'; did you mean 'factor[12]'"):
        model.top_features("x", "factor3")
    with pytest.raises(kofa.DataError, match="from 0 to 1, but got 2; there are 'factor1'"):
        model.top_features("x", 2)
    for factor in (-1, None, True, ["factor1"]):
        with pytest.raises(kofa.DataError, match="xpected the name of a factor"):
            model.top_features("x", factor)
    with pytest.raises(kofa.DataError, match="Unknown view 'X'"):
        model.top_features("X", 0)
    with pytest.raises(kofa.DeclarationError, match="xpected n to be a whole number"):
        model.top_features("x", 0, n=0)


def test_names_that_users_gave(model):
    renamed = kofa.FactorModel({"x": kofa.Real()})
    renamed._remember(model._found)
    renamed.rename_factors({"factor2": "age"})
    assert renamed.top_features("x", "age").equals(model.top_features("x", "factor2"))
    assert set(renamed.weights("x", tidy=True).factor) == {"factor1", "age"}


# ---------------------------------------------------------------- kinds and kernels


def test_other_kinds_have_the_spread_of_their_layer(rng):
    z = rng.normal(size=(200, 1))
    b = (z * [2.0, 0.0, 1.0, 1.0] + rng.normal(size=(200, 4)) > 0).astype(float)
    label = np.where(z[:, 0] + 0.3 * rng.normal(size=200) > 0, "up", "down")
    views = {"b": kofa.Binary(), "label": kofa.Categorical()}
    model = kofa.FactorModel(views, n_factors=1).fit({"b": b, "label": label})
    tidy = model.weights("b", tidy=True)
    np.testing.assert_allclose(tidy.standardised, tidy.weight / np.sqrt(tidy.weight**2 + 1.0))
    assert tidy.feature.tolist() == [0, 1, 2, 3]
    assert model.weights("label", tidy=True).feature.tolist() == ["down", "up"]


@pytest.mark.filterwarnings("ignore:View")
def test_a_constant_column_has_no_weight(rng):
    x = rng.normal(size=(60, 1)) + 0.3 * rng.normal(size=(60, 5))
    x[:, 2] = 7.0
    row = kofa.FactorModel().fit({"x": x}).weights("x", tidy=True).query("feature == 2")
    assert row[["weight", "std", "standardised", "lfsr"]].to_numpy().tolist() == [[0, 0, 0, 0.5]]


@pytest.mark.parametrize("options", [{}, {"landmarks": 40}, {"scale": False}])
def test_features_of_a_linear_kernel(rng, options):
    """As one unit of a factor changes similarities, so do its weights, added to the features."""
    z = rng.normal(size=(80, 2))
    x = z @ rng.normal(size=(2, 12)) + 0.3 * rng.normal(size=(80, 12)) + 5.0
    table = pd.DataFrame(x * np.geomspace(0.5, 2, 12), columns=[f"g{j}" for j in range(12)])
    model = kofa.FactorModel({"x": kofa.Real(kernel="linear", **options)}).fit({"x": table})
    wide = model.weights("x", tidy=True).pivot(index="feature", columns="factor", values="weight")
    B = wide.loc[table.columns, model.factor_names_].to_numpy()
    encoder = model.views_["x"].encoder
    before = encoder.encode(table.to_numpy())
    for k in range(2):
        change = encoder.encode(table.to_numpy() + B[:, k]) - before
        np.testing.assert_allclose(change[0], model._found.weights("x").mean[:, k], atol=1e-6)
        moved = model.transform({"x": table + B[:, k]}) - model.transform({"x": table})
        assert moved.to_numpy()[0, k] == pytest.approx(1.0, abs=0.02)
    assert set(model.top_features("x", 0, 3).feature) < set(table.columns)
    assert model.weights("x").shape[0] == len(encoder.V)  # of landmarks, as it was


def test_features_of_a_linear_kernel_are_those_without_a_kernel(planted):
    x = planted[0].iloc[:200]
    through = kofa.FactorModel({"x": kofa.Real(kernel="linear")}, n_factors=2).fit({"x": x})
    direct = kofa.FactorModel({"x": kofa.Real()}, n_factors=2).fit({"x": x})
    one, other = (np.asarray(m.weights("x", standardise=True)) for m in (through, direct))
    assert np.abs(one - aligned(other, one)).max() < 0.05
    one, other = (m.weights("x", tidy=True)["std"] for m in (through, direct))
    assert (one / other).between(0.5, 1.5).all()


def test_other_kernels_have_weights_of_samples(rng):
    x = pd.DataFrame(rng.normal(size=(40, 3)), index=[f"s{i}" for i in range(40)])
    model = kofa.FactorModel({"x": kofa.Real(kernel="rbf", landmarks=9)}, tol=1.0).fit({"x": x})
    tidy = model.weights("x", tidy=True)
    assert set(tidy.feature) == set(model.weights("x").index) < set(x.index)
