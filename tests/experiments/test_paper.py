"""The paper's data sets, where they are found."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold

import kofa


def cross_validate(path, kernel):
    sets = np.load(path, allow_pickle=False)
    X, Y = sets["X"].astype(float), sets["Y"].astype(float)
    scores = []
    for train, test in KFold(10, shuffle=True, random_state=0).split(X):
        views = {"x": kofa.Real(kernel=kernel), "y": kofa.Real()}
        model = kofa.FactorModel(views, outputs=["y"]).fit({"x": X[train], "y": Y[train]})
        scores.append(r2_score(Y[test], model.predict({"x": X[test]}, "y")))
    return np.mean(scores)


@pytest.mark.parametrize(
    ("name", "kernel", "mark"),
    [
        ("slump", "rbf", 0.51),
        ("edm", "rbf", 0.40),
        ("edm", "laplacian", 0.45),
        ("jura", "rbf", 0.645),
    ],
)
def test_regression_through_a_learnt_width(data_dir, name, kernel, mark):
    assert cross_validate(data_dir / f"{name}.npz", kernel) >= mark
