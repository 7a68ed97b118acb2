"""Views from all that is known of a sample besides."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score

import kofa
from kofa import fitting, tuning


def columns_that_follow(n, seed=0, noise=0.5):
    """x of 40 independent columns, y of six that follow from it."""
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(40, 6)) / np.sqrt(40)
    x = rng.normal(size=(n + 300, 40))
    y = x @ B + noise * rng.normal(size=(n + 300, 6))
    return (x[:n], y[:n]), (x[n:], y[n:])


def ridge(fit, new):
    found = RidgeCV(np.logspace(-3, 4, 30), alpha_per_target=True).fit(*fit)
    return r2_score(new[1], found.predict(new[0]))


@pytest.mark.parametrize("n", [50, 300, 301, 1000])
def test_columns_follow_as_well_as_by_ridge_regression_at_every_n(n):
    fit, (x, y) = columns_that_follow(n)
    model = kofa.FactorModel().fit({"x": fit[0], "y": fit[1]})
    hidden = r2_score(y, model.predict({"x": x}, "y"))
    model = kofa.FactorModel(outputs=["y"]).fit({"x": fit[0], "y": fit[1]})
    output = r2_score(y, model.predict({"x": x}))
    assert hidden > ridge(fit, (x, y)) - 0.01
    assert output == pytest.approx(hidden, abs=0.01)


def test_a_shared_factor_of_the_noise_is_used():
    rng = np.random.default_rng(0)
    (x, y), (new, truth) = columns_that_follow(200)
    y = y + rng.normal(size=(200, 1))
    truth = truth + rng.normal(size=(300, 1))
    model = kofa.FactorModel().fit({"x": x, "y": y})
    asked = np.where(np.arange(6) < 1, truth, np.nan)
    less = r2_score(truth[:, 1:], model.predict({"x": new}, "y")[:, 1:])
    more = r2_score(truth[:, 1:], model.impute({"x": new, "y": asked})["y"][:, 1:])
    assert more > less + 0.15


def test_a_hole_more_changes_little():
    fit, (x, y) = columns_that_follow(300)
    scores = []
    for n_holes in (0, 99, 100, 101):
        holed = fit[0].copy()
        holed.flat[np.random.default_rng(1).choice(holed.size, n_holes, replace=False)] = np.nan
        model = kofa.FactorModel().fit({"x": holed, "y": fit[1]})
        scores.append(r2_score(y, model.predict({"x": x}, "y")))
    assert np.ptp(scores) < 0.01


def test_intervals_cover_what_they_say():
    fit, (x, y) = columns_that_follow(150)
    model = kofa.FactorModel().fit({"x": fit[0], "y": fit[1]})
    low, high = model.predict_quantiles({"x": x}, "y", [0.05, 0.95])
    assert ((low <= y) & (y <= high)).mean() == pytest.approx(0.9, abs=0.03)
    asked = np.where(np.arange(6) < 3, y, np.nan)
    low, high = model.predict_quantiles({"x": x, "y": asked}, "y", [0.05, 0.95])
    inside = ((low <= y) & (y <= high))[:, 3:]
    assert inside.mean() == pytest.approx(0.9, abs=0.03)


def test_a_sample_does_not_depend_on_its_batch():
    fit, (x, y) = columns_that_follow(80)
    model = kofa.FactorModel().fit({"x": fit[0], "y": fit[1]})
    asked = np.where(np.random.default_rng(2).random(y.shape) < 0.5, y, np.nan)
    whole = model.impute({"x": x, "y": asked})["y"]
    for row in (0, 7):
        alone = model.impute({"x": x[[row]], "y": asked[[row]]})["y"]
        np.testing.assert_allclose(alone[0], whole[row], rtol=1e-10, atol=1e-12)


def of_curve(landmarks, monkeypatch, holes=0, **others):
    """Two columns that follow a curve through 300 rows, of which so many are landmarks."""
    monkeypatch.setattr(tuning, "AUTO_LANDMARKS", landmarks)
    rng = np.random.default_rng(0)
    x = rng.uniform(-3.0, 3.0, size=(300, 2))
    y = np.column_stack([np.sin(2.0 * x[:, 0]) * x[:, 1], np.cos(3.0 * x[:, 1])])
    y += 0.05 * rng.normal(size=y.shape)
    y[:holes, 0] = np.nan
    views = {"x": kofa.Real(kernel=kofa.RBF(0.5)), "y": kofa.Real(), **others}
    tables = {"x": x, "y": y} | {name: y[:, [1]] + x for name in others}
    model = kofa.FactorModel(views, outputs=["y"]).fit(tables)
    new = rng.uniform(-3.0, 3.0, size=(70, 2))
    return model, {"x": new} | {name: np.cos(3.0 * new[:, [1]]) + new for name in others}


@pytest.mark.parametrize(
    ("given", "close"), [({}, 0.01), ({"holes": 60}, 0.01), ({"z": kofa.Real()}, 0.02)]
)
def test_predictions_do_not_pass_through_landmarks(given, close, monkeypatch):
    """Beside another view factors tell too, which are of landmarks: .004 to .018 in nine draws."""
    predicted = []
    for landmarks in (300, 299, 40):
        model, new = of_curve(landmarks, monkeypatch, **given)
        predicted.append(model.predict(new, "y"))
    whole, one_less, few = predicted
    spread = whole.std(axis=0)
    assert (np.abs(one_less - whole) < 0.01 * spread).all()
    assert (np.sqrt(((few - whole) ** 2).mean(axis=0)) < close * spread).all()


def test_rows_without_a_kernelized_view_take_part(monkeypatch):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 200, 2))
    y = np.sin(2.0 * x[:, [0]]) * x[:, [1]] + z[:, [0]] + 0.1 * rng.normal(size=(200, 1))
    x[:50] = np.nan
    views = {"x": kofa.Real(kernel=kofa.RBF(0.5)), "z": kofa.Real(), "y": kofa.Real()}
    predicted = []
    for landmarks in (200, 60):
        monkeypatch.setattr(tuning, "AUTO_LANDMARKS", landmarks)
        model = kofa.FactorModel(views, outputs=["y"]).fit({"x": x, "z": z, "y": y})
        predicted.append(model.predict({"x": x, "z": z}, "y"))
    away = np.sqrt(((predicted[1] - predicted[0]) ** 2).mean())
    assert away < 0.05 * predicted[0].std()  # .2 by landmarks alone


def test_rows_compared_with_all_do_not_depend_on_their_batch(monkeypatch, tmp_path):
    model, new = of_curve(40, monkeypatch)
    whole = model.predict(new, "y")
    for row in (0, 33, 69):
        one = model.predict({"x": new["x"][[row]]}, "y")[0]
        np.testing.assert_array_equal(one, whole[row])
    model.save(tmp_path / "model.kofa", rows=False)
    np.testing.assert_array_equal(kofa.load(tmp_path / "model.kofa").predict(new, "y"), whole)


def test_a_question_is_worked_out_once():
    fit, (x, _) = columns_that_follow(60)
    model = kofa.FactorModel().fit({"x": fit[0], "y": fit[1]})
    questions = model._fitted.questions
    assert not questions.asked
    model.predict({"x": x}, "y")
    first = questions.asked["y"]
    model.predict({"x": x}, "y")
    assert questions.asked == {"y": first}


def test_cells_of_one_table_follow_from_the_others():
    values = load_wine().data
    hidden = np.random.default_rng(0).random(values.shape) < 0.1
    filled = kofa.FactorModel().fit({"x": values}).impute({"x": np.where(hidden, np.nan, values)})
    error = ((filled["x"] - values) / values.std(axis=0))[hidden]
    assert np.sqrt((error**2).mean()) < 0.85


KINDS = {
    "positive": (kofa.Positive, lambda eta, rng: np.exp(eta)),  # noqa: ARG005
    "binary": (kofa.Binary, lambda eta, rng: (eta + rng.normal(size=eta.shape) > 0).astype(float)),
    "count": (kofa.Count, lambda eta, rng: rng.poisson(np.exp(1.0 + 0.5 * eta)).astype(float)),
    "labels": (
        kofa.Categorical,
        lambda eta, rng: np.array(["a", "b", "c"])[  # noqa: ARG005
            np.argmax(eta[:, :3], axis=1)
        ][:, None],
    ),
}


@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_are_predicted_from_the_others(kind, kernel):
    declared, draw = KINDS[kind]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(260, 5))
    eta = x @ rng.normal(size=(5, 4))
    y = draw(eta, rng)
    views = {"x": kofa.Real(kernel=kernel), "y": declared()}
    fit, new = slice(0, 200), slice(200, None)
    for outputs in (None, ["y"]):
        model = kofa.FactorModel(views, outputs=outputs).fit({"x": x[fit], "y": y[fit]})
        predicted = np.asarray(model.predict({"x": x[new]}, "y"))
        if kind == "labels":
            assert (predicted.ravel() == y[new].ravel()).mean() > 0.75
        else:
            base = np.corrcoef(predicted.ravel(), y[new].ravel())[0, 1]
            assert base > 0.4


def test_known_ones_tell_of_others():
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(500, 3)), rng.normal(size=(500, 1))
    t = ((x @ rng.normal(size=(3, 6)) + 2.0 * z + 0.3 * rng.normal(size=(500, 6))) > 0).astype(
        float
    )
    views = {"x": kofa.Real(), "t": kofa.Binary()}
    model = kofa.FactorModel(views).fit({"x": x[:400], "t": t[:400]})
    asked = np.where(np.arange(6) < 4, t[400:], np.nan)
    more = model.impute({"x": x[400:], "t": asked})["t"][:, 4:]
    less = model.predict({"x": x[400:]}, "t")[:, 4:]
    assert (more == t[400:, 4:]).mean() > (less == t[400:, 4:]).mean() + 0.03


def test_missing_views_of_new_samples_are_filled_first():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 3))
    tables = {
        name: z @ rng.normal(size=(3, d)) + 0.5 * rng.normal(size=(300, d))
        for name, d in {"a": 10, "b": 8, "c": 6}.items()
    }
    model = kofa.FactorModel().fit({name: y[:200] for name, y in tables.items()})
    new = {name: y[200:] for name, y in tables.items()}
    both = r2_score(new["c"], model.predict({"a": new["a"], "b": new["b"]}, "c"))
    mean, std = model.predict({"a": new["a"]}, "c", return_std=True)
    assert r2_score(new["c"], mean) > both - 0.15
    z = (new["c"] - mean) / std
    assert (np.abs(z) < 1.645).mean() == pytest.approx(0.9, abs=0.04)


@pytest.mark.parametrize("kind", [kofa.Real, kofa.Binary])
def test_rows_that_lack_a_view_are_filled_as_well_as_if_no_row_had_it(kind):
    """What the view leaves open is common to the columns, which tell of it."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 3))
    x, y = (z @ rng.normal(size=(3, 30)) + rng.normal(size=(500, 30)) for _ in range(2))
    x = x if kind is kofa.Real else (x > 0).astype(float)
    hidden = rng.random((200, 30)) < 0.2
    asked = {"x": np.where(hidden, np.nan, x[300:])}
    errors = []
    for tables in ({"x": x[:300], "y": y[:300]}, {"x": x[:300]}):
        model = kofa.FactorModel(
            {"x": kind(), "y": kofa.Real()} if "y" in tables else {"x": kind()}
        )
        filled = model.fit(tables).impute(asked)["x"]
        errors.append(((filled - x[300:])[hidden] ** 2).mean())
    assert errors[0] < 1.03 * errors[1]


