"""Model files that were changed at random: no foreign error, and what reading them takes.

Each file is one of many models, of every kind of view and every kernel, with something changed in
its bytes, its manifest, its arrays, its zip or its size. It is read to see how much memory that
takes beyond the size of the file, and again to see how long it takes. KOFA_SEED gives other files,
KOFA_FILES says how many.
"""

from __future__ import annotations

import io
import json
import os
import struct
import tracemalloc
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kofa
from experiments.costs.peak import peak
from experiments.experiment import Mark, Measurement, Row
from experiments.fuzz.model_files import SEED, Rng, members, originals, zipped

N_FILES = int(os.environ.get("KOFA_FILES", "6000"))
MOST_MEMORY, MOST_SECONDS = 64.0, 2.0  # MiB beyond the size of the file; for one file

# ---------------------------------------------------------------- bytes


def flip_bits(rng: Rng, which: int) -> bytes:
    data = bytearray(originals()[which])
    start = data.index(b"PK\1\2") if rng.random() < 0.4 else 0  # the directory, or anywhere
    for place in rng.integers(start, len(data), rng.integers(1, 6)):
        data[place] ^= 1 << int(rng.integers(8))
    return bytes(data)


def cut(rng: Rng, which: int) -> bytes:
    data = originals()[which]
    start, stop = sorted(rng.integers(0, len(data), 2).tolist())
    middle = [b"", data[start:stop] * 2, bytes(stop - start), rng.bytes(stop - start)]
    return data[:start] + middle[rng.integers(4)] + (data[stop:] if rng.random() < 0.7 else b"")


def set_sizes(rng: Rng, which: int) -> bytes:
    """A number of the zip's own: counts, sizes, offsets, flags, methods."""
    data = bytearray(originals()[which])
    marks = [at for at in range(len(data) - 4) if data[at : at + 2] == b"PK"]
    at = marks[rng.integers(len(marks))] + int(rng.integers(4, 46))
    sizes = [0, 1, 22, 2**16 - 1, 2**31, 2**32 - 1, 2**32 - 2, len(data)]
    form = ["<H", "<L"][rng.integers(2)]
    value = sizes[rng.integers(len(sizes))] % (2**16 if form == "<H" else 2**32)
    if at + 4 <= len(data):
        struct.pack_into(form, data, at, value)
    return bytes(data)


# ---------------------------------------------------------------- the zip

NAMES = (
    "../evil.npy", "/tmp/evil.npy", "arrays/../evil.npy", "arrays/a/b.npy", "arrays/.npy", "a\0b",
    "evil.pkl", "arrays/é.npy", "arrays/" + "a" * 5000 + ".npy", "MANIFEST.JSON", "manifest.json",
    "arrays/a.npy",
)  # fmt: skip


def change_zip(rng: Rng, which: int) -> bytes:
    found = list(members(which))
    place = int(rng.integers(len(found)))
    kind = rng.integers(6)
    if kind == 0:
        found[place] = (NAMES[rng.integers(len(NAMES))], found[place][1])
    elif kind == 1:
        found.insert(place, (NAMES[rng.integers(len(NAMES))], found[-1][1]))
    elif kind == 2:
        found = [found[i] for i in rng.permutation(len(found))]
    elif kind == 3:
        del found[place]
    elif kind == 4:
        return zipped(found, zipfile.ZIP_DEFLATED)
    else:
        found += [(f"arrays/more{i}.npy", found[-1][1]) for i in range(rng.integers(1, 500))]
    return zipped(found)


# ---------------------------------------------------------------- arrays

HEADERS = (
    "(10000000000,)", "(1, 99999999999)", "()", "(0,)", "(3, 3, 3)", "(1e9,)", "(-1,)",
    "(0, 9999999999999999999)", "(" + "1, " * 40 + ")",
)  # fmt: skip
DTYPES = ("<f8", "|O", "<U100000", ">f8", "<c16", "|V8", "|S9", "<M8[ns]", "|b1", "<f4", "<i8")


