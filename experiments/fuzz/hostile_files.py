"""Files that are not what they should be: tables, models and studies, made by hand or mutated."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

STUDY = """\
[model]
outputs = ["stage"]
random_state = 3
n_factors = 4

[read]
missing = ["?"]

[views.rna]
file = "rna.csv"
kind = "real"
noise = "column"
scale = true

[views.protein]
file = "protein.csv"
kernel = {name = "rbf", width = 3.0}
landmarks = 20

[views.stage]
file = "stage.csv"
kind = "categorical"
columns = ["stage"]
index = "id"
"""


# ---------------------------------------------------------------- tables


def texts(good: str) -> dict[str, bytes]:
    """Text that is no table, or an odd one; `good` is the text of a table of the same samples."""
    lines = good.splitlines()
    head, first, rest = lines[0], lines[1], "\n".join(lines[2:])
    found = {
        "empty.csv": "", "bom.csv": "\ufeff", "header.csv": head, "newlines.csv": "\n" * 50,
        "nul.csv": good.replace("0.", "0\0.", 1), "nul-head.csv": good.replace("g0", "g\0", 1),
        "cr.csv": good.replace("\n", "\r"), "crlf.csv": good.replace("\n", "\r\n"),
        "bom-good.csv": "\ufeff" + good, "ragged.csv": f"{head}\n{first},9,9\n{rest}",
        "short.csv": f"{head}\n{first[:5]}\n{rest}", "quote.csv": f'{head}\n"{first}\n{rest}',
        "quotes.csv": good.replace("0.", '0"".'), "same-head.csv": good.replace("g1", "g0", 1),
        "same-ids.csv": good.replace("\n001,", "\n000,"), "no-ids.csv": good.replace("\n001,",
        "\n,"),
        "seps.csv": ",,,,\n" * 9, "spaces.csv": "   \n" * 9, "words.csv": good.replace("0.", "x"),
        "inf.csv": good.replace("0.", "inf", 1), "huge.csv": good.replace("-0.", "1e400", 1),
        "digits.csv": good.replace("0.", "１２", 1), "under.csv": good.replace("0.", "1_0.", 1),
        "hex.csv": good.replace("0.", "0x", 1), "field.csv": good.replace("000,", "0" * 200_000, 1),
        "wide.csv": "id," + ",".join(f"c{j}" for j in range(3000)) + "\na," + "1," * 2999 + "1\n",
        "escape.csv": good.replace("g0", "\x1b[31mg0").replace("001", "\x1b]0;x\x07"),
        "json.csv": '{"a": [1, 2]}', "html.csv": "<html>\n<b>a,b</b>\n</html>",
        "one.csv": "a\n1\n2",
        "comment.csv": f"# by\n{good}", "tabs.csv": good.replace(",", "\t"),
        "deep.csv": "[" * 10**5,
        "turned.csv": pd.read_csv(io.StringIO(good), dtype=str).T.to_csv(header=False),
        "booleans.csv": good.replace("0.", "True", 1), "percent.csv": good.replace(".", "%"),
        "'; rm -rf.csv": good, "$(x).csv": good, "-o.csv": good, "a=b.csv": good, "a:b.csv": good,
    }  # fmt: skip
    encoded = {name: text.encode() for name, text in found.items()}
    return encoded | {
        "latin.csv": good.replace("g0", "gé").encode("latin-1"), "utf16.csv": good.encode("utf-16"),
        "utf16le.csv": good.encode("utf-16-le"), "utf32.csv": good.encode("utf-32"),
        "bytes.csv": bytes(range(256)) * 20, "png.csv": b"\x89PNG\r\n\x1a\n" + bytes(99),
        "gzip.csv": gzip.compress(good.encode()), "text.csv.gz": good.encode(),
        "cut.csv.gz": gzip.compress(good.encode())[:-20], "text.parquet": good.encode(),
        "text.npz": good.encode(), "text.h5ad": good.encode(), "excel.xls": b"\xd0\xcf\x11\xe0" * 9,
        "PAR1.parquet": b"PAR1", "hdf.h5ad": b"\x89HDF\r\n\x1a\n" + bytes(64),
        "no-ending": good.encode(),
    }  # fmt: skip


def arrays(rows: int) -> dict[str, dict[str, Any]]:
    """Arrays of npz files that are no table, or an odd one."""
    x = np.ones((rows, 4))
    return {
        "zero-d.npz": {"x": np.float64(1)}, "three-d.npz": {"x": np.ones((rows, 2, 2))},
        "none.npz": {}, "two.npz": {"x": x, "y": x}, "no-rows.npz": {"x": np.ones((0, 4))},
        "no-columns.npz": {"x": np.ones((rows, 0))}, "complex.npz": {"x": x + 1j},
        "dates.npz": {"x": x.astype("datetime64[s]")}, "strings.npz": {"x": x.astype(str)},
        "bools.npz": {"x": x > 0}, "half.npz": {"x": x.astype(np.float16)},
        "nan.npz": {"x": x * np.nan},
        "records.npz": {"x": np.zeros(rows, [("a", float), ("b", int)])},
        "objects.npz": {"x": np.array([{"a": 1}] * rows, dtype=object)},
        "names.npz": {"x": x, "samples": np.arange(rows), "columns": ["a", "a", "b", "c"]},
        "few-names.npz": {"x": x, "samples": ["a"]}, "void.npz": {"x": np.zeros((rows, 2), "V8")},
        "slash.npz": {"../x": x}, "long.npz": {"x": x.astype(np.longdouble)},
    }  # fmt: skip


def parquets(rna: pd.DataFrame) -> Iterator[tuple[str, Any]]:
    """Parquet tables of odd types and metadata."""
    import pyarrow as pa

    ids, n = pa.array(list(rna.index)), len(rna)
    bad = pa.py_buffer(np.arange(n + 1, dtype=np.int32).tobytes())
    odd = {
        "lists": pa.array([[1, 2]] * n), "structs": pa.array([{"a": 1}] * n), "nulls": pa.nulls(n),
        "bytes": pa.array([b"\xff"] * n), "dates": pa.array([0] * n, pa.timestamp("s")),
        "not-text": pa.Array.from_buffers(pa.string(), n, [None, bad, pa.py_buffer(b"\xff" * n)]),
        "decimals": pa.array([1] * n, pa.decimal128(10, 2)), "large": pa.array([2**63] * n,
        pa.uint64()),
        "words": pa.array(["x"] * n), "labels": pa.array(["x", "y"] * (n // 2)).dictionary_encode(),
    }  # fmt: skip
    for name, column in odd.items():
        yield name, pa.table({"id": ids, "g0": column})
        yield f"{name}-ids", pa.table({"id": column, "g0": pa.array([1.0] * n)})
    plain = pa.table({"id": ids, "g0": pa.array([1.0] * n)})
    yield "same-names", pa.Table.from_arrays([ids, ids, ids], names=["id", "g0", "g0"])
    yield "no-rows", plain.slice(0, 0)
    yield "no-columns", pa.table({})
    for place, text in enumerate(("[]", "{", '{"index_columns": 3}', '{"index_columns": [3, []]}',
                                  '{"index_columns": ["no"]}', "[" * 10**5, "null")):  # fmt: skip
        yield f"metadata{place}", plain.replace_schema_metadata({"pandas": text})
    yield "metadata-bytes", plain.replace_schema_metadata({b"pandas": b"\xff"})


def hdf5s(folder: Path) -> None:
    """h5ad files that hold something else, or much more than there is."""
    import h5py

    with h5py.File(folder / "plain.h5ad", "w") as file:
        file["X"] = np.ones((3, 3))
    with h5py.File(folder / "nothing.h5ad", "w"):
        pass
    with h5py.File(folder / "vast.h5ad", "w") as file:
        file.create_dataset("X", shape=(10**7, 10**7), chunks=(100, 100), dtype="f8")
        file.attrs["encoding-type"], file.attrs["encoding-version"] = "anndata", "0.1.0"


def declared(shape: tuple[int, ...], there: int) -> bytes:
    """An npz file whose array declares a shape and has so many bytes."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive, archive.open("x.npy", "w") as member:
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(member, header)
        member.write(bytes(there))
    return held.getvalue()


