"""Kinds that are not the package's own, as docs/architecture.md describes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit, ndtri, xlogy

import kofa
from kofa.likelihoods import Likelihood
from kofa.views import View

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(24)


def average(f, mean, variance):
    """E f(η) of η ~ N(mean, variance)."""
    eta = mean[..., None] + np.sqrt(variance)[..., None] * NODES
    return f(eta) @ WEIGHTS / WEIGHTS.sum()


class CrossEntropy(Likelihood):
    """g = t η − log(1 + e^η), with a log-probability and nothing else that can be left out."""

    @classmethod
    def resolve(cls, table, by_column=True):  # noqa: ARG003
        return cls()

    @property
    def curvature(self):
        return np.array([0.25])

    def tangent(self, targets, eta):
        return targets * eta - np.logaddexp(0.0, eta), targets - expit(eta)

    def predict(self, mean, variance):
        return average(expit, mean, variance)

    def log_predictive(self, targets, mean, variance):
        p = np.clip(average(expit, mean, variance), 1e-9, 1.0 - 1e-9)
        rise = average(lambda eta: expit(eta) * expit(-eta), mean, variance)
        value = targets * np.log(p) + (1.0 - targets) * np.log1p(-p)
        return value, (targets - p) / (p * (1.0 - p)) * rise


class Shares(CrossEntropy):
    """With all that a kind of numbers may have."""

    def at_mean(self, mean):
        return logit(np.clip(mean, 1e-9, 1.0 - 1e-9))

    def saturated(self, targets):
        return xlogy(targets, targets) + xlogy(1.0 - targets, 1.0 - targets)

    def std(self, mean, variance):
        square = average(lambda eta: expit(eta) ** 2, mean, variance)
        return np.sqrt(np.maximum(square - self.predict(mean, variance) ** 2, 0.0))

    def quantile(self, mean, variance, p):
        return expit(mean + ndtri(p) * np.sqrt(variance))

    def fill(self, mean, variance):
        return self.quantile(mean, variance, 0.5)

    @staticmethod
    def deviance(values, predicted):
        return 2.0 * (
            xlogy(values, values / predicted)
            + xlogy(1.0 - values, (1.0 - values) / (1.0 - predicted))
        )

    @staticmethod
    def typical(values):
        return np.nanmean(values, axis=0)


class Logistic(CrossEntropy):
    """Zeros and ones."""

    def probability(self, mean, variance):
        return average(expit, mean, variance)

    def predict(self, mean, variance):  # noqa: ARG002
        return (mean > 0).astype(float)


class LogisticWithRate(Logistic):
    def at_mean(self, mean):
        return logit(np.clip(mean, 1e-9, 1.0 - 1e-9))


@dataclass(frozen=True)
class Declared(View):
    kernel: Any = None


def declared(likelihood, **options):
    return type(f"My{likelihood.__name__}", (Declared,), {"likelihood": likelihood})(**options)


def tables(likelihood, n=150):
    """x, and a view "t" of the kind with holes that follows from the same two factors."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 2))
    x = z @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(n, 5))
    share = expit(2.0 * z @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(n, 4)))
    t = (share > 0.5).astype(float) if likelihood.binary() else share
    return {"x": x, "t": np.where(rng.random(t.shape) < 0.2, np.nan, t)}


KINDS = [CrossEntropy, Shares, Logistic, LogisticWithRate]


@pytest.mark.parametrize("options", [{}, {"kernel": "rbf"}])
@pytest.mark.parametrize("kind", KINDS)
def test_own_kind_is_an_input_that_is_filled(kind, options, tmp_path):
    data = tables(kind)
    model = kofa.FactorModel({"x": kofa.Real(), "t": declared(kind, **options)}).fit(data)
    if not options:
        filled = model.impute(data)["t"]
        assert ((filled >= 0) & (filled <= 1)).all()
    assert np.isfinite(model.score(data)).all()
    assert len(model.weights("t", tidy=True))
    assert (model.outliers(data)["view"] == "x").any()
    model.report(tmp_path / "report.html", data)


@pytest.mark.parametrize("kind", KINDS)
def test_own_kind_is_an_output_that_is_predicted_scored_and_reported(kind, tmp_path):
    data = tables(kind)
    model = kofa.FactorModel({"x": kofa.Real(), "t": declared(kind)}, outputs=["t"])
    table = kofa.cross_validate(model, data, cv=3)
    scores = {"auc", "log_loss"} if kind.binary() else {"r2", "rmse"}
    assert scores <= set(table["score"])
    model.fit(data)
    known = ~np.isnan(data["t"])
    error = np.abs(model.predict({"x": data["x"]}, "t") - data["t"])[known].mean()
    assert error < 0.5 * np.abs(np.nanmean(data["t"], axis=0) - data["t"])[known].mean()
    for method, ask in {
        "std": lambda: model.predict(data, "t", return_std=True),
        "quantile": lambda: model.predict_quantiles(data, "t", [0.1, 0.9]),
        "probability": lambda: model.predict_proba(data, "t"),
    }.items():
        if kind.has(method):
            assert np.isfinite(ask()).all()
        else:
            with pytest.raises(kofa.DataError, match=f"a My{kind.__name__} view has no"):
                ask()
    model.report(tmp_path / "report.html", data)


def test_own_kind_of_ones_keeps_their_rate():
    """The mean of its probabilities is that of the ones, as of the package's own kind."""
    data = tables(LogisticWithRate)
    views = {"x": kofa.Real(), "t": declared(LogisticWithRate)}
    model = kofa.FactorModel(views, outputs=["t"]).fit(data)
    p = model.predict_proba({"x": data["x"]}, "t")
    np.testing.assert_allclose(p.mean(axis=0), np.nanmean(data["t"], axis=0), atol=0.03)
