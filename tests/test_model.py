"""`FactorModel` as a user meets it."""

from __future__ import annotations

import io
import tracemalloc
import warnings
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import kofa
from conftest import two_views
from kofa import fitting
from kofa.inference import fit
from kofa.inference.start import spectral
from kofa.progress import Progress
from kofa.results.prediction import Prediction


@pytest.fixture
def frames(rng):
    data = two_views(rng, n=40)
    names = [f"s{i}" for i in range(40)]
    x = pd.DataFrame(data["x"], index=names, columns=list("abcde"))
    y = pd.DataFrame(data["y"], index=names, columns=["p", "q", "r", "s"])
    return {"x": x, "y": y}


def test_clone_and_repr_are_those_of_an_estimator():
    model = kofa.FactorModel({"x": kofa.Real(kernel=kofa.RBF())}, 7, tol=1e-4)
    copy = clone(model)
    assert copy.get_params()["views"] == model.views
    assert copy.views is not model.views
    assert repr(copy) == repr(model)
    assert "n_factors=7" in repr(model)


def test_unfitted_model_says_so(rng):
    with pytest.raises(NotFittedError):
        kofa.FactorModel().transform(two_views(rng))


def test_fitted_attributes(rng):
    model = kofa.FactorModel(n_factors=5).fit(two_views(rng))
    assert model.n_factors_ == 2
    assert model.converged_
    assert len(model.lower_bounds_) == model.n_iter_
    assert model.lower_bound_ == model.lower_bounds_[-1]
    total = sum(model.lower_bound_terms_.values())
    np.testing.assert_allclose(total, model.lower_bounds_)
    assert {"kl_z", "likelihood[x]", "kl_w[y]", "kl_tau[x]"} <= set(model.lower_bound_terms_)


def test_names_survive_to_every_output(frames):
    model = kofa.FactorModel().fit(frames)
    Z = model.transform(frames)
    assert list(Z.index) == list(frames["x"].index)
    assert list(Z.columns) == ["factor1", "factor2"]
    mean, std = model.predict({"x": frames["x"]}, "y", return_std=True)
    for table in (mean, std, model.reconstruct(frames)["y"], model.impute(frames)["y"]):
        assert list(table.columns) == list("pqrs")
        assert list(table.index) == list(frames["x"].index)
    assert isinstance(model.transform({"x": frames["x"].to_numpy()}), np.ndarray)


def test_names_of_landmarks_are_the_columns_of_a_kernel_prediction(frames):
    model = kofa.FactorModel({"x": kofa.Real(kernel="rbf"), "y": kofa.Real()}).fit(frames)
    predicted = model.predict({"y": frames["y"]}, "x")
    assert list(predicted.columns) == list(frames["x"].index)


def test_frames_are_aligned_by_index(frames):
    x, y = frames["x"], frames["y"].iloc[10:].sample(frac=1.0, random_state=0)
    model = kofa.FactorModel()
    Z = model.fit_transform({"x": x, "y": y})
    holes = frames["y"].copy()
    holes.iloc[:10] = np.nan
    expected = kofa.FactorModel().fit({"x": x, "y": holes})
    np.testing.assert_allclose(model.lower_bound_, expected.lower_bound_, rtol=1e-9)
    assert list(Z.index) == list(x.index)
    extra = pd.concat([y, y.iloc[:1].rename({y.index[0]: "new"})])
    assert list(model.transform({"x": x, "y": extra}).index) == [*x.index, "new"]


def test_named_columns_may_come_in_any_order(frames):
    model = kofa.FactorModel().fit(frames)
    shuffled = {"x": frames["x"][list("ecabd")]}
    np.testing.assert_allclose(
        model.transform(shuffled), model.transform({"x": frames["x"]}), atol=1e-12
    )


def test_impute_keeps_what_is_observed_and_fills_the_rest(rng, frames):
    truth = frames["x"].copy()
    holes = rng.random(truth.shape) < 0.2
    given = {"x": truth.mask(holes), "y": frames["y"].iloc[5:]}
    model = kofa.FactorModel().fit(given)
    filled = model.impute(given)
    pd.testing.assert_frame_equal(filled["x"].where(~holes), truth.where(~holes))
    assert filled["y"].shape == (40, 4)
    assert not filled["x"].isna().any().any()
    error = (filled["x"] - truth).to_numpy()[holes]
    assert np.sqrt(np.mean(error**2)) < 0.6 * truth.to_numpy().std()


