"""Tables in files: CSV, TSV, Parquet, npz, h5ad and h5mu in; CSV, TSV and Parquet out."""

from kofa.files.options import Reading, Values, listed, nearest
from kofa.files.reading import SUFFIXES, check_exists, file_kind, read_file
from kofa.files.writing import check_folder, check_writable, write_file, write_text

__all__ = [
    "SUFFIXES",
    "Reading",
    "Values",
    "check_exists",
    "check_folder",
    "check_writable",
    "file_kind",
    "listed",
    "nearest",
    "read_file",
    "write_file",
    "write_text",
]
