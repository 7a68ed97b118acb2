"""`kofa fit`: read the tables, fit, save and sum up."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kofa.cli import Stopped, UsageError
from kofa.cli.display import Screen, counted, table
from kofa.cli.given import plan_of_options
from kofa.cli.plan import Plan, Source, naming_files
from kofa.cli.steps.describe import describe, short_kernel
from kofa.cli.steps.writing import until_written
from kofa.cli.study import checked_study, read_study
from kofa.data.stored import Named, by_blocks
from kofa.engines.dask_tasks import connected
from kofa.errors import FileError
from kofa.files import check_folder, hint, same_file
from kofa.model import FactorModel
from kofa.storage.archive import contents_of


def plan_of(
    study: Path | None,
    view: Sequence[str] | None,
    kernel: Sequence[str] | None,
    reading: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Plan:
    """What to fit: the study, changed by the options of the command line."""
    if study is None and not view:
        cure = "kofa init writes one"
        raise UsageError("expected a study.toml, or views as --view NAME=FILE", cure=cure)
    base = None if study is None else read_study(checked_study(study))
    plan = plan_of_options(view or (), kernel or (), reading, base)
    plan = replace(plan, model={**plan.model, **options}, given=frozenset(options))
    for name in plan.model.get("outputs") or ():
        if name not in plan.views:
            cure = hint(name, plan.views, "the views are")
            raise UsageError(f"there is no view {name!r}", source=f"--outputs {name}", cure=cure)
    return plan


def fit(
    plan: Plan,
    to: Path,
    screen: Screen,
    *,
    force: bool = False,
    checkpoint: Path | None = None,
    checkpoint_every: float = 30.0,
    resume: bool = False,
    scheduler: str | None = None,
) -> FactorModel:
    """Read, fit, save and sum up."""
    with connected(scheduler) as engine:
        if engine is not None:
            plan.model["engine"] = engine
        return _fit(plan, to, screen, force, checkpoint, checkpoint_every, resume)


def _fit(
    plan: Plan,
    to: Path,
    screen: Screen,
    force: bool,
    checkpoint: Path | None,
    checkpoint_every: float,
    resume: bool,
) -> FactorModel:
    if str(to) == "-":
        raise UsageError("expected a file but got -: a model is not shown", source="--out -")
    _check_target(to, plan, "model")
    without = checkpoint is None and bool(plan.model.get("as_published"))  # has none
    checkpoint = _checked_checkpoint(checkpoint, to, plan)
    if to.exists() and not force:
        raise FileError("this model exists", to, cure="add --force to replace it")
    if checkpoint.exists() and not resume:
        screen.warn(
            f"starting anew; {checkpoint} of a fit that was stopped will be replaced (to continue "
            f"that fit, stop this one and add --resume)"
        )
    data = plan.read(stored=plan.model.get("engine", "auto") not in ("auto", "memory"))
    check_orientation(data, plan.sources)
    nothing = f"there is no checkpoint {checkpoint}; starting from the beginning"
    first = nothing if resume and not checkpoint.exists() else ""
    watch = screen.watch(plan.model.get("n_init", 1), first)
    model = FactorModel(
        plan.views,
        **plan.model,
        callback=watch,
        checkpoint=None if without else checkpoint,
        checkpoint_every=checkpoint_every,
    )
    began = time.perf_counter()
    try:
        with watch, naming_files(plan.sources), plan.naming_study():
            model.fit(data, resume=resume)
        summary = _summary(model, data, time.perf_counter() - began)
    except KeyboardInterrupt:
        raise Stopped(_how_to_continue(watch.place, checkpoint)) from None
    with until_written(to):
        model.save(to)
        _remove(checkpoint, screen)
    screen.report(*summary, f"\nmodel: {to}")
    return model


def _remove(checkpoint: Path, screen: Screen) -> None:
    """Remove what is no longer needed; if that fails, the model is still written."""
    try:
        if checkpoint.exists() and contents_of(checkpoint) == "checkpoint":
            checkpoint.unlink(missing_ok=True)
    except OSError as error:
        screen.warn(f"{checkpoint} is no longer needed but cannot be removed: {error.strerror}")


def _checked_checkpoint(given: Path | None, to: Path, plan: Plan) -> Path:
    """The file of the checkpoint, if it can be written."""
    checkpoint = given or to.with_name(f"{to.name}.checkpoint")
    if same_file(checkpoint, to):
        where = f"--checkpoint {checkpoint}"
        raise UsageError("expected another file than the model's", source=where)
    _check_target(checkpoint, plan, "checkpoint")
    return checkpoint


def _check_target(path: Path, plan: Plan, contents: str) -> None:
    """Never write a model or a checkpoint over something else."""
    check_folder(path)
    if any(same_file(path, source.file) for source in plan.sources.values()):
        raise FileError("this is the file of a view", path, cure="choose another name")
    if path.exists() and contents_of(path) != contents:
        what = f"this file exists and is not a kofa {contents}"
        raise FileError(what, path, cure="choose another name")


def check_orientation(data: Mapping[str, Any], sources: Mapping[str, Source]) -> None:
    """Raise for a table whose columns, not rows, are the samples of the others."""
    for name, frame in data.items():
        others = set().union(*(data[one].index for one in data if one != name))
        if others.isdisjoint(frame.index) and not others.isdisjoint(frame.columns):
            raise FileError(
                "the columns, not the rows, are the samples of the other views",
                sources[name].name,
                cure=f"set transpose = true for view {name!r} in a study, as kofa init writes it",
            )


def _how_to_continue(place: str, checkpoint: Path) -> str:
    stopped = f"stopped after {place}" if place else "stopped before the first iteration"
    if not checkpoint.exists():
        return f"{stopped}; nothing was written"
    again = [one for one in sys.argv[1:] if one != "--resume"]
    return f"{stopped}; continue with: {shlex.join(['kofa', *again, '--resume'])}"


def _share_missing(frame: Any) -> float:
    if isinstance(frame, Named):
        return float(by_blocks(lambda part: np.isnan(part).mean(axis=1), frame.values).mean())
    return float(frame.isna().to_numpy().mean())


def _summary(model: FactorModel, data: Mapping[str, Any], seconds: float) -> list[Any]:
    samples = set().union(*(frame.index for frame in data.values()))
    state = "converged" if model.converged_ else "not converged"
    head = (
        f"{counted(model.n_factors_, 'factor')} of {counted(len(samples), 'sample')} in "
        f"{counted(len(data), 'view')}; {state} after {counted(model.n_iter_, 'iteration')}, "
        f"{seconds:.1f} s; bound {model.lower_bound_:.6g}\n"
    )
    rows = []
    for name, one in describe(model)["views"].items():
        frame = data[one["source"]]
        missing = f"{_share_missing(frame):.1%}"
        role = "output" if one["output"] else ""
        kernel = short_kernel(one["kernel"])
        rows.append((name, one["kind"], kernel, frame.shape[0], one["columns"], missing, role))
    names = ("view", "kind", "kernel", "samples", "columns", "missing", "role")
    return [head, table(names, rows, ("samples", "columns", "missing"))]
