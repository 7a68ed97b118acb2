"""Problems of views without kernels."""

from __future__ import annotations

import numpy as np

from experiments.simulated import hidden_views, n_factors
from experiments.tuning.scores import (
    Scores,
    covered,
    new_rows,
    of_ones,
    poisson_deviance,
    scored,
    told_rightly,
)
from kofa import Binary, Count, FactorModel, Real


def hidden_view(seed: int) -> Scores:
    """A view that half of 200 samples lack, from two others with the same eight factors."""
    data, full = (
        n_factors.problem(200, 3, 30, holes, "Real", seed)
        for holes in (n_factors.HOLES[2], n_factors.HOLES[0])
    )
    rows = np.isnan(data["b"]).all(axis=1)
    model = FactorModel().fit(data)
    others = {name: data[name][rows] for name in "ac"}
    return scored(model, others, "b", full["b"][rows]) | {"factors": model.n_factors_}


def many_factors(seed: int) -> Scores:
    """A view that 27 of 100 samples lack, from two others; 60 factors."""
    problem = hidden_views.planted("few", seed)
    model = FactorModel(problem.views).fit(problem.tables)
    return scored(model, problem.others, problem.view, problem.truth) | {
        "factors": model.n_factors_
    }


def ones(seed: int) -> Scores:
    """A binary view that a fifth of 250 samples lack, from another with the same eight factors."""
    full = n_factors.problem(250, 2, 25, n_factors.HOLES[0], "Binary", seed)
    data = {"a": full["a"], "b": full["b"].copy()}
    data["b"][:50] = np.nan
    model = FactorModel({"a": Binary(), "b": Binary()}).fit(data)
    p = model.predict_proba({"a": full["a"][:50]}, "b")
    saved = of_ones(full["b"][:50], p, full["b"][50:].mean(axis=0))
    return {"deviance": saved, "factors": model.n_factors_}


def rare_ones(seed: int) -> Scores:
    """Outputs of about 6 % ones that hardly follow from 20 columns, 200 samples."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((600, 20))
    eta = 0.3 * x[:, :4] + rng.standard_normal((600, 4)) - 1.6
    y = (eta > 0).astype(float)
    model = FactorModel({"x": Real(), "y": Binary()}, outputs=["y"])
    model.fit({"x": x[:200], "y": y[:200]})
    rate = (y[:200].sum(axis=0) + 0.5) / 201.0
    return {"deviance": of_ones(y[200:], model.predict_proba({"x": x[200:]}, "y"), rate)}


def counts(seed: int) -> Scores:
    """Counts as an output of counts of the same eight factors, a few of them wild, 200 samples."""
    full = n_factors.problem(300, 2, 20, n_factors.HOLES[0], "Count", seed)
    y = full["b"].copy()
    y[np.random.default_rng(seed).random(y.shape) < 0.005] += 50.0
    model = FactorModel({"a": Count(), "b": Count()}, outputs=["b"])
    model.fit({"a": full["a"][:200], "b": y[:200]})
    new, truth = {"a": full["a"][200:]}, full["b"][200:]
    mean = np.broadcast_to(full["b"][:200].mean(axis=0), truth.shape)
    left = poisson_deviance(truth, model.predict(new, "b")) / poisson_deviance(truth, mean)
    return {
        "deviance": 1.0 - left,
        "coverage": covered(model, new, "b", truth),
        "factors": model.n_factors_,
    }


def scattered_holes(seed: int) -> Scores:
    """An output of 60 columns with 10 % holes, six factors, 200 samples."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((400, 6))
    x = Z @ rng.standard_normal((6, 60)) + 2.0 * rng.standard_normal((400, 60))
    y = Z @ rng.standard_normal((6, 3)) + 0.5 * rng.standard_normal((400, 3))
    x[rng.random(x.shape) < 0.1] = np.nan
    return new_rows(None, x, y, 200)[1]


def wide_input(seed: int) -> Scores:
    """An output of 200 columns that have nothing in common, 300 samples."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((600, 200))
    y = x @ rng.standard_normal((200, 3)) / np.sqrt(200) + 0.3 * rng.standard_normal((600, 3))
    return new_rows(None, x, y, 300)[1]


def sparse_columns(seed: int) -> Scores:
    """Which 20 of 120 columns follow three factors, 120 samples."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((120, 120))
    X[:, :20] += 0.5 * rng.standard_normal((120, 3)) @ rng.standard_normal((3, 20))
    model = FactorModel({"x": Real(sparse=True)}).fit({"x": X})
    return {"features": told_rightly(model, np.arange(20), 120), "factors": model.n_factors_}
