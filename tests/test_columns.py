"""docs/reference/columns.md has every column of every table, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import kofa

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "columns.md"


def described():
    """The columns that the page lists, by section."""
    sections = re.split(r"^## (\w+)\n", PAGE.read_text(encoding="utf-8"), flags=re.M)
    return {
        name: set(re.findall(r"^\| `(\w+)` \|", text, re.M))
        for name, text in zip(sections[1::2], sections[2::2], strict=True)
    }


def tables():
    """Tables by section, which together have all columns."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 1))
    x, y = z * np.arange(1.0, 13.0) + rng.normal(size=(60, 12)), z + rng.normal(size=(60, 1))
    data = {"x": x, "y": y, "c": np.where(z[:, 0] > 0, "late", "early")}
    views = {"x": kofa.Real(sparse=True), "y": kofa.Real(), "c": kofa.Categorical()}
    model = kofa.FactorModel(views, outputs=["y", "c"])
    views = {"x": kofa.Real(kernel="rbf", sparse=True), "y": kofa.Real()}
    kernel = kofa.FactorModel(views, outputs=["y"]).fit({"x": x, "y": y})
    scores, predictions = kofa.compare(
        {"a": model, "b": model}, data, cv=2, return_predictions=True
    )
    model.fit(data)
    ways = ("factor", "view", "feature", "sample")
    yield "variance_explained", *(model.variance_explained(data, by=by) for by in ways)
    yield "factor_relevance", model.factor_relevance()
    yield "weights", model.weights("x", tidy=True), model.top_features("x", 0)
    yield "outliers", *(model.outliers(data, by=by) for by in ("sample", "entry"))
    yield "bound_terms", model.bound_terms()
    yield "correlate", model.correlate()
    yield "associate", model.associate({"age": z[:, 0]})
    yield "enrich", model.enrich("x", {"first": range(6)}, min_size=3)
    yield "agreement", model.agreement(model)
    yield "data_overview", model.data_overview().views
    yield "relevance_vectors", kernel.relevance_vectors("x")
    yield "feature_relevance", model.feature_relevance("x")
    yield "kernel_weights", kernel.kernel_weights("y")
    yield "cross_validate", scores
    yield "predictions", predictions
    yield "score_summary", kofa.score_summary(scores)
    yield "calibration_table", kofa.calibration_table(predictions)
    yield "confusion_table", kofa.confusion_table(predictions)


def test_every_column_is_described():
    pytest.importorskip("pandas")
    found = {name: {str(c) for one in some for c in one.columns} for name, *some in tables()}
    assert found == described()