def test_impute_warns_once_that_it_leaves_kernelized_views(rng):
    data = two_views(rng)
    views = {"x": kofa.Real(kernel=["linear", "rbf"]), "y": kofa.Real()}
    model = kofa.FactorModel(views, callback=lambda _: True).fit(data)
    data["y"][3, 1] = np.nan
    model.impute(data)
    data["x"][3, 1] = np.nan
    with pytest.warns(UserWarning, match="Holes of 'x' stay: declare a view without") as caught:
        filled = model.impute(data)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(filled["x"], data["x"])


def test_predictions_are_in_the_users_units(rng):
    data = two_views(rng, noise=0.05)
    data["y"] = 1e4 + 1e3 * data["y"]
    model = kofa.FactorModel().fit(data)
    mean, std = model.predict({"x": data["x"]}, "y", return_std=True)
    residual = data["y"] - mean
    assert np.abs(residual).mean() < 0.1 * data["y"].std()
    assert 0.5 < np.sqrt(np.mean(residual**2)) / std.mean() < 2.0


def test_predict_ignores_the_view_itself(rng):
    data = two_views(rng)
    model = kofa.FactorModel().fit(data)
    np.testing.assert_array_equal(model.predict(data, "y"), model.predict({"x": data["x"]}, "y"))
    assert not np.allclose(model.reconstruct(data, "y"), model.predict(data, "y"))


def test_transform_returns_covariances(rng):
    data = two_views(rng)
    model = kofa.FactorModel().fit(data)
    Z, covariance = model.transform(data, return_cov=True)
    assert covariance.shape == (60, 2, 2)
    _, wider = model.transform({"x": data["x"]}, return_cov=True)
    assert np.all(np.linalg.eigvalsh(wider - covariance) > -1e-12)
    assert Z.shape == (60, 2)


def test_sample_with_nothing_observed_gets_the_prior(rng):
    data = two_views(rng)
    model = kofa.FactorModel().fit(data)
    nothing = {"x": np.full((1, 5), np.nan)}
    Z, covariance = model.transform(nothing, return_cov=True)
    np.testing.assert_array_equal(Z, np.zeros((1, 2)))
    np.testing.assert_allclose(covariance[0], np.eye(2))
    mean, std = model.predict(nothing, "y", return_std=True)
    np.testing.assert_allclose(mean[0], data["y"].mean(axis=0), atol=0.2)
    np.testing.assert_allclose(std[0], data["y"].std(axis=0), rtol=0.35)


def test_score_prefers_data_of_the_model(rng):
    data = two_views(rng, n=120)
    train, test = ({k: v[s] for k, v in data.items()} for s in (np.s_[:80], np.s_[80:]))
    model = kofa.FactorModel().fit(train)
    scrambled = {"x": rng.permutation(test["x"]), "y": test["y"]}
    assert model.score(test) > model.score(scrambled)
    assert model.score_samples(test).shape == (40,)


def test_scores_have_the_names_of_the_samples(rng):
    pd = pytest.importorskip("pandas")
    arrays = two_views(rng, n=40)
    data = {k: pd.DataFrame(v, index=[f"s{i}" for i in range(40)]) for k, v in arrays.items()}
    model = kofa.FactorModel().fit(data)
    scores = model.score_samples({"x": data["x"][30:], "y": data["y"][:35][::-1]})
    assert scores.index[0] == "s30"
    assert len(scores) == 40
    both = {k: v[33:34] for k, v in data.items()}
    assert scores["s33"] == pytest.approx(model.score_samples(both).iloc[0])


def test_score_counts_the_units_of_the_data(rng):
    data = two_views(rng)
    a = kofa.FactorModel().fit(data).score(data)
    b = (
        kofa.FactorModel()
        .fit({"x": 10 * data["x"], "y": data["y"]})
        .score({"x": 10 * data["x"], "y": data["y"]})
    )
    np.testing.assert_allclose(a - b, 5 * np.log(10), rtol=1e-6)


def test_score_is_below_the_exact_log_density(rng):
    """With much data the weights are known: y ~ N(b, WWᵀ + noise) exactly."""
    from scipy.stats import multivariate_normal

    data = {"x": two_views(rng, n=4000, dims=(4, 1))["x"]}
    model = kofa.FactorModel(max_iter=5000, tol=1e-7, n_factors=2).fit(data)
    w, scale = model.posterior_["x"].weights, model.views_["x"].encoder.scaling.spread
    W = w.mean * scale[:, None]
    noise = model.posterior_["x"].tau.mean_inverse * scale**2
    exact = multivariate_normal(data["x"].mean(0), W @ W.T + np.diag(noise))
    score, log_density = model.score(data), exact.logpdf(data["x"]).mean()
    assert score <= log_density
    assert log_density - score < 0.01


