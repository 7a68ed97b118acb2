"""Writing files: what may be replaced, and Ctrl-C while a file is written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kofa.cli import Stopped
from kofa.errors import FileError
from kofa.files import same_file


@contextmanager
def until_written(what: object) -> Iterator[None]:
    """Ctrl-C waits until something is written, or it would leave pieces; a second one does not."""
    pressed = False

    def wait(*_: object) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, before)

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background
        yield
        return
    before = signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise Stopped(f"stopped; {what} is written")


def check_not_read(files: Iterable[Path], read: Iterable[Path], what: str) -> None:
    """Raise for a file to be written that is also read."""
    read = list(read)
    for file in files:
        if any(same_file(file, one) for one in read):
            raise FileError("this is a file that is read", file, cure=f"choose another {what}")
