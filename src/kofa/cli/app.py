"""The commands. What they do is in `steps`, imported only when one runs."""

from __future__ import annotations

import json as jsons
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from kofa.cli import Stopped, UsageError
from kofa.cli.display import Screen, counted, take_any_text
from kofa.errors import KofaError

if TYPE_CHECKING:
    from kofa.cli.study import Source
    from kofa.model import FactorModel


class PlainFlags:
    """Help that has no <bool> beside options that take no value."""

    def get_params(self, ctx: Any) -> Any:
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(PlainFlags, TyperCommand):
    """One command."""


class Commands(PlainFlags, TyperGroup):
    """All commands, with errors in one line and an exit code."""

    def main(self, *arguments: Any, **extra: Any) -> Any:
        take_any_text()
        given = (*arguments, extra.get("args"))[0] or sys.argv[1:]
        try:
            code = super().main(*arguments, **{**extra, "standalone_mode": False})
        except Exception as error:
            wrong_options = isinstance(error, UsageError | typer.Abort | _WrongOptions)
            if "--debug" in given and not wrong_options:
                raise
            if message := _in_words(error):
                Screen().error(message)
            code = 2 if wrong_options else 1
        sys.exit(code or 0)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            ours = isinstance(error, Stopped)
            Screen().note(f"\n{error if ours else 'stopped; nothing was written'}")
            raise typer.Exit(130) from None


_WrongOptions: Any = typer.BadParameter.__bases__[0]  # of click, which typer may have inside


def _in_words(error: Exception) -> str:
    """What went wrong, in a line."""
    if isinstance(error, _WrongOptions):
        path = getattr(getattr(error, "ctx", None), "command_path", "kofa")
        message = error.format_message().rstrip(".")
        return message and f"{message}; {path} --help shows the options"
    if isinstance(error, KofaError | UsageError | ImportError):
        return in_options(str(error))
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        return f"{error.filename}: {what}" if error.filename else what
    if isinstance(error, MemoryError):
        return f"there is not enough memory: {error}"
    return (
        f"kofa cannot go on ({type(error).__name__}: {error}); this is a fault of kofa: please "
        f"report it, with what the same command shows with --debug"
    )


def in_options(message: str) -> str:
    """A message of the library with the words of the command line.

    >>> in_options("declare the view as kofa.Real(), or use return_std.")
    'declare the view as kind real, or use --std.'
    """
    words = {"return_std": "--std", "predict_quantiles": "--quantiles", "predict_proba": "--proba"}
    for word, option in words.items():
        message = message.replace(word, option)
    return re.sub(r"kofa\.([A-Z][a-z]+)\(\)", lambda kind: f"kind {kind[1].lower()}", message)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _named(text: str) -> str:
    """The name of a file; without one it would be the current folder."""
    if not text:
        raise typer.BadParameter("expected a name but got nothing")
    return text


def _path(text: str | Path) -> Path:
    return Path(_named(str(text)))


def _version(value: bool) -> None:
    if value:
        from kofa import __version__

        typer.echo(f"kofa {__version__}")
        raise typer.Exit


