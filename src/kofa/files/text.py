"""CSV and TSV. A fast reader reads them; single lines are read only to find an error."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import itertools
import lzma
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from kofa.errors import FileError
from kofa.files.options import Reading, index_name, is_empty, repeated, same_ids, select

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_CHUNK = 2**20  # bytes that are searched at a time
_SEPARATORS = (",", "\t", ";", "|")
_COMMA_NUMBER = re.compile(r"[+-]?\d[\d.]*,\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Layout:
    """What is known of a text table from its first lines."""

    path: Path
    names: list[str]  # of all fields of a row, that of the ids included
    index: str | None
    sep: str
    spaced: bool  # there are spaces behind separators
    reading: Reading

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The line at which each row below the header starts, and its fields."""
        with opened(self.path, "rt", encoding=_encoding(self.reading), newline="") as file:
            yield from itertools.islice(_records(file, self.sep), 1, None)


def opened(path: Path, mode: str, **options: Any) -> IO[Any]:
    """A file, compressed or not."""
    file: IO[Any] = _OPENERS.get(path.suffix.lower(), open)(path, mode, **options)
    return file


def _records(file: IO[str], sep: str) -> Iterator[tuple[int, list[str]]]:
    """The line at which each row starts, and its fields; lines of spaces only are no rows."""
    records = csv.reader(file, delimiter=sep, skipinitialspace=True)
    line = 1
    for fields in records:
        if len(fields) > 1 or any(field.strip() for field in fields):
            yield line, fields
        line = records.line_num + 1


def read_text(path: Path, reading: Reading) -> Any:
    """A DataFrame of a CSV or TSV file, its index the sample ids as they are written."""
    layout = read_layout(path, reading)
    data = [name for name in layout.names if name != layout.index]
    wanted = data if reading.transpose else select(path, data, reading)
    frame = _parsed(layout, wanted)
    if not len(frame):
        raise FileError("there is a header but no rows below it", path)
    _check_rows_are_full(layout, frame)
    frame.index = _ids(layout, frame.index)
    frame = frame if wanted == data else frame[wanted]  # choosing all columns would copy them
    frame = _without_trailing_separator(frame)
    return _numbers(layout, frame) if reading.values == "numbers" else _words(layout, frame)


# ---------------------------------------------------------------- the first lines


def read_layout(path: Path, reading: Reading) -> Layout:
    """Names, the column of sample ids and the separator, from the first two rows."""
    sep, spaced, header, first = _beginning(path, reading)
    if _has_null(path, reading):
        _report_null(Layout(path, [name.strip() for name in header], None, sep, spaced, reading))
    names = [name.strip() for name in header]
    if not any(names):
        raise is_empty(path)
    _check_header(path, names, first)
    if len(first) == len(names) + 1 and first[-1].strip():
        names.insert(0, "")  # as R writes tables: the ids have no name
    _check_names(path, names)
    layout = Layout(path, names, index_name(path, names, reading), sep, spaced, reading)
    if len(first) > len(names):
        _report_ragged(layout)
    return layout


def _beginning(path: Path, reading: Reading) -> tuple[str, bool, list[str], list[str]]:
    """The separator, whether there are spaces behind it, and the fields of the first two rows."""
    try:
        sep = reading.sep or _separator(path, reading)
        with opened(path, "rt", encoding=_encoding(reading), newline="") as file:
            spaced = any(f"{sep} " in line for line in itertools.islice(file, 3))
            file.seek(0)
            rows = _records(file, sep)
            (_, header), (_, first) = next(rows, (0, [])), next(rows, (0, []))
    except UnicodeError:
        _report_encoding(path, reading)
    except csv.Error as error:
        raise FileError(f"not a table in text ({error})", path) from error
    return sep, spaced, header, first


def _encoding(reading: Reading) -> str:
    return "utf-8-sig" if codecs.lookup(reading.encoding).name == "utf-8" else reading.encoding


def _separator(path: Path, reading: Reading) -> str:
    """The usual one, unless the first line has only another."""
    with opened(path, "rt", encoding=_encoding(reading)) as file:
        line = next((line for line in file if line.strip()), "")
    stem = path.with_suffix("") if path.suffix.lower() in _OPENERS else path
    usual = "\t" if stem.suffix.lower() in (".tsv", ".tab") else ","
    counts = {sep: line.count(sep) for sep in _SEPARATORS}
    return (
        usual if counts[usual] or not any(counts.values()) else max(counts, key=lambda s: counts[s])
    )


