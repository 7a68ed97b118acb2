"""`kofa paper`: choosing, running, writing; and all of it, quickly, where the data are."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

from kofa.cli.app import app
from kofa.errors import DeclarationError
from kofa.paper import reproduce as desk
from kofa.paper.experiment import Experiment, Picture, Shown
from kofa.paper.tables import Table, spread
from kofa.paper.tasks import Options, Store, Task, run


def work(folder, value):
    """Counts its calls by files, as it may run in another process."""
    (folder / f"{value}-{len(list(folder.iterdir()))}").touch()
    return {"r2": value, "mask": np.full(3, value)}


def tasks_of(folder, options, settings=None):
    return [
        Task("toy", "jura", "ours", fold, partial(work, folder, float(fold)), settings or {})
        for fold in options.fold_numbers
    ]


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
    run(tasks_of(calls, options, {"grid": [1, 2]}), store)
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


def test_tables_and_pictures_are_written(tmp_path, calls):
    def show(results, options):  # noqa: ARG001
        cell = spread([r["r2"] for r in results.values()])
        table = Table("toy", "A toy", ["set", "R²"], [["jura", cell]], ["a note"])
        return Shown([table], [Picture("toy", lambda path: path.write_bytes(b"png"))])

    experiment = Experiment("toy", "A toy", partial(tasks_of, calls), show)
    options = Options(folds=3, as_published=True)
    written = desk.reproduce([experiment], options, tmp_path, 1, lambda *_: None)
    assert [p.name for p in written] == [
        "toy-as-published.md", "toy-as-published.csv", "toy-as-published.png",
    ]  # fmt: skip
    text = written[0].read_text(encoding="utf-8")
    assert "| jura | 1.000 ± 0.816 |" in text
    assert "our defaults, and as published, 3 of 3 folds" in text
    assert written[1].read_text(encoding="utf-8") == "set,R²\njura,1.000 ± 0.816\n"


def test_unknown_experiments_are_told():
    with pytest.raises(DeclarationError, match="'tabel2'; did you mean 'table2'"):
        desk.chosen(["tabel2"])
    assert [e.name for e in desk.chosen(["all"])] == list(desk.EXPERIMENTS)
    expected = {"table2", "table3", "table5", *(f"figure{n}" for n in range(2, 8))}
    assert set(desk.EXPERIMENTS) == expected


def test_command_names_what_is_wrong(tmp_path):
    result = CliRunner().invoke(app, ["paper", "tabel2", "-o", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "did you mean 'table2'" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["table3", "--sets", "jurra"], "no data set 'jurra'; did you mean 'jura'?"),
        (["table3", "--sets", "oil_flow"], "no data set 'oil_flow'. Known: atp1d; "),
        (["figure2", "--method", "KSSHIBA, by evidense"], "did you mean 'KSSHIBA, by evidence'?"),
        (["table5", "--method", "Ridge"], "no method 'Ridge'. Known: MKL; MKL + RV; "),
    ],
)
def test_unknown_sets_and_methods_are_told(arguments, told, tmp_path):
    result = CliRunner().invoke(app, ["paper", *arguments, "-o", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert told in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


def test_experiments_without_what_is_asked_for_write_nothing(tmp_path, calls):
    def nothing(options):  # noqa: ARG001
        return []

    experiments = [
        Experiment("none", "Nothing", nothing, None),
        Experiment("toy", "A toy", partial(tasks_of, calls), lambda *_: Shown()),
    ]
    assert desk.reproduce(experiments, Options(folds=2), tmp_path, 1, lambda *_: None) == []
    assert len(list(calls.iterdir())) == 2


@pytest.mark.paper
def test_everything_runs_quickly(tmp_path, data_dir):
    arguments = ["paper", "all", "--quick", "-o", str(tmp_path), "--data-dir", str(data_dir)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    names = {path.name for path in tmp_path.iterdir()}
    assert {"table2.md", "table2.csv", "table3.md", "table5.md"} <= names
    assert {f"figure{n}.png" for n in range(2, 8)} <= names
