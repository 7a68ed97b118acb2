"""Manifold relevance determination (Damianou et al. 2012), by GPy."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from kofa.linalg import Array


def has_gpy() -> bool:
    """Whether it can be run: it needs GPy, which kofa does not."""
    return find_spec("GPy") is not None


def fitted(
    views: Sequence[Array], n_factors: int, inducing: int, iterations: int, seed: int = 0
) -> Any:
    """One space behind centred views, with an RBF kernel for each.

    The noise of a view is held at a hundredth of its variance for half of the iterations: free from
    the start it can take up a whole view, whose kernel then dies (on oil flow it always did).
    """
    GPy = import_module("GPy")
    np.random.seed(seed)  # noqa: NPY002  GPy draws from the global state
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GPy.models.MRD(
            list(views),
            input_dim=n_factors,
            num_inducing=inducing,
            kernel=[GPy.kern.RBF(n_factors, ARD=True) for _ in views],
        )
        for part, view in zip(model.bgplvms, views, strict=True):
            part.likelihood.variance = float(view.var()) / 100.0
            part.likelihood.variance.fix()
        model.optimize(max_iters=iterations // 2)
        for part in model.bgplvms:
            part.likelihood.variance.unfix()
        model.optimize(max_iters=iterations - iterations // 2)
    return model


def predicted(model: Any, X_new: Array) -> Array:
    """The second view of rows whose first is known alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        places, _ = model.bgplvms[0].infer_newX(X_new)
        return np.asarray(model.predict(places.mean, Yindex=1)[0])
