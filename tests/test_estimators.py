"""The estimators for scikit-learn."""

from __future__ import annotations

import pickle
import warnings

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_estimators_overwrite_params,
    parametrize_with_checks,
)

import kofa
from kofa.estimators import KernelFactorAnalysis, KernelFactorClassifier, KernelFactorRegressor

ALL = [KernelFactorAnalysis, KernelFactorRegressor, KernelFactorClassifier]
SMALL = {"kernel": "rbf", "n_factors": 8, "tol": 1.0}


class Unsound(KernelFactorAnalysis):
    """It changes a parameter in fit, which the rules of scikit-learn forbid."""

    def fit(self, X, y=None):
        self.tol = 0.2
        return super().fit(X, y)


def test_scikit_learn_checks_fail_where_a_rule_is_broken():
    """A check raises, or it found nothing."""
    with pytest.raises(AssertionError, match="tol"):
        check_estimators_overwrite_params("Unsound", Unsound(**SMALL))


@parametrize_with_checks([estimator(**SMALL) for estimator in ALL])
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([estimator() for estimator in ALL])
def test_scikit_learn_checks_pass_with_defaults(estimator, check):
    check(estimator)


# ---------------------------------------------------------------- data


@pytest.mark.parametrize("columns", [None, {"a": [0, 1, 2], "b": [4, 3]}])
@pytest.mark.parametrize(
    ("kernel", "within"),
    # Searches for a width, and for weights of several sources (a view without a kernel is one, its
    # factors are another), end where the last digits of sums over blocks lead them.
    [(None, 1e-6), (kofa.RBF(width=2.0), 1e-8), ("rbf", 1e-6)],
)
def test_sparse_rows_are_fitted_and_predicted_as_dense_ones(
    rng, columns, kernel, within, monkeypatch
):
    X = rng.poisson(0.7, size=(120, 5)).astype(float)
    X[0, 1] = np.nan
    y = X[:, 0] - np.nan_to_num(X[:, 1]) + 0.1 * rng.normal(size=120)
    options = {"kernel": kernel, "columns": columns, "tol": 0.1}
    within = 1e-6 if columns else within
    expected = KernelFactorRegressor(**options).fit(X, y).predict(X)
    monkeypatch.setattr("kofa.data.stored._AT_ONCE", 100)
    model = KernelFactorRegressor(**options).fit(csr_matrix(X), y)
    np.testing.assert_allclose(model.predict(csr_matrix(X)), expected, rtol=0, atol=within)
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=within)


def test_sparse_columns_without_a_value_are_left_out(rng):
    X = rng.poisson(0.7, size=(30, 3)).astype(float)
    X[:, 1] = np.nan
    with pytest.warns(UserWarning, match="column 1 of X"):
        model = KernelFactorAnalysis(kernel=None).fit(csr_matrix(X))
    assert model.columns_["X"].tolist() == [0, 2]


def waves(rng, n=80, d=4):
    """Rows, and a target that is no linear function of them."""
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.05 * rng.normal(size=n)


def rings(rng, n=80):
    """Rows, and two classes that no line parts."""
    X = rng.normal(size=(n, 2))
    return X, np.where((X**2).sum(axis=1) > 1.4, "out", "in")


def fit_small(estimator, rng, **options):
    """An estimator on data that it can take."""
    X, y = rings(rng) if estimator is KernelFactorClassifier else waves(rng)
    return estimator(**SMALL | options).fit(X, y), X, y


# ---------------------------------------------------------------- regression


def test_regressor_predicts_in_the_units_and_shape_of_y(rng):
    X, y = waves(rng)
    y = 1000 + 50 * y
    one = KernelFactorRegressor().fit(X, y)
    column = KernelFactorRegressor().fit(X, y[:, None])
    assert one.score(X, y) > 0.9
    assert one.predict(X).shape == (80,)
    assert_array_equal(column.predict(X), one.predict(X)[:, None])


def test_regressor_takes_many_targets_with_holes(rng):
    X, y = waves(rng, 100)
    Y = np.column_stack([y, 2 - 3 * y, X[:, 1]])
    holed = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    before = holed.copy()
    model = KernelFactorRegressor().fit(X, holed)
    assert_array_equal(holed, before)
    assert model.predict(X).shape == Y.shape
    assert r2_score(Y, model.predict(X)) > 0.9


def test_regressor_std_and_quantiles_cover_the_targets(rng):
    X, y = waves(rng, 200)
    model = KernelFactorRegressor(kernel="rbf").fit(X[:100], y[:100])
    mean, std = model.predict(X[100:], return_std=True)
    assert mean.shape == std.shape == (100,)
    assert_allclose(mean, model.predict(X[100:]))
    assert 0.8 < np.mean(np.abs(y[100:] - mean) < 2 * std) <= 1.0
    low, high = model.predict_quantiles(X[100:], [0.05, 0.95])
    np.testing.assert_array_equal(model.predict_quantiles(X[100:]), [low, high])
    assert low.shape == (100,)
    assert np.all((low < mean) & (mean < high))


