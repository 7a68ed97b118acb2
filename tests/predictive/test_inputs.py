"""The weights of several kernels."""

import numpy as np
import pytest

from kofa.predictive import inputs as of_inputs
from kofa.predictive.inputs import Inputs, Source, learn
from kofa.predictive.keys import first, ranks_of_rows
from numerical import differences


def sources(n=120, seed=0):
    rng = np.random.default_rng(seed)
    tables = {"told": rng.normal(size=(n, 5)), "idle": rng.normal(size=(n, 30))}
    Y = tables["told"] @ rng.normal(size=(5, 4)) + 0.5 * rng.normal(size=(n, 4))
    return {name: Source.of(X) for name, X in tables.items()}, (Y - Y.mean(axis=0)) / Y.std(axis=0)


def test_a_kernel_that_says_nothing_gets_little_weight():
    given, Y = sources()
    found = learn(given, Y, np.arange(120))
    assert found["idle"] < 0.02
    assert sum(found.values()) == pytest.approx(1.0)


def test_the_order_of_rows_does_not_matter():
    given, Y = sources()
    order = np.random.default_rng(1).permutation(120)
    shuffled = {name: Source.of(s.features[order]) for name, s in given.items()}
    rows = [first(ranks_of_rows([y]), 70) for y in (Y, Y[order])]
    assert set(order[rows[1]]) == set(rows[0])
    one, other = (
        learn(tables, y[some], some)
        for tables, y, some in ((given, Y, rows[0]), (shuffled, Y[order], rows[1]))
    )
    for name in given:
        assert one[name] == pytest.approx(other[name], abs=0.01)


def test_features_project_to_the_kernel_along_the_spectrum():
    given, _ = sources(20)
    inputs = Inputs(20, given, {"told": 0.7, "idle": 0.3})
    K = 0.7 * given["told"].gram + 0.3 * given["idle"].gram
    features = inputs.map.of_rows(
        20, {name: s.features * s.unit + s.mean for name, s in given.items()}
    )
    along = features @ inputs.map.projection
    np.testing.assert_allclose(along, K @ inputs.spectrum.U, atol=1e-10)


def test_few_features_have_the_spectrum_of_their_kernel():
    given, _ = sources(100)
    inputs = Inputs(100, {"told": given["told"]}, {"told": 1.0})
    U, e = inputs.spectrum.U, inputs.spectrum.e
    np.testing.assert_allclose((U * e) @ U.T, given["told"].gram, atol=1e-10)
    np.testing.assert_allclose(U.T @ U, np.eye(5), atol=1e-10)


def test_features_that_do_not_vary_say_nothing():
    one = Source.of(np.full((10, 2), 3.0))
    assert (one.features == 0).all()
    assert np.isfinite(one.of_rows(np.full((1, 2), 4.0))).all()


def test_one_row_less_draws_one_other():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(500, 3))
    all_rows, fewer = ranks_of_rows([Y]), ranks_of_rows([Y[1:]])
    kept = {tuple(y) for y in Y[first(all_rows, 100)]}
    after = {tuple(y) for y in Y[1:][first(fewer, 100)]}
    assert len(kept - after) <= 1


def test_rounding_draws_the_same_rows():
    Y = np.random.default_rng(0).normal(size=(300, 3))
    before, after = (set(first(ranks_of_rows([y]), 100)) for y in (Y, Y + 1e-9))
    assert len(before - after) <= 1


@pytest.mark.parametrize("outlier", [0.0, 40.0])
def test_slope_of_the_weights_is_the_derivative_of_their_cost(outlier, monkeypatch):
    given, Y = sources(60)
    Y[7, 1] += outlier
    asked = []

    def once(cost, begin, **options):
        asked.append((cost, begin))
        return minimize(cost, begin, **options)

    minimize = of_inputs.minimize
    monkeypatch.setattr(of_inputs, "minimize", once)
    learn(given, Y, np.arange(60))
    ((cost, begin),) = asked
    theta = begin + np.random.default_rng(1).normal(size=len(begin))
    expected = differences(lambda x: cost(x)[0], theta)
    np.testing.assert_allclose(cost(theta)[1], expected, rtol=1e-6, atol=1e-9)