def test_callback_sees_each_iteration_and_can_stop(rng):
    seen = []
    model = kofa.FactorModel(callback=lambda i: seen.append(i) or i.n_iter == 3)
    model.fit(two_views(rng))
    assert [i.n_iter for i in seen] == [1, 2, 3]
    assert model.n_iter_ == 3
    assert not model.converged_
    assert seen[-1].lower_bound == pytest.approx(sum(seen[-1].terms.values()))


@pytest.mark.filterwarnings("ignore:The bound was still growing")
@pytest.mark.parametrize("early", ["callback", "max_iter"])
def test_bound_of_a_fit_that_ends_with_pruning_is_that_of_what_is_kept(rng, early, monkeypatch):
    # Of the directions above the noise none goes: it starts with all.
    monkeypatch.setattr(fit, "spectral", lambda engine, k, rng, _: spectral(engine, k, rng))
    data, left = two_views(rng, noise=0.15), []
    whole = kofa.FactorModel(n_factors=7, callback=lambda i: left.append(i.n_factors) and None)
    whole.fit(data)
    n = 1 + left.index(3)
    assert whole.factors_changed_[n]
    stop = {"callback": lambda i: i.n_iter == n, "max_iter": n}
    model = kofa.FactorModel(n_factors=7, **{early: stop[early]}).fit(data)
    assert (model.n_iter_, model.n_factors_) == (n, 3)
    assert model.lower_bound_ == pytest.approx(whole.lower_bounds_[n], rel=1e-12)
    for term, path in model.lower_bound_terms_.items():
        assert path[-1] == pytest.approx(whole.lower_bound_terms_[term][n], rel=1e-9)
    # Given the weights z could still move; but it is their bound, not that of seven factors.
    units = sum(60 * view.layer.log_unit(data[n]).sum() for n, view in model.views_.items())
    terms = [f"likelihood[{name}]" for name in data]
    local = sum(model.lower_bound_terms_[term][-1] for term in [*terms, "kl_z"])
    assert local <= model.score_samples(data).sum() - units < local + 2.0


def test_warns_with_advice_when_not_converged(rng):
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 .*Increase max_iter"):
        kofa.FactorModel(max_iter=2).fit(two_views(rng))


def test_progress_is_silent_when_off_and_shows_when_on(rng):
    data = two_views(rng)
    for progress in (False, True):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tqdm wishes for a notebook widget
            kofa.FactorModel(progress=progress).fit(data)
        assert out.getvalue() == ""
        assert bool(err.getvalue()) == progress
    assert "factors=" in err.getvalue()


def test_progress_says_what_comes_beside_the_iterations(rng, monkeypatch):
    said = []
    monkeypatch.setattr(Progress, "stage", lambda _, what: said.append(what))
    z = rng.normal(size=(60, 1))
    tables = {name: z + rng.normal(size=(60, 3)) for name in ("x", "y", "u")}
    sick = {"sick": (z + rng.normal(size=(60, 2)) > 0).astype(float)}
    views = {name: kofa.Real() for name in tables} | {"sick": kofa.Binary()}
    kofa.FactorModel(views, outputs=["sick"]).fit(tables | sick)
    assert said[0] == "preparing the views"
    assert "outputs" in said
    explained = [f"variance explained of views {n}/4" for n in (1, 2, 3, 4)]
    assert said[-5:] == ["views from the others 1/1", *explained]


def test_bar_says_what_runs(rng):
    err = io.StringIO()
    with redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kofa.FactorModel(progress=True, outputs=["y"]).fit(two_views(rng))
    seen = [err.getvalue().find(what) for what in ("preparing the views: ", "iterations: ")]
    assert 0 <= seen[0] < seen[1] < err.getvalue().find("views from the others 1/1: ")


def test_fit_that_is_interrupted_after_its_iterations_changes_nothing(rng, monkeypatch, tmp_path):
    """And goes on after its last iteration, if it has a checkpoint."""
    data, seen = two_views(rng), []
    before = kofa.FactorModel(max_iter=500, checkpoint=tmp_path / "fit")
    before.fit({"x": data["x"]})
    n_iter, changed = before.n_iter_, vars(before).copy()
    (tmp_path / "fit").unlink()

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fitting, "_questions", interrupted)
        with pytest.raises(KeyboardInterrupt):
            before.fit(data)
    assert vars(before) == changed
    assert before.n_iter_ == n_iter
    before.callback = seen.append
    before.fit(data, resume=True)
    assert not seen
    assert before.lower_bound_ == kofa.FactorModel(max_iter=500).fit(data).lower_bound_


