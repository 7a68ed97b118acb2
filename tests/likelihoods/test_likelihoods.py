"""The kinds of observation against integration, sums and differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as ss
from scipy.integrate import quad
from scipy.special import ndtr

import kofa
from kofa.data.scaling import Scaling
from kofa.data.tables import Table
from kofa.inference.local_step import Latent
from kofa.inference.predictor import _contrasts, linear_predictor
from kofa.likelihoods import cubature
from kofa.likelihoods import multinomial as multinomial_module
from kofa.likelihoods import poisson as poisson_module
from kofa.likelihoods.bernoulli import Bernoulli
from kofa.likelihoods.gaussian import Gaussian
from kofa.likelihoods.log_normal import LogNormal
from kofa.likelihoods.multinomial import Multinomial
from kofa.likelihoods.poisson import Poisson
from kofa.results import answers
from numerical import ahead_of, integrate_cone

CLASSES = [2, 3, 10, 40]

# ---------------------------------------------------------------- classes


def one_hot(labels, n_classes):
    return np.eye(n_classes)[labels]


@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("reach", [1.0, 8.0])
def test_class_probabilities_and_cone_means_against_integration(rng, n_classes, reach):
    eta = rng.uniform(-reach, reach, (12, n_classes))
    labels = rng.integers(n_classes, size=12)
    value, slope = Multinomial(n_classes).tangent(one_hot(labels, n_classes), eta)
    for n, label in enumerate(labels):
        ahead, others = ahead_of(eta[n], label)
        log_p, pressure = integrate_cone(ahead, np.ones(len(ahead)))
        np.testing.assert_allclose(value[n, label], log_p, atol=1e-6)
        np.testing.assert_allclose(np.exp(value[n, label]), np.exp(log_p), atol=1e-6)
        mean = eta[n].copy()  # of N(η, I) on the cone where the label is the largest
        mean[others] -= pressure
        mean[label] += pressure.sum()
        np.testing.assert_allclose(eta[n] + slope[n], mean, atol=1e-6)
    assert not value[one_hot(labels, n_classes) == 0].any()


@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0, 16.0])
def test_predicted_probabilities_sum_to_one_before_they_are_made_to(
    monkeypatch, rng, n_classes, spread
):
    raw, plain = [], multinomial_module._cone

    def spy(ahead, ratio, *nodes):
        log_p, slope = plain(ahead, ratio, *nodes)
        raw.append(np.exp(log_p))
        return log_p, slope

    monkeypatch.setattr(multinomial_module, "_cone", spy)
    mean = rng.uniform(-8, 8, (60, n_classes)) * rng.uniform(0, 1, (60, 1))
    p = Multinomial(n_classes).probability(mean, rng.uniform(0, spread, mean.shape))
    assert len(raw) == n_classes
    np.testing.assert_allclose(np.sum(raw, axis=0), 1.0, atol=1e-6)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-14)


@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0, 16.0])
def test_predicted_probabilities_against_integration(rng, n_classes, spread):
    mean = rng.uniform(-8, 8, (6, n_classes)) * rng.uniform(0, 1, (6, 1))
    variance = rng.uniform(0, spread, mean.shape)
    p = Multinomial(n_classes).probability(mean, variance)
    for n in range(len(mean)):
        sigma = np.sqrt(1 + variance[n])
        for label in range(min(n_classes, 4)):
            ahead, others = ahead_of(mean[n], label)
            log_p, _ = integrate_cone(ahead / sigma[others], sigma[label] / sigma[others])
            np.testing.assert_allclose(p[n, label], np.exp(log_p), atol=1e-6)


@pytest.mark.parametrize("n_classes", CLASSES)
def test_nodes_of_the_quadrature_are_enough_and_half_are_not(monkeypatch, rng, n_classes):
    eta = rng.uniform(-3, 3, (200, n_classes))
    targets = one_hot(rng.integers(n_classes, size=200), n_classes)

    def tangent(nodes):
        monkeypatch.setattr(multinomial_module, "NODES", nodes)
        return np.array(Multinomial(n_classes).tangent(targets, eta))

    nodes, exact = cubature.NODES, tangent(200)
    assert np.abs(tangent(nodes) - exact).max() < 1e-7
    assert np.abs(tangent(nodes // 2) - exact).max() > 1e-7


@pytest.mark.parametrize("n_classes", CLASSES)
def test_classes_far_apart(n_classes):
    far = 40.0 * (2.0 * np.eye(n_classes) - 1.0)
    eta = np.concatenate([far, -far])
    for label in range(n_classes):
        targets = one_hot(np.full(len(eta), label), n_classes)
        value, slope = Multinomial(n_classes).tangent(targets, eta)
        assert np.isfinite(value).all()
        assert np.isfinite(slope).all()
        mean = eta + slope  # on the cone, and no further from it than the noise reaches
        assert (mean[:, label] >= mean.max(axis=1) - 1e-9).all()
        assert np.abs(mean).max() < 45
    for variance in (0.0, 100.0):
        p = Multinomial(n_classes).probability(eta, np.full(eta.shape, variance))
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
        assert (np.diag(p) > 0.99).all()


# ---------------------------------------------------------------- bounds

RATE = np.array([0.3, 2.0, 20.0])
MOST = np.array([1.0, 9.0, 50.0])


def bernoulli(rng, n):
    return Bernoulli(3), rng.integers(0, 2, (n, 3)).astype(float)


def multinomial(rng, n):
    return Multinomial(5), one_hot(rng.integers(5, size=n), 5)


def poisson(rng, n):
    return Poisson(RATE, MOST), rng.poisson(RATE, (n, 3)).astype(float)


def outlying_poisson(rng, n):
    """Counts far above the most that the curvature allows for."""
    return Poisson(RATE, MOST), np.floor(MOST * 10 ** rng.uniform(0, 4, (n, 3))) + 1


def empty_poisson(_, n):
    """Nothing but zeros: all curvature is that of the rate."""
    return Poisson(RATE, np.zeros(3)), np.zeros((n, 3))


AUGMENTED = [bernoulli, multinomial, poisson, outlying_poisson, empty_poisson]


def predictors(rng, targets, reach):
    return rng.uniform(-reach, reach, targets.shape)


@pytest.mark.parametrize("kind", AUGMENTED)
@pytest.mark.parametrize("reach", [3.0, 30.0])
def test_slope_is_the_derivative_of_the_value(rng, kind, reach):
    likelihood, targets = kind(rng, 40)
    eta, step = predictors(rng, targets, reach), 1e-5
    _, slope = likelihood.tangent(targets, eta)
    for d in range(eta.shape[1]):
        move = step * np.eye(eta.shape[1])[d]
        up, down = (likelihood.tangent(targets, eta + s * move)[0].sum(axis=1) for s in (1, -1))
        np.testing.assert_allclose((up - down) / (2 * step), slope[:, d], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", AUGMENTED)
@pytest.mark.parametrize("reach", [1.0, 5.0, 40.0])
def test_parabola_is_below_the_likelihood(rng, kind, reach):
    """Each row is one pair: where the parabola touches, and where it is compared."""
    likelihood, targets = kind(rng, 3000)
    eta = predictors(rng, targets, 40.0)
    f = eta + predictors(rng, targets, reach) if reach < 40 else predictors(rng, targets, reach)
    value, slope = likelihood.tangent(targets, eta)
    at_f, _ = likelihood.tangent(targets, f)
    parts = at_f - value, -slope * (f - eta), 0.5 * likelihood.curvature * (f - eta) ** 2
    rounding = 1e-13 * (sum(map(np.abs, parts)) + np.abs(value) + np.abs(at_f)).sum(axis=1)
    assert (sum(parts).sum(axis=1) >= -rounding - 1e-9).all()


@pytest.mark.parametrize("likelihood", [Bernoulli(2), Multinomial(2)])
def test_no_smaller_curvature_would_do_for_probits(likelihood):
    """Where the other outcome was certain, g bends as much as κ says."""
    targets, f = np.array([[1.0, 0.0]]), np.array([[-30.0, 30.0]])
    value, slope = likelihood.tangent(targets, f)
    away, _ = likelihood.tangent(targets, 1.1 * f)
    gap = value.sum() + 0.1 * (slope * f).sum() - away.sum()
    np.testing.assert_allclose(gap, 0.5 * likelihood.curvature @ [9.0, 9.0], rtol=0.01)


def test_curvature_of_counts_is_the_least_that_each_part_allows():
    """−(log softplus)″ ≤ .1671 and softplus″ ≤ 1/4, both attained, by second differences."""
    eta, h = np.linspace(-10, 10, 20_001)[:, None], 1e-3

    def bend(rate, count):
        likelihood = Poisson(np.array([rate]), np.array([1e9]))
        counts = np.full_like(eta, count)
        slopes = [likelihood.tangent(counts, eta + s)[1] for s in (-h, h)]
        return (slopes[0] - slopes[1]) / (2 * h)

    assert 0.2499 < bend(1.0, 0.0).max() <= 0.25
    assert 0.16705 < (bend(1.0, 1.0) - bend(1.0, 0.0)).max() <= poisson_module._LOG_SOFTPLUS_BEND


@pytest.mark.parametrize("kind", AUGMENTED)
def test_pseudo_observation_touches_the_likelihood(rng, kind):
    likelihood, targets = kind(rng, 50)
    eta = predictors(rng, targets, 30.0)
    y, excess = likelihood.pseudo_observation(targets, eta)
    value, slope = likelihood.tangent(targets, eta)
    kappa = likelihood.curvature
    density = ss.norm(eta, 1 / np.sqrt(kappa)).logpdf(y)
    np.testing.assert_allclose(excess + density, value, rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(kappa * (y - eta), slope, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", AUGMENTED)
def test_likelihood_is_finite_far_out(rng, kind):
    likelihood, targets = kind(rng, 100)
    for eta in (40.0, -40.0, 700.0, -700.0):
        value, slope = likelihood.tangent(targets, np.full(targets.shape, eta))
        assert np.isfinite(value).all()
        assert np.isfinite(slope).all()


def test_count_in_a_column_that_had_none():
    """All counts were zero in fit; a new sample with some is pulled up by a finite amount."""
    likelihood = Poisson.resolve(Table("x", np.zeros((50, 1))))
    targets = np.array([[1.0], [5.0], [1000.0]])
    value, slope = likelihood.tangent(targets, np.zeros_like(targets))
    assert np.isfinite(value).all()
    assert (np.abs(slope) < 1e6).all()


# ---------------------------------------------------------------- normalisation


def test_bernoulli_sums_to_one(rng):
    eta = rng.uniform(-8, 8, (50, 3))
    p = [np.exp(Bernoulli(3).tangent(np.full_like(eta, t), eta)[0]) for t in (0.0, 1.0)]
    np.testing.assert_allclose(sum(p), 1.0, atol=1e-12)
    np.testing.assert_allclose(p[1], ndtr(eta), rtol=1e-12)


@pytest.mark.parametrize("n_classes", CLASSES)
def test_multinomial_sums_to_one(rng, n_classes):
    eta = rng.uniform(-8, 8, (50, n_classes))
    likelihood, total = Multinomial(n_classes), 0.0
    for label in range(n_classes):
        value, _ = likelihood.tangent(one_hot(np.full(50, label), n_classes), eta)
        total += np.exp(value[:, label])
    np.testing.assert_allclose(total, 1.0, atol=1e-6)


def test_poisson_is_the_one_of_scipy_and_sums_to_one(rng):
    likelihood = Poisson(RATE, np.full(3, 1e9))
    eta = rng.uniform(-5, 5, (1, 3))
    counts = np.arange(400.0)[:, None] * np.ones(3)
    value, _ = likelihood.tangent(counts, np.broadcast_to(eta, counts.shape))
    np.testing.assert_allclose(np.exp(value).sum(axis=0), 1.0, atol=1e-12)
    exact = ss.poisson(RATE * np.logaddexp(0, eta)).logpmf(counts)
    np.testing.assert_allclose(value, exact, rtol=1e-9, atol=1e-9)


def test_poisson_of_counts_above_most_is_exact_where_the_rate_is_high(rng):
    likelihood, targets = outlying_poisson(rng, 200)
    eta = np.sqrt(targets / (0.1671 * MOST)) + 1.0  # softplus(η) ≥ η
    value, _ = likelihood.tangent(targets, eta)
    exact = ss.poisson(RATE * np.logaddexp(0, eta)).logpmf(targets)
    np.testing.assert_allclose(value, exact, rtol=1e-9)
    low, _ = likelihood.tangent(targets, np.zeros_like(targets))
    assert (low > ss.poisson(RATE * np.log(2)).logpmf(targets)).mean() > 0.9


# ---------------------------------------------------------------- predictive


def over_eta(f, mean, variance):
    """E f(η) over N(mean, variance)."""
    sd = np.sqrt(variance)
    points = [mean, 0.0] if abs(mean) < 12 * sd else [mean]
    density = ss.norm(mean, sd).pdf
    return quad(
        lambda x: density(x) * f(x), mean - 12 * sd, mean + 12 * sd, points=points, epsrel=1e-11,
        epsabs=1e-13, limit=300,
    )[0]  # fmt: skip


MOMENTS = [(-4.0, 0.1), (-1.0, 1.0), (0.3, 4.0), (2.0, 0.01), (6.0, 2.0)]


@pytest.mark.parametrize(("mean", "variance"), [*MOMENTS, (1.0, 100.0)])
def test_probability_of_a_one_integrates_the_uncertainty_out(mean, variance):
    p = Bernoulli(1).probability(np.array([[mean]]), np.array([[variance]]))
    np.testing.assert_allclose(p[0, 0], over_eta(ndtr, mean, variance), atol=1e-10)


@pytest.mark.parametrize(("mean", "variance"), MOMENTS)
@pytest.mark.parametrize("rate", [0.2, 3.0, 1e4])
def test_moments_of_counts_integrate_the_uncertainty_out(mean, variance, rate):
    likelihood = Poisson(np.array([rate]), np.array([4 * rate]))
    first = over_eta(lambda x: rate * np.logaddexp(0, x), mean, variance)
    second = over_eta(lambda x: (rate * np.logaddexp(0, x)) ** 2, mean, variance)
    moments = np.array([[mean]]), np.array([[variance]])
    np.testing.assert_allclose(likelihood.predict(*moments), first, rtol=1e-6)
    std = np.sqrt(first + second - first**2)
    np.testing.assert_allclose(likelihood.std(*moments), std, rtol=1e-6)


@pytest.mark.parametrize(("mean", "variance"), MOMENTS)
@pytest.mark.parametrize("rate", [0.2, 3.0, 40.0, 1e4])
def test_quantiles_of_counts_are_those_of_the_mixture(mean, variance, rate):
    """The smallest count with P(t ≤ count) ≥ p, where P may be off by 0.001."""
    eta = mean + np.sqrt(variance) * np.linspace(-9, 9, 4001)
    weights = ss.norm(mean, np.sqrt(variance)).pdf(eta)
    likelihood = Poisson(np.array([rate]), np.array([4 * rate]))
    moments = np.array([[mean]]), np.array([[variance]])

    def below(count):
        return ss.poisson(rate * np.logaddexp(0, eta)).cdf(count) @ weights / weights.sum()

    for p in (0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999):
        found = likelihood.quantile(*moments, p)[0, 0]
        assert below(found) >= p - 0.001
        assert below(found - 1) < p + 0.001
    assert likelihood.fill(*moments) == likelihood.quantile(*moments, 0.5)


def test_quantiles_of_counts_side_by_side_are_those_of_each(rng):
    """Some are found long before others, and none may move once it is."""
    rate = np.array([0.05, 3.0, 500.0])
    likelihood = Poisson(rate, 4 * rate)
    mean, variance = rng.normal(0, 4, size=(20, 3)), rng.choice([1e-4, 0.1, 3.0, 40.0], (20, 3))
    p = [1e-9, 0.05, 0.3, 0.5, 0.6, 0.95, 1 - 1e-9]
    together = np.array([likelihood.quantile(mean, variance, one) for one in p])
    assert (together >= 0).all()
    assert (np.diff(together, axis=0) >= 0).all()
    nodes = np.linspace(-9, 9, 2001)
    weights = ss.norm.pdf(nodes) / ss.norm.pdf(nodes).sum()
    for i, j in np.ndindex(mean.shape):
        one = Poisson(rate[[j]], 4 * rate[[j]])
        moments = mean[i, j].reshape(1, 1), variance[i, j].reshape(1, 1)
        alone = np.array([one.quantile(*moments, q)[0, 0] for q in p])
        np.testing.assert_array_equal(together[:, i, j], alone)
        rates = rate[j] * np.logaddexp(0, mean[i, j] + np.sqrt(variance[i, j]) * nodes)
        below = ss.poisson.cdf(alone[:, None], rates) @ weights
        assert (below >= np.array(p) - 0.002).all()
        below = ss.poisson.cdf(alone[:, None] - 1, rates) @ weights
        assert (below < np.array(p) + 0.002).all()


@pytest.fixture
def dose(rng):
    """A table of positive numbers and, of new samples, mean and variance of its layer."""
    values = np.exp([1.0, -2.0] + [0.5, 2.0] * rng.standard_normal((100, 2)))
    return Table("dose", values), rng.standard_normal((5, 2)), rng.uniform(0.1, 0.5, (5, 2))


def test_positive_predictions_are_those_of_a_log_normal(dose):
    table, mean, variance = dose
    likelihood = LogNormal.resolve(table)
    centre, spread = np.log(table.values).mean(axis=0), np.log(table.values).std(axis=0)
    exact = ss.lognorm(spread * np.sqrt(variance), scale=np.exp(centre + spread * mean))
    np.testing.assert_allclose(likelihood.predict(mean, variance), exact.mean(), rtol=1e-10)
    np.testing.assert_allclose(likelihood.std(mean, variance), exact.std(), rtol=1e-10)
    for p in (0.01, 0.5, 0.95):
        np.testing.assert_allclose(likelihood.quantile(mean, variance, p), exact.ppf(p), rtol=1e-10)


def test_density_of_positive_values_counts_their_units(dose):
    """log p(y) = log p(encoded y) + log |d encoded / dy|."""
    table, mean, variance = dose
    likelihood, values = LogNormal.resolve(table), table.values[:5]
    encoded = ss.norm(mean, np.sqrt(variance)).logpdf(likelihood.encode(values))
    spread = np.log(table.values).std(axis=0)
    scale = np.exp(np.log(table.values).mean(axis=0) + spread * mean)
    exact = ss.lognorm(spread * np.sqrt(variance), scale=scale).logpdf(values)
    np.testing.assert_allclose(encoded + likelihood.log_unit(values), exact, rtol=1e-10)


@pytest.mark.parametrize("by_column", [False, True])
def test_real_quantiles_are_those_of_a_normal(dose, by_column):
    table, mean, variance = dose
    likelihood = Gaussian.resolve(table, by_column)
    deviation = table.values.std(axis=0)
    spread = deviation if by_column else np.sqrt((deviation**2).mean())
    exact = ss.norm(table.values.mean(axis=0) + spread * mean, spread * np.sqrt(variance))
    np.testing.assert_allclose(likelihood.predict(mean, variance), exact.mean(), rtol=1e-10)
    np.testing.assert_allclose(likelihood.std(mean, variance), exact.std(), rtol=1e-10)
    for p in (0.01, 0.5, 0.95):
        np.testing.assert_allclose(likelihood.quantile(mean, variance, p), exact.ppf(p), rtol=1e-10)


# ---------------------------------------------------------------- competing columns


@pytest.mark.parametrize("n_classes", [2, 3])
def test_contrasts_have_the_variances_of_the_differences(rng, n_classes):
    W = rng.standard_normal((n_classes, 4))
    root = 0.4 * rng.standard_normal((6, 4, 4))
    covariances = root @ root.swapaxes(-1, -2)
    a = _contrasts(W, covariances)
    assert a.min() > -0.7  # none was cut off
    for i in range(n_classes):
        for j in range(i):
            difference = W[i] - W[j]
            exact = np.einsum("k,pkl,l->p", difference, covariances, difference)
            np.testing.assert_allclose(a[:, i] + a[:, j], exact, rtol=1e-10)


def test_contrasts_of_many_columns_are_those_of_least_squares(rng):
    W, covariance = rng.standard_normal((6, 3)), np.diag([0.1, 0.2, 0.05])
    pairs = [(i, j) for i in range(6) for j in range(i)]
    design = np.array([np.eye(6)[i] + np.eye(6)[j] for i, j in pairs])
    exact = np.array([(W[i] - W[j]) @ covariance @ (W[i] - W[j]) for i, j in pairs])
    expected = np.linalg.lstsq(design, exact, rcond=None)[0]
    assert expected.min() > -0.7
    np.testing.assert_allclose(_contrasts(W, covariance[None])[0], expected, rtol=1e-9)


def errors_against_draws(seed, n_classes):
    """Of probabilities with classes that vary together, and of those with independent ones."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((150, 2))
    eta = 3.0 * z @ rng.standard_normal((2, n_classes))
    x = z @ rng.standard_normal((2, 3)) + 0.5 * rng.standard_normal((150, 3))
    labels = np.argmax(eta + rng.standard_normal(eta.shape), axis=1)
    labels[:n_classes] = range(n_classes)
    views = {"x": kofa.Real(), "label": kofa.Categorical()}
    model = kofa.FactorModel(views, outputs=["label"], n_factors=2).fit({"x": x, "label": labels})
    new = {"x": np.where([True, False, False], x[:8], np.nan)}  # z is uncertain
    (q, _), *_ = answers.given(model._fitted, new).project()
    w, kind = model.posterior_["label"].weights, Multinomial(n_classes)
    drawn = np.array([draw_classes(rng, q, w, n, 0.0) for n in range(8)])
    both = (kind.probability(*linear_predictor(q, w, competing)) for competing in (True, False))
    return [np.abs(p - drawn).mean() for p in both]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_probabilities_respect_that_classes_vary_together(n_classes):
    """Against 200,000 draws of z, w and b: nearer than with independent variances."""
    errors, worse = np.array([errors_against_draws(seed, n_classes) for seed in range(4)]).T
    assert (errors < worse).all()
    assert errors.mean() < 0.7 * worse.mean()


