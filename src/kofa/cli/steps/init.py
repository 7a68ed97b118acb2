"""`kofa init`: a first study.toml from what was guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kofa.cli import UsageError
from kofa.cli.display import table
from kofa.cli.guess import Guess, guess_folder, with_own_view
from kofa.cli.steps.writing import until_written
from kofa.errors import FileError
from kofa.files import SUFFIXES, hint, visible, write_text


def init(folder: Path, outputs: Sequence[str], force: bool) -> list[Any]:
    """Write study.toml, and show what it declares."""
    if not folder.is_dir():
        what = "this is a file" if folder.exists() else "there is no such folder"
        raise FileError(f"expected a folder with tables but {what}", folder)
    study = folder / "study.toml"
    if study.exists() and not force:
        raise FileError("this file exists", study, cure="add --force to replace it")
    guesses, remarks = guess_folder(folder)
    if not guesses:
        what = f"there are no tables in it ({', '.join(SUFFIXES)})"
        raise FileError(what, folder, cure="".join(remarks[:1]))
    for output in outputs:
        if output not in [guess.name for guess in guesses]:
            guesses = with_own_view(guesses, output)
    _check_outputs(outputs, guesses)
    with until_written(study):
        write_text(study, as_toml(guesses, remarks, outputs))
    rows = [(g.name, g.kind, len(g.columns), g.file) for g in guesses]
    made = table(("view", "kind", "columns", "file"), rows, ("columns",))
    notes = [f"note: {remark}" for remark in remarks]
    name = "" if outputs else ", name the outputs"
    after = f"{study}: check the kinds{name}, then: kofa fit {study} -o model.kofa"
    return [made, "\n".join(["", *notes, after])]


def _check_outputs(outputs: Sequence[str], guesses: Sequence[Guess]) -> None:
    names = [guess.name for guess in guesses if not guess.alone]
    for output in outputs:
        if output not in names:
            cure = hint(output, names, "the views are")
            what = f"there is no view or column {output!r}"
            raise UsageError(what, source="--outputs", cure=cure)


def as_toml(guesses: Sequence[Guess], remarks: Sequence[str], outputs: Sequence[str] = ()) -> str:
    """A commented study.toml."""
    used = [guess for guess in guesses if not guess.alone] or guesses
    labels = [guess.name for guess in used if guess.kind in ("categorical", "binary")]
    example = (labels or [guess.name for guess in used])[-1]
    said = list(dict.fromkeys(outputs))
    parts = [_HEAD.format(mark="" if said else "# ", outputs=_value(said or [example]))]
    parts += [_declaration(guess) for guess in guesses]
    if remarks:
        parts.append("\n".join(f"# {visible(remark)}" for remark in remarks) + "\n")
    return "\n".join(parts)


_HEAD = """\
# A study for kofa: kofa fit study.toml -o model.kofa
# The kinds were guessed: check them. Remove the views that you do not want.
#
# kind:   real, positive (explained by its logarithm), binary (0/1), count, categorical (one column)
# kernel: "rbf", "linear", "laplacian", "polynomial", "diffusion", "bank", or
#         {{name = "rbf", width = 2.0}}; leave it out to explain the columns themselves
# index:  the column of sample ids, by default the first; false if there is none

[model]
{mark}outputs = {outputs}      # views to be predicted from the others
# n_factors = 25             # the most factors; those that explain nothing are removed
# n_init = 1                 # starts; the best is kept
# max_iter = 1000
# random_state = 0
"""


def _declaration(guess: Guess) -> str:
    bare = re.fullmatch(r"[A-Za-z0-9_-]+", guess.name)
    name = guess.name if bare else _value(guess.name)
    lines = [f"[views.{name}]", f"file = {_value(guess.file)}", f"kind = {_value(guess.kind)}"]
    lines += [f"{key} = {_value(value)}" for key, value in guess.options.items()]
    if guess.kind != "categorical":
        lines.append('# kernel = "rbf"')
    return "".join(f"{'# ' if guess.alone else ''}{line}\n" for line in lines)


def _value(value: Any) -> str:
    """A value as TOML writes it: as JSON does, but for characters that cannot be seen.

    >>> print(_value(["a\\x7f", 'b"']))
    ["a\\u007f", "b\\""]
    """
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
