"""Several kernels of the same samples: what they predict together, and which of them matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import plots
from experiments.baselines.two_kernels import Blocks, cca_svm, combined_svm
from experiments.data import load
from experiments.experiment import Benchmark, Experiment, Mark, Picture, Shown, Table, spread
from experiments.models.classes import SEEN, Way, auc, factor_relevance, fit_predict, kernels
from experiments.protocol import Ints, Split, fold_settings, remarks, seed, splits, table
from experiments.tasks import Array, Options, Result, Results, Task, figures
from kofa.kernels.base import Kernel
from kofa.kernels.formulas import RBF, Linear, Polynomial
from kofa.kernels.mixture import kernel_name
from kofa.plot.parts import colour_bar, heatmap
from kofa.views import Real

SHOWN_FACTORS = 20  # in the figure


@dataclass(frozen=True)
class Problem:
    """Inputs with their kernels, and classes that are to be predicted from them."""

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


def _standardised(X: Array, train: Ints) -> Array:
    size = np.nanstd(X[train], axis=0)
    scaled = (X - np.nanmean(X[train], axis=0)) / np.where(size > 0, size, 1.0)
    return np.asarray(np.nan_to_num(scaled))


# ---------------------------------------------------------------- data


def arrhythmia() -> Problem:
    """The patient, and the readings; missing values stay missing."""
    data = load("arrhythmia")
    inputs = {"patient": data.X[:, :15], "readings": data.X[:, 15:]}
    return Problem({name: Real(kernel=RBF()) for name in inputs}, inputs, data.y_binary)


def satimage() -> Problem:
    """The central pixel, and the mean of its eight neighbours, by band.

    A draw of all rows: they come in the order of the scene, and the first lack a class.
    """
    data, size = load("satimage"), int(table()["mkl"]["rows_satimage"])
    size = min(size, len(data.X))
    rng = np.random.default_rng(seed())
    drawn = np.sort(rng.choice(len(data.X), size, replace=False))
    pixels = data.X[drawn].astype(float).reshape(size, 9, 4)
    inputs = {"pixel": pixels[:, 4], "around": np.delete(pixels, 4, axis=1).mean(axis=1)}
    return Problem({name: Real(kernel=RBF()) for name in inputs}, inputs, data.y[drawn])


def fashion_mnist(*more: Kernel) -> Problem:
    """Several kernels on the same pixels, as they are."""
    data, size = load("fashion_mnist"), int(table()["mkl"]["rows_fashion_mnist"])
    view = Real(kernel=[RBF(), Polynomial(), *more], scale=False)
    return Problem({"x": view}, {"x": data.X[:size] / 255.0}, data.y[:size])


PROBLEMS: dict[str, Any] = {
    "arrhythmia": arrhythmia,
    "satimage": satimage,
    "fashion_mnist": fashion_mnist,
}

# ---------------------------------------------------------------- methods

SETS = tuple(table()["mkl"]["sets"])
OURS = {"MKL": False, "MKL + RV": True}  # whether few rows are kept to compare with
BASELINES = {"SVM, validated combination": combined_svm, "CCA + SVM": cca_svm}


def ours(problem: Problem, split: Split, way: Way, sparse: bool = False) -> Result:
    """AUC; what each factor is to each kernel; the share of rows that are compared with."""
    views = {name: replace(view, sparse=sparse) for name, view in problem.views.items()}
    found = fit_predict(views, problem.inputs, problem.y, split, way)
    y, model = problem.y[split[1]], found.model
    landmarks = [view.landmarks for name, view in model.views_.items() if name != "y"]
    pool = len(problem.y) if way.published else len(split[0])
    return {
        "auc": auc(y, found.proba),
        "accuracy": found.accuracy(y),
        "proba": found.proba,
        "relevance": factor_relevance(model)[1],
        **({} if way.published else {"weights": model.kernel_weights("y")["weight"].to_numpy()}),
        "share": len(np.unique(np.concatenate(landmarks))) / pool,
        "seconds": found.seconds,
        "converged": float(model.converged_),
    }


def baseline(problem: Problem, split: Split, method: str, grids: Mapping[str, Any]) -> Result:
    """AUC of a baseline, tuned on the training rows."""
    begin, y = perf_counter(), problem.y[split[1]]
    scores = BASELINES[method](problem.blocks(split), grids)
    classes = np.unique(problem.y)
    accuracy = float(np.mean(classes[scores.argmax(axis=1)] == y))
    seconds = perf_counter() - begin
    return {"auc": auc(y, scores), "accuracy": accuracy, "proba": scores, "seconds": seconds}


def _on_fold(name: str, more: tuple[Kernel, ...], n_folds: int, fold: int, work: Any) -> Result:
    problem = PROBLEMS[name](*more)
    result: Result = work(problem, splits("classes", problem.y, n_folds)[fold])
    return result


def task(
    name: str,
    method: str,
    fold: int,
    options: Options,
    work: Any,
    settings: Mapping[str, Any],
    more: tuple[Kernel, ...] = (),
) -> Task:
    """A method on a fold of a problem, with more kernels than it has or without."""
    return Task(
        "kernels",
        name,
        method,
        fold,
        partial(_on_fold, name, more, options.folds, fold, work),
        {
            **settings,
            **fold_settings("classes", options.folds),
            "rows": int(table()["mkl"].get(f"rows_{name}", 0)),  # 0: all
            "more": [kernel_name(kernel) for kernel in more],
        },
    )


# ---------------------------------------------------------------- the table


def table_tasks(options: Options) -> list[Task]:
    """Every method on every fold of every set."""
    grids = grids_of(options)
    works: dict[str, tuple[Any, dict[str, Any]]] = {}
    for how in options.ways:
        for name, sparse in OURS.items():
            settings = {**Way.of(how).settings, "method": "ours", "sparse": sparse}
            works[how.named(name)] = (partial(ours, way=Way.of(how), sparse=sparse), settings)
    for name in BASELINES:
        work = partial(baseline, method=name, grids=grids)
        works[name] = (work, {"method": name, "grids": grids})
    return [
        task(name, method, fold, options, *works[method])
        for name in options.chosen(SETS)
        for method in options.asked(works)
        for fold in options.fold_numbers
    ]


def grids_of(options: Options) -> dict[str, Any]:
    """What inner cross-validation of the baselines chooses from."""
    given = dict(table()["mkl"]["grids"])
    quick = given.pop("quick")
    return given | quick if options.quick else given


FIGURES = ("auc", "share")


def show_table(results: Results, options: Options) -> Shown:
    """AUC by method and set, with the paper's figures below."""
    sets = options.chosen(SETS)
    rows = []
    for method in dict.fromkeys(task.method for task in results):
        found = {k: [figures(results, s, method, k) for s in sets] for k in FIGURES}
        rows.append([method, *map(spread, found["auc"])])
        if method.startswith("MKL + RV"):
            kept = (spread(100 * np.array(shares), 1) for shares in found["share"])
            rows.append([f"{method}: rows compared with (%)", *kept])
    rows += _reported(sets)
    notes = ["Multiclass AUC on test rows, the mean of each class against the rest."]
    notes += [SEEN] if options.as_published else []
    notes += [f"{s}: {table()['mkl'][f'choice_{s}']}." for s in sets]
    notes += remarks("table5", options)
    title = "Multiple kernel learning: AUC"
    return Shown([Table("table5", title, ["method", *sets], rows, notes)])


