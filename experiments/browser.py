"""A Chromium on the PATH, driven by playwright, for pages from the disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Path = list[tuple[float, float]]  # of the mouse
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = (
    "there is no Chromium on the PATH; install one, such as by `apt-get install chromium`, `brew "
    "install --cask chromium` or `dnf install chromium`"
)
# It needs no network, and must not ask for any by itself.
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def found() -> str | None:
    """Where the program is."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser() -> Iterator[Any]:
    """A headless browser with a new, empty profile."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=found(), headless=True, args=list(_FLAGS)
        )
        try:
            yield running
        finally:
            running.close()


def processor_time(running: Any) -> Callable[[], float]:
    """Asks for the seconds that all processes of the browser have computed."""
    session = running.new_browser_cdp_session()

    def seconds() -> float:
        found = session.send("SystemInfo.getProcessInfo")["processInfo"]
        return float(sum(one["cpuTime"] for one in found))

    return seconds


# ---------------------------------------------------------------- a lasso, as a user draws it


def around(page: Any, host: str, left: float, top: float, right: float, bottom: float) -> Path:
    """The corners of a rectangle, in shares of the area in which points are drawn."""
    page.locator(host).scroll_into_view_if_needed()
    box = page.locator(f"{host} .nsewdrag").bounding_box()
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    return [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]


def drag(page: Any, path: Path) -> None:
    """Press the mouse at the first corner and move along the others."""
    page.mouse.move(*path[0])
    page.mouse.down()
    for corner in path[1:]:
        page.mouse.move(*corner, steps=4)


def drop(page: Any, corner: tuple[float, float]) -> None:
    page.mouse.move(*corner, steps=4)
    page.mouse.up()


def main() -> int:
    """Whether there is a browser, and how to get one."""
    where = found()
    print(where or f"error: {INSTALL}")
    return 0 if where else 1


if __name__ == "__main__":
    raise SystemExit(main())
