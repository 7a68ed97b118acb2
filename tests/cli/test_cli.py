"""The command line, as a user meets it."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner  # noqa: E402

import kofa  # noqa: E402
from commands import MAIN, STUDY, error, program, run, tables  # noqa: E402
from kofa.cli.app import app  # noqa: E402
from kofa.cli.given import parse_view  # noqa: E402
from kofa.cli.guess import guess_column  # noqa: E402
from kofa.cli.study import read_study  # noqa: E402
from kofa.errors import FileError  # noqa: E402

ROOT = Path(__file__).parents[2]


# ---------------------------------------------------------------- from tables to predictions


def test_from_three_files_to_predictions(folder):
    shown = run("fit study.toml -o model.kofa").stdout
    assert re.search(r"factors? of 80 samples in 3 views; converged after \d+ iterations", shown)
    assert re.search(r"^stage +categorical +– +60 +1 +0.0% +output", shown, re.M)
    assert not (folder / "model.kofa.checkpoint").exists()

    command = "predict model.kofa --view rna=rna.csv --view protein=protein.csv --proba -o out.csv"
    assert run(command).stdout == "out.csv: 80 samples, 3 columns\n"
    out = pd.read_csv("out.csv", index_col=0, dtype={"id": str})
    assert list(out.columns) == ["stage", "stage_early", "stage_late"]
    assert out.index[1] == "001"
    truth = tables()["clinical"]["stage"]
    assert (out["stage"].reindex(truth.index) == truth).mean() > 0.9

    model = kofa.load("model.kofa")
    assert model.get_params()["random_state"] == 3
    data = {name: frame for name, frame in tables().items() if name != "clinical"}
    expected = model.predict_proba(data, "stage")
    assert np.allclose(out.iloc[:, 1:], expected.loc[out.index], atol=1e-9)


def test_the_same_in_a_process_of_its_own(folder, model):
    command = ["predict", str(model), "--view", "rna=rna.csv", "-o", "out.csv", "-q"]
    done = subprocess.run([sys.executable, "-m", "kofa", *command], cwd=folder, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(pd.read_csv("out.csv").columns) == ["id", "stage"]


def test_quick_views_say_what_a_study_does(folder, fitted):
    run(
        "fit --view rna=rna.csv --view protein=protein.csv --kernel protein=rbf "
        "--view stage=clinical.csv:stage:categorical --outputs stage --n-factors 4 "
        "--random-state 3 --max-iter 200 --tol 1e-3 --n-init 1 -o quick.kofa"
    )
    model = kofa.load("quick.kofa")
    chosen = {key: model.get_params()[key] for key in ("n_factors", "outputs", "random_state")}
    assert chosen == {"n_factors": 4, "outputs": ["stage"], "random_state": 3}
    assert model.views["protein"].kernel == "rbf"
    assert isinstance(model.views["stage"], kofa.Categorical)
    (folder / "model.kofa").write_bytes(fitted)
    one, two = (list(kofa.load(p).views_) for p in ("model.kofa", "quick.kofa"))
    assert one == two == ["rna", "protein", "stage"]


@pytest.mark.usefixtures("folder")
def test_a_study_with_another_file_or_option():
    tables(seed=1)["rna"].to_csv("other.csv")
    run("fit study.toml --view rna=other.csv --n-factors 3 -o model.kofa -q")
    assert kofa.load("model.kofa").get_params()["n_factors"] == 3
    protein = tables()["protein"]
    protein.to_csv("other.csv", sep=";", decimal=",")
    more = "--sep ';' --decimal ,"
    run(f"fit study.toml --view protein=other.csv {more} --max-iter 3 -o model.kofa -q --force")
    assert kofa.load("model.kofa").views["protein"].kernel == kofa.RBF(3.0)


@pytest.mark.usefixtures("folder")
def test_the_papers_own_model_is_fitted_without_a_checkpoint():
    study = Path("study.toml").read_text(encoding="utf-8")
    Path("study.toml").write_text(
        study.replace("[model]", "[model]\nas_published = true"), encoding="utf-8"
    )
    run("fit study.toml -o model.kofa -q --max-iter 5")
    assert kofa.load("model.kofa").as_published
    refused = run("fit study.toml -o other.kofa -q --checkpoint own", code=1).stderr
    assert "takes no checkpoint" in refused


def test_transform_is_what_the_library_gives(model):
    out = run("transform model.kofa --view rna=rna.csv").stdout
    head, first = out.splitlines()[:2]
    expected = kofa.load(model).transform(
        {"rna": pd.read_csv("rna.csv", dtype={0: str}, index_col=0)}
    )
    assert head.split(",") == ["id", *expected.columns]
    assert first.startswith("000,")
    assert np.allclose([float(x) for x in first.split(",")[1:]], expected.iloc[0])


@pytest.mark.usefixtures("folder")
def test_study_says_how_new_tables_are_read():
    rna = pd.read_csv("rna.csv", dtype={0: str})
    german = rna.rename(columns={"id": "Probe"})
    german.to_csv("rna.csv", sep=";", decimal=",", index=False, na_rep="fehlt")
    study = STUDY.replace(
        'file = "rna.csv"', 'file = "rna.csv"\nsep = ";"\ndecimal = ","\nmissing = ["fehlt"]'
    )
    Path("study.toml").write_text(study, encoding="utf-8")
    run("fit study.toml -o model.kofa -q")
    german.iloc[:5].to_csv("new.csv", sep=";", decimal=",", index=False, na_rep="fehlt")
    out = run("predict model.kofa --study study.toml --view rna=new.csv --target protein").stdout
    assert len(out.splitlines()) == 6
    assert len(run("transform model.kofa --study study.toml").stdout.splitlines()) == 81
    flags = "--sep ';' --decimal , --missing fehlt --index Probe"
    assert run(f"transform model.kofa --view rna=new.csv {flags}").stdout.startswith(
        "Probe,factor1"
    )


@pytest.mark.usefixtures("model")
def test_std_and_quantiles():
    command = "predict model.kofa --view protein=protein.csv --target rna --std --quantiles .05,.95"
    run(f"{command} -o out.parquet")
    out = pd.read_parquet("out.parquet")
    assert list(out.columns[[0, 6, 12, 18]]) == ["g0", "g0_std", "g0_q0.05", "g0_q0.95"]
    assert (out["g0_q0.05"] < out["g0"]).all()
    assert out.index.tolist()[:2] == ["000", "001"]


@pytest.mark.usefixtures("model")
def test_impute_writes_each_view():
    rows = run("impute model.kofa --study study.toml -o filled --format tsv").stdout
    assert re.search(r"^rna +80 +\d+ +0 +filled/rna.tsv", rows, re.M)
    rna = pd.read_csv("filled/rna.tsv", sep="\t", dtype={"id": str}, index_col=0)
    before = pd.read_csv("rna.csv", dtype={"id": str}, index_col=0)
    assert not rna.isna().to_numpy().any()
    seen = before.notna().to_numpy()
    # The fast reader of text may miss the last bit.
    assert np.allclose(rna.to_numpy()[seen], before.to_numpy()[seen], rtol=1e-14, atol=0)
    assert sorted(os.listdir("filled")) == ["protein.tsv", "rna.tsv", "stage.tsv"]


def test_info(model):
    shown = run("info model.kofa").stdout
    assert f"written by kofa {kofa.__version__}, format 1" in shown
    assert re.search(r"^protein +real +4 +\d+% +\d+ +RBF\(width=3\)", shown, re.M)
    assert "classes of stage: 'early', 'late'" in shown
    found = json.loads(run("info model.kofa --json").stdout)
    assert found["views"]["stage"]["classes"] == ["early", "late"]
    assert found["factors"] == kofa.load(model).n_factors_
    assert sum(view["share"] for view in found["views"].values()) == pytest.approx(1.0)


def test_the_model_file_knows_no_paths(model):
    assert b"rna.csv" not in model.read_bytes()
    assert str(model.parent).encode() not in model.read_bytes()


@pytest.mark.usefixtures("folder")
def test_labels_stay_words_even_if_a_new_file_has_only_numbers():
    clinical = pd.read_csv("clinical.csv", dtype={0: str}, index_col=0)
    clinical["stage"] = clinical["stage"].map({"early": "1", "late": "x"})
    clinical.to_csv("clinical.csv")
    run("fit study.toml -o model.kofa -q")
    clinical[clinical["stage"] == "1"].to_csv("ones.csv")
    given = "--view rna=rna.csv --view stage=ones.csv"
    out = run(f"transform model.kofa {given}").stdout
    assert len(out.splitlines()) == len(
        run("transform model.kofa --view rna=rna.csv").stdout.splitlines()
    )


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "npz", "h5ad"])
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("folder")
def test_every_format_goes_in(form):
    frame = pd.read_csv("rna.csv", dtype={0: str}, index_col=0)
    if form == "npz":
        np.savez("x.npz", rna=frame, samples=list(frame.index), columns=list(frame.columns))
    elif form == "h5ad":
        pytest.importorskip("anndata").AnnData(frame).write_h5ad("x.h5ad")
    elif form == "parquet":
        frame.to_parquet("x.parquet")
    else:
        frame.to_csv(f"x.{form}", sep="\t" if form == "tsv" else ",")
    run(f"fit -v rna=x.{form} -v protein=protein.csv --max-iter 5 -o model.kofa -q")
    out = run(f"predict model.kofa -v rna=x.{form} -t protein").stdout
    assert out.splitlines()[1].startswith("000,")


def test_options_of_reading_that_would_do_nothing_are_refused(folder):  # noqa: ARG001
    message = error("fit study.toml --missing -999 -o model.kofa", 2)
    assert message.startswith("--missing is for tables given by --view")
    assert "missing = … under [read] in the study" in message
    assert not Path("model.kofa").exists()


# ---------------------------------------------------------------- study.toml


@pytest.mark.usefixtures("folder")
def test_all_kinds_and_options_of_a_study():
    Path("study.toml").write_text(
        """
