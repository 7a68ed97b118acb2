"""Commands, studies and files that no one should give: one line, the right code, nothing lost."""

from __future__ import annotations

import os
import re
import signal
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner  # noqa: E402

import kofa  # noqa: E402
from commands import STUDY, error, program, run, tables  # noqa: E402
from kofa.cli.app import app  # noqa: E402
from kofa.cli.study import read_study  # noqa: E402
from kofa.files import file_names  # noqa: E402

POSIX = pytest.mark.skipif(os.name != "posix", reason="what files are called elsewhere")


def names(place="."):
    return sorted(os.listdir(place))


def studied(old, new):
    """The study with a piece of it replaced, and the error of a fit with it."""
    assert old in STUDY
    Path("study.toml").write_text(STUDY.replace(old, new, 1), encoding="utf-8")
    return error("fit study.toml -o m.kofa")


# ---------------------------------------------------------------- every view has its own file


def fit_views(*called, columns=2, kind=""):
    """A model of views with these names, each from a file of its own; the options --view."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((30, 1))
    options = []
    for n, name in enumerate(called):
        values = z + 0.1 * rng.standard_normal((30, columns))
        values = (values > 0).astype(int) if kind else values
        pd.DataFrame(values, [f"s{i}" for i in range(30)]).add_prefix(f"v{n}_").to_csv(f"{n}.csv")
        options += ["--view", f"{name}={n}.csv"]
    typed = [f"{one}{kind}" if "=" in one else one for one in options]
    run(["fit", *typed, "--max-iter", "3", "-o", "m.kofa", "-q"])
    return options


@pytest.mark.usefixtures("folder")
def test_impute_gives_every_view_a_file_of_its_own():
    called = ["a/b", "a_b", "A_B", "con", ".", "..", "x" * 300, "ü/ü"]
    options = fit_views(*called)
    shown = run(["impute", "m.kofa", *options, "-o", "filled"]).stdout
    files = names("filled")
    assert len({name.casefold() for name in files}) == len(called)
    for n, name in enumerate(called):
        (file,) = (f for f in files if f"v{n}_0" in Path("filled", f).read_text(encoding="utf-8"))
        assert file in shown.replace("\n", "").replace(" ", "") or len(name) > 80
    assert {"a_b.csv", "_con.csv"} <= set(files)


@pytest.mark.usefixtures("folder")
def test_a_view_has_the_same_file_whichever_views_are_given():
    options = fit_views("a/b", "a_b")
    run(["impute", "m.kofa", *options[:2], "-o", "one", "-q"])
    run(["impute", "m.kofa", *options, "-o", "both", "-q"])
    assert names("one") == ["a_b_2.csv"]
    assert names("both") == ["a_b.csv", "a_b_2.csv"]


@pytest.mark.parametrize(
    "called",
    [
        ["A", "a", "ａ", "\u00c5", "A\u030a", "\u212b"],
        ["a_2", "a/", "a\\", "a:"],
        ["nul", "NUL.txt", "com1", "COM1", "lpt9.x", "aux"],
        ["", " ", ".", "..", "...", "-", "-o"],
        ["y" * 300, "y" * 301, "ü" * 200, "\U0001f600" * 100],
        ["\udcff", "\udcfe", "\x00", "\n", "\x1b[31m", "\x7f"],
    ],
)
def test_names_of_files_differ_on_every_file_system(called):
    found = list(file_names(called).values())
    assert len({name.casefold() for name in found}) == len(called)
    for name in found:
        assert name
        assert len(name.encode()) <= 200
        assert not set('<>:"/\\|?*\x00\n\x1b\x7f') & set(name)
        assert name[0] not in ".-"
        assert name[-1] not in ". "
        assert name.split(".")[0].lower() not in ("con", "nul", "aux", "com1", "lpt9")


def test_impute_writes_all_tables_or_none(model, monkeypatch):
    write = pd.DataFrame.to_csv

    def full_disk(frame, *args, **kwargs):
        if "p0" in frame.columns:
            raise OSError(28, "No space left on device")
        return write(frame, *args, **kwargs)

    Path("filled").mkdir()
    Path("filled", "rna.csv").write_text("mine", encoding="utf-8")
    monkeypatch.setattr(pd.DataFrame, "to_csv", full_disk)
    command = f"impute {model} -v rna=rna.csv -v protein=protein.csv -o"
    assert "protein.csv: it cannot be written: No space left" in error(f"{command} filled")
    assert names("filled") == ["rna.csv"]
    assert Path("filled", "rna.csv").read_text(encoding="utf-8") == "mine"
    error(f"{command} new")
    assert not Path("new").exists()


# ---------------------------------------------------------------- options


@pytest.mark.parametrize("option", ["--tol", "--checkpoint-every"])
@pytest.mark.usefixtures("folder")
def test_an_option_of_the_command_is_not_looked_for_in_the_study(option):
    said = error(f"fit study.toml {option}=inf -o out.kofa", 2)
    assert said.startswith(f"{option}: expected a number of at least 0")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ("--index ²", 1, "there is no index column '²'"),
        ("--index=--5", 1, "there is no index column '--5'"),
        (f"--index {'9' * 5000}", 1, "there is no index column '999"),
        ("--index 99", 1, "there is no column 99 for the index"),
        ("--encoding undefined", 2, "--encoding: unknown encoding 'undefined'"),
        ("--encoding hex", 2, "--encoding: unknown encoding 'hex'"),
        ("--encoding ''", 2, "Unknown encoding ''"),
        ("--sep 1", 2, "--sep: expected a mark that cells do not have but got '1'"),
        ("--decimal e", 2, "--decimal: expected a mark that cells do not have but got 'e'"),
        ("--sep ';' --decimal ';'", 2, "expected sep and decimal to differ but both are ';'"),
        ("-o ''", 2, "--out: expected a name but got nothing"),
        ("--study ''", 2, "--study: expected a name but got nothing"),
        ("-o loop.csv", 1, "loop.csv: this link leads in a circle"),
        ("-v protein=loop.csv", 1, "loop.csv: this link leads nowhere"),
        ("-o pipe.csv", 1, "pipe.csv: expected the name of a file but this is a pipe or a device"),
        ("-o model.csv", 1, "model.csv: this is a file that is read"),
        ("-o study.csv", 1, "study.csv: this is a file that is read"),
        ("-o RNA.csv", 1, "RNA.csv: this is a file that is read"),
        ("--debug --nothing", 2, "No such option"),
    ],
)
@POSIX
def test_odd_options_are_errors_in_a_line(model, options, code, message):
    os.symlink("loop.csv", "loop.csv")
    os.mkfifo("pipe.csv")
    if not Path("RNA.csv").exists():
        os.link("rna.csv", "RNA.csv")  # as on a file system that takes A for a
    model.rename("model.csv")
    Path("study.toml").rename("study.csv")
    before = names()
    study = "--study study.csv" if "study.csv" in options else ""
    if study:
        Path("study.csv").rename("study.toml")
        os.link("study.toml", "study.csv")
        study = "--study study.toml"
    assert message in error(f"transform model.csv -v rna=rna.csv {study} {options}", code)
    assert set(names()) == {*before, *(["study.toml"] if study else [])}


@pytest.mark.usefixtures("folder")
@POSIX
def test_a_model_is_not_written_to_odd_places():
    os.symlink("loop", "loop")
    os.mkfifo("pipe")
    for place, message in [
        (".", "expected the name of a file but this is a folder"),
        ("/", "expected the name of a file but this is a folder"),
        ("loop", "this link leads in a circle"),
        ("pipe", "this is a pipe or a device"),
    ]:
        assert message in error(f"fit study.toml -o {place}")
        assert message in error(f"fit study.toml -o m.kofa --checkpoint {place}")
    assert "--out: expected a name" in error("fit study.toml -o ''", 2)
    assert "m.kofa" not in names()


@POSIX
@pytest.mark.usefixtures("model")
def test_tables_are_written_through_links():
    Path("real.csv").write_text("old", encoding="utf-8")
    os.symlink("real.csv", "link.csv")
    run("transform model.kofa -v rna=rna.csv -o link.csv -q")
    assert Path("link.csv").is_symlink()
    assert Path("real.csv").read_text(encoding="utf-8").startswith("id,factor1")


@pytest.mark.usefixtures("folder")
def test_a_fault_of_kofa_is_told_as_one_and_debug_shows_it(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("kofa.cli.steps.describe.info", broken)
    result = CliRunner().invoke(app, ["info", "rna.csv"])
    assert result.exit_code == 1
    message = "error: kofa cannot go on (ZeroDivisionError: by zero); this is a fault of kofa"
    assert result.stderr.startswith(message)
    with pytest.raises(ZeroDivisionError):
        run("info rna.csv --debug")


@pytest.mark.usefixtures("folder")
def test_kinds_by_the_names_of_distributions_have_a_hint():
    for word, kind in [("gaussian", "real"), ("Bernoulli", "binary"), ("poisson", "count")]:
        message = error(f"fit -v a=rna.csv:g1:{word} -o m.kofa", 2)
        assert f"{word!r} is not a kind; did you mean {kind!r}?" in message
        message = studied('kind = "categorical"', f'kind = "{word}"')
        assert f"unknown kind {word!r}; did you mean {kind!r}?" in message


# ---------------------------------------------------------------- studies


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"categorical"', '["real"]', "line 14: View 'stage': unknown kind ['real']"),
        ('name = "rbf"', 'name = ["rbf"]', "line 10: View 'protein': unknown kernel ['rbf']"),
        ('name = "rbf"', "name = {a = 1}", "line 10: View 'protein': unknown kernel {'a': 1}"),
        ('{name = "rbf", width = 3.0}', '{name = "mixture"}', "line 10: View 'protein'"),
        (
            '{name = "rbf", width = 3.0}',
            '{name = "mixture", kernels = 3}',
            "line 10: View 'protein'",
        ),
        (
            '{name = "rbf", width = 3.0}',
            '{name = "mixture", kernels = ["rbf"], weights = ["a"]}',
            "line 10: View 'protein'",
        ),
        (
            '{name = "rbf", width = 3.0}',
            '{name = "mixture", kernels = ["rbf"], weights = 3}',
            "line 10: View 'protein'",
        ),
        ("width = 3.0", "groups = 3", "line 10: View 'protein'"),
        ("width = 3.0", "groups = [[1], [2], [3], [4]]", "line 10: View 'protein'"),
        ("width = 3.0", 'relevance = ["a", "b"]', "line 10: View 'protein'"),
        ('"rna.csv"', '"a\\u0000b"', "line 6: View 'rna': a null in the name 'a\\x00b'"),
        ("random_state = 3", f"random_state = {'9' * 5000}", ": not valid TOML: "),
        ("random_state = 3", f"n_init = {'[' * 20000}", ": too many brackets within brackets"),
        ("3.0}", "3.0}\nencoding = 'undefined'", "line 11: unknown encoding 'undefined'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_values_of_the_wrong_type_name_their_place(old, new, message):
    found = studied(old, new)
    assert found.removeprefix("study.toml").lstrip(", ").startswith(message)
    assert names() == ["clinical.csv", "protein.csv", "rna.csv", "study.toml"]


@pytest.mark.usefixtures("folder")
def test_a_null_in_the_name_of_a_view_is_shown_escaped():
    text = STUDY.replace("[views.rna]", '[views."r\\u0000a"]')
    Path("study.toml").write_text(text, encoding="utf-8")
    result = run("fit study.toml --max-iter 2 -o m.kofa")
    assert "r\\x00a" in result.stdout
    assert "\x00" not in result.output


# ---------------------------------------------------------------- what is shown


@pytest.mark.usefixtures("folder")
def test_no_escape_sequence_reaches_the_terminal():
    rna = tables()["rna"].rename(columns={"g0": "\x1b[31mg0"}, index={"000": "\x9b2J000"})
    rna.to_csv("rna.csv")
    fit = ["fit", "-v", "\x1b]0;a\x07=rna.csv", "--max-iter", "2", "-o", "m\x1b.kofa"]
    shown = run(fit).output + run(["info", "m\x1b.kofa"]).output
    assert shown.count("\\x1b]0;a\\x07") == 2
    assert "model: m\\x1b.kofa" in shown
    assert not {"\x1b", "\x9b", "\x07"} & set(shown)
    for command, code in [
        (["fit", "-v", "x=\x1b[31m.csv", "-o", "m.kofa"], 1),
        (["info", "\x1b[31m"], 1),
        (["info", "a", "\x1b[31m"], 2),
        (["info", "--\x1b[31m"], 2),
        (["\x1b[31m"], 2),
        (["fit", "-v", "x=\u202eexe.csv", "-o", "m.kofa"], 1),
    ]:
        message = error(command, code)
        assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(message)
        assert "\\x1b" in message or "\\u202e" in message


def test_tables_on_a_terminal_are_shown_escaped_and_in_pipes_as_they_are(capsys, monkeypatch):
    frame = pd.DataFrame({"\x1b[31m": [1]}, ["s"])
    kofa.files.write_file(frame, "-")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    kofa.files.write_file(frame, "-")
    assert capsys.readouterr().out == "sample,\x1b[31m\ns,1\n" + "sample,\\x1b[31m\ns,1\n"


@pytest.mark.usefixtures("model")
def test_every_locale_shows_what_it_can():
    Path("ü.csv").write_bytes(Path("rna.csv").read_bytes())
    command = ["fit", "-v", "ü=ü.csv", "-o", "m.kofa", "--max-iter", "2"]
    result = CliRunner(charset="ascii").invoke(app, command)
    assert result.exit_code == 0
    assert re.search(r"^\\xfc +real +- +80", result.stdout, re.M)  # in place of a dash
    kofa.load("m.kofa")


@pytest.mark.usefixtures("model")
def test_a_table_that_stdout_cannot_encode_is_not_half_written():
    tables()["rna"].rename(index={"050": "ü"}).to_csv("rna.csv")
    command = ["transform", "model.kofa", "-v", "rna=rna.csv"]
    result = CliRunner(charset="ascii").invoke(app, command)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: stdout is in ascii, which has no '\\xfc'; write to a file\n"


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("fit study.toml -o m.kofa --max-iter 3", 0, "warning: The bound was still growing"),
        ("transform model.kofa -v rna=rna.csv -o out.csv", 0, ""),
        ("transform model.kofa -v rna=rna.csv", 1, "error: stdout is closed; write to a file"),
        ("info model.kofa", 1, "error: stdout is closed"),
        ("info model.kofa --json", 1, "error: stdout is closed"),
    ],
)
@pytest.mark.usefixtures("model")
def test_a_closed_stdout_fails_what_it_was_for_and_nothing_else(
    capsys, monkeypatch, command, code, message
):
    monkeypatch.setattr(sys, "stdout", None)  # as Python finds it after >&-
    with pytest.raises(SystemExit) as ended:
        app(command.split())
    assert ended.value.code == code
    stderr = capsys.readouterr().err
    assert stderr.startswith(message)
    assert len(stderr.splitlines()) == bool(message)
    assert all(kofa.load(name) for name in names() if name.endswith(".kofa"))
    assert ("m.kofa" in names(), "out.csv" in names()) == ("m.kofa" in command, "out" in command)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.usefixtures("folder")
def test_a_full_stdout_does_not_call_a_model_failed():
    with open("/dev/full", "wb") as full:
        process = program("fit", "study.toml", "-o", "m.kofa", "--max-iter", 3, stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "warning: stdout cannot be written: No space left on device; the files are" in err
    kofa.load("m.kofa")
    assert "m.kofa.checkpoint" not in names()


def test_a_checkpoint_that_stays_does_not_call_a_model_failed(folder, monkeypatch):
    unlink = Path.unlink

    def refused(path, missing_ok=False):
        if path.name == "m.kofa.checkpoint":
            raise PermissionError(13, "Permission denied", str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refused)
    stderr = run("fit study.toml --max-iter 300 -o m.kofa").stderr
    assert stderr.startswith("warning: m.kofa.checkpoint is no longer needed but cannot be removed")
    kofa.load(folder / "m.kofa")


@pytest.mark.usefixtures("folder")
def test_what_took_the_place_of_a_checkpoint_stays(monkeypatch):
    save = kofa.FactorModel.save

    def meanwhile(model, path):
        Path("m.kofa.checkpoint").write_text("mine", encoding="utf-8")
        save(model, path)

    monkeypatch.setattr(kofa.FactorModel, "save", meanwhile)
    run("fit study.toml --max-iter 3 -o m.kofa -q")
    assert Path("m.kofa.checkpoint").read_text(encoding="utf-8") == "mine"


@POSIX
def test_names_that_are_not_utf_8(folder):
    odd = os.fsdecode(b"\xff\xfe.csv")
    try:
        Path("rna.csv").rename(odd)
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    shown = run(["fit", "-v", f"x={odd}", "--max-iter", "2", "-o", os.fsdecode(b"\xff.kofa")])
    assert "model: \\udcff.kofa" in shown.stdout
    impute = ["impute", os.fsdecode(b"\xff.kofa"), "--format", "parquet", "-o"]
    run([*impute, os.fsdecode(b"\xfd"), "-v", f"x={odd}"])
    run([*impute, "again", "-v", os.fsdecode(b"x=\xfd/x.parquet")])
    assert b"\xfd" in os.listdir(os.fsencode(folder))
    assert "left out \\udcff\\udcfe.csv: the name" in run("init --force").stdout
    assert len(read_study(Path("study.toml")).views) > 1
    message = error(["info", os.fsdecode(b"\xfc")])
    assert message.startswith("\\udcfc: there is no such file")


# ---------------------------------------------------------------- Ctrl-C


@POSIX
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(
    ("command", "made"),
    [
        ("transform model.kofa -v rna=rna.csv -o out.csv", "out.csv"),
        ("impute model.kofa -v rna=rna.csv -v protein=protein.csv -o filled", "filled"),
        ("demo wine", "wine"),
    ],
)
def test_ctrl_c_waits_for_what_is_being_written_and_twice_leaves_no_pieces(
    model, monkeypatch, command, made
):
    write, before, presses = pd.DataFrame.to_csv, names(), iter([])

    def pressed(frame, *args, **kwargs):
        if next(presses, False):
            signal.raise_signal(signal.SIGINT)
        return write(frame, *args, **kwargs)

    monkeypatch.setattr(pd.DataFrame, "to_csv", pressed)
    if made != "out.csv":  # which is the only table
        presses = iter([True, True])
        assert "stopped; nothing was written" in run(command, 130).stderr
        assert names() == before
    presses = iter([True])
    assert f"stopped; {made} is written" in run(command, 130).stderr
    assert set(names()) == {*before, made}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert model.exists()


@POSIX
@pytest.mark.usefixtures("ctrl_c", "model")
def test_ctrl_c_is_ignored_in_the_background(monkeypatch):
    write = pd.DataFrame.to_csv

    def pressed(frame, *args, **kwargs):
        signal.raise_signal(signal.SIGINT)
        return write(frame, *args, **kwargs)

    monkeypatch.setattr(pd.DataFrame, "to_csv", pressed)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run("transform model.kofa -v rna=rna.csv -o out.csv")
    assert "out.csv" in names()


# ---------------------------------------------------------------- predict


@pytest.mark.usefixtures("folder")
def test_names_of_results_that_clash_are_refused():
    fit_views("x")
    x = pd.read_csv("0.csv", index_col=0)
    pd.DataFrame({"a": x["v0_0"] > 0, "a_p": x["v0_1"] > 0}).astype(int).to_csv("y.csv")
    run("fit -v x=0.csv -v y=y.csv:binary --max-iter 3 -o m.kofa -q --force")
    for name in ("out.csv", "out.parquet"):
        message = error(f"predict m.kofa -v x=0.csv -t y --proba -o {name}")
        assert message.startswith("View 'y': two columns of the result would be called 'a_p'")
        run(f"predict m.kofa -v x=0.csv -t y -o {name} -q")


@pytest.mark.usefixtures("folder")
def test_ids_that_are_called_as_a_result_get_another_name():
    rna = tables()["rna"].rename_axis("p0")
    rna.to_csv("rna.csv")
    run("fit -v rna=rna.csv -v protein=protein.csv --max-iter 3 -o m.kofa -q")
    run("predict m.kofa -v rna=rna.csv -t protein -o out.csv -q")
    assert list(pd.read_csv("out.csv").columns) == ["sample", "p0", "p1", "p2", "p3"]
    run("predict m.kofa -v rna=rna.csv -t protein -o out.parquet -q")


@pytest.mark.usefixtures("folder")
def test_models_of_arrays_predict_into_every_format():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 3))
    model = kofa.FactorModel({"x": kofa.Real(), "y": kofa.Real()})
    model.fit({"x": x, "y": x[:, :2]}).save("m")
    expected = model.predict({"x": x}, "y")
    pd.DataFrame(x, columns=[f"x{j}" for j in range(3)]).to_csv("x.csv")
    pd.DataFrame(x).to_csv("numbers.csv")
    for name, read in (("out.csv", pd.read_csv), ("out.parquet", pd.read_parquet)):
        for table in ("x.csv", "numbers.csv"):
            run(f"predict m -v x={table} -t y -o {name} -q")
            assert read(name).to_numpy()[:, -2:] == pytest.approx(expected)


# ---------------------------------------------------------------- init


ODD = [
    "del\x7f", "new\nline", "tab\t", 'quote"', "back\\slash", "esc\x1b[31m", "c1\x85", "\u2028x",
    "'''", '"""', "\U0001f600", "a.b", "[x]", "#", "=", "\\u0000",
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_init_writes_what_it_can_read(tmp_path, odd):
    frame = tables()["rna"].rename(columns={"g0": odd})
    frame["stage"] = ["early", "late"] * 40
    frame.rename(columns={"stage": f"stage {odd}"}).to_csv(tmp_path / "a.csv")
    np.savez(tmp_path / "b.npz", **{odd.replace("/", ""): frame.iloc[:, :2], "c": np.ones((2, 2))})
    if os.name == "posix":
        frame.iloc[:, :3].to_csv(tmp_path / f"{odd}.csv")
        (tmp_path / f"bad {odd}.csv").write_text("", encoding="utf-8")
    shown = run(["init", tmp_path])
    assert not {"\x1b", "\x7f", "\x85"} & set(shown.output)
    text = (tmp_path / "study.toml").read_text(encoding="utf-8")
    declared = tomllib.loads(text)["views"]
    plan = read_study(tmp_path / "study.toml")
    assert list(plan.views) == list(declared)
    assert {odd.strip(), "g1", "g2"} <= {c for t in plan.read().values() for c in t.columns}


def test_init_when_the_only_tables_with_values_are_strangers(tmp_path):
    (tmp_path / "a.csv").write_text("id,w\ns1,one\ns2,two\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("id,w\ns1,one\ns2,two\n", encoding="utf-8")
    (tmp_path / "c.csv").write_text("id,x\nA,1\nB,2\n", encoding="utf-8")
    run(["init", tmp_path])
    assert tomllib.loads((tmp_path / "study.toml").read_text(encoding="utf-8"))
