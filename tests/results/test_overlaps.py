"""Views explained by factors that have not seen them."""

from __future__ import annotations

import numpy as np
import pytest

import kofa
from kofa.inference.run import Plan


def wide(rng, n):
    """More columns than samples, with many weak directions that an output follows."""
    Z = rng.standard_normal((n + 200, 60))
    x = Z @ rng.standard_normal((60, 300)) + rng.standard_normal((n + 200, 300))
    y = Z @ rng.standard_normal((60, 20)) / 8.0 + 0.3 * rng.standard_normal((n + 200, 20))
    return x, y


@pytest.mark.parametrize("outputs", [["y"], None])
def test_intervals_hold_where_new_samples_have_directions_of_their_own(rng, outputs):
    x, y = wide(rng, 50)
    views = {"x": kofa.Real(), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=outputs).fit({"x": x[:50], "y": y[:50]})
    low, high = model.predict_quantiles({"x": x[50:]}, "y", [0.05, 0.95])
    assert 0.85 < np.mean((low <= y[50:]) & (y[50:] <= high)) < 0.95


@pytest.mark.parametrize("holes", [False, True])
def test_complete_kernels_without_noise_need_one_iteration(rng, holes):
    """Where samples lack a kernel, its directions are found step by step."""
    X = rng.standard_normal((60, 3))
    y = np.sin(X[:, :1]) + 0.1 * rng.standard_normal((60, 1))
    second = X[:, 1:].copy()
    second[:20] = np.nan if holes else 0.0
    views = {name: kofa.Real(kernel=kofa.RBF(2.0)) for name in ("a", "b")} | {"y": kofa.Real()}
    data = {"a": X, "b": second, "y": y}
    model = kofa.FactorModel(views, outputs=["y"]).fit(data)
    assert model.converged_
    assert (model.n_iter_ == 1) != holes


def test_more_iterations_hardly_change_what_complete_kernels_predict(rng, monkeypatch):
    X = rng.standard_normal((80, 3))
    y = np.sin(X[:, :1]) + 0.1 * rng.standard_normal((80, 1))
    views = {"x": kofa.Real(kernel=kofa.RBF(2.0)), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=["y"])
    once = np.asarray(model.fit({"x": X[:60], "y": y[:60]}).predict({"x": X[60:]}, "y"))
    monkeypatch.setattr("kofa.inference.fit.Plan", lambda *given: Plan(*given[:2]))
    monkeypatch.setattr("kofa.tuning.PATIENCE", 20)
    often = np.asarray(model.fit({"x": X[:60], "y": y[:60]}).predict({"x": X[60:]}, "y"))
    assert model.n_iter_ > 20
    np.testing.assert_allclose(once, often, atol=0.01)


# ---------------------------------------------------------------- views that hardly overlap


