"""`kofa plot`: which options a plot takes, what they stand for, and the picture in a file."""

from __future__ import annotations

import inspect
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kofa.cli import UsageError
from kofa.cli.display import Screen, table
from kofa.cli.steps import apply
from kofa.cli.steps.describe import is_archive, load
from kofa.cli.steps.meaning import covariate_source, feature_sets, naming_sets
from kofa.cli.steps.tables import factor_name, factor_names, naming_options, one_view
from kofa.cli.steps.writing import check_not_read, until_written
from kofa.errors import DataError, FileError
from kofa.files import check_exists, check_folder, hint, write_bytes
from kofa.report.evaluation_file import read_evaluation
from kofa.storage.archive import contents_of

FORMATS = (".png", ".svg", ".pdf")
_DPI = 200  # of a PNG
# What a plot cannot do without, beside what has no default in Python.
_NEEDED = {
    "agreement": ["other"],
    "associations": ["covariates"],
    "enrichment": ["view", "sets"],
    "feature_relevance": ["view"],
    "top_weights": ["view"],
    "weights": ["view"],
    "weights_heatmap": ["view"],
    "weights_scatter": ["view"],
}
# Options that have another name in Python.
_PARAMETERS = {"factor": ("factor", "factors"), "of": ("of", "model")}


def listing(plots: Mapping[str, str]) -> list[Any]:
    """All plots, for people."""
    rows = list(plots.items())
    after = "\nkofa plot NAME MODEL [VIEW] -o FILE draws one; kofa plot --help has the options"
    return [table(("plot", "shows"), rows, ()), after]


def plot(
    name: str,
    source: Path | None,
    view: str | None,
    out: str | None,
    options: Mapping[str, Any],
    tables: Mapping[str, Any],
    screen: Screen,
) -> None:
    """Draw, and write the picture."""
    drawing = Drawing.named(name)
    drawing.check_options(options, view, tables)
    if source is None:
        raise UsageError("expected a model", cure=f"kofa plot {name} model.kofa -o {name}.png")
    check_exists(source)
    if out is None:
        raise UsageError("expected -o with the file of the picture", cure=f"add -o {name}.png")
    path = _checked_picture(out)
    given = apply.opened(source, **tables, needed=False) if is_archive(source) else None
    check_not_read([path], [source] if given is None else given.files, "name")
    picture = drawing.draw(source, given, view, options, path.suffix.lower()[1:], tables)
    with until_written(out):
        write_bytes(path, picture)
    screen.report(f"{out}: {name}")


def _checked_picture(out: str) -> Path:
    """Where the picture goes, if one can be written there."""
    path = Path(out)
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"expected a file that ends in {', '.join(FORMATS)}", got=out)
    check_folder(path)
    if path.exists() and contents_of(path) is not None:
        raise FileError("this is a file of kofa", path, cure="choose another name")
    return path