def test_unlabelled_rows_are_samples_but_not_targets(rng):
    X, y = waves(rng)
    y[40:] = np.nan
    model = KernelFactorRegressor(**SMALL).fit(X, y)
    alone = KernelFactorRegressor(**SMALL).fit(X[:40], y[:40])
    assert not np.allclose(model.transform(X), alone.transform(X))
    assert len(model.model_.views_["X"].landmarks) == 40  # targets decide what rows compare with
    assert np.isfinite(model.predict(X)).all()


def arcs(rng, n=200):
    """Two arcs around each other, and which one each row is on."""
    angle, y = rng.uniform(0, np.pi, n), np.arange(n) % 2
    arc = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.where(y[:, None] == 0, arc, [1, 0.4] - arc)
    return X + 0.08 * rng.normal(size=(n, 2)), y


def hidden(y, n):
    """All labels but the first n."""
    return np.where(np.arange(len(y)) < n, y, np.nan)


def test_unlabelled_rows_tell_classes_apart(rng):
    X, y = arcs(rng)
    informed = KernelFactorClassifier().fit(X[:160], hidden(y[:160], 10))
    alone = KernelFactorClassifier().fit(X[:10], y[:10])
    assert informed.score(X[160:], y[160:]) > max(0.95, alone.score(X[160:], y[160:]) + 0.03)
    assert kernels_of(informed) == ["Linear", "RBF", "Laplacian", "Diffusion"]


def kernels_of(model):
    return [type(kernel).__name__ for kernel in model.model_.kernels_["X"].kernels]


def test_unlabelled_rows_spread_nothing_where_left_out_labels_do_not_gain(rng):
    X = rng.normal(size=(90, 2))
    model = KernelFactorClassifier(tol=1.0).fit(X, hidden(X[:, 0] > 0, 30))
    assert kernels_of(model) == ["Linear", "RBF", "Laplacian"]


def test_unlabelled_rows_spread_nothing_if_fewer_or_sparse_or_if_targets_are_real(rng):
    X, y = arcs(rng, 60)
    few = KernelFactorClassifier(tol=1.0).fit(X, hidden(y, 31))
    sparse = KernelFactorClassifier(tol=1.0, sparse=True).fit(X, hidden(y, 20))
    real = KernelFactorRegressor(tol=1.0).fit(X, hidden(y, 10))
    for model in (few, sparse, real):
        assert kernels_of(model) == ["Linear", "RBF", "Laplacian"]


def test_score_leaves_out_what_is_not_known(rng):
    X, y = waves(rng)
    Y = np.column_stack([y, X[:, 0]])
    model = KernelFactorRegressor(**SMALL).fit(X, Y)
    assert_allclose(model.score(X, Y), r2_score(Y, model.predict(X)))
    holed = Y.copy()
    holed[:30, 0] = np.nan
    first = r2_score(Y[30:, 0], model.predict(X)[30:, 0])
    second = r2_score(Y[:, 1], model.predict(X)[:, 1])
    assert_allclose(model.score(X, holed), (first + second) / 2)
    weight = rng.random(len(X))
    weighted = r2_score(Y, model.predict(X), sample_weight=weight)
    assert_allclose(model.score(X, Y, sample_weight=weight), weighted)


@pytest.mark.parametrize("estimator", [KernelFactorRegressor, KernelFactorClassifier])
def test_scores_need_something_that_is_known(rng, estimator):
    model, X, _ = fit_small(estimator, rng)
    with pytest.raises(kofa.DataError, match="all of y is missing"):
        model.score(X, np.full(len(X), np.nan))


@pytest.mark.parametrize("estimator", ALL)
def test_a_fit_that_fails_changes_nothing(rng, estimator):
    model, X, y = fit_small(estimator, rng)
    before = model.transform(X)
    with pytest.raises(kofa.DeclarationError):
        model.set_params(kernel="unknown").fit(X, y)
    assert_array_equal(model.transform(X), before)
    with pytest.raises(kofa.DeclarationError):
        (fresh := estimator("unknown")).fit(X, y)
    with pytest.raises(NotFittedError):
        fresh.transform(X)


def test_regressor_takes_a_constant_target(rng):
    X, _ = waves(rng, 30)
    assert_allclose(KernelFactorRegressor(**SMALL).fit(X, np.full(30, 7.0)).predict(X), 7.0)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, r"KernelFactorRegressor requires y .*; call fit\(X, y\)"),
        (
            ["a", "b"] * 10,
            "y, column 0: .* numbers but got 'a'; .*KernelFactorClassifier",
        ),
        (np.full(20, np.nan), "at least 2 rows of y that are not missing but got 0"),
        (np.r_[1.0, np.full(19, np.nan)], "at least 2 rows of y that are not missing but got 1"),
        (np.r_[np.inf, np.ones(19)], "Input y contains infinity"),
        (np.ones(19), "inconsistent numbers of samples"),
    ],
)
def test_bad_targets_are_named(rng, y, message):
    with pytest.raises(ValueError, match=message):
        KernelFactorRegressor(**SMALL).fit(waves(rng, 20)[0], y)


