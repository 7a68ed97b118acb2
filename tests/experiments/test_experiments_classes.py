"""The experiments with classes, on small data made up here."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.cross_decomposition import CCA

from experiments import plots
from experiments.baselines.two_kernels import (
    Blocks,
    cca_svm,
    combined_svm,
    directions,
    variates_gram,
)
from experiments.cache import Store, file_name
from experiments.data import entries, load
from experiments.experiment import Experiment
from experiments.models import classes
from experiments.models.classes import Way
from experiments.protocol import splits
from experiments.running import run
from experiments.sets import classes as rows
from experiments.sets import faces, kernels, oil, reconstruction
from experiments.tasks import Options
from kofa import RBF, Linear, Real

GRIDS = {
    "inner_folds": 2,
    "widths": [0.5, 1.0],
    "weights": [0.0, 0.5, 1.0],
    "costs": [1.0, 10.0],
    "directions": 20,
    "components": [2, 4],
    "penalties": [1e-2],
}
OURS = Way(n_factors=5, tol=1e-1)
PUBLISHED = Way(published=True, n_factors=5, starts=2, max_iter=5)
WAYS = pytest.mark.parametrize("way", [OURS, PUBLISHED], ids=["ours", "published"])


def three_clouds(n=36, columns=6):
    """Three classes; the first two columns tell them apart."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, columns))
    X[:, :2] += 4.0 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    return X, y


@pytest.fixture
def few_steps(monkeypatch):
    """Fits broken off early: whether all of it works together, not how well."""
    of = Way.of
    monkeypatch.setattr(
        classes.Way, "of", lambda *args, **more: replace(of(*args, **more), n_factors=5, max_iter=3)
    )


@pytest.fixture
def folder(toy_sets, monkeypatch):
    """Sets with the names and shapes that the experiments expect, but few rows."""
    rng = np.random.default_rng(1)
    X, y = three_clouds(36, 12)
    np.savez(toy_sets / "oil_flow.npz", X=X, y=y)
    for name in faces.SETS:
        np.savez(toy_sets / f"{name}.npz", X=np.abs(30 * X).astype(np.uint8), y=y)
        monkeypatch.setitem(entries(), name, replace(entries()[name], image_shape=(4, 3)))
    ill = np.hstack([X, rng.standard_normal((36, 8))])
    ill[::7, 13] = np.nan
    np.savez(toy_sets / "arrhythmia.npz", X=ill, y=y)
    bands = np.repeat(10 * X[:, :4], 9, axis=0).reshape(36, 36) + 100
    np.savez(toy_sets / "satimage.npz", X=bands.astype(np.uint8), y=y + 1)
    images = np.clip(20 * np.abs(X), 0, 255).astype(np.uint8).reshape(36, 4, 3)
    np.savez(toy_sets / "fashion_mnist_10k.npz", X=images, y=y.astype(np.uint8))
    return toy_sets


# ---------------------------------------------------------------- folds and scores


def test_auc_is_one_for_the_right_order_and_half_for_none():
    y = np.array([1, 2, 4, 1, 2, 4])
    assert classes.auc(y, (y[:, None] == [1, 2, 4]) + 0.0) == 1.0
    assert classes.auc(y, np.zeros((6, 3))) == 0.5
    assert classes.auc(np.array([0, 1]), np.array([[0.9, 0.1], [0.2, 0.8]])) == 1.0


def test_published_way_takes_the_papers_choices():
    way = Way.of(Options(as_published=True))
    assert (way.starts, way.n_factors, way.tol) == (10, 100, None)
    assert Way.of(Options(as_published=True, quick=True)).starts == 2


def test_published_model_has_all_rows_as_landmarks():
    X, y = three_clouds()
    split = splits("classes", y, 4)[0]
    model = classes.fit({"x": Real(kernel=RBF())}, {"x": X}, y, split, PUBLISHED)
    assert len(model.views_["x"].landmarks) == 36
    assert model.as_published
    ours = classes.fit({"x": Real(kernel=RBF())}, {"x": X}, y, split, OURS)
    assert len(ours.views_["x"].landmarks) == 27
    assert ours.views_["y"].role.output


# ---------------------------------------------------------------- test rows stay unseen


