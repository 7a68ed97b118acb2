"""What the commands do, step by step."""

from __future__ import annotations

import fnmatch
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kofa.cli import Stopped, UsageError
from kofa.cli.display import Screen, counted, table
from kofa.cli.guess import as_toml, guess_folder
from kofa.cli.study import Plan, Source, parse_views, read_study
from kofa.errors import DataError, FileError
from kofa.files import (
    SUFFIXES,
    Values,
    check_exists,
    check_folder,
    check_stdout,
    check_writable,
    file_names,
    listed,
    nearest,
    new_folder,
    same_file,
    write_files,
    write_text,
)
from kofa.model import FactorModel
from kofa.model import load as load_model
from kofa.storage.archive import contents_of, open_archive


@contextmanager
def until_written(what: object) -> Iterator[None]:
    """Ctrl-C waits until something is written, or it would leave pieces; a second one does not."""
    pressed = False

    def wait(*_: object) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, before)

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background
        yield
        return
    before = signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise Stopped(f"stopped; {what} is written")


# ---------------------------------------------------------------- fit


def fit(
    plan: Plan,
    to: Path,
    screen: Screen,
    *,
    checkpoint: Path | None = None,
    checkpoint_every: float = 30.0,
    resume: bool = False,
) -> FactorModel:
    """Read, fit, save and sum up."""
    _check_target(to, plan, "model")
    checkpoint = checkpoint or to.with_name(f"{to.name}.checkpoint")
    if same_file(checkpoint, to):
        raise UsageError(f"--checkpoint {checkpoint}: expected another file than the model's")
    _check_target(checkpoint, plan, "checkpoint")
    _mention_checkpoint(checkpoint, resume, screen)
    data = plan.read()
    _check_orientation(data, plan.sources)
    watch = screen.watch(plan.model.get("n_init", 1))
    model = FactorModel(
        plan.views,
        **plan.model,
        callback=watch,
        checkpoint=checkpoint,
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
    """Remove what is no longer needed; if that fails, the model is there all the same."""
    try:
        if checkpoint.exists() and contents_of(checkpoint) == "checkpoint":
            checkpoint.unlink(missing_ok=True)
    except OSError as error:
        screen.warn(f"{checkpoint} is no longer needed but cannot be removed: {error.strerror}")


def check_outputs(plan: Plan) -> None:
    """Raise for an option --output that names no view."""
    for name in plan.model.get("outputs") or ():
        if name not in plan.views:
            cure = nearest(name, plan.views) or f"; the views are {listed(plan.views)}"
            raise UsageError(f"--output {name}: there is no view {name!r}{cure}")


def checked_study(path: Path) -> Path:
    """The path of a study, or an error that says what the file is instead."""
    check_exists(path)
    if path.suffix.lower() != ".toml":
        raise FileError(
            f"{path}: expected a study such as study.toml; give tables as --view NAME={path}"
        )
    return path


def _check_target(path: Path, plan: Plan, contents: str) -> None:
    """Never write a model or a checkpoint over something else."""
    check_folder(path)
    if any(same_file(path, source.file) for source in plan.sources.values()):
        raise FileError(f"{path}: this is the file of a view; choose another name")
    if path.exists() and contents_of(path) != contents:
        raise FileError(
            f"{path}: this file exists and is not a kofa {contents}; choose another name"
        )


def _check_orientation(data: Mapping[str, Any], sources: Mapping[str, Source]) -> None:
    """Raise for a table whose columns, not rows, are the samples of the others."""
    for name, frame in data.items():
        others = set().union(*(data[one].index for one in data if one != name))
        if others.isdisjoint(frame.index) and not others.isdisjoint(frame.columns):
            raise FileError(
                f"{sources[name].file}: the columns, not the rows, are the samples of the other "
                f"views; set transpose = true for view {name!r} in a study, as kofa init writes it"
            )


def _mention_checkpoint(checkpoint: Path, resume: bool, screen: Screen) -> None:
    if resume and not checkpoint.exists():
        screen.note(f"there is no checkpoint {checkpoint}; starting from the beginning")
    elif checkpoint.exists() and not resume:
        screen.warn(
            f"starting anew; {checkpoint} of a fit that was stopped will be replaced (to continue "
            f"that fit, stop this one and add --resume)"
        )


def _how_to_continue(place: str, checkpoint: Path) -> str:
    stopped = f"stopped after {place}" if place else "stopped before the first iteration"
    if not checkpoint.exists():
        return f"{stopped}; nothing was written"
    again = [one for one in sys.argv[1:] if one != "--resume"]
    return f"{stopped}; continue with: {shlex.join(['kofa', *again, '--resume'])}"


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
        missing = f"{frame.isna().to_numpy().mean():.1%}"
        role = "output" if one["output"] else ""
        kernel = _short(one["kernel"])
        rows.append((name, one["kind"], kernel, len(frame), one["columns"], missing, role))
    names = ("view", "kind", "kernel", "samples", "columns", "missing", "role")
    return [head, table(names, rows, ("samples", "columns", "missing"))]


def _short(kernel: str | None) -> str:
    """A kernel with numbers that fit into a table.

    >>> _short("RBF(width=8523.93823872112)")
    'RBF(width=8524)'
    """
    if kernel is None:
        return "–"
    return re.sub(r"\d+\.\d+(e[+-]?\d+)?", lambda number: f"{float(number[0]):.4g}", kernel)


@contextmanager
def naming_files(sources: Mapping[str, Source]) -> Iterator[None]:
    """Put the file of a view in front of an error about its data."""
    try:
        yield
    except DataError as error:
        for name, source in sources.items():
            if str(error).startswith((f"View {name!r}", f"View '{name}[")):
                raise DataError(f"{source.file}: {error}") from error
        raise


# ---------------------------------------------------------------- a model and new tables


def load(path: Path) -> FactorModel:
    """A model from its file; what is no model gets a message that says how to go on."""
    check_exists(path)
    if not _is_archive(path):
        raise FileError(f"{path}: this is not a kofa model; kofa fit writes one")
    return load_model(path)


def _is_archive(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04" and path.suffix.lower() != ".npz"


def sources_for(
    model: FactorModel, views: Sequence[str], study: Path | None, shared: Mapping[str, Any]
) -> dict[str, Source]:
    """Where the tables for a model are: the study's, or those of --view, read as in fit."""
    known = _first_of_each(model)
    planned = {} if study is None else read_study(checked_study(study)).sources
    sources = {name: one for name, one in planned.items() if name in known}
    named: dict[str, Source] = {}
    for name, text, source in parse_views(views, shared):
        if name not in known:
            cure = nearest(name, known) or f"; its views are {listed(known)}"
            raise UsageError(f"--view {text}: the model has no view {name!r}{cure}")
        declared = known[name].declared.lower()
        if source.kind not in (None, declared):
            raise UsageError(f"--view {text}: the view is {declared} in the model")
        _check_columns(text, source, known[name])
        named[name] = sources[name].replaced_by(source) if name in sources else source
    # With --view, the study says how tables are read, not which.
    chosen = named or sources
    if not chosen:
        raise UsageError("Expected tables: give --view NAME=FILE for at least one view, or --study")
    return {name: _as_in_fit(source, known[name]) for name, source in chosen.items()}


def _check_columns(text: str, source: Source, view: Any) -> None:
    """Raise for columns that fit did not see; those that it saw are read without being named."""
    names = [] if view.inputs is None else [str(one) for one in view.inputs]
    for asked in source.reading.columns or ():
        if names and asked not in names and not fnmatch.filter(names, asked):
            cure = nearest(asked, names) or f"; its columns are {listed(names)}"
            raise UsageError(f"--view {text}: the view has no column {asked!r} in the model{cure}")


def _first_of_each(model: FactorModel) -> dict[str, Any]:
    """The fitted views by declared name; one with several kernels has the same table for all."""
    found: dict[str, Any] = {}
    for view in model.views_.values():
        found.setdefault(view.source, view)
    return found


def _as_in_fit(source: Source, view: Any) -> Source:
    """Read the columns that fit saw, labels as words where they were words."""
    values: Values = "numbers"
    if view.classes is not None:
        values = "words" if isinstance(view.classes.tolist()[0], str) else "labels"
    reading = replace(source.reading, values=values)
    if view.inputs is not None:
        reading = replace(reading, columns=tuple(map(str, view.inputs)), drop=())
    return replace(source, reading=reading)


def read_for(model: FactorModel, sources: Mapping[str, Source]) -> dict[str, Any]:
    """The tables, with the names of columns as the model knows them."""
    known, data = _first_of_each(model), {}
    for name, source in sources.items():
        data[name] = source.read()
        if known[name].inputs is not None:
            data[name].columns = list(known[name].inputs)
    return data


def check_target(to: str, read: Iterable[Path]) -> None:
    """Raise unless a table can be written there, before any work is done."""
    if to == "-":
        check_stdout()
        return
    check_writable(Path(to))
    _check_not_read([Path(to)], read, "name")


def _check_not_read(files: Iterable[Path], read: Iterable[Path], what: str) -> None:
    read = list(read)
    for file in files:
        if any(same_file(file, one) for one in read):
            raise FileError(f"{file}: this is a file that is read; choose another {what}")


# ---------------------------------------------------------------- predict, impute


def pick_target(model: FactorModel, target: str | None, given: Collection[str]) -> str:
    """The view to predict: the one asked for, or the model's only output."""
    goal = _goal(model, target)
    source = model.views_[goal].source
    if not set(given) - {source}:
        others = [name for name in _first_of_each(model) if name != source]
        raise UsageError(
            f"Expected --view of another view than {source!r} to predict it from: {listed(others)}"
        )
    return goal


def _goal(model: FactorModel, target: str | None) -> str:
    names = list(model.views_)
    if target is None:
        outputs = [name for name, view in model.views_.items() if view.role.output]
        if len(outputs) == 1:
            return outputs[0]
        raise UsageError(f"Expected --target with one of the views {listed(outputs or names)}")
    if target not in names:
        cure = nearest(target, names) or f"; its views are {listed(names)}"
        raise UsageError(f"--target {target}: the model has no view {target!r}{cure}")
    return target


def parse_quantiles(text: str | None) -> list[float]:
    """Probabilities from a list such as .05,.95."""
    try:
        found = [float(one) for one in (text or "").split(",") if one.strip()]
    except ValueError:
        found = [2.0]
    if not all(0.0 < one < 1.0 for one in found):
        raise UsageError(f"--quantiles {text}: expected numbers between 0 and 1, such as .05,.95")
    return found


def predictions(
    model: FactorModel,
    data: Mapping[str, Any],
    target: str,
    *,
    proba: bool,
    std: bool,
    quantiles: Sequence[float],
) -> Any:
    """One table: predictions, then what else was asked for, in columns named after them."""
    import pandas as pd

    if std:
        mean, spread = model.predict(data, target, return_std=True)
        parts = [mean, spread.add_suffix("_std")]
    else:
        mean = model.predict(data, target)
        parts = [mean.to_frame(mean.name or target) if mean.ndim == 1 else mean]
    if proba:
        single = parts[0].columns[0]
        p = model.predict_proba(data, target)
        labels = model.views_[target].classes is not None
        parts.append(p.add_prefix(f"{single}_") if labels else p.add_suffix("_p"))
    if quantiles:
        tables = model.predict_quantiles(data, target, list(quantiles))
        parts += [t.add_suffix(f"_q{q:g}") for q, t in zip(quantiles, tables, strict=True)]
    found = pd.concat(parts, axis=1)
    if not found.columns.is_unique:
        name = found.columns[found.columns.duplicated()][0]
        raise DataError(
            f"View {target!r}: two columns of the result would be called {name!r}; ask for fewer "
            f"things at a time, or fit to a column with another name"
        )
    return found


def impute(model: FactorModel, data: Mapping[str, Any], files: Mapping[str, Path]) -> list[Any]:
    """Write the filled tables, and say what was filled."""
    rows = []
    filled = model.impute(data)
    for name, frame in filled.items():
        before = data[name].reindex(frame.index).isna().to_numpy().sum()
        after = frame.isna().to_numpy().sum()
        rows.append((name, len(frame), before - after, after, files[name]))
    folder = next(iter(files.values())).parent
    with until_written(folder), new_folder(folder):
        write_files({files[name]: frame for name, frame in filled.items()})
    names = ("view", "samples", "filled", "left", "file")
    return [table(names, rows, ("samples", "filled", "left"))]


def files_in(
    folder: Path, model: FactorModel, names: Iterable[str], suffix: str, read: Iterable[Path]
) -> dict[str, Path]:
    """A file for each view in a folder, which is there or can be made."""
    if str(folder) == "-":
        raise UsageError("--to -: expected a folder; each view gets a file in it")
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder}: expected a folder but this is a file")
    check_folder(folder / "view.csv" if folder.exists() else folder)
    plain = file_names(_first_of_each(model))  # of all views: the same, whichever are given
    files = {name: folder / f"{plain[name]}.{suffix}" for name in names}
    _check_not_read(files.values(), read, "folder")
    for file in files.values() if folder.exists() else ():
        check_folder(file)
    return files


# ---------------------------------------------------------------- info


def describe(model: FactorModel) -> dict[str, Any]:
    """What there is to know about a model, in plain values."""
    weights = model.kernel_weights().groupby("view")["weight"].sum()
    return {
        "factors": int(model.n_factors_),
        "bound": float(model.lower_bound_),
        "iterations": int(model.n_iter_),
        "converged": bool(model.converged_),
        "views": {
            name: {
                "source": view.source,
                "kind": view.declared.lower(),
                "kernel": repr(model.kernels_[name]) if name in model.kernels_ else None,
                "columns": int(view.n_inputs),
                "landmarks": len(view.landmarks) if name in model.kernels_ else None,
                "classes": None if view.classes is None else view.classes.tolist(),
                "output": bool(view.role.output),
                "share": float(weights.get(name, 0.0)),
            }
            for name, view in model.views_.items()
        },
    }


def info(path: Path) -> dict[str, Any]:
    """The description of a model file, with the versions that wrote it."""
    model = load(path)
    with open_archive(path, "model") as (manifest, *_):
        versions = {key: manifest[key] for key in ("kofa_version", "format_version")}
    return {"file": str(path), "bytes": path.stat().st_size, **versions, **describe(model)}


def show_info(path: Path) -> list[Any]:
    """The description of a model file, for people."""
    found = info(path)
    state = "converged" if found["converged"] else "not converged"
    head = (
        f"{found['file']}: {counted(found['factors'], 'factor')}, "
        f"{counted(len(found['views']), 'view')}, {state} after "
        f"{counted(found['iterations'], 'iteration')}, bound {found['bound']:.6g}\n"
        f"written by kofa {found['kofa_version']}, format {found['format_version']}, "
        f"{found['bytes'] / 1024:,.0f} KiB\n"
    )
    rows = []
    for name, one in found["views"].items():
        kernel, landmarks = _short(one["kernel"]), one["landmarks"] or "–"
        role = "output" if one["output"] else ""
        share = f"{one['share']:.0%}"
        rows.append((name, one["kind"], one["columns"], share, landmarks, role, kernel))
    names = ("view", "kind", "columns", "share", "landmarks", "role", "kernel")
    labels = [
        f"classes of {name}: {listed(one['classes'])}"
        for name, one in found["views"].items()
        if one["classes"] is not None
    ]
    foot = "\n".join(["", "share: of what is known about the factors", *labels])
    return [head, table(names, rows, ("columns", "share", "landmarks")), foot]


# ---------------------------------------------------------------- init


def init(folder: Path, force: bool) -> list[Any]:
    """Write study.toml, and show what it declares."""
    if not folder.is_dir():
        what = "this is a file" if folder.exists() else "there is no such folder"
        raise FileError(f"{folder}: expected a folder with tables but {what}")
    study = folder / "study.toml"
    if study.exists() and not force:
        raise FileError(f"{study}: this file exists; add --force to replace it")
    guesses, remarks = guess_folder(folder)
    if not guesses:
        raise FileError(
            f"{folder}: there are no tables in it ({', '.join(SUFFIXES)})"
            + "".join(f"; {remark}" for remark in remarks[:1])
        )
    with until_written(study):
        write_text(study, as_toml(guesses, remarks))
    rows = [(g.name, g.kind, len(g.columns), g.file) for g in guesses]
    made = table(("view", "kind", "columns", "file"), rows, ("columns",))
    notes = [f"note: {remark}" for remark in remarks]
    after = f"{study}: check the kinds, name the outputs, then: kofa fit {study} -o model.kofa"
    return [made, "\n".join(["", *notes, after])]
