"""Files of small models, of every kind of view and every kernel, to be changed at random."""

from __future__ import annotations

import io
import os
import warnings
import zipfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import kofa

SEED = int(os.environ.get("KOFA_SEED", "20261117"))
N = 16

Members = list[tuple[str, bytes]]
Rng = np.random.Generator


@cache
def originals() -> list[bytes]:
    """Files of small models: every kind of view, every kernel, names and labels of every type."""
    rng = np.random.default_rng(SEED)
    with TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(place, "model.kofa")
        found = []
        for views, outputs, data in _declarations(rng):
            kofa.FactorModel(views, 3, outputs=outputs, max_iter=6).fit(data).save(path)
            found.append(path.read_bytes())
    return found


def _declarations(rng: Rng) -> list[tuple[dict[str, Any], list[str] | None, dict[str, Any]]]:
    import pandas as pd

    x = rng.normal(size=(N, 4))
    holes = np.where(rng.random(x.shape) < 0.1, np.nan, x)
    words = np.array(["one", "two", "three"])[np.arange(N) % 3]
    frame = pd.DataFrame(x, index=pd.date_range("2020", periods=N), columns=list("abcd"))
    levels = frame.set_axis(pd.MultiIndex.from_product([["u", "v"], [1, 2]]), axis=1)
    tables = {
        "x": holes, "p": np.exp(x[:, :2]), "b": x[:, :2] > 0, "n": np.abs(3 * x).round(),
        "c": words,
    }  # fmt: skip
    kinds = {
        "x": kofa.Real(), "p": kofa.Positive(), "b": kofa.Binary(), "n": kofa.Count(),
        "c": kofa.Categorical(),
    }  # fmt: skip
    relevance = kofa.RBF(1.5, relevance=[1, 0.5, 0, 2], groups=list("aabb"))
    kernels = [
        "rbf", "linear", "laplacian", "poly", "bank", ["rbf", "linear"], relevance,
        kofa.RBF(relevance="learn"), kofa.Mixture(["rbf", "linear"], weights=[1, 2]),
    ]  # fmt: skip
    few = kofa.Landmarks(9, keep=(4, 0.5))
    labels = [
        words, words.astype(object), np.arange(N) % 3, np.arange(N) % 2 > 0,
        pd.Series(words, index=frame.index).astype("category"),
        pd.Series(words, index=frame.index).astype("string"),
        pd.Series(np.arange(N) % 2, index=frame.index).astype("Int8"),
    ]  # fmt: skip
    return [
        (kinds, None, tables),
        ({**kinds, "x": kofa.Real(sparse=True, noise="view")}, ["n", "c"], tables),
        *(({"x": kofa.Real(kernel=k), "y": kofa.Real()}, ["y"], {"x": levels, "y": frame[["a"]]})
          for k in kernels),
        *(({"x": kofa.Real(kernel=k, sparse=True)}, None, {"x": frame}) for k in kernels[:6]),
        *((({"x": kofa.Real(), "c": kofa.Categorical()}), ["c"],
           {"x": frame if hasattr(label, "iloc") else x, "c": label}) for label in labels),
        ({"n": kofa.Count(kernel="rbf"), "c": kinds["c"]}, ["c"], {"n": tables["n"], "c": words}),
        ({"k": kofa.Real(kernel="precomputed", sparse=True)}, None, {"k": x @ x.T}),
        ({"x": kofa.Real(kernel="diffusion", sparse=True, landmarks=few), "b": kinds["b"]}, ["b"],
         {"x": x, "b": tables["b"]}),
    ]  # fmt: skip


@cache
def tables() -> list[dict[str, Any]]:
    """The data that each of these models was fitted to."""
    return [data for _, _, data in _declarations(np.random.default_rng(SEED))]


@cache
def members(which: int) -> Members:
    with zipfile.ZipFile(io.BytesIO(originals()[which])) as opened:
        return [(info.filename, opened.read(info)) for info in opened.infolist()]


def zipped(members: Members, compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as opened:
        for name, data in members:
            opened.writestr(zipfile.ZipInfo(name), data, compression)
    return file.getvalue()
