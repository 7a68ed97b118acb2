"""Tables whose rows become floats only where they are needed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from kofa.data import stored
from kofa.data.reading import read_table
from kofa.data.scaling import Scaling
from kofa.data.stored import Encoded, Placed, SparseRows, by_blocks, small_as_array, some_columns
from kofa.errors import DataError
from kofa.likelihoods.poisson import Poisson


@pytest.fixture
def counts(rng):
    return rng.poisson(0.3, size=(50, 6)).astype(float)


@pytest.fixture
def in_blocks(monkeypatch):
    """Blocks of few rows, so that small tables have many."""
    monkeypatch.setattr(stored, "_AT_ONCE", 40)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
@pytest.mark.parametrize("dtype", [float, np.int32, bool])
def test_sparse_rows_are_those_of_the_matrix(counts, make, dtype):
    dense = counts.astype(dtype)
    rows = SparseRows(make(dense))
    which = np.array([3, 1, 1])
    for where in (slice(2, 9), slice(45, 99), which, np.arange(4, 8), np.arange(50) % 2 == 0):
        found = rows[where]
        assert found.dtype == float
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, dense[where])
    np.testing.assert_array_equal(np.asarray(rows), dense)


def test_stored_zeros_are_zeros_and_only_nan_is_missing():
    matrix = sparse.csr_matrix(np.array([[1.0, 2.0], [3.0, 4.0]]))
    matrix.data[:2] = 0.0, np.nan
    assert matrix.nnz == 4
    np.testing.assert_array_equal(SparseRows(matrix)[:], [[0.0, np.nan], [3.0, 4.0]])


def test_entries_given_twice_are_added_and_the_caller_s_matrix_stays():
    given = sparse.csr_matrix((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])))
    np.testing.assert_array_equal(SparseRows(given)[:], [[3.0]])
    np.testing.assert_array_equal(given.data, [1.0, 2.0])


def test_rows_in_other_places_and_columns(counts):
    rows, place = SparseRows(sparse.csr_matrix(counts)), np.array([4, -1, 5, 6])
    found = Placed(rows, place)[:]
    np.testing.assert_array_equal(found[[0, 2, 3]], counts[[4, 5, 6]])
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(some_columns(rows, [4, 0])[:3], counts[:3, [4, 0]])
    doubled = Encoded(rows, lambda values: 2.0 * values)
    assert doubled.shape == counts.shape
    np.testing.assert_array_equal(doubled[np.array([7, 2])], 2.0 * counts[[7, 2]])


@pytest.mark.usefixtures("in_blocks")
def test_what_is_found_by_blocks_is_what_is_found_at_once(counts):
    counts[3, 2] = np.nan
    rows = SparseRows(sparse.csr_matrix(counts))
    assert len(list(rows.slices())) > 5
    np.testing.assert_array_equal(by_blocks(lambda y: y.sum(axis=1), rows), counts.sum(axis=1))
    for one, other in [(rows, counts), (Placed(rows, np.arange(50)), counts)]:
        a, b = Scaling.fit(one), Scaling.fit(other)
        np.testing.assert_allclose(a.centre, b.centre, rtol=1e-14)
        np.testing.assert_allclose(a.spread, b.spread, rtol=1e-14)
    a, b = (Poisson.resolve(read_table("x", given)) for given in (rows, counts))
    np.testing.assert_allclose(a.rate, b.rate, rtol=1e-14)
    np.testing.assert_allclose(a.most, b.most, rtol=1e-14)


def test_small_tables_become_arrays(counts, monkeypatch):
    rows = SparseRows(sparse.csr_matrix(counts))
    assert isinstance(small_as_array(rows), np.ndarray)
    monkeypatch.setattr(stored, "_AT_ONCE", 299)
    assert small_as_array(rows) is rows


@pytest.mark.usefixtures("in_blocks")
def test_a_late_block_is_checked_too(counts):
    counts[-1, 1] = np.inf
    with pytest.raises(DataError, match=r"'x', column 1: .*infinity"):
        read_table("x", sparse.csr_matrix(counts))


def test_labels_may_be_a_sparse_column():
    table = read_table("x", sparse.csr_matrix([[0.0], [2.0], [2.0]]), labels=True)
    assert table.classes.tolist() == [0.0, 2.0]
    with pytest.raises(DataError, match="one column of labels but got 3"):
        read_table("x", sparse.eye(3).tocsr(), labels=True)
