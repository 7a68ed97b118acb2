"""A fit that was broken off ends where it would have ended."""

from __future__ import annotations

import copy
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import kofa
from kofa.errors import DeclarationError, FileError
from kofa.inference import fit
from kofa.inference.start import spectral
from kofa.kernels.formulas import Custom
from kofa.storage.archive import read_archive, write_archive
from kofa.storage.checkpoint import Checkpoint, key_of_fit
from kofa.storage.model_file import read_object

rng = np.random.default_rng(0)
Z = rng.normal(size=(80, 3))
X = Z @ rng.normal(size=(3, 8)) + 0.3 * rng.normal(size=(80, 8))
Y = np.tanh(Z[:, :2]) + 0.1 * rng.normal(size=(80, 2))
LABELS = np.array(["low", "high"])[(Z[:, 0] > 0).astype(int)]
HOLES = np.where(rng.random(X.shape) < 0.1, np.nan, X)
# A kernel that some samples lack: factors of complete kernels are known after one iteration.
LACKING = X[:, :3].copy()
LACKING[:20] = np.nan

FITS = {
    "two tables": ({"x": kofa.Real(), "y": kofa.Real()}, {"x": HOLES, "y": Y}, {}),
    "three starts": ({"x": kofa.Real()}, {"x": X}, {"n_init": 3, "random_state": 5}),
    "fewer factors": ({"x": kofa.Real(sparse=True)}, {"x": X}, {}),
    "output": (
        {"x": kofa.Real(kernel="rbf"), "l": kofa.Real(kernel="rbf"), "y": kofa.Real()},
        {"x": X, "l": LACKING, "y": Y},
        {"outputs": ["y"]},
    ),
    "labels": (
        {
            "x": kofa.Real(kernel=kofa.Mixture(["linear", "rbf", "laplacian"])),
            "l": kofa.Real(kernel="rbf"),
            "c": kofa.Categorical(),
        },
        {"x": HOLES, "l": LACKING, "c": LABELS},
        {"outputs": ["c"]},
    ),
    "landmarks at random": (
        {
            "x": kofa.Real(kernel="rbf", landmarks=20),
            "l": kofa.Real(kernel="rbf", landmarks=20),
            "y": kofa.Real(),
        },
        {"x": X, "l": LACKING, "y": Y},
        {"outputs": ["y"], "random_state": 3},
    ),
}


def model_of(name, **more):
    views, data, options = FITS[name]
    return kofa.FactorModel(views, **{**options, **more}), data


@cache
def whole(name):
    """A fit that nothing broke off; not to be changed."""
    model, data = model_of(name)
    return model.fit(data)


class BrokenOffError(Exception):
    pass


def breaking(after):
    """A callback that breaks a fit off, as Ctrl-C would, after so many iterations in all."""
    seen = []

    def callback(iteration):
        seen.append(iteration)
        if len(seen) == after:
            raise BrokenOffError

    return callback


