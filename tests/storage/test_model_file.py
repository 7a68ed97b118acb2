"""Saved and loaded models: the same to the last bit, and clear words where that cannot be."""

from __future__ import annotations

import copy
import io
import os
import pickle
import re
import stat
import sys
import threading
import tracemalloc
import warnings
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache, partial

import joblib
import numpy as np
import pytest
from sklearn.utils.validation import check_is_fitted

import kofa
from kofa.kernels.formulas import Custom
from kofa.storage.archive import read_archive, write_archive

RNG = np.random.default_rng(0)
N = 40
Z = RNG.normal(size=(N, 2))


def signal(n_columns):
    return Z @ RNG.normal(size=(2, n_columns)) + 0.3 * RNG.normal(size=(N, n_columns))


def with_holes(values):
    values = np.array(values, dtype=float)
    values[RNG.random(values.shape) < 0.1] = np.nan
    return values


X = signal(5)
TABLES = {
    "x": X,
    "y": np.sin(signal(2)),
    "positive": np.exp(0.5 * signal(3)),
    "binary": (signal(3) > 0).astype(float),
    "label": np.array(["a", "bb", "ccc"])[np.digitize(Z[:, 0], [-0.5, 0.5])],
    "count": RNG.poisson(np.exp(0.5 * signal(4))).astype(float),
    "gram": X @ X.T,
}
HOLES = {name: with_holes(TABLES[name]) for name in ("x", "y", "positive", "binary", "count")}
KINDS = {
    "x": kofa.Real(),
    "positive": kofa.Positive(),
    "binary": kofa.Binary(),
    "label": kofa.Categorical(),
    "count": kofa.Count(),
}


def real(**options):
    return {"x": kofa.Real(**options), "y": kofa.Real()}


def kernels(kernel):
    return {
        "x": kofa.Real(kernel=kernel),
        "positive": kofa.Positive(kernel=kernel),
        "binary": kofa.Binary(kernel=kernel),
        "count": kofa.Count(kernel=kernel),
        "y": kofa.Real(),
    }


ALL_KERNELS = ("rbf", "linear", "polynomial", "laplacian", "diffusion", "bank")
WITH_HOLES = ("rbf", "laplacian", "diffusion", "bank")
LEARNT = kofa.RBF(relevance="learn")
CASES = {
    "primal": (KINDS, None, TABLES),
    "sparse columns": ({"x": kofa.Real(sparse=True), "count": KINDS["count"]}, None, HOLES),
    "unscaled": ({"x": kofa.Real(scale=False, noise="view")}, None, TABLES),
    "primal, holes": ({name: KINDS[name] for name in KINDS if name in HOLES}, None, HOLES),
    "no outputs": (kernels("bank"), None, TABLES),
    "several kernels": (real(kernel=["rbf", "linear", kofa.Polynomial(2)]), ["y"], TABLES),
    "two alike": (real(kernel=[kofa.RBF(1.0), kofa.RBF(3.0)]), None, TABLES),
    "class of kernel": (real(kernel=kofa.RBF), ["y"], TABLES),
    "diffusion in a mixture": (real(kernel=kofa.Mixture(["rbf", "diffusion"])), ["y"], TABLES),
    "mixture": (real(kernel=kofa.Mixture(["linear", kofa.RBF(2)], weights=[1, 2])), None, TABLES),
    "relevance": (real(kernel=LEARNT), ["y"], TABLES),
    "groups": (real(kernel=replace(LEARNT, groups=tuple("aabbc"))), ["y"], TABLES),
    "linear relevance": (real(kernel=kofa.Linear(relevance=range(5))), ["y"], TABLES),
    "sparse": (real(kernel="rbf", sparse=True), ["y"], TABLES),
    "as published": (real(kernel=LEARNT, sparse=True), ["y"], TABLES),
    "landmarks": (real(kernel="rbf", landmarks=kofa.Landmarks(20, by="kmeans++")), ["y"], TABLES),
    "precomputed": ({"gram": kofa.Real(kernel="precomputed"), "y": kofa.Real()}, ["y"], TABLES),
    "undeclared": (None, None, {"x": TABLES["x"]}),
}
CASES |= {kernel: (kernels(kernel), ["y"], TABLES) for kernel in ALL_KERNELS}
CASES |= {f"{kernel}, holes": (kernels(kernel), ["y"], HOLES) for kernel in WITH_HOLES}
CASES |= {
    f"output {name}": ({**real(kernel="rbf"), name: KINDS[name]}, [name], TABLES)
    for name in ("positive", "binary", "label", "count")
}


