"""Plots of predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import kofa
from drawn import every_kind, legend_of, texts, tick_names, two_kernels, values_of

model = pytest.fixture(lambda: every_kind()[0])
data = pytest.fixture(lambda: every_kind()[1])
kernels = pytest.fixture(lambda: two_kernels())


@pytest.fixture(scope="module")
def held_out():
    data = every_kind()[1]
    views = {"real": kofa.Real(), "positive": kofa.Positive(), "binary": kofa.Binary()}
    views |= {"label": kofa.Categorical(), "count": kofa.Count()}
    outputs = ["positive", "binary", "label", "count"]
    model = kofa.FactorModel(views, outputs=outputs, n_factors=3)
    return kofa.cross_validate(model, data, cv=2, return_predictions=True)[1]


@pytest.fixture(scope="module")
def scores():
    rows = [(m, f, s) for m in ("one", "two") for f in (0, 1, 2) for s in ("r2", "rmse")]
    table = pd.DataFrame(rows, columns=["model", "fold", "score"])
    table = table.assign(view="y", column="all", value=np.arange(12.0), n=10)
    total = table[table["fold"] == 0].assign(fold="all", value=99.0)
    return pd.concat([table, total], ignore_index=True)


@pytest.mark.parametrize(("view", "column"), [("positive", "dose1"), ("count", "read2")])
def test_numbers_against_the_truth_with_intervals(held_out, view, column):
    ax = kofa.plot.predictions(held_out, view=view, column=column)
    rows = held_out[(held_out["view"] == view) & (held_out["column"] == column)]
    intervals, points = ax.collections
    assert np.asarray(points.get_offsets()) == pytest.approx(rows[["truth", "mean"]].to_numpy())
    ends = np.array([segment[:, 1] for segment in intervals.get_segments()])
    assert ends == pytest.approx(rows[["lower", "upper"]].to_numpy())
    assert ax.get_xlabel() == f"{column}, true"
    (diagonal,) = ax.lines
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())


def test_all_columns_of_a_view_are_means(held_out):
    ax = kofa.plot.predictions(held_out, view="positive")
    assert len(ax.collections) == 1
    assert len(ax.collections[0].get_offsets()) == 4 * 50
    assert ax.get_xlabel() == "positive, true"


def test_axes_are_logarithmic_where_values_are_positive_and_differ_much(held_out):
    rows = held_out[held_out["column"] == "dose0"].iloc[:3]
    rows = rows.assign(truth=[0.1, 1.0, 50.0], mean=[0.2, 1.0, 40.0], lower=0.05, upper=80.0)
    ax = kofa.plot.predictions(rows)
    assert ax.get_xscale() == ax.get_yscale() == "log"
    for changed in (rows.assign(lower=0.0), rows.iloc[1:], rows.assign(truth=-rows["truth"])):
        assert kofa.plot.predictions(changed).get_xscale() == "linear"


def test_many_intervals_are_thinned(held_out):
    rows = held_out[held_out["column"] == "read0"]
    ax = kofa.plot.predictions(pd.concat([rows] * 100))
    assert len(ax.collections[0].get_segments()) <= 300
    assert len(ax.collections[1].get_offsets()) == 6000


def test_probabilities_of_what_is_true(held_out):
    ax = kofa.plot.predictions(held_out, view="label")
    assert tick_names(ax.xaxis) == ["early", "late"]
    rows = held_out[(held_out["view"] == "label") & (held_out["truth"] == 1)]
    strips = [c for c in ax.collections if hasattr(c, "get_sizes") and len(c.get_sizes())]
    for strip, name in zip(strips, ("early", "late"), strict=True):
        shown = np.asarray(strip.get_offsets())[:, 1]
        assert shown == pytest.approx(rows[rows["column"] == name]["mean"].to_numpy())
    ax = kofa.plot.predictions(held_out, view="binary", column="hit0")
    assert tick_names(ax.xaxis) == ["0", "1"]
    rows = held_out[held_out["column"] == "hit0"]
    zeros = 1.0 - rows[rows["truth"] == 0]["mean"].to_numpy()
    assert np.asarray(ax.collections[0].get_offsets())[:, 1] == pytest.approx(zeros)


def test_predictions_of_a_model_for_data(model, data):
    given = {name: table.iloc[:30] for name, table in data.items()}
    ax = kofa.plot.predictions(model, given, "count", "read1")
    mean = model.predict(given, "count")["read1"]
    low, high = model.predict_quantiles(given, "count")
    shown = np.asarray(ax.collections[1].get_offsets())
    assert shown == pytest.approx(np.column_stack([given["count"]["read1"], mean]))
    ends = np.array([segment[:, 1] for segment in ax.collections[0].get_segments()])
    assert ends == pytest.approx(np.column_stack([low["read1"], high["read1"]]))


def test_the_truth_is_matched_by_name(model, data):
    given = {"real": data["real"].iloc[::-1], "positive": data["positive"].iloc[5:40]}
    shown = kofa.plot.predictions(model, given, "real", "gene0").collections[1].get_offsets()
    mean = model.predict(given, "real")["gene0"]
    truth = data["real"]["gene0"].loc[mean.index]
    expected = np.column_stack([truth, mean])[truth.notna().to_numpy()]
    order = np.argsort(np.asarray(shown)[:, 0])
    assert np.asarray(shown)[order] == pytest.approx(expected[np.argsort(expected[:, 0])])


def test_labels_of_a_model_for_data(model, data):
    ax = kofa.plot.predictions(model, data, "label")
    chance = model.predict_proba(data, "label")["late"][data["label"] == "late"]
    strips = [c for c in ax.collections if len(getattr(c, "get_sizes", list)())]
    assert np.asarray(strips[1].get_offsets())[:, 1] == pytest.approx(chance.to_numpy())


@pytest.mark.parametrize(
    ("view", "given", "message"),
    [
        ("count", None, "expected data with the true values"),
        ("count", ["real"], "no view 'count' with the true values"),
        ("reel", ["real"], "unknown view 'reel'"),
        (None, ["real"], "expected the view to predict"),
    ],
)
def test_predictions_need_the_truth(model, data, view, given, message):
    given = given and {name: data[name] for name in given}
    with pytest.raises(kofa.DataError, match=f"(?i){message}"):
        kofa.plot.predictions(model, given, view)


def test_similarities_have_no_truth(kernels):
    model, data = kernels
    with pytest.raises(kofa.DataError, match=r"no truth to compare with; use plot\.kernel"):
        kofa.plot.predictions(model, data, "x")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "expected view to say which of 'positive', 'binary'"),
        ({"view": "counts"}, "unknown view 'counts'; did you mean 'count'"),
        ({"view": "count", "column": "x"}, "unknown column 'x'"),
    ],
)
def test_what_is_to_be_shown_must_be_clear(held_out, options, message):
    with pytest.raises(kofa.DataError, match=f"(?i){message}"):
        kofa.plot.predictions(held_out, **options)


def test_no_predictions(held_out):
    with pytest.raises(kofa.DataError):
        kofa.plot.predictions(held_out.iloc[:0])


def test_calibration_of_intervals_and_probabilities(held_out):
    ax = kofa.plot.calibration(held_out, bins=4)
    table = kofa.calibration_table(held_out, bins=4).query("column == 'all'")
    curves = ax.lines[1:]
    assert legend_of(ax) == ["positive", "binary", "label", "count"]
    for line, (_, rows) in zip(curves, table.groupby("view", sort=False), strict=True):
        assert np.asarray(line.get_ydata()) == pytest.approx(rows["observed"].to_numpy())
    one = kofa.plot.calibration(held_out, "positive")
    assert one.get_xlabel() == "level of the interval"
    assert one.get_legend() is None
    assert kofa.plot.calibration(held_out, "label").get_xlabel() == "predicted probability"


def test_calibration_and_confusion_of_a_model_are_those_of_its_predictions(model, data):
    line = kofa.plot.calibration(model, "count", data=data).lines[-1]
    low, high = (np.asarray(one) for one in model.predict_quantiles(data, "count", [0.05, 0.95]))
    truth = data["count"].to_numpy()
    shown = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
    assert shown[0.9] == pytest.approx(((low <= truth) & (truth <= high)).mean())
    counts = kofa.plot.confusion(model, "label", data=data)
    found, names = model.predict(data, "label"), ("early", "late")
    pairs = [((data["label"] == a) & (found == b)).sum() for a in names for b in names]
    assert texts(counts) == [str(n) for n in pairs]
    with pytest.raises(kofa.DataError, match=r"(?i)expected data with the true values"):
        kofa.plot.calibration(model, "label")


def test_the_band_of_calibration_is_two_standard_errors():
    table = pd.DataFrame({"nominal": [0.5, 0.9], "observed": [0.5, 0.9]})
    table = table.assign(view="y", column="all", kind="number", n=100)
    ax = kofa.plot.calibration(table)
    band = ax.collections[0].get_paths()[0].vertices
    at = band[np.isclose(band[:, 0], 0.5)]
    assert sorted(at[:, 1])[0] == pytest.approx(0.4)
    assert sorted(at[:, 1])[-1] == pytest.approx(0.6)


def test_models_have_a_curve_each(held_out):
    both = pd.concat([held_out.assign(model="one"), held_out.assign(model="two")])
    assert legend_of(kofa.plot.calibration(both, "count")) == ["one", "two"]
    assert legend_of(kofa.plot.calibration(both))[:2] == ["one, positive", "one, binary"]


def test_confusion_has_counts_and_shares(held_out):
    ax = kofa.plot.confusion(held_out, "label")
    table = kofa.confusion_table(held_out).query("view == 'label'")
    counts = table.pivot(index="truth", columns="predicted", values="n").to_numpy()
    assert texts(ax) == [str(n) for n in counts.ravel()]
    assert values_of(ax.images[0]) == pytest.approx(100 * counts / counts.sum(axis=1)[:, None])
    ax = kofa.plot.confusion(held_out, "binary", "hit2")
    assert tick_names(ax.xaxis) == ["0", "1"]


def test_confusion_of_many_classes_has_no_numbers():
    pairs = [(a, b) for a in range(20) for b in range(20)]
    table = pd.DataFrame(pairs, columns=["truth", "predicted"]).assign(view="y", column="all", n=3)
    ax = kofa.plot.confusion(table)
    assert not ax.texts
    assert values_of(ax.images[0]) == pytest.approx(5.0)


def test_folds_are_lines_and_models_have_a_mean(scores):
    ax = kofa.plot.compare(scores)
    assert tick_names(ax.xaxis) == ["one", "two"]
    *folds, mean = ax.lines
    assert [line.get_ydata().tolist() for line in folds] == [[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]
    assert mean.get_ydata().tolist() == [2.0, 8.0]
    assert ax.get_ylabel() == "r2, 3 folds"
    assert kofa.plot.compare(scores, "rmse").lines[-1].get_ydata().tolist() == [3.0, 9.0]


def test_scores_of_one_model_and_unknown_scores(scores):
    one = scores[scores["model"] == "one"].drop(columns="model")
    assert kofa.plot.compare(one).lines[-1].get_ydata().tolist() == [2.0]
    with pytest.raises(kofa.DataError, match=r"(?i)unknown score 'auc'; there are 'r2', 'rmse'"):
        kofa.plot.compare(scores, "auc")
