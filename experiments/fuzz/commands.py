"""Commands that no one should give: wrong options, damaged files, mutated studies, odd places.

Each command is a good one in which one to three things are wrong. It must end in time, with the
code that belongs to what is wrong, with one line that says so, and leave nothing half-written.
KOFA_SEED repeats a run, KOFA_COMMANDS says how many.
"""

from __future__ import annotations

import math
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from typer.testing import CliRunner

from experiments.experiment import Mark, Measurement, Row
from experiments.fuzz.command_folder import contents, make_folder, restore
from experiments.fuzz.faulty_commands import ANY, Made, Maker
from kofa.cli.app import app
from kofa.files import containers

COMMANDS = int(os.environ.get("KOFA_COMMANDS", "1200"))
SECONDS = 60  # that a command may take, on a busy machine
MOST_MEMORY = 6 * 2**30  # bytes
MAIN = "import sys; sys.argv[0] = 'kofa'; from kofa.cli import main; main()"
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e]")
# What Python says about Ctrl-C where nothing can be done about it, such as in garbage collection.
_IGNORED = re.compile(r"Exception ignored in.*?^KeyboardInterrupt: ?$\n?", re.M | re.S)


@dataclass
class Ending:
    """What was wrong with how a command ended."""

    command: Sequence[str]
    code: int
    complaints: list[str] = field(default_factory=list)
    shown: str = ""


# ---------------------------------------------------------------- how a command ends


class TooSlow(BaseException):
    """A command took longer than any may."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def memory_limit(size: int) -> Iterator[None]:
    """What no file may make a command allocate fails here, and not on the user's machine."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def rights_of(nobody: bool) -> Iterator[None]:
    """Do something with the rights of a user who owns nothing, where that can be done."""
    if not nobody:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def ctrl_c(after: float) -> Iterator[None]:
    """The user stops what is still running after some seconds; never if that is infinite."""

    def press() -> None:
        if not done.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    done, timer = threading.Event(), threading.Timer(min(after, 1e6), press)
    timer.start()
    try:
        yield
    finally:
        done.set()
        timer.cancel()


def run_inside(made: Made, patience: float) -> tuple[int, str, str]:
    """Code, stdout and stderr of a command in this process; −1 for one that does not end."""
    stop = ctrl_c(patience if made.stopped else math.inf)
    try:
        with time_limit(SECONDS), warnings.catch_warnings(), rights_of(made.nobody), stop:
            warnings.simplefilter("ignore")
            result = CliRunner(env={"COLUMNS": "100"}).invoke(app, made.command, prog_name="kofa")
    except TooSlow:
        return -1, "", ""
    except KeyboardInterrupt:  # it had ended already
        return 130, "", ""
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        return -2, result.stdout, f"Traceback: {type(error).__name__}: {error}"
    return result.exit_code, result.stdout, result.stderr


def complaints(
    code: int, codes: frozenset[int], stdout: str, stderr: str, piped: bool
) -> Iterator[str]:
    """What is wrong with the way a command ended."""
    if code == -1:
        yield f"did not end within {SECONDS} s"
        return
    stderr = _IGNORED.sub("", stderr)
    if "Traceback" in stderr or "fault of kofa" in stderr:
        yield "a foreign error"
    if code not in codes:
        yield f"code {code}, expected {' or '.join(map(str, sorted(codes)))}"
    errors = [line for line in stderr.splitlines() if line.startswith("error: ")]
    others = [line for line in stderr.splitlines() if not line.startswith(("error: ", "warning: "))]
    if code == 130 and stderr and "stopped" not in stderr:
        yield "no word about being stopped"
    if code in (1, 2) and stderr and len(errors) != 1:
        yield f"{len(errors)} lines of errors"
    if code in (1, 2) and others:
        yield "lines that are no errors or warnings"
    if code == 0 and errors:
        yield "an error with code 0"
    if CONTROL.search(stderr) or (not piped and CONTROL.search(stdout)):
        yield "control characters for the terminal"


