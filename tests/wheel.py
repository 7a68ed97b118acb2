"""Install the wheel in `dist` into a new environment, and use what it brings.

    python tests/wheel.py

What works from the folder of the sources may still be missing in the wheel: here nothing of that
folder is in reach.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

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


def main() -> int:
    built = wheel(versions.ROOT / "dist")
    with tempfile.TemporaryDirectory() as folder:
        bin_folder = Path(folder) / "environment" / versions.BIN
        python = str(bin_folder / "python")

        def run(*command: str) -> None:
            subprocess.run(command, cwd=folder, check=True)

        run(sys.executable, "-m", "venv", str(bin_folder.parent))
        run(python, "-m", "pip", "install", *versions.QUIET, str(built))
        run(python, "-I", "-c", SMOKE)  # without any extra
        run(python, "-m", "pip", "install", *versions.QUIET, f"kofa[cli] @ {built.as_uri()}")
        run(str(bin_folder / "kofa"), "--version")
        run(str(bin_folder / "kofa"), "info", "model.kofa")
        run(str(bin_folder / "kofa"), "report", "model.kofa", "-o", "report.html")
    print(built.name, "works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
