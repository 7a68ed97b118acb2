"""Regression of several targets: methods, protocol and tables, on small data made up here."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.cross_decomposition import CCA
from sklearn.decomposition import KernelPCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import KernelCenterer

import kofa
from experiments.baselines.regression import Canonical, Components, drawn, kernel_ridge
from experiments.baselines.validation import validated, validated_by_target
from experiments.cache import Store, file_name
from experiments.data import load
from experiments.models.regression import landmarks_of
from experiments.protocol import splits, table
from experiments.running import run
from experiments.sets import regression, sparse
from experiments.sets.regression import METHODS, score
from experiments.tasks import Options, Task
from kofa import RBF
from kofa.errors import FileError

FOLDS, N = 4, 40
TABLE2 = regression.EXPERIMENTS["table2"]
TABLE3, FIGURE2 = (sparse.EXPERIMENTS[name] for name in ("table3", "figure2"))
EXPERIMENTS = pytest.mark.parametrize(
    "experiment", [TABLE2, TABLE3, FIGURE2], ids=["table2", "table3", "figure2"]
)


def smooth(n, C=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    Y = np.sin(X[:, :C]) + X[:, [2]] + 0.1 * rng.normal(size=(n, C))
    return X, Y


@pytest.fixture
def options(toy_sets, monkeypatch):
    """Two small sets in place of the real ones, and a few iterations."""
    monkeypatch.setitem(table()["factors"], "quick_max_iter", 4)
    monkeypatch.setitem(table()["factors"], "published_factors", 10)
    for name, value in {"mlp_hidden": 10, "mlp_iterations": 10, "trees": 5}.items():
        monkeypatch.setitem(table()["grids"], name, value)
        monkeypatch.setitem(table()["grids"]["quick"], name, value)
    for seed, name in enumerate(("jura", "slump")):
        X, Y = smooth(N, seed=seed)
        np.savez(toy_sets / f"{name}.npz", X=X, Y=Y)
    return Options(folds=FOLDS, quick=True, sets=("jura", "slump"))


def permute_targets(folder, fold):
    """Keep the data, but for the targets of the test rows."""
    X, Y = smooth(N)
    _, test = splits("regression", X, FOLDS)[fold]
    Y[test] = 100.0 + Y[test[::-1]]
    np.savez(folder / "jura.npz", X=X, Y=Y)


# ---------------------------------------------------------------- honest protocol


@pytest.mark.parametrize("as_published", [False, True])
@EXPERIMENTS
def test_targets_of_test_rows_change_no_prediction(experiment, as_published, options, toy_sets):
    options = replace(options, sets=("jura",), as_published=as_published)
    tasks = [task for task in experiment.tasks(options) if task.fold == 1]
    if as_published:  # the others are the same
        tasks = [task for task in tasks if task.method.endswith("as published")]
    assert len(tasks) >= (1 if as_published else 3)
    before = [task.work() for task in tasks]
    permute_targets(toy_sets, fold=1)
    for task, expected in zip(tasks, before, strict=True):
        found = task.work()
        np.testing.assert_array_equal(found["predicted"], expected["predicted"], task.method)
        assert found["r2"] != expected["r2"]


def test_targets_of_training_rows_do_change_predictions(options, toy_sets):
    task = TABLE2.tasks(replace(options, sets=("jura",), methods=("Ridge",)))[0]
    before = task.work()
    permute_targets(toy_sets, fold=1)
    assert np.abs(task.work()["predicted"] - before["predicted"]).max() > 1.0


@pytest.mark.parametrize("protocol", ["regression", "classes", "labels", "faces", "wide"])
def test_folds_of_a_protocol_part_all_rows(protocol):
    y = np.arange(60) % 3
    found = splits(protocol, y)
    assert len(found) == table()["protocols"][protocol]["folds"]
    assert sorted(np.concatenate([test for _, test in found])) == list(range(60))
    assert all(not set(train) & set(test) for train, test in found)
    shares = {tuple(np.bincount(y[test], minlength=3)) for _, test in found}
    assert (len(shares) == 1) is table()["protocols"][protocol]["stratified"]


# ---------------------------------------------------------------- methods


@pytest.mark.parametrize("method", sorted(set(METHODS) & set(regression.GRIDS) - {"mrd"}))
@pytest.mark.parametrize("C", [1, 2])
def test_baselines_learn(method, C):
    X, Y = smooth(120, C)
    settings = regression.baseline_settings(method, Options(quick=True))
    found = METHODS[method](
        X[:90], Y[:90], X[90:], {**settings, "mlp_hidden": 20, "mlp_iterations": 150}
    )
    assert found.predicted.shape == (30, C)
    assert ((found.predicted - Y[90:]) ** 2).mean() < 0.5 * Y.var()


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("semi", [False, True])
def test_our_model_learns(semi, as_published):
    X, Y = smooth(90)
    options = Options(quick=True, as_published=as_published)
    settings = regression.our_settings(options, semi_supervised=semi)
    found = METHODS["factors"](X[:60], Y[:60], X[60:], settings)
    assert ((found.predicted - Y[60:]) ** 2).mean() < 0.5 * Y.var()
    assert found.share == 1.0


@pytest.mark.parametrize("method", ["factors", "factors_validated"])
def test_inductive_predictions_do_not_depend_on_other_new_rows(method):
    X, Y = smooth(60)
    choice = {"kernels": ["rbf", "bank"], "inner_folds": 2}
    settings = regression.our_settings(Options(quick=True), semi_supervised=False, **choice)
    alone, among = (METHODS[method](X[:50], Y[:50], X[50:n], settings) for n in (51, 60))
    np.testing.assert_allclose(alone.predicted, among.predicted[:1], rtol=1e-10)
    semi = {**settings, "semi_supervised": True}
    seen = METHODS[method](X[:50], Y[:50], X[50:], semi)
    assert np.abs(seen.predicted - among.predicted).max() > 1e-6


def test_the_kernel_is_chosen_inside_the_training_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 10))
    Y = np.sin(2.0 * X[:, :1]) + 0.05 * rng.normal(size=(150, 1))  # one feature of ten matters
    settings = regression.our_settings(Options(quick=True), semi_supervised=False, inner_folds=2)
    few = {**settings, "kernels": ["bank", "relevance"]}
    found = METHODS["factors_validated"](X[:100], Y[:100], X[100:], few)
    weighted = METHODS["factors"](X[:100], Y[:100], X[100:], {**settings, "kernel": "relevance"})
    plain = METHODS["factors"](X[:100], Y[:100], X[100:], {**settings, "kernel": "bank"})
    np.testing.assert_array_equal(found.predicted, weighted.predicted)
    assert ((found.predicted - Y[100:]) ** 2).mean() < 0.5 * (
        (plain.predicted - Y[100:]) ** 2
    ).mean()


def test_as_many_factors_as_targets():
    X, Y = smooth(60)
    settings = regression.our_settings(Options(quick=True), few_factors=True)
    assert METHODS["factors"](X[:50], Y[:50], X[50:], settings).factors <= 2


@pytest.mark.skipif(find_spec("GPy") is None, reason="needs GPy")
def test_mrd_learns():
    X, Y = smooth(60)
    settings = regression.baseline_settings("mrd", Options(quick=True))
    found = METHODS["mrd"](X[:50], Y[:50], X[50:], {**settings, "mrd_iterations": 200})
    assert found.predicted.shape == (10, 2)
    assert ((found.predicted - Y[50:]) ** 2).mean() < 0.7 * Y.var()


def test_landmarks_by_rule():
    assert landmarks_of({}, 100) == {}
    assert landmarks_of({"choose": "random", "share": 0.1}, 100) == {
        "landmarks": kofa.Landmarks(10)
    }
    assert landmarks_of({"choose": "random", "share": 0.001}, 100) == {
        "landmarks": kofa.Landmarks(2)
    }
    assert landmarks_of({"choose": "random", "share": 1.0}, 100) == {}
    by_evidence = landmarks_of({"choose": "evidence", "share": 0.1}, 100)
    assert by_evidence == {"sparse": True, "landmarks": kofa.Landmarks(keep=0.1)}
    assert landmarks_of({"choose": "ard"}, 100) == {"sparse": True}


def test_drawn_landmarks_are_rows():
    X, _ = smooth(50)
    V = drawn(X, {"share": 0.1, "seed": 3})
    assert V.shape == (5, 4)
    assert {tuple(v) for v in V} <= {tuple(x) for x in X}
    assert drawn(X, {}) is X


# ---------------------------------------------------------------- against others


def test_components_are_those_of_kernel_pca():
    X, _ = smooth(40)
    X, new = X[:30], X[30:]
    found = Components.of(X, new, 1.5, X)
    gamma = 0.5 / (1.5 * RBF().median_width(X)) ** 2
    theirs = KernelPCA(10, kernel="rbf", gamma=gamma).fit(X)
    for ours, other in ((found.train, theirs.transform(X)), (found.new, theirs.transform(new))):
        np.testing.assert_allclose(np.abs(ours[:, :10]), np.abs(other), atol=1e-6)


def test_kernel_ridge_is_that_of_scikit_learn():
    X, Y = smooth(40)
    X, new, Y = X[:30], X[30:], Y[:30]
    kernel = RBF(2.0 * RBF().median_width(X))
    centre = KernelCenterer().fit(kernel(X, X))
    theirs = KernelRidge(alpha=0.1, kernel="precomputed")
    theirs.fit(centre.transform(kernel(X, X)), Y - Y.mean(axis=0))
    expected = Y.mean(axis=0) + theirs.predict(centre.transform(kernel(new, X)))
    settings = {"widths": [2.0], "penalties": [0.1], "inner_folds": 3}
    np.testing.assert_allclose(kernel_ridge(X, Y, new, settings).predicted, expected, atol=1e-7)


def test_canonical_variates_without_penalty_are_those_of_cca():
    X, Y = smooth(200)
    X = X - X.mean(axis=0)
    U, sizes, axes = np.linalg.svd(X, full_matrices=False)
    linear = Components(U * sizes, X @ axes.T, sizes**2)
    ours = Canonical.of(linear, Y, 1e-10)
    theirs = CCA(2, max_iter=10_000, tol=1e-12).fit(X, Y).transform(X)
    for k in range(2):
        assert abs(np.corrcoef(ours.train[:, k], theirs[:, k])[0, 1]) > 0.99999


def test_all_canonical_variates_together_are_kernel_ridge():
    X, Y = smooth(40)
    X, new, Y = X[:30], X[30:], Y[:30]
    found = Components.of(X, new, 1.0, X)
    settings = {"widths": [1.0], "penalties": [0.5], "inner_folds": 3}
    expected = kernel_ridge(X, Y, new, settings).predicted - Y.mean(axis=0)
    np.testing.assert_allclose(Canonical.of(found, Y, 0.5).own(2), expected, atol=1e-9)


# ---------------------------------------------------------------- inner validation


def _scaled(_, Y, X_new, outer):
    """The first column, times both settings."""
    return {inner: X_new[:, :1] * outer * inner * np.ones((1, Y.shape[1])) for inner in (1, 2)}


def test_validation_finds_the_best_setting():
    X, _ = smooth(30)
    predicted, chosen = validated(_scaled, X, 4.0 * X[:, [0, 0]], X, [1, 2], 3)
    assert chosen == (2, 2)
    np.testing.assert_array_equal(predicted, 4.0 * X[:, [0, 0]])


def test_validation_by_target():
    X, _ = smooth(30)
    Y = np.column_stack([1.0 * X[:, 0], 4.0 * X[:, 0]])
    np.testing.assert_array_equal(validated_by_target(_scaled, X, Y, X, [1, 2], 3), Y)


# ---------------------------------------------------------------- experiments


@EXPERIMENTS
def test_work_can_be_sent_to_other_processes(experiment, options):
    for task in experiment.tasks(options):
        assert pickle.loads(pickle.dumps(task.work)).args == task.work.args


def files(tasks):
    return {file_name(task) for task in tasks}


def test_rows_of_the_benchmarks_share_results_with_the_tables():
    table2, table3, figure2 = (files(e.tasks(Options())) for e in (TABLE2, TABLE3, FIGURE2))
    bank = files(regression.EXPERIMENTS["bank-jura"].tasks())
    assert len(bank & table2) == 10  # the others are of the Gaussian process
    assert files(sparse.EXPERIMENTS["sparse-jura"].tasks()) <= table3
    assert files(regression.EXPERIMENTS["r2-jura-rbf"].tasks()) <= table3
    curve = files(sparse.EXPERIMENTS["curve-jura"].tasks())
    assert len(curve & figure2) == 3 * 3 * len(sparse.SHARES)  # curves, and the first folds


@pytest.mark.parametrize(
    "name", ["r2-jura-rbf", "bank-jura", "bank-gp-jura", "defaults-regression"]
)
def test_rows_of_the_benchmarks_sum_up_their_folds(name, tmp_path):
    benchmark = regression.EXPERIMENTS[name]
    ours = {"r2": 0.5, "seconds": 2.0}
    results = {t: ours if t.method == "kofa" else {"r2": 0.25} for t in benchmark.tasks()}
    other = {"r2": {"jura": {"MLP": [0.25, 0.75, *[0.0] * 8]}}}
    (tmp_path / "other.json").write_text(json.dumps(other), encoding="utf-8")
    row = benchmark.row(results, Options(by_fold=(str(tmp_path / "other.json"),)))
    expected = {
        "r2-jura-rbf": (0.5, "0.5000 ± 0.0000 (2.0 s per fold)"),
        "bank-jura": (0.5, "0.5000 ± 0.0000 (Gaussian process 0.2500; 2.0 s per fold)"),
        "bank-gp-jura": (0.25, "+0.2500 (+0.2500 to +0.2500 for single folds)"),
        "defaults-regression": (0.25, "; − MLP +0.4000: jura +0.400 ± 0.076"),
    }
    figure, text = expected[name]
    assert row.figure == pytest.approx(figure)
    assert row.text.endswith(text)


def test_curves_lead_over_the_better_of_the_others():
    benchmark = sparse.EXPERIMENTS["curve-jura"]
    r2 = {"evidence": 0.6, "random": 0.5, "Nyström": 0.55}
    results = {t: {"r2": r2[t.method.split()[0]], "share": 0.1} for t in benchmark.tasks()}
    row = benchmark.row(results, Options())
    assert row.figure == pytest.approx(0.05)
    assert "20%: 0.6000 with 10.0%, random 0.5000, Nyström 0.5500" in row.text


def test_published_rows_come_beside_ours(options):
    ours, both = (
        {file_name(task) for task in TABLE2.tasks(replace(options, as_published=how))}
        for how in (False, True)
    )
    assert ours < both
    n_published = len(regression.OURS) - 1  # the published kernel is not chosen
    assert len(both - ours) == n_published * len(options.fold_numbers) * len(options.sets)


def test_only_the_sparse_rows_are_sparse(options):
    methods = sparse.table3_methods(replace(options, as_published=True))
    rules = {name: settings.get("choose") for name, (_, settings) in methods.items()}
    assert rules == {
        "KSSHIBA": None,
        "KSSHIBA, inductive": None,
        "Sparse KSSHIBA": "evidence",
        "Sparse KSSHIBA, inductive": "evidence",
        "KSSHIBA, as published": None,
        "KSSHIBA, inductive, as published": None,
        "Sparse KSSHIBA, as published": "ard",
        "Sparse KSSHIBA, inductive, as published": "ard",
    }
    assert [s["as_published"] for _, s in methods.values()] == [False] * 4 + [True] * 4


def test_results_are_kept_and_shown(options, tmp_path):
    options = replace(options, methods=("KSSHIBA", "KPCA + LR", "Ridge"))
    store, done = Store(tmp_path / "cache"), []
    for _ in range(2):  # the second time all is on disk
        results = run(TABLE2.tasks(options), store, 1, lambda task, *_: done.append(task))
    assert len(done) == len(results) == 3 * 2 * 2
    shown = TABLE2.show(results, options)
    r2, factors, _ = shown.tables
    rows = {row[0]: row[1:] for row in r2.rows}
    found = [r["r2"] for t, r in results.items() if (t.dataset, t.method) == ("jura", "Ridge")]
    assert rows["Ridge"][0] == f"{np.mean(found):.3f} ± {np.std(found):.3f}"
    assert rows["KSSHIBA, the paper's figure"] == ["0.62", "–"]
    assert [row[0] for row in factors.rows] == ["KSSHIBA", "KPCA + LR"]
    assert "| method | jura | slump |" in r2.markdown()


def test_relevance_vectors_are_shown(options):
    options = replace(options, methods=("Sparse KSSHIBA, inductive",))
    results = {task: task.work() for task in TABLE3.tasks(options)}
    table = TABLE3.show(results, options).tables[0]
    rows = {tuple(row[:2]): row[2] for row in table.rows}
    shares = [100.0 * result["share"] for result in results.values()]
    assert rows["Sparse KSSHIBA, inductive", "% kept"] == f"{np.mean(shares):.1f}"
    assert rows["Sparse KSSHIBA, the paper's figure", "% kept"] == "48.7"


@pytest.mark.parametrize("as_published", [False, True])
def test_curves_are_drawn(options, tmp_path, as_published):
    pytest.importorskip("matplotlib")
    options = replace(options, as_published=as_published)
    results = {t: {"r2": 0.1 * t.fold, "share": 0.2} for t in FIGURE2.tasks(options)}
    shown = FIGURE2.show(results, options)
    shown.pictures[0].draw(tmp_path / "figure2.png")
    assert (tmp_path / "figure2.png").read_bytes().startswith(b"\x89PNG")
    curves = {row[1] for row in shown.tables[0].rows}
    assert (sparse.ARD in curves) is as_published
    assert sparse.EVIDENCE in curves


def test_a_curve_without_results_is_left_out(options):
    assert FIGURE2.show({}, options).tables[0].rows == []


def test_a_quick_run_takes_few_rows(toy_sets):
    X, Y = smooth(400)
    np.savez(toy_sets / "jura.npz", X=X, Y=Y)
    settings = regression.baseline_settings("ridge", Options(quick=True))
    assert settings["rows"] == 120
    full = {k: v for k, v in settings.items() if k != "rows"}
    few, all_rows = (score("jura", 4, 0, "ridge", s) for s in (settings, full))
    assert len(few["predicted"]) == len(all_rows["predicted"]) == 100
    assert np.abs(few["predicted"] - all_rows["predicted"]).max() > 1e-6


# ---------------------------------------------------------------- data


def test_other_data_of_the_same_name_are_refused(tmp_path, monkeypatch):
    X, Y = smooth(N)
    np.savez(tmp_path / "jura.npz", X=X, Y=Y)
    monkeypatch.setenv("KOFA_DATA", str(tmp_path))
    with pytest.raises(FileError, match="cannot be used"):
        load("jura")


def test_reported_values_are_of_known_sets():
    sets = set(table()["regression"]["sets"])
    for values in (*table()["reported"]["regression"].values(), table()["reported"]["share"]):
        assert set(values) <= sets


def test_best_baseline_is_the_one_with_the_highest_mean():
    results = {
        Task("regression", "jura", method, fold, None): {"r2": r2 - fold}
        for method, r2 in (("Ridge", 0.7), ("MLP", 0.8), ("KSSHIBA", 0.9))
        for fold in (0, 1)
    }
    assert regression.best(results, "jura") == "0.300"
    assert regression.best(results, "enb") == "–"


@pytest.mark.parametrize("per_iteration", [{}, {"per_iteration": 0.5}])
def test_shares_are_shown_with_and_without_iterations(per_iteration):
    results = {
        Task("regression", "jura", name, fold, dict): {
            "r2": 0.5, "landmarks": landmarks, "share": landmarks / 100, **per_iteration
        }
        for name, landmarks in (("plain", 100.0), ("sparse", 20.0))
        for fold in range(2)
    }  # fmt: skip
    share, text = sparse.share_summary(results)
    assert share == pytest.approx(0.2)
    assert ("of the time per iteration" in text) is bool(per_iteration)
