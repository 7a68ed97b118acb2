"""Reading tables and aligning samples."""

from __future__ import annotations

import numpy as np
import pandas as pd

from kofa.data.reading import read_table
from kofa.data.samples import align


def test_tables_of_many_makes():
    expected = np.array([[1.0], [np.nan], [3.0]])
    for data in (
        [1, None, 3],
        np.array([1.0, np.nan, 3.0]),
        np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False]),
        pd.Series([1, None, 3]),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.DataFrame({"a": [1, None, 3]}, dtype=object),
        [1, pd.NA, 3],
        np.ma.array([1, 2, 3], mask=[False, True, False]),
    ):
        np.testing.assert_array_equal(read_table("x", data).values, expected)
    np.testing.assert_array_equal(read_table("x", [True, False]).values, [[1.0], [0.0]])


def test_samples_are_the_union_in_order_of_appearance():
    a = read_table("a", pd.DataFrame({"p": [1.0, 2.0]}, index=["s2", "s1"]))
    b = read_table("b", pd.DataFrame({"q": [3.0, 4.0]}, index=["s3", "s2"]))
    samples = align({"a": a, "b": b})
    assert list(samples.names) == ["s2", "s1", "s3"]
    np.testing.assert_array_equal(samples.spread(b)[:, 0], [4.0, np.nan, 3.0])


def test_array_next_to_frames_with_one_index():
    a = read_table("a", pd.DataFrame({"p": [1.0, 2.0]}, index=["u", "v"]))
    samples = align({"a": a, "b": read_table("b", np.array([3.0, 4.0]))})
    assert list(samples.names) == ["u", "v"]