def draw_classes(rng, q: Latent, w, n, shift, size=200_000):
    """How often each class is the largest, for sample n."""
    covariance = q.covariance[q.patterns.label[n]]
    z = rng.multivariate_normal(q.mean[n], covariance, size)
    eta = shift + rng.standard_normal((size, len(w.mean)))
    for d in range(len(w.mean)):
        away = z - w.z_mean[w.columns.label[d]]
        # Given z, w·(z − z̄) + b is normal too: one number to draw in place of all weights.
        variance = (away @ w.basis[w.columns.label[d]]) ** 2 @ w.scales[d] + w.bias_variance[d]
        eta[:, d] += w.y_mean[d] + away @ w.mean[d] + np.sqrt(variance) * rng.standard_normal(size)
    return np.bincount(np.argmax(eta, axis=1), minlength=eta.shape[1]) / size


# ---------------------------------------------------------------- far out


@pytest.mark.parametrize("distance", [1e3, 1e5, 1e8, 1e12, 1e100])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_classes_any_distance_apart(n_classes, distance):
    """Where one is behind by so much, g is −½ (distance / √2)² but for what rounding takes."""
    likelihood, eta = Multinomial(n_classes), np.zeros((1, n_classes))
    eta[0, 0] = distance
    p = likelihood.probability(eta, np.ones_like(eta))
    np.testing.assert_allclose(p, one_hot([0], n_classes), atol=1e-12)
    value, slope = likelihood.tangent(one_hot([1], n_classes), eta)
    np.testing.assert_allclose(value[0, 1], -0.25 * distance**2, rtol=20 / distance + 1e-12)
    np.testing.assert_allclose(slope[0, :2], [-distance / 2, distance / 2], rtol=1e-2)
    value, slope = likelihood.tangent(one_hot([0], n_classes), eta)
    np.testing.assert_allclose(np.append(value, slope), 0.0, atol=1e-12)


