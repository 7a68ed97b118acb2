"""What the terminal shows. Results go to stdout; progress, notes and errors to stderr."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

_LONG = ("kernel", "file")  # columns of tables that may take several lines
_LINE_EVERY = 2.0  # seconds between lines of progress where there is no terminal


class Screen:
    """Where a command shows things, as loudly as the user wants."""

    def __init__(self, quiet: bool = False, progress: bool = False) -> None:
        plain: dict[str, Any] = {"highlight": False, "emoji": False}  # :a: is not a picture here
        self.out, self.err = Console(**plain), Console(stderr=True, **plain)
        self.quiet, self.progress = quiet, progress

    def error(self, text: str) -> None:
        self._line("bold red", "error", text)

    def warn(self, text: str) -> None:
        if not self.quiet:
            self._line("yellow", "warning", text)

    def note(self, text: str) -> None:
        if not self.quiet:
            self.err.print(escape(text), soft_wrap=True)

    def show(self, *things: Any) -> None:
        """Print results, text or tables."""
        for thing in things if not self.quiet else ():
            self.out.print(escape(thing) if isinstance(thing, str) else thing, soft_wrap=True)

    def _line(self, style: str, word: str, text: str) -> None:
        one_line = " ".join(text.split("\n")).rstrip(".")
        self.err.print(f"[{style}]{word}:[/] {escape(one_line)}", soft_wrap=True)

    @contextmanager
    def warnings_in_a_line(self) -> Iterator[None]:
        """Show warnings meant for the user without the place in the code."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)  # ConvergenceWarning is one
            warnings.showwarning = lambda message, *_, **__: self.warn(str(message))
            yield

    def watch(self, starts: int = 1) -> Watch:
        """A callback for a fit that shows how far it is."""
        return Watch(self, starts)


class Watch:
    """Counts iterations and shows them: a live line on a terminal, else a line now and then."""

    def __init__(self, screen: Screen, starts: int) -> None:
        self.screen, self.starts, self.seen, self.place = screen, starts, 0, ""
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
    for name in columns:
        justify: Literal["right", "left"] = "right" if name in numbers else "left"
        made.add_column(name, justify=justify, overflow="fold", no_wrap=name not in _LONG)
    for row in rows:
        made.add_row(*(escape(str(cell)) for cell in row))
    return made
