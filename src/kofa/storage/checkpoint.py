"""Checkpoints: the state of a fit that is running, written to disk from time to time.

A fit does everything in the same order each time: it prepares the views, then makes one run after
the other. A checkpoint keeps the result of the preparation, the runs that ended, and the state of
the last one. A fit that is continued repeats these steps and takes from it what is there.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from kofa.checks import flag
from kofa.data.stored import Stored, blocks
from kofa.data.tables import Table
from kofa.engines.condensed import Affine
from kofa.errors import DeclarationError, FileError, KofaError, warn
from kofa.inference.acceleration import Trail
from kofa.inference.posterior import complete
from kofa.inference.run import Iteration, Journal, Run
from kofa.linalg import Array
from kofa.preparation.fit_data import FitData
from kofa.preparation.parameters import Parameters
from kofa.storage import archive, model_file
from kofa.storage.atomic import lock_path, locked
from kofa.storage.codec import to_json
from kofa.views import OLD_NAMES, View

_OTHERWISE = "fit without checkpoint"  # where one cannot hold the fit
_PAUSE = 10.0  # before it is written again, at least so many times what writing took
_RETRY = 10.0  # seconds before it is written again if that failed


class Checkpoint(Journal):
    """A journal on disk. `key` identifies the fit: one is not continued with other data.

    It is locked from the beginning of the fit to its end, so that no two fits write to it.
    """

    def __init__(self, path: archive.StrPath, every: float, key: str, resume: bool = False) -> None:
        self.path, self.every, self.key, self.continues = path, every, key, resume
        self.prepared: Any = None
        self.after: Any = None  # the state of the random numbers after the preparation
        # Runs that ended, by name: "1.0", "1.1", … of a start, and "1" once all of it is over
        self.runs: dict[str, Run] = {}
        self.current: Run | None = None
        self.start, self.stage = 0, 0  # which, together, name a run
        self.name = ""  # of the current run
        self.due = time.monotonic() + every
        self.failed = False  # to write it, of which there is one warning
        self.stack = ExitStack()

    def read(self) -> None:
        """Take up what an earlier fit wrote to the path."""
        content = _read_content(self.path)
        if content["key"] != self.key:
            raise FileError(
                f"{self.path} was written by a fit with other data or settings; fit without resume "
                f"to begin anew, or name another checkpoint."
            )
        self.prepared, self.after = content["prepared"], content["after"]
        self.runs = content["runs"]
        self.name, self.current = content["name"], content["current"]

    def write(self) -> None:
        """Write all that is known to disk."""
        began = time.monotonic()
        self._write(self._content())
        now = time.monotonic()
        self.due = now + max(self.every, _PAUSE * (now - began))

    def _write(self, content: Any, only_try: bool = False) -> None:
        model_file.write_object(
            self.path, "checkpoint", content, otherwise=_OTHERWISE, only_try=only_try
        )

    def _content(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "prepared": self.prepared,
            "after": self.after,
            "runs": {name: _run_to_dict(run) for name, run in self.runs.items()},
            "name": self.name,
            "current": self.current and _run_to_dict(self.current),
        }

    def _write_if_due(self, at_end: bool = False) -> None:
        """A checkpoint that cannot be written is no reason to lose the fit."""
        if time.monotonic() < self.due and not at_end:
            return
        try:
            self.write()
        except (KofaError, OSError, MemoryError) as error:
            self.due = time.monotonic() + max(self.every, _RETRY)
            if not self.failed:
                warn(
                    f"The checkpoint cannot be written, so that this fit cannot be continued if "
                    f"it is broken off: {error} The fit goes on."
                )
            self.failed = True

    # ------------------------------------------------------------ as a journal

    def __enter__(self) -> Self:
        target = archive.resolve_target(self.path)  # now, not after an hour
        with ExitStack() as stack:
            with archive.naming_target(self.path):
                ours = stack.enter_context(locked(lock_path(target)))
            if ours is False:
                raise FileError(
                    f"{self.path} is the checkpoint of another fit that is running now; wait for "
                    f"its end, or name another checkpoint."
                )
            if target.exists():
                self._check_is_checkpoint(target)
                if self.continues:
                    self.read()
            self.stack = stack.pop_all()
        return self

    def _check_is_checkpoint(self, target: Path) -> None:
        """Never write over anything but a checkpoint."""
        found = archive.contents_of(target)
        if found != "checkpoint":
            what = "is no checkpoint" if found is None else f"holds a {found}, not a checkpoint"
            raise FileError(f"{self.path} {what}; name another file as checkpoint.")

    def __exit__(self, *_: object) -> None:
        with self.stack:
            if self.prepared is not None:
                self._write_if_due(at_end=True)

    def once(self, prepare: Callable[[], Any], rng: np.random.Generator) -> Any:
        if self.prepared is None:
            found = prepare(), rng.bit_generator.state
            # What no file can hold is refused now, not at the end.
            self._write(found, only_try=True)
            self.prepared, self.after = found
            self._write_if_due()
        rng.bit_generator.state = self.after
        return self.prepared

    def begin(self) -> Run | None:
        self.start, self.stage = self.start + 1, 0
        return self.runs.get(str(self.start))

    def end(self, run: Run) -> None:
        if run.converged and not run.stopped:
            own = f"{self.start}."
            others = {n: other for n, other in self.runs.items() if not n.startswith(own)}
            self.runs = _without_spare_factors({**others, str(self.start): run})
            self._write_if_due()

    def resume(self) -> Run | None:
        name = f"{self.start}.{self.stage}"
        self.stage += 1
        if name != self.name:
            self.name, self.current = name, None
        return self.current or self.runs.get(name)

    def reached(self, run: Run) -> None:
        self.current = replace(run, stopped=False)  # a fit that is continued wants to go on
        self._write_if_due()

    def ended(self, run: Run) -> None:
        if not run.stopped:
            self.runs, self.current = {**self.runs, self.name: run}, None
            self._write_if_due()


def check_can_be_kept(fit_data: FitData) -> None:
    """Raise for kernels, names and labels of a fit that no checkpoint can hold."""
    model_file.check_kernels(fit_data.kernels, _OTHERWISE)
    names = {
        name: {"columns": t.columns, "classes": t.classes} for name, t in fit_data.tables.items()
    }
    to_json({"views": names}, _OTHERWISE)


def _without_spare_factors(runs: dict[str, Run]) -> dict[str, Run]:
    """The runs, with the factors of samples only where they may be needed.

    Of starts that are over, the best may be the result.
    """
    over = {name: run for name, run in runs.items() if "." not in name}
    best = max(over, key=lambda name: over[name].lower_bound)
    spare = {n: replace(r, Z=np.empty((0, r.n_factors))) for n, r in over.items() if n != best}
    return runs | spare


def _read_content(path: archive.StrPath) -> dict[str, Any]:
    try:
        content = model_file.read_object(path, "checkpoint")
        views = [name for name, view in content["prepared"].items() if not view.role.output]
        runs, current = content["runs"], content["current"]
        content["runs"] = {name: _run_from_dict(run, views) for name, run in runs.items()}
        content["current"] = current and _run_from_dict(current, views)
        names = ("key", "prepared", "after", "runs", "name", "current")
        return {name: content[name] for name in names}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise archive.damage_of_file(path, "it is not a checkpoint as kofa writes it") from error


# ---------------------------------------------------------------- runs as plain values


def _run_to_dict(run: Run) -> dict[str, Any]:
    """The fields of a run, its iterations as arrays, its state in the order of the views."""
    history = {
        "terms": list(run.history[0].terms),
        "values": np.array([list(i.terms.values()) for i in run.history]),
        "bounds": np.array([i.lower_bound for i in run.history]),
        "factors": np.array([i.n_factors for i in run.history]),
        "pruned": np.array([*(i.factors_changed for i in run.history[1:]), run.pruned]),
    }
    held = {field.name: getattr(run, field.name) for field in fields(run)}
    held["Z"] = _factors_to_keep(run)
    trail = run.trail.complete()
    return held | {"state": tuple(complete(run.state).values()), "history": history, "trail": trail}


def _factors_to_keep(run: Run) -> Array:
    """Those of the samples, which may be elsewhere, or none if they follow from the state."""
    follows = isinstance(run.Z, Affine)
    return np.empty((0, run.n_factors)) if follows else np.asarray(run.Z)


def _run_from_dict(values: Mapping[str, Any], views: Sequence[str]) -> Run:
    """`views` are those that a run is about: the inputs."""
    state = dict(zip(views, values["state"], strict=True))
    table = values["history"]
    changed = [False, *table["pruned"].tolist()]
    pruned = changed.pop()
    columns = (*(table[name].tolist() for name in ("bounds", "values", "factors")), changed)
    history = tuple(
        Iteration(n + 1, bound, dict(zip(table["terms"], terms, strict=True)), factors, other)
        for n, (bound, terms, factors, other) in enumerate(zip(*columns, strict=True))
    )
    trail = Trail(**values.get("trail", {}))  # files of earlier versions have none
    made = {"state": state, "history": history, "trail": trail, "pruned": pruned}
    return Run(**{**values, **made})


# ---------------------------------------------------------------- the key of a fit


def key_of_fit(*things: Any) -> str:
    """The same for equal data and declarations, in any process."""
    digest = hashlib.blake2b(digest_size=16)
    for thing in things:
        _add(digest, thing)
    return digest.hexdigest()


def _kind(thing: Any) -> str:
    # A range of pandas comes back from a file as an index of the same numbers.
    return "index" if hasattr(thing, "get_indexer") else type(thing).__name__


def _add(digest: Any, thing: Any) -> None:
    if isinstance(thing, Table):
        # Of a table the values count, not the types in which they came, this time.
        classes = None if thing.classes is None else thing.classes.tolist()
        thing = (thing.name, thing.values, thing.samples, thing.columns, classes)
    digest.update(f"|{_kind(thing)}:".encode())
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        digest.update(f"{thing.dtype.str}{thing.shape}".encode())
        digest.update(np.ascontiguousarray(thing).data)
    elif isinstance(thing, Stored):
        for block in blocks(thing):
            digest.update(block.data)
    elif is_dataclass(thing) and not isinstance(thing, type):
        held = {field.name: getattr(thing, field.name) for field in fields(thing)}
        # Views had more options once: with these a fit that has begun before can still go on.
        _add(digest, held | OLD_NAMES if isinstance(thing, View) else held)
    elif isinstance(thing, Mapping):
        _add(digest, list(thing.items()))
    elif isinstance(thing, list | tuple):
        for part in thing:
            _add(digest, part)
    elif hasattr(thing, "tolist"):  # an index of any type, an array of objects, a number of numpy's
        _add(digest, thing.tolist())
    elif callable(thing):  # its address differs from process to process
        digest.update(getattr(thing, "__qualname__", "").encode())
    else:
        digest.update(repr(thing).encode())


def journal(
    parameters: Parameters, fit_data: FitData, rng: np.random.Generator, resume: bool = False
) -> Journal:
    """What keeps the state of the fit, in a checkpoint or not at all."""
    if parameters.checkpoint is None:
        if flag("resume", resume):
            what, cure = "expected a file to resume from", "name it as checkpoint"
            raise DeclarationError(what, option="checkpoint", cure=cure)
        return Journal()
    check_can_be_kept(fit_data)
    decisive = ("views", "outputs", "n_factors", "n_init", "tol")
    settings = [getattr(parameters, option) for option in decisive]
    if parameters.dtype != "float64":
        settings.append(parameters.dtype)
    if fit_data.outputs:  # before, n_factors limited what was looked at of the inputs
        settings.append("predictive factors")
    key = key_of_fit(settings, rng.bit_generator.state, dict(fit_data.tables))
    return Checkpoint(parameters.checkpoint, float(parameters.checkpoint_every), key, resume)
