"""The script behind `make test-processors`."""

from __future__ import annotations

import os
import sys

import pytest

import processors
from processors import Setting


@pytest.fixture
def machine(monkeypatch):
    """A Haswell, which takes a Nehalem for one, and cannot do what a SkylakeX can."""
    known = {"Haswell": "Haswell", "Prescott": "Katmai", "Nehalem": "Haswell", "SkylakeX": ""}
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    monkeypatch.setattr(
        processors, "kernels", lambda given: known[given.get("OPENBLAS_CORETYPE", "Haswell")]
    )


@pytest.mark.usefixtures("machine")
def test_all_that_run_here_are_played_with_one_thread_and_two():
    names = ("Prescott", "Haswell", "Nehalem")
    assert processors.plan(False) == [Setting(name, n) for name in names for n in (1, 2)]


@pytest.mark.usefixtures("machine")
def test_others_are_those_that_the_machine_is_not():
    assert processors.plan(True) == [Setting("Prescott", 1)]


def test_kernels_that_a_processor_does_not_survive_have_no_name(monkeypatch):
    monkeypatch.setattr(processors, "ASK", "import os; print('Zen', flush=True); os.abort()")
    assert processors.kernels(os.environ) == ""


def test_a_setting_is_in_the_environment_of_its_tests():
    environment = Setting("Nehalem", 2).environment
    assert environment["OPENBLAS_CORETYPE"] == "Nehalem"
    assert environment["OMP_NUM_THREADS"] == "2"


def test_a_failure_is_named_and_ends_with_one(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["processors.py", "-q"])
    monkeypatch.setattr(processors, "plan", lambda _: [Setting("A", 1), Setting("B", 2)])
    monkeypatch.setattr(
        processors, "outcome", lambda setting, _: "passed" if setting.threads == 1 else "FAILED"
    )
    assert processors.main() == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "A, 1 thread: passed",
        "B, 2 threads: FAILED",
    ]
