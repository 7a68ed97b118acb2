"""Commands as a user gives them, and tables to give them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from functools import cache

import numpy as np
import pandas as pd
import typer.testing
from typer.testing import CliRunner

from kofa.cli.app import app

# Typer makes the commands anew for each call, which takes as long as most of them.
typer.testing._get_command = cache(typer.testing._get_command)
MAIN = "import sys; sys.argv[0] = 'kofa'; from kofa.cli import main; main()"


def run(command, code=0):
    """Run a command, and return the result once its exit code is as expected."""
    arguments = shlex.split(command) if isinstance(command, str) else list(map(str, command))
    result = CliRunner().invoke(app, arguments, prog_name="kofa", env={"COLUMNS": "120"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert "fault of kofa" not in result.output
    return result


def error(command, code=1):
    """The one line that a command says when it fails, after what it warned of."""
    *warned, line = run(command, code).stderr.splitlines()
    assert all(one.startswith("warning: ") for one in warned)
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


def program(*arguments, encoding="utf-8", **options):
    """The command in a process of its own."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONIOENCODING": encoding}
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *map(str, arguments)],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        text=True,
        encoding=encoding,
        env=environment,
    )


def tables(seed=0, n=80):
    """Three tables with holes about different samples: two of numbers, and a stage."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 2))
    ids = pd.Index([f"{i:03d}" for i in range(n)], name="id")
    rna = pd.DataFrame(z @ rng.standard_normal((2, 6)), ids).add_prefix("g")
    protein = pd.DataFrame(z @ rng.standard_normal((2, 4)), ids).add_prefix("p")
    rna, protein = (t + 0.2 * rng.standard_normal(t.shape) for t in (rna, protein))
    clinical = pd.DataFrame({"age": rng.integers(30, 80, n), "stage": "early"}, ids)
    clinical.loc[z[:, 0] > 0, "stage"] = "late"
    holes = rng.random(rna.shape) < 0.1
    return {"rna": rna.mask(holes), "protein": protein.iloc[:60], "clinical": clinical.iloc[10:70]}


STUDY = """\
[model]
outputs = ["stage"]
random_state = 3

[views.rna]
file = "rna.csv"

[views.protein]
file = "protein.csv"
kernel = {name = "rbf", width = 3.0}

[views.stage]
file = "clinical.csv"
kind = "categorical"
columns = ["stage"]
"""


def write_tables(place):
    """The tables and their study in a folder."""
    for name, frame in tables().items():
        frame.to_csv(place / f"{name}.csv")
    (place / "study.toml").write_text(STUDY, encoding="utf-8")
