"""Samples, sections and outcomes of a report are those of the model's own tables."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from test_report_encoding import decoded

import kofa
from drawn import every_kind, two_kernels
from kofa.report import samples, sections
from kofa.report.content import content_of
from kofa.report.outcomes import read_evaluation
from kofa.report.repeat import code, declared
from reports import problem


def panels(content):
    return {panel.name: panel for part in content.sections for panel in part.panels}


@pytest.fixture(scope="module")
def kinds():
    model, given = problem("kinds")
    return model, given, content_of(model, **given)


@pytest.fixture(scope="module")
def kernels():
    model, data = two_kernels()
    return model, data, content_of(model, data)


def same(found, table):
    pd.testing.assert_frame_equal(found[list(table.columns)].reset_index(drop=True), table)


# ---------------------------------------------------------------- sections


def test_tables_are_those_of_the_model(kinds):
    model, _, content = kinds
    found = panels(content)
    same(found["variance"].frame, model.variance_explained())
    same(found["variance-by-view"].frame, model.variance_explained(by="view"))
    same(found["relevance"].frame, model.factor_relevance())
    bound = found["bound"].frame
    assert bound[bound.term == "bound"].value.tolist() == model.lower_bounds_.tolist()
    same(bound[bound.term != "bound"][["iteration", "term", "value"]], model.bound_terms())


def test_weights_of_all_views_the_largest_first(kinds):
    model, _, content = kinds
    table = panels(content)["weights"].frame
    for name in model.views_:
        own = table[table["view"] == name].drop(columns="view")
        whole = model.weights(name, tidy=True)
        assert sorted(own["weight"]) == sorted(whole["weight"])
        first = own[own["factor"] == "factor2"].head(3).reset_index(drop=True)
        best = model.top_features(name, "factor2", 3)
        same(first, best[first.columns.intersection(best.columns, sort=False)])


def test_of_too_many_weights_the_largest_stay_and_it_is_said(kinds, monkeypatch):
    model, given, _ = kinds
    monkeypatch.setattr(sections, "_MOST_WEIGHTS", 45)
    panel = panels(content_of(model, **given))["weights"]
    assert panel.note == "Of each view and factor the 3 weights of the largest size are here."
    own = panel.frame[(panel.frame["view"] == "real") & (panel.frame["factor"] == "factor1")]
    assert own["feature"].tolist() == model.top_features("real", "factor1", 3)["feature"].tolist()


def test_relevance_of_features_samples_and_kernels(kernels):
    model, _, content = kernels
    found = panels(content)
    features = found["features"].frame
    same(features.drop(columns=["view", "position"]), model.feature_relevance("w"))
    assert features["position"].tolist() == features["feature"].tolist()  # of an array
    same(found["vectors"].frame.drop(columns="view"), model.relevance_vectors("x"))
    shares = found["kernels"].frame
    same(shares[shares.of == "y"][["view", "kernel", "weight"]], model.kernel_weights("y"))
    same(shares[shares.of == "factors"][["view", "kernel", "weight"]], model.kernel_weights())
    assert found["kernels-learnt"].frame["landmarks"].tolist() == [
        len(model.views_[name].landmarks) for name in ("x", "w")
    ]


def test_what_a_model_lacks_has_no_section():
    model, _ = every_kind()
    names = [part.name for part in content_of(model).sections]
    assert names == ["variance", "relevance", "weights", "bound"]


def test_one_view_alone_shares_nothing():
    x = np.random.default_rng(0).normal(size=(40, 3))
    data = {"x": x, "y": x[:, :1]}
    for kernel, names in ((None, []), ("rbf", ["kernels-learnt"])):
        views = {"x": kofa.Real(kernel=kernel), "y": kofa.Real()}
        model = kofa.FactorModel(views, outputs=["y"], n_factors=2).fit(data)
        found = [part for part in content_of(model).sections if part.name == "kernels"]
        assert [panel.name for part in found for panel in part.panels] == names


def test_association_and_enrichment_are_those_of_the_model(kinds):
    model, given, _ = kinds
    known = given["data"]["count"]
    found = panels(content_of(model, given["data"], covariates=known, sets=given["sets"]))
    table, association = model.associate(known, given["data"]), found["association"].frame
    assert len(table)
    same(association, table)
    assert association["effect"].tolist() == table["r"].tolist()  # of numbers
    sets = model.enrich("real", given["sets"], data=given["data"])
    assert set(sets["set"]) == set(given["sets"])
    same(found["enrichment"].frame.drop(columns="view"), sets)


def test_predictions_are_those_of_the_model(kinds):
    model, given, content = kinds
    found = panels(content)
    table = found["truth"].frame
    own = table[(table["view"] == "positive") & (table["column"] == "dose1")]
    mean = model.predict(given["data"], "positive")["dose1"]
    assert own["mean"].tolist() == pytest.approx(mean.loc[own["sample"]].tolist())
    assert own["truth"].tolist() == given["data"]["positive"]["dose1"].tolist()
    confusion = found["confusion"].frame
    assert confusion[confusion["view"] == "label"]["n"].sum() == 60
    assert set(found["calibration"].frame["view"]) == set(model.outputs)


def test_scores_compare_with_the_mean_of_the_data(kinds):
    model, given, content = kinds
    scores = panels(content)["scores"].frame.set_index(["view", "column", "score"])["value"]
    truth = given["data"]["count"]
    error = ((truth - model.predict(given["data"], "count")) ** 2).sum()
    r2 = 1 - error / ((truth - truth.mean()) ** 2).sum()
    assert scores["count", "read1", "r2"] == pytest.approx(r2["read1"])
    assert np.isfinite(scores["positive", "all", "d2"])


# ---------------------------------------------------------------- samples


def test_samples_have_their_factors_and_colours(kinds):
    model, given, content = kinds
    found = content.samples
    assert decoded(found["names"]) == list(given["data"]["real"].index)
    factors = np.column_stack([decoded(one) for one in found["factors"]])
    assert factors == pytest.approx(model.transform(given["data"]).to_numpy())
    colours = {(one["group"], one["name"]): decoded(one) for one in found["colours"]}
    groups = {group for group, _ in colours}
    assert groups == {"predictions", *given["data"]}
    assert colours["predictions", "label"] == list(model.predict(given["data"], "label"))
    assert colours["label", "label"] == list(given["data"]["label"])
    best = model.weights("real", tidy=True)
    best = best.loc[best["standardised"].abs().idxmax(), "feature"]
    assert colours["real", best] == pytest.approx(given["data"]["real"][best], nan_ok=True)
    assert set(colours["binary", "hit0"]) <= {"0", "1"}


def test_covariates_are_matched_by_name_and_missing_where_there_are_none():
    model, _ = every_kind()
    known = pd.Series({"s3": "b", "s1": "a", "s2": "a", "other": "c"}, name="site")
    found = content_of(model, covariates=known).samples["colours"][0]
    assert found["group"] == "covariates"
    assert decoded(found)[:5] == [None, "a", "a", "b", None]


def test_of_too_many_samples_some_are_drawn(monkeypatch):
    monkeypatch.setattr(samples, "MOST_SAMPLES", 20)
    model, _ = every_kind()
    found = content_of(model).samples
    assert (found["n"], found["total"]) == (20, 60)
    names = decoded(found["names"])
    assert len(set(names)) == 20
    own = model.factors().loc[names, "factor1"]
    assert decoded(found["factors"][0]) == pytest.approx(own.to_numpy())


def test_many_samples_are_coarse(monkeypatch):
    monkeypatch.setattr(samples, "_COARSE_FROM", 20)
    model, _ = every_kind()
    found = content_of(model).samples["factors"][0]
    assert "u16" in found
    assert decoded(found) == pytest.approx(model.factors()["factor1"].to_numpy(), abs=1e-4)


def test_tables_without_rows_have_no_report():
    model, data = every_kind()
    with pytest.raises(kofa.DataError, match="at least one sample"):
        content_of(model, {"real": data["real"][:0]})


# ---------------------------------------------------------------- evaluation


@pytest.fixture
def scores():
    rows = [(fold, "y", "all", "r2", 0.5, 10) for fold in (0, 1, "all")]
    return pd.DataFrame(rows, columns=["fold", "view", "column", "score", "value", "n"])


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "json"])
@pytest.mark.parametrize("index", [True, False])
def test_files_of_evaluations_are_read_back(scores, tmp_path, suffix, index):
    path = tmp_path / f"scores.{suffix}"
    table = scores.astype({"fold": str}) if suffix == "parquet" else scores
    if suffix == "json":
        rows = table.to_dict("records")
        path.write_text(json.dumps({"scores": rows} if index else rows), encoding="utf-8")
    elif suffix == "parquet":
        table.to_parquet(path, index=index)
    else:
        table.to_csv(path, sep="," if suffix == "csv" else "\t", index=index)
    found, predictions = read_evaluation(path)
    assert predictions is None
    pd.testing.assert_frame_equal(found[list(scores.columns)], scores, check_dtype=False)


def test_files_that_are_no_evaluations_are_refused(tmp_path, scores):
    path = tmp_path / "scores.csv"
    with pytest.raises(kofa.FileError, match=r"scores.csv: there is no such file"):
        read_evaluation(path)
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(kofa.FileError, match="no column 'fold'; pass what kofa evaluate -o wrote"):
        read_evaluation(path)
    wrong = tmp_path / "scores.json"
    wrong.write_text("{", encoding="utf-8")
    with pytest.raises(kofa.FileError, match="damaged or of another kind"):
        read_evaluation(wrong)
    with pytest.raises(kofa.DataError, match=r"expected a table as from kofa\.cross_validate"):
        read_evaluation(7)
    several = pd.concat([scores.assign(model="a"), scores.assign(model="b")])
    with pytest.raises(kofa.DataError, match="scores of one model but there are several"):
        read_evaluation(several)


# ---------------------------------------------------------------- the code


def test_the_code_repeats_the_fit():
    model, data = two_kernels()
    text = code(model).replace("data = {'x': …, 'w': …, 'y': …}", "")
    names = {"data": data}
    exec(text, names)
    assert names["model"].lower_bound_ == model.lower_bound_
    assert (names["model"].transform(data) == model.transform(data)).all()


@pytest.mark.parametrize(
    "view",
    [
        kofa.Real(),
        kofa.Count(),
        kofa.Real(kernel=["rbf", kofa.RBF(width=2.0)], sparse=True, scale=False),
        kofa.Real(kernel="rbf", landmarks=kofa.Landmarks(20, by="leverage")),
        kofa.Real(kernel="rbf", landmarks=50),
    ],
)
def test_views_are_written_as_they_were_declared(view):
    assert eval(declared(view), {"kofa": kofa}) == view


def test_a_generator_is_not_written_as_a_seed():
    x = np.random.default_rng(0).normal(size=(20, 2))
    model = kofa.FactorModel(random_state=np.random.default_rng(3)).fit({"x": x})
    assert "random_state=…  # a generator" in code(model)
