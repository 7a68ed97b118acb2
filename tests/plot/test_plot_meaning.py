"""Plots of associations, feature sets and agreement."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import kofa
from drawn import every_kind, legend_of, texts, tick_names, values_of

model = pytest.fixture(lambda: every_kind()[0])
data = pytest.fixture(lambda: every_kind()[1])


@pytest.fixture
def known():
    rng = np.random.default_rng(0)
    z = pd.DataFrame(rng.normal(size=(60, 2)), columns=["factor1", "factor2"])
    covariates = pd.DataFrame(
        {
            "age": -z["factor1"],
            "site": np.where(z["factor2"] > 0.5, "A", np.where(z["factor2"] > 0, "B", "C")),
            "same": 1.0,
        }
    )
    return z, covariates


def test_effects_are_correlations_or_eta(known):
    ax = kofa.plot.associations(*known)
    table = kofa.inspection.associate(*known)
    shown = values_of(ax.images[0])
    assert shown[0, 0] == pytest.approx(-1.0)
    eta = table[(table["factor"] == "factor2") & (table["covariate"] == "site")]["value"].iloc[0]
    assert shown[1, 1] == pytest.approx(np.sqrt(eta))
    assert np.isnan(shown[:, 2]).all()
    assert ax.images[0].get_clim() == (-1.0, 1.0)
    assert tick_names(ax.xaxis) == ["age", "site", "same"]


def test_stars_say_how_unlikely_chance_is():
    table = pd.DataFrame({"factor": "factor1", "covariate": list("abcde")})
    table = table.assign(statistic="r", value=0.5, r=0.5, q=[0.2, 0.04, 0.004, 0.0004, np.nan])
    ax = kofa.plot.associations(table)
    assert texts(ax) == ["", "*", "**", "***", ""]
    ax = kofa.plot.associations(table, show="q")
    assert values_of(ax.images[0])[0, :4] == pytest.approx(-np.log10(table["q"][:4]))
    with pytest.raises(kofa.DeclarationError, match="show"):
        kofa.plot.associations(table, show="p")


def test_a_p_value_of_zero_is_drawn():
    table = pd.DataFrame({"factor": ["factor1"], "covariate": "a", "statistic": "r", "value": 1.0})
    ax = kofa.plot.associations(table.assign(r=1.0, q=0.0), show="q")
    assert values_of(ax.images[0]) == pytest.approx(300.0)


def test_associations_of_a_model(model, data):
    label = data["label"].rename("stage")
    ax = kofa.plot.associations(model, label, factors=["factor2"])
    expected = model.associate(label).set_index("factor").loc["factor2", "r"]
    assert values_of(ax.images[0])[0, 0] == pytest.approx(expected)
    with pytest.raises(kofa.DataError, match=r"(?i)expected covariates, or a table"):
        kofa.plot.associations(model)


def enriched(sets=30, factors=1):
    rows = [(f"factor{k + 1}", f"SET_{s}") for k in range(factors) for s in range(sets)]
    table = pd.DataFrame(rows, columns=["factor", "set"])
    q = 10.0 ** -np.arange(len(table), dtype=float)[::-1]
    return table.assign(q=q, n_found=10, direction=["positive", "negative"] * (len(table) // 2))


def test_sets_of_one_factor_are_dots_with_the_least_q_on_top():
    ax = kofa.plot.enrichment(enriched(), n=4)
    assert tick_names(ax.yaxis) == ["SET_0", "SET_1", "SET_2", "SET_3"]
    assert legend_of(ax) == ["positive", "negative"]
    positive, negative = (np.asarray(one.get_offsets()) for one in ax.collections)
    assert positive == pytest.approx(np.array([[29.0, 0.0], [27.0, 2.0]]))
    assert negative == pytest.approx(np.array([[28.0, 1.0], [26.0, 3.0]]))
    assert ax.get_ylim() == (3.5, -0.5)


def test_larger_sets_have_larger_dots():
    ax = kofa.plot.enrichment(enriched(2).assign(n_found=[10, 100], direction="positive"))
    sizes = ax.collections[0].get_sizes()
    assert sizes[0] < sizes[1]


def test_sets_of_several_factors_are_a_heat_map():
    table = enriched(4, 3)
    ax = kofa.plot.enrichment(table, n=2)
    shown = values_of(ax.images[0])
    assert shown.shape == (2, 3)
    assert tick_names(ax.yaxis) == ["SET_0", "SET_1"]
    assert shown[:, 0] == pytest.approx([11.0, -10.0])
    one = kofa.plot.enrichment(table, factor=[1, 2])
    assert tick_names(one.xaxis) == ["factor2", "factor3"]
    assert not kofa.plot.enrichment(table, factor=1).images


def test_enrichment_of_a_model(model, data):
    genes = list(data["real"].columns)
    sets = {"first": genes[:10], "last": genes[10:]}
    ax = kofa.plot.enrichment(model, "real", sets, "factor1", data)
    table = model.enrich("real", sets, "factor1", data)
    assert len(ax.get_yticks()) == len(table)
    with pytest.raises(kofa.DataError, match=r"(?i)expected view and sets"):
        kofa.plot.enrichment(model, "real")


def test_matched_factors_are_bars_of_the_size_of_their_correlation():
    z = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)), columns=list("abc"))
    ax = kofa.plot.agreement(z, pd.DataFrame({"x": -z["c"], "y": z["a"]}))
    bars = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in ax.patches}
    assert [bars[i] for i in range(3)] == pytest.approx([1.0, 0.0, 1.0])
    assert tick_names(ax.yaxis) == ["a – y", "b – none", "c – x"]
    assert legend_of(ax) == ["same sign", "opposite sign"]


def test_agreement_of_models_and_of_a_table(model, data):
    for ax in (
        kofa.plot.agreement(model, model),
        kofa.plot.agreement(model, model.factors(), data),
        kofa.plot.agreement(model.factors(), model),
        kofa.plot.agreement(model.agreement(model)),
    ):
        assert [bar.get_width() for bar in ax.patches] == pytest.approx([1.0] * 3)
        assert ax.get_legend() is None


def test_what_may_be_chance_has_no_strong_colour():
    table = pd.DataFrame({"set": ["a", "b"] * 2, "factor": ["f", "f", "g", "g"], "q": 0.9})
    table = table.assign(n_found=10, direction="positive")
    assert kofa.plot.enrichment(table).images[0].get_clim() == (-2.0, 2.0)
    found = table.assign(q=[1e-5, 0.9, 0.9, 0.9])
    assert kofa.plot.enrichment(found).images[0].get_clim() == pytest.approx((-5.0, 5.0))
    table = pd.DataFrame({"factor": ["f", "g"], "covariate": "age", "q": 0.9, "r": 0.1})
    table = table.assign(statistic="r", value=0.1)
    assert kofa.plot.associations(table, show="q").images[0].get_clim() == (0.0, 2.0)
