"""Long fits survive: where a fit stands is written to disk every so often, and read back.

A fit does everything in the same order each time: it prepares the views, then makes one run after
the other. A checkpoint keeps what the preparation gave, the runs that ended, and where the last
one stands. A fit that is continued goes the same way again and takes from it what is there.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from kofa.errors import FileError, warn
from kofa.inference import Iteration, Journal, Run
from kofa.storage import archive, codec
from kofa.storage.atomic import lock_of, locked
from kofa.study import Study

_OR_ELSE = "fit without checkpoint"  # where one cannot hold the fit
_PAUSE = 10.0  # before the next writing, at least so many times what the last one took
_RETRY = 10.0  # seconds before the next writing after one that failed


class Checkpoint(Journal):
    """A journal on disk. `key` tells fits apart: one is not continued with other data.

    It is locked from the beginning of the fit to its end: two fits would take turns in replacing
    what the other wrote.
    """

    def __init__(
        self, path: str | os.PathLike[str], every: float, key: str, resume: bool = False
    ) -> None:
        self.path, self.every, self.key, self.continues = path, every, key, resume
        self.prepared: Any = None
        self.after: Any = None  # the state of the random numbers after the preparation
        self.runs: list[Run] = []  # those that ended
        self.current: Run | None = None
        self.place = 0  # of the run that begins next
        self.due = time.monotonic() + every
        self.failed = False  # so that a writing that fails is warned of once
        self.stack = ExitStack()

    def read(self) -> None:
        """Take up what an earlier fit wrote to the path."""
        content = _content(self.path)
        if content["key"] != self.key:
            raise FileError(
                f"{self.path} was written by a fit with other data or settings; fit without resume "
                f"to begin anew, or name another checkpoint."
            )
        self.prepared, self.after = content["prepared"], content["after"]
        self.runs, self.current = content["runs"], content["current"]

    def write(self) -> None:
        """Put all that is known on disk, in one piece."""
        began = time.monotonic()
        codec.write(self.path, "checkpoint", self._held(), or_else=_OR_ELSE)
        now = time.monotonic()
        self.due = now + max(self.every, _PAUSE * (now - began))

    def _held(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "prepared": self.prepared,
            "after": self.after,
            "runs": [_folded(run) for run in self.runs],
            "current": self.current and _folded(self.current),
        }

    def _try_to_write(self) -> None:
        """A checkpoint that cannot be written is no reason to lose the fit."""
        try:
            self.write()
        except (FileError, OSError, MemoryError) as error:
            self.due = time.monotonic() + max(self.every, _RETRY)
            if not self.failed:
                warn(
                    f"The checkpoint cannot be written, so that this fit cannot be continued if "
                    f"it is broken off: {error} The fit goes on."
                )
            self.failed = True

    # ------------------------------------------------------------ as a journal

    def __enter__(self) -> Self:
        target = archive.target_of(self.path)  # now, not after an hour
        with ExitStack() as stack:
            with archive.writing(self.path):
                ours = stack.enter_context(locked(lock_of(target)))
            if ours is False:
                raise FileError(
                    f"{self.path} is the checkpoint of another fit that is running now; wait for "
                    f"its end, or name another checkpoint."
                )
            if target.exists():
                self._check_there(target)
                if self.continues:
                    self.read()
            self.stack = stack.pop_all()
        return self

    def _check_there(self, target: Path) -> None:
        """Never write over anything but a checkpoint."""
        found = archive.contents_of(target)
        if found != "checkpoint":
            what = "is no checkpoint" if found is None else f"holds a {found}, not a checkpoint"
            raise FileError(f"{self.path} {what}; name another file as checkpoint.")

    def __exit__(self, *_: object) -> None:
        with self.stack:
            if self.prepared is not None:
                self._try_to_write()

    def once(self, prepare: Callable[[], Any], rng: np.random.Generator) -> Any:
        if self.prepared is None:
            found = prepare(), rng.bit_generator.state
            # What no file can hold is refused now, not at the end.
            codec.check_holds(self.path, "checkpoint", found, _OR_ELSE)
            self.prepared, self.after = found
            self._write_if_due()
        rng.bit_generator.state = self.after
        return self.prepared

    def resume(self) -> Run | None:
        place, self.place = self.place, self.place + 1
        return self.runs[place] if place < len(self.runs) else self.current

    def reached(self, run: Run) -> None:
        self.current = replace(run, stopped=False)  # a fit that is continued wants to go on
        self._write_if_due()

    def ended(self, run: Run) -> None:
        if not run.stopped:
            self.runs, self.current = _slim([*self.runs, run]), None
            self._write_if_due()

    def _write_if_due(self) -> None:
        if time.monotonic() >= self.due:
            self._try_to_write()


def check_holds(study: Study) -> None:
    """Raise for kernels, names and labels of a study that no checkpoint can hold."""
    codec.check_kernels(study.kernels, _OR_ELSE)
    names = {name: {"columns": t.columns, "classes": t.classes} for name, t in study.tables.items()}
    codec.pack({"views": names}, _OR_ELSE)


def _slim(runs: list[Run]) -> list[Run]:
    """The runs, with the factors of samples only where they are still needed.

    The next run may begin where the last one ended, the best one may be the result, and one that
    ran out of iterations may be given more.
    """
    best = int(np.argmax([run.lower_bound for run in runs]))
    needed = {best, len(runs) - 1}
    return [
        run if i in needed or not run.converged else replace(run, Z=np.empty((0, run.n_factors)))
        for i, run in enumerate(runs)
    ]


def _content(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What is in a file, its runs unfolded."""
    try:
        content = codec.read(path, "checkpoint")
        content["runs"] = [_unfolded(run) for run in content["runs"]]
        content["current"] = content["current"] and _unfolded(content["current"])
        return {name: content[name] for name in ("key", "prepared", "after", "runs", "current")}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise archive.damaged(path, "it is not a checkpoint as kofa writes it") from error


