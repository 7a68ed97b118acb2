"""Views that samples lack, from the others."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.metrics import log_loss

from kofa import Binary, FactorModel, tuning


def test_read_outs_from_ones_do_not_fade_with_the_sweeps(rng, monkeypatch):
    """Where variances count in full, each sweep makes the weights of ones smaller."""
    Z, W = rng.standard_normal((250, 6)), rng.standard_normal((6, 50))
    full = (rng.random((250, 50)) < expit(1.5 * Z @ W)).astype(float)
    a, b = full[:, :25], full[:, 25:].copy()
    b[:50] = np.nan
    losses = []
    for sweeps in (5, 20):
        monkeypatch.setattr(tuning, "READ_OUT_SWEEPS", sweeps)
        model = FactorModel({"a": Binary(), "b": Binary()}).fit({"a": a, "b": b})
        p = model.predict_proba({"a": a[:50]}, "b")
        losses.append(log_loss(full[:50, 25:].ravel(), p.ravel()))
    assert losses[1] < losses[0] + 0.01


def test_all_directions_of_views_with_more_columns_than_samples_are_used(rng, monkeypatch):
    """60 directions, which 90 samples do not show as factors, and all of them tell."""
    Z, W = rng.standard_normal((130, 60)), rng.standard_normal((60, 164))
    full = Z @ W + 2.0 * rng.standard_normal((130, 164))
    x, y = full[:, :160], full[:, 160:]
    errors = []
    for few in (0, 1000):
        monkeypatch.setattr(tuning, "FEW_SAMPLES", 50)
        monkeypatch.setattr(tuning, "FEW_OF_WIDE", few)
        model = FactorModel().fit({"x": x[:90], "y": y[:90]})
        errors.append(((model.predict({"x": x[90:]}, "y") - y[90:]) ** 2).sum())
    assert errors[1] < 0.8 * errors[0]