def npy(array: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def change_header(rng: Rng, which: int) -> bytes:
    found = list(members(which))
    place = int(rng.integers(1, len(found)))
    name, data = found[place]
    header = data[10:].split(b"\n", 1)[0]
    shape = HEADERS[rng.integers(len(HEADERS))] if rng.random() < 0.7 else "(1,)"
    dtype = DTYPES[rng.integers(len(DTYPES))]
    fresh = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    found[place] = (name, data.replace(header, fresh.ljust(len(header))[: len(header)], 1))
    return zipped(found)


def change_arrays(rng: Rng, which: int) -> bytes:
    found = list(members(which))
    for _ in range(rng.integers(1, 4)):
        place, other = rng.integers(1, len(found), 2).tolist()
        array = np.load(io.BytesIO(found[place][1]))
        kind = rng.integers(6)
        if kind == 0:
            array = np.load(io.BytesIO(found[other][1]))
        elif kind == 1:
            array = array[..., :-1] if array.ndim else array[None]
        elif kind == 2:
            # words and dates are no numbers
            with np.errstate(all="ignore"), suppress(ValueError, RuntimeError, TypeError):
                array = array.astype(str(rng.choice(["<f8", "<i8", "|b1", "<f4", "<U5"])))
        elif kind == 3:
            array = np.asfortranarray(array.T)
        elif array.size and array.dtype.kind in "fi":
            values = [0, -1, 1e9, 1e300, np.nan, np.inf, -np.inf, 1e-300, -1e18, 0.5]
            with np.errstate(all="ignore"):
                array.reshape(-1)[rng.integers(array.size)] = np.array(rng.choice(values)).astype(
                    array.dtype
                )
        found[place] = (found[place][0], npy(array))
    return zipped(found)


# ---------------------------------------------------------------- the manifest

VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 3, 10**9, 10**30, 0.5, 1e300, "", "x", "auto", "learn", [], {}, [1, 2],
    {"tuple": []}, {"float": "nan"}, {"float": "inf"}, {"type": "Gaussian"}, {"type": "os"},
    {"dtype": "|O"}, {"dtype": "<U999999"}, {"dict": {}}, {"RBF": {}}, {"Real": {}}, {"same": 0},
    {"array": "x"}, {"objects": ["a", "b"]}, {"objects": [10**30, 2]}, {"os.system": ["ls"]},
    {"category": [["a", "b"], {"dtype": "|O"}, None]}, {"pandas": "Int64"}, {"string": ["python"]},
    {"timestamp": [10**18, "ns", "UTC"]}, {"timestamp": [10**30, "s", "../../etc/passwd"]},
    {"tuple": [{"tuple": [{"tuple": []}]}]}, {"Custom": {"function": "os.system"}},
)  # fmt: skip


