"""Rows with the workers of a Dask cluster: the same results as in memory, whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from test_streamed import MODELS, after, same, tables  # noqa: F401

import kofa
from commands import error, run
from kofa.data import stored
from kofa.engines import cluster, dask_tasks

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
dask_array = pytest.importorskip("dask.array")

ROWS = 40  # of a block
VIEWS = {"a": kofa.Count()}  # each local step depends on the one before


def started(n_workers, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ports that are taken
        return distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            **options,
        )


@pytest.fixture(scope="module")
def client():
    with started(2) as workers, distributed.Client(workers, set_as_default=False) as one:
        yield one


def tasks_left(client):
    return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))


def test_a_killed_worker_changes_nothing(client, tables, rng, monkeypatch):  # noqa: F811
    monkeypatch.setattr(cluster, "_LINEAGE", 2)
    tables["a"][rng.random(tables["a"].shape) < 0.2] = np.nan
    data = {"a": tables["a"]}
    expected = kofa.FactorModel(VIEWS, block_rows=ROWS, callback=after(5)).fit(data)

    def kill(iteration):
        if iteration.n_iter == 3:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return iteration.n_iter >= 5

    model = clone(kofa.FactorModel(VIEWS, engine=client, block_rows=ROWS, callback=kill))
    same(model.fit({"a": sparse.csr_matrix(data["a"])}), expected)
    np.testing.assert_allclose(model.transform(data), expected.transform(data), atol=1e-7)
    client.wait_for_workers(2, timeout=60)


@pytest.mark.slow
def test_tables_of_dask_and_of_files(client, tables, tmp_path, monkeypatch):  # noqa: F811
    import dask.dataframe as dd
    import pandas as pd

    monkeypatch.setattr(stored, "_AT_ONCE", 400)
    np.save(tmp_path / "a.npy", tables["a"])
    names = [f"s{i}" for i in range(len(tables["a"]))]
    frame = pd.DataFrame(tables["y"], names, ["first", "second"])
    kernelized = kofa.Real(kernel=kofa.RBF(2.0), landmarks=30)
    views = {"a": kernelized, "b": kernelized, "y": kofa.Real()}
    options = {"outputs": ["y"], "block_rows": ROWS, "max_iter": 2}
    data = {
        "a": np.load(tmp_path / "a.npy", mmap_mode="r"),
        "b": dask_array.from_array(tables["b"], chunks=(64, 4)),
        "y": dd.from_pandas(frame, npartitions=2, sort=False),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of iterations that are few
        model = kofa.FactorModel(views, engine=client, **options)
        assert list(model.fit_transform(data).index) == names
        given = {name: tables[name] for name in views} | {"y": frame}
        expected = kofa.FactorModel(views, **options).fit(given)
    same(model, expected)
    few = data["b"][:5]
    np.testing.assert_array_equal(model.predict({"b": few}), model.predict({"b": few.compute()}))
    model.save(tmp_path / "model.kofa")
    assert kofa.load(tmp_path / "model.kofa").engine == "auto"


def test_an_interrupted_fit_leaves_its_checkpoint(client, tables, tmp_path, monkeypatch):  # noqa: F811
    data, path = {name: tables[name] for name in VIEWS}, tmp_path / "fit.checkpoint"
    options = {"checkpoint": path, "checkpoint_every": 0.0, "block_rows": ROWS}
    iterated, gather = [], cluster.gathered

    def interrupted(client, futures):
        if len(iterated) == 3:  # while a pass is under way
            iterated.append("")
            futures = [*futures, client.submit(time.sleep, 3.0, pure=False)]
            with mock.patch.object(client, "gather", side_effect=KeyboardInterrupt):
                return gather(client, futures)
        return gather(client, futures)

    monkeypatch.setattr(cluster, "gathered", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kofa.FactorModel(VIEWS, engine=client, callback=iterated.append, **options).fit(data)
    end = time.monotonic() + 20.0
    while tasks_left(client) and time.monotonic() < end:
        time.sleep(0.1)
    assert not tasks_left(client)
    until = after(5)
    resumed = kofa.FactorModel(VIEWS, callback=until, **options).fit(data, resume=True)
    same(resumed, kofa.FactorModel(VIEWS, block_rows=ROWS, callback=until).fit(data))


def test_what_cannot_work_is_said(client, tables, monkeypatch):  # noqa: F811
    def refuse(_):
        raise kofa.FileError("it is not here", "x.npy")

    with pytest.raises(kofa.FileError, match=r"x\.npy: it is not here"):
        cluster.gathered(client, client.map(refuse, [1, 2]))
    with distributed.Client(client.scheduler.address, set_as_default=False) as other:
        pass
    with pytest.raises(kofa.DeclarationError, match="no scheduler any more"):
        kofa.FactorModel(engine=other).fit({"b": tables["b"]})
    model = kofa.FactorModel({"b": kofa.Real(kernel="diffusion")}, engine=client)
    monkeypatch.setattr(stored, "_AT_ONCE", 400)
    with pytest.raises(kofa.DeclarationError, match="Diffusion kernel compares all samples"):
        model.fit({"b": dask_array.from_array(tables["b"])})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_samples_that_lack_a_view_are_few_enough_for_memory(client, rng):
    z = rng.standard_normal((30, 2))
    data = {name: z @ rng.standard_normal((2, 4)) for name in "xy"}
    data["x"][20:] = np.nan
    for outputs in (None, ["y"]):
        asked = {"outputs": outputs, "max_iter": 5}
        here, there = (kofa.FactorModel(**asked, engine=e).fit(data) for e in ("memory", client))
        found, expected = (m.predict({"x": data["x"][:5]}, "y") for m in (there, here))
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_scheduler_that_does_not_answer(monkeypatch):
    monkeypatch.setattr(dask_tasks, "_PATIENCE", 0.5)
    began = time.monotonic()
    for address in ("tcp://127.0.0.1:9", "here"):
        with pytest.raises(kofa.KofaError, match="address"), dask_tasks.connected(address):
            pass
    assert time.monotonic() - began < 10.0


@pytest.mark.slow
def test_the_command_line_fits_on_a_cluster(client, tables, tmp_path, monkeypatch):  # noqa: F811
    import pandas as pd

    monkeypatch.chdir(tmp_path)
    pd.DataFrame(tables["b"], columns=list("uvwxyz")).to_parquet("b.parquet")
    fit = "fit --view b=b.parquet --index false --max-iter 2000 --n-factors 2 -o"
    run(f"{fit} apart.kofa --scheduler {client.scheduler.address}")
    run(f"{fit} here.kofa")
    apart, here = kofa.load("apart.kofa"), kofa.load("here.kofa")
    assert apart.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-8)
    assert "address" in error(f"{fit} other.kofa --scheduler nowhere", 2)


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [2, 4])
def test_numbers_of_workers_do_not_matter(tables, rng, n_workers):  # noqa: F811
    tables["b"][rng.random(tables["b"].shape) < 0.2] = np.nan
    with started(n_workers) as workers, distributed.Client(workers) as client:
        for name, (views, options) in MODELS.items():
            data = {view: tables[view] for view in views}
            if name == "binary":
                data["a"] = (data["a"] > 0).astype(float)
            if name == "positive":
                data["a"] = data["a"] + 0.5
            fits = [
                kofa.FactorModel(
                    views, engine=engine, block_rows=ROWS, callback=after(15), **options
                ).fit(data)
                for engine in (client, "memory")
            ]
            same(*fits)


SCRIPT = """
import sys, numpy as np, kofa
from distributed import Client, LocalCluster