# ---------------------------------------------------------------- classes


def test_classifier_parts_rings(rng):
    X, y = rings(rng, 200)
    model = KernelFactorClassifier().fit(X[:100], y[:100])
    assert model.classes_.tolist() == ["in", "out"]
    proba = model.predict_proba(X[100:])
    assert proba.shape == (100, 2)
    assert_allclose(proba.sum(axis=1), 1.0)
    assert_array_equal(model.predict(X[100:]), model.classes_[proba.argmax(axis=1)])
    assert model.score(X[100:], y[100:]) > 0.9


@pytest.mark.parametrize(
    "labels",
    [
        lambda y: np.where(y == 0, np.nan, y),
        lambda y: [None if v == 0 else int(v) for v in y],
        lambda y: [None if v == 0 else "abc"[v - 1] for v in y],
        lambda y: [np.nan if v == 0 else "abc"[v - 1] for v in y],
        lambda y: np.array([None if v == 0 else "abc"[v - 1] for v in y], dtype=object),
    ],
    ids=["nan", "numbers and None", "words and None", "words and nan", "objects"],
)
def test_missing_labels_are_unlabelled_rows(labels):
    X, y = load_iris(return_X_y=True)
    y = y + 1
    y[::2] = 0
    given = labels(y)
    model = KernelFactorClassifier(**SMALL).fit(X, given)
    assert len(model.classes_) == 3
    assert model.classes_.tolist() in ([1, 2, 3], ["a", "b", "c"])
    right = model.classes_[load_iris().target] == model.predict(X)
    assert right.mean() > 0.9
    assert_allclose(model.score(X, given), right[1::2].mean())


def test_pandas_labels_may_have_any_dtype(rng):
    pd = pytest.importorskip("pandas")
    X, y = rings(rng)
    plain = KernelFactorClassifier(**SMALL).fit(X, y).predict_proba(X)
    for dtype in ("category", "string", object):
        series = pd.Series(y, index=range(100, 180)).astype(dtype)
        model = KernelFactorClassifier(**SMALL).fit(X, series)
        assert list(model.classes_) == ["in", "out"]
        assert_array_equal(model.predict_proba(X), plain)


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "category", "string"])
def test_missing_labels_leave_the_others_as_they_are(rng, dtype):
    pd = pytest.importorskip("pandas")
    X, y = rings(rng)
    kinds = {"boolean": y == "out", "string": y}
    series = pd.Series(kinds.get(dtype, (y == "out").astype(int)), range(100, 180)).astype(dtype)
    series.iloc[:9] = pd.NA
    before = series.copy()
    model = KernelFactorClassifier(**SMALL).fit(X, series)
    known = series.iloc[9:].tolist()
    assert model.classes_.tolist() == sorted(set(known))
    assert {type(label) for label in model.predict(X).tolist()} == {type(known[0])}
    assert model.score(X, series) == accuracy_score(known, model.predict(X[9:]))
    pd.testing.assert_series_equal(series, before)


def test_classes_are_sorted_whatever_the_order_of_categories(rng):
    pd = pytest.importorskip("pandas")
    X, y = rings(rng)
    series = pd.Series(pd.Categorical(y, categories=["out", "in"]))
    model = KernelFactorClassifier(**SMALL).fit(X, series)
    assert list(model.classes_) == list(model.model_.classes_["y"]) == ["in", "out"]


def test_a_column_of_labels_is_taken_with_a_warning(rng):
    X, y = rings(rng)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        model = KernelFactorClassifier(**SMALL).fit(X, y[:, None])
    assert model.predict(X).shape == (80,)