def changes(before: dict[str, bytes], after: dict[str, bytes], code: int) -> Iterator[str]:
    """What a command left behind and should not have."""
    new = after.keys() - before.keys()
    if code == 130:  # a fit goes on from its checkpoint, or clears what is left of it
        new = {path for path in new if "out.kofa.checkpoint" not in path}
    for path in new:
        if Path(path).name.endswith((".tmp", ".lock", ".part", ".checkpoint")):
            yield f"left {path!r}"
    if code != 0 and new:
        yield f"failed but made {sorted(new)[0]!r}"
    for path in before:
        if path not in after:
            if not (code == 0 and path.endswith(".checkpoint")):
                yield f"removed {path!r}"
        elif after[path] != before[path] and (code != 0 or not _may_change(path)):
            yield f"changed {path!r}"


def _may_change(path: str) -> bool:
    """Whether commands that succeed may have been asked to write there."""
    names = ("model.kofa", "cut.kofa", "real.csv", "link.csv", "study.toml", "rna.parquet")
    return Path(path).name in names or path.endswith("sub/rna.csv")


def run_and_check(made: Made, before: dict[str, bytes], folder: Path, patience: float) -> Ending:
    code, stdout, stderr = run_inside(made, patience)
    after = contents(folder)
    piped = code == 0 and made.command[:1] in (["transform"], ["predict"])
    wrong = [*complaints(code, made.codes, stdout, stderr, piped)]
    ending = Ending(made.command, code, wrong)
    finished = code == 130 and "written" in stderr and "nothing was written" not in stderr
    ending.complaints += changes(before, after, 0 if finished else code)
    ending.shown = stderr[-400:]
    restore(before, after)
    return ending


# ---------------------------------------------------------------- processes of their own

FIT = "fit study.toml --max-iter 2 -o out.kofa"
SHELL: list[tuple[str, dict[str, str], int]] = [  # command, environment, code
    (f"kofa {FIT}", {"PYTHONIOENCODING": "ascii"}, 0),
    (f"kofa {FIT}", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, 0),
    (f"kofa {FIT}", {"LC_ALL": "POSIX", "PYTHONIOENCODING": "cp1252"}, 0),
    ("kofa info odd.kofa", {"PYTHONIOENCODING": "ascii"}, 0),
    ("kofa fit --help", {"PYTHONIOENCODING": "ascii"}, 0),
    (f"kofa {FIT} >&-", {}, 0),
    (f"kofa {FIT} >/dev/full", {}, 0),
    ("kofa transform model.kofa -v rna=rna.csv >&-", {}, 1),
    ("kofa transform model.kofa -v rna=rna.csv >/dev/full", {}, 1),
    ("kofa transform model.kofa -v rna=rna.csv -o out.csv >&-", {}, 0),
    ("kofa info model.kofa >&-", {}, 1),
    ("kofa info model.kofa >/dev/full", {}, 1),
    ("kofa info no.kofa 2>&-", {}, 1),
    ("kofa info no.kofa 2>/dev/full", {}, 1),
    ("kofa --help >/dev/full", {}, 1),
    ("kofa info model.kofa <&-", {}, 0),
    (f"kofa {FIT} >&- 2>&- <&-", {}, 0),
    (f"kofa {FIT} | true; exit ${{PIPESTATUS[0]}}", {}, 0),
    ("kofa transform model.kofa -v rna=/dev/stdin", {}, 1),
    ("kofa transform model.kofa -v rna=- -o out.csv <rna.csv", {}, 0),
    ("kofa transform model.kofa -v rna=- <&-", {}, 1),
    ("kofa transform model.kofa -v rna=- </dev/null", {}, 1),
    ("kofa weights model.kofa --json >/dev/full", {}, 1),
    ("kofa weights odd.kofa", {"PYTHONIOENCODING": "ascii"}, 0),
    ("kofa variance model.kofa >&-", {}, 1),
    ("kofa factors model.kofa -o out.csv >&-", {}, 0),
    ("kofa nope", {"TERM": "dumb", "COLUMNS": "1"}, 2),
]  # fmt: skip


