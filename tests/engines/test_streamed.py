"""Rows that are encoded when they are visited: the same results as in memory."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

import kofa
from experiments.fuzz.random_problems import problem
from kofa.ahead import ahead
from kofa.data import stored
from kofa.engines import streamed

N = 150


def after(n):
    """A callback that ends a fit."""
    return lambda iteration: iteration.n_iter >= n


def same(one, other, within=1e-8):
    """Bound and posterior of two models."""
    assert one.n_iter_ == other.n_iter_
    # Where there is all but no noise, the bound is a small sum of large terms.
    size = float(sum(np.abs(term[-1]) for term in one.lower_bound_terms_.values()))
    np.testing.assert_allclose(one.lower_bounds_, other.lower_bounds_, rtol=0, atol=within * size)
    for name, view in one.posterior_.items():
        for part in ("mean", "y_mean"):
            a, b = (getattr(q.weights, part) for q in (view, other.posterior_[name]))
            np.testing.assert_allclose(a, b, atol=within * max(1.0, np.abs(b).max()))
        # Noise, on the unit scale of the columns: where there is all but none, τ is a rounded zero.
        noise = (1.0 / q.tau.mean for q in (view, other.posterior_[name]))
        np.testing.assert_allclose(*noise, rtol=within, atol=1e-12)


@pytest.fixture
def tables(rng):
    z = rng.normal(size=(N, 2))
    counts = rng.poisson(np.exp(z @ rng.normal(size=(2, 12)) * 0.6 - 1.0)).astype(float)
    other = counts[:, ::2] * z[:, :1] + (counts[:, ::2] > 0)
    y = z @ rng.normal(size=(2, 2)) + 0.3 * rng.normal(size=(N, 2))
    return {"a": counts, "b": other, "y": y, "c": np.where(y[:, 0] > 0, "yes", "no")}


MODELS = {
    "counts": ({"a": kofa.Count(), "b": kofa.Real()}, {}),
    "binary": ({"a": kofa.Binary(), "b": kofa.Real(sparse=True)}, {}),
    "positive": ({"a": kofa.Positive(), "b": kofa.Real(scale=False)}, {}),
    "kernel": ({"a": kofa.Count(kernel="rbf", landmarks=30), "y": kofa.Real()}, {"outputs": ["y"]}),
    "primal": ({"b": kofa.Real(), "y": kofa.Real()}, {"outputs": ["y"]}),
    "vectors": (
        {"a": kofa.Real(kernel="rbf", sparse=True, landmarks=60), "y": kofa.Real()},
        {"outputs": ["y"]},
    ),
    "far apart": (
        {"a": kofa.Real(kernel="rbf", landmarks=kofa.Landmarks(30, by="cholesky"))},
        {"n_factors": 5},
    ),
    "classes": ({"a": kofa.Real(), "c": kofa.Categorical()}, {"outputs": ["c"]}),
    "two": ({"a": kofa.Count(), "b": kofa.Real()}, {"n_init": 2, "n_factors": 3}),
}


@pytest.mark.parametrize("name", MODELS)
def test_sparse_tables_give_what_dense_ones_give(tables, name, monkeypatch):
    views, options = MODELS[name]
    dense = {view: tables[view] for view in views}
    if name == "binary":
        dense["a"] = (dense["a"] > 0).astype(float)
    if name == "positive":
        dense["a"] = dense["a"] + 0.5
    model = kofa.FactorModel(views, callback=after(15), **options)
    expected = model.fit_transform(dense)
    given = {
        view: sparse.csr_matrix(table) if view in "ab" else table for view, table in dense.items()
    }
    monkeypatch.setattr(stored, "_AT_ONCE", 400)
    monkeypatch.setattr(streamed, "BLOCK", 1)  # 256 rows, or fewer
    other = kofa.FactorModel(views, callback=after(15), **options)
    np.testing.assert_allclose(other.fit_transform(given), expected, atol=1e-8)
    same(other, model)
    np.testing.assert_allclose(other.transform(given), expected, atol=1e-7)
    if name in ("kernel", "counts", "primal"):
        asked = list(views)[1]
        pairs = zip(
            other.predict(given, asked, return_std=True),
            model.predict(dense, asked, return_std=True),
            strict=True,
        )
        for found, sought in pairs:
            np.testing.assert_allclose(found, sought, atol=1e-7)


def test_blocks_and_threads_do_not_matter(tables, rng, monkeypatch):
    tables["b"][rng.random(tables["b"].shape) < 0.2] = np.nan
    views = {"a": kofa.Count(), "b": kofa.Real()}
    whole = kofa.FactorModel(views, callback=after(12)).fit({name: tables[name] for name in views})
    monkeypatch.setattr(stored, "_AT_ONCE", 100)
    given = {"a": sparse.csr_matrix(tables["a"]), "b": tables["b"]}
    built, seen = streamed.Streamed.__init__, []
    for rows, threads in ((7, 1), (64, 3)):

        def with_rows(self, views, *rest, rows=rows):
            built(self, views, rows, *rest[1:])
            seen.append(rows)

        monkeypatch.setattr(streamed, "n_blas_threads", lambda threads=threads: threads)
        monkeypatch.setattr(streamed.Streamed, "__init__", with_rows)
        same(kofa.FactorModel(views, callback=after(12)).fit(given), whole)
        assert seen.pop() == rows  # they were streamed


@pytest.mark.parametrize("seed", [0, 3, 4, 7, 8, 9, 20, 24, 27, 39])
def test_an_iteration_of_random_problems_is_the_same_in_blocks_and_on_disk(seed):
    """What docs/scale.md says of them: later iterations may differ by more, where choices tip."""
    given = problem(seed)
    options = given.options | {"outputs": None, "n_init": 1, "max_iter": 1}

    def fitted(**where):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of odd tables, and of one iteration
            return kofa.FactorModel(given.views, **options, **where).fit(given.data)

    whole = fitted()
    size = sum(abs(term[-1]) for term in whole.lower_bound_terms_.values())
    for engine in ("memory", "disk"):
        found = fitted(engine=engine, block_rows=7)
        assert found.n_factors_ == whole.n_factors_
        assert found.lower_bound_ == pytest.approx(whole.lower_bound_, rel=0, abs=1e-6 * size)


def test_results_of_threads_come_in_order_and_errors_are_raised():
    assert list(ahead(lambda i: i * i, range(50), 4)) == [i * i for i in range(50)]
    with pytest.raises(ZeroDivisionError):
        list(ahead(lambda i: 1 // (3 - i), range(10), 2))


def test_a_fit_of_sparse_tables_is_continued_from_its_checkpoint(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "_AT_ONCE", 100)
    data = {"a": sparse.csr_matrix(tables["a"]), "b": tables["b"]}
    views = {"a": kofa.Count(), "b": kofa.Real()}
    path = tmp_path / "fit.ckpt"
    whole = kofa.FactorModel(views, callback=after(15)).fit(data)
    options = {"checkpoint": path, "checkpoint_every": 0.0}
    kofa.FactorModel(views, callback=after(5), **options).fit(data)
    same(kofa.FactorModel(views, callback=after(15), **options).fit(data, resume=True), whole)
    changed = {**data, "a": data["a"] * 2}
    with pytest.raises(kofa.KofaError, match="other"):
        kofa.FactorModel(views, **options).fit(changed, resume=True)
