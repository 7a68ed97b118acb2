"""Tables in files: what is read, what is written, and what is said when that cannot be."""

from __future__ import annotations

import gc
import gzip
import io
import json
import os
import re
import sys
import tempfile
import zipfile

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from kofa import KofaError  # noqa: E402
from kofa.errors import FileError  # noqa: E402
from kofa.files import Reading, as_json, read_file, write_file, write_text  # noqa: E402
from kofa.files.reading import read_stdin  # noqa: E402

FRAME = pd.DataFrame(
    {"a": [1.5, np.nan, 3.0], "b": [1, 2, 3]}, index=pd.Index(["001", "002", "x"], name="id")
)


@pytest.fixture
def made(tmp_path):
    """Write text into a file and return its path."""

    def write(name, text, encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


def error_of(path, reading=None):
    with pytest.raises(FileError) as caught:
        read_file(path, reading)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert message.endswith((".", "?"))
    return message.removeprefix(str(path)).removesuffix(".")


# ---------------------------------------------------------------- text


def test_ids_stay_as_they_are_written(made):
    frame = read_file(made("x.csv", "id,a,b\n001,1.5,1\n002,,2\nx,3,3\n"))
    pd.testing.assert_frame_equal(frame, FRAME)


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("x.tsv", "id\ta\tb\n001\t1.5\t1\n002\tNA\t2\nx\t3\t3\n", {}),
        ("x.csv", "id;a;b\n001;1,5;1\n002;;2\nx;3;3\n", {"decimal": ","}),
        ("x.csv", "id|a|b\n001|1.5|1\n002|-999|2\nx|3|3\n", {"missing": ["-999"]}),
        ("x.csv", "\ufeffid,a,b\r\n001,1.5,1\r\n002,nan,2\r\nx,3,3\r\n", {}),
        ("x.csv", "a,id,b\n1.5,001,1\n,002,2\n3,x,3\n", {"index": "id"}),
        ("x.csv", "a,id,b\n1.5,001,1\n,002,2\n3,x,3\n", {"index": 1}),
        ("x.csv", '"id", "a", "b"\n\n 001 , 1.5,1\n002, ,2\n\n"x",3,3\n', {}),
        ("x.csv", "id,a,n,b\n001,1.5,one,1\n002,,two,2\nx,3,three,3\n", {"drop": ["n"]}),
        ("x.csv", "id,a,n,b\n001,1.5,é,1\n002,,b,2\nx,3,c,3\n", {"columns": ["[ab]"]}),
    ],
)
def test_text_in_many_dresses_is_the_same_table(made, name, text, options):
    pd.testing.assert_frame_equal(read_file(made(name, text), Reading(**options)), FRAME)


def test_spaces_around_cells_do_not_count(made):
    rows = "".join(f"s{i},1,early\n" for i in range(5))
    path = made("x.csv", f"id,a,b\n{rows}s5, NA , early\ns6, 2.5 , \n")
    numbers = read_file(path, Reading(columns=["a"]))["a"]
    assert np.isnan(numbers["s5"])
    assert numbers["s6"] == 2.5
    labels = read_file(path, Reading(values="labels", columns=["b"]))["b"]
    assert labels["s5"] == "early"
    assert pd.isna(labels["s6"])


def test_text_of_another_encoding_or_compressed(made, tmp_path):
    path = made("x.csv", "id,é\n001,1\n", "latin-1")
    assert list(read_file(path, Reading(encoding="latin-1")).columns) == ["é"]
    with gzip.open(tmp_path / "x.csv.gz", "wt", encoding="utf-8") as file:
        file.write("id,a\n001,1\n")
    assert read_file(tmp_path / "x.csv.gz").loc["001", "a"] == 1


def test_text_as_r_writes_it(made):
    frame = read_file(made("x.csv", '"a","b"\n"s1",1,2\n"s2",3,4\n'))
    assert frame.to_dict("split")["index"] == ["s1", "s2"]
    assert list(frame.columns) == ["a", "b"]


