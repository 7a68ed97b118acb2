"""The kinds of observation: how values enter the Gaussian layer, and how they come out of it.

The core only ever sees a Gaussian layer y_nd ~ N(η_nd, 1/τ_d) with η = w_d·z_n + b_d. Real and
positive values enter it as they are (on some scale), with a noise that is learnt. Every other
kind is a log-likelihood g(t, η) whose curvature is nowhere above a known κ_d. The parabola that
touches g at the current η and has this curvature lies below g everywhere,

    g(t, f) ≥ g(t, η) + g′(t, η) (f − η) − ½ κ (f − η)²,

and it is, up to a constant, the log-density of a Gaussian pseudo-observation y = η + g′(t, η)/κ of
precision κ. That is all inference needs. (For probit links the parabola is the bound of the
truncated normal, mean and all; for counts it is that of Seeger & Bouchard 2012.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import erfcx, gammaln, log_ndtr, ndtr, ndtri, pdtr

from kofa.errors import DataError
from kofa.linalg import Array, BoolArray, IntArray
from kofa.scaling import REACH, Scaling, Unit
from kofa.tables import Table

_LOG_2PI = float(np.log(2.0 * np.pi))
# Nodes of a quadrature (tests/test_likelihoods.py): errors below 1e-8, and below 1e-6 where the
# classes differ in variance.
_NODES, _NODES_UNEQUAL = 24, 64
_AT_ONCE = 2**20  # numbers in a temporary


@dataclass(frozen=True, eq=False)
class Likelihood:
    """One kind of observation, with all that fit resolved from the data.

    A new kind says how to encode and check its values, its log-likelihood with slope and
    curvature, and what it predicts. Everything else follows.
    """

    reads_labels: ClassVar[bool] = False  # of any type, in one column
    competing: ClassVar[bool] = False  # the columns are alternatives: only differences count
    unit: ClassVar[Unit] = "value"  # in which a kernel compares samples
    predicts_by_mean: ClassVar[bool] = False  # `predict` does not use the variance

    # ---- encode and validate

    @classmethod
    def check(cls, table: Table) -> None:
        """Raise where a value cannot be of this kind; name the view, the column and the cure."""

    @classmethod
    def resolve(cls, table: Table, by_column: bool = True) -> Self:
        """The likelihood with everything that depends on the data fixed."""
        raise NotImplementedError

    def encode(self, values: Array) -> Array:
        """Targets (n, D) from a table's values, NaN where missing; an array of its own."""
        return values.copy()

    def beyond(self, values: Array) -> BoolArray:
        """Rows with values out of reach, which count as less far."""
        return np.zeros(len(values), dtype=bool)

    # ---- the Gaussian layer

    @property
    def curvature(self) -> Array | None:
        """κ_d of each column, the most that −∂²g/∂η² can be; None where the noise is learnt."""
        raise NotImplementedError

    def tangent(self, targets: Array, eta: Array) -> tuple[Array, Array]:
        """g(t, η) and its slope in η, each (n, D)."""
        raise NotImplementedError

    def pseudo_observation(self, targets: Array, eta: Array) -> tuple[Array, Array]:
        """y = η + g′/κ, and by how much g exceeds log N(y | η, 1/κ): each (n, D)."""
        kappa = self.curvature
        assert kappa is not None
        value, slope = self.tangent(targets, eta)
        excess = value + 0.5 * slope**2 / kappa + 0.5 * (_LOG_2PI - np.log(kappa))
        return eta + slope / kappa, excess

    # ---- predictive, for η ~ N(mean, variance); variance includes any learnt noise

    def predict(self, mean: Array, variance: Array) -> Array:
        """The value to expect."""
        raise NotImplementedError

    def std(self, mean: Array, variance: Array) -> Array:
        """Standard deviation of the value."""
        raise NotImplementedError

    def quantile(self, mean: Array, variance: Array, p: float) -> Array:
        """The value that is not exceeded with probability p."""
        raise NotImplementedError

    def probability(self, mean: Array, variance: Array) -> Array:
        """Probability of a one, or of each class."""
        raise NotImplementedError

    def log_predictive(self, targets: Array, mean: Array, variance: Array) -> Array:
        """Log-probability of the targets (n, D), by which probabilities are calibrated."""
        raise NotImplementedError

    def expected(self, eta: Array) -> tuple[Array, Array]:
        """The mean of counts given η, and how it rises with η: what calibrates their spread."""
        raise NotImplementedError

    def has(self, method: str) -> bool:
        """Whether this kind defines one of the methods above."""
        return getattr(type(self), method) is not getattr(Likelihood, method)

    def offers(self) -> list[str]:
        """How a user may ask for its uncertainty."""
        doors = {
            "probability": "predict_proba",
            "std": "return_std",
            "quantile": "predict_quantiles",
        }
        return [door for method, door in doors.items() if self.has(method)]

    def fill(self, mean: Array, variance: Array) -> Array:
        """The value that stands in for a missing one: one that could have been observed."""
        return self.predict(mean, variance)


