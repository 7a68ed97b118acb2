"""Factors against what is known of the samples."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import kofa
from kofa.inspection import associate

N = 80
NAMES = [f"s{i}" for i in range(N)]


@pytest.fixture
def factors():
    z = np.random.default_rng(0).standard_normal((N, 3))
    return pd.DataFrame(z, NAMES, ["a", "b", "c"])


def row(table, factor, covariate):
    found = table[(table["factor"] == factor) & (table["covariate"] == covariate)]
    assert len(found) == 1
    return found.iloc[0]


def test_planted_associations_are_found_and_others_are_not(factors):
    rng = np.random.default_rng(1)
    known = pd.DataFrame(
        {
            "age": 50 + 10 * factors["a"] + rng.normal(0, 5, N),
            "stage": pd.cut(factors["b"], 3, labels=["I", "II", "III"]),
            "ill": factors["c"] > 0.3,
            "height": rng.normal(170, 10, N),
            "town": rng.choice(["x", "y", "z"], N),
        }
    )
    table = associate(factors, known)
    assert len(table) == 15
    planted = {("a", "age"), ("b", "stage"), ("c", "ill")}
    found = table[table["q"] < 0.05]
    assert set(zip(found["factor"], found["covariate"], strict=True)) == planted
    assert list(table["kind"][:5]) == ["number", "category", "binary", "number", "category"]
    assert row(table, "c", "ill")["value"] == 1.0
    assert row(table, "c", "ill")["note"] == "AUC of True over False"


def test_columns(factors):
    table = associate(factors, {"x": np.arange(N)})
    expected = "factor covariate kind n statistic value r p q note"
    assert list(table.columns) == expected.split()
    assert table["n"].tolist() == [N] * 3


def test_numbers_as_scipy_has_them(factors):
    x = np.random.default_rng(2).exponential(size=N)
    found = row(associate(factors, {"x": x}), "b", "x")
    r, p = stats.pearsonr(factors["b"], x)
    assert (found["value"], found["r"], found["p"]) == pytest.approx((r, r, p))
    found = row(associate(factors, {"x": x}, ranks=True), "b", "x")
    rho, p = stats.spearmanr(factors["b"], x)
    assert (found["statistic"], found["value"], found["p"]) == (
        "rho",
        *map(pytest.approx, (rho, p)),
    )


def test_categories_as_scipy_has_them(factors):
    x = np.random.default_rng(3).choice(["u", "v", "w"], N)
    z = factors["a"].to_numpy()
    found = row(associate(factors, {"x": x}), "a", "x")
    groups = [z[x == label] for label in "uvw"]
    between = sum(len(g) * (g.mean() - z.mean()) ** 2 for g in groups) / ((z - z.mean()) ** 2).sum()
    assert found["value"] == pytest.approx(between)
    assert found["p"] == pytest.approx(stats.f_oneway(*groups).pvalue)
    assert np.isnan(found["r"])


def test_two_classes_as_scipy_has_them(factors):
    x = np.random.default_rng(4).choice(["f", "m"], N)
    z = np.round(factors["a"].to_numpy())  # with ties
    found = associate(z, {"x": x}).iloc[0]
    upper, lower = z[x == "m"], z[x == "f"]
    test = stats.ttest_ind(upper, lower)
    assert found["p"] == pytest.approx(test.pvalue)
    assert found["value"] == pytest.approx(
        stats.mannwhitneyu(upper, lower).statistic / len(upper) / len(lower)
    )
    assert np.sign(found["r"]) == np.sign(test.statistic)
    assert found["note"] == "AUC of 'm' over 'f'"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False, True, True], "binary"),
        ([True, None, False, True], "binary"),
        (["a", "b", "a", None], "binary"),
        ([1, 2, 2, 1], "binary"),
        ([1.0, np.nan, 2.0, 1.0], "binary"),
        ([1, 2, 3, 1], "number"),
        ([1, None, 3, 2], "number"),
        (pd.array([1, None, 3, 2], dtype="Int64"), "number"),
        (pd.Categorical([1, 2, 3, 1]), "category"),
        (pd.Categorical(["a", "b", "b", "a"], ["b", "a", "c"]), "binary"),
        (["a", "b", "c", "a"], "category"),
        (pd.to_datetime(["2020-01-01", "2020-01-02", None, "2020-01-05"]), "number"),
        (pd.to_timedelta([1, 2, 3, 5], "D"), "number"),
    ],
)  # fmt: skip
def test_kinds(values, kind):
    z = np.array([1.0, 2.0, 0.5, 1.7])
    found = associate(z, {"x": values}).iloc[0]
    assert found["kind"] == kind
    assert found["n"] == 4 - pd.isna(pd.Series(values)).sum()


def test_the_order_of_a_category_says_which_class_is_the_larger():
    z = np.array([1.0, 2.0, 3.0, 4.0])
    x = pd.Categorical(["high", "high", "low", "low"], ["low", "high"])
    found = associate(z, {"x": x}).iloc[0]
    assert (found["value"], found["note"]) == (0.0, "AUC of 'high' over 'low'")


def test_dates_count_in_days():
    z = np.array([1.0, 2.0, 4.0, 8.0])
    days = np.array([0, 2, 3, 9])
    table = associate(
        z, {"date": pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D"), "n": days}
    )
    assert table["value"][0] == pytest.approx(table["value"][1])


def test_samples_are_matched_by_index(factors):
    known = pd.Series(factors["a"] * 2, name="twice")[::-1].iloc[10:]
    known = pd.concat([known, pd.Series([1.0], ["stranger"], name="twice")])
    found = row(associate(factors, known), "a", "twice")
    assert (found["n"], found["r"]) == (N - 10, pytest.approx(1.0))
    assert found["p"] < 1e-12


def test_columns_of_a_dict_are_matched_by_their_own_index(factors):
    known = {"u": factors["a"][:40], "v": factors["b"][::-1]}
    table = associate(factors, known)
    assert row(table, "a", "u")["n"] == 40
    assert row(table, "b", "v")["r"] == pytest.approx(1.0)


def test_arrays_are_matched_by_position(factors):
    table = associate(factors.to_numpy(), factors[["a"]].to_numpy())
    assert table["factor"].tolist() == ["factor1", "factor2", "factor3"]
    assert table["covariate"].tolist() == ["covariate1"] * 3
    assert table["r"][0] == pytest.approx(1.0)


def test_polars_tables_are_read():
    pl = pytest.importorskip("polars")
    z = np.array([1.0, 2.0, 4.0, 3.0])
    known = pl.DataFrame({"x": [1.0, 2.0, None, 3.0], "y": ["a", "b", "b", None]})
    table = associate(z, known)
    assert table["kind"].tolist() == ["number", "binary"]
    assert table["n"].tolist() == [3, 3]
    assert associate(z, known["x"])["covariate"].tolist() == ["x"]


def test_missing_values_leave_a_sample_out_for_this_pair_alone(factors):
    x = factors["a"].to_numpy().copy()
    x[:30] = np.nan
    factors = factors.copy()
    factors.iloc[25:35, 1] = np.nan
    table = associate(factors, {"x": x, "y": np.arange(N)})
    assert table["n"].tolist() == [50, N, 45, N - 10, 50, N]


@pytest.mark.parametrize(
    ("x", "note"),
    [
        ([1, 1, 1, 1], "the covariate is constant"),
        (["a"] * 4, "the covariate is constant"),
        ([np.nan] * 4, "no sample has both"),
        ([None] * 4, "no sample has both"),
        (["a", "b", "c", "d"], "4 samples are too few for 4 means"),
        ([1, 2, None, None], "2 samples are too few for 2 means"),
    ],
)
def test_what_cannot_be_tested_has_a_note_and_does_not_count(x, note):
    z = np.array([1.0, 2.0, 4.0, 3.5])
    table = associate(z, {"x": x, "fine": [1.0, 2.0, 4.0, 3.0]})
    assert table["note"][0] == note
    assert table.loc[0, ["value", "r", "p", "q"]].isna().all()
    assert table["q"][1] == table["p"][1]


def test_constant_factors_have_a_note():
    table = associate(np.full(5, 0.1), {"x": np.arange(5)})
    assert table["note"].tolist() == ["the factor is constant"]


def test_q_is_of_the_whole_table(factors):
    known = np.random.default_rng(5).standard_normal((N, 4))
    table = associate(factors, known)
    assert table["q"].to_numpy() == pytest.approx(stats.false_discovery_control(table["p"]))


def test_ranks_see_what_is_monotone(factors):
    table = associate(factors, {"x": np.exp(4 * factors["a"])}, ranks=True)
    assert table["value"][0] == pytest.approx(1.0)
    assert associate(factors, {"x": np.exp(4 * factors["a"])})["value"][0] < 0.9


def test_perfect_association_has_p_of_zero():
    found = associate(np.array([0.0, 0.0, 1.0, 1.0]), {"x": list("aabb")}).iloc[0]
    assert (found["p"], found["value"], found["r"]) == (0.0, 1.0, 1.0)


def test_the_callers_tables_stay_as_they_were(factors):
    known = pd.DataFrame({"x": pd.Categorical(["u", "v"] * 40), "y": range(N)}, index=NAMES)
    before = factors.copy(), known.copy()
    associate(factors, known, ranks=True)
    pd.testing.assert_frame_equal(factors, before[0])
    pd.testing.assert_frame_equal(known, before[1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": [1, 2]}, "covariates: expected as many rows as factors has (3) but got 2"),
        ({"x": [1, 2], "y": [1]}, "covariates: expected columns of one length but got 'x' 2"),
        ({"x": [1.0, np.inf, 3.0]}, "covariates, column 'x': expected finite numbers but got inf"),
        ({"x": [[1], [2], [3]]}, "covariates, column 'x': expected one value for each sample"),
        ({"x": "abc"}, "covariates, column 'x': expected one value for each sample"),
        ({}, "covariates: expected at least one column but got none."),
        (pd.DataFrame([[1, 2]] * 3, columns=["x", "x"]), "covariates: expected unique column"),
        (pd.Series([1, 2, 3], [0, 0, 1]), "covariates: expected unique sample names but 0 occurs"),
        (pd.Series([1, 2, 3], list("uvw")), "covariates: expected samples of factors but none is"),
        (pd.Series([{1: 2}, {1: 3}, {}]), "covariates, column 'covariate': expected values that"),
    ],
)  # fmt: skip
def test_errors_name_the_column_and_the_cure(given, message):
    factors = pd.DataFrame({"a": [1.0, 2.0, 4.0]})
    with pytest.raises(kofa.DataError) as error:
        associate(factors, given)
    assert str(error.value).startswith(message)


def test_errors_of_factors_do_not_speak_of_views():
    with pytest.raises(kofa.DataError) as error:
        associate(pd.DataFrame({"a": ["u", "v", "u"]}), {"x": [1, 2, 3]})
    message = "factors, column 'a': expected real numbers but got 'u'; encode or drop the column."
    assert str(error.value) == message


def test_pandas_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'kofa\[pandas\]'"):
        associate(np.arange(3.0), [[1], [2], [3]])


@pytest.mark.parametrize(("shape", "least"), [("normal", 0.03), ("tied", 0.03), ("skewed", 0.015)])
def test_p_values_are_uniform_without_association(shape, least):
    """Of 500 factors 5 % should be below .05 with each covariate, give or take 2 % by chance.

    Outliers, as of log-normal factors, make the F test of few samples careful, not careless.
    """
    rng, n = np.random.default_rng(6), 12
    z = rng.standard_normal((n, 500))
    z = {"normal": z, "skewed": np.exp(z), "tied": np.round(z)}[shape]
    classes = np.resize(list("uvw"), n)
    known = {"number": rng.standard_normal(n), "two": classes == "u", "three": classes}
    table = associate(z, known)
    share = (table["p"] < 0.05).groupby(table["covariate"]).mean()
    assert share.between(least, 0.07).all(), share


@pytest.mark.parametrize("given", [None, "age", np.zeros((5, 2, 2))])
def test_covariates_that_are_no_columns(given):
    with pytest.raises(kofa.DataError, match="covariates: expected columns of the samples"):
        associate(np.arange(5.0)[:, None], given)


def test_covariates_of_polars_that_are_only_planned_are_refused(rng):
    pl = pytest.importorskip("polars")
    known = pl.DataFrame({"age": rng.normal(size=20)}).lazy()
    with pytest.raises(kofa.DataError, match=r"covariates: .*LazyFrame; pass \.collect\(\)"):
        associate(rng.normal(size=(20, 2)), known)


def test_lists_of_pyarrow_are_no_covariate(rng):
    pa = pytest.importorskip("pyarrow")
    dtype = pd.ArrowDtype(pa.list_(pa.float64()))
    known = pd.DataFrame({"pairs": pd.array([[1.0, 2.0]] * 20, dtype=dtype)})
    with pytest.raises(kofa.DataError, match=r"'pairs': expected values that can be compared"):
        associate(rng.normal(size=(20, 2)), known)


@pytest.mark.parametrize(
    ("time", "event"),
    [
        ("TTT", "treatedAfter"),
        ("TTD", "died"),
        ("OS_time", "OS_event"),
        ("days_to_last_follow_up", "vital_status"),
        ("followUp", "isDead"),
        ("duration", "event"),
    ],
)
@pytest.mark.parametrize(
    "labels",
    [(0, 1), (0.0, 1.0), (False, True), ("False", "True"), ("Alive", "Dead"), ("no", "yes")],
)
def test_censored_times_are_named_in_a_warning(rng, time, event, labels):
    known = pd.DataFrame({time: rng.exponential(size=20), "age": rng.normal(60, 9, 20)})
    known[event] = [labels[i % 2] for i in range(20)]
    with pytest.warns(UserWarning, match=rf"'{time}' look.*'{event}' like.*survival"):
        associate(rng.normal(size=(20, 2)), known)


def test_covariates_that_are_no_censored_times_are_not_warned_of(rng):
    known = pd.DataFrame({"age_years": rng.exponential(size=20), "os_shift": rng.normal(size=20)})
    known["died"] = [0, 1] * 10
    associate(rng.normal(size=(20, 2)), known)
    known = pd.DataFrame({"time": rng.exponential(size=20), "status": ["case", "control"] * 10})
    associate(rng.normal(size=(20, 2)), known.assign(smoker=[True, False] * 10))
