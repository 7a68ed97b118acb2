"""One view of a sample from what else is known of it: how it is found, and its Gaussian layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from kofa.kernels.outputs import resolution
from kofa.likelihoods.base import Likelihood
from kofa.linalg import Array, BoolArray, IntArray, by_rows, centre
from kofa.predictive import dual, residuals, tangent
from kofa.predictive.calibration import Calibration, calibrate, surprise
from kofa.predictive.inputs import Inputs, Map, Rest, Source, learn
from kofa.predictive.keys import first, ranks_of_columns
from kofa.predictive.observed import Observed
from kofa.predictive.regression import Regression, Spectrum, regress
from kofa.predictive.residuals import Covariance

FACTORS = " factors"  # the source of factors; no view has such a name
_LEARNING_ROWS = 500  # from which the weights of kernels are learnt
_LEARNING_COLUMNS = 300
_SCALE_ROWS = 2000  # from which scales and noise are learnt where features do not hold a kernel
_NEGLIGIBLE = 1e-6  # of the variance of a column


@dataclass(frozen=True, eq=False)
class Unsure:
    """What rows with one pattern of holes leave open of their features: Σ = T Tᵀ + diag(δ)."""

    rows: IntArray
    T: Array  # (p, ·)
    which: IntArray  # the features that have a variance of their own
    delta: Array  # of these


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of some rows beside the view: their features by source."""

    n: int
    features: Mapping[str, Array]
    beyond: Mapping[str, Array]  # (n,): of k(x, x) of a source, what its features do not hold
    more: Array | float = 0.0  # (n, D): what rows of the fit say beside features
    unsure: tuple[Unsure, ...] = ()


@dataclass(frozen=True, eq=False)
class FromOthers:
    """What other views say of a view: (n, D) all."""

    mean: Array
    variance: Array  # but for the noise, and for what columns have in common
    std: Array  # with the noise
    shared: Array  # variance that columns have in common, since features of rows are left open
    beyond_fit: Array  # how much of it the rows of the fit do not have


