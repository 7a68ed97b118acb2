"""`kofa paper`: choosing, running, writing; and all of it, quickly, where the data are."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

from kofa.cli.app import app
from kofa.errors import DeclarationError, FileError
from kofa.paper import reproduce as desk
from kofa.paper.data import paper
from kofa.paper.experiment import Experiment, Picture, Shown, remarks
from kofa.paper.tables import Table, spread
from kofa.paper.tasks import Options, Origin, Store, Task, run


def work(folder, value):
    """Counts its calls by files, as it may run in another process."""
    (folder / f"{value}-{len(list(folder.iterdir()))}").touch()
    return {"r2": value, "mask": np.full(3, value)}


def tasks_of(folder, options, **more):
    settings = {"folds": 10, **more}  # not those of the options: more of the same folds
    return [
        Task("toy", "jura", "ours", fold, partial(work, folder, float(fold)), settings)
        for fold in options.fold_numbers
    ]


@pytest.fixture(autouse=True)
def loaded(request, monkeypatch):
    """Data sets that would be looked for; only runs of real experiments have any."""
    names = []
    if "data_dir" not in request.fixturenames:
        monkeypatch.setattr(desk, "load", lambda name, _: names.append(name))
    return names


@pytest.fixture
def calls(tmp_path):
    folder = tmp_path / "calls"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_on_disk_is_not_done_again(jobs, tmp_path, calls):
    store, shown = Store(tmp_path / "cache"), []
    first = run(tasks_of(calls, Options(folds=3)), store, jobs, lambda *seen: shown.append(seen))
    assert [r["r2"] for r in first.values()] == [0.0, 1.0, 2.0]
    assert sorted(done for _, done, _ in shown) == [1, 2, 3]
    again = run(tasks_of(calls, Options(folds=4)), store, jobs)
    assert [r["r2"] for r in again.values()] == [0.0, 1.0, 2.0, 3.0]
    np.testing.assert_array_equal(list(again.values())[2]["mask"], [2.0, 2.0, 2.0])
    assert len(list(calls.iterdir())) == 4


def test_other_settings_are_other_tasks(tmp_path, calls):
    store, options = Store(tmp_path / "cache"), Options(folds=1)
    run(tasks_of(calls, options), store)
    run(tasks_of(calls, options, grid=[1, 2]), store)
    assert len(list(calls.iterdir())) == 2


def test_damaged_results_are_done_again(tmp_path, calls):
    store, options = Store(tmp_path / "cache"), Options(folds=1)
    run(tasks_of(calls, options), store)
    (file,) = store.folder.iterdir()
    file.write_bytes(file.read_bytes()[:50])
    (result,) = run(tasks_of(calls, options), store).values()
    assert result["r2"] == 0.0
    assert len(list(calls.iterdir())) == 2


def test_quick_runs_take_the_first_folds():
    assert list(Options(folds=10, quick=True).fold_numbers) == [0, 1]
    assert list(Options(folds=5).fold_numbers) == [0, 1, 2, 3, 4]


def test_sets_and_methods_can_be_chosen():
    options = Options(sets=("jura",), methods=("Ridge",))
    assert options.chosen(["edm", "jura"]) == ["jura"]
    assert options.asked(["Ridge", "MLP"]) == ["Ridge"]
    assert Options().chosen(["edm", "jura"]) == ["edm", "jura"]


def test_tables_and_pictures_are_written(tmp_path, calls, loaded):
    def show(results, options):  # noqa: ARG001
        cell = spread([r["r2"] for r in results.values()])
        table = Table("toy", "A toy", ["set", "R²"], [["jura", cell]], ["a note"])
        return Shown([table], [Picture("toy", lambda path: path.write_bytes(b"png"))])

    experiment = Experiment("toy", partial(tasks_of, calls), show)
    options = Options(folds=3, as_published=True)
    written = desk.reproduce([experiment], options, tmp_path, 1, lambda *_: None)
    assert [p.name for p in written] == [
        f"toy-as-published-3-folds{end}" for end in (".md", ".csv", "-folds.csv", ".png")
    ]
    assert loaded == ["jura"]
    text = written[0].read_text(encoding="utf-8")
    assert "| jura | 1.000 ± 0.816 |" in text
    assert "our defaults, and as published, 3 of 10 folds" in text
    assert f"numpy {np.__version__}, scipy" in text
    assert written[1].read_text(encoding="utf-8") == "set,R²\njura,1.000 ± 0.816\n"
    folds = written[2].read_text(encoding="utf-8").splitlines()
    assert folds == [
        "set,method,fold,figure,value",
        *(f"jura,ours,{fold + 1},r2,{fold}.0" for fold in range(3)),
    ]
    # All is in the cache now, and the data are not needed any more.
    desk.reproduce([experiment], options, tmp_path, 1, lambda *_: None)
    assert loaded == ["jura"]


def test_foot_tells_when_and_with_what_results_were_worked_out():
    tasks = [
        Task("toy", "jura", "ours", fold, partial(work, None, 0.0), {"folds": 10})
        for fold in range(3)
    ]
    origins = {task: Origin(f"2026-11-0{3 - task.fold}", "kofa 9.9") for task in tasks}
    results = {task: {"converged": float(task.fold > 0)} for task in tasks}
    text = desk.foot(tasks, results, origins, Options())
    assert "2026-11-01 to 2026-11-03; kofa 9.9; our defaults, 3 of 10 folds" in text
    assert "Not converged within the largest number of iterations: 1 fits." in text
    text = desk.foot(tasks, {tasks[1]: {"converged": 1.0}}, origins, Options())
    assert "left out: toy jura: ours, fold 1; toy jura: ours, fold 3." in text
    assert "Worked out 2026-11-02; kofa 9.9" in text
    assert "Not converged" not in text


def test_unknown_experiments_are_told():
    with pytest.raises(DeclarationError, match="'tabel2'; did you mean 'table2'"):
        desk.chosen(["tabel2"])
    assert [e.name for e in desk.chosen(["all"])] == list(desk.EXPERIMENTS)
    expected = {"table2", "table3", "table5", *(f"figure{n}" for n in range(2, 8))}
    assert set(desk.EXPERIMENTS) == expected


def test_command_names_what_is_wrong(tmp_path):
    result = CliRunner().invoke(app, ["paper", "tabel2", "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "did you mean 'table2'" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["table3", "--sets", "jurra"], "no data set 'jurra'; did you mean 'jura'?"),
        (["table3", "--sets", "oil_flow"], "no data set 'oil_flow'. Known: atp1d; "),
        (["figure2", "--method", "KSSHIBA, by evidense"], "did you mean 'KSSHIBA, by evidence'?"),
        (["table5", "--method", "Ridge"], "no method 'Ridge'. Known: MKL; MKL + RV; "),
        (["table5", "--method", "MKL, as published"], "it needs --as-published"),
    ],
)
def test_unknown_sets_and_methods_are_told(arguments, told, tmp_path):
    result = CliRunner().invoke(app, ["paper", *arguments, "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("installed", "told"), [(False, "needs GPy"), (True, "no method 'MRD'")])
def test_rivals_that_cannot_be_run_are_told(installed, told, monkeypatch):
    monkeypatch.setattr(desk, "has_gpy", lambda: installed)
    with pytest.raises(DeclarationError, match=told):
        desk.check(desk.chosen(["table5"]), Options(methods=("MRD",)))


def test_experiments_without_what_is_asked_for_write_nothing(tmp_path, calls):
    done = []
    experiments = [
        *desk.EXPERIMENTS.values(),
        Experiment("toy", partial(tasks_of, calls), lambda *_: Shown()),
    ]
    options = Options(folds=2, sets=("jura",), methods=("ours",))
    with pytest.warns(UserWarning, match="None of the sets and methods are in: table2, table3, "):
        desk.reproduce(experiments, options, tmp_path, 1, lambda task, *_: done.append(task.name))
    assert done == ["toy jura: ours, fold 1", "toy jura: ours, fold 2"]
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []
    everything = [task for e in experiments for task in e.tasks(Options())]
    wanted = {task.dataset for task in everything if Options(sets=("jura",)).wants(task)}
    assert wanted == {"jura"}


def fails(fold):
    if fold == 1:
        raise np.linalg.LinAlgError("not positive")
    return {"r2": 0.5}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_task_that_fails_is_left_out_and_named(jobs, tmp_path):
    def tasks(options):
        return [
            Task("toy", "jura", "rival", fold, partial(fails, fold), {"folds": options.folds})
            for fold in options.fold_numbers
        ]

    def show(results, options):  # noqa: ARG001
        return Shown([Table("toy", "A toy", ["n"], [[str(len(results))]])])

    toy = Experiment("toy", tasks, show)
    with pytest.warns(UserWarning, match="rival, fold 2 failed: LinAlgError"):
        written = desk.reproduce([toy], Options(folds=3), tmp_path, jobs, lambda *_: None)
    text = written[0].read_text(encoding="utf-8")
    assert "| 2 |" in text
    assert "Failed, and left out: toy jura: rival, fold 2." in text


def warns():
    warnings.warn("it creaks", RuntimeWarning, stacklevel=1)
    return {"r2": float("nan")}


@pytest.mark.parametrize("jobs", [1, 2])
def test_warnings_of_tasks_are_passed_on_and_figures_are_numbers(jobs, tmp_path):
    task = Task("toy", "jura", "ours", 0, warns)
    with pytest.warns() as told:
        assert run([task, replace(task, fold=1)], Store(tmp_path), jobs) == {}
    texts = sorted(str(warning.message) for warning in told)
    assert texts[:2] == ["it creaks"] * 2
    assert texts[2].startswith("toy jura: ours, fold 1 failed: ValueError('not a number: r2')")


class Shy(UserWarning):
    """Cannot be sent from one process to another."""

    def __init__(self, *, text):
        super().__init__(text)


def warns_shyly():
    warnings.warn(Shy(text="psst"), stacklevel=1)
    return {"r2": 1.0}


def test_warnings_that_cannot_be_sent_are_passed_on_as_text(tmp_path):
    task = Task("toy", "jura", "ours", 0, warns_shyly)
    with pytest.warns(UserWarning, match="psst"):
        found = run([task, replace(task, fold=1)], Store(tmp_path), 2)
    assert len(found) == 2


def without_data():
    raise FileError("The data set 'jura' is nowhere")


def test_errors_with_a_cure_end_the_run(tmp_path):
    task = Task("toy", "jura", "ours", 0, without_data)
    with pytest.raises(FileError, match="nowhere"):
        run([task], Store(tmp_path))


def test_pictures_are_left_out_without_matplotlib(tmp_path, calls, monkeypatch):
    monkeypatch.setattr(desk, "find_spec", lambda _: None)
    table, picture = Table("toy", "A toy", ["n"], [["1"]]), Picture("toy", pytest.fail)
    toy = Experiment("toy", partial(tasks_of, calls), lambda *_: Shown([table], [picture]))
    with pytest.warns(UserWarning, match=r"pip install kofa\[plot\]"):
        written = desk.reproduce([toy], Options(), tmp_path, 1, lambda *_: None)
    assert [path.name for path in written] == ["toy.md", "toy.csv", "toy-folds.csv"]


@pytest.mark.parametrize(
    ("how", "suffix"),
    [
        ({}, ""),
        ({"quick": True}, "-quick"),
        ({"sets": ("jura", "enb"), "as_published": True}, "-as-published-enb-jura"),
        ({"sets": ("jura",), "folds": 3, "quick": True}, "-jura-3-folds-quick"),
    ],
)
def test_parts_have_names_of_their_own(how, suffix):
    assert desk.suffix(Options(**how)) == suffix


def test_parts_of_other_methods_have_other_names():
    ridge, trees = (desk.suffix(Options(methods=(m,))) for m in ("Ridge", "ExtraTrees"))
    assert ridge != trees
    assert ridge.startswith("-methods-")


def test_what_was_found_in_our_run_is_said_of_the_whole_only():
    assert remarks("table2", Options()) == paper()["notes"]["table2"]
    assert remarks("table2", Options(folds=3)) == []
    both = paper()["notes"]["table2"] + paper()["notes"]["table2-as-published"]
    assert remarks("table2", Options(as_published=True)) == both
    assert "quick" in remarks("table2", Options(quick=True))[0]


def test_stopping_tells_that_the_same_command_goes_on(tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(desk, "reproduce", stopped)
    result = CliRunner().invoke(app, ["paper", "table2", "-o", str(tmp_path)])
    assert result.exit_code == 130
    assert "the same command goes on" in " ".join(result.stderr.split())


@pytest.mark.paper
def test_everything_runs_quickly(tmp_path, data_dir):
    arguments = ["paper", "all", "--quick", "-o", str(tmp_path), "--data-dir", str(data_dir)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    names = {path.name for path in tmp_path.iterdir()}
    assert {f"table{n}-quick.{end}" for n in (2, 3, 5) for end in ("md", "csv")} <= names
    assert {f"figure{n}-quick.png" for n in range(2, 8)} <= names
