"""Feature sets in files."""

from __future__ import annotations

import re

import pytest

import kofa
from kofa.inspection import read_gmt
from kofa.inspection.feature_sets import as_sets


def write(folder, text, encoding="utf-8"):
    path = folder / "sets.gmt"
    path.write_bytes(text.encode(encoding))
    return path


def test_gmt_files(tmp_path):
    text = "\ufeffone\tabout it\ta\tb\ta\t\r\n\r\ntwo\t\tc d\n"
    assert read_gmt(write(tmp_path, text)) == {"one": ["a", "b"], "two": ["c d"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one\tx\ta\ntwo a b\n", "sets.gmt, line 2: expected a name, a description and features, "
         "separated by tabs but got 'two a b'."),
        ("one\tx\ta\none\tx\tb\n", "sets.gmt, line 2: the set 'one' occurs more than once; rename "
         "one of them."),
        ("\n", "sets.gmt: there is no feature set in it."),
    ],
)  # fmt: skip
def test_errors_name_file_and_line(tmp_path, text, message):
    with pytest.raises(kofa.FileError, match=re.escape(message)):
        read_gmt(write(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(kofa.FileError, match="not text in UTF-8; save it as UTF-8"):
        read_gmt(write(tmp_path, "größe\tx\ta", "latin-1"))
    with pytest.raises(kofa.FileError, match="it cannot be read"):
        read_gmt(tmp_path / "none.gmt")
    with pytest.raises(kofa.KofaError, match="xpected the path of a file"):
        read_gmt({"one": ["a"]})


def test_sets_of_polars_that_are_only_planned_are_refused():
    pl = pytest.importorskip("polars")
    pairs = pl.DataFrame({"set": ["s", "s"], "feature": ["a", "b"]})
    assert as_sets(pairs) == {"s": ["a", "b"]}
    with pytest.raises(kofa.DataError, match=r"sets: .*LazyFrame; pass \.collect\(\)"):
        as_sets(pairs.lazy())