[read]
missing = ["?", -999]
[views.a]
file = "rna.csv"
kind = "positive"
sparse = true
columns = "g*"
drop = ["g3"]
[views.b]
file = "rna.csv"
kernel = ["rbf", {name = "polynomial", degree = 2}, {name = "mixture", kernels = ["linear", "rbf"]}]
landmarks = 50
scale = false
[views.c]
file = "sub/c.npz"
array = "c"
kind = "count"
[model]
n_init = 2
""",
        encoding="utf-8",
    )
    plan = read_study(Path("study.toml"))
    assert plan.views["a"] == kofa.Positive(sparse=True)
    kernel = plan.views["b"].kernel
    assert kernel == ["rbf", kofa.Polynomial(2), kofa.Mixture(["linear", "rbf"])]
    assert (plan.views["b"].landmarks, plan.views["b"].scale) == (50, False)
    assert plan.sources["a"].reading.missing == ("?", "-999")
    assert plan.sources["a"].reading.columns == ("g*",)
    assert plan.sources["c"].file == Path("sub/c.npz")
    assert plan.model == {"n_init": 2}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ('landmarks = {n = 50, by = "kmeans++"}', kofa.Landmarks(50, by="kmeans++")),
        ("landmarks = {keep = [0.1, 9]}", kofa.Landmarks(keep=(0.1, 9))),
    ],
)
def test_landmarks_of_a_study(said, meant):
    text = f'[views.x]\nfile = "rna.csv"\nkernel = "rbf"\nsparse = true\n{said}\n'
    Path("study.toml").write_text(text, encoding="utf-8")
    assert read_study(Path("study.toml")).views["x"].landmarks == meant


@pytest.mark.usefixtures("folder")
def test_old_names_of_options_of_landmarks_in_a_study():
    text = '[views.x]\nfile = "rna.csv"\nkernel = "rbf"\nsparse = true\nlandmarks = 50\n'
    text += 'landmarks_by = "cholesky"\nshare = 1\nmax_landmarks = 9\n'
    Path("study.toml").write_text(text, encoding="utf-8")
    new = r"landmarks = \{n = 50, by = \"cholesky\", keep = \[1.0, 9\]\}"
    said = "'x': the options landmarks_by, max_landmarks, share will be removed in kofa 0.3; write"
    with pytest.warns(UserWarning, match=f"{said} {new}"):
        plan = read_study(Path("study.toml"))
    assert plan.views["x"].landmarks == kofa.Landmarks(50, by="cholesky", keep=(1.0, 9))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("landmarks = {m = 50}", "line 4: .*'x': landmarks have no option 'm'.*'n'"),
        ('landmarks = {by = "far"}', r"line 4: .*'x': expected landmarks\.by to be .*'far'"),
        ("landmarks = {keep = 0.1}", "line 4: .*'x': keep in its landmarks limits.*sparse=True"),
    ],
)
def test_bad_landmarks_of_a_study(said, message):
    text = f'[views.x]\nfile = "rna.csv"\nkernel = "rbf"\n{said}\n'
    Path("study.toml").write_text(text, encoding="utf-8")
    with pytest.raises(kofa.FileError, match=message):
        read_study(Path("study.toml"))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("said", "warning", "message"),
    [
        ("share = 1979-05-27", "option share .*; write landmarks", "line 4: .*'x'.*share.*1979"),
        ("max_landmarks = 0", "write landmarks", r"line 4: .*'x'.*landmarks\.keep .*at least 2"),
        (
            "max_landmarks = 9",
            r"write sparse = true and landmarks = \{keep = 9\}",
            "line 4: .*'x': keep in its landmarks limits.*; add sparse=True",
        ),
    ],
)
def test_old_names_of_a_study_are_warned_of_also_where_they_are_refused(said, warning, message):
    text = f'[views.x]\nfile = "rna.csv"\nkernel = "rbf"\n{said}\n'
    Path("study.toml").write_text(text, encoding="utf-8")
    with (
        pytest.raises(kofa.FileError, match=message),
        pytest.warns(UserWarning, match=warning),
    ):
        read_study(Path("study.toml"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "kernel =",
            "kernal =",
            "line 10: unknown key 'kernal' in [views.protein]; did you mean 'k",
        ),
        ("[views.rna]", "[view.rna]", "line 5: unknown key 'view'; did you mean 'views'?"),
        (
            "random_state",
            "random_sate",
            "line 3: unknown key 'random_sate' in [model]; did you mea",
        ),
        (
            "categorical",
            "categoricl",
            "line 14: View 'stage': unknown kind 'categoricl'; did you m",
        ),
        (
            "width",
            "widht",
            "line 10: View 'protein': the kernel 'rbf' has no option 'widht'; did y",
        ),
        ('"rbf"', '"rbff"', "line 10: View 'protein': unknown kernel 'rbff'; did you mean 'rbf'?"),
        (
            "3.0",
            '"wide"',
            "line 10: View 'protein': expected width to be positive, 'auto' or 'median'",
        ),
        ('["stage"]\nr', '["stge"]\nr', "line 2: unknown view 'stge' in outputs; did you mean 'st"),
        ("random_state = 3", 'tol = "small"', "line 3: expected tol to be a number of at least 0"),
        ("random_state = 3", "random_state = -1", "line 3: expected random_state to be a seed"),
        ('"rna.csv"', '"rna.csv"\nlandmarks = 0', "line 7: View 'rna': expected landmarks"),
        ('"rna.csv"', '"rna.csv"\nscale = "yes"', "line 7: View 'rna': expected scale"),
        ("random_state = 3", "max_iter = 0", "line 3: expected max_iter to be a whole number"),
        ('file = "rna.csv"', "sep = 3", "line 5: View 'rna': expected file = "),
        ('"rna.csv"', '"rna.csv"\nsep = "--"', "line 7: expected sep to be one character but got"),
        ("[views.rna]", '[read]\nsep = "--"\n\n[views.rna]', "line 6: expected sep to be one char"),
        ('"rna.csv"', '""', "line 6: View 'rna': expected file = "),
        ('"rna.csv"', '"rna.csv"\nindex = 1.5', "line 7: expected index to be a name, a position"),
        ('"rna.csv"', '"rna.csv"\nencoding = "u"', "line 7: unknown encoding 'u'; try 'utf-8'"),
        ("categorical", 'categorical"\nkernel = "rbf', "line 15: View 'stage': a view of kind cat"),
        ("[views.rna]", "[views.rna", "line 5: not valid TOML: "),
        ('"rna.csv"', '"rna.cs', "line 6: not valid TOML: "),
    ],
)
def test_wrong_studies(folder, old, new, message):
    Path("study.toml").write_text(STUDY.replace(old, new, 1), encoding="utf-8")
    assert error("fit study.toml -o model.kofa").startswith(f"study.toml, {message}")
    assert not (folder / "model.kofa").exists()


@pytest.mark.usefixtures("folder")
def test_a_study_without_views():
    Path("study.toml").write_text("[model]\n", encoding="utf-8")
    assert "expected at least one view" in error("fit study.toml -o model.kofa")
    Path("study.toml").write_text("views = 3\n", encoding="utf-8")
    assert "line 1: expected a table [views]" in error("fit study.toml -o model.kofa")
    Path("study.toml").write_bytes(b"\xe9")
    assert "as text in UTF-8" in error("fit study.toml -o model.kofa")


def test_views_by_option(folder):
    name, source = parse_view("x=a.csv:gene*,age:count", {"sep": ";"})
    assert (name, str(source.file), source.kind) == ("x", "a.csv", "count")
    assert (source.reading.columns, source.reading.sep) == (("gene*", "age"), ";")
    assert parse_view("x=a.npz:arr::count", {})[1].reading.array == "arr"
    assert parse_view("x=c.h5mu:rna", {})[1].reading.modality == "rna"
    assert parse_view("x=c.h5mu:obs:stage:categorical", {})[1].reading.layer == "obs"
    assert parse_view("x=c.h5ad:counts:count", {})[1].reading.layer == "counts"
    assert parse_view("x=a.csv:age, sex", {})[1].reading.columns == ("age", "sex")
    assert parse_view("x=a.txt", {"sep": "space"})[1].reading.sep == " "
    assert parse_view("x=a.npz:space", {})[1].reading.array == "space"
    assert str(parse_view("x=C:/data/a.csv:real", {})[1].file) == "C:/data/a.csv"
    (folder / "odd:name.csv").write_text("id,a\ns,1\n", encoding="utf-8")
    assert str(parse_view("x=odd:name.csv:a", {})[1].file) == "odd:name.csv"


# ---------------------------------------------------------------- what is wrong with files


def test_files_that_cannot_be_read_say_where(folder):
    (folder / "x.csv").write_text("id,a\n000,1\n001,2,3\n", encoding="utf-8")
    fit = "fit --view x=x.csv --view rna=rna.csv -o model.kofa"
    assert error(fit).startswith("x.csv, line 3: expected 2 cells")
    (folder / "x.csv").write_text("id,a\n000,1\n001,high\n", encoding="utf-8")
    assert error(fit).startswith("x.csv, line 3, column 'a': expected a number but got 'high'")
    (folder / "x.csv").write_text("id,a\n000,-1\n001,2\n", encoding="utf-8")
    message = error(fit.replace("x.csv", "x.csv:count"))
    assert message.startswith(
        "x.csv: View 'x', column 'a': expected counts (0, 1, 2, …) but got -1"
    )
    assert message.endswith("declare the view as kind real")
    (folder / "x.csv").write_text("id,a\nA0,1\nA1,2\n", encoding="utf-8")
    assert "x.csv: View 'x': it shares no sample with the other views" in error(fit)
    (folder / "x.csv").write_text("gene,000,001\ng,1,2\nh,3,5\n", encoding="utf-8")
    assert error(fit).startswith("x.csv: the columns, not the rows, are the samples of the other")
    assert error("fit --view x=rnaa.csv -o m.kofa").endswith("did you mean 'rna.csv'?")
    assert error("fit --view x=rna.tsv -o m.kofa").endswith("did you mean 'rna.csv'?")
    assert error("fit --view x=nope.csv -o m.kofa") == "nope.csv: there is no such file"


def test_models_and_data_that_change_places(model):
    assert "this is a kofa model, not a table" in error("transform model.kofa -v rna=model.kofa")
    assert "this is not a kofa model; kofa fit writes one" in error("info rna.csv")
    assert "expected a study such as study.toml" in error("fit rna.csv -o m.kofa")
    damaged = model.read_bytes()[:-200]
    Path("cut.kofa").write_bytes(damaged)
    assert error("info cut.kofa")
    assert "the file of a view" in error("fit -v rna=model.kofa -o model.kofa")


def test_nothing_but_models_and_checkpoints_is_replaced(folder, model):
    with zipfile.ZipFile("book.xlsx", "w") as book:
        book.writestr("xl/workbook.xml", "")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert "the file of a view" in error("fit study.toml --checkpoint rna.csv -o new.kofa")
    command = "fit study.toml --checkpoint study.toml -o new.kofa"
    assert "not a kofa checkpoint" in error(command)
    assert "not a kofa model" in error("fit study.toml -o book.xlsx")
    for resume in ("", "--resume"):
        command = f"fit study.toml --checkpoint model.kofa -o new.kofa {resume}"
        assert "model.kofa: this file exists and is not a kofa checkpoint" in error(command)
    command = "fit study.toml --checkpoint model.kofa -o model.kofa"
    assert "expected another file than the model's" in error(command, code=2)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert model in before


@pytest.mark.usefixtures("model")
def test_a_model_is_replaced_only_by_force(fitted):
    assert error("fit study.toml --max-iter 2 -o model.kofa") == (
        "model.kofa: this model exists; add --force to replace it"
    )
    assert Path("model.kofa").read_bytes() == fitted
    run("fit study.toml --max-iter 2 -o model.kofa --force -q")
    assert kofa.load("model.kofa").n_iter_ == 2


@pytest.mark.usefixtures("folder")
def test_old_names_of_options_work_with_a_warning_and_output_is_refused():
    old = "fit study.toml --factors 2 --init=1 --seed 5 --max-iter 200 --to old.kofa"
    lines = run(old).stderr.splitlines()
    renamed = ("factors", "n-factors"), ("init", "n-init"), ("seed", "random-state"), ("to", "out")
    for line, (name, new) in zip(lines, renamed, strict=True):
        assert line == f"warning: --{name} will be removed in kofa 0.3; write --{new}"
    chosen = kofa.load("old.kofa").get_params()
    assert (chosen["n_factors"], chosen["n_init"], chosen["random_state"]) == (2, 1, 5)
    assert run(f"{old} -q --force").output == ""
    for command in ("fit study.toml --output stage", "predict old.kofa --output=x.csv"):
        said = error(command, 2)
        assert "--outputs NAME" in said
        assert "-o FILE (--out)" in said


@pytest.mark.usefixtures("model")
def test_places_that_cannot_be_written_are_found_before_the_work(monkeypatch):
    monkeypatch.setattr("kofa.cli.plan.read_file", pytest.fail)
    assert "there is no folder 'no'; make it first" in error("fit study.toml -o no/m.kofa")
    assert "not a kofa model; choose another name" in error("fit study.toml -o study.toml")
    assert "there is no folder 'no'" in error("transform model.kofa -v rna=rna.csv -o no/f.csv")
    assert "ends in .csv, .tsv" in error("transform model.kofa -v rna=rna.csv -o f.docx")
    assert "a file that is read" in error("transform model.kofa -v rna=rna.csv -o rna.csv")
    assert "expected a folder" in error("impute model.kofa -v rna=rna.csv -o rna.csv")
    assert "a file that is read" in error("impute model.kofa -v rna=rna.csv -o .")
    assert "there is no folder 'no'" in error("impute model.kofa -v rna=rna.csv -o no/f")
    assert "expected a folder" in error("impute model.kofa -v rna=rna.csv -o -", code=2)


def test_no_folder_is_made_for_tables_that_cannot_be_filled(model):
    Path("new.csv").write_text("id,g0\n000,1\n", encoding="utf-8")
    assert "there is no column 'g1'" in error("impute model.kofa -v rna=new.csv -o filled")
    assert not (model.parent / "filled").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("fit -o m.kofa", "Expected a study.toml, or views as --view NAME=FILE"),
        ("fit -v rna -o m.kofa", "Expected --view NAME=FILE[:COLUMNS][:KIND] but got 'rna'"),
        ("fit -v a=rna.csv:g1:reel -o m.kofa", "'reel' is not a kind; did you mean 'real'?"),
        ("fit -v a=rna.csv -v a=rna.csv -o m.kofa", "the view 'a' is given twice"),
        ("fit study.toml --outputs stag -o m.kofa", "no view 'stag'; did you mean 'stage'?"),
        ("fit study.toml --kernel ran=rbf -o m.kofa", "no view 'ran'; did you mean 'rna'?"),
        ("fit study.toml --kernel rna -o m.kofa", "Expected --kernel NAME=KERNEL but got 'rna'"),
        ("fit study.toml --kernel stage=rbf -o m.kofa", "a view of kind categorical has no kernel"),
        (
            "fit study.toml --kernel rna=rbff -o m.kofa",
            "--kernel rna: View 'rna': expected a kernel",
        ),
        ("transform model.kofa -v rna=rna.csv -v rna=x.csv", "the view 'rna' is given twice"),
        ("transform model.kofa", "Expected tables; give --view NAME=FILE"),
        ("transform model.kofa -v ran=rna.csv", "has no view 'ran'; did you mean 'rna'?"),
        ("transform model.kofa -v rna=rna.csv:count", "the view is real in the model"),
        ("transform model.kofa -v rna=rna.csv:gg1", "no column 'gg1' in the model; did you mean"),
        ("predict model.kofa -v rna=rna.csv -t stag", "has no view 'stag'; did you mean 'stage'?"),
        (
            "predict model.kofa -v rna=rna.csv -t rna",
            "Expected --view of another view than 'rna' to predict it from; give --view NAME=FILE",
        ),
        ("predict model.kofa -v rna=rna.csv --quantiles ,", "expected numbers between 0 and 1"),
        ("transform model.kofa -v rna=rna.csv::count", "is real in the model; leave the kind out"),
        ("predict model.kofa -v rna=rna.csv --quantiles 5,95", "expected numbers between 0 and 1"),
        ("impute model.kofa -v rna=rna.csv -o f --format xls", "expected csv, tsv or parquet"),
    ],
)
@pytest.mark.usefixtures("model")
def test_wrong_options_are_errors_of_usage(command, message):
    assert message in error(command, code=2)


@pytest.mark.usefixtures("model")
def test_typer_finds_the_rest():
    assert "Missing argument 'MODEL'" in run("info", 2).stderr
    assert "--n-factors" in run("fit study.toml -o m.kofa --n-factors 0", 2).stderr
    said = error("fitt", 2)  # newer versions of typer add what may be meant
    assert said.startswith("No such command 'fitt'")
    assert "?;" not in said
    assert "--nothing" in run("info model.kofa --nothing", 2).stderr
    assert error("predict model.kofa -v rna=rna.csv --std").startswith("View 'stage'")
    assert "there is no column 'g0'" in error("transform model.kofa -v rna=clinical.csv")
    with pytest.raises(FileError):
        run("info rna.csv --debug")


@pytest.mark.usefixtures("folder")
def test_unreadable_files_are_errors_in_a_line(monkeypatch):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied", "rna.csv")

    monkeypatch.setattr(Path, "open", refused)
    assert error("fit study.toml -o m.kofa") == "rna.csv: Permission denied"


# ---------------------------------------------------------------- messages


@pytest.mark.usefixtures("folder")
def test_warnings_take_one_line():
    result = run("fit study.toml --max-iter 2 -o model.kofa")
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: The bound was still growing")
    assert "not converged after 2 iterations" in result.stdout
    silent = run("fit study.toml --max-iter 2 -o model.kofa --quiet --force")
    assert silent.output == ""


@pytest.mark.usefixtures("folder")
def test_progress_without_a_terminal_only_on_request():
    assert "iteration 1:" not in run("fit study.toml --max-iter 3 -o model.kofa").stderr
    command = "fit study.toml --n-init 2 --max-iter 3 -o model.kofa --progress --force"
    lines = run(command).stderr.splitlines()
    assert re.fullmatch(r"start 1 of 2, iteration 1: bound -?[\d.e+]+, \d+ factors?", lines[0])


def test_names_that_look_like_markup_are_shown_as_they_are(folder):
    (folder / "x.csv").write_text(
        "id,[red]a:b:\n" + "".join(f"{i:03d},{i}\n" for i in range(80)), encoding="utf-8"
    )
    shown = run("fit -v '[bold]x:a:=x.csv' -v rna=rna.csv --max-iter 300 -o m.kofa").stdout
    assert "[bold]x:a:" in shown


@pytest.mark.usefixtures("model")
def test_narrow_terminals_fold_tables():
    result = CliRunner().invoke(app, ["info", "model.kofa"], env={"COLUMNS": "60"})
    assert result.exit_code == 0
    assert "protein" in result.stdout


@pytest.mark.parametrize("command", ["", "fit", "transform", "predict", "impute", "info", "init"])
def test_help_has_examples(command):
    shown = run(f"{command} --help").stdout
    assert "Usage: kofa" in shown
    assert "bool" not in shown.lower()  # flags take no value
    assert command in ("info", "init") or re.search(r"kofa \w+ \w", shown)


def test_help_waits_for_no_library_of_numbers():
    """Only typer and rich are loaded for a page of help."""
    ask = "import sys; sys.argv = ['kofa', 'plot', '--help']\nfrom kofa.cli import main\n"
    heavy = {"numpy", "pandas", "sklearn", "scipy", "matplotlib"}
    show = f"heavy = {heavy!r} & set(sys.modules)\nprint(heavy)"
    code = f"{ask}try:\n    main()\nexcept SystemExit:\n    pass\n{show}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.stdout.splitlines()[-1] == "set()"


def test_version():
    assert run("--version").stdout == f"kofa {kofa.__version__}\n"


def test_without_typer_it_says_what_to_install():
    code = f"import sys; sys.modules['typer'] = None; {MAIN}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="locale")
    assert done.returncode == 1
    assert done.stderr == "error: the command line needs typer: pip install 'kofa[cli]'\n"


# ---------------------------------------------------------------- stopping and going on

LONG = ["fit", "-v", "rna=rna.csv", "-v", "protein=protein.csv", "--tol", "0", "--max-iter", "200"]


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_leaves_a_checkpoint_and_resume_goes_on(folder):
    if os.name == "nt":
        pytest.skip("no SIGINT for one process")
    process = program(*LONG, "-o", "model.kofa", "--progress", cwd=folder)
    assert "iteration 1" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    again = shlex.join(["kofa", *LONG, "-o", "model.kofa", "--progress", "--resume"])
    assert re.search(r"stopped after \d+ iterations?; continue with: " + re.escape(again), err)
    assert "Traceback" not in err
    left = set(os.listdir(folder)) - {"rna.csv", "protein.csv", "clinical.csv", "study.toml"}
    assert left == {"model.kofa.checkpoint"}

    run([*LONG, "-o", "model.kofa", "--resume", "-q"])
    run([*LONG, "-o", "whole.kofa", "-q"])
    one, two = kofa.load("model.kofa"), kofa.load("whole.kofa")
    assert one.n_iter_ == two.n_iter_ == 200
    assert one.lower_bound_ == pytest.approx(two.lower_bound_, rel=1e-10)
    assert not (folder / "model.kofa.checkpoint").exists()


@pytest.mark.usefixtures("folder")
def test_a_model_is_not_written_over_the_checkpoint_of_a_stopped_fit():
    x = np.random.default_rng(0).normal(size=(20, 3))
    kofa.FactorModel(checkpoint="mine.checkpoint").fit({"x": x})
    before = Path("mine.checkpoint").read_bytes()
    assert "is not a kofa model" in error("fit study.toml -o mine.checkpoint")
    assert Path("mine.checkpoint").read_bytes() == before


def test_stopping_before_anything_is_written(folder, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(kofa.FactorModel, "fit", stopped)
    stderr = run("fit study.toml -o model.kofa", 130).stderr
    assert "stopped before the first iteration; nothing was written" in stderr
    assert not (folder / "model.kofa").exists()
    monkeypatch.setattr("kofa.cli.steps.fit.fit", stopped)
    assert "stopped; nothing was written" in run("fit study.toml -o model.kofa", 130).stderr


@pytest.mark.usefixtures("folder")
def test_checkpoints_that_are_there_or_not():
    stderr = run("fit study.toml -o model.kofa --resume").stderr
    assert stderr == "there is no checkpoint model.kofa.checkpoint; starting from the beginning\n"
    x = np.random.default_rng(0).normal(size=(20, 3))
    kofa.FactorModel(checkpoint="mine.checkpoint").fit({"x": x})
    options = "--checkpoint mine.checkpoint --checkpoint-every 0"
    stderr = run(f"fit study.toml -o model.kofa --force {options}").stderr
    assert stderr.startswith("warning: starting anew; mine.checkpoint of a fit that was stopped")
    assert not Path("mine.checkpoint").exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("wrong", ["rna=no.csv", "rna=rna.csv::count"])
def test_an_error_stands_alone_where_there_is_no_checkpoint_to_resume(wrong):
    """The first is found in the tables, the second by the fit."""
    assert error(f"fit -v {wrong} -v protein=protein.csv -o model.kofa --resume")


# ---------------------------------------------------------------- init and demo


@pytest.mark.usefixtures("folder")
def test_init_guesses_kinds_that_fit():
    rng = np.random.default_rng(0)
    ids = pd.Index([f"{i:03d}" for i in range(80)], name="id")
    reads = pd.DataFrame(rng.poisson(3, (80, 30)), ids).add_prefix("r")
    reads.to_csv("reads.tsv", sep="\t")
    marks = pd.DataFrame({"m": rng.integers(0, 2, 80), "dose": np.exp(rng.normal(size=80))}, ids)
    marks.astype(object).mask(rng.random((80, 2)) < 0.1, "?").to_csv("marks.csv")
    np.savez(
        "arrays.npz", u=rng.normal(size=(80, 3)), v=rng.normal(size=(80, 2)), samples=list(ids)
    )
    Path("bad.csv").write_text("", encoding="utf-8")
    assert "add --force to replace it" in error("init")
    shown = run("init --force").stdout
    assert "left out bad.csv: the file is empty" in shown
    plan = read_study(Path("study.toml"))
    kinds = {name: source.kind for name, source in plan.sources.items()}
    assert kinds == {
        "u": "real", "v": "real", "clinical": "real", "stage": "categorical", "protein": "real",
        "marks": "binary", "marks_positive": "positive", "reads": "count", "rna": "real",
    }  # fmt: skip
    assert plan.sources["marks"].reading.missing == ("?",)
    run("fit study.toml --max-iter 3 -o model.kofa -q")


def test_init_sees_separators_and_missing_ids(tmp_path):
    (tmp_path / "a.csv").write_text("x;y\n1,5;2\n2,5;3\n1,5;0\n", encoding="utf-8")
    (tmp_path / "note.md").write_text("no table", encoding="utf-8")
    run(["init", tmp_path])
    declared = tomllib.loads((tmp_path / "study.toml").read_text(encoding="utf-8"))["views"]["a"]
    assert declared["decimal"] == ","
    assert declared["index"] is False
    assert read_study(tmp_path / "study.toml").read()["a"].shape[0] == 3


def test_init_turns_tables_whose_columns_are_samples(folder):
    tables()["rna"].T.to_csv("rna.csv")
    assert "rna" in run("init --force").stdout
    text = (folder / "study.toml").read_text(encoding="utf-8")
    assert text.count("transpose = true") == 1
    pd.testing.assert_frame_equal(
        read_study(Path("study.toml")).sources["rna"].read(), tables()["rna"], check_names=False
    )
    run("fit study.toml --max-iter 3 -o model.kofa -q")


@pytest.mark.usefixtures("folder")
def test_init_declares_what_fit_takes_from_a_folder_of_odd_files():
    rna = tables()["rna"].to_csv()
    Path("semicolons.csv").write_text(
        tables()["rna"].to_csv(sep=";", decimal=","), encoding="utf-8"
    )
    Path("windows.csv").write_bytes(b"\xef\xbb\xbf" + rna.replace("\n", "\r\n").encode())
    Path("spaces.csv").write_text(rna + "\n   \n", encoding="utf-8")
    Path("trailing.csv").write_text(rna.replace("\n", ",\n"), encoding="utf-8")
    Path("comment.csv").write_text("# by X\n" + rna, encoding="utf-8")
    Path("thousands.csv").write_text('id,a\n000,"1,500"\n001,"2,500"\n', encoding="utf-8")
    Path("no_id.csv").write_text(rna + ",1,1,1,1,1,1\n", encoding="utf-8")
    Path("strangers.csv").write_text("id,s\nA,1.5\nB,2.5\n", encoding="utf-8")
    shown = run("init --force").stdout
    assert "left out comment.csv: expected the names of columns" in shown
    assert "left out no_id.csv, line 82, column 'id': expected a sample id" in shown
    assert "left out column 'a' of thousands.csv" in shown
    assert "strangers is not used: strangers.csv shares no sample with the others" in shown
    plan = read_study(Path("study.toml"))
    assert not {"comment", "no_id", "strangers"} & set(plan.views)
    for name in ("semicolons", "windows", "spaces", "trailing"):
        assert plan.sources[name].read().shape == (80, 6)
    run("fit study.toml --max-iter 3 -o model.kofa -q")


@pytest.mark.usefixtures("folder")
def test_init_leaves_out_new_samples_and_says_so():
    for name, frame in tables(seed=1).items():
        frame.set_axis([f"new{i}" for i in range(len(frame))]).to_csv(f"a_{name}.csv")
    known = tables()["protein"]
    known.iloc[:, ::-1].to_csv("again.csv")  # the same samples: a view, not new samples
    shown = run("init --force --outputs stage").stdout
    text = Path("study.toml").read_text(encoding="utf-8")
    for name in ("rna", "protein", "clinical"):
        said = f"left out a_{name}.csv: new samples, with the columns of {name}.csv"
        assert said in shown
        assert f"# {said}" in text
    plan = read_study(Path("study.toml"))
    assert list(plan.views) == ["again", "clinical", "stage", "protein", "rna"]
    assert plan.model == {"outputs": ["stage"]}
    run("check study.toml")


def test_of_two_files_with_the_same_columns_the_smaller_has_the_new_samples(tmp_path):
    rows = [f"s{i},{i}.5,{i % 7}.25" for i in range(30)]
    for name, some in {"a": rows[:10], "b": rows[10:]}.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,x,y", *some]), encoding="utf-8")
    shown = run(["init", tmp_path]).stdout
    assert "left out a.csv: new samples, with the columns of b.csv" in shown
    assert list(read_study(tmp_path / "study.toml").views) == ["b"]


def test_rows_without_ids_are_new_samples_if_there_are_fewer(tmp_path):
    rows = [f"{i}.5,{i % 7}.25" for i in range(30)]
    for name, some in {"old": rows, "new": rows[:9]}.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(["x,y", *some]), encoding="utf-8")
    assert "left out new.csv: new samples" in run(["init", tmp_path]).stdout


@pytest.mark.usefixtures("folder")
def test_init_leaves_out_what_kofa_evaluate_wrote():
    run("evaluate study.toml --cv 2 --tol 0.5 -o scores.csv --predictions held_out.csv -q")
    shown = run("init --force").stdout
    assert "left out scores.csv: kofa evaluate wrote it" in shown
    assert "left out held_out.csv: kofa evaluate wrote it" in shown
    assert "there is no view or column 'stag'; did you mean 'stage'?" in error(
        "init --force --outputs stag", 2
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--n-factors -3", "--n-factors: expected 1 or more"),
        ("--n-factors many", "--n-factors: expected a whole number"),
        ("--tol few", "--tol: expected a number"),
        ("--tol -1", "--tol: expected 0 or more"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_values_of_options_are_refused_in_plain_words(options, said):
    message = error(f"fit study.toml -o m.kofa {options}", 2)
    assert message.startswith(said)
    assert "Input" not in message


@pytest.mark.usefixtures("model")
def test_a_model_in_place_of_a_study_is_said_to_be_one():
    said = "model.kofa: expected a study but this is a model; give the study.toml"
    assert error("evaluate model.kofa").startswith(said)
    assert "a categorical view has no standard dev" in error(
        "predict model.kofa -v rna=rna.csv -t stage --std"
    )


@pytest.mark.usefixtures("folder")
def test_a_column_of_numbers_becomes_a_view_of_its_own_if_it_is_an_output():
    run("init --force --outputs p1 --outputs stage")
    plan = read_study(Path("study.toml"))
    assert plan.model == {"outputs": ["p1", "stage"]}
    found = plan.read()
    assert list(found["p1"].columns) == ["p1"]
    assert list(found["protein"].columns) == ["p0", "p2", "p3"]
    tables()["protein"].rename(columns=str.upper).assign(p1=1.5).to_csv("twice.csv")
    assert "no view or column 'p1'" in error("init --force --outputs p1", 2)  # which of the two?


@pytest.mark.usefixtures("folder")
def test_a_view_of_one_column_may_be_named_by_it():
    tables()["protein"][["p0"]].rename(columns={"p0": "months"}).to_csv("followup.csv")
    run("init --force --outputs months")
    assert "followup" not in read_study(Path("study.toml")).views


@pytest.mark.usefixtures("folder")
def test_check_says_what_would_be_fitted_and_writes_nothing():
    before = sorted(os.listdir())
    shown = run("check study.toml --n-factors 4 --n-init 3").stdout
    assert shown.startswith("80 samples in 3 views, 50 of them in all\n")
    assert re.search(r"^stage +categorical +60 +1 +0.0% +output +– +clinical.csv", shown, re.M)
    assert re.search(r"^protein +real +60 +4 +0.0% +RBF\(width=3.0", shown, re.M)
    assert "at most 4 factors, the best of 3 starts, to predict 'stage' from the others" in shown
    assert sorted(os.listdir()) == before


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"rna.csv"', '"nope.csv"', "nope.csv: there is no such file"),
        ("random_state = 3", "n_init = 0", "study.toml, line 3: expected n_init"),
        ("random_state = 3", "random_state = -1", "study.toml, line 3: expected random_state"),
        ('file = "rna.csv"', 'file = "rna.csv"\nkind = "count"', "rna.csv: View 'rna', column"),
        ('"categorical"', '"real"', "clinical.csv, line 2, column 'stage': expected a number"),
    ],
)
def test_check_finds_what_a_fit_would(old, new, message):
    Path("study.toml").write_text(STUDY.replace(old, new, 1), encoding="utf-8")
    assert error("check study.toml").startswith(message)
    assert error("fit study.toml -o m.kofa").startswith(message)


def test_completion_knows_commands_options_and_plots():
    for words, found in (("kofa ev", "evaluate"), ("kofa fit --n-i", "--n-init"),
                         ("kofa plot var", "variance_explained")):  # fmt: skip
        ask = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        process = subprocess.run(
            [sys.executable, "-c", MAIN],
            env=os.environ | ask | {"_KOFA_COMPLETE": "complete_bash"},
            capture_output=True,
            encoding="utf-8",
        )
        assert process.stdout.split() == [found]
    assert "--install-completion" in run("--help").stdout


@pytest.mark.filterwarnings("ignore")
def test_init_finds_modalities_and_what_is_known_of_samples(tmp_path, rng):
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    ids = [f"c{i}" for i in range(30)]
    obs = pd.DataFrame({"cell": ["B", "T", "B"] * 10}, index=ids)
    rna = anndata.AnnData(rng.poisson(2, (30, 25)).astype(float), obs=obs)
    protein = anndata.AnnData(rng.normal(size=(30, 3)), obs=obs.iloc[:, :0])
    rna.write_h5ad(tmp_path / "a.h5ad")
    mudata.MuData({"rna": rna, "protein": protein}).write_h5mu(tmp_path / "b.h5mu")
    run(["init", tmp_path, "-q"])
    plan = read_study(tmp_path / "study.toml")
    kinds = {name: source.kind for name, source in plan.sources.items()}
    assert kinds == {"a": "count", "cell": "categorical", "rna": "count", "protein": "real"}
    assert plan.sources["cell"].read()["cell"].tolist()[:3] == ["B", "T", "B"]


def test_init_without_tables(tmp_path):
    assert "there are no tables in it" in error(["init", tmp_path])
    assert "there is no such folder" in error(["init", tmp_path / "no"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["0", "1", "1"], "binary"),
        (["0", "0", "0"], "count"),
        (["3", "0", "12"], "count"),
        (["71", "64", "38"], "real"),
        (["0.1", "0.2", "0.1", "90"], "positive"),
        (["-1", "2"], "real"),
        (["a", "b", "a", "b"], "categorical"),
        (["a", "b", "c", "d", "e"], "text"),
        (["a", "b"], "text"),
        (["a", "?", "a"], "constant"),
        (["01", "12", "01", "12"], "categorical"),
        (["", "NA"], "empty"),
        (["1", "2", "-999"], "count"),
    ],
)
def test_kinds_of_columns(cells, kind):
    assert guess_column("x", cells).kind == kind


def test_marks_of_missing_labels_are_no_class():
    found = guess_column("x", ["a", "b", "a", "b", "?", "unknown", "?"])
    assert (found.kind, found.missing) == ("categorical", ("?", "unknown"))


def test_a_word_among_numbers_is_named_with_its_cell(tmp_path):
    rows = [f"s{i},{i / 7:.3f},{i % 5}" for i in range(20)]
    rows[3] = "s3,high,3"
    rows[7] = "s7,1.0,two"
    (tmp_path / "labs.csv").write_text("\n".join(["id,crp,visits", *rows]), encoding="utf-8")
    (tmp_path / "x.csv").write_text(
        "\n".join(["id,a", *(f"s{i},{i}.5" for i in range(20))]), encoding="utf-8"
    )
    shown = run(["init", tmp_path]).stdout
    for name, word, sample in (("crp", "high", "s3"), ("visits", "two", "s7")):
        assert (
            f"left out column '{name}' of labs.csv: its cells are numbers, but '{word}' in the row "
            f"of '{sample}'; correct it, or add missing = [\"{word}\"] if it means missing"
        ) in shown
    assert "labs" not in read_study(tmp_path / "study.toml").views


def test_many_columns_with_a_word_among_numbers_are_counted(tmp_path):
    names = [f"v{j}" for j in range(5)]
    rows = [",".join([f"s{i}", *(f"{i}.{j}" for j in range(5))]) for i in range(9)]
    rows[2] = "s2,a,b,c,d,e"
    (tmp_path / "x.csv").write_text("\n".join([f"id,{','.join(names)}", *rows]), encoding="utf-8")
    said = error(["init", tmp_path])
    assert (
        "left out column 'v0' of x.csv: its cells are numbers, but 'a' in the row of 's2'" in said
    )


def test_the_command_line_runs_as_a_module_too():
    call = [sys.executable, "-m", "kofa.cli", "--version"]
    done = subprocess.run(call, capture_output=True, encoding="utf-8", check=True)
    assert (done.stdout, done.stderr) == (run("--version").stdout, "")


@pytest.mark.usefixtures("model")
def test_what_is_read_is_looked_at_before_what_is_written():
    assert error("fit nope.toml").startswith("nope.toml: there is no such file")
    assert error("impute nope.kofa").startswith("nope.kofa: there is no such file")
    assert error("fit study.toml", 2) == "Expected -o with the file of the model; add -o model.kofa"
    assert error("impute model.kofa -v rna=rna.csv", 2).startswith("Expected -o with a folder; add")


def test_demo_shows_a_result_and_writes_its_tables(tmp_path):
    shown = run("demo").stdout
    right = re.search(r"^minerals and phenols +(\d+)%", shown, re.M)
    assert int(right[1]) >= 90
    run(["demo", tmp_path / "wine"])
    assert "study.toml" in os.listdir(tmp_path / "wine")
    assert "expected a new or empty folder; choose" in error(["demo", tmp_path / "wine"])


# ---------------------------------------------------------------- the pages

CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def commands(page):
    """(command, lines shown below it) of the console blocks of a page that use kofa."""
    for block in CONSOLE.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *shown = part.rstrip().splitlines()
            yield command.partition("  #")[0].strip(), shown


def without_numbers(lines):
    return [re.sub(r"\s+", " ", re.sub(r"-?\d[\d.,e-]*", "#", line)).strip() for line in lines]


@pytest.mark.parametrize("page", ["docs/commandline.md", "README.md"])
def test_commands_in_the_pages_work(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command, shown in commands(ROOT / page):
        if command.startswith("cd "):
            monkeypatch.chdir(command.removeprefix("cd "))
        elif command.startswith("kofa "):
            printed = run(command.removeprefix("kofa ")).stdout.rstrip().splitlines()
            assert not shown or without_numbers(printed)[: len(shown)] == without_numbers(shown)


@pytest.mark.parametrize(("page", "least"), [("docs/commandline.md", 6), ("README.md", 3)])
def test_pages_have_commands(page, least):
    used = [command for command, _ in commands(ROOT / page) if command.startswith("kofa ")]
    assert len(used) >= least


def test_warnings_are_not_swallowed_outside_of_commands():
    """What a command does to warnings ends with it."""
    before = warnings.showwarning
    run("demo -q")
    assert warnings.showwarning is before