def test_positive_predictions_far_below_all_values_are_above_zero():
    likelihood = LogNormal(Scaling(np.zeros(1), np.ones(1), "log"))
    mean, variance = np.array([[-1e4], [0.0]]), np.ones((2, 1))
    predicted = likelihood.predict(mean, variance)
    assert (predicted > 0.0).all()
    assert np.isfinite(likelihood.deviance(np.ones((2, 1)), predicted)).all()


def test_positive_predictions_far_out_are_the_largest_numbers():
    likelihood = LogNormal(Scaling(np.zeros(1), np.ones(1), "log"))
    mean, variance = (
        np.array([[1e3], [0.0], [-1e3], [1.0]]),
        np.array([[1.0], [1e20], [1.0], [1.0]]),
    )
    predicted = [f(mean, variance) for f in (likelihood.predict, likelihood.std)]
    predicted += [likelihood.quantile(mean, variance, p) for p in (0.05, 0.95)]
    assert np.isfinite(predicted).all()
    assert (np.array(predicted)[:2, :2] > 1e307).all()
    np.testing.assert_allclose(predicted[0][3], np.exp(1.5))
    np.testing.assert_allclose(predicted[1][3], np.exp(1.5) * np.sqrt(np.expm1(1.0)))


def test_slopes_of_large_counts_are_finite_however_small_their_rates():
    likelihood = Poisson(rate=np.array([1e12]), most=np.array([4e12]))
    with np.errstate(all="raise", under="ignore"):
        value, slope = likelihood.tangent(np.array([[3e12]]), np.array([[-800.0]]))
    assert np.isfinite(value).all()
    np.testing.assert_allclose(slope, 3e12)


