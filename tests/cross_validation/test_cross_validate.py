"""Cross-validation is the loop that one would write by hand."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import xlogy
from sklearn import metrics
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, StratifiedKFold

import kofa
from conftest import KINDS, mixed, two_views
from kofa.views import View

Z90 = (0.05, 0.95)


def regression(**options):
    return kofa.FactorModel({"x": kofa.Real(), "y": kofa.Real()}, outputs=["y"], **options)


def soon(iteration):
    """Stop a fit that need not be good."""
    return iteration.n_iter >= 5


def value(table, score, fold="all", column="all", view=None):
    rows = (table.fold == fold) & (table.column == column) & (table.score == score)
    rows &= True if view is None else table["view"] == view
    assert rows.sum() == 1
    return table.value[rows].item()


def frames(data):
    """The same tables with names of samples."""
    n = len(next(iter(data.values())))
    return {k: pd.DataFrame(v, index=[f"s{i}" for i in range(n)]) for k, v in data.items()}


@pytest.fixture
def data(rng):
    data = two_views(rng, n=40, dims=(5, 3))
    data["y"][rng.random((40, 3)) < 0.2] = np.nan
    data["x"][3] = np.nan
    return data


# ---------------------------------------------------------------- as by hand


def test_scores_of_real_columns_are_those_of_a_loop(data):
    found = kofa.cross_validate(regression(), data, cv=4)
    folds = KFold(4, shuffle=True, random_state=0).split(data["x"])
    for k, (train, test) in enumerate(folds):
        model = regression().fit({name: table[train] for name, table in data.items()})
        new = {"x": data["x"][test]}
        mean, (low, high) = model.predict(new), model.predict_quantiles(new, "y", Z90)
        truth = data["y"][test]
        error = np.nansum((truth - mean) ** 2, axis=0)
        r2 = 1 - error / np.nansum((truth - np.nanmean(data["y"][train], axis=0)) ** 2, axis=0)
        n = (~np.isnan(truth)).sum(axis=0)
        inside = ((truth >= low) & (truth <= high)).sum(axis=0) / n
        expected = {"r2": r2, "rmse": np.sqrt(error / n), "coverage": inside}
        for score, by_column in expected.items():
            for j in range(3):
                assert value(found, score, k, j) == pytest.approx(by_column[j], abs=1e-12)
            assert value(found, score, k) == pytest.approx(by_column.mean(), abs=1e-12)
    assert set(found.score) == {"r2", "rmse", "coverage"}
    assert found.columns.tolist() == ["fold", "view", "column", "score", "value", "n"]


def test_scores_of_other_kinds_are_those_of_a_loop(rng):
    data = mixed(rng, n=60)
    outputs = ["binary", "label", "count", "positive"]
    model = kofa.FactorModel(KINDS, outputs=outputs, callback=soon)
    found = kofa.cross_validate(model, data, outputs=outputs, cv=[(range(40), range(40, 60))])
    fitted = model.fit({name: table[:40] for name, table in data.items()})
    new = {"real": data["real"][40:]}
    old, truth = ({n: data[n][part] for n in outputs} for part in (slice(40), slice(40, None)))

    p = fitted.predict_proba(new, "binary")
    base = np.broadcast_to((old["binary"].sum(axis=0) + 0.5) / 41, p.shape)
    for j in range(4):
        t = truth["binary"][:, j]
        loss = metrics.log_loss(t, p[:, j])
        expected = {
            "auc": metrics.roc_auc_score(t, p[:, j]),
            "accuracy": (fitted.predict(new, "binary")[:, j] == t).mean(),
            "log_loss": loss,
            "d2": 1 - loss / metrics.log_loss(t, base[:, j]),
        }
        for score, one in expected.items():
            assert value(found, score, 0, j, "binary") == pytest.approx(one, abs=1e-12)

    p, classes = fitted.predict_proba(new, "label"), fitted.classes_["label"]
    loss = metrics.log_loss(list(truth["label"]), p, labels=list(classes))
    n = np.array([(old["label"] == c).sum() for c in classes])
    base = np.broadcast_to((n + 0.5) / (40 + 0.5 * len(n)), p.shape)
    none = metrics.log_loss(list(truth["label"]), base, labels=list(classes))
    right = (fitted.predict(new, "label") == truth["label"]).mean()
    assert value(found, "log_loss", 0, view="label") == pytest.approx(loss, abs=1e-12)
    assert value(found, "d2", 0, view="label") == pytest.approx(1 - loss / none, abs=1e-12)
    assert value(found, "accuracy", 0, view="label") == pytest.approx(right, abs=1e-12)

    m, t = fitted.predict(new, "count"), truth["count"]
    base = (old["count"].sum(axis=0) + 0.5) / 40
    own, none = ((xlogy(t, t / at) - t + at).sum(axis=0) for at in (m, base))
    for j in range(4):
        d2 = value(found, "d2", 0, j, "count")
        assert d2 == pytest.approx(1 - own[j] / none[j], abs=1e-12)

    (median,) = fitted.predict_quantiles(new, "positive", [0.5])
    t, base = np.log(truth["positive"]), np.log(old["positive"]).mean(axis=0)
    d2 = 1 - ((t - np.log(median)) ** 2).sum(axis=0) / ((t - base) ** 2).sum(axis=0)
    assert value(found, "d2", 0, view="positive") == pytest.approx(d2.mean(), abs=1e-12)


def test_the_fold_all_has_the_score_of_all_predictions(data):
    found, predictions = kofa.cross_validate(
        regression(), data, cv=3, scoring=["rmse"], return_predictions=True
    )
    for j in range(3):
        own = predictions[predictions.column == j]
        rmse = np.sqrt(((own.truth - own["mean"]) ** 2).mean())
        assert value(found, "rmse", "all", j) == pytest.approx(rmse, abs=1e-12)
    assert len(predictions) == (~np.isnan(data["y"])).sum()
    assert found[(found.fold == "all") & (found.column == "all")].n.item() == len(predictions)


def test_folds_of_one_sample_have_a_pooled_r2(data):
    found = kofa.cross_validate(
        regression(), {k: v[:12] for k, v in data.items()}, cv=LeaveOneOut()
    )
    assert 0 < value(found, "r2") < 1
    assert found.fold.nunique() == 13


def test_predictions_are_those_of_the_model(data):
    train, test = np.arange(30), np.arange(30, 40)
    _, found = kofa.cross_validate(
        regression(), frames(data), cv=[(train, test)], return_predictions=True
    )
    model = regression().fit({name: table[train] for name, table in data.items()})
    low, high = model.predict_quantiles({"x": data["x"][test]}, "y", Z90)
    known = ~np.isnan(data["y"][test])
    assert found["sample"].tolist() == [f"s{i + 30}" for i in np.nonzero(known)[0]]
    assert found.lower.to_numpy() == pytest.approx(low[known], abs=1e-12)
    assert found.upper.to_numpy() == pytest.approx(high[known], abs=1e-12)
    assert found.truth.tolist() == data["y"][test][known].tolist()
    assert set(found.kind) == {"number"}
    for level in (0.3, 0.95):
        low, high = model.predict_quantiles(
            {"x": data["x"][test]}, "y", [0.5 - level / 2, 0.5 + level / 2]
        )
        inside = (data["y"][test] >= low) & (data["y"][test] <= high)
        assert (found.level <= level).tolist() == inside[known].tolist()


# ---------------------------------------------------------------- nothing is seen


def predictions_of_fold(data, test, **options):
    train = np.setdiff1d(np.arange(40), test)
    model = kofa.FactorModel(**options)
    _, found = kofa.cross_validate(
        model, data, outputs=["y"], cv=[(train, test)], return_predictions=True
    )
    return found.set_index(["sample", "column"])["mean"]


@pytest.mark.parametrize("outputs", [None, ["y"]])
def test_outputs_of_test_samples_are_not_seen(rng, outputs):
    data = two_views(rng, n=40, dims=(5, 3))
    test = np.arange(0, 40, 4)
    garbled = {"x": data["x"], "y": data["y"].copy()}
    garbled["y"][test] = 1e3 * rng.normal(size=(10, 3))
    before = predictions_of_fold(data, test, outputs=outputs)
    assert before.equals(predictions_of_fold(garbled, test, outputs=outputs))


@pytest.mark.parametrize("outputs", [None, ["y"]])
def test_no_view_of_test_samples_is_seen_in_fit(rng, outputs):
    data = two_views(rng, n=40, dims=(5, 3))
    test = np.arange(0, 40, 4)
    garbled = {name: table.copy() for name, table in data.items()}
    for table in garbled.values():
        table[test[:5]] = 1e3 * rng.normal(size=(5, table.shape[1]))
    before = predictions_of_fold(data, test, outputs=outputs)
    after = predictions_of_fold(garbled, test, outputs=outputs)
    kept = before.index.get_level_values("sample").isin(test[5:])
    assert before[kept].equals(after[kept])
    assert not before[~kept].equals(after[~kept])


@pytest.mark.parametrize(("declared", "asked"), [(["y", "w"], ["y"]), (None, ["y", "w"])])
def test_neither_outputs_of_the_model_nor_those_asked_for_are_given(rng, declared, asked):
    data = two_views(rng, n=40) | {"w": rng.normal(size=(40, 2))}
    data["w"] += data["y"][:, :2]
    model = kofa.FactorModel(dict.fromkeys("xyw", kofa.Real()), outputs=declared)
    fold = [(np.arange(30), np.arange(30, 40))]
    _, found = kofa.cross_validate(model, data, outputs=asked, cv=fold, return_predictions=True)
    model.fit({name: table[:30] for name, table in data.items()})
    expected = model.predict({"x": data["x"][30:]}, "y")
    others = model.predict({"x": data["x"][30:], "w": data["w"][30:]}, "y")
    means = found["mean"][found["view"] == "y"].to_numpy()
    assert means == pytest.approx(expected.ravel(), abs=1e-12)
    # Outputs tell about no view, also where they are given.
    assert (means == pytest.approx(others.ravel(), abs=1e-12)) == (declared is not None)


def test_nothing_that_was_passed_is_changed(data):
    rng = np.random.default_rng(3)
    model = regression(random_state=rng)
    before, state = copy.deepcopy(data), rng.bit_generator.state
    kofa.cross_validate(model, data, cv=2, return_predictions=True)
    assert not hasattr(model, "views_")
    assert rng.bit_generator.state == state
    assert all(np.array_equal(data[k], before[k], equal_nan=True) for k in data)


def test_a_checkpoint_is_not_touched(data, tmp_path):
    kofa.cross_validate(regression(checkpoint=tmp_path / "c", checkpoint_every=0), data, cv=2)
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- tables


def test_tables_of_any_type_give_the_same(data):
    expected = kofa.cross_validate(regression(), data, cv=2)
    lists = {name: table.tolist() for name, table in data.items()}
    masked = {name: np.ma.masked_invalid(table) for name, table in data.items()}
    for given in (frames(data), lists, masked):
        pd.testing.assert_frame_equal(kofa.cross_validate(regression(), given, cv=2), expected)


def test_polars_gives_the_same(data):
    pl = pytest.importorskip("polars")
    expected = kofa.cross_validate(regression(), data, cv=2)
    found = kofa.cross_validate(regression(), {k: pl.DataFrame(v) for k, v in data.items()}, cv=2)
    assert found.value.tolist() == expected.value.tolist()
    assert found.column.tolist()[3:5] == ["column_0", "column_0"]


def test_samples_are_matched_by_name(data):
    tables = frames(data)
    shuffled = tables | {"y": tables["y"].iloc[::-1].drop("s3")}
    shuffled["x"] = tables["x"].drop(["s5", "s30"])
    holed = {name: table.copy() for name, table in data.items()}
    holed["x"][[5, 30]], holed["y"][3] = np.nan, np.nan
    # s3 is in x; the two that x lacks come last among the samples.
    order = [f"s{i}" for i in range(40) if i not in (5, 30)] + ["s30", "s5"]
    positions = [int(name[1:]) for name in order]
    test = np.arange(30, 40)
    cv = [(np.arange(30), test)]
    _, found = kofa.cross_validate(regression(), shuffled, cv=cv, return_predictions=True)
    same = {name: table[positions] for name, table in holed.items()}
    _, expected = kofa.cross_validate(regression(), same, cv=cv, return_predictions=True)
    assert found["sample"].tolist() == [order[i] for i in expected["sample"]]
    assert found["mean"].to_numpy() == pytest.approx(expected["mean"].to_numpy(), rel=1e-6)


def test_test_samples_may_be_in_different_tables(rng):
    data = frames(two_views(rng, n=30) | {"w": rng.normal(size=(30, 2))})
    data["x"], data["w"] = data["x"].drop("s29"), data["w"].drop("s28")
    views = dict.fromkeys("xyw", kofa.Real())
    found = kofa.cross_validate(
        kofa.FactorModel(views, outputs=["y"]), data, cv=[(np.arange(28), [28, 29])]
    )
    assert found.n[0] == 2 * data["y"].shape[1]


def test_a_precomputed_kernel_loses_the_columns_of_test_samples(rng):
    x = rng.normal(size=(30, 3))
    data = {"k": x @ x.T, "y": x[:, [0]] + 0.1 * rng.normal(size=(30, 1))}
    model = kofa.FactorModel(
        {"k": kofa.Real(kernel="precomputed"), "y": kofa.Real()}, outputs=["y"]
    )
    train, test = np.arange(20), np.arange(20, 30)
    _, found = kofa.cross_validate(model, data, cv=[(train, test)], return_predictions=True)
    fitted = model.fit({"k": data["k"][:20, :20], "y": data["y"][:20]})
    expected = fitted.predict({"k": data["k"][20:, :20]})
    assert found["mean"].to_numpy() == pytest.approx(expected.ravel(), abs=1e-12)
    named = frames(data)
    named["k"].columns = named["k"].index
    named["k"] = named["k"].iloc[:, ::-1]
    _, again = kofa.cross_validate(model, named, cv=[(train, test)], return_predictions=True)
    assert again["mean"].to_numpy() == pytest.approx(expected.ravel(), abs=1e-12)


def test_labels_may_be_missing_and_of_any_type(rng):
    x = rng.normal(size=(60, 2))
    labels = pd.Series(np.where(x[:, 0] > 0, "up", "down"), dtype="category")
    labels[::10] = None
    views = {"x": kofa.Real(), "label": kofa.Categorical()}
    model = kofa.FactorModel(views, outputs=["label"])
    found, predictions = kofa.cross_validate(
        model, {"x": pd.DataFrame(x), "label": labels}, cv=3, return_predictions=True
    )
    assert value(found, "accuracy") > 0.8
    assert found.n.max() == 54
    assert set(predictions.column) == {"up", "down"}
    assert len(predictions) == 108


def test_mudata_is_read_as_in_fit(rng):
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    data = two_views(rng, n=40)
    names = [f"c{i}" for i in range(40)]
    mods = {}
    for k, v in data.items():
        columns = pd.DataFrame(index=[f"{k}{j}" for j in range(v.shape[1])])
        mods[k] = anndata.AnnData(v, obs=pd.DataFrame(index=names), var=columns)
    with mudata.set_options(pull_on_update=False):
        given = mudata.MuData(mods)
    expected = kofa.cross_validate(regression(), data, cv=2)
    for views in (regression().views, None):
        model = kofa.FactorModel(views, outputs=["y"])
        found = kofa.cross_validate(model, given, cv=2)
        assert found.value.tolist() == expected.value.tolist()
    assert "X_kofa" not in given.obsm


def test_kinds_from_outside_are_scored_by_what_they_predict(rng):
    class Own(View):
        likelihood = type("OwnLikelihood", (kofa.Real.likelihood,), {})

    data = two_views(rng, n=40)
    views = {"x": kofa.Real(), "y": Own()}
    found = kofa.cross_validate(kofa.FactorModel(views, outputs=["y"]), data, cv=2)
    expected = kofa.cross_validate(regression(), data, cv=2)
    assert found.value.tolist() == expected.value.tolist()


# ---------------------------------------------------------------- running


def test_results_and_warnings_are_the_same_for_any_number_of_jobs(data):
    found = []
    for n_jobs in (None, 2):
        with pytest.warns(ConvergenceWarning) as caught:
            tables = kofa.cross_validate(
                regression(max_iter=2), data, cv=3, n_jobs=n_jobs, return_predictions=True
            )
        found.append([*tables, [str(one.message) for one in caught]])
    pd.testing.assert_frame_equal(found[0][0], found[1][0], check_exact=True)
    pd.testing.assert_frame_equal(found[0][1], found[1][1], check_exact=True)
    assert found[0][2] == found[1][2]


def test_a_generator_is_copied_for_each_fold(data):
    model = regression(random_state=np.random.default_rng(5), n_init=2)
    one, two = (kofa.cross_validate(model, data, cv=2) for _ in range(2))
    pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_warnings_of_fits_are_passed_on_once_with_their_folds(data):
    with pytest.warns(ConvergenceWarning, match=r"^Folds 0, 1: The bound") as caught:
        kofa.cross_validate(regression(max_iter=1), data, cv=2)
    assert [one.filename for one in caught] == [__file__]


def test_a_column_without_test_values_has_no_score_in_that_fold(data):
    data["y"][30:, 1] = np.nan
    folds = [(np.arange(30), np.arange(30, 40)), (np.arange(10, 40), np.arange(10))]
    found = kofa.cross_validate(regression(), data, cv=folds)
    empty = found[(found.fold == 0) & (found.column == 1)]
    assert len(empty) == 3
    assert empty.value.isna().all()
    assert not empty.n.any()
    others = [value(found, "r2", 0, j) for j in (0, 2)]
    assert value(found, "r2", 0) == pytest.approx(np.mean(others), abs=1e-12)
    assert value(found, "r2", "all", 1) == pytest.approx(value(found, "r2", 1, 1), abs=1e-12)


def test_a_fold_without_any_test_value_has_no_predictions(data):
    data["y"][30:] = np.nan
    folds = [(np.arange(30), np.arange(30, 40)), (np.arange(10, 40), np.arange(10))]
    found, predictions = kofa.cross_validate(
        regression(), data, cv=folds, scoring="r2", return_predictions=True
    )
    assert found.value[found.fold == 0].isna().all()
    assert value(found, "r2") == pytest.approx(value(found, "r2", 1), abs=1e-12)
    assert predictions.fold.unique().tolist() == [1]
    assert predictions["sample"].dtype.kind == "i"
    found, none = kofa.cross_validate(regression(), data, cv=folds[:1], return_predictions=True)
    assert kofa.score_summary(found)["mean"].isna().all()
    with pytest.raises(kofa.DataError, match="Expected predictions but there are none"):
        kofa.calibration_table(none)


def test_a_class_that_no_training_sample_has_is_warned_of(rng):
    x = rng.normal(size=(40, 2))
    labels = np.where(x[:, 0] > 0, "up", "down").astype(object)
    labels[4] = "odd"
    views = {"x": kofa.Real(), "label": kofa.Categorical()}
    model = kofa.FactorModel(views, outputs=["label"])
    with pytest.warns(
        UserWarning, match=r"View 'label': no training sample of fold \d has .*'odd'"
    ):
        found, predictions = kofa.cross_validate(
            model, {"x": x, "label": labels}, cv=2, return_predictions=True
        )
    assert np.isfinite(found.value[found.score != "auc"]).all()
    odd = predictions[(predictions["sample"] == 4) & (predictions.column == "odd")]
    assert odd["mean"].item() == 0.0
    assert odd.truth.item() == 1.0


@pytest.mark.parametrize("form", [list, np.array, pd.Series, pd.DataFrame, pl.Series])
def test_a_class_of_an_input_that_no_training_sample_has_is_missing(rng, form):
    z = rng.normal(size=40)
    labels = np.where(z > 0, "up", "down").astype(object)
    known = labels.copy()
    labels[4], known[4] = "odd", None
    model = kofa.FactorModel({"label": kofa.Categorical(), "y": kofa.Real()}, outputs=["y"])
    folds = [(np.arange(10, 40), np.arange(10))]
    options = {"cv": folds, "scoring": "r2", "return_predictions": True}
    index = {"index": [f"s{i}" for i in range(40)]} if form in (pd.Series, pd.DataFrame) else {}
    y = pd.Series(z, **index) if index else z
    with pytest.warns(UserWarning, match=r"'label': no training .* fold 0 .*'odd'.* it is missing"):
        _, found = kofa.cross_validate(model, {"label": form(labels, **index), "y": y}, **options)
    _, expected = kofa.cross_validate(model, {"label": form(known, **index), "y": y}, **options)
    pd.testing.assert_frame_equal(found, expected)


# ---------------------------------------------------------------- folds and scores


def binary_data(rng, n=60):
    x = rng.normal(size=(n, 3))
    return {"x": x, "y": (x[:, 0] > 0.8).astype(float)}


def binary():
    return kofa.FactorModel({"x": kofa.Real(), "y": kofa.Binary()}, outputs=["y"])


def test_folds_of_classes_are_stratified(rng):
    data = binary_data(rng)
    _, found = kofa.cross_validate(binary(), data, cv=3, return_predictions=True)
    expected = StratifiedKFold(3, shuffle=True, random_state=0).split(data["x"], data["y"])
    for k, (_, test) in enumerate(expected):
        assert found["sample"][found.fold == k].tolist() == test.tolist()


def test_groups_are_left_out_together(data):
    groups = np.arange(40) % 5
    _, found = kofa.cross_validate(regression(), data, cv=5, groups=groups, return_predictions=True)
    assert (found.groupby("fold")["sample"].agg(lambda s: (s % 5).nunique()) == 1).all()
    tables = frames(data)
    series = pd.Series(groups, index=tables["x"].index).iloc[::-1]
    _, again = kofa.cross_validate(
        regression(), tables, cv=5, groups=series, return_predictions=True
    )
    assert again["mean"].tolist() == found["mean"].tolist()


def test_samples_may_be_tested_several_times(data):
    cv = ShuffleSplit(3, test_size=10, random_state=0)
    _, found = kofa.cross_validate(regression(), data, cv=cv, return_predictions=True)
    assert (found.groupby("fold")["sample"].nunique() <= 10).all()


def test_scoring_chooses_scores(data):
    found = kofa.cross_validate(regression(), data, cv=2, scoring=("rmse", "r2"))
    assert set(found.score) == {"rmse", "r2"}
    assert set(kofa.cross_validate(regression(), data, cv=2, scoring="r2").score) == {"r2"}


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outputs": ["z"]}, "Unknown output 'z'"),
        ({"outputs": "y"}, r"write outputs=\['y'\]"),
        ({"outputs": ["x", "y"]}, "at least one view"),
        ({"outputs": []}, "which views to predict"),
        ({"outputs": ["x"]}, "at least one view to predict the outputs from"),
        ({"cv": 1}, "cv to be a number of folds of at least 2"),
        ({"cv": True}, "cv to be a number of folds"),
        ({"cv": "five"}, "cv to be a number of folds"),
        ({"cv": KFold}, "cv to be a number of folds"),
        ({"cv": 99}, "at most as many folds as samples"),
        ({"cv": []}, "at least one fold"),
        ({"cv": [(range(10), range(5, 20))]}, "[Ss]ample number 5 is both"),
        ({"cv": [(range(10), range(30, 50))]}, r"positions of .* samples below 40"),
        ({"cv": [(range(10), [])]}, "Fold 0 has no test samples"),
        ({"cv": [([], range(10))]}, "Fold 0 has no training samples"),
        ({"groups": [1, 2, 3]}, "a group for each of the 40 samples but got 3"),
        ({"groups": 3}, "a group for every sample but got 3"),
        ({"scoring": "r3"}, "Unknown score 'r3'; there is 'r2'"),
        ({"scoring": ["auc"]}, "No output has the score 'auc'; there is 'r2', 'rmse'"),
        ({"scoring": []}, "scoring to be a name, a list of names or None"),
        ({"scoring": 3}, "scoring to be a name, a list of names or None"),
        ({"n_jobs": 0}, "n_jobs to be a whole number other than 0"),
        ({"n_jobs": "all"}, "n_jobs to be a whole number other than 0"),
    ],
)
def test_wrong_options_are_named(data, options, message):
    with pytest.raises(kofa.KofaError, match=message):
        kofa.cross_validate(regression(), data, **options)


def test_splitters_that_need_groups_say_so(data):
    from sklearn.model_selection import GroupKFold

    with pytest.raises(kofa.DeclarationError, match=r"cannot be split: .*groups"):
        kofa.cross_validate(regression(), data, cv=GroupKFold(3))


def test_a_group_is_needed_for_each_sample(data):
    with pytest.raises(kofa.DataError, match="a group for every sample but 's0' has none"):
        kofa.cross_validate(regression(), frames(data), groups=pd.Series([1], index=["s1"]))


def test_wrong_data_are_named(data):
    with pytest.raises(kofa.DataError, match="Expected a dict of view name"):
        kofa.cross_validate(regression(), data["x"])
    with pytest.raises(kofa.DataError, match="'y': it is declared but not in the data"):
        kofa.cross_validate(regression(), {"x": data["x"]})
    with pytest.raises(kofa.DataError, match=r"[Uu]nknown view 'z'"):
        kofa.cross_validate(regression(), data | {"z": data["x"]})
    with pytest.raises(kofa.DeclarationError, match="which views to predict"):
        kofa.cross_validate(kofa.FactorModel(), data)


def test_a_view_through_a_kernel_cannot_be_scored(data):
    model = kofa.FactorModel({"x": kofa.Real(), "y": kofa.Real(kernel="rbf")})
    with pytest.raises(kofa.DeclarationError, match="View 'y': a view that is explained through"):
        kofa.cross_validate(model, data, outputs=["y"])


def test_a_column_may_not_be_called_all(data):
    data["y"] = pd.DataFrame(data["y"], columns=["all", "b", "c"])
    with pytest.raises(kofa.DataError, match=r"View 'y', column 'all': .*; rename the column"):
        kofa.cross_validate(regression(), data)


def test_something_else_than_a_model_is_refused(data):
    with pytest.raises(kofa.DeclarationError, match=r"model to be a kofa\.FactorModel"):
        kofa.cross_validate(kofa.KernelFactorRegressor(), data)


def test_a_column_without_training_values_is_named_with_the_fold(data):
    data["y"][:30, 1] = np.nan
    folds = [(np.arange(20, 40), np.arange(20)), (np.arange(20), np.arange(20, 40))]
    with pytest.raises(kofa.DataError, match=r"^Fold 1: View 'y', column 1: all values are"):
        kofa.cross_validate(regression(), data, cv=folds)


def test_errors_of_a_fit_name_the_fold(rng):
    labels = np.repeat(["a", "b"], 20)
    views = {"x": kofa.Real(), "y": kofa.Categorical()}
    model = kofa.FactorModel(views, outputs=["y"])
    data = {"x": rng.normal(size=(40, 2)), "y": labels}
    folds = [(np.arange(10, 40), np.arange(10)), (np.arange(15), np.arange(30, 40))]
    with (
        pytest.warns(UserWarning, match="no training sample of fold 1"),
        pytest.raises(kofa.DataError, match=r"^Fold 1: View 'y': expected at least two") as caught,
    ):
        kofa.cross_validate(model, data, cv=folds)
    from_another_process = pickle.loads(pickle.dumps(caught.value))
    assert str(from_another_process) == str(caught.value)


# ---------------------------------------------------------------- several models


def test_compare_uses_the_same_folds(data):
    models = {"free": regression(), "short": regression(max_iter=1)}
    with pytest.warns(ConvergenceWarning, match=r"^Model 'short', folds 0, 1, 2: The bound was"):
        found, predictions = kofa.compare(models, data, cv=3, return_predictions=True)
    assert found.columns.tolist()[:2] == ["model", "fold"]
    alone = kofa.cross_validate(models["free"], data, cv=3)
    own = found[found.model == "free"].drop(columns="model").reset_index(drop=True)
    pd.testing.assert_frame_equal(own, alone)
    samples = [part["sample"].tolist() for _, part in predictions.groupby("model")]
    assert samples[0] == samples[1]


def test_models_see_only_the_views_that_they_declare(rng):
    data = two_views(rng, n=40) | {"w": rng.normal(size=(40, 2))}
    more = kofa.FactorModel(dict.fromkeys("xyw", kofa.Real()), outputs=["y"])
    found = kofa.compare({"x": regression(), "x and w": more}, data, cv=2)
    for name, model, views in (("x", regression(), "xy"), ("x and w", more, "xyw")):
        alone = kofa.cross_validate(model, {view: data[view] for view in views}, cv=2)
        assert found.value[found.model == name].tolist() == alone.value.tolist()
    with pytest.raises(kofa.DataError, match=r"[Uu]nknown view 'v'"):
        kofa.compare({"x": regression(), "x and w": more}, data | {"v": data["w"]})


def test_models_with_different_outputs_are_refused(data):
    models = {"a": regression(), "b": kofa.FactorModel(regression().views)}
    with pytest.raises(
        kofa.DeclarationError, match="different outputs: 'b' has none; pass outputs"
    ):
        kofa.compare(models, data)
    assert set(kofa.compare(models, data, outputs=["y"], cv=2).model) == {"a", "b"}


@pytest.mark.parametrize("models", [{}, [regression()], {"a": 1}])
def test_models_have_names(data, models):
    with pytest.raises(kofa.DeclarationError, match="models"):
        kofa.compare(models, data)


# ---------------------------------------------------------------- against predicting the mean


@pytest.mark.filterwarnings("ignore")
def test_the_baseline_is_what_the_training_samples_say():
    data = mixed(np.random.default_rng(1), n=60)
    views = {name: KINDS[name] for name in ("real", "positive", "binary", "count")}
    given = {name: data[name] for name in views}
    model = kofa.FactorModel(views, outputs=["positive", "binary", "count"], callback=soon)
    cv = KFold(3, shuffle=True, random_state=0)
    table = kofa.cross_validate(model, given, cv=cv, baseline=True)
    assert list(table.columns) == ["fold", "view", "column", "score", "value", "baseline", "n"]
    without = kofa.cross_validate(model, given, cv=cv)
    pd.testing.assert_frame_equal(table.drop(columns="baseline"), without)
    train, test = next(cv.split(given["real"]))
    first = table[table.fold == 0].set_index(["view", "column", "score"]).baseline
    for j in range(4):
        mean = given["count"][train, j].mean()
        error = np.sqrt(((given["count"][test, j] - mean) ** 2).mean())
        assert first["count", j, "rmse"] == pytest.approx(error)
        p = (given["binary"][train, j].sum() + 0.5) / (len(train) + 1)
        loss = metrics.log_loss(given["binary"][test, j], np.full(len(test), p), labels=[0, 1])
        assert first["binary", j, "log_loss"] == pytest.approx(loss)
        right = ((p > 0.5) == given["binary"][test, j]).mean()
        assert first["binary", j, "accuracy"] == pytest.approx(right)
    exact = {"r2": 0.0, "d2": 0.0, "auc": 0.5}
    for score, expected in exact.items():
        rows = table[(table.score == score) & (table.fold != "all")].baseline.dropna()
        assert np.allclose(rows, expected)
    assert table[table.score == "coverage"].baseline.isna().all()
    summary = kofa.score_summary(table).set_index(["view", "column", "score"]).baseline
    each = table[table.fold != "all"].groupby(["view", "column", "score"]).baseline.mean()
    assert summary["count", "all", "rmse"] == pytest.approx(each["count", "all", "rmse"])


@pytest.mark.filterwarnings("ignore:.*no sample has a value together")
@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("n_together", [0, 1, 2])
def test_folds_may_lose_the_last_samples_that_views_have_together(rng, n_together, kernel):
    z = rng.standard_normal((48, 2))
    x, y = z @ rng.standard_normal((2, 4)), z @ rng.standard_normal((2, 3))
    x[24:], y[n_together:24, 0] = np.nan, np.nan
    views = {"x": kofa.Real(kernel=kernel), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=["y"], callback=soon)
    _, predicted = kofa.cross_validate(model, {"x": x, "y": y}, cv=4, return_predictions=True)
    assert np.isfinite(predicted["mean"]).all()