def make_bad_files(bad: Path, good: Path) -> None:
    """Files that are wrong in ways that a person thought of."""
    import pyarrow.parquet as parquet

    bad.mkdir()
    rna = pd.read_csv(good / "rna.csv", index_col=0, dtype={"id": str})
    for name, content in texts((good / "rna.csv").read_text(encoding="utf-8")).items():
        (bad / name).write_bytes(content)
    for name, content in arrays(len(rna)).items():
        np.savez(bad / name, **content)
    for name, table in parquets(rna):
        parquet.write_table(table, bad / f"{name}.parquet")
    hdf5s(bad)
    (bad / "vast.npz").write_bytes(declared((10**7, 10**6), 800))
    (bad / "big.npz").write_bytes(declared((10**5, 10**4), 800))
    (bad / "negative.npz").write_bytes(declared((10, 10), 80))
    for name in ("rna.parquet", "rna.npz", "rna.h5ad", "rna.csv.gz"):
        content = (good / name).read_bytes()
        (bad / f"cut-{name}").write_bytes(content[: len(content) // 2])
    model, checkpoint = ((good / n).read_bytes() for n in ("model.kofa", "old.checkpoint"))
    (bad / "cut.kofa").write_bytes(model[: len(model) // 2])
    (bad / "flipped.kofa").write_bytes(model[:400] + bytes([model[400] ^ 1]) + model[401:])
    (bad / "empty.kofa").write_bytes(b"")
    (bad / "text.kofa").write_text("a,b\n1,2\n", encoding="utf-8")
    (bad / "checkpoint.kofa").write_bytes(checkpoint)
    with zipfile.ZipFile(bad / "zip.kofa", "w") as archive:
        archive.writestr("manifest.json", "[" * 10**5)
    (bad / "cut.checkpoint").write_bytes(checkpoint[: len(checkpoint) // 2])
    (bad / "flipped.checkpoint").write_bytes(
        checkpoint[:900] + bytes([checkpoint[900] ^ 1]) + checkpoint[901:]
    )


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Bytes with a few of them cut, flipped, inserted, repeated or removed."""
    for _ in range(int(rng.integers(1, 5))):
        place = int(rng.integers(len(content) + 1))
        span = int(rng.integers(1, 1 + max(1, len(content) // 8)))
        kind = int(rng.integers(6))
        if kind == 0:
            content = content[:place]
        elif kind == 1:
            flipped = bytearray(content or b"x")
            flipped[place % len(flipped)] ^= 1 << int(rng.integers(8))
            content = bytes(flipped)
        elif kind == 2:
            content = content[:place] + rng.bytes(int(rng.integers(1, 9))) + content[place:]
        elif kind == 3:
            content = content[: place + span] + content[place:]
        elif kind == 4:
            content = content[:place] + content[place + span :]
        else:
            odd = (
                b"\0",
                b"\xff",
                b'"',
                b"\r",
                b"\n",
                b",",
                b"\x1b[31m",
                b"'",
                b";",
                b"\xef\xbb\xbf",
            )
            content = content[:place] + odd[int(rng.integers(len(odd)))] + content[place:]
    return content


# ---------------------------------------------------------------- studies

VALUES = (
    r"""
3 | -1 | 0 | 1 | 2.5 | inf | -inf | nan | 1e400 | true | false | [] | [[]] | {} | [["a"]] | {a = 1}
"" | "x" | " " | 1979-05-27 | 07:32:00 | 9223372036854775808 | ["x", 3] | ["a", ["b", ["c"]]]
"\u0000" | "\u001b[31m" | "\u202e" | "real" | "rbf" | ["rbf"] | ["rbf", 3] | {kernels = ["rbf"]}
{name = "rbf"} | {name = ["rbf"]} | {name = 3} | {name = "nope"} | {name = "precomputed"}
{name = "mixture"} | {name = "mixture", kernels = 3} | {name = "mixture", kernels = []}
{name = "mixture", kernels = ["rbf", "linear"], weights = 3} | {name = "rbf", groups = 3}
{name = "mixture", kernels = ["rbf"], weights = ["a"]} | {name = "rbf", groups = [[1], [2]]}
{name = "rbf", width = []} | {name = "rbf", width = "auto"} | {name = "rbf", relevance = "learn"}
{name = "rbf", relevance = [1, "a"]} | {name = "rbf", sparsity = []} | {name = "rbf", objective = 1}
{name = "polynomial", degree = nan} | {name = "polynomial", degree = 1e308}
[{name = "rbf"}, {name = "mixture", kernels = [{name = "mixture", kernels = ["rbf"]}]}]
""".strip()
    .replace("\n", " | ")
    .split(" | ")
)
KEYS = (
    "file", "kind", "kernel", "noise", "scale", "sparse", "landmarks", "landmarks_by",
    "max_landmarks",
    "share", "columns", "drop", "missing", "index", "sep", "decimal", "encoding", "array",
    "modality",
    "layer", "transpose", "nope", "views", "outputs", "n_factors", "tol", "random_state", "model",
)  # fmt: skip


def bad_studies() -> list[bytes]:
    """Studies that nobody can fit to."""
    texts = (
        "", "views = 3", "[views]", "[views.a]", "[views.a]\nfile = 3", "[views", "x",
        "\ufeff[a]\n[",
        f"a = {'[' * 20_000}", f"a = {'{b=' * 5_000}", f"a = {'9' * 5_000}", "a = 1\na = 2",
        '[views."a\\u0000"]\nfile = "a\\u0000.csv"', "[[views]]\nfile = 'rna.csv'", "views = []",
        STUDY.replace('"rna.csv"', '"no.csv"'), STUDY.replace('"rna.csv"', '"pipe.csv"'),
        STUDY.replace('"rna.csv"', '"loop.csv"'), STUDY.replace('"rna.csv"', '"."'),
        STUDY.replace('"rna.csv"', '"/dev/zero"'), STUDY.replace('"stage"]\nr', '"nope"]\nr'),
        STUDY.replace("[views.rna]", "[views.rna.more]"), STUDY.replace("scale = true", "scale ="),
        STUDY.replace('"rna.csv"', '"\\u001b[31m.csv"'), STUDY.replace("width", "\x00"),
        STUDY.replace('kind = "real"', 'kind = "gaussian"'), "a.b.c = 1",
        "[read]\nsep = 3\n" + STUDY,
    )  # fmt: skip
    return [
        *(text.encode() for text in texts),
        b"\xff\xfe",
        bytes(range(256)),
        STUDY.encode("utf-16"),
    ]


def mutated_study(rng: np.random.Generator) -> bytes:
    """The study with a value replaced, a key added, or its text damaged."""
    lines = STUDY.splitlines()
    value = VALUES[int(rng.integers(len(VALUES)))]
    kind = int(rng.integers(4))
    if kind == 0:
        return mutated(STUDY.encode(), rng)
    places = [n for n, line in enumerate(lines) if " = " in line]
    place = places[int(rng.integers(len(places)))]
    if kind == 1:
        lines[place] = f"{lines[place].split(' = ')[0]} = {value}"
    else:
        key = KEYS[int(rng.integers(len(KEYS)))]
        lines.insert(place, f"{key} = {value}")
    return "\n".join(lines).encode()
