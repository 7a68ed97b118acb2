"""The HTML that notebooks show of a model."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import config_context

import kofa


class Cells(HTMLParser):
    """The rows of a table, and the tags that are open."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.open, self.tags = [], [], set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):  # noqa: ARG002
        self.open.append(tag)
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def shown(model):
    found = Cells(model._repr_html_())
    assert found.open == []
    return found


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 2))
    x = z @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(60, 5))
    return {"x": x, "y": z[:, :1] + 0.1 * rng.normal(size=(60, 1))}


def test_a_fitted_model_shows_what_factors_explain(data):
    views = {"x": kofa.Real(kernel="rbf"), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=["y"], n_factors=2).fit(data)
    heads, x, y = shown(model).rows
    assert heads[:6] == ["view", "role", "kind", "kernel", "columns", "explained"]
    assert heads[6:] == model.factor_names_
    assert x[:5] == ["x", "", "real", "RBF", "5"]
    assert y[:5] == ["y", "output", "real", "–", "1"]
    table = model.variance_explained()
    r2 = table[table.view == "y"].r2
    assert y[5:] == [f"{share:.0%}" for share in (r2.sum(), *r2)]
    assert "(fitted)" in model._repr_html_()
    assert "2 factors of 60 samples" in model._repr_html_()


def test_a_model_that_is_not_fitted_shows_what_is_declared():
    views = {"x": kofa.Real(kernel="rbf"), "y": kofa.Count()}
    found = shown(kofa.FactorModel(views, outputs=["y"]))
    assert found.rows[1][:2] == ["x", ""]
    assert found.rows[2] == ["y", "output", repr(kofa.Count())]
    assert shown(kofa.FactorModel()).rows == []
    assert "(not fitted)" in kofa.FactorModel()._repr_html_()


def test_names_are_no_tags(data):
    bad = "<script>alert(1)</script>"
    model = kofa.FactorModel().fit({bad: data["x"], "&y": data["y"]})
    model.rename_factors(["<b>"])
    found = shown(model)
    assert "script" not in found.tags
    assert [row[0] for row in found.rows] == ["view", bad, "&y"]
    assert found.rows[0][6] == "<b>"
    assert "script" not in shown(kofa.FactorModel({bad: kofa.Real()})).tags


def test_many_factors_are_cut():
    x = np.random.default_rng(0).normal(size=(80, 14)) * np.arange(1, 15)
    model = kofa.FactorModel({"x": kofa.Real(kernel="linear")}, n_factors=12)
    model.fit({"x": x})
    assert len(shown(model).rows[0]) == 16
    assert "2 more factors" in model._repr_html_()


def test_text_is_shown_where_scikit_learn_is_told_so(data):
    model = kofa.FactorModel().fit(data)
    assert set(model._repr_mimebundle_()) == {"text/plain", "text/html"}
    with config_context(display="text"):
        assert model._repr_html_() is None
        assert set(model._repr_mimebundle_()) == {"text/plain"}


def test_a_model_without_samples_is_shown(tmp_path, data):
    kofa.FactorModel().fit(data).save(tmp_path / "x.kofa", samples=False)
    html = kofa.load(tmp_path / "x.kofa")._repr_html_()
    assert "factors; " in html


def test_an_overview_shows_both_tables():
    found = kofa.inspection.data_overview({"<x>": np.ones((30, 2))})
    rows = Cells(found._repr_html_()).rows
    assert ["0", "<x>", "30", "2", "0.0"] in rows
    assert len(rows) < 20  # of many samples, some
