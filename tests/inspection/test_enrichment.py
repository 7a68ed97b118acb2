"""Feature sets with larger weights than the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import kofa
from kofa.inspection import enrich

GENES = [f"g{j}" for j in range(300)]
SETS = {"planted": GENES[:20], "down": GENES[20:45], "other": GENES[100:140]}


@pytest.fixture
def weights():
    w = np.random.default_rng(0).standard_normal((300, 2))
    w[:20, 0] += 1.5
    w[20:45, 1] -= 1.5
    return pd.DataFrame(w, GENES, ["a", "b"])


def correlated(rng, n, rho, n_features=200, size=20, n_sets=5):
    """Features of which each set has a cause of its own, and sets as positions."""
    own = rng.standard_normal((n, n_features))
    shared = np.repeat(rng.standard_normal((n, n_sets)), size, axis=1)
    m = size * n_sets
    own[:, :m] = np.sqrt(1.0 - rho) * own[:, :m] + np.sqrt(rho) * shared
    return own, {f"set{s}": range(s * size, (s + 1) * size) for s in range(n_sets)}


def test_planted_sets_are_found_and_others_are_not(weights):
    table = enrich(weights, SETS)
    found = table[table["q"] < 0.05]
    assert found[["factor", "set", "direction"]].to_numpy().tolist() == [
        ["a", "planted", "positive"],
        ["b", "down", "negative"],
    ]
    assert table["p"][:3].is_monotonic_increasing
    assert table["p"][3:].is_monotonic_increasing
    expected = "factor set size n_found difference t inflation p q direction leading"
    assert list(table.columns) == expected.split()
    assert (table["inflation"] == 1.0).all()
    assert table["q"].to_numpy() == pytest.approx(stats.false_discovery_control(table["p"]))


def test_without_data_it_is_the_t_test(weights):
    table = enrich(weights, SETS, "a").set_index("set")
    for name, genes in SETS.items():
        inside, outside = weights["a"][genes], weights["a"].drop(genes)
        test = stats.ttest_ind(inside, outside)
        assert table["t"][name] == pytest.approx(test.statistic)
        assert table["p"][name] == pytest.approx(test.pvalue)
        assert table["difference"][name] == pytest.approx(inside.mean() - outside.mean())


@pytest.mark.parametrize(("sign", "alternative"), [("positive", "greater"), ("negative", "less")])
def test_one_sign(weights, sign, alternative):
    table = enrich(weights, SETS, ["b"], sign=sign).set_index("set")
    inside, outside = weights["b"][SETS["down"]], weights["b"].drop(SETS["down"])
    expected = stats.ttest_ind(inside, outside, alternative=alternative).pvalue
    assert table["p"]["down"] == pytest.approx(expected)


def test_absolute_weights_find_sets_of_both_signs():
    w = np.random.default_rng(1).standard_normal(300)
    w[:20] *= 4.0
    w[20:60] *= 0.01
    sets = {"wide": range(20), "narrow": range(20, 60)}
    assert enrich(w, sets)["q"].min() > 0.05
    table = enrich(w, sets, absolute=True).set_index("set")
    assert table["q"]["wide"] < 0.001
    assert table["p"]["narrow"] > 0.99
    size = np.sqrt(np.abs(w))
    expected = stats.ttest_ind(size[:20], size[20:], alternative="greater").pvalue
    assert table["p"]["wide"] == pytest.approx(expected)


def test_ranks_do_not_mind_outliers(weights):
    weights = weights.copy()
    weights.loc["g200", "a"] = 1e6
    assert enrich(weights, SETS, "a")["q"].min() > 0.05
    robust = enrich(weights, SETS, "a", ranks=True)
    assert (robust["set"][0], robust["q"][0] < 0.001) == ("planted", True)
    monotone = weights.assign(a=np.arctan(weights["a"]))
    assert enrich(monotone, SETS, "a", ranks=True)["t"].tolist() == pytest.approx(
        robust["t"].tolist()
    )


def test_sets_in_all_their_forms(weights, tmp_path):
    expected = enrich(weights, SETS)
    pairs = pd.DataFrame(
        [(name, g) for name, genes in SETS.items() for g in genes], columns=["set", "feature"]
    )
    path = tmp_path / "sets.gmt"
    lines = ["\t".join([name, "about", *genes]) for name, genes in SETS.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    arrays = {name: np.array(genes) for name, genes in SETS.items()}
    for form in (pairs, path, str(path), arrays):
        pd.testing.assert_frame_equal(enrich(weights, form), expected)
    pl = pytest.importorskip("polars")
    pd.testing.assert_frame_equal(enrich(weights, pl.from_dict(pairs.to_dict("list"))), expected)


def test_sizes(weights):
    sets = {"twice": [*GENES[:12], *GENES[:12], "unknown"], "small": GENES[:9], "large": GENES[:50]}
    table = enrich(weights, sets, "a", max_size=49)
    assert table[["set", "size", "n_found"]].to_numpy().tolist() == [["twice", 13, 12]]
    assert set(enrich(weights, sets | {"all": GENES}, "a", min_size=1)["set"]) == set(sets)


def test_leading_features(weights):
    table = enrich(weights, SETS, n_leading=3).set_index(["factor", "set"])
    top = weights["a"][SETS["planted"]].sort_values(ascending=False).index[:3]
    assert table["leading"]["a", "planted"] == list(top)
    low = weights["b"][SETS["down"]].sort_values().index[:3]
    assert table["leading"]["b", "down"] == list(low)
    every = enrich(weights, SETS, "a", n_leading=99)["leading"][0]
    others = weights["a"].drop(SETS["planted"]).mean()
    assert len(every) == (weights["a"][SETS["planted"]] > others).sum()
    assert len(table.explode("leading")) == 18


def test_factors_without_weights_have_nan_and_do_not_count(weights):
    table = enrich(weights.assign(b=0.0), SETS)
    assert table["p"][3:].isna().all()
    assert table["direction"][3:].isna().all()
    assert table["q"][:3].tolist() == pytest.approx(enrich(weights, SETS, "a")["q"].tolist())
    assert enrich(weights.assign(b=0.1), SETS, "b", ranks=True)["p"].isna().all()


def test_weights_that_tell_a_set_apart_exactly():
    w = np.repeat([1.0, 0.0], [10, 20])
    found = enrich(w, {"x": range(10)}).iloc[0]
    assert (found["p"], found["t"]) == (0.0, np.inf)


@pytest.mark.parametrize("options", [{}, {"absolute": True}, {"ranks": True}, {"sign": "positive"}])
@pytest.mark.parametrize("rho", [0.0, 0.4])
def test_p_values_are_uniform_for_correlated_features(rho, options):
    """Weights of factors that have nothing to do with the features."""
    rng = np.random.default_rng(2)
    p = []
    for _ in range(12):
        x, sets = correlated(rng, 100, rho)
        z = rng.standard_normal((100, 40))
        p.append(enrich(x.T @ z / 100, sets, data=x, n_leading=0, **options)["p"])
    share = (np.concatenate(p) < 0.05).mean()
    assert 0.03 <= share <= 0.07


@pytest.mark.parametrize("options", [{}, {"absolute": True}])
@pytest.mark.parametrize("size", [0.0, 0.3])
def test_p_values_are_uniform_where_weights_are_more_than_noise(size, options):
    """Each factor has weights in any features; those of a set go together only in their noise."""
    rng = np.random.default_rng(13)
    p = []
    for _ in range(20):
        x, sets = correlated(rng, 100, 0.4)
        z = rng.standard_normal((100, 10))
        x = x + z @ rng.normal(0.0, size, (10, 200))
        p.append(enrich((np.linalg.pinv(z) @ x).T, sets, data=x, factors=z, **options)["p"])
    share = (np.concatenate(p) < 0.05).mean()
    assert 0.03 <= share <= 0.07


def test_without_data_correlated_features_are_taken_for_enriched():
    """The reason for `data`."""
    rng = np.random.default_rng(3)
    x, sets = correlated(rng, 100, 0.4)
    w = x.T @ rng.standard_normal((100, 200)) / 100
    assert (enrich(w, sets)["p"] < 0.05).mean() > 0.4


def test_planted_sets_are_found_with_data():
    rng = np.random.default_rng(4)
    x, sets = correlated(rng, 150, 0.1)
    z = rng.standard_normal((150, 2))
    true = rng.normal(0.0, 0.3, (200, 2))
    true[:20, 0] += 0.6
    x = x + z @ true.T
    w = np.linalg.lstsq(z, x, rcond=None)[0].T
    table = enrich(w, sets, data=x, factors=z)
    found = table[table["q"] < 0.05]
    assert found[["factor", "set"]].to_numpy().tolist() == [["factor1", "set0"]]
    # Of the variance of the weights, 1 / (1 + .3² · 150) is noise, which alone is inflated.
    share = 1 / (1 + 0.3**2 * 150)
    assert found["inflation"].iloc[0] == pytest.approx(1 + share * 19 * 0.1, rel=0.05)
    assert enrich(w, sets, data=x)["inflation"].min() > 1.5


def test_what_the_factors_explain_is_no_correlation():
    rng = np.random.default_rng(5)
    z = rng.standard_normal((200, 1))
    w = np.zeros(100)
    w[:15] = 1.0
    x = z * w + rng.standard_normal((200, 100))
    sets = {"x": range(15)}
    assert enrich(w, sets, data=x, factors=z)["inflation"][0] < 1.5
    assert enrich(w, sets, data=x)["inflation"][0] > 5


def test_correlation_of_all_features_alike_is_no_inflation():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((400, 100)) + 2.0 * rng.standard_normal((400, 1))
    assert enrich(rng.standard_normal(100), {"x": range(20)}, data=x)["inflation"][0] < 1.2


def test_data_are_matched_by_feature_and_sample(weights):
    rng = np.random.default_rng(7)
    samples = [f"s{i}" for i in range(60)]
    x, _ = correlated(rng, 60, 0.5, 300)
    x = pd.DataFrame(x, samples, GENES)
    z = pd.DataFrame(rng.standard_normal((60, 2)), samples, ["a", "b"])
    expected = enrich(weights, SETS, data=x.iloc[:50], factors=z.iloc[:50])
    shuffled = enrich(weights, SETS, data=x.iloc[:50, ::-1], factors=z.iloc[::-1])
    pd.testing.assert_frame_equal(shuffled, expected)
    arrays = enrich(weights, SETS, data=x.iloc[:50].to_numpy(), factors=z.iloc[:50].to_numpy())
    pd.testing.assert_frame_equal(arrays, expected)


def test_data_may_have_holes():
    rng = np.random.default_rng(8)
    x, sets = correlated(rng, 300, 0.5)
    w = rng.standard_normal(200)
    z = rng.standard_normal((300, 1))
    whole = enrich(w, sets, data=x, factors=z).set_index("set")["inflation"]
    holed = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    holed[:20] = np.nan
    holed[:, 3] = np.nan
    holed[:, 4] = 7.0
    again = enrich(w, sets, data=holed, factors=z).set_index("set")["inflation"]
    assert again[whole.index].to_numpy() == pytest.approx(whole.to_numpy(), rel=0.2)


def test_sets_of_features_that_do_not_vary_have_no_inflation():
    x = np.random.default_rng(9).standard_normal((30, 60))
    x[:, :15] = 2.0
    w = np.random.default_rng(10).standard_normal(60)
    for absolute in (False, True):
        assert enrich(w, {"x": range(15)}, data=x, absolute=absolute)["inflation"].tolist() == [1.0]


def test_few_samples_leave_everything_to_noise(weights):
    rng = np.random.default_rng(14)
    x, z = rng.standard_normal((5, 300)), rng.standard_normal((5, 2))
    assert enrich(weights, SETS, data=x, factors=z)["p"].min() > 1e-3
    constant = enrich(weights, SETS, data=rng.standard_normal((9, 300)), factors=np.ones((9, 2)))
    assert constant["p"].notna().all()


def test_degrees_of_freedom_are_those_of_the_data(weights):
    x = pd.DataFrame(np.random.default_rng(11).standard_normal((8, 300)), columns=GENES)
    found = enrich(weights, SETS, "a", data=x).iloc[0]
    assert found["p"] == pytest.approx(2 * stats.t.sf(abs(found["t"]), 7))


def test_the_callers_tables_stay_as_they_were(weights):
    x = pd.DataFrame(np.random.default_rng(12).standard_normal((9, 300)), columns=GENES)
    before = weights.copy(), x.copy()
    enrich(weights, SETS, data=x, absolute=True, ranks=True)
    pd.testing.assert_frame_equal(weights, before[0])
    pd.testing.assert_frame_equal(x, before[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"factor": "A"}, "weights: there is no factor 'A'; did you mean 'a'?"),
        ({"factor": ["a", 7]}, "weights: there is no factor 7; there are 'a', 'b'."),
        ({"sets": {"x": ["h1"]}}, "sets: no feature of the sets has a weight: weights have names "
         "such as 'g0', the sets such as 'h1'; give both the same names of features."),
        ({"sets": {"x": GENES[:4]}}, "sets: no set has a number of features within the limits: at "
         "most 4 are found; set min_size and max_size."),
        ({"sets": {"x": "g1"}}, "sets: expected the features of 'x' as a list but got 'g1'; pass"),
        ({"sets": [GENES]}, "sets: expected feature sets but got [['g0'"),
        ({"sets": pd.DataFrame({"set": ["x"], "gene": ["g1"]})}, "sets, column 'feature': expected "
         "columns 'set' and 'feature' but there are 'set', 'gene'; rename the columns."),
        ({"sign": "up"}, "Expected sign to be 'both', 'positive' or 'negative' but got 'up'."),
        ({"sign": "negative", "absolute": True}, "Expected sign to be 'both' beside absolute=True"),
        ({"min_size": 0}, "Expected min_size to be a whole number of at least 1 but got 0."),
        ({"max_size": 5}, "Expected max_size to be a whole number of at least 10 or None but got"),
        ({"n_leading": -1}, "Expected n_leading to be a whole number"),
        ({"factors": [[1.0]]}, "Expected factors to be None without data but got [[1.0]]."),
        ({"data": np.ones((9, 5))}, "data: expected a column for each of the 300 features with "
         "weights but got 5."),
        ({"data": pd.DataFrame(np.ones((9, 2)), columns=["g0", "u"])}, "data: there is no column "
         "'g1', which has a weight; pass the view that the weights are of."),
        ({"data": np.ones((2, 300))}, "data: expected at least 3 samples more than factors but 2 "),
        ({"data": np.full((5, 300), np.nan)}, "data: expected at least 3 samples more than"),
        ({"data": np.ones((9, 300)), "factors": np.ones((8, 2))}, "factors: expected as many rows "
         "as data has (9) but got 8"),
        ({"data": np.ones((9, 300)), "factors": np.ones((9, 3))}, "factors: expected a column for "
         "each of the 2 factors of weights but got 3."),
        ({"data": np.ones((9, 300)), "factors": pd.DataFrame({"a": range(9), "c": range(9)})},
         "factors: there is no column 'b', which weights have; there are 'a', 'c'."),
    ],
)  # fmt: skip
def test_errors_name_what_is_wrong_and_the_cure(weights, options, message):
    with pytest.raises(kofa.KofaError) as error:
        enrich(weights, **({"sets": SETS} | options))
    assert str(error.value).startswith(message)


def test_missing_weights_are_refused(weights):
    weights = weights.copy()
    weights.iloc[3, 1] = np.nan
    message = "weights, column 'b': the weight of feature 'g3' is missing; drop the feature."
    with pytest.raises(kofa.DataError) as error:
        enrich(weights, SETS)
    assert str(error.value) == message
    with pytest.raises(kofa.DataError, match="expected at least 3 features but got 2"):
        enrich(np.ones(2), {"x": [0]})


def test_draws_of_absolute_weights_follow_from_random_state(rng):
    x = rng.standard_normal((60, 1)) * np.repeat([2.0, 0.0], 15) + rng.standard_normal((60, 30))
    options = {"data": {"x": x}, "absolute": True, "min_size": 3}
    sets = {"first": range(8), "last": range(12, 30)}

    def p_values(seed, **own):
        model = kofa.FactorModel(random_state=seed).fit({"x": x})
        return model.enrich("x", sets, **options, **own).p.tolist()

    assert p_values(None) == p_values(0) == p_values(1, random_state=0)
    assert p_values(1) != p_values(0)
    assert p_values(1) == p_values(1)