def test_classes_have_probabilities():
    X, y = load_iris(return_X_y=True)
    rows = np.random.default_rng(0).permutation(150)
    model = kofa.KernelFactorClassifier().fit(X[rows[:100]], y[rows[:100]])
    p = model.predict_proba(X[rows[100:]])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert -np.log(p[np.arange(50), y[rows[100:]]]).mean() < 0.3


def test_rows_without_the_others_are_predicted_by_the_mean():
    fit, (x, _) = columns_that_follow(100)
    model = kofa.FactorModel().fit({"x": fit[0], "y": fit[1]})
    x = np.array(x[:2])
    x[1] = np.nan
    mean, std = model.predict({"x": x}, "y", return_std=True)
    np.testing.assert_allclose(mean[1], fit[1].mean(axis=0), atol=0.3)
    assert (std[1] > std[0]).all()


def test_rows_with_a_view_that_few_have_are_kept(monkeypatch):
    monkeypatch.setattr(fitting, "_MOST_ROWS", 200)
    (x, y), (new, truth) = columns_that_follow(1000)
    y = np.where(np.arange(len(y))[:, None] % 10 == 3, y, np.nan)
    model = kofa.FactorModel(outputs=["y"]).fit({"x": x, "y": y})
    kept = model._found.questions.rows
    assert len(kept["x"]) == 200
    assert (~np.isnan(kept["y"])).all(axis=1).sum() == 100
    alone = kofa.FactorModel(outputs=["y"]).fit({"x": x[3::10], "y": y[3::10]})
    both = [r2_score(truth, one.predict({"x": new})) for one in (model, alone)]
    assert both[0] == pytest.approx(both[1], abs=0.02)


def test_as_many_rows_as_memory_allows_are_kept_in_any_order(monkeypatch):
    monkeypatch.setattr(fitting, "_MOST_ROWS", 60)
    (x, y), _ = columns_that_follow(100)
    order = np.random.default_rng(1).permutation(100)
    models = [kofa.FactorModel().fit({"x": x[rows], "y": y[rows]}) for rows in (range(100), order)]
    one, other = (np.sort(model._found.questions.rows["x"], axis=0) for model in models)
    assert len(one) == 60
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("names", [3, ["q"]])
def test_views_to_predict_are_named(names):
    (x, y), _ = columns_that_follow(30)
    with pytest.raises(kofa.DataError, match="'x', 'y'"):
        kofa.FactorModel().fit({"x": x, "y": y}, predict=names)
