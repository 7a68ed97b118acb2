"""Our model of several targets: in our way, and as published."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from experiments.baselines.validation import Method, Prediction, Settings, errors_of
from experiments.timing import Stopwatch
from kofa import FactorModel, KernelFactorRegressor, Landmarks, Laplacian, Real
from kofa.data.scaling import Scaling
from kofa.kernels.base import Kernel
from kofa.kernels.declared import as_kernel
from kofa.kernels.formulas import RBF
from kofa.kernels.learning import learn
from kofa.kernels.mixture import parts
from kofa.kernels.outputs import Outputs
from kofa.linalg import Array, Groups, centre

KERNELS: dict[str, Any] = {
    "rbf": RBF(),
    "laplacian": Laplacian(),
    "bank": "bank",
    "relevance": [RBF(relevance="learn"), Laplacian()],
}


def factors(X: Array, Y: Array, X_new: Array, settings: Settings) -> Prediction:
    """Our model. Semi-supervised: the new rows are there in fit, without targets."""
    semi = settings["semi_supervised"]
    inputs = np.vstack([X, X_new]) if semi else X
    targets = np.vstack([Y, np.full((len(X_new), Y.shape[1]), np.nan)]) if semi else Y
    make = published_model if settings["as_published"] else our_model
    model, watch = make(targets, settings), Stopwatch()
    model.callback = watch
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a note of the table counts them
        model.fit({"x": inputs, "y": targets})
    predicted = np.asarray(model.predict({"x": X_new}, "y"))
    # Of ours, rows with targets may be landmarks; as published, all rows.
    pool = len(inputs) if settings["as_published"] else len(X)
    kept = {row for name, view in model.views_.items() if name != "y" for row in view.landmarks}
    return Prediction(
        predicted,
        model.n_factors_,
        len(kept) / pool,
        model.converged_,
        len(kept),
        watch.per_iteration if watch.iterations else None,
    )


def factors_validated(X: Array, Y: Array, X_new: Array, settings: Settings) -> Prediction:
    """Our model with the kernel that inner cross-validation likes best.

    Evidence weighs the kernels of one model, but it likes a weight for each feature too well where
    samples are few.
    """

    def sweep(X: Array, Y: Array, X_new: Array, kernel: str) -> dict[Any, Array]:
        return {None: factors(X, Y, X_new, {**settings, "kernel": kernel}).predicted}

    errors = errors_of(sweep, X, Y, settings["kernels"], settings["inner_folds"])
    kernel, _ = min(errors, key=lambda setting: float(errors[setting].sum()))
    return factors(X, Y, X_new, {**settings, "kernel": kernel})


def our_model(Y: Array, settings: Settings) -> FactorModel:
    """Kernels, noise and the number of factors are found by the outputs' evidence."""
    kernel = KERNELS[settings["kernel"]]
    n_labelled = int((~np.isnan(Y)).any(axis=1).sum())
    return FactorModel(
        {"x": Real(kernel=kernel, **landmarks_of(settings, n_labelled)), "y": Real()},
        Y.shape[1] if settings["few_factors"] else None,
        outputs=["y"],
        max_iter=settings["max_iter"],
        random_state=settings["seed"],
    )


def published_model(Y: Array, settings: Settings) -> FactorModel:
    """The paper's own model, with an RBF kernel of median width on all rows."""
    view = landmarks_of(settings, len(Y))
    return FactorModel(
        {"x": Real(kernel=RBF(width="median"), **view), "y": Real()},
        Y.shape[1] if settings["few_factors"] else settings["published_factors"],
        outputs=["y"],
        n_init=settings["starts"],
        max_iter=settings["max_iter"],
        random_state=settings["seed"],
        as_published=True,
    )


def landmarks_of(settings: Settings, n: int) -> dict[str, Any]:
    """Which of n rows others are compared with: all, or those that a rule chooses."""
    how, share = settings.get("choose"), settings.get("share")
    if how in ("random", "kmeans++", "cholesky") and share is not None and share < 1.0:
        return {"landmarks": Landmarks(max(2, int(share * n)), by=how)}
    rules: dict[str | None, dict[str, Any]] = {
        "evidence": {"sparse": True, "landmarks": Landmarks(keep=share)},
        "ard": {"sparse": True},
    }
    return rules.get(how, {})


# ---------------------------------------------------------------- beside the model


def estimator(X: Array, Y: Array, X_new: Array, settings: Settings) -> Prediction:
    """The estimator as it comes, but for what the settings say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # where it is not meant to converge
        predicted = KernelFactorRegressor(**settings).fit(X, Y).predict(X_new)
    return Prediction(np.asarray(predicted).reshape(len(X_new), -1))


def gaussian_process(X: Array, Y: Array, X_new: Array, settings: Settings) -> Prediction:
    """With Σ_m v_m K_m and σ_d² as the likelihood of the outputs has them."""
    of_x, of_y = Scaling.fit(X), Scaling.fit(Y)
    X, Y, X_new = of_x.encode(X), of_y.encode(Y), of_x.encode(X_new)
    kernels, columns = parts(as_kernel(settings["kernel"], "x")), np.arange(Y.shape[1])
    outputs = Outputs.of(Y, Groups(columns, len(columns)))
    found = learn(kernels, [X] * len(kernels), [X] * len(kernels), outputs)
    K, K_new = (_summed(found.kernels, found.weights, rows, X) for rows in (X, X_new))
    K_new = K_new - K_new.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
    e, U = np.linalg.eigh(centre(K))
    spectrum = np.maximum(e, 0.0)[:, None] + found.noise
    return Prediction(of_y.decode(K_new @ (U @ (U.T @ Y / spectrum))))


def _summed(kernels: list[Kernel], weights: Array, X: Array, V: Array) -> Array:
    return np.asarray(sum(v * k(X, V) for v, k in zip(weights, kernels, strict=True)))


METHODS: dict[str, Method] = {
    "factors": factors,
    "factors_validated": factors_validated,
    "estimator": estimator,
    "gaussian_process": gaussian_process,
}
