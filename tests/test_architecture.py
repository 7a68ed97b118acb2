"""The shape of the package."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import kofa

ORDER = [
    "errors", "replacing", "datasets", "archive", "dtypes", "linalg", "tables", "scaling",
    "kernels", "landmarks", "likelihoods", "views", "observations", "posterior", "updates",
    "rotation", "refinement", "calibration", "bound", "inference", "engine", "learning",
    "selection", "published", "study", "lessons", "vectors", "encoding", "prediction", "inspection",
    "schema", "soundness", "codec", "checkpoint", "omics", "model", "estimators", "files", "paper",
    "cli",
]  # fmt: skip
SOURCE = Path(kofa.__file__).parent


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kofa"):
            inside = node.module.split(".")[1:]
            yield from inside[:1] or [alias.name for alias in node.names]


def test_every_module_has_its_place():
    found = [p.stem for p in SOURCE.glob("*.py")] + [p.parent.name for p in SOURCE.glob("*/*.py")]
    assert sorted(set(found)) == sorted([*ORDER, "__init__"])


def test_modules_import_only_from_those_above():
    for place, name in enumerate(ORDER):
        inside = [SOURCE / f"{name}.py"], list((SOURCE / name).glob("*.py"))
        for path in inside[(SOURCE / name).is_dir()]:
            below = set(imports_of(path)) - set(ORDER[:place]) - {name, "__version__"}
            assert not below, f"{path.stem} imports {below}"


def test_import_loads_no_extras():
    """Nothing beyond what scikit-learn itself loads (it takes pandas where it finds it)."""
    code = """
import sys, sklearn
before = set(sys.modules)
import kofa
extras = {"pandas", "matplotlib", "tqdm", "torch", "polars", "anndata", "mudata", "typer", "rich"}
print(sorted(extras & (set(sys.modules) - before)))
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_library_never_prints():
    for path in SOURCE.glob("*.py"):
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        assert not [c for c in calls if getattr(c.func, "id", "") == "print"], path