def _has_null(path: Path, reading: Reading) -> bool:
    """Whether there is a null character, at which the fast reader would end a cell."""
    wide = b"\0" in "a".encode(reading.encoding)  # UTF-16: search the text, not the bytes
    options = {"encoding": reading.encoding, "newline": ""} if wide else {}
    with opened(path, "rt" if wide else "rb", **options) as file:
        null: Any = "\0" if wide else b"\0"
        return any(null in part for part in iter(lambda: file.read(_CHUNK), null[:0]))


def _check_header(path: Path, names: Sequence[str], first: Sequence[str]) -> None:
    """Raise for a line of another program above the names of the columns."""
    strange = names[0].lower().startswith(("#", "sep="))
    if strange and (len(first) > len(names) or "".join(first).startswith("#")):
        what, cure = "expected the names of columns first", "remove the lines above them"
        raise FileError(what, path, got=names[0], cure=cure)


def _check_names(path: Path, names: Sequence[str]) -> None:
    seen: dict[str, int] = {}
    for place, name in enumerate(names, 1):
        if name in seen:
            what = f"are both called {name!r}" if name else "have no name"
            cure = "rename one of them" if name else "name them, or remove them if they are empty"
            raise FileError(f"columns {seen[name]} and {place} {what}", path, 1, cure=cure)
        seen[name] = place


# ---------------------------------------------------------------- the rows


def _parsed(layout: Layout, wanted: Sequence[str]) -> Any:
    import pandas as pd

    reading, words = layout.reading, [] if layout.index is None else [layout.index]
    if reading.values != "numbers":
        words += wanted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # mixed columns are checked later
        try:
            return pd.read_csv(
                layout.path,
                sep=layout.sep,
                header=0,
                names=layout.names,
                index_col=False if layout.index is None else layout.index,
                dtype=dict.fromkeys(words, str),
                keep_default_na=False,
                na_values=reading.marks,
                decimal=reading.decimal,
                encoding=reading.encoding,
                skipinitialspace=layout.spaced,  # which slows the reader down
            )
        except UnicodeError:
            _report_encoding(layout.path, reading)
        except pd.errors.ParserError as error:
            _report_unclosed(layout)
            _report_ragged(layout)
            raise FileError(f"not a table in text ({error})", layout.path) from error


def _check_rows_are_full(layout: Layout, frame: Any) -> None:
    """Rows that end early are read as if their last cells were empty."""
    holes = frame.iloc[:, -1].isna().to_numpy()
    if not holes.any():
        return
    sep, row = layout.sep.encode(), -1
    with opened(layout.path, "rb") as file:
        for line in file:
            if line.isspace():
                continue
            may_end_early = row >= len(holes) or (row >= 0 and holes[row])
            if may_end_early and line.count(sep) < len(layout.names) - 1:
                break
            row += 1
        else:
            if row == len(holes):
                return
    _report_ragged(layout)  # or a quoted cell has several lines


def _without_trailing_separator(frame: Any) -> Any:
    """The table without a last column that has neither a name nor values."""
    ends_empty = frame.shape[1] > 1 and frame.columns[-1] == "" and frame.iloc[:, -1].isna().all()
    return frame.iloc[:, :-1] if ends_empty else frame


def _ids(layout: Layout, index: Any) -> Any:
    """The sample ids without spaces around them, or an error with the line."""
    import pandas as pd

    if layout.index is None:
        return pd.Index([str(row) for row in range(len(index))])
    name = layout.index or None
    if index.hasnans:
        row = int(np.argmax(index.isna()))
        line, fields = _nth(layout, row)
        got = fields[layout.names.index(layout.index)]
        cure = "fill it in, remove the row, or name the column of ids with index"
        place = (layout.path, line, layout.index)
        raise FileError("expected a sample id", *place, got=got, cure=cure)
    ids = pd.Index([one.strip() for one in index], name=name)
    if not ids.is_unique:
        first, second = (_nth(layout, row)[0] for row in same_ids(ids))
        raise repeated(layout.path, f"lines {first} and {second}", ids, layout.index)
    return ids


def _numbers(layout: Layout, frame: Any) -> Any:
    """The table with numbers in every column, or an error with line and column."""
    import pandas as pd

    words = [name for name, dtype in frame.dtypes.items() if dtype.kind not in "fiub"]
    marks, decimal = set(layout.reading.marks), layout.reading.decimal
    try:
        numbers = {
            name: pd.Series([_number(v, marks, decimal) for v in frame[name]], frame.index)
            for name in words
        }
    except ValueError:
        _report_word(layout, words)
    return frame.assign(**numbers) if words else frame


