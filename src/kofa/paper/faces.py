"""Which pixels tell people apart: λ of an RBF kernel, learnt with the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofa.inspection import relevances
from kofa.kernels import RBF
from kofa.linalg import Array
from kofa.paper import pictures
from kofa.paper.classes import Split, Way, folds, tell
from kofa.paper.data import load, paper
from kofa.paper.experiment import Experiment, Picture, Shown, remarks
from kofa.paper.tables import Table, spread
from kofa.paper.tasks import Options, Result, Task
from kofa.views import Real

SHARES = (0.02, 0.05, 0.2)  # of the pixels
DRAWN = (0.02, 0.05)  # those that are compared with as many pixels at random
DRAWS = 2  # in each fold
TOL = 1e-2  # with forty people the bound creeps on for hundreds of iterations; classes stand


def tasks(options: Options) -> list[Task]:
    """λ, and what may be left out, by set and fold. A quick run looks at one fold of one set."""
    sets = options.chosen(paper()["faces"]["sets"])
    n_folds, draws = int(paper()["faces"]["folds"]), 1 if options.quick else DRAWS
    numbers = range(1 if options.quick else n_folds)
    way = Way.of(options, tol=TOL)
    settings = {**way.settings, "folds": n_folds, "draws": draws}
    return [
        Task(
            "figure3",
            name,
            "KSSHIBA, feature relevance",
            fold,
            partial(_of_set, name, options.data_dir, n_folds, fold, way, draws),
            settings,
        )
        for name in (sets[:1] if options.quick else sets)
        for fold in numbers
    ]


def _of_set(
    name: str, data_dir: str | None, n_folds: int, fold: int, way: Way, draws: int
) -> Result:
    data = load(name, data_dir)
    X, shape = data.X.astype(float), np.asarray(data.image_shape)
    found = masked(X, data.y, folds(data.y, n_folds)[fold], way, draws, fold)
    return {**found, "face": X.mean(axis=0).reshape(shape)}


def masked(
    X: Array, y: NDArray[Any], split: Split, way: Way, draws: int = 1, seed: int = 0
) -> dict[str, Any]:
    """λ from the training labels, then fits that see only some pixels; accuracies."""

    def of(pixels: NDArray[np.intp] | slice) -> float:
        views, inputs = {"x": Real(kernel=RBF())}, {"x": X[:, pixels]}
        return tell(views, inputs, y, split, way).accuracy(y[split[1]])

    learnt = tell({"x": Real(kernel=RBF(relevance="learn"))}, {"x": X}, y, split, way)
    mask = relevances("x", learnt.model.views_["x"], learnt.model.posterior_[0])
    rank, rng = np.argsort(-mask, kind="stable"), np.random.default_rng(seed)
    found = {
        "seconds": learnt.seconds,
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
            found[f"random {share}"] = float(np.mean([of(pixels) for pixels in drawn]))
    return found


# ---------------------------------------------------------------- what is shown


def show(results: Mapping[Task, Result], options: Options) -> Shown:
    """A table of accuracies, and a picture of λ beside the mean face."""
    by_set: dict[str, list[Result]] = {}
    for task, result in results.items():
        by_set.setdefault(task.dataset, []).append(result)
    if not by_set:
        return Shown()
    return Shown([_table(by_set, options)], [Picture("figure3", partial(_draw, by_set))])


def _table(by_set: Mapping[str, list[Result]], options: Options) -> Table:
    columns = ["all", "learnt"]
    header = ["set", "all pixels", "all, with λ"]
    for share in SHARES:
        columns.append(f"top {share}")
        header.append(f"top {share:.0%}")
        if share in DRAWN:
            columns.append(f"random {share}")
            header.append(f"{share:.0%} at random")
    rows = [
        [name, *(spread([float(one[column]) for one in found]) for column in columns)]
        for name, found in by_set.items()
    ]
    how = "by reconstruction of the kernel" if options.as_published else "from the labels"
    notes = [
        f"Accuracy on test rows; λ learnt {how} in each fold.",
        f"Folds: {max(len(found) for found in by_set.values())}. {paper()['faces']['choice']}.",
        "The paper shows masks and no figures for these sets.",
        *remarks("figure3", options),
    ]
    return Table("figure3", "Feature relevance of faces", header, rows, notes)


def _draw(by_set: Mapping[str, list[Result]], path: Path) -> None:
    """By set: the mean face, λ (mean over folds), and the fifth of the pixels where it is large."""
    n = len(by_set)
    with pictures.figure(path, min(pictures.PAGE, 0.6 + 1.7 * n), 6.2) as figure:
        grid = figure.subplots(3, n, squeeze=False)
        for axes, label in zip(grid[:, 0], ("mean face", "λ", "largest fifth of λ"), strict=True):
            axes.set_ylabel(label)
        for column, (name, found) in zip(grid.T, by_set.items(), strict=True):
            _draw_set(figure, column, name, found)


def _draw_set(figure: Any, column: Any, name: str, found: Sequence[Result]) -> None:
    face, mask = np.asarray(found[0]["face"]), mean_mask(found)
    for axes in column:
        pictures.bare(axes)
    column[0].set_title(name)
    column[0].imshow(face, cmap="gray")
    shown = column[1].imshow(mask, cmap=pictures.SEQUENTIAL, vmin=0, vmax=np.quantile(mask, 0.98))
    figure.colorbar(
        shown,
        ax=column[1],
        location="bottom",
        shrink=0.8,
        aspect=15,
        extend="max",
        label="λ, mean of all pixels = 1",
    )
    column[2].imshow(face, cmap="gray", alpha=0.6)
    large = np.where(mask >= np.quantile(mask, 0.8), 1.0, np.nan)
    column[2].imshow(large, cmap="autumn", vmin=0.0, vmax=2.0, alpha=0.9)


def mean_mask(found: Sequence[Result]) -> Array:
    """The mean over folds of λ, each with a mean of one, as an image."""
    masks = [np.asarray(one["mask"]) for one in found]
    relative = [mask / max(float(mask.mean()), np.finfo(float).tiny) for mask in masks]
    image = np.mean(relative, axis=0).reshape(np.asarray(found[0]["face"]).shape)
    return np.asarray(image)


EXPERIMENTS = [Experiment("figure3", "Feature relevance of faces", tasks, show)]
