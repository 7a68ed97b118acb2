"""The shape of the package."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache, reduce
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

import kofa

ORDER = [
    "errors", "checks", "linalg", "ahead", "tuning", "data", "likelihoods", "kernels", "predictive",
    "inference", "engines", "views", "preparation", "omics", "results", "scores", "inspection",
    "storage", "progress", "published", "fitting", "model", "estimators", "scoring",
    "cross_validation", "plot", "files", "report", "cli",
]  # fmt: skip
ENTRIES = ["__init__", "__main__"]  # which may import all others
ORDER_IN_STORAGE = [
    "damage", "atomic", "zip_directory", "npy", "manifest", "archive", "dtypes", "fields",
    "schema", "codec", "validation", "model_file", "checkpoint", "row_file",
]  # fmt: skip
SOURCE = Path(kofa.__file__).parent


def place_of(path, source):
    """The module or sub-package of the package that a file belongs to."""
    return path.relative_to(source).parts[0].removesuffix(".py")


@cache
def nodes_of(text):
    """All that a file says; several tests ask for it."""
    return list(ast.walk(ast.parse(text)))


def named_imports(path, source):
    """Every module that a file imports, and every name that it may import as a module."""
    folder = ["kofa", *path.relative_to(source).parts[:-1]]
    for node in nodes_of(path.read_text(encoding="utf-8")):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            here = folder[: len(folder) + 1 - node.level] if node.level else []
            module = ".".join([*here, *filter(None, [node.module])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def imports_of(path, source=SOURCE):
    """Modules and sub-packages of the package that a file imports, however it does."""
    inside = [name.split(".") for name in named_imports(path, source)]
    # `import kofa` alone can reach everything: it counts as a module of that name.
    return {parts[1] if parts[1:] else "kofa" for parts in inside if parts[0] == "kofa"}


def wrong_imports(source):
    for path in sorted(source.rglob("*.py")):
        name = place_of(path, source)
        if name not in ENTRIES:
            above = {*ORDER[: ORDER.index(name)], name, "__version__"}
            yield from (f"{name}: {other}" for other in sorted(imports_of(path, source) - above))


def prints(source):
    """Every place that calls print, or hands it on."""
    for path in sorted(source.rglob("*.py")):
        for node in nodes_of(path.read_text(encoding="utf-8")):
            if isinstance(node, ast.Name) and node.id == "print":
                yield f"{path.relative_to(source).as_posix()}:{node.lineno}"


def implicit_encodings(source):
    """Every place that reads or writes text in whatever encoding the machine prefers."""
    for path in sorted(source.rglob("*.py")):
        calls = [
            node
            for node in nodes_of(path.read_text(encoding="utf-8"))
            if isinstance(node, ast.Call)
            and not {k.arg for k in node.keywords} & {"encoding", None}
        ]
        for call in filter(takes_text, calls):
            yield f"{path.relative_to(source).as_posix()}:{call.lineno}"


def takes_text(call):
    name = ast.unparse(call.func)
    if name in ("open", "gzip.open"):
        return not any("b" in arg.value for arg in call.args[1:] if isinstance(arg, ast.Constant))
    if name.endswith((".read_text", ".write_text")):
        return len(call.args) <= name.endswith(".write_text")  # the next one is the encoding
    return any(ast.unparse(keyword) == "text=True" for keyword in call.keywords)


VIEWS = {"Binary", "Categorical", "Count", "Positive", "Real"}
LIKELIHOODS = {"Bernoulli", "Gaussian", "LogNormal", "Multinomial", "Poisson"}
KINDS = VIEWS | LIKELIHOODS | {"bernoulli", "gaussian", "log_normal", "multinomial", "poisson"}


def kinds_named(source):
    """Every place that imports a kind of view, or compares something with the name of one."""
    for path in sorted(source.rglob("*.py")):
        place, nodes = place_of(path, source), nodes_of(path.read_text(encoding="utf-8"))
        # Files have a list of what they may hold.
        if place in ("likelihoods", "views") or path == source / "storage" / "schema.py":
            continue
        own = (name.split(".") for name in named_imports(path, source) if name.startswith("kofa."))
        found = {part for parts in own for part in parts}
        if place in ("__init__", "estimators", "cli"):  # declare views as users do
            found -= VIEWS
        compared = (node for node in nodes if isinstance(node, ast.Compare))
        for node in (inner for one in compared for inner in ast.walk(one)):
            found |= {node.value} if isinstance(node, ast.Constant) else set()
        where = path.relative_to(source).as_posix()
        yield from (f"{where}: {name}" for name in sorted(found & KINDS))


def test_every_module_has_its_place():
    found = {place_of(path, SOURCE) for path in SOURCE.rglob("*.py")}
    assert sorted(found) == sorted([*ORDER, *ENTRIES])


def test_modules_import_only_from_those_above():
    assert list(wrong_imports(SOURCE)) == []


def test_only_a_report_is_imported_by_name():
    """A model writes reports of itself, which are made of what is below it."""
    named = {
        (path.relative_to(SOURCE).as_posix(), ast.unparse(node.args[0]))
        for path in SOURCE.rglob("*.py")
        if path.parent != SOURCE or path.stem not in ENTRIES
        for node in nodes_of(path.read_text(encoding="utf-8"))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module")
    }
    assert named == {("model.py", "'kofa.report.page'")}


def test_modules_of_storage_import_only_from_those_above():
    folder = SOURCE / "storage"
    assert {path.stem for path in folder.glob("*.py")} == {*ORDER_IN_STORAGE, "__init__"}
    for place, name in enumerate(ORDER_IN_STORAGE):
        inside = [one.split(".") for one in named_imports(folder / f"{name}.py", SOURCE)]
        seen = {parts[2] for parts in inside if parts[:2] == ["kofa", "storage"]}
        assert seen <= set(ORDER_IN_STORAGE[:place]), name


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("import kofa.cli", "cli"),
        ("import kofa.cli.app as app", "cli"),
        ("import numpy, kofa.cli", "cli"),
        ("import kofa", "kofa"),
        ("from kofa import cli", "cli"),
        ("from kofa import FactorModel", "FactorModel"),
        ("from kofa.cli import app", "cli"),
        ("from ... import cli", "cli"),
        ("from ...cli import app", "cli"),
        ("def late():\n    import kofa.cli", "cli"),
    ],
)
def test_imports_are_seen_in_every_form(tmp_path, line, seen):
    path = tmp_path / "files" / "deep" / "text.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        f"import os\nfrom kofa.errors import DataError\nfrom . import near\n{line}\n",
        encoding="utf-8",
    )
    assert list(wrong_imports(tmp_path)) == [f"files: {seen}"]


def test_import_loads_no_extras():
    """Nothing beyond what scikit-learn itself loads (it takes pandas where it finds it)."""
    code = """
