"""What a user declares of a model, checked when it is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from kofa.checks import check_n_jobs, check_number, check_word, flag, generator, require
from kofa.data.dask_tables import is_client
from kofa.errors import DeclarationError
from kofa.inference.run import Callback
from kofa.views import View, check_outputs, check_views

ENGINES = ("auto", "memory", "disk")
DTYPES = ("float64", "float32")
_FOLLOWING = {
    "callback": "a callback, which may stop them,",
    "checkpoint": "a checkpoint, which records one at a time,",
    "engine": "a Dask cluster as engine, whose workers share each pass,",
}


@dataclass(frozen=True, eq=False)
class Parameters:
    """The parameters of a `FactorModel`, as its constructor stores them."""

    views: Mapping[str, Any] | None
    n_factors: int | None
    outputs: Sequence[str] | None
    n_init: int
    max_iter: int
    tol: float | None
    random_state: Any
    callback: Callback | None
    checkpoint: str | PathLike[str] | None
    checkpoint_every: float
    progress: bool
    engine: Any = "auto"
    block_rows: Any = "auto"
    dtype: Any = "float64"
    n_jobs: int | None = None
    as_published: bool = False

    def check(self, data: Any) -> dict[str, View]:
        """The views, checked with all other parameters."""
        check_number("n_factors", self.n_factors, [None], whole=True, least=1)
        check_number("n_init", self.n_init, whole=True, least=1)
        check_number("max_iter", self.max_iter, whole=True, least=1)
        check_number("tol", self.tol, [None], least=0)
        check_number("checkpoint_every", self.checkpoint_every, least=0)
        named = self.checkpoint is None or isinstance(self.checkpoint, str | PathLike)
        require(named, "checkpoint", "the path of a file, or None", self.checkpoint)
        called = self.callback is None or callable(self.callback)
        require(called, "callback", "a function, or None", self.callback)
        flag("progress", self.progress)
        _check_engine(self.engine)
        check_number("block_rows", self.block_rows, ["auto"], whole=True, least=1)
        check_word("dtype", self.dtype, DTYPES)
        check_n_jobs(self.n_jobs)
        self._check_side_by_side()
        check_word("as_published", self.as_published, (True, False))
        self._check_published()
        views = check_views(self.views, data)
        check_outputs(self.outputs, views)
        return views

    def _check_published(self) -> None:
        """Raise for what a fit of the paper's own model does not do."""
        given = {
            "checkpoint": self.checkpoint is not None,
            "engine": is_client(self.engine) or self.engine == "disk",
            "n_jobs": self.n_jobs not in (None, 1),
        }
        option = next((option for option, asked in given.items() if asked), None)
        if self.as_published and option is not None:
            what = (
                "the paper's own model is fitted in memory, one start after the other, and takes "
            )
            what += f"no {option}"
            raise DeclarationError(what, option=option, cure=f"leave out {option}, or as_published")

    @property
    def _one_by_one(self) -> str | None:
        """The option that starts have to follow each other for, if any."""
        given = {
            "callback": self.callback is not None,
            "checkpoint": self.checkpoint is not None,
            "engine": is_client(self.engine),
        }
        return next((option for option, asks in given.items() if asks), None)

    def _check_side_by_side(self) -> None:
        """Raise where several starts are to run side by side and cannot."""
        option = self._one_by_one
        if self.n_jobs not in (None, 1) and self.n_init > 1 and option is not None:
            starts = f"starts with {_FOLLOWING[option]} have to follow each other"
            what = f"{starts}, but n_jobs={self.n_jobs} runs some side by side"
            cure = f"leave out n_jobs, or {option}"
            raise DeclarationError(what, option="n_jobs", cure=cure)

    @property
    def workers(self) -> int | None:
        """How many starts may run side by side, as joblib counts; None is as it was told."""
        return self.n_jobs if self._one_by_one is None else 1

    def generator(self) -> np.random.Generator:
        """The source of everything random."""
        return generator(self.random_state)


def _check_engine(engine: Any) -> None:
    """One of the words, or a client that can be asked now."""
    if not is_client(engine):
        check_word("engine", engine, ENGINES)
    elif engine.asynchronous:
        what, cure = "expected a client that waits for results", "make it without asynchronous"
        raise DeclarationError(what, got=engine, option="engine", cure=cure)
    elif engine.status != "running":
        what, cure = "the client has no scheduler any more", "connect a new distributed.Client"
        raise DeclarationError(what, got=engine, option="engine", cure=cure)
