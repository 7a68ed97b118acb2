"""What is plotted in tests, and what of a figure they look at."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

import kofa

LONG = "a_very_long_name_of_a_thing_that_goes_on_and_on_"


def make_data(long=False, n=60, k=3):
    """A table of every kind, with holes and samples that are missing, and names."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, k))
    samples = [f"{LONG if long else 's'}{i}" for i in range(n)]
    start = LONG if long else ""

    def table(name, values):
        columns = [f"{start}{name}{j}" for j in range(values.shape[1])]
        return pd.DataFrame(values, samples, columns)

    def eta(d):
        return z @ rng.normal(size=(k, d))

    real = eta(20) + 0.3 * rng.normal(size=(n, 20))
    real[rng.random(real.shape) < 0.1] = np.nan
    return {
        f"{start}real": table("gene", real),
        f"{start}positive": table("dose", np.exp(eta(4) + 0.3 * rng.normal(size=(n, 4)))).iloc[:50],
        f"{start}binary": table("hit", (eta(5) + rng.normal(size=(n, 5)) > 0).astype(float)),
        f"{start}count": table("read", rng.poisson(np.exp(0.5 * eta(3))).astype(float)),
        f"{start}label": pd.Series(np.where(z[:, 0] > 0, f"{start}late", "early"), samples),
    }


@cache
def every_kind(long=False):
    """A model with three factors of views of every kind, and their data."""
    data = make_data(long)
    kinds = [kofa.Real(), kofa.Positive(), kofa.Binary(), kofa.Count(), kofa.Categorical()]
    model = kofa.FactorModel(dict(zip(data, kinds, strict=True)), n_factors=3).fit(data)
    if long:
        model.rename_factors([f"{LONG}{k}" for k in range(model.n_factors_)])
    return model, data


@cache
def one_factor():
    """A model with one factor, of an array."""
    z = np.random.default_rng(0).normal(size=(40, 1))
    x = z * [3.0, -2.0, 1.0] + 0.1 * np.random.default_rng(1).normal(size=(40, 3))
    return kofa.FactorModel(n_factors=1).fit({"x": x}), {"x": x}


@cache
def two_kernels():
    """A model of two kernels, one of them with relevance vectors, and an output."""
    x = np.random.default_rng(0).normal(size=(60, 2))
    data = {"x": x, "w": x**2, "y": np.sin(2 * x[:, :1])}
    views = {
        "x": kofa.Real(kernel="rbf", sparse=True),
        "w": kofa.Real(kernel=kofa.RBF(relevance="learn")),
        "y": kofa.Real(),
    }
    return kofa.FactorModel(views, outputs=["y"]).fit(data), data


def weights_table(features=40, factors=2, name="gene"):
    """A tidy table of weights of which those of the first features are the largest."""
    rng = np.random.default_rng(0)
    rows = [(f"{name}{d}", f"factor{k + 1}") for k in range(factors) for d in range(features)]
    table = pd.DataFrame(rows, columns=["feature", "factor"])
    table["weight"] = 0.1 * rng.normal(size=len(table))
    for k in range(factors):
        table.loc[k * features + k, "weight"] = 5.0
        table.loc[k * features + k + 1, "weight"] = -4.0
    return table.assign(std=0.1, standardised=table["weight"] / 2, lfsr=0.0)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def tick_names(axis):
    """The names that are drawn along an axis."""
    axis.axes.get_figure().draw_without_rendering()
    return [tick.label1.get_text() for tick in axis.get_major_ticks()]


def values_of(artist):
    """The numbers behind the colours of an image or of points, NaN where they are missing."""
    return np.ma.filled(artist.get_array().astype(float), np.nan)
