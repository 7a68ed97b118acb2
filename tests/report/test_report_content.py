"""What a report says of models: sentences and warnings that are true of one and not of another."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import kofa
from drawn import every_kind
from kofa.report.content import content_of
from reports import problem


@cache
def said(name, **more):
    model, given = problem(name)
    return content_of(model, **(given | more))


def warned(content):
    return " ".join(one.what for one in content.advice)


@pytest.fixture(scope="module")
def regression():
    """A number that follows from one of two views, in 150 samples with names."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=(150, 2))
    names = [f"s{i}" for i in range(150)]
    genes = [f"g{j}" for j in range(40)]
    data = {
        "rna": pd.DataFrame(
            z @ rng.normal(size=(2, 40)) + rng.normal(size=(150, 40)), names, genes
        ),
        "noise": pd.DataFrame(rng.normal(size=(150, 4)), names),
        "age": pd.DataFrame({"age": z[:, 0] + 0.3 * rng.normal(size=150)}, names),
    }
    views = dict.fromkeys(data, kofa.Real())
    return kofa.FactorModel(views, outputs=["age"]).fit(data), data, z


def scores(view="age", **values):
    """A table as from `kofa.cross_validate`, of two folds and all of them."""
    folds = [(fold, name, value) for fold in (0, 1, "all") for name, value in values.items()]
    table = pd.DataFrame(folds, columns=["fold", "score", "value"])
    sizes = table["fold"].map({0: 250, 1: 250, "all": 500})
    return table.assign(view=view, column="all", n=sizes)


# ---------------------------------------------------------------- sentences


def test_holes_and_views_that_samples_lack():
    assert "No value is missing." in said("unfinished").sentences
    sentences = said("kinds").sentences
    assert "No value is missing." not in sentences
    assert "10 samples of 60 lack positive." in sentences
    assert any("of the values of real are missing" in one for one in sentences)


def test_outputs_are_said_to_be_predicted():
    found = "positive, binary, count and label are predicted from the others."
    assert found in said("kinds").sentences
    assert not any("predicted from the others" in one for one in said("unfinished").sentences)


def test_factors_by_the_views_that_they_link(regression):
    model, data, _ = regression
    sentences = content_of(model, data).sentences
    assert any(one.startswith(f"The model has {model.n_factors_} factors: ") for one in sentences)
    assert any("rna and age" in one for one in sentences)
    assert not any("link rna, noise" in one for one in sentences)


def test_sources_of_predictions(regression):
    model, _, _ = regression
    assert any(one.startswith("age is predicted from rna (") for one in content_of(model).sentences)
    assert not any("label is predicted from" in one for one in said("kinds").sentences)  # one input


def test_scores_are_those_of_the_fit_and_said_to_be(regression):
    model, data, _ = regression
    (sentence,) = [s for s in content_of(model, data).sentences if s.startswith("age (")]
    assert "(in the samples of the fit, which are predicted better than new ones)" in sentence
    truth = np.ravel(data["age"])
    r2 = 1 - np.mean((truth - np.ravel(model.predict(data))) ** 2) / truth.var()
    assert f"{100 * r2:.0f} % of the variance" in sentence


def test_scores_of_other_samples_are_said_to_be_of_these(regression):
    model, data, _ = regression
    some = {name: table.iloc[:50] for name, table in data.items()}
    (sentence,) = [s for s in content_of(model, some).sentences if s.startswith("age (")]
    assert sentence.startswith("age (in the data that were passed): ")


def test_scores_of_a_model_that_keeps_no_samples(regression, tmp_path):
    model, data, _ = regression
    model.save(tmp_path / "m.kofa", samples=False)
    again = kofa.load(tmp_path / "m.kofa")
    content = content_of(again, data)
    (sentence,) = [s for s in content.sentences if s.startswith("age (")]
    assert "predicted better than new ones if they were in the fit): " in sentence
    assert content.sentences[0].startswith("150 samples in 3 views")
    alone = content_of(again)
    assert alone.samples is None
    assert alone.sentences[0].startswith("3 views")
    with pytest.raises(kofa.DataError, match="keeps none of its fit; pass data"):
        content_of(again, covariates=pd.DataFrame({"a": [1.0]}))


def test_an_evaluation_takes_the_place_of_the_fit(regression):
    model, data, _ = regression
    content = content_of(model, data, evaluation=scores(r2=0.31, coverage=0.9))
    assert (
        "age (in held-out samples): 31 % of the variance is explained and 90 % of the values lie "
        "in intervals of 90 %."
    ) in content.sentences
    assert not any("was not evaluated" in one for one in content.sentences)
    assert any("was not evaluated" in one for one in content_of(model, data).sentences)


def test_a_prediction_that_is_no_better_than_the_mean(regression):
    model, data, _ = regression
    content = content_of(model, data, evaluation=scores(r2=-0.02))
    assert (
        "age is not predicted better than by the mean (in held-out samples)." in content.sentences
    )
    assert not any("not predicted better" in one for one in content_of(model, data).sentences)


def test_associations_that_are_there_and_that_are_not(regression):
    model, data, z = regression
    names = data["rna"].index
    there = pd.DataFrame({"dose": z[:, 0]}, names)
    chance = pd.DataFrame({"dose": np.random.default_rng(5).normal(size=150)}, names)
    assert any("with dose (r =" in one for one in content_of(model, covariates=there).sentences)
    assert any(
        one.startswith("No factor goes with any covariate")
        for one in content_of(model, covariates=chance).sentences
    )
    assert not any("covariate" in one for one in content_of(model).sentences)


