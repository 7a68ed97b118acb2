"""What `import kofa` costs, and what it brings along."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from tempfile import mkdtemp

import numpy as np

from experiments.experiment import Mark, Measurement, Row

ROUNDS = 7
OPTIONAL = ("pandas", "matplotlib", "tqdm", "torch")
BASE = "import sklearn"
NEEDED = "import sklearn.base, scipy.linalg, scipy.optimize"
OURS = "import kofa"


@cache
def environment() -> dict[str, str]:
    """This one with compiled modules kept, as in an installed package, but in a folder apart."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": mkdtemp(prefix="kofa-bench-")}


def fresh(code: str) -> str:
    """What a new interpreter prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, check=True, capture_output=True, env=environment(), encoding="locale"
    )
    return done.stdout.strip()


def timed(statement: str) -> tuple[float, float]:
    """Wall and CPU seconds of an import in a new interpreter."""
    clock = "from time import perf_counter as wall, process_time as cpu; start = wall(), cpu()"
    wall, cpu = fresh(f"{clock}; {statement}; print(wall() - start[0], cpu() - start[1])").split()
    return float(wall), float(cpu)


def import_time() -> Row:
    """Medians over fresh interpreters in turns; also in CPU time, which load disturbs less."""
    statements = (BASE, NEEDED, OURS)
    fresh("; ".join(statements))  # compiles, and brings the files into cache
    rounds = np.array([[timed(s) for s in statements] for _ in range(ROUNDS)])
    (base, base_cpu), (needed, _), (ours, ours_cpu) = np.median(rounds, axis=0).tolist()
    text = (
        f"{ours - base:.3f} (kofa {ours:.3f}, sklearn {base:.3f}; sklearn.base, scipy.linalg and "
        f"scipy.optimize {needed:.3f}; difference in CPU time {ours_cpu - base_cpu:.3f})"
    )
    return Row("seconds of import kofa beyond import sklearn", ours - base, Mark(high=0.1), text)


def loaded(statement: str) -> set[str]:
    """Which optional packages an import brings along."""
    return set(fresh(f"{statement}; import sys; print(*sys.modules)").split()) & set(OPTIONAL)


def optional() -> Row:
    """Packages that only some users need must not be loaded for all."""
    base = loaded(BASE)  # scikit-learn itself loads pandas where it is installed
    ours = loaded(OURS) - base
    text = f"{', '.join(sorted(ours)) or 'none'} (by sklearn: {', '.join(sorted(base)) or 'none'})"
    what = f"which of {', '.join(OPTIONAL)} import kofa loads beyond import sklearn"
    return Row(what, len(ours), Mark(high=0), text)


EXPERIMENTS: dict[str, Measurement] = {"import": import_time, "import-optional": optional}
