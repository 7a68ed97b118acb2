"""Tables into files, whole or not at all."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any

from kofa.checks import hint
from kofa.errors import FileError, visible
from kofa.storage.atomic import atomic_write

FORMATS = (".csv", ".tsv", ".parquet", ".json", ".csv.gz", ".tsv.gz")
_LONGEST_NAME = 80  # characters of a file's name without its ending
_LONGEST_BYTES = 160  # and bytes, of 255 that file systems take
_NOT_IN_NAMES = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f-\x9f\ud800-\udfff]')
# Windows takes these for devices, whatever follows behind a dot.
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


def write_file(frame: Any, path: str | PathLike[str], index: bool = True) -> None:
    """Write a DataFrame as CSV, TSV, Parquet or JSON by the ending of the path.

    "-" is CSV to stdout. With `index` the first column has the samples. The file appears whole, in
    place of one that was there, or not at all.

    Examples
    --------
    >>> import pandas as pd, tempfile, pathlib, kofa.files
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "x.csv"
    >>> kofa.files.write_file(pd.DataFrame({"a": [1, 2]}, index=["s1", "s2"]), path)
    >>> path.read_text()
    'sample,a\\ns1,1\\ns2,2\\n'
    """
    if not index:
        frame = _without_index(frame)
    if str(path) == "-":
        to_stdout(_plain(frame).to_csv(index=index))
    else:
        write_files({Path(path): frame}, index)


def write_files(frames: Mapping[Path, Any], index: bool = True) -> None:
    """Write several tables: all of them appear, or none if one cannot be written."""
    kinds = {path: check_writable(path) for path in frames}
    with ExitStack() as stack:
        for path, frame in frames.items():
            part = stack.enter_context(_atomic_write(path))
            _write(_plain(frame), part, kinds[path], index)


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8, whole or not at all."""
    check_folder(path)
    with _atomic_write(path) as part:
        part.write_text(text, encoding="utf-8")


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    check_folder(path)
    with _atomic_write(path) as part:
        part.write_bytes(content)


def to_stdout(text: str) -> None:
    """Write text to stdout, all of it or nothing."""
    check_stdout()
    if sys.stdout.isatty():
        text = visible(text, lines=True)
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        sign = error.object[error.start]
        what = f"stdout is in {encoding}, which has no {sign!r}; write to a file"
        raise FileError(what) from error
    sys.stdout.write(text)


def check_stdout() -> None:
    """Raise if the program was started without."""
    if sys.stdout is None:
        raise FileError("stdout is closed; write to a file")


@contextmanager
def _atomic_write(path: Path) -> Iterator[Path]:
    """A file that takes the place of `path` or of what it links to; errors name `path`."""
    try:
        with atomic_write(Path(os.path.realpath(path))) as part:
            yield part
    except OSError as error:
        raise FileError(f"it cannot be written: {error.strerror or error}", path) from error
    except FileError:
        raise
    # pyarrow's errors are among these, as are texts that are not Unicode.
    except (ValueError, TypeError, NotImplementedError) as error:
        raise FileError(f"it cannot be written: {error}", path) from error


def _plain(frame: Any) -> Any:
    """The table with names that every format takes: words, and those of samples their own."""
    frame = frame.set_axis([str(name) for name in frame.columns], axis="columns")
    names = (frame.index.name, "sample", "sample_id", *(f"sample_{n}" for n in range(len(frame.T))))
    free = (str(n) for n in names if n is not None and str(n) not in frame.columns)
    return frame.rename_axis(index=next(free))


def _without_index(frame: Any) -> Any:
    """A table of rows without names. Lists become text; so do columns of words and numbers."""
    frame = frame.reset_index(drop=True)
    for name, column in frame.select_dtypes(object).items():
        types = {type(one) for one in column[column.notna()]}
        if list in types:
            frame[name] = [", ".join(map(str, one)) for one in column]
        elif len(types) > 1:
            frame[name] = column.map(str, na_action="ignore")
    return frame


