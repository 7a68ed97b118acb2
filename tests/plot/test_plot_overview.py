"""Plots of a whole fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import kofa
from drawn import LONG, every_kind, legend_of, texts, tick_names, values_of
from kofa.plot import style

model = pytest.fixture(lambda: every_kind()[0])
data = pytest.fixture(lambda: every_kind()[1])


def structure(factors=3, views=2):
    names = [(f"factor{k + 1}", f"view{m + 1}") for k in range(factors) for m in range(views)]
    table = pd.DataFrame(names, columns=["factor", "view"])
    size = np.arange(len(table)) / len(table)
    return table.assign(r2=size / factors, relevance=size, active=size > 0.2)


def test_samples_with_the_same_views_stand_together(data, model):
    for ax in (kofa.plot.data_overview(data), kofa.plot.data_overview(model)):
        measured = ~ax.images[0].get_array().mask
        assert measured.shape == (5, 60)
        assert measured.sum(axis=1).tolist() == [60, 50, 60, 60, 60]
        assert measured[1, :50].all()
        assert tick_names(ax.yaxis) == list(data)
        assert texts(ax)[:2] == ["D = 20\nn = 60", "D = 4\nn = 50"]
        assert ax.get_xlabel() == "60 samples"


def test_colours_are_shares_of_the_features(model, data):
    ax = kofa.plot.data_overview(model, {"real": data["real"]})
    share = data["real"].notna().mean(axis=1).to_numpy()
    assert np.sort(values_of(ax.images[0])[0]) == pytest.approx(np.sort(share))
    assert ax.images[0].get_clim() == (0.0, 1.0)


def test_the_axis_of_the_bound_begins_near_its_end():
    class Slow:
        lower_bounds_ = np.concatenate([[-1e9, -1e8], np.linspace(-100, -50, 98)])

    ax = kofa.plot.bound(Slow())
    assert ax.lines[0].get_ydata()[0] == -1e9
    assert ax.get_ylim()[0] > -110
    assert ax.get_ylim()[1] > -50


def test_a_bound_of_one_iteration_is_seen():
    class Quick:
        lower_bounds_ = np.array([-3.0])

    assert kofa.plot.bound(Quick()).lines[0].get_marker() == "o"


def test_terms_end_at_zero_and_the_largest_have_names(model):
    ax = kofa.plot.bound(model, terms=True)
    assert {line.get_ydata()[-1] for line in ax.lines} == {0.0}
    assert len(ax.lines) == model.bound_terms()["term"].nunique()
    table = pd.DataFrame(
        {"iteration": np.repeat([1, 2], 20), "term": [f"t{i}" for i in range(20)] * 2}
    )
    table["value"] = [*np.arange(20.0), *np.zeros(20)]
    names = legend_of(kofa.plot.bound(table, terms=True))
    assert names == [f"t{i}" for i in range(19, 12, -1)] + ["13 others"]


def test_variance_is_in_percent_with_totals_above(model):
    ax = kofa.plot.variance_explained(model)
    table = model.variance_explained()
    shown = ax.images[0].get_array()
    assert shown.shape == (3, 5)
    first = table[(table["factor"] == "factor1") & (table["view"] == "real")]["r2"].iloc[0]
    assert shown[0, 0] == pytest.approx(100 * first)
    total = model.variance_explained(by="view").set_index("view")["r2"]
    bars = [bar.get_height() for bar in ax.get_figure().axes[0].patches]
    assert bars == pytest.approx(100 * total.to_numpy())
    assert tick_names(ax.yaxis) == ["factor1", "factor2", "factor3"]
    assert tick_names(ax.xaxis) == list(model.views_)


def test_views_in_which_nothing_varies_are_grey():
    table = structure(2, 2).assign(r2=[0.5, np.nan, 0.2, np.nan])
    ax = kofa.plot.variance_explained(table)
    assert ax.images[0].get_array().mask[:, 1].all()
    assert [bar.get_height() for bar in ax.get_figure().axes[0].patches] == pytest.approx([70, 0])


@pytest.mark.parametrize("factors", [1, 2, 200])
def test_variance_of_few_and_many_factors(factors):
    ax = kofa.plot.variance_explained(structure(factors))
    assert ax.images[0].get_array().shape == (factors, 2)
    assert 1 <= len(tick_names(ax.yaxis)) <= min(factors, 100)
    assert ax.get_figure().get_figwidth() <= style.COLUMN


def test_a_panel_for_each_view_with_inactive_factors_in_grey():
    table = structure(4, 3)
    figure = kofa.plot.factor_relevance(table)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["view1", "view2", "view3"]
    for ax, view in zip(figure.axes, ("view1", "view2", "view3"), strict=True):
        rows = table[table["view"] == view]
        assert [bar.get_height() for bar in ax.patches] == pytest.approx(rows["relevance"])
        grey = [bar.get_facecolor()[:3] == bar.get_facecolor()[:1] * 3 for bar in ax.patches]
        assert grey == (~rows["active"]).tolist()


@pytest.mark.parametrize("factors", [1, 2, 150])
def test_relevance_of_few_and_many_factors(factors):
    figure = kofa.plot.factor_relevance(structure(factors))
    assert len(figure.axes[0].patches) == factors
    names = tick_names(figure.axes[-1].xaxis)
    assert names[0] == "factor1"
    assert len(names) <= factors


def test_relevance_of_chosen_factors_in_their_order():
    figure = kofa.plot.factor_relevance(structure(5), factors=["factor3", 0])
    assert tick_names(figure.axes[-1].xaxis) == ["factor3", "factor1"]


def test_long_names_of_views_are_clipped():
    table = structure().assign(view=lambda t: LONG + LONG + t["view"])
    figure = kofa.plot.factor_relevance(table)
    assert all(len(ax.get_title(loc="left")) <= 40 for ax in figure.axes)
