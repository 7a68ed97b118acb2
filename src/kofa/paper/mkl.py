"""Several kernels of the same samples: what they tell together, and which of them matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kofa.kernels.formulas import RBF, Kernel, Linear, Polynomial
from kofa.kernels.mixture import kernel_name
from kofa.linalg import Array
from kofa.paper import pictures
from kofa.paper.classes import (
    SEEN,
    Split,
    Way,
    auc,
    factor_relevance,
    folds,
    kernels,
    tell,
)
from kofa.paper.classes_rivals import Blocks, cca_svm, combined_svm
from kofa.paper.data import folds_of, load, paper
from kofa.paper.experiment import Experiment, Picture, Shown, remarks
from kofa.paper.tables import Table, spread
from kofa.paper.tasks import Options, Result, Task
from kofa.views import Real

SHOWN_FACTORS = 20  # in the figure


@dataclass(frozen=True)
class Problem:
    """Inputs with their kernels, and the classes they are to tell apart."""

    views: dict[str, Real]
    inputs: dict[str, Array]
    y: NDArray[Any]

    def blocks(self, split: Split) -> Blocks:
        """The same kernels for the baselines, of inputs as these can take them.

        Columns are standardised like ours; where one is missing, it is the mean of the others.
        """
        found: list[tuple[Kernel, Array]] = []
        for name, view in self.views.items():
            X = _standardised(self.inputs[name], split[0]) if view.scale else self.inputs[name]
            found += [(kernel, X) for kernel in kernels(view)]
        return Blocks(found, self.y, split)


def _standardised(X: Array, train: NDArray[np.intp]) -> Array:
    size = np.nanstd(X[train], axis=0)
    scaled = (X - np.nanmean(X[train], axis=0)) / np.where(size > 0, size, 1.0)
    return np.asarray(np.nan_to_num(scaled))


# ---------------------------------------------------------------- data


def arrhythmia(data_dir: str | None) -> Problem:
    """The patient, and the readings; missing values stay missing."""
    data = load("arrhythmia", data_dir)
    inputs = {"patient": data.X[:, :15], "readings": data.X[:, 15:]}
    return Problem({name: Real(kernel=RBF()) for name in inputs}, inputs, data.y_binary)


def satimage(data_dir: str | None) -> Problem:
    """The central pixel, and the mean of its eight neighbours, by band.

    A draw of all rows: they come in the order of the scene, and the first lack a class.
    """
    data, size = load("satimage", data_dir), int(paper()["mkl"]["rows_satimage"])
    size = min(size, len(data.X))
    rng = np.random.default_rng(paper()["protocol"]["seed"])
    drawn = np.sort(rng.choice(len(data.X), size, replace=False))
    pixels = data.X[drawn].astype(float).reshape(size, 9, 4)
    inputs = {"pixel": pixels[:, 4], "around": np.delete(pixels, 4, axis=1).mean(axis=1)}
    return Problem({name: Real(kernel=RBF()) for name in inputs}, inputs, data.y[drawn])


def fashion_mnist(data_dir: str | None, *more: Kernel) -> Problem:
    """Several kernels on the same pixels, as they are."""
    data, size = load("fashion_mnist", data_dir), int(paper()["mkl"]["rows_fashion_mnist"])
    X = data.X[:size].reshape(len(data.X[:size]), -1) / 255.0
    view = Real(kernel=[RBF(), Polynomial(), *more], scale=False)
    return Problem({"x": view}, {"x": X}, data.y[:size].astype(int))


PROBLEMS = {"arrhythmia": arrhythmia, "satimage": satimage, "fashion_mnist": fashion_mnist}

# ---------------------------------------------------------------- methods

OURS = {"MKL": False, "MKL + RV": True}  # whether few rows are kept to compare with
BASELINES = {"SVM, validated combination": combined_svm, "CCA + SVM": cca_svm}


def ours(problem: Problem, split: Split, way: Way, sparse: bool = False) -> Result:
    """AUC; what each factor is to each kernel; the share of rows that are compared with."""
    views = {name: replace(view, sparse=sparse) for name, view in problem.views.items()}
    told = tell(views, problem.inputs, problem.y, split, way)
    y, model = problem.y[split[1]], told.model
    landmarks = [view.landmarks for name, view in model.views_.items() if name != "y"]
    pool = len(problem.y) if way.published else len(split[0])
    return {
        "auc": auc(y, told.proba),
        "accuracy": told.accuracy(y),
        "proba": told.proba,
        "relevance": factor_relevance(model)[1],
        "share": len(np.unique(np.concatenate(landmarks))) / pool,
        "seconds": told.seconds,
        "converged": float(model.converged_),
    }


def baseline(problem: Problem, split: Split, method: str, grids: Mapping[str, Any]) -> Result:
    """AUC of a rival, tuned on the training rows."""
    begin, y = perf_counter(), problem.y[split[1]]
    scores = BASELINES[method](problem.blocks(split), grids)
    classes = np.unique(problem.y)
    accuracy = float(np.mean(classes[scores.argmax(axis=1)] == y))
    seconds = perf_counter() - begin
    return {"auc": auc(y, scores), "accuracy": accuracy, "proba": scores, "seconds": seconds}


def _on_fold(
    name: str, data_dir: str | None, more: tuple[Kernel, ...], n_folds: int, fold: int, work: Any
) -> Result:
    problem = PROBLEMS[name](data_dir, *more)
    result: Result = work(problem, folds(problem.y, n_folds)[fold])
    return result


# ---------------------------------------------------------------- the table


def table_tasks(options: Options) -> list[Task]:
    """Every method on every fold of every set."""
    grids = grids_of(options)
    works: dict[str, tuple[Any, dict[str, Any]]] = {
        **{
            how.named(name): (partial(ours, way=Way.of(how), sparse=sparse), Way.of(how).settings)
            for how in options.ways
            for name, sparse in OURS.items()
        },
        **{
            name: (partial(baseline, method=name, grids=grids), {"grids": grids})
            for name in BASELINES
        },
    }
    return [
        Task(
            "table5",
            name,
            method,
            fold,
            partial(_on_fold, name, options.data_dir, (), options.folds, fold, works[method][0]),
            {**works[method][1], **folds_of(options.folds), "rows": _rows(name)},
        )
        for name in options.chosen(paper()["mkl"]["sets"])
        for method in options.asked(works)
        for fold in options.fold_numbers
    ]


def _rows(name: str) -> int:
    return int(paper()["mkl"].get(f"rows_{name}", 0))  # 0: all


def grids_of(options: Options) -> dict[str, Any]:
    """What inner cross-validation of the baselines chooses from."""
    given = dict(paper()["mkl"]["grids"])
    quick = given.pop("quick")
    return given | quick if options.quick else given


def show_table(results: Mapping[Task, Result], options: Options) -> Shown:
    """AUC by method and set, with the paper's figures below."""
    sets = options.chosen(paper()["mkl"]["sets"])
    rows = []
    for method in dict.fromkeys(task.method for task in results):
        found = {s: _of(results, s, method) for s in sets}
        rows.append([method, *(spread([float(r["auc"]) for r in found[s]]) for s in sets)])
        if method.startswith("MKL + RV"):
            kept = ([100 * float(r["share"]) for r in found[s]] for s in sets)
            rows.append([f"{method}: rows compared with (%)", *(spread(k, 1) for k in kept)])
    rows += list(_reported(sets))
    notes = ["Multiclass AUC on test rows, the mean of each class against the rest."]
    notes += [SEEN] if options.as_published else []
    notes += [f"{s}: {paper()['mkl'][f'choice_{s}']}." for s in sets]
    notes += remarks("table5", options)
    title = "Multiple kernel learning: AUC"
    return Shown([Table("table5", title, ["method", *sets], rows, notes)])


