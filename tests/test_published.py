"""The paper's own model, behind `as_published`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import r2_score

import kofa
from kofa import published
from kofa.inference.posterior import Gamma
from kofa.kernels.terms import Relevance
from kofa.linalg import centre
from kofa.published import by_ard, reconstruction_error
from numerical import differences

N, C = 120, 2


def planted(rng, n=2 * N):
    """Two targets that follow from two directions of six features."""
    x = rng.standard_normal((n, 6))
    y = x @ rng.standard_normal((6, C)) + 0.3 * rng.standard_normal((n, C))
    return x, y


def declared(**options):
    return {"x": kofa.Real(**options), "y": kofa.Real()}


def paper(n_factors=C, views=None, **options):
    views = declared(kernel="linear") if views is None else views
    return kofa.FactorModel(views, n_factors, outputs=["y"], as_published=True, **options)


def new_r2(model, x, y):
    return r2_score(y, model.predict({"x": x}))


# ---------------------------------------------------------------- outputs follow from z


@pytest.mark.parametrize("options", [{}, {"kernel": "linear"}], ids=["primal", "linear"])
def test_targets_follow_from_as_many_factors_as_there_are_directions(rng, options):
    z = rng.standard_normal((2 * N, C))
    x = z @ rng.standard_normal((C, 8)) + 0.1 * rng.standard_normal((2 * N, 8))
    y = z @ rng.standard_normal((C, C)) + 0.1 * rng.standard_normal((2 * N, C))
    model = paper(views=declared(**options)).fit({"x": x[:N], "y": y[:N]})
    assert model.n_factors_ == C
    assert new_r2(model, x[N:], y[N:]) > 0.95


def test_enough_factors_find_the_targets(rng):
    x, y = planted(rng)
    assert new_r2(paper(20).fit({"x": x[:N], "y": y[:N]}), x[N:], y[N:]) > 0.8


def test_what_is_expected_is_what_the_factors_say(rng):
    x, y = planted(rng)
    model = paper().fit({"x": x[:N], "y": y[:N]})
    said = model.reconstruct({"x": x[N:]}, "y")
    np.testing.assert_array_equal(model.predict({"x": x[N:]}, "y"), said)
    low, high = model.predict_quantiles({"x": x[N:]}, "y", [0.05, 0.95])
    assert ((low < said) & (said < high)).all()


def test_outputs_tell_about_z_as_all_views_do(rng):
    x, y = planted(rng)
    data = {"x": x[:N], "y": y[:N]}
    model = paper()
    Z = model.fit_transform(data)
    np.testing.assert_allclose(Z, model.transform(data), atol=1e-8)
    assert np.abs(Z - model.transform({"x": x[:N]})).max() > 1e-3
    ours = kofa.FactorModel(declared(kernel="linear"), outputs=["y"]).fit(data)
    np.testing.assert_allclose(ours.transform(data), ours.transform({"x": x[:N]}), atol=1e-8)


def test_classes_and_counts(rng):
    x, y = planted(rng)
    views = {"x": kofa.Real(kernel=["linear", "rbf"]), "y": kofa.Categorical(), "n": kofa.Count()}
    label, n = np.where(y[:, 0] > 0, "up", "down"), rng.poisson(np.exp(0.5 * y[:, 1:]))
    model = paper(10, views).fit({"x": x[:N], "y": label[:N], "n": n[:N]})
    assert np.mean(model.predict({"x": x[N:]}, "y") == label[N:]) > 0.75
    proba = model.predict_proba({"x": x[N:]}, "y")
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert never_falls(model)


# ---------------------------------------------------------------- semi-supervised


def test_rows_without_targets_take_part(rng):
    x, y = planted(rng)
    hidden = np.where(np.arange(2 * N)[:, None] < N, y, np.nan)
    model = paper(20).fit({"x": x, "y": hidden})
    assert len(model.views_["x"].landmarks) == 2 * N  # and are landmarks
    assert model.posterior_["x"].n_observed == pytest.approx(2 * N, rel=1e-4)
    assert model.posterior_["y"].n_observed == pytest.approx(N, rel=1e-4)
    assert new_r2(model, x[N:], y[N:]) > 0.7


# ---------------------------------------------------------------- the ascent


def never_falls(model):
    steps = np.diff(model.lower_bounds_)[~model.factors_changed_[1:]]
    return (steps > -1e-9 * np.abs(model.lower_bounds_).max()).all()


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "rbf"},
        {"kernel": kofa.RBF(relevance="learn")},
        {"kernel": kofa.Linear(relevance="learn"), "landmarks": 30},
        {"kernel": "rbf", "sparse": True},
        {"sparse": True, "noise": "column"},
    ],
    ids=["rbf", "relevance", "few landmarks", "vectors", "columns"],
)
def test_the_bound_never_falls(rng, options):
    x, y = planted(rng, 60)
    x[::7, 0] = np.nan
    model = paper(8, declared(**options), tol=1e-3).fit({"x": x, "y": y})
    assert never_falls(model)
    assert model.converged_


def test_it_ends_where_the_bound_is_hardly_above_its_mean_over_a_hundred_iterations(rng):
    x, y = planted(rng, 60)
    bounds = paper().fit({"x": x, "y": y}).lower_bounds_
    last = bounds[-published.MEMORY :]
    assert last[:-2].mean() > last[-1] - 1e-4 * abs(last[-1])
    before = bounds[-published.MEMORY - 1 : -1]
    if len(before) == published.MEMORY:
        assert before[:-2].mean() <= before[-1] - 1e-4 * abs(before[-1])
    longer = paper(tol=3e-5, max_iter=3000).fit({"x": x, "y": y}).lower_bounds_
    assert len(longer) > len(bounds)
    np.testing.assert_array_equal(longer[: len(bounds)], bounds)


def test_starts_are_random_and_the_best_is_taken(rng):
    x, y = planted(rng, 60)
    seen = {}

    def watch(now):
        seen[now.start] = now.lower_bound

    model = paper(n_init=3, callback=watch).fit({"x": x, "y": y})
    assert len(set(seen.values())) == 3
    assert model.lower_bound_ == max(seen.values())
    again = paper(n_init=3).fit({"x": x, "y": y})
    assert again.lower_bound_ == model.lower_bound_
    assert paper(random_state=1).fit({"x": x, "y": y}).lower_bound_ != seen[0]


def test_a_callback_ends_it(rng):
    x, y = planted(rng, 60)
    model = paper(n_init=3, callback=lambda now: now.n_iter == 4).fit({"x": x, "y": y})
    assert model.n_iter_ == 4


def test_factors_that_ard_switches_off_are_removed(rng):
    assert (
        paper(9, {"y": kofa.Real(), "x": kofa.Real()})
        .fit({"x": rng.standard_normal((200, 4)), "y": rng.standard_normal((200, 4))})
        .n_factors_
        <= 2
    )  # noise has none


# ---------------------------------------------------------------- relevance


def kernel_problem(rng, linear):
    """A source, and what the factors would make of a kernel that follows two of five features."""
    X = rng.standard_normal((40, 5))
    kernel = kofa.Linear() if linear else kofa.RBF(2.0)
    given = (3.0, 2.0, 0.0, 0.0, 0.0)
    truth = kofa.Linear(relevance=given) if linear else kofa.RBF(2.0, relevance=given)
    return Relevance(kernel, X, X[:25], free_width=True), centre(truth(X, X[:25]))


@pytest.mark.parametrize("linear", [False, True], ids=["rbf", "linear"])
def test_gradient_of_the_misfit(rng, linear):
    source, target = kernel_problem(rng, linear)
    target = target + 0.1 * rng.standard_normal(target.shape)
    theta = np.array([1.0, 0.7, 1.2, 0.4, 0.9])
    numerical = differences(lambda t: reconstruction_error(source, t, target)[0], theta)
    np.testing.assert_allclose(
        reconstruction_error(source, theta, target)[1], numerical, rtol=1e-6, atol=1e-10
    )


def test_misfit_of_the_kernel_itself_is_zero(rng):
    source, target = kernel_problem(rng, linear=False)
    theta = np.sqrt([3.0, 2.0, 0.0, 0.0, 0.0])
    for size in (1.0, 7.0):  # the norm is held
        assert reconstruction_error(source, theta, size * target)[0] == pytest.approx(
            0.0, abs=1e-12
        )


def test_shrinking_does_not_pay(rng):
    """λ → 0 would make the raw kernel, and what is left to explain of it, vanish."""
    source, target = kernel_problem(rng, linear=False)
    one = np.ones(5)
    assert (
        reconstruction_error(source, 1e-3 * one, target)[0]
        > 0.1 * reconstruction_error(source, one, target)[0]
        > 0
    )


@pytest.mark.filterwarnings("ignore:.*same value in all samples")
def test_relevances_keep_their_groups_and_do_not_collapse(rng):
    x, y = planted(rng, 60)
    x[:, 5] = 1.0
    kernel = kofa.RBF(relevance="learn", groups=("a", "b", "a", "b", "c", "d"))
    model = paper(5, declared(kernel=kernel)).fit({"x": x, "y": y})
    learnt = model.kernels_["x"]
    weights = np.array(learnt.relevance)
    assert weights[0] == weights[2] != weights[1] == weights[3]
    assert weights[5] == 0.0  # constant
    assert weights[:5].mean() == pytest.approx(1.0)
    median = kofa.RBF(relevance=weights).median_width(model.views_["x"].encoder.V)
    assert 0.05 * median < learnt.width < 20 * median  # neither all alike nor all apart


@pytest.mark.filterwarnings("ignore:.*same value in all samples")
def test_constant_features_alone(rng):
    views = declared(kernel=kofa.RBF(relevance="learn"))
    data = {"x": np.ones((20, 2)), "y": rng.standard_normal((20, 2))}
    assert paper(2, views).fit(data).kernels_["x"].relevance == (0.0, 0.0)


# ---------------------------------------------------------------- relevance vectors


def test_double_ard_keeps_what_is_above_the_threshold(rng):
    x, y = planted(rng, 50)
    model = paper(1, declared(kernel="rbf", sparse=True)).fit({"x": x, "y": y})
    table = model.relevance_vectors("x")
    kept = table[table.kept]
    assert len(table) == 50
    assert 2 <= len(kept) == len(model.views_["x"].encoder.V) < 50
    assert kept.relevance.iloc[0] == 1.0  # relative to the strongest
    assert kept.relevance.is_monotonic_decreasing
    assert (kept.relevance >= published.THRESHOLD).all()
    assert (table.relevance[~table.kept] < published.THRESHOLD).all()


def test_double_ard_drops_a_landmark_that_is_off(rng):
    x, y = planted(rng, 30)
    model = paper(2, declared(kernel="rbf", sparse=True), callback=lambda _: True)
    view = model.fit({"x": x, "y": y}).posterior_["x"]
    precision = np.full(view.n_columns, 2.0)
    precision[[3, 8]] = 1e4
    selection = by_ard(replace(view, gamma=Gamma(precision, np.ones_like(precision))))
    assert set(range(view.n_columns)) - set(selection.chosen) == {3, 8}


# ---------------------------------------------------------------- files, and what it refuses


def test_a_file_gives_the_same_model(rng, tmp_path):
    x, y = planted(rng)
    model = paper(5).fit({"x": x[:N], "y": y[:N]})
    model.save(tmp_path / "model.kofa")
    again = kofa.load(tmp_path / "model.kofa")
    assert again.as_published
    new = {"x": x[N:], "y": y[N:]}
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    np.testing.assert_array_equal(again.transform(new), model.transform(new))
    assert again.score(new) == model.score(new)
    assert list(again.kernel_weights("y").view) == ["x"]


def test_it_is_cross_validated(rng):
    x, y = planted(rng, 60)
    table = kofa.cross_validate(paper(8), {"x": x, "y": y}, cv=2)
    assert (table[table.score == "r2"].value > 0.5).all()


REFUSED = {
    "word": ({}, {"as_published": "yes"}, "as_published to be True or False.*'yes'"),
    "disk": ({}, {"engine": "disk"}, "in memory.*takes no engine"),
    "workers": ({}, {"n_jobs": 2}, "one start after the other.*n_jobs"),
    "checkpoint": ({}, {"checkpoint": "fit.kofa"}, "takes no checkpoint"),
    "bank": ({"kernel": "bank"}, {}, "View 'x': the paper's model has no weights of kernels"),
    "sparsity": (
        {"kernel": kofa.RBF(relevance="learn", sparsity=1.0)}, {}, "'x'.*has no sparsity",
    ),
    "cap": (
        {"kernel": "rbf", "sparse": True, "landmarks": kofa.Landmarks(keep=5)}, {},
        "'x'.*limit of relevance vectors",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("view", "options", "said"), REFUSED.values(), ids=REFUSED)
def test_what_the_paper_does_not_have_is_refused(rng, view, options, said):
    x, y = planted(rng, 30)
    model = paper(2, declared(**view)).set_params(**options)
    with pytest.raises(kofa.DeclarationError, match=said):
        model.fit({"x": x, "y": y})