@cache
def fitted(case):
    views, outputs, _ = CASES[case]
    published = case == "as published"
    model = kofa.FactorModel(views, 5, outputs=outputs, max_iter=8, as_published=published)
    with quiet():
        return model.fit(tables_of(case))


@contextmanager
def quiet():
    """Short fits do not converge, and odd kernels overflow: neither matters here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def tables_of(case):
    views, _, tables = CASES[case]
    return {name: tables[name] for name in (views or tables)}


def uses(model, data):
    """Everything that a user can ask of a model."""
    yield "factors", model.transform(data, return_cov=True)
    yield "reconstruction", list(model.reconstruct(data).values())
    yield "probabilities", list(model.reconstruct(data, proba=True).values())
    yield "imputed", list(model.impute(data).values())
    yield "score", model.score_samples(data)
    yield "kernel weights", model.kernel_weights()
    for name, view in model.views_.items():
        yield f"weights of {name}", model.weights(name)
        if view.role.output:
            yield f"share in {name}", model.kernel_weights(name)
        asks = {
            "predict": lambda name: model.predict(data, name),
            "std": lambda name: model.predict(data, name, return_std=True),
            "probability": lambda name: model.predict_proba(data, name),
            "quantiles": lambda name: model.predict_quantiles(data, name, [0.1, 0.9]),
            "vectors": model.relevance_vectors,
            "features": model.feature_relevance,
            "selected": model.selected_features,
        }
        for what, ask in asks.items():
            try:
                yield f"{what} of {name}", ask(name)
            except kofa.DataError as error:
                yield f"{what} of {name}", str(error)


def assert_same(one, other, what=""):
    if isinstance(one, list | tuple):
        assert len(one) == len(other), what
        for a, b in zip(one, other, strict=True):
            assert_same(a, b, what)
    elif hasattr(one, "equals"):
        assert one.equals(other), what
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, what
        numbers = one.dtype.kind == "f"
        assert np.array_equal(one, other, equal_nan=numbers), what
    else:
        assert one == other, what


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.kofa"


def saved(model, path):
    model.save(path)
    return kofa.load(path)


# ---------------------------------------------------------------- bit-equal


@pytest.mark.parametrize("case", CASES)
def test_loaded_model_is_the_same_in_every_use(case, path):
    pytest.importorskip("pandas")
    model, data = fitted(case), tables_of(case)
    loaded = saved(model, path)
    check_is_fitted(loaded)
    assert repr(loaded) == repr(model)
    some = {name: table[:8] for name, table in data.items()}
    with quiet():
        pairs = zip(uses(model, some), uses(loaded, some), strict=True)
        for (what, mine), (_, theirs) in pairs:
            assert_same(mine, theirs, f"{case}: {what}")


@pytest.mark.parametrize("case", ["primal", "several kernels", "groups", "sparse"])
def test_loaded_model_has_the_same_attributes(case, path):
    model = fitted(case)
    loaded = saved(model, path)
    assert vars(loaded).keys() == vars(model).keys()
    for name in ("n_factors_", "n_iter_", "converged_", "lower_bound_", "factor_names_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert np.array_equal(loaded.lower_bounds_, model.lower_bounds_)
    assert list(loaded.lower_bound_terms_) == list(model.lower_bound_terms_)
    for term, values in model.lower_bound_terms_.items():
        assert np.array_equal(loaded.lower_bound_terms_[term], values)
    assert loaded.kernels_ == model.kernels_
    assert_same(list(loaded.classes_.values()), list(model.classes_.values()))


@pytest.mark.parametrize("case", CASES)
def test_loaded_model_can_be_saved_again_to_the_same_bytes(case, path, tmp_path):
    again = tmp_path / "again.kofa"
    saved(fitted(case), path).save(again)
    assert path.read_bytes() == again.read_bytes()


def test_loaded_model_can_be_fitted_again(path):
    model = fitted("groups")
    loaded = saved(model, path)
    with quiet():
        loaded.fit(tables_of("groups"))
    assert np.array_equal(loaded.lower_bounds_, model.lower_bounds_)


def test_a_model_that_did_not_converge_is_loaded_without_a_warning(path):
    with pytest.warns(Warning, match="max_iter=2"):
        model = kofa.FactorModel(max_iter=2).fit({"x": X})
    assert not saved(model, path).converged_


# ---------------------------------------------------------------- parameters


def test_parameters_are_restored(path):
    model = kofa.FactorModel(
        real(kernel=["rbf", kofa.RBF(2, groups=[1, 1, "a", None, 2.5])], landmarks=np.int64(30)),
        n_factors=np.int64(4), outputs=("y",), n_init=2, max_iter=7, tol=0.5, random_state=3,
        checkpoint_every=60,
    )  # fmt: skip
    with quiet():
        loaded = saved(model.fit(tables_of("sparse")), path)
    expected = model.get_params() | {"outputs": ["y"]}
    assert loaded.get_params() == expected
    assert loaded.views["x"].kernel[1].groups == (1, 1, "a", None, 2.5)


def test_a_seed_that_counts_as_a_number_is_saved_as_one(path):
    assert saved(kofa.FactorModel(random_state=True).fit({"x": X}), path).random_state == 1


def test_what_belongs_to_this_program_is_not_saved(path, tmp_path):
    model = kofa.FactorModel(
        callback=lambda _: None, random_state=np.random.default_rng(1), checkpoint=tmp_path / "c"
    ).fit({"x": X})
    loaded = saved(model, path)
    assert (loaded.callback, loaded.random_state, loaded.checkpoint) == (None, None, None)


# ---------------------------------------------------------------- names and labels


NAMES = {
    "words": list("abcde"),
    "numbers": [7, 2.5, -3, True, None],
    "tuples": [("a", 1), ("a", 2), ("b", 1), ("b", 2.0), ("c", None)],
    "signs": ["é", "日本", "\ud800", "", 'a"b\\'],
}


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_column_and_sample_names_are_kept(kind, kernel, path):
    pd = pytest.importorskip("pandas")
    columns = pd.Index(NAMES[kind], tupleize_cols=False, dtype=object)
    samples = pd.Index([f"s{i}" for i in range(N)])
    frame = pd.DataFrame(X, index=samples, columns=columns)
    model = kofa.FactorModel({"x": kofa.Real(kernel=kernel)}, max_iter=50, tol=1).fit({"x": frame})
    loaded = saved(model, path)
    assert loaded.views_["x"].inputs == model.views_["x"].inputs
    assert list(map(type, loaded.views_["x"].inputs)) == list(map(type, NAMES[kind]))
    assert loaded.views_["x"].outputs == model.views_["x"].outputs
    assert_same(model.reconstruct({"x": frame}, "x"), loaded.reconstruct({"x": frame}, "x"))


@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "UTC"])
def test_dates_as_names_of_samples_are_kept(zone, path):
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2024-03-25", periods=N, freq="D", tz=zone)
    frame = pd.DataFrame(X, index=days)
    views = {"x": kofa.Real(kernel="rbf", sparse=True)}
    model = kofa.FactorModel(views, max_iter=50, tol=1).fit({"x": frame})
    loaded = saved(model, path)
    assert loaded.views_["x"].outputs == model.views_["x"].outputs
    assert loaded.views_["x"].outputs[0].tz == model.views_["x"].outputs[0].tz
    assert_same(model.relevance_vectors("x"), loaded.relevance_vectors("x"))


CODES = np.arange(N) % 3
LABELS = {
    "words": lambda _: np.array(["one", "two", "three"])[CODES],
    "objects": lambda _: np.array(["one", "two", 3], dtype=object)[CODES],
    "whole": lambda _: CODES,
    "small": lambda _: CODES.astype(np.int8),
    "truth": lambda _: CODES > 0,
    "floats": lambda _: CODES / 2,
    "tuples": lambda _: [[("a", 1), ("b", 2), ("c",)][c] for c in CODES],
    "series": lambda pd: pd.Series(CODES, name="label"),
    "categories": lambda pd: pd.Series(pd.Categorical.from_codes(CODES, ["lo", "mid", "hi"], True)),
    "numbered categories": lambda pd: pd.Series(CODES).astype("category"),
    "string": lambda pd: pd.Series(np.array(["x", "y", "z"])[CODES]).astype("string"),
    "words of pandas": lambda pd: pd.Series(np.array(["x", "y", "z"])[CODES].tolist()),
    "nullable": lambda pd: pd.Series(CODES).astype("Int64"),
    "nullable truth": lambda pd: pd.Series(CODES > 0).astype("boolean"),
    "tuple categories": lambda pd: pd.Series(
        pd.Categorical.from_codes(CODES, pd.Index([("a", 1), ("b",), ()], tupleize_cols=False))
    ),
    "dates": lambda pd: pd.Series(pd.to_datetime(["2024-01", "2024-02", "2025-01"])[CODES]),
}  # fmt: skip


def test_room_for_much_longer_labels_is_not_kept(path):
    """It would be taken for each prediction; a stranger's file could take all there is."""
    labels = TABLES["label"].astype("U9999")
    views = {"x": kofa.Real(), "label": kofa.Categorical()}
    model = kofa.FactorModel(views, tol=1.0).fit({"x": Z, "label": labels})
    model.save(path)
    predicted = kofa.load(path).predict({"x": Z}, "label")
    assert predicted.tolist() == model.predict({"x": Z}, "label").tolist()


