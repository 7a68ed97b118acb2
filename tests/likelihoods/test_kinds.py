"""Views of every kind as a user meets them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import kofa
from conftest import KINDS, mixed
from kofa.inference.local_step import augment, local_step, local_system
from kofa.inference.observations import Rows
from kofa.results import answers

COLUMNS = list("abcd")


def named(data):
    """The same data with names."""
    names = [f"s{i}" for i in range(len(data["real"]))]
    frames = {
        name: pd.DataFrame(data[name], index=names, columns=[f"{name[0]}{c}" for c in COLUMNS])
        for name in data
        if name != "label"
    }
    return frames | {"label": pd.Series(data["label"], index=names, name="animal")}


def fit(views, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kofa.FactorModel(views, **options).fit(data)


@pytest.fixture(scope="module")
def data():
    return mixed(np.random.default_rng(3), n=120)


@pytest.fixture(scope="module")
def model(data):
    return fit(KINDS, data)


@pytest.fixture(scope="module")
def named_model(data):
    return fit(KINDS, named(data))


# ---------------------------------------------------------------- predictions


def without(data, view):
    return {name: y for name, y in data.items() if name != view}


def test_each_kind_is_predicted_better_than_by_guessing(model, data):
    mean, std = model.predict(data, "real", return_std=True)
    assert np.mean((data["real"] - mean) ** 2) < 0.5 * data["real"].var()
    assert 0.5 < np.sqrt(np.mean(((data["real"] - mean) / std) ** 2)) < 1.5
    positive = model.predict(data, "positive")
    assert np.corrcoef(np.log(positive).ravel(), np.log(data["positive"]).ravel())[0, 1] > 0.7
    count = model.predict(data, "count")
    assert np.corrcoef(np.sqrt(count).ravel(), np.sqrt(data["count"]).ravel())[0, 1] > 0.6
    assert np.mean(model.predict(data, "binary") == data["binary"]) > 0.7
    share = pd.Series(data["label"]).value_counts(normalize=True).max()
    assert np.mean(model.predict(data, "label") == data["label"]) > share + 0.15


def test_predictions_are_values_of_their_kind(model, data):
    assert set(np.unique(model.predict(data, "binary"))) == {0.0, 1.0}
    assert set(model.predict(data, "label")) <= set(model.classes_["label"])
    for name in ("positive", "count"):
        mean, std = model.predict(data, name, return_std=True)
        assert (mean > 0).all()
        assert (std > 0).all()


def test_probabilities_are_those_of_the_predicted_values(model, data):
    ones = model.predict_proba(data, "binary")
    np.testing.assert_array_equal(ones > 0.5, model.predict(data, "binary") == 1.0)
    p = model.predict_proba(data, "label")
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    likeliest = model.classes_["label"][np.argmax(p, axis=1)]
    np.testing.assert_array_equal(likeliest, model.predict(data, "label"))
    truth = data["label"][:, None] == model.classes_["label"]
    assert p[truth].mean() > 2.0 * p[~truth].mean()


@pytest.mark.parametrize("view", ["real", "positive", "count"])
def test_quantiles_cover_what_they_say(model, data, view):
    low, middle, high = model.predict_quantiles(data, view, [0.1, 0.5, 0.9])
    assert ((low <= middle) & (middle <= high)).all()
    assert (low < high).mean() > 0.8
    inside = np.mean((low <= data[view]) & (data[view] <= high))
    assert 0.7 < inside <= 0.99
    if view == "count":
        assert (low == np.floor(low)).all()


def test_reconstruct_has_a_table_for_each_view(model, data):
    all_views = model.reconstruct(data)
    assert list(all_views) == list(KINDS)
    for name, table in all_views.items():
        np.testing.assert_array_equal(table, model.reconstruct(data, name))
    assert np.mean(all_views["binary"] == data["binary"]) >= np.mean(
        model.predict(data, "binary") == data["binary"]
    )
    assert all_views["label"].shape == (120,)


def test_score_prefers_data_of_the_model(rng, model, data):
    scores = model.score_samples(data)
    assert scores.shape == (120,)
    np.testing.assert_allclose(model.score(data), scores.mean())
    for name in KINDS:
        scrambled = data | {name: rng.permutation(data[name])}
        assert model.score(scrambled) < model.score(data)


def test_score_counts_only_what_is_observed(model, data):
    nothing = {"label": [None, "ant"], "binary": np.full((2, 4), np.nan)}
    empty, label = model.score_samples(nothing)
    np.testing.assert_allclose(empty, 0.0, atol=1e-12)
    assert label < 0
    # log-probabilities of discrete values: never above zero
    assert (model.score_samples({name: data[name] for name in ("binary", "count")}) < 0).all()


def test_score_counts_the_units_of_positive_values(data):
    positive = {"real": data["real"], "positive": data["positive"]}
    scaled = positive | {"positive": 10 * data["positive"]}
    views = {name: KINDS[name] for name in positive}
    a, b = (fit(views, d).score(d) for d in (positive, scaled))
    np.testing.assert_allclose(a - b, 4 * np.log(10), rtol=1e-6)


@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("name", KINDS)
def test_scores_are_what_the_samples_add_to_the_bound(rng, data, name, kernel):
    """Of a model that stands still: all likelihood terms and that of z, in the data's units."""
    part = {key: data[key][:40].copy() for key in dict.fromkeys(["real", name])}
    part["real"][rng.random(part["real"].shape) < 0.2] = np.nan
    views = {key: KINDS[key] for key in part} | {"real": kofa.Real(kernel=kernel)}
    model = fit(views, part, n_factors=2, tol=1e-6)
    units = 0.0
    for key, view in model.views_.items():
        if view.layer.curvature is None:
            values = np.ones((40, 40)) if view.likelihood is None else part[key]
            units += np.where(np.isnan(values), 0.0, view.layer.log_unit(values)).sum()
    terms = [f"likelihood[{key}]" for key in part]
    local = sum(model.lower_bound_terms_[term][-1] for term in [*terms, "kl_z"])
    assert min(view.rho for view in model.posterior_.values()) < 0.9 or name in ("real", "positive")
    assert model.score_samples(part).sum() - units == pytest.approx(local, abs=0.01)


