"""How many iterations a fit without outputs takes, and what bound it reaches."""

from __future__ import annotations

import warnings
from functools import partial

from experiments.experiment import Mark, Measurement, Row, skipped
from experiments.simulated import n_factors, planted
from experiments.tasks import Array
from kofa import Binary, FactorModel, Real

# Iterations and bound before iterations were accelerated (commit 8391aab); mfeat ended by max_iter.
BEFORE = {
    "planted": (62, 75184.93),
    "cancer": (122, -7151.21),
    "cll": (469, -94159.99),
    "mfeat": (1000, -196035.38),
}
MARK = Mark(high=0.5)


def tables_of(name: str) -> tuple[dict[str, Array] | None, int | None]:
    """The views, and the most factors."""
    if name == "planted":
        return planted.planted(0).views, planted.ALLOWED
    return n_factors.tables_of(name), None


def iterations(name: str) -> Row:
    """Against those of before."""
    what = f"{name}: iterations to the default tolerance / those before acceleration"
    tables, allowed = tables_of(name)
    if tables is None:
        return skipped(what, MARK)
    views = {n: Binary() if n == "mutations" else Real() for n in tables}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FactorModel(views, allowed).fit(tables)
    before, bound = BEFORE[name]
    ratio = model.n_iter_ / before
    text = (
        f"{ratio:.2f} ({model.n_iter_} / {before}; bound {model.lower_bound_:.1f}, before "
        f"{bound:.1f}; {model.n_factors_} factors)"
    )
    return Row(what, ratio, MARK, text)


EXPERIMENTS: dict[str, Measurement] = {f"iterations-{n}": partial(iterations, n) for n in BEFORE}
