"""`kofa evaluate` and `kofa compare`: the scores of the library, printed and written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("typer")

import kofa  # noqa: E402
from commands import STUDY, error, run  # noqa: E402
from conftest import KINDS, mixed  # noqa: E402
from kofa.cli.study import read_study  # noqa: E402

FAST = "--cv 2 --tol 0.5"


def expected(study="study.toml", **options):
    """The library's own table of a study."""
    plan = read_study(Path(study))
    model = kofa.FactorModel(plan.views, **{**plan.model, "tol": 0.5})
    return kofa.cross_validate(model, plan.read(), cv=2, baseline=True, **options)


def rows_of(text):
    return pd.DataFrame(json.loads(text)).astype({"value": float, "baseline": float})


@pytest.mark.usefixtures("folder")
def test_evaluate_shows_writes_and_prints_what_the_library_finds():
    scores = expected()
    shown = run(f"evaluate study.toml {FAST} -o evaluation.csv --predictions held_out.csv").stdout
    assert "held_out.csv: 120 predictions" in shown
    assert f"evaluation.csv: {len(scores)} rows, 7 columns" in shown
    assert "baseline: predicting the mean of the training samples" in shown
    written = pd.read_csv("evaluation.csv")
    assert list(written.columns) == ["fold", "view", "column", "score", "value", "baseline", "n"]
    assert written["fold"].tolist() == scores["fold"].astype(str).tolist()
    for name in ("value", "baseline"):
        assert np.allclose(written[name], scores[name], equal_nan=True)
    printed = rows_of(run(f"evaluate study.toml {FAST} --json").stdout)
    pd.testing.assert_frame_equal(printed, scores, check_dtype=False)
    predictions = pd.read_csv("held_out.csv")
    assert list(predictions.columns)[:5] == ["fold", "sample", "view", "column", "kind"]
    run(f"evaluate study.toml {FAST} -o evaluation.json -q")
    again = pd.read_json("evaluation.json", dtype={"fold": str})
    assert again["fold"].tolist() == written["fold"].tolist()
    for file in ("evaluation.csv", "evaluation.json"):
        run(f"plot compare {file} -o x.png -q")
    run("plot confusion held_out.csv -o x.png")


def test_the_baseline_predicts_the_mean_or_the_shares(folder):  # noqa: ARG001
    table = expected(scoring=["accuracy", "log_loss", "auc", "d2"])
    whole = table[table["fold"] == "all"].set_index("score")["baseline"]
    stage = pd.read_csv("clinical.csv")["stage"]
    assert whole["d2"] == pytest.approx(0.0, abs=1e-12)
    assert table[table["fold"] == 0].set_index("score")["baseline"]["auc"] == 0.5
    assert whole["accuracy"] <= stage.value_counts(normalize=True).max() + 1e-9
    assert whole["log_loss"] == pytest.approx(np.log(2), abs=0.05)