@pytest.mark.parametrize("kind", LABELS)
def test_labels_come_back_in_their_type(kind, path):
    pd = pytest.importorskip("pandas")
    labels = LABELS[kind](pd)
    named = hasattr(labels, "iloc")
    x = pd.DataFrame(X) if named else X
    with quiet():
        model = kofa.FactorModel({"x": kofa.Real(), "c": kofa.Categorical()}, 2, max_iter=4)
        model.fit({"x": x, "c": labels})
    loaded = saved(model, path)
    mine, theirs = model.predict({"x": x}, "c"), loaded.predict({"x": x}, "c")
    assert mine.dtype == theirs.dtype
    assert mine.tolist() == theirs.tolist()
    assert list(map(type, mine.tolist())) == list(map(type, theirs.tolist()))
    assert_same(model.predict_proba({"x": x}, "c"), loaded.predict_proba({"x": x}, "c"))
    assert_same(model.transform({"c": labels}), loaded.transform({"c": labels}))


class Colour(Enum):
    RED = 1


def odd(pd):
    """Names and labels of every type that people have, as functions of a number below 100."""
    return {
        "huge": lambda i: 10**30 + i, "wide": lambda i: 2**63 + i,
        "date": lambda i: date(2020, 1, 1) + timedelta(i), "time": lambda i: time(i % 24, i),
        "datetime": lambda i: datetime(2020, 1, 1, i % 24, i), "timedelta": timedelta,
        "timestamp": lambda i: pd.Timestamp(2020, 1, 1) + pd.Timedelta(days=i),
        "zone": lambda i: pd.Timestamp(2020, 1, 1, tz="Asia/Tokyo") + pd.Timedelta(days=i),
        "far": lambda i: pd.Timestamp(np.datetime64(f"{3000 + i}-01-01", "s")),
        "Timedelta": lambda i: pd.Timedelta(days=i),
        "period": lambda i: pd.Period(str(2000 + i), freq="Y"),
        "interval": lambda i: pd.Interval(i, i + 1), "decimal": lambda i: Decimal(i) / 8,
        "fraction": lambda i: Fraction(i, 7), "tuple": lambda i: ("a", i),
        "ragged": lambda i: ("a",) * (i % 3 + 1) + (i,), "nested": lambda i: (("a", i), "b"),
        "levels": lambda i: (*range(100), i), "set": lambda i: frozenset([i]),
        "bytes": lambda i: b"%d" % i, "int8": np.int8, "float32": lambda i: np.float32(i) / 3,
        "str_": lambda i: np.str_(f"a{i}"), "datetime64": lambda i: np.datetime64(i, "D"),
        "longdouble": lambda i: np.longdouble(i), "complex": lambda i: complex(i, 1),
        "half a pair": lambda i: f"\ud800{i}", "null": lambda i: f"a\0{i}",
        "end": lambda i: f"{i}\0", "long": lambda i: "x" * 5000 + str(i),
        "escape": lambda i: f"\x1b[3{i}m\n", "infinite": lambda i: float(i) if i else np.inf,
        "minus": lambda i: i or -0.0, "colour": lambda i: str(i) if i else Colour.RED,
        "type": lambda i: i or int, "truth": lambda i: f"t{i}" if i else True,
    }  # fmt: skip