def shuffled(y, split):
    """The same training labels, and others for the test rows."""
    y = y.copy()
    y[split[1]] = np.roll(y[split[1]], 1)
    return y


@WAYS
def test_labels_of_test_rows_change_nothing_that_is_predicted(way, monkeypatch):
    monkeypatch.setattr(faces, "SHARES", (0.2,))  # fewer fits
    way = replace(way, starts=1)
    X, y = three_clouds()
    split = splits("classes", y, 4)[0]
    problem = kernels.Problem({"x": Real(kernel=[RBF(), Linear()])}, {"x": X}, y)
    other = replace(problem, y=shuffled(y, split))
    assert not np.array_equal(other.y[split[1]], y[split[1]])
    for work in (kernels.ours, lambda *args: kernels.ours(*args, sparse=True)):
        np.testing.assert_array_equal(
            work(problem, split, way)["proba"], work(other, split, way)["proba"]
        )
    for work, keys in ((oil.ours, ["proba", "Z"]), (faces.masked, ["proba", "mask"])):
        found, again = work(X, y, split, way), work(X, other.y, split, way)
        for key in keys:
            np.testing.assert_array_equal(found[key], again[key])


def test_labels_of_test_rows_change_nothing_for_mrd(monkeypatch):
    """GPy itself is not asked: what it would be given says it all."""
    given = []

    def fitted(views, *_):
        given.extend(views)
        return SimpleNamespace(bgplvms=[])

    monkeypatch.setattr(oil.mrd, "fitted", fitted)
    monkeypatch.setattr(oil.mrd, "predicted", lambda _, X_new: X_new[:, :3])
    X, y = three_clouds()
    split = splits("classes", y, 4)[0]
    first, second = (oil.manifold(X, labels, split, 2, 5, 1) for labels in (y, shuffled(y, split)))
    np.testing.assert_array_equal(first["scores"], second["scores"])
    np.testing.assert_array_equal(given[0], given[2])
    np.testing.assert_array_equal(given[1], given[3])
    assert all(len(view) == len(split[0]) for view in given)


@pytest.mark.parametrize("method", kernels.BASELINES)
def test_labels_of_test_rows_change_nothing_for_baselines(method):
    X, y = three_clouds()
    split = splits("classes", y, 4)[0]
    problem = kernels.Problem({"x": Real(kernel=[RBF(), Linear()])}, {"x": X}, y)
    other = replace(problem, y=shuffled(y, split))
    first, second = (kernels.baseline(p, split, method, GRIDS) for p in (problem, other))
    np.testing.assert_array_equal(first["proba"], second["proba"])
    assert first["auc"] > 0.9 > second["auc"]


@pytest.mark.parametrize("baseline", [combined_svm, cca_svm])
def test_baselines_never_read_labels_of_test_rows(baseline):
    X, y = three_clouds()
    train, test = splits("classes", y, 4)[0]
    hidden = y.astype(float)
    hidden[test] = np.nan
    scores = baseline(Blocks([(RBF(), X), (Linear(), X)], hidden, (train, test)), GRIDS)
    assert classes.auc(y[test], scores) > 0.9


# ---------------------------------------------------------------- baselines


def test_variates_are_those_of_canonical_correlation():
    rng = np.random.default_rng(2)
    shared = rng.standard_normal((80, 1))
    A, B = (
        np.hstack([shared, rng.standard_normal((80, 2))]) @ rng.normal(size=(3, 3)) for _ in "ab"
    )
    rows = np.arange(80)
    grams = [x @ x.T for x in (A, B)]
    gram = variates_gram(directions(grams, rows, 3), rows, penalty=1e-12, size=1)
    a, b = CCA(n_components=1).fit(A, B).transform(A, B)
    # the variates have unit length here and one sum of their squares
    expected = sum(v @ v.T / (v.T @ v) for v in (a - a.mean(), b - b.mean())) * 80 / 2
    np.testing.assert_allclose(gram, expected, atol=1e-3)


def test_combination_finds_the_kernel_that_is_informative():
    X, y = three_clouds(90)
    split = splits("classes", y, 3)[0]
    noise = np.random.default_rng(3).standard_normal((90, 4))
    for parts in ([(RBF(), X[:, :2]), (RBF(), noise)], [(RBF(), noise), (RBF(), X[:, :2])]):
        assert classes.auc(y[split[1]], combined_svm(Blocks(parts, y, split), GRIDS)) > 0.95


