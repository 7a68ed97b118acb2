"""mofapy2 on real and on wide tables, complete and with scattered holes: CPU time."""

from __future__ import annotations

import warnings
from functools import partial
from time import process_time

import numpy as np

from experiments.baselines.mofa import train
from experiments.costs.wide_holes import SIZES, table
from experiments.experiment import Mark, Measurement, Row, skipped
from experiments.peers import on_one_thread
from experiments.simulated import n_factors
from experiments.tasks import Array
from kofa import FactorModel

ALLOWED = 25


def drugs(holes: float) -> dict[str, Array] | None:
    """Two screens of drugs of the 117 patients who have both; holes in the first."""
    found = n_factors.tables_of("cll")
    if found is None:
        return None
    tables = {name: found[name].copy() for name in ("drugs", "drugs2")}
    tables["drugs"][np.random.default_rng(0).random(tables["drugs"].shape) < holes] = np.nan
    return tables


def kofa_seconds(tables: dict[str, Array]) -> tuple[float, FactorModel]:
    """CPU seconds of a fit, all at its defaults but the number of factors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = process_time()
        model = FactorModel(n_factors=ALLOWED).fit(tables)
        return process_time() - start, model


def compared(what: str, tables: dict[str, Array], mark: Mark) -> Row:
    """CPU time to convergence, theirs over ours."""
    ours, model = kofa_seconds(tables)
    theirs, cpu = train(list(tables.values()), ALLOWED)
    n_iter = len(theirs.getTrainingStats()["elbo"])
    text = (
        f"{cpu / ours:.1f} (mofapy2 {cpu:.1f} CPU s, {n_iter} iterations; kofa {ours:.1f} CPU s, "
        f"{model.n_iter_} iterations, {model.n_factors_} factors)"
    )
    return Row(f"CPU time of mofapy2 / kofa on one thread, {what}", cpu / ours, mark, text)


def cll(holes: float, mark: Mark) -> Row:
    """The two screens of drugs."""
    entries = f"{holes:.0%} holes in the first" if holes else "complete"
    what, tables = f"two drug screens of cll, {entries}", drugs(holes)
    return skipped(what, mark) if tables is None else compared(what, tables, mark)


def wide(rows: int, columns: int) -> Row:
    """Few samples of many columns."""
    what = f"{columns} columns × {rows} samples, 5 % holes"
    return compared(what, {"y": table(rows, columns)}, Mark(low=1))


MEASUREMENTS: dict[str, Measurement] = {
    "mofa-cll": partial(cll, 0.0, Mark(low=8)),
    "mofa-cll-holes": partial(cll, 0.1, Mark(low=4)),
    **{f"mofa-wide-{columns}": partial(wide, rows, columns) for columns, rows in SIZES.items()},
}
EXPERIMENTS = {name: partial(on_one_thread, one) for name, one in MEASUREMENTS.items()}
