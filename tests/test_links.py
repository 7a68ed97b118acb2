"""The script that checks the links of the site."""

from __future__ import annotations

import pytest

import links

PAGE = """
<a href="other.html#there">x</a> <a href="#here">x</a> <h1 id="here">x</h1>
<img src="picture.png"> <a href="https://example.org/a">x</a> <a href="mailto:a@b.org">x</a>
"""


@pytest.fixture
def site(tmp_path):
    (tmp_path / "index.html").write_text(PAGE, encoding="utf-8")
    (tmp_path / "other.html").write_text('<p id="there">x</p>', encoding="utf-8")
    (tmp_path / "picture.png").write_bytes(b"")
    return tmp_path


def test_links_that_lead_somewhere(site):
    known = links.pages(site)
    assert len(known) == 2
    assert links.broken_inside(known) == []
    assert links.addresses(known) == ["https://example.org/a"]


@pytest.mark.parametrize("wrong", ["gone.html", "other.html#gone", "#gone", "gone.png"])
def test_links_that_lead_nowhere(site, wrong):
    (site / "more.html").write_text(f'<a href="{wrong}">x</a>', encoding="utf-8")
    assert links.broken_inside(links.pages(site)) == [f"more.html: {wrong}"]


def test_addresses_are_broken_or_not_known():
    assert links.broken_outside(["a", "b"], {"a": "", "b": ""}.get) == []
    said = links.broken_outside(["a", "b", "c"], {"a": "", "b": "404 Not Found"}.get)
    assert said == ["b: 404 Not Found", "c: no answer"]
    assert links.broken_outside(["a", "b"], {}.get) is None
    assert links.broken_outside([], {}.get) == []


def test_where_no_site_answers_it_is_said(site, monkeypatch, capsys):
    monkeypatch.setattr(links.broken_outside, "__defaults__", (lambda _: None,))
    assert links.main(site) == 0
    assert "NOT CHECKED, as no other site answers here: 1 addresses" in capsys.readouterr().out


def test_a_site_has_to_be_built(tmp_path, capsys):
    assert links.main(tmp_path) == 1
    assert "run make docs" in capsys.readouterr().out