# ---------------------------------------------------------------- real and positive values


@dataclass(frozen=True, eq=False)
class Gaussian(Likelihood):
    """y ~ N(η, 1/τ) on the scale of the columns, τ learnt."""

    predicts_by_mean: ClassVar[bool] = True
    scaling: Scaling

    @classmethod
    def resolve(cls, table: Table, by_column: bool = True) -> Self:
        return cls(Scaling.fit(table.values, by_column, cls.unit))

    def encode(self, values: Array) -> Array:
        return np.clip(self.scaling.encode(values), -REACH, REACH)

    def beyond(self, values: Array) -> BoolArray:
        return np.asarray((np.abs(self.scaling.encode(values)) > REACH).any(axis=1))

    @property
    def curvature(self) -> None:
        return None

    def _decode(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Mean and standard deviation in the user's units, or their logarithms."""
        return self.scaling.decode(mean), self.scaling.decode_std(np.sqrt(variance))

    def predict(self, mean: Array, variance: Array) -> Array:
        return self._decode(mean, variance)[0]

    def std(self, mean: Array, variance: Array) -> Array:
        return self._decode(mean, variance)[1]

    def quantile(self, mean: Array, variance: Array, p: float) -> Array:
        mean, std = self._decode(mean, variance)
        return np.asarray(mean + ndtri(p) * std)

    def log_unit(self, values: Array) -> Array:  # noqa: ARG002
        """log |d encoded / d value|, by column or by entry."""
        return -np.log(self.scaling.spread)


@dataclass(frozen=True, eq=False)
class LogNormal(Gaussian):
    """log y ~ N(η, 1/τ) on the scale of the logarithms, τ learnt."""

    unit: ClassVar[Unit] = "log"
    predicts_by_mean: ClassVar[bool] = False

    @classmethod
    def check(cls, table: Table) -> None:
        _refuse(
            table,
            table.values <= 0,
            "positive numbers",
            "mark it as missing, add an offset, or declare the view as kofa.Real() or kofa.Count()",
        )

    def predict(self, mean: Array, variance: Array) -> Array:
        mean, std = self._decode(mean, variance)
        return _exp(mean + 0.5 * std**2)

    def std(self, mean: Array, variance: Array) -> Array:
        expected = self.predict(mean, variance)
        square = np.minimum(self._decode(mean, variance)[1] ** 2, _LARGEST_LOG)
        with np.errstate(over="ignore"):
            return np.minimum(expected * np.sqrt(np.expm1(square)), np.exp(_LARGEST_LOG))

    def quantile(self, mean: Array, variance: Array, p: float) -> Array:
        return _exp(super().quantile(mean, variance, p))

    def log_unit(self, values: Array) -> Array:
        return super().log_unit(values) - np.log(values)


_LARGEST_LOG = 709.0  # of a number


def _exp(x: Array) -> Array:
    """e^x, or the largest number where that is larger."""
    return np.exp(np.minimum(x, _LARGEST_LOG))


# ---------------------------------------------------------------- ones and zeros


@dataclass(frozen=True, eq=False)
class Bernoulli(Likelihood):
    """Probit: P(t = 1) = Φ(η). The truncated normal's bound has κ = 1."""

    predicts_by_mean: ClassVar[bool] = True
    n_columns: int

    @classmethod
    def check(cls, table: Table) -> None:
        bad = (table.values != 0) & (table.values != 1) & ~np.isnan(table.values)
        _refuse(table, bad, "0, 1 or missing", "recode it, or declare the view as another kind")

    @classmethod
    def resolve(cls, table: Table, by_column: bool = True) -> Self:  # noqa: ARG003
        return cls(table.values.shape[1])

    @property
    def curvature(self) -> Array:
        return np.ones(self.n_columns)

    def tangent(self, targets: Array, eta: Array) -> tuple[Array, Array]:
        sign = 2.0 * targets - 1.0
        x = np.minimum(sign * eta, _CERTAIN)
        # erfcx(−x/√2) = 2 Φ(x) exp(x²/2) gives both log Φ and φ/Φ
        scaled = erfcx(-x / np.sqrt(2.0))
        return np.log(0.5 * scaled) - 0.5 * x * x, sign * np.sqrt(2.0 / np.pi) / scaled

    def predict(self, mean: Array, variance: Array) -> Array:  # noqa: ARG002
        return (mean > 0).astype(float)

    def probability(self, mean: Array, variance: Array) -> Array:
        return np.asarray(ndtr(mean / np.sqrt(1.0 + variance)))

    def log_predictive(self, targets: Array, mean: Array, variance: Array) -> Array:
        return np.asarray(log_ndtr((2.0 * targets - 1.0) * mean / np.sqrt(1.0 + variance)))


_CERTAIN = 37.0  # Φ is one to the last digit, and exp(x²/2) still a number
_ALL_BUT_LINEAR = -1e4  # from here on down φ/Φ is −x, and differences from it are rounding


def _inverse_mills(x: Array) -> Array:
    """φ(x) / Φ(x) without underflow."""
    return np.asarray(np.sqrt(2.0 / np.pi) / erfcx(-np.minimum(x, _CERTAIN) / np.sqrt(2.0)))


# ---------------------------------------------------------------- classes


@dataclass(frozen=True, eq=False)
class Multinomial(Likelihood):
    """Multinomial probit (Girolami & Rogers 2006): the class is the largest of η_c + N(0, 1).

    g = log E_u Π_{j≠t} Φ(u + η_t − η_j), u ~ N(0, 1): log-concave in u, integrated by
    Gauss–Hermite quadrature around its mode. As log-volume of a cone under N(η, I), g has a
    Hessian between −I and 0, so κ = 1.
    """

    reads_labels: ClassVar[bool] = True
    competing: ClassVar[bool] = True
    n_classes: int

    @classmethod
    def resolve(cls, table: Table, by_column: bool = True) -> Self:  # noqa: ARG003
        n_classes, n_labels = len(table.classes), int((~np.isnan(table.values)).sum())
        if n_classes < 2:
            raise DataError(
                f"View {table.name!r}: expected at least two classes but all labels are "
                f"{table.classes.tolist()[0]!r}; leave the view out."
            )
        if n_classes == n_labels and n_labels > 2:
            raise DataError(
                f"View {table.name!r}: each of its {n_labels} labels occurs once, as names of "
                f"samples do; leave the view out, or declare numbers as kofa.Real()."
            )
        return cls(n_classes)

    def encode(self, values: Array) -> Array:
        """One column per class, one where it is the label."""
        targets = (values == np.arange(self.n_classes)).astype(float)
        targets[np.isnan(values[:, 0])] = np.nan
        return np.asarray(targets)

    @property
    def curvature(self) -> Array:
        return np.ones(self.n_classes)

    def tangent(self, targets: Array, eta: Array) -> tuple[Array, Array]:
        label, rows = np.argmax(targets, axis=1), np.arange(len(eta))
        log_p, pressure = _race(eta, np.ones(eta.shape), label, _NODES)
        value, slope = np.zeros(eta.shape), -pressure
        slope[rows, label] = pressure.sum(axis=1)
        value[rows, label] = log_p
        return value, slope

    def predict(self, mean: Array, variance: Array) -> Array:
        return np.asarray(
            np.argmax(self.probability(mean, variance), axis=1)[:, None].astype(float)
        )

    def probability(self, mean: Array, variance: Array) -> Array:
        sigma = np.sqrt(1.0 + variance)
        each = [np.full(len(mean), c) for c in range(self.n_classes)]
        log_p = [_race(mean, sigma, label, _NODES_UNEQUAL)[0] for label in each]
        p = np.exp(np.stack(log_p, axis=1))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def log_predictive(self, targets: Array, mean: Array, variance: Array) -> Array:
        value, label = np.zeros(mean.shape), np.argmax(targets, axis=1)
        log_p, _ = _race(mean, np.sqrt(1.0 + variance), label, _NODES)
        value[np.arange(len(mean)), label] = log_p
        return value


_FAR = 100.0  # ahead of a competitor by so much that it does not count


def _race(mean: Array, sigma: Array, label: IntArray, n_nodes: int) -> tuple[Array, Array]:
    """log P(η_label is the largest) under N(mean, sigma²), and `_cone`'s slopes, row by row."""
    log_p, slope = np.empty(len(mean)), np.empty(mean.shape)
    for where in _slices(len(mean), n_nodes * mean.shape[1]):
        m, s, own = mean[where], sigma[where], label[where]
        rows = np.arange(len(own))
        ahead = (m[rows, own][:, None] - m) / s
        ratio = s[rows, own][:, None] / s
        ahead[rows, own], ratio[rows, own] = _FAR, 0.0
        log_p[where], slope[where] = _cone(ahead, ratio, n_nodes)
    return log_p, slope


def _cone(ahead: Array, ratio: Array, n_nodes: int) -> tuple[Array, Array]:
    """log E Π_j Φ(ratio_j u + ahead_j) over u ~ N(0, 1), and minus its slope in each −ahead_j.

    Both arguments (n, C). The integrand is log-concave; its mode and curvature there place the
    nodes, so that far tails are as exact as the middle.
    """
    nodes, log_weights = _gauss_hermite(n_nodes)
    mode, width = _peak(ahead, ratio)
    u = mode[:, None] + width[:, None] * nodes
    x = ratio[..., None] * u[:, None, :] + ahead[..., None]  # (n, C, nodes)
    log_phi = log_ndtr(x)
    log_h = log_phi.sum(axis=1) - 0.5 * u**2 + log_weights + 0.5 * nodes**2
    top = log_h.max(axis=1, keepdims=True)
    h = np.exp(log_h - top)
    total = h.sum(axis=1)
    # E φ(x)/Φ(x) under the normalised integrand
    far = np.nonzero(x < _ALL_BUT_LINEAR)
    limit = -x[far]
    np.multiply(x, x, out=x)
    np.add(x, _LOG_2PI, out=x)
    x *= -0.5
    x -= log_phi
    x[far] = 0.0
    mills = np.exp(x)
    mills[far] = limit
    slope = np.einsum("ncq,nq->nc", mills, h / total[:, None])
    return top[:, 0] + np.log(total) + np.log(width), slope


def _peak(ahead: Array, ratio: Array) -> tuple[Array, Array]:
    """Mode of −u²/2 + Σ log Φ(ratio u + ahead), and the width of a Gaussian of its curvature.

    The slope is convex and falling and the start left of its root, so that Newton's steps
    approach it from there.
    """
    ratio = np.broadcast_to(ratio, ahead.shape)
    u = np.maximum(0.0, (-ratio * ahead / (1.0 + ratio**2)).max(axis=1))
    curvature = np.ones_like(u)
    for _ in range(6):
        x = ratio * u[:, None] + ahead
        mills = _inverse_mills(x)
        bend = np.where(x < _ALL_BUT_LINEAR, ratio**2, ratio**2 * mills * (mills + x))
        curvature = 1.0 + bend.sum(axis=1)
        u = u + ((ratio * mills).sum(axis=1) - u) / curvature
    return u, 1.0 / np.sqrt(curvature)


@cache
def _gauss_hermite(n: int) -> tuple[Array, Array]:
    """Nodes and log-weights of an expectation over N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, np.log(weights) - 0.5 * _LOG_2PI


def _slices(n_rows: int, row_size: int) -> list[slice]:
    step = max(1, _AT_ONCE // row_size)
    return [slice(i, min(i + step, n_rows)) for i in range(0, n_rows, step)]


# ---------------------------------------------------------------- counts


@dataclass(frozen=True, eq=False)
class Poisson(Likelihood):
    """t ~ Poisson(s_d softplus(η)), s_d about the mean of the column; robust to rare large counts.

    Without s_d the bound's curvature grows with the counts while that of g at its peak falls
    (t / η²), so that large counts converge ever more slowly and look ever more certain. With it,
    typical counts sit where softplus bends and both curvatures agree.

    A single count far above the others would still set the curvature of its whole column. So a
    count above `most` counts as Poisson only down to the rate where g bends as much as the
    others may, and below it as the parabola that continues g: whoever saw 1000 where 3 were
    expected is pulled up, but not without measure.
    """

    unit: ClassVar[Unit] = "log1p"
    rate: Array  # (D,): s_d
    most: Array  # (D,): the largest count seen, or four times the mean and a few if that is less

    @classmethod
    def check(cls, table: Table) -> None:
        t = table.values
        _refuse(table, t < 0, "counts (0, 1, 2, …)", "declare the view as kofa.Real()")
        fractions = (t != np.floor(t)) & ~np.isnan(t)
        _refuse(
            table,
            fractions,
            "whole counts (0, 1, 2, …)",
            "round them, or declare the view as kofa.Real() or kofa.Positive()",
        )

    @classmethod
    def resolve(cls, table: Table, by_column: bool = True) -> Self:  # noqa: ARG003
        n = (~np.isnan(table.values)).sum(axis=0)
        most = np.maximum(np.nanmax(table.values, axis=0), 1.0)
        for _ in range(_TRIMS):  # large counts are to move the mean as little as the rest
            rate = (np.nansum(np.minimum(table.values, most), axis=0) + 0.5) / n  # never zero
            most = np.minimum(most, 4.0 * rate + 3.0)
        return cls(rate, most)

    def encode(self, values: Array) -> Array:
        return np.minimum(values, REACH * self.most)

    def beyond(self, values: Array) -> BoolArray:
        return np.asarray((values > REACH * self.most).any(axis=1))

    @property
    def curvature(self) -> Array:
        # softplus″ ≤ 1/4, and −(log softplus)″ ≤ .16710 everywhere
        return 0.25 * self.rate + _LOG_SOFTPLUS_BEND * self.most

    def tangent(self, targets: Array, eta: Array) -> tuple[Array, Array]:
        point = self._within_poisson(targets, eta)
        f, steepness = _softplus(point)
        value = targets * np.log(self.rate * f) - self.rate * f - _log_factorial(targets)
        slope = targets * (steepness / f) - self.rate * steepness
        if point is not eta:
            below, kappa = eta - point, self.curvature
            value += (slope - 0.5 * kappa * below) * below
            slope -= kappa * below
        return value, slope

    def _within_poisson(self, targets: Array, eta: Array) -> Array:
        """η, or for large counts the least at which −g″ ≤ κ: −(log softplus)″ ≤ softplus^-2."""
        large = np.nonzero(targets > self.most)
        if not len(large[0]):
            return eta
        f = np.sqrt(targets[large] / (_LOG_SOFTPLUS_BEND * self.most[large[1]]))
        point = eta.copy()
        point[large] = np.maximum(eta[large], _inverse_softplus(f))
        return point

    def expected(self, eta: Array) -> tuple[Array, Array]:
        f, steepness = _softplus(eta)
        return self.rate * f, self.rate * steepness

    def predict(self, mean: Array, variance: Array) -> Array:
        weights, rates = self._rates(mean, variance)
        return np.asarray(rates @ weights)

    def std(self, mean: Array, variance: Array) -> Array:
        weights, rates = self._rates(mean, variance)
        expected = rates @ weights
        return np.sqrt(expected + (rates - expected[..., None]) ** 2 @ weights)

    def quantile(self, mean: Array, variance: Array, p: float) -> Array:
        """The smallest count with P(t ≤ count) ≥ p, by bisection."""
        quantile = np.empty(mean.shape)
        for where in _slices(len(mean), _NODES * mean.shape[1]):
            quantile[where] = self._bisect(mean[where], variance[where], p)
        return quantile

    def _bisect(self, mean: Array, variance: Array, p: float) -> Array:
        largest = self._rates(mean, variance)[1].max(axis=-1)
        low = np.full(mean.shape, -1.0)  # P(t ≤ low) < p ≤ P(t ≤ high)
        # The same for all p, so that all take the same way and none can overtake a larger one.
        high = np.ceil(largest + _SURE * np.sqrt(largest) + 20.0)
        while True:
            # Whole numbers beyond 2^53 are further apart than one.
            undecided = high - low > np.maximum(1.0, np.spacing(high))
            if not undecided.any():
                return np.asarray(high)
            middle = np.floor(0.5 * (low + high))
            enough = self._at_most(np.maximum(middle, 0.0), mean, variance) >= p
            low = np.where(undecided & ~enough, middle, low)
            high = np.where(undecided & enough, middle, high)

    def _at_most(self, targets: Array, mean: Array, variance: Array) -> Array:
        """P(t ≤ targets) with η integrated out.

        Given η it falls with η over some width; where that is short against the spread of η it is
        all but a step, and the other way round is smooth.
        """
        weights, rates = self._rates(mean, variance)
        over_gamma, width = self._below(targets, mean, np.sqrt(variance))
        over_eta = pdtr(targets[..., None], rates) @ weights
        return np.where(width < np.sqrt(variance), over_gamma, over_eta)

    def _below(self, count: Array, mean: Array, sigma: Array) -> tuple[Array, Array]:
        """P(t ≤ count) = P(rate < G), G ~ Gamma(count + 1), integrated over G; the width in η.

        Wilson & Hilferty: the cube root of a Gamma variable is all but normal.
        """
        nodes, log_weights = _gauss_hermite(_NODES)
        a = count[..., None] + 1.0
        root = np.maximum(1.0 - 1.0 / (9.0 * a) + nodes / (3.0 * np.sqrt(a)), 1e-3)
        eta = _inverse_softplus(a * root**3 / self.rate[:, None])
        p = np.exp(log_weights)
        middle = eta @ p
        width = np.sqrt((eta - middle[..., None]) ** 2 @ p)
        z = (eta - mean[..., None]) / np.maximum(sigma, 1e-100)[..., None]
        return np.asarray(ndtr(z) @ p), width

    def fill(self, mean: Array, variance: Array) -> Array:
        return self.quantile(mean, variance, 0.5)

    def _rates(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Weights and rates of a quadrature over η: (nodes,), (n, D, nodes)."""
        nodes, log_weights = _gauss_hermite(_NODES)
        eta = mean[..., None] + np.sqrt(variance)[..., None] * nodes
        return np.exp(log_weights), self.rate[:, None] * _softplus(eta)[0]


_LOG_SOFTPLUS_BEND = 0.1671
_TRIMS = 5
_SURE = 18.0  # standard deviations of a Poisson count that none exceeds, with a margin


def _softplus(eta: Array) -> tuple[Array, Array]:
    """log(1 + e^η) and its slope, never zero."""
    eta = np.maximum(eta, -700.0)
    e = np.exp(-np.abs(eta))
    f = np.log1p(e)
    steepness = 1.0 / (1.0 + e)
    return f + np.maximum(eta, 0.0), np.where(eta < 0, e * steepness, steepness)


def _inverse_softplus(f: Array) -> Array:
    return np.asarray(f + np.log(-np.expm1(-f)))


def _log_factorial(counts: Array) -> Array:
    """log t!, from a table where counts are small: it is needed again and again."""
    largest = float(counts.max(initial=0.0))
    if largest > _TABLE:
        return np.asarray(gammaln(counts + 1.0))
    return _log_factorials()[counts.astype(np.intp)]


_TABLE = 10_000


@cache
def _log_factorials() -> Array:
    return np.asarray(gammaln(np.arange(_TABLE + 2.0) + 1.0))


# ---------------------------------------------------------------- messages


def _refuse(table: Table, bad: BoolArray, expected: str, cure: str) -> None:
    """Raise for the first column with a bad value."""
    columns = bad.any(axis=0)
    if columns.any():
        j = int(np.argmax(columns))
        value: Any = table.values[int(np.argmax(bad[:, j])), j]
        raise DataError(
            f"View {table.name!r}, {table.label(j)}: expected {expected} but got {value:g}; {cure}."
        )
