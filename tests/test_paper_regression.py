import pickle
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.cross_decomposition import CCA
from sklearn.decomposition import KernelPCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import KernelCenterer

from kofa import RBF
from kofa.errors import FileError
from kofa.paper import regression, sparse
from kofa.paper.data import load, paper
from kofa.paper.methods import validated, validated_by_target
from kofa.paper.regression import METHODS, judge, split
from kofa.paper.regression_ours import landmarks_of
from kofa.paper.regression_rivals import Canonical, Components, drawn, kernel_ridge
from kofa.paper.tasks import Options, Store, Task, run

FOLDS, N = 4, 40
EXPERIMENTS = [*regression.EXPERIMENTS, *sparse.EXPERIMENTS]
TABLE2, TABLE3, FIGURE2 = EXPERIMENTS


def smooth(n, C=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    Y = np.sin(X[:, :C]) + X[:, [2]] + 0.1 * rng.normal(size=(n, C))
    return X, Y


def written(folder, name, X, Y):
    folder.mkdir(exist_ok=True)
    np.savez(folder / f"{name}.npz", X=X, Y=Y)
    return str(folder)


@pytest.fixture
def options(tmp_path, monkeypatch, toy_sets):  # noqa: ARG001
    """Two small sets in place of the real ones, and a few iterations."""
    monkeypatch.setitem(paper()["factors"], "quick_max_iter", 4)
    monkeypatch.setitem(paper()["factors"], "published_factors", 10)
    for name, value in {"mlp_hidden": 10, "mlp_iterations": 10, "trees": 5}.items():
        monkeypatch.setitem(paper()["grids"], name, value)
        monkeypatch.setitem(paper()["grids"]["quick"], name, value)
    data_dir = tmp_path / "data"
    for seed, name in enumerate(("jura", "slump")):
        written(data_dir, name, *smooth(N, seed=seed))
    return Options(folds=FOLDS, quick=True, data_dir=str(data_dir), sets=("jura", "slump"))


def with_permuted_targets(options, folder, fold):
    """The same data, but for the targets of the test rows."""
    X, Y = smooth(N)
    _, test = split(len(X), FOLDS, fold)
    Y[test] = 100.0 + Y[test[::-1]]
    return replace(options, data_dir=written(folder, "jura", X, Y), sets=("jura",))


# ---------------------------------------------------------------- honest protocol


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)
def test_targets_of_test_rows_change_no_prediction(experiment, as_published, options, tmp_path):
    options = replace(options, sets=("jura",), as_published=as_published)
    tasks = [task for task in experiment.tasks(options) if task.fold == 1]
    if as_published:  # the others are the same
        tasks = [task for task in tasks if task.method.endswith("as published")]
    other = with_permuted_targets(options, tmp_path / "permuted", fold=1)
    others = {task: task for task in experiment.tasks(other)}
    assert len(tasks) >= (1 if as_published else 3)
    for task in tasks:
        before, after = task.work(), others[task].work()
        np.testing.assert_array_equal(before["predicted"], after["predicted"], task.method)
        assert before["r2"] != after["r2"]


def test_targets_of_training_rows_do_change_predictions(options, tmp_path):
    task = TABLE2.tasks(replace(options, sets=("jura",), methods=("Ridge",)))[0]
    other = with_permuted_targets(options, tmp_path / "permuted", fold=1)
    other = TABLE2.tasks(replace(other, methods=("Ridge",)))[0]
    assert np.abs(task.work()["predicted"] - other.work()["predicted"]).max() > 1.0


def test_folds_are_those_of_the_protocol():
    tests = np.concatenate([split(23, 5, fold)[1] for fold in range(5)])
    assert sorted(tests) == list(range(23))
    train, test = split(23, 5, 2)
    assert not set(train) & set(test)


# ---------------------------------------------------------------- methods


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"mrd", "factors", "factors_validated"}))
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
    assert METHODS["factors"](X[:50], Y[:50], X[50:], settings).n_factors <= 2


@pytest.mark.skipif(find_spec("GPy") is None, reason="needs GPy")
def test_mrd_learns():
    X, Y = smooth(60)
    settings = regression.baseline_settings("mrd", Options(quick=True))
    found = METHODS["mrd"](X[:50], Y[:50], X[50:], {**settings, "mrd_iterations": 200})
    assert found.predicted.shape == (10, 2)
    assert ((found.predicted - Y[50:]) ** 2).mean() < 0.7 * Y.var()


def test_landmarks_by_rule():
    assert landmarks_of({}, 100) == {}
    assert landmarks_of({"choose": "random", "share": 0.1}, 100)["landmarks"] == 10
    assert landmarks_of({"choose": "random", "share": 0.001}, 100)["landmarks"] == 2
    assert landmarks_of({"choose": "random", "share": 1.0}, 100) == {}
    assert landmarks_of({"choose": "evidence", "share": 0.1}, 100)["sparse"] is True
    assert landmarks_of({"choose": "ard"}, 100) == {"sparse": "ard"}


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


def test_work_can_be_sent_to_other_processes(options):
    for experiment in EXPERIMENTS:
        for task in experiment.tasks(options):
            assert pickle.loads(pickle.dumps(task.work)).args == task.work.args


def test_published_rows_come_beside_ours(options):
    ours, both = (
        {task.file for task in TABLE2.tasks(replace(options, as_published=how))}
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


@pytest.mark.usefixtures("toy_sets")
def test_a_quick_run_takes_few_rows(tmp_path):
    data_dir = written(tmp_path / "data", "jura", *smooth(400))
    settings = regression.baseline_settings("ridge", Options(quick=True))
    assert settings["rows"] == 120
    full = {k: v for k, v in settings.items() if k != "rows"}
    few, all_rows = (judge("jura", data_dir, 4, 0, "ridge", s) for s in (settings, full))
    assert len(few["predicted"]) == len(all_rows["predicted"]) == 100
    assert np.abs(few["predicted"] - all_rows["predicted"]).max() > 1e-6


# ---------------------------------------------------------------- data


def test_other_data_of_the_same_name_are_refused(tmp_path):
    data_dir = written(tmp_path / "data", "jura", *smooth(N))
    with pytest.raises(FileError, match="cannot be used"):
        load("jura", data_dir)


def test_the_images_are_found_under_the_name_of_their_file(monkeypatch):
    asked = []

    def source(name, data_dir):
        asked.append((name, data_dir))
        raise FileError("offline")

    monkeypatch.setattr("kofa.datasets.load", source)
    with pytest.raises(FileError, match="offline"):
        load("fashion_mnist", "here")
    assert asked == [("fashion_mnist_10k", "here")]


def test_reported_values_are_of_known_sets():
    sets = set(paper()["regression"]["sets"])
    for values in (*paper()["reported"]["regression"].values(), paper()["reported"]["share"]):
        assert set(values) <= sets


def test_best_rival_is_the_one_with_the_highest_mean():
    results = {
        Task("table2", "jura", method, fold, None): {"r2": r2 - fold}
        for method, r2 in (("Ridge", 0.7), ("MLP", 0.8), ("KSSHIBA", 0.9))
        for fold in (0, 1)
    }
    assert regression.best(results, "jura") == "0.300"
    assert regression.best(results, "enb") == "–"