slow = partial(pytest.param, marks=pytest.mark.slow)
KINDS_OF_NAMES = list(odd(None))


def objects(values):
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


@pytest.mark.parametrize(
    "role",
    ["columns", "labels", slow("samples"), slow("categories")],
)
@pytest.mark.parametrize("kind", KINDS_OF_NAMES)
def test_odd_names_and_labels_come_back_or_are_refused(kind, role, path):
    pd = pytest.importorskip("pandas")
    values = [odd(pd)[kind](i) for i in range(20)]
    index = partial(pd.Index, dtype=object, tupleize_cols=False)
    x = pd.DataFrame(X[:20])
    labels = pd.Series(objects([values[i % 3] for i in range(20)]), dtype=object)
    if role == "columns":
        x.columns = index(objects(values[:5]))
    elif role == "samples":
        x.index = index(objects(values))
    elif role == "categories":
        codes = np.arange(20) % 3
        labels = pd.Series(pd.Categorical.from_codes(codes, index(objects(values[:3]))))
    views = {"x": kofa.Real(kernel="rbf" if role == "samples" else None)}
    data = {"x": x}
    if role in ("labels", "categories"):
        views, data = {"c": kofa.Categorical()}, {"c": labels}
    with quiet():
        model = kofa.FactorModel(views, 2, max_iter=2).fit(data)
    refusal, loaded = "", None
    try:
        model.save(path)
    except kofa.FileError as error:
        refusal = str(error)
    else:
        loaded = kofa.load(path)
    if loaded is None:
        assert re.search(r"rename it to a string|is code|could not be read again", refusal)
        assert not path.exists()
        return
    for name, view in model.views_.items():
        again = loaded.views_[name]
        assert again.inputs == view.inputs
        assert again.outputs == view.outputs
        assert again.dtype == view.dtype or view.classes is None
        assert view.classes is None or again.classes.tolist() == view.classes.tolist()
    with quiet():
        assert_same(model.transform(data), loaded.transform(data))