import sys, sklearn
before = set(sys.modules)
import kofa
extras = {"pandas", "matplotlib", "tqdm", "torch", "polars", "anndata", "mudata", "typer", "rich",
          "jinja2"}
print(sorted(extras & (set(sys.modules) - before)))
"""
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, encoding="locale"
    )
    assert shown.stdout.strip() == "[]"


def walks():
    """The functions that docs/architecture.md draws, with how far each stands to the right."""
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    for block in re.findall(r"```walk\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            yield (len(line) - len(line.lstrip())) // 4, line.split()[0]


def found(path):
    """What a dotted path within the package names."""
    parts, thing = path.split("."), kofa
    for n in range(1, len(parts) + 1):
        try:
            thing = import_module(".".join(["kofa", *parts[:n]]))
        except ModuleNotFoundError:
            return reduce(getattr, parts[n - 1 :], thing)
    return thing


@pytest.mark.parametrize("name", [name for _, name in walks()])
def test_walks_of_the_docs_name_functions_of_the_code(name):
    assert callable(found(name))


def test_every_file_is_named_in_the_docs():
    """Those of `cli/commands` and `cli/steps` have the names of commands."""
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = {name.rpartition("/")[2] for name in re.findall(r"`([a-z_/]+)(?:\.py)?`", text)}
    files = [path.relative_to(SOURCE) for path in SOURCE.rglob("*.py")]
    listed = [path for path in files if path.parent.name not in ("commands", "steps")]
    assert [p.as_posix() for p in listed if p.stem not in {*named, *ENTRIES}] == []


def test_walks_of_the_docs_go_one_step_at_a_time():
    depths = [depth for depth, _ in walks()]
    assert len(depths) > 30
    assert all(after - before <= 1 for before, after in pairwise(depths))


def floors():
    """The floor of each package: one above the highest of those that it imports."""
    found = {}
    for name in ORDER:
        path = SOURCE / name
        files = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
        below = set().union(*(imports_of(file) for file in files)) - {name, "__version__"}
        found[name] = 1 + max((found[other] for other in below), default=-1)
    return found


def test_the_package_has_at_most_ten_floors():
    assert max(floors().values()) < 10, floors()


def test_library_never_prints():
    assert list(prints(SOURCE)) == []


@pytest.mark.parametrize("line", ["print(1)", "say = [1]\nlist(map(print, say))"])
def test_printing_is_seen_in_sub_packages(tmp_path, line):
    path = tmp_path / "files" / "deep" / "text.py"
    path.parent.mkdir(parents=True)
    path.write_text(line, encoding="utf-8")
    assert list(prints(tmp_path)) == [f"files/deep/text.py:{len(line.splitlines())}"]


def test_no_other_module_knows_a_kind_by_name():
    assert list(kinds_named(SOURCE)) == []


@pytest.mark.parametrize(
    "line", ["from kofa.likelihoods import Gaussian", "x = view.declared in ('Count', 'Real')"]
)
def test_names_of_kinds_are_seen(tmp_path, line):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "one.py").write_text(line + "\n", encoding="utf-8")
    assert list(kinds_named(tmp_path))


@pytest.mark.parametrize("folder", [SOURCE, Path(__file__).parent], ids=["package", "tests"])
def test_text_is_read_and_written_in_an_encoding_that_is_named(folder):
    assert list(implicit_encodings(folder)) == []


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("open(path)", True),
        ("open(path, 'w')", True),
        ("open(path, 'rb')", False),
        ("open(path, encoding='utf-8')", False),
        ("path.read_text()", True),
        ("path.read_text('utf-8')", False),
        ("path.write_text('a')", True),
        ("path.write_text('a', encoding='utf-8')", False),
        ("run(command, text=True)", True),
    ],
)
def test_implicit_encodings_are_seen(tmp_path, line, seen):
    (tmp_path / "a.py").write_text(line, encoding="utf-8")
    assert list(implicit_encodings(tmp_path)) == ["a.py:1"] * seen