def test_missing_values_of_baselines_are_means_of_training_rows():
    X = np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 5.0], [100.0, 5.0]])
    scaled = kernels._standardised(X, np.array([0, 1, 2]))
    np.testing.assert_allclose(scaled, [[-1, 0], [1, 0], [0, 0], [98, 0]])


# ---------------------------------------------------------------- what is found


def test_mask_is_largest_where_the_classes_are():
    X, y = three_clouds(90, 20)
    found = faces.masked(X, y, splits("classes", y, 3)[0], OURS)
    assert set(np.argsort(-found["mask"])[:2]) == {0, 1}
    assert found["top 0.2"] > 0.8


def test_mean_mask_gives_each_fold_the_same_say():
    found = [
        {"mask": m, "face": np.zeros((1, 2))} for m in (np.array([1.0, 3]), np.array([30.0, 10]))
    ]
    np.testing.assert_allclose(faces.mean_mask(found), [[1.0, 1.0]])


def test_factor_relevance_is_a_share_of_each_view():
    X, y = three_clouds()
    split = splits("classes", y, 4)[0]
    model = classes.fit({"x": Real(kernel=[RBF(), Linear()])}, {"x": X}, y, split, OURS)
    names, relevance = classes.factor_relevance(model)
    assert names == ["x[RBF]", "x[Linear]", "y"]
    np.testing.assert_allclose(relevance.sum(axis=1), 1.0)


@WAYS
def test_kernel_comes_back_from_enough_factors(way):
    X, y = three_clouds(40, 3)
    found = reconstruction.reconstructed(X, y, Linear(), way)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(found["kernel"], Z @ Z.T / 3, atol=1e-10)
    assert reconstruction.error_share(found) < 0.05


# ---------------------------------------------------------------- whole experiments


@pytest.mark.parametrize(
    "experiment",
    [
        pytest.param(experiment, id=name)
        for module in (faces, oil, kernels, reconstruction)
        for name, experiment in module.EXPERIMENTS.items()
        if isinstance(experiment, Experiment)
    ],
)
@pytest.mark.parametrize(
    "published",
    [pytest.param(False, id="ours"), pytest.param(True, id="published", marks=pytest.mark.slow)],
)
@pytest.mark.filterwarnings("ignore:View 'readings'. no sample's kernel")  # columns of noise
@pytest.mark.usefixtures("folder", "few_steps")
def test_experiments_run_and_are_shown(experiment, published, tmp_path, request):
    options = Options(quick=True, as_published=published)
    results = run(experiment.tasks(options), Store(tmp_path / "cache"))
    shown = experiment.show(results, options)
    assert shown.tables or shown.pictures
    for shown_table in shown.tables:
        assert shown_table.name == request.node.callspec.id.split("-")[1]
        assert all(len(row) == len(shown_table.header) for row in shown_table.rows)
    pytest.importorskip("matplotlib")
    for picture in shown.pictures:
        picture.draw(tmp_path / "picture.png")
        assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    # and all of it comes from disk the second time
    again = run(
        [replace(t, work=None) for t in experiment.tasks(options)], Store(tmp_path / "cache")
    )
    assert again.keys() == results.keys()


def test_sets_and_methods_can_be_chosen():
    options = Options(sets=("satimage",), methods=("CCA + SVM",), folds=3)
    assert {(t.dataset, t.method) for t in kernels.table_tasks(options)} == {
        ("satimage", "CCA + SVM")
    }
    assert {t.dataset for t in faces.tasks(Options(sets=("lfw7_60x40",)))} == {"lfw7_60x40"}


def test_ways_and_quick_grids_have_results_of_their_own():
    def names(**how):
        return {file_name(t) for t in kernels.table_tasks(Options(**how)) if t.fold == 0}

    ours, both, quick = names(), names(as_published=True), names(quick=True)
    shared = 2 * len(kernels.SETS)
    assert ours < both
    assert len(both - ours) == shared
    assert len(ours & quick) == shared  # our own, of which a quick run does fewer folds