def test_text_without_ids(made):
    frame = read_file(made("x.csv", "a,b\n1.5,2\n2.5,3\n"), Reading(index=False))
    assert list(frame.index) == ["0", "1"]
    assert list(frame.columns) == ["a", "b"]


def test_text_transposed(made):
    path = made("x.csv", "gene,s1,s2\ng1,1,2.5\ng2,3,\n")
    frame = read_file(path, Reading(transpose=True, columns=["g2", "g1"]))
    assert frame.to_dict("list") == {
        "g2": [3.0, pytest.approx(np.nan, nan_ok=True)],
        "g1": [1, 2.5],
    }
    assert list(frame.index) == ["s1", "s2"]


def test_quoted_cells_may_have_several_lines(made):
    path = made("x.csv", 'id,note,a\ns1,"two\nlines",1\ns2,one,\ns3,b,2\n')
    assert read_file(path, Reading(drop=["note"]))["a"].tolist()[2] == 2


def test_booleans_and_huge_numbers_are_numbers(made):
    frame = read_file(made("x.csv", f"id,a,b\ns1,True,{'9' * 30}\ns2,,1\n"))
    assert frame["a"].tolist()[0] == 1
    assert frame["b"].tolist() == [1e30, 1]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["b", "a", ""], ["b", "a", None]),
        (["1", "2", ""], [1, 2, None]),
        (["01", "02", "03"], ["01", "02", "03"]),
        (["1", "x", "2"], ["1", "x", "2"]),
        (["0.5", "1.5", "0.5"], [0.5, 1.5, 0.5]),
        (["True", "False", "True"], ["True", "False", "True"]),
    ],
)
def test_labels_are_words_unless_all_are_numbers(made, cells, expected):
    rows = "".join(f"s{i},{cell},0\n" for i, cell in enumerate(cells))
    path = made("x.csv", f"id,label,other\n{rows}")
    labels = read_file(path, Reading(values="labels", columns=["label"]))["label"].tolist()
    assert [None if pd.isna(one) else one for one in labels] == expected
    assert {type(one) for one in labels if not pd.isna(one)} == {type(expected[0])}
    words = read_file(path, Reading(values="words", columns=["label"]))["label"].dropna()
    assert words.tolist() == [cell for cell in cells if cell]


# ---------------------------------------------------------------- text that is wrong


@pytest.mark.parametrize(
    ("text", "line", "got"),
    [
        ("id,a,b\ns1,1,2\ns2,1,2,3\n", 3, 4),
        ("id,a,b\ns1,1,2,3,4\ns2,1,2\n", 2, 5),
        ("id,a,b\n\ns1,1,2\ns2,1\ns3,1,2\n", 4, 2),
        ('id,a,b\ns1,"1\n",2\ns2,1\n', 4, 2),
    ],
)
def test_ragged_rows(made, text, line, got):
    message = error_of(made("x.csv", text))
    assert message.startswith(f", line {line}: expected 3 cells as in the header but got {got}; ")


def test_duplicated_ids(made):
    message = error_of(made("x.csv", "id,a\ns1,1\ns2,2\n\ns1,3\n"))
    assert message.startswith(", lines 2 and 5, column 'id': the sample id 's1' occurs twice; ")


def test_missing_id(made):
    message = error_of(made("x.csv", "id,a\ns1,1\nNA,2\n"))
    assert message.startswith(", line 3, column 'id': expected a sample id but got 'NA'; ")


def test_text_in_a_column_of_numbers(made):
    message = error_of(made("x.csv", "id,a,b\ns1,1,2\ns2,NA,high\ns3,1_000,low\n"))
    assert message.startswith(", line 3, column 'b': expected a number but got 'high'; drop the ")


