"""Regression of several targets: kernels, nets, trees; all tuned inside the training rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.svm import SVR

from experiments.baselines import mrd
from experiments.baselines.validation import (
    Method,
    Prediction,
    Settings,
    errors_of,
    validated,
    validated_by_target,
)
from kofa.kernels import RBF
from kofa.linalg import Array

_LEAST = 1e-12  # of the largest eigenvalue: what is below is rounding

# ---------------------------------------------------------------- principal components of a kernel


@dataclass(frozen=True)
class Components:
    """Uncorrelated coordinates of rows in the space of a kernel, the largest first."""

    train: Array  # (n, r), centred
    new: Array  # (m, r)
    squares: Array  # (r,): sums of squares of the columns of train

    @classmethod
    def of(cls, X: Array, X_new: Array, width: float, V: Array) -> Components:
        """By landmarks V (Nyström): with V = X those of kernel PCA, exactly."""
        kernel = RBF(width * RBF().median_width(X))
        whitener = _inverse_root(kernel(V, V))
        features = kernel(X, V) @ whitener
        mean = features.mean(axis=0)
        squares, axes = _largest_first((features - mean).T @ (features - mean))
        new = (kernel(X_new, V) @ whitener - mean) @ axes
        return cls((features - mean) @ axes, new, squares)


def _largest_first(A: Array) -> tuple[Array, Array]:
    """Eigenvalues and vectors of a symmetric matrix, but for those that are rounding."""
    values, vectors = np.linalg.eigh(A)
    kept = np.flatnonzero(values > _LEAST * values[-1])[::-1]
    return values[kept], vectors[:, kept]


def _inverse_root(K: Array) -> Array:
    values, vectors = _largest_first(K)
    return np.asarray(vectors / np.sqrt(values))


def drawn(X: Array, settings: Settings) -> Array:
    """The landmarks: a share of the rows at random, or all of them."""
    share = settings.get("share", 1.0)
    if share >= 1.0:
        return X
    rng = np.random.default_rng(settings["seed"])
    return X[rng.choice(len(X), max(2, int(share * len(X))), replace=False)]


def _share(X: Array, settings: Settings) -> float:
    return len(drawn(X, settings)) / len(X)


def _kpca_sweep(
    settings: Settings, X: Array, Y: Array, X_new: Array, width: float
) -> dict[Any, Array]:
    found, mean = Components.of(X, X_new, width, drawn(X, settings)), Y.mean(axis=0)
    # Uncorrelated components: least squares on the first k are the first k of least squares on all.
    slopes = found.train.T @ (Y - mean) / found.squares[:, None]
    return {k: mean + found.new[:, :k] @ slopes[:k] for k in settings["components"]}


def kpca_regression(X: Array, Y: Array, X_new: Array, settings: Settings) -> Prediction:
    """Least squares on kernel principal components; width and number of them validated."""
    sweep = partial(_kpca_sweep, settings)
    predicted, (_, k) = validated(sweep, X, Y, X_new, settings["widths"], settings["inner_folds"])
    return Prediction(predicted, min(k, len(X) - 1), _share(X, settings))


def _ridge_sweep(
    settings: Settings, X: Array, Y: Array, X_new: Array, width: float
) -> dict[Any, Array]:
    found, mean = Components.of(X, X_new, width, drawn(X, settings)), Y.mean(axis=0)
    along = found.train.T @ (Y - mean)
    return {
        penalty: mean + found.new @ (along / (found.squares[:, None] + penalty))
        for penalty in settings["penalties"]
    }


def kernel_ridge(X: Array, Y: Array, X_new: Array, settings: Settings) -> Prediction:
    """Kernel ridge regression, centred; width and penalty validated."""
    sweep = partial(_ridge_sweep, settings)
    predicted, _ = validated(sweep, X, Y, X_new, settings["widths"], settings["inner_folds"])
    return Prediction(predicted, None, _share(X, settings))


# ---------------------------------------------------------------- kernel CCA


@dataclass(frozen=True)
class Canonical:
    """Regularised canonical correlations of a kernel with linear functions of the targets.

    With Yc = Q R (QR decomposition) and the smoother H = K (K + κI)⁻¹, the canonical directions of
    the targets are eigenvectors B of Qᵀ H Q, the largest first, and those of the rows are H Q B.
    """

    train: Array  # (n, C): H Q B
    new: Array  # (m, C)
    back: Array  # (C, C): Bᵀ R, from canonical variates to targets

    @classmethod
    def of(cls, found: Components, Y: Array, penalty: float) -> Canonical:
        Q, R = np.linalg.qr(Y - Y.mean(axis=0))
        slopes = found.train.T @ Q / (found.squares[:, None] + penalty)
        _, B = np.linalg.eigh(Q.T @ found.train @ slopes)
        directions = slopes @ B[:, ::-1]
        return cls(found.train @ directions, found.new @ directions, B[:, ::-1].T @ R)

    def own(self, k: int) -> Array:
        """The targets (m, C), centred, as the first k variates of the rows foretell them.

        A regularised variate of unit norm, times its correlation, is the column of H Q B itself.
        """
        return self.new[:, :k] @ self.back[:k]

    def regressed(self, Y: Array, k: int) -> Array:
        """The same by least squares on the first k variates."""
        slopes, *_ = np.linalg.lstsq(self.train[:, :k], Y - Y.mean(axis=0), rcond=None)
        return np.asarray(self.new[:, :k] @ slopes)


def _kcca_sweep(
    settings: Settings, regress: bool, X: Array, Y: Array, X_new: Array, width: float
) -> dict[Any, Array]:
    found, C = Components.of(X, X_new, width, drawn(X, settings)), Y.shape[1]
    predicted = {}
    for penalty in settings["penalties"]:
        pair = Canonical.of(found, Y, penalty)
        for k in {1, (C + 1) // 2, C}:
            centred = pair.regressed(Y, k) if regress else pair.own(k)
            predicted[penalty, k] = Y.mean(axis=0) + centred
    return predicted


def kcca(X: Array, Y: Array, X_new: Array, settings: Settings, regress: bool = False) -> Prediction:
    """Kernel CCA, alone or with least squares behind; width, penalty and factors validated."""
    sweep = partial(_kcca_sweep, settings, regress)
    widths, folds = settings["widths"], settings["inner_folds"]
    predicted, (_, (_, k)) = validated(sweep, X, Y, X_new, widths, folds)
    return Prediction(predicted, k, _share(X, settings))


# ---------------------------------------------------------------- ordinary tools


def _svr_sweep(
    settings: Settings, X: Array, Y: Array, X_new: Array, width: float
) -> dict[Any, Array]:
    kernel = RBF(width * RBF().median_width(X))
    K, K_new = kernel(X, X), kernel(X_new, X)

    def of_target(y: Array, cost: float) -> Array:
        machine = SVR(kernel="precomputed", C=cost, epsilon=settings["svr_tube"], cache_size=500)
        return np.asarray(machine.fit(K, y).predict(K_new))

    return {
        cost: np.column_stack([of_target(y, cost) for y in Y.T]) for cost in settings["svr_costs"]
    }


def svr(X: Array, Y: Array, X_new: Array, settings: Settings) -> Prediction:
    """A support vector machine for each target, its width and cost validated."""
    sweep = partial(_svr_sweep, settings)
    widths, folds = settings["svr_widths"], settings["inner_folds"]
    return Prediction(validated_by_target(sweep, X, Y, X_new, widths, folds))


def _linear_sweep(settings: Settings, X: Array, Y: Array, X_new: Array, _: Any) -> dict[Any, Array]:
    return {
        penalty: Ridge(alpha=penalty).fit(X, Y).predict(X_new).reshape(len(X_new), -1)
        for penalty in settings["ridge_penalties"]
    }


def ridge(X: Array, Y: Array, X_new: Array, settings: Settings) -> Prediction:
    """Linear ridge regression, its penalty validated."""
    sweep = partial(_linear_sweep, settings)
    return Prediction(validated(sweep, X, Y, X_new, [None], settings["inner_folds"])[0])


def _mlp_sweep(
    settings: Settings, hidden: tuple[int, ...], X: Array, Y: Array, X_new: Array, outer: Any
) -> dict[Any, Array]:
    solver, penalty = outer
    net = MLPRegressor(
        hidden_layer_sizes=hidden,
        solver=solver,
        activation="tanh",
        alpha=penalty,
        max_iter=settings["mlp_iterations"],
        random_state=settings["seed"],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early regularises, too
        net.fit(X, Y if Y.shape[1] > 1 else Y[:, 0])
    return {None: np.asarray(net.predict(X_new)).reshape(len(X_new), -1)}


def mlp(
    X: Array, Y: Array, X_new: Array, settings: Settings, bottleneck: bool = False
) -> Prediction:
    """One hidden layer, or one as narrow as the targets between two; its fit is validated."""
    wide, C = settings["mlp_hidden"], Y.shape[1]
    hidden = (wide, C, wide) if bottleneck else (wide,)
    outer, folds = map(tuple, settings["mlp_settings"]), settings["mlp_inner_folds"]
    predicted, _ = validated(partial(_mlp_sweep, settings, hidden), X, Y, X_new, outer, folds)
    return Prediction(predicted, C if bottleneck else wide)


def _trees_sweep(
    settings: Settings, n: int, X: Array, Y: Array, X_new: Array, outer: Any
) -> dict[Any, Array]:
    features, leaf = outer
    forest = ExtraTreesRegressor(
        n, max_features=features, min_samples_leaf=leaf, random_state=settings["seed"]
    )
    forest.fit(X, Y if Y.shape[1] > 1 else Y[:, 0])
    return {None: np.asarray(forest.predict(X_new)).reshape(len(X_new), -1)}


def extra_trees(X: Array, Y: Array, X_new: Array, settings: Settings) -> Prediction:
    """Extremely randomised trees; features tried at a split and size of leaves validated."""
    outer = list(product(settings["tree_features"], settings["tree_leaves"]))
    inner = partial(_trees_sweep, settings, settings["inner_trees"])
    errors = errors_of(inner, X, Y, outer, settings["inner_folds"])
    best, _ = min(errors, key=lambda setting: float(errors[setting].sum()))
    return Prediction(_trees_sweep(settings, settings["trees"], X, Y, X_new, best)[None])


def manifold(X: Array, Y: Array, X_new: Array, settings: Settings) -> Prediction:
    """Manifold relevance determination: one space behind inputs and targets."""
    K, inducing = min(settings["mrd_factors"], X.shape[1]), min(settings["mrd_inducing"], len(X))
    model = mrd.fitted([X, Y], K, inducing, settings["mrd_iterations"], settings["seed"])
    return Prediction(mrd.predicted(model, X_new), K)


METHODS: dict[str, Method] = {
    "kpca": kpca_regression,
    "kcca": kcca,
    "kcca_lr": partial(kcca, regress=True),
    "svr": svr,
    "mlp": mlp,
    "mlp_bottleneck": partial(mlp, bottleneck=True),
    "kernel_ridge": kernel_ridge,
    "extra_trees": extra_trees,
    "ridge": ridge,
    "mrd": manifold,
}
