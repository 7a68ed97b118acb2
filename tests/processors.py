"""Run the tests with the arithmetic of several processors, whichever this one is.

    python tests/processors.py [--others] [what pytest takes]

OpenBLAS has kernels of its own for each family of processors, which add up in another order, and
uses those that OPENBLAS_CORETYPE names. The last digits of all products differ between them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
# The first ones are least alike: 512 and 128 bits at a time.
PROCESSORS = ("SkylakeX", "Prescott", "Haswell", "Nehalem")
# A product, which a processor without these instructions does not survive; and whose kernels it
# had. Where BLAS is another library, or names are not known to it, these are always the same.
ASK = """
import numpy, scipy.linalg, threadpoolctl
A = numpy.ones((300, 300))
A @ A, scipy.linalg.cho_factor(A + 300.0 * numpy.eye(300))
found = (pool.get("architecture", "") for pool in threadpoolctl.threadpool_info())
print(*sorted(set(found)))
"""


class Setting(NamedTuple):
    """How the tests are run."""

    processor: str
    threads: int

    def __str__(self) -> str:
        return f"{self.processor}, {self.threads} thread{'s' if self.threads > 1 else ''}"

    @property
    def environment(self) -> dict[str, str]:
        chosen = {"OPENBLAS_CORETYPE": self.processor, "OMP_NUM_THREADS": str(self.threads)}
        return {**os.environ, **chosen}


def kernels(environment: Mapping[str, str]) -> str:
    """What OpenBLAS calls the kernels that it uses there; "" if these do not run here."""
    command = [sys.executable, "-c", ASK]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment)
    return done.stdout.strip() if done.returncode == 0 else ""


def plan(only_others: bool) -> list[Setting]:
    """All that run here with one thread and two, or two that other tests did not have with one."""
    found = {one: kernels(Setting(one, 1).environment) for one in PROCESSORS}
    if only_others:
        own = kernels(os.environ)
        return [Setting(one, 1) for one, name in found.items() if name not in {"", own}][:2]
    return [Setting(one, threads) for one, name in found.items() if name for threads in (1, 2)]


def outcome(setting: Setting, arguments: Sequence[str]) -> str:
    command = [sys.executable, "-m", "pytest", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=setting.environment)
    return "passed" if done.returncode == 0 else "FAILED"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--others", action="store_true", help="only two that other tests do not have, one thread"
    )
    options, arguments = parser.parse_known_args()
    outcomes = {}
    for setting in plan(options.others):
        print(f"== {setting}", flush=True)
        outcomes[setting] = outcome(setting, arguments)
    for setting, result in outcomes.items():
        print(f"{setting}: {result}")
    return int(any(result != "passed" for result in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
