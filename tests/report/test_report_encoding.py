"""Columns as JSON: what is decoded is what was encoded, and nothing in it ends a script."""

from __future__ import annotations

import base64
import json

import numpy as np
import pandas as pd
import pytest

from kofa.report import encoding

FORMS = {"f64": "<f8", "f32": "<f4", "u16": "<u2", "u32": "<u4"}


def decoded(column):
    """What `data.js` makes of a column."""
    if "values" in column:
        return column["values"]
    form = next(key for key in FORMS if key in column)
    raw = np.frombuffer(base64.b64decode(column[form]), FORMS[form])
    if "labels" in column:
        return [column["labels"][code] for code in raw]
    if "step" in column:
        return np.where(raw > 65534, np.nan, column["low"] + raw * column["step"])
    return raw


def test_numbers_are_exact_and_keep_nan():
    values = np.array([0.1, np.nan, -1e-300, np.inf])
    assert decoded(encoding.numbers(values)).tolist() == pytest.approx(values, rel=0, nan_ok=True)


def test_many_numbers_have_seven_digits(rng):
    values = rng.normal(size=30_000)
    column = encoding.numbers(values)
    assert "f32" in column
    assert decoded(column) == pytest.approx(values, rel=1e-6)


def test_coarse_numbers_are_within_a_step(rng):
    values = rng.normal(size=1000)
    values[3] = np.nan
    found = decoded(encoding.coarse(values))
    assert np.isnan(found[3])
    error = np.abs(found - values)[~np.isnan(values)]
    assert error.max() <= 0.51 * np.ptp(values[~np.isnan(values)]) / 65534


@pytest.mark.parametrize("values", [np.zeros(3), np.full(3, np.nan), np.array([7.0])])
def test_coarse_numbers_that_do_not_vary(values):
    assert decoded(encoding.coarse(values)) == pytest.approx(values, nan_ok=True)


def test_words_that_recur_stand_once():
    column = encoding.words(["late", "early", None, "late", "late", "late", "early"])
    assert column["labels"] == ["late", "early", None]
    assert decoded(column) == ["late", "early", None, "late", "late", "late", "early"]
    assert decoded(encoding.words(["a", "b"])) == ["a", "b"]


def test_classes_by_number():
    column = encoding.classes(np.array([1.0, np.nan, 0.0]), ["early", "late"])
    assert decoded(column) == ["late", None, "early"]


def test_a_table_has_all_columns_of_any_type():
    frame = pd.DataFrame(
        {"n": [1, 2], "x": [0.5, np.nan], "yes": [True, False], "name": ["a", None],
         "several": [["a", "b"], []], 0: ["x", "y"]}
    )  # fmt: skip
    table = encoding.table(frame, "A table", "a note")
    assert (table["caption"], table["note"], table["n"]) == ("A table", "a note", 2)
    columns = {one["name"]: decoded(one) for one in table["columns"]}
    assert columns["n"].tolist() == [1.0, 2.0]
    assert columns["x"].tolist() == pytest.approx([0.5, np.nan], nan_ok=True)
    assert columns["yes"] == ["yes", "no"]
    assert columns["name"] == ["a", None]
    assert columns["several"] == ["a, b", ""]
    assert columns["0"] == ["x", "y"]


def test_nothing_in_json_is_markup_and_all_of_it_comes_back():
    content = {"<script>": ["</script><!--", "a&b", "\u2028", "ü"]}
    text = encoding.as_json(content)
    assert not set(text) & set("<>&")
    assert json.loads(text) == content


def test_hidden_signs_of_names_are_shown():
    assert encoding.name("a\u202eb\x00\udce4") == r"a\u202eb\x00\udce4"
    encoding.as_json({"x": encoding.words(["\udce4"])}).encode()