def test_names_survive_to_every_output(named_model, data):
    frames = named(data)
    index = list(frames["real"].index)
    for view in ("real", "positive", "binary", "count"):
        predicted = named_model.predict(frames, view)
        assert list(predicted.columns) == list(frames[view].columns)
        assert list(predicted.index) == index
    p = named_model.predict_proba(frames, "label")
    assert list(p.columns) == list(named_model.classes_["label"]) == ["ant", "bee", "cat", "dog"]
    assert list(p.index) == index
    ones = named_model.predict_proba(frames, "binary")
    assert list(ones.columns) == ["ba", "bb", "bc", "bd"]
    labels = named_model.predict(frames, "label")
    assert isinstance(labels, pd.Series)
    assert list(labels.index) == index
    (median,) = named_model.predict_quantiles(frames, "count", [0.5])
    assert list(median.columns) == ["ca", "cb", "cc", "cd"]
    assert list(named_model.weights("label").index) == ["ant", "bee", "cat", "dog"]
    assert list(named_model.weights("count").index) == ["ca", "cb", "cc", "cd"]


def test_names_change_nothing_else(model, named_model, data):
    frames = named(data)
    np.testing.assert_array_equal(model.lower_bounds_, named_model.lower_bounds_)
    np.testing.assert_array_equal(
        model.predict_proba(data, "label"), named_model.predict_proba(frames, "label")
    )
    np.testing.assert_array_equal(
        model.predict(data, "label"), named_model.predict(frames, "label")
    )


def test_labels_are_matched_by_their_index(data):
    views = {name: KINDS[name] for name in ("real", "label")}
    frames = {name: named(data)[name] for name in views}
    shuffled = frames | {"label": frames["label"].sample(frac=1.0, random_state=0)}
    a, b = (fit(views, d, max_iter=5) for d in (frames, shuffled))
    np.testing.assert_allclose(a.lower_bound_, b.lower_bound_, rtol=1e-10)


def test_weights_are_an_array_where_the_data_were(model, named_model):
    """pandas is not needed by those who do not use it."""
    for name in KINDS:
        assert isinstance(model.weights(name), np.ndarray)
        assert isinstance(named_model.weights(name), pd.DataFrame)


def test_no_samples_give_empty_predictions(model):
    none = {"real": np.empty((0, 4))}
    assert model.predict(none, "label").shape == (0,)
    assert model.predict_proba(none, "label").shape == (0, 4)
    assert model.predict(none, "count").shape == (0, 4)


# ---------------------------------------------------------------- labels

SIDE = np.arange(40) % 3 == 0
HIDDEN = np.arange(40) < 4
NAMES = [f"s{i}" for i in range(40)]
WORDS = pd.Series(["a", None]).dtype  # object, or from pandas 3 on str


def labels_of(yes, no):
    return [yes if side else no for side in SIDE]


def series(yes, no, dtype, holes=True):
    labels = pd.Series(labels_of(yes, no), index=NAMES, dtype=dtype)
    return labels.mask(HIDDEN) if holes else labels


LABELS = {
    "list of words": (labels_of("b", "a"), ["a", "b"], object),
    "list of words and None": ([None, *labels_of("b", "a")[1:]], ["a", "b"], object),
    "array of words": (np.array(labels_of("b", "a")), ["a", "b"], np.dtype("<U1")),
    "integers": (np.array(labels_of(3, 7)), [3, 7], np.dtype(int)),
    "booleans": (SIDE, [False, True], np.dtype(bool)),
    "floats": (np.where(HIDDEN, np.nan, labels_of(2.5, 1.0)), [1.0, 2.5], np.dtype(float)),
    "words and numbers": (labels_of(1, "a"), [1, "a"], object),
    "series of objects": (series("b", "a", object), ["a", "b"], np.dtype(object)),
    "not in UTF-8": (series("\ud800", "a", object), ["a", "\ud800"], np.dtype(object)),
    "series of words": (series("b", "a", None), ["a", "b"], WORDS),
    "series of strings": (series("b", "a", "string"), ["a", "b"], pd.StringDtype()),
    "series of Int64": (series(3, 7, "Int64"), [3, 7], pd.Int64Dtype()),
    "series of boolean": (series(True, False, "boolean"), [False, True], pd.BooleanDtype()),
    "series of int": (series(3, 7, int, holes=False), [3, 7], np.dtype(int)),
    "categories": (
        series("low", "high", pd.CategoricalDtype(["none", "low", "high"], ordered=True)),
        ["low", "high"],
        pd.CategoricalDtype(["none", "low", "high"], ordered=True),
    ),
}  # fmt: skip