@dataclass(frozen=True, eq=False)
class ViewFromOthers:
    """How a view follows from features of the other views, and its columns from each other."""

    map: Map
    regression: Regression
    residuals: Covariance
    calibration: Calibration | None  # of views that are not Gaussian
    open_in_fit: Array  # (D,): mean variance by what rows of the fit leave open, which noise has

    def layer(self, known: Known, own: Observed | None) -> tuple[Array, Array]:
        """Mean and variance of the columns, with their noise where it is Gaussian.

        `own`: what is known of the view itself; such columns are as they are.
        """
        f = self._from_others(known)
        shift, left = np.zeros(f.mean.shape), self.residuals.diagonal + f.shared / f.std**2
        if own is not None and own.mask.any():
            r = self._standardised(own, f)
            shift, left = self.residuals.conditional(r, own.mask, self._in_common(known, f))
            if self.calibration is not None:
                shift = np.where(own.mask, 0.0, shift)
        return self._with_rest(f, shift, left)

    def each_cell(
        self, known: Known, own: Observed, in_fit: BoolArray, counted: BoolArray
    ) -> tuple[Array, Array]:
        """Mean and variance of each cell that is known, given all else that is known of its row.

        Of rows that the regression has seen (`in_fit`), and whose residuals are `counted`, what
        they say themselves is taken back.
        """
        f = self._from_others(known, own, own.mask & in_fit[:, None])
        # Of alternatives one value tells all
        known_too = own.mask & (not own.likelihood.competing)
        r, shared = self._standardised(own, f), self._in_common(known, f)
        shift, left = self.residuals.each_given_rest(r, known_too, counted, shared)
        return self._with_rest(f, shift, left)

    def _slope(self, own: Observed, mean: Array) -> Array:
        """g′ of what is known."""
        if self.calibration is None:
            return np.where(own.mask, own.values - mean, 0.0) / self.regression.noise
        return own.tangent(mean)[1]

    def _standardised(self, own: Observed, f: FromOthers) -> Array:
        """Residuals in deviations; where the view is not Gaussian, its pull stands for them.

        The pull of a Gaussian is its residual over the variance.
        """
        if self.calibration is None:
            return np.where(own.mask, own.values - f.mean, 0.0) / f.std
        return own.pull(f.mean, f.variance + f.shared) * (f.std + f.shared / f.std)

    def _with_rest(self, f: FromOthers, shift: Array, left: Array) -> tuple[Array, Array]:
        """The rest of the view moves the mean, and leaves so much of the variance."""
        mean = f.mean + f.std * shift
        if self.calibration is None:
            return mean, f.std**2 * left
        return self.calibration.of(mean, f.variance + f.shared)

    def _from_others(
        self, known: Known, own: Observed | None = None, itself: BoolArray | None = None
    ) -> FromOthers:
        """What follows from the others, without what cells of the fit say of `itself`.

        Without a row, whose likelihood is nearly Gaussian with the variance a, f has the variance
        v = h / (1 − h/a) where it had h, and is less by v g′.
        """
        found, sources = self.regression, self.map
        features = sources.of_rows(known.n, known.features)
        along = by_rows(features, sources.projection)
        mean = found.mean + by_rows(along, found.coefficients) + known.more
        variance = found.variance(along, (features**2).sum(axis=1))
        if own is not None and itself is not None:
            share = variance * found.share / np.where(found.noise > 0, found.noise, 1.0)
            without = variance / np.maximum(1.0 - share, np.finfo(float).eps)
            mean -= np.where(itself, without * self._slope(own, mean), 0.0)
            variance = np.where(itself, without, variance)
        shared, alone = self._left_open(known)
        both = shared + alone
        beyond_fit = np.maximum(both - self.open_in_fit, 0.0) / np.where(both > 0, both, 1.0)
        variance = variance + beyond_fit * alone
        for name, beyond in known.beyond.items():
            if name in sources.sources:
                unit = sources.sources[name].unit
                variance += found.scale * (sources.weights[name] / unit**2 * beyond)[:, None]
        std = np.sqrt(variance + found.noise)
        return FromOthers(mean, variance, std, beyond_fit * shared, beyond_fit)

    def left_open(self, known: Known) -> Array:
        """Variance by what rows leave open of their features: (n, D)."""
        shared, alone = self._left_open(known)
        return shared + alone

    def _left_open(self, known: Known) -> tuple[Array, Array]:
        """By what features leave open together, and each for itself: (n, D) both."""
        shared, alone = np.zeros((2, known.n, len(self.regression.mean)))
        for some in known.unsure:
            shared[some.rows] += (self._loadings(some) ** 2).sum(axis=0)
            alone[some.rows] += self._of_noise(some)
        return shared, alone

    def _loadings(self, some: Unsure) -> Array:
        """How the columns follow what features leave open together: (·, D)."""
        return np.asarray(some.T.T @ self.map.from_given @ self.regression.coefficients)

    def _of_noise(self, some: Unsure) -> Array:
        """wᵀ diag(δ) w of every column, w its weights of the features: (D,)."""
        by, C = self.map.from_given, self.regression.coefficients
        own = by[some.which] * np.sqrt(some.delta)[:, None]
        if len(own) > len(C):
            return np.asarray(((own.T @ own @ C) * C).sum(axis=0))
        return np.asarray(((own @ C) ** 2).sum(axis=0))

    def _in_common(self, known: Known, f: FromOthers) -> dict[int, Array]:
        """What is left open makes columns vary together: loadings (D, k) of rows, standardised."""
        counts = np.any(f.shared > _NEGLIGIBLE * f.std**2, axis=1)
        found: dict[int, list[Array]] = {}
        for some in known.unsure:
            rows = some.rows[counts[some.rows]]
            if len(rows):
                loadings = self._loadings(some)
                for row in rows:
                    found.setdefault(int(row), []).append(loadings)
        root = np.sqrt(f.beyond_fit) / f.std
        return {n: (np.concatenate(parts) * root[n]).T for n, parts in found.items()}


