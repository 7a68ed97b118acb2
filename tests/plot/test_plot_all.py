"""What holds for every plot."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from itertools import pairwise

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import kofa
from drawn import every_kind
from kofa import plot
from kofa.plot import style

model = pytest.fixture(lambda: every_kind()[0])
data = pytest.fixture(lambda: every_kind()[1])
SETS = {"first": range(0, 10), "last": range(8, 20)}


@cache
def scores_of(long):
    """Cross-validation of two models, quickly."""
    data = every_kind(long)[1]
    real, *_, label = data
    views = {real: kofa.Real(), label: kofa.Categorical()}
    one = kofa.FactorModel(views, outputs=[label], n_factors=2)
    tables = {real: data[real], label: data[label]}
    return kofa.compare({"one": one, "two": one}, tables, cv=2, return_predictions=True)


def calls(model, data, long=False):
    """Each function with a model of views of all kinds."""
    real, positive, binary, count, label = data
    scores, held_out = scores_of(long)
    genes = list(data[real].columns)
    sets = {name: [genes[j] for j in which] for name, which in SETS.items()}
    relevance = pd.DataFrame({"feature": genes, "relevance": 1.0, "selected": True})
    shares = pd.DataFrame({"view": [real, positive], "kernel": "RBF", "weight": [0.8, 0.2]})
    age = pd.Series(np.arange(60.0), data[real].index, name="age")
    yield "agreement", lambda ax: plot.agreement(model, model, ax=ax)
    yield "associations", lambda ax: plot.associations(model, age, ax=ax)
    yield "bound", lambda ax: plot.bound(model, ax=ax)
    yield "bound", lambda ax: plot.bound(model, terms=True, ax=ax)
    yield "calibration", lambda ax: plot.calibration(held_out, ax=ax)
    yield "compare", lambda ax: plot.compare(scores, ax=ax)
    yield "confusion", lambda ax: plot.confusion(held_out, model="one", ax=ax)
    for view in (real, positive, binary, count):
        yield "data_heatmap", lambda ax, v=view: plot.data_heatmap(model, data, v, ax=ax)
        yield "predictions", lambda ax, v=view: plot.predictions(model, data, v, ax=ax)
    for view in data:
        yield "weights", lambda ax, v=view: plot.weights(model, v, ax=ax)
        yield "top_weights", lambda ax, v=view: plot.top_weights(model, v, ax=ax)
        yield "weights_heatmap", lambda ax, v=view: plot.weights_heatmap(model, v, ax=ax)
        yield "weights_scatter", lambda ax, v=view: plot.weights_scatter(model, v, ax=ax)
    yield "predictions", lambda ax: plot.predictions(model, data, label, ax=ax)
    yield "data_overview", lambda ax: plot.data_overview(model, ax=ax)
    yield "enrichment", lambda ax: plot.enrichment(model, real, sets, min_size=5, ax=ax)
    yield "enrichment", lambda ax: plot.enrichment(model, real, sets, 0, min_size=5, ax=ax)
    yield "factor_correlation", lambda ax: plot.factor_correlation(model, ax=ax)
    yield "factor_violins", lambda ax: plot.factor_violins(model, data[label], ax=ax)
    yield "factors", lambda ax: plot.factors(model, data, colour=label, ax=ax)
    yield "factors", lambda ax: plot.factors(model, data, colour=(real, genes[0]), ax=ax)
    yield "factors", lambda ax: plot.factors(model, data, ellipses=True, ax=ax)
    yield "feature_relevance", lambda ax: plot.feature_relevance(relevance, ax=ax)
    yield "kernel_weights", lambda ax: plot.kernel_weights(shares, ax=ax)
    yield "variance_explained", lambda ax: plot.variance_explained(model, ax=ax)


GRIDS = {"factor_pairs", "factor_relevance", "kernel"}
WITH_KERNELS = {"kernel", "relevance_vectors"}


def grids(model, data):
    yield "factor_relevance", lambda: plot.factor_relevance(model)
    yield "factor_pairs", lambda: plot.factor_pairs(model, data, colour=list(data)[4])
    many = [f"a class of many {i % 9}" for i in range(60)]
    yield "factor_pairs", lambda: plot.factor_pairs(model, colour=many)


def test_every_function_is_called_here(model, data):
    called = {name for name, _ in calls(model, data)} | GRIDS | WITH_KERNELS
    assert called == set(plot.__all__)


@pytest.mark.parametrize("long", [False, True])
def test_every_function_draws_every_kind_of_view(long):
    model, data = every_kind(long)
    before, settings = (
        {name: table.copy() for name, table in data.items()},
        dict(matplotlib.rcParams),
    )
    for name, call in calls(model, data, long):
        ax = call(None)
        assert isinstance(ax, Axes), name
        check_figure(ax.get_figure(), name)
    for name, call in grids(model, data):
        found = call()
        assert isinstance(found, Figure), name
        check_figure(found, name)
    assert dict(matplotlib.rcParams) == settings
    assert all(before[name].equals(table) for name, table in data.items())


def check_figure(figure, name):
    """Nothing reaches beyond the paper, is too small or too long, and no tick names overlap."""
    figure.draw_without_rendering()
    assert figure.get_figwidth() <= style.PAGE, name
    renderer, page = figure.canvas.get_renderer(), figure.bbox
    for text in visible_texts(figure):
        assert text.get_fontsize() >= 6, (name, text.get_text())
        assert len(text.get_text()) <= 70, (name, text.get_text())
        box = text.get_window_extent(renderer)
        assert box.x0 >= page.x0 - 2, (name, text.get_text())
        assert box.x1 <= page.x1 + 2, (name, text.get_text())
        assert box.y0 >= page.y0 - 2, (name, text.get_text())
        assert box.y1 <= page.y1 + 2, (name, text.get_text())
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            assert_apart(axis, renderer, name)
    pyplot.close(figure)


def visible_texts(figure):
    found = [text for ax in figure.axes if ax.get_visible() for text in all_texts(ax)]
    return [text for text in found if text.get_text() and text.get_visible()]


def all_texts(ax):
    legend = ax.get_legend()
    return [
        *ax.texts, ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label,
        *([] if legend is None else legend.get_texts()), *shown_labels(ax.xaxis),
        *shown_labels(ax.yaxis),
    ]  # fmt: skip


def shown_labels(axis):
    """Labels of ticks within the limits."""
    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [tick.label1 for tick in ticks if tick.label1.get_visible() and tick.label1.get_text()]


def assert_apart(axis, renderer, name):
    if not axis.get_visible() or not axis.axes.get_visible():
        return
    across = axis.axis_name == "x"
    boxes = [label.get_window_extent(renderer) for label in shown_labels(axis)]
    ends = sorted((b.x0, b.x1) if across else (b.y0, b.y1) for b in boxes)
    overlap = [(a, b) for (_, a), (b, _) in pairwise(ends) if a > b + 1.5]
    assert not overlap, (name, [label.get_text() for label in shown_labels(axis)])


def test_axes_of_the_user_are_drawn_in_and_returned(model, data):
    figure, ax = pyplot.subplots(figsize=(4, 3))
    for name, call in dict(calls(model, data)).items():
        ax.clear()
        assert call(ax) is ax, name
        assert pyplot.get_fignums() == [figure.number], name
        figure.draw_without_rendering()
        for other in [one for one in figure.axes if one is not ax]:
            other.remove()


def test_what_is_no_axes_is_refused(model):
    with pytest.raises(kofa.DeclarationError, match=r"Expected ax to be the Axes.*but got 'here'"):
        plot.bound(model, ax="here")


def test_matplotlib_is_loaded_for_drawing_only_and_it_is_said_how_to_get_it():
    code = """
