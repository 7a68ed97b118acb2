"""Plots of factors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgba

import kofa
from drawn import LONG, every_kind, legend_of, one_factor, tick_names, values_of
from kofa.plot import style

model = pytest.fixture(lambda: every_kind()[0])
data = pytest.fixture(lambda: every_kind()[1])
single = pytest.fixture(lambda: one_factor())


@pytest.fixture
def z():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        rng.normal(size=(40, 3)), [f"s{i}" for i in range(40)], ["factor1", "factor2", "factor3"]
    )


def places(ax, which=0):
    return np.asarray(ax.collections[which].get_offsets())


def test_samples_of_the_fit_and_of_new_data(model, data):
    ax = kofa.plot.factors(model)
    assert places(ax) == pytest.approx(model.factors().to_numpy()[:, :2])
    new = {"real": data["real"].iloc[:7]}
    ax = kofa.plot.factors(model, new, x="factor3", y=0)
    assert places(ax) == pytest.approx(model.transform(new)[["factor3", "factor1"]].to_numpy())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("factor3", "factor1")


def test_one_factor_is_drawn_in_its_order(single):
    model, data = single
    ax = kofa.plot.factors(model, colour=data["x"][:, 0])
    at = places(ax, 1)
    assert sorted(at[:, 0]) == list(range(1, 41))
    assert (np.diff(at[np.argsort(at[:, 0]), 1]) >= 0).all()
    assert ax.get_ylabel() == "factor1"


def test_three_factors_are_drawn_in_space(z):
    ax = kofa.plot.factors(z, z="factor3", colour=["a", "b"] * 20)
    assert ax.name == "3d"
    assert ax.get_zlabel() == "factor3"
    with pytest.raises(kofa.DeclarationError, match="no third axis for z; make it with projection"):
        kofa.plot.factors(z, z=2, ax=pyplot.figure().add_subplot())
    given = pyplot.figure().add_subplot(projection="3d")
    assert kofa.plot.factors(z, z=2, ax=given) is given


def test_classes_have_a_colour_and_a_marker_each(z):
    ax = kofa.plot.factors(z, colour=pd.Series(["b", "a"] * 20, z.index, name="stage"))
    assert legend_of(ax) == ["a", "b"]
    assert ax.get_legend().get_title().get_text() == "stage"
    assert places(ax) == pytest.approx(z.to_numpy()[1::2, :2])
    assert [to_rgba(style.colour(i)) for i in range(2)] == [
        tuple(one.get_facecolor()[0]) for one in ax.collections
    ]
    shapes = [one.get_paths()[0].vertices.shape for one in ax.collections]
    assert shapes[0] != shapes[1]


def test_numbers_have_a_scale_of_colours(z):
    age = np.arange(40.0)
    age[3] = np.nan
    ax = kofa.plot.factors(z, colour=pd.Series(age, z.index, name="age"))
    missing, known = ax.collections
    assert len(missing.get_offsets()) == 1
    assert known.get_array().tolist() == [v for v in age if not np.isnan(v)]
    assert ax.get_figure().axes[1].get_ylabel() == "age"


def test_samples_are_matched_by_name_and_those_without_a_value_are_grey(z):
    ax = kofa.plot.factors(z, colour=pd.Series(["x", "y"], ["s5", "s2"]))
    assert legend_of(ax) == ["x", "y", "missing"]
    assert places(ax, 0) == pytest.approx(z.loc[["s5"], ["factor1", "factor2"]].to_numpy())
    assert len(places(ax, 2)) == 38


def test_rare_classes_of_many_are_one(z):
    labels = [f"class{i}" for i in range(20)] + ["often"] * 20
    ax = kofa.plot.factors(z, colour=labels)
    assert len(legend_of(ax)) == 10
    assert legend_of(ax)[-1] == "12 others"
    assert "often" in legend_of(ax)


def test_colour_by_views_and_predictions(model, data):
    by_view = kofa.plot.factors(model, data, colour="label")
    assert legend_of(by_view) == ["early", "late"]
    assert by_view.get_legend().get_title().get_text() == "label"
    gene = kofa.plot.factors(model, data, colour=("real", "gene0"))
    seen = data["real"]["gene0"].dropna()
    assert values_of(gene.collections[1]) == pytest.approx(seen.to_numpy())
    predicted = kofa.plot.factors(model, data, colour=model.predict(data, "label"))
    assert set(legend_of(predicted)) <= {"early", "late"}
    chance = model.predict_proba(data, "label")["late"]
    assert kofa.plot.factors(model, data, colour=chance).get_figure().axes[1].get_ylabel() == "late"


def test_colour_of_arrays_by_position(single):
    model, data = single
    ax = kofa.plot.factors(model, data, colour=("x", 1))
    assert values_of(ax.collections[1]) == pytest.approx(data["x"][:, 1])
    by_name = pd.Series(data["x"][:, 1], [f"p{i}" for i in range(40)])
    ax = kofa.plot.factors(model, colour=by_name)
    assert values_of(ax.collections[1]) == pytest.approx(data["x"][:, 1])


@pytest.mark.parametrize(
    ("colour", "message"),
    [
        ("stage", "data have no view 'stage'"),
        (("real", "gene99"), "there is no column 'gene99'"),
        ("real", "one value for each sample but got 20 columns"),
        (pd.Series([1.0, 2.0], ["p1", "p2"]), "none is the same"),
        ([1.0, 2.0], "expected as many rows as factors has"),
    ],
)
def test_wrong_colours(model, data, colour, message):
    with pytest.raises(kofa.DataError, match=f"(?i){message}"):
        kofa.plot.factors(model, data, colour=colour)


def test_names_of_colours_need_data(model):
    with pytest.raises(kofa.DataError, match="looked up in data; pass data too"):
        kofa.plot.factors(model, colour="label")


def test_ellipses_are_contours_of_the_posterior(model, data):
    ax = kofa.plot.factors(model, data, ellipses=0.9)
    _, covariance = model.transform(data, return_cov=True)
    drawn = ax.collections[0]
    area = np.pi * drawn._widths * drawn._heights  # half axes; older versions have no getters
    size = np.linalg.det(covariance[:, :2, :2])
    assert area == pytest.approx(np.pi * -2 * np.log(0.1) * np.sqrt(size))
    assert len(kofa.plot.factors(model, data).collections) == 1


def test_directions_of_ellipses():
    class Tilted:
        def fit(self):
            pass

        def transform(self, data, return_cov=False):  # noqa: ARG002
            mean = np.zeros((1, 2))
            return (mean, np.array([[[3.0, 1.0], [1.0, 1.0]]])) if return_cov else mean

    ax = kofa.plot.factors(Tilted(), {"x": 1}, ellipses=True)
    drawn = ax.collections[0]
    assert np.degrees(drawn._angles[0]) % 180 == pytest.approx(22.5)
    assert drawn._widths[0] > drawn._heights[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ellipses": True}, "ellipses need a model and data"),
        ({"ellipses": 1.5}, "Expected ellipses to be"),
        ({"ellipses": "some"}, "Expected ellipses to be"),
    ],
)
def test_wrong_ellipses(model, options, message):
    with pytest.raises(kofa.KofaError, match=f"(?i){message}"):
        kofa.plot.factors(model, **options)


def test_ellipses_are_flat(model, data):
    with pytest.raises(kofa.DeclarationError, match="leave out z"):
        kofa.plot.factors(model, data, z=2, ellipses=True)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_pairs_below_the_diagonal(z, n):
    figure = kofa.plot.factor_pairs(z, factors=list(range(n)))
    drawn = [ax for ax in figure.axes if ax.collections]
    assert len(drawn) == n * (n - 1) // 2
    assert sum(ax.get_visible() for ax in figure.axes) == n * (n + 1) // 2
    if n == 3:
        at = np.asarray(drawn[-1].collections[0].get_offsets())
        assert at == pytest.approx(z[["factor2", "factor3"]].to_numpy())


def test_pairs_of_many_factors_are_the_first(z):
    wide = pd.concat([z, z + 1, z + 2], axis=1).set_axis([f"factor{k}" for k in range(9)], axis=1)
    assert len(kofa.plot.factor_pairs(wide).axes) == 25
    assert len(kofa.plot.factor_pairs(wide, n=3).axes) == 9


def test_pairs_explain_their_colours(z):
    by_class = kofa.plot.factor_pairs(z, colour=["early", LONG] * 20)
    shown = [text.get_text() for text in by_class.legends[0].get_texts()]
    assert "early" in shown
    assert all(len(text) <= 18 for text in shown)
    by_number = kofa.plot.factor_pairs(z, colour=pd.Series(np.arange(40.0), z.index, name="age"))
    assert by_number.axes[-1].get_ylabel() == "age"


def test_violins_show_the_quartiles_of_each_class(z):
    group = np.array(["a", "b"] * 20)
    ax = kofa.plot.factor_violins(z, group, factors=["factor2"])
    assert legend_of(ax) == ["a", "b"]
    bars = [line.get_ydata() for line in ax.lines if len(line.get_xdata()) == 2]
    values = z["factor2"].to_numpy()
    low, high = np.quantile(values[group == "a"], [0.25, 0.75])
    assert bars[0] == pytest.approx([low, high])
    assert tick_names(ax.xaxis) == ["factor2"]


def test_violins_of_few_or_equal_values_are_points(z):
    ax = kofa.plot.factor_violins(z.assign(factor1=1.0), ["one"] + ["other"] * 39, factors=0)
    assert [len(one.get_offsets()) for one in ax.collections] == [1, 39]


def test_violins_of_numbers_by_quartiles_and_of_few_numbers_by_value(z):
    assert len(legend_of(kofa.plot.factor_violins(z, np.arange(40.0)))) == 4
    assert legend_of(kofa.plot.factor_violins(z, [1.0, 2.0, 3.0, 4.0] * 10)) == ["1", "2", "3", "4"]


def test_violins_of_many_classes_show_fewer_factors(z):
    few = kofa.plot.factor_violins(z, ["a", "b"] * 20)
    many = kofa.plot.factor_violins(z, [f"class{i}" for i in range(40)])
    assert len(tick_names(few.xaxis)) == 3
    assert len(tick_names(many.xaxis)) == 2


def test_violins_need_classes(z):
    with pytest.raises(kofa.DataError, match=r"(?i)expected by to be"):
        kofa.plot.factor_violins(z, None)


@pytest.mark.parametrize("n", [1, 2, 50])
def test_correlation_of_factors(n):
    table = np.random.default_rng(0).normal(size=(30, n))
    ax = kofa.plot.factor_correlation(table)
    assert values_of(ax.images[0]) == pytest.approx(np.atleast_2d(np.corrcoef(table.T)))
    assert ax.images[0].get_clim() == (-1.0, 1.0)


def test_correlation_of_chosen_factors(model):
    ax = kofa.plot.factor_correlation(model, factors=[2, "factor1"])
    assert tick_names(ax.xaxis) == ["factor3", "factor1"]


def test_many_samples_are_a_picture():
    z = np.random.default_rng(0).normal(size=(5000, 2))
    assert kofa.plot.factors(z, colour=z[:, 0]).collections[-1].get_rasterized()


def test_tables_of_polars(data):
    pl = pytest.importorskip("polars")
    table = pl.from_pandas(data["real"].fillna(0.0))
    model = kofa.FactorModel().fit({"real": table})
    ax = kofa.plot.factors(model, {"real": table}, colour=table["gene0"])
    assert values_of(ax.collections[1]) == pytest.approx(table["gene0"].to_numpy())
    ax = kofa.plot.factors(model, {"real": table}, colour=("real", "gene0"))
    assert values_of(ax.collections[1]) == pytest.approx(table["gene0"].to_numpy())
    kofa.plot.data_heatmap(model, {"real": table}, "real")
    kofa.plot.data_overview(model, {"real": table})


def test_names_that_are_no_text():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(30, 4)), columns=[3, ("a", 1), 2.5, "$b"])
    model = kofa.FactorModel(n_factors=2).fit({"x": table})
    kofa.plot.top_weights(model, "x").get_figure().draw_without_rendering()
    kofa.plot.data_heatmap(model, {"x": table}, "x").get_figure().draw_without_rendering()
    ax = kofa.plot.factors(model, {"x": table}, colour=("x", ("a", 1)))
    assert values_of(ax.collections[1]) == pytest.approx(table[("a", 1)].to_numpy())


def test_names_in_space_are_short_enough_for_its_edges(long_model):
    ax = kofa.plot.factors(long_model, z=2)
    assert max(len(one.get_label_text()) for one in (ax.xaxis, ax.yaxis, ax.zaxis)) <= 14


@pytest.fixture
def long_model():
    return every_kind(True)[0]


@pytest.mark.parametrize(("n_classes", "inside"), [(2, True), (9, False)])
def test_a_legend_of_pairs_covers_no_panel(z, n_classes, inside):
    classes = [f"class {i % n_classes} of several" for i in range(40)]
    figure = kofa.plot.factor_pairs(z, colour=classes)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    panels = [ax for ax in figure.axes if ax.get_visible()]
    assert not any(box.overlaps(ax.get_window_extent()) for ax in panels)
    assert (figure.get_figwidth() == max(figure.get_figheight(), style.COLUMN)) == inside


def test_histograms_of_classes_differ_in_print_without_colour(z):
    figure = kofa.plot.factor_pairs(z, colour=["a", "b"] * 20)
    lines = {patch.get_linestyle() for patch in figure.axes[0].patches}
    assert len(lines) == 2