@pytest.fixture
def measured(rng):
    """Real numbers that tell which side a sample is on."""
    return np.where(SIDE, 1.5, -1.5)[:, None] + 0.8 * rng.standard_normal((40, 3))


@pytest.mark.parametrize(("labels", "classes", "dtype"), LABELS.values(), ids=LABELS)
def test_labels_of_any_type(measured, labels, classes, dtype):
    x = pd.DataFrame(measured, index=NAMES) if isinstance(labels, pd.Series) else measured
    views = {"x": kofa.Real(), "y": kofa.Categorical()}
    model = fit(views, {"x": x, "y": labels}, max_iter=10)
    assert model.classes_["y"].tolist() == classes
    predicted = model.predict({"x": x}, "y")
    assert predicted.dtype == dtype
    assert predicted.shape == (40,)
    seen = ~HIDDEN
    pairs = zip(list(predicted), list(labels), seen, strict=True)
    assert np.mean([found == truth for found, truth, known in pairs if known]) > 0.95
    assert model.predict_proba({"x": x}, "y").shape == (40, 2)
    # a label is an observation like any other
    with_label, without_label = model.transform({"x": x, "y": labels}), model.transform({"x": x})
    assert (np.abs(np.asarray(with_label - without_label)[seen]).max(axis=1) > 1e-6).all()


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_missing_labels_of_any_make(measured, missing):
    """Rows without a label are samples like the others."""
    labels = labels_of("b", "a")
    views = {"x": kofa.Real(), "y": kofa.Categorical()}
    models = []
    for mark in (None, missing):
        y = np.array(labels, dtype=object)
        y[HIDDEN] = mark
        models.append(fit(views, {"x": measured, "y": y}, max_iter=5))
    a, b = models
    np.testing.assert_array_equal(a.lower_bounds_, b.lower_bounds_)
    given = {"x": measured[:2], "y": np.array([missing, "a"], dtype=object)}
    alone = {"x": measured[:2]}
    np.testing.assert_allclose(b.transform(given)[0], b.transform(alone)[0], atol=1e-9)
    assert np.abs(b.transform(given)[1] - b.transform(alone)[1]).max() > 1e-6


def test_unlabelled_samples_are_used(rng):
    """Twelve labels among 300 samples: the others find the factors."""
    Z = rng.standard_normal((500, 2))
    x = Z @ rng.standard_normal((2, 30)) + 2.5 * rng.standard_normal((500, 30))
    y = np.where(Z[:, 0] > 0, "yes", "no").astype(object)
    some = y[:300].copy()
    some[12:] = None
    views = {"x": kofa.Real(), "y": kofa.Categorical()}
    all_rows, few_rows = (
        fit(views, d, n_factors=2) for d in ({"x": x[:300], "y": some}, {"x": x[:12], "y": y[:12]})
    )
    correct = [np.mean(m.predict({"x": x[300:]}, "y") == y[300:]) for m in (all_rows, few_rows)]
    assert correct[0] > correct[1] + 0.05
    assert correct[0] > 0.75
    assert all_rows.fit_transform({"x": x[:300], "y": some}).shape[0] == 300


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_two_classes_are_as_good_as_ones_and_zeros(kernel):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((250, 4))
    f = 2 * x[:, 0] + x[:, 1] if kernel is None else 3 * np.sin(2 * x[:, 0]) + x[:, 1]
    y = (f + rng.standard_normal(250) > 0).astype(float)
    p = []
    for kind in (kofa.Binary(), kofa.Categorical()):
        model = fit(
            {"x": kofa.Real(kernel=kernel), "y": kind}, {"x": x[:150], "y": y[:150]}, outputs=["y"]
        )
        p.append(np.asarray(model.predict_proba({"x": x[150:]}, "y"))[:, -1])
    assert np.mean((p[0] > 0.5) == y[150:]) > 0.75
    losses = [-np.log(np.where(y[150:] == 1, one, 1.0 - one)).mean() for one in p]
    assert abs(losses[0] - losses[1]) <= 0.04


# ---------------------------------------------------------------- impute


