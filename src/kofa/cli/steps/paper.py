"""`kofa paper`: the experiments of the paper."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from kofa.cli import Stopped, UsageError
from kofa.cli.display import Screen, counted
from kofa.errors import DeclarationError
from kofa.files import new_folder

if TYPE_CHECKING:
    from kofa.paper.tasks import Options, Task


def reproduce(names: list[str], options: Options, folder: Path, jobs: int, screen: Screen) -> None:
    """Run experiments and show their tables."""
    from kofa.paper import reproduce as experiments

    try:
        chosen = experiments.chosen(names)
        experiments.check(chosen, options)
    except DeclarationError as error:
        raise error.as_error(UsageError) from None
    began = time.monotonic()

    def show(task: Task, done: int, total: int) -> None:
        screen.note(f"{done}/{total}  {task.name}  ({time.monotonic() - began:.0f} s)")

    try:
        with new_folder(folder):
            written = experiments.reproduce(chosen, options, folder, jobs, show)
    except KeyboardInterrupt:
        what = f"stopped; what is done is in {folder}, and the same command goes on from there"
        raise Stopped(what) from None
    for path in written:
        if path.suffix == ".md":
            screen.show(path.read_text(encoding="utf-8"))
    screen.note(f"{counted(len(written), 'file')} in {folder}")
