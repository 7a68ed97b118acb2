"""Relevance of features, learnt from the outputs."""

from __future__ import annotations

import numpy as np
import pytest

import kofa
from kofa.kernels.evidence import _FEW_NOISES, Objective, _by_eigenvalues, _complete
from kofa.kernels.formulas import Polynomial
from kofa.kernels.gaps import PackedGaps, gap_sums
from kofa.kernels.learning import learn, starts
from kofa.kernels.outputs import Outputs
from kofa.kernels.terms import KernelTerm, LogRelevance, Relevance, Width
from kofa.linalg import Groups, centre
from numerical import differences

PLANTED = [2, 7, 11]


def apart(Y):
    return Outputs.of(Y, Groups(np.arange(Y.shape[1]), Y.shape[1]))


def nonlinear(rng, n=120, d=15):
    """A function of three features, on unit scale."""
    X = rng.standard_normal((n, d))
    a, b, c = X[:, PLANTED].T
    y = np.sin(1.5 * a) + b**2 - 1.0 + c + 0.1 * rng.standard_normal(n)
    return X, (y / y.std())[:, None]


def fit(kernel, x, y, output=None, **options):
    views = {"x": kofa.Real(kernel=kernel, **options), "y": output or kofa.Real()}
    return kofa.FactorModel(views, outputs=["y"]).fit({"x": x, "y": y})


def relevance(model, view="x"):
    """λ in the order of the columns."""
    return np.array(model.kernels_[view].relevance)


# ---------------------------------------------------------------- gradients


def sources_of(name, X):
    """Sources of one objective by name; some have nothing to learn inside."""
    rbf, linear = kofa.RBF(2.0), kofa.Linear()
    pairs = ("a", "a", "b", "b", "c")
    sources = {
        "width": [Width(kofa.RBF(), X, X)],
        "laplacian": [Width(kofa.Laplacian(), X, X)],
        "rbf": [Relevance(rbf, X, X, True)],
        "linear": [Relevance(linear, X, X, False)],
        "groups": [Relevance(kofa.RBF(2.0, groups=pairs), X, X, True)],
        "sparse": [Relevance(kofa.RBF(2.0, sparsity=3.0), X, X, True)],
        "sparse linear": [Relevance(kofa.Linear(sparsity=0.5), X, X, False)],
        "log": [LogRelevance(kofa.Laplacian(3.0), X, X, True)],
        "log, fixed width": [LogRelevance(kofa.Laplacian(3.0), X, X, False)],
        "log, groups": [LogRelevance(kofa.Laplacian(3.0, groups=pairs), X, X, True)],
        "sparse laplacian": [Relevance(kofa.Laplacian(3.0, sparsity=2.0), X, X, True)],
    }
    several = [
        *sources["rbf"], *sources["linear"], *sources["width"], KernelTerm(Polynomial(2), X, X),
    ]  # fmt: skip
    sources["bank"] = [KernelTerm(linear, X, X), *sources["width"], *sources["log"]]
    return sources.get(name, several)


NAMES = ["width", "laplacian", "rbf", "linear", "groups", "sparse", "sparse linear", "several"]
LAPLACIAN = ["log", "log, fixed width", "log, groups", "sparse laplacian", "bank"]


def objective_of(rng, name, holes=False, many=False, shared=False):
    X = rng.standard_normal((30, 5))
    C = _FEW_NOISES + 2 if many else 2
    Y = np.sin(X @ rng.standard_normal((5, C))) + 0.2 * rng.standard_normal((30, C))
    if holes:
        Y[:6, 0] = Y[20:, 1] = np.nan
    label = np.zeros(C, dtype=np.intp) if shared else np.arange(C)
    outputs = Outputs.of(Y, Groups(label, int(label.max()) + 1))
    objective = Objective(sources_of(name, X), outputs)
    theta = objective.begin + 0.3 * rng.standard_normal(len(objective.begin))
    return objective, np.abs(theta) if name.startswith("sparse") else theta


