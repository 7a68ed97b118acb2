"""Models and tables to plot."""

from __future__ import annotations

import os

import numpy as np
import pytest

import kofa
from drawn import LONG, make_data, make_model

os.environ.setdefault("MPLBACKEND", "Agg")
pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def _no_figures_left():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.fixture(scope="session")
def data():
    return make_data()


@pytest.fixture(scope="session")
def model(data):
    return make_model(data, n_factors=3)


@pytest.fixture(scope="session")
def long_data():
    return make_data(long=True)


@pytest.fixture(scope="session")
def long_model(long_data):
    found = make_model(long_data, n_factors=3)
    return found.rename_factors([f"{LONG}{k}" for k in range(found.n_factors_)])


@pytest.fixture(scope="session")
def single():
    """A model with one factor, of an array."""
    z = np.random.default_rng(0).normal(size=(40, 1))
    x = z * [3.0, -2.0, 1.0] + 0.1 * np.random.default_rng(1).normal(size=(40, 3))
    return kofa.FactorModel(n_factors=1).fit({"x": x}), {"x": x}


@pytest.fixture(scope="session")
def kernels():
    """A model of two kernels, one of them with relevance vectors, and an output."""
    x = np.random.default_rng(0).normal(size=(60, 2))
    data = {"x": x, "w": x**2, "y": np.sin(2 * x[:, :1])}
    views = {
        "x": kofa.Real(kernel="rbf", sparse=True),
        "w": kofa.Real(kernel=kofa.RBF(relevance="learn")),
        "y": kofa.Real(),
    }
    return kofa.FactorModel(views, outputs=["y"]).fit(data), data