@pytest.mark.parametrize(
    ("text", "decimal", "cell", "cure"),
    [
        ("id;a\ns1;2\ns2;1,5\n", ".", "1,5", ","),
        ('id,a\ns1,2\ns2,"-1.000,5"\n', ".", "-1.000,5", ","),
        ("id;a\ns1;2\ns2;1,500\n", ".", "1,500", ","),
        ("id;a\ns1;2\ns2;1.5\n", ",", "1.5", "."),
    ],
)
def test_other_decimal_mark(made, text, decimal, cell, cure):
    message = error_of(made("x.csv", text), Reading(decimal=decimal))
    expected = f", line 3, column 'a': expected a number but got {cell!r}; set decimal to {cure!r}"
    assert message == expected


@pytest.mark.parametrize(
    ("text", "decimal", "mark"),
    [
        ('id,a\ns1,"1,500"\n', ".", ","),
        ('id;a\ns1;"-1,234,500.5"\n', ".", ","),
        ("id;a\ns1;1.500,5\n", ",", "."),
    ],
)
def test_marks_between_thousands_are_no_decimal_marks(made, text, decimal, mark):
    message = error_of(made("x.csv", text), Reading(decimal=decimal))
    assert message.endswith(f"; remove the marks between thousands ({mark!r})")


def test_separators_at_the_ends_of_lines_make_no_column(made):
    frame = read_file(made("x.csv", "id,a,b,\ns1,1,2,\ns2,3,,\n"))
    assert list(frame.columns) == ["a", "b"]
    frame = read_file(made("x.csv", "id,a,\ns1,1,\ns2,3,4\n"))
    assert list(frame.columns) == ["a", ""]


def test_lines_of_spaces_are_no_rows(made):
    path = made("x.csv", "id,a\n  \ns1,1\n\t\ns2,high\n   \n")
    assert read_file(path, Reading(values="words")).index.tolist() == ["s1", "s2"]
    assert error_of(path).startswith(", line 5, column 'a': expected a number but got 'high'")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": the file is empty; expected a header with rows below it"),
        ("\n\n", ": the file is empty; expected a header with rows below it"),
        ("id,a,b\n", ": there is a header but no rows below it"),
        ("id,a,a\ns1,1,2\n", ", line 1: columns 2 and 3 are both called 'a'; rename one of them"),
        ("id,,\ns1,1,2\n", ", line 1: columns 2 and 3 have no name; name them, or remove"),
        ("a\n1\n", ": there is one column, 'a', but sample ids and values take two; set sep"),
        ("a,b\n1.5,2\n2.5,3\n", ": there is no column of sample ids: the first holds numbers such"),
        ("# by X\nid,a\ns1,1\n", ": expected the names of columns first but got '# by X'; remove"),
        ("# by X\n# today\nid,a\ns1,1\n", ": expected the names of columns first but got '# by"),
        ("sep=;\nid;a;b\ns1;1;2\n", ": expected the names of columns first but got 'sep='; rem"),
        ('id,a\ns1,"1\ns2,2\n', ", line 2: a quotation mark is opened and never closed; remove it"),
    ],
)
def test_text_that_is_no_table(made, text, message):
    assert error_of(made("x.csv", text)).startswith(message)


def test_latin_1(made):
    message = error_of(made("x.csv", "id,a\ns1,1\nsé,2\n", "latin-1"))
    assert message.startswith(
        ", line 3: byte 0xe9 is not UTF-8; save the file as UTF-8, or set enc"
    )


def test_utf_16(made):
    path = made("x.txt", "id\ta\ns1\t1\n", "utf-16")
    assert error_of(path).endswith("set encoding, such as 'utf-16'")
    assert read_file(path, Reading(encoding="utf-16")).loc["s1", "a"] == 1


