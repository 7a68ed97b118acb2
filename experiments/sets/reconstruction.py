"""How well the factors give a kernel back: the kernel, its reconstruction, and the error."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import plots
from experiments.data import load
from experiments.experiment import Experiment, Picture, Shown, Table
from experiments.models.classes import Way, fit
from experiments.protocol import table
from experiments.tasks import Array, Options, Result, Results, Task
from kofa.kernels.base import Kernel
from kofa.kernels.formulas import RBF, Linear
from kofa.kernels.kernel_map import KernelMap
from kofa.plot.relevance import draw_kernel
from kofa.views import Real

KERNELS: dict[str, Kernel] = {"linear": Linear(), "RBF": RBF()}


def tasks(options: Options) -> list[Task]:
    """A fit to all rows for each kernel."""
    given = table()["reconstruction"]
    return [
        Task(
            "reconstruction",
            given["set"],
            how.named(kernel),
            0,
            partial(_of_set, given["set"], kernel, way),
            {**way.settings, "kernel": kernel},
        )
        for how in options.ways
        for way in [Way.of(how, int(given["n_factors"]))]
        for kernel in KERNELS
    ]


def _of_set(name: str, kernel: str, way: Way) -> Result:
    data = load(name)
    order = np.argsort(data.y, kind="stable")
    return reconstructed(data.X[order].astype(float), data.y[order], KERNELS[kernel], way)


def reconstructed(X: Array, y: NDArray[Any], kernel: Kernel, way: Way) -> dict[str, Any]:
    """The centred kernel of all rows, and what the factors of the rows say of it, (N, N) each."""
    everyone = np.arange(len(X)), np.arange(0)
    model = fit({"x": Real(kernel=kernel, landmarks="all")}, {"x": X}, y, everyone, way)
    view = model.views_["x"]
    encoder = view.encoder
    assert isinstance(encoder, KernelMap)
    column = np.argsort(view.landmarks)  # landmarks may come in any order
    K = encoder.scale * encoder.encode(X)[:, column]
    back = np.asarray(model.reconstruct({"x": X, "y": y}, "x"))[:, column]
    return {"kernel": K, "back": back, "classes": y.astype(float), "factors": model.n_factors_}


# ---------------------------------------------------------------- what is shown


def error_share(result: Result) -> float:
    """Sum of squares of the error, relative to that of the kernel."""
    K, back = np.asarray(result["kernel"]), np.asarray(result["back"])
    return float(((K - back) ** 2).sum() / (K**2).sum())


def show(results: Results, options: Options) -> Shown:  # noqa: ARG001
    """Three matrices for each kernel, and the size of the error."""
    if not results:
        return Shown()
    found = {task.method: result for task, result in results.items()}
    rows = [
        [name, f"{int(float(one['factors']))}", f"{100 * error_share(one):.2f}"]
        for name, one in found.items()
    ]
    shown = Table(
        "figure7",
        "Reconstruction of kernels",
        ["kernel", "factors", "error (% of the sum of squares)"],
        rows,
        [f"{table()['reconstruction']['choice']}."],
    )
    return Shown([shown], [Picture("figure7", partial(draw, found))])


def draw(found: Mapping[str, Result], path: Path) -> None:
    """A row for each kernel; its three matrices share their colours."""
    with plots.figure(path, plots.PAGE, 0.4 + 2.15 * len(found)) as figure:
        grid = figure.subplots(len(found), 3, squeeze=False)
        for row, (name, result) in zip(grid, found.items(), strict=True):
            draw_kernel(row, np.asarray(result["kernel"]), np.asarray(result["back"]))
            for axes in row:
                axes.set(xlabel="samples, by class", aspect="equal")
            kernel, *how = name.split(", ")
            row[0].set_ylabel("\n".join([f"{kernel} kernel", *how, "samples, by class"]))


EXPERIMENTS = {"figure7": Experiment(tasks, show)}
