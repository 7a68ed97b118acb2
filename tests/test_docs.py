"""The code in the documentation runs and prints what the pages show; so do the examples."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
from pathlib import Path

import pytest

import kofa

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# All but what is built, and the tables of the paper, which are results.
SKIPPED = ("generated", "paper")
WRITTEN = [p for p in sorted(DOCS.rglob("*.md")) if p.relative_to(DOCS).parts[0] not in SKIPPED]
PAGES = [ROOT / "README.md", *WRITTEN]
OTHER_TOOLS = ("mofa", "scikit_learn", "mixomics")
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# A block, and the block of output if nothing but blank lines stands between them.
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.M | re.S)
# The last cell of a row below a head whose last cell is "kofa": what to write here.
HEAD = re.compile(r"^\|.*\| kofa \|$", re.M)
ROW = re.compile(r"^\|.*\| `([^`|]+)` \|$", re.M)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def blocks(page):
    """(line, code, output or None) of each python block of a page."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        yield text[: match.start(1)].count("\n"), match[1], match[2]


def run_blocks(page, namespace):
    """Run the blocks in order in one namespace; yield what each should print and prints."""
    for line, code, expected in blocks(page):
        printed = io.StringIO()
        # Blank lines in front make the line numbers of a traceback those of the page.
        compiled = compile("\n" * line + code, str(page), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(printed):
            exec(compiled, namespace)
        yield line, expected, printed.getvalue()


def ours(page):
    """What the tables for users of other tools say to write here."""
    _, *tables = HEAD.split(page.read_text(encoding="utf-8"))
    return [code for table in tables for code in ROW.findall(table.split("\n\n")[0])]


def without_trailing_space(text):
    return [line.rstrip() for line in text.rstrip().splitlines()]


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_blocks_run_and_print_what_is_shown(page, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.syspath_prepend(str(ROOT))
    namespace = {"__name__": "__docs__"}
    for line, expected, printed in run_blocks(page, namespace):
        if expected is not None:
            assert without_trailing_space(printed) == without_trailing_space(expected), (
                f"{page.name}, block at line {line}"
            )
    for code in ours(page):
        exec(compile(code, str(page), "exec", dont_inherit=True), namespace)


def test_tables_for_users_of_other_tools_are_found():
    rows = {name: len(ours(DOCS / "howto" / f"from_{name}.md")) for name in OTHER_TOOLS}
    assert min(rows.values()) > 15
    for name in OTHER_TOOLS:  # every row is run
        text = (DOCS / "howto" / f"from_{name}.md").read_text(encoding="utf-8")
        tables = [part.split("\n\n")[0].strip() for part in HEAD.split(text)[1:]]
        assert sum(len(table.splitlines()) - 1 for table in tables) == rows[name]


def test_commands_of_the_start_page_run(tmp_path, monkeypatch):
    pytest.importorskip("typer")
    from commands import run

    monkeypatch.chdir(tmp_path)
    text = (DOCS / "start" / "shell.md").read_text(encoding="utf-8")
    given = re.findall(r"^\$ (\w+) (.+)$", text, re.M)
    assert len(given) > 6
    for command, arguments in given:
        if command == "cd":
            monkeypatch.chdir(arguments)
        elif command == "python":
            exec(shlex.split(arguments)[1], {})
        else:
            assert command == "kofa"
            run(arguments)
    assert (tmp_path / "wine" / "new.csv").exists()


@pytest.mark.parametrize("name", sorted(kofa.plot.__all__))
def test_every_plot_has_its_page_in_the_gallery(name):
    (page,) = (DOCS / "gallery").glob(f"plot_??_{name}.py")
    assert f"kofa.plot.{name}(" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("module", ["", "inspection", "plot", "omics"])
def test_every_public_name_is_in_the_reference(module):
    names = set((kofa if not module else getattr(kofa, module)).__all__)
    text = (DOCS / "reference" / "api.rst").read_text(encoding="utf-8")
    parts = re.split(r"^\.\. currentmodule:: kofa\.?(\w*)$", text, flags=re.M)
    listed = [
        name
        for where, part in zip(parts[1::2], parts[2::2], strict=True)
        if where == module
        for name in re.findall(r"^   (\w+)$", part, re.M)
    ]
    assert sorted(listed) == sorted(names - {"inspection", "omics", "plot"})


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files(page):
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    missing = [t for t in targets if not (page.parent / t).exists()]
    assert not missing


def test_the_readme_stands_alone():
    """It is also shown where the other files are not."""
    assert LINK.findall((ROOT / "README.md").read_text(encoding="utf-8")) == []


def test_blocks_are_found():
    text = "```python\nx = 1\n```\n\n```text\n1\n```\n```python\ny\n```\nwords\n```text\n2\n```\n"
    assert [m.groups() for m in BLOCK.finditer(text)] == [("x = 1\n", "1\n"), ("y\n", None)]
    assert any(expected for page in PAGES for _, _, expected in blocks(page))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.name)
def test_examples_run(example, capfd):
    """Without a warning, and with something to see."""
    pytest.importorskip("pandas")
    runpy.run_path(str(example), run_name="__main__")
    shown, complaints = capfd.readouterr()
    assert not complaints
    assert len(shown.splitlines()) >= 5


def test_results_that_are_quoted_are_those_of_the_run():
    """Rows with a spread over folds stand in the tables that the experiments wrote."""
    pages = (ROOT / "docs" / "paper").glob("*.md")
    known = {line for page in pages for line in page.read_text(encoding="utf-8").splitlines()}
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    quoted = [line for line in text.splitlines() if line.startswith("| ") and "±" in line]
    assert len(quoted) > 5
    assert [line for line in quoted if line not in known] == []
