"""The code in the documentation runs and prints what the pages show; so do the examples."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# A block, and the block of output if nothing but blank lines stands between them.
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.M | re.S)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def blocks(page):
    """(line, code, output or None) of each python block of a page."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        yield text[: match.start(1)].count("\n"), match[1], match[2]


def run_blocks(page):
    """Run the blocks in order in one namespace; yield what each should print and prints."""
    namespace = {"__name__": "__docs__"}
    for line, code, expected in blocks(page):
        printed = io.StringIO()
        # Blank lines in front make the line numbers of a traceback those of the page.
        compiled = compile("\n" * line + code, str(page), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(printed):
            exec(compiled, namespace)
        yield line, expected, printed.getvalue()


def without_trailing_space(text):
    return [line.rstrip() for line in text.rstrip().splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_blocks_run_and_print_what_is_shown(page, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.syspath_prepend(str(ROOT))
    for line, expected, printed in run_blocks(page):
        if expected is not None:
            assert without_trailing_space(printed) == without_trailing_space(expected), (
                f"{page.name}, block at line {line}"
            )


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_to_files(page):
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    missing = [t for t in targets if not (page.parent / t).exists()]
    assert not missing


def test_blocks_are_found():
    text = "```python\nx = 1\n```\n\n```text\n1\n```\n```python\ny\n```\nwords\n```text\n2\n```\n"
    assert [m.groups() for m in BLOCK.finditer(text)] == [("x = 1\n", "1\n"), ("y\n", None)]
    assert any(expected for page in PAGES for _, _, expected in blocks(page))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.name)
def test_examples_run(example):
    pytest.importorskip("pandas")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        capture_output=True,
        timeout=600,
        check=False,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        encoding="locale",
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert len(done.stdout.splitlines()) >= 5


def test_results_that_are_quoted_are_those_of_the_run():
    """Rows with a spread over folds stand in the tables that the experiments wrote."""
    pages = (ROOT / "docs" / "paper").glob("*.md")
    known = {line for page in pages for line in page.read_text(encoding="utf-8").splitlines()}
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    quoted = [line for line in text.splitlines() if line.startswith("| ") and "±" in line]
    assert len(quoted) > 5
    assert [line for line in quoted if line not in known] == []