def check_gradient(objective, theta, rtol=1e-6, atol=1e-7):
    for part in (objective.likelihood, objective.log_prior, objective.negative):
        numerical = differences(lambda t, part=part: part(t)[0], theta)
        np.testing.assert_allclose(part(theta)[1], numerical, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", NAMES)
def test_gradient_in_every_parameter(rng, name):
    check_gradient(*objective_of(rng, name))


@pytest.mark.parametrize("name", LAPLACIAN)
def test_gradient_in_the_relevances_of_a_laplacian(rng, name):
    """Its sums of gaps are in single precision."""
    check_gradient(*objective_of(rng, name, holes=True), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
@pytest.mark.parametrize("shared", [False, True], ids=["apart", "shared"])
def test_gradient_with_missing_outputs(rng, many, shared):
    check_gradient(*objective_of(rng, "several", holes=True, many=many, shared=shared))


def test_few_and_many_noises_are_computed_alike(rng):
    X, Y = rng.standard_normal((40, 3)), rng.standard_normal((40, 4))
    K, Y = centre(kofa.RBF(1.5)(X, X)), Y - Y.mean(axis=0)
    noise, label = np.array([0.1, 0.5, 2.0]), np.array([0, 2, 1, 2])
    for few, many in zip(
        _complete(K, Y, noise, label), _by_eigenvalues(K, Y, noise, label), strict=True
    ):
        np.testing.assert_allclose(few, many, rtol=1e-8, atol=1e-8)


def test_noises_that_no_column_has_get_no_gradient(rng):
    """Columns that are observed together may have only some of the noises."""
    X, Y = rng.standard_normal((20, 2)), rng.standard_normal((20, 1))
    K, Y = centre(kofa.RBF(1.0)(X, X)), Y - Y.mean(axis=0)
    for way in (_complete, _by_eigenvalues):
        of_noise = way(K, Y, np.array([0.3, 0.4]), np.array([1]))[2]
        assert of_noise[0] == 0.0
        assert of_noise[1] != 0.0


@pytest.mark.parametrize("make", [lambda r: kofa.RBF(1.3, relevance=r),
                                  lambda r: kofa.Linear(relevance=r),
                                  lambda r: kofa.Laplacian(1.3, relevance=r)])  # fmt: skip
def test_relevance_gradient_of_any_function_of_the_kernel(rng, make):
    X, V, G = (rng.standard_normal(s) for s in ((7, 4), (5, 4), (7, 5)))
    weights = np.array([0.5, 1.0, 2.0, 0.7])
    kernel = make(weights)
    rtol = 1e-5 if isinstance(kernel, kofa.Laplacian) else 1e-6  # in single precision
    for others, slope in ((V, G), (X, rng.standard_normal((7, 7)))):
        gradient = kernel.relevance_gradient(X, others, kernel(X, others), slope)
        numerical = differences(lambda r: float(np.vdot(slope, make(r)(X, others))), weights)  # noqa: B023
        np.testing.assert_allclose(gradient, numerical, rtol=rtol)


def test_relevance_gradient_of_a_laplacian_in_any_unit_and_size(rng, monkeypatch):
    X, G = rng.standard_normal((9, 3)), rng.standard_normal((9, 9))
    unit = np.array([1e-60, 1.0, 1e60])
    plain = kofa.Laplacian(1.0, relevance=[1.0, 1.0, 1.0])
    other = kofa.Laplacian(1.0, relevance=1 / unit)
    expected = plain.relevance_gradient(X, X, plain(X, X), G)
    found = other.relevance_gradient(X * unit, X * unit, other(X * unit, X * unit), G)
    np.testing.assert_allclose(found / unit, expected, rtol=1e-5)
    monkeypatch.setattr("kofa.kernels.gaps._CACHE", 1)  # row by row
    np.testing.assert_allclose(plain.relevance_gradient(X, X, plain(X, X), G), expected, rtol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 41])
def test_packed_gaps_have_the_same_sums(rng, n, monkeypatch):
    X, H = rng.standard_normal((n, 3)) * [1e-3, 1.0, 1e3], rng.standard_normal((n, n))
    H = H + H.T
    gaps = np.abs(X[:, None] - X)
    expected = np.einsum("nu,nuj->j", H, gaps)
    size = np.einsum("nu,nuj->j", np.abs(H), gaps) + 1e-300
    assert (np.abs(PackedGaps.of(X).sums(H) - expected) <= 1e-6 * size).all()
    assert (np.abs(gap_sums(X, X, H) - expected) <= 1e-6 * size).all()
    monkeypatch.setattr("kofa.kernels.gaps._CACHE", 1)  # pair by pair
    assert (np.abs(PackedGaps.of(X).sums(H) - expected) <= 1e-6 * size).all()


def test_gaps_that_take_much_memory_are_not_packed(rng, monkeypatch):
    """The gradient is the same."""
    objective, theta = objective_of(rng, "bank")
    _, expected = objective.likelihood(theta)
    monkeypatch.setattr("kofa.kernels.gaps._MOST_PACKED", 30 * 29 // 2 * 5 - 1)
    X = objective.sources[0].X
    assert PackedGaps.of(X) is None
    again = Objective(sources_of("bank", X), objective.outputs)
    np.testing.assert_allclose(again.likelihood(theta)[1], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["rbf", "log", "log, groups", "bank"])
def test_features_that_are_constant_on_some_rows_keep_their_parameters(rng, name):
    """θ of some rows is one of all rows, and the kernel that of the same rows among all."""
    X, rows = rng.standard_normal((30, 5)), np.arange(0, 30, 2)
    X[rows, 1] = 0.0
    Y = rng.standard_normal((30, 2))
    objective = Objective(sources_of(name, X), apart(Y))
    some = objective.some(rows)
    assert len(some.bounds) == len(some.begin) == len(objective.begin)
    theta = objective.begin + 0.1 * rng.standard_normal(len(objective.begin))
    own = objective.split(theta)[0]
    for one, all_rows, t in zip(some.sources, objective.sources, own, strict=True):
        K = all_rows.evaluate(t)[0][np.ix_(rows, rows)]
        np.testing.assert_allclose(one.evaluate(t)[0], K, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(some.outputs.Y, objective.outputs.Y[rows])


def test_starts_race_on_some_rows_and_the_best_goes_on_with_all(rng, monkeypatch):
    monkeypatch.setattr("kofa.tuning.RACE_ROWS", 20)
    seen, maximise = [], Objective.maximise

    def watched(self, *given):
        seen.append(len(self.outputs.Y))
        return maximise(self, *given)

    monkeypatch.setattr(Objective, "maximise", watched)
    X, y = nonlinear(rng, n=50)
    bank = [kofa.Linear(), kofa.RBF(), kofa.Laplacian(relevance="auto")]
    learn(bank, [X] * 3, [X] * 3, apart(y))
    assert seen == [20, 20, 50]


def test_weights_inside_a_kernel_scale_its_columns(rng):
    X, V, weights = rng.standard_normal((4, 3)), rng.standard_normal((6, 3)), [0.25, 0.0, 4.0]
    root = np.sqrt(weights)
    for plain, weighted, scale in (
        (kofa.RBF(1.5), kofa.RBF(1.5, relevance=weights), root),
        (kofa.Linear(), kofa.Linear(relevance=weights), root),
        (kofa.Laplacian(1.5), kofa.Laplacian(1.5, relevance=weights), root**2),
    ):
        np.testing.assert_allclose(weighted(X, V), plain(X * scale, V * scale))
        np.testing.assert_allclose(weighted(X, X), plain(X * scale, X * scale))
        np.testing.assert_allclose(weighted.diagonal(X), np.diagonal(weighted(X, X)))


# ---------------------------------------------------------------- what is found


def test_planted_features_are_found(rng):
    X, y = nonlinear(rng)
    model = fit(kofa.RBF(relevance="learn"), X, y)
    assert model.selected_features("x", top=3) == PLANTED
    weights = relevance(model)
    assert weights.mean() == pytest.approx(1.0)  # where the width is free
    assert np.delete(weights, PLANTED).max() < 0.2 * weights[PLANTED].min()


def test_relevance_predicts_better_than_one_width(rng):
    X, y = nonlinear(rng, n=220)
    error = {}
    for name, kernel in {"one": kofa.RBF(), "each": kofa.RBF(relevance="learn")}.items():
        model = fit(kernel, X[:120], y[:120])
        error[name] = float(np.mean((y[120:] - model.predict({"x": X[120:]}, "y")) ** 2))
    assert error["each"] < 0.5 * error["one"]


def test_planted_features_of_a_linear_kernel_are_found(rng):
    X = rng.standard_normal((120, 15))
    y = X[:, PLANTED] @ [[1.0], [-1.0], [0.7]] + 0.1 * rng.standard_normal((120, 1))
    model = fit(kofa.Linear(relevance="learn"), X, y)
    assert model.selected_features("x", top=3) == PLANTED


def test_planted_features_of_a_laplacian_kernel_are_found(rng):
    X, y = nonlinear(rng)
    model = fit(kofa.Laplacian(relevance="learn"), X, y)
    assert model.selected_features("x", top=3) == PLANTED
    assert relevance(model).mean() == pytest.approx(1.0)


def test_every_default_fit_knows_which_features_matter(rng):
    X, y = nonlinear(rng, n=200)
    model = kofa.KernelFactorRegressor().fit(X, y).model_
    assert set(model.selected_features("X", top=2)) == set(PLANTED[:2])  # the third is a line
    labels = (y[:, 0] > 0).astype(int)
    model = kofa.KernelFactorClassifier().fit(X[:, :12], labels).model_
    assert len(model.feature_relevance("X")) == 12


def test_the_bank_has_no_relevance_where_there_is_nothing_to_learn_from(rng):
    """Without outputs, and where it is an output itself."""
    X = rng.standard_normal((30, 4))
    model = kofa.KernelFactorAnalysis().fit(X).model_
    assert model.kernels_["X"].kernels[2].relevance is None
    views = {"x": kofa.Real(), "y": kofa.Real(kernel="bank")}
    model = kofa.FactorModel(views, outputs=["y"]).fit({"x": X, "y": X})
    assert model.kernels_["y"].kernels[2].relevance is None
    with pytest.raises(kofa.DataError, match="no relevance of features"):
        model.feature_relevance("y")


def test_relevance_auto_with_given_weights_is_none(rng):
    X, y = nonlinear(rng, n=40)
    kernel = kofa.Mixture([kofa.Linear(), kofa.Laplacian(relevance="auto")], weights=[1, 1])
    assert fit(kernel, X, y).kernels_["x"].kernels[1].relevance is None


def test_relevances_of_a_laplacian_start_from_two_sets_of_weights(rng):
    X = rng.standard_normal((30, 5))
    objective = Objective(sources_of("bank", X), apart(X[:, :2]))
    found = starts(objective)
    assert [len(widths) for widths in found] == [3, 3]
    for widths, shares in zip(found, ([1 / 3, 1 / 3, 1 / 3], [0.2, 0.005, 0.795]), strict=True):
        for theta in widths:
            np.testing.assert_allclose(objective.split(theta)[1] * objective.variances, shares)
    alone = Objective(sources_of("log", X), apart(X[:, :2]))
    assert [len(widths) for widths in starts(alone)] == [3]


def learnt(kernel, X, y):
    """λ as the outputs have it."""
    return np.array(learn([kernel], [X], [X], apart(y)).kernels[0].relevance)


def test_narrow_waves_are_found():
    """Starts from .5 times the median distance miss them."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((150, 15))
    a, b, c, d = X[:, :4].T
    Y = np.column_stack([np.sin(3 * a) + b * c, np.cos(2 * d) * a])
    Y = Y / Y.std(axis=0) + 0.1 * rng.standard_normal(Y.shape)
    weights = learnt(kofa.RBF(relevance="learn"), X, Y - Y.mean(axis=0))
    assert weights[:4].min() > 10 * weights[4:].max()


@pytest.mark.parametrize("kernel", [kofa.RBF, kofa.Linear])
def test_relevance_that_does_not_predict_is_not_kept(kernel):
    """With more features than samples the likelihood always finds some that fit."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 80))
    X[:, 5] = 1.0
    y = X @ rng.standard_normal((80, 1)) / 9 + rng.standard_normal((60, 1))
    found = learnt(kernel(relevance="learn"), X, y)
    assert found[5] == 0.0
    np.testing.assert_allclose(np.delete(found, 5), 1.0, atol=0.3)
    assert len(set(found)) > 40  # their order is left


@pytest.mark.filterwarnings("ignore:.*all but constant")
def test_nothing_is_selected_where_nothing_is_known(rng):
    X, y = rng.standard_normal((60, 200)), rng.standard_normal((60, 1))
    for kernel in (kofa.RBF(relevance="learn"), "bank"):
        model = fit(kernel, X, y)
        assert model.selected_features("x") == []
        assert len(model.selected_features("x", top=5)) == 5


@pytest.mark.parametrize(
    ("given", "selected"),
    [
        ([3.0, 1.0, 0.5, 0.0], [0, 1, 2]),  # one is off
        ([3.0, 1.0, 0.5, 0.001], [0, 1, 2]),
        ([1.0, 1.0, 1.0, 1.0], []),  # none is off, and none stands out
        ([9.0, 0.4, 0.5, 0.4], [0]),
        ([0.0, 0.0, 0.0, 0.0], []),
    ],
)
def test_selected_are_those_above_features_that_are_off_or_that_stand_out(rng, given, selected):
    X = rng.standard_normal((30, 4))
    model = fit(kofa.RBF(2.0, relevance=given), X, X[:, :1])
    assert model.selected_features("x") == selected


def test_held_out_errors_are_those_of_a_gaussian_process(rng):
    X, Y = rng.standard_normal((30, 3)), rng.standard_normal((30, 3))
    Y[:4, 1] = Y[25:, 2] = np.nan
    outputs, K = Outputs.of(Y, Groups(np.array([0, 1, 1]), 2)), kofa.RBF(1.5)(X, X)
    noise, most, rest = np.array([0.2, 0.5]), np.arange(20), np.arange(20, 30)
    expected = np.zeros(10)
    for d, s in enumerate(noise[[0, 1, 1]]):
        known = most[~np.isnan(Y[most, d])]
        n, y = len(known), Y[known, d]
        H = np.eye(n) - 1 / n
        k = (K[np.ix_(rest, known)] - K[np.ix_(known, known)].mean(axis=0)) @ H
        a = np.linalg.solve(H @ K[np.ix_(known, known)] @ H + s * np.eye(n), y - y.mean())
        expected += np.nan_to_num(Y[rest, d] - y.mean() - k @ a) ** 2
    np.testing.assert_allclose(outputs.errors(K, noise, most, rest), expected)


def test_outputs_of_some_rows(rng):
    Y = rng.standard_normal((12, 2))
    Y[:6, 0] = np.nan
    rows = np.array([1, 3, 7, 8])
    some = apart(Y).some(rows)
    np.testing.assert_array_equal(some.Y, np.nan_to_num(Y[rows]))
    assert [(r.tolist(), c.tolist()) for r, c in some.patterns] == [
        ([2, 3], [0]),
        ([0, 1, 2, 3], [1]),
    ]
    assert len(apart(Y).some(np.array([0, 1])).patterns) == 1


@pytest.mark.parametrize("kernel", [kofa.RBF, kofa.Linear, kofa.Laplacian])
def test_a_larger_sparsity_is_never_less_strict(kernel):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 8))
    y = (X[:, :3] @ [[1.0], [0.5], [0.2]]) + 0.5 * rng.standard_normal((40, 1))
    y = (y - y.mean()) / y.std()
    prices = (0.0, 1.0, 8.0, 64.0)
    on = [int((learnt(kernel(relevance="learn", sparsity=s), X, y) > 0).sum()) for s in prices]
    assert (np.diff(on) <= 0).all()
    assert on[0] > on[-1]


@pytest.mark.filterwarnings("ignore:.*same value in all samples")
@pytest.mark.parametrize("kernel", [kofa.RBF, kofa.Linear, kofa.Laplacian])
def test_constant_feature_has_no_relevance(rng, kernel):
    X, y = nonlinear(rng, n=60)
    X[:, 4] = 3.0
    weights = relevance(fit(kernel(relevance="learn"), X, y))
    assert weights[4] == 0.0
    assert weights[PLANTED].min() > 0.0


def test_groups_share_their_relevance(rng):
    X, y = nonlinear(rng)
    groups = np.repeat(list("abcde"), 3)  # features 2, 7 and 11 are in a, c and d
    model = fit(kofa.RBF(relevance="learn", groups=groups), X, y)
    weights = relevance(model).reshape(5, 3)
    assert (weights == weights[:, :1]).all()
    assert set(np.argsort(-weights[:, 0])[:3]) == {0, 2, 3}
    table = model.feature_relevance("x")
    assert list(table.group) == [groups[j] for j in table.feature]


@pytest.mark.filterwarnings("ignore:.*same value in all samples")
def test_group_with_a_constant_feature(rng):
    X, y = nonlinear(rng, n=60)
    X[:, 1] = 0.0
    weights = relevance(fit(kofa.RBF(relevance="learn", groups=np.arange(15) // 3), X, y))
    assert weights[1] == 0.0
    assert weights[0] == weights[2] > 0.0


def test_sparsity_switches_features_off_exactly(rng):
    X, y = nonlinear(rng)
    weights = relevance(fit(kofa.RBF(relevance="learn", sparsity=5.0), X, y))
    assert (weights[PLANTED] > 0).all()
    assert (np.delete(weights, PLANTED) == 0.0).all()


def test_without_sparsity_nothing_is_off_exactly(rng):
    X, y = nonlinear(rng)
    assert (relevance(fit(kofa.RBF(relevance="learn"), X, y)) > 0).all()


def test_fixed_width_stays(rng):
    X, y = nonlinear(rng, n=60)
    model = fit(kofa.RBF(2.5, relevance="learn"), X, y)
    assert model.kernels_["x"].width == 2.5


def test_given_relevance_stays(rng):
    X, y = nonlinear(rng, n=60)
    given = np.arange(15.0)
    np.testing.assert_array_equal(relevance(fit(kofa.RBF(relevance=given), X, y)), given)


def test_relevance_does_not_collapse(rng):
    X, y = nonlinear(rng)
    found = {}
    for steps in (300, 3000):
        learnt = learn([kofa.RBF(relevance="learn")], [X], [X], apart(y), max_iter=steps)
        kernel, weights = learnt.kernels[0], np.array(learnt.kernels[0].relevance)
        norm = float(np.linalg.norm(learnt.weights[0] * centre(kernel(X, X))))
        found[steps] = [norm, weights.std(), learnt.likelihood]
    np.testing.assert_allclose(found[300], found[3000], rtol=0.01)
    norm, spread, likelihood = found[3000]
    assert norm > 10.0  # of outputs on unit scale, 120 of them
    assert spread > 0.5
    isotropic = learn([kofa.RBF()], [X], [X], apart(y)).likelihood
    assert likelihood > isotropic + 50.0


# ---------------------------------------------------------------- other data


def test_binary_outputs(rng):
    X, y = nonlinear(rng, n=200)
    model = fit(kofa.RBF(relevance="learn"), X, (y > np.median(y)).astype(float), kofa.Binary())
    assert set(PLANTED) <= set(model.selected_features("x", top=4))


def test_categorical_outputs(rng):
    X = rng.standard_normal((120, 12))
    labels = np.array(list("abc"))[np.argmax(X[:, [1, 5, 9]], axis=1)]
    model = fit(kofa.RBF(relevance="learn"), X, labels, kofa.Categorical())
    assert model.selected_features("x", top=3) == [1, 5, 9]


def test_holes_in_the_features(rng):
    X, y = nonlinear(rng, n=200)
    X[rng.random(X.shape) < 0.03] = np.nan
    model = fit(kofa.RBF(relevance="learn"), X, y)
    assert model.selected_features("x", top=3) == PLANTED
    assert np.isfinite(model.predict({"x": X}, "y")).all()


def test_relevance_with_few_landmarks(rng):
    X, y = nonlinear(rng)
    model = fit(kofa.RBF(relevance="learn"), X, y, landmarks=40)
    assert len(model.views_["x"].encoder.V) == 40
    assert model.selected_features("x", top=3) == PLANTED


def test_relevance_inside_a_mixture(rng):
    X, y = nonlinear(rng)
    kernel = kofa.Mixture([kofa.Linear(), kofa.RBF(relevance="learn")])
    model = fit(kernel, X, y)
    assert model.kernels_["x"].kernels[0].relevance is None
    assert model.feature_relevance("x").relevance.iloc[0] > 1.0
    assert np.isfinite(model.predict({"x": X}, "y")).all()


# ---------------------------------------------------------------- nothing to learn from


LEARN = kofa.Real(kernel=kofa.RBF(relevance="learn"))


@pytest.mark.parametrize(
    ("views", "outputs"),
    [
        ({"x": LEARN}, None),
        ({"x": LEARN, "y": kofa.Real()}, None),
        ({"x": LEARN, "y": kofa.Real(kernel="rbf")}, ["y"]),
        ({"x": kofa.Real(), "y": LEARN}, ["y"]),
    ],
    ids=["alone", "no outputs", "kernelized output", "itself an output"],
)
def test_refuses_without_outputs_to_learn_from(rng, views, outputs):
    data = {name: rng.standard_normal((20, 3)) for name in views}
    with pytest.raises(kofa.DeclarationError, match=r"relevance='learn' needs an output"):
        kofa.FactorModel(views, outputs=outputs).fit(data)


def test_a_mixture_refuses_too(rng):
    kernel = kofa.Mixture([kofa.Linear(), kofa.RBF(relevance="learn")])
    with pytest.raises(kofa.DeclarationError, match=r"View 'x'.*relevance='learn'"):
        kofa.FactorModel({"x": kofa.Real(kernel=kernel)}).fit({"x": rng.standard_normal((20, 3))})


MIXED = {
    "weights given": kofa.Mixture([kofa.Linear(), kofa.RBF(relevance="learn")], weights=[1, 1]),
}


@pytest.mark.parametrize("kernel", MIXED.values(), ids=MIXED)
def test_relevance_in_a_mixture_is_learnt_or_refused(rng, kernel):
    """What was asked for is not passed over in silence."""
    X, y = nonlinear(rng, n=60)
    try:
        model = fit(kernel, X, y)
    except kofa.DeclarationError as error:
        said = str(error)
    else:
        said = "learnt" if np.ptp(model.feature_relevance("x").relevance) > 0 else "passed over"
    assert said.startswith(("learnt", "View 'x'"))