def _write(frame: Any, path: Path, kind: str, index: bool) -> None:
    if kind == ".parquet":
        # pyarrow takes no names that are not UTF-8
        path.write_bytes(frame.to_parquet(index=None if index else False))
        return
    if kind == ".json":
        path.write_text(as_json(frame.reset_index() if index else frame), encoding="utf-8")
        return
    sep = "\t" if kind.startswith(".tsv") else ","
    compression = "gzip" if kind.endswith(".gz") else None
    frame.to_csv(path, sep=sep, compression=compression, index=index)


def as_json(frame: Any) -> str:
    """A list of rows, each an object with the names of columns; what is missing is null.

    >>> import pandas as pd
    >>> print(as_json(pd.DataFrame({"view": ["x", "y"], "r2": [0.5, float("nan")]})), end="")
    [
     {"view": "x", "r2": 0.5},
     {"view": "y", "r2": null}
    ]
    """
    names = [str(name) for name in frame.columns]
    columns = [map(_json_value, frame[name].tolist()) for name in frame.columns]
    rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
    lines = ",\n ".join(json.dumps(row, allow_nan=False) for row in rows)
    return f"[\n {lines}\n]\n" if lines else "[]\n"


def _json_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_json_value(one) for one in value]
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if value is None or isinstance(value, bool | int | str):
        return value
    return _json_value(value.item()) if hasattr(value, "item") else _of_another_type(value)


def _of_another_type(value: Any) -> str | None:
    text = str(value)
    return None if text in ("NaT", "<NA>") else text


# ---------------------------------------------------------------- where


def check_writable(path: Path) -> str:
    """The ending that says the format; an error if nothing can be written there."""
    kind = next((one for one in FORMATS if path.name.lower().endswith(one)), None)
    if kind is None:
        what = f"expected a file that ends in {', '.join(FORMATS)}"
        raise FileError(what, path, cure=hint(path.suffix, FORMATS))
    check_folder(path)
    return kind


def check_folder(path: Path) -> None:
    """Raise unless a file of this name can be made in its folder."""
    if "\0" in str(path):
        raise FileError("the name of a file cannot have a null byte in it", path)
    if path.is_dir():
        raise FileError("expected the name of a file but this is a folder", path)
    if path.exists() and not path.is_file():
        raise FileError("expected the name of a file but this is a pipe or a device", path)
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        what = f"there is no folder {str(path.parent)!r}"
        raise FileError(what, path, cure="make it first")
    if path.is_symlink() and os.path.islink(os.path.realpath(path)):
        raise FileError("this link leads in a circle", path, cure="choose another name")
    if not os.access(folder, os.W_OK):
        raise FileError(f"the folder {str(path.parent)!r} cannot be written to", path)


def same_file(one: Path, other: Path) -> bool:
    """Whether two names are of one file, by links or by a file system that takes A for a."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    with suppress(OSError):
        return os.path.samefile(one, other)
    return False


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """A folder that is there or is made, and is gone again if what it was made for fails."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise FileError("expected a folder but this is a file", folder)
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException as error:
        for one in made:
            with suppress(OSError):  # it may hold what was done before
                one.rmdir()
        if isinstance(error, OSError):
            raise FileError(error.strerror or str(error), folder) from error
        raise


def file_names(names: Iterable[str]) -> dict[str, str]:
    """A name of a file for each name of a table: all different, on every file system.

    >>> file_names(["a/b", "a_b", "A_B", "con", ""])
    {'a/b': 'a_b_3', 'a_b': 'a_b', 'A_B': 'A_B_2', 'con': '_con', '': '_'}
    """
    safe = {name: _safe(name) for name in names}
    taken: set[str] = set()
    for name in sorted(safe, key=lambda name: safe[name] != name):  # good names stay
        tries = (safe[name] if n == 1 else f"{safe[name]}_{n}" for n in range(1, len(safe) + 2))
        safe[name] = next(one for one in tries if _folded(one) not in taken)
        taken.add(_folded(safe[name]))
    return safe


def _safe(name: str) -> str:
    """A name without what some file systems refuse, and short enough for all."""
    name = _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME]
    name = name.encode()[:_LONGEST_BYTES].decode(errors="ignore").rstrip(". ")
    return f"_{name}" if not name or name[0] in ".- " or _DEVICES.match(name) else name


def _folded(name: str) -> str:
    """The same for names that a file system may take for one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
