"""Where rows live, and the directions from which a fit starts."""

from __future__ import annotations

import numpy as np
import pytest

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
