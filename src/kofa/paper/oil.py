"""Oil flow: what each factor tells about the gauges and about the flow, and who is told apart."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofa.kernels.formulas import RBF
from kofa.linalg import Array
from kofa.paper import mrd, pictures
from kofa.paper.classes import SEEN, Split, Way, factor_relevance, folds, tell
from kofa.paper.data import folds_of, load, paper
from kofa.paper.experiment import Experiment, Picture, Shown, remarks
from kofa.paper.tables import Table, spread
from kofa.paper.tasks import Options, Result, Task
from kofa.views import Real

OURS, PEER = "KSSHIBA", "MRD (GPy)"
VIEWS = ("gauges", "flow")  # the readings through their kernel, and the classes
FLOWS = ("flow 1", "flow 2", "flow 3")  # the source numbers them
INPUTS = {"x": Real(kernel=RBF())}


def tasks(options: Options) -> list[Task]:
    """Our model and, where GPy is installed, its MRD on each fold."""
    works: dict[str, tuple[Any, dict[str, Any]]] = {}
    for how in options.ways:
        way = Way.of(how, int(paper()["oil"]["n_factors"]))
        works[how.named(OURS)] = (partial(ours, way=way), way.settings)
    if mrd.has_gpy():
        gpy: dict[str, Any] = {
            "n_factors": int(paper()["oil"]["n_factors"]),
            "inducing": int(paper()["oil"]["mrd_inducing"]),
            "iterations": int(paper()["oil"]["quick_" * options.quick + "mrd_iterations"]),
        }
        works[PEER] = (partial(manifold, **gpy), gpy)
    return [
        Task(
            "oil",  # both figures show the same fits
            "oil_flow",
            method,
            fold,
            partial(_of_set, options.data_dir, options.folds, fold, works[method][0]),
            {**works[method][1], **folds_of(options.folds), "rows": paper()["oil"]["rows"]},
        )
        for method in options.asked(works)
        for fold in options.fold_numbers
    ]


def rows(data_dir: str | None) -> tuple[Array, NDArray[Any]]:
    """The readings and classes that are used."""
    data, (first, last) = load("oil_flow", data_dir), paper()["oil"]["rows"]
    return data.X[first:last], data.y[first:last]


def _of_set(data_dir: str | None, n_folds: int, fold: int, work: Any) -> Result:
    X, y = rows(data_dir)
    result: Result = work(X, y, folds(y, n_folds)[fold])
    return result


def ours(X: Array, y: NDArray[Any], split: Split, way: Way) -> Result:
    """Accuracy; and the relevance of the factors, and those of the test rows by x alone."""
    train, test = split
    told = tell(INPUTS, {"x": X}, y, split, way)
    _, relevance = factor_relevance(told.model)
    return {
        "accuracy": told.accuracy(y[test]),
        "proba": told.proba,
        "relevance": relevance,
        "Z": told.model.transform({"x": X[test]}),
        "Z_train": told.model.transform({"x": X[train]}),
        "y": y[test].astype(float),
        "y_train": y[train].astype(float),
        "seconds": told.seconds,
        "converged": float(told.model.converged_),
    }


def manifold(
    X: Array, y: NDArray[Any], split: Split, n_factors: int, inducing: int, iterations: int
) -> Result:
    """Manifold relevance determination of the readings and the classes.

    The place of a test row is sought for its readings alone; the class is the one with the largest
    prediction.
    """
    train, test = split
    begin, classes = perf_counter(), np.unique(y)
    mean, size = X[train].mean(axis=0), X[train].std(axis=0)
    labels = (y[train][:, None] == classes).astype(float)
    views = [(X[train] - mean) / size, labels - labels.mean(axis=0)]
    model = mrd.fitted(views, n_factors, inducing, iterations)
    seconds = perf_counter() - begin
    scores = mrd.predicted(model, (X[test] - mean) / size) + labels.mean(axis=0)
    width = [np.asarray(part.kern.input_sensitivity(summarize=True)) for part in model.bgplvms]
    return {
        "accuracy": float(np.mean(classes[np.argmax(scores, axis=1)] == y[test])),
        "scores": scores,
        "relevance": np.array([one / one.sum() for one in width]),
        "seconds": seconds,
    }


# ---------------------------------------------------------------- what is shown


def show_relevance(results: Mapping[Task, Result], options: Options) -> Shown:
    """Accuracies; the relevance of the factors in the first fold."""
    if not results:
        return Shown()
    by_method: dict[str, list[Result]] = {}
    for task, result in results.items():
        by_method.setdefault(task.method, []).append(result)
    relevance = {name: np.asarray(found[0]["relevance"]) for name, found in by_method.items()}
    drawn = [Picture("figure4", partial(draw_relevance, relevance))]
    return Shown([_accuracies(by_method, options)], drawn)


def _accuracies(by_method: Mapping[str, list[Result]], options: Options) -> Table:
    found = [
        [
            name,
            spread([float(one["accuracy"]) for one in results]),
            f"{np.median([float(one['seconds']) for one in results]):.1f}",
        ]
        for name, results in by_method.items()
    ]
    reported = ["KSSHIBA, the paper's figure", f"{paper()['reported']['oil']['accuracy']:.3f}", "–"]
    notes = [
        f"{paper()['oil']['choice'].capitalize()}. {paper()['oil']['n_factors']} factors.",
        *([] if mrd.has_gpy() else ["GPy is not installed: its MRD is left out."]),
        *([SEEN] if options.as_published else []),
        *remarks("figure4", options),
    ]
    header = ["method", "accuracy", "seconds of a fit"]
    return Table("figure4", "Oil flow: accuracy", header, [*found, reported], notes)


def by_relevance(relevance: Array) -> NDArray[np.intp]:
    """The factors, first those that matter to the classes most."""
    return np.argsort(-relevance[1], kind="stable")


def draw_relevance(by_method: Mapping[str, Array], path: Path) -> None:
    """A bar for each factor and view, for each method."""
    height = 0.8 + 1.9 * len(by_method)
    with pictures.figure(path, pictures.COLUMN, height) as figure:
        grid = figure.subplots(len(by_method), 1, squeeze=False)[:, 0]
        for axes, (method, relevance) in zip(grid, by_method.items(), strict=True):
            ordered = 100 * relevance[:, by_relevance(relevance)]
            place = np.arange(ordered.shape[1]) + 1.0
            for side, (view, share) in enumerate(zip(VIEWS, ordered, strict=True)):
                axes.bar(
                    place + 0.4 * side - 0.2, share, 0.4, label=view, color=pictures.COLOURS[side]
                )
            axes.set_xticks(place)
            axes.set_xlim(0.4, len(place) + 0.6)
            axes.set_ylabel("share of the view's signal (%)")
            if len(by_method) > 1:
                axes.set_title(method)
        grid[-1].set_xlabel("factor, by its share in the flow")
        names = grid[0].get_legend_handles_labels()
        figure.legend(*names, loc="outside upper right", ncols=2)


def show_factors(results: Mapping[Task, Result], options: Options) -> Shown:  # noqa: ARG001
    """The three factors that matter most."""
    first = {t.method: result for t, result in results.items() if "Z" in result and t.fold == 0}
    return Shown(pictures=[Picture("figure5", partial(draw_factors, first))] if first else [])


def draw_factors(found: Mapping[str, Result], path: Path) -> None:
    """A point for each row in three dimensions; small ones are training rows."""
    width = pictures.COLUMN if len(found) == 1 else pictures.PAGE
    with pictures.figure(path, width, 3.4) as figure:
        for place, (method, result) in enumerate(found.items(), start=1):
            axes = figure.add_subplot(1, len(found), place, projection="3d")
            _draw_model(axes, result)
            if len(found) > 1:
                axes.set_title(method)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
        told = "large: test rows, from their readings alone; small: training rows"
        figure.supxlabel(told, fontsize=7)


def _draw_model(axes: Any, result: Result) -> None:
    from matplotlib.ticker import MaxNLocator

    three = by_relevance(np.asarray(result["relevance"]))[:3]
    for c, flow in enumerate(FLOWS):
        look = {"color": pictures.COLOURS[c], "linewidths": 0.0, "depthshade": False}
        for rows, size, alpha, label in (("_train", 2.5, 0.35, None), ("", 14.0, 1.0, flow)):
            Z, y = np.asarray(result[f"Z{rows}"]), np.asarray(result[f"y{rows}"])
            points = Z[y == c][:, three].T
            axes.scatter(
                *points, s=size, alpha=alpha, marker=pictures.MARKERS[c], label=label, **look
            )
    for axis, k in zip("xyz", range(1, 4), strict=True):
        getattr(axes, f"set_{axis}label")(f"factor {k}", labelpad=-6)
        getattr(axes, f"{axis}axis").set_tick_params(pad=-3)
        getattr(axes, f"{axis}axis").set_major_locator(MaxNLocator(4))
        getattr(axes, f"{axis}axis")._axinfo["grid"].update(linewidth=0.4, color="#cccccc")
    axes.view_init(elev=22, azim=-55)
    axes.set_box_aspect((1, 1, 0.9), zoom=1.05)


EXPERIMENTS = [
    Experiment("figure4", tasks, show_relevance),
    Experiment("figure5", tasks, show_factors),
]