def _of(results: Mapping[Task, Result], dataset: str, method: str) -> list[Result]:
    return [r for t, r in results.items() if (t.dataset, t.method) == (dataset, method)]


def _reported(sets: list[str]) -> Iterator[list[str]]:
    for method, values in paper()["reported"]["mkl"].items():
        shown = (f"{values[s]:.3f}" if s in values else "–" for s in sets)
        yield [f"{method}, the paper's figure", *shown]


# ---------------------------------------------------------------- the figure


def figure_tasks(options: Options) -> list[Task]:
    """A fit to the training rows of the first fold."""
    name, more, found = "fashion_mnist", (Linear(),), []
    for how in options.ways:
        way = Way.of(how)
        work = partial(ours, way=way)
        found.append(
            Task(
                "figure6",
                name,
                how.named("MKL, three kernels"),
                0,
                partial(_on_fold, name, options.data_dir, more, options.folds, 0, work),
                {**way.settings, **folds_of(options.folds), "rows": _rows(name)},
            )
        )
    return found


def show_figure(results: Mapping[Task, Result], options: Options) -> Shown:  # noqa: ARG001
    """The relevance of the factors in each kernel and in the classes."""
    names = [kernel_name(k) for k in (RBF(), Polynomial(), Linear())] + ["classes"]
    found = {task.method: np.asarray(result["relevance"]) for task, result in results.items()}
    return Shown(pictures=[Picture("figure6", partial(draw, found, names))] if found else [])


def draw(found: Mapping[str, Array], names: list[str], path: Path) -> None:
    """For each model a column for each view, a row for each factor: what matters most first."""
    width = pictures.COLUMN if len(found) == 1 else pictures.PAGE
    with pictures.figure(path, width, 3.8) as figure:
        for axes, (title, relevance) in zip(
            figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True
        ):
            _draw_model(figure, axes, relevance, names)
            if len(found) > 1:
                axes.set_title(title)


def _draw_model(figure: Any, axes: Any, relevance: Array, names: list[str]) -> None:
    from matplotlib.colors import LogNorm

    order = np.argsort(-relevance[-1], kind="stable")[:SHOWN_FACTORS]
    percent = 100 * relevance[:, order].T
    scale = LogNorm(vmin=0.1, vmax=max(1.0, float(percent.max())))
    shown = pictures.heatmap(
        axes, np.maximum(percent, 0.1), names, cmap=pictures.SEQUENTIAL, norm=scale
    )
    axes.set_yticks(range(len(order)), [str(k + 1) for k in range(len(order))])
    count = f"{len(order)} of {relevance.shape[1]}"
    axes.set_ylabel(f"factor, by its share in the classes ({count})")
    bar = figure.colorbar(shown, ax=axes, extend="min", label="share of the view's signal (%)")
    bar.set_ticks([0.1, 1, 10], labels=["0.1", "1", "10"])


EXPERIMENTS = [
    Experiment("table5", table_tasks, show_table),
    Experiment("figure6", figure_tasks, show_figure),
]