import sys
from kofa import *  # kofa.plot itself needs nothing
import numpy as np
plot.factors
print("matplotlib" in sys.modules)
sys.modules["matplotlib"] = None
try:
    plot.factors(np.ones((3, 2)))
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, encoding="utf-8"
    )
    assert done.stdout.startswith("False\n")
    assert "pip install 'kofa[plot]'" in done.stdout


@pytest.mark.parametrize(
    "function",
    [plot.variance_explained, plot.factor_relevance, plot.weights, plot.top_weights,
     plot.associations, plot.enrichment, plot.agreement, plot.feature_relevance,
     plot.kernel_weights, plot.predictions, plot.calibration, plot.compare],
)  # fmt: skip
def test_a_table_of_something_else_is_refused(function):
    with pytest.raises(kofa.DataError, match="expected a table"):
        function(pd.DataFrame({"a": [1]}))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: plot.factors(m, x="factor9"), "unknown factor 'factor9'; did you mean"),
        (lambda m: plot.factors(m, y=7), "unknown factor 7; this model has 'factor1', 'factor2'"),
        (lambda m: plot.factors(m, y=-1), "unknown factor -1"),
        (lambda m: plot.factor_pairs(m, factors=["size"]), "unknown factor 'size'"),
        (lambda m: plot.factor_relevance(m, factors=[0, 9]), "unknown factor 9"),
        (lambda m: plot.factor_correlation(m, factors="size"), "unknown factor 'size'"),
        (lambda m: plot.weights(m, "real", "size"), "unknown factor 'size'"),
        (lambda m: plot.weights(m, "reel"), "Unknown view 'reel'.*did you mean 'real'"),
        (lambda m: plot.top_weights(m, "real", 5), "unknown factor 5"),
        (lambda m: plot.weights_scatter(m, "real", y=5), "unknown factor 5"),
        (lambda m: plot.feature_relevance(m, "real"), "no relevance of features"),
        (lambda m: plot.relevance_vectors(m, "real"), "no relevance vectors"),
    ],
)
def test_what_a_model_does_not_have_is_an_error(model, call, message):
    with pytest.raises(kofa.DataError, match=f"(?i){message}"):
        call(model)


@pytest.mark.parametrize("n", [0, -1, 2.5, "all"])
def test_how_many_is_a_whole_number(model, n):
    with pytest.raises(kofa.DeclarationError, match="Expected n to be a whole number"):
        plot.top_weights(model, "real", n=n)


def test_neither_a_model_nor_a_table():
    with pytest.raises(kofa.DataError, match=r"a model, or the table .*variance_explained.* None"):
        kofa.plot.variance_explained(None)


def test_a_table_without_rows():
    table = pd.DataFrame({"view": [], "factor": [], "r2": []})
    with pytest.raises(kofa.DataError, match="without rows"):
        kofa.plot.variance_explained(table)
