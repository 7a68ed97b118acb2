"""Parts of a model that do not fit together are found out."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace
from functools import cache
from types import FunctionType

import numpy as np
import pytest

import kofa
from kofa import tuning
from kofa.inference.predictive import Basis
from kofa.predictive.view import FACTORS
from kofa.storage.damage import DamageError
from kofa.storage.model_file import read_object, write_model
from kofa.storage.validation import (
    by_name,
    check_explained,
    check_model,
    check_question,
    check_rows,
    check_seen,
)


@cache
def model():
    """x through three kernels in one, y as counts, c as labels, from which x is learnt."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    tables = {"x": x, "n": np.abs(x * 3).round(), "c": np.where(x[:, 0] > 0, "u", "v")}
    views = {
        "x": kofa.Real(kernel="bank", sparse=True),
        "n": kofa.Count(sparse=True),
        "c": kofa.Categorical(),
    }
    return kofa.FactorModel(views, 3, outputs=["c"], max_iter=30, tol=1.0).fit(tables)


def test_a_sound_model_passes():
    check_model(model().views_, model().posterior_)


def at(changes):
    """A copy of an object with something in it replaced: {"weights.mean": function}."""

    def change(value):
        for path, new in changes.items():
            value = _changed(value, path.split("."), new)
        return value

    return change


def _changed(value, path, new):
    if not path:
        return new(value) if isinstance(new, FunctionType) else new
    return replace(value, **{path[0]: _changed(getattr(value, path[0]), path[1:], new)})


def first(number):
    """An array with another first entry."""

    def change(array):
        array = array.copy()
        array.flat[0] = number
        return array

    return change


def shorter(array):
    return array[:-1]