# ---------------------------------------------------------------- deviances


@pytest.mark.parametrize("n_classes", CLASSES)
def test_classes_have_their_shares_where_nothing_else_is_known(rng, n_classes):
    shares = rng.dirichlet(np.ones(n_classes))
    likelihood = Multinomial(n_classes)
    eta = likelihood.at_mean(shares)[None]
    np.testing.assert_allclose(likelihood.probability(eta, 0 * eta)[0], shares, rtol=1e-8)


def test_columns_have_their_means_where_nothing_else_is_known():
    mean = np.array([0.01, 0.5, 0.8])
    eta = Bernoulli(3).at_mean(mean)[None]
    np.testing.assert_allclose(Bernoulli(3).probability(eta, 0 * eta)[0], mean)
    counts = Poisson(np.array([1.0, 2.0, 0.5]), np.full(3, 9.0))
    np.testing.assert_allclose(counts.expected(counts.at_mean(mean)[None])[0][0], mean)
    assert (Poisson(mean, mean).at_mean(np.zeros(3)) == -np.inf).all()


def test_no_prediction_is_better_than_a_saturated_one():
    t = np.array([[0.0, 1.0, 2.0, 7.0, 30.0]])
    likelihood = Poisson(np.full(5, 2.0), np.full(5, 11.0))
    eta = np.linspace(-40, 60, 20_001)[:, None]
    best = likelihood.tangent(np.broadcast_to(t, (len(eta), 5)), eta + np.zeros(5))[0].max(axis=0)
    np.testing.assert_allclose(likelihood.saturated(t)[0], best, atol=1e-4)
    assert Bernoulli(2).saturated(t) == 0.0


