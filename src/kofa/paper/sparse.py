"""Relevance vectors: how few rows one can do with."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kofa.paper import pictures
from kofa.paper.data import paper
from kofa.paper.experiment import Experiment, Picture, Shown, remarks
from kofa.paper.regression import (
    Results,
    Settings,
    baseline_settings,
    figures,
    mean,
    our_settings,
    quoted,
    tasks_of,
)
from kofa.paper.tables import Table, spread
from kofa.paper.tasks import Options, Task

# ---------------------------------------------------------------- table 3: relevance vectors

SPARSE: dict[str, Settings] = {
    "KSSHIBA": {},
    "KSSHIBA, inductive": {"semi_supervised": False},
    "Sparse KSSHIBA": {"choose": "evidence"},
    "Sparse KSSHIBA, inductive": {"choose": "evidence", "semi_supervised": False},
}


def table3_methods(options: Options) -> dict[str, tuple[str, Settings]]:
    """Plain and sparse, with an RBF kernel; as published, the sparse one is so by double ARD."""
    methods = {}
    for way in options.ways:
        for name, more in SPARSE.items():
            settings = our_settings(way, **more)
            if "choose" in settings and way.as_published:
                settings["choose"] = "ard"
            methods[way.named(name)] = ("factors", settings)
    return {name: methods[name] for name in options.asked(methods)}


def sets_of(options: Options) -> list[str]:
    return options.chosen(paper()["reported"]["share"])


def table3_tasks(options: Options) -> list[Task]:
    return tasks_of("table3", sets_of(options), table3_methods(options), options)


def show_table3(results: Results, options: Options) -> Shown:
    """R², factors and share of relevance vectors by set, the paper's below."""
    sets, rows = sets_of(options), []
    for method in table3_methods(options):
        found = {k: [figures(results, s, method, k) for s in sets] for k in _FIGURES}
        rows.append([method, "R²", *map(spread, found["r2"])])
        rows.append([method, "factors", *map(mean, found["factors"])])
        rows.append([method, "% kept", *(mean(v, scale=100.0) for v in found["share"])])
    reported = paper()["reported"]
    for method in ("KSSHIBA", "Sparse KSSHIBA"):
        values = reported["regression"][method]
        rows.append([f"{method}, the paper's figure", "R²", *(quoted(values, s) for s in sets)])
    shares = (quoted(reported["share"], s, 1) for s in sets)
    rows.append(["Sparse KSSHIBA, the paper's figure", "% kept", *shares])
    notes = [
        "R² on test rows, mean ± standard deviation over folds; means of factors and of % kept.",
        "% kept: rows that others are compared with, of all that may be: those with targets"
        + (", and as published all others." if options.as_published else "."),
        "Rows called inductive have not seen the test rows in fit, the others have, without "
        "their targets. The kernel is RBF.",
        *remarks("table3", options),
    ]
    return Shown([Table("table3", "Relevance vectors", ["method", "", *sets], rows, notes)])


_FIGURES = ("r2", "factors", "share")

# ---------------------------------------------------------------- figure 2: R² against share

EVIDENCE, RANDOM = "KSSHIBA, by evidence", "KSSHIBA, random"
ARD = "KSSHIBA, by double ARD, as published"
CURVES: dict[str, tuple[str, Settings]] = {
    EVIDENCE: ("factors", {"choose": "evidence"}),
    ARD: ("factors", {"choose": "ard"}),
    RANDOM: ("factors", {"choose": "random"}),
    "KPCA + LR, Nyström": ("kpca", {}),
    "KCCA + LR, Nyström": ("kcca_lr", {}),
}


def shares(options: Options) -> list[float]:
    """Of the training rows that may be landmarks."""
    return list(paper()["shares"]["quick" if options.quick else "landmarks"])


def curves(options: Options) -> list[str]:
    """Evidence chooses in ours; as published, double ARD, which takes no share."""
    return options.asked(name for name in CURVES if options.as_published or name != ARD)