def places(tree: Any, found: list[Any]) -> list[Any]:
    """All (container, key) in a JSON value."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        found.append((tree, key))
        if isinstance(tree[key], dict | list):
            places(tree[key], found)
    return found


def change_manifest(rng: Rng, which: int) -> bytes:
    found = members(which)
    manifest = json.loads(found[0][1])
    for _ in range(rng.integers(1, 4)):
        where = places(manifest, [])
        at, key = where[rng.integers(len(where))]
        other, place = where[rng.integers(len(where))]
        kind = rng.integers(6)
        if kind <= 1:
            at[key] = json.loads(json.dumps(VALUES[rng.integers(len(VALUES))]))
        elif kind == 2:
            del at[key]
        elif kind == 3 and isinstance(at, dict):
            at[str(rng.choice([*map(str, at), "evil", "array"]))] = at.pop(key)
        elif kind == 4:
            at[key] = json.loads(json.dumps(other[place]))
        elif type(at[key]) in (int, float):
            at[key] = at[key] * [-1, 2, 0, 1e6, 0.5][rng.integers(5)]
        else:
            at[key] = [at[key]]
    return zipped([(found[0][0], json.dumps(manifest).encode()), *found[1:]])


# ---------------------------------------------------------------- sizes

MANY = (
    "[]", "{}", "1", "1e9", '"ab"', '"é日😀"', '"\\u65e5"', "[[[[]]]]", '{"RBF": {}}',
    '{"Real": {}}', '{"tuple": [1]}', '{"timestamp": [1, "ns", "UTC"]}', '{"pandas": "Int8"}',
    '{"dtype": "<f8"}',
    '{"category": [["a"], {"dtype": "|O"}, null]}', '{"objects": ["a"]}', '{"type": "RBF"}',
)  # fmt: skip


def swell_manifest(rng: Rng, which: int) -> bytes:
    """A value of the manifest becomes very many, up to 20 MiB."""
    found = members(which)
    manifest = json.loads(found[0][1])
    where = places(manifest, [])
    at, key = where[rng.integers(len(where))]
    at[key] = "HERE"
    value = MANY[rng.integers(len(MANY))]
    n_bytes = int(2 ** rng.uniform(10, 24.3))
    many = f"[{', '.join([value] * (n_bytes // (len(value.encode()) + 2) + 1))}]"
    kind = rng.integers(5)
    if kind == 0:
        many = f'{{"tuple": {many}}}'
    elif kind == 1:
        many = f'"{value[1:-1] * (n_bytes // 8)}"' if value.startswith('"') else "[" * n_bytes
    elif kind == 2:
        many = f"{{{', '.join(f'{chr(34)}{i:x}{chr(34)}: 1' for i in range(n_bytes // 12))}}}"
    text = json.dumps(manifest).replace('"HERE"', many, 1)
    return zipped([(found[0][0], text.encode()), *found[1:]])


def swell_arrays(rng: Rng, which: int) -> bytes:
    """An array becomes large, in one of its dimensions."""
    found = list(members(which))
    place = int(rng.integers(1, len(found)))
    array = np.load(io.BytesIO(found[place][1]))
    if array.ndim:
        axis = int(rng.integers(array.ndim))
        times = int(2 ** rng.uniform(1, 24) // max(array.nbytes, 1)) + 1
        array = np.repeat(array, times, axis=axis)
    found[place] = (found[place][0], npy(array))
    return zipped(found)


def swell_zip(rng: Rng, which: int) -> bytes:
    """Many members, most of them too many."""
    n = int(2 ** rng.uniform(8, 14))
    data = npy(np.ones(1))
    return zipped([*members(which), *((f"arrays/many{i}.npy", data) for i in range(n))])


CHANGES: tuple[Callable[[Rng, int], bytes], ...] = (
    flip_bits, cut, set_sizes, change_zip, change_header, change_arrays, change_arrays,
    change_manifest, change_manifest, change_manifest, swell_manifest, swell_arrays,
)  # fmt: skip
SELDOM = 50  # one in so many is a hole, one has many members: these take long to write


def punch(rng: Rng, which: int, path: Path) -> None:
    """A file with an array that is a hole of up to 512 MiB: next to nothing on the disk."""
    n_bytes = int(2 ** rng.integers(20, 30))
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({n_bytes},), }}".encode()
    header = b"\x93NUMPY\x01\x00\x76\x00" + header.ljust(117) + b"\n"
    crc, size = zlib.crc32(header), len(header) + n_bytes
    for _ in range(n_bytes >> 20):
        crc = zlib.crc32(bytes(2**20), crc)
    found = list(members(which))
    if rng.random() < 0.5:  # in place of another
        found.pop(rng.integers(1, len(found)))
    data = zipped([*found, ("arrays/hole.npy", header)])
    start, entry = data.index(b"PK\1\2"), data.rindex(b"PK\1\2")
    sizes = struct.pack("<3L", crc, size, size)
    end = data[-22:-6] + struct.pack("<L", start + n_bytes) + data[-2:]
    with path.open("wb") as file:
        file.write(data[:start])
        file.seek(n_bytes, os.SEEK_CUR)
        file.write(data[start : entry + 16] + sizes + data[entry + 28 : -22] + end)


def write_changed(seed: int, path: Path) -> str:
    """Write the file of a seed; how it was changed."""
    rng = np.random.default_rng([SEED, seed])
    which = int(rng.integers(len(originals())))
    if seed % SELDOM == 0:
        punch(rng, which, path)
        return punch.__name__
    change = swell_zip if seed % SELDOM == 1 else CHANGES[seed % len(CHANGES)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zipfile, about names that occur twice
        path.write_bytes(change(rng, which))
    return change.__name__


# ---------------------------------------------------------------- what it takes to read them


def outcome(path: Path) -> str:
    """ "loaded", "refused", or the foreign error."""
    try:
        kofa.load(path)
    except kofa.FileError:
        return "refused"
    except Exception as error:
        return repr(error)
    return "loaded"


def memory(path: Path) -> float:
    """MiB that reading a file takes beyond its size: what Python counts, and what the system."""
    tracemalloc.start()
    outcome(path)
    counted = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (max(counted, _resident(path)) - path.stat().st_size) / 2**20


def _resident(path: Path) -> int:
    """By how much the memory of the process grows, where Linux says."""
    clear, statm = Path("/proc/self/clear_refs"), Path("/proc/self/statm")
    if not clear.exists():
        return 0
    before = int(statm.read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    clear.write_text("5", encoding="utf-8")  # the peak is from now on
    outcome(path)
    return peak() - before


def mutated() -> Row:
    found: Counter[str] = Counter()
    failures: list[str] = []
    most_memory = most_seconds = 0.0
    with TemporaryDirectory() as place:
        path = Path(place, "model.kofa")
        for seed in range(N_FILES):
            how = write_changed(seed, path)
            used = memory(path)
            began = process_time()
            what = outcome(path)
            took = process_time() - began
            most_memory, most_seconds = max(most_memory, used), max(most_seconds, took)
            found[what if what in ("loaded", "refused") else "foreign"] += 1
            if found["foreign"] or used > MOST_MEMORY or took > MOST_SECONDS:
                failures.append(f"seed {seed} ({how}): {what}, {used:.0f} MiB, {took:.1f} s")
                found["foreign"] = 0
    text = (
        f"{len(failures)} ({found['loaded']} loaded, {found['refused']} refused; at most "
        f"{most_memory:.0f} MiB beyond the file and {most_seconds:.2f} s of processor time)"
    )
    what = (
        f"of {N_FILES} mutated model files, foreign errors, more than {MOST_MEMORY:.0f} MiB beyond "
        f"the size of the file, or more than {MOST_SECONDS:.0f} s"
    )
    return Row(what, len(failures), Mark(high=0), "; ".join([text, *failures[:20]]))


EXPERIMENTS: dict[str, Measurement] = {"mutated-files": mutated}