def test_impute_fills_each_kind_with_values_it_could_have(rng, model, data):
    holes = {name: rng.random(y.shape) < 0.2 for name, y in data.items()}
    given = {
        name: np.where(holes[name], None if name == "label" else np.nan, y)
        for name, y in data.items()
    }
    filled = model.impute(given)
    for name, y in data.items():
        table = filled[name].reshape(y.shape)
        np.testing.assert_array_equal(table[~holes[name]], y[~holes[name]])
        assert not pd.isna(table).any()
    assert set(np.unique(filled["binary"])) == {0.0, 1.0}
    np.testing.assert_array_equal(filled["count"], np.round(filled["count"]))
    assert (filled["positive"] > 0).all()
    assert set(filled["label"].ravel()) <= set(model.classes_["label"])


def frame(values, dtype, holes=True):
    """One column with its first four samples masked or, where it cannot be, absent."""
    table = pd.DataFrame({"a": pd.Series(values, index=NAMES, dtype=dtype)})
    return table.mask(HIDDEN[:, None]) if holes else table[~HIDDEN]


COUNTS = [1 + 5 * side + i % 2 for i, side in enumerate(SIDE)]
WHOLE = np.array(COUNTS) * 3
TYPES = {
    "bool": (kofa.Binary(), frame(SIDE, bool, holes=False)),
    "boolean": (kofa.Binary(), frame(SIDE, "boolean")),
    "Int64 ones": (kofa.Binary(), frame(SIDE, "Int64")),
    "int ones": (kofa.Binary(), frame(SIDE, int, holes=False)),
    "int counts": (kofa.Count(), frame(COUNTS, int, holes=False)),
    "Int64 counts": (kofa.Count(), frame(COUNTS, "Int64")),
    "float counts": (kofa.Count(), frame(COUNTS, float)),
    "category": (kofa.Categorical(), frame(labels_of("b", "a"), "category")),
    "object": (kofa.Categorical(), frame(labels_of("b", "a"), object)),
    "string": (kofa.Categorical(), frame(labels_of("b", "a"), "string")),
    "words": (kofa.Categorical(), frame(labels_of("b", "a"), None)),
    "not in UTF-8": (kofa.Categorical(), frame(labels_of("\ud800", "a"), object)),
    "int labels": (kofa.Categorical(), frame(COUNTS, int, holes=False)),
    "bool labels": (kofa.Categorical(), frame(SIDE, bool, holes=False)),
    "float32": (kofa.Real(), frame(COUNTS, "float32")),
    "objects of booleans": (kofa.Binary(), frame(SIDE.tolist(), object)),
}


@pytest.mark.parametrize(("view", "y"), TYPES.values(), ids=TYPES)
def test_impute_returns_the_types_that_came_in(measured, view, y):
    data = {"x": pd.DataFrame(measured, index=NAMES), "y": y}
    model = fit({"x": kofa.Real(), "y": view}, data, max_iter=5)
    filled = model.impute(data)["y"]
    assert filled.shape == (40, 1)
    assert not filled.isna().any(axis=None)
    assert filled["a"].dtype == y["a"].dtype
    pd.testing.assert_frame_equal(filled[~HIDDEN], y.loc[NAMES[4:]])
    before, after = ({type(v) for v in t["a"].dropna().tolist()} for t in (y, filled))
    assert before == after


@pytest.mark.parametrize("dtype", [int, "Int64"])
@pytest.mark.parametrize("view", [kofa.Real(), kofa.Positive()])
def test_impute_does_not_cut_off_what_whole_numbers_cannot_hold(measured, view, dtype):
    """What is expected of a real number lies between whole ones."""
    y = frame(WHOLE, dtype, holes=dtype == "Int64")
    data = {"x": pd.DataFrame(measured, index=NAMES), "y": y}
    model = fit({"x": kofa.Real(), "y": view}, data, max_iter=5)
    filled = model.impute(data)["y"]["a"].astype(float)
    expected = model.predict({"x": data["x"]}, "y")["a"]
    np.testing.assert_allclose(filled[HIDDEN], expected[HIDDEN], rtol=1e-9)
    np.testing.assert_array_equal(filled[~HIDDEN], WHOLE[~HIDDEN])


@pytest.mark.parametrize("dtype", [int, bool])
@pytest.mark.filterwarnings("ignore:Holes of .* stay")
def test_impute_leaves_samples_that_a_kernelized_view_lacks(measured, dtype):
    y = frame(SIDE, dtype, holes=False)
    data = {"x": pd.DataFrame(measured, index=NAMES), "y": y}
    model = fit({"x": kofa.Real(), "y": kofa.Binary(kernel="rbf")}, data, max_iter=5)
    filled = model.impute(data)["y"]["a"]
    assert filled[HIDDEN].isna().all()
    assert (filled[~HIDDEN].astype(float) == SIDE[~HIDDEN]).all()


def test_impute_takes_arrays_next_to_frames(model, data):
    given = {"real": pd.DataFrame(data["real"]), "binary": data["binary"].copy()}
    given["binary"][3, 1] = np.nan
    filled = model.impute(given)
    assert filled["binary"].shape == (120, 4)
    assert np.asarray(filled["binary"])[3, 1] in (0.0, 1.0)


@pytest.mark.parametrize("dtype", [bool, int, np.int8, float])
def test_impute_of_arrays_keeps_their_type(measured, dtype):
    data = {"x": measured, "y": SIDE[:, None].astype(dtype)}
    model = fit({"x": kofa.Real(), "y": kofa.Binary()}, data, max_iter=5)
    filled = model.impute(data)["y"]
    assert filled.dtype == dtype
    np.testing.assert_array_equal(filled, data["y"])


