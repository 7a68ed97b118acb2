"""The graph of rows and their nearest ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import kofa


def similarities(rows, new, neighbours, time):
    """k of new rows by definition, one number at a time."""
    scale = [np.sort(np.linalg.norm(rows - v, axis=1))[neighbours] for v in rows]

    def weights(x, on_graph=False):
        apart = np.linalg.norm(rows - x, axis=1)
        nearest = np.argsort(apart)[: neighbours + 1]
        own = apart[nearest[-1]]
        w = np.zeros(len(rows))
        for j in nearest:
            w[j] = np.exp(-(apart[j] ** 2) / (own * scale[j]))
            w[j] *= 1.0 if on_graph else 1.0 - (apart[j] / own) ** 8
        return w

    A = np.array([weights(v, on_graph=True) for v in rows])
    W = np.maximum(A, A.T)
    D = np.diag(W.sum(axis=1) ** -0.5)
    G = expm(-time * (np.eye(len(rows)) - D @ W @ D))
    s = np.array([weights(x) for x in new]) @ D
    K = s @ G @ s.T
    return K / np.sqrt(np.outer(np.diagonal(K), np.diagonal(K)))


def test_diffusion_is_what_its_formula_says(rng):
    rows = rng.standard_normal((30, 2))
    new = np.concatenate([rows[:3], rows[:4] + 0.05])
    kernel = kofa.Diffusion(4, time=3.0).of(rows)
    np.testing.assert_allclose(kernel(new, new), similarities(rows, new, 4, 3.0), atol=1e-3)
    np.testing.assert_allclose(
        kernel(rows[:5], rows[:5]), similarities(rows, rows[:5], 4, 3.0), rtol=1e-7, atol=1e-12
    )


def test_diffusion_is_positive_and_one_with_oneself(rng):
    rows = rng.standard_normal((40, 3))
    K = kofa.Diffusion(time=2.0).of(rows)(rows, rows)
    np.testing.assert_allclose(np.diagonal(K), 1.0)
    assert np.linalg.eigvalsh(K).min() > -1e-12


def test_diffusion_falls_to_zero_far_from_all_rows(rng):
    rows = rng.standard_normal((50, 2))
    kernel = kofa.Diffusion(time=5.0).of(rows)
    far = np.array([[30.0, 0.0], [1e12, -1e12]])
    assert np.abs(kernel(far, rows)).max() < 1e-6
    assert kernel(rows[:1] + 0.01, rows).max() > 0.9


def test_diffusion_does_not_jump_where_neighbours_change(rng):
    rows = rng.standard_normal((50, 2))
    kernel = kofa.Diffusion(3, time=1.0).of(rows)
    path = np.linspace(rows[0], rows[1], 20001)
    assert np.abs(np.diff(kernel(path, rows), axis=0)).max() < 0.01


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows_and_duplicates_have_a_graph(n):
    rows = np.repeat(np.arange(float(n))[:, None], 4, axis=0)
    K = kofa.Diffusion(time=1.0).of(rows)(rows, rows + 1e-9)
    assert np.isfinite(K).all()
    np.testing.assert_allclose(np.diagonal(K), 1.0, rtol=1e-6)


def test_large_graphs_keep_the_directions_that_last(rng):
    rows = rng.standard_normal((400, 2))
    kernel = kofa.Diffusion(time=10.0).of(rows)
    assert kernel.graph.directions.shape == (400, 300)
    assert (kernel.graph.rates[-1] < 1e-9) & (kernel.graph.rates >= 0).all()
    expected = similarities(rows, rows[:20], 10, 10.0)
    np.testing.assert_allclose(kernel(rows[:20], rows[:20]), expected, atol=1e-3)