# ---------------------------------------------------------------- what cannot be saved


def own_kernel(A, B):
    return A @ B.T


@pytest.mark.parametrize("kernel", [own_kernel, Custom(own_kernel)])
def test_own_kernels_cannot_be_saved(kernel, path):
    model = kofa.FactorModel(real(kernel=kernel)).fit(tables_of("sparse"))
    with pytest.raises(kofa.FileError, match=r"View 'x': a kernel of your own .* joblib"):
        model.save(path)
    assert not path.exists()


def test_names_that_are_no_words_cannot_be_saved(path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=pd.period_range("2020", periods=5, freq="Y"))
    model = kofa.FactorModel().fit({"x": frame})
    with pytest.raises(kofa.FileError, match=r"Period\('2020'.* 'views', 'x', inputs; rename"):
        model.save(path)


@pytest.mark.parametrize("kernel", ["rbf", "bank", kofa.RBF("median"), kofa.Laplacian("median")])
def test_widths_beyond_those_that_can_be_declared_are_kept(kernel, path):
    """They are learnt where the columns are not scaled."""
    x, y = 1e120 * X, X[:, :1]
    views = {"x": kofa.Real(kernel=kernel, scale=False), "y": kofa.Real()}
    with quiet():
        model = kofa.FactorModel(views, 2, outputs=["y"], max_iter=3).fit({"x": x, "y": y})
        loaded = saved(model, path)
    assert "e+12" in repr(model.kernels_["x"])
    assert loaded.kernels_ == model.kernels_
    assert_same(model.predict({"x": x}, "y"), loaded.predict({"x": x}, "y"))


def test_names_that_are_not_themselves_cannot_be_saved(path):
    pd = pytest.importorskip("pandas")
    columns = pd.Index(["a", "b", "c", "d", np.nan], dtype=object)
    model = kofa.FactorModel(tol=1.0).fit({"x": pd.DataFrame(X, columns=columns)})
    with pytest.raises(kofa.FileError, match=r"got nan \(float\) in 'views', 'x'"):
        model.save(path)


@pytest.mark.parametrize(
    "changes", [{"max_iter": "many"}, {"n_init": 0}, {"views": {"x": "real"}}, {"tol": -1.0}]
)
def test_what_would_not_load_is_not_saved(changes, path):
    model = kofa.FactorModel({"x": kofa.Real()}, tol=1.0).fit({"x": X}).set_params(**changes)
    with pytest.raises(kofa.FileError, match="cannot be written, because it could not be read"):
        model.save(path)
    assert not path.exists()


def test_many_iterations_take_no_more_than_they_take_in_the_file(path):
    fitted("undeclared").save(path)
    manifest, arrays = read_archive(path)
    for name in arrays:
        if name.startswith(("path_values", "path_factors_changed")):
            arrays[name] = np.repeat(arrays[name][:1], 200_000, axis=0)
    write_archive(path, manifest, arrays)
    tracemalloc.start()
    loaded = kofa.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert loaded.n_iter_ == 200_000
    assert peak < path.stat().st_size + 2**22