# ---------------------------------------------------------------- factors


def planted(seed, n=600, d=30):
    """Views of four kinds with factors shared in six ways: data, Z, activity (6, 4)."""
    rng = np.random.default_rng(seed)
    activity = np.array(
        [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    )
    Z = rng.standard_normal((n, len(activity)))
    eta = [
        Z @ (rng.standard_normal((columns, len(activity))) * activity[:, m]).T
        for m, columns in enumerate((d, d, 6, d))
    ]
    data = {
        "real": eta[0] + 0.5 * rng.standard_normal(eta[0].shape),
        "binary": (eta[1] + rng.standard_normal(eta[1].shape) > 0).astype(float),
        "label": np.argmax(2 * eta[2] + rng.standard_normal(eta[2].shape), axis=1),
        "count": rng.poisson(3 * np.logaddexp(0, eta[3])),
    }
    return data, Z, activity


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))]
)
def test_planted_factors_and_who_shares_them_are_found(seed):
    data, Z, activity = planted(seed)
    model = kofa.FactorModel({name: KINDS[name] for name in data}).fit(data)
    found = model.transform(data)
    assert model.n_factors_ <= len(activity) + 2
    correlation = np.abs(np.corrcoef(Z.T, found.T)[: len(activity), len(activity) :])
    match = correlation.argmax(axis=1)
    assert len(set(match)) == len(activity)
    assert correlation.max(axis=1).mean() >= 0.95
    information = np.array([view.information for view in model.posterior_.values()]).T[match]
    assert (information[activity == 1] > 1.0).all()
    assert (information[activity == 0] < 0.1).all()


@pytest.mark.parametrize("name", ["real", "positive", "binary", "count", "label"])
def test_noise_has_no_factors(name):
    rng = np.random.default_rng(6)
    noise = rng.standard_normal((300, 12))
    values = {
        "real": noise,
        "positive": np.exp(noise),
        "binary": (noise > 0).astype(float),
        "count": rng.poisson(2.0, noise.shape),
        "label": np.argmax(noise[:, :5], axis=1),
    }[name]
    model = fit({"y": KINDS[name]}, {"y": values})
    assert model.n_factors_ == 1
    assert model.posterior_["y"].information[0] < 0.1


@pytest.mark.parametrize("name", ["real", "binary", "count"])
def test_one_factor_is_one_factor(name):
    rng = np.random.default_rng(6)
    Z = rng.standard_normal((300, 1))
    eta = Z @ np.array([[2.0] * 4 + [0.0] * 8])
    values = {
        "real": eta + rng.standard_normal(eta.shape),
        "binary": (eta + rng.standard_normal(eta.shape) > 0).astype(float),
        "count": rng.poisson(2 * np.logaddexp(0, eta)),
    }[name]
    model = fit({"y": KINDS[name]}, {"y": values})
    assert model.n_factors_ == 1
    assert abs(np.corrcoef(model.transform({"y": values})[:, 0], Z[:, 0])[0, 1]) > 0.8


# ---------------------------------------------------------------- hard data


def assert_sound(model, data):
    """Nothing diverged."""
    assert np.isfinite(model.lower_bounds_).all()
    for name, view in model.views_.items():
        assert np.isfinite(np.asarray(model.weights(name), dtype=float)).all()
        if name in model.classes_ or type(view.layer).__name__ == "Bernoulli":
            p = np.asarray(model.predict_proba(data, name))
            assert ((p >= 0) & (p <= 1)).all()
    assert np.isfinite(model.score_samples(data)).all()


@pytest.mark.parametrize("outputs", [None, ["y"]])
@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("kind", [kofa.Binary(), kofa.Categorical()])
def test_perfectly_separable_data_do_not_diverge(rng, kind, kernel, outputs):
    x = np.concatenate([rng.normal(-3, 0.3, (30, 2)), rng.normal(3, 0.3, (30, 2))])
    y = np.repeat([0.0, 1.0], 30)
    data = {"x": x, "y": y}
    model = fit({"x": kofa.Real(kernel=kernel), "y": kind}, data, outputs=outputs)
    assert_sound(model, data)
    p = model.predict_proba({"x": x}, "y")[:, -1]
    assert p[:30].max() < 0.1
    assert p[30:].min() > 0.9
    assert np.abs(np.asarray(model.weights("y"))).max() < 100


@pytest.mark.parametrize("outputs", [None, ["y"]])
def test_class_with_one_sample(rng, outputs):
    x = rng.standard_normal((60, 3))
    y = np.where(x[:, 0] > 0, "often", "sometimes").astype(object)
    y[7] = "once"
    data = {"x": x, "y": y}
    model = fit({"x": kofa.Real(), "y": kofa.Categorical()}, data, outputs=outputs)
    assert_sound(model, data)
    p = model.predict_proba({"x": x}, "y")
    assert 0 < p[:, list(model.classes_["y"]).index("once")].mean() < 0.2