def assert_same(one, other):
    assert one.n_iter_ == other.n_iter_
    np.testing.assert_allclose(one.lower_bounds_, other.lower_bounds_, rtol=1e-12)
    assert list(one.posterior_) == list(other.posterior_)
    for name, a in one.posterior_.items():
        b = other.posterior_[name]
        np.testing.assert_allclose(a.weights.mean, b.weights.mean, rtol=0, atol=1e-10)
        np.testing.assert_allclose(a.tau.mean, b.tau.mean, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:The bound was still growing")
@pytest.mark.parametrize(
    ("name", "every"),
    [*((name, 0.0) for name in FITS), ("two tables", 1000.0), ("landmarks at random", 1000.0)],
)
def test_broken_fit_ends_as_if_it_had_not_been(name, every, tmp_path):
    _, data = model_of(name)
    options = {"checkpoint": tmp_path / "c", "checkpoint_every": every}
    for after in (1, 2, 2):  # broken off three times, each time a little later
        broken, _ = model_of(name, callback=breaking(after), **options)
        with pytest.raises(BrokenOffError):
            broken.fit(data, resume=True)
    assert_same(model_of(name, **options)[0].fit(data, resume=True), whole(name))


def test_fit_that_is_over_is_not_made_again(tmp_path):
    model, data = model_of("three starts", checkpoint=tmp_path / "c")
    model.fit(data)
    again, _ = model_of("three starts", checkpoint=tmp_path / "c", callback=breaking(1))
    assert_same(again.fit(data, resume=True), model)  # the callback is never called


@pytest.mark.parametrize("last", [2, 5])  # the latter where fewer factors are tried
def test_fit_stopped_by_its_callback_can_go_on(last, tmp_path):
    _, data = model_of("two tables")
    stop = {"callback": lambda iteration: iteration.n_iter == last, "checkpoint": tmp_path / "c"}
    stopped = model_of("two tables", **stop)[0].fit(data)
    assert last <= stopped.n_iter_ <= last + 3 < whole("two tables").n_iter_
    again = model_of("two tables", checkpoint=tmp_path / "c")[0].fit(data, resume=True)
    assert_same(again, whole("two tables"))


@pytest.mark.parametrize("last", [3, 6])
def test_fit_stopped_where_a_rotation_is_due_goes_on_to_the_same_result(last, tmp_path):
    _, data = model_of("two tables")
    options = {"tol": 1e-6, "checkpoint": tmp_path / "c"}
    model_of("two tables", callback=lambda i: i.n_iter == last, **options)[0].fit(data)
    again = model_of("two tables", **options)[0].fit(data, resume=True)
    assert_same(again, model_of("two tables", tol=1e-6)[0].fit(data))


@pytest.mark.filterwarnings("ignore:The bound was still growing")
@pytest.mark.parametrize("name", ["two tables", "three starts", "labels"])
def test_fit_that_ran_out_of_iterations_can_be_given_more(name, tmp_path):
    _, data = model_of(name)
    short, _ = model_of(name, max_iter=4, checkpoint=tmp_path / "c")
    assert not short.fit(data).converged_
    more = short.set_params(max_iter=1000).fit(data, resume=True)
    assert more.converged_
    assert more.lower_bound_ == pytest.approx(whole(name).lower_bound_, rel=1e-9)


@pytest.mark.filterwarnings("ignore:The bound was still growing")
@pytest.mark.parametrize("after", [3, 40])
def test_starts_that_are_given_more_iterations_may_be_broken_off_again(after, tmp_path):
    """Each continues as itself, not as another one."""
    _, data = model_of("three starts")
    options = {"checkpoint": tmp_path / "c", "checkpoint_every": 0.0}
    model_of("three starts", max_iter=4, **options)[0].fit(data)
    broken, _ = model_of("three starts", callback=breaking(after), **options)
    with pytest.raises(BrokenOffError):
        broken.fit(data, resume=True)
    again = model_of("three starts", **options)[0].fit(data, resume=True)
    assert again.lower_bound_ == pytest.approx(whole("three starts").lower_bound_, rel=1e-9)


@pytest.mark.filterwarnings("ignore:The bound was still growing")
def test_fit_that_ended_with_pruning_can_be_given_more(tmp_path, monkeypatch):
    # Of the directions above the noise none goes: it starts with all.
    monkeypatch.setattr(fit, "spectral", lambda engine, k, rng, _: spectral(engine, k, rng))
    model, data = model_of("two tables")
    model.set_params(n_factors=7).fit(data)
    pruned = int(np.flatnonzero(model.factors_changed_)[0])
    options = {"n_factors": 7, "max_iter": pruned, "checkpoint": tmp_path / "c"}
    short, _ = model_of("two tables", **options)
    short.fit(data)
    again, _ = model_of("two tables", **options)
    assert_same(again.fit(data, resume=True), short)
    assert_same(short.set_params(max_iter=1000).fit(data, resume=True), model)


def test_leftovers_of_a_killed_fit_are_cleared_away(tmp_path):
    others = [".c.csv.0123456789ab.tmp", ".d.0123456789ab.tmp"]
    (tmp_path / ".c.0123456789ab.tmp").write_text("half of a", encoding="utf-8")
    for name in others:
        (tmp_path / name).write_text("not ours", encoding="utf-8")
    model, data = model_of("two tables", checkpoint=tmp_path / "c")
    model.fit(data)
    assert sorted(p.name for p in tmp_path.iterdir()) == [*others, "c"]


def test_callback_sees_only_what_is_new(tmp_path):
    model, data = model_of("two tables", callback=breaking(2), checkpoint=tmp_path / "c")
    with pytest.raises(BrokenOffError):
        model.fit(data)
    seen = []
    model.set_params(callback=seen.append).fit(data, resume=True)
    assert [i.n_iter for i in seen] == list(range(2, model.n_iter_ + 1))


def test_resume_without_a_file_begins_anew(tmp_path):
    model, data = model_of("two tables", checkpoint=tmp_path / "c")
    assert_same(model.fit(data, resume=True), whole("two tables"))


def test_without_resume_the_file_is_written_over(tmp_path):
    path = tmp_path / "c"
    model_of("three starts", checkpoint=path)[0].fit(FITS["three starts"][1])
    model, data = model_of("two tables", checkpoint=path)
    assert_same(model.fit(data), whole("two tables"))


def in_types(number, label, index):
    """Counts and labels of the same values, in some types."""
    counts = pd.DataFrame(np.round(5 * np.abs(X)), columns=list("abcdefgh")).astype(number)
    return {"x": counts.set_axis(index, axis=0), "c": pd.Series(LABELS, index).astype(label)}


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("types", [("int64", "string"), ("Int64", object), ("float32", "category")])
def test_resume_takes_the_same_values_in_other_types(types, engine, tmp_path):
    views = {"x": kofa.Count(), "c": kofa.Categorical()}
    model = kofa.FactorModel(views, engine=engine, checkpoint=tmp_path / "c", max_iter=5)
    with pytest.warns(ConvergenceWarning):
        model.fit(in_types(float, object, pd.RangeIndex(80)))
    bounds = model.lower_bounds_
    model.set_params(max_iter=1000).fit(in_types(*types, pd.Index(list(range(80)))), resume=True)
    np.testing.assert_array_equal(model.lower_bounds_[:5], bounds)


def changed_data(model, data):
    return model, {**data, "x": data["x"] + 1e-9}


def changed_settings(model, data):
    return model.set_params(n_factors=4), data


def changed_view(model, data):
    return model.set_params(views={**model.views, "x": kofa.Real(scale=False)}), data


def changed_seed(model, data):
    return model.set_params(random_state=1), data


@pytest.mark.parametrize("change", [changed_data, changed_settings, changed_view, changed_seed])
def test_resume_refuses_another_fit(change, tmp_path):
    model, data = model_of("two tables", checkpoint=tmp_path / "c")
    model.fit(data)
    model, data = change(model, data)
    with pytest.raises(FileError, match="other data or settings"):
        model.fit(data, resume=True)


def test_resume_refuses_a_damaged_file(tmp_path):
    path = tmp_path / "c"
    model, data = model_of("two tables", checkpoint=path)
    model.fit(data)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(FileError, match=str(path)):
        model.fit(data, resume=True)


def broken_off(name, path):
    """A fit that was broken off, its data, and what its checkpoint holds."""
    model, data = model_of(name, checkpoint=path, callback=breaking(4))
    with pytest.raises(BrokenOffError):
        model.fit(data)
    return model.set_params(callback=None), data, *read_archive(path)


def places(tree, place=()):
    """Where something stands in a tree of dicts and lists."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in pairs:
        yield (*place, key)
        if isinstance(value, dict | list):
            yield from places(value, (*place, key))


def put(tree, place, value):
    for key in place[:-1]:
        tree = tree[key]
    tree[place[-1]] = value


def changed_array(array, rng):
    """The same but for one entry, its shape or its type."""
    if array.ndim and len(array) and rng.random() < 0.5:
        return array[:-1]
    if array.dtype.kind != "f":
        return array[None]
    array = array.copy()
    array.flat[rng.integers(array.size)] = rng.choice([np.nan, np.inf, -1.5, 1e30])
    return array


@pytest.mark.parametrize("name", ["two tables", "labels", "three starts"])
def test_resume_refuses_a_file_that_was_tampered_with(name, tmp_path):
    path, rng = tmp_path / "c", np.random.default_rng(1)
    model, data, manifest, arrays = broken_off(name, path)
    values = [None, True, -1, 10**30, 0.5, "x", [], {}, {"float": "nan"}, {"dict": {}}]
    for n in range(40):
        tree, held = copy.deepcopy(manifest["tree"]), dict(arrays)
        if n % 2:
            which = str(rng.choice(list(held)))
            held[which] = changed_array(held[which], rng)
        else:
            where = list(places(tree))
            put(tree, where[rng.integers(len(where))], values[rng.integers(len(values))])
        if tree != manifest["tree"] or n % 2:
            write_archive(path, {**manifest, "tree": tree}, held)
            with pytest.raises(FileError, match="damaged or was tampered with"):
                model.fit(data, resume=True)
    write_archive(path, manifest, arrays)  # as it was
    assert_same(model.fit(data, resume=True), whole(name))


@pytest.mark.parametrize("part", ["tree", "seal", "about", "contents"])
@pytest.mark.parametrize("value", [None, [], "x", 0])
def test_resume_refuses_a_file_with_another_head(part, value, tmp_path):
    path = tmp_path / "c"
    model, data, manifest, arrays = broken_off("two tables", path)
    write_archive(path, {**manifest, part: value}, arrays)
    if part == "about":  # is for people
        model.fit(data, resume=True)
    else:
        with pytest.raises(FileError, match=str(path)):
            model.fit(data, resume=True)


def _same(one, other):
    return one.shape != other.shape or np.array_equal(one, other)


def test_resume_refuses_an_array_of_another_file(tmp_path):
    """Bytes that are all right in themselves."""
    model, data, manifest, arrays = broken_off("two tables", tmp_path / "c")
    further, _ = model_of("two tables", checkpoint=tmp_path / "d", max_iter=9)
    with pytest.warns(ConvergenceWarning):
        further.fit(data)
    _, others = read_archive(tmp_path / "d")
    name = next(n for n in arrays if "weights_mean" in n and not _same(arrays[n], others[n]))
    write_archive(tmp_path / "c", manifest, {**arrays, name: others[name]})
    with pytest.raises(FileError, match="not what was written"):
        model.fit(data, resume=True)


def test_no_code_of_a_checkpoint_is_run(tmp_path):
    model, data, manifest, arrays = broken_off("two tables", tmp_path / "c")
    put(manifest, ("tree", "dict", "prepared"), {"os.system": "touch here"})
    write_archive(tmp_path / "c", manifest, arrays)
    with pytest.raises(FileError, match=r"unknown kind 'os\.system'"):
        model.fit(data, resume=True)


def test_resume_refuses_a_model(tmp_path):
    model, data = model_of("two tables", checkpoint=tmp_path / "c")
    whole("two tables").save(tmp_path / "c")
    with pytest.raises(FileError, match="model"):
        model.fit(data, resume=True)


def test_other_files_are_not_written_over(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("sample,a\n1,2\n", encoding="utf-8")
    model, data = model_of("two tables", checkpoint=table)
    with pytest.raises(FileError, match="no checkpoint; name another"):
        model.fit(data)
    assert table.read_text(encoding="utf-8") == "sample,a\n1,2\n"
    assert list(tmp_path.iterdir()) == [table]


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("resume", [True, False])
def test_a_model_is_not_written_over(complete, resume, tmp_path):
    path = tmp_path / "model.kofa"
    model, data = model_of("two tables", checkpoint=path)
    whole("two tables").save(path)
    if not complete:
        path.write_bytes(path.read_bytes()[:-100])
    before = path.read_bytes()
    with pytest.raises(FileError, match="holds a model, not a checkpoint; name another"):
        model.fit(data, resume=resume)
    assert path.read_bytes() == before


def test_a_damaged_checkpoint_is_written_over(tmp_path):
    path = tmp_path / "c"
    model, data = model_of("two tables", checkpoint=path)
    model.fit(data)
    path.write_bytes(path.read_bytes()[:-100])
    assert_same(model.fit(data), whole("two tables"))


# ---------------------------------------------------------------- what cannot be written


def own_kernel(A, B):
    return A @ B.T


def never(_):
    raise AssertionError("an iteration was made")


@pytest.mark.parametrize("kernel", [own_kernel, kofa.Mixture([Custom(own_kernel), "linear"])])
def test_own_kernels_are_refused_before_the_fit(kernel, tmp_path):
    views = {"x": kofa.Real(kernel=kernel)}
    model = kofa.FactorModel(views, checkpoint=tmp_path / "c", callback=never)
    with pytest.raises(FileError, match=r"'x': a kernel of your own .*; fit without checkpoint"):
        model.fit({"x": X})
    assert list(tmp_path.iterdir()) == []


def test_own_kinds_of_view_are_refused_before_the_fit(tmp_path):
    class Own(kofa.likelihoods.Gaussian):
        pass

    class View(kofa.Real):
        likelihood = Own

    model = kofa.FactorModel({"x": View()}, checkpoint=tmp_path / "c", callback=never)
    with pytest.raises(FileError, match=r"in 'x', kind is code, .*; fit without checkpoint"):
        model.fit({"x": X})
    assert list(tmp_path.iterdir()) == []


def test_names_and_labels_of_other_types_are_refused_before_the_fit(tmp_path):
    pd = pytest.importorskip("pandas")
    days = np.array([date(2024, 1, 1), date(2024, 1, 2)], dtype=object)[np.arange(80) % 2]
    periods = pd.period_range("2020", periods=80, freq="D")
    cases = [
        ({"x": kofa.Real(), "c": kofa.Categorical()}, {"x": X, "c": days}),
        ({"x": kofa.Real()}, {"x": pd.DataFrame(X, columns=periods[:8])}),
        ({"x": kofa.Real(kernel="rbf")}, {"x": pd.DataFrame(X, index=periods)}),  # of landmarks
    ]
    for views, data in cases:
        model = kofa.FactorModel(views, checkpoint=tmp_path / "c", callback=never)
        with pytest.raises(FileError, match=r"rename it to a string, or fit without checkpoint"):
            model.fit(data)
        assert list(tmp_path.iterdir()) == []


def test_more_names_than_a_file_can_hold_are_refused_before_the_fit(tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.setattr("kofa.storage.manifest.MemoryBudget.TOTAL", 100_000)
    frame = pd.DataFrame(rng.normal(size=(4, 2000))).rename(columns="gene{}".format)
    model = kofa.FactorModel(checkpoint=tmp_path / "c", callback=never)
    with pytest.raises(FileError, match=r"more names and settings .*; shorten the column names"):
        model.fit({"x": frame})
    assert list(tmp_path.iterdir()) == []


def test_names_that_no_checkpoint_needs_do_not_matter(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, index=pd.period_range("2020", periods=80, freq="D"))
    model = kofa.FactorModel(checkpoint=tmp_path / "c").fit({"x": frame})
    assert (tmp_path / "c").exists()
    assert model.converged_


def test_a_folder_that_vanishes_is_warned_of_and_the_fit_goes_on(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()

    def remove(iteration):
        if iteration.n_iter == 3:
            shutil.rmtree(folder)

    options = {"checkpoint": folder / "c", "checkpoint_every": 0.0, "callback": remove}
    model, data = model_of("two tables", **options)
    with pytest.warns(UserWarning, match=r"cannot be written.*there is no folder") as seen:
        model.fit(data)
    assert len(seen) == 1
    assert_same(model, whole("two tables"))


def test_a_full_disk_is_warned_of_once_and_tried_again(tmp_path, monkeypatch):
    write, tries = np.lib.format.write_array, []

    def full(*args, **options):
        tries.append(args)
        if len(tries) <= 5:
            raise OSError(28, "No space left on device")
        write(*args, **options)

    monkeypatch.setattr(np.lib.format, "write_array", full)
    monkeypatch.setattr("kofa.storage.checkpoint._RETRY", 0.0)
    model, data = model_of("two tables", checkpoint=tmp_path / "c", checkpoint_every=0.0)
    with pytest.warns(UserWarning, match=r"no space left on device\. The fit goes on") as seen:
        model.fit(data)
    assert len(seen) == 1
    again, _ = model_of("two tables", checkpoint=tmp_path / "c", callback=never)
    assert_same(again.fit(data, resume=True), model)


# ---------------------------------------------------------------- two at once


def test_a_checkpoint_is_for_one_fit_at_a_time(tmp_path):
    path, errors = tmp_path / "c", []

    def fit_again(iteration):
        if iteration.n_iter == 4:
            with pytest.raises(FileError, match="another fit that is running now; wait") as error:
                model_of("two tables", checkpoint=path)[0].fit(data)
            errors.append(error)

    model, data = model_of("two tables", checkpoint=path, checkpoint_every=0.0, callback=fit_again)
    model.fit(data)
    assert len(errors) == 1
    assert_same(model, whole("two tables"))
    assert [found.name for found in tmp_path.iterdir()] == ["c"]


def test_a_fit_that_failed_frees_its_checkpoint(tmp_path):
    model, data = model_of("two tables", checkpoint=tmp_path / "c", callback=breaking(3))
    with pytest.raises(BrokenOffError):
        model.fit(data)
    with pytest.raises(FileError, match="other data"):
        model.set_params(n_factors=4).fit(data, resume=True)
    assert [found.name for found in tmp_path.iterdir()] == ["c"]
    model.set_params(callback=None).fit(data)


def test_resume_needs_a_checkpoint():
    model, data = model_of("two tables")
    with pytest.raises(DeclarationError, match="checkpoint"):
        model.fit(data, resume=True)


def test_folder_that_does_not_exist_is_found_out_before_the_fit(tmp_path):
    model, data = model_of("two tables", checkpoint=tmp_path / "no" / "c", callback=breaking(1))
    with pytest.raises(FileError, match="no"):
        model.fit(data)


@pytest.mark.parametrize("every", [-1, "often", None, np.nan])
def test_time_between_writings_is_checked(every):
    model, data = model_of("two tables", checkpoint_every=every)
    with pytest.raises(DeclarationError, match="checkpoint_every"):
        model.fit(data)


def test_long_pauses_write_seldom(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(Checkpoint, "write", lambda self: written.append(self))
    model, data = model_of("two tables", checkpoint=tmp_path / "c", checkpoint_every=1000)
    model.fit(data)
    assert len(written) == 1  # at the end


def test_keys_of_different_fits_differ():
    things = [1, 1.0, "1", None, [1], [[1]], [1, 1], {"a": 1}, {"b": 1}]
    things += [np.ones(2), np.ones((1, 2)), np.ones(2, dtype=int)]
    things += [kofa.RBF(), kofa.RBF(1.0), kofa.Laplacian(), np.array(["a"], dtype=object), len, abs]
    keys = [key_of_fit(thing) for thing in things]
    assert len(set(keys)) == len(things)
    assert keys == [key_of_fit(thing) for thing in things]


# ---------------------------------------------------------------- kill -9

SCRIPT = """
import sys, numpy as np, kofa
rng = np.random.default_rng(0)
z = rng.normal(size=(100, 4))
x = z @ rng.normal(size=(4, 20)) + 0.3 * rng.normal(size=(100, 20))
x[rng.random(x.shape) < 0.1] = np.nan
views = {"x": kofa.Real(), "t": kofa.Count()}
model = kofa.FactorModel(views, n_init=2, tol=1e-6, max_iter=20, checkpoint=sys.argv[1],
                         checkpoint_every=0.0)
import warnings
warnings.simplefilter("ignore")
print("ready", flush=True)
model.fit({"x": x, "t": rng.poisson(np.exp(z[:, :3]))}, resume=True).save(sys.argv[2])
print("done", flush=True)
"""


def kill(checkpoint, result, after):
    """Let a fit run for some seconds in a process of its own, and kill it if it is not over."""
    command = [sys.executable, "-c", SCRIPT, str(checkpoint), str(result)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="locale") as child:
        assert child.stdout.readline() == "ready\n"
        try:
            child.wait(after)
        except subprocess.TimeoutExpired:
            os.kill(child.pid, signal.SIGKILL)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_fit_ends_as_if_it_had_not_been(kills, tmp_path, monkeypatch):
    def fit(checkpoint, result):
        monkeypatch.setattr(sys, "argv", ["", str(checkpoint), str(result)])
        exec(SCRIPT, {})

    begun = time.monotonic()
    fit(tmp_path / "whole", tmp_path / "whole.kofa")
    took = time.monotonic() - begun
    moments = np.random.default_rng(kills).uniform(0, took / 2, size=kills)
    for n, moment in enumerate(moments):
        checkpoint = tmp_path / f"c{n}"
        result = Path(f"{checkpoint}.kofa")
        kill(checkpoint, result, moment)
        if checkpoint.exists():
            assert read_object(checkpoint, "checkpoint")  # never half-written
        fit(checkpoint, result)
        assert_same(kofa.load(result), kofa.load(tmp_path / "whole.kofa"))