def test_several_labels_may_have_holes(rng):
    X, y = rings(rng, 150)
    Y = np.column_stack([y == "out", X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    holed = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    model = KernelFactorClassifier().fit(X, holed)
    assert_array_equal(model.classes_, [0, 1, 2])
    proba = model.predict_proba(X)
    assert proba.shape == Y.shape
    assert_array_equal(model.predict(X), proba > 0.5)
    assert model.predict(X).dtype.kind == "i"
    assert (model.predict(X) == Y).mean() > 0.9
    whole = ~np.isnan(holed).any(axis=1)
    assert_allclose(model.score(X, holed), accuracy_score(Y[whole], model.predict(X)[whole]))


def test_masked_entries_are_missing(rng):
    X, y = waves(rng)
    hidden = np.ma.masked_greater(X, 1.0)
    holes = hidden.filled(np.nan)
    targets = np.ma.masked_array(y, mask=np.arange(80) < 9)
    model = KernelFactorRegressor(**SMALL).fit(hidden, targets)
    other = KernelFactorRegressor(**SMALL).fit(holes, np.where(targets.mask, np.nan, y))
    assert_array_equal(model.predict(hidden), other.predict(holes))
    assert model.score(hidden, targets) == other.score(holes[9:], y[9:])


def test_masked_labels_are_not_known(rng):
    X, y = rings(rng)
    masked = np.ma.masked_array(y, mask=np.arange(80) < 9)
    model = KernelFactorClassifier(**SMALL).fit(X, masked)
    other = KernelFactorClassifier(**SMALL).fit(X, [None] * 9 + y[9:].tolist())
    assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    assert model.score(X, masked) == accuracy_score(y[9:], model.predict(X[9:]))


def test_classifier_score_takes_weights(rng):
    model, X, y = fit_small(KernelFactorClassifier, rng)
    weight = rng.random(len(X))
    expected = accuracy_score(y, model.predict(X), sample_weight=weight)
    assert_allclose(model.score(X, y, sample_weight=weight), expected)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "KernelFactorClassifier requires y"),
        (["a"] * 20, "two classes in y but all labels are 'a'"),
        ([None] * 20, "at least 2 rows of y that are not missing but got 0"),
        (np.linspace(0, 1, 20), "continuous numbers"),
        (np.arange(60).reshape(20, 3), "Expected zeros and ones .* but got 2"),
        (["a", "b"] * 9, "inconsistent numbers of samples"),
        (csr_matrix(np.eye(20)), "sparse matrix; pass y.toarray"),
    ],
)
def test_bad_labels_are_named(rng, y, message):
    with pytest.raises(ValueError, match=message):
        KernelFactorClassifier(**SMALL).fit(rings(rng, 20)[0], y)


def test_regression_target_of_whole_numbers_is_warned_of(rng):
    X = rng.normal(size=(60, 2))
    y = np.round(40.0 * X[:, 0])
    n_classes = len(np.unique(y))
    assert n_classes > 30
    with pytest.warns(UserWarning, match=f"y has {n_classes} classes in 60 rows") as caught:
        KernelFactorClassifier(**SMALL).fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    KernelFactorClassifier(**SMALL).fit(X, np.clip(y, -10, 10))


# ---------------------------------------------------------------- X


def test_holes_and_empty_rows_are_taken_as_they_are(rng):
    X, y = waves(rng, 120)
    holed = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    holed[:3] = np.nan
    model = KernelFactorRegressor().fit(holed, y)
    mean, std = model.predict(np.vstack([X[5:6], np.full((1, 4), np.nan)]), return_std=True)
    assert abs(mean[1] - y.mean()) < 0.3 * y.std()  # nothing is known of this row
    assert std[1] > std[0]
    assert_allclose(model.transform(np.full((1, 4), np.nan)), 0.0)


@pytest.mark.parametrize("estimator", ALL)
def test_an_empty_column_is_left_out_with_a_warning(rng, estimator):
    _, X, y = fit_small(estimator, rng)
    wide = np.insert(X, 1, np.nan, axis=1)
    with pytest.warns(UserWarning, match="all values are missing in fit: column 1 of X") as caught:
        model = estimator(**SMALL).fit(wide, y)
    assert caught[0].filename == __file__
    assert 1 not in model.columns_["X"]
    wide[:, 1] = 5.0  # seen later: it still says nothing
    assert_array_equal(model.transform(wide), estimator(**SMALL).fit(X, y).transform(X))


def test_a_view_without_values_is_left_out(rng):
    X, y = waves(rng)
    X[:, 2:] = np.nan
    columns = {"a": slice(0, 2), "b": [2, 3]}
    with pytest.warns(UserWarning, match="column 2, column 3 of X"):
        model = KernelFactorRegressor(**SMALL, columns=columns).fit(X, y)
    assert list(model.columns_) == ["a"]
    with pytest.raises(kofa.DataError, match="all are missing"):
        KernelFactorAnalysis(**SMALL).fit(np.full((5, 2), np.nan))


@pytest.mark.parametrize("estimator", ALL)
def test_a_constant_column_changes_nothing_much(rng, estimator):
    _, X, y = fit_small(estimator, rng)
    wide = estimator(**SMALL).fit(np.column_stack([X, np.ones(len(X))]), y)
    assert np.isfinite(wide.transform(np.column_stack([X, np.zeros(len(X))]))).all()


def test_names_reach_the_model_and_are_checked_after(rng):
    pd = pytest.importorskip("pandas")
    X, y = waves(rng)
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.repeat("same", 80))
    targets = pd.DataFrame({"height": y, "width": X[:, 0]})
    kernel = kofa.RBF(relevance="learn")
    model = KernelFactorRegressor(kernel, n_factors=5, tol=0.1).fit(frame, targets)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert set(model.model_.selected_features("X", top=2)) == {"a", "b"}
    assert model.model_.weights("y").index.tolist() == ["height", "width"]
    assert isinstance(model.predict(frame), np.ndarray)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[list("dcba")])


