"""What one unit of each factor adds to the features of a view."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from kofa.checks import check_number
from kofa.data.returning import named
from kofa.inspection.features import column_names, feature_names
from kofa.inspection.matching import frame
from kofa.kernels.formulas import Linear
from kofa.kernels.kernel_map import KernelMap
from kofa.linalg import Array
from kofa.preparation.fitted import Fitted
from kofa.preparation.prepare import FittedView

_RANK = 1e-10  # of the largest eigenvalue of a kernel: what is less is rounding


@dataclass(frozen=True, eq=False)
class FeatureWeights:
    """q(w) of all features along the factors that users see: (D, L) each."""

    features: list[Hashable]
    mean: Array  # in the user's units
    std: Array
    spread: Array  # (D, 1): standard deviation of the feature in the same units

    @property
    def standardised(self) -> Array:
        """In units of the feature's standard deviation; zero where it does not vary."""
        return np.asarray(self.mean / np.where(self.spread > 0, self.spread, np.inf))

    @property
    def lfsr(self) -> Array:
        """Local false sign rate Φ(−|⟨w⟩|/std): the probability that w has the other sign."""
        ratio = np.abs(self.mean) / np.where(self.std > 0, self.std, 1.0)
        return np.where(self.std > 0, ndtr(-ratio), np.where(self.mean == 0, 0.5, 0.0))

    def columns(self, rows: Any, factors: Any) -> dict[str, Array]:
        """Some entries, as columns of a table."""
        return {
            "weight": self.mean[rows, factors],
            "std": self.std[rows, factors],
            "standardised": self.standardised[rows, factors],
            "lfsr": self.lfsr[rows, factors],
        }


def feature_weights(fitted: Fitted, view: str) -> FeatureWeights:
    """The weights of a view: of its columns or classes; of a kernel that is not linear, landmarks.

    On the scale of the model the spread of a column is that in fit, or where files do not have it
    √(Σ_k ⟨w_dk⟩² + 1/τ_d); for kinds that are not Gaussian this is the spread of η and its noise.
    """
    one = fitted.view(view)
    if is_linear(one):
        return _of_linear_kernel(fitted, view, one)
    w = fitted.weights(view)
    columns = w.mean.T, np.sqrt(w.variance).T, _spread(fitted, view)[None]
    return FeatureWeights(column_names(one), *(one.layer.in_units(c).T for c in columns))


def is_linear(view: FittedView) -> bool:
    """Whether it is explained through a linear kernel, which has weights of features too."""
    return isinstance(view.encoder, KernelMap) and isinstance(view.encoder.kernel, Linear)


def _spread(fitted: Fitted, view: str) -> Array:
    """Standard deviation of each column on the scale of the model: (D,)."""
    posterior, layer = fitted.posterior[view], fitted.views[view].layer
    if view in fitted.explained and layer.curvature is None:
        kept = fitted.explained[view]
        return np.sqrt(kept.total / np.maximum(kept.n, 1.0))
    return np.asarray(np.sqrt((posterior.weights.mean**2).sum(axis=1) + 1.0 / posterior.precision))


def _of_linear_kernel(fitted: Fitted, name: str, view: FittedView) -> FeatureWeights:
    """B = Ṽᵀ C with K̃ C = W: combinations of the centred landmarks Ṽ that have these similarities.

    The similarities of a row x are linear in it, A x + a constant, and A B = W: as one unit of a
    factor adds W to the similarities of a sample, so does B, added to its features. W being a
    regression of similarities on the factors, B is that of the features, from which its standard
    deviation follows: the noise of a feature is what B leaves of its variance.
    """
    encoder, posterior = view.encoder, fitted.posterior[name]
    assert isinstance(encoder, KernelMap)
    V = encoder.V - encoder.V.mean(axis=0) if encoder.by_row else encoder.V
    W = posterior.weights.mean
    B = np.zeros((V.shape[1], W.shape[1]))
    if not encoder.says_nothing:
        inverse = np.linalg.pinv(encoder.grams(encoder.V)[0], _RANK, hermitian=True)
        B = V.T @ (inverse @ W)
    variance = encoder.V.var(axis=0)
    noise = np.maximum(variance - (B**2).sum(axis=1), 0.0)
    of_factor = (posterior.precision[:, None] * fitted.weights(name).variance).mean(axis=0)
    unit = np.where(np.isfinite(encoder.scaling.spread), encoder.scaling.spread, 0.0)[:, None]
    return FeatureWeights(
        feature_names(view),
        unit * (B @ fitted.basis.Q.T),
        unit * np.sqrt(np.outer(noise, of_factor)),
        unit * np.sqrt(variance)[:, None],
    )


# ---------------------------------------------------------------- tables


def weights_by_factor(fitted: Fitted, view: str) -> Any:
    """⟨W⟩ (D, L) in the user's units, of any kernel (R, L): a DataFrame where there are names."""
    one = fitted.view(view)
    mean = one.layer.in_units(fitted.weights(view).mean.T).T
    return named(mean, None if one.inputs is None else one.outputs, fitted.factor_names)


def standardised_weights(fitted: Fitted, view: str) -> Any:
    """The same in units of the features' standard deviations, of a linear kernel by feature."""
    found, one = feature_weights(fitted, view), fitted.views[view]
    rows = None if one.inputs is None else found.features
    return named(found.standardised, rows, fitted.factor_names)


def tidy_weights(fitted: Fitted, view: str) -> Any:
    """One row for each feature and factor."""
    found, factors = feature_weights(fitted, view), fitted.factor_names
    k, d = np.divmod(np.arange(found.mean.size), max(len(found.features), 1))
    features, of = [found.features[j] for j in d], [factors[j] for j in k]
    return frame({"feature": features, "factor": of} | found.columns(d, k))


def top_features(fitted: Fitted, view: str, factor: Any, n: int = 10) -> Any:
    """The features of a view that a factor changes most, by standardised weight."""
    check_number("n", n, whole=True, least=1)
    found, k = feature_weights(fitted, view), fitted.place_of(factor)
    rows = np.argsort(-np.abs(found.standardised[:, k]), kind="stable")[: int(n)]
    return frame({"feature": [found.features[j] for j in rows]} | found.columns(rows, k))
