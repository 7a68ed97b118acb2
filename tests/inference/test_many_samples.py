"""Where samples are many, the factors of some are found first."""

import numpy as np
import pytest

import kofa
from kofa import tuning
from kofa.engines.blocks import BlockEngine

N, FIRST = 600, 150


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(tuning, "MANY_SAMPLES", N - 1)
    monkeypatch.setattr(tuning, "FIRST_SAMPLES", FIRST)


def tables(seed=0):
    """Two views of three factors with scattered holes; the third factor is rare."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(N, 3))
    rare = rng.choice(N, 12, replace=False)
    z[:, 2] = 0.0
    z[rare, 2] = rng.normal(6.0, 1.0, size=12)
    a, b = (z @ rng.normal(size=(3, d)) + 0.5 * rng.normal(size=(N, d)) for d in (12, 8))
    a[rng.random(a.shape) < 0.05] = np.nan
    return {"a": a, "b": b}


def test_all_samples_have_the_last_word(monkeypatch):
    data = tables()
    cold = kofa.FactorModel().fit(data)
    monkeypatch.setattr(tuning, "MANY_SAMPLES", N - 1)
    monkeypatch.setattr(tuning, "FIRST_SAMPLES", FIRST)
    warm = kofa.FactorModel().fit(data)
    assert warm.n_factors_ == cold.n_factors_ == 3
    assert warm.n_iter_ < cold.n_iter_
    assert warm.lower_bound_ == pytest.approx(cold.lower_bound_, rel=1e-4)
    np.testing.assert_allclose(
        warm.predict({"a": data["a"]}, "b"), cold.predict({"a": data["a"]}, "b"), atol=0.02
    )


@pytest.mark.usefixtures("few_are_many")
def test_the_factors_of_some_samples_come_first(monkeypatch):
    sizes = []
    sweep = BlockEngine.sweep

    def counted(self, state, Z):
        sizes.append(self.n_samples)
        return sweep(self, state, Z)

    monkeypatch.setattr(BlockEngine, "sweep", counted)
    model = kofa.FactorModel().fit(tables())
    begin = sizes.index(N)  # then all samples, until the views are read out
    assert begin > 10
    assert set(sizes[:begin]) == {FIRST}
    assert set(sizes[begin : begin + model.n_iter_]) == {N}


@pytest.mark.usefixtures("few_are_many")
def test_it_is_the_same_from_disk(tmp_path):
    data = tables()
    for name, table in data.items():
        np.save(tmp_path / f"{name}.npy", table)
    stored = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in data}
    memory = kofa.FactorModel().fit(data)
    disk = kofa.FactorModel(engine="disk", block_rows=100).fit(stored)
    np.testing.assert_allclose(disk.lower_bounds_, memory.lower_bounds_, rtol=1e-8)


@pytest.mark.usefixtures("few_are_many")
def test_a_fit_that_was_broken_off_goes_on(tmp_path):
    data = tables()
    whole = kofa.FactorModel().fit(data)
    options = {"checkpoint": tmp_path / "fit.checkpoint", "checkpoint_every": 0}
    kofa.FactorModel(callback=lambda now: now.n_iter == 2, **options).fit(data)
    resumed = kofa.FactorModel(**options).fit(data, resume=True)
    assert resumed.lower_bound_ == pytest.approx(whole.lower_bound_, rel=1e-10)


@pytest.mark.usefixtures("few_are_many")
def test_a_column_that_they_lack_needs_all_samples():
    data = tables()
    data["a"][:, 0] = np.nan
    data["a"][:2, 0] = [0.3, 0.5]
    assert np.isfinite(kofa.FactorModel(n_factors=3).fit(data).lower_bound_)


@pytest.mark.usefixtures("few_are_many")
def test_a_ceiling_is_hit_by_few_samples_too():
    with pytest.warns(UserWarning, match="All 1 factors are in use"):
        kofa.FactorModel(n_factors=1).fit(tables())


@pytest.mark.usefixtures("few_are_many")
def test_counts_and_ones_begin_with_some_samples():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(N, 2))
    data = {
        "c": rng.poisson(np.exp(0.7 * z @ rng.normal(size=(2, 8)))).astype(float),
        "o": (z @ rng.normal(size=(2, 12)) + rng.normal(size=(N, 12)) > 0).astype(float),
    }
    model = kofa.FactorModel({"c": kofa.Count(), "o": kofa.Binary()}).fit(data)
    assert model.n_factors_ == 2


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("seed", [0, 2])
def test_a_rare_factor_of_counts_and_ones_is_added_by_all_samples_and_no_other(seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(N, 3))
    z[:, 2] = 0.0
    z[rng.choice(N, 12, replace=False), 2] = 3.0
    rate = np.exp(0.5 * z @ rng.normal(size=(3, 20)))
    counts = rng.poisson(rate).astype(float)
    ones = (z @ rng.normal(size=(3, 20)) + rng.normal(size=(N, 20)) > 0).astype(float)
    views = {"counts": kofa.Count(), "ones": kofa.Binary()}
    assert kofa.FactorModel(views).fit({"counts": counts, "ones": ones}).n_factors_ == 3
