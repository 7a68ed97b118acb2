"""Whether versions agree and the changelog is dated, before a release.

    python tests/release.py

`make release-check` runs it before everything that takes longer.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RELEASE = re.compile(r"\d+\.\d+\.\d+")
DATED = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$", re.M)


def found(folder: Path, name: str, pattern: str) -> str:
    """The first match in a file, or nothing."""
    match = re.search(pattern, (folder / name).read_text(encoding="utf-8"), re.M)
    return match[1] if match else ""


def wrong(folder: Path) -> list[str]:
    """What stands in the way of a release."""
    version = found(folder, "src/kofa/__init__.py", r'^__version__ = "(.+)"$')
    cited = found(folder, "CITATION.cff", r"^version: (.+)$")
    released = DATED.findall((folder / "CHANGELOG.md").read_text(encoding="utf-8"))
    faults = []
    if not RELEASE.fullmatch(version):
        faults.append(f"kofa.__version__ is {version}, which is no release")
    if cited != version:
        faults.append(f"CITATION.cff has version {cited}, and the package {version}")
    if not released or released[0][0] != version:
        latest = released[0][0] if released else "none"
        faults.append(f"CHANGELOG.md has {latest} as its latest dated version, not {version}")
    if found(folder, "CHANGELOG.md", r"^## \[Unreleased\]\n+(### .+)$"):
        faults.append("CHANGELOG.md has changes under Unreleased")
    return faults


def main() -> int:
    faults = wrong(ROOT)
    print(*(faults or ["versions and changelog agree"]), sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