def test_highest_bound_of_several_starts_wins(rng):
    ends = {}
    model = kofa.FactorModel(
        n_init=4, random_state=0, callback=lambda i: ends.update({i.start: i.lower_bound})
    ).fit(two_views(rng))
    assert len(ends) == 4
    assert len(set(ends.values())) == 4
    assert model.lower_bound_ == max(ends.values())


def test_outputs_are_predicted_through_a_learnt_width(rng):
    X = rng.standard_normal((150, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2]) + 0.1 * rng.standard_normal((150, 2))
    model = kofa.FactorModel({"x": kofa.Real(kernel="rbf"), "y": kofa.Real()}, outputs=["y"])
    model.fit({"x": X[:110], "y": Y[:110]})
    residual = Y[110:] - model.predict({"x": X[110:]}, "y")
    assert 1 - residual.var() / Y[110:].var() > 0.8
    assert model.views_["x"].encoder.kernel.width != kofa.RBF().median_width(X[:110])


def test_landmarks_of_an_input_are_labelled_samples(rng):
    data = two_views(rng)
    data["y"][30:] = np.nan
    y, stop = {"y": kofa.Real()}, {"callback": lambda _: True}  # they are chosen before the loop
    for landmarks, outputs, n in (("auto", ["y"], 30), ("auto", None, 60), (12, None, 12)):
        views = {"x": kofa.Real(kernel="rbf", landmarks=landmarks), **y}
        model = kofa.FactorModel(views, outputs=outputs, **stop).fit(data)
        assert len(model.views_["x"].encoder.V) == n


def test_kernelized_output_is_predicted(rng):
    data = two_views(rng, n=150, noise=0.05)
    train, test = ({k: v[s] for k, v in data.items()} for s in (np.s_[:100], np.s_[100:]))
    views = {"x": kofa.Real(kernel="rbf"), "y": kofa.Real(kernel="rbf")}
    model = kofa.FactorModel(views, outputs=["y"], tol=0.05).fit(train)
    encoder = model.views_["y"].encoder
    truth = encoder.scale * encoder.encode(test["y"])
    predicted = model.predict({"x": test["x"]}, "y")
    assert np.corrcoef(predicted.ravel(), truth.ravel())[0, 1] > 0.9


def test_what_was_found_is_by_name_in_the_order_of_the_views(rng, tmp_path):
    """Also where outputs are declared first, whose posteriors are found last."""
    data = {"w": rng.standard_normal((60, 3)), **two_views(rng)}
    views = {name: kofa.Real() for name in ("y", "w", "x")}
    model = kofa.FactorModel(views, outputs=["y"]).fit(data)
    model.save(tmp_path / "model.kofa")
    for one in (model, kofa.load(tmp_path / "model.kofa")):
        assert list(one.posterior_) == list(one.views_) == ["y", "w", "x"]
        assert {n: q.n_columns for n, q in one.posterior_.items()} == {"y": 4, "w": 3, "x": 5}
        asked = one._fitted.questions.asked
        assert {n: list(q.state) for n, q in asked.items()} == {"y": ["w", "x"]}
        one.predict({"w": data["w"]}, "x")
        assert {n: list(q.state) for n, q in asked.items()} == {"y": ["w", "x"], "x": ["y", "w"]}


def test_weights_are_in_the_users_units(frames):
    model = kofa.FactorModel().fit(frames)
    W = model.weights("x")
    assert list(W.index) == list("abcde")
    assert list(W.columns) == list(model.transform(frames).columns)
    Z, mean = model.transform(frames), frames["x"].mean()
    pd.testing.assert_frame_equal(Z @ W.T + mean, model.reconstruct(frames, "x"), atol=1e-6)


def shares(model):
    """What each factor explains of a view's variance, on average over the views."""
    views = model.posterior_.values()
    squares = [(view.weights.mean**2).sum(axis=0) for view in views]
    total = [s.sum() + (1 / v.precision).sum() for s, v in zip(squares, views, strict=True)]
    return np.mean([s / t for s, t in zip(squares, total, strict=True)], axis=0)


