"""Regressions of columns with scales of their own, against formulas written out."""

from dataclasses import replace

import numpy as np
import pytest

from kofa.linalg import centre
from kofa.predictive.regression import (
    Evidence,
    Regression,
    Spectrum,
    log_ratios,
    regress,
)


def problem(n=40, p=8, D=3, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    Y = 3.0 + X @ rng.normal(size=(p, D)) / np.sqrt(p) + noise * rng.normal(size=(n, D))
    return centre(X @ X.T / p), Y


def everything(Y):
    return np.ones(Y.shape, dtype=bool)


def by_hand(K, lam):
    """H = A⁻¹ − A⁻¹1(1ᵀA⁻¹1)⁻¹1ᵀA⁻¹, A = K + λI."""
    A = np.linalg.inv(K + lam * np.eye(len(K)))
    along = A.sum(axis=1)
    return A - np.outer(along, along) / along.sum()


def test_evidence_is_that_of_contrasts():
    K, Y = problem()
    spectrum, Yc = Spectrum.of_kernel(K), Y - Y.mean(axis=0)
    evidence = Evidence.of(spectrum, Yc, np.full(3, 40.0))
    contrasts = np.linalg.svd(np.eye(40) - 1.0 / 40)[0][:, :39]

    def value(y, t):
        A = contrasts.T @ (K + np.exp(t) * np.eye(40)) @ contrasts
        y = contrasts.T @ y
        return -0.5 * 39 * np.log(y @ np.linalg.solve(A, y)) - 0.5 * np.linalg.slogdet(A)[1]

    for d in range(3):
        ours = [evidence.value(np.full(3, t))[d] for t in (-2.0, 0.5)]
        assert ours[1] - ours[0] == pytest.approx(value(Yc[:, d], 0.5) - value(Yc[:, d], -2.0))


@pytest.mark.parametrize("n_seen", [40.0, 31.0])
def test_slope_of_evidence_is_its_derivative(n_seen):
    K, Y = problem()
    evidence = Evidence.of(Spectrum.of_kernel(K), Y - Y.mean(axis=0), np.full(3, n_seen))
    t, step = np.array([-3.0, 0.0, 2.0]), 1e-5
    by_differences = (evidence.value(t + step) - evidence.value(t - step)) / (2.0 * step)
    np.testing.assert_allclose(evidence.slope(t), by_differences, rtol=1e-6)


def test_left_out_rows_are_those_of_a_fit_without_them():
    K, Y = problem()
    found = regress(Spectrum.of_kernel(K), Y, everything(Y))
    for d in range(3):
        others = np.arange(1, 40)
        H = by_hand(K[1:, 1:], found.ratio[d])
        lam = found.ratio[d]
        A = np.linalg.inv(K[1:, 1:] + lam * np.eye(39))
        mean = (A @ Y[others, d]).sum() / A.sum()
        predicted = mean + K[0, 1:] @ H @ Y[others, d]
        assert Y[0, d] - predicted == pytest.approx(found.left_out[0, d], abs=1e-10)


def test_a_new_row_has_the_mean_and_variance_of_a_gaussian_process():
    K, Y = problem(41)
    K_fit, k, itself = centre(K[:40, :40]), K[40, :40], K[40, 40]
    row = k - k.mean() - K[:40, :40].mean(axis=0) + K[:40, :40].mean()
    own = itself - 2.0 * k.mean() + K[:40, :40].mean()
    spectrum = Spectrum.of_kernel(K_fit)
    found = regress(spectrum, Y[:40], everything(Y[:40]))
    mean = found.predict(row[None] @ spectrum.U)[0]
    variance = found.variance(row[None] @ spectrum.U, np.array([own]))[0]
    for d, lam in enumerate(found.ratio):
        A = np.linalg.inv(K_fit + lam * np.eye(40))
        y = Y[:40, d] - Y[:40, d].mean()
        assert mean[d] == pytest.approx(Y[:40, d].mean() + row @ A @ y)
        expected = found.scale[d] * (own - row @ A @ row + lam / 40)
        assert variance[d] == pytest.approx(expected)


def test_holes_are_the_same_as_missing_rows():
    K, Y = problem(60, D=2)
    seen = everything(Y)
    seen[40:, 0] = False
    found = regress(Spectrum.of_kernel(K), np.where(seen, Y, 1e3), seen)
    y, lam = Y[:40, 0], found.ratio[0]
    H = by_hand(K[:40, :40], lam)
    assert found.scale[0] == pytest.approx(y @ H @ y / 39, rel=1e-6)
    A = np.linalg.inv(K[:40, :40] + lam * np.eye(40))
    mean = (A @ y).sum() / A.sum()
    along = K @ Spectrum.of_kernel(K).U
    np.testing.assert_allclose(found.predict(along)[:, 0], mean + K[:, :40] @ H @ y, rtol=1e-4)
    assert np.isnan(found.left_out[40:, 0]).all()


def test_noise_is_found_whatever_is_missing():
    K, Y = problem(300, 30, 40, noise=0.3)
    spectrum, rng = Spectrum.of_kernel(K), np.random.default_rng(1)
    for share in (0.0, 0.1, 0.4):
        seen = rng.random(Y.shape) >= share
        found = regress(spectrum, Y, seen)
        assert np.sqrt(found.noise).mean() == pytest.approx(0.3, rel=0.03)
        z = (found.left_out / found.left_out_std)[seen]
        assert (z**2).mean() == pytest.approx(1.0, abs=0.1)


def test_columns_of_noise_do_not_change_what_others_say():
    K, Y = problem(100, 20, 4)
    noise = np.random.default_rng(5).normal(size=(100, 200))
    few, many = (
        regress(Spectrum.of_kernel(K), y, everything(y)) for y in (Y, np.hstack([Y, noise]))
    )
    row = Spectrum.of_kernel(K).U * few.e
    apart = few.predict(row) - many.predict(row)[:, :4]
    assert np.abs(apart).mean() < 0.02 * Y.std()


def test_a_constant_column_is_its_mean():
    K, Y = problem()
    Y[:, 1] = 7.0
    found = regress(Spectrum.of_kernel(K), Y, everything(Y))
    np.testing.assert_allclose(found.predict(found.e * Spectrum.of_kernel(K).U)[:, 1], 7.0)
    assert np.isfinite(found.noise).all()


def test_ratios_of_alike_columns_come_close():
    K, Y = problem(30, 10, 60)
    evidence = Evidence.of(Spectrum.of_kernel(K), Y - Y.mean(axis=0), np.full(60, 30.0))
    together = log_ratios(evidence)
    alone = [
        log_ratios(
            replace(
                evidence,
                square=evidence.square[:, [d]],
                rest=evidence.rest[[d]],
                n_seen=evidence.n_seen[[d]],
                least=evidence.least[[d]],
            )
        )[0]
        for d in range(60)
    ]
    assert together.std() < 0.8 * np.std(alone)


def test_without_a_kernel_the_mean_is_all_that_is_known():
    Y = np.random.default_rng(0).normal(size=(30, 2))
    found = regress(Spectrum(np.zeros((30, 0)), np.zeros(0)), Y, everything(Y))
    np.testing.assert_allclose(found.predict(np.zeros((1, 0)))[0], Y.mean(axis=0))
    np.testing.assert_allclose(found.left_out, (Y - Y.mean(axis=0)) * 30 / 29)
    np.testing.assert_allclose(found.noise, Y.var(axis=0, ddof=1))
    assert isinstance(found, Regression)
