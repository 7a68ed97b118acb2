"""Chronic lymphocytic leukaemia: what the factors of two drug screens are."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import pandas as pd

from experiments.data import stored
from experiments.experiment import Mark, Measurement, Row, skipped
from kofa import Binary, FactorModel, Real
from kofa.inspection import associate

DRUGS = ("drugs", "drugs2")
SHOWN = 8  # associations in a row


def tables(*views: str) -> dict[str, Any] | None:
    """Views of the patients by name."""
    found = {}
    for name in views:
        kept = stored("cll", *(f"{what}_{name}" for what in ("X", "samples", "feature_names")))
        if kept is None:
            return None
        X, samples, features = kept
        found[name] = pd.DataFrame(X, index=samples, columns=features)
    return found


def associations(n_factors: int | None, with_mutations: bool) -> Any:
    """Factors of the drug screens, with or without mutations beside them, and the mutations."""
    given = tables(*DRUGS, "mutations")
    if given is None:
        return None
    mutations = given["mutations"]
    used = {name: y for name, y in given.items() if with_mutations or name in DRUGS}
    views = {name: Binary() if name == "mutations" else Real() for name in used}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        factors = FactorModel(views, n_factors).fit_transform(used)
        return associate(factors, mutations)


def ighv(n_factors: int | None, with_mutations: bool) -> Row:
    """The factor that goes with IGHV, and what else goes with a factor."""
    views = "two drug screens" + " and mutations" * with_mutations
    what = f"cll, {views}, n_factors={n_factors}: largest |r| of a factor with IGHV"
    mark = Mark(low=0.65)
    table = associations(n_factors, with_mutations)
    if table is None:
        return skipped(what, mark)
    best = table.loc[table.groupby("covariate")["p"].idxmin()].sort_values("p")
    by_name = best.set_index("covariate")
    named = [
        f"{row.covariate} {row.factor} r {row.r:+.2f} q {row.q:.0e}"
        for row in best.head(SHOWN).itertuples()
    ]
    own = ", ".join(
        f"{gene} {by_name.factor[gene]} r {by_name.r[gene]:+.2f}" for gene in ("IGHV", "trisomy12")
    )
    discoveries = int((best.q < 0.05).sum())
    value = abs(float(by_name.r["IGHV"]))
    text = f"{value:.2f} ({own}; of {len(best)} mutations {discoveries} at q < .05: "
    return Row(what, value, mark, text + "; ".join(named) + ")")


EXPERIMENTS: dict[str, Measurement] = {
    "cll-ighv": partial(ighv, None, False),
    "cll-ighv-25": partial(ighv, 25, False),
    "cll-ighv-mutations": partial(ighv, None, True),
}