@pytest.mark.parametrize("output", list(KINDS))
@pytest.mark.filterwarnings("ignore")
def test_every_kind_of_output_is_evaluated(output, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["[model]", f'outputs = ["{output}"]']
    data = mixed(np.random.default_rng(3), n=40, d=3)
    for name in (output, "binary" if output == "real" else "real"):  # one view to predict it from
        values = data[name]
        if name == "label":  # each class in each fold
            values = np.where(np.arange(40) % 2 == 0, values, "ant")
            values = np.where(values == "ant", "ant", "bee")
        frame = pd.DataFrame(values, [f"s{i}" for i in range(40)]).add_prefix("c")
        frame.to_csv(f"{name}.csv")
        kind = "categorical" if name == "label" else name
        lines += [f"[views.{name}]", f'file = "{name}.csv"', f'kind = "{kind}"']
    Path("study.toml").write_text("\n".join(lines), encoding="utf-8")
    scores = expected()
    shown = run(f"evaluate study.toml {FAST} -o scores.csv").stdout
    written = pd.read_csv("scores.csv", dtype={"fold": str})
    pd.testing.assert_frame_equal(written, scores.astype({"fold": str}), check_dtype=False)
    for score in scores["score"].unique():
        assert score in shown
    exact = {"r2": 0.0, "d2": 0.0, "auc": 0.5}
    each = scores[(scores["fold"] == 0) & (scores["column"] == "all")]
    for score, baseline in zip(each["score"], each["baseline"], strict=True):
        if score in exact:
            assert baseline == pytest.approx(exact[score], abs=1e-9)
        assert np.isnan(baseline) == (score == "coverage")


@pytest.mark.usefixtures("folder")
def test_compare_studies_with_the_same_folds():
    before, _, rest = STUDY.partition("[views.protein]")
    Path("rna.toml").write_text(before + rest[rest.index("[views.stage]") :], encoding="utf-8")
    # The same name, read in another way: a table of its own.
    Path("few.toml").write_text(
        STUDY.replace('file = "rna.csv"', 'file = "rna.csv"\ncolumns = ["g0"]'), encoding="utf-8"
    )
    for name in ("study", "rna", "few"):
        text = Path(f"{name}.toml").read_text(encoding="utf-8")
        text = text.replace("random_state = 3", "random_state = 3\ntol = 0.5")
        Path(f"{name}.toml").write_text(text, encoding="utf-8")
    command = "compare study.toml rna.toml few.toml --cv 2"
    shown = run(f"{command} -o compared.csv").stdout
    assert "difference" in shown
    table = pd.read_csv("compared.csv")
    assert table["model"].unique().tolist() == ["study", "rna", "few"]
    for name in ("rna", "few"):
        alone = rows_of(run(f"evaluate {name}.toml --cv 2 --json").stdout)
        assert np.allclose(table[table["model"] == name]["value"], alone["value"])
    run("plot compare compared.csv -o compared.svg")


@pytest.mark.usefixtures("folder")
def test_groups_are_left_out_together():
    ids = pd.read_csv("rna.csv", dtype={0: str})["id"]
    sites = pd.DataFrame({"id": ids, "site": [f"site{i % 4}" for i in range(len(ids))], "x": 1})
    sites.to_csv("sites.csv", index=False)
    run(f"evaluate study.toml {FAST} --groups sites.csv:site --predictions p.csv -q")
    site = sites.set_index("id")["site"]
    folds = pd.read_csv("p.csv", dtype={"sample": str})
    assert (folds.groupby(folds["sample"].map(site))["fold"].nunique() == 1).all()
    assert "expected FILE:COLUMN" in error("evaluate study.toml --groups sites.csv", 2)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("evaluate", "Expected a study.toml"),
        ("evaluate study.toml --cv 1", "--cv"),
        ("evaluate study.toml --cv x", "--cv"),
        ("evaluate study.toml --scoring r3", "--scoring: unknown score 'r3'"),
        ("evaluate study.toml --scoring r2", "--scoring: no output has the score 'r2'"),
        ("evaluate study.toml --outputs nope", "there is no view 'nope'"),
        ("evaluate study.toml --n-jobs 0", "expected a number other than 0"),
        ("evaluate study.toml --predictions x.json", "CSV, TSV or Parquet"),
        ("evaluate study.toml --predictions -", "CSV, TSV or Parquet"),
        ("evaluate study.toml -o x.csv --predictions x.csv", "expected another file than --out"),
        ("evaluate --view rna=rna.csv", "Expected outputs to predict and score; add --outputs"),
        ("compare study.toml", "Expected two studies or more; kofa evaluate takes one"),
        ("compare study.toml study.toml", "one is given twice"),
        ("compare study.toml bare.toml", "but bare nothing; add --outputs NAME"),
        ("compare bare.toml study.toml", "Bare has no outputs"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_wrong_arguments_are_one_line_and_code_2(command, message):
    bare = STUDY.replace('outputs = ["stage"]\n', "")
    Path("bare.toml").write_text(bare, encoding="utf-8")
    assert message in error(command, 2)


@pytest.mark.usefixtures("folder")
def test_wrong_files_are_one_line_and_code_1():
    assert "this is a file that is read" in error("evaluate study.toml -o rna.csv")
    assert "ends in .csv" in error("evaluate study.toml -o x.docx")
    assert "there is no such file" in error("compare study.toml nope.toml")
    other = STUDY.replace('file = "clinical.csv"', 'file = "other.csv"')
    Path("other.toml").write_text(other, encoding="utf-8")
    pd.read_csv("clinical.csv").to_csv("other.csv", index=False)
    assert "the output 'stage' is not read as in the other" in error(
        "compare study.toml other.toml"
    )
    assert "there is no column 'fold'; pass what kofa evaluate" in error(
        "plot compare rna.csv -o x.png"
    )
    run("evaluate study.toml --outputs stage --cv 2 --tol 0.5 -o scores.csv -q")
    assert error("plot confusion scores.csv -o x.png").startswith("scores.csv: expected a table of")


@pytest.mark.usefixtures("folder")
def test_outputs_of_the_command_line_take_the_place_of_the_studys():
    rows = rows_of(run(f"evaluate study.toml {FAST} --outputs rna --scoring r2 --json").stdout)
    assert set(rows["view"]) == {"rna"}
    assert set(rows["score"]) == {"r2"}
