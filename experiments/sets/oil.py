"""Oil flow: what each factor says about the gauges and about the flow, and how well it is known."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from experiments import plots
from experiments.baselines import mrd
from experiments.data import load
from experiments.experiment import Benchmark, Experiment, Mark, Picture, Shown, Table, spread
from experiments.models.classes import SEEN, Way, factor_relevance, fit_predict
from experiments.protocol import Split, fold_settings, remarks, splits, table
from experiments.tasks import Array, Options, Result, Results, Task, by_method
from kofa import plot
from kofa.kernels import RBF
from kofa.model import FactorModel
from kofa.plot import factor_relevance as factor_relevance_plot
from kofa.views import Real

OURS, BASELINE = "KSSHIBA", "MRD (GPy)"
VIEWS = ("gauges", "flow")  # the readings through their kernel, and the classes
FLOWS = ("flow 1", "flow 2", "flow 3")  # the source numbers them
INPUTS = {"x": Real(kernel=RBF())}


def tasks(options: Options) -> list[Task]:
    """Our model and, where GPy is installed, its MRD on each fold."""
    works: dict[str, tuple[Any, dict[str, Any]]] = {}
    for how in options.ways:
        way = Way.of(how, int(table()["oil"]["n_factors"]))
        works[how.named(OURS)] = (partial(ours, way=way), way.settings)
    if mrd.has_gpy():
        gpy: dict[str, Any] = {
            "n_factors": int(table()["oil"]["n_factors"]),
            "inducing": int(table()["oil"]["mrd_inducing"]),
            "iterations": int(table()["oil"]["quick_" * options.quick + "mrd_iterations"]),
        }
        works[BASELINE] = (partial(manifold, **gpy), gpy)
    return [
        Task(
            "oil",
            "oil_flow",
            method,
            fold,
            partial(_on_fold, options.folds, fold, works[method][0]),
            {
                **works[method][1],
                **fold_settings("classes", options.folds),
                "rows": table()["oil"]["rows"],
                "baseline": method == BASELINE,
            },
        )
        for method in options.asked(works)
        for fold in options.fold_numbers
    ]


def rows() -> tuple[Array, NDArray[Any]]:
    """The readings and classes that are used."""
    data, (first, last) = load("oil_flow"), table()["oil"]["rows"]
    return data.X[first:last], data.y[first:last]


def _on_fold(n_folds: int, fold: int, work: Any) -> Result:
    X, y = rows()
    result: Result = work(X, y, splits("classes", y, n_folds)[fold])
    return result


def ours(X: Array, y: NDArray[Any], split: Split, way: Way) -> Result:
    """Accuracy; and the relevance of the factors, and those of the test rows by x alone."""
    train, test = split
    found = fit_predict(INPUTS, {"x": X}, y, split, way)
    _, relevance = factor_relevance(found.model)
    return {
        "accuracy": found.accuracy(y[test]),
        "accuracy_of_two": of_two_factors(found.model, X, y, split),
        "proba": found.proba,
        "relevance": relevance,
        "Z": found.model.transform({"x": X[test]}),
        "Z_train": found.model.transform({"x": X[train]}),
        "y": y[test].astype(float),
        "y_train": y[train].astype(float),
        "seconds": found.seconds,
        "converged": float(found.model.converged_),
    }


def of_two_factors(model: FactorModel, X: Array, y: NDArray[Any], split: Split) -> float:
    """Accuracy of a linear classifier that sees the first two factors of each row alone."""
    Z = [model.transform({"x": X[part]}, n_factors=2) for part in split]
    linear = LogisticRegression(C=100.0, max_iter=1000).fit(Z[0], y[split[0]])
    return float(linear.score(Z[1], y[split[1]]))


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


def show_relevance(results: Results, options: Options) -> Shown:
    """Accuracies; the relevance of the factors in the first fold."""
    if not results:
        return Shown()
    found = by_method(results)
    relevance = {name: np.asarray(folds[0]["relevance"]) for name, folds in found.items()}
    drawn = [Picture("figure4", partial(draw_relevance, relevance))]
    return Shown([_accuracies(found, options)], drawn)


def _accuracies(by_row: Mapping[str, list[Result]], options: Options) -> Table:
    found = [
        [
            name,
            spread([float(one["accuracy"]) for one in results]),
            f"{np.median([float(one['seconds']) for one in results]):.1f}",
        ]
        for name, results in by_row.items()
    ]
    reported = ["KSSHIBA, the paper's figure", f"{table()['reported']['oil']['accuracy']:.3f}", "–"]
    notes = [
        f"{table()['oil']['choice'].capitalize()}. {table()['oil']['n_factors']} factors.",
        *([] if mrd.has_gpy() else ["GPy is not installed: its MRD is left out."]),
        *([SEEN] if options.as_published else []),
        *remarks("figure4", options),
    ]
    header = ["method", "accuracy", "seconds of a fit"]
    return Table("figure4", "Oil flow: accuracy", header, [*found, reported], notes)


def by_relevance(relevance: Array) -> NDArray[np.intp]:
    """The factors, first those that matter to the classes most."""
    return np.argsort(-relevance[1], kind="stable")


def draw_relevance(by_row: Mapping[str, Array], path: Path) -> None:
    """A panel for each view of each method, a bar for each factor."""
    rows = [
        {"view": view if len(by_row) == 1 else f"{method}: {view}", "factor": str(k + 1)}
        | {"relevance": share, "active": True}
        for method, relevance in by_row.items()
        for view, shares in zip(VIEWS, relevance[:, by_relevance(relevance)], strict=True)
        for k, share in enumerate(shares)
    ]
    plots.save(factor_relevance_plot(pd.DataFrame(rows)), path)


def show_factors(results: Results, options: Options) -> Shown:  # noqa: ARG001
    """The three factors that matter most."""
    first = {t.method: result for t, result in results.items() if "Z" in result and t.fold == 0}
    return Shown(pictures=[Picture("figure5", partial(draw_factors, first))] if first else [])


def draw_factors(found: Mapping[str, Result], path: Path) -> None:
    """A point for each row in three dimensions; small ones are training rows."""
    width = plots.COLUMN if len(found) == 1 else plots.PAGE
    with plots.figure(path, width, 3.4) as figure:
        for place, (method, result) in enumerate(found.items(), start=1):
            axes = figure.add_subplot(1, len(found), place, projection="3d")
            _draw_model(axes, result)
            if len(found) > 1:
                axes.set_title(method)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
        caption = "large: test rows, from their readings alone; small: training rows"
        figure.supxlabel(caption, fontsize=7)


def _draw_model(axes: Any, result: Result) -> None:
    three = by_relevance(np.asarray(result["relevance"]))[:3]
    Z, y = np.asarray(result["Z_train"]), np.asarray(result["y_train"])
    for c in range(len(FLOWS)):
        look = {"color": plots.COLOURS[c], "marker": plots.MARKERS[c], "depthshade": False}
        axes.scatter(*Z[y == c][:, three].T, s=2.5, alpha=0.35, linewidths=0.0, **look)
    flows = [FLOWS[int(c)] for c in np.asarray(result["y"])]
    plot.factors(np.asarray(result["Z"])[:, three], z=2, colour=flows, ax=axes)
    axes.get_legend().remove()  # there is one for all models
    axes.view_init(elev=22, azim=-55)


# ---------------------------------------------------------------- the row of the benchmarks


def our_tasks() -> list[Task]:
    return [task for task in tasks(Options()) if task.method == OURS]


def accuracy_summary(results: Results) -> tuple[float, str]:
    shares, seconds = (
        [float(one[name]) for one in results.values()] for name in ("accuracy", "seconds")
    )
    text = f"{spread(shares, 4)} ({np.median(seconds):.1f} s per fold)"
    return float(np.mean(shares)), text


def two_factors_summary(results: Results) -> tuple[float, str]:
    own, two = (
        np.array([float(one[name]) for one in results.values()])
        for name in ("accuracy", "accuracy_of_two")
    )
    apart = float((two - own).mean())
    return apart, f"{apart:+.4f} ({spread(two, 4)}, the model itself {spread(own, 4)})"


EXPERIMENTS: dict[str, Experiment | Benchmark] = {
    "figure4": Experiment(tasks, show_relevance),
    "figure5": Experiment(tasks, show_factors),
    "oil_flow": Benchmark(
        "accuracy on oil_flow, 15 factors, 10 folds", Mark(low=0.994), our_tasks, accuracy_summary
    ),
    "oil_flow-two-factors": Benchmark(
        "a linear classifier on the first two of 15 factors of oil_flow − the model, 10 folds",
        Mark(low=-0.005),
        our_tasks,
        two_factors_summary,
    ),
}
