"""Tables in files: CSV, TSV, Parquet, npz, h5ad and h5mu in; CSV, TSV, Parquet and JSON out."""

from kofa.checks import hint, listed
from kofa.errors import visible
from kofa.files.opening import open_file
from kofa.files.options import Reading, Values
from kofa.files.reading import (
    SUFFIXES,
    check_exists,
    damage_in_words,
    file_kind,
    read_file,
    read_stdin,
)
from kofa.files.writing import (
    as_json,
    check_folder,
    check_stdout,
    check_writable,
    file_names,
    new_folder,
    same_file,
    to_stdout,
    write_bytes,
    write_file,
    write_files,
    write_text,
)

__all__ = [
    "SUFFIXES",
    "Reading",
    "Values",
    "as_json",
    "check_exists",
    "check_folder",
    "check_stdout",
    "check_writable",
    "damage_in_words",
    "file_kind",
    "file_names",
    "hint",
    "listed",
    "new_folder",
    "open_file",
    "read_file",
    "read_stdin",
    "same_file",
    "to_stdout",
    "visible",
    "write_bytes",
    "write_file",
    "write_files",
    "write_text",
]