def explain(
    rows: IntArray,
    sources: Mapping[str, Source],
    targets: Array,
    likelihood: Likelihood,
    rest: Rest | None = None,
) -> tuple[ViewFromOthers, Array]:
    """A view, encoded (n, D) and NaN where missing, from the features of others in the same rows.

    `rows`: their ranks, by which some are drawn; `rest`: what features do not hold of the kernels.
    With it come the weights a of all rows (n, D).
    """
    n, columns, some = len(targets), ranks_of_columns(targets), first(rows, _LEARNING_ROWS)
    few = np.nan_to_num(_standardised(targets)[:, first(columns, _LEARNING_COLUMNS)])
    few = few[:, few.any(axis=0)]
    inputs = Inputs.alike(n, sources)
    if len(sources) > 1 and few.shape[1]:
        inputs = inputs.weighted(learn(sources, few[some], some, rest))
    if rest is None or likelihood.curvature is not None:
        left, a = np.arange(n), np.zeros((0, targets.shape[1]))
        found, calibration = follow(inputs.spectrum, targets, likelihood)
    else:
        left, calibration = first(rows, _SCALE_ROWS), None
        found, a = _by_all_rows(inputs, targets, likelihood, rest, left)
    r = np.nan_to_num(found.left_out / found.left_out_std)
    C = residuals.fit(r, ~np.isnan(targets[left]), rows[left], columns)
    none = np.zeros((0, 0))
    lean = replace(found, left_out=none, left_out_std=none)
    return ViewFromOthers(inputs.map, lean, C, calibration, np.zeros(len(found.mean))), a


def _by_all_rows(
    inputs: Inputs, targets: Array, likelihood: Likelihood, rest: Rest, few: IntArray
) -> tuple[Regression, Array]:
    """The regression by whole kernels, scales and residuals from a few rows; and a (n, D)."""
    weights = {name: inputs.weights[name] / s.unit**2 for name, s in inputs.sources.items()}
    D = rest(weights, np.arange(inputs.n))
    some, spectrum = inputs.features[few], inputs.spectrum
    own = Spectrum.of_kernel(centre(some @ some.T + D[np.ix_(few, few)]))
    found, _ = follow(own, targets[few], likelihood)
    seen = ~np.isnan(targets)
    mean, a = dual.solve(spectrum, D, targets, seen, found.ratio)
    share = np.maximum(seen.mean(axis=0), 1.0 / inputs.n)
    whole = replace(
        found, e=spectrum.e, n_rows=inputs.n, mean=mean, share=share, coefficients=spectrum.U.T @ a
    )
    return whole, a


def follow(
    spectrum: Spectrum, targets: Array, likelihood: Likelihood
) -> tuple[Regression, Calibration | None]:
    """The regression of a view, encoded (n, D), and how far it may be trusted."""
    data = Observed.of(targets, likelihood)
    if likelihood.curvature is None:
        return regress(spectrum, data.values, data.mask, _rounding(targets)), None
    kappa = np.broadcast_to(likelihood.curvature, targets.shape[1:])
    left = tangent.regress(
        spectrum,
        data.tangent,
        kappa,
        data.mask,
        likelihood.competing,
        data.typical,
        None if likelihood.has("log_predictive") else partial(surprise, data),
    )
    variance = left.variance + left.regression.noise
    stand_in = np.where(data.mask, data.pull(left.eta, left.variance) * variance, np.nan)
    found = replace(left.regression, left_out=stand_in, left_out_std=np.sqrt(variance))
    return found, calibrate(data, left)


def _standardised(Y: Array) -> Array:
    """Columns on unit scale; those that do not vary are zero."""
    seen = ~np.isnan(Y)
    n = np.maximum(seen.sum(axis=0), 1)
    away = Y - np.where(seen, Y, 0.0).sum(axis=0) / n
    spread = np.sqrt(np.where(seen, away**2, 0.0).sum(axis=0) / n)
    varies = spread > 1e-12
    return np.asarray(np.where(varies, away / np.where(varies, spread, 1.0), 0.0 * away))


def _rounding(Y: Array) -> Array:
    """Variance of columns by how finely they were measured: (D,)."""
    return np.array([resolution(y[~np.isnan(y)]) for y in Y.T]) ** 2 / 12.0
