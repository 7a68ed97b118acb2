"""Plots of weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

import kofa
from drawn import (
    LONG,
    every_kind,
    one_factor,
    texts,
    tick_names,
    two_kernels,
    values_of,
    weights_table,
)
from kofa.plot import style

model = pytest.fixture(lambda: every_kind()[0])
data = pytest.fixture(lambda: every_kind()[1])
single = pytest.fixture(lambda: one_factor())
kernels = pytest.fixture(lambda: two_kernels())


@pytest.mark.parametrize("features", [3, 40, 30_000])
def test_weights_in_their_order_with_the_largest_named(features):
    ax = kofa.plot.weights(weights_table(features), scale="weight")
    drawn = [np.asarray(one.get_offsets()) for one in ax.collections]
    at = np.concatenate(drawn)
    assert len(at) == features
    assert (np.diff(at[np.argsort(at[:, 0]), 1]) >= 0).all()
    assert len(drawn[1]) == min(features, 10)
    assert {"gene0", "gene1"} <= set(texts(ax))
    assert ax.collections[0].get_rasterized() == (features == 30_000)
    assert ax.get_title(loc="left") == "factor1"


def test_names_of_weights_point_at_them_and_stay_on_their_side():
    table = weights_table(200)
    ax = kofa.plot.weights(table, n=40, scale="weight")
    by_name = table[table["factor"] == "factor1"].set_index("feature")["weight"]
    low, high = ax.get_ylim()
    zero = -low / (high - low)
    for text in ax.texts:
        assert text.xy[1] == by_name[text.get_text()]
        assert (text.xyann[1] > zero) == (text.xy[1] > 0)
    heights = sorted(text.xyann[1] for text in ax.texts)
    assert min(np.diff(heights)) * 72 * 2.6 * 0.77 >= style.SMALL


def test_where_not_all_names_fit_those_nearest_zero_are_left_out():
    table = pd.DataFrame({"feature": [f"g{j}" for j in range(100)], "factor": "factor1"})
    for sign in (1.0, -1.0):
        rising = table.assign(weight=sign * np.arange(1.0, 101.0))
        ax = kofa.plot.weights(rising, n=100, scale="weight")
        assert 10 < len(ax.texts) < 60
        assert set(texts(ax)) == {f"g{j}" for j in range(100 - len(ax.texts), 100)}


def test_weights_of_another_factor_and_scale():
    table = weights_table(30)
    ax = kofa.plot.weights(table, factor="factor2")
    shown = np.sort(np.concatenate([np.asarray(c.get_offsets())[:, 1] for c in ax.collections]))
    expected = np.sort(table[table["factor"] == "factor2"]["standardised"])
    assert shown == pytest.approx(expected)
    assert ax.get_ylabel() == "standardised weight"
    with pytest.raises(kofa.DeclarationError, match="did you mean 'weight'"):
        kofa.plot.weights(table, scale="weights")


@pytest.mark.parametrize("n", [1, 5, 100])
def test_top_weights_are_bars_with_their_errors(n):
    table = weights_table(30)
    ax = kofa.plot.top_weights(table, n=n, scale="weight")
    widths = [bar.get_width() for bar in ax.patches]
    assert len(widths) == min(n, 30)
    assert widths[0] == 5.0
    assert (np.diff(np.abs(widths)) <= 0).all()
    assert tick_names(ax.yaxis)[0] == "gene0"
    segments = ax.collections[0].get_segments()
    assert segments[0][:, 0] == pytest.approx([4.8, 5.2])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first on top


def test_errors_of_standardised_weights_are_in_their_scale():
    ax = kofa.plot.top_weights(weights_table(30), n=2)
    assert ax.collections[0].get_segments()[0][:, 0] == pytest.approx([2.4, 2.6])


def test_signs_have_colours_and_uncertain_ones_are_pale():
    table = weights_table(5).assign(lfsr=[0.0, 0.4, 0.0, 0.0, 0.0] * 2)
    first, second = kofa.plot.top_weights(table, n=2).patches
    assert first.get_facecolor() == (*to_rgb(style.MAIN), 1.0)
    assert second.get_facecolor()[:3] == to_rgb(style.SECOND)
    assert second.get_facecolor()[3] < 0.5


def test_a_table_without_errors_is_drawn_without_them():
    table = weights_table(5)[["feature", "factor", "weight"]]
    assert not kofa.plot.top_weights(table, scale="weight").collections
    with pytest.raises(kofa.DataError, match="no column 'standardised'"):
        kofa.plot.top_weights(table)


@pytest.mark.parametrize(("features", "factors"), [(3, 1), (40, 2), (3000, 30)])
def test_a_heat_map_of_the_largest_weights(features, factors):
    ax = kofa.plot.weights_heatmap(weights_table(features, factors), scale="weight")
    shown = values_of(ax.images[0])
    assert shown.shape == (min(features, 20), factors)
    assert ax.images[0].get_clim() == (-5.0, 5.0)
    best = np.abs(shown).argmax(axis=1)
    assert (np.diff(best) >= 0).all()
    assert tick_names(ax.yaxis)[0] == "gene0"


def test_a_heat_map_of_chosen_factors():
    ax = kofa.plot.weights_heatmap(weights_table(10, 4), factors=["factor3", 0], n=5)
    assert tick_names(ax.xaxis) == ["factor3", "factor1"]
    assert len(tick_names(ax.yaxis)) == 5


def test_weights_of_two_factors():
    table = weights_table(40, 3, LONG)
    ax = kofa.plot.weights_scatter(table, x=2, y=0, n=3, scale="weight")
    wide = table.pivot(index="feature", columns="factor", values="weight")
    at = np.asarray(ax.collections[0].get_offsets())
    expected = wide.loc[table["feature"].unique(), ["factor3", "factor1"]].to_numpy()
    assert at == pytest.approx(expected)
    assert 1 <= len(ax.texts) <= 3
    assert all(len(text) <= 18 for text in texts(ax))
    assert "factor3" in ax.get_xlabel()


def test_two_factors_of_one_cannot_be_drawn(single):
    model, _ = single
    with pytest.raises(kofa.DataError, match=r"(?i)unknown factor 1; this model has 'factor1'"):
        kofa.plot.weights_scatter(model, "x")


def test_weights_of_a_kernel_are_those_of_landmarks(kernels):
    model, data = kernels
    ax = kofa.plot.weights(model, "w")
    assert sum(len(c.get_offsets()) for c in ax.collections) == len(model.views_["w"].landmarks)
    with pytest.raises(kofa.DataError, match=r"the name of a view; there are 'x', 'w', 'y'"):
        kofa.plot.weights_heatmap(model)
    with pytest.raises(kofa.DataError, match=r"View 'w': its weights are those of similarities"):
        kofa.plot.data_heatmap(model, data, "w")


def test_labels_have_no_columns(model, data):
    with pytest.raises(kofa.DataError, match=r"View 'label': labels have no columns to show"):
        kofa.plot.data_heatmap(model, data, "label")


def test_data_of_a_linear_kernel():
    x = np.random.default_rng(0).normal(size=(30, 1)) * [1.0, 2.0, 3.0]
    model = kofa.FactorModel({"x": kofa.Real(kernel="linear")}).fit({"x": x})
    assert values_of(kofa.plot.data_heatmap(model, {"x": x}, "x").images[0]).shape == (3, 30)


def test_data_of_the_largest_weights_in_the_order_of_the_factor(single):
    model, data = single
    ax = kofa.plot.data_heatmap(model, data, "x", n=2, standardise=False)
    order = np.argsort(model.factors()["factor1"].to_numpy())
    weights = model.weights("x", tidy=True).set_index("feature")["standardised"]
    chosen = weights.loc[weights.abs().sort_values(ascending=False).index[:2]]
    features = chosen.sort_values(ascending=False).index
    assert values_of(ax.images[0]) == pytest.approx(data["x"][order][:, list(features)].T)
    assert tick_names(ax.yaxis) == [str(feature) for feature in features]


def test_standardised_data_with_holes(model, data):
    ax = kofa.plot.data_heatmap(model, data, "real", "factor2", n=5)
    shown = values_of(ax.images[0])
    order = model.transform(data)["factor2"].sort_values().index
    table = data["real"].loc[order, tick_names(ax.yaxis)]
    z = (table - table.mean()) / table.std(ddof=0)
    assert shown == pytest.approx(z.to_numpy().T, nan_ok=True)
    assert np.isnan(shown).any()
    limit = np.nanmax(np.abs(shown))
    assert limit < 3
    assert ax.images[0].get_clim() == (-limit, limit)


def test_positive_data_are_shown_as_the_logarithms_that_are_modelled(model, data):
    ax = kofa.plot.data_heatmap(model, data, "positive", n=2)
    order = model.transform(data)["factor1"].reindex(data["positive"].index).sort_values().index
    table = np.log(data["positive"].loc[order, tick_names(ax.yaxis)])
    z = (table - table.mean()) / table.std(ddof=0)
    assert values_of(ax.images[0]) == pytest.approx(z.to_numpy().T)
    raw = kofa.plot.data_heatmap(model, data, "positive", n=2, standardise=False)
    assert values_of(raw.images[0]) == pytest.approx(np.exp(table).to_numpy().T)


def test_outliers_do_not_take_all_colours(rng):
    x = rng.normal(size=(100, 3)) + rng.normal(size=(100, 1))
    x[5, 0] = 40.0
    model = kofa.FactorModel(n_factors=1).fit({"x": x})
    assert kofa.plot.data_heatmap(model, {"x": x}, "x").images[0].get_clim() == (-3.0, 3.0)


def test_samples_that_a_view_lacks_are_not_shown(model, data):
    ax = kofa.plot.data_heatmap(model, data, "positive")
    assert values_of(ax.images[0]).shape == (4, 50)


def test_constant_columns_are_zero():
    from kofa.plot.data import _standardised

    assert _standardised(np.array([[1.0, np.nan], [1.0, np.nan]]))[:, 0].tolist() == [0.0, 0.0]


def test_data_without_the_view_or_its_columns(model, data):
    with pytest.raises(kofa.DataError, match=r"(?i)data have no view 'real'"):
        kofa.plot.data_heatmap(model, {"count": data["count"]}, "real")
    with pytest.raises(kofa.DataError, match=r"(?i)expected data as a dict"):
        kofa.plot.data_heatmap(model, 3, "real")


def test_data_of_a_mudata():
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 1)) * [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=(30, 3))
    cells = anndata.AnnData(pd.DataFrame(x, [f"c{i}" for i in range(30)], ["a", "b", "c"]))
    model = kofa.FactorModel().fit(cells)
    assert values_of(kofa.plot.data_heatmap(model, cells, "X").images[0]).shape == (3, 30)
    assert values_of(kofa.plot.data_overview(model, cells).images[0]).shape == (1, 30)
