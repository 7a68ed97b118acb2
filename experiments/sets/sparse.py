"""Relevance vectors: how few rows one can do with."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from experiments import plots
from experiments.experiment import (
    Benchmark,
    Experiment,
    Mark,
    Picture,
    Shown,
    Table,
    signed_range,
    spread,
)
from experiments.protocol import remarks, table
from experiments.sets.regression import (
    Settings,
    baseline_settings,
    bench_tasks,
    inductive,
    mean,
    our_settings,
    quoted,
    tasks_of,
    values,
)
from experiments.tasks import Options, Results, Task, figures

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


PAPER_SHARE: dict[str, float] = table()["reported"]["share"]  # per cent


def sets_of(options: Options) -> list[str]:
    return options.chosen(PAPER_SHARE)


def table3_tasks(options: Options) -> list[Task]:
    return tasks_of(sets_of(options), table3_methods(options), options)


def show_table3(results: Results, options: Options) -> Shown:
    """R², factors and share of relevance vectors by set, the paper's below."""
    sets, rows = sets_of(options), []
    for method in table3_methods(options):
        found = {k: [figures(results, s, method, k) for s in sets] for k in _FIGURES}
        rows.append([method, "R²", *map(spread, found["r2"])])
        rows.append([method, "factors", *map(mean, found["factors"])])
        rows.append([method, "% kept", *(mean(v, scale=100.0) for v in found["share"])])
    reported = table()["reported"]
    for method in ("KSSHIBA", "Sparse KSSHIBA"):
        values = reported["regression"][method]
        rows.append([f"{method}, the paper's figure", "R²", *(quoted(values, s) for s in sets)])
    shares = (quoted(PAPER_SHARE, s, 1) for s in sets)
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
    return list(table()["shares"]["quick" if options.quick else "landmarks"])


def curves(options: Options) -> list[str]:
    """Evidence chooses in ours; as published, double ARD, which takes no share."""
    return options.asked(name for name in CURVES if options.as_published or name != ARD)


def point_name(curve: str, share: float | None) -> str:
    return curve if share is None else f"{curve}, {share:.0%}"


def figure2_tasks(options: Options) -> list[Task]:
    """Each curve at each share, on the first folds: there are many points."""
    tasks = []
    for curve in curves(options):
        method, more = CURVES[curve]
        for share in [None] if curve == ARD else shares(options):
            given = more if share is None else {**more, "share": share}
            if method == "factors":
                way = replace(options, as_published=curve == ARD)
                settings = our_settings(way, semi_supervised=curve == ARD, **given)
            else:
                settings = {**baseline_settings(method, options), **given}
            name = point_name(curve, share)
            these = {name: (method, settings)}
            found = tasks_of(sets_of(options), these, options)
            tasks += [replace(task, curve=curve) for task in found]
    return [task for task in tasks if task.fold < table()["shares"]["folds"]]


def curve_points(
    results: Results, dataset: str, curve: str, options: Options
) -> tuple[list[float], list[float]]:
    """Shares in per cent, as they came out, and R²: means over folds."""
    x, y = [], []
    for share in [None] if curve == ARD else shares(options):
        name = point_name(curve, share)
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
    width = plots.PAGE if columns > 2 else plots.COLUMN
    with plots.figure(path, width, 0.6 + 1.55 * rows) as figure:
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
    reported, seen = table()["reported"], []
    for curve, colour, marker in zip(CURVES, plots.COLOURS, plots.MARKERS, strict=False):
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
    margin = 0.06 * (high - low) + 0.005
    axes.set_ylim(low - margin, high + margin)
    axes.set_xscale("log")
    axes.set_xlim(0.7, 140.0)
    axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    axes.set_title(dataset)


# ---------------------------------------------------------------- rows: sparse against plain

PLAIN_AND_SPARSE = {
    "plain": ("factors", inductive("rbf")),
    "sparse": ("factors", inductive("rbf", choose="evidence")),
}


def loss_summary(results: Results) -> tuple[float, str]:
    """What the relevance vectors alone do not predict."""
    plain, sparse = (values(results, name, "r2") for name in PLAIN_AND_SPARSE)
    apart = plain - sparse
    text = f"{apart.mean():+.4f} ({plain.mean():.4f} − {sparse.mean():.4f}; {signed_range(apart)})"
    return apart.mean(), text


def share_summary(results: Results) -> tuple[float, str]:
    """How many relevance vectors are kept, and what that saves."""
    plain, sparse = (
        {what: values(results, name, what) for what in ("r2", "landmarks", "per_iteration")}
        for name in PLAIN_AND_SPARSE
    )
    shares = values(results, "sparse", "share")
    kept, times = median(sparse["landmarks"] / plain["landmarks"]), ""
    # Fits whose inputs are all kernels may do without iterations.
    if 0 < len(sparse["per_iteration"]) == len(plain["per_iteration"]):
        ratio = median(sparse["per_iteration"] / plain["per_iteration"])
        times = f", {ratio:.2f} of the time per iteration"
    text = (
        f"{shares.mean():.3f} ({shares.min():.3f} to {shares.max():.3f}; "
        f"R² {sparse['r2'].mean():.4f}, plain {plain['r2'].mean():.4f}; sparse / plain: "
        f"{kept:.2f} of the landmarks{times})"
    )
    return shares.mean(), text


