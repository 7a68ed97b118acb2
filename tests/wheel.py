"""Install the wheel in `dist` into a new environment, and use what it brings.

    python tests/wheel.py [--every]

With --every it does so on each Python that is found.

What works from the folder of the sources may still be missing in the wheel: here nothing of that
folder is in reach. The examples of README.md are run in it too.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import versions

SMOKE = """
import numpy as np
import kofa

x = np.random.default_rng(0).normal(size=(50, 3))
views = {"x": kofa.Real(kernel="rbf", landmarks=kofa.Landmarks(20)), "y": kofa.Real()}
model = kofa.FactorModel(views, outputs=["y"]).fit({"x": x, "y": x[:, :1] ** 2})
model.save("model.kofa")
assert (kofa.load("model.kofa").predict({"x": x}) == model.predict({"x": x})).all()
print("kofa", kofa.__version__, "in", kofa.__file__)
"""


def wheel(folder: Path) -> Path:
    """The only wheel of a folder."""
    found = sorted(folder.glob("kofa-*.whl"))
    if len(found) != 1:
        raise SystemExit(f"expected one wheel in {folder} but found {len(found)}; run make build")
    return found[0].resolve()


def readme() -> str:
    """The Python blocks of README.md, which need no checkout."""
    text = (versions.ROOT / "README.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S))


def try_out(built: Path, interpreter: str) -> None:
    """Install a wheel on a Python, and use it."""
    with tempfile.TemporaryDirectory() as folder:
        bin_folder = Path(folder) / "environment" / versions.BIN
        python = str(bin_folder / "python")

        def run(*command: str, **options: Any) -> None:
            subprocess.run(command, cwd=folder, check=True, **options)

        run(interpreter, "-m", "venv", str(bin_folder.parent))
        run(python, "-m", "pip", "install", *versions.QUIET, str(built))
        run(python, "-I", "-c", SMOKE)  # without any extra
        run(python, "-m", "pip", "install", *versions.QUIET, f"kofa[cli] @ {built.as_uri()}")
        run(str(bin_folder / "kofa"), "--version")
        run(str(bin_folder / "kofa"), "info", "model.kofa")
        run(str(bin_folder / "kofa"), "report", "model.kofa", "-o", "report.html")
        run(python, "-I", "-c", readme(), stdout=subprocess.DEVNULL)
    print(f"{built.name} works on {interpreter}", flush=True)


def main() -> int:
    built = wheel(versions.ROOT / "dist")
    pythons = {sys.version_info[:2]: sys.executable}
    if "--every" in sys.argv[1:]:
        content = tomllib.loads((versions.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        pythons = versions.working(versions.candidates(), versions.least_python(content))
    for interpreter in pythons.values():
        try_out(built, interpreter)
    return 0


if __name__ == "__main__":
    sys.exit(main())
