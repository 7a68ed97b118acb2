"""`python -m benchmarks [--list] [--data-dir DIR] [--by-fold FILE] [NAME ...]`."""

from __future__ import annotations

import argparse
import os

from benchmarks import (
    accuracy,
    calibration,
    classification,
    defaults,
    faces,
    hidden_views,
    hostile,
    imports,
    intervals,
    mkl,
    mutated_files,
    n_factors,
    planted,
    random_fits,
    reading,
    relevance,
    report,
    saving,
    second_input,
    sparse,
    speed,
    stopping,
)

BENCHMARKS = (
    planted.BENCHMARKS
    | n_factors.BENCHMARKS
    | hidden_views.BENCHMARKS
    | second_input.BENCHMARKS
    | stopping.BENCHMARKS
    | speed.BENCHMARKS
    | imports.BENCHMARKS
    | accuracy.BENCHMARKS
    | calibration.BENCHMARKS
    | intervals.BENCHMARKS
    | classification.BENCHMARKS
    | sparse.BENCHMARKS
    | relevance.BENCHMARKS
    | faces.BENCHMARKS
    | mkl.BENCHMARKS
    | defaults.BENCHMARKS
    | saving.BENCHMARKS
    | reading.BENCHMARKS
    | random_fits.BENCHMARKS
    | hostile.BENCHMARKS
    | mutated_files.BENCHMARKS
)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="run only these")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--data-dir", help="folder of the paper's sets (default: $KOFA_DATA)")
    parser.add_argument(
        "--by-fold",
        action="append",
        default=[],
        metavar="FILE",
        help="R² of other methods, to be compared with fold by fold (JSON; may be repeated)",
    )
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; --list prints the names")
    return arguments


def main() -> None:
    arguments = parse()
    if arguments.data_dir:
        os.environ["KOFA_DATA"] = arguments.data_dir
    os.environ["KOFA_BY_FOLD"] = os.pathsep.join(arguments.by_fold)
    if arguments.list:
        print(*BENCHMARKS, sep="\n")
    else:
        report.run({name: BENCHMARKS[name] for name in arguments.names or BENCHMARKS})


if __name__ == "__main__":
    main()
