"""What kofa raises when the data or the declaration cannot be used."""

from __future__ import annotations


class KofaError(Exception):
    """Root of all errors that kofa raises on purpose."""


class DataError(KofaError, ValueError):
    """The data do not fit what was declared. The message names view, column and cure."""


class DeclarationError(KofaError, ValueError):
    """A model, view or kernel was declared with a value that means nothing."""


class FileError(KofaError, ValueError):
    """A file cannot be read or written."""