def test_mrd_is_left_out_without_its_package(monkeypatch):
    monkeypatch.setattr(oil.mrd, "has_gpy", lambda: False)
    assert {t.method for t in oil.tasks(Options())} == {oil.OURS}
    monkeypatch.setattr(oil.mrd, "has_gpy", lambda: True)
    assert {t.method for t in oil.tasks(Options())} == {oil.OURS, oil.BASELINE}


def test_figure_leaves_nothing_behind_when_drawing_fails(tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(RuntimeError), plots.figure(tmp_path / "a.png"):
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_figure_without_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"kofa\[plot\]"), plots.figure(tmp_path / "a.png"):
        pass


@pytest.mark.usefixtures("folder")
def test_data_of_the_problems():
    problem = kernels.satimage()
    pixels = load("satimage").X.reshape(-1, 9, 4)
    np.testing.assert_array_equal(problem.inputs["pixel"], pixels[:, 4])
    assert np.isnan(kernels.arrhythmia().inputs["patient"]).any()
    assert kernels.fashion_mnist().inputs["x"].max() <= 1.0


# ---------------------------------------------------------------- rows of the benchmarks


def test_rows_share_fits_with_tables_and_figures():
    def files(tasks):
        return {file_name(task) for task in tasks}

    assert files(kernels.EXPERIMENTS["mkl-fashion"].tasks()) < files(kernels.table_tasks(Options()))
    assert files(oil.EXPERIMENTS["oil_flow"].tasks()) <= files(oil.tasks(Options()))


@pytest.mark.usefixtures("folder")
def test_multiple_kernels_in_a_row(monkeypatch):
    benchmark = kernels.EXPERIMENTS["mkl-arrhythmia"]
    tasks = benchmark.tasks()[:2]
    monkeypatch.setattr(kernels, "fit_predict", few(kernels.fit_predict))
    row = benchmark.row({task: task.work() for task in tasks}, Options())
    assert 0.0 <= row.figure <= 1.0
    assert " (weights " in row.text


def few(fit_predict):
    """Fits of a few steps."""

    def call(*arguments):
        *given, way = arguments
        return fit_predict(*given, replace(way, n_factors=5, max_iter=3))

    return call


def test_faces_in_rows():
    lead, loss = (faces.EXPERIMENTS[f"faces-yale-{share}"] for share in (2, 20))
    result = {"top 0.02": 0.8, "random 0.02": np.array([0.5, 0.7]), "top 0.2": 0.9, "all": 0.95}
    results = {task: {**result, "learnt": 1.0} for task in lead.tasks()}
    assert lead.row(results, Options()).figure == pytest.approx(0.2)
    assert loss.row(results, Options()).text == (
        "+0.0500 (0.9500 − 0.9000; all pixels with their λ 1.0000)"
    )


def test_methods_of_classes_are_scored_on_held_out_rows():
    tasks = {task.method: task for task in rows.tasks("iris", "kofa", "SVM") if task.fold == 3}
    for task in tasks.values():
        found = task.work()
        _, test = rows.problem("iris").splits[3]
        np.testing.assert_array_equal(found["y"], load("iris").y[test])
        assert found["proba"].shape == (15, 3)
        assert found["auc"] > 0.95


def test_differences_to_the_svm_are_of_the_same_folds():
    benchmark = rows.EXPERIMENTS["defaults-auc-wine"]
    ours, theirs = {"auc": 0.9, "log_loss": 0.1, "seconds": 2.0}, {"auc": 0.8, "log_loss": 0.2}
    results = {t: theirs if t.method == "SVM" else ours for t in benchmark.tasks()}
    row = benchmark.row(results, Options())
    assert row.figure == pytest.approx(0.1)
    assert row.text == (
        "+0.1000 (kofa 0.9000, SVM 0.8000; +0.1000 to +0.1000 for single folds; "
        "log-loss 0.1000, SVM 0.2000; median fit 2.0 s)"
    )


def test_scene_has_a_split_of_its_own(toy_sets):
    rng = np.random.default_rng(0)
    part = np.repeat(["train", "test"], [20, 10])
    Y = rng.integers(0, 2, (30, 2))
    np.savez(toy_sets / "scene.npz", X=rng.standard_normal((30, 4)), Y=Y, split=part)
    (split,) = rows.problem("scene").splits
    assert [len(some) for some in split] == [20, 10]
    assert len(rows.tasks("scene", "kofa")) == 1