VIEWS = [
    ("x", {"source": "z"}, "another view"),
    ("n", {"source": "x"}, "another view"),
    ("x", {"role.name": "z"}, "its role"),
    ("x", {"role.kernelized": False}, "its role"),
    ("n", {"role.output": True}, "shape"),
    ("n", {"kind": kofa.likelihoods.Gaussian}, "two kinds"),
    ("c", {"classes": None}, "labels are not its own"),
    ("c", {"classes": shorter}, "classes are not as many"),
    ("c", {"classes": np.array(["u", "u"])}, "occurs twice"),
    ("c", {"classes": ("u", "v")}, "not labels"),
    ("c", {"dtype": "float"}, "no type"),
    ("c", {"dtype": np.dtype("<U999999")}, "too long"),
    (
        "c",
        {"classes": np.array([10**30, 2], dtype=object), "dtype": np.dtype("i8")},
        "another type",
    ),
    ("c", {"n_inputs": 2}, "several columns"),
    ("c", {"outputs": ("u",)}, "one name for each column"),
    ("x", {"inputs": ("u",)}, "one name for each column"),
    ("x", {"n_inputs": 4}, "entry for each of its 4 columns"),
    *(("n", {"n_inputs": n}, "shape") for n in (0, -1, 10**12, 10**18)),
    ("x", {"energy": np.zeros((1, 3))}, "shape"),
    ("c", {"energy": np.ones((1, 1))}, "no output"),
    ("x", {"encoder.scale": 0.0}, "scale is not positive"),
    ("x", {"encoder.scale": math.nan}, "scale is not positive"),
    ("x", {"encoder.V": lambda V: V[:, :2]}, "other columns"),
    ("x", {"encoder.V": lambda V: V[0]}, "no landmarks"),
    ("x", {"encoder.V": first(np.inf)}, "not finite"),
    ("x", {"encoder.kernel": kofa.Precomputed()}, "no landmarks"),
    ("x", {"encoder.kernel": kofa.RBF()}, "not resolved"),
    ("x", {"encoder.kernel": kofa.RBF(1.0, relevance="learn")}, "not resolved"),
    ("x", {"encoder.kernel": kofa.RBF(1.0, relevance=(1.0,))}, "relevance"),
    ("x", {"encoder.kernel": kofa.RBF(-1.0)}, "positive width"),
    ("x", {"encoder.kernel": kofa.RBF(math.inf)}, "positive width"),
    ("x", {"encoder.kernel": kofa.Polynomial(0)}, "degree to be a whole number of at least 1"),
    ("x", {"encoder.kernel.weights": "learn"}, "not resolved"),
    ("x", {"encoder.kernel.weights": (1.0,)}, "weights"),
    ("x", {"encoder.column_mean": shorter}, "shape"),
    ("x", {"encoder.scaling.spread": first(0.0)}, "spread is not positive"),
    ("x", {"encoder.scaling.unit": "log"}, "another scale"),
    ("n", {"encoder.rate": first(-1.0)}, "too small"),
    ("n", {"encoder.most": first(np.nan)}, "not finite"),
    ("x", {"vectors.order": shorter}, "shape of its order"),
    ("x", {"vectors.samples": [1]}, "samples are no array"),
]
VIEWS += [
    ("x", {"encoder.kernel": kernel}, message)
    for kernel, message in [
        (kofa.Diffusion(time=1.0), "not resolved"),
        (kofa.Diffusion().of(np.eye(3)), "not resolved"),
        (kofa.Diffusion(time=-1.0).of(np.eye(3)), "time to be a positive number"),
        (kofa.Diffusion(0, time=1.0).of(np.eye(3)), "neighbours"),
        (kofa.Diffusion(time=1.0).of(np.eye(2)), "shape"),
    ]
]
GRAPHS = [
    ({"graph.rows": np.float64(1.0)}, "no rows"),
    ({"graph.rows": shorter}, "shape"),
    ({"graph.rows": first(np.nan)}, "not finite"),
    ({"graph.scale": first(0.0)}, "too small"),
    ({"graph.directions": shorter}, "shape"),
    ({"graph.rates": first(-1.0)}, "too small"),
    ({"graph.rates": shorter}, "shape"),
]
VIEWS += [
    ("x", {"encoder.kernel": at(changes)(kofa.Diffusion(time=1.0).of(np.eye(3)))}, message)
    for changes, message in GRAPHS
]
POSTERIORS = [
    ({"weights.mean": lambda W: W[:, :-1]}, "shape"),
    ({"weights.mean": first(np.nan)}, "not finite"),
    ({"weights.mean": first(1e30)}, "larger than any"),
    ({"weights.basis": lambda B: B[:, :-1]}, "shape"),
    ({"weights.basis": np.float64(1.0)}, "shape"),
    ({"weights.scales": lambda scales: first(-1.0)(np.asarray(scales))}, "too small"),
    ({"weights.scales.eigenvalues": first(-1.0)}, "too small"),
    ({"weights.scales.gamma": first(0.0)}, "too small"),
    ({"weights.scales.tau": shorter}, "shape"),
    ({f"weights.{name}": lambda a: np.repeat(a, 9, -1) for name in ("basis", "scales.eigenvalues")},
     "more directions than factors"),
    ({"weights.basis": lambda B: np.repeat(B, 9, -1)}, "shape"),
    ({"weights.z_mean": lambda z: z[:, :-1]}, "shape"),
    ({"weights.bias_variance": first(-1.0)}, "too small"),
    ({"weights.columns.size": 2}, "size is 2, not 1"),
    ({"weights.columns.label": first(1)}, "in no group"),
    ({"weights.columns.label": first(-1)}, "in no group"),
    ({"weights.columns.label": shorter}, "shape of its label"),
    ({"alpha.rate": shorter}, "shape of its alpha"),
    ({"alpha.rate": first(0.0)}, "too small"),
    ({"tau.mean": shorter}, "shape of its tau"),
    ({"gamma.shape": np.ones(2)}, "two sizes"),
    ({"rho": 0.0}, "curvature"),
    ({"rho": 2.0}, "curvature"),
]  # fmt: skip