@pytest.mark.filterwarnings("ignore:.*same value in all samples")
def test_constant_columns_are_predicted_near_their_constant(rng):
    Z = rng.standard_normal((100, 1))
    ones = (Z @ np.ones((1, 4)) + rng.standard_normal((100, 4)) > 0).astype(float)
    ones[:, 1], ones[:, 2] = 1.0, 0.0
    counts = rng.poisson(np.exp(1 + Z @ np.ones((1, 4)))).astype(float)
    counts[:, 1], counts[:, 2] = 0.0, 7.0
    data = {"binary": ones, "count": counts, "real": Z + 0.1 * rng.standard_normal((100, 3))}
    model = fit({name: KINDS[name] for name in data}, data)
    assert_sound(model, data)
    p, expected = model.predict_proba(data, "binary"), model.predict(data, "count")
    assert p[:, 1].min() > 0.9
    assert p[:, 2].max() < 0.1
    assert expected[:, 1].max() < 0.1
    np.testing.assert_allclose(expected[:, 2], 7.0, rtol=0.15)


@pytest.mark.filterwarnings("ignore:.*same value in all samples")
def test_count_in_a_column_that_had_none_in_fit(rng):
    counts = rng.poisson(3.0, (60, 3))
    counts[:, 1] = 0
    model = fit({"x": kofa.Real(), "y": kofa.Count()}, {"x": 1.0 * counts, "y": counts})
    new = {"y": np.array([[3, 1, 3], [3, 50, 3]])}
    assert np.abs(model.transform(new)).max() < 100
    assert np.isfinite(model.score_samples(new)).all()


def test_huge_counts_do_not_diverge(rng):
    Z = rng.standard_normal((100, 1))
    rate = 1e6 * np.exp(0.5 * Z @ np.array([[1.0, -1.0, 0.5]]))
    data = {"x": Z + 0.1 * rng.standard_normal((100, 3)), "y": rng.poisson(rate)}
    model = fit({"x": kofa.Real(), "y": kofa.Count()}, data)
    assert_sound(model, data)
    predicted = model.predict({"x": data["x"]}, "y")
    assert np.abs(predicted / rate - 1).mean() < 0.2
    low, high = model.predict_quantiles({"x": data["x"]}, "y", [0.05, 0.95])
    assert 0.7 < np.mean((low <= data["y"]) & (data["y"] <= high)) < 0.99


@pytest.mark.parametrize("outputs", [None, ["y"]])
def test_rare_ones_that_nothing_explains_have_the_rate_of_their_column(rng, outputs):
    """Columns without a one among them: they are possible, as often as half a one of all."""
    rate = np.geomspace(0.003, 0.3, 30)
    x, y = rng.standard_normal((300, 20)), (rng.random((300, 30)) < rate).astype(float)
    views = {"x": kofa.Real(), "y": kofa.Binary()}
    with pytest.warns(UserWarning, match="has the same value in all samples"):
        model = fit(views, {"x": x[:100], "y": y[:100]}, outputs=outputs, n_factors=5)
    p = model.predict_proba({"x": x[100:]}, "y")
    base = (y[:100].sum(axis=0) + 0.5) / 101.0
    surprise = [-np.log(np.where(y[100:] == 1, q, 1 - q)).sum() for q in (p, base)]
    assert surprise[0] < 1.01 * surprise[1]
    np.testing.assert_allclose(p.mean(axis=0), base, rtol=0.3)


@pytest.mark.parametrize("mean", [3.0, 100.0, 1e6])
def test_counts_that_vary_more_than_poisson_have_wide_enough_intervals(rng, mean):
    """New samples, and factors seen through noise: counts vary by more than chance."""
    Z = rng.standard_normal((400, 1))
    x = Z + 0.1 * rng.standard_normal((400, 3))
    log_rate = 0.5 * Z @ np.array([[1.0, -1.0, 0.5]]) + 0.5 * rng.standard_normal((400, 3))
    y = rng.poisson(mean * np.exp(log_rate)).astype(float)
    views = {"x": kofa.Real(), "y": kofa.Count()}
    model = fit(views, {"x": x[:200], "y": y[:200]}, outputs=["y"])
    assert np.any(model._fitted.questions.asked["y"].found.calibration.extra > 0.01)
    low, high = model.predict_quantiles({"x": x[200:]}, "y", [0.05, 0.95])
    assert 0.85 < np.mean((low <= y[200:]) & (y[200:] <= high)) < 0.97


def test_one_huge_count_does_not_hide_the_others(rng):
    Z = rng.standard_normal((150, 1))
    counts = rng.poisson(3 * np.logaddexp(0, 2 * Z @ np.ones((1, 5))))
    counts[3, 2] = 1_000_000
    model = fit({"y": kofa.Count()}, {"y": counts}, max_iter=200)
    assert_sound(model, {"y": counts})
    rest = np.delete(np.arange(150), 3)
    found = model.transform({"y": counts})[rest]
    assert np.abs(np.corrcoef(found.T, Z[rest, 0])[-1, :-1]).max() > 0.9