def test_likelihood_of_large_counts_has_all_its_digits():
    """Near its peak it is −½ log(2πt) − (μ − t)²/2t, of terms that are t log t."""
    t = np.array([[1e6], [1e9], [1e9 + 30_000.0]])
    kind = Poisson(np.array([1e9]), np.array([4e9]))
    eta = np.log(np.expm1(t[:, :1] / 1e9))
    value, slope = kind.tangent(t, eta)
    np.testing.assert_allclose(value, -0.5 * np.log(2 * np.pi * t), rtol=0, atol=1e-6)
    assert (np.abs(slope) < 1.0).all()
    moved = np.log(np.expm1((t + np.sqrt(t)) / 1e9))
    np.testing.assert_allclose(kind.tangent(t, moved)[0] - value, -0.5, atol=1e-3)


@pytest.mark.filterwarnings("ignore:The bound was still growing")
def test_bound_of_large_counts_does_not_fall():
    counts = np.floor(np.random.default_rng(5).random((4, 3)) * 1e9)
    model = kofa.FactorModel({"n": kofa.Count()}, tol=0.0, max_iter=40).fit({"n": counts})
    rise = np.diff(model.lower_bounds_)[~model.factors_changed_[1:]]
    assert rise.min() > -1e-6


def test_counts_of_which_no_bound_is_known_are_refused():
    counts = np.floor(np.random.default_rng(0).random((4, 2)) * [10, 1e15])
    with pytest.raises(kofa.DataError, match=r"'n', column 1.*at most 1e\+11.*kofa\.Positive"):
        kofa.FactorModel({"n": kofa.Count()}).fit({"n": counts})
