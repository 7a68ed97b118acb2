"""The covariance of what a regression leaves of a view."""

import numpy as np
import pytest

from kofa.predictive.residuals import Covariance, factor_model, fit

RNG = np.random.default_rng


def drawn(n=200, D=12, K=2, noise=0.5, seed=0):
    rng = RNG(seed)
    loadings = rng.normal(size=(D, K))
    return rng.normal(size=(n, K)) @ loadings.T + noise * rng.normal(size=(n, D)), loadings


def ranks(n, seed=0):
    return RNG(seed).permutation(n)


def test_known_columns_are_conditioned_on():
    C = Covariance(np.array([0.5, 0.4, 0.3, 0.2]), RNG(0).normal(size=(4, 2)))
    whole = C.loadings @ C.loadings.T + np.diag(C.noise)
    known = np.array([[True, False, True, False]])
    mean, variance = C.conditional(np.array([[1.0, 9.0, -1.0, 9.0]]), known)
    gain = whole[np.ix_([1, 3], [0, 2])] @ np.linalg.inv(whole[np.ix_([0, 2], [0, 2])])
    np.testing.assert_allclose(mean[0, [1, 3]], gain @ [1.0, -1.0])
    left = whole[np.ix_([1, 3], [1, 3])] - gain @ whole[np.ix_([0, 2], [1, 3])]
    np.testing.assert_allclose(variance[0, [1, 3]], np.diagonal(left))
    np.testing.assert_allclose(mean[0, [0, 2]], [1.0, -1.0])
    assert (variance[0, [0, 2]] == 0).all()


@pytest.mark.parametrize("n_known", [2, 7])
def test_loadings_say_the_same_as_the_matrix(n_known):
    C = Covariance(RNG(0).uniform(0.2, 1.0, 9), RNG(1).normal(size=(9, 3)))
    whole = Covariance(C.noise, np.hstack([C.loadings, np.zeros((9, 9))]))
    assert C.dense is None
    assert whole.dense is not None
    known = np.arange(9)[None] < n_known
    r = RNG(2).normal(size=(1, 9))
    for one, other in zip(C.conditional(r, known), whole.conditional(r, known), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_factors_that_stand_out_are_found():
    r, loadings = drawn(2000)
    found, psi = factor_model(r.T / np.sqrt(2000), np.zeros(12), 2000.0)
    assert found.shape == (12, 2)
    np.testing.assert_allclose(found @ found.T, loadings @ loadings.T, atol=0.4)
    np.testing.assert_allclose(psi, 0.25, atol=0.05)


def test_noise_has_no_factors():
    none = [
        factor_model(RNG(seed).normal(size=(100, 40)).T / 10.0, np.zeros(40), 100.0)[0].shape[1]
        for seed in range(20)
    ]
    assert np.mean(none) < 0.5


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_cells_are_filled_as_by_the_true_covariance(share):
    r, loadings = drawn(300, 10)
    seen = RNG(1).random(r.shape) >= share
    C = fit(r, seen, ranks(300), ranks(10))
    truth = Covariance(np.full(10, 0.25), loadings)
    new = RNG(8).normal(size=(500, 2)) @ loadings.T + 0.5 * RNG(9).normal(size=(500, 10))
    known = RNG(10).random(new.shape) < 0.5
    errors = [((one.conditional(new, known)[0] - new)[~known] ** 2).mean() for one in (C, truth)]
    assert errors[0] < 1.1 * errors[1]
    mean, variance = C.conditional(new, known)
    z = (new - mean)[~known] / np.sqrt(variance[~known])
    assert (z**2).mean() == pytest.approx(1.0, abs=0.12)


def test_the_order_of_rows_does_not_matter():
    r, _ = drawn(80)
    order = RNG(3).permutation(80)
    one = fit(r, np.ones(r.shape, dtype=bool), ranks(80), ranks(12))
    other = fit(r[order], np.ones(r.shape, dtype=bool), ranks(80)[order], ranks(12))
    known = RNG(4).random((5, 12)) < 0.5
    some = RNG(5).normal(size=(5, 12))
    np.testing.assert_allclose(
        one.conditional(some, known)[0], other.conditional(some, known)[0], atol=1e-8
    )


@pytest.mark.parametrize("n_columns", [6, 30])
@pytest.mark.parametrize("n_holes", [0, 2, 4])
def test_each_column_given_the_others(n_columns, n_holes):
    r, _ = drawn(12, n_columns)
    known = np.ones(r.shape, dtype=bool)
    known[:, RNG(1).permutation(n_columns)[: n_holes * n_columns // 6]] = False
    C = fit(r, np.ones(r.shape, dtype=bool), ranks(12), ranks(n_columns))
    without = C.loadings @ C.loadings.T + np.diag(C.noise)
    without = (C.n * without - np.outer(r[3], r[3])) / (C.n - 1.0)
    mean, variance = C.each_given_rest(np.where(known, r, 0.0), known, np.arange(12) == 3)
    for row, matrix in ((3, without), (4, C.loadings @ C.loadings.T + np.diag(C.noise))):
        for j in np.flatnonzero(known[row]):
            rest = known[row] & (np.arange(n_columns) != j)
            gain = np.linalg.solve(matrix[np.ix_(rest, rest)], matrix[rest, j])
            np.testing.assert_allclose(mean[row, j], gain @ r[row, rest], atol=1e-8)
            left = matrix[j, j] - gain @ matrix[rest, j]
            np.testing.assert_allclose(variance[row, j], left, rtol=1e-8)


@pytest.mark.parametrize("n_columns", [6, 30])
@pytest.mark.parametrize("n_known", [0, 1, 4])
def test_what_columns_of_a_row_have_in_common_is_as_factors_more(n_columns, n_known):
    r, _ = drawn(12, n_columns)
    C = fit(r, np.ones(r.shape, dtype=bool), ranks(12), ranks(n_columns))
    known = np.tile(np.arange(n_columns) < n_known * n_columns // 6, (12, 1))
    A = RNG(2).normal(size=(n_columns, 3))
    more = Covariance(C.noise, np.hstack([C.loadings, A]))
    for got, wanted, plain in zip(
        C.conditional(r, known, {5: A}), more.conditional(r, known), C.conditional(r, known),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(got[5], wanted[5], atol=1e-8)
        np.testing.assert_array_equal(got[:5], plain[:5])
    none = np.zeros(12, dtype=bool)
    for got, wanted in zip(
        C.each_given_rest(r, known, none, {5: A}), more.each_given_rest(r, known, none),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(got[5][known[5]], wanted[5][known[5]], atol=1e-8)


def test_overlap_is_the_mean_squared_partial_correlation():
    C = Covariance(RNG(0).uniform(0.2, 1.0, 9), RNG(1).normal(size=(9, 3)))
    P = np.linalg.inv(C.loadings @ C.loadings.T + np.diag(C.noise))
    R = P / np.sqrt(np.outer(np.diagonal(P), np.diagonal(P)))
    np.testing.assert_allclose(C.overlap, (R[~np.eye(9, dtype=bool)] ** 2).mean())
    assert Covariance(np.ones(4), np.zeros((4, 2))).overlap == 0.0
