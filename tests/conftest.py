"""Shared problems."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import kofa
from kofa.engines.memory import InMemory
from kofa.inference.observations import Observations, Rows
from kofa.inference.role import Role
from kofa.inference.start import prepare, spectral, start

os.environ.setdefault("MPLBACKEND", "Agg")  # figures are drawn in memory


@pytest.fixture(autouse=True)
def _no_figures_left():
    """Those of pyplot, which stay open until they are closed."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def data_dir():
    """Where the paper's data sets are: the folder that KOFA_DATA names."""
    place = Path(os.environ.get("KOFA_DATA") or "nowhere")
    if not (place / "slump.npz").exists():
        pytest.skip("the paper's data sets are not here; set KOFA_DATA")
    return place


@pytest.fixture
def toy_sets(monkeypatch, tmp_path):
    """A data directory whose sets may have any shape and values."""
    monkeypatch.setattr("experiments.data.check", lambda *_: None)
    monkeypatch.setenv("KOFA_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def ctrl_c():
    """Ctrl-C as in a terminal: what runs in the background ignores it, and so do its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def planted(seed, dims=(500, 300, 200), n=1000, noise=0.5):
    """Three views with 10 factors of every shared/private kind: views, activity (10, 3)."""
    rng = np.random.default_rng(seed)
    shared, pairs, private = (
        [[1, 1, 1]] * 3,
        [[1, 1, 0], [1, 0, 1], [0, 1, 1]],
        np.eye(3, dtype=int),
    )
    activity = np.array([*shared, *pairs, private[0], private[0], private[1], private[2]])
    Z = rng.standard_normal((n, len(activity)))
    views = [
        Z @ (rng.standard_normal((d, len(activity))) * activity[:, m]).T
        + noise * rng.standard_normal((n, d))
        for m, d in enumerate(dims)
    ]
    return views, activity


def two_views(rng, n=60, k=2, dims=(5, 4), noise=0.3):
    """A small low-rank pair of views."""
    Z = rng.standard_normal((n, k))
    return {
        name: Z @ rng.standard_normal((k, d)) + noise * rng.standard_normal((n, d))
        for name, d in zip("xy", dims, strict=True)
    }


def core(views, roles=None, n_factors=3, seed=0, likelihoods=None):
    """An engine and its start from a list of arrays with NaN, named "0", "1", … or by roles."""
    roles = {role.name: role for role in roles or [Role(str(m)) for m in range(len(views))]}
    likelihoods = likelihoods or [None] * len(views)
    observed = {
        name: Observations.from_values(v.copy(), likelihood)
        for name, v, likelihood in zip(roles, views, likelihoods, strict=True)
    }
    engine = InMemory(Rows.stack(observed))
    rng = np.random.default_rng(seed)
    Z = spectral(engine, n_factors, rng)
    state = start(engine, prepare(engine, roles, Z), Z)
    return engine, state, Z


KINDS = {
    "real": kofa.Real(),
    "positive": kofa.Positive(),
    "binary": kofa.Binary(),
    "label": kofa.Categorical(),
    "count": kofa.Count(),
}


def mixed(rng, n=60, k=2, d=4):
    """A small low-rank data set with a view of every kind, all of them floats but the labels."""
    Z = rng.standard_normal((n, k))
    eta = {name: Z @ rng.standard_normal((k, d)) for name in KINDS}
    noise = {name: rng.standard_normal((n, d)) for name in KINDS}
    labels = np.array(["ant", "bee", "cat", "dog"], dtype=object)
    return {
        "real": eta["real"] + 0.3 * noise["real"],
        "positive": np.exp(1.0 + eta["positive"] + 0.3 * noise["positive"]),
        "binary": (2.0 * eta["binary"] + noise["binary"] > 0).astype(float),
        "label": labels[:d][np.argmax(3.0 * eta["label"] + noise["label"], axis=1)],
        "count": rng.poisson(3.0 * np.logaddexp(0.0, 2.0 * eta["count"])).astype(float),
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with three tables and a study, as the current one."""
    import commands

    commands.write_tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """The bytes of a model of the study."""
    import commands

    place = tmp_path_factory.mktemp("fitted")
    commands.write_tables(place)
    commands.run(["fit", place / "study.toml", "-o", place / "model.kofa"])
    return (place / "model.kofa").read_bytes()


@pytest.fixture
def model(folder, fitted):
    """That model, in the folder."""
    (folder / "model.kofa").write_bytes(fitted)
    return folder / "model.kofa"
