"""Which pixels distinguish people: λ of an RBF kernel, learnt with the labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments import plots
from experiments.data import load
from experiments.experiment import Benchmark, Experiment, Mark, Picture, Shown, Table, spread
from experiments.models.classes import SEEN, Way, fit_predict
from experiments.protocol import Split, fold_settings, remarks, splits, table
from experiments.tasks import Array, Options, Result, Results, Task
from kofa.inspection.features import relevances
from kofa.kernels import RBF
from kofa.plot import feature_relevance
from kofa.views import Real

ROW = "KSSHIBA, feature relevance"
SETS = tuple(table()["faces"]["sets"])
SHARES = tuple(table()["faces"]["shares"])
DRAWN = tuple(table()["faces"]["drawn"])  # those that are compared with pixels at random
LEARNT = {ROW: "from the labels", f"{ROW}, as published": "as published, by reconstruction"}


Found = dict[str, dict[str, list[Result]]]  # folds, by way and by set


def tasks(options: Options) -> list[Task]:
    """λ, and what may be left out, by set and fold. A quick run looks at one fold of one set."""
    draws = 1 if options.quick else int(table()["faces"]["draws"])
    sets, numbers = options.chosen(SETS), range(table()["protocols"]["faces"]["folds"])
    return [
        task(how, name, fold, draws)
        for how in options.ways
        for name in (sets[:1] if options.quick else sets)
        for fold in (numbers[:1] if options.quick else numbers)
    ]


def task(how: Options, name: str, fold: int, draws: int) -> Task:
    way = Way.of(how, tol=table()["faces"]["tol"])
    asked = {"shares": SHARES, "drawn": DRAWN, "draws": draws}
    return Task(
        "faces",
        name,
        how.named(ROW),
        fold,
        partial(_of_set, name, fold, way, draws),
        {**way.settings, **fold_settings("faces"), **asked},
    )


def _of_set(name: str, fold: int, way: Way, draws: int) -> Result:
    data = load(name)
    found = masked(data.X, data.y, splits("faces", data.y)[fold], way, draws, fold)
    return {**found, "face": data.X.mean(axis=0).reshape(data.image_shape)}


def masked(
    X: Array, y: NDArray[Any], split: Split, way: Way, draws: int = 1, seed: int = 0
) -> dict[str, Any]:
    """λ from the training labels, then fits that see only some pixels; accuracies."""

    def of(pixels: NDArray[np.intp] | slice) -> float:
        views, inputs = {"x": Real(kernel=RBF())}, {"x": X[:, pixels]}
        return fit_predict(views, inputs, y, split, way).accuracy(y[split[1]])

    learnt = fit_predict({"x": Real(kernel=RBF(relevance="learn"))}, {"x": X}, y, split, way)
    mask = relevances("x", learnt.model.views_["x"], learnt.model.posterior_["x"])
    rank, rng = np.argsort(-mask, kind="stable"), np.random.default_rng(seed)
    found = {
        "seconds": learnt.seconds,
        "converged": float(learnt.model.converged_),
        "mask": mask,
        "proba": learnt.proba,
        "all": of(slice(None)),
        "learnt": learnt.accuracy(y[split[1]]),
    }
    for share in SHARES:
        size = max(1, int(share * X.shape[1]))
        found[f"top {share}"] = of(rank[:size])
        if share in DRAWN:
            drawn = [rng.choice(X.shape[1], size, replace=False) for _ in range(draws)]
            found[f"random {share}"] = np.array([of(pixels) for pixels in drawn])
    return found


# ---------------------------------------------------------------- what is shown


def show(results: Results, options: Options) -> Shown:
    """A table of accuracies, and a picture of λ beside the mean face."""
    found: Found = {}
    for task, result in results.items():
        found.setdefault(task.method, {}).setdefault(task.dataset, []).append(result)
    if not found:
        return Shown()
    return Shown([_table(found, options)], [Picture("figure3", partial(_draw, found))])


def _table(by_way: Found, options: Options) -> Table:
    columns = ["all", "learnt"]
    header = ["set", "λ", "all pixels", "all, with λ"]
    for share in SHARES:
        columns.append(f"top {share}")
        header.append(f"top {share:.0%}")
        if share in DRAWN:
            columns.append(f"random {share}")
            header.append(f"{share:.0%} at random")
    rows = [
        [
            name,
            LEARNT[way],
            *(spread([np.mean(one[column]) for one in found]) for column in columns),
        ]
        for way, by_set in by_way.items()
        for name, found in by_set.items()
    ]
    notes = [
        "Accuracy on test rows; λ learnt in each fold.",
        f"{table()['faces']['choice']}.",
        *([SEEN] if options.as_published else []),
        "The paper shows masks and no figures for these sets.",
        *remarks("figure3", options),
    ]
    return Table("figure3", "Feature relevance of faces", header, rows, notes)


def _draw(by_way: Found, path: Path) -> None:
    """By set: the mean face, λ (mean over folds), and the fifth of the pixels where it is large."""
    n, height = len(next(iter(by_way.values()))), 2.0 + 4.2 * len(by_way)
    with plots.figure(path, min(plots.PAGE, 0.6 + 1.7 * n), height) as figure:
        grid = figure.subplots(1 + 2 * len(by_way), n, squeeze=False)
        grid[0, 0].set_ylabel("mean face")
        for i, (way, by_set) in enumerate(by_way.items()):
            rows = grid[1 + 2 * i : 3 + 2 * i]
            how = f"\n{LEARNT[way]}" if len(by_way) > 1 else ""
            rows[0, 0].set_ylabel(f"λ{how}")
            rows[1, 0].set_ylabel("largest fifth of λ")
            for faces, column, (name, found) in zip(grid[0], rows.T, by_set.items(), strict=True):
                faces.set_title(name)
                faces.imshow(np.asarray(found[0]["face"]), cmap="gray")
                _draw_mask(column, found)
        for axes in grid.flat:
            plots.bare(axes)


def _draw_mask(column: Any, found: Sequence[Result]) -> None:
    face, mask = np.asarray(found[0]["face"]), mean_mask(found)
    pixels = pd.DataFrame({"feature": range(mask.size), "relevance": mask.ravel()})
    feature_relevance(pixels.assign(selected=True), image_shape=mask.shape, ax=column[0])
    column[0].images[0].set_clim(0.0, np.quantile(mask, 0.98))
    column[1].imshow(face, cmap="gray", alpha=0.6)
    large = np.where(mask >= np.quantile(mask, 0.8), 1.0, np.nan)
    column[1].imshow(large, cmap="autumn", vmin=0.0, vmax=2.0, alpha=0.9)


def mean_mask(found: Sequence[Result]) -> Array:
    """The mean over folds of λ, each with a mean of one, as an image."""
    masks = [np.asarray(one["mask"]) for one in found]
    relative = [mask / max(float(mask.mean()), np.finfo(float).tiny) for mask in masks]
    image = np.mean(relative, axis=0).reshape(np.asarray(found[0]["face"]).shape)
    return np.asarray(image)


# ---------------------------------------------------------------- rows of the benchmarks


def bench_tasks(name: str) -> list[Task]:
    """More draws than in the figure: these rows count wins."""
    draws = int(table()["faces"]["benchmark_draws"])
    folds = range(table()["protocols"]["faces"]["folds"])
    return [task(Options(), name, fold, draws) for fold in folds]


def lead_summary(share: float, results: Results) -> tuple[float, str]:
    """Accuracy of the pixels with the largest λ − that of as many at random."""
    found = list(results.values())
    top = np.mean([one[f"top {share}"] for one in found])
    random = np.concatenate([np.asarray(one[f"random {share}"]) for one in found])
    lead = float(top - random.mean())
    drawn = f"{random.mean():.4f}; {random.min():.3f} to {random.max():.3f} for single draws"
    return lead, f"{lead:+.4f} ({top:.4f} − {drawn})"


def loss_summary(share: float, results: Results) -> tuple[float, str]:
    """Accuracy of all pixels − that of the pixels with the largest λ."""
    names = ("all", f"top {share}", "learnt")
    whole, top, learnt = (np.mean([one[name] for one in results.values()]) for name in names)
    text = f"{whole - top:+.4f} ({whole:.4f} − {top:.4f}; all pixels with their λ {learnt:.4f})"
    return float(whole - top), text


def rows(name: str) -> dict[str, Benchmark]:
    tasks, most = partial(bench_tasks, name), max(SHARES)
    folds, draws = table()["protocols"]["faces"]["folds"], table()["faces"]["benchmark_draws"]
    found = {}
    for share in DRAWN:
        what = f"accuracy on {name}, top {share:.0%} of pixels − mean of {folds * draws} draws of"
        found[f"faces-{name}-{100 * share:.0f}"] = Benchmark(
            f"{what} as many",
            Mark(low=1e-9),  # equal is not enough
            tasks,
            partial(lead_summary, share),
        )
    what = f"accuracy on {name}, all pixels − top {most:.0%}, {folds} folds"
    loss = Benchmark(what, Mark(high=0.02), tasks, partial(loss_summary, most))
    return {**found, f"faces-{name}-{100 * most:.0f}": loss}


EXPERIMENTS: dict[str, Experiment | Benchmark] = {
    "figure3": Experiment(tasks, show),
    **{key: row for name in SETS for key, row in rows(name).items()},
}