def test_first_factor_explains_most(rng):
    """Of views, not of columns: one factor of a narrow view is before one of a wide view."""
    narrow, wide = rng.standard_normal((2, 300, 1))
    data = {
        "narrow": narrow @ np.ones((1, 3)) + 0.1 * rng.standard_normal((300, 3)),
        "wide": wide @ np.ones((1, 100)) + 1.5 * rng.standard_normal((300, 100)),
    }
    model = kofa.FactorModel().fit(data)
    Z = model.transform(data)
    assert model.n_factors_ == 2
    assert abs(np.corrcoef(Z[:, 0], narrow[:, 0])[0, 1]) > 0.95
    mixed = kofa.FactorModel().fit(two_views(rng, k=3, dims=(9, 8), n=200))
    assert np.all(np.diff(shares(mixed)) <= 0)


def test_order_and_signs_do_not_depend_on_the_order_of_rows_and_views(rng):
    data = two_views(rng, k=3, dims=(9, 8), n=200)
    rows = rng.permutation(200)
    turned = {name: data[name][rows] for name in ("y", "x")}
    one, other = (kofa.FactorModel().fit(d) for d in (data, turned))
    np.testing.assert_allclose(one.transform(data)[rows], other.transform(turned), atol=1e-3)
    weights = [view.weights.mean for view in one.posterior_.values()]
    cubes = [(W**3).sum(axis=0) / len(W) for W in weights]
    np.testing.assert_array_less(0, np.sum(cubes, axis=0))


def holed(frame, rng):
    return frame.mask(rng.random(frame.shape) < 0.2)


def test_quantiles_of_single_holes_are_around_what_is_imputed(frames, rng):
    """Of all else they are those that follow from the other views."""
    model = kofa.FactorModel().fit(frames)
    given = {"x": frames["x"], "y": holed(frames["y"], rng).iloc[::-1].iloc[5:]}
    given["y"].iloc[0] = np.nan
    holes = (given["y"].isna() & given["y"].notna().any(axis=1).to_numpy()[:, None]).reindex(
        frames["x"].index, fill_value=False
    )
    low, middle, high = model.predict_quantiles(given, "y", [0.05, 0.5, 0.95])
    filled = model.impute(given)["y"].loc[low.index]
    np.testing.assert_allclose(middle[holes], filled[holes])
    others = model.predict_quantiles({"x": frames["x"]}, "y", [0.05, 0.95])
    assert low.mask(holes).equals(others[0].mask(holes))
    assert np.nanmean((high - low)[holes]) < np.nanmean((others[1] - others[0])[holes])


def test_quantiles_of_a_single_table_hold_its_hidden_values(rng):
    x = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(200, 6))
    hidden = rng.random(x.shape) < 0.2
    given = {"x": np.where(hidden, np.nan, x)}
    low, high = kofa.FactorModel().fit(given).predict_quantiles(given, "x")
    assert 0.8 < np.mean((low < x)[hidden] & (x < high)[hidden]) < 0.97


def test_reconstruct_with_uncertainty(frames):
    model = kofa.FactorModel().fit(frames)
    mean, std = model.reconstruct(frames, "x", return_std=True)
    _, alone = model.predict(frames, "x", return_std=True)
    assert std.mean().mean() < alone.mean().mean()
    assert mean.shape == std.shape
    means, stds = model.reconstruct(frames, return_std=True)
    assert list(means) == list(stds) == ["x", "y"]
    assert means["x"].equals(mean)
    assert stds["x"].equals(std)


def test_samples_unlike_any_landmark_are_less_certain(rng):
    x = rng.uniform(-1, 1, (120, 2))
    y = np.sin(3 * x[:, :1]) + 0.05 * rng.standard_normal((120, 1))
    views = {"x": kofa.Real(kernel="rbf"), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=["y"]).fit({"x": x, "y": y})
    _, near = model.predict({"x": x[:5]}, "y", return_std=True)
    _, far = model.predict({"x": np.full((1, 2), 30.0)}, "y", return_std=True)
    assert near.max() < 0.15
    assert far[0, 0] > 0.5 * y.std()


def test_linear_kernel_predicts_as_the_primal_view(rng):
    """Both span the same directions; they differ by how noise is shared out, not in the signal."""
    data = two_views(rng, n=200, dims=(30, 3), noise=0.2)
    train, test = ({k: v[s] for k, v in data.items()} for s in (np.s_[:150], np.s_[150:]))
    predictions = [
        kofa.FactorModel({"x": kofa.Real(kernel=kernel), "y": kofa.Real()}, n_factors=10)
        .fit(train)
        .predict({"x": test["x"]}, "y")
        for kernel in (None, "linear")
    ]
    gap = np.sqrt(np.mean((predictions[0] - predictions[1]) ** 2))
    noise = np.sqrt(np.mean((predictions[0] - test["y"]) ** 2))
    assert gap < 0.35 * noise


