"""Models whose reports are looked at, each with what its report is given."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

import kofa
from drawn import every_kind, make_data

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'


def wine():
    """Three cultivars of wine, evaluated on held-out samples, with covariates and feature sets."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    X.index = [f"wine {i}" for i in range(len(X))]
    cultivar = pd.Series(np.array(["Barolo", "Grignolino", "Barbera"])[y], X.index, name="cultivar")
    data = {"chemistry": X.drop(columns=["hue", "color_intensity"]), "cultivar": cultivar}
    views = {"chemistry": kofa.Real(), "cultivar": kofa.Categorical()}
    model = kofa.FactorModel(views, outputs=["cultivar"])
    evaluation = kofa.cross_validate(model, data, cv=3, return_predictions=True)
    return model.fit(data), {
        "data": data,
        "covariates": X[["hue", "color_intensity"]].assign(cultivar=cultivar),
        "evaluation": evaluation,
    }


def cancer():
    """Means, errors and worst values of 30 features of tumours as three views."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    parts = {"mean": X.iloc[:, :10], "error": X.iloc[:, 10:20], "worst": X.iloc[:400, 20:]}
    diagnosis = pd.Series(np.where(y == 1, "benign", "malignant"), X.index, name="diagnosis")
    data = {**parts, "diagnosis": diagnosis}
    views = {**dict.fromkeys(parts, kofa.Real()), "diagnosis": kofa.Categorical()}
    return kofa.FactorModel(views, outputs=["diagnosis"], n_factors=12).fit(data), {"data": data}


def digits():
    """Digits through a kernel with learnt relevances of pixels and relevance vectors."""
    X, y = load_digits(return_X_y=True)
    data = {"pixels": X[:300], "digit": y[:300]}
    views = {
        "pixels": kofa.Real(kernel=kofa.RBF(relevance="learn"), sparse=True),
        "digit": kofa.Categorical(),
    }
    with warnings.catch_warnings():  # of pixels that are always white
        warnings.simplefilter("ignore")
        model = kofa.FactorModel(views, outputs=["digit"]).fit(data)
    return model, {"data": data, "image_shape": (8, 8)}


def kinds():
    """Views of every kind, four of them outputs, with holes."""
    data = make_data()
    declared = [kofa.Real(), kofa.Positive(), kofa.Binary(), kofa.Count(), kofa.Categorical()]
    views = dict(zip(data, declared, strict=True))
    outputs = ["positive", "binary", "count", "label"]
    model = kofa.FactorModel(views, n_factors=3, outputs=outputs, random_state=7)
    genes = list(data["real"].columns)
    sets = {"repair": genes[:10], "growth": genes[5:17]}
    return model.fit(data), {"data": data, "sets": sets}


def no_outputs():
    """Views of every kind with long names, without outputs and without data."""
    return every_kind(long=True)[0], {}


def unfinished():
    """A fit that was broken off, with a sample that drives a factor and a view of noise."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(80, 2))
    x = z @ rng.normal(size=(2, 12)) + 0.3 * rng.normal(size=(80, 12))
    x[17] += 60.0 * rng.normal(size=12)
    data = {"x": x, "noise": rng.normal(size=(80, 6))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kofa.FactorModel(max_iter=2, tol=0.0).fit(data), {"data": data}


def hostile():
    """Names that are markup wherever a name may be."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(40, 2))
    samples = [SCRIPT, IMAGE, "a&b", "</script>", *(f"s{i}" for i in range(36))]
    columns = [IMAGE, SCRIPT, "%{x}", "<b>bold</b>", "=1+1", 'a,"b"', *(f"c{j}" for j in range(9))]
    values = z @ rng.normal(size=(2, 15)) + 0.2 * rng.normal(size=(40, 15))
    x = pd.DataFrame(values, samples, columns)
    label = pd.Series(np.where(z[:, 0] > 0, IMAGE, SCRIPT), samples, name="</title>")
    data = {SCRIPT: x, IMAGE: label}
    views = {SCRIPT: kofa.Real(), IMAGE: kofa.Categorical()}
    model = kofa.FactorModel(views, outputs=[IMAGE], n_factors=2).fit(data)
    return model.rename_factors([SCRIPT, IMAGE]), {
        "data": data,
        "covariates": pd.DataFrame({IMAGE: z[:, 0], "</script>": label.to_numpy()}, samples),
        "sets": {SCRIPT: columns[:10], IMAGE: columns[3:]},
    }


GALLERY = {
    made.__name__: made for made in (wine, cancer, digits, kinds, no_outputs, unfinished, hostile)
}


@cache
def problem(name):
    """A model of the gallery, and what its report is given."""
    return GALLERY[name]()
