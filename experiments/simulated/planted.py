"""Are planted factors found, each in the views it acts on, and held-out entries restored?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from experiments.experiment import Mark, Measurement, Row
from experiments.tasks import Array
from kofa import FactorModel

# ---------------------------------------------------------------- data

NOISE = 0.5
COLUMNS = {"a": 500, "b": 300, "c": 200}
# One row per factor, one column per view: 3 shared by all, one per pair, 2/1/1 private.
SHARING = np.array(
    [[1, 1, 1]] * 3 + [[1, 1, 0], [1, 0, 1], [0, 1, 1]] + [[1, 0, 0]] * 2 + [[0, 1, 0], [0, 0, 1]]
)


@dataclass(frozen=True)
class Planted:
    """Views made of known factors; `full` has the values that `views` lacks."""

    views: dict[str, Array]
    full: dict[str, Array]
    Z: Array

    def rmse(self, filled: dict[str, Array]) -> float:
        """Root mean square error over the entries that were held out."""
        errors = [(filled[n] - y)[np.isnan(self.views[n])] for n, y in self.full.items()]
        return float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))


def planted(
    seed: int, missing: float = 0.0, n: int = 1000, columns: dict[str, int] = COLUMNS
) -> Planted:
    """Y_m = Z W_mᵀ + noise; each factor acts on the views that SHARING says."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, len(SHARING)))
    full = {}
    for (name, d), active in zip(columns.items(), SHARING.T, strict=True):
        W = rng.standard_normal((d, len(SHARING))) * active
        full[name] = Z @ W.T + NOISE * rng.standard_normal((n, d))
    views = {m: np.where(rng.random(y.shape) < missing, np.nan, y) for m, y in full.items()}
    return Planted(views, full, Z)


# ---------------------------------------------------------------- what a fit makes of them

SEEDS = range(10)
MISSING = 0.1
ALLOWED = 25  # factors
ACTIVE = 1e-3  # least mean square of a factor's weights on standardised columns

Pattern = Counter[tuple[bool, ...]]


@dataclass(frozen=True)
class Recovery:
    """How one fit compares with what was planted."""

    exact: bool
    exact_among_active: bool  # leaving out factors that the model kept but that act on no view
    n_factors: int
    rmse: float | None


def sharing(model: FactorModel) -> Pattern:
    """How many factors, of all that the model kept, are active in which views."""
    square = np.array([(view.weights.mean**2).mean(axis=0) for view in model.posterior_.values()])
    return Counter(tuple(bool(a) for a in active) for active in (square > ACTIVE).T)


def planted_sharing() -> Pattern:
    """The answer."""
    return Counter(tuple(bool(a) for a in row) for row in SHARING)


def recover(data: Planted) -> Recovery:
    """Fit with all settings at their defaults."""
    model = FactorModel(n_factors=ALLOWED).fit(data.views)
    holes = any(np.isnan(y).any() for y in data.views.values())
    rmse = data.rmse(model.impute(data.views)) if holes else None
    found, answer = sharing(model), planted_sharing()
    active = Counter({row: n for row, n in found.items() if any(row)})
    return Recovery(found == answer, active == answer, model.n_factors_, rmse)


@cache
def recoveries(missing: float) -> list[Recovery]:
    """One fit per seed, shared by the benchmarks below."""
    return [recover(planted(seed, missing)) for seed in SEEDS]


def pattern(missing: float) -> Row:
    """Number of seeds in which the pattern is exactly right."""
    found = recoveries(missing)
    exact = sum(r.exact for r in found)
    among_active = sum(r.exact_among_active for r in found)
    factors = ", ".join(str(r.n_factors) for r in found)
    text = f"{exact} of {len(found)} ({among_active} among active factors; kept: {factors})"
    entries = f"{missing:.0%} of entries missing" if missing else "complete"
    return Row(f"seeds with the exact sharing pattern, {entries}", exact, Mark(low=9), text)


def imputation() -> Row:
    """Error on held-out entries; the noise alone makes 0.5."""
    rmse = [r.rmse for r in recoveries(MISSING) if r.rmse is not None]
    text = f"{np.mean(rmse):.4f} ± {np.std(rmse):.4f}"
    what = f"RMSE on {MISSING:.0%} held-out entries, {len(rmse)} seeds"
    return Row(what, float(np.mean(rmse)), Mark(high=0.508), text)


EXPERIMENTS: dict[str, Measurement] = {
    "sharing": partial(pattern, 0.0),
    "sharing-missing": partial(pattern, MISSING),
    "imputation": imputation,
}