@pytest.mark.parametrize(("view", "changes", "message"), VIEWS)
def test_views_that_do_not_fit_are_refused(view, changes, message):
    views = dict(model().views_)
    views[view] = at(changes)(views[view])
    with pytest.raises(kofa.FileError, match=message):
        check_model(views, model().posterior_)


@pytest.mark.parametrize(("changes", "message"), POSTERIORS)
def test_posteriors_that_do_not_fit_are_refused(changes, message):
    state = model().posterior_
    with pytest.raises(kofa.FileError, match=message):
        check_model(model().views_, {**state, "n": at(changes)(state["n"])})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"total": shorter}, "shape of its total"),
        ({"left": first(-1.0)}, "too small"),
        ({"n": first(-1.0)}, "too small"),
        ({"mean": first(np.nan)}, "not finite"),
        ({"factors": shorter}, "shape of its factors"),
        ({"shared": math.inf}, "not finite"),
    ],
)
def test_sums_of_what_was_explained_that_do_not_fit_are_refused(changes, message):
    found = model()._found
    check_explained(found.explained, found.posterior, found.basis)
    wrong = {**found.explained, "n": at(changes)(found.explained["n"])}
    with pytest.raises(kofa.FileError, match=message):
        check_explained(wrong, found.posterior, found.basis)


def test_other_views_than_those_of_the_model_are_not_explained():
    found = model()._found
    check_explained({}, found.posterior, found.basis)
    with pytest.raises(kofa.FileError, match="other views"):
        check_explained({"n": found.explained["n"]}, found.posterior, found.basis)


@pytest.mark.parametrize(("views", "n"), [("xy", 0), ("xy", 1), ("x", 2), ("", 0)])
def test_every_view_has_a_posterior(views, n):
    with pytest.raises(kofa.FileError, match="one posterior for each view"):
        by_name(views, (model().posterior_["x"],) * n)