def test_unknown_columns_and_index(made):
    path = made("x.csv", "id,gene1,gene2\ns1,1,2\n")
    assert "no column 'gen1'; did you mean 'gene1'?" in error_of(path, Reading(columns=["gen1"]))
    assert "no column 'x*'; its columns are 'gene1', 'gene2'" in error_of(
        path, Reading(drop=["x*"])
    )
    assert "no index column 'ids'; did you mean 'id'?" in error_of(path, Reading(index="ids"))
    assert "no column 7 for the index; there are 3" in error_of(path, Reading(index=7))
    assert "no column is left" in error_of(path, Reading(drop=["gene*"]))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (
            "id,a,b\ns1,1\0005,2\n",
            ", line 2, column 'a': there is a null byte in '1\\x005'; correct",
        ),
        ("id,a\ns1,1\ns\0002,2\n", ", line 3, column 'id': there is a null byte in 's\\x002'"),
        ("id,a\0b\ns1,1\n", ", line 1, column 2: there is a null byte in 'a\\x00b'"),
        ('id,a\ns1,"1\n\0"\n', ", line 2, column 'a': there is a null byte in '1\\n\\x00'"),
        ("id,a\ns1,1,\0\n", ", line 2, column 3: there is a null byte in '\\x00'"),
    ],
)
def test_null_bytes_in_cells(made, text, place):
    assert error_of(made("x.csv", text)).startswith(place)
    assert error_of(made("x.csv", text), Reading(values="labels")).startswith(place)
    path = made("x.csv", text, "utf-16")
    assert error_of(path, Reading(encoding="utf-16")).startswith(place)


def test_text_of_another_encoding_is_no_table_with_nulls(made):
    path = made("x.csv", "id,a\ns1,1\n", "utf-16-le")
    assert "set encoding if it is another, such as 'utf-16'" in error_of(path)
    assert read_file(path, Reading(encoding="utf-16-le")).loc["s1", "a"] == 1


# ---------------------------------------------------------------- no text at all


def test_missing_file_folder_and_nearest_name(made, tmp_path):
    made("clinical.csv", "")
    assert error_of(tmp_path / "clinicl.csv").endswith("; did you mean 'clinical.csv'?")
    assert "there is no folder" in error_of(tmp_path / "nowhere" / "x.csv")
    assert error_of(tmp_path).endswith("expected a file but this is a folder")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_pipes(tmp_path):
    os.mkfifo(tmp_path / "x.csv")
    assert error_of(tmp_path / "x.csv").endswith("a pipe or a device; save it first")


def test_files_of_other_programs(tmp_path):
    for name, members, what in (
        ("book.xlsx", ["xl/workbook.xml"], "Excel files are not read; save the sheet as CSV"),
        ("model.csv", ["manifest.json", "arrays/a.npy"], "this is a kofa model, not a table"),
        ("all.csv", ["x.csv"], "this is a zip archive; unpack it"),
    ):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member in members:
                archive.writestr(member, "")
        assert what in error_of(tmp_path / name)
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
    assert "Excel" in error_of(tmp_path / "old.xls")
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04abc")
    assert "damaged" in error_of(tmp_path / "cut.npz")
    (tmp_path / "x.parquet").write_text("id,a\ns1,1\n", encoding="utf-8")
    assert "its content is not" in error_of(tmp_path / "x.parquet")


