"""Few rows in the place of many: the same fits, from one pass over the samples."""

import numpy as np
import pytest

import kofa
from kofa import tuning
from kofa.engines import condensed
from kofa.engines.condensed import Affine, Condensed, few_rows
from kofa.engines.memory import InMemory
from kofa.inference.observations import Observations, Rows

N = 240


@pytest.fixture
def always(monkeypatch):
    """Condense whatever is possible, however few samples there are."""
    monkeypatch.setattr(condensed, "_FROM", 1)
    monkeypatch.setattr(condensed, "_FEW", np.inf)


def tables(seed=0, lacking=0.0):
    """Two views of three factors and an output; some samples lack the second view."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(N, 3))
    a = 1.0 + z @ rng.normal(size=(3, 6)) + 0.5 * rng.normal(size=(N, 6))
    b = z[:, :2] @ rng.normal(size=(2, 5)) + 0.5 * rng.normal(size=(N, 5))
    y = z[:, :1] - z[:, 1:2] ** 2 + 0.1 * rng.normal(size=(N, 1))
    b[rng.random(N) < lacking] = np.nan
    return {"a": a, "b": b, "y": y}


def engine(data):
    return InMemory(Rows.stack({n: Observations.from_values(y.copy()) for n, y in data.items()}))


def both(model, data, monkeypatch):
    """The same fit with all rows and with few."""
    monkeypatch.setattr(condensed, "_FROM", np.inf)
    plain = model().fit(data)
    monkeypatch.setattr(condensed, "_FROM", 1)
    monkeypatch.setattr(condensed, "_FEW", np.inf)
    return plain, model().fit(data)


def assert_same(plain, few, data, rtol=1e-8):
    assert few.n_factors_ == plain.n_factors_
    np.testing.assert_allclose(few.lower_bounds_, plain.lower_bounds_, rtol=rtol)
    np.testing.assert_allclose(few.transform(data), plain.transform(data), atol=1e-6)
    np.testing.assert_allclose(
        few.variance_explained().r2, plain.variance_explained().r2, atol=1e-8
    )


@pytest.mark.parametrize("n", [1, 3, 7, 50])
def test_few_rows_have_the_mean_and_the_scatter(n):
    Y = np.random.default_rng(n).normal(2.0, size=(n, 6))
    few, weight = few_rows(np.linalg.qr(np.column_stack([np.ones(n), Y]), mode="r"))
    assert len(few) == min(n, 7)
    assert weight * len(few) == pytest.approx(n)
    np.testing.assert_allclose(few.mean(axis=0), Y.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(weight * few.T @ few, Y.T @ Y, atol=1e-10)


@pytest.mark.parametrize("lacking", [0.0, 0.4])
def test_a_fit_without_outputs_is_the_same(monkeypatch, lacking):
    data = tables(lacking=lacking)
    assert_same(*both(kofa.FactorModel, data, monkeypatch), data)


def test_views_that_samples_lack_are_predicted_the_same(monkeypatch):
    data = tables(lacking=0.4)
    plain, few = both(kofa.FactorModel, data, monkeypatch)
    given = {"a": data["a"]}
    for one, other in zip(
        *(m.predict(given, "b", return_std=True) for m in (few, plain)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("lacking", [0.0, 0.4])
@pytest.mark.parametrize("kernel", [None, kofa.RBF()])
def test_outputs_are_explained_the_same(monkeypatch, kernel, lacking):
    data = tables(lacking=lacking)
    data["y"][::5] = np.nan  # samples without an output

    def model():
        views = {"a": kofa.Real(kernel=kernel), "b": kofa.Real(), "y": kofa.Real()}
        return kofa.FactorModel(views, outputs=["y"])

    plain, few = both(model, data, monkeypatch)
    given = {name: data[name][:20] for name in ("a", "b")}
    found = (m.predict(given, return_std=True) for m in (few, plain))
    # Of inputs without noise, Σ_n^-1 = I + Wᵀ τ W has a condition of 1 / EXACT_NOISE. So a factor
    # is known to this times the rounding, and a prediction is a sum over all factors. (A given
    # width does it too: learnt ones are the same to the bit.)
    rounding = np.finfo(float).eps / tuning.EXACT_NOISE
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=plain.n_factors_ * rounding)


@pytest.mark.usefixtures("always")
def test_samples_without_any_input_have_the_factors_of_nothing():
    data = tables()
    data["a"][:30] = np.nan
    model = kofa.FactorModel({"a": kofa.Real(), "y": kofa.Real()}, outputs=["y"])
    Z = np.asarray(model.fit_transform({name: data[name] for name in ("a", "y")}))
    assert (Z[:30] == Z[0]).all()
    assert np.isfinite(Z).all()


def test_outputs_that_are_not_gaussian_have_all_rows(monkeypatch):
    data = tables()
    data = {"a": data["a"], "y": (data["y"] > 0).astype(float)}

    def model():
        return kofa.FactorModel({"a": kofa.Real(), "y": kofa.Binary()}, outputs=["y"])

    plain, few = both(model, data, monkeypatch)
    given = {"a": data["a"][:20]}
    np.testing.assert_allclose(few.predict_proba(given), plain.predict_proba(given), atol=1e-8)


def test_a_ceiling_is_hit_the_same(monkeypatch):
    data = tables()
    with pytest.warns(UserWarning, match="All 2 factors are in use"):
        plain, few = both(lambda: kofa.FactorModel(n_factors=2), data, monkeypatch)
    assert_same(plain, few, data)


@pytest.mark.usefixtures("always")
def test_a_fit_from_disk_is_the_same(tmp_path):
    data = tables(lacking=0.4)
    for name, table in data.items():
        np.save(tmp_path / f"{name}.npy", table)
    stored = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in data}
    memory = kofa.FactorModel(n_init=2).fit(data)
    disk = kofa.FactorModel(n_init=2, engine="disk", block_rows=50).fit(stored)
    assert_same(memory, disk, data)


@pytest.mark.usefixtures("always")
def test_a_fit_that_was_broken_off_goes_on(tmp_path):
    data = tables()
    whole = kofa.FactorModel().fit(data)
    path = tmp_path / "fit.checkpoint"
    options = {"checkpoint": path, "checkpoint_every": 0}
    kofa.FactorModel(callback=lambda now: now.n_iter == 5, **options).fit(data)
    resumed = kofa.FactorModel(**options).fit(data, resume=True)
    assert resumed.lower_bound_ == pytest.approx(whole.lower_bound_, rel=1e-10)
    np.testing.assert_allclose(resumed.transform(data), whole.transform(data), atol=1e-7)


@pytest.mark.usefixtures("always")
def test_factors_follow_from_the_values_of_a_sample():
    data = {name: table for name, table in tables(lacking=0.4).items() if name != "y"}
    whole = engine(data)
    few = whole.condensed()
    assert isinstance(few, Condensed)
    Z = few.principal_directions(3, np.random.default_rng(0))
    assert isinstance(Z, Affine)
    all_of_them = np.asarray(Z)
    assert Z.shape == all_of_them.shape == (N, 3)
    some = np.arange(N) < 100  # not all samples of a pattern
    assert isinstance(few.part(["a"], some), InMemory)


@pytest.mark.parametrize("kind", ["holes", "wide", "few"])
def test_what_cannot_be_condensed_stays(monkeypatch, kind):
    monkeypatch.setattr(condensed, "_FROM", N)
    monkeypatch.setattr(condensed, "_FEW", 0.1)
    table = np.random.default_rng(0).normal(size=(N - (kind == "few"), 30 if kind == "wide" else 4))
    if kind == "holes":
        table[0, 0] = np.nan
    one = engine({"a": table})
    assert one.condensed() is one


def test_what_can_be_condensed_is(monkeypatch):
    monkeypatch.setattr(condensed, "_FROM", N)
    one = engine({"a": np.random.default_rng(0).normal(size=(N, 4))})
    few = one.condensed()
    assert few.size == 5 * 4
    assert few.condensed() is few
