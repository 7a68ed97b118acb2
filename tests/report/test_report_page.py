"""The file of a report: whole or not there, without anything from outside, names escaped."""

from __future__ import annotations

import hashlib
import re
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import kofa
from drawn import one_factor
from kofa.report import page
from reports import IMAGE, SCRIPT, problem

VENDOR = files("kofa.report") / "vendor"


class Tags(HTMLParser):
    """The tags of a page, and the text between them but for scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.inside = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.inside = tag

    def handle_data(self, data):
        if self.inside not in ("script", "style"):
            self.text.append(data)

    def handle_endtag(self, tag):  # noqa: ARG002
        self.inside = None


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    model, given = problem("hostile")
    path = tmp_path_factory.mktemp("report") / "report.html"
    model.report(path, **given)
    return path.read_text(encoding="utf-8")


def test_names_are_text_and_never_tags(hostile):
    found = Tags(hostile)
    assert "img" not in [tag for tag, _ in found.tags]
    assert sum(tag == "script" for tag, _ in found.tags) == 3  # the data, Plotly, ours
    text = "".join(found.text)
    assert f"{IMAGE} from {SCRIPT}" in text
    assert SCRIPT not in hostile  # as it stands
    assert IMAGE not in hostile


def test_nothing_is_asked_from_elsewhere(hostile):
    for tag, attributes in Tags(hostile).tags:
        assert tag not in ("link", "iframe", "img", "object", "embed")
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', hostile)[1]
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy


def test_a_title_of_ones_own(tmp_path):
    model, _ = one_factor()
    model.report(tmp_path / "r.html", title="A <study>")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<title>A &lt;study&gt;</title>" in text


def test_a_report_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    model, _ = one_factor()
    path = tmp_path / "r.html"
    path.write_text("before", encoding="utf-8")
    with pytest.raises(kofa.DataError):
        model.report(path, covariates=[1.0])
    monkeypatch.setattr("os.fsync", lambda *_: (_ for _ in ()).throw(OSError(28, "disk full")))
    with pytest.raises(kofa.FileError, match="disk full"):
        model.report(path)
    assert path.read_text(encoding="utf-8") == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["r.html"]


def test_a_folder_that_is_not_there_is_known_before_any_work(tmp_path, monkeypatch):
    model, _ = one_factor()
    monkeypatch.setattr(page, "report_page", None)
    with pytest.raises(kofa.FileError, match="there is no folder"):
        model.report(tmp_path / "nowhere" / "r.html")


def test_without_jinja_it_is_said_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'kofa\[report\]'"):
        one_factor()[0].report(tmp_path / "r.html")


def test_a_model_that_is_not_fitted_has_no_report(tmp_path):
    with pytest.raises(NotFittedError):
        kofa.FactorModel().report(tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


def test_the_same_model_has_the_same_report(tmp_path):
    model, data = one_factor()
    for name in "ab":
        model.report(tmp_path / name, data)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_data_are_not_changed(tmp_path):
    model, data = one_factor()
    before = data["x"].copy()
    model.report(tmp_path / "r.html", data, covariates=data["x"])
    assert np.array_equal(before, data["x"])


def test_plotly_is_the_file_that_is_stated():
    stated = (VENDOR / "README.md").read_text(encoding="utf-8")
    script = (VENDOR / "plotly-cartesian.min.js").read_bytes()
    assert hashlib.sha256(script).hexdigest() in stated
    version = re.search(rb"plotly\.js \(cartesian - minified\) v([\d.]+)", script)[1].decode()
    assert f"| version | {version}," in stated
    assert "MIT License" in (VENDOR / "LICENSE.plotly").read_text(encoding="utf-8")
    assert b"</script" not in script.lower()
    assert b"<!--" not in script
