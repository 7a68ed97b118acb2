"""Packed matrices and partitions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

import kofa
from conftest import two_views
from kofa.linalg import (
    Groups,
    by_rows,
    inverse_and_logdet,
    pack,
    pack_outer,
    threads_for,
    triangular_inverse,
    unpack,
)


def test_pack_and_unpack_are_inverse(rng):
    a = rng.standard_normal((4, 3, 3))
    a = a + a.swapaxes(1, 2)
    np.testing.assert_array_equal(unpack(pack(a), 3), a)


def test_pack_outer_is_the_packed_outer_product(rng):
    v = rng.standard_normal((5, 4))
    np.testing.assert_allclose(pack_outer(v), pack(v[:, :, None] * v[:, None, :]))


def test_inverse_of_what_is_positive_definite_but_for_rounding(rng):
    W = 1e9 * rng.normal(size=(3, 12))
    precision = np.eye(12) + W.T @ W  # of rank three beside rounding
    assert np.linalg.eigvalsh(precision)[0] < 0.0
    inverse, logdet = inverse_and_logdet(precision[None])
    assert np.isfinite(logdet).all()
    np.testing.assert_allclose(W @ inverse[0] @ W.T, np.eye(3), atol=0.01)


def test_inverse_and_logdet(rng):
    a = rng.standard_normal((3, 6, 4))
    a = a.swapaxes(1, 2) @ a
    inverse, logdet = inverse_and_logdet(a)
    np.testing.assert_allclose(inverse @ a, np.broadcast_to(np.eye(4), a.shape), atol=1e-9)
    np.testing.assert_allclose(logdet, np.linalg.slogdet(a)[1])


@pytest.mark.parametrize("k", [1, 8, 9, 25])
def test_triangular_inverse(rng, k):
    L = np.tril(rng.standard_normal((4, k, k))) + 3.0 * np.eye(k)
    inverse = triangular_inverse(L)
    np.testing.assert_allclose(inverse, np.linalg.inv(L), atol=1e-9)
    assert not np.triu(inverse, 1).any()


LABELS = {
    "one": [0, 0, 0, 0, 0, 0],
    "alone": [0, 1, 2, 3, 4, 5],
    "permuted": [5, 4, 3, 2, 1, 0],
    "some": [1, 0, 1, 2, 0, 1],
    "sorted": [0, 0, 1, 1, 1, 2],
}


@pytest.mark.parametrize("label", LABELS.values(), ids=LABELS)
def test_groups_do_what_a_loop_over_items_does(rng, label):
    groups = Groups(np.array(label), max(label) + 1)
    items, weights = rng.standard_normal((6, 3)), rng.random(6)
    matrices = rng.standard_normal((groups.size, 3, 2))
    total, gram = np.zeros((groups.size, 3)), np.zeros((groups.size, 3, 3))
    for g, v, w in zip(label, items, weights, strict=True):
        total[g] += v
        gram[g] += w * np.outer(v, v)
    np.testing.assert_allclose(groups.sum(items), total)
    np.testing.assert_allclose(groups.gram(items, weights), gram)
    product = [v @ matrices[g] for g, v in zip(label, items, strict=True)]
    np.testing.assert_allclose(groups.matmul(items, matrices), product)
    np.testing.assert_allclose(groups.by_rows(items, matrices), product)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [(7,), (7, 1), (7, 5), (500, 50)])
def test_products_by_rows_do_not_depend_on_the_other_rows(rng, shape, order):
    X, B = rng.standard_normal((100, shape[0])), rng.standard_normal(shape)
    together = by_rows(np.asarray(X, order=order), B)
    np.testing.assert_allclose(together, X @ B)
    for rows in ([0], [99], [3, 50, 41], range(40, 80)):
        np.testing.assert_array_equal(by_rows(X[list(rows)], B), together[list(rows)])
    assert by_rows(X[:0], B).shape == (0, *shape[1:])


def test_products_by_groups_do_not_depend_on_the_other_groups(rng):
    label = rng.integers(3, size=100)
    items, matrices = rng.standard_normal((100, 50)), rng.standard_normal((3, 50, 8))
    together = Groups(label, 3).by_rows(items, matrices)
    for g in range(3):
        one = Groups(np.zeros(1, dtype=np.intp), 1)
        for i in np.flatnonzero(label == g):
            alone = one.by_rows(items[[i]], matrices[[g]])
            np.testing.assert_array_equal(alone[0], together[i])


def test_by_pattern_shares_where_it_pays():
    equal = np.ones((5, 3), dtype=bool)
    assert Groups.by_pattern(equal).size == 1
    two = equal.copy()
    two[3:, 0] = False
    assert Groups.by_pattern(two).size == 2
    assert Groups.by_pattern(np.eye(5, dtype=bool)).alone


# ---------------------------------------------------------------- threads


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    """BLAS with two threads, whatever the machine has; no thread keeps the right to set them."""
    pools = [p for p in ThreadpoolController().lib_controllers if p.user_api == "blas"]
    before = [pool.num_threads for pool in pools]

    def set_all(numbers):
        for pool, n in zip(pools, numbers, strict=True):
            pool.set_num_threads(n)
            getattr(pool, "clear_controlling_thread", lambda: None)()

    set_all([2] * len(pools))
    if blas_threads() != {2}:
        pytest.skip("this BLAS cannot have two threads")
    yield
    set_all(before)


@pytest.mark.usefixtures("two_threads")
def test_small_work_has_one_thread_and_large_work_all():
    with threads_for(1.0), threads_for(1.0):
        assert blas_threads() == {1}
        with threads_for(1e12):
            assert blas_threads() == {1}
    with threads_for(1e12):
        assert blas_threads() == {2}
    with pytest.raises(ZeroDivisionError), threads_for(1.0):
        1 / 0  # noqa: B018
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_threads_come_back_when_work_overlaps():
    one, other = threads_for(1.0), threads_for(1.0)
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert blas_threads() == {1}  # the other is still at work
    other.__exit__(None, None, None)
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_threads_come_back_after_fits_at_once(rng):
    data = two_views(rng)
    inside, done = [Event() for _ in range(3)], [Event() for _ in range(3)]
    seen = []

    def fit(k):
        """Enter after the fit before, and leave after it; all are inside at the same time."""

        def callback(_):
            inside[k].set()
            assert all(event.wait(60) for event in inside)
            assert k == 0 or done[k - 1].wait(60)
            seen.append(blas_threads())
            return True

        assert k == 0 or inside[k - 1].wait(60)
        kofa.FactorModel(callback=callback).fit(data)
        done[k].set()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(fit, range(3)))
    assert seen == [{1}] * 3
    assert blas_threads() == {2}


def test_inverse_keeps_the_digits_of_weak_directions():
    """Of a matrix with a condition of 1e14, all but diagonal."""
    scale = np.array([1e7, 1.0, 1e-7, 1e3])
    plain = np.eye(4) + 0.1 * np.ones((4, 4))
    inverse, logdet = inverse_and_logdet((scale[:, None] * plain * scale)[None])
    exact = np.linalg.inv(plain) / scale[:, None] / scale
    np.testing.assert_allclose(inverse[0], exact, rtol=1e-13)
    expected = np.linalg.slogdet(plain)[1] + 2 * np.log(scale).sum()
    np.testing.assert_allclose(logdet, expected, rtol=1e-13)