def test_columns_may_be_numbered(rng):
    pd = pytest.importorskip("pandas")
    X, y = waves(rng)
    plain = KernelFactorRegressor(**SMALL).fit(X, y).predict(X)
    numbered = pd.DataFrame(X)
    assert_array_equal(KernelFactorRegressor(**SMALL).fit(numbered, y).predict(numbered), plain)


def test_polars_frames_are_taken(rng):
    pl = pytest.importorskip("polars")
    X, y = waves(rng)
    frame = pl.DataFrame({name: X[:, j] for j, name in enumerate("abcd")})
    frame = frame.with_columns(
        pl.when(pl.col("a") > 1).then(None).otherwise(pl.col("a")).alias("a")
    )
    holed = np.where(np.arange(4) == 0, np.where(X > 1, np.nan, X), X)
    model = KernelFactorRegressor(**SMALL).fit(frame, pl.Series(y))
    assert model.feature_names_in_.tolist() == list("abcd")
    plain = KernelFactorRegressor(**SMALL).fit(holed, y)
    assert_allclose(model.predict(frame), plain.predict(holed))
    labels = pl.Series(["up" if v > 0 else "down" for v in y])
    classifier = KernelFactorClassifier(**SMALL).fit(frame, labels)
    assert list(classifier.classes_) == ["down", "up"]


# ---------------------------------------------------------------- views


def test_columns_split_x_into_views_with_kernels_of_their_own(rng):
    X, y = waves(rng)
    columns = {"left": [0, 1], "right": slice(1, None)}
    model = KernelFactorRegressor(
        {"left": "rbf", "right": None}, columns=columns, n_factors=5, tol=0.1
    ).fit(X, y)
    declared = {
        "left": kofa.Real(kernel="rbf"),
        "right": kofa.Real(),
        "y": kofa.Real(),
    }
    by_hand = kofa.FactorModel(declared, 5, outputs=["y"], tol=0.1)
    by_hand.fit({"left": X[:, :2], "right": X[:, 1:], "y": y})
    given = {"left": X[:, :2], "right": X[:, 1:]}
    assert_allclose(model.predict(X), by_hand.predict(given, "y")[:, 0], atol=1e-6)
    assert list(model.model_.views_) == ["left", "right", "y"]


def test_columns_may_be_names_positions_or_both(rng):
    pd = pytest.importorskip("pandas")
    X, y = waves(rng)
    frame = pd.DataFrame(X, columns=list("abcd"))
    columns = {"u": ["b", 0], "v": "c", "w": -1}
    model = KernelFactorRegressor(**SMALL, columns=columns).fit(frame, y)
    assert {view: where.tolist() for view, where in model.columns_.items()} == {
        "u": [1, 0],
        "v": [2],
        "w": [3],
    }


def test_columns_in_no_view_are_not_used(rng):
    X, y = waves(rng)
    model = KernelFactorRegressor(**SMALL, columns={"a": [0, 1]}).fit(X, y)
    other = X.copy()
    other[:, 2:] = 100.0
    assert_array_equal(model.predict(other), model.predict(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": {"a": ["height"]}}, "View 'a', column 'height': X has no names of columns"),
        ({"columns": {"a": [0, 4]}}, "View 'a': X has no column 4; it has columns 0 to 3"),
        ({"columns": {"a": []}}, "View 'a': expected at least one column"),
        ({"columns": {"a": slice(9, 12)}}, "View 'a': expected at least one column"),
        ({"columns": {"a": [0, -4]}}, "View 'a': expected each column once"),
        ({"columns": {"a": [True, False]}}, "View 'a': expected names or positions"),
        ({"columns": {"a": 1.5}}, "View 'a': expected names or positions"),
        ({"columns": {"y": [0]}}, "View 'y': this is the name of the target; choose"),
        ({"columns": ["a"]}, r"Expected columns to be a dict.*got \['a'\]; write such as"),
        ({"columns": {}}, "Expected columns to be a dict"),
        ({"kernel": {"a": "rbf"}}, "Unknown view 'a' in kernel; the views are 'X'"),
        ({"columns": {"a": [0], "b": [1]}, "sparse": {"a": True}}, "View 'b': sparse has no entry"),
        ({"kernel": "rbff"}, "View 'X': expected a kernel among"),
        ({"n_factors": 0}, "n_factors to be a whole number"),
        ({"scale": "yes"}, "View 'X': expected scale to be True or False"),
        ({"landmarks": 1}, "View 'X': expected landmarks"),
        ({"tol": -1.0}, "tol to be a number"),
        ({"random_state": "seed"}, "random_state"),
    ],
)
def test_bad_parameters_are_named_in_fit(rng, options, message):
    X, y = waves(rng, 20)
    estimator = KernelFactorRegressor(**options)  # says nothing before it sees data
    with pytest.raises(kofa.DeclarationError, match=message):
        estimator.fit(X, y)