def _reported(sets: list[str]) -> Iterator[list[str]]:
    for method, values in table()["reported"]["mkl"].items():
        shown = (f"{values[s]:.3f}" if s in values else "–" for s in sets)
        yield [f"{method}, the paper's figure", *shown]


# ---------------------------------------------------------------- the figure


def figure_tasks(options: Options) -> list[Task]:
    """A fit to the training rows of the first fold."""
    found = []
    for how in options.ways:
        way = Way.of(how)
        settings = {**way.settings, "method": "ours", "sparse": False}
        name, work = how.named("MKL, three kernels"), partial(ours, way=way)
        found.append(task("fashion_mnist", name, 0, options, work, settings, (Linear(),)))
    return found


def show_figure(results: Results, options: Options) -> Shown:  # noqa: ARG001
    """The relevance of the factors in each kernel and in the classes."""
    names = [kernel_name(k) for k in (RBF(), Polynomial(), Linear())] + ["classes"]
    found = {task.method: np.asarray(result["relevance"]) for task, result in results.items()}
    return Shown(pictures=[Picture("figure6", partial(draw, found, names))] if found else [])


def draw(found: Mapping[str, Array], names: list[str], path: Path) -> None:
    """For each model a column for each view, a row for each factor: what matters most first."""
    width = plots.COLUMN if len(found) == 1 else plots.PAGE
    with plots.figure(path, width, 3.8) as figure:
        for axes, (title, relevance) in zip(
            figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True
        ):
            _draw_model(axes, relevance, names)
            if len(found) > 1:
                axes.set_title(title)


def _draw_model(axes: Any, relevance: Array, names: list[str]) -> None:
    order = np.argsort(-relevance[-1], kind="stable")[:SHOWN_FACTORS]
    decades = np.log10(np.maximum(1000 * relevance[:, order].T, 1.0))  # above 0.1 %
    shown = heatmap(axes, decades, range(1, len(order) + 1), names)
    count = f"{len(order)} of {relevance.shape[1]}"
    axes.set_ylabel(f"factor, by its share in the classes ({count})")
    bar = colour_bar(axes, shown, "share of the view's signal (%)", extend="min")
    bar.set_ticks([0, 1, 2], labels=["0.1", "1", "10"])


# ---------------------------------------------------------------- rows of the benchmarks

ROWS = {  # the set, what of it, and the least AUC
    "arrhythmia": ("arrhythmia", "", 0.818),
    "satimage": ("satimage", ", 2000 of 6435 rows, drawn at random", 0.983),
    "fashion": ("fashion_mnist", ", first 1000 rows", 0.952),
}


def auc_tasks(name: str) -> list[Task]:
    return table_tasks(Options(sets=(name,), methods=("MKL",)))


def auc_summary(results: Results) -> tuple[float, str]:
    found = list(results.values())
    areas, seconds = ([float(one[name]) for one in found] for name in ("auc", "seconds"))
    weights = np.mean([np.asarray(one["weights"]) for one in found], axis=0)
    shares = " and ".join(f"{w:.2f}" for w in weights)
    text = f"{spread(areas, 4)} (weights {shares}, {np.median(seconds):.1f} s per fold)"
    return float(np.mean(areas)), text


def auc_row(name: str, remark: str, mark: float, label: str) -> Benchmark:
    what = f"macro one-vs-rest AUC on {label}, two kernels, 10 folds{remark}"
    return Benchmark(what, Mark(low=mark), partial(auc_tasks, name), auc_summary)


EXPERIMENTS: dict[str, Experiment | Benchmark] = {
    "table5": Experiment(table_tasks, show_table),
    "figure6": Experiment(figure_tasks, show_figure),
    **{f"mkl-{label}": auc_row(*given, label) for label, given in ROWS.items()},
}
