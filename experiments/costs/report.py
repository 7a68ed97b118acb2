"""What a report of very many samples costs: bytes, and time in a browser."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

import kofa
from experiments import browser
from experiments.experiment import Mark, Measurement, Row
from kofa.preparation.fitted import FitSamples

N, COLUMNS, VIEWS, FACTORS = 100_000, 2_000, 3, 30
COLOURS = 18  # covariates: as many as columns of the views would be
_FITTED = 1_000  # rows of the fit; the others are samples of the same factors
_SIZE = f"report of {N:,} samples × {FACTORS} factors × {VIEWS} views of {COLUMNS:,} columns"


@cache
def model() -> kofa.FactorModel:
    """A model that keeps many samples; it was fitted to some of them, for a few iterations."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(_FITTED, FACTORS))
    data = {
        f"view{m}": z @ rng.normal(size=(FACTORS, COLUMNS)) + rng.normal(size=(_FITTED, COLUMNS))
        for m in range(VIEWS)
    }
    found = kofa.FactorModel(n_factors=FACTORS, max_iter=3, tol=1e9).fit(data)
    kept = FitSamples(
        np.array([f"sample {i}" for i in range(N)], dtype=object),
        rng.normal(size=(N, found.n_factors_)),
        np.full((N, VIEWS), COLUMNS),
    )
    found._remember(replace(found._fitted, samples=kept))
    return found


def write(path: Path) -> float:
    """Write the report; the seconds that it takes."""
    import pandas as pd

    rng = np.random.default_rng(1)
    names = [f"sample {i}" for i in range(N)]
    known = pd.DataFrame(rng.normal(size=(N, COLOURS - 1)), names).add_prefix("covariate")
    known["site"] = np.array(["north", "south", "east", "west"])[rng.integers(0, 4, N)]
    began = perf_counter()
    model().report(path, covariates=known)
    return perf_counter() - began


# What comes after the first picture waits, so that it is not counted.
_WAIT = """
window.waiting = [];
const later = window.setTimeout;
window.setTimeout = (task, ...rest) =>
  window.waiting && task.name === "work" ? window.waiting.push(task) : later(task, ...rest);
"""
_GO_ON = "() => { const tasks = waiting; waiting = null; tasks.forEach((task) => task()); }"


@dataclass(frozen=True)
class Opened:
    """A page in a browser, with what it took until its first picture."""

    page: Any
    cpu: Callable[[], float]
    seconds: float  # of processors: those on the clock depend on what else the machine does
    by_clock: float


@contextmanager
def opened() -> Iterator[Opened]:
    """The page in a browser, once all of it is drawn."""
    with TemporaryDirectory() as folder, browser.browser() as running:
        path = Path(folder) / "report.html"
        write(path)
        page = running.new_page(viewport={"width": 1440, "height": 900})
        page.add_init_script(_WAIT)
        cpu = browser.processor_time(running)
        began, used = perf_counter(), cpu()
        page.goto(path.as_uri(), wait_until="commit")
        page.wait_for_selector("#scatter .point", state="attached")
        seconds, by_clock = cpu() - used, perf_counter() - began
        page.evaluate(_GO_ON)
        page.wait_for_selector("html[data-ready]", timeout=120_000)
        yield Opened(page, cpu, seconds, by_clock)


def size() -> Row:
    """The size of the file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        seconds = write(path)
        figure = os.path.getsize(path) / 1e6
    return Row(_SIZE, figure, Mark(high=30.0), f"{figure:.1f} MB, written in {seconds:.1f} s")


def first_picture() -> Row:
    """How long until the samples are seen."""
    what, mark = f"first picture of a {_SIZE}", Mark(high=5.0)
    if browser.found() is None:
        return Row(what, None, mark, f"skipped ({browser.INSTALL})")
    with opened() as found:
        text = f"{found.seconds:.1f} s of the processor ({found.by_clock:.1f} s on the clock)"
        return Row(what, found.seconds, mark, text)


def lasso() -> Row:
    """How long it takes from the end of a lasso until its samples stand in the table."""
    what, mark = f"lasso of 10,000 points in a {_SIZE}", Mark(high=1.0)
    if browser.found() is None:
        return Row(what, None, mark, f"skipped ({browser.INSTALL})")
    with opened() as found:
        path = browser.around(found.page, "#scatter", 0.32, 0.08, 0.44, 0.92)
        browser.drag(found.page, path[:-1])
        began, used = perf_counter(), found.cpu()
        browser.drop(found.page, path[-1])
        found.page.wait_for_selector("#scatter caption:has-text('Selected')")
        seconds, by_clock = found.cpu() - used, perf_counter() - began
        n = found.page.evaluate("scatter.selected.size")
    text = f"{seconds:.2f} s of the processor ({by_clock:.2f} s on the clock) for {n:,} samples"
    return Row(what, seconds, mark, text)


EXPERIMENTS: dict[str, Measurement] = {
    "report-large": size,
    "report-first-picture": first_picture,
    "report-lasso": lasso,
}