def test_wide_data_fit(rng):
    """Far more columns than rows."""
    Z = rng.standard_normal((40, 3))
    x = Z @ rng.standard_normal((3, 5000)) + rng.standard_normal((40, 5000))
    model = kofa.FactorModel(n_factors=10).fit({"x": x})
    assert model.n_factors_ == 3


@pytest.mark.parametrize("size", [1e-12, 1e12])
@pytest.mark.parametrize("scale", [True, False])
def test_very_large_and_small_numbers(rng, size, scale):
    data = two_views(rng)
    views = {"x": kofa.Real(scale=scale), "y": kofa.Real()}
    plain = kofa.FactorModel(views).fit(data).predict({"x": data["x"]}, "y")
    scaled = {"x": size * data["x"], "y": data["y"]}
    model = kofa.FactorModel(views).fit(scaled)
    np.testing.assert_allclose(model.predict({"x": scaled["x"]}, "y"), plain, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*same value in all samples")
@pytest.mark.parametrize("kernel", [None, "rbf", "linear", "laplacian"])
@pytest.mark.parametrize(
    "values",
    [
        np.array([[0.0], [1.0]]),
        np.ones((5, 1)),
        np.array([[1.0, 2.0]] * 4 + [[3.0, 1.0]] * 4),
        np.repeat(np.arange(6.0)[:, None], 4, axis=1),
        np.column_stack([np.arange(5.0), np.ones(5)]),
    ],
    ids=["two samples", "constant", "duplicated rows", "duplicated columns", "constant column"],
)
def test_degenerate_tables_work(values, kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = kofa.FactorModel({"x": kofa.Real(kernel=kernel)}).fit({"x": values})
    assert np.isfinite(model.lower_bounds_).all()
    assert np.isfinite(model.transform({"x": values})).all()
    assert np.isfinite(model.reconstruct({"x": values}, "x")).all()
    if kernel is None:
        gap = np.abs(model.reconstruct({"x": values}, "x") - values).max()
        assert gap <= 0.7 * max(np.ptp(values), 1e-6)


def test_precomputed_kernel_by_name(rng, frames):
    x = frames["x"]
    K = pd.DataFrame(x.to_numpy() @ x.to_numpy().T, index=x.index, columns=x.index)
    views = {"k": kofa.Real(kernel="precomputed"), "y": kofa.Real()}
    shuffled = K[rng.permutation(x.index)]
    model = kofa.FactorModel(views, n_factors=2).fit({"k": shuffled, "y": frames["y"].iloc[::-1]})
    direct = kofa.FactorModel(
        {"k": kofa.Real(kernel=lambda X, V: X @ V.T, scale=False), "y": kofa.Real()}, n_factors=2
    )
    direct.fit({"k": x, "y": frames["y"]})
    np.testing.assert_allclose(
        model.predict({"k": K.iloc[:5]}, "y"), direct.predict({"k": x.iloc[:5]}, "y"), atol=1e-6
    )


@pytest.mark.filterwarnings("ignore:.*same value in all samples")
def test_constant_input_predicts_the_mean_with_the_spread_of_the_output(rng):
    y = rng.standard_normal((40, 1))
    views = {"x": kofa.Real(kernel="rbf"), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=["y"]).fit({"x": np.ones((40, 2)), "y": y})
    mean, std = model.predict({"x": np.ones((2, 2))}, "y", return_std=True)
    np.testing.assert_allclose(mean, y.mean(), atol=1e-6)
    np.testing.assert_allclose(std, y.std(), rtol=0.1)


def test_callback_stops_all_starts(rng):
    seen = []
    kofa.FactorModel(n_init=3, callback=lambda i: seen.append(i.start) or True).fit(two_views(rng))
    assert seen == [0]


def test_sample_missing_in_a_precomputed_kernel(rng):
    data = two_views(rng)
    K = data["x"] @ data["x"].T
    K[4] = K[:, 4] = np.nan
    model = kofa.FactorModel({"k": kofa.Real(kernel="precomputed"), "y": kofa.Real()})
    Z = model.fit_transform({"k": K, "y": data["y"]})
    assert np.isfinite(Z).all()
    assert len(model.views_["k"].encoder.V) == 59


@pytest.mark.parametrize(("x", "y"), [("x", "kl_z"), ("kl_z", "y"), ("a]", "x[RBF]"), ("[", "]")])
def test_names_of_views_do_not_steer_the_fit(rng, x, y, tmp_path):
    points = rng.normal(size=(50, 3))
    values = np.sin(points[:, :1]) + 0.1 * rng.normal(size=(50, 1))

    def fit(x, y):
        views = {x: kofa.Real(kernel="rbf"), y: kofa.Real()}
        return kofa.FactorModel(views, outputs=[y]).fit({x: points, y: values})

    plain, model = fit("plain", "other"), fit(x, y)
    np.testing.assert_array_equal(model.lower_bounds_, plain.lower_bounds_)
    model.save(tmp_path / "model.kofa")
    loaded = kofa.load(tmp_path / "model.kofa")
    assert list(loaded.lower_bound_terms_) == list(model.lower_bound_terms_)
    for kind in ("likelihood", "entropy_bias", "kl_w", "kl_alpha", "kl_tau"):
        np.testing.assert_array_equal(
            loaded.lower_bound_terms_[f"{kind}[{x}]"], plain.lower_bound_terms_[f"{kind}[plain]"]
        )


# ---------------------------------------------------------------- the view that is asked for


def labelled_views(rng, **outputs):
    """A table of numbers, and outputs of some kinds that follow from it."""
    x = rng.normal(size=(60, 3))
    data = {"x": x, "sick": (x[:, 0] > 0).astype(float), "dose": np.exp(x[:, :1])}
    views = {"x": kofa.Real(), **outputs}
    model = kofa.FactorModel(views, outputs=list(outputs) or None)
    return model.fit({name: data[name] for name in views}), {"x": x}


def test_the_only_output_is_predicted_unless_a_view_is_named(rng):
    model, new = labelled_views(rng, sick=kofa.Binary())
    np.testing.assert_array_equal(model.predict(new), model.predict(new, "sick"))
    np.testing.assert_array_equal(model.predict_proba(new), model.predict_proba(new, "sick"))
    model, new = labelled_views(rng, dose=kofa.Positive())
    mean, std = model.predict(new, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(new, "dose", True)[0])
    np.testing.assert_array_equal(std, model.predict(new, "dose", True)[1])
    asked = model.predict_quantiles(new, "dose", [0.05, 0.95])
    np.testing.assert_array_equal(model.predict_quantiles(new), asked)
    (median,) = model.predict_quantiles(new, quantiles=[0.5])
    np.testing.assert_array_equal(median, model.predict_quantiles(new, "dose", [0.5])[0])


def test_which_view_is_not_guessed(rng):
    with_outputs, new = labelled_views(rng, sick=kofa.Binary(), dose=kofa.Positive())
    without = kofa.FactorModel().fit(two_views(rng))
    for method in ("predict", "predict_proba", "predict_quantiles"):
        with pytest.raises(kofa.DataError, match=r"view to predict.* outputs 'sick', 'dose'"):
            getattr(with_outputs, method)(new)
        with pytest.raises(kofa.DataError, match=r"view to predict.* no outputs.* 'x', 'y'"):
            getattr(without, method)(two_views(rng))


# ---------------------------------------------------------------- factors are found once for all


@pytest.fixture
def projections(monkeypatch):
    """How many samples were projected in each pass."""
    counted = []
    plain = Prediction.project

    def counting(self, *args, **options):
        counted.append(self.samples.n)
        return plain(self, *args, **options)

    monkeypatch.setattr(Prediction, "project", counting)
    return counted


def ten_views(rng, n=30):
    """Ten tables of several kinds with single holes, but a value in each row."""
    z = rng.normal(size=(n, 2))
    data = {f"v{m}": z @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(n, 4)) for m in range(10)}
    data["v7"] = np.exp(data["v7"])
    data["v8"] = (data["v8"] > 0).astype(float)
    data["v9"] = np.floor(np.exp(data["v9"]))
    for table in data.values():
        table[:, 1:][rng.random((n, 3)) < 0.1] = np.nan
    views = dict.fromkeys(data, kofa.Real())
    views |= {"v6": kofa.Real(kernel="rbf"), "v7": kofa.Positive()}
    return views | {"v8": kofa.Binary(), "v9": kofa.Count()}, data


@pytest.fixture(scope="module")
def of_ten_views():
    views, data = ten_views(np.random.default_rng(7))
    return kofa.FactorModel(views, tol=0.1).fit(data), data


@pytest.mark.filterwarnings("ignore:Holes of .* stay")  # of those through a kernel
def test_samples_are_projected_once_for_all_views(of_ten_views, projections):
    model, data = of_ten_views
    projections.clear()
    calls = {
        "reconstruct": lambda: model.reconstruct(data),
        "reconstruct with probabilities": lambda: model.reconstruct(data, proba=True),
        "score_samples": lambda: model.score_samples(data),
    }
    for name, call in calls.items():
        call()
        assert projections == [30], name
        projections.clear()


@pytest.mark.filterwarnings("ignore:Holes of .* stay")  # of those through a kernel
def test_all_views_at_once_are_each_view_alone(of_ten_views):
    model, data = of_ten_views
    part = {name: pd.DataFrame(table) for name, table in data.items()}
    part["v0"] = part["v0"].iloc[10:]  # ten samples lack it: for these it follows from the others
    both = model.reconstruct(part), model.reconstruct(part, proba=True)
    for name in data:
        assert both[0][name].equals(model.reconstruct(part, name)), name
    assert both[1]["v8"].equals(model.reconstruct(part, "v8", proba=True))
    filled = model.impute(part)
    without = filled["v0"].index.isin(range(10))
    alone = model.predict({n: t.iloc[:10] for n, t in part.items() if n != "v0"}, "v0")
    np.testing.assert_allclose(filled["v0"].to_numpy()[without], alone.to_numpy(), rtol=1e-10)


def test_views_with_probabilities_have_no_standard_deviation_beside_these(rng):
    model, new = labelled_views(rng, sick=kofa.Binary())
    means, stds = model.reconstruct(new, return_std=True, proba=True)
    assert set(means) - set(stds) == {"sick"}
    np.testing.assert_array_equal(means["sick"], model.reconstruct(new, "sick", proba=True))


def test_several_views_name_the_one_without_standard_deviation(rng):
    model, new = labelled_views(rng, sick=kofa.Binary())
    with pytest.raises(kofa.DataError, match=r"'sick'.*no standard deviation"):
        model.reconstruct(new, return_std=True)


# ---------------------------------------------------------------- as a transformer


def test_factors_are_named_as_the_columns_of_transform(frames):
    model = kofa.FactorModel()
    with pytest.raises(NotFittedError):
        model.get_feature_names_out()
    factors = model.fit_transform(frames)
    assert model.get_feature_names_out().tolist() == list(factors.columns)
    assert model.get_feature_names_out().dtype == object


@pytest.mark.parametrize(("container", "module"), [("pandas", "pandas"), ("polars", "polars")])
def test_factors_come_in_the_container_that_was_set(rng, container, module):
    data = two_views(rng)
    plain = kofa.FactorModel(n_factors=2)
    Z = plain.fit_transform(data)
    assert isinstance(Z, np.ndarray)
    model = clone(kofa.FactorModel(n_factors=2).set_output(transform=container))
    for found in (model.fit_transform(data), model.transform(data, return_cov=True)[0]):
        assert type(found).__module__.startswith(module)
        assert list(found.columns) == model.get_feature_names_out().tolist()
        np.testing.assert_array_equal(np.asarray(found), Z)
    assert list(model.transform(data, n_factors=1).columns) == ["factor1"]
    assert len(kofa.plot.factors(model, data).collections[0].get_offsets()) == len(Z)
    model.set_output(transform=None)
    assert not isinstance(model.transform(data), np.ndarray)
    assert isinstance(model.set_output(transform="default").transform(data), np.ndarray)


def test_unknown_containers_are_refused():
    with pytest.raises(kofa.DeclarationError, match="transform"):
        kofa.FactorModel().set_output(transform="csv")


def test_fit_transform_resumes(rng, tmp_path):
    data, path = two_views(rng), tmp_path / "fit"
    whole = kofa.FactorModel(tol=1e-9, max_iter=30, checkpoint=path, checkpoint_every=0)
    with pytest.warns(ConvergenceWarning):
        whole.fit(data)
    seen = []
    more = clone(whole).set_params(max_iter=35, callback=lambda i: seen.append(i.n_iter))
    with pytest.warns(ConvergenceWarning):
        more.fit_transform(data, resume=True)
    assert seen == [31, 32, 33, 34, 35]
    with pytest.raises(kofa.DeclarationError, match="resume"):
        kofa.FactorModel().fit_transform(data, resume=True)


def test_a_fit_of_wide_tables_takes_a_few_times_their_memory(rng):
    z = rng.normal(size=(150, 2))
    data = {v: z @ rng.normal(size=(2, 3000)) + rng.normal(size=(150, 3000)) for v in "ab"}
    model = kofa.FactorModel({"a": kofa.Real(), "b": kofa.Real()}, n_factors=2)
    tracemalloc.start()
    model.fit(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 9.5 * sum(table.nbytes for table in data.values())
