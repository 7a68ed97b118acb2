"""Columns by all rows of a fit, against dense solutions."""

import numpy as np

from kofa.linalg import centre
from kofa.predictive import dual
from kofa.predictive.regression import Spectrum


def problem(n=60, p=15, columns=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    nystroem = K[:, :p] @ np.linalg.solve(K[:p, :p] + 1e-10 * np.eye(p), K[:p])
    Y = 3.0 + np.sin(X @ rng.normal(size=(2, columns))) + 0.1 * rng.normal(size=(n, columns))
    return centre(nystroem), K - nystroem, Y


def test_holes_are_as_missing_rows():
    part, D, Y = problem()
    lam = np.array([0.01, 0.1, 1.0])
    seen = np.random.default_rng(1).random(Y.shape) < 0.7
    given = np.where(seen, Y, np.nan)
    mean, a = dual.solve(Spectrum.of_kernel(part), D.astype(np.float32), given, seen, lam)
    for d in range(3):
        rows = seen[:, d]
        K, n = (part + D)[np.ix_(rows, rows)], int(rows.sum())
        system = np.block(
            [[K + lam[d] * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]]
        )
        found = np.linalg.solve(system, np.append(Y[rows, d], 0.0))
        expected = (part + D)[:, rows] @ found[:-1] + found[-1]
        said = mean[d] + (part + D) @ a[:, d]
        np.testing.assert_allclose(said, expected, atol=2e-3)
        assert not a[~rows, d].any()
        assert abs(a[:, d].sum()) < 1e-8