READING, LONG, MODEL = "Reading tables given by --view", "Long fits", "The model"
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where in the code an error arose.")]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", parser=_path, help="A model from kofa fit.")
]
Views = Annotated[
    list[str] | None,
    typer.Option("--view", "-v", metavar="NAME=FILE", help="A table for a view; repeat for more."),
]
Study = Annotated[
    Path | None,
    typer.Option(
        metavar="STUDY",
        parser=_path,
        help="Read tables as this study.toml says; its files by default.",
    ),
]
To = Annotated[
    str,
    typer.Option(
        "--to", "-o", metavar="FILE", parser=_named, help="CSV, TSV or Parquet; - is stdout."
    ),
]
Index = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=READING,
        help="Column of sample ids: name or position from 0; default the first.",
    ),
]
Sep = Annotated[
    str | None,
    typer.Option(
        metavar="MARK", rich_help_panel=READING, help="Separator of text files, such as ';' or tab."
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        metavar="MARK", rich_help_panel=READING, help="Decimal mark of text files, '.' or ','."
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MARK", rich_help_panel=READING, help="What else stands for missing; repeat."
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", rich_help_panel=READING, help="Of text files, such as latin-1."),
]


def _shared(
    view: list[str] | None,
    index: str | None,
    sep: str | None,
    decimal: str | None,
    missing: list[str] | None,
    encoding: str | None,
) -> dict[str, Any]:
    """Options of reading that hold for all --view."""
    place: Any = index
    if index is not None and re.fullmatch(r"-?[0-9]{1,9}", index):
        place = int(index)
    elif index is not None and index.lower() in ("false", "none"):
        place = False
    given = {
        "index": place,
        "sep": sep,
        "decimal": decimal,
        "missing": missing,
        "encoding": encoding,
    }
    said = {key: value for key, value in given.items() if value is not None and value != []}
    if said and not view:
        option = next(iter(said))
        raise UsageError(
            f"--{option} is for tables given by --view, and there is none; "
            f"say {option} = … under [read] in the study"
        )
    return said


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Bayesian factor analysis of several tables about the same samples.

    Start with [bold]kofa demo[/], or with your own tables:

      kofa init                           # writes study.toml; check it
      kofa fit study.toml -o model.kofa
      kofa predict model.kofa --view rna=new.csv --target stage
    """


@app.command(cls=Command)
def fit(
    to: Annotated[
        Path,
        typer.Option("--to", "-o", metavar="MODEL", parser=_path, help="Where to write the model."),
    ],
    study: Annotated[
        Path | None,
        typer.Argument(metavar="STUDY", parser=_path, help="A study.toml; see kofa init."),
    ] = None,
    view: Annotated[
        list[str] | None,
        typer.Option(
            "--view",
            "-v",
            metavar="NAME=FILE…",
            help="A view without a study, or another file for one of the study; repeat for more.",
        ),
    ] = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=KERNEL", help="rbf, linear, laplacian, polynomial, diffusion or bank."
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A view to be predicted from the others; repeat."),
    ] = None,
    factors: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", rich_help_panel=MODEL, help="The most factors allowed."),
    ] = None,
    init: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", rich_help_panel=MODEL, help="Number of starts; the best is kept."
        ),
    ] = None,
    max_iter: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", rich_help_panel=MODEL, help="Most iterations of a start."),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="X", rich_help_panel=MODEL, help="Growth of the bound at which to stop."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", rich_help_panel=MODEL, help="Seed of everything random."),
    ] = None,
    index: Index = None,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    encoding: Encoding = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=_path,
            rich_help_panel=LONG,
            help="Where to keep the state of the fit (default: MODEL.checkpoint).",
        ),
    ] = None,
    checkpoint_every: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", rich_help_panel=LONG, help="Seconds between writings."
        ),
    ] = 30.0,
    resume: Annotated[
        bool,
        typer.Option("--resume", rich_help_panel=LONG, help="Continue a fit that was stopped."),
    ] = False,
    progress: Annotated[
        bool,
        typer.Option(
            "--progress", rich_help_panel=LONG, help="Show progress also without a terminal."
        ),
    ] = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Fit a model to tables and write it to a file.

    With a study:

      kofa fit study.toml -o model.kofa

    Or without, each view as NAME=FILE[:COLUMNS][:KIND]:

      kofa fit --view rna=rna.csv --view stage=clinical.csv:stage:categorical \\
               --output stage --kernel rna=rbf -o model.kofa

    COLUMNS are names or patterns such as gene*, with commas between them.
    KIND is real, positive, binary, categorical or count; real by default.
    Parts of a file: data.npz:ARRAY, cells.h5mu:MODALITY, cells.h5ad:LAYER.

    Ctrl-C stops a fit; the same command with --resume goes on.
    """
    from kofa.cli import steps
    from kofa.cli.study import quick_plan, read_study

    if study is None and not view:
        raise UsageError(
            "Expected a study.toml, or views as --view NAME=FILE; kofa init writes one"
        )
    screen = Screen(quiet, progress)
    with screen.warnings_in_a_line():
        base = None if study is None else read_study(steps.checked_study(study))
    shared = _shared(view, index, sep, decimal, missing, encoding)
    plan = quick_plan(view or [], kernel or [], shared, base)
    options: dict[str, Any] = {
        "n_factors": factors,
        "n_init": init,
        "max_iter": max_iter,
        "tol": tol,
        "random_state": seed,
        "outputs": output or None,
    }
    plan.model.update({key: value for key, value in options.items() if value is not None})
    steps.check_outputs(plan)
    with screen.warnings_in_a_line():
        steps.fit(
            plan, to, screen,
            checkpoint=checkpoint, checkpoint_every=checkpoint_every, resume=resume,
        )  # fmt: skip


@app.command(cls=Command)
def transform(
    model: ModelFile,
    view: Views = None,
    study: Study = None,
    to: To = "-",
    index: Index = None,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Write the factors of samples, from any of the model's views.

    kofa transform model.kofa --view rna=new.csv -o factors.csv
    """
    from kofa.cli import steps
    from kofa.files import write_file

    shared = _shared(view, index, sep, decimal, missing, encoding)
    fitted, sources = _opened(model, view, study, shared)
    steps.check_target(to, _read_files(model, study, sources))
    screen = Screen(quiet)
    with screen.warnings_in_a_line(), steps.naming_files(sources):
        factors = fitted.transform(steps.read_for(fitted, sources))
    with steps.until_written(to):
        write_file(factors, to)
    _written(screen, factors, to)


@app.command(cls=Command)
def predict(
    model: ModelFile,
    view: Views = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="The view to predict (default: the only output)."),
    ] = None,
    study: Study = None,
    to: To = "-",
    proba: Annotated[bool, typer.Option("--proba", help="Add probabilities.")] = False,
    std: Annotated[bool, typer.Option("--std", help="Add standard deviations.")] = False,
    quantiles: Annotated[
        str | None, typer.Option(metavar="P,P", help="Add quantiles, such as .05,.95.")
    ] = None,
    index: Index = None,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Predict a view of samples from any of the others.

    For example:

      kofa predict model.kofa --view rna=new.csv --target stage --proba -o stage.csv

      kofa predict model.kofa --view rna=new.csv --target dose --quantiles .05,.95

    Added columns are named after those of the target: dose_std, dose_q0.05;
    stage_late is the probability of the class late,
    sick_p that of a one in the binary column sick.
    """
    from kofa.cli import steps
    from kofa.files import write_file

    shared = _shared(view, index, sep, decimal, missing, encoding)
    wanted = steps.parse_quantiles(quantiles)
    fitted, sources = _opened(model, view, study, shared)
    goal = steps.pick_target(fitted, target, sources)
    steps.check_target(to, _read_files(model, study, sources))
    screen = Screen(quiet)
    with screen.warnings_in_a_line(), steps.naming_files(sources):
        data = steps.read_for(fitted, sources)
        found = steps.predictions(fitted, data, goal, proba=proba, std=std, quantiles=wanted)
    with steps.until_written(to):
        write_file(found, to)
    _written(screen, found, to)


@app.command(cls=Command)
def impute(
    model: ModelFile,
    to: Annotated[
        Path,
        typer.Option("--to", "-o", metavar="FOLDER", parser=_path, help="One file per view."),
    ],
    view: Views = None,
    study: Study = None,
    form: Annotated[str, typer.Option("--format", help="csv, tsv or parquet.")] = "csv",
    index: Index = None,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Fill the holes of tables. Every view gets the samples of all of them.

    kofa impute model.kofa --view rna=rna.csv --view protein=protein.csv -o filled/
    """
    from kofa.cli import steps

    if form not in ("csv", "tsv", "parquet"):
        raise UsageError(f"--format {form}: expected csv, tsv or parquet")
    fitted, sources = _opened(
        model, view, study, _shared(view, index, sep, decimal, missing, encoding)
    )
    files = steps.files_in(to, fitted, sources, form, _read_files(model, study, sources))
    screen = Screen(quiet)
    with screen.warnings_in_a_line(), steps.naming_files(sources):
        screen.report(*steps.impute(fitted, steps.read_for(fitted, sources), files))


@app.command(cls=Command)
def info(
    model: ModelFile,
    json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Show what a model file holds: views, kinds, kernels, factors, bound, versions."""
    from kofa.cli import steps
    from kofa.files import check_stdout

    if json:
        check_stdout()
        typer.echo(jsons.dumps(steps.info(model), indent=2, default=str))
    else:
        Screen().show(*steps.show_info(model))


@app.command(cls=Command)
def demo(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            parser=_path,
            help="Write the tables here instead, to try the commands.",
        ),
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Fit three tables about wines that ship with scikit-learn, and show what comes of it.

    kofa demo           # shows a fit

    kofa demo wine      # writes the tables and a study.toml into the new folder wine
    """
    from kofa.cli import demo as wine

    screen = Screen(quiet)
    with screen.warnings_in_a_line():
        if folder is None:
            wine.show(screen)
            return
        files = wine.write_tables(folder)
    screen.report(
        f"{folder}: {', '.join(files)}\n\nNow try:\n\n"
        f"  cd {folder}\n"
        f"  kofa fit study.toml -o wine.kofa\n"
        f"  kofa predict wine.kofa --view minerals=new_minerals.csv --view phenols=new_phenols.csv "
        f"--proba"
    )


@app.command(name="init", cls=Command)
def init_study(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", parser=_path, help="Where the tables are.")
    ] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace a study.toml.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Write a commented study.toml from the tables in a folder, guessing their kinds.

    Looks at CSV, TSV, Parquet, npz, h5ad and h5mu files. Check the kinds before you fit.
    """
    from kofa.cli import steps

    screen = Screen(quiet)
    with screen.warnings_in_a_line():
        screen.report(*steps.init(folder, force))


# ---------------------------------------------------------------- helpers


def _opened(
    model: Path, views: list[str] | None, study: Path | None, shared: dict[str, Any]
) -> tuple[FactorModel, dict[str, Source]]:
    """The model, and where its tables are."""
    from kofa.cli import steps

    fitted = steps.load(model)
    return fitted, steps.sources_for(fitted, views or [], study, shared)


def _read_files(model: Path, study: Path | None, sources: dict[str, Source]) -> list[Path]:
    """All files that a command reads, and must not write."""
    return [model, *([] if study is None else [study]), *(one.file for one in sources.values())]


def _written(screen: Screen, frame: Any, to: str) -> None:
    if to != "-":
        screen.report(f"{to}: {counted(len(frame), 'sample')}, {counted(frame.shape[1], 'column')}")
    else:
        sys.stdout.flush()