# ---------------------------------------------------------------- runs as plain values


def _folded(run: Run) -> dict[str, Any]:
    """A run as a dict, its iterations as arrays."""
    folded = {field.name: getattr(run, field.name) for field in fields(run)}
    path = run.history
    folded["history"] = {
        "terms": list(path[0].terms),
        "values": np.array([list(i.terms.values()) for i in path]),
        "bounds": np.array([i.lower_bound for i in path]),
        "factors": np.array([i.n_factors for i in path]),
        "pruned": np.array([i.pruned for i in path]),
    }
    return folded


def _unfolded(folded: Mapping[str, Any]) -> Run:
    path = folded["history"]
    columns = (path[name].tolist() for name in ("bounds", "values", "factors", "pruned"))
    history = tuple(
        Iteration(n + 1, bound, dict(zip(path["terms"], values, strict=True)), factors, pruned)
        for n, (bound, values, factors, pruned) in enumerate(zip(*columns, strict=True))
    )
    return Run(**{**folded, "history": history})


# ---------------------------------------------------------------- telling fits apart


def fingerprint(*things: Any) -> str:
    """The same for equal data and declarations, in any process."""
    digest = hashlib.blake2b(digest_size=16)
    for thing in things:
        _feed(digest, thing)
    return digest.hexdigest()


def _feed(digest: Any, thing: Any) -> None:
    digest.update(f"|{type(thing).__name__}:".encode())
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        digest.update(f"{thing.dtype.str}{thing.shape}".encode())
        digest.update(np.ascontiguousarray(thing).data)
    elif is_dataclass(thing) and not isinstance(thing, type):
        _feed(digest, {field.name: getattr(thing, field.name) for field in fields(thing)})
    elif isinstance(thing, Mapping):
        _feed(digest, list(thing.items()))
    elif isinstance(thing, list | tuple):
        for part in thing:
            _feed(digest, part)
    elif hasattr(thing, "tolist"):  # an index, an array of objects, a number of numpy's
        _feed(digest, thing.tolist())
    elif callable(thing):  # its address differs from process to process
        digest.update(getattr(thing, "__qualname__", "").encode())
    else:
        digest.update(repr(thing).encode())
