"""How much factors explain: planted shares, and the same from naive formulas."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_ndtr, ndtri, xlogy
from scipy.stats import poisson

import kofa
from kofa.inference.explained import explained, mean_only
from kofa.inference.observations import Observations
from kofa.inference.posterior import Weights
from kofa.likelihoods import Bernoulli
from kofa.linalg import Groups

SHARES = {"x": [0.4, 0.2, 0.0], "y": [0.3, 0.0, 0.25], "p": [0.0, 0.3, 0.2]}


def planted(rng, n=400, d=150, holes=0.1):
    """Views whose columns have variance one, and the shares of three factors in it."""
    z = rng.normal(size=(n, 3))
    z = np.linalg.qr(z - z.mean(axis=0))[0] * np.sqrt(n)
    data = {}
    for name, shares in SHARES.items():
        W = rng.choice([-1.0, 1.0], size=(3, d)) * np.sqrt(shares)[:, None]
        data[name] = z @ W + np.sqrt(1.0 - sum(shares)) * rng.normal(size=(n, d))
    data["p"] = np.exp(data["p"])
    data["x"][rng.random((n, d)) < holes] = np.nan
    return data


@pytest.fixture(scope="module")
def real():
    data = planted(np.random.default_rng(1))
    views = {"x": kofa.Real(), "y": kofa.Real(), "p": kofa.Positive()}
    return kofa.FactorModel(views).fit(data), data


@pytest.fixture(scope="module")
def kinds():
    """A model with every kind of view and of kernel, of named samples."""
    rng = np.random.default_rng(2)
    n, names = 150, [f"s{i}" for i in range(150)]
    z = rng.normal(size=(n, 2))

    def eta(d):
        return z @ rng.normal(size=(2, d))

    data = {
        "real": eta(8) + rng.normal(size=(n, 8)),
        "positive": np.exp(eta(5) + rng.normal(size=(n, 5))),
        "binary": (eta(12) + rng.normal(size=(n, 12)) > 1).astype(float),
        "count": rng.poisson(2 * np.log1p(np.exp(eta(10)))).astype(float),
        "linear": eta(4) + 0.1 * rng.normal(size=(n, 4)),
        "rbf": eta(3),
    }
    data = {name: pd.DataFrame(table, index=names) for name, table in data.items()}
    data["real"].iloc[::3, :2] = np.nan
    data["binary"] = data["binary"].iloc[:100]
    label = np.argmax(2 * eta(4) + rng.normal(size=(n, 4)), axis=1)
    data["label"] = pd.Series(np.array(list("abcd"))[label], index=names)
    views = {
        "real": kofa.Real(),
        "positive": kofa.Positive(),
        "binary": kofa.Binary(),
        "count": kofa.Count(),
        "linear": kofa.Real(kernel="linear"),
        "rbf": kofa.Real(kernel=kofa.RBF(2.0), landmarks=30),
        "label": kofa.Categorical(),
    }
    return kofa.FactorModel(views, n_factors=4, tol=1e-2).fit(data), data


def test_planted_shares_are_found(real):
    table = real[0].variance_explained()
    assert list(table.columns) == ["view", "factor", "r2"]
    found = table.pivot(index="view", columns="factor", values="r2")
    assert found.shape == (3, 3)
    for view, shares in SHARES.items():
        np.testing.assert_allclose(found.loc[view], shares, atol=0.02)


def test_planted_shares_of_a_linear_kernel():
    """Similarities have the square of each share, relative to the sum of these and of the noise."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 2))
    z = np.linalg.qr(z - z.mean(axis=0))[0] * np.sqrt(200)
    W = rng.choice([-1.0, 1.0], size=(2, 40)) * np.sqrt([[0.6], [0.3]])
    x = z @ W + np.sqrt(0.1) * rng.normal(size=(200, 40))
    model = kofa.FactorModel({"x": kofa.Real(kernel="linear")}).fit({"x": x})
    r2 = model.variance_explained().r2[:2]
    strong = np.sort(np.linalg.svd(W)[1])[::-1] ** 2 / 40  # of W, whose rows are not orthogonal
    np.testing.assert_allclose(r2, strong**2 / (strong**2).sum(), atol=0.02)