def test_damaged_files(tmp_path):
    pytest.importorskip("pyarrow")
    FRAME.to_parquet(tmp_path / "x.parquet")
    with gzip.open(tmp_path / "x.csv.gz", "wt", encoding="utf-8") as file:
        file.write("id,a\n" + "".join(f"s{i},{i}\n" for i in range(9999)))
    (tmp_path / "x.h5ad").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    for name in ("x.parquet", "x.csv.gz", "x.h5ad"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
        assert ": the file is damaged or of another kind (" in error_of(tmp_path / name)


# ---------------------------------------------------------------- Parquet


def test_parquet_with_its_own_index_or_first_column(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "x.parquet"
    FRAME.to_parquet(path)
    pd.testing.assert_frame_equal(read_file(path), FRAME)
    FRAME.reset_index().to_parquet(path)
    pd.testing.assert_frame_equal(read_file(path), FRAME)
    FRAME.reset_index(drop=True).assign(id=[7, 8, 9]).to_parquet(path)
    assert list(read_file(path, Reading(index="id", columns=["b"])).index) == ["7", "8", "9"]
    assert list(read_file(path, Reading(index=False, drop=["id"])).index) == ["0", "1", "2"]


def test_parquet_without_the_index_column(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "x.parquet"
    FRAME.reset_index(drop=True).to_parquet(path)
    assert ": there is no column of sample ids: 'a' holds numbers with dec" in error_of(path)
    assert "no index column 'id'; its columns are 'a', 'b'" in error_of(path, Reading(index="id"))


def test_parquet_with_words_repeated_ids_and_marks(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "x.parquet"
    FRAME.assign(c=["u", "v", None]).to_parquet(path)
    assert ", row 0, column 'c': expected a number but got 'u'; drop" in error_of(path)
    assert read_file(path, Reading(drop=["c"], missing=["3"])).isna().to_numpy().sum() == 3
    labels = read_file(path, Reading(values="labels", columns=["c"]))["c"]
    assert labels.dropna().tolist() == ["u", "v"]
    FRAME.rename({"002": "001"}).to_parquet(path)
    assert ", rows 0 and 1: the sample id '001' occurs twice" in error_of(path)


# ---------------------------------------------------------------- npz


def test_parquet_that_is_no_table_of_single_values(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    ids, x = pa.array(["s1", "s2"]), pa.array([1.0, 2.0])

    def written(*columns, names, **metadata):
        table = pa.Table.from_arrays([ids, *columns], names=["id", *names])
        parquet.write_table(table.replace_schema_metadata(metadata or None), path)
        return [error_of(path, Reading(values=values)) for values in ("numbers", "labels", "words")]

    for values in ([[1, 2], [3]], [{"k": 1}, {"k": 2}], [b"\xff", b"x"]):
        for message in written(x, pa.array(values), names=["x", "odd"]):
            assert message.startswith(", column 'odd': expected numbers or words but got values of")
    assert "2 columns are called 'x'" in written(x, x, names=["x", "x"])[0]
    bad = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    )
    assert "damaged" in written(bad, names=["bad"])[1]
    nested = '{"index_columns": ' + "[" * 100_000
    assert "damaged" in written(x, names=["x"], pandas=nested)[0]
    gone = '{"index_columns": ["gone"]}'
    assert "no column is called 'gone'" in written(x, names=["x"], pandas=gone)[0]


def test_parquet_with_decimals(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    dose = pa.array([150, None], pa.decimal128(10, 2))
    parquet.write_table(pa.table({"id": ["s1", "s2"], "dose": dose}), tmp_path / "x.parquet")
    found = read_file(tmp_path / "x.parquet")["dose"]
    assert found.dtype == float
    assert found["s1"] == 150
    assert np.isnan(found["s2"])


def test_npz_that_declares_more_than_it_has(tmp_path):
    path = tmp_path / "x.npz"
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**7, 10**6)}
    with zipfile.ZipFile(path, "w") as archive, archive.open("x.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, header)
        member.write(bytes(800))
    message = ": the array 'x' declares 80,000,000,000,000 bytes but has 800; the file is damaged"
    assert error_of(path) == message


def test_npz_by_name_with_and_without_names(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=np.eye(3), y=np.arange(3), y_samples=["a", "b", "c"])
    assert read_file(path, Reading(array="x")).columns.tolist() == ["x0", "x1", "x2"]
    y = read_file(path, Reading(array="y"))
    assert y.to_dict() == {"y": {"a": 0, "b": 1, "c": 2}}
    assert "name one of them with array" in error_of(path)
    assert "no array 'z'; there are 'x', 'y'" in error_of(path, Reading(array="z"))
    np.savez(path, x=np.eye(2), samples=["a", "b"], columns=["u", "v"])
    assert read_file(path, Reading(columns=["v"])).to_dict() == {"v": {"a": 0, "b": 1}}


def test_npz_of_records_or_complex_numbers(tmp_path):
    for values in (np.zeros(3, [("a", float), ("b", int)]), np.ones((3, 2)) + 1j):
        np.savez(tmp_path / "x.npz", x=values)
        assert "the array 'x' to hold numbers or strings but got" in error_of(tmp_path / "x.npz")


def test_npz_that_cannot_be_a_table(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=np.array([{}, 1], dtype=object))
    assert "Python objects, which are not read" in error_of(path)
    np.savez(path, x=np.ones((2, 2, 2)))
    assert "expected the array 'x' to be a table but got 3-D" in error_of(path)
    np.savez(path, x=np.ones((2, 2)), samples=["a"])
    assert "has 2 rows but there are 1 names" in error_of(path)


# ---------------------------------------------------------------- AnnData, MuData


def test_hdf5_that_hangs_or_crashes_its_library(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("anndata")
    path = tmp_path / "x.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = np.ones((3, 3))
    for look in ("while True: pass", "import os; os.abort()"):
        monkeypatch.setattr("kofa.files.containers._LOOK", look)
        monkeypatch.setattr("kofa.files.containers._PATIENCE", 2.0)
        path.touch()
        assert error_of(path).startswith(": the file is damaged: the HDF5 library hangs or crash")


@pytest.mark.filterwarnings("ignore")
def test_h5ad_and_h5mu(tmp_path):
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    from scipy.sparse import csr_matrix

    obs = pd.DataFrame({"stage": ["u", "v", "u"]}, index=["a", "b", "c"])
    var = pd.DataFrame(index=["g1", "g2"])
    rna = anndata.AnnData(csr_matrix(np.arange(6.0).reshape(3, 2)), obs=obs, var=var)
    rna.layers["counts"] = np.ones((3, 2))
    rna.write_h5ad(tmp_path / "x.h5ad")
    path = tmp_path / "x.h5ad"
    assert read_file(path).loc["c"].tolist() == [4.0, 5.0]
    assert read_file(path, Reading(layer="counts")).to_numpy().sum() == 6
    stage = read_file(path, Reading(values="labels", layer="obs", columns=["stage"]))["stage"]
    assert stage.tolist() == ["u", "v", "u"]
    turned = read_file(path, Reading(transpose=True, columns=["c"]))
    assert turned.to_dict() == {"c": {"g1": 4.0, "g2": 5.0}}
    assert "no layer 'count'; did you mean 'counts'?" in error_of(path, Reading(layer="count"))

    both = mudata.MuData({"rna": rna, "prot": rna[:2].copy()})
    both.write_h5mu(tmp_path / "x.h5mu")
    path = tmp_path / "x.h5mu"
    assert read_file(path, Reading(modality="prot")).shape == (2, 2)
    assert "name one of the modalities 'rna', 'prot'" in error_of(path)
    assert "no modality 'rn'; did you mean 'rna'?" in error_of(path, Reading(modality="rn"))


# ---------------------------------------------------------------- writing


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz", "x.parquet"])
def test_written_tables_are_read_back(tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    write_file(FRAME, tmp_path / name)
    pd.testing.assert_frame_equal(read_file(tmp_path / name), FRAME)
    assert os.listdir(tmp_path) == [name]


def test_stdout(capsys):
    write_file(FRAME.rename_axis(None), "-")
    assert capsys.readouterr().out.splitlines()[0] == "sample,a,b"


def test_nothing_half_written(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_text("before", encoding="utf-8")

    def interrupted(_, path, **__):
        with open(path, "w", encoding="utf-8") as file:
            file.write("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pd.DataFrame, "to_csv", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_file(FRAME, path)
    assert path.read_text(encoding="utf-8") == "before"
    assert os.listdir(tmp_path) == ["x.csv"]


def test_errors_of_writing_name_the_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "hidden")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(FileError, match=r"out\.csv: it cannot be written: No space left"):
        write_file(FRAME, tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be_written(tmp_path):
    for path, what in (
        (tmp_path / "none" / "x.csv", "there is no folder"),
        (tmp_path / "x.xlsx", "expected a file that ends in .csv, .tsv, .parquet"),
    ):
        with pytest.raises(FileError, match=re.escape(what)):
            write_file(FRAME, path)
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(KofaError, match="this is a folder"):
        write_file(FRAME, tmp_path / "x.csv")
    with pytest.raises(FileError, match="this is a folder"):
        write_text(tmp_path, "text")


# ---------------------------------------------------------------- JSON, and rows without names


def test_rows_as_json(tmp_path):

    frame = pd.DataFrame(
        {
            "fold": [0, "all"],
            "value": [0.1, np.nan],
            "kept": [True, False],
            "leading": [["a", "b"], []],
            "n": pd.array([1, None], dtype="Int64"),
            "day": pd.to_datetime(["2020-01-02", None]),
            "x": np.array([1.5, 2.5], dtype=np.float32),
        }
    )
    write_file(frame.drop(columns="leading"), tmp_path / "a.json", index=False)
    found = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert found[0] == {
        "fold": "0", "value": 0.1, "kept": True, "n": 1, "day": "2020-01-02 00:00:00", "x": 1.5,
    }  # fmt: skip
    assert found[1]["value"] is None
    assert found[1]["n"] is None
    assert found[1]["day"] is None
    assert json.loads(as_json(frame))[0]["fold"] == 0
    assert json.loads(as_json(frame))[0]["leading"] == ["a", "b"]
    assert json.loads(as_json(frame.iloc[:0])) == []
    write_file(frame[["leading"]], tmp_path / "a.csv", index=False)
    text = (tmp_path / "a.csv").read_text(encoding="utf-8")
    assert text.splitlines()[:2] == ["leading", '"a, b"']


def test_samples_are_the_first_field_of_json(tmp_path):

    frame = pd.DataFrame({"a": [1, 2]}, index=["s1", "s2"])
    write_file(frame, tmp_path / "x.json")
    rows = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert rows == [{"sample": "s1", "a": 1}, {"sample": "s2", "a": 2}]


def test_json_has_no_infinity_and_nothing_is_left_of_it(tmp_path):
    frame = pd.DataFrame({"level": [0.1, np.inf]})
    with pytest.raises(FileError, match=r"x\.json: it cannot be written"):
        write_file(frame, tmp_path / "x.json", index=False)
    assert not list(tmp_path.iterdir())


def test_words_and_numbers_in_a_column_go_to_parquet_as_words(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"fold": np.array([0, 1, "all"], dtype=object), "value": [0.0, 1.0, 2.0]})
    write_file(frame, tmp_path / "x.parquet", index=False)
    found = pd.read_parquet(tmp_path / "x.parquet")
    assert found["fold"].tolist() == ["0", "1", "all"]
    assert list(found.columns) == ["fold", "value"]


@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")  # which anndata asks for
@pytest.mark.parametrize("ending", ["csv", "parquet", "h5ad"])
def test_files_of_all_formats_come_from_stdin(tmp_path, monkeypatch, ending):
    ad = pytest.importorskip("anndata")
    path, folder = tmp_path / f"x.{ending}", tmp_path / "temporary"
    folder.mkdir()
    frame = pd.DataFrame(np.eye(3), index=list("uvw"), columns=list("abc"))
    {
        "csv": frame.to_csv,
        "parquet": frame.to_parquet,
        "h5ad": ad.AnnData(frame).write_h5ad,
    }[ending](path)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with path.open("rb") as file, io.TextIOWrapper(file) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        found = read_stdin()
    assert (found.to_numpy() == np.eye(3)).all()
    gc.collect()
    assert not list(folder.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "none"))
    with path.open("rb") as file, io.TextIOWrapper(file) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(FileError, match=r"none: No such file or directory; .*TMPDIR"):
            read_stdin()
