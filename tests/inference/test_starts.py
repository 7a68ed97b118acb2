"""Starts side by side: the same result, whoever runs them."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import kofa
from kofa.engines import condensed
from kofa.estimators import KernelFactorRegressor

VIEWS = {"x": kofa.Real(), "ones": kofa.Binary()}


@pytest.fixture
def data(rng):
    z = rng.standard_normal((60, 3))
    x, eta = (z @ rng.standard_normal((3, d)) for d in (8, 6))
    x = x + rng.standard_normal(x.shape)
    x[rng.random(x.shape) < 0.1] = np.nan
    return {"x": x, "ones": (eta + rng.standard_normal(eta.shape) > 0).astype(float)}


def fitted(data, n_jobs=None, **options):
    return kofa.FactorModel(VIEWS, n_init=3, max_iter=15, n_jobs=n_jobs, **options).fit(data)


def same(one, other, data):
    assert one.lower_bounds_.tolist() == other.lower_bounds_.tolist()
    np.testing.assert_array_equal(one.transform(data), other.transform(data))
    for name, view in one.posterior_.items():
        np.testing.assert_array_equal(view.weights.mean, other.posterior_[name].weights.mean)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_result_is_the_same_for_any_number_of_workers(data):
    one = fitted(data)
    same(one, fitted(data, n_jobs=2), data)
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend=backend, n_jobs=3):
            same(one, fitted(data), data)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_rows_on_disk_are_shared_by_threads(data, engine, tmp_path):
    np.save(tmp_path / "x.npy", data["x"])
    stored = data | {"x": np.load(tmp_path / "x.npy", mmap_mode="r")}
    same(fitted(stored, engine=engine), fitted(stored, 2, engine=engine), data)


def test_condensed_rows_go_to_workers_and_their_factors_come_back(rng, monkeypatch):
    monkeypatch.setattr(condensed, "_FROM", 100)
    z = rng.standard_normal((400, 2))
    x = {"x": z @ rng.standard_normal((2, 6)) + rng.standard_normal((400, 6))}
    one, two = (kofa.FactorModel(n_init=3, n_jobs=n).fit(x) for n in (None, 2))
    np.testing.assert_array_equal(one.transform(x), two.transform(x))
    assert one.lower_bounds_.tolist() == two.lower_bounds_.tolist()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_workers_of_dask_can_run_starts(data):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert joblib.effective_n_jobs() == 2
        found = fitted(data)
    same(fitted(data), found, data)


def test_starts_run_side_by_side_only_where_they_are_asked_to(data, monkeypatch):
    asked = []
    parallel = joblib.Parallel
    monkeypatch.setattr(
        "kofa.inference.starts.Parallel", lambda n, **to: asked.append(n) or parallel(1, **to)
    )
    small = {"x": data["x"]}
    kofa.FactorModel(n_init=2).fit(small)
    kofa.FactorModel(n_init=1, n_jobs=2).fit(small)
    with joblib.parallel_config(n_jobs=2):
        kofa.FactorModel(n_init=2, callback=lambda _: False).fit(small)
    assert asked == []
    kofa.FactorModel(n_init=2, n_jobs=2).fit(small)
    assert asked == [2]


@pytest.mark.parametrize("option", ["callback", "checkpoint"])
def test_what_starts_follow_each_other_for_is_named(data, option, tmp_path):
    given = {"callback": lambda _: False, "checkpoint": tmp_path / "a.kofa"}[option]
    model = kofa.FactorModel(n_init=2, n_jobs=2, **{option: given})
    message = f"{option}.*follow each other.*leave out n_jobs, or {option}"
    with pytest.raises(kofa.DeclarationError, match=message):
        model.fit({"x": data["x"]})
    model.set_params(n_jobs=1).fit({"x": data["x"]})


@pytest.mark.parametrize("n_jobs", [0, "all", True, 1.5])
def test_wrong_numbers_of_workers_are_named(data, n_jobs):
    with pytest.raises(kofa.DeclarationError, match="n_jobs to be a whole number other than 0"):
        kofa.FactorModel(n_jobs=n_jobs).fit({"x": data["x"]})


def test_files_of_models_have_no_number_of_workers(data, tmp_path):
    model = kofa.FactorModel(n_init=2, n_jobs=2).fit({"x": data["x"]})
    model.save(tmp_path / "a.kofa")
    assert kofa.load(tmp_path / "a.kofa").n_jobs is None
    assert pickle.loads(pickle.dumps(model)).n_jobs == 2


def test_estimators_hand_it_on(data):
    y = data["ones"][:, 0]
    one, two = (
        KernelFactorRegressor("linear", n_init=2, n_jobs=n).fit(data["x"], y) for n in (None, 2)
    )
    assert two.model_.n_jobs == 2
    np.testing.assert_array_equal(one.predict(data["x"]), two.predict(data["x"]))


def test_cross_validation_takes_the_workers_of_joblib(data, monkeypatch):
    seen = []
    from kofa.cross_validation import cross_validate as module

    parallel = module.Parallel

    def watched(n_jobs):
        made = parallel(n_jobs=n_jobs)
        seen.append((type(made._backend).__name__, made.n_jobs))
        return made

    monkeypatch.setattr(module, "Parallel", watched)
    model = kofa.FactorModel({"x": kofa.Real(), "ones": kofa.Binary()}, outputs=["ones"])
    with joblib.parallel_config(backend="threading", n_jobs=2):
        inside = kofa.cross_validate(model, data, cv=2)
    outside = kofa.cross_validate(model, data, cv=2)
    assert seen == [("ThreadingBackend", 2), ("LokyBackend", 1)]
    assert inside.equals(outside)


@pytest.mark.filterwarnings("ignore:All 10 factors are in use")
def test_starts_lead_to_different_optima_which_random_state_repeats():
    x = {"x": load_breast_cancer().data}

    def bounds(**options):
        ends = {}
        model = kofa.FactorModel(
            None, 10, n_init=4, callback=lambda i: ends.update({i.start: i.lower_bound}), **options
        )
        return model.fit(x).lower_bound_, list(ends.values())

    best, ends = bounds()
    assert best == max(ends) > ends[0] + 10.0
    assert min(abs(np.diff(ends))) > 0.1
    assert bounds() == (best, ends)
    _, others = bounds(random_state=1)
    assert others[0] == ends[0]  # which is not random
    assert others[1:] != ends[1:]