def test_more_factors_than_a_model_has_are_refused_before_they_are_compared():
    basis = Basis(np.zeros((4000, 3)), 0)
    tracemalloc.start()
    with pytest.raises(DamageError, match="no rotation"):
        check_seen(basis, None, None, model().views_, 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22


# ---------------------------------------------------------------- rows and questions


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """The views of a model, and what a file has of its rows and of each view that it is asked."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    tables = {"x": x, "n": np.abs(x * 3).round(), "r": x + rng.normal(size=x.shape)}
    tables |= {"gram": x @ x.T, "c": np.where(x[:, 0] > 0, "u", "v")}
    views = {"x": kofa.Real(kernel="rbf"), "n": kofa.Count(), "r": kofa.Real()}
    views |= {"gram": kofa.Real(kernel="precomputed"), "c": kofa.Categorical()}
    found = kofa.FactorModel(views, 3, outputs=["c"], max_iter=30, tol=1.0).fit(tables)
    path = tmp_path_factory.mktemp("held") / "model.kofa"
    for name in ("n", "r"):
        found.predict({n: t for n, t in tables.items() if n != name}, name)
    write_model(path, found._parameters, found._fitted)
    parts = read_object(path, "model")
    return parts["views"], parts["rows"], parts["questions"]


def test_sound_rows_and_questions_pass(held):
    views, rows, questions = held
    check_rows(rows, views)
    check_rows(None, views)
    assert set(questions) == {"c", "n", "r"}
    for name, one in questions.items():
        check_question(name, one, views)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("x", shorter, "not the same rows"),
        ("x", lambda values: values[:, :2], "rows of 'x' are others"),
        ("x", lambda values: values[:, 0], "rows of 'x' are others"),
        ("x", np.float64(1.0), "same rows"),
        ("x", first(np.inf), "rows of 'x' are not finite"),
        ("n", first(-1.0), "expected counts"),
        ("n", first(0.5), "expected whole counts"),
        ("c", first(2.0), "no classes"),
        ("c", first(0.5), "no classes"),
        ("c", first(-1.0), "no classes"),
    ],
)
def test_rows_that_no_fit_had_are_refused(held, name, change, message):
    views, rows, _ = held
    new = change(rows[name]) if isinstance(change, FunctionType) else change
    with pytest.raises(kofa.FileError, match=message):
        check_rows({**rows, name: new}, views)


def test_rows_of_other_views_are_refused(held):
    views, rows, _ = held
    for wrong in ({}, {"x": rows["x"]}, {**rows, "y": rows["x"]}):
        with pytest.raises(kofa.FileError, match="rows of other views"):
            check_rows(wrong, views)
    none = {name: values[:0] for name, values in rows.items()}
    with pytest.raises(kofa.FileError, match="same rows"):
        check_rows(none, views)


def test_fewer_rows_than_landmarks_of_a_table_of_similarities_are_refused(held):
    views, rows, _ = held
    some = {name: values[:20] for name, values in rows.items()}
    with pytest.raises(kofa.FileError, match="landmarks are no rows"):
        check_rows(some, views)


def without(*names):
    """A dict that lacks some names."""
    return lambda given: {name: one for name, one in given.items() if name not in names}


def another(name, new):
    """A dict in which one value is another."""
    return lambda given: {**given, name: new(given[name]) if callable(new) else new}


def renamed(name, new):
    """A dict in which one value stands under another name."""
    return lambda given: {new if key == name else key: one for key, one in given.items()}


QUESTIONS = [
    ("c", {"state": renamed("x", "c")}, "other views"),
    ("c", {"state": renamed("x", "z")}, "other views"),
    ("r", {"state": renamed("n", "c")}, "other scalings"),
    ("c", {"state": renamed("x", "gram")}, "other bases"),
    ("c", {"state": without("r")}, "other sources"),
    ("c", {"state": {}}, "other sources"),
    ("c", {"bases": {}}, "other bases"),
    ("c", {"bases": another("x", shorter)}, "other landmarks"),
    ("c", {"bases": another("x", np.float64(1.0))}, "other landmarks"),
    ("c", {"bases": another("x", first(np.nan))}, "not finite"),
    ("c", {"bases": another("x", lambda basis: basis[:, :-1])}, "shape"),
    ("c", {"scalings": {}}, "other scalings"),
    ("c", {"scalings": another("n", at({"spread": first(0.0)}))}, "spread is not positive"),
    ("c", {"scalings": another("n", at({"centre": shorter}))}, "shape"),
    ("c", {"scalings": another("n", at({"unit": "value"}))}, "another unit"),
    ("c", {"found.map.sources": without(FACTORS)}, "other sources"),
    ("c", {"found.map.sources": another("x", at({"mean": shorter}))}, "shape"),
    ("c", {"found.map.sources": another("x", at({"unit": 0.0}))}, "unit is not positive"),
    ("c", {"found.map.sources": another("x", at({"features": np.ones((1, 40))}))}, "shape"),
    ("c", {"found.map.weights": without("x")}, "weighs other sources"),
    ("c", {"found.map.weights": another("x", -1.0)}, "a weight is none"),
    ("c", {"found.map.weights": another("x", math.nan)}, "a weight is none"),
    ("c", {"found.map.weights": another("x", 1e300)}, "a weight is none"),
    ("c", {"found.map.projection": shorter}, "shape"),
    ("c", {"found.map.projection": first(np.inf)}, "not finite"),
    ("c", {"found.regression.e": shorter}, "shape"),
    ("c", {"found.regression.e": first(0.0)}, "too small"),
    ("c", {"found.regression.e": np.float64(1.0)}, "shape"),
    ("c", {"found.regression.n_rows": 0}, "no rows"),
    ("c", {"found.regression.mean": shorter}, "shape"),
    ("c", {"found.regression.ratio": first(0.0)}, "too small"),
    ("c", {"found.regression.share": first(0.0)}, "too small"),
    ("c", {"found.regression.scale": first(-1.0)}, "too small"),
    ("c", {"found.regression.coefficients": shorter}, "shape"),
    ("c", {"found.regression.coefficients": first(np.nan)}, "not finite"),
    ("c", {"found.regression.left_out": np.ones((1, 2))}, "shape"),
    ("c", {"found.residuals.noise": first(-1.0)}, "too small"),
    ("c", {"found.residuals.loadings": shorter}, "shape"),
    ("c", {"found.residuals.n_factors": 99}, "other factors"),
    ("c", {"found.residuals.n_factors": -1}, "other factors"),
    ("c", {"found.open_in_fit": shorter}, "shape"),
    ("c", {"found.open_in_fit": first(-1.0)}, "too small"),
    ("c", {"found.calibration": None}, "calibrated as another view"),
    ("c", {"found.calibration.slope": -1.0}, "slope is negative"),
    ("c", {"found.calibration.centre": shorter}, "shape"),
    ("c", {"found.calibration.extra": first(-1.0)}, "too small"),
]


@pytest.mark.parametrize(("name", "changes", "message"), QUESTIONS)
def test_questions_that_do_not_fit_are_refused(held, name, changes, message):
    views, _, questions = held
    with pytest.raises(kofa.FileError, match=message):
        check_question(name, at(changes)(questions[name]), views)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """The views of a model, and how one follows from more rows than are landmarks."""
    x = np.random.default_rng(0).normal(size=(40, 3))
    views = {"x": kofa.Real(kernel="rbf"), "y": kofa.Real()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "AUTO_LANDMARKS", 20)
        found = kofa.FactorModel(views, 3, outputs=["y"], max_iter=30, tol=1.0)
        found.fit({"x": x, "y": np.sin(x)})
    path = tmp_path_factory.mktemp("compared") / "model.kofa"
    write_model(path, found._parameters, found._fitted)
    parts = read_object(path, "model")
    return parts["views"], parts["questions"]["y"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (renamed("x", "y"), "compares other views"),
        (another("x", at({"rows": shorter})), "shape"),
        (another("x", at({"rows": np.ones(40)})), "shape"),
        (another("x", at({"rows": lambda rows: rows[:, :2]})), "shape"),
        (another("x", at({"rows": first(np.nan)})), "not finite"),
        (another("x", at({"mean": shorter})), "shape"),
        (another("x", at({"weights": lambda weights: weights[:, :2]})), "shape"),
        (another("x", at({"features": shorter})), "shape"),
    ],
)
def test_rows_that_do_not_fit_are_refused(compared, changes, message):
    views, asked = compared
    check_question("y", asked, views)
    with pytest.raises(kofa.FileError, match=message):
        check_question("y", at({"compared": changes})(asked), views)


@pytest.mark.parametrize(
    ("name", "message"), [("z", "another view"), ("x", "other views"), ("n", "other views")]
)
def test_questions_for_other_views_are_refused(held, name, message):
    """One that no model has, one through a kernel, and one that tells about what was asked."""
    views, _, questions = held
    with pytest.raises(kofa.FileError, match=message):
        check_question(name, questions["c"], views)


def test_real_values_that_are_calibrated_are_refused(held):
    views, _, questions = held
    calibration = questions["n"].found.calibration
    with pytest.raises(kofa.FileError, match="calibrated as another view"):
        check_question("r", at({"found.calibration": calibration})(questions["r"]), views)


def test_other_factors_of_a_question_are_refused(held):
    views, _, questions = held
    asked = questions["c"]
    for changes in ({"weights.mean": lambda W: W[:, :-1]}, {"weights.mean": first(1e30)}):
        state = {**asked.state, "x": at(changes)(asked.state["x"])}
        with pytest.raises(kofa.FileError):
            check_question("c", replace(asked, state=state), views)
