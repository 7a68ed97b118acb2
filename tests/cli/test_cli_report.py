"""`kofa report`."""

from __future__ import annotations

import re

import pandas as pd
import pytest

import kofa
from commands import error, run
from kofa.files import Reading, read_file

pytestmark = pytest.mark.usefixtures("model")  # in the folder
COMMAND = "report model.kofa -o report.html"


def test_a_model_alone_has_a_report(folder):
    assert "report.html" in run(COMMAND).stdout
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "model.kofa" in text
    assert 'id="predictions"' not in text


@pytest.mark.parametrize("data", ["--study study.toml", "--data study.toml"])
def test_a_study_brings_predictions(folder, data):
    run(f"{COMMAND} {data}")
    assert 'id="predictions"' in (folder / "report.html").read_text(encoding="utf-8")


def test_views_can_be_named(folder):
    run(f"{COMMAND} --view rna=rna.csv --view protein=protein.csv")
    groups = set(re.findall(r'"group":"(\w+)"', (folder / "report.html").read_text("utf-8")))
    assert groups == {"predictions", "rna"}  # of the colours of samples
    run(f"{COMMAND} --force")
    assert '"group":"rna"' not in (folder / "report.html").read_text("utf-8")


def test_covariates_sets_and_an_evaluation(folder):
    rows = [(fold, "stage", "all", "accuracy", 0.87, 30) for fold in (0, 1, "all")]
    rows += [(fold, "stage", "all", "d2", 0.5, 30) for fold in (0, 1, "all")]
    names = ["fold", "view", "column", "score", "value", "n"]
    pd.DataFrame(rows, columns=names).to_csv(folder / "scores.csv", index=False)
    run(f"{COMMAND} --covariates clinical.csv --evaluation scores.csv --title 'My study'")
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "<h1>My study</h1>" in text
    assert 'id="association"' in text
    assert "87 % of the labels are right" in text


def test_predictions_of_the_same_folds(folder):
    model = kofa.load(folder / "model.kofa")
    files = {"rna": "rna.csv", "protein": "protein.csv", "stage": "clinical.csv"}
    data = {name: read_file(file, Reading(values="labels")) for name, file in files.items()}
    data["stage"] = data["stage"]["stage"]
    scores, predictions = kofa.cross_validate(model, data, cv=2, return_predictions=True)
    scores.to_csv(folder / "scores.csv", index=False)
    predictions.to_csv(folder / "predictions.csv", index=False)
    run(f"{COMMAND} --evaluation scores.csv --predictions predictions.csv")
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert 'data-panel="calibration"' in text
    assert "in held-out samples" in text
    assert "expected --evaluation" in error(f"{COMMAND} --force --predictions p.csv", 2).lower()


def test_a_file_that_is_there_is_replaced_only_by_force(folder):
    (folder / "report.html").write_text("mine", encoding="utf-8")
    assert error(COMMAND) == "report.html: it is there already; add --force to replace it"
    assert (folder / "report.html").read_text(encoding="utf-8") == "mine"
    run(f"{COMMAND} --force -q")
    assert (folder / "report.html").read_text(encoding="utf-8") != "mine"


@pytest.mark.parametrize(
    ("command", "said", "code"),
    [
        ("report model.kofa", "expected --out with the file to write", 2),
        ("report model.kofa -o r.pdf", "expected a file that ends in .html", 1),
        ("report model.kofa -o nowhere/r.html", "there is no folder 'nowhere'", 1),
        ("report rna.csv -o r.html", "this is not a kofa model", 1),
        ("report model.kofa -o r.html --image-shape rna", "expected --image-shape VIEW=ROWSx", 2),
        ("report model.kofa -o r.html --image-shape rna=9x9", "81 pixels", 2),
        ("report model.kofa -o r.html --image-shape rn=2x3", "--image-shape: unknown view 'rn'", 2),
        ("report model.kofa -o r.html --study model.kofa", "expected a study but this is a mod", 1),
        ("report model.kofa -o r.html --sets no.gmt", "no.gmt: there is no such file", 1),
        ("report model.kofa -o r.html --sets two.gmt", "no view|sets", 1),
        ("report model.kofa -o r.html --evaluation rna.csv", "there is no column 'fold'", 1),
        ("report model.kofa -o r.html --covariates no.csv", "no.csv", 1),
    ],
)
def test_what_is_wrong_is_said_in_one_line(folder, command, said, code):
    (folder / "two.gmt").write_text("A\t-\tg1\tg2\n", encoding="utf-8")
    line = error(command, code)
    said = said.replace("81 pixels", "9 × 9 pixels are not its 6 columns")
    assert any(part in line.lower() for part in said.lower().split("|")), line
    assert not (folder / "r.html").exists()