def _words(layout: Layout, frame: Any) -> Any:
    """Labels without spaces around them, missing where a mark of missing values is left."""
    frame = frame.apply(lambda column: column.str.strip())
    return frame.mask(frame.isin(layout.reading.marks))


def _number(value: Any, marks: Collection[str], decimal: str) -> float:
    """What the fast reader left: truth values with holes, spaces behind numbers, huge numbers."""
    if not isinstance(value, str):
        return float(value)
    cell = value.strip()
    if cell in marks:
        return np.nan
    if "_" in cell:
        raise ValueError(cell)
    return float(cell if decimal == "." else cell.replace(".", " ").replace(decimal, "."))


def _nth(layout: Layout, row: int) -> tuple[int, list[str]]:
    return next(found for place, found in enumerate(layout.rows()) if place == row)


# ---------------------------------------------------------------- where it went wrong


def _report_encoding(path: Path, reading: Reading) -> NoReturn:
    with opened(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode(reading.encoding)
            except UnicodeError as error:
                byte = line[getattr(error, "start", 0)]
                other = "utf-16" if line.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin-1"
                what = f"byte 0x{byte:02x} is not {reading.encoding.upper()}"
                cure = f"save the file as UTF-8, or set encoding, such as {other!r}"
                raise FileError(what, path, number, cure=cure) from None
    raise FileError(f"not text in {reading.encoding}", path, cure="set encoding")


def _report_null(layout: Layout) -> NoReturn:
    """Raise for the first cell that has a null character."""
    for line, cells in itertools.chain([(1, layout.names)], layout.rows()):
        for place, cell in enumerate(cells):
            if "\0" in cell:
                named = line > 1 and place < len(layout.names)
                column = layout.names[place] if named else place + 1
                what = f"there is a null byte in {cell!r}"
                cure = "correct the file, or set encoding if it is another, such as 'utf-16'"
                raise FileError(what, layout.path, line, column, cure=cure)
    cure = "the file is damaged or is not text"
    raise FileError("there is a null byte in it", layout.path, cure=cure)


def _report_unclosed(layout: Layout) -> None:
    """Raise for a row with a quotation mark that is never closed."""
    with opened(layout.path, "rt", encoding=_encoding(layout.reading), newline="") as file:
        records = csv.reader(file, delimiter=layout.sep, skipinitialspace=True, strict=True)
        line = 1
        try:
            for _ in records:
                line = records.line_num + 1
        except csv.Error:
            if records.line_num > line or not file.read(1):
                what = "a quotation mark is opened and never closed"
                cure = "remove it, or add the other"
                raise FileError(what, layout.path, line, cure=cure) from None


def _report_ragged(layout: Layout) -> None:
    """Raise for the first row that has more or fewer cells than there are names."""
    expected = len(layout.names)
    for line, fields in layout.rows():
        if len(fields) != expected:
            cure = f"add or remove separators ({layout.sep!r}), or quote cells that contain one"
            what = f"expected {expected} cells as in the header"
            raise FileError(what, layout.path, line, got=len(fields), cure=cure)


def _report_word(layout: Layout, columns: Sequence[str]) -> NoReturn:
    """Raise for the first cell that is neither a number nor missing."""
    places = [(layout.names.index(name), name) for name in columns]
    marks, decimal = set(layout.reading.marks), layout.reading.decimal
    for line, fields in layout.rows():
        for place, name in places:
            cell = fields[place].strip()
            if cell not in marks and not _is_number(cell, decimal):
                cure = _cure(cell, name, layout)
                raise FileError("expected a number", layout.path, line, name, got=cell, cure=cure)
    raise FileError("expected numbers", layout.path, column=columns[0])


def _is_number(cell: str, decimal: str) -> bool:
    try:
        _number(cell, (), decimal)
    except ValueError:
        return False
    return True


def _cure(cell: str, name: str, layout: Layout) -> str:
    decimal = layout.reading.decimal
    mark = "," if decimal == "." else "."
    if _has_thousands(cell, mark, decimal) and (decimal in cell or mark == layout.sep):
        return f"remove the marks between thousands ({mark!r})"
    if decimal != "," and _COMMA_NUMBER.fullmatch(cell):
        return "set decimal to ','"
    if decimal != "." and _is_number(cell, "."):
        return "set decimal to '.'"
    return (
        f"drop the column (drop = [{name!r}]), name the cell in missing, or make it a view of "
        f"kind categorical"
    )


def _has_thousands(cell: str, mark: str, decimal: str) -> bool:
    mark, decimal = re.escape(mark), re.escape(decimal)
    return bool(re.fullmatch(rf"[+-]?\d{{1,3}}({mark}\d{{3}})+({decimal}\d+)?", cell))
