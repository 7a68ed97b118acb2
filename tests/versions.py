"""Run the tests on every Python from 3.11 on that is found, each in an environment of its own.

    python tests/versions.py [--others] [what pytest takes]

An environment has the newest dependencies; the oldest Python also runs with the oldest ones that
pyproject.toml allows. Needs nothing but Python itself: it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = "Scripts" if os.name == "nt" else "bin"
# An interpreter that cannot make environments is of no use here.
ASK = "import ensurepip, sys, venv; print(*sys.version_info[:2])"
QUIET = ("--quiet", "--disable-pip-version-check")

Version = tuple[int, int]


@dataclass(frozen=True)
class Environment:
    """A Python, and which of the allowed dependencies it gets."""

    version: Version
    python: str
    oldest: bool = False

    def __str__(self) -> str:
        return f"Python {self.number}, {'oldest' if self.oldest else 'newest'} dependencies"

    @property
    def number(self) -> str:
        return "{}.{}".format(*self.version)

    @property
    def folder(self) -> Path:
        return ROOT / f".venv-{self.number}{'-oldest' if self.oldest else ''}"


# ---------------------------------------------------------------- which Pythons


def candidates() -> Iterator[str]:
    """Interpreters that may work: the running one, those on the PATH, those of pyenv."""
    yield sys.executable
    for folder in os.get_exec_path():
        found = Path(folder).glob("python3.*")
        yield from (str(one) for one in found if re.fullmatch(r"python3\.\d+(\.exe)?", one.name))
    if shutil.which("pyenv"):
        root, names = (asked("pyenv", *what) for what in (["root"], ["versions", "--bare"]))
        released = [name for name in names.split() if re.fullmatch(r"3\.\d+\.\d+", name)]
        yield from (str(Path(root) / "versions" / name / "bin" / "python") for name in released)


def working(interpreters: Iterable[str], least: Version) -> dict[Version, str]:
    """The first interpreter that runs, for each minor version from the least one on."""
    found: dict[Version, str] = {}
    for python in interpreters:
        numbers = asked(python, "-c", ASK).split()
        if numbers and (version := (int(numbers[0]), int(numbers[1]))) >= least:
            found.setdefault(version, python)
    return dict(sorted(found.items()))


def asked(*command: str) -> str:
    """What a command prints, or nothing if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


# ---------------------------------------------------------------- which dependencies


def least_python(content: dict) -> Version:
    major, minor = re.findall(r"\d+", content["project"]["requires-python"])
    return int(major), int(minor)


def group(content: dict, name: str) -> list[str]:
    """The requirements of a dependency group and of those that it includes.

    The pip of a new environment may be older than dependency groups are.
    """
    found = []
    for one in content["dependency-groups"][name]:
        found += [one] if isinstance(one, str) else group(content, one["include-group"])
    return found


def oldest_dependencies(content: dict) -> list[str]:
    """Constraints that hold each direct dependency at its lower bound."""
    project = content["project"]
    extras = [one for extra in project["optional-dependencies"].values() for one in extra]
    every = [*project["dependencies"], *extras, *group(content, "test")]
    return sorted({one.replace(">=", "==") for one in every if ">=" in one})


# ---------------------------------------------------------------- run


def outcome(environment: Environment, content: dict, arguments: Sequence[str]) -> str:
    """Install and test; "passed", or what did not work."""
    if not install(environment, content):
        return "COULD NOT BE INSTALLED"
    versions = asked(interpreter(environment), "-m", "pip", "freeze", "--exclude-editable")
    print(*versions.split("\n"), flush=True)
    # Several tests at a time, each with one thread.
    done = subprocess.run(
        [interpreter(environment), "-m", "pytest", *arguments],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return "passed" if done.returncode == 0 else "FAILED"


def install(environment: Environment, content: dict) -> bool:
    """Make the environment anew: the newest dependencies are those of today."""
    made = subprocess.run([environment.python, "-m", "venv", "--clear", str(environment.folder)])
    if made.returncode:
        return False
    constraints = environment.folder / "constraints.txt"
    bounds = oldest_dependencies(content) if environment.oldest else []
    constraints.write_text("\n".join(bounds), encoding="utf-8")
    pip = [interpreter(environment), "-m", "pip", "install", *QUIET]
    wanted = ["-e", ".[all]", *group(content, "test")]
    done = subprocess.run([*pip, "-c", str(constraints), *wanted], cwd=ROOT)
    return done.returncode == 0


def interpreter(environment: Environment) -> str:
    return str(environment.folder / BIN / "python")


def plan(found: dict[Version, str], others_than: Version | None = None) -> list[Environment]:
    """The newest dependencies on all Pythons and the oldest on one, or the other Pythons alone."""
    newest = [Environment(version, python) for version, python in found.items()]
    if others_than is not None:
        return [one for one in newest if one.version != others_than]
    return newest + [replace(one, oldest=True) for one in newest[:1]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--others", action="store_true", help="only Pythons of other versions than this one"
    )
    options, arguments = parser.parse_known_args()
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = working(candidates(), least_python(content))
    print("found Python", ", ".join("{}.{}".format(*version) for version in found) or "nowhere")
    outcomes = {}
    for environment in plan(found, sys.version_info[:2] if options.others else None):
        print(f"== {environment}", flush=True)
        outcomes[environment] = outcome(environment, content, arguments)
    for environment, result in outcomes.items():
        print(f"{environment}: {result}")
    return int(not found or any(result != "passed" for result in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