def sparse_rows(name: str) -> dict[str, Benchmark]:
    tasks = partial(bench_tasks, [name], PLAIN_AND_SPARSE)
    loss = f"R² of {name}, plain − sparse, RBF, 10 folds"
    share, mark = f"share of relevance vectors on {name}, 10 folds", PAPER_SHARE[name] / 100
    return {
        f"sparse-{name}": Benchmark(loss, Mark(high=0.02), tasks, loss_summary),
        f"sparse-share-{name}": Benchmark(share, Mark(high=mark), tasks, share_summary),
    }


# ---------------------------------------------------------------- rows: R² against share

SHARES = (0.05, 0.1, 0.2)
SEEDS = range(3)
OTHERS = ("random", "Nyström")  # of which the better one is to be beaten


def curve_methods() -> dict[str, tuple[str, Settings]]:
    """As many landmarks, by evidence and otherwise: the points of figure 2, with more draws."""
    nystroem = baseline_settings("kpca", Options())
    found: dict[str, tuple[str, Settings]] = {}
    for share in SHARES:
        by_evidence = inductive("rbf", choose="evidence", share=share)
        found[f"evidence {share}"] = ("factors", by_evidence)
        for seed in SEEDS:
            at_random = inductive("rbf", choose="random", share=share, seed=seed)
            found[f"random {share} {seed}"] = ("factors", at_random)
            found[f"Nyström {share} {seed}"] = ("kpca", {**nystroem, "share": share, "seed": seed})
    return found


def curve_summary(results: Results) -> tuple[float, str]:
    """The smallest lead over the better of both others."""
    leads, texts = [], []
    for share in SHARES:
        ours, kept = (values(results, f"evidence {share}", what).mean() for what in ("r2", "share"))
        random, nystroem = (
            np.mean([values(results, f"{name} {share} {seed}", "r2") for seed in SEEDS])
            for name in OTHERS
        )
        leads.append(ours - max(random, nystroem))
        texts.append(
            f"{share:.0%}: {ours:.4f} with {kept:.1%}, random {random:.4f}, Nyström {nystroem:.4f}"
        )
    return min(leads), f"{min(leads):+.4f} ({'; '.join(texts)})"


def curve_row(name: str) -> Benchmark:
    what = (
        f"R² of {name} by evidence − best of random landmarks and Nyström-KPCA + LR, "
        f"least of {', '.join(f'{share:.0%}' for share in SHARES)} landmarks, 10 folds"
    )
    tasks = partial(bench_tasks, [name], curve_methods())
    return Benchmark(what, Mark(low=0.0), tasks, curve_summary)


# ---------------------------------------------------------------- rows: landmarks before fit

CHOICES = ("random", "kmeans++", "cholesky")  # the default first
LANDMARK_SETS = ("jura", "enb", "wq")


def landmark_tasks() -> list[Task]:
    """Each way to choose a tenth of the rows; every fold has a seed of its own."""
    tasks = []
    for fold in Options().fold_numbers:
        methods = {
            how: ("factors", inductive("rbf", choose=how, share=0.1, seed=fold)) for how in CHOICES
        }
        tasks += [t for t in bench_tasks(LANDMARK_SETS, methods) if t.fold == fold]
    return tasks


def landmark_summary(results: Results) -> tuple[float, str]:
    """The default against the better of the others, mean over sets."""
    r2 = {n: [values(results, how, "r2", n).mean() for how in CHOICES] for n in LANDMARK_SETS}
    default, *others = np.mean(list(r2.values()), axis=0)
    each = "; ".join(
        f"{name}: " + ", ".join(f"{how} {one:.4f}" for how, one in zip(CHOICES, row, strict=True))
        for name, row in r2.items()
    )
    lead = float(default - max(others))
    return lead, f"{lead:+.4f} ({each})"


EXPERIMENTS: dict[str, Experiment | Benchmark] = {
    "table3": Experiment(table3_tasks, show_table3),
    "figure2": Experiment(figure2_tasks, show_figure2),
    **{key: row for name in PAPER_SHARE for key, row in sparse_rows(name).items()},
    **{f"curve-{name}": curve_row(name) for name in PAPER_SHARE},
    "landmarks": Benchmark(
        "R², landmarks at random − best other, 10 %, 10 folds, mean of sets",
        Mark(low=0.0),
        landmark_tasks,
        landmark_summary,
    ),
}