def test_unknown_names_of_columns_are_named(rng):
    pd = pytest.importorskip("pandas")
    X, y = waves(rng, 20)
    estimator = KernelFactorRegressor(columns={"body": ["a", "hieght"]})
    with pytest.raises(kofa.DeclarationError, match="'body': X has no column 'hieght'; its col"):
        estimator.fit(pd.DataFrame(X, columns=list("abcd")), y)


def dot(X, V):
    return X @ V.T


def test_a_kernel_that_takes_no_holes_says_so(rng):
    X, y = waves(rng, 20)
    X[0, 2] = np.nan
    with pytest.raises(kofa.DataError, match="column 2: the Custom kernel cannot take missing"):
        KernelFactorRegressor(dot).fit(X, y)


# ---------------------------------------------------------------- options reach the model


def test_options_reach_the_model(rng):
    X, y = waves(rng)
    seen = []
    options = {"n_factors": 4, "n_init": 2, "tol": 0.5, "random_state": 3, "landmarks": 30}
    model = KernelFactorRegressor("rbf", **options, scale=False, callback=seen.append).fit(X, y)
    assert model.n_factors_ == model.model_.n_factors_ <= 4
    assert model.n_iter_ == model.model_.n_iter_
    assert {iteration.start for iteration in seen} == {0, 1}
    assert len(model.model_.views_["X"].landmarks) == 30
    assert_array_equal(model.model_.views_["X"].encoder.scaling.spread, 1.0)
    vectors = KernelFactorRegressor(**SMALL, sparse=True).fit(X, y).model_.views_["X"].landmarks
    assert len(vectors) < 60


ENGINE = {"engine": "disk", "block_rows": 30, "dtype": "float32"}


@pytest.mark.parametrize("estimator", ALL)
def test_where_rows_are_and_of_which_type_reaches_the_model(rng, estimator):
    model = fit_small(estimator, rng, **ENGINE)[0]
    of_model, copy = model.model_.get_params(), clone(model)
    for option, value in ENGINE.items():
        assert of_model[option] == copy.get_params()[option] == value
    with pytest.raises(kofa.DeclarationError, match="dtype to be 'float64' or 'float32'"):
        fit_small(estimator, rng, dtype="float16")


@pytest.mark.parametrize("columns", [None, {"a": [0, 1], "b": [3]}])
@pytest.mark.parametrize("engine", ["auto", "memory", "disk"])
def test_rows_may_be_in_files(rng, tmp_path, monkeypatch, columns, engine):
    X, y = waves(rng)
    X[3, 1] = np.nan
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    expected = KernelFactorRegressor(None, columns=columns).fit(X.astype(np.float32), y)
    monkeypatch.setattr("kofa.data.stored._AT_ONCE", 100)
    model = KernelFactorRegressor(None, columns=columns, engine=engine)
    for given in (np.load(tmp_path / "x.npy", mmap_mode="r"), kofa.open_table(tmp_path / "x.npy")):
        model.fit(given, y)
        assert_allclose(model.predict(given), expected.predict(X), atol=1e-5)
    np.save(tmp_path / "few.npy", X[:, :3])
    few = np.load(tmp_path / "few.npy", mmap_mode="r")
    with pytest.raises(ValueError, match="has 3 features"):
        model.predict(few)


def test_columns_of_files_have_names(rng, tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("kofa.data.stored._AT_ONCE", 100)
    X, y = waves(rng)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["d"] = np.nan
    frame.to_parquet(tmp_path / "x.parquet")
    model = KernelFactorRegressor(None, columns={"v": ["b", "d"], "w": ["a", "c"]}, engine="disk")
    with pytest.warns(UserWarning, match="all values are missing in fit: column 'd' of X"):
        model.fit(kofa.open_table(tmp_path / "x.parquet"), y)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.model_.views_["w"].inputs == ("a", "c")
    assert_allclose(model.predict(frame), model.predict(kofa.open_table(tmp_path / "x.parquet")))


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_sparse_rows_are_fitted_from_disk(rng, monkeypatch, kernel):
    X = rng.poisson(0.7, size=(90, 5)).astype(float)
    y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=90)
    expected = KernelFactorRegressor(kernel, tol=0.1).fit(X, y).predict(X)
    monkeypatch.setattr("kofa.data.stored._AT_ONCE", 100)
    model = KernelFactorRegressor(kernel, tol=0.1, engine="disk", block_rows=40)
    assert_allclose(model.fit(csr_matrix(X), y).predict(csr_matrix(X)), expected, atol=1e-5)


def test_kernels_may_be_functions_or_several(rng):
    X, y = waves(rng)
    model = KernelFactorRegressor([rbf_kernel, "laplacian"], tol=0.1).fit(X, y)
    assert list(model.model_.views_) == ["X[Custom]", "X[Laplacian]", "y"]
    assert model.score(X, y) > 0.8