@dataclass(frozen=True)
class Drawing:
    """A function of kofa.plot, and what it takes."""

    name: str
    function: Any
    takes: Mapping[str, inspect.Parameter]  # but for the model or table

    @classmethod
    def named(cls, name: str) -> Drawing:
        from kofa import plot as plots

        if name not in plots.__all__:
            parts = [one for one in plots.__all__ if name and name.lower() in one]
            meant = f"did you mean {' or '.join(map(repr, parts[:4]))}?" if parts else ""
            cure = meant or hint(name, plots.__all__) or "kofa plot lists them"
            raise UsageError(f"there is no plot {name!r}", cure=cure)
        function = getattr(plots, name)
        _, *others = inspect.signature(function).parameters.items()
        return cls(name, function, dict(others))

    def parameter(self, option: str) -> str | None:
        """What an option is called in Python, if the plot takes it."""
        names = _PARAMETERS.get(option, (option,))
        return next((name for name in names if name in self.takes), None)

    def check_options(
        self, options: Mapping[str, Any], view: str | None, tables: Mapping[str, Any]
    ) -> None:
        """Raise for options that this plot does not take, and for those that it needs."""
        for option in options:
            used_by_colour = option == "covariates" and {"colour", "by"} & set(self.takes)
            if self.parameter(option) is None and not used_by_colour:
                what = f"the plot {self.name} takes no --{option.replace('_', '-')}"
                raise UsageError(what, cure="leave it out")
        if view is not None and not {"view", "output"} & set(self.takes):
            raise UsageError(f"the plot {self.name} takes no view", got=view)
        given = {*options, *(["view"] * (view is not None))}
        given |= {"data"} if tables["view"] or tables["study"] else set()
        required = [key for key, p in self.takes.items() if p.default is p.empty and p.kind != 4]
        for key in [*required, *_NEEDED.get(self.name, ())]:
            if key not in given:
                needed, way = _WAYS[key]
                raise UsageError(f"the plot {self.name} needs {needed}", cure=way)

    def draw(
        self,
        source: Path,
        given: apply.Given | None,
        view: str | None,
        options: Mapping[str, Any],
        form: str,
        tables: Mapping[str, Any],
    ) -> bytes:
        """The picture as the bytes of a file."""
        import matplotlib

        matplotlib.use("Agg")
        if given is None:
            table = read_evaluation(source)
            with _naming(source):
                return self._drawn(table, self._of_table(view, options), form)
        if "predictions" in inspect.signature(self.function).parameters or self.name == "compare":
            what = f"the plot {self.name} is of what kofa evaluate wrote"
            raise FileError(what, source, cure="give the file of --predictions, or the scores")
        with given.ask() as data, naming_options():
            arguments = self._of_model(given, data, view, options, tables)
            sets = options.get("sets")
            with nullcontext() if sets is None else naming_sets(Path(sets)):
                return self._drawn(given.model, arguments, form)

    def _of_table(self, view: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
        arguments = {str(self.parameter(key)): value for key, value in options.items()}
        return arguments | ({} if view is None else {"view": view})

    def _of_model(
        self,
        given: apply.Given,
        data: Any,
        view: str | None,
        options: Mapping[str, Any],
        tables: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The options as the function takes them."""
        model, arguments = given.model, {}
        if view is not None:
            arguments["view" if "view" in self.takes else "output"] = one_view(model, view)
        if data is not None and "data" in self.takes:
            arguments["data"] = data
        known = None
        if "covariates" in options:
            known = covariate_source(options["covariates"], tables["reading"], given.sources).read()
        for key, value in options.items():
            name = self.parameter(key)
            if name is not None:
                arguments[name] = self._meant(key, value, model, known)
        return arguments

    def _meant(self, option: str, value: Any, model: Any, known: Any) -> Any:
        """What an option stands for."""
        if option in ("x", "y", "z") or (option == "by" and self.name == "kernel"):
            return factor_name(model, value)
        if option == "factor":
            several = "factors" in self.takes
            return factor_names(model, value) if several else _only(factor_names(model, value))
        if option in ("colour", "by"):
            return _column(option, value, known)
        if option == "covariates":
            return known
        if option == "sets":
            return feature_sets(Path(value))
        if option == "other":
            return load(Path(value))
        return _shape(value) if option == "image_shape" else value

    def _drawn(self, source: Any, arguments: Mapping[str, Any], form: str) -> bytes:
        from matplotlib import pyplot

        found = self.function(source, **arguments)
        figure = getattr(found, "figure", found)
        figure = figure if hasattr(figure, "savefig") else found
        with io.BytesIO() as file:
            figure.savefig(file, format=form, dpi=_DPI)
            pyplot.close(figure)
            return file.getvalue()


_WAYS = {  # what a plot may need, and how it is given
    "view": ("a view", "name it behind the model"),
    "data": ("tables", "add --study STUDY or --view NAME=FILE"),
    "other": ("another model", "add --other MODEL"),
    "covariates": ("covariates", "add --covariates FILE"),
    "sets": ("feature sets", "add --sets FILE"),
    "by": ("classes", "add --by COLUMN and --covariates FILE"),
}


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Errors about a table name its file."""
    try:
        yield
    except DataError as error:
        raise error.as_error(DataError, source=path) from error


def _only(names: Sequence[str] | None) -> str:
    assert names is not None
    if len(names) > 1:
        raise UsageError("expected one --factor", got=list(names))
    return names[0]


def _column(option: str, text: str, known: Any) -> Any:
    """A column of the covariates; without these, of the tables: VIEW or VIEW:COLUMN."""
    if known is None:
        view, colon, column = text.partition(":")
        return (view, column) if colon else view
    if text not in known.columns:
        cure = hint(text, known.columns, "there are")
        raise UsageError(f"there is no column {text!r}", source=f"--{option}", cure=cure)
    return known[text]


def _shape(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,6})[x×,]([0-9]{1,6})", text)
    if match is None:
        raise UsageError("expected ROWSxCOLUMNS, such as 8x8", source=f"--image-shape {text}")
    return int(match[1]), int(match[2])
