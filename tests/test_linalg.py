"""Packed matrices and partitions."""

from __future__ import annotations

import numpy as np
import pytest

from kofa.linalg import Groups, inverse_and_logdet, pack, pack_outer, unpack


def test_pack_and_unpack_are_inverse(rng):
    a = rng.standard_normal((4, 3, 3))
    a = a + a.swapaxes(1, 2)
    np.testing.assert_array_equal(unpack(pack(a), 3), a)


def test_pack_outer_is_the_packed_outer_product(rng):
    v = rng.standard_normal((5, 4))
    np.testing.assert_allclose(pack_outer(v), pack(v[:, :, None] * v[:, None, :]))


def test_inverse_and_logdet(rng):
    a = rng.standard_normal((3, 6, 4))
    a = a.swapaxes(1, 2) @ a
    inverse, logdet = inverse_and_logdet(a)
    np.testing.assert_allclose(inverse @ a, np.broadcast_to(np.eye(4), a.shape), atol=1e-9)
    np.testing.assert_allclose(logdet, np.linalg.slogdet(a)[1])


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


def test_by_pattern_shares_where_it_pays():
    equal = np.ones((5, 3), dtype=bool)
    assert Groups.by_pattern(equal).size == 1
    two = equal.copy()
    two[3:, 0] = False
    assert Groups.by_pattern(two).size == 2
    assert Groups.by_pattern(np.eye(5, dtype=bool)).alone
