"""Which samples are landmarks, where all would be too many."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from inspect import signature

import numpy as np
import pytest
from sklearn.base import clone

import kofa
from kofa.kernels.formulas import Custom
from kofa.kernels.landmarks import choose
from kofa.storage.codec import from_json, to_json

every_choice = pytest.mark.parametrize("how", ["cholesky", "kmeans++", "random"])


def chosen(how, X, n, kernel=None, index=None, seed=0):
    kernel = kernel or kofa.RBF(1.0)
    index = np.arange(len(X)) if index is None else index
    return choose(how, kernel, X, index, n, np.random.default_rng(seed))


@every_choice
@pytest.mark.parametrize("n", [2, 9, 39])
def test_as_many_as_asked_for_and_each_once(rng, how, n):
    X, index = rng.standard_normal((60, 3)), np.arange(20, 60)
    rows = chosen(how, X, n, index=index)
    assert len(rows) == n
    assert (np.diff(rows) > 0).all()  # unique, in the order of the rows
    assert set(rows) <= set(index)


@every_choice
def test_same_seed_same_choice(rng, how):
    X = rng.standard_normal((200, 3))
    one, two, other = (chosen(how, X, 10, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert np.array_equal(one, other) == (how == "cholesky")  # which leaves nothing to chance


@every_choice
def test_more_landmarks_than_different_samples(rng, how):
    X = np.repeat(rng.standard_normal((4, 2)), 10, axis=0)
    rows = chosen(how, X, 9)
    assert len(set(rows)) == 9
    if how != "random":
        assert set(rows // 10) == {0, 1, 2, 3}  # each of the four is there


@every_choice
def test_all_samples_alike(how):
    rows = chosen(how, np.ones((20, 2)), 5)
    assert len(set(rows)) == 5


def test_cholesky_takes_what_is_explained_least(rng):
    X = rng.standard_normal((30, 2))
    K = kofa.RBF(1.0)(X, X)
    rows = [0]  # all have the same variance: the first
    while len(rows) < 6:
        k = K[:, rows]
        left = np.diagonal(K - k @ np.linalg.solve(k[rows], k.T)).copy()
        left[rows] = 0.0
        rows.append(int(np.argmax(left)))
    np.testing.assert_array_equal(chosen("cholesky", X, 6), np.sort(rows))


@pytest.mark.parametrize("how", ["cholesky", "kmeans++"])
def test_far_away_samples_are_landmarks(rng, how):
    X = 0.01 * rng.standard_normal((16, 2))
    X[[5, 8, 11]] += [[9.0, 0.0], [0.0, 9.0], [-9.0, 0.0]]
    assert {5, 8, 11} <= set(chosen(how, X, 4))


@every_choice
def test_precomputed_kernel(rng, how):
    X = rng.standard_normal((40, 3))
    K = kofa.RBF(1.0)(X, X)
    rows = chosen(how, K, 8, kofa.Precomputed())
    assert len(set(rows)) == 8
    if how == "cholesky":
        np.testing.assert_array_equal(rows, chosen(how, X, 8))


@every_choice
def test_callable_kernel(rng, how):
    X = rng.standard_normal((40, 3))
    assert len(set(chosen(how, X, 8, Custom(lambda A, B: A @ B.T)))) == 8


@every_choice
@pytest.mark.parametrize(
    "kernel", ["rbf", "linear", "poly", "laplacian", "precomputed", "bank", lambda A, B: A @ B.T]
)
def test_every_kernel_in_a_model(rng, how, kernel):
    X = rng.standard_normal((40, 4))
    data = {"x": X @ X.T if kernel == "precomputed" else X}
    views = {"x": kofa.Real(kernel=kernel, landmarks=kofa.Landmarks(7, by=how))}
    model = kofa.FactorModel(views, callback=lambda _: True).fit(data)
    assert len(model.views_["x"].encoder.V) == 7
    assert np.isfinite(model.transform(data)).all()


@every_choice
@pytest.mark.parametrize("landmarks", ["auto", "all", 40, 1000])
def test_as_many_as_samples_is_all(rng, how, landmarks):
    X = rng.standard_normal((40, 3))
    views = {"x": kofa.Real(kernel="rbf", landmarks=kofa.Landmarks(landmarks, by=how))}
    encoder = kofa.FactorModel(views, callback=lambda _: True).fit({"x": X}).views_["x"].encoder
    np.testing.assert_array_equal(encoder.V, encoder.scaling.encode(X))


@every_choice
def test_landmarks_have_values_and_labels(rng, how):
    X, y = rng.standard_normal((60, 3)), rng.standard_normal((60, 1))
    X[:10], y[50:] = np.nan, np.nan
    views = {"x": kofa.Real(kernel="rbf", landmarks=kofa.Landmarks(15, by=how)), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=["y"], callback=lambda _: True).fit({"x": X, "y": y})
    rows = model.views_["x"].landmarks
    assert len(rows) == 15
    assert rows.min() >= 10
    assert rows.max() < 50


@every_choice
def test_duplicated_landmarks_in_a_model_with_outputs(rng, how):
    X = np.repeat(rng.standard_normal((15, 2)), 4, axis=0)
    y = np.sin(X[:, :1]) + 0.1 * rng.standard_normal((60, 1))
    views = {"x": kofa.Real(kernel="rbf", landmarks=kofa.Landmarks(40, by=how)), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=["y"]).fit({"x": X, "y": y})
    assert np.mean((model.predict({"x": X}, "y") - y) ** 2) < 0.1 * y.var()


# ---------------------------------------------------------------- the names of version 0.1


OLD_AND_NEW = {
    "rule": (
        {"landmarks": 20, "landmarks_by": "kmeans++"},
        kofa.Landmarks(20, by="kmeans++"),
        "the option landmarks_by will be removed in kofa 0.3; write "
        "landmarks=kofa.Landmarks(20, by='kmeans++').",
    ),
    "number": (
        {"max_landmarks": 9}, kofa.Landmarks(keep=9), "write landmarks=kofa.Landmarks(keep=9).",
    ),
    "share": ({"share": 1}, kofa.Landmarks(keep=1.0), "write landmarks=kofa.Landmarks(keep=1.0)."),
    "both caps": (
        {"share": 0.2, "max_landmarks": 9},
        kofa.Landmarks(keep=(0.2, 9)),
        "the options max_landmarks, share will be removed in kofa 0.3; write "
        "landmarks=kofa.Landmarks(keep=(0.2, 9)).",
    ),
    "defaults": (
        {"landmarks": 7, "landmarks_by": "random", "share": None}, 7, "write landmarks=7.",
    ),
    "nothing but defaults": ({"share": None}, "auto", "removed in kofa 0.3; leave it out."),
    "on top of the new": (
        {"landmarks": kofa.Landmarks(20, by="cholesky"), "share": 0.5},
        kofa.Landmarks(20, by="cholesky", keep=0.5),
        "write landmarks=kofa.Landmarks(20, by='cholesky', keep=0.5).",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), OLD_AND_NEW.values(), ids=OLD_AND_NEW)
@pytest.mark.parametrize("kind", [kofa.Real, kofa.Positive, kofa.Binary, kofa.Count])
def test_old_names_work_and_warn(kind, old, new, said):
    with pytest.warns(FutureWarning, match=re.escape(said)) as seen:
        view = kind(kernel="rbf", sparse=True, **old)
    assert view == kind(kernel="rbf", sparse=True, landmarks=new)
    assert seen[0].filename == __file__
    view.check("x")


def test_what_to_write_instead_of_old_names_is_taken_by_fit(rng):
    with pytest.warns(FutureWarning, match=r"write sparse=True, landmarks=kofa.Landmarks\(keep=9"):
        kofa.Real(kernel="rbf", max_landmarks=9)
    with pytest.warns(FutureWarning, match=r"removed in kofa 0.3; write landmarks instead\."):
        kofa.Real(kernel="rbf", sparse=True, max_landmarks=1)
    with pytest.warns(FutureWarning, match="has no effect without a kernel; leave it out"):
        view = kofa.Real(landmarks_by="kmeans++")
    kofa.FactorModel({"x": view}, 2).fit({"x": rng.normal(size=(20, 3))})


def test_old_names_may_be_set_by_replace():
    with pytest.warns(FutureWarning, match="share"):
        view = replace(kofa.Real(kernel="rbf", sparse=True, landmarks=20), share=0.1)
    assert view.landmarks == kofa.Landmarks(20, keep=0.1)
    assert list(signature(kofa.Real).parameters)[-1] == "landmarks"  # not shown to those who ask


@pytest.mark.parametrize("case", [name for name in OLD_AND_NEW if name != "on top of the new"])
def test_files_with_old_names_load_without_a_warning(case):
    old, new, _ = OLD_AND_NEW[case]
    tree, arrays = to_json(kofa.Real(kernel="rbf", sparse=True))
    before = {"landmarks": "auto", "landmarks_by": "random", "max_landmarks": None, "share": None}
    tree["Real"] |= {name: to_json(value)[0] for name, value in (before | old).items()}
    view = from_json(json.loads(json.dumps(tree)), arrays)
    assert view == kofa.Real(kernel="rbf", sparse=True, landmarks=new)


def test_landmarks_in_estimators(rng):
    X = rng.normal(size=(50, 2))
    landmarks = kofa.Landmarks(9, by="kmeans++")
    model = clone(kofa.KernelFactorAnalysis("rbf", landmarks=landmarks, tol=1.0)).fit(X)
    assert len(model.model_.weights("X")) == 9