def test_too_few_iterations_are_told(rng):
    X, y = waves(rng)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        KernelFactorRegressor(None, max_iter=2, tol=0.0).fit(X, y)


def test_random_state_may_be_of_the_old_kind(rng):
    X, y = waves(rng)
    options = SMALL | {"landmarks": 20}
    first, second, other = (
        KernelFactorRegressor(**options, random_state=np.random.RandomState(seed)).fit(X, y)
        for seed in (0, 0, 1)
    )
    assert_array_equal(first.predict(X), second.predict(X))
    assert not np.array_equal(first.predict(X), other.predict(X))


# ---------------------------------------------------------------- scikit-learn's own tools


def test_grid_search_over_kernel_and_factors_in_a_pipeline(rng):
    X, y = waves(rng)
    pipeline = make_pipeline(StandardScaler(), KernelFactorRegressor(tol=0.1))
    grid = {
        "kernelfactorregressor__kernel": ["rbf", kofa.Laplacian(), None],
        "kernelfactorregressor__n_factors": [2, 20],
    }
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=2).fit(X, y)
    assert search.best_params_["kernelfactorregressor__kernel"] is not None
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores[::2], scores[1::2])  # one output is carried by one factor
    assert search.predict(X).shape == y.shape


def test_cross_validation_with_holes_in_x_and_y(rng):
    X, y = waves(rng, 150, d=2)
    X[rng.random(X.shape) < 0.1] = np.nan
    y[::4] = np.nan
    assert cross_val_score(KernelFactorRegressor("rbf"), X, y, cv=3).mean() > 0.4
    X, labels = rings(rng)
    labels = np.where(np.arange(80) % 4 == 0, None, labels)
    scores = cross_val_score(KernelFactorClassifier(**SMALL), X, labels, cv=KFold(3))
    assert scores.mean() > 0.8
    proba = cross_val_predict(KernelFactorClassifier(**SMALL), *rings(rng), method="predict_proba")
    assert proba.shape == (80, 2)


def test_a_precomputed_kernel_is_sliced_by_rows_and_columns(rng):
    X, y = waves(rng)
    K = rbf_kernel(X, gamma=0.2)
    scores = cross_val_score(KernelFactorRegressor("precomputed", tol=0.01), K, y, cv=4)
    assert scores.mean() > 0.5
    for kernel in (kofa.Precomputed(), kofa.Precomputed):
        assert KernelFactorRegressor(kernel).__sklearn_tags__().input_tags.pairwise
    assert not KernelFactorRegressor().__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_factors_come_in_the_container_that_is_asked_for(rng, container):
    module = pytest.importorskip(container)
    for estimator in ALL:
        model, X, y = fit_small(estimator, rng)
        factors = clone(model).set_output(transform=container).fit_transform(X, y)
        assert isinstance(factors, module.DataFrame)
        assert list(factors.columns) == model.get_feature_names_out().tolist()
        assert factors.columns[0] == "factor1"
        assert_allclose(factors.to_numpy(), model.transform(X))


def test_factors_stand_beside_others(rng):
    X, y = waves(rng)
    both = FeatureUnion([("kofa", KernelFactorAnalysis(**SMALL)), ("raw", StandardScaler())])
    assert both.fit_transform(X, y).shape == (80, both["kofa"].n_factors_ + 4)
    assert both.get_feature_names_out()[0] == "kofa__factor1"