if __name__ == "__main__":
    x = np.random.default_rng(0).poisson(3.0, size=(400, 6)).astype(float)
    def progress(i):
        print(i.n_iter, flush=True)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as workers:
        with Client(workers) as client:
            print(*client.run(__import__("os").getpid).values(), flush=True)
            model = kofa.FactorModel({"x": kofa.Count()}, n_factors=5, tol=0.0, engine=client,
                block_rows=100, callback=progress, checkpoint=sys.argv[1], checkpoint_every=0.0)
            model.fit({"x": x})
"""


@pytest.mark.slow
def test_ctrl_c_leaves_no_process(tmp_path):
    script, path = tmp_path / "script.py", tmp_path / "fit.checkpoint"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, str(script), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as run:
        pids = [int(pid) for pid in run.stdout.readline().split()]
        while run.stdout.readline().strip() != "4":
            assert run.poll() is None
        run.send_signal(signal.SIGINT)
        run.stdout.read()
        assert run.wait(60) != 0
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    x = np.random.default_rng(0).poisson(3.0, size=(400, 6)).astype(float)
    options = {"n_factors": 5, "tol": 0.0, "block_rows": 100, "callback": after(6)}
    views = {"x": kofa.Count()}
    kept = kofa.FactorModel(views, checkpoint=path, **options).fit({"x": x}, resume=True)
    assert kept.n_iter_ > 3


@pytest.mark.slow
def test_workers_that_die_again_and_again_and_a_lost_scheduler():
    with started(1) as workers, distributed.Client(workers) as client:
        dying = client.map(os._exit, [1], pure=False)
        with pytest.raises(kofa.KofaError, match=r"died, one after the other.*lower block_rows"):
            cluster.gathered(client, dying)
        waiting = client.map(time.sleep, [60.0], pure=False)
        threading.Timer(1.0, workers.close).start()
        began = time.monotonic()
        with pytest.raises(kofa.KofaError, match="scheduler of the cluster is lost"):
            cluster.gathered(client, waiting)
        assert time.monotonic() - began < 50.0


def greedy(block):
    """More than a worker may have, until somebody notices."""
    more = np.ones(2**26)
    time.sleep(5.0)
    return block * more[0]


@pytest.mark.slow
def test_a_worker_out_of_memory_is_one_error(tables, tmp_path):  # noqa: F811
    path = tmp_path / "fit.checkpoint"
    table = dask_array.from_array(tables["b"], chunks=(75, 6)).map_blocks(greedy)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        started(1, memory_limit="600MB") as workers,
        distributed.Client(workers, set_as_default=False) as client,
        pytest.raises(kofa.KofaError, match="more memory, or set a lower block_rows"),
    ):
        kofa.FactorModel(engine=client, checkpoint=path).fit({"b": table})
    assert not os.listdir(tmp_path)
