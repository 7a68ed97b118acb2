"""The script behind `make release-check`."""

from __future__ import annotations

import pytest

import release


def written(folder, version="1.2.3", cited="1.2.3", log="## [1.2.3] - 2026-01-31\n\nText.\n"):
    (folder / "src" / "kofa").mkdir(parents=True)
    files = {
        "src/kofa/__init__.py": f'"""Doc."""\n__version__ = "{version}"\n',
        "CITATION.cff": f"cff-version: 1.2.0\nversion: {cited}\n",
        "CHANGELOG.md": f"# Changelog\n\n{log}",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_release_is_ready(tmp_path):
    assert release.wrong(written(tmp_path)) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"version": "1.2.3.dev0"}, "no release"),
        ({"cited": "1.2.2"}, "CITATION.cff has version 1.2.2"),
        ({"log": "## [1.2.2] - 2025-01-31\n"}, "latest dated version"),
        ({"log": "## [1.2.3]\n"}, "none as its latest dated version"),
        (
            {"log": "## [Unreleased]\n\n### Added\n\n- x\n\n## [1.2.3] - 2026-01-31\n"},
            "changes under Unreleased",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path, changed, said):
    assert any(said in fault for fault in release.wrong(written(tmp_path, **changed)))
