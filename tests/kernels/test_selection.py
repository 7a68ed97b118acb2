"""Relevance vectors: the landmarks that explain the outputs, or the kernel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import kofa
from kofa import tuning
from kofa.kernels.mixture import components
from kofa.kernels.selection import (
    Candidates,
    Evidence,
    Pool,
    _add,
    _losses,
    _noise,
    by_evidence,
    by_residual,
    squared_errors,
)
from kofa.linalg import Groups
from kofa.preparation.fit_data import FitData
from kofa.preparation.learnt_kernels import learn_kernels, with_wider_kernels
from kofa.storage.archive import read_archive

N = 30
NOISE, NOISES = np.array([0.1, 0.001]), Groups(np.array([0, 1, 0]), 2)  # one below the floor


def nystrom(K, rows, chosen):
    """K_nS K_SS^-1 K_Sn"""
    k = K[:, chosen]
    return k @ np.linalg.solve(k[rows[chosen]], k.T) if len(chosen) else 0.0


def direct(candidates, chosen, Y, base=None):
    """ℓ = Σ_d log N(y_d | 0, HQH + σ_d² I), from the covariance itself."""
    Q = sum(nystrom(c.K, c.rows, list(s)) for c, s in zip(candidates, chosen, strict=True))
    Q = Q + (0.0 if base is None else base) + np.zeros((len(Y), len(Y)))
    H = np.eye(len(Y)) - 1 / len(Y)
    noise = np.maximum(NOISE, tuning.VECTOR_LEAST_NOISE)[NOISES.label]
    return sum(
        multivariate_normal(np.zeros(len(Y)), H @ Q @ H + s * np.eye(len(Y))).logpdf(H @ y)
        for y, s in zip(Y.T, noise, strict=True)
    )


def problem(rng, views=1, base=False, most=N):
    """Candidates of some views, outputs, and kernels that are there in any case."""
    X = rng.standard_normal((N, 2))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1], X[:, 0] * X[:, 1]])
    Y += 0.1 * rng.standard_normal(Y.shape)
    kernels = [kofa.RBF(1.0), kofa.Laplacian(2.0)][:views]
    rows = [np.arange(N), np.arange(3, N, 2)]  # of the second view only some qualify
    candidates = [
        Candidates(1.5 * k(X, X[r]), r, most) for k, r in zip(kernels, rows, strict=False)
    ]
    return candidates, Y, kofa.Linear()(X, X) if base else None


def with_one_more(candidates, chosen, Y, base, m, u):
    more = [[*s, u] if i == m else s for i, s in enumerate(chosen)]
    return direct(candidates, more, Y, base)


every_problem = pytest.mark.parametrize(
    "options",
    [{}, {"views": 2}, {"base": True}, {"views": 2, "base": True}],
    ids=["one", "two views", "base", "two views and base"],
)


@every_problem
def test_gains_are_those_of_the_likelihood_itself(rng, options):
    candidates, Y, base = problem(rng, **options)
    evidence = Evidence(Y, NOISE, NOISES, base)
    pools = [Pool(one, evidence) for one in candidates]
    for step in range(5):
        chosen = [pool.chosen for pool in pools]
        before = direct(candidates, chosen, Y, base)
        for m, pool in enumerate(pools):
            for u in set(range(len(pool.rows))) - set(pool.chosen):
                expected = with_one_more(candidates, chosen, Y, base, m, u) - before
                assert pool.gains()[u] == pytest.approx(expected, rel=1e-6, abs=1e-6)
        m = step % len(pools)
        _add(pools, m, int(np.argmax(pools[m].gains())))


@every_problem
def test_losses_are_those_of_leaving_one_out(rng, options):
    candidates, Y, base = problem(rng, **options)
    evidence = Evidence(Y, NOISE, NOISES, base)
    pools = [Pool(one, evidence) for one in candidates]
    chosen = [[5, 1, 8], [2, 0]][: len(pools)]
    for m, order in enumerate(chosen):
        for u in order:
            _add(pools, m, u)
    full = direct(candidates, chosen, Y, base)
    for m, (one, order) in enumerate(zip(candidates, chosen, strict=True)):
        expected = [
            full - direct(candidates, [[v for v in s if (i, v) != (m, u)]
                                       for i, s in enumerate(chosen)], Y, base)
            for u in order
        ]  # fmt: skip
        np.testing.assert_allclose(_losses(one, np.array(order), evidence), expected, rtol=1e-5)


@every_problem
def test_each_choice_is_the_best(rng, options):
    candidates, Y, base = problem(rng, **options)
    selections = by_evidence(candidates, Y, NOISE, NOISES, base)
    chosen, left = [[] for _ in candidates], [list(s.chosen) for s in selections]
    while any(left):
        gains = {
            (m, u): with_one_more(candidates, chosen, Y, base, m, u)
            for m, one in enumerate(candidates)
            for u in set(range(len(one.rows))) - set(chosen[m])
        }
        m, u = max(gains, key=gains.__getitem__)
        assert left[m].pop(0) == u
        chosen[m].append(u)


def test_relevance_is_what_is_lost_or_would_be_gained(rng):
    candidates, Y, base = problem(rng, views=2, base=True)
    selections = by_evidence(candidates, Y, NOISE, NOISES, base)
    chosen = [list(s.chosen) for s in selections]
    assert all(chosen)
    full = direct(candidates, chosen, Y, base)
    for m, (one, selection) in enumerate(zip(candidates, selections, strict=True)):
        for u in range(len(one.rows)):
            if u in chosen[m]:
                less = [[v for v in s if (i, v) != (m, u)] for i, s in enumerate(chosen)]
                expected = full - direct(candidates, less, Y, base)
            else:
                expected = with_one_more(candidates, chosen, Y, base, m, u) - full
            assert selection.relevance[u] == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_landmarks_left_out_at_the_cap_have_a_relevance(rng):
    candidates, Y, _ = problem(rng, most=3)
    (selection,) = by_evidence(candidates, Y, NOISE, NOISES)
    assert len(selection.chosen) == 3
    full = direct(candidates, [list(selection.chosen)], Y)
    for u in set(range(N)) - set(selection.chosen):
        expected = with_one_more(candidates, [list(selection.chosen)], Y, None, 0, u) - full
        assert selection.relevance[u] == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_the_choice_pays_for_itself(rng):
    candidates, Y, _ = problem(rng)
    (selection,) = by_evidence(candidates, Y, NOISE, NOISES)
    worth = [
        direct(candidates, [list(selection.chosen[:k])], Y) - tuning.VECTOR_PRICE * k
        for k in range(len(selection.chosen) + 1)
    ]
    assert int(np.argmax(worth)) == len(selection.chosen)
    assert 0 < len(selection.chosen) < N


def test_nothing_is_chosen_for_noise(rng):
    candidates, Y, _ = problem(rng)
    noise = rng.standard_normal(Y.shape)
    (selection,) = by_evidence(candidates, noise, np.array([1.0, 1.0]), NOISES)
    assert len(selection.chosen) <= 1


def test_most_that_may_be_chosen(rng):
    candidates, Y, _ = problem(rng, views=2, most=2)
    assert [len(s.chosen) for s in by_evidence(candidates, Y, NOISE, NOISES)] == [2, 2]


def test_duplicates_are_never_chosen_twice(rng):
    X = np.repeat(rng.standard_normal((10, 2)), 3, axis=0)
    Y = np.sin(X) + 0.05 * rng.standard_normal(X.shape)
    candidates = Candidates(kofa.RBF(1.0)(X, X), np.arange(N), N)
    noises = Groups(np.arange(2), 2)
    (selection,) = by_evidence([candidates], Y, np.array([0.01, 0.01]), noises)
    originals = selection.chosen // 3
    assert len(originals) == len(set(originals)) >= 3
    residual = by_residual(candidates)
    assert len(residual.chosen) == len(set(residual.chosen // 3))


# ---------------------------------------------------------------- how well a choice predicts


def test_spanned_is_nystroms_kernel(rng):
    candidates, _, _ = problem(rng, views=2)
    known = np.arange(0, N, 2)
    for one in candidates:
        chosen = np.arange(0, len(one.rows), 3)
        Q = one.spanned(one.rows[chosen], known)
        np.testing.assert_allclose(Q, nystrom(one.K, one.rows, chosen), atol=1e-5)


def test_spanned_leaves_out_what_a_factor_model_takes_for_noise(rng):
    X = rng.standard_normal((N, 2))
    wide = Candidates(kofa.RBF(10.0)(X, X), np.arange(N), N)
    everything = nystrom(wide.K + 1e-13 * np.eye(N), wide.rows, np.arange(8))
    assert np.linalg.matrix_rank(everything, tol=1e-7) == 8
    assert np.linalg.matrix_rank(wide.spanned(np.arange(8), np.arange(N)), tol=1e-9) <= 6
    nothing = Candidates(np.zeros((N, N)), np.arange(N), N)
    np.testing.assert_array_equal(nothing.spanned(np.arange(8), np.arange(N)), 0.0)


def test_noise_of_the_highest_evidence(rng):
    e, noises = rng.gamma(1.0, size=N) * (np.arange(N) > 0), Groups(np.array([0, 1, 0]), 2)
    along = np.sqrt(e[:, None] + [0.5, 0.1, 0.5]) * rng.standard_normal((N, 3))
    along[0] = 0.0  # the mean

    def evidence(noise):
        variance = e[1:, None] + noise[noises.label]
        return -0.5 * (along[1:] ** 2 / variance + np.log(variance)).sum()

    found = _noise(e, along, np.array([1.0, 1.0]), noises)
    for g in range(2):
        for factor in (0.9, 1.1):
            assert evidence(found) > evidence(np.where(np.arange(2) == g, factor * found, found))


@every_problem
def test_errors_of_new_rows_are_those_of_the_covariance_itself(rng, options):
    candidates, Y, base = problem(rng, **options)
    known = np.arange(5, N)
    own = None if base is None else base[5:, 5:]
    some = [one.among(known) for one in candidates]
    Q = np.zeros((N, N)) if base is None else base
    for one, s in zip(candidates, by_evidence(some, Y[5:], NOISE, NOISES, own), strict=True):
        Q = Q + nystrom(one.K, one.rows, np.flatnonzero(one.rows >= 5)[s.chosen])
    H = np.vstack([np.c_[np.eye(5), np.full((5, N - 5), -1 / (N - 5))],
                   np.c_[np.zeros((N - 5, 5)), np.eye(N - 5) - 1 / (N - 5)]])  # fmt: skip
    Q, y = H @ Q @ H.T, Y - Y[known].mean(axis=0)
    e, U = np.linalg.eigh(Q[5:, 5:])
    noise = _noise(np.maximum(e, 0.0), U.T @ y[5:], NOISE, NOISES)[NOISES.label]
    expected = [
        (y[:5, d] - Q[:5, 5:] @ np.linalg.solve(Q[5:, 5:] + noise[d] * np.eye(N - 5), y[5:, d]))
        ** 2
        for d in range(3)
    ]
    found = squared_errors(candidates, Y, NOISE, NOISES, base, known)
    np.testing.assert_allclose(found, np.transpose(expected), rtol=1e-3, atol=1e-6)


# ---------------------------------------------------------------- without outputs


def test_by_residual_takes_what_explains_most_of_the_rest(rng):
    X = rng.standard_normal((N, 2))
    K = kofa.RBF(2.0)(X, X) * np.outer(1 + rng.random(N), np.ones(N))
    K = 0.5 * (K + K.T) + np.eye(N) * rng.random(N)
    selection = by_residual(Candidates(K, np.arange(N), 6))
    for k, u in enumerate(selection.chosen):
        E = K - nystrom(K, np.arange(N), list(selection.chosen[:k]))
        own = np.diagonal(E).copy()
        own[selection.chosen[:k]] = np.inf
        adds = (E**2).sum(axis=0) / own
        assert u == int(np.argmax(adds))


def test_by_residual_stops_when_little_is_left(rng):
    X = rng.standard_normal((N, 2))
    K = kofa.RBF(2.0)(X, X)
    order = list(by_residual(Candidates(K, np.arange(N), N)).chosen)
    left = [np.trace(K - nystrom(K, np.arange(N), c)) / N for c in (order[:-1], order)]
    assert left[1] <= tuning.VECTOR_RESIDUAL < left[0]


def test_by_residual_is_capped_and_judges_the_rest(rng):
    X = rng.standard_normal((N, 3))
    K = kofa.RBF(1.0)(X, X)
    selection = by_residual(Candidates(K, np.arange(N), 4))
    assert len(selection.chosen) == 4
    E = K - nystrom(K, np.arange(N), list(selection.chosen))
    others = np.setdiff1d(np.arange(N), selection.chosen)
    expected = (E[:, others] ** 2).sum(axis=0) / np.diagonal(E)[others]
    np.testing.assert_allclose(selection.relevance[others], expected, rtol=1e-6)
    assert selection.order[selection.chosen].tolist() == [0, 1, 2, 3]
    assert (selection.order[others] == -1).all()


# ---------------------------------------------------------------- in the model


def smooth(rng, n=100):
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, :1]) + X[:, 1:] + 0.1 * rng.standard_normal((n, 1))


def sparse(X, y, kernel="rbf", **options):
    views = {"x": kofa.Real(kernel=kernel, sparse=True, **options), "y": kofa.Real()}
    return kofa.FactorModel(views, outputs=["y"]).fit({"x": X, "y": y})


def test_few_landmarks_predict_almost_as_well_as_all(rng):
    X, y = smooth(rng, 160)
    model = sparse(X[:100], y[:100])
    residual = y[100:] - model.predict({"x": X[100:]}, "y")
    assert len(model.views_["x"].encoder.V) <= 40
    assert 1 - residual.var() / y[100:].var() > 0.95


@pytest.mark.parametrize("d", [1, 2, 5])
def test_what_the_chosen_landmarks_span_reaches_the_model(rng, d):
    """A linear kernel of d features is spanned by d landmarks; centring must not take one away."""
    X = rng.standard_normal((160, d))
    y = X @ rng.uniform(0.5, 1.5, (d, 1)) + 0.05 * rng.standard_normal((160, 1))
    model = sparse(X[:100], y[:100], kernel="linear")
    residual = y[100:] - model.predict({"x": X[100:]}, "y")
    assert np.ptp(model.views_["x"].encoder.encode(X)) > 0.1
    assert 1 - residual.var() / y[100:].var() > 0.98


def test_few_landmarks_have_a_width_of_their_own(rng):
    X = rng.uniform(-2, 2, (240, 4))
    y = np.sin(1.5 * X).sum(axis=1, keepdims=True) + 0.05 * rng.standard_normal((240, 1))
    views = {"x": kofa.Real(kernel="rbf"), "y": kofa.Real()}
    full = kofa.FactorModel(views, outputs=["y"]).fit({"x": X[:120], "y": y[:120]})
    for_all = full.kernels_["x"].width
    r2 = {}
    for kernel in (kofa.RBF(), kofa.RBF(for_all)):
        few = sparse(X[:120], y[:120], kernel, landmarks=kofa.Landmarks(keep=12))
        residual = y[120:] - few.predict({"x": X[120:]}, "y")
        r2[few.kernels_["x"].width] = 1 - residual.var() / y[120:].var()
    of_few, given = r2
    assert given == for_all  # a width that is given stays
    assert r2[of_few] > r2[given] + 0.03


def test_widths_for_few_are_near_the_learnt_ones_a_priori(rng, monkeypatch):
    X = rng.uniform(-2, 2, (120, 4))
    y = np.sin(1.5 * X).sum(axis=1, keepdims=True) + 0.05 * rng.standard_normal((120, 1))
    few, widths = kofa.Landmarks(keep=12), []
    for spread in (10.0, 1e-3):
        monkeypatch.setattr(tuning, "VECTOR_WIDTH_PRIOR", spread)
        widths.append(sparse(X, y, landmarks=few).kernels_["x"].width)
    views = {"x": kofa.Real(kernel="rbf"), "y": kofa.Real()}
    full = kofa.FactorModel(views, outputs=["y"]).fit({"x": X, "y": y})
    learnt = full.kernels_["x"].width
    assert widths[1] == pytest.approx(learnt)
    assert abs(np.log(widths[0] / learnt)) > 0.3


def test_wider_kernels_give_the_outputs_the_variance_they_gave(rng):
    X, y = smooth(rng)
    mixture = kofa.Mixture([kofa.Linear(), kofa.RBF(), kofa.Laplacian(2.0), kofa.Laplacian()])
    views = {"x": kofa.Real(kernel=mixture, sparse=True), "y": kofa.Real()}
    fit_data = FitData.read(views, {"x": X, "y": y}, ["y"])
    before, training = learn_kernels(fit_data), fit_data.training_set(fit_data.complete)
    after = with_wider_kernels(fit_data, before, training, 2.0)
    old, new = (components(one.kernels["x"]) for one in (before, after))
    widths = [[getattr(k, "width", 1.0) for _, k in mine] for mine in (old, new)]
    np.testing.assert_allclose(np.divide(widths[1], widths[0]), [1.0, 2.0, 1.0, 2.0])
    X = training.X["x"]
    gives = [
        [one.weights["x"] * v * np.trace(k(X, X) - k(X, X).mean(axis=0)) for v, k in mine]
        for one, mine in ((before, old), (after, new))
    ]
    np.testing.assert_allclose(gives[1], gives[0], rtol=1e-6)


def wiggly(rng, n=60):
    """Every sample is worth a landmark."""
    X = rng.standard_normal((n, 1))
    return X, np.sin(12 * X) + 0.01 * rng.standard_normal((n, 1))


@pytest.mark.parametrize("most", [2, 7, 12])
def test_number_caps(rng, most):
    X, y = wiggly(rng)
    model = sparse(X, y, kernel=kofa.RBF(0.1), landmarks=kofa.Landmarks(keep=most))
    assert len(model.views_["x"].encoder.V) == most


@pytest.mark.parametrize("keep", [(0.1, 9), (0.5, 6), (1.0, 6)])
def test_the_smaller_of_two_caps_counts(rng, keep):
    X, y = wiggly(rng)
    model = sparse(X, y, kernel=kofa.RBF(0.1), landmarks=kofa.Landmarks(keep=keep))
    assert len(model.views_["x"].encoder.V) == 6


@pytest.mark.parametrize(("share", "most"), [(0.05, 3), (0.1, 6), (0.2, 12)])
def test_share_caps(rng, share, most):
    X, y = wiggly(rng)
    model = sparse(X, y, kernel=kofa.RBF(0.1), landmarks=kofa.Landmarks(keep=share))
    assert len(model.views_["x"].encoder.V) == most


def test_share_of_one_is_no_cap(rng):
    X, y = wiggly(rng)
    found = {
        s: len(sparse(X, y, kofa.RBF(0.1), landmarks=kofa.Landmarks(keep=s)).weights("x"))
        for s in (0.99, 1.0)
    }
    assert found[0.99] == found[1.0] > 12


@pytest.mark.parametrize(("n", "fewest", "most"), [(60, 41, 60), (240, 44, 96)])
def test_only_many_candidates_are_capped(rng, n, fewest, most):
    X, y = wiggly(rng, n)
    model = sparse(X, y, kernel=kofa.RBF(0.02))
    assert fewest <= len(model.views_["x"].encoder.V) <= most


def test_table_of_relevance_vectors(rng):
    X, y = smooth(rng)
    model = sparse(X, y)
    table = model.relevance_vectors("x")
    assert list(table.columns) == ["sample", "relevance", "order", "kept"]
    n_kept = int(table.kept.sum())
    assert 2 <= n_kept == len(model.views_["x"].encoder.V)
    assert sorted(table["sample"]) == list(range(100))
    assert table.order[:n_kept].tolist() == list(range(n_kept))
    assert (table.order[n_kept:] == -1).all()
    assert (table.kept == (table.order >= 0)).all()
    assert table.relevance[n_kept:].is_monotonic_decreasing
    kept = np.sort(table["sample"][table.kept].to_numpy())
    encoder = model.views_["x"].encoder
    np.testing.assert_array_equal(encoder.V, encoder.scaling.encode(X[kept]))


def test_relevance_vectors_are_labelled_samples(rng):
    X, y = smooth(rng)
    y[::2] = np.nan
    table = sparse(X, y).relevance_vectors("x")
    assert (table["sample"] % 2 == 1).all()
    assert len(table) == 50


def test_unlabelled_samples_still_take_part(rng):
    X, y = smooth(rng)
    y[::2] = np.nan
    views = {"x": kofa.Real(kernel="rbf", sparse=True), "y": kofa.Real()}
    Z = kofa.FactorModel(views, outputs=["y"]).fit_transform({"x": X, "y": y})
    assert (np.abs(Z[::2]).max(axis=1) > 0).all()


def test_model_saved_without_rows_holds_only_the_rows_kept(rng, tmp_path):
    X, y = smooth(rng)
    model, path = sparse(X, y), tmp_path / "model.kofa"
    model.save(path, rows=False)
    saved = b"".join(array.tobytes() for array in read_archive(path)[1].values())
    scaled = model.views_["x"].encoder.scaling.encode(X)
    table = model.relevance_vectors("x")
    for sample, kept in zip(table["sample"], table.kept, strict=True):
        assert (scaled[sample].tobytes() in saved) == kept
        assert X[sample].tobytes() not in saved
    new = kofa.load(path)
    np.testing.assert_array_equal(new.predict({"x": X}, "y"), model.predict({"x": X}, "y"))


def test_prediction_does_not_depend_on_the_batch(rng):
    X, y = smooth(rng)
    model = sparse(X, y)
    mean, std = model.predict({"x": X}, "y", return_std=True)
    for row in (0, 41):
        alone = model.predict({"x": X[[row]]}, "y", return_std=True)
        np.testing.assert_allclose(alone[0][0], mean[row], rtol=1e-9)
        np.testing.assert_allclose(alone[1][0], std[row], rtol=1e-9)


def test_kernels_of_one_input_keep_the_same_samples(rng):
    X, y = smooth(rng)
    model = sparse(X, y, kernel=["rbf", "laplacian"])
    first, second = (model.relevance_vectors(f"x[{k}]") for k in ("RBF", "Laplacian"))
    np.testing.assert_array_equal(first["sample"], second["sample"])
    np.testing.assert_array_equal(first.kept, second.kept)


def test_sparse_and_dense_views_side_by_side(rng):
    X, y = smooth(rng)
    views = {
        "a": kofa.Real(kernel="rbf", sparse=True),
        "b": kofa.Real(kernel="linear"),
        "y": kofa.Real(),
    }
    model = kofa.FactorModel(views, outputs=["y"]).fit({"a": X[:, :1], "b": X[:, 1:], "y": y})
    assert len(model.views_["a"].encoder.V) <= 40
    assert len(model.views_["b"].encoder.V) == 100
    residual = y - model.predict({"a": X[:, :1], "b": X[:, 1:]}, "y")
    assert residual.var() < 0.1 * y.var()


def test_candidates_are_landmarks_of_the_size_asked_for(rng):
    X, y = smooth(rng)
    table = sparse(X, y, landmarks=kofa.Landmarks(40, keep=1.0)).relevance_vectors("x")
    assert len(table) == 40


def test_without_outputs_the_kernel_is_spanned(rng):
    X = rng.uniform(-2, 2, (60, 2))
    model = kofa.FactorModel({"x": kofa.Real(kernel=kofa.RBF(2.0), sparse=True)}).fit({"x": X})
    table = model.relevance_vectors("x")
    assert 2 <= table.kept.sum() <= 10
    assert len(model.views_["x"].encoder.V) == table.kept.sum()


def test_other_outputs(rng):
    X = rng.standard_normal((120, 3))
    labels = np.array(list("abc"))[np.argmax(X, axis=1)]
    views = {"x": kofa.Real(kernel="rbf", sparse=True), "y": kofa.Categorical()}
    model = kofa.FactorModel(views, outputs=["y"]).fit({"x": X, "y": labels})
    assert len(model.views_["x"].encoder.V) <= 40
    assert np.mean(model.predict({"x": X}, "y") == labels) > 0.85


def test_kernel_with_holes(rng):
    X, y = smooth(rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[3] = np.nan
    model = sparse(X, y)
    assert np.isfinite(model.predict({"x": X}, "y")).all()
    assert 3 not in list(model.relevance_vectors("x")["sample"])


@pytest.mark.filterwarnings("ignore:.*same value in all samples")
def test_no_landmark_pays(rng):
    """An input that tells nothing about the outputs leaves a model that predicts their mean."""
    X, y = np.ones((40, 3)), rng.standard_normal((40, 1))
    with pytest.warns(UserWarning, match="View 'x'.*all are switched off"):
        model = sparse(X, y, kernel=kofa.RBF(3.0))
    mean, std = model.predict({"x": rng.standard_normal((20, 3))}, "y", return_std=True)
    np.testing.assert_allclose(mean, y.mean(), atol=1e-6)
    np.testing.assert_allclose(std, y.std(), rtol=0.2)


def test_precomputed_kernel(rng):
    X, y = smooth(rng)
    K = kofa.RBF(1.0)(X, X)
    model = sparse(K, y, kernel="precomputed")
    kept = int(model.relevance_vectors("x").kept.sum())
    assert kept <= 40
    residual = y - model.predict({"x": K}, "y")
    assert residual.var() < 0.1 * y.var()


def test_kernel_that_is_zero_keeps_one_landmark_for_the_form(rng):
    candidates = Candidates(np.zeros((N, 5)), np.arange(5), 5)
    (selection,) = by_evidence([candidates], rng.normal(size=(N, 3)), NOISE, NOISES)
    assert not selection.pays
    assert (selection.order >= 0).sum() == 1
    np.testing.assert_array_equal(selection.relevance, 0.0)
