"""Summaries of scores and predictions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import StratifiedKFold

import kofa
from conftest import mixed, two_views

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def of_kinds():
    """Scores and predictions of a binary, a categorical and a count view."""
    data = mixed(np.random.default_rng(8), n=60)
    views = {
        "real": kofa.Real(),
        "binary": kofa.Binary(),
        "label": kofa.Categorical(),
        "count": kofa.Count(),
    }
    data = {name: data[name] for name in views}
    outputs = ["binary", "label", "count"]
    model = kofa.FactorModel(views, outputs=outputs, callback=lambda one: one.n_iter >= 5)
    folds = list(StratifiedKFold(2).split(data["real"], list(data["label"])))
    return data, *kofa.cross_validate(model, data, cv=folds, return_predictions=True)


@pytest.fixture(scope="module")
def compared():
    data = two_views(np.random.default_rng(7), n=40)
    views = {"x": kofa.Real(), "y": kofa.Real()}
    models = {"outputs": kofa.FactorModel(views, outputs=["y"]), "plain": kofa.FactorModel(views)}
    return kofa.compare(models, data, outputs=["y"], cv=4, return_predictions=True)


def test_a_summary_has_mean_and_spread_over_folds(of_kinds):
    _, scores, _ = of_kinds
    found = kofa.score_summary(scores).set_index(["view", "column", "score"])
    key = ("binary", 2, "auc")
    own = scores[(scores["view"] == "binary") & (scores.column == 2) & (scores.score == "auc")]
    folds = own.value[own.fold != "all"]
    assert found.loc[key, "mean"] == pytest.approx(folds.mean())
    assert found.loc[key, "sd"] == pytest.approx(folds.std(ddof=1))
    assert found.loc[key, "pooled"] == own.value[own.fold == "all"].item()
    assert found.loc[key, "folds"] == 2
    assert "difference" not in found


def test_a_summary_of_models_has_paired_differences(compared):
    scores, _ = compared
    found = kofa.score_summary(scores)
    rows = (scores.score == "r2") & (scores.column == 1) & (scores.fold != "all")
    first, second = (
        scores.value[rows & (scores.model == m)].to_numpy() for m in scores.model.unique()
    )
    own = found[(found.model == "plain") & (found.score == "r2") & (found.column == 1)]
    gain = second - first
    assert own.difference.item() == pytest.approx(gain.mean())
    assert own.se.item() == pytest.approx(gain.std(ddof=1) / 2)
    assert (found[found.model == "outputs"].difference == 0).all()


def test_differences_are_of_folds_that_both_models_have():
    scores = pd.DataFrame(
        {
            "model": list("aaabbb"),
            "fold": [0, 1, "all", 0, 1, "all"],
            "view": "y",
            "column": "all",
            "score": "auc",
            "value": [0.5, np.nan, 0.5, 0.7, 0.9, 0.8],
            "n": 5,
        }
    )
    found = kofa.score_summary(scores)
    assert found.difference[1] == pytest.approx(0.2)
    assert found.folds.tolist() == [1, 2]
    assert np.isnan(found.se[1])


def test_calibration_of_numbers_is_the_coverage_of_intervals(compared):
    scores, predictions = compared
    found = kofa.calibration_table(predictions)
    assert found.columns.tolist() == [
        "model", "view", "column", "kind", "nominal", "observed", "n",
    ]  # fmt: skip
    for model, part in found.groupby("model"):
        own = part[part.column == "all"]
        assert own.nominal.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
        assert own.observed.is_monotonic_increasing
        rows = (scores.score == "coverage") & (scores.fold == "all") & (scores.model == model)
        for column in ("all", 0, 3):
            ninety = part[(part.column == column) & (part.nominal == 0.9)].observed.item()
            assert ninety == pytest.approx(scores.value[rows & (scores.column == column)].item())


def test_calibration_of_probabilities_is_a_reliability_curve(of_kinds):
    _, _, predictions = of_kinds
    found = kofa.calibration_table(predictions, bins=5)
    for view, column in (("binary", "all"), ("binary", 1), ("label", "all"), ("label", "bee")):
        rows = predictions["view"] == view
        rows &= True if column == "all" else predictions.column == column
        own = found[(found["view"] == view) & (found.column == column)]
        given = predictions[rows]
        observed, mean = calibration_curve(given.truth, given["mean"], n_bins=5)
        assert own.observed.to_numpy() == pytest.approx(observed)
        assert own.nominal.to_numpy() == pytest.approx(mean)
        assert own.n.sum() == rows.sum()


def test_views_with_one_column_have_one_curve(compared):
    _, predictions = compared
    found = kofa.calibration_table(predictions[predictions.column == 0])
    assert set(found.column) == {"all"}


def test_confusion_counts_pairs_of_classes(of_kinds):
    data, scores, predictions = of_kinds
    found = kofa.confusion_table(predictions)
    labels = found[found["view"] == "label"]
    assert set(labels.column) == {"all"}
    table = labels.pivot(index="truth", columns="predicted", values="n")
    own = predictions[predictions["view"] == "label"]
    wide = own.pivot(index="sample", columns="column", values="mean")
    expected = confusion_matrix(
        list(data["label"][wide.index]), wide.idxmax(axis=1), labels=list(table.index)
    )
    assert table.to_numpy().tolist() == expected.tolist()
    accuracy = scores[(scores["view"] == "label") & (scores.score == "accuracy")]
    share = np.trace(table.to_numpy()) / 60
    assert share == pytest.approx(accuracy.value[accuracy.fold == "all"].item())


def test_confusion_of_binary_columns(of_kinds):
    data, _, predictions = of_kinds
    found = kofa.confusion_table(predictions)
    own = predictions[(predictions["view"] == "binary") & (predictions.column == 2)]
    rows = found[(found["view"] == "binary") & (found.column == 2)]
    truth = data["binary"][own["sample"], 2].astype(int)
    expected = confusion_matrix(truth, own["mean"] > 0.5)
    assert rows.n.to_numpy().reshape(2, 2).tolist() == expected.tolist()
    assert rows.truth.tolist() == [0, 0, 1, 1]


def test_numbers_have_no_confusion(compared):
    with pytest.raises(kofa.DataError, match=r"predictions of a Binary or Categorical view"):
        kofa.confusion_table(compared[1])


def test_tables_of_something_else_are_refused(compared):
    scores, predictions = compared
    with pytest.raises(kofa.DataError, match="xpected a table of predictions"):
        kofa.calibration_table(scores)
    with pytest.raises(kofa.DataError, match=r"xpected a table of scores .* no column 'score'"):
        kofa.score_summary(predictions)
    with pytest.raises(kofa.DataError, match=r"xpected a table of predictions"):
        kofa.confusion_table({})
    with pytest.raises(kofa.DeclarationError, match="bins"):
        kofa.calibration_table(predictions, bins=0)