@pytest.mark.parametrize("estimator", ALL)
def test_copies_say_the_same(rng, estimator, tmp_path):
    model, X, y = fit_small(estimator, rng, columns={"a": [0], "b": slice(1, None)})
    joblib.dump(model, tmp_path / "model.joblib")
    copies = [pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")]
    copies.append(clone(model).fit(X, y))
    assert [copy.get_params() for copy in copies] == [model.get_params()] * 3
    for copy in copies:
        assert_array_equal(copy.transform(X), model.transform(X))
        if estimator is not KernelFactorAnalysis:
            assert_array_equal(copy.predict(X), model.predict(X))


@pytest.mark.parametrize("estimator", ALL)
def test_the_same_values_may_lie_in_memory_in_any_way(rng, estimator):
    model, X, y = fit_small(estimator, rng)
    apart = np.zeros((2 * len(X), 2 * X.shape[1]))[::2, ::2]
    apart[:] = X
    for same in (np.asfortranarray(X), apart, X.astype(">f8"), X.astype(object), X.tolist()):
        if isinstance(same, np.ndarray):
            same.setflags(write=False)
        again = clone(model).fit(same, y)
        assert_array_equal(again.transform(same), model.transform(X))


def test_rows_of_y_belong_to_those_of_x_whatever_their_names(rng):
    pd = pytest.importorskip("pandas")
    X, y = waves(rng)
    frame = pd.DataFrame(X, columns=list("abcd"), index=range(80, 160))
    targets = pd.DataFrame({"u": y, "v": -y}, index=range(80)[::-1])
    model = KernelFactorRegressor(**SMALL).fit(frame, targets)
    other = KernelFactorRegressor(**SMALL).fit(X, targets.to_numpy())
    assert_array_equal(model.predict(frame), other.predict(X))


@pytest.mark.parametrize("estimator", ALL)
def test_shown_before_and_after_fit(rng, estimator):
    model, _, _ = fit_small(estimator, rng)
    for shown in (estimator(), model, make_pipeline(StandardScaler(), model)):
        assert estimator.__name__ in repr(shown)
        assert estimator.__name__ in shown._repr_html_()


@pytest.mark.parametrize("estimator", ALL)
def test_use_before_fit_is_told(estimator):
    methods = {"transform", "predict", "predict_proba"} & set(dir(estimator))
    for method in methods:
        with pytest.raises(NotFittedError):
            getattr(estimator(), method)([[0.0, 1.0]])
    with pytest.raises(NotFittedError):
        estimator().get_feature_names_out()


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("shape", [(2, 3), (12, 1), (10, 60)])
def test_small_and_wide_tables_are_taken(rng, estimator, shape):
    X, y = rng.normal(size=shape), np.arange(shape[0]) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Z = estimator(tol=0.1).fit_transform(X, y)
    assert Z.shape[0] == shape[0]
    assert np.isfinite(Z).all()


def test_analysis_finds_what_the_model_finds(rng):
    X, _ = waves(rng)
    by_hand = kofa.FactorModel(
        {"X": kofa.Real(kernel="rbf")}, n_factors=SMALL["n_factors"], tol=SMALL["tol"]
    )
    assert_allclose(
        KernelFactorAnalysis(**SMALL).fit_transform(X), by_hand.fit({"X": X}).transform({"X": X})
    )


@pytest.mark.parametrize("estimator", [KernelFactorAnalysis(), KernelFactorRegressor()])
def test_words_in_x_are_named_by_their_column(estimator):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"age": [1.0, 2.0, 3.0], "sex": ["f", "m", "f"]})
    with pytest.raises(
        kofa.DataError, match=r"X, column 'sex': expected real numbers but got 'f'; enc"
    ):
        estimator.fit(X, [1.0, 2.0, 3.0])


def dated(n):
    import pandas as pd

    return {
        "dates": pd.date_range("2020-01-01", periods=n),
        "dates with a zone": pd.date_range("2020-01-01", periods=n, tz="UTC"),
        "durations": pd.to_timedelta(np.arange(n), "D"),
        "periods": pd.period_range("2020-01-01", periods=n),
        "lists": pd.Series([[1.0, 2.0]] * n),
    }


@pytest.mark.parametrize("kind", dated(1))
def test_columns_that_are_no_numbers_are_named(rng, kind):
    import pandas as pd

    X = pd.DataFrame({"a": rng.normal(size=20), "when": dated(20)[kind]})
    with pytest.raises(kofa.DataError, match=r"X, column 'when': .*; encode or convert it"):
        kofa.KernelFactorAnalysis().fit(X)


@pytest.mark.parametrize("kind", ["dates", "dates with a zone", "durations", "none known"])
@pytest.mark.parametrize("table", ["frame", "column", "array", "polars", "column of polars"])
def test_dates_are_no_numbers_of_nanoseconds(rng, kind, table):
    """Of dates alone, and of those of polars, scikit-learn makes numbers."""
    pd = pytest.importorskip("pandas")
    column = pd.to_datetime([None] * 20) if kind == "none known" else dated(20)[kind]
    column, X = pd.Series(column, name="when"), rng.normal(size=(20, 2))
    dates = column.to_frame()
    if "polars" in table:
        column = pytest.importorskip("polars").from_pandas(column)
        dates = column.to_frame()
    if table == "array":
        column = column.to_numpy(dtype="m8[ns]" if kind == "durations" else "M8[ns]")
        dates = column[:, None]
    if "column" not in table:
        for estimator in (kofa.KernelFactorRegressor(), kofa.KernelFactorClassifier()):
            with pytest.raises(kofa.DataError, match=r"X, column .*: expected real numbers but"):
                estimator.fit(dates, [1, 2] * 10)
    with pytest.raises(kofa.DataError, match=r"y, column .*: expected real numbers but"):
        kofa.KernelFactorRegressor().fit(X, dates if table == "frame" else column)


def test_tables_of_polars_that_are_only_planned_are_refused(rng):
    pl = pytest.importorskip("polars")
    X = pl.DataFrame(rng.normal(size=(20, 2)))
    for estimator in (kofa.KernelFactorRegressor(), kofa.KernelFactorClassifier()):
        for given in ((X.lazy(), [1, 2] * 10), (X, X.select("column_0").lazy())):
            with pytest.raises(kofa.DataError, match=r"[Xy]: .*LazyFrame; pass \.collect\(\)"):
                estimator.fit(*given)
