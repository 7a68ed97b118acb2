"""What the terminal shows. Results go to stdout; progress, notes and errors to stderr."""

from __future__ import annotations

import codecs
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from kofa.cli import Stopped
from kofa.errors import FileError, visible

_LONG = ("kernel", "file")  # columns of tables that may take several lines
_WIDE = 40  # characters of a cell in one line
_LINE_EVERY = 2.0  # seconds between lines of progress where there is no terminal
_LONGEST = 2000  # characters of an error or a warning
_PLAIN = {"–": "-", "−": "-", "…": "...", "→": "->", "’": "'"}


def _without_signs(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that a stream cannot encode."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(_PLAIN.get(c, c.encode("unicode_escape").decode()) for c in text), error.end


codecs.register_error("kofa.display", _without_signs)


def take_any_text() -> None:
    """Show text in every locale: a sign that it lacks must not end a command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="kofa.display")


class Screen:
    """Shows results, progress, notes and errors; with `quiet` only errors."""

    def __init__(self, quiet: bool = False, progress: bool = False) -> None:
        plain: dict[str, Any] = {"highlight": False, "emoji": False}  # :a: is not a picture here
        self.out, self.err = Console(**plain), Console(stderr=True, **plain)
        self.quiet, self.progress = quiet, progress

    @property
    def width(self) -> int:
        """The characters of a line."""
        return self.out.width

    def error(self, text: str) -> None:
        self._line("bold red", "error", text)

    def warn(self, text: str) -> None:
        if not self.quiet:
            self._line("yellow", "warning", text)

    def note(self, text: str) -> None:
        if not self.quiet:
            self._print(escape(visible(text, lines=True)))

    def show(self, *things: Any) -> None:
        """Print results, text or tables."""
        if not self.quiet and sys.stdout is None:
            raise FileError("stdout is closed, so nothing can be shown")
        for thing in things if not self.quiet else ():
            shown = escape(visible(thing, lines=True)) if isinstance(thing, str) else thing
            self.out.print(shown, soft_wrap=True)

    def report(self, *things: Any) -> None:
        """Print what was written to files; if stdout fails, the command does not."""
        try:
            self.show(*things)
        except (BrokenPipeError, SystemExit):  # rich ends the program when a pipe breaks
            _give_up_stdout()
        except OSError as error:
            _give_up_stdout()
            self.warn(f"stdout cannot be written: {error.strerror or error}; the files are written")
        except FileError:
            return
        except KeyboardInterrupt:
            raise Stopped("stopped; the files are written") from None

    def _line(self, style: str, word: str, text: str) -> None:
        line = visible(" ".join(text.split("\n"))).rstrip(".")
        if len(line) > _LONGEST:
            line = f"{line[: _LONGEST // 2]} … {line[-_LONGEST // 2 :]}"
        self._print(f"[{style}]{word}:[/] {escape(line)}")

    def _print(self, text: str) -> None:
        with suppress(OSError):  # where stderr fails, the exit code still counts
            self.err.print(text, soft_wrap=True)

    @contextmanager
    def warnings_in_a_line(self) -> Iterator[None]:
        """Show warnings meant for the user without the place in the code."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)  # ConvergenceWarning is one
            warnings.showwarning = lambda message, *_, **__: self.warn(str(message))
            yield

    @contextmanager
    def busy(self, text: str) -> Iterator[None]:
        """A line with the time that something takes, on a terminal."""
        if self.quiet or not self.err.is_terminal:
            yield
            return
        columns = (SpinnerColumn(), TextColumn(escape(text)), TimeElapsedColumn())
        with Progress(*columns, console=self.err, transient=True) as progress:
            progress.add_task("")
            yield

    def watch(self, starts: int = 1, first: str = "") -> Watch:
        """A callback for a fit that shows how far it is, and a note before its first iteration."""
        return Watch(self, starts, first)


class Watch:
    """Counts iterations and shows them: a live line on a terminal, else a line now and then."""

    def __init__(self, screen: Screen, starts: int, first: str) -> None:
        self.screen, self.starts, self.seen, self.place = screen, starts, 0, ""
        self.first = first  # not shown where an error comes before the first iteration
        terminal = screen.err.is_terminal
        self.lines = screen.progress and not terminal and not screen.quiet
        self.live: Any = None
        if terminal and not screen.quiet:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            self.live = Progress(*columns, console=screen.err, transient=True)
            self.task = self.live.add_task("preparing the views")
        self.last = time.monotonic()

    def __enter__(self) -> Self:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def __call__(self, iteration: Any) -> None:
        self.seen += 1
        if self.seen == 1 and self.first:
            self.screen.note(self.first)
        which = f"start {iteration.start + 1} of {self.starts}, " if self.starts > 1 else ""
        self.place = f"{which}{counted(iteration.n_iter, 'iteration')}"
        text = (
            f"{which}iteration {iteration.n_iter}: bound {iteration.lower_bound:.6g}, "
            f"{counted(iteration.n_factors, 'factor')}"
        )
        if self.live is not None:
            self.live.update(self.task, description=text)
        elif self.lines and (self.seen == 1 or time.monotonic() - self.last > _LINE_EVERY):
            self.last = time.monotonic()
            self.screen.note(text)


def _give_up_stdout() -> None:
    """Discard what is still to be written, or Python would fail again at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def counted(n: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "view"), counted(2, "view")
    ('1 view', '2 views')
    """
    return f"{n} {what}{'' if n == 1 else 's'}"


def table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[str]
) -> Table:
    """A plain table; the columns named in `numbers` are aligned to the right."""
    made = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    cells = [[visible(str(cell)) for cell in row] for row in rows]
    for place, name in enumerate(columns):
        justify: Literal["right", "left"] = "right" if name in numbers else "left"
        fold = name in _LONG or any(len(row[place]) > _WIDE for row in cells)
        header = escape(visible(name))
        made.add_column(header, justify=justify, overflow="fold", no_wrap=not fold)
    for row in cells:
        made.add_row(*map(escape, row))
    return made
