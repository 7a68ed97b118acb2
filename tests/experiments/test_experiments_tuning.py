"""The table of what half and twice of each number of kofa.tuning do, and how it is made."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.report import Runner
from experiments.tasks import Options
from experiments.tuning import table
from experiments.tuning.changes import Change, Changes
from experiments.tuning.numbers import changed, names, recorded, shown
from experiments.tuning.problems import PROBLEMS, Problem
from experiments.tuning.table import EXPERIMENTS
from kofa import tuning

PAGE = Path(__file__).parents[2] / "docs" / "tuning.md"


def documented():
    """The numbers in the table of the docs, with their values."""
    text = PAGE.read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `([A-Z_]+)` \| ([^|]*) \|", text, re.MULTILINE))


def test_every_number_is_in_the_table_of_the_docs_with_its_value():
    """For one that is new or was changed: python -m experiments tuning --method NAME."""
    assert documented() == {name: shown(getattr(tuning, name)) for name in names()}


def test_every_problem_is_described_in_the_docs():
    text = PAGE.read_text(encoding="utf-8")
    assert [one for one, p in PROBLEMS.items() if f"| {one} | {p.what} |" not in text] == []


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("name", "half", "twice"),
    [
        ("TOL", 1e-4, 4e-4),
        ("READ_OUT_SWEEPS", 2, 10),
        ("PRUNING_MARGIN", 0.45, 0.95),  # below one
        ("ROTATION_PACE", 1.15, 1.6),  # above one
        ("SPARSITY_WIDTHS", (0.175, 0.5), (0.7, 2.0)),
        ("LOG_WIDTH_LIMITS", (-2.5, 2.5), (-10.0, 10.0)),
    ],
)
def test_half_and_twice(name, half, twice):
    assert changed(name, 0.5) == pytest.approx(half)
    assert changed(name, 2.0) == pytest.approx(twice)
    assert type(changed(name, 0.5)) is type(getattr(tuning, name))


def test_the_largest_of_several_shares_stays():
    before, after = tuning.START_SHARES, changed("START_SHARES", 2.0)
    assert after == {**{key: 2.0 * one for key, one in before.items()}, "relevance": 0.795}


def test_a_whole_number_stays_one_at_least(monkeypatch):
    monkeypatch.setattr(tuning, "PATIENCE", 1)
    assert changed("PATIENCE", 0.5) == 1


def test_numbers_that_are_read_are_recorded():
    with recorded() as read:
        assert tuning.TOL + tuning.PATIENCE > 0
    assert tuning.COARSE_TOL > 0
    assert [name for name in names() if name in read] == ["TOL", "PATIENCE"]


# ---------------------------------------------------------------- the experiment


def test_a_number_on_a_problem(tmp_path, capsys):
    """Twelve samples: with 20 as the least, kernels are not centred by row."""
    asked = ("ROW_CENTRED_FROM", "CURVATURE_RATIO_TOL")
    options = Options(sets=("few samples",), methods=asked, quick=True)
    paths = Runner(tmp_path, options).write_tables(EXPERIMENTS)
    (text,) = (p.read_text(encoding="utf-8") for p in paths if re.match("tuning-few.*md", p.name))
    unused, used = (line.split(" | ") for line in text.splitlines() if line.startswith("| `"))
    assert used[:4] == ["| `ROW_CENTRED_FROM`", "10", "1", "–"]
    assert used[5].startswith("few samples: ")
    assert unused[3] == "not used in any of these problems"
    assert len(capsys.readouterr().err.splitlines()) == 3
    Runner(tmp_path, options).write_tables(EXPERIMENTS)
    assert capsys.readouterr().err == ""  # all of it is kept
    assert tuning.ROW_CENTRED_FROM == 10


def patience(seed):
    """As many as there are."""
    if tuning.PATIENCE > 4:
        raise ValueError("impatient")
    return {"R²": float(tuning.PATIENCE + seed)}


def test_fits_that_fail_are_named(tmp_path, monkeypatch):
    monkeypatch.setitem(PROBLEMS, "toy", Problem(patience))
    runner = Runner(tmp_path, Options(methods=("PATIENCE",), sets=("toy",)))
    with pytest.warns(UserWarning, match=r"PATIENCE at twice, fold \d failed: ValueError"):
        results = runner.results(table.tasks(runner.options), runner.store)
    shown = table.show(results, runner.options).tables
    assert list(shown[0].rows[0][3::2]) == ["toy: R² −2.000", "toy: fails"]
    assert shown[1].rows == [["toy", "As many as there are", "R² 4.500"]]


def test_problems_that_take_long_are_not_run_to_find_what_they_read():
    long = Problem(lambda _: pytest.fail("was run"), only=("TOL*",), takes_long=True)
    assert table.reads(long) == ["TOL", "TOL_WITH_OUTPUTS"]
    assert table.reads(Problem(patience, only=("TOL", "PAT*"))) == ["PATIENCE"]


def test_problems_that_take_long_name_their_numbers():
    long = [problem for problem in PROBLEMS.values() if problem.takes_long]
    assert len(long) > 3
    assert all(set(table.reads(problem)) == set(problem.only) for problem in long)


# ---------------------------------------------------------------- what is better


def change(score, before, after, problem="hidden view"):
    return Change(problem, score, np.array(before), np.array(after))


@pytest.mark.parametrize(
    ("one", "better", "worse"),
    [
        (change("R²", [0.5, 0.5], [0.52, 0.51]), True, False),
        (change("R²", [0.5, 0.5], [0.52, 0.499]), False, False),  # not with each seed
        (change("R²", [0.5, 0.5], [0.501, 0.502]), False, False),  # too little
        (change("R²", [0.5, 0.5], [0.48, 0.49]), False, True),
        (change("coverage far", [0.95, 0.93], [0.92, 0.9]), True, False),
        (change("coverage", [0.9, 0.88], [0.88, 0.86]), False, True),
        (change("factors", [9.0, 10.0], [8.0, 8.0]), True, False),
        (change("factors", [9.0, 10.0], [8.0, 8.0], "diffusion"), False, False),  # who knows
    ],
)
def test_what_is_clear(one, better, worse):
    assert one.is_clear(+1.0) == better
    assert one.is_clear(-1.0) == worse


def test_better_is_what_gains_and_loses_nowhere():
    gain, loss = change("R²", [0.5], [0.6]), change("coverage", [0.9], [0.7])
    assert Changes([gain], 1.0).better == [gain]
    assert Changes([gain, loss], 1.0).better == []
    assert replace(Changes([gain], 1.0), failed=["bank"]).better == []


def test_only_the_largest_changes_are_shown():
    found = [change("R²", [0.5], [0.5 + k / 100]) for k in range(5)]
    assert Changes(found, 1.5).cells(2) == [
        "hidden view: R² +.040; hidden view: R² +.030; 2 more",
        "1.5",
    ]
    assert Changes([], np.nan).cells() == ["–", "–"]