# ---------------------------------------------------------------- options


@pytest.mark.parametrize("name", ["positive", "binary", "count"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_kernel_of_an_input_of_any_kind(data, name, kernel):
    views = {name: type(KINDS[name])(kernel=kernel), "real": kofa.Real()}
    given = {view: data[view][:80] for view in views}
    model = fit(views, given, outputs=["real"], max_iter=20)
    predicted = model.predict({name: data[name][80:]}, "real")
    assert np.corrcoef(predicted.ravel(), data["real"][80:].ravel())[0, 1] > 0.5
    assert type(model.kernels_[name]).__name__.lower() == kernel
    assert model.predict({"real": data["real"][:3]}, name).shape == (3, 80)


def test_kernel_sees_logarithms_of_counts_and_positive_values(data):
    """A factor of all positive values, or none, does not change their similarities."""
    for name, change in (("positive", lambda y: 1000 * y), ("binary", lambda y: 1.0 - y)):
        views = {name: type(KINDS[name])(kernel="rbf"), "real": kofa.Real()}
        given = {view: data[view] for view in views}
        changed = given | {name: change(data[name])}
        a, b = (fit(views, d, n_factors=3, max_iter=10) for d in (given, changed))
        np.testing.assert_allclose(a.lower_bound_, b.lower_bound_, rtol=1e-8)
    counts, logs = (
        fit(
            {"y": kind(kernel="linear"), "real": kofa.Real()},
            {"y": y, "real": data["real"]},
            n_factors=3,
            max_iter=10,
        )
        for kind, y in ((kofa.Count, data["count"]), (kofa.Real, np.log1p(data["count"])))
    )
    np.testing.assert_allclose(counts.lower_bound_, logs.lower_bound_, rtol=1e-9)


@pytest.mark.parametrize("name", ["positive", "binary", "count"])
def test_sparse_switches_useless_columns_off(name):
    rng = np.random.default_rng(5)
    Z = rng.standard_normal((300, 1))
    eta = Z @ np.array([[2.0] * 4 + [0.0] * 8])
    noise = rng.standard_normal(eta.shape)
    values = {
        "positive": np.exp(eta + noise),
        "binary": (eta + noise > 0).astype(float),
        "count": rng.poisson(2 * np.logaddexp(0, eta)),
    }[name]
    kind = type(KINDS[name])
    share = []
    for sparse in (False, True):
        model = fit({"y": kind(sparse=sparse)}, {"y": values}, n_factors=1)
        W = np.asarray(model.weights("y"))
        share.append((W[4:] ** 2).sum() / (W**2).sum())
    assert share[1] < 0.5 * share[0]


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_transform_is_where_bound_and_local_step_agree(model, data, kernel):
    if kernel is not None:
        views = {name: KINDS[name] for name in ("real", "label", "count")}
        views["binary"] = kofa.Binary(kernel=kernel)
        data = {name: data[name] for name in views}
        model = fit(views, data, max_iter=20)
    holes = {name: y[:50].copy() for name, y in data.items()}
    holes["count"][:10, 1] = np.nan
    holes["label"][5:15] = None
    given = answers.given(model._fitted, holes)
    Z = model.transform(holes)
    values = {name: given.samples.spread(table) for name, table in given.tables.items()}
    rows = Rows.stack({name: model.views_[name].observe(y) for name, y in values.items()})
    e = local_system(model.posterior_, rows.columns)
    again = local_step(augment(rows, model.posterior_, Z), e)
    np.testing.assert_allclose(again.mean, Z, atol=1e-8)


class Uncalibrated(kofa.likelihoods.Bernoulli):
    """A kind with probabilities, but without a log-probability to calibrate them by."""

    log_predictive = kofa.likelihoods.Likelihood.log_predictive


class Guess(kofa.views.View):
    likelihood = Uncalibrated


def test_a_kind_need_not_calibrate_its_probabilities(rng):
    x = rng.standard_normal((60, 3))
    data = {"x": x, "y": (x[:, 0] > 0).astype(float)}
    model = fit({"x": kofa.Real(), "y": Guess()}, data, max_iter=10)
    assert np.mean((model.predict_proba(data, "y")[:, 0] > 0.5) == data["y"]) > 0.8
    assert model._fitted.questions.asked["y"].found.calibration.slope == 1.0


def test_quantiles_of_enormous_counts_end():
    """Beyond 2^53 whole numbers are further apart than one."""
    x = np.random.default_rng(0).normal(size=(60, 2))
    views = {"x": kofa.Real(), "n": kofa.Count()}
    counts = np.random.default_rng(1).poisson(np.exp(x[:, :1]))
    model = kofa.FactorModel(views).fit({"x": x, "n": counts})
    (median,) = model.predict_quantiles({"x": [[1e11, 1e11]]}, "n", [0.5])
    assert np.isfinite(median).all()
    beyond = model.views_["n"].layer.quantile(np.array([[1e20]]), np.array([[1e38]]), 0.5)
    assert 1e20 < beyond < 1e21


def test_quantiles_of_counts_are_counts_in_order_and_the_same_alone():
    rng = np.random.default_rng(51)
    z = rng.normal(size=(40, 1))
    x = z @ rng.normal(size=(1, 3)) + 0.3 * rng.normal(size=(40, 3))
    c = rng.poisson(np.exp(1.6 * z @ rng.normal(size=(1, 4)))).astype(float)
    model = kofa.FactorModel({"x": kofa.Real(), "c": kofa.Count()}, tol=0.01)
    model.fit({"x": x, "c": c})
    p = [0.05, 0.5, 0.95]
    together = np.array(model.predict_quantiles({"x": x}, "c", p))
    alone = [model.predict_quantiles({"x": x[[i]]}, "c", p) for i in range(40)]
    np.testing.assert_array_equal(together, np.concatenate(alone, axis=1))
    assert (together >= 0).all()
    assert (np.diff(together, axis=0) >= 0).all()
    filled = model.impute({"x": x, "c": np.where(rng.random(c.shape) < 0.5, np.nan, c)})
    assert (filled["c"] >= 0).all()


def test_standard_deviations_of_enormous_values_do_not_overflow():
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = 1e200 * x[:, :1]
    model = kofa.FactorModel({"x": kofa.Real(), "y": kofa.Real()}).fit({"x": x, "y": y})
    mean, std = model.predict({"x": x}, "y", return_std=True)
    assert np.isfinite(std).all()
    assert np.abs(mean - y).max() < 1e198


# ---------------------------------------------------------------- far from the data in fit


def all_said(model, data):
    """All that a model says of the views from one of them, as arrays of numbers."""
    (given,) = data
    yield from model.transform(data, return_cov=True)
    yield model.score_samples(data)
    for name, view in model.views_.items():
        if name != given:
            yield model.predict(data, name) if name != "label" else np.zeros(1)
            yield model.predict(data, name, return_std=True)[1] if view.layer.has("std") else 0.0
            yield model.predict_proba(data, name) if view.layer.has("probability") else 0.0
            quantiles = view.layer.has("quantile")
            yield from model.predict_quantiles(data, name, [0.05, 0.95]) if quantiles else ()
    holes = {n: np.full((len(data[given]), 4), np.nan) for n in model.views_ if n not in data}
    holes |= data | {"label": np.full(len(data[given]), None)}
    holes["real"] = np.where(np.arange(4) == 0, np.nan, holes["real"])
    yield from (y for n, y in model.impute(holes).items() if n not in {*data, "real", "label"})


FAR = {
    "direct": ("real", kofa.Real()),
    "linear": ("real", kofa.Real(kernel="linear")),
    "linear in units": ("real", kofa.Real(kernel="linear", scale=False)),
    "polynomial": ("real", kofa.Real(kernel="polynomial")),
    "steep polynomial": ("real", kofa.Real(kernel=kofa.Polynomial(30))),
    "bank": ("real", kofa.Real(kernel="bank")),
    "positive": ("positive", kofa.Positive()),
    "count": ("count", kofa.Count()),
}


# Without outputs all views are read out of the others, whatever the kernel of one is.
@pytest.mark.filterwarnings("ignore:View.*count as less far")  # no other, such as of overflow
@pytest.mark.parametrize(
    ("which", "outputs"),
    [*((name, True) for name in FAR), ("direct", False), ("steep polynomial", False),
     ("positive", False), ("count", False)],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Holes of .* stay")
def test_predictions_far_from_the_data_are_finite(data, which, outputs):
    name, view = FAR[which]
    part = {key: y[:24] for key, y in data.items()}
    views = KINDS | {name: view}
    others = [key for key in KINDS if key != name] if outputs else None
    model = fit(views, part, outputs=others, max_iter=10, n_factors=3)
    near = part[name][:1]
    for size in (1e3, 1e12, 1e300):
        rows = np.array([[size] * 4, [1.0, size, 1.0, 1.0]])
        rows = np.concatenate([rows, near] if name != "real" else [rows, -rows, near])
        for said in all_said(model, {name: rows}):
            assert np.isfinite(said).all()
    alone, together = (model.transform({name: some}) for some in (near, rows))
    np.testing.assert_allclose(alone[0], together[-1], atol=1e-9)


@pytest.mark.parametrize("kernel", [None, "linear"])
def test_samples_out_of_reach_are_named(data, kernel):
    views = {"real": kofa.Real(kernel=kernel), "count": kofa.Count()}
    model = fit(views, {name: named(data)[name] for name in views}, max_iter=10)
    far = named(data)["real"].copy()
    far.iloc[3:9, 1] = 1e14
    far.iloc[5, 0] = -1e300
    message = r"View 'real', samples 's3', 's4', 's5' and 3 more: values so far .* 1e\+12 times"
    with pytest.warns(UserWarning, match=message):
        model.predict({"real": far}, "count")
    far.iloc[3:9] = 1e11
    assert np.isfinite(model.predict({"real": far}, "count")).all(axis=None)
    with pytest.warns(UserWarning, match=r"View 'count', sample 7: values so far"):
        model.transform({"count": np.where(np.arange(9)[:, None] == 7, 1e17, data["count"][:9])})