def test_a_hundred_thousand_column_names(path):
    pd = pytest.importorskip("pandas")
    names = [f"chr1:{n}:A:G" for n in range(100_000)]
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(4, len(names))), columns=names)
    with quiet():
        model = kofa.FactorModel(n_factors=1, max_iter=2).fit({"x": x})
    assert saved(model, path).views_["x"].inputs == tuple(names)


def test_names_of_views_must_be_words(path):
    model = kofa.FactorModel().fit({1: X})
    with pytest.raises(kofa.FileError, match=r"got 1 \(int\) in 'views'; rename"):
        model.save(path)


def test_a_model_without_fit_cannot_be_saved(path):
    with pytest.raises(ValueError, match="not fitted"):
        kofa.FactorModel().save(path)


# ---------------------------------------------------------------- where it is written


def test_saving_needs_a_folder(tmp_path):
    model = fitted("undeclared")
    with pytest.raises(kofa.FileError, match=r"no folder .*nowhere'; create it"):
        model.save(tmp_path / "nowhere" / "model.kofa")
    with pytest.raises(kofa.FileError, match="is a folder: name a file in it"):
        model.save(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do all")
def test_saving_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(kofa.FileError, match="permission denied"):
        fitted("undeclared").save(tmp_path / "model.kofa")


@pytest.mark.skipif(sys.platform == "win32", reason="links are for administrators")
def test_saving_writes_through_links_and_keeps_the_usual_rights(tmp_path):
    real_file, link = tmp_path / "real.kofa", tmp_path / "link.kofa"
    link.symlink_to(real_file)
    fitted("undeclared").save(str(link))
    assert link.is_symlink()
    (tmp_path / "plain").touch()
    assert stat.S_IMODE(real_file.stat().st_mode) == stat.S_IMODE(
        (tmp_path / "plain").stat().st_mode
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.kofa", "plain", "real.kofa"]


@pytest.mark.skipif(sys.platform == "win32", reason="rights are the folder's")
def test_a_model_saved_again_keeps_its_rights(path):
    fitted("rbf").save(path)
    path.chmod(0o600)
    fitted("rbf").save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_saving_again_clears_what_a_killed_save_left(path):
    left = path.with_name(".model.kofa.0123456789ab.tmp")
    left.write_text("half of a model", encoding="utf-8")
    fitted("undeclared").save(path)
    assert list(path.parent.iterdir()) == [path]


def test_a_failure_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    fitted("undeclared").save(path)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(kofa.FileError, match="no space left on device"):
        fitted("primal").save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_an_interrupt_leaves_nothing(path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(np.lib.format, "write_array", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fitted("undeclared").save(path)
    assert list(path.parent.iterdir()) == []


def test_equal_models_are_equal_bytes(path, tmp_path):
    model, other = fitted("primal"), tmp_path / "other.kofa"
    model.save(path)
    model.transform(tables_of("primal"))  # what is computed on the way is not stored
    model.save(other)
    assert path.read_bytes() == other.read_bytes()


def test_saving_while_others_load(path):
    model = fitted("rbf")
    model.save(path)
    stop, failures = threading.Event(), []

    def load_again_and_again():
        while not stop.is_set():
            try:
                kofa.load(path)
            except Exception as error:  # whatever it is, it is the failure
                failures.append(error)

    reader = threading.Thread(target=load_again_and_again)
    reader.start()
    for _ in range(10):
        model.save(path)
    stop.set()
    reader.join()
    assert failures == []


# ---------------------------------------------------------------- rows of the fit

ASKED = ("primal", "primal, holes", "no outputs", "several kernels", "output label", "rbf, holes")


def answered(model, data, views):
    """What is asked of some views from the others, and the same with what is known of them."""
    for name in views:
        rest = {other: table for other, table in data.items() if other != name}
        yield f"prediction of {name}", model.predict(rest, name)
        if model.views_[name].layer.has("probability"):
            yield f"probabilities of {name}", model.predict_proba(rest, name)
        else:
            yield f"quantiles of {name}", model.predict_quantiles(rest, name, [0.1, 0.9])


def of_columns(model):
    """The views that are predicted by column."""
    return [name for name, view in model.views_.items() if view.likelihood is not None]


@pytest.mark.parametrize("case", ASKED)
def test_a_view_that_was_not_asked_before_is_predicted_the_same_from_a_file(case, path):
    model, data = fitted(case), tables_of(case)
    fresh = copy.deepcopy(model)
    fresh._fitted.questions.asked.clear()
    loaded = saved(fresh, path)
    assert not loaded._fitted.questions.asked
    with quiet():
        pairs = zip(
            answered(model, data, of_columns(model)),
            answered(loaded, data, of_columns(model)),
            strict=True,
        )
        for (what, mine), (_, theirs) in pairs:
            assert_same(mine, theirs, what)
        assert_same(list(model.impute(data).values()), list(loaded.impute(data).values()))


@pytest.mark.parametrize("case", ASKED)
def test_without_rows_a_model_answers_what_it_was_asked_before(case, path):
    model, data = copy.deepcopy(fitted(case)), tables_of(case)
    model._fitted.questions.asked.clear()
    views = of_columns(model)
    with quiet():
        before = list(answered(model, data, views[:1]))
    model.save(path, rows=False)
    loaded = kofa.load(path)
    with quiet():
        for (what, mine), (_, theirs) in zip(
            before, answered(loaded, data, views[:1]), strict=True
        ):
            assert_same(mine, theirs, what)
        for other in views[1:]:
            with pytest.raises(kofa.DataError, match=rf"saved without the rows.*{other!r}.*asked"):
                loaded.predict({n: t for n, t in data.items() if n != other}, other)
        assert_same(model.transform(data), loaded.transform(data))
        assert_same(list(model.reconstruct(data).values()), list(loaded.reconstruct(data).values()))


def test_outputs_are_asked_in_fit(path):
    model = fitted("output label")
    fresh = kofa.FactorModel(**model.get_params())
    with quiet():
        fresh.fit(tables_of("output label"))
    fresh.save(path, rows=False)
    data = {"x": TABLES["x"]}
    assert_same(fresh.predict(data), kofa.load(path).predict(data))


def test_views_that_fit_was_told_of_are_answered_without_rows(path):
    data = {"x": X, "y": X[:, :2] + 1.0}
    model = kofa.FactorModel(n_factors=2).fit(data, predict="y")
    model.save(path, rows=False)
    loaded = kofa.load(path)
    assert_same(model.predict({"x": X}, "y"), loaded.predict({"x": X}, "y"))
    with pytest.raises(kofa.DataError, match="asked for 'y'"):
        loaded.predict({"y": X[:, :2]}, "x")


def test_without_rows_and_questions_only_the_factors_answer(path):
    model = kofa.FactorModel(n_factors=2).fit({"x": X, "y": X[:, :2]})
    model.save(path, rows=False)
    loaded = kofa.load(path)
    with pytest.raises(kofa.DataError, match=r"view 'y'; save it with rows=True"):
        loaded.predict({"x": X}, "y")
    with pytest.raises(kofa.DataError, match="save it with rows=True"):
        loaded.impute({"x": np.where(X > 2.0, np.nan, X)})
    assert loaded.reconstruct({"x": X}, "y").shape == (N, 2)


def test_a_model_without_rows_is_saved_again_as_it_is(path, tmp_path):
    model = copy.deepcopy(fitted("primal"))
    model.predict({"x": X}, "count")
    model.save(path, rows=False)
    again = tmp_path / "again.kofa"
    kofa.load(path).save(again)
    assert path.read_bytes() == again.read_bytes()


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_without_rows_no_row_of_a_table_is_in_the_file(kernel, path):
    """Neither as it was given nor scaled, nor what the regression left of it."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(60, 8)), rng.normal(size=(60, 5))
    y += x[:, :5]
    model = kofa.FactorModel({"x": kofa.Real(kernel=kernel), "y": kofa.Real()}, 2, max_iter=5)
    with quiet():
        model.fit({"x": x, "y": y})
    asked = ["y"] if kernel else ["x", "y"]
    for name in asked:
        model.predict({"x": x} if name == "y" else {"y": y}, name)
    for rows in (True, False):
        model.save(path, rows=rows)
        arrays = [a for a in read_archive(path)[1].values() if a.ndim == 2 and a.dtype.kind == "f"]
        scaled = model.views_["y"].encoder.encode(y)
        for table in (y, scaled) if kernel else (x, y, scaled):
            inside = any(
                a.shape[1] == table.shape[1] and (a == table[0]).all(axis=1).any() for a in arrays
            )
            assert inside <= rows
        assert any(a.shape == y.shape and (a == y).all() for a in arrays) == rows
        residuals = [q.found.residuals for q in kofa.load(path)._fitted.questions.asked.values()]
        assert rows or all(one.loadings.shape[1] <= len(one.noise) for one in residuals)


# ---------------------------------------------------------------- size


def arrays_of(value, found):
    """The memory of all arrays in an object, each once."""
    if isinstance(value, np.ndarray):
        found[value.__array_interface__["data"][0], value.shape] = value.nbytes
    elif isinstance(value, dict):
        for item in value.values():
            arrays_of(item, found)
    elif isinstance(value, list | tuple):
        for item in value:
            arrays_of(item, found)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            arrays_of(getattr(value, name, None), found)
    return sum(found.values())


@pytest.mark.parametrize("kernel", [None, "rbf", ["rbf", "laplacian"]])
def test_file_is_not_much_larger_than_its_arrays(kernel, path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 10))
    x = pd.DataFrame(z @ rng.normal(size=(10, 500)) + rng.normal(size=(200, 500)))
    x = x.rename(columns="gene{}".format)
    y = pd.DataFrame(z @ rng.normal(size=(10, 50)) + rng.normal(size=(200, 50)))
    views = {"x": kofa.Real(kernel=kernel), "y": kofa.Real()}
    with quiet():
        model = kofa.FactorModel(views, n_factors=10, max_iter=3).fit({"x": x, "y": y})
    model.save(path)
    found = (model.views_, model.posterior_, vars(model._fitted.questions))
    assert path.stat().st_size <= 1.2 * arrays_of(found, {})


def test_landmarks_of_several_kernels_are_stored_once(path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 200))
    views = {"x": kofa.Real(kernel=["rbf", "laplacian", "linear"])}
    with quiet():
        model = kofa.FactorModel(views, n_factors=2, max_iter=2).fit({"x": x})
    model.save(path)
    assert path.stat().st_size < 3 * x.nbytes  # with the rows of the fit in the units of the user
    model.save(path, rows=False)
    assert path.stat().st_size < 2 * x.nbytes


# ---------------------------------------------------------------- other ways


@pytest.mark.parametrize("case", ["primal", "several kernels", "sparse", "precomputed"])
def test_pickle_joblib_and_copies_are_the_same_model(case):
    model, data = fitted(case), tables_of(case)
    file = io.BytesIO()
    joblib.dump(model, file)
    others = (pickle.loads(pickle.dumps(model)), joblib.load(file), copy.deepcopy(model))
    for other in others:
        with quiet():
            assert_same(model.transform(data), other.transform(data))
            assert_same(
                list(model.reconstruct(data).values()), list(other.reconstruct(data).values())
            )


def test_own_kernels_can_be_pickled():
    model = kofa.FactorModel(real(kernel=own_kernel)).fit(tables_of("sparse"))
    other = pickle.loads(pickle.dumps(model))
    assert_same(model.transform(tables_of("sparse")), other.transform(tables_of("sparse")))


def test_loading_imports_nothing(path):
    fitted("primal").save(path)
    before = set(sys.modules)
    kofa.load(path)
    assert set(sys.modules) == before


def test_long_declarations_are_shortened_for_people(path):
    relevance = np.linspace(0.1, 1.0, 50_000)
    model = fitted("groups")
    views = {"x": kofa.Real(kernel=kofa.Linear(relevance=relevance.tolist())), "y": kofa.Real()}
    model = copy.copy(model).set_params(views=views)
    assert saved(model, path).views == views
    assert len(read_archive(path)[0]["about"]["views"]["x"]) < 5000


def test_the_file_tells_people_what_it_is(path):
    fitted("groups").save(path)
    manifest, _ = read_archive(path)
    assert manifest["format"] == "kofa"
    assert manifest["kofa_version"] == kofa.__version__
    assert manifest["about"]["views"]["x"].startswith("Real(kernel=RBF(width='auto'")
    assert manifest["about"]["outputs"] == ["y"]


def test_variances_of_weights_are_worked_out_and_not_stored(path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 500)) + rng.normal(size=(40, 500))
    x[:5, :200] = np.nan
    model = kofa.FactorModel({"x": kofa.Real()}, n_factors=3).fit({"x": x})
    model.save(path)
    arrays = read_archive(path)[1].values()
    weights, loaded = (one.posterior_["x"].weights for one in (model, kofa.load(path)))
    assert sum(array.shape == weights.mean.shape for array in arrays) == 1
    assert np.array_equal(np.asarray(loaded.scales), np.asarray(weights.scales))