def run_outside(line: str, environment: dict[str, str], code: int, folder: Path) -> Ending:
    """A command line of a shell, with streams as they seldom are."""
    define = f'kofa() {{ "{sys.executable}" -c "{MAIN}" "$@"; }}; '
    before = contents(folder)
    try:
        done = subprocess.run(
            ["bash", "-c", define + line], capture_output=True, timeout=SECONDS,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | environment, cwd=folder,
        )  # fmt: skip
        found, stdout, stderr = (
            done.returncode,
            *(t.decode(errors="replace") for t in (done.stdout, done.stderr)),
        )
    except subprocess.TimeoutExpired:
        found, stdout, stderr = -1, "", ""
    after = contents(folder)
    wrong = [*complaints(found, frozenset({code}), stdout, stderr, True)]
    wrong += changes(before, after, found)
    restore(before, after)
    return Ending([line, *map(str, environment.items())], found, wrong, stderr[-400:])


# ---------------------------------------------------------------- the benchmark


def warm_up(folder: Path) -> None:
    """Import everything now: not every user may do so later, and Ctrl-C would leave halves."""
    before = contents(folder)
    view = ["model.kofa", "-v", "rna=rna.csv"]
    for command in (
        ["fit", "study.toml", "--max-iter", "2", "-o", "out.kofa"], ["init", "bad"],
        ["init", "odd"], ["demo", "wine"],
        ["impute", *view, "-o", "new"], ["transform", *view, "-o", "out.parquet"], ["nope"],
        ["evaluate", "study.toml", "--max-iter", "2", "--cv", "2"], ["weights", "model.kofa"],
        ["associate", "model.kofa", "stage.csv"], ["plot", "bound", "model.kofa", "-o", "x.png"],
        ["plot", "weights", "model.kofa", "rna", "-o", "x.pdf"],
        ["enrich", "model.kofa", "rna", "sets.gmt", "--min-size", "2"],
        ["predict", *view, "-t", "protein", "--std"], ["info", "model.kofa"], ["info", "no"],
    ):  # fmt: skip
        run_inside(Made(command, ANY), math.inf)
    restore(before, contents(folder))


def endings(seed: int, folder: Path) -> Iterator[Ending]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make_folder(folder)
    os.chdir(folder)
    warm_up(folder)
    rng = np.random.default_rng(seed)
    maker = Maker(rng, sorted(os.listdir(folder / "bad")))
    start = contents(folder)
    for _ in range(COMMANDS):
        made = maker.command()
        yield run_and_check(made, contents(folder), folder, float(rng.uniform(0, 0.4)))
        restore(start, contents(folder))
    for line, environment, code in SHELL:
        yield run_outside(line, environment, code, folder)


def hostile_commands() -> Row:
    """Run them all; those that end wrongly go to stderr."""
    seed = int(os.environ.get("KOFA_SEED", secrets.randbits(32)))
    here, bad, codes = Path.cwd(), 0, Counter[int]()
    os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(one).resolve()) for one in sys.path if one)
    containers._PATIENCE = SECONDS / 3  # with files on which the HDF5 library hangs
    with TemporaryDirectory() as folder, memory_limit(MOST_MEMORY):
        try:
            for ending in endings(seed, Path(folder).resolve()):
                codes[ending.code] += 1
                if ending.complaints:
                    bad += 1
                    print(ending.complaints, ending.command, ending.shown, file=sys.stderr)
        finally:
            os.chdir(here)
    ends = ", ".join(f"{n:,} with code {code}" for code, n in sorted(codes.items()))
    text = f"{bad} of {codes.total():,} ({ends}; seed {seed})"
    return Row("hostile commands that end wrongly", float(bad), Mark(high=0), text)


EXPERIMENTS: dict[str, Measurement] = {"hostile-commands": hostile_commands}
