"""Learning what is inside kernels from the outputs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_diabetes
from sklearn.metrics import roc_auc_score

import kofa
from kofa import tuning
from kofa.kernels.evidence import Objective
from kofa.kernels.learning import learn
from kofa.kernels.mixture import components
from kofa.kernels.outputs import Outputs, resolution
from kofa.kernels.terms import KernelTerm, Time, Width
from kofa.linalg import Groups


def apart(Y):
    """Each output with a noise of its own."""
    return Outputs.of(Y, Groups(np.arange(Y.shape[1]), Y.shape[1]))


def problem(rng, holes):
    X = rng.standard_normal((25, 3))
    Y = np.sin(X[:, :2]) + 0.1 * rng.standard_normal((25, 2))
    if holes:
        Y[:5, 0] = np.nan
    sources = [
        Width(kofa.RBF(), X, X),
        Width(kofa.Laplacian(), X, X),
        KernelTerm(kofa.Linear(), X, X),
    ]
    theta = np.array([0.2, 0.7, -0.3, 0.1, -1.0, -1.5, -2.0])  # log widths, log v, log σ²
    return Objective(sources, apart(Y)), theta


@pytest.mark.parametrize("holes", [False, True])
def test_value_is_the_gaussian_log_density(rng, holes):
    objective, theta = problem(rng, holes)
    X, outputs = objective.sources[0].X, objective.outputs
    widths, v, noise = np.exp(theta[:2]), np.exp(theta[2:5]), np.exp(theta[5:])
    kernels = [kofa.RBF(widths[0]), kofa.Laplacian(widths[1]), kofa.Linear()]
    K = sum(v_m * k(X, X) for v_m, k in zip(v, kernels, strict=True))
    expected = 0.0
    for d, (y, s) in enumerate(zip(outputs.Y.T, noise, strict=True)):
        seen = np.arange(5 if holes and d == 0 else 0, 25)  # y is centred over what is observed
        H = np.eye(len(seen)) - 1 / len(seen)
        basis = np.linalg.svd(H)[0][:, :-1]  # of all that is not constant
        covariance = basis.T @ K[np.ix_(seen, seen)] @ basis + s * np.eye(len(seen) - 1)
        expected += multivariate_normal(cov=covariance).logpdf(basis.T @ y[seen])
    np.testing.assert_allclose(objective.likelihood(theta)[0], expected)


def test_time_of_a_diffusion_has_the_gradient_of_the_likelihood(rng):
    X = rng.standard_normal((40, 2))
    source = Time(kofa.Diffusion(4).of(X), X[:25], X[:25])
    objective = Objective([source], apart(np.sin(X[:25])))
    theta = np.array([1.3, -0.2, -1.0, -1.5])
    gradient = objective.likelihood(theta)[1]
    step = 1e-5 * np.eye(4)
    slopes = [
        (objective.likelihood(theta + h)[0] - objective.likelihood(theta - h)[0]) / 2e-5
        for h in step
    ]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5)
    np.testing.assert_allclose(
        source.evaluate(theta[:1])[0], source.learnt(theta[:1])(X[:25], X[:25])
    )


def test_time_of_a_diffusion_is_learnt_from_the_outputs(rng):
    X = rng.standard_normal((300, 2))
    K = kofa.Diffusion(time=20.0).of(X)(X, X) + 1e-8 * np.eye(300)
    Y = np.linalg.cholesky(K) @ rng.standard_normal((300, 6))
    (found,) = learn([kofa.Diffusion().of(X)], [X], [X], apart((Y - Y.mean(0)) / Y.std(0))).kernels
    assert found.time == pytest.approx(20.0, rel=0.4)


@pytest.mark.parametrize("holes", [False, True])
def test_left_out_outputs_are_predicted_from_the_others(rng, holes):
    X = rng.standard_normal((25, 3))
    Y = np.sin(X[:, :2]) + 3.0
    if holes:
        Y[:5, 0] = np.nan
    K, noise = kofa.RBF(1.0)(X, X), np.array([0.1, 0.3])
    outputs, expected = apart(Y), 0.0
    for d in range(2):
        rows = np.flatnonzero(~np.isnan(Y[:, d]))
        for i in rows:
            rest = np.setdiff1d(rows, i)
            C = np.linalg.inv(K[np.ix_(rest, rest)] + noise[d] * np.eye(len(rest)))
            y = outputs.Y[rest, d]
            mean = C.sum(axis=0) @ y / C.sum()  # generalised least squares
            expected += (outputs.Y[i, d] - mean - K[i, rest] @ C @ (y - mean)) ** 2
    np.testing.assert_allclose(outputs.left_out(K, noise), expected)


@pytest.mark.parametrize("width", [0.7, 3.0])
def test_planted_width_is_found(rng, width):
    X = rng.standard_normal((250, 2))
    K = kofa.RBF(width=width)(X, X) + 1e-8 * np.eye(250)
    Y = np.linalg.cholesky(K) @ rng.standard_normal((250, 4)) + 0.05 * rng.standard_normal((250, 4))
    (found,) = learn([kofa.RBF()], [X], [X], apart((Y - Y.mean(0)) / Y.std(0))).kernels
    assert found.width == pytest.approx(width, rel=0.3)


def test_fixed_widths_stay(rng):
    X = rng.standard_normal((20, 2))
    assert learn([kofa.RBF(width=2.0)], [X], [X], apart(X)).kernels == [kofa.RBF(width=2.0)]


def test_noise_is_found_where_there_is_much_of_it(rng):
    X = np.linspace(-3, 3, 200)[:, None]
    noise = np.sqrt(0.4) * rng.standard_normal(X.shape)
    Y = np.sqrt(1.2) * np.sin(2 * X) + noise
    found = learn([kofa.RBF()], [X], [X], apart(Y)).noise[0]
    assert found == pytest.approx(noise.var(), rel=0.1)  # of the noise that was drawn


def test_outliers_count_as_five_spreads():
    Y = np.array([[9.0], [-7.0], [1.0], [np.nan]])
    np.testing.assert_array_equal(apart(Y).Y[:, 0], [5.0, -5.0, 1.0, 0.0])


def test_a_width_does_not_shrink_to_where_nothing_is_similar():
    """There ℓ is flat, and the centring rewards a noise of zero; all would be predicted alike."""
    X, y = load_diabetes(return_X_y=True)
    rows, labels = np.random.default_rng(6).permutation(442)[:100], y > np.median(y)
    model = kofa.KernelFactorClassifier("rbf").fit(X[rows], labels[rows])
    rest = np.setdiff1d(np.arange(442), rows)
    assert roc_auc_score(labels[rest], model.predict_proba(X[rest])[:, 1]) > 0.75


def test_learning_ends_where_it_gains_nothing(rng):
    X = rng.standard_normal((60, 2))
    y = np.sin(X[:, :1]) + 0.3 * rng.standard_normal((60, 1))
    objective = Objective([Width(kofa.RBF(), X, X)], Outputs.of(y, Groups.one(1)))
    costs = []

    class Counting(Objective):
        def negative(self, theta):
            value = super().negative(theta)
            costs.append(value[0])
            return value

    counting = Counting(objective.sources, objective.outputs)
    ends, steps = {}, {}
    for gain in (0.0, 0.1, 1e6):
        costs.clear()
        ends[gain] = objective.negative(counting.maximise(objective.begin, 100, gain))[0]
        steps[gain] = len(costs)
    assert steps[1e6] < steps[0.1] < steps[0.0]
    assert ends[0.0] <= ends[0.1] < ends[0.0] + 0.1


def test_starts_race_only_where_there_is_a_width(rng, monkeypatch):
    X, Y, calls = rng.standard_normal((30, 900)), rng.standard_normal((30, 1)), []
    original = Objective.maximise
    monkeypatch.setattr(Objective, "maximise", lambda *args: calls.append(1) or original(*args))
    learn([kofa.Linear(), kofa.Linear()], [X, X], [X, X], apart(Y))
    assert len(calls) == 1


def test_resolution_is_the_gap_to_neighbouring_values():
    assert resolution(np.array([0.0, 1.0, 3.0, 3.0, 3.0])) == pytest.approx(2.0)
    assert resolution(np.repeat([0.0, 5.0], [94, 6])) == 5.0
    assert resolution(np.ones(5)) == 0.0
    fine = resolution(np.random.default_rng(0).normal(size=1000))
    assert 0.0 < fine < 0.01


def test_an_output_with_hardly_any_resolution_does_not_run_to_a_noise_of_zero():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    rare = np.repeat([0.0, 1.0], [113, 7])  # nothing to do with x
    y = np.column_stack([np.sin(x[:, 0]) + 0.1 * rng.normal(size=120), rng.permutation(rare)])
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    outputs = Outputs.of(y, Groups(np.arange(2), 2))
    np.testing.assert_allclose(outputs.least_noise, [0.0, 0.02], atol=1e-4)
    labels = Outputs.of(y, Groups(np.arange(2), 2), np.array([False, True]))
    assert (labels.least_noise < 1e-4).all()
    learnt = learn([kofa.RBF()], [x], [x], outputs)
    assert learnt.noise[1] >= 0.02 * (1 - 1e-9)


def test_outputs_know_which_entries_are_observed(rng):
    Y = rng.standard_normal((30, 4))
    Y[rng.random(Y.shape) < 0.3] = np.nan
    np.testing.assert_array_equal(Outputs.of(Y, Groups(np.arange(4), 4)).seen, ~np.isnan(Y))


def test_kernels_do_not_depend_on_the_order_of_rows_or_on_rounding(rng, monkeypatch):
    """Of 120 rows 60 are learnt from, and starts race on 20."""
    monkeypatch.setattr(tuning, "LEARNING_ROWS", 60)
    monkeypatch.setattr(tuning, "RACE_ROWS", 20)
    X = rng.standard_normal((120, 3)).round(2)
    y = np.sin(X[:, :1]) + 0.3 * rng.standard_normal((120, 1))

    def found(X, y, seed=None):
        views = {"x": kofa.Real(kernel="bank"), "y": kofa.Real()}
        model = kofa.FactorModel(views, outputs=["y"], random_state=seed).fit({"x": X, "y": y})
        return [getattr(k, "width", 1.0) for _, k in components(model.kernels_["x"])]

    order, plain = rng.permutation(120), found(X, y)
    np.testing.assert_allclose(found(X[order], y[order]), plain, rtol=1e-6)
    np.testing.assert_allclose(found(X, y, seed=5), plain, rtol=1e-6)
    np.testing.assert_allclose(found(X.astype("f4"), y.astype("f4")), plain, rtol=1e-3)
