"""Which pixels tell people apart: λ of an RBF kernel, learnt with the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofa.kernels.formulas import RBF
from kofa.linalg import Array
from kofa.paper import pictures
from kofa.paper.classes import SEEN, Split, Way, folds, tell
from kofa.paper.data import folds_of, load, paper
from kofa.paper.experiment import Experiment, Picture, Shown, remarks
from kofa.paper.tables import Table, spread
from kofa.paper.tasks import Options, Result, Task
from kofa.results.inspection import relevances
from kofa.views import Real

ROW = "KSSHIBA, feature relevance"
SHARES = tuple(paper()["faces"]["shares"])
DRAWN = tuple(paper()["faces"]["drawn"])
LEARNT = {ROW: "from the labels", f"{ROW}, as published": "as published, by reconstruction"}


Found = dict[str, dict[str, list[Result]]]  # folds, by way and by set


def tasks(options: Options) -> list[Task]:
    """λ, and what may be left out, by set and fold. A quick run looks at one fold of one set."""
    given = paper()["faces"]
    sets, n_folds = options.chosen(given["sets"]), int(given["folds"])
    draws = 1 if options.quick else int(given["draws"])
    numbers = range(1 if options.quick else n_folds)
    asked = {"shares": SHARES, "drawn": DRAWN, "draws": draws}
    return [
        Task(
            "figure3",
            name,
            how.named(ROW),
            fold,
            partial(_of_set, name, options.data_dir, n_folds, fold, way, draws),
            {**way.settings, **folds_of(n_folds), **asked},
        )
        for how in options.ways
        for way in [Way.of(how, tol=given["tol"])]
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
            found[f"random {share}"] = float(np.mean([of(pixels) for pixels in drawn]))
    return found


# ---------------------------------------------------------------- what is shown


def show(results: Mapping[Task, Result], options: Options) -> Shown:
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
        [name, LEARNT[way], *(spread([float(one[column]) for one in found]) for column in columns)]
        for way, by_set in by_way.items()
        for name, found in by_set.items()
    ]
    notes = [
        "Accuracy on test rows; λ learnt in each fold.",
        f"{paper()['faces']['choice']}.",
        *([SEEN] if options.as_published else []),
        "The paper shows masks and no figures for these sets.",
        *remarks("figure3", options),
    ]
    return Table("figure3", "Feature relevance of faces", header, rows, notes)


def _draw(by_way: Found, path: Path) -> None:
    """By set: the mean face, λ (mean over folds), and the fifth of the pixels where it is large."""
    n, height = len(next(iter(by_way.values()))), 2.0 + 4.2 * len(by_way)
    with pictures.figure(path, min(pictures.PAGE, 0.6 + 1.7 * n), height) as figure:
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
                _draw_mask(figure, column, found)
        for axes in grid.flat:
            pictures.bare(axes)


def _draw_mask(figure: Any, column: Any, found: Sequence[Result]) -> None:
    face, mask = np.asarray(found[0]["face"]), mean_mask(found)
    shown = column[0].imshow(mask, cmap=pictures.SEQUENTIAL, vmin=0, vmax=np.quantile(mask, 0.98))
    figure.colorbar(
        shown,
        ax=column[0],
        location="bottom",
        shrink=0.8,
        aspect=15,
        extend="max",
        label="λ, mean of all pixels = 1",
    )
    column[1].imshow(face, cmap="gray", alpha=0.6)
    large = np.where(mask >= np.quantile(mask, 0.8), 1.0, np.nan)
    column[1].imshow(large, cmap="autumn", vmin=0.0, vmax=2.0, alpha=0.9)


def mean_mask(found: Sequence[Result]) -> Array:
    """The mean over folds of λ, each with a mean of one, as an image."""
    masks = [np.asarray(one["mask"]) for one in found]
    relative = [mask / max(float(mask.mean()), np.finfo(float).tiny) for mask in masks]
    image = np.mean(relative, axis=0).reshape(np.asarray(found[0]["face"]).shape)
    return np.asarray(image)


EXPERIMENTS = [Experiment("figure3", tasks, show)]