def two_cohorts(kind, n=60):
    """x in the first half, and y of some kind, its first column in the other half only."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n, 2))
    x, eta = z @ rng.standard_normal((2, 5)), z @ rng.standard_normal((2, 3))
    values = {
        "Real": 5.0 + 3.0 * eta,
        "Positive": np.exp(0.3 * eta),
        "Binary": (eta > 0.5).astype(float),
        "Count": rng.poisson(np.exp(0.2 * eta + 1.0)).astype(float),
        "Categorical": np.array(["a", "b", "c"], dtype=object)[eta.argmax(axis=1)],
    }
    x[n // 2 :], y = np.nan, values[kind]
    if kind == "Categorical":
        y[: n // 2] = None
    else:
        y[: n // 2, 0] = np.nan
    return x, y


NOT_TOGETHER = "ignore:.*no sample has a value together"


@pytest.mark.filterwarnings(NOT_TOGETHER)
@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("outputs", [None, ["y"]])
@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("kind", ["Real", "Positive", "Binary", "Count"])
def test_column_that_no_factor_has_seen_is_predicted_by_its_own_values(
    kind, kernel, outputs, engine
):
    x, y = two_cohorts(kind)
    views = {"x": kofa.Real(kernel=kernel), "y": getattr(kofa, kind)()}
    model = kofa.FactorModel(views, outputs=outputs, engine=engine).fit({"x": x, "y": y})
    own = y[30:, 0]
    if kind == "Binary":
        found = model.predict_proba({"x": x[:9]}, "y")[:, 0]
        np.testing.assert_allclose(found, (own.sum() + 0.5) / (len(own) + 1.0), rtol=0.02)
        return
    mean, std = (table[:, 0] for table in model.predict({"x": x[:9]}, "y", return_std=True))
    np.testing.assert_allclose(np.median(mean), own.mean(), rtol=0.1)
    np.testing.assert_allclose(np.median(std), own.std(), rtol=0.3)


@pytest.mark.filterwarnings(NOT_TOGETHER)
@pytest.mark.parametrize("outputs", [None, ["y"]])
def test_other_columns_are_predicted_as_without_one_that_no_factor_has_seen(outputs):
    x, y = two_cohorts("Count")
    views = {"x": kofa.Real(), "y": kofa.Count()}
    options = {"outputs": outputs, "n_factors": 2}
    both, rest = (
        kofa.FactorModel(views, **options).fit({"x": x, "y": table}).predict({"x": x[:9]}, "y")
        for table in (y, y[:, 1:])
    )
    np.testing.assert_allclose(both[:, 1:], rest, rtol=0.05)


@pytest.mark.filterwarnings(NOT_TOGETHER)
@pytest.mark.parametrize("outputs", [None, ["y"]])
@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("kind", ["Real", "Binary", "Count", "Categorical"])
def test_views_of_different_samples_can_be_fitted(kind, kernel, outputs):
    x, y = two_cohorts(kind)
    y[:30] = None if kind == "Categorical" else np.nan
    views = {"x": kofa.Real(kernel=kernel), "y": getattr(kofa, kind)()}
    model = kofa.FactorModel(views, outputs=outputs).fit({"x": x, "y": y})
    if kind in ("Binary", "Categorical"):
        found = model.predict_proba({"x": x[:9]}, "y").mean(axis=0)
        values = y[30:]
        rate = values.mean(axis=0) if kind == "Binary" else [(values == c).mean() for c in "abc"]
        np.testing.assert_allclose(found, rate, atol=0.03)
    else:
        np.testing.assert_allclose(
            model.predict({"x": x[:9]}, "y"), np.tile(y[30:].mean(axis=0), (9, 1)), rtol=0.05
        )


@pytest.mark.filterwarnings(NOT_TOGETHER)
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("outputs", [None, ["y"]])
@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("kind", ["Real", "Binary"])
def test_inputs_of_one_sample_can_be_fitted(rng, kind, kernel, outputs, together):
    x, y = np.full((40, 4), np.nan), rng.standard_normal((40, 2))
    x[3] = [1.0, 0.0, 1.0, 0.0]
    y[3, 0 if together else slice(None)] = np.nan
    views = {"x": getattr(kofa, kind)(kernel=kernel), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=outputs).fit({"x": x, "y": y})
    assert np.isfinite(model.predict({"x": x}, "y")).all()


def test_columns_that_no_factor_has_seen_are_named():
    x, y = two_cohorts("Real")
    model = kofa.FactorModel({"x": kofa.Real(), "y": kofa.Real()}, outputs=["y"])
    with pytest.warns(UserWarning, match=r"'y', column 0: no sample has a value together.*'x'"):
        model.fit({"x": x, "y": y})


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_samples_of_an_output_that_does_not_vary_have_a_score():
    """No noise is so small that its precision has no number."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(17, 4)), np.full((17, 2), np.nan)
    y[:3], y[3:6, 0] = 1.5, 1.5
    model = kofa.FactorModel(outputs=["y"]).fit({"x": x, "y": y})
    assert 1.0 / model.posterior_["y"].precision.max() >= 1e-6
    assert np.isfinite(model.score_samples({"x": x, "y": y + rng.normal(size=y.shape)})).all()
