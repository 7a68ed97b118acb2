"""Results on disk: a run that was broken off goes on where it stopped.

A result is kept under all that it depends on, the sources of kofa included. What a baseline of
another package gives is kept under these too: it may use kernels of kofa.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

import kofa
from experiments.data import read_npz
from experiments.tasks import Result, Task
from kofa.errors import FileError
from kofa.storage.atomic import atomic_write


@cache
def source_hash() -> str:
    """SHA-256 of the sources of the kofa that is imported, with their names."""
    folder, digest = Path(kofa.__file__).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def file_name(task: Task) -> str:
    """A name of its own for everything that would give another result."""
    settings = json.dumps(dict(task.settings), sort_keys=True)
    key = "\n".join([task.family, task.dataset, str(task.fold), settings, source_hash()])
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return f"{task.family}-{task.dataset}-{task.fold}-{digest}.npz"


@dataclass(frozen=True, order=True)
class Origin:
    """When and with what a result was worked out."""

    day: str
    tools: str

    @classmethod
    def now(cls) -> Origin:
        tools = (
            f"kofa {kofa.__version__}, numpy {np.__version__}, scipy {scipy.__version__}, "
            f"scikit-learn {sklearn.__version__}, Python {platform.python_version()}, "
            f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
        )
        return cls(datetime.now(UTC).date().isoformat(), tools)


class Store:
    """A folder of results, one file each; and where those come from that went through it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.origins: dict[Task, Origin] = {}

    def read(self, task: Task) -> Result | None:
        """What the task gave, if it is there and whole."""
        path = self.folder / file_name(task)
        if not path.exists():
            return None
        try:
            arrays = read_npz(path)
            self.origins[task] = Origin(*arrays.pop("origin").tolist())
        except (FileError, KeyError):
            return None
        return {name: float(v) if v.ndim == 0 else v for name, v in arrays.items()}

    def write(self, task: Task, result: Result) -> None:
        origin = self.origins[task] = Origin.now()
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.folder / file_name(task)) as part, part.open("wb") as file:
            arrays: dict[str, Any] = {
                name: np.asarray(v, dtype=float) for name, v in result.items()
            }
            np.savez(file, origin=np.array([origin.day, origin.tools]), **arrays)
