"""The script behind `make test-versions`."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

import versions

PYTHONS = {(3, 11): "python3.11", (3, 12): "python3.12"}


def test_the_running_python_those_on_the_path_and_those_of_pyenv_are_candidates(
    tmp_path, monkeypatch
):
    for name in ("python3", "python3.12", "python3.12-config", "python3.14", "pyenv"):
        (tmp_path / name).write_bytes(b"")
    answers = {"root": "home", "versions": "3.13.0\n3.13.0t\npypy3.11-7.3\n3.15-dev\nmine"}
    monkeypatch.setattr(versions.shutil, "which", lambda name: name)
    monkeypatch.setattr(versions, "asked", lambda _, what, *__: answers[what])
    monkeypatch.setenv("PATH", str(tmp_path))
    home = Path("home") / "versions" / "3.13.0" / "bin" / "python"
    on_path = [str(tmp_path / name) for name in ("python3.12", "python3.14")]
    assert sorted(versions.candidates()) == sorted([sys.executable, *on_path, str(home)])


def test_each_minor_version_is_tested_once_and_what_does_not_run_is_left_out(monkeypatch):
    answers = {"new": "3 14", "shim": "", "a": "3 12", "b": "3 12", "old": "3 10"}
    monkeypatch.setattr(versions, "asked", lambda python, *_: answers[python])
    assert versions.working(answers, (3, 11)) == {(3, 12): "a", (3, 14): "new"}


def test_commands_that_fail_answer_nothing(tmp_path):
    assert versions.asked(sys.executable, "-c", "print('yes')") == "yes"
    assert versions.asked(sys.executable, "-c", "print('yes'); raise SystemExit(1)") == ""
    assert versions.asked(str(tmp_path / "nothing")) == ""


def test_the_oldest_dependencies_are_the_lower_bounds():
    project = {"dependencies": ["a>=1.2"], "optional-dependencies": {"x": ["b[c]>=3,<5", "d"]}}
    content = {"project": project, "dependency-groups": {"test": ["e>=4"], "dev": ["f>=5"]}}
    assert versions.oldest_dependencies(content) == ["a==1.2", "b[c]==3,<5", "e==4"]


def test_groups_include_others():
    groups = {"test": ["a>=1"], "dev": [{"include-group": "test"}, "b"]}
    assert versions.group({"dependency-groups": groups}, "dev") == ["a>=1", "b"]


def test_what_users_install_has_lower_bounds():
    content = (versions.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    content = tomllib.loads(content)
    project = content["project"]
    bounded = {one.split("==")[0] for one in versions.oldest_dependencies(content)}
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    groups += [versions.group(content, name) for name in content["dependency-groups"]]
    unbounded = {one for group in groups for one in group if ">=" not in one}
    assert {"numpy", "pandas", "typer", "pytest"} <= bounded
    assert all(one.startswith("kofa[") or "==" in one or one == "pandas-stubs" for one in unbounded)
    assert versions.least_python(content) == (3, 11)


def test_the_oldest_python_also_has_the_oldest_dependencies():
    newest = ["Python 3.11, newest dependencies", "Python 3.12, newest dependencies"]
    oldest = "Python 3.11, oldest dependencies"
    assert [str(one) for one in versions.plan(PYTHONS)] == [*newest, oldest]
    assert len({one.folder for one in versions.plan(PYTHONS)}) == 3
    assert [str(one) for one in versions.plan(PYTHONS, others_than=(3, 11))] == newest[1:]


@pytest.mark.parametrize(("found", "code"), [({sys.version_info[:2]: "python"}, 0), ({}, 1)])
def test_one_python_is_enough_and_none_is_not(found, code, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["versions.py", "--others"])
    monkeypatch.setattr(versions, "working", lambda *_: found)
    assert versions.main() == code


@pytest.mark.parametrize("bad", [[], ["Python 3.11, newest dependencies"]])
def test_the_run_goes_on_after_a_failure_and_sums_up(bad, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["versions.py", "-q", "tests/test_a.py"])
    monkeypatch.setattr(versions, "working", lambda *_: PYTHONS)
    tested = []

    def outcome(environment, _, arguments):
        tested.append(arguments)
        return "FAILED" if str(environment) in bad else "passed"

    monkeypatch.setattr(versions, "outcome", outcome)
    assert versions.main() == len(bad)
    assert tested == [["-q", "tests/test_a.py"]] * 3
    shown = capsys.readouterr().out
    assert shown.count(": passed") == 3 - len(bad)
    assert shown.count("newest dependencies: FAILED") == len(bad)
