"""Where rows live, and the directions from which a fit starts."""

from __future__ import annotations

import numpy as np
import pytest

import kofa
from kofa.engines import memory
from kofa.engines.memory import InMemory
from kofa.inference.observations import Observations, Rows
from kofa.likelihoods.bernoulli import Bernoulli
from kofa.likelihoods.poisson import Poisson


@pytest.mark.parametrize("kind", [Bernoulli(6), Poisson(np.full(6, 7.0), np.full(6, 20.0))])
def test_start_of_kinds_that_are_not_gaussian_is_centred(rng, kind):
    eta = rng.standard_normal((100, 2)) @ rng.standard_normal((2, 6)) + 2.0
    t = (eta > 0).astype(float) if isinstance(kind, Bernoulli) else rng.poisson(7 * np.exp(eta / 4))
    seen = rng.random(t.shape) < 0.8
    t = np.where(seen, t, np.nan)
    engine = InMemory(Rows.stack({"t": Observations.from_values(t, kind)}))
    view = engine.rows.views["t"]
    U = engine.principal_directions(6, rng) / np.sqrt(len(t))
    np.testing.assert_allclose(U.sum(axis=0), 0.0, atol=1e-10)
    # Together they span the columns less their means over what is observed.
    centred = np.where(seen, view.values - view.values.sum(axis=0) / seen.sum(axis=0), 0.0)
    np.testing.assert_allclose(U @ (U.T @ centred), centred, atol=1e-10)


@pytest.mark.parametrize("holes", [False, True])
def test_threads_and_blocks_in_memory_do_not_matter(rng, holes, monkeypatch):
    z = rng.standard_normal((400, 2))
    x = z @ rng.standard_normal((2, 8)) + 0.3 * rng.standard_normal((400, 8))
    data = {"x": x, "t": (x[:, :3] > 0).astype(float)}
    views = {"x": kofa.Real(), "t": kofa.Binary()}
    if holes:
        data, views = {"x": np.where(rng.random(x.shape) < 0.2, np.nan, x)}, None
    fits = []
    for threads, rows in ((1, "auto"), (1, 64), (3, 64)):
        monkeypatch.setattr(memory, "n_blas_threads", lambda n=threads: n)
        model = kofa.FactorModel(views, block_rows=rows, callback=lambda i: i.n_iter >= 20)
        fits.append(model.fit(data))
    whole, blocks, threaded = fits
    np.testing.assert_array_equal(threaded.lower_bounds_, blocks.lower_bounds_)
    np.testing.assert_allclose(blocks.lower_bounds_, whole.lower_bounds_, rtol=1e-8)
    for name, view in whole.posterior_.items():
        mean = blocks.posterior_[name].weights.mean
        np.testing.assert_allclose(mean, view.weights.mean, atol=1e-8)
        np.testing.assert_array_equal(threaded.posterior_[name].weights.mean, mean)
