"""How much the factors explain of each view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kofa.checks import check_word, listed
from kofa.errors import DataError
from kofa.inference.explained import Explained, explained, losses, varies
from kofa.inference.observations import Observations
from kofa.inspection.features import column_names
from kofa.inspection.matching import frame
from kofa.linalg import Array
from kofa.preparation.fitted import Fitted
from kofa.results.answers import given
from kofa.results.prediction import Prediction

BY = ("factor", "view", "feature", "sample")


def variance_explained(fitted: Fitted, data: Any = None, by: str = "factor") -> Any:
    """What `FactorModel.variance_explained` returns."""
    check_word("by", by, BY)
    if by == "sample":
        return _by_sample(fitted, data)
    sums = _kept(fitted) if data is None else _of_data(fitted, data)
    return {"factor": _by_factor, "view": _by_view, "feature": _by_feature}[by](fitted, sums)


# ---------------------------------------------------------------- sums


def _kept(fitted: Fitted) -> Mapping[str, Explained]:
    if not fitted.explained:
        what = "this model does not keep what it explained in fit: kofa 0.1 saved it"
        cure = "pass data=, the tables that it was fitted to"
        raise DataError(what, option="data", cure=cure)
    return fitted.explained


def _of_data(fitted: Fitted, data: Any) -> Mapping[str, Explained]:
    sums: dict[str, Explained] = {}
    for name, view, Z in _blocks(fitted, applied(fitted, data)):
        own = explained(view, fitted.weights(name), Z, _mean_only(fitted, name))
        sums[name] = sums[name] + own if name in sums else own
    return sums


def applied(fitted: Fitted, data: Any) -> Prediction:
    """The model applied to data that have something to know factors from."""
    found = given(fitted, data)
    if not found.samples.n:
        raise DataError("Expected at least one sample but got none.")
    inputs = [name for name, view in fitted.views.items() if not view.role.output]
    if not any(name in found.tables for name in inputs):
        only = listed(found.tables)
        what = f"expected an input, from which outputs are explained, but got only {only}"
        raise DataError(what, source="data", cure=f"add one of {listed(inputs)}")
    return found


def sample_names(found: Prediction) -> list[Any]:
    """Names of samples, or their positions."""
    return list(range(found.samples.n) if found.samples.names is None else found.samples.names)


def _blocks(fitted: Fitted, found: Prediction) -> Iterator[tuple[str, Observations, Array]]:
    """Each view of some rows at a time, and their factors, as known from the inputs."""
    for q, values in found.project():
        Z = fitted.basis.of_samples(q.mean)
        for name, y in values.items():
            yield name, fitted.views[name].observe(y), Z


def _mean_only(fitted: Fitted, name: str) -> Array:
    """η where nothing but the mean of a column in fit is known."""
    if name in fitted.explained:
        return fitted.explained[name].mean
    return fitted.posterior[name].weights.y_mean


# ---------------------------------------------------------------- tables


def _share(part: Any, total: Any) -> Any:
    """The share in a total; NaN where there is nothing to explain."""
    total = np.asarray(total, dtype=float)
    return np.where(total > 0, part / np.where(total > 0, total, 1.0), np.nan)


def shares_by_factor(sums: Mapping[str, Explained]) -> dict[str, Array]:
    """The share of each view that each factor explains, (K,)."""
    return {name: _share(one.factors, one.total.sum()) for name, one in sums.items()}


def _by_factor(fitted: Fitted, sums: Mapping[str, Explained]) -> Any:
    names = fitted.factor_names
    r2 = list(shares_by_factor(sums).values())
    return frame(
        {
            "view": [view for view in sums for _ in names],
            "factor": names * len(sums),
            "r2": np.concatenate(r2),
        }
    )


def _by_view(fitted: Fitted, sums: Mapping[str, Explained]) -> Any:  # noqa: ARG001
    total = np.array([one.total.sum() for one in sums.values()])
    explained = np.array([one.total.sum() - one.left.sum() for one in sums.values()])
    shared = np.array([one.shared for one in sums.values()])
    return frame(
        {"view": list(sums), "r2": _share(explained, total), "shared": _share(shared, total)}
    )


def _by_feature(fitted: Fitted, sums: Mapping[str, Explained]) -> Any:
    names = {name: column_names(fitted.views[name]) for name in sums}
    r2 = [
        fitted.views[name].layer.of_all_columns(np.stack([one.total - one.left, one.total]))
        for name, one in sums.items()
    ]
    return frame(
        {
            "view": [view for view in sums for _ in names[view]],
            "feature": [feature for view in sums for feature in names[view]],
            "r2": np.concatenate([_share(part, total) for part, total in r2]),
        }
    )


def _by_sample(fitted: Fitted, data: Any) -> Any:
    if data is None:
        what = "expected data, since a model does not keep the values of its samples"
        raise DataError(what, option="data", cure="pass the tables that it was fitted to")
    found = applied(fitted, data)
    names = sample_names(found)
    parts: dict[str, list[Array]] = {name: [] for name in found.tables}
    for name, view, Z in _blocks(fitted, found):
        parts[name].append(_of_rows(fitted, name, view, Z))
    r2 = {name: np.concatenate(parts[name]) for name in fitted.views if name in parts}
    seen = {name: np.flatnonzero(found.seen(name)) for name in r2}
    return frame(
        {
            "sample": [names[n] for rows in seen.values() for n in rows],
            "view": [name for name, rows in seen.items() for _ in rows],
            "r2": np.concatenate([r2[name][rows] for name, rows in seen.items()]),
        }
    )


def _of_rows(fitted: Fitted, name: str, view: Observations, Z: Array) -> Array:
    """1 − loss / loss of the mean, of each row."""
    mean = _mean_only(fitted, name)
    ends = mean + np.zeros((len(Z), 1)), fitted.weights(name).predict(Z)
    total, left = (losses(view, eta, varies(view, mean)).sum(axis=1) for eta in ends)
    return np.asarray(_share(total - left, total))
