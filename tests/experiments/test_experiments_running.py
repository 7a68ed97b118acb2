"""`python -m experiments`: choosing, running, writing; and all of it, where the data are."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import kofa
from experiments import cache, protocol, registry, report
from experiments.__main__ import main
from experiments.cache import Origin, Store, file_name
from experiments.experiment import Benchmark, Experiment, Mark, Picture, Row, Shown, Table, spread
from experiments.protocol import remarks, table
from experiments.registry import Named
from experiments.report import Runner
from experiments.running import run
from experiments.tasks import Options, Task
from kofa.errors import DeclarationError, FileError

KNOWN, _ = registry.find()
PAPER = {name: one.experiment for name, one in KNOWN.items() if one.group == "paper"}


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
        monkeypatch.setattr(report, "load", names.append)
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


def test_other_sources_of_kofa_are_other_results(tmp_path, calls, monkeypatch):
    store, options = Store(tmp_path / "cache"), Options(folds=1)
    run(tasks_of(calls, options), store)
    monkeypatch.setattr(cache, "source_hash", lambda: "changed")
    run(tasks_of(calls, options), store)
    assert len(list(calls.iterdir())) == 2


def test_hash_is_of_all_sources(tmp_path, monkeypatch):
    def hashed():
        cache.source_hash.cache_clear()
        return cache.source_hash()

    (tmp_path / "deep").mkdir()
    for name in ("__init__.py", "deep/model.py"):
        (tmp_path / name).write_text("a = 1\n", encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(kofa, "__file__", str(tmp_path / "__init__.py"))
        before = hashed()
        assert hashed() == before
        (tmp_path / "deep/model.py").write_text("a = 2\n", encoding="utf-8")
        changed = hashed()
        (tmp_path / "deep/model.py").rename(tmp_path / "model.py")
        assert len({before, changed, hashed()}) == 3
    cache.source_hash.cache_clear()


def test_the_name_of_a_row_is_no_part_of_its_result(calls):
    (task,) = tasks_of(calls, Options(folds=1))
    assert file_name(task) == file_name(replace(task, method="another name"))
    assert file_name(task) != file_name(replace(task, dataset="enb"))
    assert file_name(task) != file_name(replace(task, family="other"))


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

    runner = Runner(tmp_path, Options(folds=3, as_published=True))
    toy = {"toy": Experiment(partial(tasks_of, calls), show)}
    written = runner.write_tables(toy)
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
    runner.write_tables(toy)
    assert loaded == ["jura"]


def test_footnotes_say_when_and_with_what_results_were_worked_out():
    tasks = [
        Task("toy", "jura", "ours", fold, partial(work, None, 0.0), {"folds": 10})
        for fold in range(3)
    ]
    origins = {task: Origin(f"2026-11-0{3 - task.fold}", "kofa 9.9") for task in tasks}
    results = {task: {"converged": float(task.fold > 0)} for task in tasks}
    text = report.footnotes(tasks, results, origins, Options())
    assert "2026-11-01 to 2026-11-03; kofa 9.9; our defaults, 3 of 10 folds" in text
    assert "Not converged within the largest number of iterations: 1 fits." in text
    text = report.footnotes(tasks, {tasks[1]: {"converged": 1.0}}, origins, Options())
    assert "left out: toy jura: ours, fold 1; toy jura: ours, fold 3." in text
    assert "Worked out 2026-11-02; kofa 9.9" in text
    assert "Not converged" not in text


def test_experiments_are_chosen_by_name_and_group():
    assert [one.name for one in registry.chosen(["table5", "figure2"], KNOWN)] == [
        "table5",
        "figure2",
    ]
    assert len(registry.chosen(["all"], KNOWN)) == len(KNOWN)
    expected = {"table2", "table3", "table5", *(f"figure{n}" for n in range(2, 8))}
    assert {one.name for one in registry.chosen(["paper"], KNOWN)} == set(PAPER) == expected
    peers = {one.name for one in registry.chosen(["peers"], KNOWN)}
    assert {"mofa", "gfa-angle", "mofa-count"} <= peers
    bench = {one.name for one in registry.chosen(["bench"], KNOWN)}
    assert {"import", "sharing", "bank-slump", "hostile-commands"} <= bench
    assert not bench & (peers | expected)


def test_a_module_takes_part_by_its_dict(tmp_path, monkeypatch):
    (tmp_path / "new.py").write_text(
        "from experiments.experiment import Row\n"
        "EXPERIMENTS = {'new-row': lambda: Row('one', 1.0, None, '1')}\n",
        encoding="utf-8",
    )
    (tmp_path / "needy.py").write_text("import package_that_is_not_here\n", encoding="utf-8")
    monkeypatch.setattr(registry.experiments, "__path__", [str(tmp_path)])
    found, missing = registry.find()
    assert list(found) == ["new-row"]
    assert found["new-row"].group == "bench"
    assert missing == {"needy": "package_that_is_not_here"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tabel2"], "no experiment 'tabel2'; did you mean 'table2'?"),
        ([], "name an experiment or a group"),
        (["table3", "--sets", "jurra"], "no data set 'jurra'; did you mean 'jura'?"),
        (["table3", "--sets", "oil_flow"], "no data set 'oil_flow'. Known: atp1d; "),
        (["figure2", "--method", "KSSHIBA, by evidense"], "did you mean 'KSSHIBA, by evidence'?"),
        (["table5", "--method", "Ridge"], "no method 'Ridge'. Known: MKL; MKL + RV; "),
        (["table5", "--method", "MKL, as published"], "it needs --as-published"),
        (["import", "--quick"], "--quick is for tables and figures, not for 'import'"),
        (["bank-slump", "--method", "Ridge"], "--method is for tables and figures"),
        (["table2", "--folds", "1"], "--folds"),
    ],
)
def test_what_is_wrong_with_a_command_is_named(arguments, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        main([*arguments, "-o", str(tmp_path / "out")])
    assert caught.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_names_are_listed(capsys):
    main(["--list"])
    assert capsys.readouterr().out.split() == list(KNOWN)
    main(["--list", "paper"])
    assert capsys.readouterr().out.split() == list(PAPER)


@pytest.mark.parametrize(("installed", "said"), [(False, "needs GPy"), (True, "no method 'MRD'")])
def test_baselines_that_cannot_be_run_are_named(installed, said, monkeypatch):
    monkeypatch.setattr(registry, "has_gpy", lambda: installed)
    with pytest.raises(DeclarationError, match=said):
        registry.check([PAPER["table5"]], Options(methods=("MRD",)))


# ---------------------------------------------------------------- rows of the benchmarks


def benchmark(calls, dataset):
    tasks = [replace(task, dataset=dataset) for task in tasks_of(calls, Options(folds=3))]

    def summary(results):
        figure = sum(float(r["r2"]) for r in results.values())
        return figure, f"{figure}"

    def more(results, options):
        return f" of {len(results)} and {options.folds}"

    return Benchmark("a toy", Mark(low=3.0), lambda: tasks, summary, more)


def test_rows_are_printed_and_their_results_kept(tmp_path, calls, capsys):
    asked = [
        Named("toy", "bench", benchmark(calls, "digits")),
        Named("plain", "bench", lambda: Row("another", 2.0, Mark(high=1.0), "2.0")),
    ]
    for _ in range(2):
        Runner(tmp_path).show(asked)
    assert len(list(calls.iterdir())) == 3
    assert capsys.readouterr().out.splitlines()[2:4] == [
        "| toy | a toy | 3.0 of 3 and 10 | ≥ 3 | ok |",
        "| plain | another | 2.0 | ≤ 1 | below |",
    ]


def test_rows_without_their_data_are_skipped_unless_results_are_there(tmp_path, calls, monkeypatch):
    monkeypatch.delenv("KOFA_DATA", raising=False)
    row = Runner(tmp_path).row(benchmark(calls, "jura"))
    assert (row.figure, row.verdict) == (None, "–")
    assert row.text.startswith("skipped")
    assert not list(calls.iterdir())
    run(benchmark(calls, "jura").tasks(), Store(tmp_path / "cache"))
    assert Runner(tmp_path).row(benchmark(calls, "jura")).figure == 3.0


def test_a_row_of_which_a_task_fails_has_no_figure(tmp_path):
    tasks = [Task("toy", "digits", "ours", fold, partial(fails, fold)) for fold in range(3)]
    failing = Benchmark("a toy", Mark(), lambda: tasks, lambda *_: pytest.fail("summed up"))
    with pytest.warns(UserWarning, match="fold 2 failed: LinAlgError"):
        assert Runner(tmp_path).row(failing).text == "failed"


# ---------------------------------------------------------------- what goes wrong


def test_experiments_without_what_is_asked_for_write_nothing(tmp_path, calls):
    toy = Experiment(partial(tasks_of, calls), lambda *_: Shown())
    options = Options(folds=2, sets=("jura",), methods=("ours",))
    with pytest.warns(UserWarning, match="None of the sets and methods are in: figure"):
        Runner(tmp_path, options).write_tables({**PAPER, "toy": toy})
    assert len(list(calls.iterdir())) == 2
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []
    everything = [task for e in PAPER.values() for task in e.tasks(Options())]
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
            Task("toy", "jura", "other", fold, partial(fails, fold), {"folds": options.folds})
            for fold in options.fold_numbers
        ]

    def show(results, options):  # noqa: ARG001
        return Shown([Table("toy", "A toy", ["n"], [[str(len(results))]])])

    toy = {"toy": Experiment(tasks, show)}
    with pytest.warns(UserWarning, match="other, fold 2 failed: LinAlgError"):
        written = Runner(tmp_path, Options(folds=3), jobs).write_tables(toy)
    text = written[0].read_text(encoding="utf-8")
    assert "| 2 |" in text
    assert "Failed, and left out: toy jura: other, fold 2." in text


def warns():
    warnings.warn("it creaks", RuntimeWarning, stacklevel=1)
    return {"r2": float("nan")}


@pytest.mark.parametrize("jobs", [1, 2])
def test_warnings_of_tasks_are_passed_on_and_figures_are_numbers(jobs, tmp_path):
    task = Task("toy", "jura", "ours", 0, warns)
    with pytest.warns() as messages:
        assert run([task, replace(task, fold=1)], Store(tmp_path), jobs) == {}
    texts = sorted(str(warning.message) for warning in messages)
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
    monkeypatch.setattr(report, "find_spec", lambda _: None)
    plain, picture = Table("toy", "A toy", ["n"], [["1"]]), Picture("toy", pytest.fail)
    toy = Experiment(partial(tasks_of, calls), lambda *_: Shown([plain], [picture]))
    with pytest.warns(UserWarning, match=r"pip install kofa\[plot\]"):
        written = Runner(tmp_path).write_tables({"toy": toy})
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
    assert report.suffix(Options(**how)) == suffix


def test_parts_of_other_methods_have_other_names():
    ridge, trees = (report.suffix(Options(methods=(m,))) for m in ("Ridge", "ExtraTrees"))
    assert ridge != trees
    assert ridge.startswith("-methods-")


def test_what_was_found_in_our_run_is_said_of_the_whole_only():
    assert remarks("table2", Options()) == table()["notes"]["table2"]
    assert remarks("table2", Options(folds=3)) == []
    both = table()["notes"]["table2"] + table()["notes"]["table2-as-published"]
    assert remarks("table2", Options(as_published=True)) == both
    assert "quick" in remarks("table2", Options(quick=True))[0]


def test_stopping_says_that_the_same_command_goes_on(tmp_path, monkeypatch, capsys):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "show", stopped)
    with pytest.raises(SystemExit) as caught:
        main(["table2", "-o", str(tmp_path)])
    assert caught.value.code == 130
    assert "the same command goes on" in capsys.readouterr().err


def test_data_that_are_nowhere_end_a_run_in_one_line(tmp_path, monkeypatch):
    def missing(name):
        raise FileError(f"{name} is nowhere")

    monkeypatch.setattr(report, "load", missing)
    with pytest.raises(SystemExit, match="error: slump is nowhere"):
        main(["table2", "--sets", "slump", "--quick", "-o", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


@pytest.mark.paper
def test_everything_runs_quickly(tmp_path, data_dir):
    main(["paper", "--quick", "-o", str(tmp_path), "--data-dir", str(data_dir)])
    names = {path.name for path in tmp_path.iterdir()}
    assert {f"table{n}-quick.{end}" for n in (2, 3, 5) for end in ("md", "csv")} <= names
    assert {f"figure{n}-quick.png" for n in range(2, 8)} <= names


def test_other_folds_can_be_asked_for(monkeypatch):
    y = np.arange(50)
    given, settings = protocol.splits("regression", y), protocol.fold_settings("regression")
    monkeypatch.setenv(protocol.FOLD_SEED, "4")
    other, changed = protocol.splits("regression", y), protocol.fold_settings("regression")
    assert settings["split"] != changed["split"]
    assert any((a[1] != b[1]).any() for a, b in zip(given, other, strict=True))