@pytest.mark.parametrize("kind", ["binary", "count", "label"])
def test_planted_deviance_is_found(kind):
    """One factor that many other columns show: the deviance explained by the true η."""
    rng = np.random.default_rng(4)
    z = rng.normal(size=(600, 1))
    x = z + 0.3 * rng.normal(size=(600, 60))
    w = np.linspace(-1.5, 1.5, 8)
    eta = z * w
    if kind == "binary":
        t = (eta - 0.8 + rng.normal(size=eta.shape) > 0).astype(float)
        loss = -2 * log_ndtr((2 * t - 1) * (eta - 0.8))
        p = t.mean(axis=0)
        before = -2 * (xlogy(t, p) + xlogy(1 - t, 1 - p))
        view = kofa.Binary()
    elif kind == "count":
        rate = 3 * np.log1p(np.exp(eta + 0.5))
        t = rng.poisson(rate).astype(float)
        best = poisson.logpmf(t, np.maximum(t, 1e-300))
        loss, before = (2 * (best - poisson.logpmf(t, m)) for m in (rate, t.mean(axis=0)))
        view = kofa.Count()
    else:
        t = np.argmax(eta[:, ::4] + rng.normal(size=(600, 2)), axis=1)
        loss = -2 * log_ndtr(np.where(t == 1, 1, -1) * (eta[:, 4] - eta[:, 0]) / np.sqrt(2))
        before = -2 * np.log(np.bincount(t) / 600)[t]
        view = kofa.Categorical()
    model = kofa.FactorModel({"x": kofa.Real(), "t": view}).fit({"x": x, "t": t})
    table = model.variance_explained().query("view == 't'")
    truth = 1 - loss.sum() / before.sum()
    assert table.r2.iloc[0] == pytest.approx(truth, abs=0.02)
    assert table.r2.sum() == pytest.approx(table.r2.iloc[0], abs=0.02)


def test_shares_add_up_and_are_the_same_from_data(kinds):
    model, data = kinds
    kept, new = model.variance_explained(), model.variance_explained(data)
    np.testing.assert_allclose(kept.r2, new.r2, rtol=0, atol=1e-9)
    by_view = model.variance_explained(by="view")
    assert list(by_view.columns) == ["view", "r2", "shared"]
    assert list(by_view.view) == list(data)
    sums = kept.groupby("view", sort=False).r2.sum()
    np.testing.assert_allclose(sums, by_view.r2, rtol=0, atol=1e-9)
    assert (by_view.r2 <= 1).all()
    assert (by_view.r2 > 0).all()
    for by in ("view", "feature"):
        one, other = model.variance_explained(by=by), model.variance_explained(data, by)
        assert (
            one.iloc[:, :-1]
            .drop(columns="r2", errors="ignore")
            .equals(other.iloc[:, :-1].drop(columns="r2", errors="ignore"))
        )
        np.testing.assert_allclose(one.r2, other.r2, rtol=0, atol=1e-9)


def test_features_are_columns_classes_or_landmarks(kinds):
    model, _ = kinds
    table = model.variance_explained(by="feature")
    assert list(table.columns) == ["view", "feature", "r2"]
    names = table.groupby("view").feature.agg(list)
    assert names["label"] == list("abcd")
    assert names["real"] == list(range(8))
    assert len(names["rbf"]) == 30
    assert set(names["rbf"]) < {f"s{i}" for i in range(150)}


def test_real_columns_by_the_textbook_formula(kinds):
    model, data = kinds
    table = model.variance_explained(by="feature").query("view == 'real'")
    x, fitted = data["real"], model.reconstruct(data, "real")
    fitted = fitted.where(x.notna())
    naive = 1 - ((x - fitted) ** 2).sum() / ((x - x.mean()) ** 2).sum()
    np.testing.assert_allclose(table.r2, naive, atol=1e-6)


def test_samples(kinds):
    model, data = kinds
    table = model.variance_explained(data, by="sample")
    assert list(table.columns) == ["sample", "view", "r2"]
    assert (table.groupby("view").size()[["real", "binary", "label"]] == [150, 100, 150]).all()
    x = data["positive"]
    centred, left = np.log(x) - np.log(x).mean(), None
    w, z = model.weights("positive"), model.transform(data)
    spread = np.log(x).std(ddof=0)
    eta = (z - z.mean()) @ w.T.to_numpy()
    left = np.log(x).to_numpy() - np.log(x).mean().to_numpy() - eta.to_numpy()
    naive = 1 - ((left / spread.to_numpy()) ** 2).sum(1) / ((centred / spread) ** 2).sum(axis=1)
    found = table.query("view == 'positive'").set_index("sample").r2
    np.testing.assert_allclose(found, naive[found.index], atol=1e-2)


