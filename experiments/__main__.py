"""`python -m experiments NAME...`: run experiments by name or group, and show what they give."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from experiments import registry
from experiments.experiment import Experiment
from experiments.protocol import FOLD_SEED
from experiments.registry import GROUPS, Named
from experiments.report import Runner
from experiments.tasks import FOLDS, Options
from kofa.errors import DeclarationError, FileError

OF_TABLES = ("folds", "quick", "as_published", "sets", "methods")


def parser() -> argparse.ArgumentParser:
    groups = "; ".join(f"{name}: {what}" for name, what in GROUPS.items())
    made = argparse.ArgumentParser("python -m experiments", description=__doc__, epilog=groups)
    add = made.add_argument
    add(
        "names",
        nargs="*",
        metavar="NAME",
        help="an experiment, paper, bench, tuning, peers, or all",
    )
    add("--list", action="store_true", help="print the names (of a group NAME) and stop")
    add("--data-dir", metavar="DIR", help="folder of the data sets (default: $KOFA_DATA)")
    add("-o", "--to", metavar="DIR", type=Path, default=Path("results"),
        help="for tables, pictures and the cache of results (default: results)")  # fmt: skip
    add("--jobs", type=_at_least(1), default=2, metavar="N", help="tasks at a time (default: 2)")
    add("--fold-seed", type=_at_least(0), metavar="N",
        help="other folds of data sets than those that figures are reported for (0)")  # fmt: skip
    add("--by-fold", action="append", default=[], metavar="FILE",
        help="for defaults-regression: R² of other methods on the same folds (JSON; may be "
        "repeated)")  # fmt: skip
    tables = made.add_argument_group("of tables and figures alone")
    tables.add_argument("--quick", action="store_true", help="two folds, small grids")
    tables.add_argument("--as-published", action="store_true", help="the paper's own choices, too")
    tables.add_argument("--folds", type=_at_least(2), default=FOLDS, metavar="N")
    tables.add_argument("--sets", type=_listed, default=(), metavar="A,B", help="only these sets")
    tables.add_argument("--method", action="append", default=[], metavar="NAME", dest="methods",
                        help="only this row (may be repeated)")  # fmt: skip
    return made


def _at_least(low: int):  # type: ignore[no-untyped-def]
    def number(text: str) -> int:
        if int(text) < low:
            raise ValueError
        return int(text)

    return number


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def options_of(given: argparse.Namespace) -> Options:
    return Options(
        folds=given.folds,
        quick=given.quick,
        as_published=given.as_published,
        sets=given.sets,
        methods=tuple(given.methods),
        by_fold=tuple(given.by_fold),
    )


def check(asked: Sequence[Named], options: Options) -> None:
    """Refuse options that mean nothing to what was asked for."""
    rows = [one.name for one in asked if not isinstance(one.experiment, Experiment)]
    plain = Options()
    used = [name for name in OF_TABLES if getattr(options, name) != getattr(plain, name)]
    if rows and used:
        option = {"methods": "method"}.get(used[0], used[0]).replace("_", "-")
        raise DeclarationError(f"--{option} is for tables and figures, not for {rows[0]!r}")
    registry.check([e for one in asked if isinstance(e := one.experiment, Experiment)], options)


def main(arguments: Sequence[str] | None = None) -> None:
    made = parser()
    given = made.parse_args(arguments)
    if given.data_dir is not None:
        os.environ["KOFA_DATA"] = given.data_dir
    if given.fold_seed is not None:
        os.environ[FOLD_SEED] = str(given.fold_seed)
    known, missing = registry.find()
    for module, package in missing.items():
        print(f"left out {module}: it needs {package}", file=sys.stderr)
    try:
        asked = registry.chosen(given.names or ["all"] * given.list, known)
        if given.list:
            print(*(one.name for one in asked), sep="\n")
            return
        check(asked, options_of(given))
    except DeclarationError as error:
        made.error(str(error))
    if not asked:
        made.error("name an experiment or a group; --list prints the names")
    runner = Runner(given.to, options_of(given), given.jobs)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _in_a_line
            runner.show(asked)
    except (FileError, ImportError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        print(f"stopped; what is done is in {given.to}, and the same command goes on from there",
              file=sys.stderr)  # fmt: skip
        sys.exit(130)


def _in_a_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int,  # noqa: ARG001
    file: TextIO | None = None, line: str | None = None,  # noqa: ARG001
) -> None:  # fmt: skip
    print(f"warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    main()
