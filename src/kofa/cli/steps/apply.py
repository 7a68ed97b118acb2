"""`kofa transform`, `kofa predict` and `kofa impute`: a model and new tables."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kofa.cli import UsageError
from kofa.cli.display import table
from kofa.cli.given import parse_views
from kofa.cli.plan import Source, naming_files
from kofa.cli.steps.describe import load
from kofa.cli.steps.writing import check_not_read, until_written
from kofa.cli.study import checked_study, read_study
from kofa.data.stored import Named
from kofa.errors import DataError, FileError
from kofa.files import (
    Values,
    check_folder,
    check_stdout,
    check_writable,
    file_names,
    hint,
    listed,
    new_folder,
    write_files,
)
from kofa.model import FactorModel


@dataclass(frozen=True)
class Given:
    """A model, and where the tables for it are."""

    model: FactorModel
    sources: dict[str, Source]
    files: list[Path]  # all that are read, and must not be written

    def read(self, stored: bool = False) -> dict[str, Any]:
        """The tables, `stored` in files or not, with the names of columns as in fit."""
        known, data = _first_of_each(self.model), {}
        for name, source in self.sources.items():
            data[name] = source.read(stored)
            names = known[name].inputs
            if names is not None and isinstance(data[name], Named):
                data[name] = replace(data[name], columns=tuple(names))
            elif names is not None:
                data[name].columns = list(names)
        return data

    def naming_files(self) -> AbstractContextManager[None]:
        return naming_files(self.sources)

    @contextmanager
    def ask(self) -> Iterator[Any]:
        """The tables, or None if there are none, with errors that say how to give them."""
        try:
            with self.naming_files():
                yield self.read() if self.sources else None
        except DataError as error:
            if error.option != "data":
                raise
            cure = "add --study STUDY or --view NAME=FILE"
            raise error.as_error(UsageError, source=self.files[0], advice=cure) from None


def opened(
    path: Path,
    view: Sequence[str] | None,
    study: Path | None,
    reading: Mapping[str, Any],
    needed: bool = True,
) -> Given:
    """The model of a file, and the tables that options or a study name, `needed` or not."""
    model = load(path)
    alone = not (needed or view or study)
    sources = {} if alone else _sources_for(model, view or (), study, reading)
    files = [path, *filter(None, [study]), *(one.file for one in sources.values())]
    return Given(model, sources, files)


def _sources_for(
    model: FactorModel, views: Sequence[str], study: Path | None, shared: Mapping[str, Any]
) -> dict[str, Source]:
    """Where the tables for a model are: the study's, or those of --view, read as in fit."""
    known = _first_of_each(model)
    planned = {} if study is None else read_study(checked_study(study)).sources
    sources = {name: one for name, one in planned.items() if name in known}
    named: dict[str, Source] = {}
    for name, text, source in parse_views(views, shared):
        where = f"--view {text}"
        if name not in known:
            cure = hint(name, known, "its views are")
            raise UsageError(f"the model has no view {name!r}", source=where, cure=cure)
        declared = known[name].declared.lower()
        if source.kind not in (None, declared):
            cure = "leave the kind out"
            raise UsageError(f"the view is {declared} in the model", source=where, cure=cure)
        _check_columns(where, source, known[name])
        named[name] = sources[name].replaced_by(source) if name in sources else source
    # With --view, the study says how tables are read, not which.
    chosen = named or sources
    if not chosen:
        cure = "give --view NAME=FILE for at least one view, or --study"
        raise UsageError("expected tables", cure=cure)
    return {name: _as_in_fit(source, known[name]) for name, source in chosen.items()}


def _check_columns(where: str, source: Source, view: Any) -> None:
    """Raise for columns that fit did not see; those that it saw are read without being named."""
    names = [] if view.inputs is None else [str(one) for one in view.inputs]
    for asked in source.reading.columns or ():
        if names and asked not in names and not fnmatch.filter(names, asked):
            what = f"the view has no column {asked!r} in the model"
            raise UsageError(what, source=where, cure=hint(asked, names, "its columns are"))


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


def check_target(to: str, read: Iterable[Path]) -> None:
    """Raise unless a table can be written there, before any work is done."""
    if to == "-":
        check_stdout()
        return
    check_writable(Path(to))
    check_not_read([Path(to)], read, "name")


def block_by_block(given: Given, to: str, target: str | None = None) -> bool:
    """Whether a result is a table of numbers that a Parquet file can get block by block."""
    labels = target is not None and given.model.views_[target].classes is not None
    return Path(to).suffix.lower() == ".parquet" and not labels


# ---------------------------------------------------------------- predict, impute


def pick_target(model: FactorModel, target: str | None, given: Collection[str]) -> str:
    """The view to predict: the one asked for, or the model's only output."""
    goal = _goal(model, target)
    source = model.views_[goal].source
    if not set(given) - {source}:
        others = [name for name in _first_of_each(model) if name != source]
        what = f"expected --view of another view than {source!r} to predict it from"
        raise UsageError(what, cure=f"give --view NAME=FILE for {listed(others)}")
    return goal


def _goal(model: FactorModel, target: str | None) -> str:
    names = list(model.views_)
    if target is None:
        outputs = [name for name, view in model.views_.items() if view.role.output]
        if len(outputs) == 1:
            return outputs[0]
        what = "expected --target with the view to predict"
        has = f"the model has the outputs {listed(outputs)}" if outputs else ""
        raise UsageError(what, cure=has or f"its views are {listed(names)}")
    if target not in names:
        cure = hint(target, names, "its views are")
        what = f"the model has no view {target!r}"
        raise UsageError(what, source=f"--target {target}", cure=cure)
    return target


def parse_quantiles(text: str | None) -> list[float]:
    """Probabilities from a list such as .05,.95."""
    try:
        found = [float(one) for one in (text or "").split(",") if one.strip()]
    except ValueError:
        found = []
    if text is not None and not (found and all(0.0 < one < 1.0 for one in found)):
        what = "expected numbers between 0 and 1, such as .05,.95"
        raise UsageError(what, source=f"--quantiles {text}")
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
        cure = "ask for fewer things at a time, or fit to a column with another name"
        raise DataError(f"two columns of the result would be called {name!r}", target, cure=cure)
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


def files_in(folder: Path, given: Given, suffix: str) -> dict[str, Path]:
    """A file for each view in a folder, which is there or can be made."""
    if str(folder) == "-":
        cure = "each view gets a file in it"
        raise UsageError("expected a folder", source="--out -", cure=cure)
    if folder.exists() and not folder.is_dir():
        raise FileError("expected a folder but this is a file", folder, cure="choose another name")
    check_folder(folder / "view.csv" if folder.exists() else folder)
    plain = file_names(_first_of_each(given.model))  # of all views: the same, whichever are given
    files = {name: folder / f"{plain[name]}.{suffix}" for name in given.sources}
    check_not_read(files.values(), given.files, "folder")
    for file in files.values() if folder.exists() else ():
        check_folder(file)
    return files