def test_outputs_are_explained_from_the_inputs(rng):
    z = rng.normal(size=(200, 2))
    x = z @ rng.normal(size=(2, 10)) + 0.5 * rng.normal(size=(200, 10))
    y = z[:, :1] + 0.5 * rng.normal(size=(200, 1))
    model = kofa.FactorModel(outputs=["y"]).fit({"x": x, "y": y})
    predicted = model.reconstruct({"x": x}, "y")
    naive = 1 - ((y - predicted) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    table = model.variance_explained(by="view").set_index("view").r2
    assert table["y"] == pytest.approx(naive, abs=1e-9)
    first = model.variance_explained().query("view == 'y'").r2
    assert first.iloc[0] == pytest.approx(naive, abs=1e-6)  # the predictive factor
    new = model.variance_explained({"x": x[:50], "y": y[:50]}, by="view").set_index("view").r2
    some = 1 - ((y - predicted)[:50] ** 2).sum() / ((y[:50] - y.mean()) ** 2).sum()
    assert new["y"] == pytest.approx(some, abs=1e-9)
    with pytest.raises(kofa.DataError, match=r"expected an input.*'y'; add one of 'x'"):
        model.variance_explained({"y": y})


# ---------------------------------------------------------------- the definition


def by_hand(y, Z, W, likelihood=None, mean=None):
    """Weights without errors, and what they explain."""
    d, k = W.shape
    bias = y.mean(axis=0) if mean is None else mean
    one = Groups.one(d)
    w = Weights(W, np.zeros((1, k, k)), np.zeros((d, k)), one, bias, Z.mean(0)[None], np.zeros(d))
    view = Observations.from_values(y.copy(), likelihood)
    return explained(view, w, Z, mean_only(view, w, y.sum(axis=0), np.full(d, float(len(y)))))


def test_factors_that_say_the_same_share_it_evenly():
    y = np.random.default_rng(0).normal(size=(50, 1))
    Z = np.hstack([y, y])
    found = by_hand(y, Z, np.array([[0.5, 0.5]]))
    total = found.total.sum()
    np.testing.assert_allclose(found.factors / total, [0.5, 0.5])
    assert found.shared / total == pytest.approx(-0.5)  # each alone would explain .75
    np.testing.assert_allclose(found.left, 0.0, atol=1e-20)


def test_a_share_is_the_mean_over_all_orders(rng):
    """Shapley's value: by how much the error falls as factors come in, one by one."""
    y, Z, W = rng.normal(size=(30, 4)), rng.normal(size=(30, 3)), 0.4 * rng.normal(size=(4, 3))
    Z[:, 1] += Z[:, 0]
    Zc, yc = Z - Z.mean(axis=0), y - y.mean(axis=0)

    def error(some):
        return ((yc - Zc[:, list(some)] @ W[:, list(some)].T) ** 2).sum()

    naive, orders = np.zeros(3), list(permutations(range(3)))
    for order in orders:
        for place, k in enumerate(order):
            naive[k] += (error(order[:place]) - error(order[: place + 1])) / len(orders)
    found = by_hand(y, Z, W)
    np.testing.assert_allclose(found.factors, naive)
    alone = sum(error([]) - error([k]) for k in range(3))
    assert found.shared == pytest.approx(error([]) - error([0, 1, 2]) - alone)


def test_deviance_by_factor_adds_up(rng):
    Z = rng.normal(size=(400, 2))
    Z -= Z.mean(axis=0)
    W = np.array([[1.0, 0.5], [0.3, -1.0], [0.0, 0.0]])
    eta = Z @ W.T + np.array([-1.0, -2.0, 0.5])
    t = (eta + rng.normal(size=eta.shape) > 0).astype(float)
    found = by_hand(t, Z, W, Bernoulli(3), np.array([-1.0, -2.0, 0.5]))
    np.testing.assert_allclose(found.mean, ndtri(t.mean(axis=0)))
    total = found.total.sum()
    assert found.factors.sum() == pytest.approx(total - found.left.sum())
    assert (found.factors > 0.05 * total).all()
    # A factor by itself, the other being noise in a probit
    alone = 0.0
    for k, r in ((0, np.sqrt(1 + W[:, 1] ** 2)), (1, np.sqrt(1 + W[:, 0] ** 2))):
        own = (ndtri(t.mean(axis=0)) * np.sqrt(1 + (W**2).sum(axis=1)) + Z[:, [k]] * W[:, k]) / r
        alone += total + 2 * log_ndtr((2 * t - 1) * own).sum()
    assert found.shared == pytest.approx(total - found.left.sum() - alone)
    assert 0 < found.shared < 0.2 * total  # a second factor is worth more where the first is known


def test_blocks_of_rows_add_up(rng):
    y, Z, W = rng.normal(size=(40, 3)), rng.normal(size=(40, 2)), rng.normal(size=(3, 2))
    y[::4, 1] = np.nan
    w = Weights(
        W, np.zeros((1, 2, 2)), np.zeros((3, 2)), Groups.one(3), np.zeros(3), np.zeros((1, 2)),
        np.zeros(3),
    )  # fmt: skip
    view, mean = Observations.from_values(y.copy()), np.zeros(3)
    whole = explained(view, w, Z, mean)
    parts = [explained(view.take(s), w, Z[s], mean) for s in (slice(0, 15), slice(15, 40))]
    both = parts[0] + parts[1]
    for name in ("n", "total", "left", "factors", "shared"):
        np.testing.assert_allclose(getattr(both, name), getattr(whole, name))


# ---------------------------------------------------------------- edges


@pytest.mark.filterwarnings("ignore:View")
def test_what_does_not_vary_has_no_share(rng):
    x = rng.normal(size=(60, 1)) + 0.3 * rng.normal(size=(60, 5))
    x[:, 2] = 7.0
    b = (x > 0).astype(float)
    b[:, 1] = 0.0
    views = {"x": kofa.Real(), "b": kofa.Binary()}
    model = kofa.FactorModel(views).fit({"x": x, "b": b[:, [0, 1, 3]]})
    table = model.variance_explained(by="feature").set_index(["view", "feature"]).r2
    assert np.isnan(table["x", 2])
    assert np.isnan(table["b", 1])
    assert table.notna().sum() == 6
    assert model.variance_explained().r2.notna().all()


def test_errors(real):
    model, data = real
    with pytest.raises(kofa.DeclarationError, match=r"xpected by to be 'factor', 'view'.*'views'"):
        model.variance_explained(by="views")
    with pytest.raises(kofa.DataError, match=r"xpected data.*pass the tables"):
        model.variance_explained(by="sample")
    with pytest.raises(kofa.DataError, match="t least one sample"):
        model.variance_explained({"x": data["x"][:0]})


def test_it_is_kept_in_files(real, tmp_path):
    model, _ = real
    model.save(tmp_path / "m.kofa", samples=False)
    read = kofa.load(tmp_path / "m.kofa")
    for by in ("factor", "view", "feature"):
        assert read.variance_explained(by=by).equals(model.variance_explained(by=by))


def test_a_model_of_kofa_0_1_needs_data(real):
    model, data = real
    old = kofa.FactorModel(model.views)
    old._remember(replace(model._found, explained={}))
    with pytest.raises(kofa.DataError, match=r"kofa 0.1 saved it; pass data="):
        old.variance_explained()
    same = old.variance_explained(data).r2 - model.variance_explained(data).r2
    assert np.abs(same).max() < 1e-9
    assert (
        np.abs(old.weights("x", standardise=True) - model.weights("x", standardise=True)).max()
        < 0.1
    )


@pytest.mark.parametrize("n_factors", [1, 2])
def test_only_factors_that_are_shown_count(rng, n_factors):
    z = rng.normal(size=(150, 4))
    x = z @ rng.normal(size=(4, 12)) + 0.5 * rng.normal(size=(150, 12))
    y = z @ rng.normal(size=(4, 3)) + 0.5 * rng.normal(size=(150, 3))
    model = kofa.FactorModel(outputs=["y"], n_factors=n_factors).fit({"x": x, "y": y})
    table = model.variance_explained()
    assert len(table) == 2 * n_factors
    np.testing.assert_allclose(table.r2, model.variance_explained({"x": x, "y": y}).r2, atol=1e-9)
    sums = table.groupby("view").r2.sum()
    np.testing.assert_allclose(sums, model.variance_explained(by="view").r2, atol=1e-9)
    assert sums["x"] < 0.8