def test_sets_that_are_enriched_and_that_are_not(regression):
    model, data, _ = regression
    found = model.top_features("rna", "factor1", 40)
    high = found.sort_values("weight").feature.tolist()[-12:]
    chance = [f"g{j}" for j in range(0, 40, 3)]
    there = content_of(model, data, sets={"high": high}).sentences
    assert any("than the rest of rna: high in factor1" in one for one in there)
    assert "No feature set has other weights in rna than the rest." in (
        content_of(model, data, sets={"chance": chance}).sentences
    )


def test_sets_of_other_features_are_refused(regression):
    model, _, _ = regression
    with pytest.raises(kofa.DataError, match=r"no feature of the sets has a weight.*at least 10"):
        content_of(model, sets={"other": [f"h{j}" for j in range(12)]})


# ---------------------------------------------------------------- warnings


def test_a_fit_that_was_stopped_and_one_that_was_not():
    assert "The fit was stopped after 2 iterations" in warned(said("unfinished"))
    assert "was stopped" not in warned(said("kinds"))


def test_a_sample_that_drives_a_factor_and_none():
    assert "Sample 17 drives factor1." in warned(said("unfinished"))
    assert "drives" not in warned(said("kinds"))


@pytest.mark.parametrize("with_data", [True, False])
def test_values_of_a_sample_are_looked_at_in_views_that_it_has(with_data):
    _, given = problem("unfinished")
    x = pd.DataFrame(given["data"]["x"])
    data = {"x": x, "y": x.drop(17).add_prefix("y")}
    model = kofa.FactorModel(callback=lambda now: now.n_iter == 2).fit(data)
    found = content_of(model, data if with_data else None)
    cures = [one.cure for one in found.advice if one.what.startswith("Sample 17 drives")]
    assert cures
    assert all("values in x, which" in cure for cure in cures)


def test_a_view_that_no_factor_explains():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 1))
    data = {"x": z + rng.normal(size=(300, 50)), "y": rng.normal(size=(300, 4))}
    content = content_of(kofa.FactorModel().fit(data))
    assert "No factor explains y." in warned(content)
    assert "explains x" not in warned(content)


def test_an_output_that_no_factor_predicts():
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(200, 5)), "y": rng.normal(size=(200, 1))}
    views = dict.fromkeys(data, kofa.Real())
    content = content_of(kofa.FactorModel(views, outputs=["y"]).fit(data), data)
    assert "No factor predicts y." in warned(content)
    assert "No factor predicts" not in warned(said("kinds"))


def test_few_labels_and_enough():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    label = np.where(x[:, 0] > 0, "late", "early").astype(object)
    views = {"x": kofa.Real(), "stage": kofa.Categorical()}
    some = label.copy()
    some[np.flatnonzero(label == "late")[4:]] = None
    few = {"x": x, "stage": pd.Series(some).to_numpy()}
    model = kofa.FactorModel(views, outputs=["stage"])
    assert "fewer than 10 labels: late (4)." in warned(content_of(model.fit(few), few))
    few["stage"][20:] = None
    assert "of the fit have stage." in warned(content_of(model.fit(few)))
    enough = {"x": x, "stage": label}
    content = content_of(model.fit(enough), enough)
    assert "labels" not in warned(content)
    assert "of the fit have" not in warned(content)


@pytest.mark.parametrize(
    ("coverage", "word"), [(0.6, "over-confident"), (0.99, "under-confident"), (0.9, None)]
)
def test_intervals_that_are_evaluated(regression, coverage, word):
    model, data, _ = regression
    text = warned(content_of(model, data, evaluation=scores(r2=0.5, coverage=coverage)))
    assert ("confident" in text) == (word is not None)
    assert word is None or word in text


@pytest.mark.parametrize(("right", "word"), [(0.6, "over-confident"), (0.9, None)])
def test_probabilities_that_are_evaluated(right, word):
    model, given = problem("kinds")
    n = 400
    late = np.arange(n) < right * n
    part = {"fold": 0, "sample": np.arange(n), "view": "label", "kind": "class"}
    nothing = dict.fromkeys(("lower", "upper", "level"), np.nan)
    predictions = pd.concat(
        [
            pd.DataFrame(part | {"column": "late", "truth": late * 1.0, "mean": 0.9} | nothing),
            pd.DataFrame(part | {"column": "early", "truth": 1.0 - late, "mean": 0.1} | nothing),
        ]
    )
    table = scores("label", accuracy=right, d2=0.5)
    content = content_of(model, given["data"], evaluation=(table, predictions.reset_index()))
    assert ("Labels of label" in warned(content)) == (word is not None)
    assert word is None or word in warned(content)


# ---------------------------------------------------------------- what is asked for


def test_pixels_have_the_shape_of_their_view():
    model, _ = every_kind()
    content_of(model, image_shape={"real": (4, 5)})
    content_of(model, image_shape=(4, 5))
    with pytest.raises(kofa.DataError, match="3 × 5 pixels are not its 20 columns"):
        content_of(model, image_shape={"real": (3, 5)})
    with pytest.raises(kofa.DataError, match="No view has 7 × 7 columns"):
        content_of(model, image_shape=(7, 7))
    with pytest.raises(kofa.DataError, match=r"Unknown view 'reel'.*'real'"):
        content_of(model, image_shape={"reel": (4, 5)})
    with pytest.raises(kofa.DeclarationError, match="rows and columns, such as"):
        content_of(model, image_shape=20)


def test_an_evaluation_of_another_model_is_refused(regression):
    model, _, _ = regression
    with pytest.raises(kofa.DataError, match="a view 'stage', which the model has not"):
        content_of(model, evaluation=scores("stage", accuracy=0.5))