def figure2_tasks(options: Options) -> list[Task]:
    """Each curve at each share, on the first folds: there are many points."""
    tasks = []
    for curve in curves(options):
        method, more = CURVES[curve]
        for share in [None] if curve == ARD else shares(options):
            told = more if share is None else {**more, "share": share}
            if method == "factors":
                way = replace(options, as_published=curve == ARD)
                settings = our_settings(way, semi_supervised=curve == ARD, **told)
            else:
                settings = {**baseline_settings(method, options), **told}
            name = curve if share is None else f"{curve}, {share:.0%}"
            these = {name: (method, settings)}
            found = tasks_of("figure2", sets_of(options), these, options)
            tasks += [replace(task, curve=curve) for task in found]
    return [task for task in tasks if task.fold < paper()["shares"]["folds"]]


def curve_points(
    results: Results, dataset: str, curve: str, options: Options
) -> tuple[list[float], list[float]]:
    """Shares in per cent, as they came out, and R²: means over folds."""
    x, y = [], []
    for share in [None] if curve == ARD else shares(options):
        name = curve if share is None else f"{curve}, {share:.0%}"
        kept, r2 = (figures(results, dataset, name, what) for what in ("share", "r2"))
        if r2:
            x.append(100.0 * float(np.mean(kept)))
            y.append(float(np.mean(r2)))
    return x, y


def show_figure2(results: Results, options: Options) -> Shown:
    """The curves as a picture, and as numbers."""
    rows = [
        [dataset, curve, f"{x:.1f}", f"{y:.3f}"]
        for dataset in sets_of(options)
        for curve in curves(options)
        for x, y in zip(*curve_points(results, dataset, curve, options), strict=True)
    ]
    title = "R² against the share of rows that others are compared with"
    header = ["set", "landmarks", "% of rows", "R²"]
    folds = len({task.fold for task in results})
    notes = [f"Mean of the first {folds} of {options.folds} folds; test rows are unseen in fit."]
    if ARD in curves(options):
        notes.append(f"{ARD}: test rows are seen without targets; the share is of all rows.")
    notes += remarks("figure2", options)
    table = Table("figure2", title, header, rows, notes)
    return Shown([table], [Picture("figure2", partial(draw_curves, results, options))])


def draw_curves(results: Results, options: Options, path: Path) -> None:
    """A panel for each set, the paper's relevance vectors as a cross."""
    sets = sets_of(options)
    columns = min(4, len(sets))
    rows = -(-len(sets) // columns)
    width = pictures.PAGE if columns > 2 else pictures.COLUMN
    with pictures.figure(path, width, 0.6 + 1.55 * rows) as figure:
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for dataset, axes in zip(sets, panels, strict=False):
            _draw_panel(axes, results, dataset, options)
        for axes in panels[len(sets) :]:
            axes.set_visible(False)
        figure.supxlabel("share of training rows kept as landmarks (%)", fontsize=8)
        figure.supylabel("R² on test rows", fontsize=8)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3 if columns > 2 else 2)


def _draw_panel(axes: Any, results: Results, dataset: str, options: Options) -> None:
    reported, seen = paper()["reported"], []
    for curve, colour, marker in zip(CURVES, pictures.COLOURS, pictures.MARKERS, strict=False):
        x, y = (
            curve_points(results, dataset, curve, options) if curve in curves(options) else ([], [])
        )
        if x:
            axes.plot(x, y, color=colour, marker=marker, label=curve)
            seen += y
    there = reported["share"][dataset], reported["regression"]["Sparse KSSHIBA"][dataset]
    label = "Sparse KSSHIBA, paper"
    axes.plot(*there, "x", color="black", markersize=6, markeredgewidth=1.5, label=label)
    seen.append(there[1])
    # A handful of landmarks can predict far worse than the mean: that is below the frame.
    low, high = max(min(seen), -0.05), max(seen)
    room = 0.06 * (high - low) + 0.005
    axes.set_ylim(low - room, high + room)
    axes.set_xscale("log")
    axes.set_xlim(0.7, 140.0)
    axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    axes.set_title(dataset)


EXPERIMENTS = [
    Experiment("table3", table3_tasks, show_table3),
    Experiment("figure2", figure2_tasks, show_figure2),
]
